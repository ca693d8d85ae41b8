"""A calibration as one would write it by hand: Pinocchio's kinematics in a Python loop, scipy's least squares.

Each joint is a spherical one of Pinocchio, turned by its angle and its springs: then the transposed Jacobian gives the
moments about all three axes of every link at once. What can be done for all postures together is done by numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
from scipy.optimize import OptimizeResult, least_squares
from scipy.spatial.transform import Rotation

from steelyard.calibration import CalibrationSetup, Measurements
from steelyard.robot import Robot, transform_from_placement

SPRINGS = (("", 2), ("x", 0), ("y", 1))
"""Letters and axes of a joint's springs, in the order in which they turn."""

LOAD_PASSES = 2


class PinocchioCalibration:
    """Residuals of marker positions of a serial arm about z axes, by named unknowns.

    Args:
        robot: The arm: revolute joints about the z axes of their frames.
        setup: Markers, loads at one common point, springs; the base starts at the origin.
        measurements: Positions of all markers at every posture, posture by posture.
        names: Names of the unknowns that are fitted (k).
    """

    def __init__(self, robot: Robot, setup: CalibrationSetup, measurements: Measurements, names: Sequence[str]) -> None:
        markers = len(setup.markers)
        self.names, self.bodies = {name: k for k, name in enumerate(names)}, robot.bodies
        self.q = np.ascontiguousarray(measurements.q[:, ::markers].T)
        self.measured = measurements.value.reshape(len(self.q), markers, 3)
        self.markers = np.array([marker.position for marker in setup.markers], dtype=float)
        self.marker_names = [marker.name for marker in setup.markers]
        self.springs = self._springs(setup)
        self.wrench = self._wrenches(setup, measurements.load[::markers])
        self._build(robot, setup)

    def _build(self, robot: Robot, setup: CalibrationSetup) -> None:
        self.model, parent = pin.Model(), 0
        for body in robot.bodies:
            if body.joint.axis != (0.0, 0.0, 1.0) or body.joint.kind != "revolute" or body.parent != parent:
                raise ValueError(f"{body.joint.name}: only serial arms about z axes are written out here")
            place = pin.SE3(*transform_from_placement(body.placement))
            parent = self.model.addJoint(parent, pin.JointModelSpherical(), place, body.joint.name)
        self.placements = [placement.copy() for placement in self.model.jointPlacements]
        link = pin.SE3(*transform_from_placement(robot.frame(setup.link).placement))
        point = setup.loads[0].point if setup.loads else (0.0, 0.0, 0.0)
        at = link * pin.SE3(np.eye(3), np.array(point))
        self.link = self.model.addFrame(pin.Frame("link", parent, link, pin.FrameType.OP_FRAME))
        self.load_point = self.model.addFrame(pin.Frame("load", parent, at, pin.FrameType.OP_FRAME))
        self.data = self.model.createData()

    def _springs(self, setup: CalibrationSetup) -> list[tuple[int, str, np.ndarray | None]]:
        """Return, for each compliance, its place among 3 n virtual springs, its name and where it counts (N,)."""
        found: list[tuple[int, str, np.ndarray | None]] = []
        for row, body in enumerate(self.bodies):
            for letter, axis in SPRINGS:
                nodes = np.array(setup.elastic.nodes.get(body.joint.name, ())) if not letter else np.zeros(0)
                name = f"k{body.number}{letter}"
                if not len(nodes):
                    found.append((3 * row + axis, name, None))
                    continue
                nearest = np.abs(self.q[:, row, None] - nodes).argmin(axis=1)
                found += [(3 * row + axis, f"{name}{k + 1}", nearest == k) for k in range(len(nodes))]
        return [each for each in found if each[1] in self.names]

    def _wrenches(self, setup: CalibrationSetup, load: np.ndarray) -> np.ndarray:
        wrenches = np.array([[*each.force, *each.moment] for each in setup.loads] or [[0.0] * 6])
        return np.where(load[:, None] >= 0, wrenches[load], 0.0)

    def residual(self, x: np.ndarray) -> np.ndarray:
        """Return measured minus predicted (9 N,): all x, then all y, then all z."""
        for row, body in enumerate(self.bodies):
            self.model.jointPlacements[row + 1] = self.placements[row + 1] * self._error(x, body.number)
        bent = np.zeros((len(self.q), 3 * len(self.bodies)))
        compliance = self._compliances(x)
        for _ in range(LOAD_PASSES if self.springs else 0):
            bent = compliance * self._moments(self._turned(bent))
        rotation, position = self._poses(self._turned(bent))
        points = position[:, None] + np.einsum("nij,mj->nmi", rotation, self._markers(x))
        base = Rotation.from_euler("XYZ", self._three(x, "base_rx", "base_ry", "base_rz")).as_matrix()
        predicted = points @ base.T + self._three(x, "base_x", "base_y", "base_z")
        return (self.measured - predicted).transpose(2, 0, 1).ravel()

    def fit(self, start: np.ndarray, method: Literal["trf", "lm"]) -> OptimizeResult:
        """Return what scipy finds with its own settings and finite differences."""
        return least_squares(self.residual, start, method=method)

    def _value(self, x: np.ndarray, name: str) -> float:
        return float(x[self.names[name]]) if name in self.names else 0.0

    def _three(self, x: np.ndarray, *names: str) -> np.ndarray:
        return np.array([self._value(x, name) for name in names])

    def _markers(self, x: np.ndarray) -> np.ndarray:
        unknown = [all(f"{c}[{name}]" in self.names for c in "xyz") for name in self.marker_names]
        values = [self._three(x, *(f"{c}[{name}]" for c in "xyz")) for name in self.marker_names]
        return np.where(np.array(unknown)[:, None], values, self.markers)

    def _error(self, x: np.ndarray, number: int) -> pin.SE3:
        shift = self._three(x, *(f"{letter}{number}" for letter in "xyz"))
        turn = self._three(x, f"rx{number}", f"ry{number}", f"offset{number}")
        return pin.SE3(Rotation.from_euler("XYZ", turn).as_matrix(), shift)

    def _compliances(self, x: np.ndarray) -> np.ndarray:
        result = np.zeros((len(self.q), 3 * len(self.bodies)))
        for place, name, where in self.springs:
            rows = slice(None) if where is None else where
            result[rows, place] = x[self.names[name]]
        return result

    def _turned(self, bent: np.ndarray) -> np.ndarray:
        """Return the joints' quaternions (N, 4 n): ``Rot_z(q + bent_z) Rot_x(bent_x) Rot_y(bent_y)``."""
        about = bent.reshape(len(self.q), -1, 3)
        z, x, y = (part / 2 for part in (self.q + about[:, :, 2], about[:, :, 0], about[:, :, 1]))
        cx, sx, cy, sy, cz, sz = np.cos(x), np.sin(x), np.cos(y), np.sin(y), np.cos(z), np.sin(z)
        # Quaternion of Rot_x Rot_y, then Rot_z before it.
        w, i, j, k = cx * cy, sx * cy, cx * sy, sx * sy
        turned = np.stack([cz * i - sz * j, cz * j + sz * i, cz * k + sz * w, cz * w - sz * k], axis=2)
        return turned.reshape(len(self.q), -1)

    def _moments(self, turned: np.ndarray) -> np.ndarray:
        """Return the moments of the loads about all axes of all links (N, 3 n)."""
        model, data, frame, wrench = self.model, self.data, self.load_point, self.wrench
        aligned, result = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED, np.empty((len(turned), model.nv))
        for k, quaternions in enumerate(turned):
            result[k] = wrench[k] @ pin.computeFrameJacobian(model, data, quaternions, frame, aligned)
        return result

    def _poses(self, turned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rotations (N, 3, 3) and positions (N, 3) of the measured link."""
        model, data, frame = self.model, self.data, self.link
        rotation, position = np.empty((len(turned), 3, 3)), np.empty((len(turned), 3))
        for k, quaternions in enumerate(turned):
            pin.forwardKinematics(model, data, quaternions)
            pose = pin.updateFramePlacement(model, data, frame)
            rotation[k], position[k] = pose.rotation, pose.translation
        return rotation, position
