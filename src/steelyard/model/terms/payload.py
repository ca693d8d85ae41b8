"""Payload: an extra body fixed to a link, ten parameters in that link's frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import casadi as ca
import numpy as np

from ...errors import ModelError
from ...physics import inertial_regressor
from ...robot import INERTIAL_NAMES, Robot, moved_parameters, transform_from_placement
from .term import INERTIAL_UNITS, MotionSymbols, Parameter, Term


def payload_link(robot: Robot) -> str:
    """Return the link the payload is fixed to: the robot's choice, or its last moving link."""
    return robot.payload_link or robot.bodies[-1].link


PAYLOAD_NAMES = tuple(f"{symbol}L" for symbol in INERTIAL_NAMES)
"""Names of a payload's ten parameters."""


def payload(robot: Robot, motion: MotionSymbols) -> Term:
    """Return the payload's columns: those of the body that carries it, moved to the payload's frame."""
    first, carried = _carried(robot)
    columns = ca.mtimes(
        inertial_regressor(robot, motion.q, motion.qd, motion.qdd)[:, first : first + 10], ca.sparsify(ca.DM(carried))
    )
    parameters = tuple(
        Parameter(name, symbol, INERTIAL_UNITS[symbol], 0, "", "payload", "payload", "link")
        for name, symbol in zip(PAYLOAD_NAMES, INERTIAL_NAMES, strict=True)
    )
    return Term(parameters, columns)


def with_known_payload(robot: Robot, motion: MotionSymbols, known: Mapping[str, float]) -> MotionSymbols:
    """Return the symbols of a motion with a payload among the known inertias: those of the body that carries it grow.

    Args:
        robot: The arm.
        motion: Symbols of the motion; returned as they are if no inertias are known.
        known: Parameters by name; of the payload's, absent ones are 0.
    """
    if motion.inertias is None:
        return motion
    first, carried = _carried(robot)
    inertias = ca.SX(motion.inertias)
    inertias[first : first + 10] += ca.DM(carried @ [known.get(name, 0.0) for name in PAYLOAD_NAMES])
    return replace(motion, inertias=inertias)


def _carried(robot: Robot) -> tuple[int, np.ndarray]:
    """Return where the parameters of the body that carries the payload begin, and what they grow by with each of its.

    Raises:
        ModelError: If that link never moves.
    """
    frame = robot.frame(payload_link(robot))
    if frame.body == 0:
        raise ModelError(
            f"payload on link '{frame.name}', which never moves: no torque depends on it; name a moving link as "
            "payload_link"
        )
    rotation, translation = transform_from_placement(frame.placement)
    return 10 * (frame.body - 1), np.column_stack(
        [moved_parameters(unit, rotation, translation) for unit in np.eye(10)]
    )
