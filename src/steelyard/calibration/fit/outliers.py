"""Detection of gross errors: misread points, and configurations whose joint angles are not those of the file.

Gross errors pull a least-squares fit towards themselves and hide. So the search starts from values that most points
agree with: least trimmed squares from many random sets of configurations (each refined by fitting the better part and
ranking anew), on the equations linearised at the plain fit. From there every point is tested against a fit without it
and included or excluded, until nothing changes.

Not every large residual is a gross error. Whole configurations with large residuals in one range of a joint show what
the model lacks there (``joint_ranges``): they stay in the fit. Where the points of a configuration share most of their
error, that error is the model's, whose tails are longer than those of noise: whole configurations are then tested by a
t distribution, single points still by their distance from the others of their configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...distributions import chi2_ppf, f_ppf
from ...estimate.robust import TUKEY, tukey_weights
from ..records import CalibrationProblem, Linearised, MeasurementEquations
from .accuracy import Outlier, point_distances
from .covariances import clusters_by_size
from .fit import LEAST_EXCESS, CalibrationFit, fitted, trimmed_step, trimmed_variance
from .identifiable import PLAUSIBLE
from .joint_ranges import JointRange, clustered_ranges
from .weights import shared_correlation

FALSE_ALARM = 0.01
"""Probability that any point is called a gross error if all have normal noise."""

MODEL_TAILS = 4.0
"""Degrees of freedom of the t distribution of model errors, whose tails are longer than those of noise."""

_STEPS = 20
# Share of points that may still change between core and rest when the ranking ends.
_CHANGING = 0.03
_CURVED = 0.1
_CORE_SHARE = 0.6
# A point so many times farther off than the median of a wrong configuration is wrong by itself.
_ALONE = 10.0
# Probability that a point with normal noise is a candidate for a range in which the model lacks something.
_SUSPECTED = 0.01
# A configuration most of whose points are wrong is excluded as a whole unless another of its points passes a test at
# this false-alarm rate.
_COMPANY = 0.05
# Repeats of one marker in one configuration from which its own noise is judged.
_REPEATS = 4
# Motions of a rigid tool, and how small a motion is none.
_DEGREES, _RIGID = 6, 1e-6
_TUKEY = np.array([TUKEY, 5.123, 5.490, 5.810, 6.096, 6.356])
"""Distance at which Tukey's weight is 0, for 95 % efficiency with normal noise in 1, 2, ... 6 coordinates."""


@dataclass(frozen=True, eq=False)
class Screening:
    """The equations that remain when gross errors are left out.

    Attributes:
        good: Which equations remain (E,).
        outliers: What was left out, by configuration and marker.
        values: All unknowns (p,) by the fit of the points that agree, to start another fit from.
        judged: Whether there were enough equations to detect gross errors.
        ranges: Ranges of joints in which whole configurations have large residuals; they remain.
    """

    good: np.ndarray
    outliers: tuple[Outlier, ...]
    values: np.ndarray
    judged: bool
    ranges: tuple[JointRange, ...] = ()


def tukey_factors(equations: MeasurementEquations, whitened: np.ndarray) -> np.ndarray:
    """Return factors of the weights (E,) by Tukey's biweight: ``1 - (d / c)^2``, 0 from d = c on.

    ``d`` is the norm of a point's residuals over their sigmas; all coordinates of a point have the same factor.
    """
    point = np.unique(equations.row, return_inverse=True)[1]
    count = np.bincount(point)
    distance = np.sqrt(np.bincount(point, whitened**2))
    limit = _TUKEY[np.minimum(count, len(_TUKEY)) - 1]
    return np.sqrt(tukey_weights(distance, limit))[point]


