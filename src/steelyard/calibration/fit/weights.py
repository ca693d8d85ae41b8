"""Sigmas by noise group of equations, and the weights that follow from them (P3.4, eq. 14).

A sigma is estimated from the residuals of a group: the equations of one configuration and direction (markers times
repeats), with the degrees of freedom that the fit took counted. Where the numbers of a group share an error, as
repeats do whose joint angles are wrong by the same amount, they count as the few that they are:
``n / (1 + r (n - 1))`` for a correlation r. Groups that are worth less than a stated number are pooled by direction.

A group of a single equation, whose own residual would be its sigma, is refused: a weight of one over the residual
confirms whatever the last fit said. On P3's own case it claims sigmas 27 to 42 times smaller than least squares, and
its intervals hold the truth 3 to 20 times in a hundred.

Numbers of one configuration and direction share errors such as those of its joint angles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ...errors import CalibrationError
from ..records import COORDINATES, MeasurementEquations
from .fit import CalibrationFit

# The two sums of squares are the same if their system is this near to singular.
_SAME = 1e-9


def configuration_groups(equations: MeasurementEquations) -> np.ndarray:
    """Return the number of the configuration and direction that each equation belongs to (E,), 0, 1, ..."""
    return np.unique(equations.pose * len(COORDINATES) + equations.coordinate, return_inverse=True)[1]


def is_shared_observed(equations: MeasurementEquations) -> bool:
    """Return whether any configuration has two numbers of one direction, so that a shared error can be estimated."""
    return bool((np.bincount(configuration_groups(equations)) > 1).any())


def group_sums(rows: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the sums (groups, k) of rows (E, k) by number of their group (E,)."""
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    return np.add.reduceat(rows[order], starts, axis=0)


def independent_part(equations: MeasurementEquations, correlation: float) -> np.ndarray:
    """Return what each equation is worth (E,) if n of a group have correlation r: ``1 / (1 + r (n - 1))``."""
    group = configuration_groups(equations)
    return 1 / (1 + correlation * (np.bincount(group)[group] - 1))


def shared_correlation(fit: CalibrationFit, equations: MeasurementEquations, sigma: np.ndarray) -> float:
    """Return the correlation r of equations of one configuration and direction, between 0 and 1.

    Residuals over their sigmas are ``u = P e`` with ``P = I - A C^T``, ``A = B / sigma``, ``C = sigma W^2 B M``: what a
    fit of any weights leaves of errors e of unit variance. With ``cov(e) = a I + b Z Z^T``, Z the indicator of the
    groups, the expectations of ``|u|^2`` and ``|Z^T u|^2`` are linear in a and b; ``r = b / (a + b)``.
    """
    used = fit.weight > 0
    group = configuration_groups(equations)
    count = np.bincount(group, used)
    rows = fit.jacobian * np.where(used, 1 / sigma, 0.0)[:, None]
    gain = (fit.jacobian * (fit.weight**2 * sigma)[:, None]) @ fit.inverse
    row_sums, gain_sums = group_sums(rows, group), group_sums(gain, group)
    inner_rows, inner_gain = rows.T @ rows, gain.T @ gain
    outer_rows, outer_gain = row_sums.T @ row_sums, gain_sums.T @ gain_sums
    once = count.sum() - 2 * (row_sums * gain_sums).sum()
    twice = (count**2).sum() - 2 * count @ (row_sums * gain_sums).sum(axis=1)
    system = np.array([
        [count.sum() - 2 * (rows * gain).sum() + (inner_rows * inner_gain).sum(),
         once + (outer_gain * inner_rows).sum()],
        [once + (outer_rows * inner_gain).sum(), twice + (outer_rows * outer_gain).sum()],
    ])  # fmt: skip
    whitened = np.where(used, fit.residual / sigma, 0.0)
    observed = np.array([whitened @ whitened, (np.bincount(group, whitened) ** 2).sum()])
    # With one equation a group the two sums are the same: no shared error is identifiable.
    if np.linalg.det(system) <= _SAME * system[0, 0] * system[1, 1]:
        return 0.0
    alone, shared = np.linalg.solve(system, observed)
    return float(np.clip(shared / (alone + shared), 0.0, 1.0)) if alone + shared > 0 else 0.0


