"""Filters run through all recordings, sample by sample: the state starts anew at each segment, parameters carry on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...distributions import chi2_ppf
from ...errors import EstimateError
from ...observe import RawBlock, raw_samples
from ...progress import Progress
from .engines import Engine
from .noises import PERIODS, MovingBlock, with_motion
from .start import FilterPlan, arms_of
from .state import Shape, Trouble, divergence, impossible_joint, new_vector, parameter_root, restart

INSTANTS = 2000
"""Instants of the history, about."""


@dataclass(eq=False)
class Passed:
    """Filters after their passes.

    Attributes:
        shape: Sizes.
        vectors: State vectors (size, C).
        times: Instants that were recorded, pieces of them [s].
        recorded: States, parameters and sigmas at these instants, pieces (K, 2n + 2f, C).
        failures: For each filter the error that stopped it, None if it got through.
        impossible: Filters that stopped because their parameters made no possible arm.
    """

    shape: Shape
    vectors: np.ndarray
    failures: list[EstimateError | None]
    times: list[np.ndarray] = field(default_factory=list)
    recorded: list[np.ndarray] = field(default_factory=list)
    impossible: set[int] = field(default_factory=set)


def filtered(plans: Sequence[FilterPlan], progress: Progress, *, careful: bool = False) -> Passed:
    """Run filters over recordings of the same stamps, side by side.

    Args:
        plans: The filters.
        progress: Progress callback of the pass.
        careful: Whether parameters that make no possible arm are to be moved, whatever the size of the filter.
    """
    return _Run(plans, careful=careful).through(progress)


class _Run:
    """Filters on their way."""

    def __init__(self, plans: Sequence[FilterPlan], *, careful: bool) -> None:
        self._plans, self._careful = plans, careful
        plan = plans[0]
        self._shape = shape = shape_of(plan)
        free = list(plan.free)
        vectors = [new_vector(shape, p.start.values[free], p.start.covariance[np.ix_(free, free)]) for p in plans]
        self._passed = Passed(shape, np.column_stack(vectors), [None] * len(plans))
        self._bound = float(chi2_ppf(0.95, shape.observed))
        samples = sum(max(source.samples, 1) for source in plan.evidence.sources)
        self._stride = max(1, -(-samples // INSTANTS))
        self._end, self._steps = 0.0, 0
        self._shift: float | None = None  # from the clock of a recording to that of the history
        self._last_beside, self._last_time = np.zeros((0, 0, 0)), 0.0

    def through(self, progress: Progress) -> Passed:
        sources = self._plans[0].evidence.sources
        for index in range(len(sources)):
            self._shift = None
            for blocks in zip(*(_moving_blocks(plan, index) for plan in self._plans), strict=True):
                self._take(index, blocks)
                if all(failure is not None for failure in self._passed.failures):
                    return self._passed
            progress(index + 1, len(sources))
        if not self._steps:
            self._passed.failures = [self._too_short()] * len(self._plans)
            return self._passed
        self._record_last()
        return self._passed

    def _too_short(self) -> EstimateError:
        """Return the error that says why there was nothing to filter."""
        cutoff = self._plans[0].smoothing_cutoff
        if cutoff is None:
            return EstimateError("no recording has two samples without a gap: there is nothing to filter")
        return EstimateError(
            f"no segment without a gap is as long as {PERIODS:g} periods of the cut-off, {PERIODS / cutoff:.3g} s: "
            "there is nothing to filter; record longer, raise --cutoff, or choose derivatives 'predicted'"
        )

    def _take(self, index: int, moving: tuple[MovingBlock, ...]) -> None:
        blocks = [block for block, _ in moving]
        first = blocks[0]
        if self._shift is None:
            self._shift = self._end - first.time[0] if index else 0.0
        observed = np.stack(
            [block.q if block.qd is None else np.concatenate([block.qd, block.q]) for block in blocks], axis=-1
        )
        beside = np.stack([np.concatenate([block.y, motion]) for block, motion in moving], axis=-1)
        time = first.time
        if first.starts:
            for column, (plan, block) in enumerate(zip(self._plans, blocks, strict=True)):
                vector = self._passed.vectors[:, column].copy()
                restart(self._shape, vector, _first_state(block, plan.rate), plan.noises[index].state)
                self._passed.vectors[:, column] = vector
            observed = observed[:, 1:]
        else:
            beside = np.concatenate([self._last_beside, beside], axis=1)
            time = np.concatenate([[self._last_time], time])
        self._last_beside, self._last_time = beside[:, -1:], time[-1]
        given = self._over_steps(beside, observed)
        self._advance(index, np.ascontiguousarray(given.transpose(1, 0, 2)), time)
        self._end = float(time[-1] + self._shift + 1 / self._plans[0].rate)

    def _over_steps(self, beside: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """Return the inputs of the steps between samples: torque, what is observed after it, measured motion.

        Args:
            beside: Torque and measured motion at the samples (n or 4n, k + 1, C).
            observed: (m, k, C).
        """
        torque, *motion = np.split(beside, len(beside) // self._shape.joints)
        drive = torque[:, :-1] if self._plans[0].settings.torque == "held" else _middle(torque)
        if not motion:
            return np.concatenate([drive, observed])
        q, qd, qdd = motion
        return np.concatenate([drive, observed, _middle(q), qd[:, :-1], qd[:, 1:], _middle(qdd)])

    def _advance(self, index: int, given: np.ndarray, time: np.ndarray) -> None:
        passed, source = self._passed, self._plans[0].evidence.sources[index]
        before, values = self._steps, self._parameters()
        with np.errstate(all="ignore"):
            engine, fixed = self._engine(index), self._fixed(index)
            passed.vectors, recorded = engine.advance(passed.vectors, given, fixed, before, self._stride)
        self._steps += len(given)
        passed.times.append(time[(-before) % self._stride : len(given) : self._stride] + (self._shift or 0.0))
        passed.recorded.append(recorded)
        tally = self._shape.split(passed.vectors)[5]
        for column in np.flatnonzero(tally[3] >= 0).tolist():
            if passed.failures[column] is None:
                step, trouble = int(tally[3, column]), Trouble(int(tally[4, column]))
                at = step - before
                is_empty = trouble is Trouble.INERTIA and not values[:, column].any()
                start = self._plans[column].settings.start
                error = divergence(trouble, time[at], source.label, step, start, is_empty=is_empty)
                if trouble is Trouble.INERTIA and not is_empty:
                    passed.impossible.add(column)
                    observed = self._shape.observed
                    error = self._explained(error, index, column, given[at, observed:, column][: self._shape.joints])
                passed.failures[column] = error

    def _explained(self, error: EstimateError, index: int, column: int, q: np.ndarray) -> EstimateError:
        """Return the error, with the joint at which least squares of all rows is no possible arm either, if so."""
        plan = self._plans[column]
        pivots = arms_of(plan, index).inertia().dense(q[:, None], plan.evidence.plain.values)[1].ravel()
        joint = impossible_joint(plan.evidence, pivots)
        if joint is None:
            return error
        return EstimateError(
            f"{error}; least squares of all rows has no positive inertia there either (joint '{joint}'): these data "
            "and this model together make no possible arm"
        )

    def _parameters(self) -> np.ndarray:
        """Return all parameters of every filter (c, C)."""
        values = np.column_stack([plan.start.values for plan in self._plans])
        values[list(self._plans[0].free)] = self._shape.split(self._passed.vectors)[1]
        return values

    def _fixed(self, index: int) -> np.ndarray:
        columns = [
            np.concatenate([
                plan.start.values, plan.noises[index].process, plan.noises[index].observed,
                [self._bound, 1 / plan.rate, plan.sign_width], plan.standstill, plan.least,
            ])
            for plan in self._plans
        ]  # fmt: skip
        return np.column_stack(columns)

    def _engine(self, index: int) -> Engine:
        plan = self._plans[0]
        return arms_of(plan, index).engine(
            self._shape, plan.settings.integrator, measured=plan.smoothing_cutoff is not None, careful=self._careful
        )

    def _record_last(self) -> None:
        """Record the instant after the last sample's correction."""
        shape, vectors = self._shape, self._passed.vectors
        x, values, *_ = shape.split(vectors)
        with np.errstate(all="ignore"):
            sigma = np.column_stack([np.linalg.norm(parameter_root(shape, vector), axis=1) for vector in vectors.T])
        self._passed.times.append(np.array([self._end - 1 / self._plans[0].rate]))
        self._passed.recorded.append(np.concatenate([x, values, sigma])[None])


