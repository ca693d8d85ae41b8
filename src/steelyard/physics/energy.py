"""Kinetic and potential energy of an arm, linear in the inertial parameters."""

from __future__ import annotations

import casadi as ca

from ..robot import Robot
from .geometry import Geometry
from .kinematics import body_poses, joint_positions, joint_rates


def kinetic_energy(robot: Robot, q: ca.SX, qd: ca.SX, inertias: ca.SX, geometry: Geometry | None = None) -> ca.SX:
    """Return the kinetic energy [J]: the sum of ``1/2 w.Iw + v.(w x ms) + 1/2 M v.v`` over the bodies."""
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
    """Return the potential energy [J] in the robot's gravity, zero at the base frame's origin."""
    poses = body_poses(robot, joint_positions(robot, q, geometry))
    gravity = ca.SX(ca.DM(robot.gravity))
    energy = ca.SX(0)
    for row, pose in enumerate(poses[1:]):
        parameters = inertias[10 * row : 10 * row + 10]
        first_moment = pose.translation * parameters[9] + ca.mtimes(pose.rotation, parameters[6:9])
        energy -= ca.dot(gravity, first_moment)
    return energy
