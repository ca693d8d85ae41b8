"""A second statement of the physics that shares nothing with the product: world-frame Jacobians in plain numpy.

Everything is polynomial in sines, cosines and the arguments, so complex numbers pass through: derivatives come by the
complex step, exact to rounding. ``tau = sum_b Jv^T m (a_c - g) + Jw^T (I a + w x I w)`` about each centre of mass,
with accelerations as time derivatives of the Jacobians taken along the motion by recursion in the world frame.
"""

from __future__ import annotations

import numpy as np

from steelyard.robot import Body, ElementaryMotion, Robot


def skew(v: np.ndarray) -> np.ndarray:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def log_determinant(matrix: np.ndarray) -> complex:
    """Return the logarithm of a determinant by elimination: LAPACK's warns of complex steps on some processors."""
    left, total = np.array(matrix), 0.0
    for k in range(len(left)):
        total = total + np.log(left[k, k])
        left[k + 1 :, k + 1 :] -= np.outer(left[k + 1 :, k], left[k, k + 1 :]) / left[k, k]
    return total


def homogeneous(motion: ElementaryMotion, value: complex) -> np.ndarray:
    """Return the 4x4 matrix of an elementary motion."""
    matrix = np.eye(4, dtype=complex)
    axis = np.array(motion.axis)
    if motion.kind == "translate":
        matrix[:3, 3] = axis * value
    else:
        k = skew(axis)
        matrix[:3, :3] = np.eye(3) + np.sin(value) * k + (1 - np.cos(value)) * (k @ k)
    return matrix


def poses(robot: Robot, q: np.ndarray, overrides: dict[tuple[int, int], complex] | None = None) -> list[np.ndarray]:
    """Return the 4x4 pose of every body in the base frame; overrides replace placement numbers (body, index)."""
    matrix, offset = robot.coupling()
    positions = matrix @ q + offset
    result: list[np.ndarray] = [np.eye(4, dtype=complex)]
    for row, body in enumerate(robot.bodies):
        pose = result[body.parent]
        for index, motion in enumerate(body.placement):
            pose = pose @ homogeneous(motion, (overrides or {}).get((row, index), motion.value))
        result.append(pose @ homogeneous(body.joint.motion(0.0), positions[row]))
    return result[1:]


def _ancestors(robot: Robot, body: Body) -> list[int]:
    rows, number = [], body.number
    while number:
        rows.append(number - 1)
        number = robot.bodies[number - 1].parent
    return rows[::-1]


def inverse_dynamics(robot: Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, chi: np.ndarray) -> np.ndarray:
    """Return torques (na,) of rigid bodies; arguments may be complex."""
    coupling = robot.coupling()[0]
    rate, acceleration = coupling @ qd, coupling @ qdd
    frames = poses(robot, q)
    axes = [pose[:3, :3] @ np.array(body.joint.axis) for pose, body in zip(frames, robot.bodies, strict=True)]
    tau = np.zeros(len(robot.bodies), dtype=complex)
    for row, body in enumerate(robot.bodies):
        if not np.any(chi[10 * row : 10 * row + 10]):
            continue
        chain = _ancestors(robot, body)
        wrench = _newton_euler(robot, frames, axes, chain, rate, acceleration, chi[10 * row : 10 * row + 10])
        force, moment_about_origin = wrench
        origin = frames[row][:3, 3]
        for j in chain:
            if robot.bodies[j].joint.kind == "prismatic":
                tau[j] += axes[j] @ force
            else:
                tau[j] += axes[j] @ (moment_about_origin + np.cross(origin - frames[j][:3, 3], force))
    return coupling.T @ tau


def _newton_euler(robot, frames, axes, chain, rate, acceleration, parameters):
    """Return force and moment about the last body's origin, in the world frame."""
    omega, alpha = np.zeros(3, complex), np.zeros(3, complex)
    linear = -np.array(robot.gravity, dtype=complex)
    point = np.zeros(3, complex)
    for j in chain:
        origin, axis = frames[j][:3, 3], axes[j]
        lever = origin - point
        linear = linear + np.cross(alpha, lever) + np.cross(omega, np.cross(omega, lever))
        if robot.bodies[j].joint.kind == "prismatic":
            # The lever above already contains the slide; its rate adds the relative terms.
            linear = linear + 2 * np.cross(omega, axis * rate[j]) + axis * acceleration[j]
        else:
            alpha = alpha + np.cross(omega, axis * rate[j]) + axis * acceleration[j]
            omega = omega + axis * rate[j]
        point = origin
    rotation = frames[chain[-1]][:3, :3]
    xx, xy, xz, yy, yz, zz, mx, my, mz, mass = parameters
    inertia = rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ rotation.T
    moment = rotation @ np.array([mx, my, mz])
    force = mass * linear + np.cross(alpha, moment) + np.cross(omega, np.cross(omega, moment))
    return force, inertia @ alpha + np.cross(omega, inertia @ omega) + np.cross(moment, linear)


def inertia_matrix(robot: Robot, q: np.ndarray, chi: np.ndarray) -> np.ndarray:
    """Return M (na, na) column by column."""
    size = len(robot.actuated)
    still = np.zeros(size)
    bias = inverse_dynamics(robot, q, still, still, chi)
    return np.column_stack([inverse_dynamics(robot, q, still, unit, chi) - bias for unit in np.eye(size)])


def forward_dynamics(robot: Robot, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, chi: np.ndarray) -> np.ndarray:
    """Return accelerations (na,) by solving with the inertia matrix."""
    bias = inverse_dynamics(robot, q, qd, np.zeros(len(robot.actuated)), chi)
    return np.linalg.solve(inertia_matrix(robot, q, chi), tau - bias)


def complex_step(function, x: np.ndarray) -> np.ndarray:
    """Return the Jacobian of a function by complex steps of 1e-30: exact to rounding."""
    columns = []
    for k in range(len(x)):
        moved = x.astype(complex)
        moved[k] += 1e-30j
        columns.append(np.imag(function(moved)).ravel() / 1e-30)
    return np.column_stack(columns)


def central_difference(function, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Return the Jacobian of a function by central differences."""
    columns = []
    for k in range(len(x)):
        forward, backward = x.copy(), x.copy()
        forward[k] += step
        backward[k] -= step
        columns.append((np.asarray(function(forward)) - np.asarray(function(backward))).ravel() / (2 * step))
    return np.column_stack(columns)
