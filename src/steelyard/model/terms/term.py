"""What a model term is: parameters, the columns they multiply, and who feels them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from ...robot import Robot
from ..parameter import Parameter


@dataclass(frozen=True)
class MotionSymbols:
    """Symbols of the motion (na,) each, and the width of the smooth sign (0 for the exact one)."""

    q: ca.SX
    qd: ca.SX
    qdd: ca.SX
    sign_width: float = 0.0


@dataclass(frozen=True)
class Term:
    """An effect: torque on the actuated joints = ``columns @ parameters``.

    Attributes:
        parameters: The unknowns, k of them.
        columns: Torque on each actuated joint per unit of each unknown (na, k).
    """

    parameters: tuple[Parameter, ...]
    columns: ca.SX


TermBuilder = Callable[[Robot, MotionSymbols], Term]


def diagonal_term(parameters: list[Parameter], entries: ca.SX) -> Term:
    """Return a term in which each actuated joint feels one parameter of its own."""
    return Term(tuple(parameters), ca.diag(ca.densify(entries)))
