"""Springs that carry part of the weight: P4's gravity compensation."""

from __future__ import annotations

import casadi as ca

from ...effects import Effect
from ...errors import ModelError
from ...robot import Robot
from .term import MotionSymbols, Term, joint_parameter


def spring(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Ss sin(q) + Sc cos(q)`` for every joint that the robot says has a spring."""
    if not robot.springs:
        raise ModelError(
            f"effect 'spring': robot '{robot.name}' names no joint with a spring; "
            "list the joints under 'springs' in its file, or leave the effect out"
        )
    parameters, columns = [], []
    for row, body in enumerate(robot.actuated):
        if body.joint.name not in robot.springs:
            continue
        for symbol, value in (("Ss", ca.sin(motion.q[row])), ("Sc", ca.cos(motion.q[row]))):
            column = ca.SX(motion.q.shape[0], 1)
            column[row] = value
            parameters.append(joint_parameter(body, symbol, effect, "N m", "N"))
            columns.append(column)
    return Term(tuple(parameters), ca.horzcat(*columns))
