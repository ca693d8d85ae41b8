"""Gear coupling: a motor that turns with a second joint adds columns to both (the TX40's wrist).

Motor j turns with ``q_j + c q_i``. Its inertia and friction act on joint j and, times c, on joint i. What falls on a
joint's own velocity and acceleration is already counted in Ia and Fv of that joint, so the extra columns hold the
cross terms, and the Coulomb term of the motor's own direction of turning.
"""

from __future__ import annotations

import casadi as ca

from ...effects import Effect
from ...errors import ModelError
from ...robot import Robot
from .term import MotionSymbols, Term, joint_parameter

_UNITS = {"Iac": ("kg m^2", "kg"), "Fvc": ("N m s/rad", "N s/m", "viscous"), "Fcc": ("N m", "N", "dry")}


def coupling(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return Iac, Fvc and Fcc for every motor that turns with more than one joint."""
    if not robot.gear_couplings:
        raise ModelError(
            f"effect 'coupling': robot '{robot.name}' has no coupled motors; "
            "declare them under [[gear_coupling]] in its file, or leave the effect out"
        )
    row_of = {body.joint.name: row for row, body in enumerate(robot.actuated)}
    parameters, columns = [], []
    for motor in robot.gear_couplings:
        own, other, ratio = row_of[motor.motor], row_of[motor.also_turns_with], motor.ratio
        turning = motion.sign(motion.qd[own] + ratio * motion.qd[other])
        entries = {
            "Iac": (ratio * motion.qdd[other], ratio * motion.qdd[own]),
            "Fvc": (ratio * motion.qd[other], ratio * motion.qd[own]),
            "Fcc": (turning, ratio * turning),
        }
        for symbol, (on_own, on_other) in entries.items():
            column = ca.SX(motion.q.shape[0], 1)
            column[own], column[other] = on_own, on_other
            parameters.append(joint_parameter(robot.actuated[own], symbol, effect, *_UNITS[symbol]))
            columns.append(column)
    return Term(tuple(parameters), ca.horzcat(*columns))
