"""Accuracy on a file of its own that was not fitted: every point counts, and a frame that has moved is found.

Base, tool and markers are those of the fit. Where the instrument or the base was moved between the files, predicted
points p and measured points differ by one rigid motion ``K p + t``; Kabsch's solution says how large it is and what
error is left without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.spatial.transform import Rotation

from ...distributions import f_sf
from ...errors import CalibrationError
from ..chain.problem import MeasuredProblem
from ..measurement.nominal import orthogonal_part
from ..records import COORDINATES, CalibrationProblem, MeasurementEquations
from .accuracy import Accuracy, accuracy_of, point_distances
from .outliers import Outlier

ValidationBase = Literal["same", "own"]
VALIDATION_BASES = ("same", "own")
"""The base of the fit holds for the validation file too, or the file is registered by itself."""

MOVED = 2.0
"""A frame has moved if its own registration makes the median error so many times smaller, ..."""
EXPECTED = 3.0
"""... down to at most so many times the error that the fit leads to expect."""
FAR_OFF = 8.0
"""A point so many times farther off than the median is named as a gross error; it counts all the same."""

_FALSE_ALARM = 1e-4
# Points farther off than so many medians do not take part in a registration, which is repeated so often.
_NEAR, _ROUNDS = 4.0, 4
_RIGID = 6
# Points within this of a line, relative to their spread, do not fix a rotation about it.
_ON_A_LINE = 1e-3
_FIRST_ROTATION = COORDINATES.index("rx")


@dataclass(frozen=True)
class FrameShift:
    """A rigid motion of the measurement frame between two files.

    Attributes:
        shift_mm: How far it moves the middle of the measured points [mm].
        turn_deg: By which angle it turns [deg].
    """

    shift_mm: float
    turn_deg: float


@dataclass(frozen=True)
class Validation:
    """What the fit predicts of measurements of their own; all their points count.

    Attributes:
        base: ``same``, the base of the fit; ``own``, the file registered by itself.
        before: Accuracy of the nominal arm, base, tool and markers as fitted with it to the other file.
        after: Accuracy of the calibrated arm at the same points.
        registered: Accuracy of the calibrated arm with the file registered by itself; None if its points cannot fix it.
        motion: What that registration moves.
        moved: Whether the frame has moved: the registration cures an error far above the cross-validated one.
        gross: Points that are far off, named; they count.
    """

    base: ValidationBase
    before: Accuracy
    after: Accuracy
    registered: Accuracy | None
    motion: FrameShift | None
    moved: bool
    gross: tuple[Outlier, ...]


def validated(
    problem: CalibrationProblem, values: np.ndarray, nominal: np.ndarray, expected_mm: float, base: ValidationBase
) -> Validation:
    """Return the accuracy on measurements that were not fitted.

    Args:
        problem: Their equations, with the unknowns and the registration of the fitted problem.
        values: Unknowns by the fit (p,).
        nominal: The nominal arm, with base, tool and markers by a fit of their own (p,).
        expected_mm: Error that the fit leads to expect (rms) [mm].
        base: Whose base holds.

    Raises:
        CalibrationError: If the file is to be registered by itself and its points do not fix the base.
    """
    equations, points = problem.equations, _points(problem)
    residual = problem.residual(values)
    own = _registered(equations, points, residual)
    usual = problem.residual(nominal)
    if base == "own":
        bare = _registered(equations, points, usual)
        if own is None or bare is None:
            raise CalibrationError(
                f"--validate-base own: {len(points)} complete positions of the validation file do not fix its base; "
                "measure three or more that are not on a line, or take --validate-base same"
            )
        residual, usual = own[0], bare[0]
    moved = own is not None and _has_moved(residual[points], own[0][points], 1e-3 * expected_mm)
    return Validation(
        base=base,
        before=accuracy_of(equations, usual),
        after=accuracy_of(equations, residual),
        registered=None if own is None else accuracy_of(equations, own[0]),
        motion=None if own is None else own[1],
        moved=moved,
        gross=_far_off(equations, own[0] if own is not None and moved else residual),
    )


def _points(problem: CalibrationProblem) -> np.ndarray:
    """Return the equations of x, y and z (n, 3) of every complete position; differences of positions are none."""
    equations = problem.equations
    placed = equations.coordinate < _FIRST_ROTATION
    if isinstance(problem, MeasuredProblem):
        placed &= ~problem.measurements.of_kind("difference")[equations.row]
    where = np.flatnonzero(placed)
    order = where[np.lexsort((equations.coordinate[where], equations.row[where]))]
    rows, first, count = np.unique(equations.row[order], return_index=True, return_counts=True)
    return order[first[count == 3][:, None] + np.arange(3)] if len(rows) else np.zeros((0, 3), dtype=int)


def _registered(
    equations: MeasurementEquations, points: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, FrameShift] | None:
    """Return the residuals (E,) after the rigid motion of the predicted points that fits best, and the motion.

    Points that are far off do not take part in finding the motion.
    """
    measured, predicted = equations.measured[points], (equations.measured - residual)[points]
    found = _kabsch(predicted, measured)
    for _ in range(_ROUNDS):
        if found is None:
            return None
        turn, centre, middle = found
        size = np.linalg.norm(measured - centre - (predicted - middle) @ turn.T, axis=1)
        near = size <= _NEAR * np.median(size)
        found = _kabsch(predicted[near], measured[near])
    if found is None:
        return None
    turn, centre, middle = found
    result = residual.copy()
    result[points] = measured - centre - (predicted - middle) @ turn.T
    _turn_back(equations, result, Rotation.from_matrix(turn))
    angle = float(np.degrees(Rotation.from_matrix(turn).magnitude()))
    return result, FrameShift(1e3 * float(np.linalg.norm(centre - middle)), angle)


def _kabsch(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the rotation (3, 3) of points onto others and the means of these and those; None for points on a line."""
    if len(source) < 3:
        return None
    centre, middle = target.mean(axis=0), source.mean(axis=0)
    cross = (target - centre).T @ (source - middle)
    size = np.linalg.svd(cross, compute_uv=False)
    return None if size[1] <= _ON_A_LINE * size[0] else (orthogonal_part(cross), centre, middle)


