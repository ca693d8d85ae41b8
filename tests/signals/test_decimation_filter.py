"""The decimator is what its description says: cut-off, stop band, ripple, correlation of noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal
from statsmodels.stats.stattools import durbin_watson

from steelyard.errors import SignalError
from steelyard.signals import decimate, decimation_filter

FACTORS = (1, 2, 3, 7, 10, 12, 50, 97, 100, 500)


def measured_decibels(filter_, frequency):
    """Response of the whole impulse response by scipy, not by the stages."""
    return 20 * np.log10(np.abs(scipy_response(filter_, np.atleast_1d(frequency))))


def scipy_response(filter_, frequency):
    taps = filter_.impulse_response()
    return np.asarray(signal.freqz(taps, worN=frequency, fs=filter_.rate)[1])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("factor", FACTORS)
def test_the_amplitude_is_down_by_3_db_at_the_cutoff(factor):
    filter_ = decimation_filter(1000.0, factor)
    assert filter_.cutoff == pytest.approx(0.8 * 500 / factor)
    assert measured_decibels(filter_, filter_.cutoff)[0] == pytest.approx(10 * np.log10(0.5), abs=1e-6)


@pytest.mark.parametrize("factor", FACTORS)
def test_the_stop_band_is_as_deep_as_stated(factor):
    filter_ = decimation_filter(1000.0, factor)
    assert filter_.stop <= 500 / factor
    grid = np.concatenate([np.linspace(filter_.stop, 500, 4001), np.linspace(filter_.stop, 4 * filter_.stop, 1001)])
    assert measured_decibels(filter_, grid[grid <= 500]).max() < -79.9


@pytest.mark.parametrize("factor", FACTORS)
def test_the_pass_band_is_flat_as_stated(factor):
    filter_ = decimation_filter(1000.0, factor)
    assert np.abs(measured_decibels(filter_, np.linspace(0, 0.6 * filter_.cutoff, 500))).max() < 0.01


def test_the_cutoff_is_the_one_asked_for():
    filter_ = decimation_filter(1000.0, 100, cutoff=1.3, attenuation=100)
    assert measured_decibels(filter_, 1.3)[0] == pytest.approx(-3.0103, abs=1e-3)
    assert measured_decibels(filter_, np.linspace(1.3 * 1.25, 500, 5000)).max() < -99.9


def test_papers_setting_of_half_a_kilohertz_to_two_hertz_has_its_cutoff_at_0_8_hertz():
    filter_ = decimation_filter(1000.0, 500)
    assert filter_.cutoff == pytest.approx(0.8)
    assert filter_.rate / filter_.factor == pytest.approx(2.0)


def test_response_by_stages_equals_response_of_the_impulse_response():
    filter_ = decimation_filter(200.0, 20)
    frequency = np.linspace(0, 100, 333)
    expected = scipy_response(filter_, frequency) * np.exp(2j * np.pi * frequency / 200 * filter_.half)
    np.testing.assert_allclose(filter_.response(frequency), expected, atol=1e-12)


@pytest.mark.parametrize("factor", [2, 10, 30])
def test_noise_correlation_is_that_of_decimated_white_noise(factor):
    noise = np.random.default_rng(factor).standard_normal((64, 3000 * factor // 2))
    result = decimate(noise, 100.0, factor)
    values = result.values
    expected = result.filter.noise_correlation(4)
    products = [(values[:, : values.shape[1] - k] * values[:, k:]).mean() for k in range(5)]
    tolerance = 5 / np.sqrt(values.size)
    np.testing.assert_allclose(np.array(products) / products[0], expected, atol=tolerance)
    assert products[0] == pytest.approx(result.filter.noise_gain(), rel=5 * tolerance)


def test_the_durbin_watson_statistic_of_white_noise_is_as_predicted():
    noise = np.random.default_rng(1).standard_normal((400, 6000))
    result = decimate(noise, 100.0, 20)
    statistics = np.asarray(durbin_watson(result.values, axis=1))
    predicted = result.filter.expected_durbin_watson(result.values.shape[1])
    # The mean of a ratio over some 260 samples is within 0.01 of the ratio of means.
    assert statistics.mean() == pytest.approx(predicted, abs=0.01 + 4 * statistics.std() / 20)
    assert 1.5 < predicted < 1.6


def test_the_durbin_watson_statistic_follows_from_the_impulse_response():
    filter_ = decimation_filter(100.0, 4)
    taps = filter_.impulse_response()
    neighbours = np.correlate(taps, taps, "full")[len(taps) - 1 + 4] / (taps @ taps)
    assert filter_.expected_durbin_watson() == pytest.approx(2 - 2 * neighbours, rel=1e-12)
    assert filter_.expected_durbin_watson(5) == pytest.approx(0.8 * (2 - 2 * neighbours), rel=1e-12)


def test_correlation_beyond_the_impulse_response_is_zero():
    filter_ = decimation_filter(100.0, 4)
    assert filter_.noise_correlation(200)[-1] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1000.0, 0), "decimation factor: got 0"),
        ((1000.0, 2.5), "got 2.5, allowed are whole numbers"),
        ((0.0, 10), "sampling rate: got 0.0 Hz"),
        ((float("nan"), 10), "sampling rate: got nan"),
        ((1000.0, 10, 49.0), r"got 49 Hz, allowed is at most 47.5 Hz \(0.95 of the Nyquist frequency 50 Hz"),
        ((1000.0, 10, -1.0), "decimation cut-off: got -1.0 Hz"),
        ((1000.0, 10, None, 20), "got 20 dB, allowed are 40 to 140"),
    ],
)
def test_impossible_settings_are_refused(arguments, message):
    with pytest.raises(SignalError, match=message):
        decimation_filter(*arguments)