def screened(problem: CalibrationProblem, columns: np.ndarray, seed: int = 0) -> Screening:
    """Find gross errors among the equations of a problem.

    Args:
        problem: Unknowns and equations.
        columns: Numbers of the unknowns that are fitted (k,).
        seed: Of the random sets of configurations.
    """
    equations = problem.equations
    search = PointSearch(problem, np.asarray(columns))
    everything = search.fit(np.ones(equations.size, dtype=bool), problem.start)
    if equations.size < LEAST_EXCESS * len(columns) + 1:
        return _result(equations, np.ones(search.points, dtype=bool), search, everything.values, judged=False)
    good, fit = search.concentrated(everything, seed)
    if search.curved(everything, fit, good):
        # Now the equations are linearised where most points agree, not where gross errors pulled the fit to.
        good, fit = search.concentrated(fit, seed)
    # An error that grows with a joint's position begins small: candidates for ranges are taken at a far higher
    # false-alarm rate than gross errors. Whether they cluster in a range is a test of its own.
    close, values = search.judged(good, fit.values, alarm=_SUSPECTED * search.points)
    ranges, inside = search.clustered(close, values, seed)
    if not ranges:
        close, values = search.judged(good, fit.values, trimmed_variance(good.mean(), float(search.count.mean())))
    good, values = search.judged(close & ~inside, values, long_tails=True, out=inside)
    good = search.without_wrong_configurations(good, values, inside)
    return _result(equations, good | inside, search, values, judged=True, ranges=ranges)


