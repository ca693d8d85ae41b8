"""Gross errors, named: points read wrongly, and whole configurations whose joint angles are not those written down.

A fit by least squares bends towards gross errors and hides them. So a start is sought that most points agree with:
least trimmed squares from many random sets of configurations (each refined by fitting the better half and ranking
anew), on the equations linearised at the plain fit. From there points are judged one by one, by how far they lie off
for a fit without them, and taken in or left out until nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..records import CalibrationProblem, Equations
from .accuracy import point_distances
from .covariances import clusters_by_size
from .fit import Fit, fitted
from .identifiable import PLAUSIBLE
from .shared_errors import shared_correlation
from .trimming import LEAST_EXCESS, trimmed_step, trimmed_variance

FALSE_ALARM = 0.01
"""Chance that among points with normal noise one is called a gross error."""

GROSS = 3.0
"""A point no farther off than so many times what the nominal arm usually is, is none: the model may lack something."""

_FRAMES = ("base", "tool", "marker")
_STEPS = 20
# Points that may still change places when the ranking ends.
_CHANGING = 0.03
_CURVED = 0.1
_KEPT_SHARE = 0.6
# A point so many times farther off than its like in a wrong configuration is wrong by itself.
_ALONE = 10.0
# Repeats of one marker in one configuration from which its own noise is judged.
_REPEATS = 4
_TUKEY = np.array([4.685, 5.123, 5.490, 5.810, 6.096, 6.356])
"""Where Tukey's weight ends for an efficiency of 95 % with normal noise in 1, 2, ... 6 coordinates."""


@dataclass(frozen=True)
class Outlier:
    """A gross error.

    Attributes:
        pose: Name of the configuration.
        marker: Name of the marker; None if the whole configuration is wrong.
        size_mm: How far it lies off [mm], the farthest marker of a configuration; [mrad] where no position is measured.
    """

    pose: str
    marker: str | None
    size_mm: float

    @property
    def text(self) -> str:
        """In words: ``pose_6, marker m1: 91.2 mm off``."""
        what = "all of it" if self.marker is None else f"marker {self.marker}"
        return f"{self.pose}, {what}: {self.size_mm:.3g} mm off"


@dataclass(frozen=True, eq=False)
class Screening:
    """What remains when gross errors are left out.

    Attributes:
        good: Which equations remain (E,).
        outliers: What was left out, by configuration and marker.
        values: All unknowns (p,) by the fit of what remains: where a fit may begin.
        judged: Whether there were equations enough to judge by.
    """

    good: np.ndarray
    outliers: tuple[Outlier, ...]
    values: np.ndarray
    judged: bool


def tukey_factors(equations: Equations, whitened: np.ndarray) -> np.ndarray:
    """Return factors of the weights (E,) by Tukey's biweight: ``1 - (d / c)^2``, 0 from d = c on.

    ``d`` is the norm of a point's residuals over their sigmas; all coordinates of a point have the same factor.
    """
    point = np.unique(equations.row, return_inverse=True)[1]
    count = np.bincount(point)
    distance = np.sqrt(np.bincount(point, whitened**2))
    limit = _TUKEY[np.minimum(count, len(_TUKEY)) - 1]
    return np.maximum(1 - (distance / limit) ** 2, 0.0)[point]


def screened(problem: CalibrationProblem, columns: np.ndarray, seed: int = 0) -> Screening:
    """Find gross errors among the equations of a problem.

    Args:
        problem: Unknowns and equations.
        columns: Numbers of the unknowns that are fitted (k,).
        seed: Of the random sets of configurations.
    """
    equations = problem.equations
    search = _Search(problem, np.asarray(columns))
    everything = search.fit(np.ones(equations.size, dtype=bool), problem.start)
    if equations.size < LEAST_EXCESS * len(columns) + 1:
        return _result(equations, np.ones(search.points, dtype=bool), search, everything.values, judged=False)
    good, fit = search.concentrated(everything, seed)
    if search.curved(everything, fit, good):
        # Now the equations are linear where most points agree, not where the gross errors pulled the fit.
        good, fit = search.concentrated(fit, seed)
    good, values = search.judged(good, fit.values)
    good, values = search.without_small_ones(good, values)
    return _result(equations, good, search, values, judged=True)


