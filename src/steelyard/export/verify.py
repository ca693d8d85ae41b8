"""Written robot files loaded again, and their torques compared with the arm's at random states.

Steelyard's own reader always does it, Pinocchio and MuJoCo where they are installed. What is compared: rigid-body
torques, and damping, friction and armature as the format holds them; friction at its full value in the direction of
motion. Joints that mimic others are free joints in these programs and are moved as the leader says; locked joints are
held.

MuJoCo gets the file without visual and collision elements, whose meshes need not be found and from which it would make
up inertias of links that have none, and without a ``<mujoco>`` element of the file itself: its limits on masses and
inertias and its balancing of inertias are off, so that it takes numbers as they are. Fixed links stay bodies of their
own: where MuJoCo fuses them into those that carry them, as it does by default, it rounds the sum of their inertias, by
1e-5 for light links.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ..errors import RobotError
from ..model import random_motion
from ..physics import inverse_dynamics_function
from ..robot import Robot
from ..robot.drives import joint_values
from ..robot.files import parse_xml_safely
from ..robot.placement import Vector3
from .identified import FileProblem, TorqueComparison

LARGEST_DIFFERENCE = 1e-9
"""Of torques, relative to the largest torque of the joint."""
STATES = 1000
_SMALLEST_SCALE = 1e-6
"""Largest torque of a joint, relative to that of the whole arm, below which the latter counts: rounding is left over
where a joint needs no torque."""

_NOT_LOADED = (ValueError, RuntimeError, LookupError, AttributeError)
"""What programs raise for files that they cannot use; other packages of the same name lack attributes."""

_NOT_WRITTEN = "take another format, bound what is impossible ([identify.consistency]) and identify again"
"""Remedy for a file that does not load; it is not written, so that nothing can be corrected in it."""

States = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Positions, velocities and accelerations of the actuated joints, each (na, states)."""
Load = Callable[[bytes, Robot, States], np.ndarray]
"""Loads a file into a program and returns its torques (na, states)."""


def random_states(robot: Robot, count: int = STATES) -> States:
    """Return the states at which files of this robot are checked, within its limits; always the same ones."""
    return random_motion(robot, count, np.random.default_rng(0))


def file_torques(robot: Robot, states: States, *, armature: bool = False) -> np.ndarray:
    """Return the torques (na, states) that a file of this robot can hold: rigid bodies, damping and friction.

    Args:
        robot: The arm; bodies of unknown inertia are massless.
        states: Where.
        armature: Whether the format also holds drive inertias.
    """
    inertias = np.concatenate([body.inertia or np.zeros(10) for body in robot.bodies])
    rigid = np.array(inverse_dynamics_function(robot)(*states, inertias))
    coupling, _ = robot.coupling()
    damping, friction, inertia = np.array([*joint_values(robot).values()]).T[:, :, None]
    velocity, acceleration = coupling @ states[1], coupling @ states[2]
    on_joints = damping * velocity + friction * np.sign(velocity) + armature * inertia * acceleration
    return rigid + coupling.T @ on_joints


def compare(program: str, robot: Robot, wanted: np.ndarray, found: np.ndarray) -> TorqueComparison:
    """Return how far torques (na, states) of a program are from those of the arm."""
    scale = np.abs(wanted).max(axis=1)
    smallest = _SMALLEST_SCALE * scale.max()
    scale = np.where(scale > smallest, scale, max(scale.max(), np.finfo(float).tiny))
    off = np.abs(found - wanted).max(axis=1) / scale
    row = int(np.argmax(np.where(np.isfinite(off), off, np.inf)))
    return TorqueComparison(program, wanted.shape[1], float(off[row]), robot.joint_names[row])


def compare_programs(
    content: bytes, robot: Robot, wanted: np.ndarray, states: States, original: bytes | None = None
) -> tuple[list[TorqueComparison], list[FileProblem]]:
    """Return what Pinocchio and MuJoCo make of a URDF, those that are installed, and what speaks against the file.

    A program that cannot load the file has nothing to compare; that speaks against the file if it loads the original.

    Args:
        content: The file.
        robot: The arm, joints locked as they are meant.
        wanted: Torques (na, states) of the file as Steelyard reads it.
        states: Where.
        original: The file before it was edited.
    """
    comparisons, problems = [], []
    for name, load in PROGRAMS.items():
        try:
            program = f"{name} {getattr(import_module(name), '__version__', '')}".strip()
        except ImportError:
            continue
        try:
            found = load(content, robot, states)
        except _NOT_LOADED as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            comparisons.append(TorqueComparison(program, 0, float("nan"), "", f"does not load the file: {reason}"))
            if original is not None and _is_loaded(load, original, robot, states):
                problems.append(
                    FileProblem(f"{program} loads the original file but not the edited one ({reason})", _NOT_WRITTEN)
                )
            continue
        comparisons.append(compare(program, robot, wanted, found))
        problems += mismatches(comparisons[-1])
    return comparisons, problems


def mismatches(comparison: TorqueComparison) -> list[FileProblem]:
    """Return what speaks against a file: one line, or none if the torques agree."""
    if comparison.reason or comparison.largest <= LARGEST_DIFFERENCE:
        return []
    text = (
        f"{comparison.program} loads the file with torques of joint '{comparison.joint}' that differ by "
        f"{comparison.largest:.2g} of its largest (allowed {LARGEST_DIFFERENCE:g})"
    )
    return [FileProblem(text, "compare the file with the original")]


