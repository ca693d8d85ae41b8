"""Placements: the pose of a frame in its parent as a chain of named elementary motions.

A placement is a tuple of rotations about and translations along unit axes. Modified DH rows and URDF origins are two
ways to write one; the numeric transform here and the symbolic one in ``physics`` are products over the same chain, so
the geometry is stated once. Angles of robot files that mean a right angle are made exact, so that zeros drop out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import RobotError

Vector3 = tuple[float, float, float]
X: Vector3 = (1.0, 0.0, 0.0)
Y: Vector3 = (0.0, 1.0, 0.0)
Z: Vector3 = (0.0, 0.0, 1.0)

# Distance from a multiple of 90 degrees below which sine and cosine are taken as exactly 0 and 1:
# a few roundings of pi/2, far below what any file means to say.
RIGHT_ANGLE_ROUNDING = 1e-12


@dataclass(frozen=True)
class ElementaryMotion:
    """One elementary motion: a rotation [rad] about, or a translation [m] along, a unit axis.

    Attributes:
        kind: ``rotate`` or ``translate``.
        axis: Unit vector, in the frame reached so far.
        value: Angle [rad] or distance [m].
        name: What a person calls this number (``alpha``, ``d``, ``yaw``, ``x``).

    Example:
        >>> from steelyard.robot import ElementaryMotion
        >>> ElementaryMotion("rotate", (1.0, 0.0, 0.0), 0.5, "alpha").kind
        'rotate'
    """

    kind: Literal["rotate", "translate"]
    axis: Vector3
    value: float
    name: str


Placement = tuple[ElementaryMotion, ...]


def mdh_placement(alpha: float, d: float, theta: float, r: float, gamma: float = 0.0, b: float = 0.0) -> Placement:
    """Return the modified Denavit-Hartenberg placement of Khalil and Kleinfinger.

    ``Rot(z, gamma) Trans(z, b) Rot(x, alpha) Trans(x, d) Rot(z, theta) Trans(z, r)``; gamma and b are
    needed only where a tree branches.

    Example:
        >>> from steelyard.robot import mdh_placement, transform_from_placement
        >>> rotation, translation = transform_from_placement(mdh_placement(0.0, 0.4, 0.0, 0.1))
        >>> translation.tolist()
        [0.4, 0.0, 0.1]
    """
    return (
        ElementaryMotion("rotate", Z, gamma, "gamma"),
        ElementaryMotion("translate", Z, b, "b"),
        ElementaryMotion("rotate", X, alpha, "alpha"),
        ElementaryMotion("translate", X, d, "d"),
        ElementaryMotion("rotate", Z, theta, "theta"),
        ElementaryMotion("translate", Z, r, "r"),
    )


def standard_dh_placements(a: float, alpha: float, d: float, theta: float) -> tuple[Placement, Placement]:
    """Return the joint's frame in the link frame before, and the link's own frame, at its far end, in the joint's.

    Standard (distal) Denavit-Hartenberg: ``Rot(z, theta) Trans(z, d)``, about whose z the joint moves, then
    ``Trans(x, a) Rot(x, alpha)`` to the frame at the far end of the link.

    Example:
        >>> from steelyard.robot import standard_dh_placements, transform_from_placement
        >>> joint, end = standard_dh_placements(a=0.4, alpha=0.0, d=0.1, theta=0.0)
        >>> transform_from_placement(joint + end)[1].tolist()
        [0.4, 0.0, 0.1]
    """
    return (
        (ElementaryMotion("rotate", Z, theta, "theta"), ElementaryMotion("translate", Z, d, "d")),
        (ElementaryMotion("translate", X, a, "a"), ElementaryMotion("rotate", X, alpha, "alpha")),
    )


def origin_placement(xyz: Vector3, rpy: Vector3) -> Placement:
    """Return the placement of a URDF origin: translate by xyz, then yaw, pitch, roll.

    Example:
        >>> from steelyard.robot import origin_placement, transform_from_placement
        >>> rotation, translation = transform_from_placement(origin_placement((0.4, 0, 0), (0, 0, np.pi / 2)))
        >>> rotation[:, 0].tolist()
        [0.0, 1.0, 0.0]
    """
    return (
        ElementaryMotion("translate", X, xyz[0], "x"),
        ElementaryMotion("translate", Y, xyz[1], "y"),
        ElementaryMotion("translate", Z, xyz[2], "z"),
        ElementaryMotion("rotate", Z, rpy[2], "yaw"),
        ElementaryMotion("rotate", Y, rpy[1], "pitch"),
        ElementaryMotion("rotate", X, rpy[0], "roll"),
    )


def exact_sin_cos(angle: float) -> tuple[float, float]:
    """Return sine and cosine, exactly 0 and +-1 at multiples of 90 degrees.

    Example:
        >>> from steelyard.robot import exact_sin_cos
        >>> exact_sin_cos(np.pi / 2)
        (1.0, 0.0)
    """
    quarter_turns = round(angle / (math.pi / 2))
    if abs(angle - quarter_turns * math.pi / 2) <= RIGHT_ANGLE_ROUNDING * max(1, abs(quarter_turns)):
        return ((0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0))[quarter_turns % 4]
    return math.sin(angle), math.cos(angle)


def rotation_about_axis(axis: Vector3, angle: float) -> np.ndarray:
    """Return the 3x3 rotation by ``angle`` about the unit vector ``axis`` (Rodrigues)."""
    s, c = exact_sin_cos(angle)
    x, y, z = axis
    u = np.array(axis)
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    # Written with the outer product so that a principal axis gives exact zeros and ones.
    return c * (np.eye(3) - np.outer(u, u)) + s * skew + np.outer(u, u)


def transform_from_placement(placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation (3, 3) and translation (3,) that take child coordinates to the parent's.

    Example:
        >>> from steelyard.robot import mdh_placement, transform_from_placement
        >>> rotation, translation = transform_from_placement(mdh_placement(np.pi / 2, 0.0, 0.0, 0.1))
        >>> translation.tolist()
        [0.0, -0.1, 0.0]
    """
    rotation, translation = np.eye(3), np.zeros(3)
    for motion in placement:
        if motion.kind == "translate":
            translation = translation + rotation @ (np.array(motion.axis) * motion.value)
        else:
            rotation = rotation @ rotation_about_axis(motion.axis, motion.value)
    return rotation, translation


