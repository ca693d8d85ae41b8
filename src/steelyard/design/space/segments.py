"""The distance of two line segments, for many pairs at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .regions import perpendicular


class Nearest(NamedTuple):
    """The nearest points of two segments.

    Attributes:
        distance: (N,) [m].
        first: Where on the first segment, 0 at its start, 1 at its end (N,).
        second: Where on the second segment (N,).
        direction: Unit vector from the second segment's nearest point to the first's (3, N).
    """

    distance: np.ndarray
    first: np.ndarray
    second: np.ndarray
    direction: np.ndarray


def nearest_points(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> Nearest:
    """Return the nearest points of the segments from a to b and from c to d, each (3, N) [m].

    The squared distance is a convex quadratic of the two places on the square [0, 1]^2. It is least where the lines
    come nearest if that lies inside. Else the place there, brought into the square, is followed by the nearest place on
    the second segment and then by the nearest to that on the first, which is where the least is found (Ericson,
    Real-Time Collision Detection, 5.1.9). Parallel segments and those of no length need no case of their own.
    """
    along, other, between = b - a, d - c, a - c
    aa, ab, ac, bb, bc = (
        _dot(along, along),
        _dot(along, other),
        _dot(along, between),
        _dot(other, other),
        _dot(other, between),
    )
    # A segment of no length has its one point at place 0: all products with it vanish.
    per_aa, per_bb = (1.0 / np.where(squared > 0, squared, 1.0) for squared in (aa, bb))
    second = ((bc + _stationary(along, other, between) * ab) * per_bb).clip(0.0, 1.0)
    first = ((second * ab - ac) * per_aa).clip(0.0, 1.0)
    vector = between + first * along - second * other
    distance = np.sqrt(_dot(vector, vector))
    return Nearest(distance, first, second, _direction(vector, distance, along, other))


def _stationary(along: np.ndarray, other: np.ndarray, between: np.ndarray) -> np.ndarray:
    """Return the place on the first line nearest to the second, brought into [0, 1]; 0 for parallel lines."""
    normal = _cross(along, other)
    squared = _dot(normal, normal)
    # The cross product keeps the digits that the difference of products loses for nearly parallel lines.
    place = _dot(_cross(other, between), normal) / np.where(squared > 0, squared, 1.0)
    return place.clip(0.0, 1.0)


def _direction(vector: np.ndarray, distance: np.ndarray, along: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return unit vectors along ``vector``; where segments cross, one at right angles to both leads apart."""
    touching = distance <= 0
    direction = vector / np.where(touching, 1.0, distance)
    if touching.any():
        direction[:, touching] = _common_normal(along[:, touching], other[:, touching])
    return direction


def _common_normal(along: np.ndarray, other: np.ndarray) -> np.ndarray:
    normal = _cross(along, other)
    longer = np.where(_dot(along, along) >= _dot(other, other), along, other)
    length, reach = np.linalg.norm(normal, axis=0), np.linalg.norm(longer, axis=0)
    unit = np.where(reach > 0, longer / np.where(reach > 0, reach, 1.0), np.array([[1.0], [0.0], [0.0]]))
    return np.where(length > 0, normal / np.where(length > 0, length, 1.0), perpendicular(unit))


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross products of columns; the general function of numpy takes several times as long."""
    return a[[1, 2, 0]] * b[[2, 0, 1]] - a[[2, 0, 1]] * b[[1, 2, 0]]


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", a, b)
