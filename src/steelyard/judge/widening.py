"""Intervals that allow for model error: what parts of the data disagree about beyond what their noise explains.

The sigmas of a noise model hold for noise. What a model lacks is a function of the motion: it comes again whenever the
motion does, and moves parameters however long the log is. It shows where parts of the data, left out in turn, move the
estimate farther than noise would. Partitions of the data are compared with the sigmas:

| partition | parts |
|---|---|
| ``time`` | stretches of time; repetitions of a motion together |
| ``recordings`` | whole recordings |
| ``speed`` | classes of speed, speeding up and braking apart, for each equation |
| ``position`` | classes of position, for each equation |
| ``base`` | classes of the position of the first joint, for each equation: a tilted base |

With ``B = A^-1`` the inverse of the information, ``A_g`` that of part g and ``s_g = W_g^T e_g`` its score,

    V = sum_g (B s_g) (B (I - A_g B)^-1 s_g)

is the variance of the parameters, unbiased whatever the size of the noise in each part: the first factor is what the
part adds to the estimate, the second what leaving it out changes. V over the variance of the noise model is a variance
ratio with few degrees of freedom. It is moderated over the parameters, as Smyth (2004) does with variances of genes:
ratios have a prior, a scaled inverse chi-square whose size and degrees of freedom come from all of them. Both are
taken lower by a part of their own standard errors, so that only an excess that is there widens an interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..distributions import t_ppf
from ..estimate import Estimate, group_of
from ..observe import Equations, Observations, RowBlock, Whitening
from ..signals import RowWhitener
from ..text import short_repr
from .evaluation import MotionExtent
from .residuals import ResidualRun

SPEEDS = (0.1, 0.25, 0.45, 0.7)
"""Limits of the classes of speed, over the largest speed of a joint."""

POSITIONS = 6
"""Classes of position, of equal width."""

LEAST_PARTS = 2
"""A partition into fewer parts than this has no spread."""

STATES = ("speed", "position", "base")
"""Partitions by the state of joints."""

_ROWS = 2048
"""Rows of an equation that are summed at a time."""

_LEVERAGE = 0.01
"""Added to what a part leaves of the information: a part that alone determines a parameter has no spread."""

NOTICED = 1.05
"""A sigma that is larger by less has no cause worth naming."""

_LEAST_RATIO = 1e-3

SURE, DIFFER = 1.5, 0.5
"""Standard errors taken off the common size of variance ratios, and off what they differ by beyond chance."""


@dataclass(frozen=True, eq=False)
class PartSums:
    """Sums over the rows of parts of the data, weighted and whitened as those of an estimate.

    Attributes:
        index: Places of the columns that these rows have among those of the estimate (k,).
        scores: ``W^T e`` at the estimate (G, k).
        information: ``W^T W`` (G, k, k).
    """

    __repr__ = short_repr

    index: np.ndarray
    scores: np.ndarray
    information: np.ndarray


def factor_parts(
    estimate: Estimate, observations: Observations, part_of: Mapping[tuple[str, int], int]
) -> dict[str, list[PartSums]]:
    """Return the sums over stretches of time and over recordings, by the name of the partition.

    Args:
        estimate: The estimate.
        observations: The factors that gave it.
        part_of: The stretch of every block of time, by recording and number of the block.
    """
    count, both = len(estimate.columns), dict[tuple[int, str], np.ndarray]()
    place, weights = {name: k for k, name in enumerate(estimate.columns)}, estimate.weights
    for factor in observations.factors:
        key = part_of[factor.recording, factor.block], factor.recording
        both.setdefault(key, np.zeros((count, count + 1)))
        known = [k for k, name in enumerate(factor.columns) if name in place]
        index = np.array([place[factor.columns[k]] for k in known], dtype=np.intp)
        rows = factor.triangle[:, [*known, -1]] * weights.get(group_of(factor), 0.0)
        rows[:, -1] -= rows[:, :-1] @ estimate.values[index]
        both[key][index[:, None], np.append(index, count)] += rows[:, :-1].T @ rows
    return {"time": [_merged(both, 0)], "recordings": [_merged(both, 1)]}


def _merged(sums: Mapping[tuple[int, str], np.ndarray], by: int) -> PartSums:
    found: dict[int | str, np.ndarray] = {}
    for key, one in sums.items():
        found[key[by]] = found[key[by]] + one if key[by] in found else one
    stacked = np.array(list(found.values()))
    return PartSums(np.arange(stacked.shape[1]), stacked[:, :, -1], stacked[:, :, :-1])


class StateSums:
    """Sums over classes of the state of each equation's joint, collected while residuals are looked through.

    Args:
        estimate: The estimate of all parameters: columns and weights.
        equations: Its equations.
        extent: How far and how fast the joints moved.
        whitening: How the rows of the estimate were whitened, if they were.
    """

    def __init__(
        self, estimate: Estimate, equations: Equations, extent: MotionExtent, whitening: Whitening | None = None
    ) -> None:
        self._columns, self._weights, self._whitening = estimate.columns, estimate.weights, whitening
        self._joint, self._extent = equations.joint_index, extent
        self._equations = equations.kinds_joints
        self._open: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._sums: dict[str, dict[tuple[int, int], np.ndarray]] = {name: {} for name in STATES}
        self._index: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._whiteners: dict[tuple[str, int], RowWhitener] = {}

    def take(self, found: ResidualRun) -> None:
        """Add the rows of a run with their residuals."""
        run = found.run
        weight = self._weights.get(run.group)
        if weight is None:
            return
        selected, _ = self._columns_of(run.equation, run.columns)
        rows = np.column_stack([run.rows[:, selected], found.residual])
        if self._whitening is not None:
            key = run.group[0], run.equation
            whitener = self._whiteners.get(key) or self._whiteners.setdefault(
                key, self._whitening.whitener(self._equations[run.equation])
            )
            if run.starts:
                whitener.restart()
            rows = whitener.push(rows)
        joint, places = int(self._joint[run.equation]), run.places
        labels = self._classes(joint, run.block, places)
        waiting = self._open.setdefault(run.equation, [])
        waiting.append((rows * weight, labels))
        if sum(len(one) for one, _ in waiting) >= _ROWS:
            self._flush(run.equation)

    def parts(self, estimate: Estimate, reference: Estimate) -> dict[str, list[PartSums]]:
        """Return the sums of every equation, by the name of the partition.

        Args:
            estimate: The estimate at which scores are wanted; its columns are among those given before.
            reference: The estimate whose residuals were taken.
        """
        for equation in list(self._open):
            self._flush(equation)
        place = {name: k for k, name in enumerate(estimate.columns)}
        names = np.array(self._columns)
        moved = reference.full_values(self._columns) - estimate.full_values(self._columns)
        found: dict[str, list[PartSums]] = {name: [] for name in self._sums}
        for equation, (_, index) in self._index.items():
            chosen = np.array([k for k, name in enumerate(names[index]) if name in place], dtype=np.intp)
            own = np.array([place[name] for name in names[index[chosen]]], dtype=np.intp)
            for name, sums in self._sums.items():
                stacked = np.array([square for (e, _), square in sums.items() if e == equation])
                scores = (stacked[:, :-1, -1] + stacked[:, :-1, :-1] @ moved[index])[:, chosen]
                found[name].append(PartSums(own, scores, stacked[:, chosen[:, None], chosen]))
        return found

    def _columns_of(self, equation: int, columns: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return which columns of an equation are estimated, and their places in the estimate."""
        if equation not in self._index:
            place = {name: k for k, name in enumerate(self._columns)}
            known = [k for k, name in enumerate(columns) if name in place]
            index = np.array([place[columns[k]] for k in known], dtype=np.intp)
            self._index[equation] = np.array(known, dtype=np.intp), index
        return self._index[equation]

    def _classes(self, joint: int, block: RowBlock, places: slice) -> np.ndarray:
        """Return the class of every row in each partition (3, k)."""
        qd, qdd = block.qd[joint, places], block.qdd[joint, places]
        speed = np.searchsorted(np.array(SPEEDS) * self._extent.speed_max[joint], np.abs(qd))
        return np.array([2 * speed + (qd * qdd > 0), *(self._position(k, block.q[k, places]) for k in (joint, 0))])

    def _position(self, joint: int, q: np.ndarray) -> np.ndarray:
        lower, upper = float(self._extent.lower[joint]), float(self._extent.upper[joint])
        return np.clip((q - lower) / max(upper - lower, 1e-300) * POSITIONS, 0, POSITIONS - 1).astype(np.intp)

    def _flush(self, equation: int) -> None:
        waiting = self._open.pop(equation)
        rows, labels = (np.concatenate(parts, axis=k) for k, parts in enumerate(zip(*waiting, strict=True)))
        for sums, label in zip(self._sums.values(), labels, strict=True):
            for one in np.unique(label):
                own = rows[label == one]
                key = equation, int(one)
                sums[key] = sums.get(key, 0.0) + own.T @ own


