"""Robust estimation (Huber, Tukey): rows far from the model count less, and outliers hardly or not at all.

With the residual ``u = (y - W x) / s`` of a row over the scale s of its noise group, the M-estimate solves
``sum_g a_g W_g^T psi(u) = 0``. ``psi(u) = w(u) u`` with the weights of Huber or of Tukey's biweight, whose constants
cost 5 % of efficiency in normal noise; s is the median of ``|y - W x|`` over 0.6745 (MAD). Groups count by what their
own rows say, ``a_g = m / (s q)`` with ``m`` the mean of ``psi'`` and ``q`` that of ``psi^2``: with one group, or tails
alike, that is the usual estimate.

The result is handed on as pseudo-observations (Huber 1981, 7.9), rows with ``y* = W x + s psi(u) / m`` in place of y.
Weighted least squares of these has the M-estimate as its solution and the covariance of M-estimates (H1 of statsmodels)
as its covariance, and all that works on rows works on them: noise models and sigmas for correlated noise, refits with
other filters, reduction, left-out blocks. Every iteration is one pass over the rows, of which nothing but sums and a
bounded sample of residuals is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import erfc, sqrt
from typing import Any

import numpy as np

from ..errors import EstimateError, nearest_match
from ..observe import Factor, Observations, RowBlock, RowSource, merged_triangle, reduce_rows, weighted_runs
from ..text import short_repr
from .evidence import Estimate
from .least_squares import above_zero, group_factors, weighted
from .system import NoiseGroup, System, group_of, stacked_system

HUBER = 1.345
"""Residual in scales from which Huber's weight falls: 95 % efficiency in normal noise."""

TUKEY = 4.685
"""Residual in scales from which Tukey's weight is zero: 95 % efficiency in normal noise."""

NORMAL_MEDIAN = 0.6744897501960817
"""Median of ``|u|`` for u standard normal."""

NORMS = ("huber", "tukey")

LIGHT = 0.5
"""A row of smaller weight than this is reported as down-weighted."""

_MOST_ITERATIONS = 50
_CONVERGED = 1e-5
# Huber's estimate as the start of Tukey's need not be exact.
_CONVERGED_START = 1e-2
# Residuals of a group stored for its scale, at most; with more rows every second, fourth ... is stored.
_STORED = 32_768
# With fewer rows the scale of a group is that of its equation in all recordings.
_LEAST_ROWS = 40
# Tails so long that the mean of psi' is below this have no scale worth the name.
_LEAST_SLOPE = 0.1
# Rounding errors of torques, relative to their size.
_ROUNDING = 1e-12


def huber_weights(u: np.ndarray, constant: float = HUBER) -> np.ndarray:
    """Return Huber's weights ``min(1, c / |u|)``."""
    return constant / np.maximum(np.abs(u), constant)


def tukey_weights(u: np.ndarray, constant: float | np.ndarray = TUKEY) -> np.ndarray:
    """Return Tukey's biweight ``(1 - (u / c)^2)^2``, 0 from c on."""
    return np.maximum(1 - (u / constant) ** 2, 0.0) ** 2


def robust_weights(norm: str, u: np.ndarray) -> np.ndarray:
    """Return the weights of residuals u in scales.

    Raises:
        EstimateError: If the norm is unknown.
    """
    if norm not in NORMS:
        raise EstimateError(f"robust: got '{norm}', allowed are {', '.join(NORMS)}{nearest_match(norm, NORMS)}")
    return huber_weights(u) if norm == "huber" else tukey_weights(u)


def psi_slope(norm: str, u: np.ndarray) -> np.ndarray:
    """Return the derivative of ``psi(u) = w(u) u``."""
    if norm == "huber":
        return (np.abs(u) <= HUBER).astype(float)
    share = np.minimum((u / TUKEY) ** 2, 1.0)
    return (1 - share) * (1 - 5 * share)


def normal_light_share(norm: str) -> float:
    """Return the part of rows that normal noise alone gives a weight below ``LIGHT``."""
    limit = HUBER / LIGHT if norm == "huber" else TUKEY * sqrt(1 - sqrt(LIGHT))
    return erfc(limit / sqrt(2))


