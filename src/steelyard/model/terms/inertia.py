"""Inertias: ten parameters of each moving link about its frame's origin, and the drive inertia Ia on the joint side."""

from __future__ import annotations

from ...effects import Effect
from ...physics import inertial_regressor
from ...robot import Robot
from .term import INERTIAL_UNITS, MotionSymbols, Parameter, Term, diagonal_term, joint_parameter


def link_inertia(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return Newton-Euler's columns: ``M qdd + C qd + G = D_st chi``."""
    parameters = tuple(
        Parameter(
            f"{symbol}{body.number}", symbol, INERTIAL_UNITS[symbol], body.number, body.joint.name, body.link,
            effect.name, effect.side,
        )
        for body in robot.bodies
        for symbol in effect.symbols
    )  # fmt: skip
    return Term(parameters, inertial_regressor(robot, motion.q, motion.qd, motion.qdd))


def drive_inertia(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Ia qdd`` for every actuated joint (P5 eq. 1)."""
    parameters = [joint_parameter(body, "Ia", effect, "kg m^2", "kg") for body in robot.actuated]
    return diagonal_term(parameters, motion.qdd)
