"""Coverage with exact positions: W is that of the true motion, only the torques are noisy."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from benchmarks.coverage_arms import Arm, correlated_pole
from steelyard.estimate import Estimate, generalised, weighted
from steelyard.judge.covariance import with_covariance
from steelyard.model import build_model
from steelyard.observe import (
    Equations,
    Preparation,
    ResolvedPreparation,
    RowBlock,
    RowSource,
    equations_of,
    reduce_rows,
    resolve_preparation,
)
from steelyard.recording import Recording
from steelyard.robot import INERTIAL_NAMES
from steelyard.signals import Decimator, autoregressive_noise, white_noise
from steelyard.simulation.plant import plant_model, true_values

OTHERS = ("classical", "hac", "block")
"""Covariances of weighted least squares that are counted for comparison."""

SECOND_RECORDING = 1.4
"""Noise of the second recording over that of the first."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one seed gave.

    Attributes:
        seed: The seed.
        noise: ``white`` or ``correlated``.
        columns: Names of the parameters.
        error: Estimate less truth, of every parameter (c,).
        sigma: The reported sigma (c,).
        covered: Whether the 95 % interval holds the truth (c,).
        orders: Order of the noise model of every equation.
        seconds: Time of the estimate, reduction included.
        others: Covered by the intervals of weighted least squares, by the name of its covariance (c,).
    """

    seed: int
    noise: str
    columns: tuple[str, ...]
    error: np.ndarray
    sigma: np.ndarray
    covered: np.ndarray
    orders: tuple[int, ...]
    seconds: float
    others: dict[str, np.ndarray]


class ExactRows:
    """Rows of one recording with exact W and given y: what the estimators ask of a row source."""

    def __init__(self, equations: Equations, resolved: ResolvedPreparation, label: str, payload: str | None) -> None:
        self.equations, self.resolved, self.label, self.payload = equations, resolved, label, payload
        self.loaded = equations.is_loaded(payload, label)
        self.columns = equations.compiled(self.loaded).columns
        self.sha256, self.samples, self.read = (label,), 0, 1.0
        self.rows: list[np.ndarray] = []

    def fill(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, true: np.ndarray) -> None:
        """Set W from a motion (n, N) and y from the true parameters, without noise."""
        compiled = self.equations.compiled(self.loaded)
        self.samples = q.shape[1]
        self.rows = []
        for e, values in enumerate(compiled.function(q, qd, qdd)):
            small = decimated(values, self.resolved)
            rows = np.zeros((small.shape[1], len(self.equations.columns[e]) + 1))
            rows[:, compiled.places[e]] = small.T
            index = [self.equations.names.index(name) for name in self.equations.columns[e]]
            rows[:, -1] = rows[:, :-1] @ true[index]
            self.rows.append(rows)
        self.clean = [rows[:, -1].copy() for rows in self.rows]

    def disturb(self, noise: np.ndarray) -> None:
        """Add decimated noise (E, k) to y."""
        for rows, clean, extra in zip(self.rows, self.clean, noise, strict=True):
            rows[:, -1] = clean + extra

    def __iter__(self) -> Iterator[RowBlock]:
        count, joints = len(self.rows[0]), len(self.equations.joints)
        motion = np.zeros((joints, count))
        share = np.ones((len(self.rows), count))
        yield RowBlock(
            0, 0, np.arange(count) / self.resolved.rate, tuple(self.rows), share, motion, motion, motion, None
        )


def decimated(values: np.ndarray, resolved: ResolvedPreparation) -> np.ndarray:
    """Return signals (rows, N) through the preparation's decimator."""
    filter_ = resolved.decimation_filter
    decimator = Decimator(filter_.rate, filter_.factor, filter_.cutoff, attenuation=filter_.attenuation)
    result = decimator.push(np.ascontiguousarray(values))
    return np.concatenate([result, decimator.flush()], axis=1)


class ExactExperiment:
    """An arm's exact rows, to which the noise of any seed can be added.

    Args:
        arm: The arm.
        noise: ``white`` or ``correlated``.
    """

    def __init__(self, arm: Arm, noise: str) -> None:
        robot = arm.load()
        model = build_model(robot, measured=arm.measured, payload="paired" if arm.has_payload else "none")
        self.equations = equations_of(model)
        self.columns = self.equations.names
        motions = [arm.motion(robot, k).sample(arm.rate) for k in range(len(arm.payloads))]
        logs = [Recording(self.equations.joints, motion.time, motion.q) for motion in motions]
        self.resolved = resolve_preparation(Preparation(mode="none", decimation=arm.factor, standstill=0.0), logs)
        self.true = true_base_values(self.equations, next((name for name in arm.payloads if name), None))
        self.sources = [
            ExactRows(self.equations, self.resolved, f"recording {k + 1}", payload)
            for k, payload in enumerate(arm.payloads)
        ]
        for source, motion in zip(self.sources, motions, strict=True):
            source.fill(motion.q, motion.qd, motion.qdd, self.true)
        index = self.equations.joint_index
        kinds = [kind for kind, _ in self.equations.kinds_joints]
        self._std = np.array([arm.noise[kind][joint] for kind, joint in zip(kinds, index, strict=True)])
        self._pole = correlated_pole(self.resolved.decimation_filter) if noise == "correlated" else 0.0
        self._noise_kind = noise
        self._key = [sum(map(ord, arm.name)), int(noise == "correlated")]

    def run(self, seed: int, compared: bool) -> Outcome:
        """Return the outcome of one seed, reproducible alone."""
        for source, sequence in zip(
            self.sources, np.random.SeedSequence([*self._key, seed]).spawn(len(self.sources)), strict=True
        ):
            source.disturb(decimated(self._noise(source, np.random.default_rng(sequence)), self.resolved))
        sources = cast("Sequence[RowSource]", self.sources)
        start = time.perf_counter()
        observations = reduce_rows(sources)
        plain = weighted(observations, self.columns)
        fit = generalised(sources, plain)
        seconds = time.perf_counter() - start
        estimate = fit.estimate
        others = {}
        if compared:
            for kind in OTHERS:
                other = with_covariance(kind, plain, observations, sources)
                others[kind] = self._covered(other)
        orders = tuple(len(coefficients) for coefficients in fit.noise.coefficients.values())
        error = estimate.values - self._true_of(estimate)
        return Outcome(
            seed,
            self._noise_kind,
            self.columns,
            error,
            estimate.sigma,
            self._covered(estimate),
            orders,
            seconds,
            others,
        )

    def _noise(self, source: ExactRows, rng: np.random.Generator) -> np.ndarray:
        std = self._std * (1.0 if source is self.sources[0] else SECOND_RECORDING)
        if self._pole:
            return autoregressive_noise(source.samples, np.array([self._pole]), std, rng)
        return white_noise(source.samples, std, rng)

    def _true_of(self, estimate: Estimate) -> np.ndarray:
        known = dict(zip(self.columns, self.true, strict=True))
        return np.array([known[name] for name in estimate.columns])

    def _covered(self, estimate: Estimate) -> np.ndarray:
        return np.abs(estimate.values - self._true_of(estimate)) <= estimate.half_width()


def true_base_values(equations: Equations, payload: str | None) -> np.ndarray:
    """Return the true base parameters of a catalogue arm, those of the payload included."""
    robot = equations.model.robot
    values = dict(true_values(plant_model(robot, 0.0)))
    if payload is not None:
        values |= {f"{symbol}L": value for symbol, value in zip(INERTIAL_NAMES, robot.payloads[payload], strict=True)}
    return equations.base.regrouping @ np.array([values[name] for name in equations.model.names])
