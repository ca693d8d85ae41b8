"""Drive inertia Ia: rotor and gears, seen on the joint side."""

from __future__ import annotations

from ...robot import Robot
from ..parameter import joint_parameter
from .term import MotionSymbols, Term, diagonal_term


def drive_inertia(robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Ia qdd`` for every actuated joint (P5 eq. 1)."""
    parameters = [joint_parameter(body, "Ia", "Ia", "motor", "kg m^2", "kg") for body in robot.actuated]
    return diagonal_term(parameters, motion.qdd)
