"""Accuracy of a calibration: errors of the fit, of configurations held out, and of measurements that were not fitted.

Errors of points and orientations are given as mean, rms, 95 % and maximum [mm, deg].

Cross-validation holds out whole configurations, all their markers and repeats together, and fits all unknowns again,
base and markers included. A fold's fit starts from the fit of all: with ``A = W B`` and u the weighted residuals of the
fold, ``dX = -(A^T A - A_f^T A_f)^-1 A_f^T u_f`` is its Gauss-Newton step, which suffices where the equations are linear
over so short a way. Where the residuals at the new values show that they are not, the fold is fitted in full.

In a validation file every point counts; base, tool and markers are those of the fit. If the instrument or the base was
moved between the files, predicted and measured points differ by one rigid motion ``K p + t``; Kabsch's solution gives
its size and the error that is left without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.spatial.transform import Rotation

from ...distributions import f_sf
from ...errors import CalibrationError
from ..chain.problem import MeasuredProblem
from ..measurement.nominal import orthogonal_part
from ..records import COORDINATES, CalibrationProblem, MeasurementEquations
from .fit import CalibrationFit, fitted

_ROTATIONS = (COORDINATES.index("rx"), COORDINATES.index("ry"), COORDINATES.index("rz"))


@dataclass(frozen=True)
class Accuracy:
    """Errors of predicted points and orientations.

    Attributes:
        mean_mm: Mean of the distances [mm].
        rms_mm: Root of the mean of their squares [mm].
        p95_mm: The distance that 95 % of the points keep [mm].
        max_mm: The largest [mm].
        points: How many points.
        rotation_mean_deg: Mean angle between measured and predicted orientations [deg]; None if none is measured.
        rotation_rms_deg: Root of the mean of their squares [deg].
        rotation_p95_deg: The angle that 95 % of the orientations keep [deg].
        rotation_max_deg: The largest [deg].
        rotations: How many orientations.
    """

    mean_mm: float
    rms_mm: float
    p95_mm: float
    max_mm: float
    points: int
    rotation_mean_deg: float | None = None
    rotation_rms_deg: float | None = None
    rotation_p95_deg: float | None = None
    rotation_max_deg: float | None = None
    rotations: int = 0


def point_distances(equations: MeasurementEquations, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that have a position or a distance (n,), and the residual of each (n,) [m].

    The residual is the norm over the coordinates that were measured; rotations do not count.
    """
    return _row_norms(equations, residual, ~np.isin(equations.coordinate, _ROTATIONS))


