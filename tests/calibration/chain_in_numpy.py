"""The measured chain a second time, in plain numpy with 4x4 matrices: shares no code with the product's graph.

Complex numbers pass through, so that derivatives come by the complex step. Springs load by load: each force is taken
through its point of attack, no wrench is accumulated.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from independent import homogeneous
from steelyard.calibration.measurement.setup import CalibrationSetup
from steelyard.robot import Body, ElementaryMotion, Robot, transform_from_placement

AXES = np.eye(3)


def named_directions(body: Body) -> dict[str, np.ndarray]:
    """Return x, y, z with the joint's own axis among them, or u, v, w for a joint along none of these."""
    axis = np.array(body.joint.axis)
    for k, letter in enumerate("xyz"):
        if abs(abs(axis[k]) - 1) < 1e-12:
            return {name: axis if name == letter else AXES[j] for j, name in enumerate("xyz")}
    least = int(np.argmin(np.abs(axis)))
    u = np.cross(axis, AXES[least])
    u = u / np.sqrt(u @ u)
    return {"u": u, "v": np.cross(axis, u), "w": axis}


def is_own(body: Body, direction: np.ndarray) -> bool:
    return bool(np.allclose(direction, body.joint.axis))


def turn(axis: np.ndarray, angle: complex) -> np.ndarray:
    return homogeneous(ElementaryMotion("rotate", (axis[0], axis[1], axis[2]), 0.0, ""), angle)


def shift(vector: np.ndarray) -> np.ndarray:
    matrix = np.eye(4, dtype=complex)
    matrix[:3, 3] = vector
    return matrix


def error_matrix(body: Body, value: dict[str, complex]) -> np.ndarray:
    """Return Trans(x, y, z) Rot_x Rot_y Rot_z of a joint's errors, by name; names that are absent are zero."""
    letters, slides, number = named_directions(body), body.joint.kind == "prismatic", body.number
    matrix = np.eye(4, dtype=complex)
    for letter, axis in letters.items():
        name = f"offset{number}" if slides and is_own(body, axis) else f"{letter}{number}"
        matrix = matrix @ shift(axis * value.get(name, 0.0))
    for letter, axis in letters.items():
        name = f"offset{number}" if not slides and is_own(body, axis) else f"r{letter}{number}"
        matrix = matrix @ turn(axis, value.get(name, 0.0))
    return matrix


def frame_matrix(frame: str, numbers: np.ndarray, value: dict[str, complex]) -> np.ndarray:
    matrix = np.eye(4, dtype=complex)
    matrix[:3, :3] = numbers[:9].reshape(3, 3)
    matrix[:3, 3] = numbers[9:] + np.array([value.get(f"{frame}_{letter}", 0.0) for letter in "xyz"])
    for k, letter in enumerate("xyz"):
        matrix = matrix @ turn(AXES[k], value.get(f"{frame}_r{letter}", 0.0))
    return matrix


def placed(placement: tuple[ElementaryMotion, ...]) -> np.ndarray:
    matrix = np.eye(4, dtype=complex)
    matrix[:3, :3], matrix[:3, 3] = transform_from_placement(placement)
    return matrix


