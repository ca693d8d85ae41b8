"""Breusch-Pagan: equal to statsmodels; sees a spread that grows."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats import diagnostic

from steelyard.errors import EstimateError
from steelyard.judge import breusch_pagan


def sample(growth: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    regressors = np.abs(rng.standard_normal((3, 200))) * np.array([[1.0], [1e3], [1e-3]])
    return (1 + growth * regressors[0]) * rng.standard_normal(200), regressors


@pytest.mark.parametrize("growth", [0.0, 0.3, 2.0])
def test_the_test_is_that_of_statsmodels(growth):
    e, x = sample(growth)
    expected = diagnostic.het_breuschpagan(e, np.column_stack([np.ones(200), x.T]))
    np.testing.assert_allclose(breusch_pagan(e, x), expected, rtol=1e-8)


def test_equal_spread_is_rejected_as_often_as_the_level_says():
    p = np.array([breusch_pagan(*sample(0.0, seed)).p for seed in range(400)])
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.033)
    assert breusch_pagan(*sample(1.0)).p < 1e-3


def test_what_cannot_be_judged_is_refused():
    e, x = sample(0.0)
    with pytest.raises(EstimateError, match=r"got shape \(200, 3\), allowed is \(k, 200\)"):
        breusch_pagan(e, x.T)
    with pytest.raises(EstimateError, match="row 1 is constant"):
        breusch_pagan(e, np.vstack([x[0], np.full(200, 7.0)]))
    with pytest.raises(EstimateError, match="got 2 rows of rank 1"):
        breusch_pagan(e, np.vstack([x[0], 2 * x[0] + 1]))
    with pytest.raises(EstimateError, match="not finite"):
        breusch_pagan(e, x * np.nan)
    with pytest.raises(EstimateError, match="got 4 residuals, needed are at least 5"):
        breusch_pagan(e[:4], x[:, :4])
    with pytest.raises(EstimateError, match="all have the same size"):
        breusch_pagan(np.sign(e), x)