@dataclass(frozen=True, eq=False)
class PseudoObservations:
    """Replaces the y of the rows of one recording: an adjustment of its row source.

    Attributes:
        norm: ``huber`` or ``tukey``.
        values: Parameters of the columns of every equation.
        scales: Scale s of every equation; None where it has no rows.
        slopes: Mean of ``psi'`` of every equation.
    """

    norm: str
    values: tuple[np.ndarray, ...]
    scales: tuple[float | None, ...]
    slopes: tuple[float, ...]

    def __call__(self, block: RowBlock) -> RowBlock:
        """Return the block with ``y* = W x + s psi(u) / m``."""
        found = []
        for rows, x, scale, slope in zip(block.rows, self.values, self.scales, self.slopes, strict=True):
            if scale is not None:
                predicted = rows[:, : len(x)] @ x
                u = (rows[:, -1] - predicted) / scale
                rows = np.array(rows)
                rows[:, -1] = predicted + scale / slope * robust_weights(self.norm, u) * u
                rows.setflags(write=False)
            found.append(rows)
        return replace(block, rows=tuple(found))


@dataclass
class _GroupSums:
    """Sums over the rows of a noise group at given parameters and scale."""

    score: np.ndarray
    rows: int = 0
    squares: float = 0.0
    slope: float = 0.0
    slope_squares: float = 0.0
    light: int = 0
    largest: float = 0.0
    time: float = 0.0
    sizes: list[np.ndarray] = field(default_factory=list)
    every: int = 1

    def add(self, norm: str, W: np.ndarray, index: np.ndarray, residual: np.ndarray, scale: float) -> np.ndarray:
        """Take rows and return the sizes of their residuals in scales."""
        u = residual / scale
        weights, slope = robust_weights(norm, u), psi_slope(norm, u)
        psi = weights * u
        self.score[index] += W.T @ psi
        self.squares += float(psi @ psi)
        self.slope += float(slope.sum())
        self.slope_squares += float(slope @ slope)
        self.light += int(np.count_nonzero(weights < LIGHT))
        self._store(np.abs(residual))
        self.rows += len(residual)
        return np.abs(u)

    def _store(self, sizes: np.ndarray) -> None:
        self.sizes.append(sizes[-self.rows % self.every :: self.every])
        if sum(map(len, self.sizes)) > _STORED:
            self.sizes, self.every = [np.concatenate(self.sizes)[::2]], 2 * self.every

    def mean_slope(self) -> float:
        """Return the mean of psi'."""
        return max(self.slope / self.rows, _LEAST_SLOPE)

    def deviation(self, scale: float, leverage: float) -> float:
        """Return the standard deviation of the pseudo-observations, with the small-sample factor of H1."""
        mean = self.mean_slope()
        spread = max(self.slope_squares / self.rows - (self.slope / self.rows) ** 2, 0.0)
        factor = 1 + leverage / self.rows * spread / mean**2
        return scale * factor * sqrt(self.squares / max(self.rows - leverage, 1.0)) / mean


@dataclass(frozen=True)
class DownWeighted:
    """How much of an equation's rows was down-weighted.

    Attributes:
        kind: Torque kind.
        joint: Name of the joint.
        rows: Rows of all recordings.
        percent: Those whose weight is below 0.5 [%].
        largest: Largest residual, in scales.
        recording: Where it is.
        time: When [s].
    """

    kind: str
    joint: str
    rows: int
    percent: float
    largest: float
    recording: str
    time: float


