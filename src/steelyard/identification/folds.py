"""Blocks of time that are left out together, sums of squares of their rows, and the prediction of each by the others.

Blocks are contiguous, so that correlated noise is none, and repetitions of a motion are left out together: else a model
would be asked for what it was fitted to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..observe import Equations, Factor, Observations
from ..signals import repetition
from .inputs import Labelled

FOLDS = 16
"""Parts of the training recordings, contiguous in time, each left out once."""
WHOLE_RECORDINGS = 4
"""From so many recordings on, whole ones are left out."""

_BLOCKS, _LONGEST = 20, 300_000  # of a long log motions are compared by its beginning: what is read stays in memory
_RIDGE = 1e-10
_DEPENDENT = 1e-6


class Folds:
    """Blocks of time that are left out together.

    Args:
        recordings: The recordings.
        each: Parts of a motion; by default as many as selection takes.

    Attributes:
        blocks: Into how many blocks of time each recording is to be cut.
    """

    def __init__(self, recordings: Sequence[Labelled], each: int | None = None) -> None:
        self._recordings = tuple(recordings)
        self._after = {label: repetition(one.q[:, :_LONGEST]) for label, one in recordings}
        by_count = 1 if len(recordings) >= WHOLE_RECORDINGS else max(2, round(FOLDS / len(recordings)))
        self._each = each or by_count
        times = [one.samples / after for label, one in recordings if (after := self._after[label])]
        self.blocks = max(_BLOCKS, int(np.ceil(max(times, default=1.0))) * FOLDS)

    def numbered(self, observations: Observations) -> tuple[dict[tuple[str, int], int], int]:
        """Return the fold of every block of time by recording and number, and how many folds there are."""
        blocks: dict[str, set[int]] = {}
        for one in observations.factors:
            blocks.setdefault(one.recording, set()).add(one.block)
        places: dict[tuple[str, int], tuple[int, int]] = {}
        for label, recording in self._recordings:
            own, after = sorted(blocks.get(label, ())), self._after[label]
            times = 1.0 if after is None else recording.samples / after
            each = max(1, min(self._each, int(len(own) / times)))  # not finer than the blocks
            motion = self._same_motion(label)
            for k, number in enumerate(own):
                part = (k + 0.5) / len(own) * times % 1.0
                places[label, number] = motion, int(part * each)
        order = {place: fold for fold, place in enumerate(sorted(set(places.values())))}
        return {block: order[place] for block, place in places.items()}, len(order)

    def _same_motion(self, label: str) -> int:
        """Return the number of the first recording with the motion of another."""
        own = dict(self._recordings)[label]
        return next(k for k, (_, one) in enumerate(self._recordings) if one is own or _is_same(one.q, own.q))


def _is_same(first: np.ndarray, second: np.ndarray) -> bool:
    count = min(first.shape[1], second.shape[1])
    if first.shape[0] != second.shape[0] or 50 * abs(first.shape[1] - second.shape[1]) > count:
        return False
    count = min(count, _LONGEST)
    one, other = (q[:, :count] - q[:, :count].mean(axis=1, keepdims=True) for q in (first, second))
    return bool(np.sum((one - other) ** 2) <= 0.05 * (np.sum(one**2) + np.sum(other**2)))


class FoldSquares:
    """Sums of squares and products of ``[W y]`` by noise group and fold, y less columns of known values.

    Args:
        observations: The factors.
        equations: Their equations.
        folds: Blocks of time that are left out together.
        known: Columns whose value the robot file gives.
        trends: Columns whose value may change linearly during a recording.

    Attributes:
        names: Names of the columns of W: those of the equations, then the change of each trend from the beginning of a
            recording to its end, which is the column times the time of its block, from -1/2 to 1/2.
    """

    def __init__(
        self,
        observations: Observations,
        equations: Equations,
        folds: Folds,
        known: Collection[str] = (),
        trends: Sequence[str] = (),
    ) -> None:
        self.names = (*equations.names, *(trend_of(name) for name in trends))
        self._size = len(self.names)
        place = {name: k for k, name in enumerate(self.names)}
        fold_of, self.folds = folds.numbered(observations)
        self.groups = sorted({(one.recording, one.kind, one.joint) for one in observations.factors})
        self._squares = np.zeros((len(self.groups), self.folds, self._size + 1, self._size + 1))
        self.rows = np.zeros(len(self.groups))
        for one in _with_trends(observations, trends):
            index = [*(place[name] for name in one.columns), self._size]
            group = self.groups.index((one.recording, one.kind, one.joint))
            fold = fold_of[one.recording, one.block]
            self._squares[group, fold][np.ix_(index, index)] += one.triangle.T @ one.triangle
            self.rows[group] += one.rows
        if known:  # the plain model has balancers by their known scale, a candidate adds the difference to that
            scales, shift = equations.model.robot.values, np.eye(self._size + 1)
            shift[:-1, -1] = [-scales[name] if name in known else 0.0 for name in self.names]
            self._squares = shift.T @ self._squares @ shift

    def by_fold(self, weights: np.ndarray) -> np.ndarray:
        """Return the weighted sums over groups (folds, c + 1, c + 1)."""
        return np.tensordot(weights**2, self._squares, axes=1)

    def with_gain(self, joint: str, ratio: float, column: int, values: np.ndarray) -> FoldSquares:
        """Return the sums with a joint's torques divided by a ratio, and a column anew: those that values (c,) give."""
        change = np.eye(self._size + 1)
        change[:, column] = np.append(values, 0.0)
        change[-1, -1] = 1 / ratio
        own = [k for k, (_, _, name) in enumerate(self.groups) if name == joint]
        found = copy(self)
        found._squares = self._squares.copy()
        found._squares[own] = change.T @ self._squares[own] @ change
        return found

    def weights(self, columns: Sequence[int], passes: int = 3) -> np.ndarray:
        """Return one over the standard deviation of each group's residuals, of iterated weighted least squares."""
        weights, totals = np.ones(len(self.groups)), self._squares.sum(axis=1)
        for _ in range(passes):
            with_y = solution(np.tensordot(weights**2, totals, axes=1), np.array(columns))
            errors = np.einsum("i,gij,j->g", with_y, totals, with_y)
            weights = np.sqrt(self.rows / np.maximum(errors, 1e-300))
        return weights


