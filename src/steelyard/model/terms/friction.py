"""Friction on either side of the gears: viscous, Coulomb, offset, asymmetric Coulomb.

The side is part of the name: ``m`` acts on the motor torque only, ``l`` (link side) on a joint torque sensor too.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from ...physics import direction, forward_part
from ...robot import Robot
from .term import MotionSymbols, Side, Term, TermBuilder, diagonal_term, joint_parameter

_LETTER: dict[Side, str] = {"motor": "m", "link": "l"}


def _per_joint(
    symbol: str, side: Side, entries: Callable[[MotionSymbols], ca.SX], rotary_unit: str, linear_unit: str
) -> TermBuilder:
    """Return the builder of a torque with one parameter a joint, times these entries (na,)."""
    effect = f"{symbol}{_LETTER[side]}"

    def build(robot: Robot, motion: MotionSymbols) -> Term:
        parameters = [joint_parameter(body, effect, effect, side, rotary_unit, linear_unit) for body in robot.actuated]
        return diagonal_term(parameters, entries(motion))

    return build


def viscous(side: Side) -> TermBuilder:
    """Return the builder of ``Fv qd``."""
    return _per_joint("Fv", side, lambda motion: motion.qd, "N m s/rad", "N s/m")


def coulomb(side: Side) -> TermBuilder:
    """Return the builder of ``Fc sign(qd)``."""
    return _per_joint("Fc", side, lambda motion: direction(motion.qd, motion.sign_width), "N m", "N")


def offset(side: Side) -> TermBuilder:
    """Return the builder of a constant torque ``off``: sensor bias, current offset, friction asymmetry."""
    return _per_joint("off", side, lambda motion: ca.SX.ones(motion.qd.shape[0]), "N m", "N")


def asymmetric_coulomb(side: Side) -> TermBuilder:
    """Return the builder of ``Fcp`` for motion forward and ``-Fcn`` for motion backward."""
    effect = f"Fca{_LETTER[side]}"
    symbols = (f"Fcp{_LETTER[side]}", f"Fcn{_LETTER[side]}")

    def build(robot: Robot, motion: MotionSymbols) -> Term:
        parameters = tuple(
            joint_parameter(body, symbol, effect, side, "N m", "N") for symbol in symbols for body in robot.actuated
        )
        forward = forward_part(motion.qd, motion.sign_width)
        backward = forward_part(-motion.qd, motion.sign_width)
        return Term(parameters, ca.horzcat(ca.diag(forward), -ca.diag(backward)))

    return build
