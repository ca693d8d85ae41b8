"""The arm's geometry as CasADi expressions: exact numbers, or symbols to be calibrated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..robot import Motion, Placement, Robot, transform_from_placement


@dataclass(frozen=True)
class Transform:
    """Rotation (3, 3) and translation (3,) that take child coordinates to the parent's."""

    rotation: ca.SX
    translation: ca.SX

    def then(self, inner: Transform) -> Transform:
        """Return the composition: first ``inner`` is applied to a vector, then this transform."""
        return Transform(
            ca.mtimes(self.rotation, inner.rotation),
            self.translation + ca.mtimes(self.rotation, inner.translation),
        )


IDENTITY = Transform(ca.SX(ca.DM.eye(3)), ca.SX(3, 1))


@dataclass(frozen=True)
class Geometry:
    """Placements of every body and frame, as numbers or as symbols.

    Attributes:
        bodies: Transform of each body's frame in its parent's at q = 0, in body order.
        frames: Transform of each named frame in the frame of the body that carries it.
        symbols: The geometric unknowns (m,); empty when the geometry is exact.
        names: A name for each symbol: ``alpha2``, ``r3``, ``x[flange]``.
        nominal: The value each symbol has in the robot's file (m,).
    """

    bodies: tuple[Transform, ...]
    frames: dict[str, Transform]
    symbols: ca.SX
    names: tuple[str, ...]
    nominal: tuple[float, ...]


def rotation_about(axis: tuple[float, float, float], sine: ca.SX, cosine: ca.SX) -> ca.SX:
    """Return the 3x3 rotation about a unit axis; structural zeros of a principal axis are dropped."""
    u = np.array(axis)
    outer = np.outer(u, u)
    x, y, z = axis
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return ca.sparsify(ca.SX(np.eye(3) - outer) * cosine + ca.SX(skew) * sine + ca.SX(outer))


def _fold(placement: Placement, symbol_of: Callable[[Motion], ca.SX]) -> Transform:
    """Multiply the elementary motions of a placement, each with a symbol as its value."""
    result = IDENTITY
    for motion in placement:
        value = symbol_of(motion)
        if motion.kind == "translate":
            step = Transform(IDENTITY.rotation, ca.sparsify(ca.SX(ca.DM(motion.axis)) * value))
        else:
            step = Transform(rotation_about(motion.axis, ca.sin(value), ca.cos(value)), IDENTITY.translation)
        result = result.then(step)
    return Transform(ca.sparsify(result.rotation), ca.sparsify(result.translation))


def _numbers(placement: Placement) -> Transform:
    rotation, translation = transform_from_placement(placement)
    return Transform(ca.SX(ca.sparsify(ca.DM(rotation))), ca.SX(ca.sparsify(ca.DM(translation))))


def exact_geometry(robot: Robot) -> Geometry:
    """Return the geometry of the robot's file as numbers: right angles give exact zeros and ones."""
    return Geometry(
        bodies=tuple(_numbers(body.placement) for body in robot.bodies),
        frames={name: _numbers(frame.placement) for name, frame in robot.frames.items()},
        symbols=ca.SX(0, 1),
        names=(),
        nominal=(),
    )


def symbolic_geometry(robot: Robot) -> Geometry:
    """Return the geometry with every elementary motion of every placement as a symbol of its own."""
    names: list[str] = []
    nominal: list[float] = []
    symbols: list[ca.SX] = []

    def symbol_namer(owner: str) -> Callable[[Motion], ca.SX]:
        def symbol_for(motion: Motion) -> ca.SX:
            name = f"{motion.name}{owner}"
            repeats = sum(1 for other in names if other.split("'")[0] == name)
            names.append(name + "'" * repeats)
            nominal.append(motion.value)
            symbols.append(ca.SX.sym(names[-1]))
            return symbols[-1]

        return symbol_for

    bodies = tuple(_fold(body.placement, symbol_namer(str(body.number))) for body in robot.bodies)
    frames = {name: _fold(frame.placement, symbol_namer(f"[{name}]")) for name, frame in robot.frames.items()}
    return Geometry(bodies, frames, ca.vertcat(*symbols), tuple(names), tuple(nominal))
