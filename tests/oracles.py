"""Our robots as models of libraries nobody here wrote: Pinocchio and MuJoCo. Mimics become free joints there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.robot import Robot, inertia_from_parameters, transform_from_placement

NO_PINOCCHIO = "Pinocchio (pin) has no wheel for this platform"
NO_MUJOCO = "MuJoCo has no wheel for this platform"


def centre_and_inertia(parameters: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, centre of mass and inertia about it from the ten parameters about the origin."""
    inertia, moment, mass = inertia_from_parameters(parameters)
    centre = moment / mass
    return mass, centre, inertia - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))


def pinocchio_model(robot: Robot) -> Any:
    """Return a Pinocchio model with our bodies in our order."""
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    model = pin.Model()
    model.gravity.linear = np.array(robot.gravity)
    identifiers = [0]
    for body in robot.bodies:
        rotation, translation = transform_from_placement(body.placement)
        axis = np.array(body.joint.axis)
        slides = body.joint.kind == "prismatic"
        joint = pin.JointModelPrismaticUnaligned(axis) if slides else pin.JointModelRevoluteUnaligned(axis)
        parent = identifiers[body.parent]
        identifiers.append(model.addJoint(parent, joint, pin.SE3(rotation, translation), body.joint.name))
        if body.inertia is not None and body.inertia[9] > 0:
            mass, centre, inertia = centre_and_inertia(np.array(body.inertia))
            model.appendBodyToJoint(identifiers[-1], pin.Inertia(mass, centre, inertia), pin.SE3.Identity())
    return model


def mujoco_model(robot: Robot) -> Any:
    """Return a MuJoCo model with our bodies in our order, without armature, damping or least masses."""
    mujoco = pytest.importorskip("mujoco", reason=NO_MUJOCO)
    gravity = " ".join(map(repr, map(float, robot.gravity)))
    xml = (
        '<mujoco><compiler angle="radian" autolimits="false" boundmass="0" boundinertia="0" balanceinertia="false"/>'
        f'<option gravity="{gravity}"><flag contact="disable" constraint="disable"/></option>'
        f"<worldbody>{_mujoco_children(robot, 0)}</worldbody></mujoco>"
    )
    return mujoco.MjModel.from_xml_string(xml)


def _numbers(values: np.ndarray) -> str:
    return " ".join(repr(float(value)) for value in values)


def _mujoco_children(robot: Robot, parent: int) -> str:
    texts = ""
    for body in robot.bodies:
        if body.parent != parent:
            continue
        rotation, translation = transform_from_placement(body.placement)
        quaternion = Rotation.from_matrix(rotation).as_quat(scalar_first=True)
        mass, centre, inertia = centre_and_inertia(np.array(body.inertia))
        full = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        kind = "slide" if body.joint.kind == "prismatic" else "hinge"
        texts += (
            f'<body name="{body.link}" pos="{_numbers(translation)}" quat="{_numbers(quaternion)}">'
            f'<inertial pos="{_numbers(centre)}" mass="{mass!r}" fullinertia="{_numbers(full)}"/>'
            f'<joint name="{body.joint.name}" type="{kind}" axis="{_numbers(np.array(body.joint.axis))}"/>'
            f"{_mujoco_children(robot, body.number)}</body>"
        )
    return texts