def shape_of(plan: FilterPlan) -> Shape:
    """Return the sizes of a plan's filter."""
    n = plan.joints
    observed = n if plan.settings.observe == "q" else 2 * n
    noises = n if plan.settings.process == "torque" else 2 * n
    return Shape(n, len(plan.free), len(plan.evidence.columns), observed, noises)


def _moving_blocks(plan: FilterPlan, index: int) -> Iterator[MovingBlock]:
    source = plan.evidence.sources[index]
    blocks = raw_samples(source, velocity=plan.settings.observe == "q_qd")
    if plan.smoothing_cutoff is None:
        return ((block, np.zeros((0, len(block.time)))) for block in blocks)
    return with_motion(blocks, plan.rate, plan.smoothing_cutoff)


def _middle(samples: np.ndarray) -> np.ndarray:
    """Return the means of neighbouring samples (rows, k, C)."""
    return (samples[:, :-1] + samples[:, 1:]) / 2


def _first_state(block: RawBlock, rate: float) -> np.ndarray:
    """Return [qd; q] at the first sample: recorded velocities, or the difference of the first two positions."""
    if block.qd is not None:
        speed = block.qd[:, 0]
    else:
        speed = (block.q[:, 1] - block.q[:, 0]) * rate if block.q.shape[1] > 1 else np.zeros(len(block.q))
    return np.concatenate([speed, block.q[:, 0]])
