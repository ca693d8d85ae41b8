"""Low-pass filters have the stated cut-off, no delay, and are the same in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, signal

from steelyard.errors import SignalError
from steelyard.signals import LowPassStream, SegmentFilter, apply_low_pass, evaluation_filter, low_pass, trim_ends

CASES = [(1000.0, 10.0), (100.0, 20.0), (1000.0, 1.0), (1000.0, 300.0), (500.0, 240.0)]


def measured_amplitude(filter_, frequency):
    """Amplitude and phase of a long sine after the filter, by projection on sine and cosine."""
    samples = int(40 * max(1.0, filter_.rate / frequency)) + 6 * filter_.ends()[0] + 200
    angle = 2 * np.pi * frequency / filter_.rate * np.arange(samples)
    result = trim_ends(filter_, apply_low_pass(filter_, np.sin(angle)[None]), 1e-6)[0]
    inner = angle[filter_.ends(1e-6)[0] :][: len(result)]
    fit = np.linalg.lstsq(np.column_stack([np.sin(inner), np.cos(inner)]), result, rcond=None)[0]
    return complex(fit[0], fit[1])


@pytest.mark.parametrize("order", [1, 2, 4, 5, 8])
@pytest.mark.parametrize(("rate", "cutoff"), CASES)
def test_what_is_built_is_down_by_3_db_at_the_cutoff(rate, cutoff, order):
    filter_ = low_pass(rate, cutoff, order)
    assert abs(measured_amplitude(filter_, cutoff)) == pytest.approx(np.sqrt(0.5), abs=1e-5)


@pytest.mark.parametrize(("rate", "cutoff"), CASES)
def test_the_3_db_point_found_by_search_is_the_cutoff(rate, cutoff):
    filter_ = low_pass(rate, cutoff)
    sections = filter_.sections.copy()

    def excess(frequency):
        one_pass = np.asarray(signal.sosfreqz(sections, worN=[frequency], fs=rate)[1])
        return float(np.abs(one_pass[0]) ** 2 - np.sqrt(0.5))

    found = optimize.brentq(excess, 0.1 * cutoff, min(0.4999 * rate, 3 * cutoff), xtol=1e-12)
    assert found == pytest.approx(cutoff, rel=1e-9)


def test_forward_only_is_down_by_3_db_at_the_cutoff_too():
    filter_ = low_pass(1000.0, 10.0, mode="forward")
    assert abs(measured_amplitude(filter_, 10.0)) == pytest.approx(np.sqrt(0.5), abs=1e-5)


def test_the_evaluation_filter_is_butter_and_sosfiltfilt_of_scipy():
    values = np.random.default_rng(0).standard_normal((3, 2000)).cumsum(axis=1)
    expected = signal.sosfiltfilt(signal.butter(4, 10.0, fs=1000.0, output="sos"), values, axis=1)
    filter_ = evaluation_filter(1000.0, 10.0)
    np.testing.assert_allclose(apply_low_pass(filter_, values), expected, atol=1e-12)
    assert abs(filter_.response(np.array(10.0))) == pytest.approx(0.5)


@pytest.mark.parametrize("order", range(1, 9))
def test_the_continuation_at_the_ends_is_that_of_scipy_for_every_order(order):
    values = np.random.default_rng(0).standard_normal((1, 3000))
    filter_ = low_pass(1000.0, 40.0, order, design="per_pass")
    expected = signal.sosfiltfilt(signal.butter(order, 40.0, fs=1000.0, output="sos"), values, axis=1)
    np.testing.assert_allclose(apply_low_pass(filter_, values), expected, rtol=0, atol=1e-13)


def test_zero_phase_has_no_delay_and_forward_only_has_one():
    time = np.arange(8000) / 1000.0
    motion = (np.sin(2 * np.pi * 1.3 * time) + 0.5 * np.sin(2 * np.pi * 4.1 * time + 1))[None]
    lags = {}
    for mode in ("zero_phase", "forward"):
        filter_ = low_pass(1000.0, 10.0, mode=mode)
        result = apply_low_pass(filter_, motion)[:, 1000:-1000]
        correlation = signal.correlate(result[0], motion[0, 1000:-1000])
        lags[mode] = int(np.argmax(correlation)) - (result.shape[1] - 1)
    assert lags["zero_phase"] == 0
    assert lags["forward"] > 20


@pytest.mark.parametrize("frequency", [1.0, 5.0, 10.0, 17.0, 40.0])
@pytest.mark.parametrize("mode", ["zero_phase", "forward"])
def test_the_response_is_what_sines_experience(frequency, mode):
    filter_ = low_pass(200.0, 10.0, mode=mode)
    expected = filter_.response(np.array(frequency))
    assert measured_amplitude(filter_, frequency) == pytest.approx(complex(expected), abs=2e-6)


@pytest.mark.parametrize("mode", ["zero_phase", "forward", "none"])
@pytest.mark.parametrize("size", [1, 2, 13, 100, 1000, 2999, 3000])
def test_blocks_give_the_result_of_the_whole(mode, size):
    values = np.random.default_rng(3).standard_normal((2, 3000)).cumsum(axis=1) + 100
    filter_ = low_pass(100.0, 8.0, mode=mode)
    stream = LowPassStream(filter_)
    parts = [stream.push(values[:, k : k + size]) for k in range(0, 3000, size)]
    result = np.concatenate([*parts, stream.flush()], axis=1)
    np.testing.assert_allclose(result, apply_low_pass(filter_, values), rtol=0, atol=1e-9)


@pytest.mark.parametrize("mode", ["zero_phase", "forward"])
def test_a_constant_passes_exactly_at_once_and_in_blocks(mode):
    values = np.array([[0.5], [0.3], [-1.234e5]]) * np.ones(3000)
    filter_ = low_pass(200.0, 10.0, mode=mode)
    np.testing.assert_array_equal(apply_low_pass(filter_, values), values)
    stream = LowPassStream(filter_)
    parts = [stream.push(values[:, k : k + 700]) for k in range(0, 3000, 700)]
    np.testing.assert_array_equal(np.concatenate([*parts, stream.flush()], axis=1), values)


@pytest.mark.parametrize("mode", ["zero_phase", "forward", "none"])
@pytest.mark.parametrize("size", [1, 13, 1000, 3000])
def test_a_segment_is_filtered_trimmed_and_keeps_other_signals_beside_it(mode, size):
    values = np.random.default_rng(4).standard_normal((3, 3000)).cumsum(axis=1)
    filter_ = low_pass(100.0, 8.0, mode=mode)
    for trim in (None, (7, 11)):
        segment = SegmentFilter(filter_, trim)
        parts = [segment.push(values[:2, k : k + size], values[2:, k : k + size]) for k in range(0, 3000, size)]
        found = np.concatenate([part for part in (*parts, segment.flush()) if part is not None], axis=1)
        start, end = filter_.ends() if trim is None else trim
        whole = np.concatenate([apply_low_pass(filter_, values[:2]), values[2:]])
        np.testing.assert_allclose(found, whole[:, start : 3000 - end], rtol=0, atol=1e-9)
    short = SegmentFilter(low_pass(100.0, 8.0))
    assert short.push(values[:2, :9], values[2:, :9]) is None
    assert short.flush() is None


def test_a_stream_serves_one_signal_after_the_other():
    stream = LowPassStream(low_pass(100.0, 8.0))
    for rows in (1, 3):
        values = np.random.default_rng(rows).standard_normal((rows, 700))
        result = np.concatenate([stream.push(values), stream.flush()], axis=1)
        np.testing.assert_allclose(result, apply_low_pass(stream.filter, values), rtol=0, atol=1e-9)


@pytest.mark.parametrize("ratio", [1e-3, 1e-4])
def test_very_low_cutoffs_are_numerically_quiet(ratio):
    filter_ = low_pass(1000.0, 1000.0 * ratio)
    samples = 3 * filter_.memory()
    ramp = np.linspace(-3.0, 7.0, samples)[None]
    inner = trim_ends(filter_, apply_low_pass(filter_, ramp), 1e-10)
    start = filter_.ends(1e-10)[0]
    np.testing.assert_allclose(inner, ramp[:, start : start + inner.shape[1]], rtol=0, atol=1e-8)
    level = np.full((1, samples), 5.0)
    np.testing.assert_allclose(apply_low_pass(filter_, level), level, rtol=0, atol=1e-8)
    stream = LowPassStream(filter_)
    noise = np.random.default_rng(0).standard_normal((1, samples))
    parts = [stream.push(noise[:, k : k + 50_000]) for k in range(0, samples, 50_000)]
    result = np.concatenate([*parts, stream.flush()], axis=1)
    np.testing.assert_allclose(result, apply_low_pass(filter_, noise), rtol=0, atol=1e-9)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-12])
def test_the_memory_is_where_the_impulse_response_has_died_out(tolerance):
    filter_ = low_pass(1000.0, 10.0, mode="forward")
    impulse = np.zeros(20_000)
    impulse[0] = 1.0
    size = np.abs(signal.sosfilt(filter_.sections.copy(), impulse))
    assert size[filter_.memory(tolerance) :].max() <= tolerance * size.max()
    assert size[filter_.memory(tolerance) - 1] > tolerance * size.max()


def test_after_trimming_nothing_beyond_the_ends_matters():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((1, 3000))
    filter_ = low_pass(1000.0, 20.0)
    padded = np.concatenate([rng.standard_normal((1, 2000)), values, rng.standard_normal((1, 2000))], axis=1)
    full = apply_low_pass(filter_, padded)[:, 2000:-2000]
    start, end = filter_.ends()
    difference = np.abs(apply_low_pass(filter_, values) - full)[0]
    assert difference[start:-end].max() < 1e-3 * difference.max()
    assert trim_ends(filter_, values).shape[1] == 3000 - start - end


def test_no_filter_changes_nothing_and_trims_nothing():
    filter_ = low_pass(100.0, None, mode="none")
    values = np.random.default_rng(0).standard_normal((2, 5))
    np.testing.assert_array_equal(trim_ends(filter_, apply_low_pass(filter_, values)), values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((100.0, 60.0), "got 60 Hz, allowed is below the Nyquist frequency 50 Hz"),
        ((100.0, 50.0), "got 50 Hz, allowed is below"),
        ((100.0, 0.0), "cut-off: got 0.0 Hz"),
        ((100.0, None), "got no cut-off"),
        ((100.0, 10.0, 0), "filter order: got 0"),
        ((100.0, 10.0, 4, "zerophase"), "mode: got 'zerophase'.*did you mean 'zero_phase'"),
        ((100.0, 10.0, 4, "forward", "per-pass"), "did you mean 'per_pass'"),
    ],
)
def test_impossible_settings_are_refused(arguments, message):
    with pytest.raises(SignalError, match=message):
        low_pass(*arguments)


def test_short_and_broken_signals_are_refused():
    filter_ = low_pass(1000.0, 10.0)
    with pytest.raises(SignalError, match=r"got 500 samples, needed are at least 721 \(0.721 s\)"):
        apply_low_pass(filter_, np.zeros((1, 500)))
    stream = LowPassStream(filter_)
    stream.push(np.zeros((1, 500)))
    with pytest.raises(SignalError, match="got 500 samples"):
        stream.flush()
    values = np.zeros((2, 2000))
    values[1, 7] = np.nan
    with pytest.raises(SignalError, match="row 1, sample 7"):
        apply_low_pass(filter_, values)
    stream = LowPassStream(filter_)
    stream.push(values[:, :5])
    with pytest.raises(SignalError, match="beginning at sample 5: got nan at row 1, sample 2"):
        stream.push(values[:, 5:])
