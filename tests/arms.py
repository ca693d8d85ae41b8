"""The arms every test of the physics runs on: the catalogue, and small trees of our own in URDF."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard.model import random_motion
from steelyard.robot import Link, Robot, catalogue_names, load_robot, parameters_from_inertia, pseudo_inertia, read_urdf

_INERTIAL = """<inertial><origin xyz="{centre}" rpy="{rpy}"/><mass value="{mass}"/>
  <inertia ixx="{ixx}" ixy="{ixy}" ixz="{ixz}" iyy="{iyy}" iyz="{iyz}" izz="{izz}"/></inertial>"""


def _link(name: str, mass: float, centre: str, rpy: str = "0 0 0", scale: float = 1.0) -> str:
    inertial = _INERTIAL.format(
        centre=centre, rpy=rpy, mass=mass, ixx=0.05 * scale, ixy=0.004 * scale, ixz=-0.003 * scale,
        iyy=0.06 * scale, iyz=0.002 * scale, izz=0.04 * scale,
    )  # fmt: skip
    return f'<link name="{name}">{inertial}</link>'


def _joint(name: str, kind: str, parent: str, child: str, xyz: str, rpy: str, axis: str, extra: str = "") -> str:
    limit = '<limit lower="-2.5" upper="2.0" velocity="3" effort="50"/>' if kind in ("revolute", "prismatic") else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>{limit}{extra}</joint>'
    )


SKEWED_CHAIN = (
    '<robot name="skewed_chain"><link name="base"/>'
    + _link("upper", 3.0, "0.1 -0.05 0.2", "0.3 -0.2 0.5")
    + _link("fore", 2.0, "0.0 0.15 0.05")
    + _link("hand", 1.0, "0.02 0.01 -0.07", "1.0 0.2 0", 0.1)
    + _joint("shoulder", "revolute", "base", "upper", "0.1 0.2 0.3", "0.4 -0.3 0.2", "1 2 3")
    + _joint("elbow", "continuous", "upper", "fore", "0.3 0 0.1", "1.5707963267948966 0 0.7", "0 1 0")
    + _joint("wrist", "revolute", "fore", "hand", "0 0.4 0", "0 0 -1.1", "-0.5 0.1 0.8")
    + "</robot>"
)

SLIDING_TREE = (
    '<robot name="sliding_tree"><link name="base"/>'
    + _link("torso", 8.0, "0 0 0.3", scale=4)
    + _link("left", 2.0, "0.1 0 0.1")
    + _link("left_tool", 0.5, "0.05 0 0", "0 0.4 0", 0.05)
    + _link("right", 2.5, "-0.1 0.02 0.1")
    + _link("right_hand", 0.7, "0 0 0.1", "0.1 0.2 0.3", 0.1)
    + _link("camera", 0.3, "0.02 0.03 0.01", "0 0 1", 0.02)
    + _joint("lift", "prismatic", "base", "torso", "0 0 0.5", "0 0 0", "0 0 1")
    + _joint("left_shoulder", "revolute", "torso", "left", "0.2 0 0.6", "0 0.5 0", "0 1 0")
    + _joint("left_mount", "fixed", "left", "left_tool", "0.3 0.1 0", "0.2 0.3 0.4", "1 0 0")
    + _joint("right_shoulder", "revolute", "torso", "right", "-0.2 0 0.6", "0 -0.5 0.1", "0 0 1")
    + _joint("right_slide", "prismatic", "right", "right_hand", "-0.3 0 0", "0.7 0 0", "0.6 0 0.8")
    + _joint("neck", "fixed", "torso", "camera", "0 0 0.8", "0 0 0.5", "1 0 0")
    + "</robot>"
)

GRIPPER = (
    '<robot name="gripper"><link name="base"/>'
    + _link("arm", 2.0, "0.1 0 0.2")
    + _link("finger_a", 0.4, "0.05 0 0", scale=0.1)
    + _link("finger_b", 0.4, "0.05 0 0", scale=0.1)
    + _joint("arm_joint", "revolute", "base", "arm", "0 0 0.2", "0 0 0", "0 1 0")
    + _joint("open", "prismatic", "arm", "finger_a", "0.3 0.02 0", "0 0 0", "0 1 0")
    + _joint(
        "follow", "revolute", "arm", "finger_b", "0.3 -0.02 0", "0 0 0", "0 0 1",
        '<mimic joint="open" multiplier="-1.5" offset="0.1"/>',
    )
    + "</robot>"
)  # fmt: skip

URDFS = {"skewed_chain": SKEWED_CHAIN, "sliding_tree": SLIDING_TREE, "gripper": GRIPPER}
ALL_ARMS = (*catalogue_names(), *URDFS)


def arm(name: str) -> Robot:
    """Return a test arm by name; links whose inertia is unknown or degenerate get a possible one."""
    robot = read_urdf(URDFS[name].encode()) if name in URDFS else load_robot(name)
    rng = np.random.default_rng(7)
    return replace(robot, links=tuple(with_possible_inertia(link, rng) for link in robot.links))


def with_possible_inertia(link: Link, rng: np.random.Generator) -> Link:
    """Return the link, with a seeded inertia of a real body where its own is unknown or degenerate."""
    if link.inertia is not None and np.linalg.eigvalsh(pseudo_inertia(np.array(link.inertia)))[0] > 1e-9:
        return link
    density = rng.normal(size=(4, 8))
    density[3] = 1.0
    points = density @ density.T * 0.2
    second, moment, mass = points[:3, :3] * 0.05, points[:3, 3] * 0.2, points[3, 3]
    return replace(link, inertia=tuple(parameters_from_inertia(np.trace(second) * np.eye(3) - second, moment, mass)))


def inertias_of(robot: Robot) -> np.ndarray:
    """Return the a priori inertial parameters of all bodies (10 nb,)."""
    return np.concatenate([np.array(body.inertia) for body in robot.bodies])


def motion_of(robot: Robot, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return seeded random q, qd, qdd (na, count)."""
    return random_motion(robot, count, np.random.default_rng(seed))
