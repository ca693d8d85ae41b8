"""Filters through all recordings, sample by sample: state anew at each stretch, parameters carried on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...distributions import chi2_ppf
from ...errors import EstimateError
from ...observe import RawBlock, raw_samples
from ...progress import Progress
from .engines import Engine
from .noises import PERIODS, MovingBlock, with_motion, without_motion
from .plan import FilterPlan, arms_of
from .state import Shape, Trouble, divergence, impossible_joint, new_vector, parameter_root, restart

INSTANTS = 2000
"""Instants of the history that are kept, about."""


@dataclass(eq=False)
class Passed:
    """Filters after their passes.

    Attributes:
        shape: Sizes.
        vectors: State vectors (size, C).
        times: Instants that were kept, pieces of them [s].
        kept: What was kept then, pieces (K, 2n + 2f, C).
        failures: For each filter the error that stopped it, None if it got through.
        impossible: Filters that stopped because their parameters made no possible arm.
    """

    shape: Shape
    vectors: np.ndarray
    failures: list[EstimateError | None]
    times: list[np.ndarray] = field(default_factory=list)
    kept: list[np.ndarray] = field(default_factory=list)
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
            for blocks in self._blocks(index):
                self._take(index, blocks)
                if all(failure is not None for failure in self._passed.failures):
                    return self._passed
            progress(index + 1, len(sources))
        if not self._steps:
            self._passed.failures = [self._too_short()] * len(self._plans)
            return self._passed
        self._keep_last()
        return self._passed

    def _too_short(self) -> EstimateError:
        """Return the error that says why there was nothing to filter."""
        cutoff = self._plans[0].smoothing_cutoff
        if cutoff is None:
            return EstimateError("no recording has two samples without a gap: there is nothing to filter")
        return EstimateError(
            f"no stretch without a gap is as long as {PERIODS:g} periods of the cut-off, {PERIODS / cutoff:.3g} s: "
            "there is nothing to filter; record longer, raise --cutoff, or choose derivatives 'predicted'"
        )

    def _blocks(self, index: int) -> Iterator[tuple[MovingBlock, ...]]:
        return zip(*(_moving_blocks(plan, index) for plan in self._plans), strict=True)

    def _take(self, index: int, moving: tuple[MovingBlock, ...]) -> None:
        blocks = [one.samples for one in moving]
        first = blocks[0]
        if self._shift is None:
            self._shift = self._end - first.time[0] if index else 0.0
        observed = np.stack([_observed(block) for block in blocks], axis=-1)
        beside = np.stack([np.concatenate([one.samples.y, one.motion]) for one in moving], axis=-1)
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
            passed.vectors, kept = self._engine(index).advance(
                passed.vectors, given, self._fixed(index), before, self._stride
            )
        self._steps += len(given)
        passed.times.append(time[(-before) % self._stride : len(given) : self._stride] + (self._shift or 0.0))
        passed.kept.append(kept)
        tally = self._shape.split(passed.vectors)[5]
        for column in np.flatnonzero(tally[3] >= 0):
            if passed.failures[column] is None:
                step, trouble = int(tally[3, column]), Trouble(int(tally[4, column]))
                at = step - before
                is_empty = trouble is Trouble.INERTIA and not values[:, column].any()
                start = self._plans[int(column)].settings.start
                error = divergence(trouble, time[at], source.label, step, start, is_empty=is_empty)
                if trouble is Trouble.INERTIA and not is_empty:
                    passed.impossible.add(int(column))
                    error = self._explained(
                        error,
                        index,
                        int(column),
                        given[at, self._shape.joints :, column][
                            self._shape.observed - self._shape.joints : self._shape.observed
                        ],
                    )
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
        settings = self._plans[0].settings
        return arms_of(self._plans[0], index).engine(
            self._shape,
            settings.integrator,
            measured=self._plans[0].smoothing_cutoff is not None,
            careful=self._careful,
        )

    def _keep_last(self) -> None:
        """Keep the instant after the last sample's correction."""
        shape, vectors = self._shape, self._passed.vectors
        x, values, *_ = shape.split(vectors)
        with np.errstate(all="ignore"):
            sigma = np.column_stack([np.linalg.norm(parameter_root(shape, vector), axis=1) for vector in vectors.T])
        self._passed.times.append(np.array([self._end - 1 / self._plans[0].rate]))
        self._passed.kept.append(np.concatenate([x, values, sigma])[None])


def shape_of(plan: FilterPlan) -> Shape:
    """Return the sizes of a plan's filter."""
    n = plan.joints
    observed = n if plan.settings.observe == "q" else 2 * n
    noises = n if plan.settings.process == "torque" else 2 * n
    return Shape(n, len(plan.free), len(plan.evidence.columns), observed, noises)


def _moving_blocks(plan: FilterPlan, index: int) -> Iterator[MovingBlock]:
    source = plan.evidence.sources[index]
    blocks = raw_samples(source, velocity=plan.settings.observe == "q_qd")
    cutoff = plan.smoothing_cutoff
    return without_motion(blocks) if cutoff is None else with_motion(blocks, plan.rate, cutoff)


def _middle(samples: np.ndarray) -> np.ndarray:
    """Return the means of neighbouring samples (rows, k, C)."""
    return (samples[:, :-1] + samples[:, 1:]) / 2


def _observed(block: RawBlock) -> np.ndarray:
    return block.q if block.qd is None else np.concatenate([block.qd, block.q])


def _first_state(block: RawBlock, rate: float) -> np.ndarray:
    """Return [qd; q] at the first sample: recorded velocities, or the difference of the first two positions."""
    if block.qd is not None:
        speed = block.qd[:, 0]
    else:
        speed = (block.q[:, 1] - block.q[:, 0]) * rate if block.q.shape[1] > 1 else np.zeros(len(block.q))
    return np.concatenate([speed, block.q[:, 0]])
