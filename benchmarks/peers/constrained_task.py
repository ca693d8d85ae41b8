"""The constrained design that the peers search: its limits at given instants, by Pinocchio."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]
from scipy import linalg

from benchmarks.peers.information import Question, fourier_basis, question
from benchmarks.peers.pinocchio_logdet import PinocchioLogDet
from steelyard.motion import MotionLimits, limits_of

Criterion = Literal["logdet", "logcond"]
Rows = Literal["samples", "peaks"]

_DRIVE = ("Ia", "Fvm", "Fcm", "offm")


@dataclass(frozen=True, eq=False)
class DesignTask:
    """What is designed, under which limits.

    Attributes:
        requested: Columns, instants and weights of the criterion.
        limits: Positions, velocities and accelerations; infinite where there is none. Jerk is not looked at.
        torque: Largest motor torques (n,), infinite where there is none [N m].
        criterion: ``logdet``: log det of the information; ``logcond``: log of the condition number of the base columns.
        rows: ``samples``: a constraint for each limit at each sample; ``peaks``: for each limit its worst sample.
    """

    requested: Question
    limits: MotionLimits
    torque: np.ndarray
    criterion: Criterion = "logdet"
    rows: Rows = "samples"


@dataclass(frozen=True, eq=False)
class Bounds:
    """How far a motion is from its limits. Make one with :meth:`of`.

    Attributes:
        task: The task.
        drive: Ia, viscous and Coulomb friction and offset of each joint (4, n), as the robot's description has them.
    """

    task: DesignTask
    drive: np.ndarray

    @classmethod
    def of(cls, task: DesignTask) -> Bounds:
        """Return the limits of a task; what the description does not tell is zero."""
        values = task.requested.model.robot.values
        names = range(1, len(task.torque) + 1)
        return cls(task, np.array([[values.get(f"{name}{k}", 0.0) for k in names] for name in _DRIVE]))

    def torques(self, requested: Question, peer: PinocchioLogDet, X: np.ndarray) -> np.ndarray:
        """Return motor torques (n, N): Pinocchio's inverse dynamics, drive inertia and friction."""
        q, qd, qdd = requested.motion(X)
        rows = [np.ascontiguousarray(part.T) for part in (q, qd, qdd)]
        rigid = np.array([pin.rnea(peer.model, peer.data, *sample) for sample in zip(*rows, strict=True)]).T
        inertia, viscous, coulomb, offset = self.drive[:, :, None]
        return rigid + inertia * qdd + viscous * qd + coulomb * np.tanh(qd / requested.model.sign_width) + offset

    def margins(self, requested: Question, peer: PinocchioLogDet, X: np.ndarray) -> np.ndarray:
        """Return the relative margins (limits, N) of all finite limits."""
        q, qd, qdd = requested.motion(X)
        limits = self.task.limits
        signed = [(q, limits.lower, -1.0), (q, limits.upper, 1.0)]
        rated = [(qd, limits.velocity), (qdd, limits.acceleration)]
        if np.isfinite(self.task.torque).any():
            rated.append((self.torques(requested, peer, X), self.task.torque))
        signed += [(part, sign * limit, sign) for part, limit in rated for sign in (-1.0, 1.0)]
        margins = []
        for part, limit, sign in signed:
            held = np.isfinite(limit)
            size = np.maximum(np.abs(limit[held]), 1e-3)[:, None]
            margins.append(sign * (limit[held, None] - part[held]) / size)
        return np.vstack(margins)


def criterion_of(task: DesignTask, peer: PinocchioLogDet, X: np.ndarray) -> float:
    """Return log det of the information, or log cond of the weighted base columns."""
    if task.criterion == "logdet":
        return peer.value(X)
    W = peer.regressor(X) * task.requested.weights[:, None]
    return float(np.log(np.linalg.cond(W.reshape(-1, W.shape[2]))))


def start_at_rest(basis: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (m, m - 2) of the series with zero velocity and acceleration at the first instant."""
    rates = basis[1:, :, 0]
    return linalg.null_space(rates / np.linalg.norm(rates, axis=1, keepdims=True))


def excess_between(task: DesignTask, X: np.ndarray, period: float, instants: int = 10_000) -> float:
    """Return by how much, relative to a limit, the motion breaks one when looked at much more often than designed."""
    basis = fourier_basis((task.requested.basis.shape[1] - 1) // 2, period, np.arange(instants) * period / instants)
    often = replace(task.requested, basis=basis)
    return max(0.0, -float(Bounds.of(task).margins(often, PinocchioLogDet(often), X).min()))


def task_for(robot: str = "ur10e", samples: int = 100, period: float = 10.0, acceleration: float = 10.0) -> DesignTask:
    """Return the task of an arm of the catalogue: its own limits, its efforts, a common limit of acceleration."""
    requested = question(robot, 5, samples, period)
    limits = limits_of(requested.model.robot)
    limits = replace(limits, acceleration=np.minimum(limits.acceleration, acceleration))
    torque = np.array([body.joint.limits.effort for body in requested.model.robot.actuated])
    return DesignTask(requested, limits, torque)