@dataclass(frozen=True, eq=False)
class RobustFit:
    """An M-estimate with its pseudo-observations.

    Attributes:
        norm: ``huber`` or ``tukey``.
        estimate: The parameters, as weighted least squares of the pseudo-observations.
        sources: Rows with pseudo-observations.
        observations: Factors of these.
        scales: Robust standard deviation of every noise group [N m or N].
        down_weighted: How much of the rows of every equation.
        iterations: Passes over the rows.
        has_converged: Whether the last one moved no parameter by more than 1e-5 of its sigma.
    """

    __repr__ = short_repr

    norm: str
    estimate: Estimate
    sources: tuple[RowSource, ...]
    observations: Observations
    scales: Mapping[NoiseGroup, float]
    down_weighted: tuple[DownWeighted, ...]
    iterations: int
    has_converged: bool

    @property
    def normal_percent(self) -> float:
        """Rows that would be down-weighted in normal noise [%]."""
        return 100 * normal_light_share(self.norm)

    @property
    def most(self) -> DownWeighted:
        """The equation of which most rows are down-weighted."""
        return max(self.down_weighted, key=lambda one: one.percent)

    @property
    def farthest(self) -> DownWeighted:
        """The equation with the largest residual."""
        return max(self.down_weighted, key=lambda one: one.largest)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was down-weighted, and whether the estimate has converged."""
        most, far = self.most, self.farthest
        found = [
            f"robust weights ({self.norm}): {most.percent:.2g} % of the rows of {most.joint} ({most.kind}) have a "
            f"weight below {LIGHT:g}, more than of any other; in normal noise {self.normal_percent:.2g} %. Largest "
            f"residual: {far.largest:.3g} scales on {far.joint} ({far.kind}), at {far.time:.5g} s of '{far.recording}'"
        ]
        if not self.has_converged:
            found.append(f"robust weights did not converge in {self.iterations} passes: the last estimate was taken")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Return how rows were down-weighted as plain data."""
        return {
            "norm": self.norm,
            "passes": self.iterations,
            "converged": self.has_converged,
            "expected_percent": self.normal_percent,
            "joints": [asdict(one) for one in self.down_weighted],
        }


def robust_fit(sources: Sequence[RowSource], plain: Estimate, norm: str, *, threads: int = 1) -> RobustFit:
    """Estimate with the weights of Huber or Tukey, starting from least squares; Tukey from Huber's estimate.

    Args:
        sources: The rows of all recordings.
        plain: Weighted least squares of them.
        norm: ``huber`` or ``tukey``.
        threads: Threads that share the reductions.

    Raises:
        EstimateError: If the norm is unknown.
    """
    search = _NewtonSteps(sources, plain, reduce_rows(sources, blocks=1, threads=threads))
    robust_weights(norm, np.zeros(0))
    for one in NORMS[: NORMS.index(norm) + 1]:
        search.iterate(one, _CONVERGED if one == norm else _CONVERGED_START)
    adjusted = tuple(source.adjusted(search.pseudo_observations(source)) for source in sources)
    observations = reduce_rows(adjusted, threads=threads)
    estimate = weighted(observations, plain.columns, search.deviations)
    return RobustFit(
        norm, estimate, adjusted, observations, search.scales, tuple(search.down_weighted()), search.passes,
        search.has_converged,
    )  # fmt: skip


