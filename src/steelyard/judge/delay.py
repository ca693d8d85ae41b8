"""Delays of the torques against the positions, and the bias that they cause in the parameters.

A torque recorded late by d is ``y(t) = tau(t - d)``. Left out, a delay goes where it fits best: for a motion of angular
frequency w an inertia M looks like a viscous friction ``-M d w^2`` (P1's forward-only filter is such a delay). It is
estimated by Gauss-Newton: recorded torques are shifted back by the current delay, ``-dtau/dt`` of the model's torque is
one more column of each equation, all parameters are free, and the value of that column is the next step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..estimate import (
    Estimate,
    NoiseGroup,
    PseudoObservations,
    System,
    generalised,
    group_of,
    independent,
    robust_fit,
    stacked_system,
    weighted,
    with_correlated_noise,
)
from ..observe import (
    MIN_SHARE,
    Observations,
    RowSource,
    RowStack,
    Whitening,
    reduce_rows,
    row_source,
    weighted_runs,
)
from ..text import short_repr

SIGNIFICANT = 3.0
"""A delay of fewer sigmas is chance."""

_CONVERGED = 0.1
"""Steps smaller than this part of sigma end the iteration."""

_MOST_STEPS, _MOST_OWN_STEPS = 12, 4
_LARGEST_STEP = 0.02
# Torques that seem later than this are something else that the model lacks.
_LARGEST_DELAY = 0.1
"""Longest step [s]: the derivative says little of a torque that is farther away."""

_MOVING = 0.999
"""Share of its window in which a joint moves, for a row to say something of delays: a low-passed velocity turns round a
little before or after the joint does, and friction with it, which would look like a delay."""

_LOW_PASS = 1e-3
"""What the low-pass does to a delay, as a part of one over its cut-off: 0.15 ms at 6.7 Hz. Found on short simulated
logs of little noise, whose delays spread by as much; it adds to sigma."""

_FEW = 0.2
"""Where fewer rows than this part move so surely, all rows are taken."""

_COMMON = "delay of all"


@dataclass(frozen=True, eq=False)
class Delays:
    """How late torques are, and what it does.

    Attributes:
        equations: Torque kind and joint of every equation.
        delay: By how much its torque is late against the positions (E,) [s], beyond what the rows were already
            corrected for; negative if early.
        sigma: Standard deviations (E,); infinite where it is not identifiable.
        common: The delay of all torques together and its sigma [s]: one clock is better known than each joint alone.
        bias: By how much delays that are more than chance bias the parameters (c,).
        corrected: Delay that the rows were already corrected for [s].
        exposure: How far a common delay of one of its sigmas, too small to be detected, moves each parameter, over that
            parameter's sigma (c,).
    """

    __repr__ = short_repr

    equations: tuple[tuple[str, str], ...]
    delay: np.ndarray
    sigma: np.ndarray
    common: tuple[float, float]
    bias: np.ndarray
    exposure: np.ndarray
    corrected: float = 0.0

    @property
    def significant(self) -> tuple[int, ...]:
        """Numbers of the equations whose own delay is more than chance."""
        return tuple(int(e) for e in np.flatnonzero(np.abs(self.delay) > SIGNIFICANT * self.sigma))

    @property
    def has_common(self) -> bool:
        """Whether the common delay is more than chance."""
        return abs(self.common[0]) > SIGNIFICANT * self.common[1]

    @property
    def remedy(self) -> str:
        """The flag of ``identify`` that corrects the common delay."""
        digits = int(np.ceil(-np.log10(self.common[1] / 2)))
        return f"--delay {self.corrected + self.common[0]:.{np.clip(digits, 3, 6)}f}"


def estimate_delays(
    sources: Sequence[RowSource],
    estimate: Estimate,
    whitening: Whitening | None,
    whole: System | None = None,
    part: System | None = None,
) -> Delays:
    """Estimate the delay of the torques, all parameters free: of each equation, and one for all.

    Args:
        sources: The rows behind the estimate, or of a part of each recording.
        estimate: The estimate.
        whitening: How its rows were whitened, if they were.
        whole: The system of all rows behind the estimate, where ``sources`` are a part of them.
        part: The system of the rows of ``sources``, where it is known already.
    """
    equations = sources[0].equations.kinds_joints
    start = _DelayTrial.of(sources, estimate, whitening)
    if part is None:
        part = system_of_rows(sources, estimate.columns, estimate.weights, whitening)

    def bias(delayed: System) -> np.ndarray:
        """Return by how much leaving the delays out moves the parameters (c,)."""
        return -carried_over(estimate, part if whole is None else whole, part, delayed)

    common, trial = _common_delay(start)
    delay, sigma = _own_delays(trial)
    cutoff = sources[0].resolved.cutoff
    systematic = _LOW_PASS / cutoff if cutoff else 0.0
    common, sigma = (common[0], float(np.hypot(common[1], systematic))), np.hypot(sigma, systematic)
    exposure = np.zeros(len(estimate.columns))
    if np.isfinite(common[1]):
        # Torques later by as much: as if they had been early before.
        later = start.moved(np.full(len(equations), -common[1])).parameters
        exposure = np.abs(bias(later)) / estimate.sigma
    applied = sources[0].resolved.chosen.delay
    found = Delays(equations, delay, sigma, common, np.zeros(len(estimate.columns)), exposure, applied)
    if found.has_common:
        return replace(found, bias=bias(trial.parameters))
    if found.significant:
        firm = np.zeros(len(equations))
        firm[list(found.significant)] = delay[list(found.significant)]
        return replace(found, bias=bias(start.moved(firm).parameters))
    return found


def system_of_rows(
    sources: Sequence[RowSource],
    columns: Sequence[str],
    weights: Mapping[NoiseGroup, float],
    whitening: Whitening | None,
) -> System:
    """Return the system of these rows, weighted and whitened as those of an estimate; other groups are left out."""
    return system_of_factors(reduce_rows(sources, whitening, blocks=1), columns, weights)


def system_of_factors(
    observations: Observations, columns: Sequence[str], weights: Mapping[NoiseGroup, float]
) -> System:
    """Return the system of these factors, weighted as those of an estimate; other groups are left out."""
    return stacked_system(observations, columns, weights, lambda factor: group_of(factor) in weights)


def carried_over(estimate: Estimate, whole: System, before: System, after: System) -> np.ndarray:
    """Return by how much the estimate moves (c,) when the least-squares solution of some of its rows does.

    The estimate may rest on more than these rows, a prior or earlier runs, which do not move:
    ``(A + P) dx = A dx_rows``.

    Args:
        estimate: The estimate.
        whole: The system of all rows that change alike; columns that it lacks stay where they are.
        before: The system of the rows that were refitted, all of them or a part.
        after: The same rows changed; columns that either lacks do not change.
    """
    place = [estimate.columns.index(name) for name in whole.columns]
    now, then = _values(after), _values(before)
    change = np.array([now[name] - then[name] if name in now and name in then else 0.0 for name in whole.columns])
    triangle = whole.triangle[:, :-1]
    return estimate.system.inverse[:, place] @ (triangle.T @ (triangle @ change))


@dataclass(frozen=True, eq=False)
class _DelayTrial:
    """Rows whose torques are put back by trial delays.

    Attributes:
        origin: The rows as they were given.
        delays: The trial delays (E,) [s].
        columns: The parameters.
        values: Their values, for the derivative of the torque.
        weights: Weights of the rows.
        whitening: How the rows are whitened, if they are.
        gain: What correlated noise and small samples add to sigmas.
        least: For each equation, the least share of the rows that say something of delays (E,).
    """

    origin: Sequence[RowSource]
    delays: np.ndarray
    columns: tuple[str, ...]
    values: Mapping[str, float]
    weights: Mapping[NoiseGroup, float]
    whitening: Whitening | None
    gain: float
    least: np.ndarray

    @classmethod
    def of(cls, sources: Sequence[RowSource], estimate: Estimate, whitening: Whitening | None) -> _DelayTrial:
        """Return rows as they are."""
        nothing, values, least = np.zeros(len(sources[0].equations.kinds_joints)), _values(estimate), _least(sources)
        return cls(sources, nothing, estimate.columns, values, estimate.weights, whitening, _gain(estimate), least)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the delays."""
        return tuple(f"delay {kind} {joint}" for kind, joint in self.origin[0].equations.kinds_joints)

    @property
    def parameters(self) -> System:
        """The system of the parameters alone, of all rows, at the trial delays."""
        return system_of_rows(self._shifted_sources(), self.columns, self.weights, self.whitening)

    def moved(self, delays: np.ndarray, values: Mapping[str, float] | None = None) -> _DelayTrial:
        """Return the rows with torques put back by other delays."""
        return replace(self, delays=delays, values=self.values if values is None else values)

    def with_own_noise(self) -> _DelayTrial:
        """Return the trial with weights and noise model of its own residuals."""
        origin: Sequence[RowSource] = self.origin
        sources: Sequence[RowSource] = [one.adjusted(None) for one in self._shifted_sources()]
        plain = weighted(reduce_rows(sources), self.columns)
        norm = next((one.adjustment.norm for one in origin if isinstance(one.adjustment, PseudoObservations)), None)
        if norm is not None:
            # Outliers were those of a model without the delay.
            robust = robust_fit(sources, plain, norm)
            sources, plain = robust.sources, robust.estimate
            origin = [one.adjusted(new.adjustment) for one, new in zip(origin, sources, strict=True)]
        if self.whitening is None:
            estimate, whitening = with_correlated_noise(sources, plain).estimate, None
        else:
            fit = generalised(sources, plain)
            estimate, whitening = fit.estimate, fit.noise.whitening
        values, gain = _values(estimate), _gain(estimate)
        return replace(self, origin=origin, values=values, weights=estimate.weights, whitening=whitening, gain=gain)

    def system(self) -> System:
        """Return the weighted system with a column for the delay of each equation, of rows that say something of it."""
        columns = (*self.columns, *self.names)
        stack = RowStack(len(columns) + 1)
        for source in self._shifted_sources(self.values):
            # Every block is whitened on its own.
            runs = (replace(run, starts=True) for run in source.runs(least=self.least))
            for late in weighted_runs(runs, self.columns, self.weights, self.whitening):
                spread = np.zeros((len(late.rows), len(columns) + 1))
                spread[:, [*late.index, len(self.columns) + late.run.equation, -1]] = late.rows
                stack.push(spread)
        return System(columns, stack.triangle(), stack.count)

    def _shifted_sources(self, values: Mapping[str, float] | None = None) -> list[RowSource]:
        return [
            row_source(
                one.recording, one.equations, one.resolved, one.label, delays=one.delays + self.delays, values=values
            ).adjusted(one.adjustment)
            for one in self.origin
        ]


