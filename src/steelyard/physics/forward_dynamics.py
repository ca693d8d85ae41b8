"""The inertia matrix and forward dynamics by Featherstone's recursions from the tips to the base.

The composite body method gives the inertia matrix for generated code, where the number of operations counts: it equals
:func:`steelyard.physics.inertia_matrix`, the derivative of the torques by the accelerations, with a third of the
operations for 7 joints and a quarter for 30.

The articulated body method gives accelerations, in 3x3 blocks, each articulated inertia stored as
``[[I, H], [H^T, M]]`` (angular part first). Joints that share motion (mimics, coupled motors) have no articulated form:
there the inertia matrix is factorised instead, entry by entry.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from ..robot import Robot
from .inverse_dynamics import body_wrench, inertia_matrix, inverse_dynamics
from .kinematics import BodyMotion, Geometry, JointPositions, Transform, body_motions, joint_positions


class _Composite(NamedTuple):
    """Inertia (3, 3), first moment (3,) and mass of a body with all that it carries, about its frame's origin."""

    inertia: ca.SX
    moment: ca.SX
    mass: ca.SX


def composite_inertia_matrix(robot: Robot, q: ca.SX, inertias: ca.SX) -> ca.SX:
    """Return M(q) (na, na), exactly symmetric.

    Args:
        robot: The arm.
        q: Actuated joint positions (na,).
        inertias: Ten parameters a body (10 nb,).

    Example:
        >>> from steelyard.physics import composite_inertia_matrix, inertia_symbols, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> composite_inertia_matrix(robot, motion_symbols(robot)[0], inertia_symbols(robot)).shape
        (2, 2)
    """
    positions = joint_positions(robot, q)
    composites = [_composite_of(inertias[10 * row : 10 * row + 10]) for row in range(len(robot.bodies))]
    for body in reversed(robot.bodies):
        if body.parent:
            carried = _composite_in_parent(composites[body.number - 1], positions.steps[body.number - 1])
            own = composites[body.parent - 1]
            composites[body.parent - 1] = _Composite(*(a + b for a, b in zip(own, carried, strict=True)))
    lower = ca.SX(len(robot.bodies), len(robot.bodies))
    for body in robot.bodies:
        for column, entry in _matrix_row(robot, positions, composites[body.number - 1], body.number).items():
            lower[max(body.number - 1, column), min(body.number - 1, column)] = entry
    matrix, gains = ca.tril2symm(lower), robot.coupling()[0]
    if np.array_equal(gains, np.eye(len(robot.bodies))):
        return ca.densify(matrix)
    gain = ca.sparsify(ca.DM(gains))
    return ca.densify(ca.tril2symm(ca.tril(ca.mtimes(gain.T, ca.mtimes(matrix, gain)))))


def _composite_of(parameters: ca.SX) -> _Composite:
    xx, xy, xz, yy, yz, zz = ca.vertsplit(parameters[:6])
    inertia = ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
    return _Composite(inertia, parameters[6:9], parameters[9])


def _composite_in_parent(here: _Composite, step: Transform) -> _Composite:
    """Express a composite in the parent's frame, about the parent's origin; only a triangle is computed."""
    moment = ca.mtimes(step.rotation, here.moment)
    lever = ca.sparsify(ca.skew(step.translation))
    mixed = ca.mtimes(lever, ca.skew(moment))
    turned = ca.mtimes(ca.mtimes(step.rotation, here.inertia), step.rotation.T)
    inertia = turned - mixed - mixed.T - here.mass * ca.mtimes(lever, lever)
    return _Composite(ca.tril2symm(ca.tril(inertia)), moment + here.mass * step.translation, here.mass)


def _matrix_row(robot: Robot, positions: JointPositions, composite: _Composite, number: int) -> dict[int, ca.SX]:
    """Return the entries of a body with the joints that carry it: the wrench of its unit acceleration on each axis."""
    axis = positions.axes[number - 1]
    if robot.bodies[number - 1].joint.kind == "prismatic":
        force, moment = composite.mass * axis, ca.cross(composite.moment, axis)
    else:
        force, moment = ca.cross(axis, composite.moment), ca.mtimes(composite.inertia, axis)
    entries = {}
    while number:
        body, step = robot.bodies[number - 1], positions.steps[number - 1]
        wrench = force if body.joint.kind == "prismatic" else moment
        entries[number - 1] = ca.dot(positions.axes[number - 1], wrench)
        force = ca.mtimes(step.rotation, force)
        moment = ca.mtimes(step.rotation, moment) + ca.cross(step.translation, force)
        number = body.parent
    return entries


