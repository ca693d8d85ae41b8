"""The inverse of an anti-alias filter restores amplitude and phase in the band it states (P4.6)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from steelyard.errors import SignalError
from steelyard.signals import AnalogueFilter, analogue_butterworth, prewhitener

RATES = (150.0, 1000.0)


def scipy_response(frequency: np.ndarray) -> np.ndarray:
    """Response of the 8th-order 40 Hz Butterworth filter by its polynomials."""
    b, a = signal.butter(8, 2 * np.pi * 40, analog=True)  # pyright: ignore
    return np.asarray(signal.freqs(b, a, worN=2 * np.pi * frequency)[1])  # pyright: ignore[reportArgumentType]


def test_the_analogue_butterworth_is_that_of_scipy():
    frequency = np.array([0.0, 1.0, 20.0, 40.0, 75.0, 300.0])
    response = analogue_butterworth(8, 40.0).response(frequency)
    np.testing.assert_allclose(response, scipy_response(frequency), rtol=1e-9)
    np.testing.assert_allclose(np.abs(response), (1 + (frequency / 40) ** 16) ** -0.5, rtol=1e-9)


@pytest.mark.parametrize("rate", RATES)
def test_amplitude_and_phase_are_restored_within_1_percent_up_to_the_band(rate):
    inverse = prewhitener(analogue_butterworth(8, 40.0), rate)
    assert 50 < inverse.band < 60
    time = np.arange(8000) / rate
    for frequency in (0.1, 5.0, 20.0, 40.0, 50.0, 0.999 * inverse.band):
        response = complex(scipy_response(np.array([frequency]))[0])
        measured = np.abs(response) * np.sin(2 * np.pi * frequency * time + np.angle(response))
        restored = inverse.apply(measured[None])[0]
        angle = 2 * np.pi * frequency * time[inverse.half : -inverse.half]
        fit = np.linalg.lstsq(np.column_stack([np.sin(angle), np.cos(angle)]), restored, rcond=None)[0]
        assert np.hypot(*fit) == pytest.approx(1.0, abs=0.01)
        assert np.arctan2(fit[1], fit[0]) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("rate", RATES)
def test_beyond_the_band_noise_is_not_lifted_without_limit(rate):
    inverse = prewhitener(analogue_butterworth(8, 40.0), rate)
    assert np.abs(inverse.response(np.linspace(0, rate / 2, 2000))).max() < 25
    noise = np.random.default_rng(0).standard_normal((20, 5000))
    assert inverse.apply(noise).var() == pytest.approx(inverse.noise_gain, rel=0.05)


def test_the_band_is_where_the_restored_response_leaves_its_tolerance():
    inverse = prewhitener(analogue_butterworth(8, 40.0), 150.0)
    frequency = np.linspace(0, 75, 4001)
    error = np.abs(inverse.response(frequency) * scipy_response(frequency) - 1)
    assert error[frequency <= inverse.band].max() <= 0.01
    assert error[frequency > inverse.band + 0.1].min() > 0.01


def test_a_larger_gain_restores_a_wider_band():
    bands = [prewhitener(analogue_butterworth(8, 40.0), 1000.0, max_gain=gain).band for gain in (2, 10, 100)]
    assert bands[0] < bands[1] < bands[2]


def test_blocks_give_the_result_of_the_whole():
    inverse = prewhitener(analogue_butterworth(4, 30.0), 150.0)
    values = np.random.default_rng(0).standard_normal((2, 1500))
    stream = inverse.stream()
    parts = [stream.push(values[:, k : k + 37]) for k in range(0, 1500, 37)]
    np.testing.assert_allclose(np.concatenate([*parts, stream.flush()], axis=1), inverse.apply(values), atol=1e-12)


def test_bad_input_is_refused():
    inverse = prewhitener(analogue_butterworth(8, 40.0), 150.0)
    with pytest.raises(SignalError, match="got 100 samples, needed are at least"):
        inverse.apply(np.zeros((1, 100)))
    with pytest.raises(SignalError, match="at 0 Hz"):
        prewhitener(AnalogueFilter(np.array([0j]), np.array([-10 + 0j]), 1.0), 150.0)
