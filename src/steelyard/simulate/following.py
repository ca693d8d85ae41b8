"""A motion followed part by part: arm, controller and waiting commands go on where the part before ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SimulationError
from ..progress import Progress, silent
from ..text import short_repr
from .compiled_plant import CompiledStep, LoopState
from .divergence import FAR, departures
from .outline import Outline


@dataclass(frozen=True, eq=False)
class ModelRun:
    """What a model does in closed loop, one column for every vector of values, at the recording's instants.

    Attributes:
        q: Positions (C, n, N).
        qd: Velocities (C, n, N).
        qdd: Accelerations (C, n, N).
        motor_torque: Commanded torques (C, n, N).
        joint_torque: Torques on the link side (C, n, N).
    """

    __repr__ = short_repr

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    motor_torque: np.ndarray
    joint_torque: np.ndarray


class Following:
    """A motion followed part by part, from rest relative to its first instant. Make one with :meth:`ModelLoop.begin`.

    Args:
        step: The compiled step.
        parameters: As the step has them (np, C).
        outline: Outline of the whole motion.
        every: Control periods between two samples of the recording.
    """

    def __init__(self, step: CompiledStep, parameters: np.ndarray, outline: Outline, every: int) -> None:
        self._step, self._parameters, self._outline, self._every = step, parameters, outline, every
        count = parameters.shape[1]
        self._names = [f"with parameters {c + 1}" if count > 1 else "of the model" for c in range(count)]
        self._state: LoopState | None = None

    def follow(
        self,
        reference: np.ndarray,
        disturbance: np.ndarray | None = None,
        threads: int = 1,
        progress: Progress = silent,
    ) -> ModelRun:
        """Return what the arm does in the next part of the motion; arm, controller and waiting commands are carried on.

        Args:
            reference: q, qd, qdd at the next control instants (3 n, K); K is a multiple of the recording's period.
            disturbance: Torques that act on the motors and that the controller does not know (n, K); None for none.
            threads: Threads that share the runs.
            progress: Told how far this part is.

        Raises:
            SimulationError: If the loop diverges.
        """
        names, size = self._names, len(self._outline.middle)
        check_reference(reference, size, self._every)
        pushed = None if disturbance is None else np.broadcast_to(disturbance, (len(names), *disturbance.shape))
        before = self._state or self._step.start(reference, len(names))
        self._state, outputs = self._step.run(
            before, reference, self._parameters, pushed, names, threads=threads, progress=progress
        )
        told = reference[:size, :: self._every]
        _check_follows(outputs[:, :size], told, self._outline.span, names)
        outputs.setflags(write=False)
        return ModelRun(*(outputs[:, k * size : (k + 1) * size] for k in range(5)))


def check_reference(reference: np.ndarray, joints: int, every: int) -> None:
    """Raise a SimulationError unless a reference has rows q, qd, qdd of all joints and whole samples."""
    shape = reference.shape
    if reference.ndim != 2 or shape[0] != 3 * joints or not shape[1] or shape[1] % every:
        raise SimulationError(
            f"reference: got shape {shape}, needed are {3 * joints} rows (q, qd, qdd), a multiple of {every} columns"
        )
    if not np.isfinite(reference).all():
        raise SimulationError("reference: got values that are no finite numbers; cut these samples out")


def _check_follows(q: np.ndarray, reference: np.ndarray, span: np.ndarray, names: Sequence[str]) -> None:
    worst = departures(q, reference, span)
    lost = int(np.argmax(worst))
    if not worst[lost] <= FAR:
        raise SimulationError(
            f"the simulation {names[lost]} diverged: it left its reference by {worst[lost]:.3g} times the "
            "motion's width; give the gains of the real controller, or other start values"
        )
