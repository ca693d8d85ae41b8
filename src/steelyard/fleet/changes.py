"""Which unit is not like the others, and which has changed since when: alarms that are rarely false.

Every date of every unit and every cause that is looked for (a parameter, the friction of a joint, a payload) is a
hypothesis about the scores of a :class:`.Hierarchy`. The likeliest is an alarm if its probability by chance, times the
number of hypotheses of the whole fleet, is below the rate of false alarms that is allowed (Bonferroni). It is then part
of the model, and the next is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..distributions import chi2_sf, f_sf, norm_ppf
from .hierarchy import NOTHING, Hierarchy

MOST_CHANGES = 3
"""Changes of one unit that are looked for."""
LEAST_UNITS = 5
"""Units beyond the quantities of a cause that are needed to say that one differs."""
LEAST_LOGS, DOUBT = 3, 0.01
"""Logs of a unit that are needed to doubt one of them, and the chance that any of a fleet is doubted wrongly."""
SHOWN = 1e-6
"""Directions with a smaller part of a log's information are not shown by it."""
DEPENDENT = 1e-9
"""Directions whose information is a smaller part of the largest one are not seen."""


@dataclass(frozen=True)
class Change:
    """A change of a unit, or its difference from all others.

    Attributes:
        unit: Number of the unit.
        first: Place among its logs of the first that has changed; 0: it differs in all of them.
        grows: Whether the change grows from log to log instead of staying as it came.
        cause: Name of the cause.
        delta: Change of the cause's own quantities (r,); if it grows, that until the last log.
        sigma: Their standard deviations (r,).
        p: Probability of such an alarm, anywhere in the fleet, by chance.
    """

    unit: int
    first: int
    grows: bool
    cause: str
    delta: tuple[float, ...]
    sigma: tuple[float, ...]
    p: float


@dataclass(frozen=True, eq=False)
class _Hypothesis:
    first: int
    grows: bool
    weights: np.ndarray
    cause: str
    directions: np.ndarray


def find_changes(
    hierarchy: Hierarchy, times: np.ndarray, causes: Mapping[str, np.ndarray], false_alarms: float = 0.05
) -> list[Change]:
    """Return the changes and differences of all units that are no chance, the most certain first.

    Args:
        hierarchy: The fleet.
        times: Time of each log (N,).
        causes: For each cause the directions (c, r) in which it changes parameters.
        false_alarms: Probability that a fleet without changes raises any alarm.
    """
    of_unit = [np.flatnonzero(hierarchy.unit_of == unit) for unit in range(hierarchy.units)]
    hypotheses = [list(_hypotheses(times[mine], causes)) for mine in of_unit]
    count = sum(map(len, hypotheses))
    unlike = {cause: _chances_among_units(hierarchy, directions) for cause, directions in causes.items()}
    found = [
        change
        for unit in range(hierarchy.units)
        for change in _changes_of(hierarchy, unit, hypotheses[unit], count, false_alarms, unlike)
    ]
    return sorted(found, key=lambda change: (change.p, change.unit, change.first))