def _least(sources: Sequence[RowSource]) -> np.ndarray:
    """Return the least share of each equation's rows that say something of delays (E,)."""
    usable, moving = (np.zeros(len(sources[0].equations.kinds_joints)) for _ in range(2))
    for source in sources:
        for block in source:
            usable += (block.share >= MIN_SHARE).sum(axis=1)
            moving += (block.share >= _MOVING).sum(axis=1)
    return np.where(moving >= _FEW * usable, _MOVING, MIN_SHARE)


def _values(solved: System | Estimate) -> dict[str, float]:
    return dict(zip(solved.columns, solved.values.tolist(), strict=True))


def _gain(estimate: Estimate) -> float:
    """Return what correlated noise and small samples add to the sigmas of these rows' white noise."""
    return float(np.median(estimate.sigma / np.sqrt(np.diag(estimate.system.inverse))))


def _common_delay(trial: _DelayTrial) -> tuple[tuple[float, float], _DelayTrial]:
    """Return the delay of all torques and its sigma, and the rows put back by it."""
    delay, steps, start = 0.0, 0, trial
    while True:
        system, steps = independent(_one_delay(trial.system(), len(trial.columns))), steps + 1
        step, sigma = _step(system, _COMMON, trial.gain)
        delay += step
        if abs(delay) > _LARGEST_DELAY:
            return (0.0, float("inf")), start
        # A first step within chance is as good a value as any: nothing is gained by shifting the torques by it.
        enough = SIGNIFICANT if steps == 1 else _CONVERGED
        if not np.isfinite(sigma) or abs(step) <= enough * sigma:
            return (delay, sigma), trial
        if steps == _MOST_STEPS:
            return (delay, max(sigma, abs(step))), trial
        trial = trial.moved(np.full(len(trial.delays), delay), _values(system))
        if abs(step) > SIGNIFICANT * sigma:
            trial = trial.with_own_noise()