def roll_pitch_yaw(rotation: np.ndarray) -> Vector3:
    """Return the angles [rad] of ``Rz(yaw) Ry(pitch) Rx(roll)``, exact to rounding at any pitch.

    Pitch and roll are read off after the yaw is taken away: at a pitch of 90 degrees, where the yaw is free, they still
    make up for whatever yaw was found.

    Example:
        >>> from steelyard.robot import roll_pitch_yaw
        >>> roll_pitch_yaw(np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
        (0.0, 0.0, 1.5707963267948966)
    """
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    sine, cosine = exact_sin_cos(yaw)
    left = np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]]) @ rotation
    return math.atan2(-left[1, 2], left[1, 1]) + 0.0, math.atan2(-left[2, 0], left[0, 0]) + 0.0, yaw + 0.0


# A tolerance above this would bend real geometry [rad].
LARGEST_TOLERANCE = 0.01

# Changes up to this are the rounding of a file that writes ten digits or more; not worth a note [rad].
SILENT_CHANGE = 1e-9

# An axis shorter than this has no direction.
SHORTEST_AXIS = 1e-9


def radians_from_degrees(degrees: float) -> float:
    """Return the angle [rad]; a multiple of 90 degrees gives the same multiple of pi/2."""
    if degrees % 90 == 0:
        return round(degrees / 90) * math.pi / 2
    return math.radians(degrees)


class RightAngles:
    """Takes angles near a multiple of 90 degrees as exact ones and remembers where it did."""

    def __init__(self, tolerance: float) -> None:
        if not (math.isfinite(tolerance) and 0 <= tolerance <= LARGEST_TOLERANCE):
            raise RobotError(
                f"right_angle_tolerance is {tolerance}; allowed 0 (read literally) to {LARGEST_TOLERANCE} rad"
            )
        self.tolerance = max(tolerance, RIGHT_ANGLE_ROUNDING)
        self._changes: dict[str, float] = {}

    def angle(self, value: float, where: str) -> float:
        """Return the angle, or the multiple of pi/2 it lies next to."""
        exact = round(value / (math.pi / 2)) * math.pi / 2
        change = abs(value - exact)
        if change > self.tolerance:
            return value
        self._remember(change, where)
        return exact

    def direction(self, vector: Vector3, where: str) -> Vector3:
        """Return the unit vector; components within the tolerance of zero become zero."""
        length = math.hypot(*vector)
        if length < SHORTEST_AXIS:
            raise RobotError(f"{where}: axis {vector} has no direction; give a vector such as 0 0 1")
        unit = [component / length for component in vector]
        rounded = [0.0 if abs(component) <= self.tolerance else component for component in unit]
        if rounded == unit:
            return (unit[0], unit[1], unit[2])
        self._remember(max(abs(a - b) for a, b in zip(unit, rounded, strict=True)), where)
        length = math.hypot(*rounded)
        return (rounded[0] / length, rounded[1] / length, rounded[2] / length)

    def notes(self) -> list[str]:
        """Return at most one note, which names every place where an angle was changed."""
        if not self._changes:
            return []
        places = ", ".join(self._changes)
        largest = max(self._changes.values())
        return [f"angles taken as exact right angles (largest change {largest:.1e} rad): {places}"]

    def _remember(self, change: float, where: str) -> None:
        if change > SILENT_CHANGE:
            self._changes[where] = max(change, self._changes.get(where, 0.0))


def placement_from_transform(
    rotation: np.ndarray, translation: np.ndarray, angles: RightAngles, where: str
) -> Placement:
    """Return the origin placement of a transform; angles near a right one are taken as exact.

    Args:
        rotation: Axes of the frame in its parent (3, 3).
        translation: Origin of the frame in its parent (3,) [m].
        angles: What is near enough, and where the changes are remembered.
        where: What a note calls the place.
    """
    if math.hypot(rotation[0, 0], rotation[1, 0]) <= angles.tolerance:
        # The pitch is a right angle, and roll and yaw turn about the same line: the roll alone is a right angle too
        # where the frame is turned by right angles.
        roll, pitch, yaw = math.atan2(-rotation[1, 2], rotation[1, 1]), math.asin(-np.sign(rotation[2, 0])), 0.0
    else:
        roll, pitch, yaw = roll_pitch_yaw(rotation)
    x, y, z = (float(value) for value in translation)
    return origin_placement(
        (x, y, z), (angles.angle(roll, where), angles.angle(pitch, where), angles.angle(yaw, where))
    )
