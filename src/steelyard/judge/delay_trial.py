"""Rows whose torques are put back by trial delays, with the rate of the model's torque as a column of each equation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..estimate import (
    Estimate,
    NoiseGroup,
    PseudoObservations,
    System,
    generalised,
    group_of,
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
from ..observe.motion_stream import interpolation_window
from ..recording import Recording

_MOVING = 0.999
"""Share of its window in which a joint moves, for a row to say something of delays: a low-passed velocity turns round a
little before or after the joint does, and friction with it, which would look like a delay."""

_LOW_PASS = 1e-3
"""What the low-pass does to a delay, as a part of one over its cut-off: 0.15 ms at 6.7 Hz. Found on short simulated
logs of little noise, whose delays spread by as much; it adds to sigma."""

_FEW = 0.2
"""Where fewer rows than this part move so surely, all rows are taken."""


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


@dataclass(frozen=True, eq=False)
class DelayTrial:
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
        rows: Usable rows of each equation (E,).
        spread: Residuals of every noise group, rms, at the estimate of all equations together; with own noise only.
    """

    origin: Sequence[RowSource]
    delays: np.ndarray
    columns: tuple[str, ...]
    values: Mapping[str, float]
    weights: Mapping[NoiseGroup, float]
    whitening: Whitening | None
    gain: float
    least: np.ndarray
    rows: np.ndarray
    spread: Mapping[NoiseGroup, float] = field(default_factory=dict)

    @classmethod
    def of(cls, sources: Sequence[RowSource], estimate: Estimate, whitening: Whitening | None) -> DelayTrial:
        """Return rows as they are."""
        nothing, values = np.zeros(len(sources[0].equations.kinds_joints)), values_of(estimate)
        gain, (least, rows) = _gain(estimate), _least(sources)
        return cls(sources, nothing, estimate.columns, values, estimate.weights, whitening, gain, least, rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the delays."""
        return tuple(f"delay {kind} {joint}" for kind, joint in self.origin[0].equations.kinds_joints)

    @property
    def systematic(self) -> float:
        """What the low-pass does to a delay [s]."""
        cutoff = self.origin[0].resolved.cutoff
        return _LOW_PASS / cutoff if cutoff else 0.0

    @property
    def parameters(self) -> System:
        """The system of the parameters alone, of all rows, at the trial delays."""
        return system_of_rows(self._shifted_sources(), self.columns, self.weights, self.whitening)

    def moved(self, delays: np.ndarray, values: Mapping[str, float] | None = None) -> DelayTrial:
        """Return the rows with torques put back by other delays."""
        return replace(self, delays=delays, values=self.values if values is None else values)

    def with_position_moved(self, joint: str, late: float) -> DelayTrial | None:
        """Return the rows with the position of a joint put back by a time [s]; None for logs that are read in blocks.

        A recorded velocity is put back with it.
        """
        origin = []
        for one in self.origin:
            if not isinstance(one.recording, Recording):
                return None
            moved = _put_back(one.recording, joint, late)
            origin.append(row_source(moved, one.equations, one.resolved, one.label, delays=one.delays))
        return replace(
            self, origin=[new.adjusted(old.adjustment) for new, old in zip(origin, self.origin, strict=True)]
        )

    def with_own_noise(self) -> DelayTrial:
        """Return the trial with weights and noise model of its own residuals."""
        origin: Sequence[RowSource] = self.origin
        sources: Sequence[RowSource] = [one.adjusted(None) for one in self._shifted_sources()]
        observations = reduce_rows(sources)
        plain = weighted(observations, self.columns)
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
        values, gain = values_of(estimate), _gain(estimate)
        return replace(
            self, origin=origin, values=values, weights=estimate.weights, whitening=whitening, gain=gain,
            spread=_spread(observations, plain),
        )  # fmt: skip

    def log_likelihood(self, other: DelayTrial) -> np.ndarray:
        """Return the logarithm of how much likelier each equation's rows are than another trial's (E,).

        Both have their own noise; correlated rows count for as many as are independent. Weights would not do: an
        equation's own parameters hide much of its delay, those that it shares with other equations do not.
        """
        ratios = np.zeros(len(self.rows))
        for e, equation in enumerate(self.origin[0].equations.kinds_joints):
            groups = [group for group in self.spread if group[1:] == equation and group in other.spread]
            if groups:
                ratios[e] = np.mean([np.log(other.spread[group] / self.spread[group]) for group in groups])
        return self.rows / max(self.gain, other.gain) ** 2 * ratios

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


def _spread(observations: Observations, estimate: Estimate) -> dict[NoiseGroup, float]:
    """Return the rms of every group's residuals at an estimate."""
    sums: dict[NoiseGroup, list[float]] = {}
    for factor in observations.factors:
        values = estimate.full_values(factor.columns)
        rest = factor.triangle[:, -1] - factor.triangle[:, :-1] @ values
        total = sums.setdefault(group_of(factor), [0.0, 0.0])
        total[0] += float(rest @ rest)
        total[1] += factor.rows
    return {group: float(np.sqrt(max(squares, 1e-300) / rows)) for group, (squares, rows) in sums.items() if rows}


def _put_back(recording: Recording, joint: str, late: float) -> Recording:
    """Return a recording with the position of a joint, and its velocity, as they were a time later [s]."""
    row, time = recording.joints.index(joint), recording.time
    first, taps = interpolation_window(late * (len(time) - 1) / float(time[-1] - time[0]))
    places = np.clip(np.arange(len(time))[:, None] + first + np.arange(len(taps)), 0, len(time) - 1)

    def moved(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        values[row] = values[row][places] @ taps
        return values

    qd = None if recording.qd is None else moved(recording.qd)
    return replace(recording, q=moved(recording.q), qd=qd)


def _least(sources: Sequence[RowSource]) -> tuple[np.ndarray, np.ndarray]:
    """Return the least share of each equation's rows that say something of delays (E,), and its usable rows (E,)."""
    usable, moving = (np.zeros(len(sources[0].equations.kinds_joints)) for _ in range(2))
    for source in sources:
        for block in source:
            usable += (block.share >= MIN_SHARE).sum(axis=1)
            moving += (block.share >= _MOVING).sum(axis=1)
    return np.where(moving >= _FEW * usable, _MOVING, MIN_SHARE), usable


def values_of(solved: System | Estimate) -> dict[str, float]:
    """Return the values by column."""
    return dict(zip(solved.columns, solved.values.tolist(), strict=True))


def _gain(estimate: Estimate) -> float:
    """Return what correlated noise and small samples add to the sigmas of these rows' white noise."""
    return float(np.median(estimate.sigma / np.sqrt(np.diag(estimate.system.inverse))))
