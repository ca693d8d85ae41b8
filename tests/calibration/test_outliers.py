"""Gross errors: found among many, named, and none where there are none."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from calibration.small_problems import (
    laid_out,
    linear_problem,
    noise_like,
    spatial_points,
    spatial_problem,
    spatial_truth,
)
from steelyard.calibration.fit import outliers
from steelyard.calibration.fit.fit import fitted, trimmed_variance
from steelyard.calibration.fit.identifiable import identifiability
from steelyard.calibration.fit.outliers import FALSE_ALARM, PointSearch, screened, tukey_factors
from steelyard.calibration.records import Linearised, MeasuredJoint

COLUMNS = np.arange(4)


def spoiled(seed: int):
    """20 configurations of a 6R arm: five with wrong joint angles, and two points read wrongly in others."""
    random = np.random.default_rng(seed)
    q = random.uniform(-1.5, 1.5, (6, 20))
    bad, truth = random.choice(20, 7, replace=False), spatial_truth(seed)
    moved = q.copy()
    moved[random.integers(0, 3, 5), bad[:5]] += random.choice([-1, 1], 5) * random.uniform(20e-3, 60e-3, 5)
    points = spatial_points(truth, moved) + 1e-4 * random.standard_normal((20, 3, 3))
    points[bad[5], 0, 0] += 0.090
    points[bad[6], 2, 1] -= 0.030
    named = {(f"pose_{pose + 1}", None) for pose in bad[:5]}
    return spatial_problem(points, q), named | {(f"pose_{bad[5] + 1}", "m1"), (f"pose_{bad[6] + 1}", "m3")}


@pytest.mark.parametrize(
    "seed", [0, pytest.param(3, marks=pytest.mark.large), pytest.param(7, marks=pytest.mark.large)]
)
def test_five_wrong_configurations_and_two_gross_points_of_twenty_are_named(seed):
    problem, expected = spoiled(seed)
    columns = identifiability(problem.parameters, problem.at(problem.start).jacobian).columns
    found = screened(problem, columns)
    assert {(item.pose, item.marker) for item in found.outliers} == expected
    sizes = {item.marker: item.size_mm for item in found.outliers}
    assert sizes["m1"] == pytest.approx(90, abs=1)
    assert sizes["m3"] == pytest.approx(30, abs=1)
    assert found.good.sum() == 180 - 5 * 9 - 2 * 3
    rest = fitted(problem.taken(found.good), columns, start=found.values)
    assert np.sqrt(np.sum(rest.residual**2) / (129 - len(columns))) == pytest.approx(1e-4, rel=0.3)


def test_least_squares_alone_would_blame_others():
    """Why a robust start is needed: the largest residuals of a plain fit are not those of the wrong configurations."""
    problem, expected = spoiled(0)
    columns = identifiability(problem.parameters, problem.at(problem.start).jacobian).columns
    fit = fitted(problem, columns)
    scale = np.median(np.abs(fit.residual)) / 0.6745
    suspects = {f"pose_{k + 1}" for k in np.unique(problem.equations.pose[np.abs(fit.residual) > 4.5 * scale])}
    assert not suspects >= {pose for pose, _ in expected}


def test_clean_measurements_have_no_outliers():
    named = 0
    for seed in range(40):
        problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 1, seed), 15, 3, 1)
        named += len(screened(problem, COLUMNS).outliers)
    assert named <= 2


def test_a_configuration_with_more_noise_is_no_gross_error():
    problem, _ = linear_problem(noise_like("unequal", 1e-4, 15, 3, 6, 0), 15, 3, 6)
    assert len(screened(problem, COLUMNS).outliers) <= 1


def test_a_gross_point_beside_a_wrong_configuration_is_named_by_itself():
    noise = noise_like("equal", 1e-4, 15, 3, 1, 0).reshape(15, 3, 3)
    noise[4] += [0.005, 0.0, 0.0]
    noise[4, 1] += [0.0, 0.4, 0.0]
    problem, _ = linear_problem(noise.ravel(), 15, 3, 1)
    named = {(item.pose, item.marker): item.size_mm for item in screened(problem, COLUMNS).outliers}
    assert set(named) == {("pose_5", "m2"), ("pose_5", None)}
    assert named["pose_5", "m2"] == pytest.approx(400, rel=0.01)
    assert named["pose_5", None] == pytest.approx(5, rel=0.1)


def test_an_outlier_says_what_it_is():
    noise = noise_like("equal", 1e-4, 15, 3, 1, 0)
    noise[9 * 7 + 4] += 0.0915
    problem, _ = linear_problem(noise, 15, 3, 1)
    (found,) = screened(problem, COLUMNS).outliers
    assert found.size_mm == pytest.approx(91.5, abs=0.3)
    assert found.text == f"pose_8, marker m2: {found.size_mm:.3g} mm off"


@pytest.mark.large
def test_the_same_seed_gives_the_same_answer():
    problem, _ = spoiled(1)
    columns = identifiability(problem.parameters, problem.at(problem.start).jacobian).columns
    first, second = screened(problem, columns, seed=4), screened(problem, columns, seed=4)
    np.testing.assert_array_equal(first.good, second.good)
    np.testing.assert_array_equal(first.values, second.values)


def test_with_hardly_more_equations_than_unknowns_nothing_is_judged():
    problem, _ = linear_problem(np.zeros(6), 2, 1, 1)
    found = screened(problem, COLUMNS)
    assert not found.judged
    assert found.good.all()


def test_tukey_factors_fall_to_zero_with_the_distance_of_a_point():
    equations = laid_out(np.zeros(9), 3, 1, 1, (0, 1, 2))
    factors = tukey_factors(equations, np.array([0, 0, 0, 3.0, 0, 4.0, 9, 0, 0]))
    np.testing.assert_allclose(factors, [1] * 3 + [1 - 25 / 5.490**2] * 3 + [0] * 3)


@pytest.mark.parametrize("coordinates", range(1, 7))
def test_tukey_factors_cost_five_per_cent_of_efficiency_with_normal_noise(coordinates):
    """Of an M-estimate of location in n dimensions: ``E(w + d w' / n)^2 / (E(d^2 w^2) / n)``, d^2 a chi-square of n."""
    count = 4000
    distance = np.sqrt(stats.chi2.ppf((np.arange(count) + 0.5) / count, coordinates))
    whitened = np.zeros((count, coordinates))
    whitened[:, -1] = distance
    equations = laid_out(np.zeros(whitened.size), count, 1, 1, range(coordinates))
    weight = tukey_factors(equations, whitened.ravel())[::coordinates] ** 2
    inside = weight > 0
    limit = distance[inside] / np.sqrt(1 - np.sqrt(weight[inside]))
    assert np.ptp(limit) < 1e-6 * limit[0]
    slope = np.where(inside, -4 * (distance / limit[0]) ** 2 * (1 - (distance / limit[0]) ** 2), 0.0)  # d w'
    efficiency = np.mean(weight + slope / coordinates) ** 2 / (np.mean((distance * weight) ** 2) / coordinates)
    assert efficiency == pytest.approx(0.95, abs=5e-4)


def test_the_variance_of_trimmed_points_is_that_of_the_integral():
    limit = stats.chi2.ppf(0.6, 3)
    inside = integrate.quad(lambda t: t * stats.chi2.pdf(t, 3), 0, limit)[0] / 0.6 / 3
    assert trimmed_variance(0.6, 3) == pytest.approx(inside, rel=1e-6)
    assert trimmed_variance(1.0, 3) == 1.0


class Scripted(PointSearch):
    """A search whose fits and judgements are given, one after the other, and counted."""

    def __init__(self, problem, fits=(), judgements=()):
        super().__init__(problem, np.arange(len(problem.parameters)))
        self.fits, self.judgements, self.calls, self.alarms = list(fits), list(judgements), 0, []

    def fit(self, mask: np.ndarray, start: np.ndarray) -> Any:
        self.calls += 1
        if not self.fits:
            return super().fit(mask, start)
        residual = np.where(self.fits.pop(0), 1e-4, 1e-2)[self.point]
        return SimpleNamespace(values=start, residual=residual, jacobian=self.problem.at(start).jacobian)

    def _agreeing(self, fit, good, trimming, long_tails, alarm=FALSE_ALARM):
        self.alarms.append((trimming, alarm))
        return self.judgements.pop(0)


def points(count: int, *chosen: int) -> np.ndarray:
    mask = np.zeros(count, dtype=bool)
    mask[list(chosen)] = True
    return mask


def small_search(**what) -> Scripted:
    """15 configurations of three markers, 4 unknowns."""
    return Scripted(linear_problem(noise_like("equal", 1e-4, 15, 3, 1, 0), 15, 3, 1)[0], **what)


@pytest.mark.parametrize(
    ("poses", "unknowns", "core"),
    [(15, 4, 27), (4, 4, 8), (10, 40, 20), (5, 40, 15)],
    ids=["a share", "rounded up", "enough equations", "all points"],
)
def test_the_core_is_a_share_of_the_points_with_enough_equations_for_the_unknowns(poses, unknowns, core):
    problem, _ = linear_problem(np.zeros(poses * 9), poses, 3, 1, unknowns)
    search = PointSearch(problem, np.arange(unknowns))
    assert search.core == core
    # A million times a plausible deviation of 1 mrad.
    np.testing.assert_allclose(search.prior, 1e3)


def test_the_core_is_final_when_hardly_a_point_changes_places():
    everything = np.ones(135, dtype=bool)
    start = small_search().fit(everything, np.zeros(4))
    # One point for another changes 2 of 45, more than 3 %: the next fit is done, and changes nothing.
    first = small_search().concentrated(start, 0)[0]
    inside, outside = np.flatnonzero(first)[0], np.flatnonzero(~first)[0]
    second = first.copy()
    second[[inside, outside]] = False, True
    search = small_search(fits=[second, second, second])
    good, _ = search.concentrated(start, 0)
    np.testing.assert_array_equal(good, second)
    assert search.calls == 2
    # Points that go on changing end the search after twenty fits.
    search = small_search(fits=[second, first] * 20)
    search.concentrated(start, 0)
    assert search.calls == 20


@pytest.mark.parametrize(("part", "curved"), [(0.05, False), (0.2, True)])
def test_equations_are_curved_if_the_linear_prediction_errs_by_a_tenth_of_the_residuals_of_good_points(part, curved):
    search = small_search()
    random = np.random.default_rng(0)
    jacobian, step = random.standard_normal((135, 4)), random.standard_normal(4)
    values = random.standard_normal(4)
    good, after = points(45, *range(30)), random.standard_normal(135)
    before = (1 + part) * after + jacobian @ step
    before[~good[search.point]] += 100.0  # whatever the others do
    one: Any = SimpleNamespace(residual=before, jacobian=jacobian, values=values)
    other: Any = SimpleNamespace(residual=after, values=values + step)
    assert search.curved(one, other, good) is curved


def test_points_are_judged_until_a_set_comes_again():
    first, second, third = (points(45, *range(count)) for count in (40, 41, 42))
    search = small_search(judgements=[second, third, second])
    good, _ = search.judged(first, np.zeros(4), 0.5)
    np.testing.assert_array_equal(good, second)
    assert search.calls == 3
    # Only the points to start with are trimmed.
    assert search.alarms == [(0.5, FALSE_ALARM), (1.0, FALSE_ALARM), (1.0, FALSE_ALARM)]
    search = small_search(judgements=[first])
    search.judged(first, np.zeros(4), alarm=3.0)
    assert search.alarms == [(1.0, 3.0)]


def test_points_that_are_out_are_never_good():
    search = small_search(judgements=[points(45, *range(45))] * 2)
    good, _ = search.judged(points(45, *range(1, 45)), np.zeros(4), out=points(45, 0))
    np.testing.assert_array_equal(good, points(45, *range(1, 45)))
    assert search.calls == 1


@pytest.mark.parametrize(
    ("wrong", "near", "left"),
    [((0, 1), (), (0, 1, 2)), ((0, 1), (2,), (0, 1)), ((0,), (), (0,))],
    ids=["most are wrong", "one is right beyond doubt", "most are right"],
)
def test_a_configuration_most_of_whose_points_are_wrong_goes_as_a_whole(wrong, near, left):
    search = small_search(judgements=[points(45, *near, *range(3, 45))])
    good = search.without_wrong_configurations(~points(45, *wrong), np.zeros(4), np.zeros(45, dtype=bool))
    np.testing.assert_array_equal(good, ~points(45, *left))
    ((trimming, alarm),) = search.alarms
    assert trimming == 1.0
    assert alarm == pytest.approx(0.05 * 45)


def test_a_half_of_wrong_points_is_not_most():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 2, 1, 0), 15, 2, 1)
    search = Scripted(problem, judgements=[points(30, *range(2, 30))])
    good = search.without_wrong_configurations(~points(30, 0), np.zeros(4), np.zeros(30, dtype=bool))
    np.testing.assert_array_equal(good, ~points(30, 0))


