"""Gear coupling: a motor that turns with a second joint adds columns to both (the TX40's wrist).

Motor j turns with ``q_j + c q_i``. Its inertia and friction act on joint j and, times c, on joint i. What falls on a
joint's own velocity and acceleration is already counted in Ia and Fv of that joint, so the extra columns hold the
cross terms, and the Coulomb term of the motor's own direction of turning. Curved and Stribeck friction of the motor are
columns of their own, at the speed of the motor.
"""

from __future__ import annotations

import casadi as ca

from ...effects import Effect
from ...errors import ModelError
from ...robot import Robot
from .friction import CURVED_UNITS, curved
from .term import MotionSymbols, Term, joint_parameter

_UNITS = {"Iac": ("kg m^2", "kg"), "Fvc": ("N m s/rad", "N s/m", "viscous"), "Fcc": ("N m", "N", "dry")}


_SHAPES = {"Fvvc": "quadratic", "Fvrc": "square_root", "Fvtc": "third_root"}


def coupling(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return Iac, Fvc and Fcc for every motor that turns with more than one joint."""
    parameters, columns = [], []
    for own, other, ratio in _coupled(effect, robot):
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


def friction(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return curved or Stribeck friction of every such motor: ``C^T f(C qd)``, of its own joint and of the other."""
    shape = _SHAPES.get(effect.name, "stribeck")
    element = effect.element if shape == "stribeck" else 0
    parameters, columns = [], []
    for own, other, ratio in _coupled(effect, robot):
        torque = curved(shape, motion.qd[own] + ratio * motion.qd[other], motion, element)
        column = ca.SX(motion.q.shape[0], 1)
        column[own], column[other] = torque, ratio * torque
        body, units = robot.actuated[own], CURVED_UNITS[shape]
        parameters.append(joint_parameter(body, effect.symbols[0], effect, *units, "part"))
        columns.append(column)
    return Term(tuple(parameters), ca.horzcat(*columns))


def _coupled(effect: Effect, robot: Robot) -> list[tuple[int, int, float]]:
    """Return for every coupled motor the rows of its own joint and of the other, and the ratio."""
    if not robot.gear_couplings:
        raise ModelError(
            f"effect '{effect.name}': robot '{robot.name}' has no coupled motors; "
            "declare them under [[gear_coupling]] in its file, or leave the effect out"
        )
    row_of = {body.joint.name: row for row, body in enumerate(robot.actuated)}
    return [(row_of[one.motor], row_of[one.also_turns_with], one.ratio) for one in robot.gear_couplings]