def trend_of(name: str) -> str:
    """Return the name of the change of a column's value during a recording."""
    return f"trend of {name}"


def _with_trends(observations: Observations, trends: Sequence[str]) -> Iterator[Factor]:
    """Yield the factors with the columns of trends before the torque; time is that of the middle of a block."""
    last: dict[str, int] = {}
    for one in observations.factors:
        last[one.recording] = max(one.block, last.get(one.recording, 0))
    for one in observations.factors:
        own = [k for k, name in enumerate(one.columns) if name in trends]
        time = (one.block + 0.5) / (last[one.recording] + 1) - 0.5
        rows = [one.triangle[:, :-1], time * one.triangle[:, own], one.triangle[:, -1:]]
        columns = (*one.columns, *(trend_of(one.columns[k]) for k in own))
        yield replace(one, columns=columns, triangle=np.hstack(rows)) if own else one


def solution(square: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return least squares of some columns as a vector over all, -1 for y: its form is the squared error (c + 1,)."""
    scale = np.sqrt(np.maximum(np.diag(square)[columns], 1e-300))
    inner = square[np.ix_(columns, columns)] / scale[:, None] / scale
    inner[np.diag_indices_from(inner)] += _RIDGE
    found = np.zeros(len(square))
    found[columns] = cho_solve(cho_factor(inner), square[columns, -1] / scale) / scale
    found[-1] = -1.0
    return found


def left_out_errors(
    by_fold: np.ndarray, columns: np.ndarray, candidates: Sequence[list[int]], prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the squared error of each fold, predicted from the others, without and with every candidate.

    The normal equations of the columns are solved once a fold; what a candidate adds follows from its Schur complement.

    Args:
        by_fold: Sums of squares of each fold (folds, c + 1, c + 1).
        columns: Those of the model so far.
        candidates: Columns of every candidate.
        prior: Information that counts beside that of the rows (c + 1, c + 1).

    Returns:
        Errors (folds,), and (folds, candidates): infinite for a candidate that the columns determine. Values of the
        candidates' columns in their order (folds, k), each candidate alone beside the model, the last one of several.
    """
    total, new = by_fold.sum(axis=0) + prior, np.array(sorted({k for own in candidates for k in own}))
    place = {k: number for number, k in enumerate(new.tolist())}
    places = [[place[k] for k in own] for own in candidates]
    before, after = np.zeros(len(by_fold)), np.zeros((len(by_fold), len(candidates)))
    values = np.full((len(by_fold), len(new)), np.nan)
    inside, across, among = np.ix_(columns, columns), np.ix_(columns, new), np.ix_(new, new)
    blocks = [np.ix_(own, own) for own in places]
    for fold, left_out in enumerate(by_fold):
        known = total - left_out
        scale = np.sqrt(np.maximum(np.diag(known), 1e-300))
        known = known / scale[:, None] / scale
        inner = known[inside]
        inner[np.diag_indices_from(inner)] += _RIDGE
        factor = cho_factor(inner)
        projected = cho_solve(factor, known[across])
        schur = known[among] - known[across].T @ projected
        found = cho_solve(factor, known[columns, -1])
        rest = known[new, -1] - known[across].T @ found
        test = left_out / scale[:, None] / scale
        plain = np.zeros(len(test))
        plain[columns], plain[-1] = found, -1.0
        change = np.zeros((len(test), len(new)))
        change[columns], change[new, np.arange(len(new))] = -projected, 1.0
        before[fold] = plain @ test @ plain
        slope, bend = change.T @ (test @ plain), change.T @ test @ change
        for number, own in enumerate(places):
            block = schur[blocks[number]]
            if np.diag(block).min() < _DEPENDENT:
                after[fold, number] = np.inf
                continue
            step = np.linalg.solve(block + _RIDGE * np.eye(len(own)), rest[own])
            values[fold, own] = step / scale[new[own]] * scale[-1]
            after[fold, number] = before[fold] + 2 * step @ slope[own] + step @ bend[blocks[number]] @ step
        before[fold] *= scale[-1] ** 2
        after[fold] *= scale[-1] ** 2
    return before, after, values
