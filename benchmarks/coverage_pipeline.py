"""Coverage through the whole pipeline: closed loop, encoder steps, filter, decimation, and the bias they bring."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.coverage_arms import (
    LWR_JOINT,
    LWR_MOTOR,
    NOISES,
    UR_MOTOR,
    Arm,
    correlated_pole,
    p1_moves,
    short_p5_moves,
    ur_moves,
)
from benchmarks.coverage_exact import true_base_values
from steelyard.estimate import generalised, weighted
from steelyard.judge.bias import estimate_bias
from steelyard.model import build_model
from steelyard.observe import Preparation, equations_of, reduce_rows, resolve_preparation, row_source
from steelyard.recording import Recording
from steelyard.signals import decimation_filter
from steelyard.simulation import Experiment, Noise, SimulatedRun, recording_of, simulate

BIAS_EVERY = 20
"""Of so many seeds the tool is asked for the bias of one."""

UNMEASURED = 0.05
"""Unmeasured torque over the noise: every seed moves a little differently, so that encoder steps fall differently."""

QUANTA = {"scara_2r": 2 * np.pi / 10_000, "kuka_lwr4": 1e-5, "ur10e": 2 * np.pi / 2**17}
CONTROL = {
    "scara_2r": {"control": "pd", "kp": (400.0, 12.0), "kd": (70.0, 1.6)},
    "kuka_lwr4": {"control": "computed_torque"},
    "ur10e": {"control": "computed_torque"},
}

PIPELINE_ARMS = (
    Arm("SCARA", "scara_2r", "motor", (None,), p1_moves, 100.0, 10, {"motor": (2.0, 0.1)}),
    Arm("LWR4+ A", "kuka_lwr4", "motor", (None, "P5"), short_p5_moves, 200.0, 20, {"motor": LWR_MOTOR}),
    Arm(
        "LWR4+ C", "kuka_lwr4", "both", (None, "P5"), short_p5_moves, 200.0, 20,
        {"motor": LWR_MOTOR, "joint": LWR_JOINT},
    ),
    Arm("UR10e", "ur10e", "motor", (None,), ur_moves, 200.0, 20, {"motor": UR_MOTOR}),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class PipelineOutcome:
    """What one seed gave.

    Attributes:
        seed: The seed.
        noise: ``white`` or ``correlated``.
        columns: Names of the parameters.
        error: Estimate less truth, of every parameter (c,); NaN where these data did not tell it.
        sigma: The reported sigma (c,).
        covered: Whether the 95 % interval holds the truth (c,), 1 or 0; NaN where there is none.
        seconds: Time from recordings to the estimate.
        named: Parameters of which the tool itself says that they are biased; None if it was not asked.
        exposed: Parameters of which it says that a delay too small to be seen would bias them.
    """

    seed: int
    noise: str
    columns: tuple[str, ...]
    error: np.ndarray
    sigma: np.ndarray
    covered: np.ndarray
    seconds: float
    named: tuple[str, ...] | None
    exposed: tuple[str, ...] = ()


class PipelineExperiment:
    """An arm whose recordings are simulated for any seeds and identified."""

    def __init__(self, arm: Arm) -> None:
        self._arm, self._robot = arm, arm.load()
        self._equations = equations_of(
            build_model(self._robot, measured=arm.measured, payload="paired" if arm.has_payload else "none")
        )
        self.columns = self._equations.names
        self._true = true_base_values(self._equations, next((name for name in arm.payloads if name), None))
        self._motions = [arm.motion(self._robot, k) for k in range(len(arm.payloads))]

    def run(self, seeds: Sequence[int]) -> list[PipelineOutcome]:
        """Return the outcomes of seeds with each noise; their closed loops run together, one column a seed."""
        runs = [
            simulate(self._robot, motion, self._experiment(payload), [1_000_000 * (k + 1) + seed for seed in seeds])
            for k, (motion, payload) in enumerate(zip(self._motions, self._arm.payloads, strict=True))
        ]
        return [self._outcome(runs, index, seed, noise) for noise in NOISES for index, seed in enumerate(seeds)]

    def _experiment(self, payload: str | None) -> Experiment:
        unmeasured = tuple(UNMEASURED * std for std in self._arm.noise["motor"])
        return Experiment(
            **CONTROL[self._arm.robot], record_rate=self._arm.rate, encoder_quantum=QUANTA[self._arm.robot],
            disturbance=Noise("band_limited", unmeasured, 20.0), payload=payload, saturate=False,
        )  # fmt: skip

    def _recording(self, run: SimulatedRun, index: int, noise: str) -> Recording:
        torque_noises = {
            f"{kind}_noise": Noise(noise, std, self._band())  # pyright: ignore[reportArgumentType]
            for kind, std in self._arm.noise.items()
        }
        return recording_of(replace(run, experiment=replace(run.experiment, **torque_noises)), index)

    def _band(self) -> float:
        """Return the band of correlated noise whose rows have the wanted lag-one correlation [Hz]."""
        pole = correlated_pole(decimation_filter(self._arm.rate, self._arm.factor))
        return float(-np.log(pole) * self._arm.rate / (2 * np.pi))

    def _outcome(self, runs: Sequence[SimulatedRun], index: int, seed: int, noise: str) -> PipelineOutcome:
        recordings = [self._recording(run, index, noise) for run in runs]
        start = time.perf_counter()
        resolved = resolve_preparation(Preparation(decimation=self._arm.factor), recordings)
        sources = [
            row_source(recording, self._equations, resolved, f"recording {k + 1}")
            for k, recording in enumerate(recordings)
        ]
        fit = generalised(sources, weighted(reduce_rows(sources), self.columns))
        seconds = time.perf_counter() - start
        named, exposed = None, ()
        if seed % BIAS_EVERY == 0:
            bias = estimate_bias(recordings, sources, fit.estimate, fit.noise.whitening)
            named, exposed = bias.named, bias.exposed
        values, sigma, half = (
            self._aligned(fit.estimate.columns, part)
            for part in (fit.estimate.values, fit.estimate.sigma, fit.estimate.half_width())
        )
        error = values - self._true
        covered = np.where(np.isnan(error), np.nan, np.abs(error) <= half)
        return PipelineOutcome(seed, noise, self.columns, error, sigma, covered, seconds, named, exposed)

    def _aligned(self, columns: Sequence[str], values: np.ndarray) -> np.ndarray:
        known = dict(zip(columns, values, strict=True))
        return np.array([known.get(name, np.nan) for name in self.columns])
