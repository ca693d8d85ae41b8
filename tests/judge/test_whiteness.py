"""Whiteness: equal to statsmodels without a decimator, honest with one."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats import diagnostic, stattools

from steelyard.errors import EstimateError, SignalError
from steelyard.judge import autocorrelation, durbin_watson, ljung_box, whitened_runs
from steelyard.signals import autoregressive_noise, decimate, decimation_filter

DECIMATOR = decimation_filter(1000.0, 50).noise_correlation(60)


def decimated_noise(series: int, samples: int) -> np.ndarray:
    white = np.random.default_rng(3).standard_normal((series, (samples + 40) * 50))
    return decimate(white, 1000.0, 50).values[:, :samples]


def test_durbin_watson_is_that_of_statsmodels():
    x = np.random.default_rng(0).standard_normal(200)
    found = durbin_watson([x])
    assert found.statistic == pytest.approx(stattools.durbin_watson(x), rel=1e-12)
    assert found.expected == pytest.approx(2 * 199 / 200)
    assert found.z == pytest.approx((found.statistic - found.expected) / (2 / np.sqrt(199)))


def test_differences_across_a_break_do_not_count():
    x = np.concatenate([np.full(50, 10.0), np.full(50, -10.0)])
    assert durbin_watson([x[:50], x[50:]]).statistic == 0.0
    assert durbin_watson([x]).statistic > 0.0


def test_the_expected_value_is_that_of_the_decimator():
    expected = decimation_filter(1000.0, 50).expected_durbin_watson(300)
    assert durbin_watson([np.arange(300.0)], DECIMATOR).expected == pytest.approx(expected)


def test_decimated_white_noise_has_standard_z_scores_and_uniform_p_values():
    noise = decimated_noise(150, 300)
    dw = [durbin_watson([x[:100], x[100:]], DECIMATOR) for x in noise]
    z = np.array([one.z for one in dw])
    assert abs(z.mean()) < 4 / np.sqrt(150)
    assert 0.78 < z.std() < 1.22
    lb = np.array([ljung_box([x[:100], x[100:]], 15, DECIMATOR).p for x in noise])
    assert np.mean(lb < 0.05) < 0.12
    assert 0.40 < lb.mean() < 0.60
    # Judged against 2 and without whitening, every one of them would look guilty.
    assert np.mean([durbin_watson([x]).p < 0.05 for x in noise]) > 0.9
    assert np.mean([ljung_box([x], 15).p < 0.05 for x in noise]) > 0.9


def test_correlation_beyond_the_decimators_is_detected():
    white = autoregressive_noise(300 * 50, np.array([0.99]), 1.0, np.random.default_rng(1))
    x = decimate(white, 1000.0, 50).values[0]
    assert durbin_watson([x], DECIMATOR).z < -3
    assert ljung_box([x], 15, DECIMATOR).p < 1e-3


@pytest.mark.parametrize(("lags", "fitted"), [(1, 0), (10, 0), (20, 3)])
def test_ljung_box_is_that_of_statsmodels(lags, fitted):
    x = np.random.default_rng(5).standard_normal(150) + 0.3
    expected = diagnostic.acorr_ljungbox(x, lags=[lags], model_df=fitted)
    found = ljung_box([x], lags, fitted=fitted)
    assert found.statistic == pytest.approx(float(expected["lb_stat"].iloc[0]), abs=1e-8)
    assert found.p == pytest.approx(float(expected["lb_pvalue"].iloc[0]), abs=1e-8)
    assert found.lags == lags


def test_autocorrelation_of_runs_is_the_sum_of_their_products_over_the_sum_of_squares():
    a, b = np.random.default_rng(2).standard_normal((2, 30))
    found = autocorrelation([a, b[:5]], 8, centre=False)
    assert found[0] == 1.0
    assert found[3] == pytest.approx((a[3:] @ a[:-3] + b[3:5] @ b[:2]) / (a @ a + b[:5] @ b[:5]))
    assert found[6] == pytest.approx(a[6:] @ a[:-6] / (a @ a + b[:5] @ b[:5]))
    mean = np.concatenate([a, b[:5]]).mean()
    shifted = autocorrelation([a - mean, b[:5] - mean], 8, centre=False)
    np.testing.assert_allclose(autocorrelation([a, b[:5]], 8), shifted, atol=1e-14)


def test_whitened_runs_start_afresh_after_each_break():
    x = decimated_noise(1, 200)[0]
    together = whitened_runs([x[:80], x[80:]], DECIMATOR)
    assert together[1][0] == pytest.approx(x[80])
    assert [len(run) for run in together] == [80, 120]


def test_what_cannot_be_judged_is_refused():
    x = np.random.default_rng(0).standard_normal(20)
    with pytest.raises(EstimateError, match="give a single run as"):
        durbin_watson(x)  # pyright: ignore[reportArgumentType]
    with pytest.raises(EstimateError, match="got 0 samples, needed are at least 3"):
        durbin_watson([])
    with pytest.raises(EstimateError, match="runs of one sample each"):
        durbin_watson([x[:1]] * 5)
    with pytest.raises(EstimateError, match="all are zero"):
        durbin_watson([np.zeros(10)])
    with pytest.raises(EstimateError, match="got nan in run 1, sample 2"):
        ljung_box([x, np.array([0, 1, np.nan])], 3)
    with pytest.raises(EstimateError, match=r"got shape \(2, 10\) in run 0"):
        ljung_box([x.reshape(2, 10)], 3)
    with pytest.raises(EstimateError, match="largest lag of 20, allowed are 0 to 19"):
        ljung_box([x], 20)
    with pytest.raises(EstimateError, match="got 3 lags, needed are more than the 3 fitted"):
        ljung_box([x], 3, fitted=3)
    with pytest.raises(SignalError, match="autocorrelation: got 2 at lag 0"):
        durbin_watson([x], 2 * DECIMATOR)
