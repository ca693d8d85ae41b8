"""Regions of the base frame in which a point of the arm must stay, or which it must not enter.

A region is where all of its face functions are negative. Each is the signed distance from one plane, cylinder or
sphere: it has a gradient of length one, so the largest of them changes by no more than the point moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np

from ...configuration import checked, number, vector
from ...errors import DesignError

Vector3 = tuple[float, float, float]

# A direction shorter than this is none.
SHORTEST_DIRECTION = 1e-9


class Region(ABC):
    """A part of space, given by face functions that are negative inside."""

    @abstractmethod
    def faces(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the signed distances [m] from the faces (f, N), negative inside, and their gradients (f, 3, N).

        Args:
            place: Points in the base frame (3, N) [m].
        """


@final
@dataclass(frozen=True)
class HalfSpace(Region):
    """The side of a plane that its normal points to: ``normal . p >= offset`` with the normal made a unit vector.

    Attributes:
        normal: Direction into the half-space; any length but zero.
        offset: Distance of the plane from the origin along the normal [m].
    """

    normal: Vector3
    offset: float = 0.0
    _unit: Vector3 = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked(self.offset, number(), "offset of a half-space", DesignError)
        object.__setattr__(self, "_unit", unit_vector(self.normal, "normal of a half-space"))

    @property
    def unit(self) -> Vector3:
        """The normal with length one."""
        return self._unit

    def faces(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the one face: ``offset - normal . p``."""
        normal = np.array(self._unit)
        gradient = np.broadcast_to(-normal[None, :, None], (1, *place.shape))
        return (self.offset - normal @ place)[None], gradient


@final
@dataclass(frozen=True)
class Box(Region):
    """A box along the axes of the base frame; corners may be infinite, so it may be a slab or a quadrant.

    Attributes:
        lower: Smallest x, y, z [m].
        upper: Largest x, y, z [m].
    """

    lower: Vector3
    upper: Vector3

    def __post_init__(self) -> None:
        for axis, low, high in zip("xyz", self.lower, self.upper, strict=True):
            if not low < high:
                raise DesignError(f"box: lower {axis} is {low:g}, upper {axis} is {high:g}; allowed is lower < upper")
        if not np.isfinite([*self.lower, *self.upper]).any():
            raise DesignError("box: every side is infinite; give at least one finite number")

    def faces(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two faces for each axis, those at infinity left out."""
        pairs = [(row, 1.0, high) for row, high in enumerate(self.upper)]
        pairs += [(row, -1.0, -low) for row, low in enumerate(self.lower)]
        finite = [pair for pair in pairs if np.isfinite(pair[2])]
        values = np.stack([sign * place[row] - bound for row, sign, bound in finite])
        gradient = np.zeros((len(finite), *place.shape))
        for face, (row, sign, _) in enumerate(finite):
            gradient[face, row] = sign
        return values, gradient


@final
@dataclass(frozen=True)
class Cylinder(Region):
    """A cylinder about any axis; without ends, with one, or with both.

    Attributes:
        radius: [m].
        centre: A point on the axis, from which ``lower`` and ``upper`` count [m].
        axis: Direction of the axis; any length but zero.
        lower: Where it begins along the axis [m].
        upper: Where it ends along the axis [m].
    """

    radius: float
    centre: Vector3 = (0.0, 0.0, 0.0)
    axis: Vector3 = (0.0, 0.0, 1.0)
    lower: float = -np.inf
    upper: float = np.inf
    _unit: Vector3 = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked(self.radius, number(above=0), "radius of a cylinder", DesignError)
        checked(self.centre, vector, "centre of a cylinder", DesignError)
        if not self.lower < self.upper:
            raise DesignError(f"cylinder: lower is {self.lower:g}, upper is {self.upper:g}; allowed is lower < upper")
        object.__setattr__(self, "_unit", unit_vector(self.axis, "axis of a cylinder"))

    def faces(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mantle and the finite ends."""
        axis = np.array(self._unit)
        offset = place - np.array(self.centre)[:, None]
        along = axis @ offset
        across = offset - axis[:, None] * along
        distance, outward = _length_and_direction(across, perpendicular(axis))
        values, gradients = [distance - self.radius], [outward]
        for sign, bound in ((1.0, self.upper), (-1.0, -self.lower)):
            if np.isfinite(bound):
                values.append(sign * along - bound)
                gradients.append(np.broadcast_to(sign * axis[:, None], place.shape))
        return np.stack(values), np.stack(gradients)


@final
@dataclass(frozen=True)
class Sphere(Region):
    """A ball.

    Attributes:
        radius: [m].
        centre: [m].
    """

    radius: float
    centre: Vector3 = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        checked(self.radius, number(above=0), "radius of a sphere", DesignError)
        checked(self.centre, vector, "centre of a sphere", DesignError)

    def faces(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the one face: ``|p - centre| - radius``."""
        distance, outward = _length_and_direction(place - np.array(self.centre)[:, None], np.array([0.0, 0.0, 1.0]))
        return (distance - self.radius)[None], outward[None]


def unit_vector(direction: Vector3, what: str) -> Vector3:
    """Return the direction with length one, or refuse one that has no length."""
    length = float(np.linalg.norm(direction))
    if not (np.isfinite(length) and length > SHORTEST_DIRECTION):
        raise DesignError(f"{what} is {list(direction)}; it has no direction, give one such as [0, 0, 1]")
    x, y, z = (float(value) / length for value in direction)
    return x, y, z


def perpendicular(axis: np.ndarray) -> np.ndarray:
    """Return a unit vector at right angles to a unit vector (3,), or to each of several (3, N)."""
    weakest = np.abs(axis).argmin(axis=0)
    away = (np.arange(3)[(slice(None),) + (None,) * (axis.ndim - 1)] == weakest).astype(float)
    normal = np.cross(axis, away, axis=0)
    return normal / np.linalg.norm(normal, axis=0)


def _length_and_direction(vectors: np.ndarray, otherwise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lengths (N,) and unit vectors (3, N); where a vector vanishes, ``otherwise`` (3,) is as good as any."""
    length = np.linalg.norm(vectors, axis=0)
    safe = np.where(length > 0, length, 1.0)
    return length, np.where(length > 0, vectors / safe, otherwise[:, None])
