"""Errors of an arm's set-up: a tilted base, torque sensors of a wrong gain, joints whose zero is elsewhere.

Each multiplies the inertial parameters, so that it is not linear beside them. Its columns are derivatives at known
inertial parameters: with those of the fit before, a few fits converge.
"""

from __future__ import annotations

import casadi as ca

from ...effects import Effect
from ...robot import Robot
from .term import MotionSymbols, Parameter, Term, diagonal_term, joint_parameter, link_torques


def tilt(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return the change of the torques with the two components of gravity along the axes it is farthest from."""
    gravity = ca.SX.sym("gravity", 3)
    changes = ca.jacobian(link_torques(effect, robot, motion, gravity), gravity)
    main = max(range(3), key=lambda axis: abs(robot.gravity[axis]))
    across = [axis for axis in range(3) if axis != main]
    columns = ca.substitute(changes[:, across], gravity, ca.SX(ca.DM(robot.gravity)))
    parameters = tuple(
        Parameter(f"g{'xyz'[axis]}", f"g{'xyz'[axis]}", "m/s^2", 0, "", robot.root, effect.name, effect.side)
        for axis in across
    )
    return Term(parameters, columns)


def gain(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``kt tau``: the part of a joint's torque by which what is measured is too large."""
    parameters = [joint_parameter(body, effect.symbols[0], effect, "1", "1") for body in robot.actuated]
    return diagonal_term(parameters, link_torques(effect, robot, motion))


def zero(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``dq d(tau)/dq``: what joints that stand elsewhere than their encoders say change."""
    parameters = tuple(joint_parameter(body, effect.symbols[0], effect, "rad", "m") for body in robot.actuated)
    return Term(parameters, ca.jacobian(link_torques(effect, robot, motion), motion.q))
