"""The same recursion written number by number, zeros of the geometry left out: what XLA fuses best."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import numpy as np

from benchmarks.peers.information import Chain

Array = Any
Vector = tuple[Any, Any, Any]

UNITS: tuple[Vector, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def _times(a: Any, b: Any) -> Any:
    """Return a product; a plain number 0, 1 or -1 costs nothing."""
    for number, other in ((a, b), (b, a)):
        if isinstance(number, float) and number in (0.0, 1.0, -1.0):
            return 0.0 if number == 0.0 else (other if number == 1.0 else -other)
    return a * b


def _plus(a: Any, b: Any) -> Any:
    for number, other in ((a, b), (b, a)):
        if isinstance(number, float) and number == 0.0:
            return other
    return a + b


def _sum(*terms: Any) -> Any:
    total = 0.0
    for term in terms:
        total = _plus(total, term)
    return total


def _dot(a: Vector, b: Vector) -> Any:
    return _sum(*(_times(x, y) for x, y in zip(a, b, strict=True)))


def _add(*vectors: Vector) -> Vector:
    x, y, z = (_sum(*parts) for parts in zip(*vectors, strict=True))
    return x, y, z


def _scaled(a: Vector, factor: Any) -> Vector:
    return _times(a[0], factor), _times(a[1], factor), _times(a[2], factor)


def _cross(a: Vector, b: Vector) -> Vector:
    def minor(i: int, j: int) -> Any:
        return _plus(_times(a[i], b[j]), _times(-1.0, _times(a[j], b[i])))

    return minor(1, 2), minor(2, 0), minor(0, 1)


def _numbers(values: np.ndarray) -> Vector:
    rounded = [float(value) for value in np.where(np.abs(values) < 1e-15, 0.0, values)]
    return rounded[0], rounded[1], rounded[2]


def _rotated_back(rotation: list[Vector], v: Vector) -> Vector:
    """Return the transpose of a matrix, given by its columns, times a vector."""
    return _dot(rotation[0], v), _dot(rotation[1], v), _dot(rotation[2], v)


def _turn_columns(axis: Vector, q: Any) -> list[Vector]:
    """Return the columns of the rotation about a unit axis."""
    sine, cosine = jnp.sin(q), jnp.cos(q)
    columns = []
    for k in range(3):
        unit = UNITS[k]
        along = _scaled(axis, axis[k])
        across = _add(unit, _scaled(along, -1.0))
        columns.append(_add(along, _scaled(across, cosine), _scaled(_cross(axis, unit), sine)))
    return columns


def _columns_of_link(omega: Vector, alpha: Vector) -> tuple[list[Vector], list[Vector]]:
    """Return the moments per unit of the six inertias, and the forces per unit of the three first moments."""
    moments = []
    for i in range(3):
        for j in range(i, 3):
            moments.append(_add(_with(alpha, i, j), _cross(omega, _with(omega, i, j))))
    forces = [_add(_cross(alpha, unit), _cross(omega, _cross(omega, unit))) for unit in UNITS]
    return moments, forces


def _with(v: Vector, i: int, j: int) -> Vector:
    """Return the unit symmetric matrix of place (i, j) times a vector."""
    result = [0.0, 0.0, 0.0]
    result[i] = v[j]
    result[j] = v[i]
    return result[0], result[1], result[2]


def by_numbers(chain: Chain, q: Array, qd: Array, qdd: Array) -> list[list[Array]]:
    """Return the inertial columns as lists of numbers: entry [e][10 b + k]; 0.0 where structurally zero."""
    size = len(chain.axes)
    rows: list[list[Array]] = [[0.0] * (10 * size) for _ in range(size)]
    omega, alpha, linear = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), _numbers(-chain.gravity)
    jacobian: list[tuple[Vector, Vector]] = []
    for b in range(size):
        axis, offset = _numbers(chain.axes[b]), _numbers(chain.translations[b])
        placed = [_numbers(row) for row in chain.rotations[b]]
        turned = [
            (_dot(placed[0], column), _dot(placed[1], column), _dot(placed[2], column))
            for column in _turn_columns(axis, q[b])
        ]
        linear = _add(linear, _cross(alpha, offset), _cross(omega, _cross(omega, offset)))
        linear, before = _rotated_back(turned, linear), _rotated_back(turned, omega)
        alpha = _add(_rotated_back(turned, alpha), _scaled(_cross(before, axis), qd[b]), _scaled(axis, qdd[b]))
        omega = _add(before, _scaled(axis, qd[b]))
        jacobian = [
            (_rotated_back(turned, turning), _rotated_back(turned, _add(sliding, _cross(turning, offset))))
            for turning, sliding in jacobian
        ]
        jacobian.append((axis, (0.0, 0.0, 0.0)))
        moments, forces = _columns_of_link(omega, alpha)
        for e, (turning, sliding) in enumerate(jacobian):
            lever = _cross(linear, turning)
            on_moment = [_plus(_dot(sliding, forces[k]), lever[k]) for k in range(3)]
            on_inertia = [_dot(turning, moment) for moment in moments]
            rows[e][10 * b : 10 * b + 10] = [*on_inertia, *on_moment, _dot(sliding, linear)]
    return rows