@pytest.mark.parametrize(("size", "rigid"), [(0.95, True), (1.05, False)])
def test_a_configuration_moved_as_one_body_if_noise_explains_what_a_rigid_motion_does_not(size, rigid):
    truth, q = spatial_truth(), np.random.default_rng(0).uniform(-1.5, 1.5, (6, 20))
    problem = spatial_problem(spatial_points(truth, q), q)
    search, here = PointSearch(problem, np.arange(51)), problem.at(truth)
    own = problem.equations.pose == 7
    joints = [column for column, each in enumerate(problem.parameters) if each.group != "marker"]
    motions, sizes, _ = np.linalg.svd(here.jacobian[np.ix_(own, joints)])
    assert (sizes > 1e-6 * sizes[0]).sum() == 6  # three markers of a body have nine numbers: three are left
    residual = np.where(np.arange(180) % 2, 1e-4, -1e-4)
    limit = 1e-4 * np.sqrt(stats.chi2.ppf(1 - FALSE_ALARM / 60, 3))
    residual[own] = motions[:, :6] @ np.full(6, 0.02) + size * limit * motions[:, 7]
    good = search.pose != 7
    assert search._moved_as_one(7, good, Linearised(residual, here.jacobian)) is rigid


def test_one_marker_or_few_unknowns_show_no_rigid_motion():
    search = small_search()
    residual = np.where(search.pose[search.point] == 3, np.arange(135), 1e-4)
    assert (
        search._moved_as_one(3, search.pose != 3, Linearised(residual, search.problem.at(np.zeros(4)).jacobian)) is True
    )
    problem, _ = linear_problem(np.zeros(45), 15, 1, 1, 8)
    search = PointSearch(problem, np.arange(8))
    residual = np.where(search.pose[search.point] == 3, np.arange(45), 1e-4)
    assert search._moved_as_one(3, search.pose != 3, Linearised(residual, problem.matrix)) is True


