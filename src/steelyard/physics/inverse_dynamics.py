"""Inverse dynamics by Newton-Euler, linear in the ten inertial parameters of every body; energies; friction directions.

Everything else that identification needs of rigid bodies is a derivative of this one expression: the regressor (by the
parameters), the inertia matrix (by the accelerations), gravity and velocity terms (at zero motion).

In friction laws ``sign(0) = 0``: at standstill Coulomb friction is undetermined, and zero is the only value that
favours no direction. A smooth sign of width w is ``tanh(v / w)``: 76 % at w, 96 % at 2 w, within 1e-8 of 1 beyond 10 w.
"""

from __future__ import annotations

import casadi as ca

from ..lazy import recent
from ..robot import Robot
from .kinematics import BodyMotion, Geometry, JointPositions, body_motions, body_poses, joint_positions, joint_rates


def inverse_dynamics(
    robot: Robot,
    q: ca.SX,
    qd: ca.SX,
    qdd: ca.SX,
    inertias: ca.SX,
    geometry: Geometry | None = None,
    gravity: ca.SX | None = None,
) -> ca.SX:
    """Return the torques (na,) that rigid bodies need: ``M(q) qdd + C(q, qd) qd + G(q)``.

    Args:
        robot: The arm.
        q: Actuated joint positions (na,).
        qd: Velocities (na,).
        qdd: Accelerations (na,).
        inertias: Ten parameters a body, body after body (10 nb,).
        geometry: Exact (default) or symbolic geometry.
        gravity: Acceleration of gravity in the base frame (3,); the robot's own by default.

    Example:
        >>> from steelyard.physics import inertia_symbols, inverse_dynamics, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> inverse_dynamics(robot, *motion_symbols(robot), inertia_symbols(robot)).shape
        (2, 1)
    """
    positions = joint_positions(robot, q, geometry)
    motions = body_motions(robot, positions, qd, qdd, gravity)
    torques = _joint_torques(robot, positions, motions, inertias)
    return ca.mtimes(ca.sparsify(ca.DM(robot.coupling()[0].T)), torques)


def inertial_regressor(
    robot: Robot, q: ca.SX, qd: ca.SX, qdd: ca.SX, geometry: Geometry | None = None, gravity: ca.SX | None = None
) -> ca.SX:
    """Return D_st (na, 10 nb) with ``inverse_dynamics = D_st chi``; structural zeros are dropped.

    Example:
        >>> from steelyard.physics import inertial_regressor, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> inertial_regressor(robot, *motion_symbols(robot)).shape
        (2, 20)
    """
    if geometry is None and gravity is None:
        return ca.sparsify(_regressor(robot)(q, qd, qdd))
    inertias = ca.SX.sym("chi", 10 * len(robot.bodies))
    torques = inverse_dynamics(robot, q, qd, qdd, inertias, geometry, gravity)
    return ca.sparsify(ca.jacobian(torques, inertias))


@recent(8)
def _regressor(robot: Robot) -> ca.Function:
    """Return ``(q, qd, qdd) -> D_st``: many models of one arm are written with it."""
    q, qd, qdd = (ca.SX.sym(name, len(robot.actuated)) for name in ("q", "qd", "qdd"))
    inertias = ca.SX.sym("chi", 10 * len(robot.bodies))
    torques = inverse_dynamics(robot, q, qd, qdd, inertias)
    return ca.Function("inertial_regressor", [q, qd, qdd], [ca.sparsify(ca.jacobian(torques, inertias))])


def inertia_matrix(robot: Robot, q: ca.SX, inertias: ca.SX, geometry: Geometry | None = None) -> ca.SX:
    """Return M(q) (na, na): the derivative of the torques by the accelerations.

    Example:
        >>> from steelyard.physics import inertia_matrix, inertia_symbols, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> inertia_matrix(robot, motion_symbols(robot)[0], inertia_symbols(robot)).shape
        (2, 2)
    """
    size = len(robot.actuated)
    qdd = ca.SX.sym("qdd", size)
    weightless = ca.SX(3, 1)
    torques = inverse_dynamics(robot, q, ca.SX(size, 1), qdd, inertias, geometry, weightless)
    return ca.densify(ca.jacobian(torques, qdd))


