"""The Wald test of bins: equal to the F-test of least squares for white noise."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from steelyard.judge.bins import BinNoise, wald_test
from steelyard.judge.whiteness import SerialCorrelation


class White(SerialCorrelation):
    """Noise known to be white."""

    def estimate(self, runs):
        return np.ones(1)


def test_for_white_noise_f_is_that_of_nested_least_squares_models():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 4, 200)
    columns = np.equal.outer(label, np.arange(4)).astype(float)
    e = rng.standard_normal(200) + 2.0 * (label == 2)
    base = np.full((200, 1), 200**-0.5)
    found = wald_test(e, base, columns, BinNoise([80, 120], np.ones(200), White()))
    assert found is not None
    full = sm.OLS(e, columns).fit()
    # F of least squares divides by the variance left with the bins; here chance's part of them is put back.
    wald = 3 * full.compare_f_test(sm.OLS(e, np.ones(200)).fit())[0]
    noise = full.ssr * (1 + 3 / (200 - 1 - 3)) / 199
    assert found.f == pytest.approx(wald * full.mse_resid / 3 / noise, rel=2e-3)
    np.testing.assert_allclose(found.left, full.resid, atol=1e-12)
    assert found.share == pytest.approx(full.rsquared_adj * (e - e.mean()) @ (e - e.mean()) / (e @ e), abs=2e-3)


def test_columns_that_add_nothing_or_too_few_samples_give_no_test():
    base = np.full((50, 1), 50**-0.5)
    e = np.random.default_rng(0).standard_normal(50)
    assert wald_test(e, base, np.ones((50, 1)), BinNoise([50], np.ones(50), SerialCorrelation())) is None
    assert wald_test(e[:4], base[:4], np.eye(4), BinNoise([4], np.ones(4), SerialCorrelation())) is None
