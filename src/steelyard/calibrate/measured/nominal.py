"""Where the robot's file says the measured link is, in numbers: for the checks of measurements, not for their fit."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from ...robot import Robot, transform_from_placement
from .setup import moving_chain


def nominal_poses(robot: Robot, link: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (N, 3, 3) and positions (N, 3) [m] of a link in the robot's base frame.

    Args:
        robot: The arm.
        link: Name of the link.
        q: Positions of the actuated joints (na, N) [rad or m].
    """
    matrix, offset = robot.coupling()
    positions = matrix @ q + offset[:, np.newaxis]
    rotation, point = np.tile(np.eye(3), (q.shape[1], 1, 1)), np.zeros((q.shape[1], 3))
    for number in moving_chain(robot, link):
        joint = robot.bodies[number - 1].joint
        turn, shift = transform_from_placement(robot.bodies[number - 1].placement)
        rotation, point = rotation @ turn, point + rotation @ shift
        motion = positions[number - 1][:, np.newaxis] * np.array(joint.axis)
        if joint.kind == "prismatic":
            point = point + np.einsum("nij,nj->ni", rotation, motion)
        else:
            rotation = rotation @ Rotation.from_rotvec(motion).as_matrix()
    turn, shift = transform_from_placement(robot.frame(link).placement)
    return rotation @ turn, point + rotation @ shift


def reach(robot: Robot, link: str, q: np.ndarray) -> float:
    """Return the most a link can be away from the first joint [m]: all lengths and slides of the chain, stretched out.

    Args:
        robot: The arm.
        link: Name of the link.
        q: Positions at which it was measured (na, N), for slides.
    """
    matrix, offset = robot.coupling()
    positions = matrix @ q + offset[:, np.newaxis]
    chain = moving_chain(robot, link)
    total = float(np.linalg.norm(transform_from_placement(robot.frame(link).placement)[1]))
    for number in chain:
        body = robot.bodies[number - 1]
        if number != chain[0]:
            total += float(np.linalg.norm(transform_from_placement(body.placement)[1]))
        if body.joint.kind == "prismatic":
            total += float(np.abs(positions[number - 1]).max(initial=0.0))
    return total
