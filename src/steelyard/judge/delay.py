"""Delays of the torques against the positions, and the bias that they cause in the parameters.

A torque recorded late by d is ``y(t) = tau(t - d)``. Left out, a delay goes where it fits best: for a motion of angular
frequency w an inertia M looks like a viscous friction ``-M d w^2`` (P1's forward-only filter is such a delay). It is
estimated by Gauss-Newton: recorded torques are shifted back by the current delay, ``-dtau/dt`` of the model's torque is
one more column of each equation, all parameters are free, and the value of that column is the next step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..distributions import chi2_sf
from ..estimate import Estimate, System, independent
from ..observe import RowSource, Whitening
from ..text import short_repr
from .delay_trial import DelayTrial, system_of_rows, values_of

SIGNIFICANT = 3.0
"""A delay of fewer sigmas is chance."""

CERTAIN = 5.0
"""Of many joints one has more than three sigmas by chance or by a little that the model lacks, but not so many."""

_CONVERGED = 0.1
"""Steps smaller than this part of sigma end the iteration."""

_MOST_STEPS, _MOST_OWN_STEPS = 12, 4
_LARGEST_STEP = 0.02
"""Longest step [s]: the derivative says little of a torque that is farther away."""

LARGEST_DELAY = 0.1
"""Torques that all seem later than this [s] are something else that the model lacks; single ones are not followed."""

_ALIKE, _CHANCE = 0.1, 0.01
"""Delays of single equations are one where what they differ by has this probability, beyond a tenth of the delay."""

_COMMON = "delay of all"


@dataclass(frozen=True, eq=False)
class Delays:
    """How late torques are, and what it does.

    Attributes:
        equations: Torque kind and joint of every equation.
        delay: By how much its torque is late against the positions (E,) [s], beyond what the rows were already
            corrected for; negative if early.
        sigma: Standard deviations (E,); infinite where it is not identifiable, or where torques that were put back by
            it are no likelier.
        common: The delay of all torques together and its sigma [s]: one clock is better known than each joint alone. 0
            and infinity where those of single equations disagree with it: then there is none.
        bias: By how much delays that are more than chance bias the parameters (c,).
        corrected: Delay that the rows were already corrected for [s].
        joint_corrected: Further delay of single joints that they were corrected for [s].
        late_positions: Joints whose position is late (negative: early) against all torques [s], where that explains
            more than the delay of the joint's own torque does.
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
    joint_corrected: Mapping[str, float] = field(default_factory=dict)
    late_positions: Mapping[str, float] = field(default_factory=dict)

    @property
    def significant(self) -> tuple[int, ...]:
        """Numbers of the equations whose own delay is more than chance."""
        return tuple(int(e) for e in np.flatnonzero(np.abs(self.delay) > SIGNIFICANT * self.sigma))

    @property
    def certain(self) -> tuple[int, ...]:
        """Numbers of the equations whose own delay is more than the largest of many by chance."""
        return tuple(e for e in self.significant if abs(self.delay[e]) > CERTAIN * self.sigma[e])

    @property
    def has_common(self) -> bool:
        """Whether the common delay is more than chance."""
        return abs(self.common[0]) > SIGNIFICANT * self.common[1]

    @property
    def remedy(self) -> str:
        """The flag of ``identify`` that corrects the common delay."""
        return f"--delay {_rounded(self.corrected + self.common[0], self.common[1])}"

    def joint_remedy(self, e: int) -> str:
        """Return the flag of ``identify`` that corrects the delay of one equation's joint."""
        joint = self.equations[e][1]
        return f"--joint-delay {joint}={_rounded(self.joint_corrected.get(joint, 0.0) + self.delay[e], self.sigma[e])}"


