"""Friction that changes with temperature: in proportion to the difference to a reference temperature."""

from __future__ import annotations

import casadi as ca

from ...effects import Effect
from ...errors import ModelError
from ...robot import Robot
from .term import MotionSymbols, Term, diagonal_term, joint_parameter


def coulomb(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``FcT (T - T_0) sign(qd)``."""
    return _thermal(effect, robot, motion, motion.sign(motion.qd), ("N m/K", "N/K"))


def viscous(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``FvT (T - T_0) qd``."""
    return _thermal(effect, robot, motion, motion.qd, ("N m s/(rad K)", "N s/(m K)"))


def _thermal(effect: Effect, robot: Robot, motion: MotionSymbols, shape: ca.SX, units: tuple[str, str]) -> Term:
    if motion.temperature is None:
        raise ModelError(
            f"effect '{effect.name}' depends on the temperature of the joints, which is not known here; leave it out, "
            "or choose a method of least squares"
        )
    parameters = [joint_parameter(body, effect.symbols[0], effect, *units, "part") for body in robot.actuated]
    return diagonal_term(parameters, motion.temperature * shape)
