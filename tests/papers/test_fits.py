"""The papers' figures against numpy on the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.papers.fits import coverage, normality, relative_error, watson, weighted_residuals
from steelyard.papers.p1_motion import CASES, NAMES, TRUE, case_fits, paper_values, scara_equations, scara_run


@pytest.fixture(scope="module")
def fits():
    return case_fits(scara_run(range(1), 1.0), scara_equations(), CASES["full"])


@pytest.fixture(scope="module")
def stacked(fits):
    """All rows with the columns of the estimate: W (r, 8), y (r,), deviation (r,)."""
    fit = fits.fits[0]
    (source,), equations, names = fit.sources, fit.sources[0].equations, fit.estimate.columns
    W, y, deviation = [], [], []
    for block in source:
        for e, columns in enumerate(equations.columns):
            rows = block.rows[e]
            wide = np.zeros((len(rows), len(names)))
            wide[:, [names.index(name) for name in columns]] = rows[:, :-1]
            W.append(wide)
            y.append(rows[:, -1])
            deviation += [fit.estimate.deviations["run", *equations.kinds_joints[e]]] * len(rows)
    return np.vstack(W), np.concatenate(y), np.array(deviation)


def test_the_estimate_is_numpy_s_least_squares_of_the_weighted_rows(fits, stacked):
    W, y, deviation = stacked
    expected = np.linalg.lstsq(W / deviation[:, None], y / deviation, rcond=None)[0]
    np.testing.assert_allclose(fits.fits[0].estimate.values, expected, rtol=1e-9, atol=1e-12)


def test_the_relative_error_is_that_of_the_decimated_rows(fits, stacked):
    W, y, _ = stacked
    fit = fits.fits[0]
    expected = 100 * np.linalg.norm(y - W @ fit.estimate.values) / np.linalg.norm(y)
    assert relative_error(fit.observations, fit.estimate) == pytest.approx(expected, rel=1e-9)
    first = relative_error(fit.observations, fit.estimate, lambda factor: factor.joint == "joint_1")
    assert first != pytest.approx(expected, rel=1e-3)


def test_conditions_are_numpy_s_in_the_paper_s_parameters(fits, stacked):
    W, _, deviation = stacked
    order = [fits.fits[0].estimate.columns.index(column) for column, _ in NAMES.values()]
    weighted = (W / deviation[:, None])[:, order] / [scale for _, scale in NAMES.values()]
    scaled = (weighted * list(TRUE.values()))[:, [value != 0 for value in TRUE.values()]]
    expected = (np.linalg.cond(weighted), np.linalg.cond(scaled))
    np.testing.assert_allclose(fits.conditions, expected, rtol=1e-8)


def test_weighted_residuals_give_durbin_and_watson_s_statistic(fits):
    runs = weighted_residuals(fits.fits[0])
    expected = sum(np.sum(np.diff(run) ** 2) for run in runs) / sum(np.sum(run**2) for run in runs)
    assert watson(fits.fits[0]).statistic == pytest.approx(expected)
    assert watson(fits.fits[0]).expected < 1.7
    assert 0 <= normality(fits.fits[0]) <= 1


def test_the_truth_in_columns_is_p1_s_a_priori_set(fits):
    fit = fits.fits[0]
    run = scara_run(range(1), 1.0)
    true = fit.sources[0].equations.base_values(run.truth)
    for name, (column, scale) in NAMES.items():
        assert true[column] * scale == pytest.approx(TRUE[name], abs=1e-12)
    assert 0 <= coverage(fit.estimate, true) <= 1
    far = {column: value + 1e3 for column, value in true.items()}
    assert coverage(fit.estimate, far) == 0


def test_values_come_in_the_paper_s_order_and_units(fits):
    values = dict(zip(NAMES, paper_values(fits.fits[0].estimate), strict=True))
    named = dict(zip(fits.fits[0].estimate.columns, fits.fits[0].estimate.values, strict=True))
    assert values["LMX2"] == pytest.approx(0.5 * named["MX2"])
    assert values["ZZR1"] == named["ZZ1"]