def _rounded(delay: float, sigma: float) -> str:
    """Return a delay with as many digits as its sigma allows."""
    digits = int(np.ceil(-np.log10(sigma / 2)))
    return f"{delay:.{np.clip(digits, 3, 6)}f}"


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
    start = DelayTrial.of(sources, estimate, whitening)
    if part is None:
        part = system_of_rows(sources, estimate.columns, estimate.weights, whitening)

    def bias(delayed: System) -> np.ndarray:
        """Return by how much leaving the delays out moves the parameters (c,)."""
        return -carried_over(estimate, part if whole is None else whole, part, delayed)

    common, trial, own = _delays_of(start)
    delay, sigma = own.delay, own.sigma
    exposure = np.zeros(len(estimate.columns))
    if np.isfinite(common[1]):
        # Torques later by as much: as if they had been early before.
        later = start.moved(np.full(len(equations), -common[1])).parameters
        exposure = np.abs(bias(later)) / estimate.sigma
    applied = sources[0].resolved.chosen
    found = Delays(
        equations, delay, sigma, common, np.zeros(len(estimate.columns)), exposure, applied.delay, applied.joint_delays
    )
    if found.has_common:
        return replace(found, bias=bias(trial.parameters))
    if found.significant:
        firm = np.zeros(len(equations))
        firm[list(found.significant)] = delay[list(found.significant)]
        late = _late_position(start, found) if found.certain else {}
        return replace(found, bias=bias(start.moved(firm).parameters), late_positions=late)
    return found


def _late_position(start: DelayTrial, found: Delays) -> dict[str, float]:
    """Return the joint whose position, put back in time, makes all rows likelier than torques put back do, if any.

    A joint's position bears on the torques of other joints too, so that the two are not the same: only where all
    positions are late together are all torques early.
    """
    worst = max(found.certain, key=lambda e: abs(found.delay[e]) / found.sigma[e])
    joint, late = found.equations[worst][1], -float(found.delay[worst])
    positions = start.with_position_moved(joint, late)
    if positions is None:
        return {}
    firm = np.zeros(len(found.equations))
    firm[list(found.significant)] = found.delay[list(found.significant)]
    likelier = positions.with_own_noise().log_likelihood(start.moved(firm).with_own_noise())
    return {joint: late} if likelier.sum() > SIGNIFICANT**2 / 2 else {}


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
    now, then = values_of(after), values_of(before)
    change = np.array([now[name] - then[name] if name in now and name in then else 0.0 for name in whole.columns])
    triangle = whole.triangle[:, :-1]
    return estimate.system.inverse[:, place] @ (triangle.T @ (triangle @ change))


@dataclass(frozen=True, eq=False)
class _OwnDelays:
    """The delay of every equation (E,) [s] and its sigma (E,), infinite where it is not identifiable."""

    delay: np.ndarray
    sigma: np.ndarray

    @property
    def significant(self) -> np.ndarray:
        """Whether each is more than chance (E,)."""
        return np.abs(self.delay) > SIGNIFICANT * self.sigma

    def agrees(self, common: float) -> bool:
        """Return whether these can all be the common delay."""
        known = np.isfinite(self.sigma)
        far = (self.delay[known] - common) / np.hypot(self.sigma[known], _ALIKE * common)
        return bool(known.sum() < 2 or chi2_sf((far**2).sum(), known.sum() - 1) > _CHANCE)


def _delays_of(start: DelayTrial) -> tuple[tuple[float, float], DelayTrial, _OwnDelays]:
    """Return the delay of all torques and its sigma, the rows put back by it, and the delay of every equation."""
    (delay, sigma), trial = _common_delay(start)
    own, common = _own_delays(trial), (delay, float(np.hypot(sigma, start.systematic)))
    if trial is not start:
        # Weights at a wrong common delay trust the late joint alone, which hides that the others are in time.
        apart = _own_delays(start)
        if not (own.agrees(delay) and apart.agrees(delay)):
            common, trial, own = (0.0, float("inf")), start, apart
    if abs(common[0]) <= SIGNIFICANT * common[1]:
        own = _confirmed(own, start)
    return common, trial, own


