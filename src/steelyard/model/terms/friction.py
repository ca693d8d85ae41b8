"""Friction on either side of the gears: viscous, Coulomb, offset, asymmetric Coulomb.

The side is part of the name: ``m`` acts on the motor torque only, ``l`` (link side) on a joint torque sensor too.
"""

from __future__ import annotations

import casadi as ca

from ...effects import Effect
from ...robot import Robot
from .term import MotionSymbols, Term, diagonal_term, joint_parameter


def viscous(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Fv qd``."""
    units = "N m s/rad", "N s/m"
    return diagonal_term(
        [joint_parameter(body, effect.symbols[0], effect, *units, "viscous") for body in robot.actuated], motion.qd
    )


def coulomb(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Fc sign(qd)``."""
    parameters = [joint_parameter(body, effect.symbols[0], effect, "N m", "N", "dry") for body in robot.actuated]
    return diagonal_term(parameters, motion.sign(motion.qd))


def offset(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return a constant torque ``off``: sensor bias, current offset, friction asymmetry."""
    parameters = [joint_parameter(body, effect.symbols[0], effect, "N m", "N") for body in robot.actuated]
    return diagonal_term(parameters, ca.SX.ones(motion.qd.shape[0]))


def asymmetric(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Fcp`` for motion forward and ``-Fcn`` for motion backward."""
    parameters = tuple(
        joint_parameter(body, symbol, effect, "N m", "N", "dry") for symbol in effect.symbols for body in robot.actuated
    )
    return Term(parameters, ca.horzcat(ca.diag(motion.forward(motion.qd)), -ca.diag(motion.forward(-motion.qd))))
