"""Friction on either side of the gears: viscous, Coulomb, offset, asymmetric Coulomb.

The side is part of the name: ``m`` acts on the motor torque only, ``l`` (link side) on a joint torque sensor too.
"""

from __future__ import annotations

import casadi as ca

from ...physics import direction, forward_part
from ...robot import Robot
from .term import MotionSymbols, Side, Term, TermBuilder, diagonal_term, joint_parameter

_LETTER: dict[Side, str] = {"motor": "m", "link": "l"}


def viscous(side: Side) -> TermBuilder:
    """Return the builder of ``Fv qd``."""
    symbol = f"Fv{_LETTER[side]}"

    def build(robot: Robot, motion: MotionSymbols) -> Term:
        parameters = [joint_parameter(body, symbol, symbol, side, "N m s/rad", "N s/m") for body in robot.actuated]
        return diagonal_term(parameters, motion.qd)

    return build


def coulomb(side: Side) -> TermBuilder:
    """Return the builder of ``Fc sign(qd)``."""
    symbol = f"Fc{_LETTER[side]}"

    def build(robot: Robot, motion: MotionSymbols) -> Term:
        parameters = [joint_parameter(body, symbol, symbol, side, "N m", "N") for body in robot.actuated]
        return diagonal_term(parameters, direction(motion.qd, motion.sign_width))

    return build


def offset(side: Side) -> TermBuilder:
    """Return the builder of a constant torque ``off``: sensor bias, current offset, friction asymmetry."""
    symbol = f"off{_LETTER[side]}"

    def build(robot: Robot, motion: MotionSymbols) -> Term:
        parameters = [joint_parameter(body, symbol, symbol, side, "N m", "N") for body in robot.actuated]
        return diagonal_term(parameters, ca.SX.ones(motion.qd.shape[0]))

    return build


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