def doubtful_logs(hierarchy: Hierarchy, causes: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return how many times larger the errors of each log (N,) are than it says; 1 where its unit's others agree.

    What one cause explains is a change of the unit. A log that is off in everything has too small sigmas, and whatever
    it is furthest off in would seem to have changed. Of two logs nobody knows which.
    """
    found, count = np.ones(len(hierarchy.unit_of)), len(hierarchy.unit_of)
    for unit in range(hierarchy.units):
        mine = np.flatnonzero(hierarchy.unit_of == unit)
        if len(mine) < LEAST_LOGS:
            continue
        scores, information = hierarchy.contrast(unit, np.eye(len(mine)))
        for place, log in enumerate(mine):
            score, own = scores[place], information[place, :, place]
            whole, rank = _square(score, own)
            explained = [_square(part.T @ score, part.T @ own @ part) for part in causes.values()]
            rest, freedom = min((whole - square, rank - taken) for square, taken in explained)
            if freedom > 0 and chi2_sf(rest, freedom) * count < DOUBT:
                found[log] = np.sqrt(rest / freedom)
    return found


def _square(score: np.ndarray, information: np.ndarray) -> tuple[float, int]:
    """Return the square of a score over its covariance, and in how many directions it is known."""
    score, information, _ = _unit_free(score, information)
    values, vectors = np.linalg.eigh(information)
    seen = values > DEPENDENT * max(values.max(initial=0.0), np.finfo(float).tiny)
    return float(np.sum((vectors[:, seen].T @ score) ** 2 / values[seen])), int(seen.sum())


def _chances_among_units(hierarchy: Hierarchy, directions: np.ndarray) -> np.ndarray:
    """Return the probability that a unit differs so much along directions (c, r), by how all units do (U,).

    A unit that is unlike the others widens the variances by which it would be judged: deviations are judged by those of
    the other units, and by how these vary together (Hotelling). With too few units none differs. Where a cause moves
    many parameters, scores along it are compared, else the parameters themselves.
    """
    along = directions.T @ hierarchy.unit_spread if _is_of_parameters(directions) else directions.T
    whitened = []
    for score, covariance in zip(hierarchy.unit_scores, hierarchy.unit_score_covariance, strict=True):
        own, scatter, _ = _unit_free(along @ score, along @ covariance @ along.T)
        values, vectors = np.linalg.eigh(scatter)
        seen = values > DEPENDENT * max(values.max(initial=0.0), np.finfo(float).tiny)
        whitened.append(vectors[:, seen] @ (vectors[:, seen].T @ own / np.sqrt(values[seen])))
    every, units = np.array(whitened), len(whitened)
    values, vectors = np.linalg.eigh(every.T @ every / units)
    seen = values > DEPENDENT * max(values.max(initial=0.0), np.finfo(float).tiny)
    rank = int(seen.sum())
    if units < rank + LEAST_UNITS or not rank:
        return np.ones(units)
    square = np.sum((every @ vectors[:, seen]) ** 2 / values[seen], axis=1)
    # Of deviations from their own mean, one alone can be (U - 1) / U of all.
    part, freedom = np.minimum(square / (units - 1), 1 - 1e-12), units - 1 - rank
    return np.asarray(f_sf(freedom / rank * part / (1 - part), rank, freedom))


def _is_of_parameters(directions: np.ndarray) -> bool:
    """Return whether each direction (c, r) is that of one parameter."""
    return bool(np.count_nonzero(directions, axis=0).max(initial=0) == 1)


def _beside_others(hierarchy: Hierarchy, unit: int, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much parameters of a unit, by its own logs, differ from the mean of the others, and the sigmas."""
    others = np.arange(hierarchy.units) != unit
    values, sigma = (one[unit] for one in hierarchy.single_units())
    if not np.isfinite(values).all():
        values, sigma = hierarchy.unit_values[unit], hierarchy.unit_sigma[unit]
    return directions.T @ (values - hierarchy.unit_values[others].mean(axis=0)), directions.T @ sigma


def _hypotheses(times: np.ndarray, causes: Mapping[str, np.ndarray]) -> Iterator[_Hypothesis]:
    """Yield what may have happened to a unit: steps and slopes from every log on, and a difference from the start."""
    order = np.argsort(times, kind="stable")
    for first in range(len(times)):
        step = np.zeros(len(times))
        step[order[first:]] = 1.0
        shapes = [(False, step)]
        since = np.maximum(times - times[order[max(first - 1, 0)]], 0.0)
        # A slope that has only one later log is a step.
        if 0 < first < len(times) - 1 and since.max() > 0:
            shapes.append((True, since / since.max()))
        for grows, weights in shapes:
            for cause, directions in causes.items():
                yield _Hypothesis(first, grows, weights, cause, directions)


def _changes_of(
    hierarchy: Hierarchy,
    unit: int,
    hypotheses: Sequence[_Hypothesis],
    count: int,
    false_alarms: float,
    unlike: Mapping[str, np.ndarray],
) -> Iterator[Change]:
    known: list[_Hypothesis] = []
    while len(known) < MOST_CHANGES:
        tests = _Tests(hierarchy, unit, known, hypotheses)
        chances, squares = map(list, zip(*(tests.chance(one) for one in hypotheses), strict=True))
        for k, one in enumerate(hypotheses):
            if not one.first:  # the variance between units holds what one that is unlike the others adds to it
                chances[k] = float(unlike[one.cause][unit]) if not known else 1.0
        # Chances below all numbers are alike: of these the largest score is the likeliest.
        best = min(range(len(chances)), key=lambda k: (chances[k], -squares[k]))
        if not chances[best] * count < false_alarms:
            break
        one = hypotheses[best]
        is_alone = not one.first and _is_of_parameters(one.directions)
        delta, sigma = _beside_others(hierarchy, unit, one.directions) if is_alone else tests.estimate(one)
        known.append(one)
        values = tuple(delta.tolist()), tuple(sigma.tolist())
        yield Change(unit, one.first, one.grows, one.cause, *values, chances[best] * count)


class _Tests:
    """Tests of hypotheses about one unit beside those that are known to hold."""

    def __init__(
        self, hierarchy: Hierarchy, unit: int, known: Sequence[_Hypothesis], hypotheses: Sequence[_Hypothesis]
    ) -> None:
        shapes = {one.weights.tobytes(): one.weights for one in [*known, *hypotheses]}
        self._place = {key: k for k, key in enumerate(shapes)}
        weights = np.array(list(shapes.values()))
        self._score, self._information = hierarchy.contrast(unit, weights)
        self._known = known

    def _parts(self, one: _Hypothesis) -> tuple[np.ndarray, np.ndarray]:
        """Return score (r,) and information (r, r) of a hypothesis, those that are known taken out."""
        score, information = self._block(one), self._cross(one, one)
        if not self._known:
            return score, information
        across = np.vstack([self._cross(other, one) for other in self._known])
        known = np.vstack([np.hstack([self._cross(a, b) for b in self._known]) for a in self._known])
        pulled = np.linalg.pinv(known, hermitian=True) @ np.column_stack(
            [np.concatenate([self._block(other) for other in self._known]), across]
        )
        return score - across.T @ pulled[:, 0], information - across.T @ pulled[:, 1:]

    def _block(self, one: _Hypothesis) -> np.ndarray:
        return one.directions.T @ self._score[self._place[one.weights.tobytes()]]

    def _cross(self, one: _Hypothesis, other: _Hypothesis) -> np.ndarray:
        first, second = (self._place[part.weights.tobytes()] for part in (one, other))
        return one.directions.T @ self._information[first, :, second] @ other.directions

    def chance(self, one: _Hypothesis) -> tuple[float, float]:
        """Return the probability of a larger score by chance, and the score squared over its variance."""
        score, information = self._parts(one)
        if len(score) == 1:
            square = float(score[0] ** 2 / information[0, 0]) if information[0, 0] > 0 else 0.0
            return float(chi2_sf(square, 1)), square
        square, rank = _square(score, information)
        return (float(chi2_sf(square, rank)), square) if rank else (1.0, 0.0)

    def estimate(self, one: _Hypothesis) -> tuple[np.ndarray, np.ndarray]:
        """Return the change (r,) and its standard deviations (r,)."""
        score, information, scale = _unit_free(*self._parts(one))
        covariance = np.linalg.pinv(information, rcond=DEPENDENT, hermitian=True)
        return scale * (covariance @ score), scale * np.sqrt(np.diagonal(covariance))


def _unit_free(score: np.ndarray, information: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return score and information with a diagonal of ones, so that units do not decide what is seen, and scales."""
    diagonal = np.diagonal(information)
    shown = diagonal > NOTHING
    scale = np.where(shown, 1 / np.sqrt(np.where(shown, diagonal, 1.0)), 0.0)
    return scale * score, information * np.outer(scale, scale), scale


@dataclass(frozen=True, eq=False)
class ControlChart:
    """Every log's own parameters beside those of its unit before it changed; NaN where the log does not show one.

    Attributes:
        values: Values (N, c).
        sigma: Their standard deviations (N, c), without what the unit's own are known to.
        limit: Deviations of so many sigmas are beyond the control limits.
    """

    values: np.ndarray
    sigma: np.ndarray
    limit: float


def control_chart(hierarchy: Hierarchy, units: np.ndarray, false_alarms: float = 0.05) -> ControlChart:
    """Return the chart of a fleet with limits that it crosses by chance, anywhere, at the rate allowed.

    Args:
        hierarchy: The fleet, changes included.
        units: Parameters of its units before they changed (U, c).
        false_alarms: Probability that any log of a fleet without changes is beyond the limits.
    """
    values, sigma = np.full((2, *hierarchy.log_scores.shape), np.nan)
    scores = hierarchy.scores_beside(units[hierarchy.unit_of])
    for unit in range(hierarchy.units):
        mine = np.flatnonzero(hierarchy.unit_of == unit)
        information = hierarchy.contrast(unit, np.eye(len(mine)))[1]
        for place, log in enumerate(mine):
            _, free, scale = _unit_free(scores[log], information[place, :, place])
            covariance = np.linalg.pinv(free, rcond=SHOWN, hermitian=True)
            shown = np.diagonal(covariance @ free) > 1 - SHOWN
            change = scale * (covariance @ (scale * scores[log]))
            values[log, shown] = (units[unit] + change)[shown]
            sigma[log, shown] = (scale * np.sqrt(np.maximum(np.diagonal(covariance), 0.0)))[shown]
    seen = int(np.isfinite(values).sum())
    return ControlChart(values, sigma, float(norm_ppf(1 - false_alarms / (2 * max(1, seen)))))


@dataclass(frozen=True)
class Slope:
    """How a parameter depends on a quantity that differs from log to log, over the whole fleet.

    Attributes:
        name: Name of the parameter.
        slope: Change of the parameter for a unit of the quantity.
        sigma: Its standard deviation.
    """

    name: str
    slope: float
    sigma: float


def slopes_of(hierarchy: Hierarchy, quantity: np.ndarray, names: Sequence[str], columns: Sequence[int]) -> list[Slope]:
    """Return the slopes of parameters over a quantity (N,), NaN where it is not known, each found alone.

    Args:
        hierarchy: The fleet.
        quantity: Temperature of each log, say.
        names: Names of the parameters, one for each of the columns.
        columns: Their places.
    """
    known = np.isfinite(quantity)
    if not known.any():
        return []
    centred = np.where(known, quantity - quantity[known].mean(), 0.0)
    score, information = np.zeros((2, len(hierarchy.between_logs)))
    for unit in range(hierarchy.units):
        mine = hierarchy.unit_of == unit
        one, covariance = hierarchy.contrast(unit, centred[mine][None])
        score += one[0]
        information += np.diagonal(covariance[0, :, 0])
    return [
        Slope(name, float(score[k] / information[k]), float(1 / np.sqrt(information[k])))
        for name, k in zip(names, columns, strict=True)
        if information[k] > 0
    ]