@dataclass(frozen=True, eq=False)
class Widening:
    """Intervals that allow for model error.

    Attributes:
        columns: Names of the parameters.
        sigma: Standard deviations (c,), not below those of the estimate.
        freedom: Degrees of freedom of the t intervals (c,).
        factor: By how much disagreement of parts and effects widens each (c,); what parameters that were left out may
            hide is not in it.
        cause: What widened each: a partition, ``effects`` of a choice, or ``reduction`` of the model; empty if nothing.
        parts: Number of parts of every partition, by its name.
    """

    __repr__ = short_repr

    columns: tuple[str, ...]
    sigma: np.ndarray
    freedom: np.ndarray
    factor: np.ndarray
    cause: tuple[str, ...]
    parts: Mapping[str, int]

    def half_width(self, level: float = 0.95) -> np.ndarray:
        """Return half the width of every t interval of this level (c,)."""
        return self.sigma * t_ppf(0.5 + level / 2, self.freedom)


def widened(
    estimate: Estimate,
    partitions: Mapping[str, Sequence[PartSums]],
    final: Estimate | None = None,
    shrinkage: np.ndarray | None = None,
    further: np.ndarray | None = None,
    hidden: np.ndarray | None = None,
) -> Widening:
    """Return the intervals of an estimate, widened by what parts of the data disagree about.

    Args:
        estimate: Least squares of the data, with the covariance of their noise.
        partitions: Sums over the parts of each partition, by its name; one of a single part does not count.
        final: The estimate that is reported, if it is not that of the data alone.
        shrinkage: How it changes with that of the data (c, c); by default it is the same.
        further: Variance that is added (c,), for what effects disagree about.
        hidden: Variance (c,) that parameters hide which were left out: they are small, not zero.
    """
    final = final or estimate
    influence = estimate.system.inverse if shrinkage is None else shrinkage @ estimate.system.inverse
    mapped = estimate.covariance if shrinkage is None else shrinkage @ estimate.covariance @ shrinkage.T
    noise, own = np.diag(mapped), final.sigma**2
    counts = {name: sum(len(one.scores) for one in parts) for name, parts in partitions.items()}
    counts = {name: count for name, count in counts.items() if count >= LEAST_PARTS}
    variance, freedom, cause = own.copy(), final.freedom.copy(), np.full(len(own), "", dtype=object)
    for name in counts:
        spread, known = _spread(partitions[name], estimate.system.inverse, influence)
        ratio, moderate = moderated(spread / noise, known, independent_number(mapped))
        wider, allowed = own + np.maximum(ratio - 1, 0.0) * noise, np.minimum(moderate, final.freedom)
        half = np.sqrt(wider) * t_ppf(0.975, allowed)
        is_wider = (ratio > 1) & (half > np.sqrt(variance) * t_ppf(0.975, freedom))
        variance[is_wider], freedom[is_wider], cause[is_wider] = wider[is_wider], allowed[is_wider], name
    if further is not None:
        cause[further > variance - own] = "effects"
        variance = variance + further
    factor = np.sqrt(variance) / final.sigma
    if hidden is not None:
        cause[hidden > variance - own] = "reduction"
        variance = variance + hidden
    sigma = np.sqrt(variance)
    cause[sigma < NOTICED * final.sigma] = ""
    return Widening(final.columns, sigma, freedom, factor, tuple(str(one) for one in cause), counts)


