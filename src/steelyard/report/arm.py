"""Arms for figures: poses along a motion, ellipsoids of inertia, hulls of collision shapes."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from ..errors import SteelyardError
from ..physics import body_poses, joint_positions
from ..plots import ArmMotion, Ellipsoid
from ..robot import Robot, centre_from_parameters, is_consistent, shape_points, transform_from_placement

FRAMES = 60
"""Instants that a report shows."""


def arm_motion(
    robot: Robot, time: np.ndarray, q: np.ndarray, instants: np.ndarray, arms: Mapping[str, Robot]
) -> ArmMotion:
    """Return an arm along a motion.

    Args:
        robot: The arm.
        time: Times (m,) [s].
        q: Positions of its actuated joints then (n, m).
        instants: Instants that are shown beside evenly spread ones (k,) [s].
        arms: Arms whose inertias are drawn, by series; their bodies are those of the robot.
    """
    even = np.linspace(time[0], time[-1], min(FRAMES, len(time)))
    shown = np.unique(np.concatenate([even, instants]))
    return arm_at(robot, shown, np.array([np.interp(shown, time, row) for row in q]), arms)


def arm_at(robot: Robot, time: np.ndarray, q: np.ndarray, arms: Mapping[str, Robot]) -> ArmMotion:
    """Return an arm at these instants (m,) and positions of its actuated joints (n, m), no others; see `arm_motion`."""
    parents = [body.parent for body in robot.bodies]
    ends = {body.number for body in robot.bodies} - set(parents)
    tips = [
        (frame.body, transform_from_placement(frame.placement)[1])
        for frame in robot.frames.values()
        if frame.body in ends and np.any(transform_from_placement(frame.placement)[1])
    ]
    ellipsoids = {name: ellipsoids_of(arm) for name, arm in arms.items()}
    return ArmMotion(time, poses_of(robot, q), parents, tips, ellipsoids, hulls_of(robot))


def poses_of(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return ``[R p]`` (f, b, 3, 4) of the base and of every body at positions q (n, f)."""
    symbols = ca.SX.sym("q", q.shape[0])
    poses = body_poses(robot, joint_positions(robot, symbols))
    stacked = ca.horzcat(*(ca.densify(ca.horzcat(pose.rotation, pose.translation)) for pose in poses))
    values = np.array(ca.Function("poses", [symbols], [stacked]).map(q.shape[1])(q))
    return values.reshape(3, q.shape[1], len(poses), 4).transpose(1, 2, 0, 3)


def ellipsoids_of(robot: Robot) -> list[Ellipsoid]:
    """Return the solid ellipsoid of every body whose inertia is known and possible."""
    found = []
    for body in robot.bodies:
        inertia = None if body.inertia is None else np.array(body.inertia)
        if inertia is None or not is_consistent(inertia) or not inertia[9] > 0:
            continue
        mass, centre, at_centre = centre_from_parameters(inertia)
        moments, axes = np.linalg.eigh(at_centre)
        semi = np.sqrt(np.maximum(2.5 / mass * (moments.sum() - 2 * moments), 0.0))
        found.append(Ellipsoid(body.number, centre, axes * semi))
    return found


def hulls_of(robot: Robot) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return the convex hulls of the collision shapes that the robot file has and that can be read."""
    shaped = [link for link in robot.links if link.shapes and link.name in robot.frames]
    if not shaped:
        return []
    from scipy.spatial import ConvexHull, QhullError  # takes a while to load, and few robot files have shapes

    found = []
    for link in shaped:
        frame = robot.frames[link.name]
        rotation, translation = transform_from_placement(frame.placement)
        try:
            points = np.concatenate([shape_points(shape) for shape in link.shapes])
            hull = ConvexHull(points)
        except (SteelyardError, QhullError, ValueError):  # a mesh that is not there or is flat is not drawn
            continue
        place = {corner: k for k, corner in enumerate(hull.vertices.tolist())}
        triangles = np.array([[place[corner] for corner in face] for face in hull.simplices.tolist()])
        found.append((frame.body, points[hull.vertices] @ rotation.T + translation, triangles))
    return found
