"""Filters agree with scipy.signal, and with exact arithmetic where that itself rounds; in blocks as in one piece."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import signal

from steelyard.signals.fir import _least_squares_taps
from steelyard.signals.propose import _spectrum
from steelyard.signals.recursive import (
    RunningConvolution,
    autoregression_filter,
    buttap,
    butter,
    convolve_rows,
    sosfilt,
    sosfilt_zi,
    sosfiltfilt,
    sosfreqz,
)

CUTOFFS = [1e-4, 1e-3, 0.01, 0.1, 0.2, 0.25, 0.3, 0.4, 0.49, 0.4999]  # of the rate


def exactly_filtered(sections, samples):
    """Filter with 40 digits, sample by sample, in the direct form that scipy uses."""
    with localcontext() as context:
        context.prec = 40
        result = [Decimal(float(sample)) for sample in samples]
        for section in sections:
            b0, b1, b2, _, a1, a2 = (Decimal(float(value)) for value in section)
            first = second = Decimal(0)
            for k, sample in enumerate(result):
                result[k] = b0 * sample + first
                first, second = b1 * sample - a1 * result[k] + second, b2 * sample - a2 * result[k]
        return np.array([float(value) for value in result])


@pytest.mark.parametrize("cutoff", CUTOFFS)
@pytest.mark.parametrize("order", range(1, 17))
def test_sections_are_those_of_scipy(order, cutoff):
    expected = np.asarray(signal.butter(order, cutoff, fs=1.0, output="sos"))
    np.testing.assert_allclose(butter(order, cutoff, 1.0), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("order", [1, 2, 5, 16])
def test_the_analogue_prototype_is_that_of_scipy(order):
    np.testing.assert_allclose(buttap(order), np.asarray(signal.buttap(order)[1]), rtol=1e-15, atol=1e-16)


@pytest.mark.parametrize("order", [1, 3, 4, 16])
@pytest.mark.parametrize("cutoff", [1e-4, 1e-3, 0.1, 0.45])
def test_filtering_is_exact_to_rounding(order, cutoff):
    sections = butter(order, cutoff, 1.0)
    samples = np.random.default_rng(order).standard_normal(1500).cumsum() + 3
    expected = exactly_filtered(sections, samples)
    found = sosfilt(sections, samples[None])[0][0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(samples).max())


@pytest.mark.parametrize("order", [1, 2, 4, 7, 16])
@pytest.mark.parametrize("cutoff", [1e-4, 0.01, 0.3])
@pytest.mark.parametrize("length", [1, 31, 32, 33, 511, 513, 8192, 20_000])
def test_filtering_agrees_with_scipy(order, cutoff, length):
    sections = butter(order, cutoff, 1.0)
    rows = np.random.default_rng(length).standard_normal((2, length))
    # Next to the unit circle scipy's direct form rounds a thousand times more than this one.
    tolerance = 1e-12 if cutoff > 1e-3 else 1e-9
    np.testing.assert_allclose(
        sosfilt(sections, rows)[0], signal.sosfilt(sections, rows, axis=1), rtol=0, atol=tolerance
    )


@pytest.mark.parametrize("order", [1, 4, 16])
@pytest.mark.parametrize("cutoff", [1e-4, 0.02, 0.4])
def test_blocks_of_any_size_are_the_whole(order, cutoff):
    rng = np.random.default_rng(5)
    sections, rows = butter(order, cutoff, 1.0), rng.standard_normal((3, 12_000)).cumsum(axis=1)
    rest = sosfilt_zi(sections) * rows[:, :1]
    whole, last = sosfilt(sections, rows, rest)
    state, parts, at = rest, [], 0
    while at < rows.shape[1]:
        size = int(rng.choice([1, 5, 32, 100, 1000, 3000]))
        part, state = sosfilt(sections, rows[:, at : at + size], state)
        parts.append(part)
        at += size
    size = np.abs(rows).max()
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(state, last, rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize("order", [1, 4, 9])
@pytest.mark.parametrize("cutoff", [0.01, 0.1, 0.4])
def test_a_constant_stays_as_it_is_from_the_first_sample(order, cutoff):
    sections = butter(order, cutoff, 1.0)
    found = sosfilt(sections, np.full((1, 5000), 7.0), 7.0 * sosfilt_zi(sections)[None])[0]
    np.testing.assert_allclose(found, 7.0, rtol=1e-11)


@pytest.mark.parametrize("order", [1, 2, 3, 8])
def test_both_ways_and_responses_are_those_of_scipy(order):
    sections = butter(order, 0.05, 1.0)
    rows = np.random.default_rng(1).standard_normal((2, 3000)).cumsum(axis=1)
    expected = signal.sosfiltfilt(sections, rows, axis=1, padlen=40)
    np.testing.assert_allclose(sosfiltfilt(sections, rows, 40), expected, rtol=0, atol=1e-11)
    grid = np.linspace(0, 0.5, 301)
    np.testing.assert_allclose(
        sosfreqz(sections, grid, 1.0), signal.sosfreqz(sections, worN=grid, fs=1.0)[1], rtol=1e-10, atol=1e-15
    )


@pytest.mark.parametrize("coefficients", [[0.9], [1.7, -0.8], [0.999], [0.5, 0.2, 0.1, -0.3, 0.1], [0.01] * 64])
@pytest.mark.parametrize("length", [1, 63, 64, 5000])
def test_an_autoregression_is_that_of_scipy(coefficients, length):
    rng, weights = np.random.default_rng(2), np.array(coefficients)
    rows, past = rng.standard_normal((3, length)), rng.standard_normal((3, len(weights)))
    full = np.concatenate([[1.0], -weights])
    state = np.stack([signal.lfiltic([1.0], full, row) for row in past])
    expected = signal.lfilter([1.0], full, rows, axis=1, zi=state)[0]
    np.testing.assert_allclose(autoregression_filter(weights, rows, past), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        autoregression_filter(weights, rows), signal.lfilter([1.0], full, rows, axis=1), rtol=0, atol=1e-11
    )


@pytest.mark.parametrize(
    ("length", "taps"), [(10, 1), (10, 5), (700, 20), (100, 33), (5000, 100), (9000, 2001), (30, 900)]
)
def test_convolutions_are_those_of_scipy_at_once_and_in_blocks(length, taps):
    rng = np.random.default_rng(3)
    rows, kernel = rng.standard_normal((length, 4)), rng.standard_normal(taps)
    expected = signal.oaconvolve(rows, kernel[:, None], axes=0)
    size = np.abs(expected).max()
    np.testing.assert_allclose(convolve_rows(rows, kernel), expected, rtol=0, atol=1e-13 * size)
    running = RunningConvolution(kernel)
    for _ in range(2):
        parts = [running.push(rows[k : k + 77]) for k in range(0, length, 77)]
        np.testing.assert_allclose(np.concatenate(parts), expected[:length], rtol=0, atol=1e-13 * size)
        running.restart()


@pytest.mark.parametrize("length", [9, 21, 61])
def test_least_squares_taps_are_those_of_scipy(length):
    stops = [(0.2, 0.3), (0.45, 0.5)]
    expected = signal.firls(length, [0, 0.05, 0.2, 0.3, 0.45, 0.5], [1, 1, 0, 0, 0, 0], weight=[0.3, 1, 1], fs=1.0)
    np.testing.assert_allclose(_least_squares_taps(length, 0.05, stops, 0.3), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("samples", [64, 257, 1000, 5001])
def test_spectra_are_those_of_scipy(samples):
    rows = np.random.default_rng(4).standard_normal((3, samples)).cumsum(axis=1)
    length = min(samples, max(64, samples // 4))
    expected = signal.welch(
        rows, 250.0, window="blackmanharris", nperseg=length, noverlap=length // 2, detrend="linear", axis=1
    )
    frequency, density, _ = _spectrum(rows, 250.0)
    np.testing.assert_array_equal(frequency, expected[0])
    np.testing.assert_allclose(density, expected[1], rtol=1e-11)