class PointSearch:
    """Points (rows of the measurements) of a problem, and fits of some of them.

    Attributes:
        points: Number of points n.
        point: Number of the point of each equation (E,).
        count: Equations of each point (n,).
        pose: Configuration of each point (n,).
        marker: Marker of each point (n,).
        noise: Scatter of repeats by configuration over the usual one, at least 1.
        prior: Sigmas of the unknowns (p,), so weak that they matter only for what the points of a set leave free.
        core: Number of points that the trimmed fit uses.
    """

    def __init__(self, problem: CalibrationProblem, columns: np.ndarray) -> None:
        self.problem, self.columns = problem, columns
        equations = problem.equations
        rows, first, self.point = np.unique(equations.row, return_index=True, return_inverse=True)
        self.points = len(rows)
        self.count = np.bincount(self.point)
        self.pose = equations.pose[first]
        self.marker = equations.marker[first]
        self.noise = _noise_by_pose(problem)
        self.prior = 1e6 * np.array([PLAUSIBLE[parameter.unit] for parameter in problem.parameters])
        enough = int(np.ceil(LEAST_EXCESS * len(columns) / self.count.mean()))
        self.core = min(max(int(np.ceil(_CORE_SHARE * self.points)), enough), self.points)

    def fit(self, mask: np.ndarray, start: np.ndarray) -> CalibrationFit:
        """Fit the equations of a mask (E,); the result has residuals and derivatives of the others, with weight 0."""
        return fitted(self.problem, self.columns, mask.astype(float), start=start, prior=self.prior)

    def best(self, residual: np.ndarray) -> np.ndarray:
        """Return the core of points (n,) with the smallest mean squared residuals."""
        distance = np.bincount(self.point, residual**2) / self.count
        chosen = np.zeros(self.points, dtype=bool)
        chosen[np.argsort(distance, kind="stable")[: self.core]] = True
        return chosen

    def concentrated(self, fit: CalibrationFit, seed: int) -> tuple[np.ndarray, CalibrationFit]:
        """Return a core of points (n,) that agree and its fit: least trimmed squares, then full fits and rankings."""
        step = trimmed_step(fit, self.point, self.pose, self.core, seed)
        good = self.best(fit.residual - fit.jacobian @ step)
        values = fit.values.copy()
        values[self.columns] += step
        for _ in range(_STEPS):
            fit = self.fit(good[self.point], values)
            values, before, good = fit.values, good, self.best(fit.residual)
            if (good != before).mean() <= _CHANGING:
                break
        return good, fit

    def curved(self, before: CalibrationFit, after: CalibrationFit, good: np.ndarray) -> bool:
        """Return whether the equations of good points (n,) are far from linear between two fits."""
        linear = before.residual - before.jacobian @ (after.values - before.values)[self.columns]
        own = good[self.point]
        return bool(np.linalg.norm((linear - after.residual)[own]) > _CURVED * np.linalg.norm(after.residual[own]))

    def judged(
        self, good: np.ndarray, values: np.ndarray, trimming: float = 1.0, *, long_tails: bool = False,
        out: np.ndarray | None = None, alarm: float = FALSE_ALARM,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Include points that agree with a fit of the others and exclude those that do not, until nothing changes.

        Args:
            good: Points (n,) to start with.
            values: Values of the unknowns (p,) to start with.
            trimming: Variance of the first points over that of all.
            long_tails: Whether whole configurations may deviate by an error of the model.
            out: Points (n,) that are neither fitted nor judged.
            alarm: Expected number of points with normal noise that are called wrong.
        """
        out = np.zeros(self.points, dtype=bool) if out is None else out
        visited = {good.tobytes()}
        for _ in range(_STEPS):
            fit = self.fit(good[self.point], values)
            values, good = fit.values, self._agreeing(fit, good, trimming, long_tails, alarm) & ~out
            trimming = 1.0
            if good.tobytes() in visited:
                break
            visited.add(good.tobytes())
        return good, values

    def without_wrong_configurations(self, good: np.ndarray, values: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Return good points (n,) without those of configurations most of whose points are wrong.

        The other points of such a configuration passed the test by chance. But if one of them has a small residual, all
        of them stay: then its points were misread one by one.
        """
        near = self._agreeing(
            self.fit(good[self.point], values), good, 1.0, long_tails=False, alarm=_COMPANY * self.points
        )
        total, bad, fine = (np.bincount(self.pose, mask) for mask in (~out, ~good & ~out, near & ~out))
        return good & ~((bad > total / 2) & (fine == 0))[self.pose]

    def clustered(self, good: np.ndarray, values: np.ndarray, seed: int) -> tuple[tuple[JointRange, ...], np.ndarray]:
        """Return ranges of joints in which whole configurations have large residuals, and their points (n,)."""
        equations = self.problem.equations
        size = _sizes(equations, self.problem.residual(values), self)
        total, bad = np.bincount(self.pose), np.bincount(self.pose, ~good)
        poses = np.flatnonzero(total)
        wrong = bad[poses] > total[poses] / 2
        # Configurations with a point far beyond the others are gross errors and say nothing about a range.
        usual = np.median(size[~good & np.isin(self.pose, poses[wrong])]) if wrong.any() else 0.0
        blunder = ~good & (size > _ALONE * usual)
        wrong &= ~np.isin(poses, self.pose[blunder])
        if wrong.any():
            here = self.problem.at(values)
            wrong[wrong] = [self._moved_as_one(pose, good, here) for pose in poses[wrong]]
        ranges, chosen = clustered_ranges([replace(each, q=each.q[poses]) for each in equations.joints], wrong, seed)
        inside = np.isin(self.pose, poses[chosen])
        where = {each.name: each.q[self.pose] for each in equations.joints}
        own = [size[inside & each.holds(where[each.joint])] for each in ranges]
        elsewhere = size[good & ~inside]
        return tuple(each.measured(mine, elsewhere) for each, mine in zip(ranges, own, strict=True)), inside

    def _moved_as_one(self, pose: int, good: np.ndarray, here: Linearised) -> bool:
        """Return whether a rigid motion explains the residuals of a configuration, so that no point was misread.

        Errors of base and joints move all points of the tool as one body; misread points do not follow it.
        """
        own = self.problem.equations.pose == pose
        rigid = [column for column, each in enumerate(self.problem.parameters) if each.group in ("base", "joint")]
        motions, sizes, _ = np.linalg.svd(here.jacobian[np.ix_(own, rigid)], full_matrices=False)
        motions = motions[:, sizes > _RIGID * sizes.max(initial=0.0)]
        freedom = int(own.sum()) - motions.shape[1]
        if len(rigid) < _DEGREES or freedom <= 0:
            return True
        usual = np.sqrt(np.mean(here.residual[good[self.point]] ** 2))
        left = here.residual[own] - motions @ (motions.T @ here.residual[own])
        return bool(left @ left <= usual**2 * chi2_ppf(1 - FALSE_ALARM / self.points, freedom))

    def _agreeing(
        self, fit: CalibrationFit, good: np.ndarray, trimming: float, long_tails: bool, alarm: float = FALSE_ALARM
    ) -> np.ndarray:
        """Return which points (n,) lie as near to a fit without them as noise, and errors of the model, allow."""
        mask = good[self.point]
        coordinate = self.problem.equations.coordinate
        left = np.bincount(coordinate, np.where(mask, 1 - fit.leverage, 0.0), minlength=7)
        squares = np.bincount(coordinate, np.where(mask, fit.residual**2, 0.0), minlength=7)
        sigma = np.sqrt(squares / np.maximum(left, 1.0) / trimming)
        usual = np.maximum(sigma[coordinate] * self.noise[self.problem.equations.pose], 1e-12)
        whitened = fit.residual / usual
        freedom = max(float(left.sum()), 3.0)
        # Where points of a configuration share an error, the fit is less certain than their number suggests.
        together = np.bincount(self.pose, good)
        shared = shared_correlation(fit, self.problem.equations, usual)
        wider = 1 + shared * (together[together > 0].mean() - 1)
        off = self._distances(fit, whitened, np.where(good, -1.0, wider))
        limit = self._limit(alarm, freedom)
        if not long_tails:
            return off <= limit
        longer = (1 - shared) * limit + shared * self._limit(alarm, min(MODEL_TAILS, freedom))
        return (off <= limit) | ((off <= longer) & (self._apart(whitened, good) <= limit))

    def _limit(self, alarm: float, freedom: float) -> np.ndarray:
        """Return the squared distances (n,) that ``alarm`` of all points with normal noise are expected to exceed."""
        return self.count * f_ppf(1 - alarm / self.points, self.count, freedom)

    def _distances(self, fit: CalibrationFit, whitened: np.ndarray, sign: np.ndarray) -> np.ndarray:
        """Return ``u^T (I + sign H)^-1 u`` of every point (n,): squared distance to a fit without it."""
        off = np.zeros(self.points)
        for members, own in clusters_by_size(self.point):
            block = fit.jacobian[members]
            hat = block @ fit.inverse @ block.transpose(0, 2, 1)
            size = members.shape[1]
            spread = np.eye(size) + sign[own][:, None, None] * hat
            # A point that the fit follows whatever it is (leverage 1) cannot be judged: the floor lets it pass.
            spread += 1e-6 * np.eye(size)
            off[own] = np.einsum(
                "ge,ge->g", whitened[members], np.linalg.solve(spread, whitened[members][..., None])[..., 0]
            )
        return off

    def _apart(self, whitened: np.ndarray, good: np.ndarray) -> np.ndarray:
        """Return the squared distance of every point (n,) from the mean of the good others of its configuration.

        Zero where there are no others to compare with.
        """
        coordinate, mask = self.problem.equations.coordinate, good[self.point]
        place = self.pose[self.point] * 7 + coordinate
        count = np.bincount(place, mask)[place] - mask
        total = np.bincount(place, np.where(mask, whitened, 0.0))[place] - np.where(mask, whitened, 0.0)
        others = np.maximum(count, 1)
        squares = np.where(count > 0, (whitened - total / others) ** 2 / (1 + 1 / others), 0.0)
        return np.bincount(self.point, squares)


def _noise_by_pose(problem: CalibrationProblem) -> np.ndarray:
    """Return the scatter of repeats in each configuration over the median one (poses,), at least 1."""
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


def _result(
    equations: MeasurementEquations, good: np.ndarray, search: PointSearch, values: np.ndarray, *, judged: bool,
    ranges: tuple[JointRange, ...] = (),
) -> Screening:  # fmt: skip
    distance = _sizes(equations, search.problem.residual(values), search)
    found = []
    for pose in np.unique(search.pose[~good]):
        own = np.flatnonzero(search.pose == pose)
        bad = own[~good[own]]
        usual = np.median(distance[bad])
        alone = bad[distance[bad] > _ALONE * usual]
        together = np.setdiff1d(bad, alone)
        whole = len(bad) == len(own) and len(together) > 1
        for place in alone if whole else bad:
            name = equations.markers[int(search.marker[place])]
            found.append(Outlier(equations.poses[pose], name, float(distance[place])))
        if whole:
            found.append(Outlier(equations.poses[pose], None, float(distance[together].max())))
    mask = good[search.point]
    mask.setflags(write=False)
    return Screening(mask, tuple(found), values, judged, ranges)


def _sizes(equations: MeasurementEquations, residual: np.ndarray, search: PointSearch) -> np.ndarray:
    """Return the size of the residual of each point (n,) [mm], or [mrad] of its rotation if it has no position."""
    size = np.sqrt(np.bincount(search.point, residual**2))
    rows, distance = point_distances(equations, residual)
    size[np.searchsorted(np.unique(equations.row), rows)] = distance
    return 1e3 * size
