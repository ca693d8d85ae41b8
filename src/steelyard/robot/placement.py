"""Where a frame sits in its parent: a chain of elementary motions, kept as named numbers.

A placement is a tuple of rotations about and translations along unit axes. Modified DH rows and
URDF origins are two ways to write one; the numeric transform here and the symbolic one in
``physics`` are folds over the same chain, so the geometry is stated once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

Vector3 = tuple[float, float, float]
X: Vector3 = (1.0, 0.0, 0.0)
Y: Vector3 = (0.0, 1.0, 0.0)
Z: Vector3 = (0.0, 0.0, 1.0)

# Distance from a multiple of 90 degrees below which sine and cosine are taken as exactly 0 and 1:
# a few roundings of pi/2, far below what any file means to say.
RIGHT_ANGLE_ROUNDING = 1e-12


@dataclass(frozen=True)
class Motion:
    """One elementary motion: a rotation [rad] about, or a translation [m] along, a unit axis.

    Attributes:
        kind: ``rotate`` or ``translate``.
        axis: Unit vector, in the frame reached so far.
        value: Angle [rad] or distance [m].
        name: What a person calls this number (``alpha``, ``d``, ``yaw``, ``x``).
    """

    kind: Literal["rotate", "translate"]
    axis: Vector3
    value: float
    name: str


Placement = tuple[Motion, ...]


def mdh_placement(alpha: float, d: float, theta: float, r: float, gamma: float = 0.0, b: float = 0.0) -> Placement:
    """Return the modified Denavit-Hartenberg placement of Khalil and Kleinfinger.

    ``Rot(z, gamma) Trans(z, b) Rot(x, alpha) Trans(x, d) Rot(z, theta) Trans(z, r)``; gamma and b are
    needed only where a tree branches.
    """
    return (
        Motion("rotate", Z, gamma, "gamma"),
        Motion("translate", Z, b, "b"),
        Motion("rotate", X, alpha, "alpha"),
        Motion("translate", X, d, "d"),
        Motion("rotate", Z, theta, "theta"),
        Motion("translate", Z, r, "r"),
    )


def origin_placement(xyz: Vector3, rpy: Vector3) -> Placement:
    """Return the placement of a URDF origin: translate by xyz, then yaw, pitch, roll."""
    return (
        Motion("translate", X, xyz[0], "x"),
        Motion("translate", Y, xyz[1], "y"),
        Motion("translate", Z, xyz[2], "z"),
        Motion("rotate", Z, rpy[2], "yaw"),
        Motion("rotate", Y, rpy[1], "pitch"),
        Motion("rotate", X, rpy[0], "roll"),
    )


def exact_sin_cos(angle: float) -> tuple[float, float]:
    """Return sine and cosine, exactly 0 and +-1 at multiples of 90 degrees."""
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
    """Return rotation (3, 3) and translation (3,) that take child coordinates to the parent's."""
    rotation, translation = np.eye(3), np.zeros(3)
    for motion in placement:
        if motion.kind == "translate":
            translation = translation + rotation @ (np.array(motion.axis) * motion.value)
        else:
            rotation = rotation @ rotation_about_axis(motion.axis, motion.value)
    return rotation, translation