def _confirmed(own: _OwnDelays, start: DelayTrial) -> _OwnDelays:
    """Return the delays of single equations with the noise of torques put back by those that are more than chance.

    What a model lacks may look like a delay. But putting torques back that were in time does not make their rows
    likelier: such delays are none.
    """
    firm, before = own.significant, start
    if firm.any():
        before = start.with_own_noise()
    while firm.any():
        there = start.moved(np.where(firm, own.delay, 0.0)).with_own_noise()
        likelier = there.log_likelihood(before) > SIGNIFICANT**2 / 2
        if likelier[firm].all():
            own = _own_delays(there)
            break
        delay, sigma = np.where(firm & ~likelier, 0.0, own.delay), np.where(firm & ~likelier, np.inf, own.sigma)
        own, firm = _OwnDelays(delay, sigma), firm & likelier
    return own


def _common_delay(trial: DelayTrial) -> tuple[tuple[float, float], DelayTrial]:
    """Return the delay of all torques and its sigma, and the rows put back by it."""
    delay, steps, start = 0.0, 0, trial
    while True:
        system, steps = independent(_one_delay(trial.system(), len(trial.columns))), steps + 1
        step, sigma = _step(system, _COMMON, trial.gain)
        step = float(np.clip(step, -_LARGEST_STEP, _LARGEST_STEP))
        delay += step
        if abs(delay) > LARGEST_DELAY:
            return (0.0, float("inf")), start
        # A first step within chance is as good a value as any: nothing is gained by shifting the torques by it.
        enough = SIGNIFICANT if steps == 1 else _CONVERGED
        if not np.isfinite(sigma) or abs(step) <= enough * sigma:
            return (delay, sigma), trial
        if steps == _MOST_STEPS:
            return (delay, max(sigma, abs(step))), trial
        trial = trial.moved(np.full(len(trial.delays), delay), values_of(system))
        if abs(step) > SIGNIFICANT * sigma:
            trial = trial.with_own_noise()


def _own_delays(trial: DelayTrial) -> _OwnDelays:
    """Return the delay of every equation and its sigma (E,), starting from the delay of all."""
    count, firm = 0, np.ones(len(trial.delays), dtype=bool)
    while True:
        system, count = independent(trial.system()), count + 1
        wanted, sigma = np.array([_step(system, name, trial.gain) for name in trial.names]).T
        steps = np.clip(wanted, -_LARGEST_STEP, _LARGEST_STEP)
        # Where a delay is hardly identifiable, the derivative says nothing of how far it is. A first step within chance
        # is not followed: joints of little torque would sometimes find a delay far away that fits as well by chance.
        firm = np.abs(wanted) > SIGNIFICANT * sigma if count == 1 else firm
        moving = firm & (np.abs(steps) > _CONVERGED * sigma) & (sigma < _LARGEST_STEP)
        delays = np.clip(trial.delays + steps, -LARGEST_DELAY, LARGEST_DELAY)
        moving &= np.abs(trial.delays) < LARGEST_DELAY
        if count == _MOST_OWN_STEPS or not moving.any():
            return _OwnDelays(np.where(np.isfinite(sigma), delays, 0.0), np.hypot(sigma, trial.systematic))
        trial = trial.moved(np.where(moving, delays, trial.delays), values_of(system))


def _one_delay(system: System, count: int) -> System:
    """Return the system with one delay for all equations; the delays come after ``count`` parameters."""
    triangle = system.triangle
    columns = [triangle[:, :count], triangle[:, count:-1].sum(axis=1, keepdims=True), triangle[:, -1:]]
    reduced = np.asarray(np.linalg.qr(np.hstack(columns), mode="r"))
    return System((*system.columns[:count], _COMMON), reduced, system.rows)


def _step(system: System, name: str, gain: float) -> tuple[float, float]:
    """Return the step of a delay and its sigma; 0 and infinity where it is not identifiable."""
    if name not in system.columns:
        return 0.0, float("inf")
    place = system.columns.index(name)
    return float(system.values[place]), gain * float(np.sqrt(system.inverse[place, place]))
