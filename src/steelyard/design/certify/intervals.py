"""What each CasADi operation does to intervals in midpoint-radius form: one table, one function an operation.

An interval is a middle c and a radius r >= 0: all x with ``|x - c| <= r``. Wherever the operation allows it, the middle
of the result is the operation applied to the middles. The middle of a whole graph is then its value at the middle of
the inputs, and the radius says how far the function can be from there.

Rounding: errors of sums, products and roots are those of exact operations on operands that are off by a relative
1e-16, so it is enough to widen what enters a graph (:mod:`enclosure`) and what leaves the functions below that are no
such operation. These are widened here, by :data:`ROUNDING` of their size.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

Number = np.ndarray | float
Interval = tuple[Number, Number]
"""Middle and radius, each an array (K,), or a number for what is the same in all columns."""

Rule = Callable[..., Interval]

ROUNDING = 1e-13
"""Relative width given to entering values: about 900 roundings, one after the other."""


def widened(middle: Number, radius: Number) -> Interval:
    """Return the interval with its radius grown by the rounding of its middle."""
    return middle, radius + ROUNDING * np.abs(middle)


def _add(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def _sub(a: Interval, b: Interval) -> Interval:
    return a[0] - b[0], a[1] + b[1]


def _mul(a: Interval, b: Interval) -> Interval:
    return a[0] * b[0], np.abs(a[0]) * b[1] + a[1] * (np.abs(b[0]) + b[1])


def _neg(a: Interval) -> Interval:
    return -a[0], a[1]


def _twice(a: Interval) -> Interval:
    return 2 * a[0], 2 * a[1]


def _square(a: Interval) -> Interval:
    return a[0] * a[0], a[1] * (2 * np.abs(a[0]) + a[1])


def _inverse(a: Interval) -> Interval:
    size = np.abs(a[0])
    nearest = size - a[1]
    away = nearest > 0
    middle = np.where(away, 1 / np.where(away, a[0], 1.0), 0.0)
    # An interval that holds zero has the whole line as its inverse.
    return middle, np.where(away, a[1] / np.where(away, size * nearest, 1.0), np.inf)


def _divide(a: Interval, b: Interval) -> Interval:
    return _mul(a, _inverse(b))


def _square_root(a: Interval) -> Interval:
    """``|sqrt(x) - sqrt(c)| = |x - c| / (sqrt(x) + sqrt(c))``, largest at the lower end; only x >= 0 is looked at."""
    middle = np.sqrt(np.maximum(a[0], 0.0))
    below = middle + np.sqrt(np.maximum(a[0] - a[1], 0.0))
    safe = np.where(below > 0, below, 1.0)
    return middle, np.where(below > 0, a[1] / safe, np.sqrt(np.maximum(a[0] + a[1], 0.0)))


def _magnitude(a: Interval) -> Interval:
    return np.abs(a[0]), a[1]


def _smaller(a: Interval, b: Interval) -> Interval:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def _larger(a: Interval, b: Interval) -> Interval:
    return np.maximum(a[0], b[0]), np.maximum(a[1], b[1])


def sine_and_cosine(a: Interval) -> tuple[Interval, Interval]:
    """Return both of the same angle.

    ``sin(c + d) - sin(c) = cos(c) sin(d) - sin(c) (1 - cos(d))`` with ``|sin d| <= min(d, 1)`` and
    ``1 - cos d <= min(d^2 / 2, 2)``; likewise the cosine.
    """
    sine, cosine = np.sin(a[0]), np.cos(a[0])
    first, second = np.minimum(a[1], 1.0), np.minimum(0.5 * a[1] * a[1], 2.0)
    sine_size, cosine_size = np.abs(sine), np.abs(cosine)
    sine_radius = cosine_size * first + sine_size * second
    cosine_radius = sine_size * first + cosine_size * second
    return widened(sine, sine_radius), widened(cosine, cosine_radius)


def _tangent(a: Interval) -> Interval:
    return _divide(*sine_and_cosine(a))


def _hyperbolic_tangent(a: Interval) -> Interval:
    """The slope is largest at the point of the interval nearest zero."""
    nearest = np.maximum(np.abs(a[0]) - a[1], 0.0)
    return widened(np.tanh(a[0]), np.minimum(a[1] * (1 - np.tanh(nearest) ** 2), 2.0))


def _arc_tangent(a: Interval) -> Interval:
    nearest = np.maximum(np.abs(a[0]) - a[1], 0.0)
    return widened(np.arctan(a[0]), np.minimum(a[1] / (1 + nearest**2), np.pi))


def _exponential(a: Interval) -> Interval:
    middle = np.exp(a[0])
    return widened(middle, middle * np.expm1(a[1]))


def _sign(a: Interval) -> Interval:
    """The whole of [-1, 1] where the interval holds zero."""
    decided = np.abs(a[0]) > a[1]
    return np.where(decided, np.sign(a[0]), 0.0), np.where(decided, 0.0, 1.0)


def _truth(surely: np.ndarray, possibly: np.ndarray) -> Interval:
    middle = np.where(surely, 1.0, np.where(possibly, 0.5, 0.0))
    return middle, np.where(possibly & ~surely, 0.5, 0.0)


def _less(a: Interval, b: Interval) -> Interval:
    gap, slack = np.asarray(b[0] - a[0]), a[1] + b[1]
    return _truth(gap > slack, gap >= -slack)


def _not(a: Interval) -> Interval:
    size = np.abs(np.asarray(a[0]))
    return _truth((size == 0) & (a[1] == 0), size <= a[1])


def _if_else_zero(condition: Interval, a: Interval) -> Interval:
    size = np.abs(np.asarray(condition[0]))
    surely, never = size > condition[1], (size == 0) & (condition[1] == 0)
    open_radius = np.abs(a[0]) + a[1]
    return np.where(surely, a[0], 0.0), np.where(surely, a[1], np.where(never, 0.0, open_radius))


RULES: dict[int, Rule] = {
    ca.OP_ADD: _add,
    ca.OP_SUB: _sub,
    ca.OP_MUL: _mul,
    ca.OP_NEG: _neg,
    ca.OP_TWICE: _twice,
    ca.OP_SQ: _square,
    ca.OP_INV: _inverse,
    ca.OP_DIV: _divide,
    ca.OP_SQRT: _square_root,
    ca.OP_FABS: _magnitude,
    ca.OP_FMIN: _smaller,
    ca.OP_FMAX: _larger,
    ca.OP_TAN: _tangent,
    ca.OP_TANH: _hyperbolic_tangent,
    ca.OP_ATAN: _arc_tangent,
    ca.OP_EXP: _exponential,
    ca.OP_SIGN: _sign,
    ca.OP_LT: _less,
    ca.OP_LE: _less,
    ca.OP_NOT: _not,
    ca.OP_IF_ELSE_ZERO: _if_else_zero,
}