class _Search:
    """Points (rows of the measurements) of a problem, and fits of some of them."""

    def __init__(self, problem: CalibrationProblem, columns: np.ndarray) -> None:
        self.problem, self.columns = problem, columns
        equations = problem.equations
        rows, first, self.point = np.unique(equations.row, return_index=True, return_inverse=True)
        self.points = len(rows)
        self.count = np.bincount(self.point)
        self.pose = equations.pose[first]
        self.marker = equations.marker[first]
        self.noise = _noise_by_pose(problem)
        # So weak that it matters only for an unknown that the points of a set cannot tell.
        self.prior = 1e6 * np.array([PLAUSIBLE.get(parameter.unit, 1.0) for parameter in problem.parameters])
        enough = int(np.ceil(LEAST_EXCESS * len(columns) / self.count.mean()))
        self.kept = min(max(int(np.ceil(_KEPT_SHARE * self.points)), enough), self.points)

    def fit(self, mask: np.ndarray, start: np.ndarray) -> Fit:
        """Fit the equations of a mask (E,); the others come back in the residuals and derivatives with weight 0."""
        return fitted(self.problem, self.columns, mask.astype(float), start=start, prior=self.prior)

    def best(self, residual: np.ndarray) -> np.ndarray:
        """Return the points (n,) that lie nearest, as many as are kept."""
        distance = np.bincount(self.point, residual**2) / self.count
        chosen = np.zeros(self.points, dtype=bool)
        chosen[np.argsort(distance, kind="stable")[: self.kept]] = True
        return chosen

    def concentrated(self, fit: Fit, seed: int) -> tuple[np.ndarray, Fit]:
        """Return points (n,) that agree and their fit: least trimmed squares, then fits and rankings in full."""
        step = trimmed_step(fit, self.point, self.pose, self.kept, seed)
        good = self.best(fit.residual - fit.jacobian @ step)
        values = fit.values.copy()
        values[self.columns] += step
        for _ in range(_STEPS):
            fit = self.fit(good[self.point], values)
            values, before, good = fit.values, good, self.best(fit.residual)
            if (good != before).mean() <= _CHANGING:
                break
        return good, fit

    def curved(self, before: Fit, after: Fit, good: np.ndarray) -> bool:
        """Return whether the equations of good points (n,) are not linear from one fit to the other."""
        linear = before.residual - before.jacobian @ (after.values - before.values)[self.columns]
        own = good[self.point]
        return bool(np.linalg.norm((linear - after.residual)[own]) > _CURVED * np.linalg.norm(after.residual[own]))

    def judged(self, good: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take points in that the others agree with, leave out those that they do not, until nothing changes."""
        trimming = trimmed_variance(good.mean(), float(self.count.mean()))
        seen = {good.tobytes()}
        for _ in range(_STEPS):
            fit = self.fit(good[self.point], values)
            values, good = fit.values, self._agreeing(fit, good, trimming)
            trimming = 1.0
            if good.tobytes() in seen:
                break
            seen.add(good.tobytes())
        return good, values

    def without_small_ones(self, good: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take points in again that only the calibrated arm, not the nominal one, would call wrong.

        On a real arm residuals are what the model lacks (backlash, bending) more than noise, and have long tails. What
        is no farther off than the nominal arm usually is, with its base, tool and markers fitted, is no gross error.
        """
        if good.all():
            return good, values
        groups = [self.problem.parameters[column].group for column in self.columns]
        frames = self.columns[[group in _FRAMES for group in groups]]
        nominal = self.problem.start
        if len(frames):
            nominal = fitted(self.problem, frames, good[self.point].astype(float), prior=self.prior).values
        usual = np.median(_sizes(self.problem.equations, self.problem.residual(nominal), self)[good])
        wrong = _sizes(self.problem.equations, self.problem.residual(values), self) > GROSS * usual
        # A configuration is wrong as a whole if one of its points is: its others are off by less only by chance.
        kept = good | ~np.isin(self.pose, self.pose[wrong & ~good])
        return kept, self.fit(kept[self.point], values).values

    def _agreeing(self, fit: Fit, good: np.ndarray, trimming: float) -> np.ndarray:
        """Return which points (n,) lie as near to a fit without them as normal noise allows."""
        mask = good[self.point]
        coordinate = self.problem.equations.coordinate
        left = np.bincount(coordinate, np.where(mask, 1 - fit.leverage, 0.0), minlength=7)
        squares = np.bincount(coordinate, np.where(mask, fit.residual**2, 0.0), minlength=7)
        sigma = np.sqrt(squares / np.maximum(left, 1.0) / trimming)
        usual = np.maximum(sigma[coordinate] * self.noise[self.problem.equations.pose], 1e-12)
        whitened = fit.residual / usual
        freedom = max(float(left.sum()), 3.0)
        # Where points of a configuration share an error, the fit is less certain than their number says.
        together = np.bincount(self.pose, good)
        wider = 1 + shared_correlation(fit, self.problem.equations, usual) * (together[together > 0].mean() - 1)
        agrees = np.zeros(self.points, dtype=bool)
        for members, own in clusters_by_size(self.point):
            block = fit.jacobian[members]
            hat = block @ fit.inverse @ block.transpose(0, 2, 1)
            size = members.shape[1]
            spread = np.eye(size) + np.where(good[own], -1.0, wider)[:, None, None] * hat
            # A point that the fit follows whatever it is (leverage 1) cannot be judged: the floor lets it pass.
            spread += 1e-6 * np.eye(size)
            off = np.einsum(
                "ge,ge->g", whitened[members], np.linalg.solve(spread, whitened[members][..., None])[..., 0]
            )
            agrees[own] = off <= size * stats.f.ppf(1 - FALSE_ALARM / self.points, size, freedom)
        return agrees


def _noise_by_pose(problem: CalibrationProblem) -> np.ndarray:
    """Return how much larger than usual the scatter of repeats is in each configuration (poses,), at least 1."""
    equations = problem.equations
    noise = np.ones(len(equations.poses))
    key = (equations.pose * (equations.marker.max() + 1) + equations.marker) * 7 + equations.coordinate
    measured = problem.residual(problem.start)
    scatter = np.full(equations.size, np.nan)
    for members, _ in clusters_by_size(np.unique(key, return_inverse=True)[1]):
        if members.shape[1] >= _REPEATS:
            own = measured[members]
            scatter[members] = np.abs(own - np.median(own, axis=1, keepdims=True))
    if np.isnan(scatter).all():
        return noise
    usual = np.nanmedian(scatter)
    for pose in np.unique(equations.pose[np.isfinite(scatter)]):
        noise[pose] = max(1.0, float(np.nanmedian(scatter[equations.pose == pose]) / max(usual, 1e-12)))
    return noise


def _result(equations: Equations, good: np.ndarray, search: _Search, values: np.ndarray, *, judged: bool) -> Screening:
    distance = _sizes(equations, search.problem.residual(values), search)
    good, found = good.copy(), []
    for pose in np.unique(search.pose[~good]):
        own = np.flatnonzero(search.pose == pose)
        bad = own[~good[own]]
        usual = np.median(distance[bad])
        alone = bad[distance[bad] > _ALONE * usual]
        together = np.setdiff1d(bad, alone)
        whole = len(bad) > len(own) / 2 and len(together) > 1
        for place in alone if whole else bad:
            name = equations.markers[int(search.marker[place])]
            found.append(Outlier(equations.poses[pose], name, float(distance[place])))
        if whole:
            found.append(Outlier(equations.poses[pose], None, float(distance[together].max())))
            good[own] = False
    mask = good[search.point]
    mask.setflags(write=False)
    return Screening(mask, tuple(found), values, judged)


def _sizes(equations: Equations, residual: np.ndarray, search: _Search) -> np.ndarray:
    """Return how far each point lies off (n,) [mm]; by its rotation [mrad] where it has no position."""
    size = np.sqrt(np.bincount(search.point, residual**2))
    rows, distance = point_distances(equations, residual)
    size[np.searchsorted(np.unique(equations.row), rows)] = distance
    return 1e3 * size