def _spread(parts: Sequence[PartSums], inverse: np.ndarray, influence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance of every parameter that parts show (c,), and its degrees of freedom (c,)."""
    variance, shares, scale = np.zeros(len(influence)), [], np.sqrt(np.diag(inverse))
    for one in parts:
        unit = scale[one.index]  # unit-free columns
        information, to_final = one.information * (unit[:, None] * unit), influence[:, one.index] / unit
        own = inverse[one.index[:, None], one.index] / (unit[:, None] * unit)
        left = (1 + _LEVERAGE) * np.eye(len(unit)) - information @ own
        scores = one.scores * unit
        without = np.linalg.solve(left, scores[:, :, None])[:, :, 0]
        variance += np.sum((scores @ to_final.T) * (without @ to_final.T), axis=0)
        shares.append(np.sum((to_final @ information) * to_final, axis=2))
    share = np.concatenate(shares)
    share /= np.maximum(share.sum(axis=0), 1e-300)
    return variance, np.maximum(1 / np.sum(share**2, axis=0) - 1, 1.0)


def independent_number(covariance: np.ndarray) -> float:
    """Return how many independent parameters correlated ones count as, ``c^2 / sum r_ij^2``."""
    deviation = np.sqrt(np.diag(covariance))
    return float(len(deviation) ** 2 / np.sum((covariance / (deviation[:, None] * deviation)) ** 2))


def moderated(ratio: np.ndarray, freedom: np.ndarray, independent: float) -> tuple[np.ndarray, np.ndarray]:
    """Return variance ratios drawn to what all of them have in common, and their degrees of freedom (c,).

    Args:
        ratio: Variance ratios (c,), 1 expected.
        freedom: Degrees of freedom of each (c,).
        independent: How many independent ratios they count as.

    Example:
        >>> from steelyard.judge import moderated
        >>> ratio, freedom = moderated(np.array([0.6, 1.5, 0.9, 1.1]), np.full(4, 5.0), 4.0)
        >>> ratio.round(2).tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    half = freedom / 2
    logs = np.log(np.maximum(ratio, _LEAST_RATIO)) - special.digamma(half) + np.log(half)
    chance = float(np.mean(special.polygamma(1, half)))
    found = float(np.var(logs, ddof=1)) if len(logs) > 1 else 0.0
    expected = chance * (1 - 1 / independent)
    spread = found - expected * (1 + DIFFER * np.sqrt(2 / independent))
    mean = float(np.mean(logs))
    if mean > 0:
        mean = max(mean - SURE * np.sqrt(max(found, chance) / independent), 0.0)
    if spread <= 0:
        return np.full(len(logs), np.exp(mean)), np.full(len(logs), np.inf)
    prior = 2 * _trigamma_inverse(spread)
    common = np.exp(mean + special.digamma(prior / 2) - np.log(prior / 2))
    return (prior * common + freedom * ratio) / (prior + freedom), prior + freedom


def _trigamma_inverse(value: float) -> float:
    """Return x with trigamma(x) = value, by Newton's steps on 1 / trigamma, which is convex."""
    found = 0.5 + 1 / value
    for _ in range(20):
        trigamma = float(special.polygamma(1, found))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, found))
        found += step
        if -step < 1e-8 * found:
            break
    return found
