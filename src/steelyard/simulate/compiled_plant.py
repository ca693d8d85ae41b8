"""Runs as columns of one compiled loop over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import SimulationError
from ..kernel import compile_loop
from ..progress import Progress, silent
from .noise import noise_of_seed
from .plant import step_function
from .tuning import ClosedLoop

# Seeds that run together, and control periods whose inputs are laid out at once: some tens of megabytes.
_SEEDS_TOGETHER = 144
_PERIODS_TOGETHER = 1000


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

    def run(
        self,
        reference: np.ndarray,
        parameters: np.ndarray,
        disturbance: np.ndarray | None,
        names: Sequence[str],
        threads: int = 1,
        progress: Progress = silent,
    ) -> np.ndarray:
        """Return q, qd, qdd, motor torque, joint torque of every column (C, 5 n, N).

        Args:
            reference: q, qd, qdd at the control instants (3 n, K), where every column starts too.
            parameters: As the step function has them, (np,) or (np, C).
            disturbance: Torques that act on the motors (C, n, K); None for none.
            names: What messages call each of the C columns.
            threads: Threads that share the columns.
            progress: Told how far the run is.

        Raises:
            SimulationError: If a column diverges.
        """
        periods, every = reference.shape[1], self._every
        piece = max(1, _PERIODS_TOGETHER // every) * every
        state, recorded = np.repeat(self._start(reference), len(names), axis=1), []
        for first in range(0, periods, piece):
            stop = min(first + piece, periods)
            state, output = self._loop(
                state,
                self._inputs(reference[:, first:stop], None if disturbance is None else disturbance[:, :, first:stop]),
                parameters,
                record_every=every * self._substeps,
                input_hold=self._substeps,
                threads=threads,
            )
            _check_finite(state, names, stop / self._rate)
            recorded.append(output)
            progress(stop, periods)
        return np.concatenate(recorded).transpose(2, 1, 0)

    def _start(self, reference: np.ndarray) -> np.ndarray:
        n = self._layout.joints
        start = np.zeros((self._layout.states, 1))
        start[: 2 * n, 0] = reference[: 2 * n, 0]
        start[3 * n : 5 * n, 0] = reference[: 2 * n, 0]
        return start

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

    def run(self, seeds: tuple[int, ...], threads: int, progress: Progress) -> np.ndarray:
        """Return q, qd, qdd, motor torque, joint torque of every seed (S, 5 n, N)."""
        groups = [seeds[k : k + _SEEDS_TOGETHER] for k in range(0, len(seeds), _SEEDS_TOGETHER)]
        outputs = []
        for index, group in enumerate(groups):

            def told(done: float, total: float, index: int = index) -> None:
                progress(index + done / total, len(groups))

            outputs.append(self._run_group(group, threads, told))
        return np.concatenate(outputs)

    def _run_group(self, seeds: tuple[int, ...], threads: int, progress: Progress) -> np.ndarray:
        experiment, (rows, periods) = self._experiment, self._reference.shape
        rate = experiment.control_rate
        disturbance = np.stack(
            [noise_of_seed(experiment.disturbance, "disturbance", seed, rows // 3, periods, rate) for seed in seeds]
        )
        names = [f"of seed {seed}" for seed in seeds]
        return self._step.run(self._reference, self._parameters, disturbance, names, threads, progress)


def _check_finite(state: np.ndarray, names: Sequence[str], time: float) -> None:
    good = np.isfinite(state).all(axis=0)
    if not good.all():
        raise SimulationError(
            f"the simulation {names[int(np.argmin(good))]} diverged before {time:.2f} s; "
            "lower the gains, or raise the plant_rate"
        )
