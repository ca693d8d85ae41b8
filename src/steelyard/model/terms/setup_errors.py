"""Errors of an arm's set-up: a tilted base, wrong gains of torques, wrong zeros and scales of positions.

Each multiplies the inertial parameters, so that it is not linear beside them. Its columns are torques of known inertial
parameters: with those of the fit before, and the tilt that it found, a few fits converge.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np

from ...effects import Effect
from ...robot import Body, Robot, transform_from_placement
from .term import MotionSymbols, Parameter, Term, diagonal_term, joint_parameter, link_torques, on_joint

LEVEL = 1e-6
"""A joint whose axis is nearer to gravity's direction than this turns about it [rad]."""


def tilt(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return the change of the torques with the two components of gravity along the axes it is farthest from.

    Gravity is turned, not lengthened: what a known tilt takes from its main component is spread over both columns, in
    proportion to that tilt, so that their sum is the whole change where the tilt that is found is the known one.

    First moments of a link that only turns about gravity have no torque while the base is level, so that no fit knows
    them; tilted, they have one in proportion to cosine and sine of that joint. It is estimated apart: with guessed
    moments in its place gx and gy would be biased.
    """
    gravity = ca.SX.sym("gravity", 3)
    changes = ca.jacobian(link_torques(effect, robot, motion, gravity), gravity)
    main = max(range(3), key=lambda axis: abs(robot.gravity[axis]))
    across = [axis for axis in range(3) if axis != main]
    known = np.array([motion.friction.inertias.get(f"g{'xyz'[axis]}", 0.0) for axis in across])
    lost = robot.tilted(motion.friction.inertias).gravity[main] - robot.gravity[main]
    slopes = lost * known / max(float(known @ known), 1e-300)
    turned = changes[:, across] + changes[:, main] @ ca.DM(slopes).T
    columns = ca.substitute(turned, gravity, ca.SX(ca.DM(robot.gravity)))
    parameters = tuple(
        Parameter(f"g{'xyz'[axis]}", f"g{'xyz'[axis]}", "m/s^2", 0, "", robot.root, effect.name, effect.side)
        for axis in across
    )
    for row, body in _turning_about_gravity(robot):
        for symbol, value in (("gc", ca.cos(motion.q[row])), ("gs", ca.sin(motion.q[row]))):
            parameters += (joint_parameter(body, symbol, effect, "N m", "N"),)
            columns = ca.horzcat(columns, on_joint(motion, row, value))
    return Term(parameters, columns)


def _turning_about_gravity(robot: Robot) -> Iterator[tuple[int, Body]]:
    """Yield revolute joints along gravity, with their rows, that are carried by no joint but slides along it."""
    down = np.array(robot.gravity) / max(np.linalg.norm(robot.gravity), 1e-300)  # nothing turns about no gravity
    rotations = {0: np.eye(3)}  # of the base, and of what slides along gravity
    rows = {body.number: row for row, body in enumerate(robot.actuated)}
    for body in robot.bodies:
        if body.parent not in rotations:
            continue
        rotation = rotations[body.parent] @ transform_from_placement(body.placement)[0]
        if abs(rotation @ body.joint.axis @ down) < np.cos(LEVEL):
            continue
        if body.joint.kind == "prismatic":
            rotations[body.number] = rotation
        elif body.number in rows:
            yield rows[body.number], body


def gain(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``kt tau``: the part of a joint's torque by which what is measured is too large."""
    parameters = [joint_parameter(body, effect.symbols[0], effect, "1", "1") for body in robot.actuated]
    return diagonal_term(parameters, link_torques(effect, robot, motion))


def zero(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``dq d(tau)/dq``: what joints that stand elsewhere than their encoders say change."""
    parameters = tuple(joint_parameter(body, effect.symbols[0], effect, "rad", "m") for body in robot.actuated)
    return Term(parameters, ca.jacobian(link_torques(effect, robot, motion), motion.q))


def scale(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``kq (q d/dq + qd d/dqd + qdd d/dqdd) tau``: what joints that move farther than is measured change.

    The gear ratio of a joint whose positions are measured before the gears, or their unit, is such a scale.
    """
    parameters = tuple(joint_parameter(body, effect.symbols[0], effect, "1", "1") for body in robot.actuated)
    torques, columns = link_torques(effect, robot, motion), ca.SX(motion.q.shape[0], motion.q.shape[0])
    for signal in (motion.q, motion.qd, motion.qdd):
        columns += ca.jacobian(torques, signal) @ ca.diag(signal)
    return Term(parameters, columns)
