"""Clearances of many pairs of capsules at many instants: those far apart are told by a bound, at little cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .capsules import Capsule, CapsulePair
from .segments import Nearest, nearest_points

NEAR = 0.03
"""Clearance [m] above which only a lower bound is told: farther off a pair is no concern of a search."""


class PairBatch:
    """Pairs of capsules whose ends are among given places of the arm."""

    def __init__(self, pairs: Sequence[CapsulePair], rows: Sequence[Sequence[int]], points: int) -> None:
        """Take the pairs, where the ends of each stand among the places, and how many places there are."""
        self._points = points
        room: list[tuple[float, float, float]] = []
        ends = []
        for pair, own in zip(pairs, rows, strict=True):
            four = list(own)
            if pair.second.link is None:
                four += [points + len(room), points + len(room) + 1]
                room += [pair.second.start, pair.second.end]
            ends.append(four)
        self._room = np.array(room).reshape(-1, 3, 1)
        self._ends = np.array(ends, dtype=np.intp).reshape(-1, 4)
        self._radii = np.array([pair.first.radius + pair.second.radius + pair.margin for pair in pairs])
        self._halves = np.array([_half(pair.first) + _half(pair.second) for pair in pairs])

    def clearances(self, places: np.ndarray) -> np.ndarray:
        """Return clearances (pairs, N) [m] for places (k, 3, N), of pairs that are far apart a lower bound."""
        places = self._with_room(places)
        middles = [0.5 * (places[self._ends[:, i]] + places[self._ends[:, i + 1]]) for i in (0, 2)]
        values = np.linalg.norm(middles[0] - middles[1], axis=1) - (self._halves + self._radii)[:, None]
        pair, instant = np.nonzero(values < NEAR)
        if len(pair):
            values[pair, instant] = self._nearest(places, pair, instant).distance - self._radii[pair]
        return values

    def pull_back(self, places: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the gradient (k, 3, N) by the places of ``sum weights * clearances``, weights (pairs, N)."""
        pair, instant = np.nonzero(weights)
        near = self._nearest(self._with_room(places), pair, instant)
        pushed = near.direction * weights[pair, instant]
        shares = (1.0 - near.first, near.first, near.second - 1.0, -near.second)
        gradient = np.zeros((places.shape[2], self._points + len(self._room), 3))
        for end, share in enumerate(shares):
            np.add.at(gradient, (instant, self._ends[pair, end]), (share * pushed).T)  # type: ignore[arg-type]
        return gradient[:, : self._points].transpose(1, 2, 0)

    def _nearest(self, places: np.ndarray, pair: np.ndarray, instant: np.ndarray) -> Nearest:
        return nearest_points(*(places[self._ends[pair, end], :, instant].T for end in range(4)))

    def _with_room(self, places: np.ndarray) -> np.ndarray:
        if not len(self._room):
            return places
        fixed = np.broadcast_to(self._room, (len(self._room), 3, places.shape[2]))
        return np.concatenate([places, fixed])


def _half(capsule: Capsule) -> float:
    return 0.5 * float(np.linalg.norm(np.subtract(capsule.end, capsule.start)))