@pytest.mark.parametrize(("size", "agrees"), [(0.98, True), (1.02, False)])
def test_a_point_left_out_agrees_up_to_the_noise_and_the_uncertainty_of_the_fit(monkeypatch, size, agrees):
    """The covariance of a left-out point is ``I + w H``, with w larger where points of a configuration share errors."""
    monkeypatch.setattr(outliers, "shared_correlation", lambda *_: 0.9)
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 1, 0), 15, 3, 1)
    search, good = PointSearch(problem, COLUMNS), ~points(45, 22)
    own, mask = search.point == 22, good[search.point]
    fit = search.fit(mask, problem.start)
    coordinate = problem.equations.coordinate
    freedom = np.bincount(coordinate, np.where(mask, 1 - fit.leverage, 0.0))
    sigma = np.sqrt(np.bincount(coordinate, np.where(mask, fit.residual**2, 0.0)) / freedom)
    hat = fit.jacobian[own] @ fit.inverse @ fit.jacobian[own].T
    wider = 1 + 0.9 * ((14 * 3 + 2) / 15 - 1)
    values, vectors = np.linalg.eigh((1 + 1e-6) * np.eye(3) + wider * hat)
    distance = np.sqrt(values[-1] * 3 * stats.f.ppf(1 - FALSE_ALARM / 45, 3, freedom.sum()))
    residual = fit.residual.copy()
    residual[own] = size * distance * vectors[:, -1] * sigma
    moved = replace(fit, residual=residual)
    assert search._agreeing(moved, good, 1.0, long_tails=False)[22] == agrees


