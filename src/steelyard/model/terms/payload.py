"""Payload: an extra body fixed to a link, ten parameters in that link's frame."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...errors import ModelError
from ...physics import inertial_regressor
from ...robot import INERTIAL_NAMES, Robot, moved_parameters, transform_from_placement
from .term import INERTIAL_UNITS, MotionSymbols, Parameter, Term


def payload_link(robot: Robot) -> str:
    """Return the link the payload is fixed to: the robot's choice, or its last moving link."""
    return robot.payload_link or robot.bodies[-1].link


def payload(robot: Robot, motion: MotionSymbols) -> Term:
    """Return the payload's columns: those of the body that carries it, moved to the payload's frame."""
    frame = robot.frame(payload_link(robot))
    if frame.body == 0:
        raise ModelError(
            f"payload on link '{frame.name}', which never moves: no torque depends on it; name a moving link as "
            "payload_link"
        )
    first = 10 * (frame.body - 1)
    rotation, translation = transform_from_placement(frame.placement)
    carried = np.column_stack([moved_parameters(unit, rotation, translation) for unit in np.eye(10)])
    columns = ca.mtimes(
        inertial_regressor(robot, motion.q, motion.qd, motion.qdd)[:, first : first + 10], ca.sparsify(ca.DM(carried))
    )
    parameters = tuple(
        Parameter(f"{symbol}L", symbol, INERTIAL_UNITS[symbol], 0, "", "payload", "payload", "link")
        for symbol in INERTIAL_NAMES
    )
    return Term(parameters, columns)
