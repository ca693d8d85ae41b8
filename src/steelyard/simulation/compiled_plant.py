"""The compiled plant: simulated runs are columns of one compiled loop over time.

A run is lost if its numbers overflow or the arm diverges from its reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..kernel import TimeLoop, compile_loop
from ..lazy import recent
from ..model import Model
from ..progress import Progress, part_of, silent
from .experiment import Experiment, noise_of_seed, temperatures
from .plant import StepLayout, step_function
from .tuning import ClosedLoop

FAR = 3.0
"""A loop that is more widths of the motion than this away from its reference has lost it."""

OnLost = Callable[[int, str], None]
"""Called with the run that diverged and why, a text that follows the run's name."""


def divergence(time: float) -> str:
    """Return the message of a run whose numbers overflowed before a time [s]."""
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
    """State of arm and controller of every column (states, C), and the number of control periods before."""

    values: np.ndarray
    periods: int


@recent(4)
def _compiled(model: Model, experiment: Experiment, plant_rate: float) -> tuple[TimeLoop, StepLayout]:
    step, layout = step_function(model, experiment, plant_rate)
    return compile_loop(step), layout


class CompiledStep:
    """An arm in closed loop, compiled once for any number of columns.

    Args:
        loop: Model, controller and rates; its parameters and its motion are not used.
    """

    def __init__(self, loop: ClosedLoop) -> None:
        # Gains, noise and payload are no part of a step: experiments that differ in them share one.
        own, rate = loop.experiment, loop.experiment.control_rate
        plain = Experiment(own.control, velocity=own.velocity, control_rate=rate, record_rate=rate, delay=own.delay)
        self._loop, self._layout = _compiled(loop.model, plain, loop.plant_rate)
        self._every, self._rate = loop.experiment.record_every, loop.experiment.control_rate
        self._substeps = loop.substeps

    def start(self, reference: np.ndarray, columns: int) -> LoopState:
        """Return the state of columns at rest relative to the first instant of a reference (3 n, K), or (3 n, K, C)."""
        n = self._layout.joints
        first = reference[: 2 * n, 0].reshape(2 * n, -1)
        start = np.zeros((self._layout.states, columns))
        start[: 2 * n] = start[4 * n : 6 * n] = first
        start[-1] = -1
        return LoopState(start, 0)

    def shares_loop(self, other: CompiledStep) -> bool:
        """Return whether both are one compiled loop, which advances columns of either."""
        own, others = (self._loop, self._every, self._substeps), (other._loop, other._every, other._substeps)
        return own == others

    def run(
        self,
        state: LoopState,
        reference: np.ndarray,
        parameters: np.ndarray,
        disturbance: np.ndarray | None,
        on_lost: OnLost,
        threads: int = 1,
        progress: Progress = silent,
    ) -> tuple[LoopState, np.ndarray]:
        """Simulate a motion, or a part of one; return the final state and the outputs of every column.

        The outputs are q, qd, qdd, motor torque and joint torque (C, 5 n, N) at the recording's instants. Consecutive
        parts give exactly the result of the whole: arm, controller and delayed commands continue from the state.

        Args:
            state: Where to begin: :meth:`start`, or where the part before ended.
            reference: q, qd, qdd at the control instants (3 n, K), and below them temperatures less their reference
                (n, K) if friction depends on them; K is a multiple of the recording's period. (..., K, C) if columns
                have references of their own.
            parameters: As the step function has them, (np,) or (np, C).
            disturbance: Torques that act on the motors (C, n, K); None for none.
            on_lost: Called with the number of each column that diverges, whose outputs then mean nothing; the others
                are not affected unless it raises.
            threads: Threads that share the columns.
            progress: Progress callback of the run.
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
                on_lost(int(column), divergence((state.periods + stop) / self._rate))
            lost |= diverged
            recorded.append(output)
            progress(stop, periods)
        return LoopState(values, state.periods + periods), np.concatenate(recorded).transpose(2, 1, 0)

    def _inputs(self, reference: np.ndarray, disturbance: np.ndarray | None) -> np.ndarray:
        """Return the step's inputs of some control periods: (K, inputs) for all columns, or (K, inputs, C)."""
        motion, warmth = np.split(reference.swapaxes(0, 1), [3 * self._layout.joints], axis=1)
        if disturbance is None:
            quiet = np.zeros((len(motion), self._layout.joints, *motion.shape[2:]))
            return np.concatenate([motion, quiet, warmth], axis=1)
        columns = len(disturbance)
        wide = [one if one.ndim == 3 else one[:, :, None] for one in (motion, warmth)]
        each = [np.broadcast_to(one, (*one.shape[:2], columns)) for one in wide]
        return np.concatenate([each[0], disturbance.transpose(2, 1, 0), each[1]], axis=1)


