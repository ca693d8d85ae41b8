"""Torques of balancers as lines of a NumPy module.

A law is applied to text instead of numbers: every operation writes itself down.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..robot import Robot
from ..robot.balancers import TorqueTable, spline_of

TABLE_FUNCTION = '''

def _table(q, knots, torques, cubics, turn):
    """Return a cubic spline, held beyond its ends or, if turn is not 0, repeated after it."""
    knots = np.array(knots)
    if turn:
        q = q - turn * np.floor((q - knots[0]) / turn)
    q = np.clip(q, knots[0], knots[-1])
    k = np.clip(np.searchsorted(knots, q, side="right") - 1, 0, len(cubics) - 1)
    s, (c3, c2, c1) = q - knots[k], np.moveaxis(np.array(cubics)[k], -1, 0)
    return np.array(torques)[k] + s * (c1 + s * (c2 + s * c3))

'''
"""Function that these lines call for tables."""


def balancer_lines(robot: Robot) -> list[str]:
    """Return lines that add the torques of an arm's balancers to ``tau`` at positions ``q``, joints last."""
    lines = []
    row_of = {body.joint.name: row for row, body in enumerate(robot.actuated)}
    for one in robot.balancers:
        row = row_of[one.joint]
        position = f"q[..., {row}]"
        if isinstance(one.law, TorqueTable):
            knots, cubics = spline_of(one.law)
            turn = 2 * pi if one.law.periodic else 0
            torque = f"_table({position}, {knots!r}, {one.law.torques!r}, {cubics!r}, {turn!r})"
        else:
            torque = str(one.torque(_Source(position), _SOURCES))
        lines.append(f'tau[..., {row}] += PARAMETERS["Sb{robot.actuated[row].number}"] * {torque}')
    return lines


class _Source:
    """Text of an expression, put together by the operations that are applied to it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __neg__(self) -> _Source:
        return _Source(f"(-{self})")

    def __pos__(self) -> _Source:
        return self

    def __add__(self, other: Any) -> _Source:
        return _Source(f"({self} + {_text(other)})")

    def __radd__(self, other: Any) -> _Source:
        return _Source(f"({_text(other)} + {self})")

    def __sub__(self, other: Any) -> _Source:
        return _Source(f"({self} - {_text(other)})")

    def __rsub__(self, other: Any) -> _Source:
        return _Source(f"({_text(other)} - {self})")

    def __mul__(self, other: Any) -> _Source:
        return _Source(f"({self} * {_text(other)})")

    def __rmul__(self, other: Any) -> _Source:
        return _Source(f"({_text(other)} * {self})")

    def __truediv__(self, other: Any) -> _Source:
        return _Source(f"({self} / {_text(other)})")

    def __rtruediv__(self, other: Any) -> _Source:
        return _Source(f"({_text(other)} / {self})")


def _text(value: Any) -> str:
    return str(value) if isinstance(value, _Source) else repr(float(value))


def _function(name: str) -> Callable[[Any], Any]:
    """Return a function of NumPy, for numbers and for texts."""
    return lambda value: _Source(f"np.{name}({value})") if isinstance(value, _Source) else getattr(np, name)(value)


_SOURCES = SimpleNamespace(**{name: _function(name) for name in ("sin", "cos", "sqrt", "fabs", "exp", "log")})