def _row_norms(
    equations: MeasurementEquations, residual: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (n,) of the chosen equations (E,) and the norm of their residuals in each (n,)."""
    rows, number = np.unique(equations.row[chosen], return_inverse=True)
    return rows, np.sqrt(np.bincount(number, residual[chosen] ** 2, minlength=len(rows)))


def accuracy_of(equations: MeasurementEquations, residual: np.ndarray) -> Accuracy:
    """Return the statistics of the points that some equations measure.

    Raises:
        CalibrationError: If no position and no distance is among them.
    """
    distances = point_distances(equations, residual)[1] * 1e3
    if not len(distances):
        raise CalibrationError("accuracy: none of the equations measures a position or a distance")
    angles = np.degrees(_row_norms(equations, residual, np.isin(equations.coordinate, _ROTATIONS))[1])
    if not len(angles):
        return Accuracy(*_four_numbers(distances), len(distances))
    return Accuracy(*_four_numbers(distances), len(distances), *_four_numbers(angles), rotations=len(angles))


def _four_numbers(errors: np.ndarray) -> tuple[float, float, float, float]:
    root = float(np.sqrt(np.mean(errors**2)))
    return float(errors.mean()), root, float(np.quantile(errors, 0.95)), float(errors.max())


@dataclass(frozen=True)
class Outlier:
    """A gross error.

    Attributes:
        pose: Name of the configuration.
        marker: Name of the marker; None if the whole configuration is wrong.
        size_mm: Residual [mm], of the farthest marker for a configuration; [mrad] where no position is measured.
    """

    pose: str
    marker: str | None
    size_mm: float

    @property
    def text(self) -> str:
        """As text: ``pose_6, marker m1: 91.2 mm off``."""
        what = "all of it" if self.marker is None else f"marker {self.marker}"
        return f"{self.pose}, {what}: {self.size_mm:.3g} mm off"


ALONE_UP_TO = 50
"""Up to so many configurations each is held out alone."""
FOLDS = 10
"""Parts into which more of them are divided."""

# A step counts as linear if what it leaves out is below this part of the residuals.
_LINEAR = 1e-3
# An unknown that is not identifiable without a fold has a scaled pivot below this.
_SINGULAR = 1e-10


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Predictions of configurations that were held out of the fit.

    Attributes:
        residual: Measured minus predicted by the fit without the configuration (E,); NaN where there is no such fit.
        folds: Number of the fold of each equation (E,).
        accuracy: Statistics of the points; None if none could be predicted.
        unpredicted: Names of configurations without which some unknown is not identifiable.
    """

    residual: np.ndarray
    folds: np.ndarray
    accuracy: Accuracy | None
    unpredicted: tuple[str, ...]


def cross_validated(
    problem: CalibrationProblem,
    fit: CalibrationFit,
    folds: int | None = None,
    seed: int = 0,
    prior: np.ndarray | None = None,
) -> CrossValidation:
    """Hold configurations out in turn.

    Args:
        problem: Unknowns and equations.
        fit: Its fit, whose unknowns and weights are those of every fold.
        folds: Parts of the configurations; None: each alone up to 50 of them, then 10 parts.
        seed: Of the division.
        prior: As given to the fit (p,).

    Raises:
        CalibrationError: If there are fewer than two configurations, or folds that do not fit them.
    """
    equations = problem.equations
    of_equation = _folds(equations.pose, folds, seed)
    residual, unpredicted = np.full(equations.size, np.nan), set()
    rows = fit.jacobian * fit.weight[:, None]
    scale = np.sqrt(np.diag(rows.T @ rows) + fit.precision)
    rows = rows / np.where(scale > 0, scale, 1.0)
    gram = rows.T @ rows + np.diag(fit.precision / np.where(scale > 0, scale, 1.0) ** 2)
    for fold in range(int(of_equation.max()) + 1):
        out = of_equation == fold
        step = _step(gram, rows[out], (fit.weight * fit.residual)[out])
        if step is None:
            unpredicted |= {equations.poses[pose] for pose in np.unique(equations.pose[out])}
            continue
        residual[out] = _predicted(problem, fit, out, step / np.where(scale > 0, scale, 1.0), prior)
    observed = np.isfinite(residual)
    accuracy = accuracy_of(equations.taken(observed), residual[observed]) if observed.any() else None
    names = tuple(name for name in equations.poses if name in unpredicted)
    for array in (residual, of_equation):
        array.setflags(write=False)
    return CrossValidation(residual, of_equation, accuracy, names)


def _folds(pose: np.ndarray, folds: int | None, seed: int) -> np.ndarray:
    poses, number = np.unique(pose, return_inverse=True)
    count = len(poses)
    wanted = (count if count <= ALONE_UP_TO else FOLDS) if folds is None else folds
    if count < 2 or not 2 <= wanted <= count:
        raise CalibrationError(
            f"cross-validation: got {wanted} folds of {count} configurations, allowed are 2 folds up to one for each "
            "configuration; measure more configurations"
        )
    return (np.random.default_rng(seed).permutation(count) % wanted)[number]


def _step(gram: np.ndarray, rows: np.ndarray, weighted: np.ndarray) -> np.ndarray | None:
    """Return the step of scaled unknowns without some rows; None if an unknown is not identifiable without them."""
    try:
        factor = cho_factor(gram - rows.T @ rows, lower=True)
    except LinAlgError:
        return None
    if len(gram) and np.diag(factor[0]).min() ** 2 < _SINGULAR:
        return None
    return -cho_solve(factor, rows.T @ weighted)


def _predicted(
    problem: CalibrationProblem, fit: CalibrationFit, out: np.ndarray, step: np.ndarray, prior: np.ndarray | None
) -> np.ndarray:
    """Return the residuals of the equations that are out, at the values of the fit without them."""
    values = fit.values.copy()
    values[fit.columns] += step
    residual = problem.residual(values)
    curved = np.linalg.norm((residual - fit.residual + fit.jacobian @ step)[~out])
    if curved > _LINEAR * np.linalg.norm(fit.residual[~out]):
        again = fitted(problem.taken(~out), fit.columns, fit.weight[~out], start=values, prior=prior)
        residual = problem.residual(again.values)
    return residual[out]


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
class Validation:
    """Accuracy on measurements that were not fitted; all their points count.

    Attributes:
        base: ``same``, the base of the fit; ``own``, the file registered by itself.
        before: Accuracy of the nominal arm, base, tool and markers as fitted with it to the other file.
        after: Accuracy of the calibrated arm at the same points.
        own_registration: Accuracy of the calibrated arm with the file registered by itself; None if its points cannot
            fix it.
        shift_mm: How far that registration moves the middle of the measured points [mm], or None.
        turn_deg: By which angle it turns [deg], or None.
        moved: Whether the frame has moved: the registration cures an error far above the cross-validated one.
        gross: Points that are far off, named; they count.
    """

    base: ValidationBase
    before: Accuracy
    after: Accuracy
    own_registration: Accuracy | None
    shift_mm: float | None
    turn_deg: float | None
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
    equations, points = problem.equations, position_equations(problem)
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
        own_registration=None if own is None else accuracy_of(equations, own[0]),
        shift_mm=None if own is None else own[1],
        turn_deg=None if own is None else own[2],
        moved=moved,
        gross=_far_off(equations, own[0] if own is not None and moved else residual),
    )


def position_equations(problem: CalibrationProblem) -> np.ndarray:
    """Return the equations of x, y and z (n, 3) of every complete position; differences of positions are none."""
    equations = problem.equations
    placed = equations.coordinate < _FIRST_ROTATION
    if isinstance(problem, MeasuredProblem):
        placed &= ~problem.measurements.of_kind("difference")[equations.row]
    where = np.flatnonzero(placed)
    order = where[np.lexsort((equations.coordinate[where], equations.row[where]))]
    rows, first, count = np.unique(equations.row[order], return_index=True, return_counts=True)
    return order[first[count == 3][:, None] + np.arange(3)] if len(rows) else np.zeros((0, 3), dtype=int)


def registered_residual(problem: CalibrationProblem, residual: np.ndarray) -> np.ndarray | None:
    """Return residuals (E,) with the measurements registered by themselves; None if their points cannot fix it."""
    found = _registered(problem.equations, position_equations(problem), residual)
    return None if found is None else found[0]


def _registered(
    equations: MeasurementEquations, points: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, float, float] | None:
    """Return the residuals (E,) after the rigid motion of predicted points that fits best, its shift [mm], turn [deg].

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
    return result, 1e3 * float(np.linalg.norm(centre - middle)), angle


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