@pytest.mark.parametrize(("sizes", "agrees"), [((6, 6, 6), True), ((0, 6, 0), False), ((20, 20, 20), False)])
def test_long_tails_let_whole_configurations_deviate_but_no_single_point(monkeypatch, sizes, agrees):
    monkeypatch.setattr(outliers, "shared_correlation", lambda *_: 0.5)
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 1, 0), 15, 3, 1)
    search, moved = PointSearch(problem, COLUMNS), np.zeros((15, 3))
    moved[4] = sizes
    good = moved.ravel() == 0
    fit = search.fit(good[search.point], problem.start)
    residual = fit.residual + 1e-4 * (moved[:, :, None] * [1.0, 0.0, 0.0]).ravel()
    long, short = (search._agreeing(replace(fit, residual=residual), good, 1.0, tails) for tails in (True, False))
    assert long[13] == agrees
    assert not short[13]
    assert (long == short)[good].all()


class SomeMisread(PointSearch):
    """A search in which no rigid motion explains the configuration 38."""

    def _moved_as_one(self, pose, good, here):
        return pose != 38


def test_wrong_configurations_of_a_joint_range_are_inside_it_but_for_those_with_a_blunder_or_misread():
    q = np.linspace(-2.0, 2.0, 40)
    noise = np.full((40, 3, 3), 1e-4 / np.sqrt(3))
    noise[30:] *= 10  # 1 mm where the joint is above 1.0 rad
    noise[33, 1] *= 100  # a blunder of 100 mm
    noise[5] *= 10  # wrong, but alone
    problem, truth = linear_problem(noise.ravel(), 40, 3, 1)
    joints = (MeasuredJoint("elbow", "rad", q), MeasuredJoint("wrist", "rad", np.random.default_rng(0).permutation(q)))
    problem = replace(problem, equations=replace(problem.equations, joints=joints))
    good = np.ones((40, 3), dtype=bool)
    good[30:, :2], good[5] = False, False  # two of three points are most of a configuration
    search = SomeMisread(problem, COLUMNS)
    (found,), inside = search.clustered(good.ravel(), truth, 0)
    expected = np.zeros((40, 3), dtype=bool)
    expected[[30, 31, 32, *range(34, 38), 39]] = True
    np.testing.assert_array_equal(inside.reshape(40, 3), expected)
    assert found.joint == "elbow"
    assert found.points == 24
    assert found.inside_mm == pytest.approx(1.0)
    assert found.elsewhere_mm == pytest.approx(np.sqrt((29 * 3 * 0.1**2 + 2 * 1.0**2) / (29 * 3 + 2)))


