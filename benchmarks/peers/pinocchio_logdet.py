"""The same log det from Pinocchio's regressor in a Python loop, and its gradient by finite differences."""

from __future__ import annotations

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]

from benchmarks.peers.information import Question
from steelyard.robot import Robot, inertia_from_parameters, transform_from_placement

STEP = 1e-7
# Pinocchio's ten parameters are m, m c, Ixx Ixy Iyy Ixz Iyz Izz; ours XX XY XZ YY YZ ZZ MX MY MZ M.
_THEIRS = (4, 5, 7, 6, 8, 9, 1, 2, 3, 0)
_ALIGNED = {
    (1.0, 0.0, 0.0): pin.JointModelRX,
    (0.0, 1.0, 0.0): pin.JointModelRY,
    (0.0, 0.0, 1.0): pin.JointModelRZ,
}


def pinocchio_arm(robot: Robot) -> pin.Model:
    """Return a serial arm of revolute joints in Pinocchio, with its inertias where they are known."""
    model = pin.Model()
    model.gravity.linear = np.array(robot.gravity)
    parent = 0
    for body in robot.bodies:
        rotation, translation = transform_from_placement(body.placement)
        aligned = _ALIGNED.get(body.joint.axis)
        joint = aligned() if aligned else pin.JointModelRevoluteUnaligned(np.array(body.joint.axis))
        parent = model.addJoint(parent, joint, pin.SE3(rotation, translation), body.joint.name)
        if body.inertia is not None and body.inertia[9] > 0:
            inertia, moment, mass = inertia_from_parameters(np.array(body.inertia))
            centre = moment / mass
            about_centre = inertia - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
            model.appendBodyToJoint(parent, pin.Inertia(mass, centre, about_centre), pin.SE3.Identity())
    return model


class PinocchioLogDet:
    """log det and its gradient by forward differences.

    Args:
        requested: The question.
    """

    def __init__(self, requested: Question) -> None:
        self.requested = requested
        self.model = pinocchio_arm(requested.model.robot)
        self.data = self.model.createData()
        self.columns = np.array([10 * (column // 10) + _THEIRS[column % 10] for column in requested.inertial])

    def regressor(self, X: np.ndarray) -> np.ndarray:
        """Return the base columns (N, n, c), not weighted."""
        q, qd, qdd = self.requested.motion(X)
        rows = [np.ascontiguousarray(part.T) for part in (q, qd, qdd)]
        inertial = np.empty((q.shape[1], len(q), 10 * len(q)))
        for k, (position, velocity, acceleration) in enumerate(zip(*rows, strict=True)):
            inertial[k] = pin.computeJointTorqueRegressor(self.model, self.data, position, velocity, acceleration)
        W = np.zeros((q.shape[1], len(q), len(self.requested.base.base_columns)))
        W[:, :, : len(self.columns)] = inertial[:, :, self.columns]
        entries = {"Ia": qdd, "Fv": qd, "Fc": np.tanh(qd / self.requested.model.sign_width), "off": np.ones_like(qd)}
        for place, (kind, joint) in enumerate(self.requested.drive, start=len(self.columns)):
            W[:, joint, place] = entries[kind][joint]
        return W

    def information(self, X: np.ndarray) -> np.ndarray:
        """Return the information matrix (c, c)."""
        W = self.regressor(X) * self.requested.weights[:, None]
        rows = W.reshape(-1, W.shape[2])
        return rows.T @ rows

    def value(self, X: np.ndarray) -> float:
        """Return log det; -inf where the matrix is singular."""
        sign, size = np.linalg.slogdet(self.information(X))
        return float(size) if sign > 0 else -np.inf

    def value_and_gradient(self, X: np.ndarray) -> tuple[float, np.ndarray]:
        """Return log det and its gradient by X (n, m): one evaluation more than there are coefficients."""
        value, gradient = self.value(X), np.empty(X.size)
        for k in range(X.size):
            moved = X.copy()
            moved.flat[k] += STEP
            gradient[k] = (self.value(moved) - value) / STEP
        return value, gradient.reshape(X.shape)