def gravity_torques(robot: Robot, q: ca.SX, inertias: ca.SX, geometry: Geometry | None = None) -> ca.SX:
    """Return G(q) (na,): the torques that hold the arm still.

    Example:
        >>> from steelyard.physics import gravity_torques, inertia_symbols, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> gravity_torques(robot, motion_symbols(robot)[0], inertia_symbols(robot)).shape
        (2, 1)
    """
    still = ca.SX(len(robot.actuated), 1)
    return ca.densify(inverse_dynamics(robot, q, still, still, inertias, geometry))


def velocity_torques(robot: Robot, q: ca.SX, qd: ca.SX, inertias: ca.SX, geometry: Geometry | None = None) -> ca.SX:
    """Return C(q, qd) qd (na,): centrifugal and Coriolis torques.

    Example:
        >>> from steelyard.physics import inertia_symbols, motion_symbols, velocity_torques
        >>> robot = steelyard.load_robot("scara_2r")
        >>> velocity_torques(robot, *motion_symbols(robot)[:2], inertia_symbols(robot)).shape
        (2, 1)
    """
    still = ca.SX(len(robot.actuated), 1)
    return ca.densify(inverse_dynamics(robot, q, qd, still, inertias, geometry, ca.SX(3, 1)))


def _joint_torques(robot: Robot, positions: JointPositions, motions: tuple[BodyMotion, ...], inertias: ca.SX) -> ca.SX:
    """Sum the wrenches of all bodies towards the base (the backward half of Newton-Euler)."""
    forces = [ca.SX(3, 1)]
    moments = [ca.SX(3, 1)]
    for row, motion in enumerate(motions):
        force, moment = body_wrench(motion, inertias[10 * row : 10 * row + 10])
        forces.append(force)
        moments.append(moment)
    torques: list[ca.SX] = []
    for body in reversed(robot.bodies):
        step, axis = positions.steps[body.number - 1], positions.axes[body.number - 1]
        force, moment = forces[body.number], moments[body.number]
        torques.append(ca.dot(axis, force if body.joint.kind == "prismatic" else moment))
        if body.parent:
            outward = ca.mtimes(step.rotation, force)
            forces[body.parent] += outward
            moments[body.parent] += ca.mtimes(step.rotation, moment) + ca.cross(step.translation, outward)
    return ca.vertcat(*reversed(torques))


