"""Friction on either side of the gears: viscous, curved, Coulomb, by direction, by load, Stribeck's, Dahl's; offsets.

The side is part of the name: ``m`` acts on the motor torque only, ``l`` (link side) on a joint torque sensor too.
"""

from __future__ import annotations

import casadi as ca

from ...effects import Effect
from ...errors import ModelError
from ...robot import Robot
from .term import MotionSymbols, Parameter, Term, diagonal_term, joint_parameter, link_torques

_NEVER_ZERO = 1e-300
"""Added to a speed before its logarithm or root, whose derivative is then finite at rest."""


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


def curved(shape: str, velocity: ca.SX, motion: MotionSymbols, element: int = 0) -> ca.SX:
    """Return friction that is not a straight line in a velocity, an expression of ``qd``, per unit of its coefficient.

    Args:
        shape: ``quadratic`` ``v |v|``, ``square_root`` or ``third_root`` of the speed, or ``stribeck``.
        velocity: The velocity v.
        motion: Symbols of the motion.
        element: Which of the Stribeck velocities, from 0.
    """
    if shape == "quadratic":
        return velocity * ca.fabs(velocity)
    sign = motion.sign(velocity)
    if shape == "square_root":
        return ca.sqrt(ca.fabs(velocity) + _NEVER_ZERO) * sign
    if shape == "third_root":
        return ca.exp(ca.log(ca.fabs(velocity) + _NEVER_ZERO) / 3) * sign
    return ca.exp(-((velocity / motion.friction.stribeck[element]) ** 2)) * sign


CURVED_UNITS = {
    "quadratic": ("N m s^2/rad^2", "N s^2/m^2"),
    "square_root": ("N m s^(1/2)/rad^(1/2)", "N s^(1/2)/m^(1/2)"),
    "third_root": ("N m s^(1/3)/rad^(1/3)", "N s^(1/3)/m^(1/3)"),
    "stribeck": ("N m", "N"),
}
"""Units of the coefficients, for revolute and for prismatic joints."""


def quadratic(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Fvv qd |qd|``: viscous friction that bends with speed, upwards or, below zero, downwards."""
    return _curved_term(effect, robot, motion)


def square_root(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Fvr sqrt(|qd|) sign(qd)``: friction that rises fast at low speed, as that of grease does."""
    return _curved_term(effect, robot, motion)


def third_root(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Fvt |qd|^(1/3) sign(qd)``: friction that rises faster still at low speed."""
    return _curved_term(effect, robot, motion)


def stribeck(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Fs exp(-(qd / v_s)^2) sign(qd)``: what friction is higher by at low speed."""
    return _curved_term(effect, robot, motion)


def _curved_term(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    element = effect.element if effect.law == "stribeck" else 0
    entries = curved(effect.law, motion.qd, motion, element)
    return diagonal_term(_parameters(effect, robot, *CURVED_UNITS[effect.law]), entries)


def load(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Fg |tau| sign(qd)``, tau being what inertias and weight need: the load of the gear."""
    entries = ca.fabs(link_torques(effect, robot, motion)) * motion.sign(motion.qd)
    return diagonal_term(_parameters(effect, robot, "1", "1"), entries)


def dahl(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Fd z`` with ``dz/dq = (sign(qd) - z) / s``: dry friction that turns over a length s (Dahl).

    Raises:
        ModelError: If the state of the elements is not at hand.
    """
    states = dahl_states(effect, motion)[: motion.qd.shape[0]]
    return diagonal_term(_parameters(effect, robot, "N m", "N"), states)


def dahl_states(effect: Effect, motion: MotionSymbols) -> ca.SX:
    """Return the states of an effect's Dahl element: those of the joints (na,), then those of the coupled motors.

    Raises:
        ModelError: If the state of the elements is not at hand.
    """
    if motion.memory is None:
        raise ModelError(
            f"effect '{effect.name}' is friction with a state, which is not known here; leave it out, or choose a "
            "method of least squares"
        )
    size = motion.memory.shape[0] // len(motion.friction.dahl)
    return motion.memory[effect.element * size : (effect.element + 1) * size]


def _parameters(effect: Effect, robot: Robot, rotary_unit: str, linear_unit: str) -> list[Parameter]:
    """Return one parameter a joint, which may have either sign."""
    return [
        joint_parameter(body, effect.symbols[0], effect, rotary_unit, linear_unit, "part") for body in robot.actuated
    ]