def warmth_of(model: Model, experiment: Experiment, periods: int) -> list[np.ndarray]:
    """Return temperatures less their reference at the control instants (n, K), or none if no friction needs them."""
    if not model.needs_temperature:
        return []
    found = temperatures(experiment, np.arange(periods) / experiment.control_rate)
    above = np.zeros(periods) if found is None else found - model.friction.temperature
    return [np.broadcast_to(above, (len(model.robot.actuated), periods))]


class CompiledPlant:
    """An arm in closed loop with its own parameters, compiled once for any number of seeds."""

    def __init__(self, loop: ClosedLoop) -> None:
        self._step = CompiledStep(loop)
        self._parameters = np.concatenate([loop.values, loop.values, loop.tuning])
        self._experiment, self._joints = loop.experiment, len(loop.reference) // 3
        self._reference = np.vstack([loop.reference, *warmth_of(loop.model, loop.experiment, loop.reference.shape[1])])

    def run(self, seeds: tuple[int, ...], threads: int, progress: Progress, on_lost: OnLost) -> np.ndarray:
        """Return q, qd, qdd, motor torque, joint torque of every seed (S, 5 n, N); of those lost they mean nothing."""
        groups = [seeds[k : k + _SEEDS_TOGETHER] for k in range(0, len(seeds), _SEEDS_TOGETHER)]
        outputs = [
            self._run_group(group, threads, part_of(progress, index, len(groups)), on_lost)
            for index, group in enumerate(groups)
        ]
        return np.concatenate(outputs)

    def runs_beside(self, other: CompiledPlant) -> bool:
        """Return whether runs of both can be columns of one loop: the same equations, rates and number of periods."""
        return self._step.shares_loop(other._step) and self._reference.shape == other._reference.shape

    def _run_group(self, seeds: tuple[int, ...], threads: int, progress: Progress, on_lost: OnLost) -> np.ndarray:
        disturbance = np.stack([self._disturbance(seed) for seed in seeds])

        def lost(column: int, why: str) -> None:
            on_lost(seeds[column], why)

        start = self._step.start(self._reference, len(seeds))
        return self._step.run(start, self._reference, self._parameters, disturbance, lost, threads, progress)[1]

    def _disturbance(self, seed: int) -> np.ndarray:
        periods, rate = self._reference.shape[1], self._experiment.control_rate
        return noise_of_seed(self._experiment, "disturbance", seed, self._joints, periods, rate)


def run_together(
    plants: Sequence[CompiledPlant], seeds: Sequence[int], threads: int, progress: Progress, on_lost: OnLost
) -> np.ndarray:
    """Return the outputs (C, 5 n, N) of plants that run beside each other, each with its own seed."""
    reference = np.stack([one._reference for one in plants], axis=2)
    parameters = np.stack([one._parameters for one in plants], axis=1)
    disturbance = np.stack([one._disturbance(seed) for one, seed in zip(plants, seeds, strict=True)])

    def lost(column: int, why: str) -> None:
        on_lost(seeds[column], why)

    step = plants[0]._step
    start = step.start(reference, len(plants))
    return step.run(start, reference, parameters, disturbance, lost, threads, progress)[1]