def body_wrench(motion: BodyMotion, parameters: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return force and moment (about the frame's origin) that move a body as given.

    ``f = M a + B ms``, ``n = A i + ms x a`` with B = skew(omega') + skew(omega)^2, i = (XX XY XZ YY YZ ZZ) and
    ``A i = I omega' + omega x (I omega)``.
    """
    first_moment, mass = parameters[6:9], parameters[9]
    a = motion.linear_acceleration
    force = a * mass + ca.mtimes(motion.spin_matrix, first_moment)
    moment = ca.mtimes(rotational_regressor(motion), parameters[:6]) + ca.cross(first_moment, a)
    return force, moment


def rotational_regressor(motion: BodyMotion) -> ca.SX:
    """Return A (3, 6) with ``A (XX XY XZ YY YZ ZZ) = I omega' + omega x (I omega)``.

    Its entries are entries of B and products that B already holds, so they cost next to nothing.
    """
    x, y, z = (motion.angular_velocity[k] for k in range(3))
    ax, ay, az = (motion.angular_acceleration[k] for k in range(3))
    xy, xz, yz, xx, yy, zz = x * y, x * z, y * z, x * x, y * y, z * z
    return ca.sparsify(
        ca.vertcat(
            ca.horzcat(ax, ay - xz, az + xy, -yz, yy - zz, yz),
            ca.horzcat(xz, ax + yz, zz - xx, ay, az - xy, -xz),
            ca.horzcat(-xy, xx - yy, ax - yz, xy, ay + xz, az),
        )
    )


def kinetic_energy(robot: Robot, q: ca.SX, qd: ca.SX, inertias: ca.SX, geometry: Geometry | None = None) -> ca.SX:
    """Return the kinetic energy [J]: the sum of ``1/2 w.Iw + v.(w x ms) + 1/2 M v.v`` over the bodies.

    Example:
        >>> from steelyard.physics import inertia_symbols, kinetic_energy, motion_symbols
        >>> robot = steelyard.load_robot("scara_2r")
        >>> kinetic_energy(robot, *motion_symbols(robot)[:2], inertia_symbols(robot)).shape
        (1, 1)
    """
    positions = joint_positions(robot, q, geometry)
    rates = joint_rates(robot, qd)
    velocities = [(ca.SX(3, 1), ca.SX(3, 1))]
    energy = ca.SX(0)
    for row, body in enumerate(robot.bodies):
        step, axis = positions.steps[row], positions.axes[row]
        omega, v = velocities[body.parent]
        v = ca.mtimes(step.rotation.T, v + ca.cross(omega, step.translation))
        omega = ca.mtimes(step.rotation.T, omega)
        if body.joint.kind == "prismatic":
            v = v + axis * rates[row]
        else:
            omega = omega + axis * rates[row]
        velocities.append((omega, v))
        energy += _body_energy(omega, v, inertias[10 * row : 10 * row + 10])
    return energy


def _body_energy(omega: ca.SX, v: ca.SX, parameters: ca.SX) -> ca.SX:
    xx, xy, xz, yy, yz, zz = ca.vertsplit(parameters[:6])
    x, y, z = omega[0], omega[1], omega[2]
    spin = 0.5 * (xx * x * x + yy * y * y + zz * z * z) + xy * x * y + xz * x * z + yz * y * z
    return spin + ca.dot(v, ca.cross(omega, parameters[6:9])) + 0.5 * parameters[9] * ca.dot(v, v)


def potential_energy(robot: Robot, q: ca.SX, inertias: ca.SX, geometry: Geometry | None = None) -> ca.SX:
    """Return the potential energy [J] in the robot's gravity, zero at the base frame's origin.

    Example:
        >>> from steelyard.physics import inertia_symbols, motion_symbols, potential_energy
        >>> robot = steelyard.load_robot("scara_2r")
        >>> potential_energy(robot, motion_symbols(robot)[0], inertia_symbols(robot)).shape
        (1, 1)
    """
    poses = body_poses(robot, joint_positions(robot, q, geometry))
    gravity = ca.SX(ca.DM(robot.gravity))
    energy = ca.SX(0)
    for row, pose in enumerate(poses[1:]):
        parameters = inertias[10 * row : 10 * row + 10]
        first_moment = pose.translation * parameters[9] + ca.mtimes(pose.rotation, parameters[6:9])
        energy -= ca.dot(gravity, first_moment)
    return energy


def direction(velocity: ca.SX, width: float | ca.SX = 0.0) -> ca.SX:
    """Return the sign of a velocity, or ``tanh(velocity / width)`` for a width above zero [rad/s or m/s], or a symbol.

    Example:
        >>> import casadi
        >>> from steelyard.physics import direction
        >>> float(casadi.evalf(direction(casadi.SX(-0.3))))
        -1.0
    """
    return ca.sign(velocity) if _is_exact(width) else ca.tanh(velocity / width)


def forward_part(velocity: ca.SX, width: float | ca.SX = 0.0) -> ca.SX:
    """Return 1 for motion forward, 0 for motion backward and at rest; smooth for a width above zero.

    Example:
        >>> import casadi
        >>> from steelyard.physics import forward_part
        >>> float(casadi.evalf(forward_part(casadi.SX(-0.3))))
        0.0
    """
    return velocity > 0 if _is_exact(width) else 0.5 * (1 + ca.tanh(velocity / width))


def _is_exact(width: float | ca.SX) -> bool:
    return not isinstance(width, ca.SX) and width == 0.0
