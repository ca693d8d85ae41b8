"""Runs as columns of one compiled loop over time.

When a simulated run is of no use: its numbers end, or the arm is nowhere near the motion it was told to follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SimulationError
from ..kernel import compile_loop
from ..progress import Progress, silent
from .experiment import noise_of_seed
from .plant import step_function
from .tuning import ClosedLoop

FAR = 3.0
"""A loop that is more widths of the motion than this away from its reference has lost it."""

OnLost = Callable[[int, str], None]
"""Told which run diverged, and why, in words that follow the run's name."""


def divergence(time: float) -> str:
    """Return why a run whose numbers ended before a time [s] is of no use, and what helps."""
    return f"diverged before {time:.2f} s; lower the gains or the disturbance, or raise the plant_rate"


def departures(q: np.ndarray, reference: np.ndarray, span: np.ndarray | None = None) -> np.ndarray:
    """Return how far each run went from its reference (C,), in widths of the motion: its range and 1 rad or m.

    Args:
        q: Positions of every run (C, n, N).
        reference: Commanded positions (n, N).
        span: Range of the whole motion (n,), where the reference is a part of it.
    """
    width = 1.0 + (np.ptp(reference, axis=1) if span is None else span)
    return (np.abs(q - reference).max(axis=2) / width).max(axis=1)


# Seeds that run together, and control periods whose inputs are laid out at once: some tens of megabytes.
_SEEDS_TOGETHER = 144
_PERIODS_TOGETHER = 1000


@dataclass(frozen=True, eq=False)
class LoopState:
    """Where a run is: the state of arm and controller of every column (states, C), and the control periods before."""

    values: np.ndarray
    periods: int


class CompiledStep:
    """An arm in closed loop, compiled once for any number of columns.

    Args:
        loop: Model, controller and rates; its parameters and its motion are not used.
    """

    def __init__(self, loop: ClosedLoop) -> None:
        step, self._layout = step_function(loop.model, loop.experiment, loop.settings.plant_rate)
        self._loop = compile_loop(step)
        self._every, self._rate = loop.experiment.record_every, loop.experiment.control_rate
        self._substeps = loop.substeps

    def start(self, reference: np.ndarray, columns: int) -> LoopState:
        """Return the state of columns at rest relative to the first column of a reference (3 n, K)."""
        n = self._layout.joints
        start = np.zeros((self._layout.states, 1))
        start[: 2 * n, 0] = reference[: 2 * n, 0]
        start[4 * n : 6 * n, 0] = reference[: 2 * n, 0]
        start[-1] = -1
        return LoopState(np.repeat(start, columns, axis=1), 0)

    def run(
        self,
        state: LoopState,
        reference: np.ndarray,
        parameters: np.ndarray,
        disturbance: np.ndarray | None,
        names: Sequence[str],
        threads: int = 1,
        progress: Progress = silent,
        on_lost: OnLost | None = None,
    ) -> tuple[LoopState, np.ndarray]:
        """Follow a motion, or a part of one; return where it ends, and what every column did.

        That is q, qd, qdd, motor torque and joint torque (C, 5 n, N) at the recording's instants. Parts one after the
        other give the bits of the whole: arm, controller and waiting commands go on where the part before ended.

        Args:
            state: Where to begin: :meth:`start`, or where the part before ended.
            reference: q, qd, qdd at the control instants (3 n, K); K is a multiple of the recording's period.
            parameters: As the step function has them, (np,) or (np, C).
            disturbance: Torques that act on the motors (C, n, K); None for none.
            names: What messages call each of the C columns.
            threads: Threads that share the columns.
            progress: Progress callback of the run.
            on_lost: Told the number of each column that diverges, whose outputs then mean nothing; the others run on as
                if it were not there. Without it, the first ends the run.

        Raises:
            SimulationError: If a column diverges and nobody is to be told.
        """
        periods, every = reference.shape[1], self._every
        piece = max(1, _PERIODS_TOGETHER // every) * every
        values, recorded = state.values, []
        lost = ~np.isfinite(values).all(axis=0)
        for first in range(0, periods, piece):
            stop = min(first + piece, periods)
            values, output = self._loop(
                values,
                self._inputs(reference[:, first:stop], None if disturbance is None else disturbance[:, :, first:stop]),
                parameters,
                record_every=every * self._substeps,
                input_hold=self._substeps,
                threads=threads,
            )
            diverged = ~np.isfinite(values).all(axis=0)
            for column in np.flatnonzero(diverged & ~lost):
                _report(int(column), divergence((state.periods + stop) / self._rate), names, on_lost)
            lost |= diverged
            recorded.append(output)
            progress(stop, periods)
        return LoopState(values, state.periods + periods), np.concatenate(recorded).transpose(2, 1, 0)

    def _inputs(self, reference: np.ndarray, disturbance: np.ndarray | None) -> np.ndarray:
        """Return reference and disturbance of some control periods: (K, 4 n) for all columns, or (K, 4 n, C)."""
        if disturbance is None:
            return np.concatenate([reference.T, np.zeros((reference.shape[1], self._layout.joints))], axis=1)
        shared = np.broadcast_to(reference.T[:, :, None], (*reference.T.shape, len(disturbance)))
        return np.concatenate([shared, disturbance.transpose(2, 1, 0)], axis=1)


class CompiledPlant:
    """An arm in closed loop with its own parameters, compiled once for any number of seeds."""

    def __init__(self, loop: ClosedLoop) -> None:
        settings = loop.settings
        self._step = CompiledStep(loop)
        self._parameters = np.concatenate(
            [loop.values, loop.values, settings.kp, settings.kd, settings.effort, settings.quantum]
        )
        self._experiment, self._reference = loop.experiment, loop.reference

    def run(self, seeds: tuple[int, ...], threads: int, progress: Progress, on_lost: OnLost) -> np.ndarray:
        """Return q, qd, qdd, motor torque, joint torque of every seed (S, 5 n, N); of those lost they mean nothing."""
        groups = [seeds[k : k + _SEEDS_TOGETHER] for k in range(0, len(seeds), _SEEDS_TOGETHER)]
        outputs = []
        for index, group in enumerate(groups):

            def report(done: float, total: float, index: int = index) -> None:
                progress(index + done / total, len(groups))

            outputs.append(self._run_group(group, threads, report, on_lost))
        return np.concatenate(outputs)

    def _run_group(self, seeds: tuple[int, ...], threads: int, progress: Progress, on_lost: OnLost) -> np.ndarray:
        experiment, (rows, periods) = self._experiment, self._reference.shape
        rate = experiment.control_rate
        disturbance = np.stack(
            [noise_of_seed(experiment.disturbance, "disturbance", seed, rows // 3, periods, rate) for seed in seeds]
        )
        names = [f"of seed {seed}" for seed in seeds]

        def lost(column: int, why: str) -> None:
            on_lost(seeds[column], why)

        start = self._step.start(self._reference, len(seeds))
        return self._step.run(start, self._reference, self._parameters, disturbance, names, threads, progress, lost)[1]


def _report(column: int, why: str, names: Sequence[str], on_lost: OnLost | None) -> None:
    if on_lost is None:
        raise SimulationError(f"the simulation {names[column]} {why}")
    on_lost(column, why)
