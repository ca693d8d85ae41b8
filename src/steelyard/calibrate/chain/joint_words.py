"""What a robot engineer calls an error of a joint's frame: joint offset, link length, twist, parallelism."""

from __future__ import annotations

import numpy as np

from ...robot import Body, Motion, Robot, transform_from_placement

# Directions and lengths below this, relative to 1 or in metres, are zero as files mean it.
_NONE = 1e-9


def error_words(robot: Robot, body: Body, motion: Motion) -> str:
    """Return the meaning of an elementary error of a body's joint.

    About the joint's own axis it is the joint offset. Along another direction it is the length of the link before where
    there is one, else a shift of the axis. A turn about the common normal of this axis and the one before is the twist;
    the other tilt is the parallelism of two nominally parallel axes.
    """
    name, letter = body.joint.name, motion.name.rstrip("0123456789")[-1]
    if motion.name.startswith("offset"):
        return f"offset of {name} {'about' if motion.kind == 'rotate' else 'along'} its own axis"
    direction, own = np.array(motion.axis), np.array(body.joint.axis)
    length = _lever(body) @ direction
    if motion.kind == "translate":
        along = "its own axis" if abs(direction @ own) > 1 - _NONE else letter
        if abs(length) > _NONE:
            return f"length of the link before {name} along {along} (nominally {abs(length):.6g} m)"
        return f"shift of {name} along {along}"
    if abs(direction @ own) > 1 - _NONE:
        return f"turn of the slide of {name} about its own axis"
    return _tilt_words(robot, body, direction, letter)


def _tilt_words(robot: Robot, body: Body, direction: np.ndarray, letter: str) -> str:
    own, lever = np.array(body.joint.axis), _lever(body)
    before = _axis_before(robot, body)
    normal = np.cross(before, own)
    parallel = np.linalg.norm(normal) < _NONE
    if parallel:
        normal = lever - (lever @ own) * own
    size = np.linalg.norm(normal)
    # Of the two tilts the one nearer to the common normal is the twist; the first wins where they are alike.
    if size > _NONE and abs(direction @ normal) > np.sqrt(0.5) * size - _NONE:
        return f"twist of the axis of {body.joint.name} about {letter}"
    if parallel and body.parent:
        leader = robot.bodies[body.parent - 1].joint.name
        return f"parallelism of the axes of {leader} and {body.joint.name}, about {letter}"
    return f"tilt of the axis of {body.joint.name} about {letter}"


def _lever(body: Body) -> np.ndarray:
    """Return the nominal step from the frame before to the body's frame, in the body's frame [m]."""
    rotation, translation = transform_from_placement(body.placement)
    return rotation.T @ translation


def _axis_before(robot: Robot, body: Body) -> np.ndarray:
    """Return the axis of the joint before (z of the base for the first), in the body's frame."""
    rotation, _ = transform_from_placement(body.placement)
    axis = robot.bodies[body.parent - 1].joint.axis if body.parent else (0.0, 0.0, 1.0)
    return rotation.T @ np.array(axis)
