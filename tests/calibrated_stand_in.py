"""A calibrated arm that shares no code with the product's chain: plain numpy, and complex steps for derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.calibration.application.calibrated_arm import CalibratedArm, calibrated_arm
from steelyard.calibration.chain.problem import measured_problem
from steelyard.calibration.measurement.measurements import position_measurements
from steelyard.calibration.measurement.setup import CalibrationSetup, ElasticSetup, FrameSetup, MarkerSetup
from steelyard.calibration.records import Unknown
from steelyard.robot import Robot, transform_from_placement

STEP = 1e-30


def turned(axis, angle: np.ndarray) -> np.ndarray:
    """Return 4x4 rotations (N, 4, 4) by angles (N,) about a unit axis."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    matrices = np.zeros((len(angle), 4, 4), dtype=angle.dtype)
    matrices[:] = np.eye(4)
    matrices[:, :3, :3] += np.sin(angle)[:, None, None] * cross + (1 - np.cos(angle))[:, None, None] * (cross @ cross)
    return matrices


def shifted(axis, distance: np.ndarray) -> np.ndarray:
    """Return 4x4 translations (N, 4, 4) by distances (N,) along an axis."""
    matrices = np.zeros((len(distance), 4, 4), dtype=distance.dtype)
    matrices[:] = np.eye(4)
    matrices[:, :3, 3] = distance[:, None] * np.array(axis)
    return matrices


def placed(placement) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = transform_from_placement(placement)
    return matrix


@dataclass(frozen=True)
class NumpyChain:
    """A serial arm along x, y or z axes with six errors a joint, and a spring about every joint if required."""

    robot: Robot
    link: str
    springs: bool = True

    @property
    def parameters(self) -> tuple[Unknown, ...]:
        found = []
        for body in self.robot.bodies:
            own = "xyz"[int(np.argmax(np.abs(body.joint.axis)))]
            slides = body.joint.kind == "prismatic"
            for letter in ("x", "y", "z", "rx", "ry", "rz"):
                is_own = letter == (own if slides else f"r{own}")
                unit = "rad" if letter.startswith("r") else "m"
                name = f"offset{body.number}" if is_own else f"{letter}{body.number}"
                found.append(Unknown(name, "joint", unit, 0.0, f"{letter} of {body.joint.name}"))
        if self.springs:
            found += [
                Unknown(f"k{body.number}", "compliance", "rad/(N m)", 0.0, f"spring of {body.joint.name}")
                for body in self.robot.bodies
            ]
        return tuple(found)

    def matrices(self, values, q, wrench=None, point=None) -> np.ndarray:
        """Return the link's pose (N, 4, 4); values (p,) or (p, N), complex or not."""
        values = np.asarray(values).reshape(len(values), -1)
        coupling, offset = self.robot.coupling()
        positions = coupling @ q + offset[:, None]
        if self.springs and wrench is not None:
            positions = positions + self._bent(values, positions, wrench, np.zeros(3) if point is None else point)
        return self._frames(values, positions)[-1]

    def _frames(self, values, positions) -> list[np.ndarray]:
        frames = [np.eye(4)[None]]
        for row, body in enumerate(self.robot.bodies):
            error = values[6 * row : 6 * row + 6]
            axes = np.diag([1.0, 1.0, 1.0])
            own = int(np.argmax(np.abs(body.joint.axis)))
            axes[own] = body.joint.axis
            rest = placed(body.placement)
            for axis, amount in zip(axes, error[:3], strict=True):
                rest = rest @ shifted(axis, amount)
            for axis, amount in zip(axes, error[3:], strict=True):
                rest = rest @ turned(axis, amount)
            move = shifted if body.joint.kind == "prismatic" else turned
            frames.append(frames[-1] @ rest @ move(body.joint.axis, positions[row]))
        return [*frames[1:], frames[-1] @ placed(self.robot.frame(self.link).placement)]

    def _bent(self, values, positions, wrench, point) -> np.ndarray:
        """Return deflections (n, N) by the load at the undeflected posture."""
        frames = self._frames(values, positions)
        at = (frames[-1] @ np.array([*point, 1.0]))[:, :3]
        force, moment = wrench[:3].T, wrench[3:].T
        result = []
        for row, (body, frame) in enumerate(zip(self.robot.bodies, frames[:-1], strict=True)):
            axis = frame[:, :3, :3] @ np.array(body.joint.axis)
            torque = moment + np.cross(at - frame[:, :3, 3], force)
            effort = force if body.joint.kind == "prismatic" else torque
            result.append(values[6 * len(self.robot.bodies) + row] * (axis * effort).sum(axis=1))
        return np.array(result)

    def frame_pose(self, values, q, wrench, point):
        pose = np.real(self.matrices(values, q, wrench, point))
        return pose[:, :3, :3], pose[:, :3, 3]

    def frame_derivatives(self, values, q, wrench, point):
        size, samples = len(values), q.shape[1]
        moved = np.repeat(np.asarray(values, dtype=complex)[:, None], size * samples, axis=1)
        moved[np.repeat(np.arange(size), samples), np.arange(size * samples)] += 1j * STEP
        pull = None if wrench is None else np.tile(wrench, size)
        pose = self.matrices(moved, np.tile(q, size), pull, point)
        change, rotation = np.imag(pose) / STEP, np.real(pose)[:, :3, :3]
        spin = change[:, :3, :3] @ rotation.transpose(0, 2, 1)
        turn = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
        both = np.hstack([change[:, :3, 3], turn])
        return both.reshape(size, samples, 6).transpose(2, 0, 1)


def stand_in(robot: Robot, link: str, *, seed: int = 0, springs: bool = True, size: float = 1e-3) -> CalibratedArm:
    """Return an arm with seeded errors of some millimetres and milliradians, and a covariance with correlations."""
    chain, rng = NumpyChain(robot, link, springs), np.random.default_rng(seed)
    parameters = chain.parameters
    soft = np.array([parameter.group == "compliance" for parameter in parameters])
    values = np.where(soft, rng.uniform(1e-6, 3e-6, len(soft)), rng.normal(scale=size, size=len(soft)))
    sigma = np.where(soft, 1e-7, 5e-5)
    mixed = rng.normal(size=(len(soft), 3 * len(soft))) / np.sqrt(3 * len(soft))
    covariance = sigma[:, None] * (mixed @ mixed.T) * sigma
    return CalibratedArm(robot, link, parameters, values, covariance, chain.frame_pose, chain.frame_derivatives)


def product_arm(robot, link, *, size=2e-3, seed=0, springs=()) -> CalibratedArm:
    """Return an arm by the product's own chain, with seeded errors and springs in the named joints."""
    here = FrameSetup((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), known=True)
    marker = MarkerSetup("m", (0.0, 0.0, 0.0), known=True)
    setup = CalibrationSetup(link=link, base=here, markers=(marker,), elastic=ElasticSetup(joints=springs))
    joints = [body.joint.name for body in robot.actuated]
    problem = measured_problem(
        robot, setup, position_measurements(joints, np.zeros((len(joints), 1)), np.zeros((1, 1, 3)), ("m",))
    )
    soft = np.array([parameter.group == "compliance" for parameter in problem.parameters])
    rng = np.random.default_rng(seed)
    values = np.where(soft, 1e-6, rng.choice([-1.0, 1.0], len(soft)) * rng.uniform(0.2, 1.0, len(soft)) * size)
    return calibrated_arm(problem, values, np.eye(len(values)) * 1e-12)
