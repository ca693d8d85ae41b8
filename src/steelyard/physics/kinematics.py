"""Kinematics: geometry as numbers or symbols, velocities and accelerations of bodies, poses of frames.

All vectors of a body are expressed in its own frame. Gravity enters as an upward acceleration of the base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..robot import ElementaryMotion, Placement, Robot, transform_from_placement


@dataclass(frozen=True)
class Transform:
    """Rotation (3, 3) and translation (3,) that take child coordinates to the parent's.

    Example:
        >>> from steelyard.physics import exact_geometry
        >>> transform = exact_geometry(steelyard.load_robot("scara_2r")).bodies[1]
        >>> transform.rotation.shape, transform.translation.shape
        ((3, 3), (3, 1))
    """

    rotation: ca.SX
    translation: ca.SX

    def then(self, inner: Transform) -> Transform:
        """Return the composition: first ``inner`` is applied to a vector, then this transform."""
        return Transform(
            ca.mtimes(self.rotation, inner.rotation), self.translation + ca.mtimes(self.rotation, inner.translation)
        )


IDENTITY = Transform(ca.SX(ca.DM.eye(3)), ca.SX(3, 1))


@dataclass(frozen=True)
class Geometry:
    """Placements of every body and frame, as numbers or as symbols.

    Attributes:
        bodies: Transform of each body's frame in its parent's at q = 0, in body order.
        frames: Transform of each named frame in the frame of the body that carries it.
        symbols: The geometric unknowns (m,); empty when the geometry is exact.
        names: A name for each symbol: ``alpha2``, ``r3``, ``x[flange]``.
        nominal: The value each symbol has in the robot's file (m,).

    Example:
        >>> from steelyard.physics import symbolic_geometry
        >>> geometry = symbolic_geometry(steelyard.load_robot("scara_2r"))
        >>> len(geometry.bodies), len(geometry.names) == geometry.symbols.numel()
        (2, True)
    """

    bodies: tuple[Transform, ...]
    frames: dict[str, Transform]
    symbols: ca.SX
    names: tuple[str, ...]
    nominal: tuple[float, ...]


def rotation_about(axis: tuple[float, float, float], sine: ca.SX, cosine: ca.SX) -> ca.SX:
    """Return the 3x3 rotation about a unit axis; structural zeros of a principal axis are dropped."""
    u = np.array(axis)
    outer = np.outer(u, u)
    x, y, z = axis
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return ca.sparsify(ca.SX(np.eye(3) - outer) * cosine + ca.SX(skew) * sine + ca.SX(outer))


def _fold(placement: Placement, symbol_of: Callable[[ElementaryMotion], ca.SX]) -> Transform:
    """Multiply the elementary motions of a placement, each with a symbol as its value."""
    result = IDENTITY
    for motion in placement:
        value = symbol_of(motion)
        if motion.kind == "translate":
            step = Transform(IDENTITY.rotation, ca.sparsify(ca.SX(ca.DM(motion.axis)) * value))
        else:
            step = Transform(rotation_about(motion.axis, ca.sin(value), ca.cos(value)), IDENTITY.translation)
        result = result.then(step)
    return Transform(ca.sparsify(result.rotation), ca.sparsify(result.translation))


def _numbers(placement: Placement) -> Transform:
    rotation, translation = transform_from_placement(placement)
    return Transform(ca.SX(ca.sparsify(ca.DM(rotation))), ca.SX(ca.sparsify(ca.DM(translation))))


def exact_geometry(robot: Robot) -> Geometry:
    """Return the geometry of the robot's file as numbers: right angles give exact zeros and ones.

    Example:
        >>> from steelyard.physics import exact_geometry
        >>> exact_geometry(steelyard.load_robot("scara_2r")).symbols.numel()
        0
    """
    return Geometry(
        bodies=tuple(_numbers(body.placement) for body in robot.bodies),
        frames={name: _numbers(frame.placement) for name, frame in robot.frames.items()},
        symbols=ca.SX(0, 1),
        names=(),
        nominal=(),
    )


def symbolic_geometry(robot: Robot) -> Geometry:
    """Return the geometry with every elementary motion of every placement as a symbol of its own.

    Example:
        >>> from steelyard.physics import symbolic_geometry
        >>> "d2" in symbolic_geometry(steelyard.load_robot("scara_2r")).names
        True
    """
    names: list[str] = []
    nominal: list[float] = []
    symbols: list[ca.SX] = []

    def symbol_namer(owner: str) -> Callable[[ElementaryMotion], ca.SX]:
        def symbol_for(motion: ElementaryMotion) -> ca.SX:
            name = f"{motion.name}{owner}"
            repeats = sum(1 for other in names if other.split("'")[0] == name)
            names.append(name + "'" * repeats)
            nominal.append(motion.value)
            symbols.append(ca.SX.sym(names[-1]))
            return symbols[-1]

        return symbol_for

    bodies = tuple(_fold(body.placement, symbol_namer(str(body.number))) for body in robot.bodies)
    frames = {name: _fold(frame.placement, symbol_namer(f"[{name}]")) for name, frame in robot.frames.items()}
    return Geometry(bodies, frames, ca.vertcat(*symbols), tuple(names), tuple(nominal))


@dataclass(frozen=True)
class JointPositions:
    """Transform of every body's frame in its parent's at the present joint positions.

    Attributes:
        steps: One transform a body, in body order.
        axes: Joint axis of each body in its own frame (3,).
        geometry: The placements used.
    """

    steps: tuple[Transform, ...]
    axes: tuple[ca.SX, ...]
    geometry: Geometry


@dataclass(frozen=True)
class BodyMotion:
    """Velocity and acceleration of a body's frame, in that frame.

    Attributes:
        angular_velocity: omega (3,).
        spin_matrix: skew(omega') + skew(omega)^2 (3, 3): acceleration of a point per its position.
        angular_acceleration: omega' (3,).
        linear_acceleration: Acceleration of the frame's origin minus gravity (3,).
    """

    angular_velocity: ca.SX
    angular_acceleration: ca.SX
    spin_matrix: ca.SX
    linear_acceleration: ca.SX


def joint_coordinates(robot: Robot, actuated: ca.SX) -> ca.SX:
    """Return all moving joint positions from the actuated ones, ``q = G qa + q0``."""
    matrix, offset = robot.coupling()
    return ca.mtimes(ca.sparsify(ca.DM(matrix)), actuated) + ca.sparsify(ca.DM(offset))


def joint_rates(robot: Robot, actuated: ca.SX) -> ca.SX:
    """Return all moving joint velocities (or accelerations) from the actuated ones, ``qd = G qda``."""
    return ca.mtimes(ca.sparsify(ca.DM(robot.coupling()[0])), actuated)


def joint_positions(robot: Robot, q: ca.SX, geometry: Geometry | None = None) -> JointPositions:
    """Return the transform of every body in its parent, at actuated positions q (na,).

    Example:
        >>> from steelyard.physics import joint_positions, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> len(joint_positions(robot, motion_symbols(robot)[0]).steps)
        2
    """
    geometry = geometry or exact_geometry(robot)
    positions = joint_coordinates(robot, q)
    steps, axes = [], []
    for row, (body, placement) in enumerate(zip(robot.bodies, geometry.bodies, strict=True)):
        axis = ca.sparsify(ca.SX(ca.DM(body.joint.axis)))
        if body.joint.kind == "prismatic":
            motion = Transform(IDENTITY.rotation, ca.sparsify(axis * positions[row]))
        else:
            rotation = rotation_about(body.joint.axis, ca.sin(positions[row]), ca.cos(positions[row]))
            motion = Transform(rotation, IDENTITY.translation)
        steps.append(placement.then(motion))
        axes.append(axis)
    return JointPositions(tuple(steps), tuple(axes), geometry)


def body_motions(
    robot: Robot, positions: JointPositions, qd: ca.SX, qdd: ca.SX, gravity: ca.SX | None = None
) -> tuple[BodyMotion, ...]:
    """Return velocity and acceleration of every body (the forward half of Newton-Euler)."""
    rates, accelerations = joint_rates(robot, qd), joint_rates(robot, qdd)
    base_acceleration = -ca.sparsify(ca.SX(ca.DM(robot.gravity))) if gravity is None else -gravity
    zero = ca.SX(3, 1)
    motions = [BodyMotion(zero, zero, ca.SX(3, 3), base_acceleration)]
    for row, body in enumerate(robot.bodies):
        parent, step, axis = motions[body.parent], positions.steps[row], positions.axes[row]
        motions.append(_child_motion(parent, step, axis, body.joint.kind, rates[row], accelerations[row]))
    return tuple(motions[1:])


def _child_motion(
    parent: BodyMotion, step: Transform, axis: ca.SX, kind: str, rate: ca.SX, acceleration: ca.SX
) -> BodyMotion:
    to_child = step.rotation.T
    omega = ca.mtimes(to_child, parent.angular_velocity)
    alpha = ca.mtimes(to_child, parent.angular_acceleration)
    linear = ca.mtimes(to_child, parent.linear_acceleration + ca.mtimes(parent.spin_matrix, step.translation))
    if kind == "prismatic":
        linear = linear + 2 * ca.cross(omega, axis * rate) + axis * acceleration
    else:
        alpha = alpha + ca.cross(omega, axis * rate) + axis * acceleration
        omega = omega + axis * rate
    omega, alpha, linear = ca.sparsify(omega), ca.sparsify(alpha), ca.sparsify(linear)
    return BodyMotion(omega, alpha, _spin_matrix(omega, alpha), linear)


def _spin_matrix(omega: ca.SX, alpha: ca.SX) -> ca.SX:
    """Return skew(alpha) + skew(omega)^2, squares and products formed once."""
    x, y, z = omega[0], omega[1], omega[2]
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return ca.sparsify(
        ca.vertcat(
            ca.horzcat(-(yy + zz), xy - alpha[2], xz + alpha[1]),
            ca.horzcat(xy + alpha[2], -(xx + zz), yz - alpha[0]),
            ca.horzcat(xz - alpha[1], yz + alpha[0], -(xx + yy)),
        )
    )


def body_poses(robot: Robot, positions: JointPositions) -> tuple[Transform, ...]:
    """Return the pose of every body's frame in the base frame; index 0 is the base itself.

    Example:
        >>> from steelyard.physics import body_poses, joint_positions, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> len(body_poses(robot, joint_positions(robot, motion_symbols(robot)[0])))
        3
    """
    poses = [IDENTITY]
    for body, step in zip(robot.bodies, positions.steps, strict=True):
        poses.append(poses[body.parent].then(step))
    return tuple(poses)


def frame_pose(robot: Robot, frame: str, q: ca.SX, geometry: Geometry | None = None) -> Transform:
    """Return the pose of a link's frame in the base frame at actuated positions q (na,).

    Example:
        >>> from steelyard.physics import frame_pose, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> frame_pose(robot, "link_2", motion_symbols(robot)[0]).translation.shape
        (3, 1)
    """
    positions = joint_positions(robot, q, geometry)
    body = robot.frame(frame).body
    return body_poses(robot, positions)[body].then(positions.geometry.frames[frame])


def frame_jacobian(robot: Robot, frame: str, q: ca.SX, geometry: Geometry | None = None) -> ca.SX:
    """Return the Jacobian (6, na) of a frame: linear velocity of its origin, then angular, in base axes.

    Example:
        >>> from steelyard.physics import frame_jacobian, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> frame_jacobian(robot, "link_2", motion_symbols(robot)[0]).shape
        (6, 2)
    """
    positions = joint_positions(robot, q, geometry)
    poses = body_poses(robot, positions)
    carrier = robot.frame(frame).body
    tip = poses[carrier].then(positions.geometry.frames[frame]).translation
    columns = [ca.SX(6, 1) for _ in robot.bodies]
    number = carrier
    while number:
        body = robot.bodies[number - 1]
        axis = ca.mtimes(poses[number].rotation, positions.axes[number - 1])
        if body.joint.kind == "prismatic":
            columns[number - 1] = ca.vertcat(axis, ca.SX(3, 1))
        else:
            columns[number - 1] = ca.vertcat(ca.cross(axis, tip - poses[number].translation), axis)
        number = body.parent
    return ca.mtimes(ca.horzcat(*columns), ca.sparsify(ca.DM(robot.coupling()[0])))