class _Articulated(NamedTuple):
    """Articulated inertia and bias wrench of a body, in its own frame."""

    angular: ca.SX  # I (3, 3)
    mixed: ca.SX  # H (3, 3): force times lever per linear acceleration
    linear: ca.SX  # M (3, 3)
    moment: ca.SX  # bias (3,)
    force: ca.SX

    def plus(self, other: _Articulated) -> _Articulated:
        return _Articulated(*(own + added for own, added in zip(self, other, strict=True)))


class _JointSolution(NamedTuple):
    """What the outward pass needs of a joint: ``qdd = (residual - row . acceleration) / pivot``."""

    angular_row: ca.SX
    linear_row: ca.SX
    pivot: ca.SX
    residual: ca.SX


def forward_dynamics(
    robot: Robot,
    q: ca.SX,
    qd: ca.SX,
    tau: ca.SX,
    inertias: ca.SX,
    drive_inertia: ca.SX | np.ndarray | None = None,
    geometry: Geometry | None = None,
) -> ca.SX:
    """Return the accelerations (na,) that torques tau (na,) give, friction not included.

    Args:
        robot: The arm.
        q: Actuated joint positions (na,).
        qd: Velocities (na,).
        tau: Torques on the actuated joints (na,).
        inertias: Ten parameters a body (10 nb,).
        drive_inertia: Rotor inertia on the joint side: a vector (na,), or a symmetric matrix (na, na) where
            motors turn with several joints.
        geometry: Exact (default) or symbolic geometry.

    Example:
        >>> from steelyard.physics import forward_dynamics, inertia_symbols, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> q, qd, tau = motion_symbols(robot)
        >>> forward_dynamics(robot, q, qd, tau, inertia_symbols(robot)).shape
        (2, 1)
    """
    size = len(robot.actuated)
    drive = ca.SX(size, 1) if drive_inertia is None else ca.SX(drive_inertia)
    if drive.shape[1] == 1 and np.array_equal(robot.coupling()[0], np.eye(len(robot.bodies))):
        return _articulated_body(robot, q, qd, tau, inertias, drive, geometry)
    matrix = inertia_matrix(robot, q, inertias, geometry) + (ca.diag(drive) if drive.shape[1] == 1 else drive)
    bias = inverse_dynamics(robot, q, qd, ca.SX(size, 1), inertias, geometry)
    return solve_positive_definite(matrix, tau - bias)


def solve_positive_definite(matrix: ca.SX, right: ca.SX) -> ca.SX:
    """Return the solution of ``matrix x = right`` by L D L^T, no square roots and no pivoting."""
    size = matrix.shape[0]
    lower = [[ca.SX(0)] * size for _ in range(size)]
    pivots: list[ca.SX] = []
    for i in range(size):
        for j in range(i):
            known = sum((lower[i][k] * lower[j][k] * pivots[k] for k in range(j)), ca.SX(0))
            lower[i][j] = (matrix[i, j] - known) / pivots[j]
        pivots.append(matrix[i, i] - sum((lower[i][k] ** 2 * pivots[k] for k in range(i)), ca.SX(0)))
    x: list[ca.SX] = []
    for i in range(size):
        x.append(right[i] - sum((lower[i][k] * x[k] for k in range(i)), ca.SX(0)))
    x = [value / pivot for value, pivot in zip(x, pivots, strict=True)]
    for i in reversed(range(size)):
        x[i] = x[i] - sum((lower[k][i] * x[k] for k in range(i + 1, size)), ca.SX(0))
    return ca.vertcat(*x)