def test_a_point_is_compared_with_the_mean_of_the_good_others_of_its_configuration():
    """The variance of ``u - mean of k others`` is ``1 + 1 / k``; a point without others is compared with nothing."""
    whitened = np.zeros((15, 3, 3))
    whitened[4, :, 0] = 1.0, 2.0, 6.0
    whitened[4, :, 2] = 0.0, 0.0, 4.0
    search = small_search()
    found = search._apart(whitened.ravel(), np.ones(45, dtype=bool)).reshape(15, 3)
    np.testing.assert_allclose(found[4], [(9 + 4) / 1.5, (1.5**2 + 4) / 1.5, (4.5**2 + 16) / 1.5])
    assert (np.delete(found, 4, axis=0) == 0).all()
    found = search._apart(whitened.ravel(), ~points(45, 14)).reshape(15, 3)
    np.testing.assert_allclose(found[4], [1 / 2, 1 / 2, (4.5**2 + 16) / 1.5])
    found = search._apart(whitened.ravel(), ~points(45, 13, 14)).reshape(15, 3)
    np.testing.assert_allclose(found[4], [0, 1 / 2, (25 + 16) / 2])


def test_candidates_for_ranges_are_one_of_a_hundred_points_with_normal_noise(monkeypatch):
    alarms = []

    class Told(PointSearch):
        def judged(self, *arguments, **choices):
            alarms.append(choices.get("alarm", FALSE_ALARM))
            return super().judged(*arguments, **choices)

    monkeypatch.setattr(outliers, "PointSearch", Told)
    screened(linear_problem(noise_like("equal", 1e-4, 15, 3, 1, 0), 15, 3, 1)[0], COLUMNS)
    assert alarms == [pytest.approx(0.01 * 45), FALSE_ALARM, FALSE_ALARM]
