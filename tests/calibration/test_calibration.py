"""The whole of a calibration on small arms: truth recovered, intervals that hold, honest reasons."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.small_problems import (
    LinearProblem,
    SmallProblem,
    laid_out,
    linear_problem,
    noise_like,
    planar_problem,
    spatial_points,
    spatial_problem,
    spatial_truth,
)
from steelyard.calibration.fit.calibration import calibrated
from steelyard.calibration.fit.settings import METHODS, CalibrationSettings
from steelyard.calibration.records import Unknown
from steelyard.errors import CalibrationError

TRUTH = np.array([0.3, -0.2, 0.4, 0.13, 0.02, 0.0, 0.0, 0.01, 0.0])


def spatial(sigma: float, poses: int = 30, seed: int = 0) -> SmallProblem:
    random = np.random.default_rng(seed)
    q = random.uniform(-1.5, 1.5, (6, poses))
    points = spatial_points(spatial_truth(seed), q)
    return spatial_problem(points + sigma * random.standard_normal(points.shape), q)


def test_a_spatial_arm_is_calibrated_to_its_noise():
    problem = spatial(3e-5)
    found = calibrated(problem)
    assert len(found.fitted) == 33
    assert found.before.rms_mm > 1.0
    assert found.held_out is not None
    assert found.after.rms_mm < 0.03 * np.sqrt(3) < found.held_out.rms_mm < 0.08
    assert found.outliers == ()
    assert found.used.all()
    assert found.verdict.grade == "good"
    is_fitted = np.isin([p.name for p in problem.parameters], found.fitted)
    assert (found.sigma[is_fitted] > 0).all()
    assert not found.covariance[~is_fitted].any()
    np.testing.assert_array_equal(found.values[~is_fitted], problem.start[~is_fitted])
    np.testing.assert_allclose(found.residual, problem.residual(found.values))
    for array in (found.values, found.covariance):
        assert not array.flags.writeable


@pytest.mark.large
def test_intervals_of_a_planar_arm_hold_the_truth():
    held = []
    for seed in range(120):
        found = calibrated(planar_problem(TRUTH, 1e-4, seed=seed))
        low, high = found.interval().T
        is_fitted = found.sigma > 0
        held.append(((low <= TRUTH) & (high >= TRUTH))[is_fitted])
    # 120 runs of six unknowns each.
    assert 0.93 <= np.mean(held) <= 0.97


def test_numbers_without_noise_give_the_truth_and_no_warning():
    found = calibrated(planar_problem(TRUTH))
    np.testing.assert_allclose(found.values, TRUTH, atol=1e-11)
    assert found.outliers == ()
    assert found.after.max_mm < 1e-9


def test_every_method_finds_the_same_within_its_sigmas():
    problem, truth = linear_problem(noise_like("unequal", 1e-4, 15, 3, 6, 3), 15, 3, 6)
    settings = CalibrationSettings(sigma=(0.8e-4, 1e-4, 1.3e-4))
    found = {method: calibrated(problem, method, settings) for method in METHODS}
    for calibration in found.values():
        assert (np.abs(calibration.values - truth) < 4.5 * calibration.sigma).all()
    assert (found["wls"].sigma < found["ols"].sigma).all()
    assert (found["eq14"].sigma < found["ols"].sigma).all()
    assert len({tuple(calibration.values) for calibration in found.values()}) == len(METHODS)


def test_equal_weights_are_plain_least_squares():
    problem, _ = linear_problem(noise_like("unequal", 1e-4, 15, 3, 6, 3), 15, 3, 6)
    units = {parameter.unit for parameter in problem.parameters if parameter.group == "joint"}
    found = calibrated(problem, "ols", CalibrationSettings(screen=False, prior=dict.fromkeys(units, np.inf)))
    expected = np.linalg.lstsq(problem.matrix, problem.equations.measured, rcond=None)[0]
    np.testing.assert_allclose(found.values, expected, rtol=1e-10)


def test_eta_hardly_matters():
    problem, _ = linear_problem(noise_like("unequal", 1e-4, 15, 3, 6, 3), 15, 3, 6)
    runs = [calibrated(problem, "eq14", CalibrationSettings(eta=eta)) for eta in (0.5, 1.0, 2.0)]
    for run in runs[::2]:
        assert (np.abs(run.values - runs[1].values) < 0.3 * runs[1].sigma).all()
    assert len(runs[1].history) >= 3


def test_gross_errors_are_left_out_and_named():
    problem = spatial(1e-4, 25)
    measured = problem.equations.measured.copy()
    measured[9 * 5 + 3] += 0.2
    spoiled = spatial_problem(measured.reshape(25, 3, 3), np.random.default_rng(0).uniform(-1.5, 1.5, (6, 25)))
    found = calibrated(spoiled)
    assert [(item.pose, item.marker) for item in found.outliers] == [("pose_6", "m2")]
    assert found.used.sum() == problem.equations.size - 3
    assert found.after.max_mm < 1 < np.abs(found.residual).max() * 1e3


@pytest.mark.large
def test_the_same_input_gives_the_same_numbers():
    first, second = calibrated(spatial(1e-4, 12)), calibrated(spatial(1e-4, 12))
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.covariance, second.covariance)
    assert first.held_out == second.held_out


@pytest.mark.large
def test_a_prior_helps_where_measurements_are_few():
    problem = spatial(1e-3, 9)
    plain = calibrated(problem)
    drawn = calibrated(problem, settings=CalibrationSettings(prior={"m": 1e-3, "rad": 1e-3}))
    assert plain.held_out is not None
    assert drawn.held_out is not None
    assert drawn.held_out.rms_mm < plain.held_out.rms_mm
    assert (drawn.sigma[15:] < 1e-3).all()


def test_an_unknown_that_has_an_effect_only_at_the_solution_joins():
    """A first moment acts through a compliance: at a compliance of zero it moves nothing."""
    random = np.random.default_rng(0)
    load, weight = 2e3 * random.uniform(0.2, 1, (2, 20, 3))
    parameters = [
        Unknown("k2", "compliance", "rad/(N m)", 0.0, "spring"),
        Unknown("MX3", "weight", "kg m", 0.0, "first moment"),
    ]

    def predict(x: np.ndarray) -> np.ndarray:
        return (x[0] * (load + x[1] * weight)).ravel()

    measured = predict(np.array([2e-6, 0.5])) + 1e-6 * random.standard_normal(60)
    problem = SmallProblem(parameters, laid_out(measured, 20, 1, 1, (0, 1, 2)), np.zeros(2), predict, np.arange(60))
    found = calibrated(problem)
    assert found.fitted == ("k2", "MX3")
    assert found.invisible == ()
    np.testing.assert_allclose(found.values, [2e-6, 0.5], rtol=0.02)


def test_known_base_and_markers_leave_the_nominal_arm_as_it_is():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 2, 3))
    found = calibrated(problem)
    nominal = np.sqrt(np.mean(np.sum(problem.equations.measured.reshape(-1, 3) ** 2, axis=1)))
    assert found.before.rms_mm == pytest.approx(1e3 * nominal)


def test_bad_input_is_refused():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 2, 3))
    with pytest.raises(CalibrationError, match=r"got 1 configuration\(s\), needed are 2 and more"):
        calibrated(problem.taken(problem.equations.pose == 0))
    with pytest.raises(CalibrationError, match="got 4 equations for 4 unknowns, needed are more than the 4"):
        calibrated(problem.taken(np.array([0, 20, 40, 60])))
    measured = problem.equations.measured.copy()
    measured[7] = np.nan
    equations = laid_out(measured, 15, 3, 2, (0, 1, 2))
    with pytest.raises(CalibrationError, match="are not finite; check the measurements"):
        calibrated(LinearProblem(problem.parameters, equations, problem.start, problem.matrix))
    with pytest.raises(CalibrationError, match="its own residual, is refused"):
        calibrated(problem, settings=CalibrationSettings(grouping="equation"))  # pyright: ignore[reportArgumentType]


def test_settings_that_make_no_sense_are_refused():
    for name, wrong, meant in (
        ("method", "wsl", "wls"),
        ("covariance", "clusters", "cluster"),
        ("grouping", "directions", "direction"),
        ("validation_base", "owns", "own"),
    ):
        with pytest.raises(CalibrationError, match=rf"{name} is '{wrong}'; allowed: .*did you mean '{meant}'"):
            CalibrationSettings(**{name: wrong})  # pyright: ignore[reportArgumentType]
    with pytest.raises(CalibrationError, match="method 'declared': no sigma is given"):
        CalibrationSettings(method="declared")
    with pytest.raises(CalibrationError, match="level: got 95"):
        CalibrationSettings(level=95)
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 2, 3))
    with pytest.raises(CalibrationError, match=r"prior: got 'ofset1'.*did you mean 'offset1'"):
        calibrated(problem, settings=CalibrationSettings(prior={"ofset1": 1e-3}))
    with pytest.raises(CalibrationError, match="prior of offset1: got 0"):
        calibrated(problem, settings=CalibrationSettings(prior={"offset1": 0.0}))
