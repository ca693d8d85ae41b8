"""Decimation: equal to plain convolution, in one piece or in blocks, alike for y and W."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import SignalError
from steelyard.signals import Decimator, decimate

RATE = 1000.0


def noise(rows: int, samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, samples))


@pytest.mark.parametrize("ends", ["drop", "mirror"])
@pytest.mark.parametrize("factor", [1, 2, 7, 10, 60])
def test_the_result_is_the_convolution_with_the_impulse_response(factor, ends):
    values = noise(3, 5003)
    result = decimate(values, RATE, factor, ends=ends)
    half, taps = result.filter.half, result.filter.impulse_response()
    whole = np.stack([np.convolve(np.pad(row, half, mode="reflect"), taps, "valid") for row in values])
    np.testing.assert_allclose(result.values, whole[:, result.index], atol=1e-12)
    inside = [k for k in range(0, 5003, factor) if ends == "mirror" or half <= k < 5003 - half]
    assert result.index.tolist() == inside
    assert result.dropped == (inside[0] // factor, -(-5003 // factor) - inside[0] // factor - len(inside))


@settings(max_examples=40, deadline=None)
@given(
    factor=st.sampled_from([1, 2, 3, 10, 24]),
    ends=st.sampled_from(["drop", "mirror"]),
    cuts=st.lists(st.integers(0, 2000), max_size=30),
)
def test_blocks_give_the_result_of_the_whole(factor, ends, cuts):
    values = noise(2, 2000)
    decimator = Decimator(RATE, factor, ends=ends)
    bounds = [0, *sorted(cuts), 2000]
    parts = [decimator.push(values[:, a:b]) for a, b in pairwise(bounds)]
    result = np.concatenate([*parts, decimator.flush()], axis=1)
    np.testing.assert_allclose(result, decimate(values, RATE, factor, ends=ends).values, rtol=0, atol=1e-12)


def test_single_samples_give_the_result_of_the_whole():
    values = noise(2, 1200)
    decimator = Decimator(RATE, 10)
    parts = [decimator.push(values[:, k : k + 1]) for k in range(1200)]
    result = np.concatenate([*parts, decimator.flush()], axis=1)
    np.testing.assert_allclose(result, decimate(values, RATE, 10).values, rtol=0, atol=1e-12)


def test_a_factor_of_500_streams_exactly():
    values = noise(2, 60_000)
    decimator = Decimator(RATE, 500)
    parts = [decimator.push(values[:, k : k + 777]) for k in range(0, 60_000, 777)]
    result = np.concatenate([*parts, decimator.flush()], axis=1)
    whole = decimate(values, RATE, 500)
    assert whole.values.shape[1] == 120 - sum(whole.dropped) > 80
    np.testing.assert_allclose(result, whole.values, rtol=0, atol=1e-12)


def test_a_decimator_serves_one_signal_after_the_other():
    decimator = Decimator(RATE, 5)
    first = decimator.push(noise(1, 900))
    decimator.flush()
    second = decimator.push(noise(3, 900))
    decimator.flush()
    np.testing.assert_allclose(first, decimate(noise(1, 900), RATE, 5).values, atol=1e-14)
    np.testing.assert_allclose(second, decimate(noise(3, 900), RATE, 5).values, atol=1e-14)


@pytest.mark.parametrize("ends", ["drop", "mirror"])
def test_an_equation_still_holds_after_decimation(ends):
    W = noise(40, 4000)
    chi = noise(1, 40, seed=5)
    y = chi @ W
    small_W, small_y = (decimate(part, RATE, 10, ends=ends).values for part in (W, y))
    np.testing.assert_allclose(chi @ small_W, small_y, atol=1e-12)


def test_slow_sines_come_out_unchanged_and_without_delay():
    time = np.arange(6000) / RATE
    sine = np.sin(2 * np.pi * 3.0 * time + 0.3)[None]
    result = decimate(sine, RATE, 50)
    np.testing.assert_allclose(result.values, sine[:, result.index], atol=2e-3)
    assert result.rate == 20.0


def test_sines_above_the_new_nyquist_frequency_do_not_fold_back():
    time = np.arange(30_000) / RATE
    for frequency in (10.0, 19.9, 101.0, 449.0):
        result = decimate(np.sin(2 * np.pi * frequency * time)[None], RATE, 50)
        assert np.abs(result.values).max() < 1.01e-4


def test_mirrored_ends_have_at_most_twice_the_noise_variance():
    result = decimate(noise(3000, 800), RATE, 10, ends="mirror")
    variance = (result.values**2).mean(axis=0)
    gain = result.filter.noise_gain()
    assert variance[[0, -1]].max() < 2.0 * gain * (1 + 5 / np.sqrt(1500))
    assert variance[0] > 1.5 * gain
    np.testing.assert_allclose(variance[20:60], gain, rtol=5 / np.sqrt(1500))


def test_outputs_lie_at_multiples_of_the_factor_and_dropped_ones_are_counted():
    result = decimate(noise(1, 5000), RATE, 10)
    assert (result.index % 10 == 0).all()
    assert result.index[0] == 10 * result.dropped[0] >= result.filter.half
    assert 5000 - 1 - result.index[-1] >= result.filter.half
    assert len(result.index) + sum(result.dropped) == 500
    assert list(result.filter.outputs(5000)) == list(result.index)


def test_strided_and_reversed_arrays_are_read_correctly():
    values = noise(3, 4000)
    expected = decimate(np.ascontiguousarray(values[::2, ::-1]), RATE, 10).values
    np.testing.assert_allclose(decimate(values[::2, ::-1], RATE, 10).values, expected, atol=1e-14)
    np.testing.assert_allclose(decimate(values.T.copy().T[::2, ::-1], RATE, 10).values, expected, atol=1e-14)


@pytest.mark.parametrize("ends", ["drop", "mirror"])
@pytest.mark.parametrize("sample", [0, 1, 1700, 2999])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_found_wherever_it_lies(sample, value, ends):
    values = noise(50, 3000)
    values[41, sample] = value
    with pytest.raises(SignalError, match=rf"row 41, sample {sample} \(1 such"):
        decimate(values, RATE, 10, ends=ends)
    decimator = Decimator(RATE, 10, ends=ends)

    def stream():
        for k in range(0, 3000, 130):
            decimator.push(values[:, k : k + 130])
        decimator.flush()

    with pytest.raises(SignalError, match=f"row 41, sample {sample} "):
        stream()


def test_a_short_signal_is_refused_with_the_length_needed():
    with pytest.raises(SignalError, match="got 100 samples, needed are at least") as caught:
        decimate(noise(1, 100), RATE, 10)
    needed = int(str(caught.value).split("at least ")[1].split()[0])
    assert decimate(noise(1, needed), RATE, 10).values.shape[1] == 1


def test_bad_arrays_are_refused():
    with pytest.raises(SignalError, match=r"got shape \(100,\).*x\[None, :\]"):
        decimate(np.zeros(100), RATE, 10)
    with pytest.raises(SignalError, match="got 0 samples"):
        decimate(np.zeros((2, 0)), RATE, 10)
    decimator = Decimator(RATE, 10)
    decimator.push(noise(3, 10))
    with pytest.raises(SignalError, match="got a block of 2 rows, the blocks before had 3"):
        decimator.push(noise(2, 10))
    with pytest.raises(SignalError, match="ends: got 'miror', allowed are drop, mirror; did you mean 'mirror'"):
        Decimator(RATE, 10, ends="miror")  # pyright: ignore[reportArgumentType]
