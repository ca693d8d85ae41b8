"""Covariances by name: equal to statsmodels, in one piece or streamed, and no product crosses a break."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.stats import sandwich_covariance

from steelyard.errors import EstimateError
from steelyard.judge import SANDWICHES, HacMeat, block_sandwich, classical, default_lags, hac, sandwich

ROWS, COLUMNS = 300, 4


def fit(seed: int = 0, scale: float = 1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, COLUMNS)) * np.array([1.0, scale, 3.0, 1 / scale])
    noise = np.convolve(rng.standard_normal(ROWS + 3), [1, 0.8, 0.5, 0.2], "valid")
    y = X @ np.array([1.0, -2.0, 0.5, 0.1]) + (1 + np.abs(X[:, 0])) * noise
    result = sm.OLS(y, X).fit()
    return X, result.resid, result


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    size = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(found / np.outer(size, size), expected / np.outer(size, size), rtol=0, atol=1e-8)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_classical_covariance_is_that_of_statsmodels(scale):
    X, e, result = fit(scale=scale)
    assert_same(classical(X, e), result.cov_params())


@pytest.mark.parametrize("kind", SANDWICHES)
def test_sandwiches_are_those_of_statsmodels(kind):
    X, e, result = fit()
    assert_same(sandwich(X, e, kind), getattr(result, f"cov_{kind}"))


@pytest.mark.parametrize("correction", [True, False])
def test_the_block_sandwich_is_the_cluster_covariance_of_statsmodels(correction):
    X, e, result = fit()
    group = np.arange(ROWS) // 17
    scores = np.stack([X[group == g].T @ e[group == g] for g in range(group[-1] + 1)])
    expected = result.get_robustcov_results("cluster", groups=group, use_correction=correction, df_correction=False)
    found = block_sandwich(scores, np.linalg.inv(X.T @ X), ROWS, correction=correction)
    assert_same(found, expected.cov_params())


@pytest.mark.parametrize("correction", [True, False])
@pytest.mark.parametrize("lags", [0, 1, 7])
def test_hac_is_that_of_statsmodels(lags, correction):
    X, e, result = fit()
    expected = result.get_robustcov_results("HAC", maxlags=lags, use_correction=correction)
    assert_same(hac([(X, e)], lags, correction=correction), expected.cov_params())


def test_the_default_number_of_lags_is_that_of_newey_and_west():
    X, e, result = fit()
    assert default_lags(ROWS) == 5
    assert_same(hac([(X, e)]), result.get_robustcov_results("HAC", maxlags=5).cov_params())


def test_no_product_crosses_a_break():
    X, e, _ = fit()
    cut = 120
    parts = [sandwich_covariance.S_hac_simple(X[k] * e[k, None], 6) for k in (slice(cut), slice(cut, None))]
    bread = np.linalg.inv(X.T @ X)
    found = hac([(X[:cut], e[:cut]), (X[cut:], e[cut:])], 6)
    assert_same(found, bread @ (parts[0] + parts[1]) @ bread)
    assert np.abs(found / hac([(X, e)], 6) - 1).max() > 1e-4


@pytest.mark.parametrize("step", [1, 4, 100])
def test_a_streamed_meat_is_that_of_the_whole(step):
    X, e, _ = fit()
    meat = HacMeat(9)
    for k in range(0, ROWS, step):
        meat.push(X[k : k + step], e[k : k + step])
    np.testing.assert_allclose(meat.meat, sandwich_covariance.S_hac_simple(X * e[:, None], 9), rtol=1e-10, atol=1e-9)
    assert meat.rows == ROWS


def test_what_cannot_be_judged_is_refused():
    X, e, _ = fit()
    with pytest.raises(EstimateError, match="got 'HC4', allowed are HC0, HC1, HC2, HC3; did you mean"):
        sandwich(X, e, "HC4")  # pyright: ignore[reportArgumentType]
    with pytest.raises(EstimateError, match="got 4 rows, needed are more than the 4 parameters"):
        classical(X[:4], e[:4])
    with pytest.raises(EstimateError, match=r"shape \(300, 4\) and residuals \(299,\)"):
        classical(X, e[1:])
    with pytest.raises(EstimateError, match="not finite"):
        hac([(X, e * np.nan)])
    with pytest.raises(EstimateError, match="column 2 is zero"):
        classical(X * np.array([1, 1, 0, 1]), e)
    with pytest.raises(EstimateError, match="column 3 depends on those before it"):
        classical(X @ np.diag([1, 1, 1, 0]) + np.outer(X[:, 0], [0, 0, 0, 1]), e)
    with pytest.raises(EstimateError, match="got no runs"):
        hac([])
    with pytest.raises(EstimateError, match="HAC lags: got -1"):
        HacMeat(-1)
    with pytest.raises(EstimateError, match="got 1 block"):
        block_sandwich(np.ones((1, 2)), np.eye(2), 50)
    with pytest.raises(EstimateError, match="got None rows"):
        block_sandwich(np.ones((3, 2)), np.eye(2))
    with pytest.raises(EstimateError, match=r"scores \(3, 2\) and bread \(3, 3\)"):
        block_sandwich(np.ones((3, 2)), np.eye(3), 50)
    meat = HacMeat(2)
    meat.push(X, e)
    with pytest.raises(EstimateError, match="got 3 columns, the rows before had 4"):
        meat.push(X[:, :3], e)


def test_a_row_that_alone_fixes_a_parameter_has_no_jackknife():
    X, e, _ = fit()
    X = np.column_stack([X, np.eye(1, ROWS)[0]])
    with pytest.raises(EstimateError, match="row 0 alone fixes a parameter"):
        sandwich(X, e, "HC3")
    assert np.isfinite(sandwich(X, e, "HC1")).all()