class NumpyChain:
    """The chain at one posture under one load."""

    def __init__(self, robot: Robot, setup: CalibrationSetup, q: np.ndarray, wrench: np.ndarray, load: np.ndarray):
        self.robot, self.setup, self.wrench, self.load = robot, setup, wrench, load
        matrix, offset = robot.coupling()
        self.positions = matrix @ q + offset
        self.behind = {body.number: self._ancestors(body.number) for body in robot.bodies}
        self.chain = self.behind.get(robot.frame(setup.link).body, [])

    def _ancestors(self, number: int) -> list[int]:
        found = []
        while number:
            found.append(number)
            number = self.robot.bodies[number - 1].parent
        return found[::-1]

    def poses(self, value: dict[str, complex], bent: dict[tuple[int, str], complex]) -> dict[int, np.ndarray]:
        poses = {0: np.eye(4, dtype=complex)}
        for body in self.robot.bodies:
            matrix = poses[body.parent] @ placed(body.placement)
            if body.number in self.chain:
                matrix = matrix @ error_matrix(body, value)
            matrix = matrix @ homogeneous(body.joint.motion(0.0), self.positions[body.number - 1])
            matrix = matrix @ homogeneous(body.joint.motion(0.0), bent.get((body.number, "own"), 0.0))
            for letter, axis in named_directions(body).items():
                matrix = matrix @ turn(axis, bent.get((body.number, letter), 0.0))
            poses[body.number] = matrix
        return poses

    def link(self, poses: dict[int, np.ndarray]) -> np.ndarray:
        frame = self.robot.frame(self.setup.link)
        return poses[frame.body] @ placed(frame.placement)

    def forces(self, poses: dict[int, np.ndarray], value: dict[str, complex]):
        """Yield body that bears it, point, force and moment of everything that pulls, in base axes."""
        link = self.link(poses)
        yield self.chain[-1], (link @ np.array([*self.load, 1.0]))[:3], self.wrench[:3], self.wrench[3:]
        if self.setup.elastic.own_weight == "none":
            return
        for body in self.robot.bodies:
            moments = self._moments(body, value)
            if not np.any(moments):
                continue
            gravity = np.array(self.robot.gravity)
            # The weight at the frame's origin, and the moment of the rest about it.
            lever = poses[body.number][:3, :3] @ moments[:3]
            yield body.number, poses[body.number][:3, 3], moments[3] * gravity, np.cross(lever, gravity)

    def _moments(self, body: Body, value: dict[str, complex]) -> np.ndarray:
        if self.setup.elastic.own_weight == "unknown":
            return np.array([value.get(f"{name}{body.number}", 0.0) for name in ("MX", "MY", "MZ", "M")])
        return np.array(body.inertia)[6:10]

    def compliance(self, body: Body, value: dict[str, complex]) -> complex:
        nodes = self.setup.elastic.nodes.get(body.joint.name)
        if not nodes:
            return value.get(f"k{body.number}", 0.0)
        values = [value[f"k{body.number}{k}"] for k in range(1, len(nodes) + 1)]
        at = self.positions[body.number - 1]
        if self.setup.elastic.between == "nearest":
            return min(zip(nodes, values, strict=True), key=lambda pair: abs(pair[0] - at))[1]
        pairs = sorted(zip(nodes, values, strict=True), key=lambda pair: pair[0])
        if at <= pairs[0][0] or at >= pairs[-1][0]:
            return pairs[0][1] if at <= pairs[0][0] else pairs[-1][1]
        for (low, first), (high, last) in pairwise(pairs):
            if low <= at <= high:
                return first + (last - first) * (at - low) / (high - low)
        raise AssertionError(at)

    def deflections(self, poses: dict[int, np.ndarray], value: dict[str, complex]) -> dict[tuple[int, str], complex]:
        bent: dict[tuple[int, str], Any] = {}
        loads = list(self.forces(poses, value))
        for number in self.chain:
            body, pose = self.robot.bodies[number - 1], poses[number]
            borne = [load for load in loads if number in self.behind[load[0]]]
            force = sum((load[2] for load in borne), np.zeros(3))
            moment = sum((load[3] + np.cross(load[1] - pose[:3, 3], load[2]) for load in borne), np.zeros(3))
            own = pose[:3, :3] @ np.array(body.joint.axis)
            if body.joint.name in (*self.setup.elastic.joints, *self.setup.elastic.known):
                effort = force if body.joint.kind == "prismatic" else moment
                bent[number, "own"] = self.compliance(body, value) * (own @ effort)
            if body.joint.name in self.setup.elastic.lateral:
                for letter, axis in named_directions(body).items():
                    if not is_own(body, axis):
                        bent[number, letter] = value[f"k{number}{letter}"] * (pose[:3, :3] @ axis @ moment)
        return bent

    def link_pose(self, value: dict[str, complex], passes: int = 2) -> np.ndarray:
        """Return the 4x4 pose of the measured link in the base frame."""
        bent: dict[tuple[int, str], complex] = {}
        for _ in range(passes):
            bent = self.deflections(self.poses(value, bent), value)
        return self.link(self.poses(value, bent))
