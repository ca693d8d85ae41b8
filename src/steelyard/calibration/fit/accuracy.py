"""Errors of measured points and orientations in four numbers each: mean, rms, 95 % and largest [mm, deg].

Accuracy at configurations that the fit has not seen: whole configurations are held out in turn.

All markers and repeats of a configuration go together, and everything unknown, base and markers included, is fitted
again without them. A fold's fit starts from the fit of all: with ``A = W B`` and u the weighted residuals of the fold,
``dX = -(A^T A - A_f^T A_f)^-1 A_f^T u_f`` is its Gauss-Newton step, which is all there is to do where the equations
are linear over so short a way. Where they are not, as the residuals at the new values tell, the fold is fitted in full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...errors import CalibrationError
from ..records import COORDINATES, CalibrationProblem, MeasurementEquations
from .fit import CalibrationFit, fitted

_ROTATIONS = (COORDINATES.index("rx"), COORDINATES.index("ry"), COORDINATES.index("rz"))


@dataclass(frozen=True)
class Accuracy:
    """How far predicted points and orientations lie from measured ones.

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
    """Return the rows that have a position or a distance (n,), and how far each lies off (n,) [m].

    Off is the norm over the coordinates that were measured; rotations do not count.
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
    rotations = (*_four_numbers(angles), len(angles)) if len(angles) else ()
    return Accuracy(*_four_numbers(distances), len(distances), *rotations)


def _four_numbers(errors: np.ndarray) -> tuple[float, float, float, float]:
    root = float(np.sqrt(np.mean(errors**2)))
    return float(errors.mean()), root, float(np.quantile(errors, 0.95)), float(errors.max())


ALONE_UP_TO = 50
"""Up to so many configurations each is held out alone."""
FOLDS = 10
"""Parts into which more of them are divided."""

# A step counts as linear if what it leaves out is below this part of the residuals.
_LINEAR = 1e-3
# A held-out unknown that the rest cannot tell shows as a scaled pivot below this.
_UNTOLD = 1e-10


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What was predicted without having been seen.

    Attributes:
        residual: Measured minus predicted by the fit without the configuration (E,); NaN where there is no such fit.
        folds: Number of the fold of each equation (E,).
        accuracy: Statistics of the points; None if none could be predicted.
        unpredicted: Names of configurations without which some unknown cannot be told, as of a marker seen only there.
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
    """Return the step of scaled unknowns without some rows; None if the others cannot tell all unknowns."""
    try:
        factor = cho_factor(gram - rows.T @ rows, lower=True)
    except LinAlgError:
        return None
    if len(gram) and np.diag(factor[0]).min() ** 2 < _UNTOLD:
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
