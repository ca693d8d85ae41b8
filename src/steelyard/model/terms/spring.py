"""Springs and balancers that carry part of the weight: unknown sine and cosine (P4), or a known law and its scale."""

from __future__ import annotations

import casadi as ca

from ...effects import Effect
from ...errors import ModelError
from ...robot import Robot
from .term import MotionSymbols, Parameter, Term, joint_parameter, on_joint


def spring(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Ss sin(q) + Sc cos(q)`` for every joint that the robot says has a spring."""
    if not robot.springs:
        raise ModelError(
            f"effect 'spring': robot '{robot.name}' names no joint with a spring; "
            "list the joints under 'springs' in its file, or leave the effect out"
        )
    parameters: list[Parameter] = []
    columns: list[ca.SX] = []
    for row, body in enumerate(robot.actuated):
        if body.joint.name not in robot.springs:
            continue
        for symbol, value in (("Ss", ca.sin(motion.q[row])), ("Sc", ca.cos(motion.q[row]))):
            parameters.append(joint_parameter(body, symbol, effect, "N m", "N"))
            columns.append(on_joint(motion, row, value))
    return Term(tuple(parameters), ca.horzcat(*columns))


def balancer(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``Sb tau_b(q)`` for every joint with a balancer: Sb is 1 if its torque is as the robot file says."""
    if not robot.balancers:
        raise ModelError(
            f"effect 'balancer': robot '{robot.name}' has no balancer; "
            "give its torque under [[balancer]] in its file, or leave the effect out"
        )
    law_of = {one.joint: one for one in robot.balancers}
    rows = [row for row, body in enumerate(robot.actuated) if body.joint.name in law_of]
    bodies = [robot.actuated[row] for row in rows]
    torques = [law_of[body.joint.name].torque(motion.q[row], ca) for row, body in zip(rows, bodies, strict=True)]
    columns = [on_joint(motion, row, torque) for row, torque in zip(rows, torques, strict=True)]
    return Term(tuple(joint_parameter(body, "Sb", effect, "1", "1") for body in bodies), ca.horzcat(*columns))
