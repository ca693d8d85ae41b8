"""Ranges of a joint in which configurations have large residuals together: model errors, not gross errors.

Gross errors are scattered over the joints' ranges; an eccentric gear or a spring that was left out shows where the
joint is. Tested is Kulldorff's scan statistic: over all arcs of a joint's sorted positions (above, below, between and
outside two positions) and all joints the largest likelihood ratio of a share of wrong configurations that is higher
inside than outside, and there at least a half. Its distribution, if the wrong ones are anywhere, comes from shuffling
them among the configurations, so that the false-alarm rate holds whatever the number of joints and configurations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ...plain_data import plain
from ..records import MeasuredJoint

CLUSTER_FALSE_ALARM = 0.002
"""Chance that wrong configurations which are scattered are taken for those of a range."""

_SHUFFLES = 1999
# Arcs begin and end at so many positions of a joint at most.
_BINS = 24
_LEAST_WRONG = 3
_LEAST_SHARE = 0.5
_MOST_RANGES = 3
# Configurations whose errors are one node of how the error goes with the joint's position.
_NODE = 3


@dataclass(frozen=True, eq=False)
class JointRange:
    """A range of a joint in which the model lacks something.

    Attributes:
        joint: Name of the joint.
        unit: ``rad`` or ``m``.
        low: Where the range begins; ``-inf`` if it has no lower end.
        high: Where it ends, or ``inf``.
        outside: Whether the range is what lies outside of low to high.
        p_value: Chance of so clear a range if wrong configurations were scattered.
        points: Points of the wrong configurations in it.
        inside_mm: Their residuals from a fit of the others, rms [mm].
        elsewhere_mm: Residuals of the others, rms [mm].
        positions: Joint positions (n,) at which the error that remains after the fit is known.
        errors: That error (n,) [m], rms of the points there.
    """

    joint: str
    unit: str
    low: float
    high: float
    outside: bool = False
    p_value: float = 0.0
    points: int = 0
    inside_mm: float = 0.0
    elsewhere_mm: float = 0.0
    positions: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()

    @property
    def ratio(self) -> float:
        """How many times farther off the points in the range lie."""
        return self.inside_mm / max(self.elsewhere_mm, 1e-9)

    @property
    def where(self) -> str:
        """As text: ``elbow_joint above 1.2 rad``."""
        if self.outside:
            return f"{self.joint} outside {self.low:.3g} to {self.high:.3g} {self.unit}"
        if np.isinf(self.low):
            return f"{self.joint} below {self.high:.3g} {self.unit}"
        if np.isinf(self.high):
            return f"{self.joint} above {self.low:.3g} {self.unit}"
        return f"{self.joint} between {self.low:.3g} and {self.high:.3g} {self.unit}"

    @property
    def text(self) -> str:
        """As a sentence with figures."""
        return (
            f"points with {self.where} are {self.ratio:.2g} times worse than the others ({self.inside_mm:.3g} against "
            f"{self.elsewhere_mm:.3g} mm)"
        )

    def holds(self, position: np.ndarray) -> np.ndarray:
        """Return whether joint positions lie in the range."""
        between = (position > self.low) & (position < self.high)
        return ~between if self.outside else between

    def measured(self, inside: np.ndarray, elsewhere: np.ndarray) -> JointRange:
        """Return the range with the residuals of points in it and elsewhere [mm]."""
        return replace(self, points=len(inside), inside_mm=_rms(inside), elsewhere_mm=_rms(elsewhere))

    def fitted(self, position: np.ndarray, distance: np.ndarray) -> JointRange:
        """Return the range with the error that a fit leaves in it.

        Args:
            position: Position of the joint at every point (n,).
            distance: Residual of each point (n,) [m].
        """
        inside = self.holds(position)
        places, number = np.unique(position[inside], return_inverse=True)
        squares = np.bincount(number, distance[inside] ** 2) / np.maximum(np.bincount(number), 1)
        parts = [
            part
            for side in (places <= self.low, places > self.low)
            for part in np.array_split(np.flatnonzero(side), max(side.sum() // _NODE, 1))
            if len(part)
        ]
        positions = tuple(float(places[part].mean()) for part in parts)
        return replace(self, positions=positions, errors=tuple(float(np.sqrt(squares[part].mean())) for part in parts))

    def error_at(self, position: np.ndarray) -> np.ndarray:
        """Return the error to be expected at joint positions (N,) [m], 0 outside of the range.

        Linear between the positions measured; beyond the outermost it goes on growing as it grew, or stays.
        """
        if not self.positions:
            return np.zeros(np.shape(position))
        places, errors = np.array(self.positions), np.array(self.errors)
        error = np.interp(position, places, errors)
        if len(places) > 1:
            first, last = np.diff(errors)[[0, -1]] / np.diff(places)[[0, -1]]
            error = error + max(last, 0.0) * np.maximum(position - places[-1], 0.0)
            error = error + max(-first, 0.0) * np.maximum(places[0] - position, 0.0)
        return np.where(self.holds(position), error, 0.0)


def joint_range_to_json(each: JointRange) -> dict[str, Any]:
    """Return a range as plain data; an end that is open is None."""
    return {**plain(each), "text": each.text}


def joint_range_from_json(content: Mapping[str, Any]) -> JointRange:
    """Return the range of plain data."""
    given = {field.name: content[field.name] for field in fields(JointRange)}
    low, high = (np.inf * sign if given[key] is None else given[key] for key, sign in (("low", -1), ("high", 1)))
    lists = {key: tuple(given[key]) for key in ("positions", "errors")}
    return JointRange(**{**given, **lists, "low": low, "high": high})


def clustered_ranges(
    joints: Sequence[MeasuredJoint], wrong: np.ndarray, seed: int = 0
) -> tuple[tuple[JointRange, ...], np.ndarray]:
    """Return ranges of joints in which wrong configurations gather, and which of these lie in them.

    Args:
        joints: Positions of the joints at the configurations (n,).
        wrong: Which configurations have large residuals as a whole (n,).
        seed: Of the shuffles.
    """
    chosen, left = np.zeros(len(wrong), dtype=bool), np.ones(len(wrong), dtype=bool)
    found: list[JointRange] = []
    while len(found) < _MOST_RANGES and joints:
        best = _clearest(joints, wrong, left, seed)
        if best is None or best.p_value > CLUSTER_FALSE_ALARM:
            break
        inside = best.holds(next(each.q for each in joints if each.name == best.joint))
        chosen |= wrong & inside
        left &= ~inside
        found.append(best)
    return tuple(found), chosen


def _clearest(joints: Sequence[MeasuredJoint], wrong: np.ndarray, left: np.ndarray, seed: int) -> JointRange | None:
    """Return the clearest range among the configurations that are left, with its p-value."""
    labels = wrong[left].astype(float)
    if labels.sum() < _LEAST_WRONG or labels.all():
        return None
    random = np.random.default_rng(seed)
    shuffled = np.stack([labels, *(random.permutation(labels) for _ in range(_SHUFFLES))])
    largest, best, highest = np.zeros(len(shuffled)), None, 0.0
    for joint in joints:
        edges = _edges(joint.q[left])
        if not len(edges):
            continue
        bins = np.searchsorted(edges, joint.q[left])
        ratio, arc = _scan(shuffled, bins, len(edges) + 1)
        largest = np.maximum(largest, ratio)
        if ratio[0] > highest:
            highest, best = ratio[0], _range(joint, edges, *arc)
    if best is None:
        return None
    return replace(best, p_value=float(np.mean(largest >= largest[0])))


def _edges(position: np.ndarray) -> np.ndarray:
    """Return the positions between which the bins of a joint lie, each between two that were measured."""
    places = np.unique(position)
    between = (places[1:] + places[:-1]) / 2
    if len(between) < _BINS:
        return between
    wanted = np.quantile(position, np.arange(1, _BINS) / _BINS)
    return between[np.unique(np.abs(between[:, None] - wanted).argmin(axis=0))]


def _scan(labels: np.ndarray, bins: np.ndarray, count: int) -> tuple[np.ndarray, tuple[int, int]]:
    """Return the largest log likelihood ratio over all arcs for each row of labels, and the arc of the first row.

    Args:
        labels: 1 for a wrong configuration, else 0 (rows, n).
        bins: Number of the bin of each configuration (n,).
        count: Number of bins.

    Returns:
        Ratios (rows,), and the arc as its first bin and number of bins; it may run past the last bin to the first.
    """
    one_hot = np.eye(count, dtype=int)[bins]
    table = _likelihood_ratios(int(labels[0].sum()), labels.shape[1])
    each = labels.astype(int) @ one_hot
    sums, sizes = (np.cumsum(np.concatenate([part, part], axis=-1), axis=-1) for part in (each, one_hot.sum(axis=0)))
    best, arc, highest = np.zeros(len(labels)), (0, 1), 0.0
    first = np.arange(count)
    for length in range(1, count):
        wrong = sums[:, first + length - 1] - sums[:, first] + each
        inside = sizes[first + length - 1] - sizes[first] + one_hot.sum(axis=0)
        ratio = table[wrong, inside]
        if ratio[0].max() > highest:
            highest, arc = float(ratio[0].max()), (int(ratio[0].argmax()), length)
        best = np.maximum(best, ratio.max(axis=1))
    return best, arc


def _likelihood_ratios(total: int, count: int) -> np.ndarray:
    """Return log likelihood ratios (total + 1, count + 1) by how many are wrong inside and how many are inside.

    Zero where the share inside is not higher than outside, is below a half, or rests on too few.
    """
    wrong, inside = np.meshgrid(np.arange(total + 1), np.arange(count + 1), indexing="ij")
    outside = count - inside
    share, other = wrong / np.maximum(inside, 1), (total - wrong) / np.maximum(outside, 1)
    ratio = (
        _log_likelihood(wrong, inside, share) + _log_likelihood(total - wrong, outside, other)
        - _log_likelihood(np.array(total), np.array(count), np.array(total / count))
    )  # fmt: skip
    possible = (wrong <= inside) & (total - wrong <= outside) & (outside > 0)
    clear = (share > other) & (share >= _LEAST_SHARE) & (wrong >= _LEAST_WRONG)
    return np.where(possible & clear, ratio, 0.0)


def _log_likelihood(wrong: np.ndarray, count: np.ndarray, share: np.ndarray) -> np.ndarray:
    tiny = np.finfo(float).tiny
    return wrong * np.log(np.maximum(share, tiny)) + (count - wrong) * np.log(np.maximum(1 - share, tiny))


def _range(joint: MeasuredJoint, edges: np.ndarray, first: int, length: int) -> JointRange:
    last, count = first + length - 1, len(edges) + 1
    if last >= count:
        return JointRange(joint.name, joint.unit, float(edges[last - count]), float(edges[first - 1]), outside=True)
    low = -np.inf if first == 0 else float(edges[first - 1])
    high = np.inf if last == count - 1 else float(edges[last])
    return JointRange(joint.name, joint.unit, low, high)


def _rms(numbers: np.ndarray) -> float:
    return float(np.sqrt(np.mean(numbers**2))) if len(numbers) else 0.0
