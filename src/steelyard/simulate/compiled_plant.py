"""Seeds as columns of one compiled loop over time."""

from __future__ import annotations

import numpy as np

from ..errors import SimulationError
from ..kernel import compile_loop
from ..progress import Progress
from .noise import noise_of_seed
from .plant import step_function
from .tuning import ClosedLoop

# Seeds that run together, and control periods whose inputs are laid out at once: some tens of megabytes.
_SEEDS_TOGETHER = 144
_PERIODS_TOGETHER = 1000


class CompiledPlant:
    """An arm in closed loop, compiled once for any number of seeds."""

    def __init__(self, loop: ClosedLoop) -> None:
        step, layout = step_function(loop.model, loop.experiment, loop.settings.plant_rate)
        settings, n = loop.settings, layout.joints
        self._loop = compile_loop(step)
        self._parameters = np.concatenate([loop.values, settings.kp, settings.kd, settings.effort, settings.quantum])
        self._experiment = loop.experiment
        self._reference = loop.reference
        self._substeps = loop.substeps
        self._start = np.zeros((layout.states, 1))
        self._start[: 2 * n, 0] = loop.reference[: 2 * n, 0]
        self._start[3 * n : 5 * n, 0] = loop.reference[: 2 * n, 0]

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
        experiment, periods = self._experiment, self._reference.shape[1]
        size, rate, every = self._reference.shape[0] // 3, experiment.control_rate, experiment.record_every
        disturbance = np.stack(
            [noise_of_seed(experiment.disturbance, "disturbance", seed, size, periods, rate) for seed in seeds]
        )
        piece = max(1, _PERIODS_TOGETHER // every) * every
        state, recorded = np.repeat(self._start, len(seeds), axis=1), []
        for first in range(0, periods, piece):
            stop = min(first + piece, periods)
            state, output = self._loop(
                state,
                self._inputs(disturbance, first, stop),
                self._parameters,
                record_every=every * self._substeps,
                input_hold=self._substeps,
                threads=threads,
            )
            _check_finite(state, seeds, stop / rate)
            recorded.append(output)
            progress(stop, periods)
        return np.concatenate(recorded).transpose(2, 1, 0)

    def _inputs(self, disturbance: np.ndarray, first: int, stop: int) -> np.ndarray:
        """Return reference and disturbance of some control periods (K, 4 n, S)."""
        shape = (stop - first, self._reference.shape[0], len(disturbance))
        shared = np.broadcast_to(self._reference[:, first:stop].T[:, :, None], shape)
        return np.concatenate([shared, disturbance[:, :, first:stop].transpose(2, 1, 0)], axis=1)


def _check_finite(state: np.ndarray, seeds: tuple[int, ...], time: float) -> None:
    good = np.isfinite(state).all(axis=0)
    if not good.all():
        raise SimulationError(
            f"the simulation of seed {seeds[int(np.argmin(good))]} diverged before {time:.2f} s; "
            "lower the gains, or raise the plant_rate"
        )
