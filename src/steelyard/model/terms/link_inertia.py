"""Link inertias: ten parameters a moving link, about its frame's origin."""

from __future__ import annotations

from ...physics import inertial_regressor
from ...robot import INERTIAL_NAMES, Robot
from ..parameter import INERTIAL_UNITS, Parameter
from .term import MotionSymbols, Term


def link_inertia(robot: Robot, motion: MotionSymbols) -> Term:
    """Return Newton-Euler's columns: ``M qdd + C qd + G = D_st chi``."""
    parameters = tuple(
        Parameter(
            f"{symbol}{body.number}", symbol, INERTIAL_UNITS[symbol], body.number, body.joint.name, body.link,
            "inertia", "link",
        )
        for body in robot.bodies
        for symbol in INERTIAL_NAMES
    )  # fmt: skip
    return Term(parameters, inertial_regressor(robot, motion.q, motion.qd, motion.qdd))