Grouping = Literal["kind", "direction", "configuration"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
"""One sigma for positions, one for rotations, one for distances; by coordinate; by configuration and coordinate."""

LEAST_EQUATIONS = 10.0
"""A group that is worth fewer independent equations is pooled."""

_KINDS = ("position", "rotation", "distance")
_KIND_OF = np.array([0, 0, 0, 1, 1, 1, 2])
_LEAST_FREEDOM = 0.5
# A sigma is not taken as smaller than this part of the pooled one, nor than this [m or rad].
_LEAST_PART, _LEAST_SIGMA = 0.01, 1e-12


@dataclass(frozen=True)
class SigmaGroup:
    """Equations that share a sigma.

    Attributes:
        name: ``pose_3 x``, or ``x``, ``position`` where groups are pooled.
        sigma: Standard deviation [m or rad].
        equations: Number of equations.
        worth: How many independent equations the sigma was estimated from, less what the fit took; ``inf`` if declared.
    """

    name: str
    sigma: float
    equations: int
    worth: float


@dataclass(frozen=True, eq=False)
class Sigmas:
    """The standard deviation of every equation.

    Attributes:
        sigma: (E,) [m or rad].
        group: Number of the group of each equation (E,).
        groups: The groups.
        correlation: Correlation of equations of one configuration and direction: the part of the variance they share.
    """

    sigma: np.ndarray
    group: np.ndarray
    groups: tuple[SigmaGroup, ...]
    correlation: float

    @property
    def worth(self) -> np.ndarray:
        """What each group's sigma was estimated from (groups,)."""
        return np.array([group.worth for group in self.groups])


def estimated_sigmas(
    fit: CalibrationFit, equations: MeasurementEquations, by: Grouping = "configuration", least: float = LEAST_EQUATIONS
) -> Sigmas:
    """Return sigmas by group from the residuals of a fit: ``sigma_g^2 = sum r^2 / (n_g - sum h)`` (P3.4).

    Args:
        fit: The fit; its leverages h say what it took.
        equations: Its equations.
        by: ``configuration`` (and direction), ``direction`` or ``kind``.
        least: Independent equations that a group must be worth to have its own sigma; else its equations take that of
            their direction, and of their kind if that is too little.

    Raises:
        CalibrationError: If each equation were to be its own group, or if the fit left no equation to estimate from.
    """
    if by == "equation" or least < 2:
        raise CalibrationError(
            "a sigma from a single equation, its own residual, is refused: such weights confirm the last fit, and "
            "their intervals hold the truth 3 to 20 % of the time; group by configuration, direction or kind"
        )
    left = np.where(fit.weight > 0, 1 - fit.leverage, 0.0)
    alone = _grouped(fit, equations, by, least, left)
    # Groups with sigmas of their own show what is shared whatever their sizes; pooled ones show how much of it.
    hint = shared_correlation(fit, equations, alone[0])
    sigma, number, names = _grouped(fit, equations, by, least, left * independent_part(equations, hint))
    correlation = shared_correlation(fit, equations, sigma)
    worth = np.bincount(number, left * independent_part(equations, correlation))
    count, first = np.bincount(number), np.unique(number, return_index=True)[1]
    groups = [
        SigmaGroup(*parts) for parts in zip(names, sigma[first].tolist(), count.tolist(), worth.tolist(), strict=True)
    ]
    sigma.setflags(write=False)
    number.setflags(write=False)
    return Sigmas(sigma, number, tuple(groups), correlation)


def _grouped(
    fit: CalibrationFit, equations: MeasurementEquations, by: Grouping, least: float, worth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return sigma (E,), number of the group (E,) and names of the groups, each the finest that is worth enough."""
    used = fit.weight > 0
    squares, left = np.where(used, fit.residual**2, 0.0), np.where(used, 1 - fit.leverage, 0.0)
    sigma, number, names = np.zeros(equations.size), np.zeros(equations.size, dtype=int), []
    kind = _KIND_OF[equations.coordinate]
    pooled = np.bincount(kind, squares) / np.maximum(np.bincount(kind, left), _LEAST_FREEDOM)
    floor = np.maximum(_LEAST_PART * np.sqrt(pooled[kind]), _LEAST_SIGMA)
    for level in GROUPINGS[GROUPINGS.index(by) :: -1]:
        label = _labels(level, equations)
        variance = np.bincount(label, squares) / np.maximum(np.bincount(label, left), np.finfo(float).tiny)
        needed = least if level != "kind" else min(_LEAST_FREEDOM, worth.sum())
        chosen = (sigma == 0) & (np.bincount(label, worth) >= needed)[label]
        sigma[chosen] = np.maximum(np.sqrt(variance[label[chosen]]), floor[chosen])
        _, first, place = np.unique(label[chosen], return_index=True, return_inverse=True)
        number[chosen] = len(names) + place
        names += [_name(level, equations, int(row)) for row in np.flatnonzero(chosen)[first]]
    if not sigma.all() or left.sum() < _LEAST_FREEDOM:
        raise CalibrationError(
            f"sigmas: {equations.size} equations leave less than one degree of freedom to estimate their noise from; "
            "measure more, or declare the instrument's sigmas"
        )
    return sigma, number, names


def declared_sigmas(equations: MeasurementEquations, sigma: np.ndarray | Sequence[float]) -> Sigmas:
    """Return sigmas that the instrument's maker states: one an equation (E,), or one for each of x, y, z [m].

    Raises:
        CalibrationError: If they do not fit the equations, or are not above 0.
    """
    given = np.array(sigma, dtype=float)
    if given.shape == (3,) and equations.size != 3:
        if (equations.coordinate > 2).any():
            raise CalibrationError("declared sigmas: got three for x, y, z, needed is one an equation where rotations "
                                   "or distances are measured")  # fmt: skip
        given = given[equations.coordinate]
    if given.shape != (equations.size,) or not (np.isfinite(given).all() and (given > 0).all()):
        raise CalibrationError(
            f"declared sigmas: got shape {given.shape}, allowed are 3 or {equations.size} finite numbers above 0"
        )
    coordinates, number = np.unique(equations.coordinate, return_inverse=True)
    own = [given[equations.coordinate == coordinate] for coordinate in coordinates]
    groups = tuple(
        SigmaGroup(COORDINATES[coordinate], float(np.sqrt(np.mean(part**2))), len(part), np.inf)
        for coordinate, part in zip(coordinates, own, strict=True)
    )
    given.setflags(write=False)
    return Sigmas(given, number, groups, 0.0)


def inverse_weights(sigma: np.ndarray) -> np.ndarray:
    """Return ``w = 1 / sigma``, for which ``W Sigma = I`` and the covariance is that of P3 eq. 13."""
    return 1 / sigma


def damped_weights(sigma: np.ndarray, sigma0: float, eta: float) -> np.ndarray:
    """Return P3 eq. 14, ``w = sigma0 / (sigma0 + eta sigma)``, scaled so that the mean square of ``w sigma`` is 1.

    Args:
        sigma: Of every equation (E,).
        sigma0: Precision that the instrument's maker claims [m], 10 um for a laser tracker.
        eta: How far the sigmas are believed: 0 gives equal weights, a large one ``1 / sigma``.

    Raises:
        CalibrationError: If sigma0 is not above 0 or eta is negative.
    """
    if not (np.isfinite(sigma0) and sigma0 > 0 and np.isfinite(eta) and eta >= 0):
        raise CalibrationError(
            f"weights by eq. 14: got sigma0 {sigma0:g} and eta {eta:g}, allowed are sigma0 above 0, eta 0 and above"
        )
    weight = sigma0 / (sigma0 + eta * sigma)
    return weight / np.sqrt(np.mean((weight * sigma) ** 2))


def _labels(level: str, equations: MeasurementEquations) -> np.ndarray:
    if level == "configuration":
        return configuration_groups(equations)
    return equations.coordinate if level == "direction" else _KIND_OF[equations.coordinate]


def _name(level: str, equations: MeasurementEquations, row: int) -> str:
    """Return what the group of an equation is called."""
    coordinate = int(equations.coordinate[row])
    if level == "kind":
        return _KINDS[_KIND_OF[coordinate]]
    direction = COORDINATES[coordinate]
    return direction if level == "direction" else f"{equations.poses[int(equations.pose[row])]} {direction}"