def _articulated_body(
    robot: Robot, q: ca.SX, qd: ca.SX, tau: ca.SX, inertias: ca.SX, drive: ca.SX, geometry: Geometry | None
) -> ca.SX:
    """Run the three passes: reference motion outward, inertias inward, accelerations outward.

    The motion at qdd = 0 (gravity and Coriolis terms included) is the reference. Only what the joint
    accelerations add to it is propagated, so the bias wrench of a body is Newton-Euler's at the reference.
    """
    positions = joint_positions(robot, q, geometry)
    reference = body_motions(robot, positions, qd, ca.SX(len(robot.bodies), 1))
    articulated = [_rigid_body(motion, inertias[10 * row : 10 * row + 10]) for row, motion in enumerate(reference)]
    solutions: dict[int, _JointSolution] = {}
    for body in reversed(robot.bodies):
        row = body.number - 1
        solution = _solve_joint(articulated[row], positions.axes[row], body.joint.kind, tau[row], drive[row])
        solutions[row] = solution
        if body.parent:
            carried = _moved_to_parent(_with_free_joint(articulated[row], solution), positions.steps[row])
            articulated[body.parent - 1] = articulated[body.parent - 1].plus(carried)
    return _joint_accelerations(robot, positions, solutions)


def _rigid_body(motion: BodyMotion, parameters: ca.SX) -> _Articulated:
    """Return a rigid body's inertia, with the wrench of the reference motion as bias."""
    xx, xy, xz, yy, yz, zz = ca.vertsplit(parameters[:6])
    angular = ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
    force, moment = body_wrench(motion, parameters)
    return _Articulated(angular, ca.skew(parameters[6:9]), parameters[9] * ca.SX.eye(3), moment, force)


def _solve_joint(here: _Articulated, axis: ca.SX, kind: str, tau: ca.SX, drive: ca.SX) -> _JointSolution:
    """Eliminate one joint: ``(s . J s + Ia) qdd = tau - s . bias - (J s) . acceleration``."""
    if kind == "prismatic":
        angular_row, linear_row = ca.mtimes(here.mixed, axis), ca.mtimes(here.linear, axis)
        pivot, bias = ca.dot(axis, linear_row), ca.dot(axis, here.force)
    else:
        angular_row, linear_row = ca.mtimes(here.angular, axis), ca.mtimes(here.mixed.T, axis)
        pivot, bias = ca.dot(axis, angular_row), ca.dot(axis, here.moment)
    return _JointSolution(angular_row, linear_row, pivot + drive, tau - bias)


def _with_free_joint(here: _Articulated, solution: _JointSolution) -> _Articulated:
    """Return what acts on the parent through the joint: ``J - U U^T / D`` and ``bias + U u / D``."""
    angular, linear = solution.angular_row / solution.pivot, solution.linear_row / solution.pivot
    return _Articulated(
        here.angular - ca.mtimes(angular, solution.angular_row.T),
        here.mixed - ca.mtimes(angular, solution.linear_row.T),
        here.linear - ca.mtimes(linear, solution.linear_row.T),
        here.moment + angular * solution.residual,
        here.force + linear * solution.residual,
    )


def _moved_to_parent(here: _Articulated, step: Transform) -> _Articulated:
    """Express an articulated inertia in the parent's frame, about the parent's origin."""
    rotation, lever = step.rotation, ca.sparsify(ca.skew(step.translation))
    angular, mixed, linear = (
        ca.mtimes(ca.mtimes(rotation, block), rotation.T) for block in (here.angular, here.mixed, here.linear)
    )
    mixed_at_parent = mixed + ca.mtimes(lever, linear)
    force = ca.mtimes(rotation, here.force)
    return _Articulated(
        angular - ca.mtimes(mixed, lever) + ca.mtimes(lever, mixed_at_parent.T),
        mixed_at_parent,
        linear,
        ca.mtimes(rotation, here.moment) + ca.mtimes(lever, force),
        force,
    )


def _joint_accelerations(robot: Robot, positions: JointPositions, solutions: dict[int, _JointSolution]) -> ca.SX:
    """Propagate accelerations outward from the base, joint by joint."""
    added = [(ca.SX(3, 1), ca.SX(3, 1))]
    result: list[ca.SX] = []
    for row, body in enumerate(robot.bodies):
        step, axis, solution = positions.steps[row], positions.axes[row], solutions[row]
        angular, linear = added[body.parent]
        linear = ca.mtimes(step.rotation.T, linear + ca.cross(angular, step.translation))
        angular = ca.mtimes(step.rotation.T, angular)
        coupled = ca.dot(solution.angular_row, angular) + ca.dot(solution.linear_row, linear)
        acceleration = (solution.residual - coupled) / solution.pivot
        result.append(acceleration)
        if body.joint.kind == "prismatic":
            added.append((angular, linear + axis * acceleration))
        else:
            added.append((angular + axis * acceleration, linear))
    return ca.vertcat(*result)