def not_loaded(error: RobotError) -> tuple[TorqueComparison, FileProblem]:
    """Return the comparison and the problem of a written file that Steelyard itself does not load."""
    # The file is not written: it has no lines to look at.
    cause = re.sub(r",? line \d+", "", str(error)).removesuffix("; correct the file")
    reason = f"does not load the file: {cause}"
    return TorqueComparison("steelyard", 0, math.nan, "", reason), FileProblem(f"steelyard {reason}", _NOT_WRITTEN)


def _is_loaded(load: Load, content: bytes, robot: Robot, states: States) -> bool:
    try:
        load(content, robot, (states[0][:, :1], states[1][:, :1], states[2][:, :1]))
    except _NOT_LOADED:
        return False
    return True


def joint_states(robot: Robot, states: States) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return position, velocity and acceleration (states,) of every joint that is not fixed; locked ones are held."""
    coupling, offset = robot.coupling()
    positions, rates, accelerations = coupling @ states[0] + offset[:, None], coupling @ states[1], coupling @ states[2]
    rest = np.zeros(states[0].shape[1])
    held = {j.name: (rest + j.locked_at, rest, rest) for j in robot.joints if j.locked_at is not None}
    moving = zip(positions, rates, accelerations, strict=True)
    return held | {body.joint.name: each for body, each in zip(robot.bodies, moving, strict=True)}


def pinocchio_torques(content: bytes, robot: Robot, states: States) -> np.ndarray:
    """Return the torques (na, states) of a URDF in Pinocchio, with the damping and friction that it reads."""
    pin: Any = import_module("pinocchio")
    model = pin.buildModelFromXML(etree.tostring(parse_xml_safely(content), encoding="unicode"))
    model.gravity.linear = np.array(robot.gravity)
    data, count = model.createData(), states[0].shape[1]
    position = np.tile(pin.neutral(model)[:, None], count)
    velocity, acceleration = np.zeros((2, model.nv, count))
    for name, (q, qd, qdd) in joint_states(robot, states).items():
        joint = model.joints[model.getJointId(name)]
        position[joint.idx_q : joint.idx_q + joint.nq] = q if joint.nq == 1 else (np.cos(q), np.sin(q))
        velocity[joint.idx_v], acceleration[joint.idx_v] = qd, qdd
    rigid = [pin.rnea(model, data, *motion) for motion in zip(position.T, velocity.T, acceleration.T, strict=True)]
    dry = model.upperDryFrictionLimit if hasattr(model, "upperDryFrictionLimit") else model.friction
    torques = np.transpose(rigid) + model.damping[:, None] * velocity + dry[:, None] * np.sign(velocity)
    rows = [model.joints[model.getJointId(body.joint.name)].idx_v for body in robot.bodies]
    return robot.coupling()[0].T @ torques[rows]


def mujoco_urdf_torques(content: bytes, robot: Robot, states: States) -> np.ndarray:
    """Return the torques (na, states) of a URDF in MuJoCo, as the text of this module describes."""
    mujoco: Any = import_module("mujoco")
    tree = parse_xml_safely(content)
    for tag in ("visual", "collision", "mujoco"):
        for element in list(tree.getroot().iter("{*}" + tag)):
            element.getparent().remove(element)
    options = {"boundmass": "0", "boundinertia": "0", "balanceinertia": "false", "fusestatic": "false"}
    etree.SubElement(etree.SubElement(tree.getroot(), "mujoco"), "compiler", options)
    # Otherwise its warnings go to the screen and to a file in the working folder.
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        model = mujoco.MjModel.from_xml_string(etree.tostring(tree, encoding="unicode"))
        return mujoco_torques(model, robot, states, gravity=robot.gravity)
    finally:
        mujoco.set_mju_user_warning(None)


def mujoco_torques(model: Any, robot: Robot, states: States, gravity: Vector3 | None) -> np.ndarray:
    """Return the torques (na, states) of a model of MuJoCo: its inverse dynamics, armature and damping included.

    Dry friction, which is a constraint there, is added at its full value; all constraints are off.

    Args:
        model: The compiled model.
        robot: The arm, joints locked as they are meant.
        states: Where.
        gravity: Gravity of a file that has none (URDF); None: that of the model.
    """
    mujoco: Any = import_module("mujoco")
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    if gravity is not None:
        model.opt.gravity[:] = gravity
    data, count = mujoco.MjData(model), states[0].shape[1]
    position = np.tile(np.array(model.qpos0)[:, None], count)
    velocity, acceleration = np.zeros((2, model.nv, count))
    dofs: dict[str, int] = {}
    for name, (q, qd, qdd) in joint_states(robot, states).items():
        joint = model.joint(name)
        dofs[name] = int(joint.dofadr[0])
        position[int(joint.qposadr[0])] = q
        velocity[dofs[name]], acceleration[dofs[name]] = qd, qdd
    torques = np.empty((model.nv, count))
    for column in range(count):
        data.qpos[:], data.qvel[:], data.qacc[:] = position[:, column], velocity[:, column], acceleration[:, column]
        mujoco.mj_inverse(model, data)
        torques[:, column] = data.qfrc_inverse
    torques += np.array(model.dof_frictionloss)[:, None] * np.sign(velocity)
    return robot.coupling()[0].T @ torques[[dofs[body.joint.name] for body in robot.bodies]]


PROGRAMS: dict[str, Load] = {"pinocchio": pinocchio_torques, "mujoco": mujoco_urdf_torques}
"""Programs that load a URDF, by the name of their Python module."""