class _NewtonSteps:
    """Newton steps towards an M-estimate; scales are those of the residuals before the step."""

    def __init__(self, sources: Sequence[RowSource], plain: Estimate, observations: Observations) -> None:
        self._sources, self._columns = sources, plain.columns
        merged = [
            Factor(*group, 0, self._columns, *merged_triangle(factors, self._columns))
            for group, factors in group_factors(observations).items()
            if group in plain.deviations
        ]
        self._merged = replace(observations, factors=tuple(merged))
        self.values, self.scales, self.norm = np.array(plain.values), dict(plain.deviations), NORMS[0]
        self._leverages = dict.fromkeys(self.scales, 0.0)
        # Torques without noise leave rounding errors, of which most may be zero.
        sizes = {group_of(one): np.linalg.norm(one.triangle[:, -1]) / sqrt(one.rows) for one in merged}
        self._least = above_zero({group: _ROUNDING * float(size) for group, size in sizes.items()})
        self._sums: dict[NoiseGroup, _GroupSums] = {}
        self.passes, self.has_converged = 0, False
        self._pass(NORMS[0])
        self.scales = self._found_scales()

    def iterate(self, norm: str, small: float) -> None:
        """Step until no parameter moves by more than a small part of its sigma, and no scale of itself."""
        self.norm = norm
        for _ in range(_MOST_ITERATIONS):
            self._pass(norm)
            step = self._step()
            scales = self._found_scales()
            change = max(abs(np.log(scales[group] / self.scales[group])) for group in scales)
            self.has_converged = bool(max(step, change) < small)
            if self.has_converged:
                break
            self.scales = scales

    def _pass(self, norm: str) -> None:
        self._sums = {}
        self.passes += 1
        used = dict.fromkeys(self.scales, 1.0)
        for source in self._sources:
            for one in weighted_runs(source.runs(), self._columns, used):
                group, W = one.run.group, one.rows[:, :-1]
                residual = one.rows[:, -1] - W @ self.values[one.index]
                sums = self._sums.setdefault(group, _GroupSums(np.zeros(len(self._columns))))
                sizes = sums.add(norm, W, one.index, residual, self.scales[group])
                worst = int(np.argmax(sizes))
                if sizes[worst] > sums.largest:
                    sums.largest = float(sizes[worst])
                    sums.time = float(one.run.block.time[one.run.places][worst])

    def _found_scales(self) -> dict[NoiseGroup, float]:
        """Return MAD of every group, of all recordings together where one has few rows."""
        found = {}
        for group, sums in self._sums.items():
            alike = [group] if sums.rows >= _LEAST_ROWS else [one for one in self._sums if one[1:] == group[1:]]
            sizes = np.concatenate([part for one in alike for part in self._sums[one].sizes])
            found[group] = max(float(np.median(sizes)) / NORMAL_MEDIAN, self._least[group])
        return found

    @property
    def deviations(self) -> dict[NoiseGroup, float]:
        """Standard deviation of the pseudo-observations of every group."""
        return {
            group: max(sums.deviation(self.scales[group], self._leverages[group]), self._least[group])
            for group, sums in self._sums.items()
        }

    def _step(self) -> float:
        """Move the parameters, and return by how many sigmas at most."""
        weights = {group: 1 / deviation for group, deviation in self.deviations.items()}
        system = stacked_system(self._merged, self._columns, weights)
        place = [self._columns.index(name) for name in system.columns]
        score = np.zeros(len(self._columns))
        for group, sums in self._sums.items():
            score += self.scales[group] / sums.mean_slope() * weights[group] ** 2 * sums.score
        step = system.inverse @ score[place]
        self.values[place] += step
        self._leverages = dict(_leverages(self._merged, system, weights))
        return float(np.max(np.abs(step) / np.sqrt(np.diag(system.inverse))))

    def pseudo_observations(self, source: RowSource) -> PseudoObservations:
        """Return the adjustment of a recording's rows."""
        known = dict(zip(self._columns, self.values, strict=True))
        groups = [(source.label, *equation) for equation in source.equations.kinds_joints]
        values = tuple(np.array([known.get(name, 0.0) for name in names]) for names in source.equations.columns)
        scales = tuple(self.scales[group] if group in self._sums else None for group in groups)
        slopes = tuple(self._sums[group].mean_slope() if group in self._sums else 1.0 for group in groups)
        return PseudoObservations(self.norm, values, scales, slopes)

    def down_weighted(self) -> Iterator[DownWeighted]:
        """Yield how much of the rows of every equation was down-weighted, in the order of the equations."""
        for kind, joint in self._sources[0].equations.kinds_joints:
            own = {group[0]: sums for group, sums in self._sums.items() if group[1:] == (kind, joint)}
            if own:
                rows, light = sum(one.rows for one in own.values()), sum(one.light for one in own.values())
                where = max(own, key=lambda label: own[label].largest)
                worst = own[where]
                yield DownWeighted(kind, joint, rows, 100 * light / rows, worst.largest, where, worst.time)


def _leverages(
    merged: Observations, system: System, weights: Mapping[NoiseGroup, float]
) -> Iterator[tuple[NoiseGroup, float]]:
    """Yield how many parameters the rows of each group determine: the trace of their part of the hat matrix."""
    for factor in merged.factors:
        group = group_of(factor)
        place = [factor.columns.index(name) for name in system.columns]
        yield group, weights[group] ** 2 * float(np.sum((factor.triangle[:, place] @ system.inverse_root) ** 2))