def _turn_back(equations: MeasurementEquations, residual: np.ndarray, turn: Rotation) -> None:
    """Take a turn of the predicted frames off residual orientations: ``log(exp(r) K^T)``."""
    where = np.flatnonzero((equations.coordinate >= _FIRST_ROTATION) & (equations.coordinate < _FIRST_ROTATION + 3))
    if not len(where):
        return
    order = where[np.lexsort((equations.coordinate[where], equations.row[where]))].reshape(-1, 3)
    residual[order] = (Rotation.from_rotvec(residual[order]) * turn.inv()).as_rotvec()


def _has_moved(after: np.ndarray, registered: np.ndarray, expected: float) -> bool:
    """Return whether a rigid motion explains gaps (n, 3) [m] far better than chance lets its six numbers do."""
    left = after.size - _RIGID
    if left < 3:
        return False
    before, rest = (float(np.median(np.linalg.norm(gap, axis=1))) for gap in (after, registered))
    rest *= np.sqrt(after.size / left)
    if before <= MOVED * max(rest, expected) or rest > EXPECTED * expected:
        return False
    gain = (before / max(rest, np.finfo(float).tiny)) ** 2 - 1
    return bool(f_sf(gain * left / _RIGID, _RIGID, left) < _FALSE_ALARM)


def _far_off(equations: MeasurementEquations, residual: np.ndarray) -> tuple[Outlier, ...]:
    rows, distance = point_distances(equations, residual)
    far = np.flatnonzero(distance > FAR_OFF * np.median(distance))
    found = []
    for place in far[np.argsort(-distance[far], kind="stable")]:
        first = int(np.flatnonzero(equations.row == rows[place])[0])
        marker = equations.markers[int(equations.marker[first])]
        found.append(Outlier(equations.poses[int(equations.pose[first])], marker, 1e3 * float(distance[place])))
    return tuple(found)