def _own_delays(trial: _DelayTrial) -> tuple[np.ndarray, np.ndarray]:
    """Return the delay of every equation and its sigma (E,), starting from the delay of all."""
    count, firm = 0, np.ones(len(trial.delays), dtype=bool)
    while True:
        system, count = independent(trial.system()), count + 1
        steps, sigma = np.array([_step(system, name, trial.gain) for name in trial.names]).T
        # Where a delay is hardly identifiable, the derivative says nothing of how far it is. A first step within chance
        # is not followed: joints of little torque would sometimes find a delay far away that fits as well by chance.
        firm = np.abs(steps) > SIGNIFICANT * sigma if count == 1 else firm
        moving = firm & (np.abs(steps) > _CONVERGED * sigma) & (sigma < _LARGEST_STEP)
        delays = trial.delays + steps
        far = np.abs(delays) > _LARGEST_DELAY
        delays, sigma, moving = np.where(far, 0.0, delays), np.where(far, np.inf, sigma), moving & ~far
        if count == _MOST_OWN_STEPS or not moving.any():
            return np.where(np.isfinite(sigma), delays, 0.0), sigma
        trial = trial.moved(np.where(moving, delays, trial.delays), _values(system))


def _one_delay(system: System, count: int) -> System:
    """Return the system with one delay for all equations; the delays come after ``count`` parameters."""
    triangle = system.triangle
    columns = [triangle[:, :count], triangle[:, count:-1].sum(axis=1, keepdims=True), triangle[:, -1:]]
    reduced = np.asarray(np.linalg.qr(np.hstack(columns), mode="r"))
    return System((*system.columns[:count], _COMMON), reduced, system.rows)


def _step(system: System, name: str, gain: float) -> tuple[float, float]:
    """Return the step of a delay, bounded, and its sigma; 0 and infinity where it is not identifiable."""
    if name not in system.columns:
        return 0.0, float("inf")
    place = system.columns.index(name)
    step = np.clip(system.values[place], -_LARGEST_STEP, _LARGEST_STEP)
    return float(step), gain * float(np.sqrt(system.inverse[place, place]))
