"""Torque ripple: cogging of motors and errors of gears, a sine and a cosine of given orders of the turning angle.

A motor that turns with two joints makes ripple in the equations of both.
"""

from __future__ import annotations

import casadi as ca

from ...effects import Effect
from ...errors import ModelError
from ...robot import Robot
from .term import MotionSymbols, Parameter, Term, joint_parameter


def ripple(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Rs sin(k a) + Rc cos(k a)`` for every joint, a being the angle of its motor or of the joint itself.

    On the motor side a coupled motor turns by ``C q`` and acts by ``C^T``.

    Raises:
        ModelError: If the constants have no such order, or the gear ratio of a joint is not known.
    """
    orders = motion.friction.ripple
    if effect.element >= len(orders):
        raise ModelError(
            f"effect '{effect.name}': [friction] ripple has {len(orders)} orders, none of number {effect.element + 1}; "
            "add the order, or leave the effect out"
        )
    coupling = ca.SX(ca.DM(robot.motor_coupling())) if effect.side == "motor" else ca.SX.eye(len(robot.actuated))
    angles = ca.mtimes(coupling, motion.q)
    parameters: list[Parameter] = []
    columns: list[ca.SX] = []
    for row, body in enumerate(robot.actuated):
        if body.joint.kind == "prismatic" and motion.friction.ripple_of == "joint":
            continue  # it does not turn
        angle = orders[effect.element] * _turns(effect, robot, motion, row) * angles[row]
        for symbol, torque in zip(effect.symbols, (ca.sin(angle), ca.cos(angle)), strict=True):
            parameters.append(joint_parameter(body, symbol, effect, "N m", "N"))
            columns.append(coupling[row, :].T * torque)
    return Term(tuple(parameters), ca.horzcat(*columns))


def _turns(effect: Effect, robot: Robot, motion: MotionSymbols, row: int) -> float:
    joint = robot.actuated[row].joint
    if motion.friction.ripple_of == "joint":
        return 1.0
    if joint.gear_ratio is None:
        raise ModelError(
            f"effect '{effect.name}': robot '{robot.name}' has no gear_ratio of joint '{joint.name}', to count turns "
            "of its motor; give it in its file, set ripple_of = 'joint' in [friction], or leave the effect out"
        )
    return joint.gear_ratio
