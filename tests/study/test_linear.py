"""Many runs of weighted least squares at once: against one run at a time, and against theory."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import EstimateError
from steelyard.study import interval_checks, linear_study

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((120, 5)) * [1, 1e3, 1e-3, 1, 1]
VALUES = np.array([1.0, -2e-3, 500.0, 0.0, 3.0])
DEVIATIONS = np.repeat([0.5, 5.0], 60)


def test_a_run_is_that_of_numpy_s_least_squares():
    study = linear_study(ROWS, VALUES, DEVIATIONS, 3, seed=4)
    noise = np.random.default_rng(4).standard_normal((3, 120))
    for run in range(3):
        torque = ROWS @ VALUES + DEVIATIONS * noise[run]
        expected = np.linalg.lstsq(ROWS / DEVIATIONS[:, None], torque / DEVIATIONS, rcond=None)[0]
        np.testing.assert_allclose(study.estimates[:, run], expected, rtol=1e-9)


def test_the_covariance_is_the_inverse_of_the_information():
    weighted = ROWS / DEVIATIONS[:, None]
    expected = np.linalg.inv(weighted.T @ weighted)
    study = linear_study(ROWS, VALUES, DEVIATIONS, 1)
    np.testing.assert_allclose(study.covariance, expected, rtol=1e-9)
    np.testing.assert_allclose(study.sigma, np.sqrt(np.diag(expected)), rtol=1e-9)
    assert not study.estimates.flags.writeable


def test_more_runs_begin_with_the_same_ones(monkeypatch):
    few = linear_study(ROWS, VALUES, DEVIATIONS, 7)
    monkeypatch.setattr("steelyard.study.linear._NUMBERS_AT_ONCE", 250)
    many = linear_study(ROWS, VALUES, DEVIATIONS, 20)
    np.testing.assert_allclose(many.estimates[:, :7], few.estimates, rtol=1e-12)


def test_a_study_repeated_passes_p4_s_checks_as_often_as_it_should():
    study = linear_study(ROWS, VALUES, DEVIATIONS, 200 * 100)
    parts = np.split(study.estimates, 100, axis=1)
    checks = [interval_checks(part, VALUES, study.sigma) for part in parts]
    assert np.mean([one.means for one in checks]) == pytest.approx(0.68, abs=0.06)
    assert np.mean([one.variances for one in checks if one.variances is not None]) == pytest.approx(0.90, abs=0.05)


@pytest.mark.parametrize(
    ("rows", "values", "deviations", "runs", "message"),
    [
        (ROWS, VALUES[:4], DEVIATIONS, 5, "needed are"),
        (ROWS, VALUES, DEVIATIONS[:5], 5, "needed are"),
        (ROWS[:3], VALUES, DEVIATIONS[:3], 5, "at least as many rows"),
        (ROWS * np.nan, VALUES, DEVIATIONS, 5, "not finite"),
        (ROWS, VALUES, 0 * DEVIATIONS, 5, "above 0"),
        (ROWS, VALUES, DEVIATIONS, 0, "at least 1"),
        (np.repeat(ROWS[:, :1], 5, axis=1), VALUES, DEVIATIONS, 5, "not all parameters are identifiable"),
    ],
)
def test_what_cannot_be_solved_is_refused_in_one_line(rows, values, deviations, runs, message):
    with pytest.raises(EstimateError, match=message) as caught:
        linear_study(rows, values, deviations, runs)
    assert "\n" not in str(caught.value)
