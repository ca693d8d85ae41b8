"""Resolved preparations: cut-off, decimation and standstill from the data, each with its reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from observe.cases import RATE, model_of, recording_for
from steelyard.errors import ObservationError
from steelyard.observe import Preparation, resolve_preparation
from steelyard.recording import Recording, stream_recording, write_recording
from steelyard.signals import apply_low_pass, central_difference, propose_cutoff
from steelyard.signals.fir import in_short_stages


def noisy(std: float, seed: int = 0, samples: int = 40_000, rate: float = RATE) -> Recording:
    """Return two joints on slow sines with white noise of known size on the positions."""
    time = np.arange(samples) / rate
    q = np.stack([np.sin(2 * np.pi * 0.5 * time), 0.5 * np.cos(2 * np.pi * 0.8 * time)])
    noise = std * np.random.default_rng(seed).standard_normal(q.shape)
    return Recording(("joint_1", "joint_2"), time, q + noise)


def test_the_cutoff_is_ten_times_the_largest_velocity_band_of_any_recording():
    slow, fast = noisy(1e-4), noisy(1e-6, seed=1)
    resolved = resolve_preparation(Preparation(), [slow, fast])
    bands = [propose_cutoff(recording.q, RATE).velocity_band.max() for recording in (slow, fast)]
    assert resolved.cutoff == pytest.approx(10 * max(bands), rel=1e-6)
    assert "95 % of joint_2's velocity" in resolved.reasons[0]


def test_the_factor_is_the_largest_that_keeps_half_the_cutoff():
    for cutoff, factor in ((20.0, 40), (19.9, 40), (20.1, 39), (300.0, 2), (100.0, 8), (500.0, 1)):
        resolved = resolve_preparation(Preparation(cutoff=min(cutoff, 499.0)), [noisy(1e-5)])
        assert resolved.decimation == factor
        assert resolved.decimates == (factor > 1)
        if factor > 1:
            assert resolved.decimation_filter.cutoff >= cutoff / 2 * (1 - 1e-9)
            assert 0.4 * RATE / (factor + 1) < cutoff / 2


def test_a_short_recording_is_decimated_less():
    resolved = resolve_preparation(Preparation(cutoff=5.0), [noisy(1e-5, samples=8000)])
    assert resolved.decimation == 19
    assert "fewer than 400 rows" in resolved.reasons[1]


def test_a_decimation_cutoff_decides_the_factor_too():
    resolved = resolve_preparation(Preparation(cutoff=20.0, decimation_cutoff=4.0), [noisy(1e-5)])
    assert resolved.decimation == 100
    assert resolved.decimation_filter.cutoff == 4.0


@pytest.mark.parametrize("mode", ["zero_phase", "forward", "none"])
def test_the_velocity_noise_is_that_of_noise_through_the_filter(mode):
    std = 1e-5
    resolved = resolve_preparation(Preparation(cutoff=40.0, mode=mode), [noisy(std)])
    noise = std * np.random.default_rng(7).standard_normal((1, 400_000))
    smooth = apply_low_pass(resolved.low_pass, noise)
    found = central_difference(smooth, RATE)[:, 1000:-1000].std()
    np.testing.assert_allclose(resolved.velocity_noise, found, rtol=0.05)
    top = np.array([2 * np.pi * 0.5, 0.5 * 2 * np.pi * 0.8])
    np.testing.assert_allclose(resolved.standstill, np.maximum(3 * resolved.velocity_noise, 0.01 * top), rtol=0.01)


def test_the_noise_of_a_recorded_velocity_is_its_own():
    recording = noisy(1e-6)
    speed_noise = 1e-2 * np.random.default_rng(3).standard_normal(recording.q.shape)
    recording = replace(recording, qd=np.cos(recording.q) + speed_noise)
    resolved = resolve_preparation(Preparation(cutoff=50.0, velocity="recorded"), [recording])
    # White noise through an ideal low-pass of 50 Hz of 500; the Butterworth's noise bandwidth is near that.
    np.testing.assert_allclose(resolved.velocity_noise, 1e-2 * np.sqrt(0.1), rtol=0.06)


def test_settings_that_are_given_stay():
    chosen = Preparation(cutoff=30.0, decimation=5, standstill=(0.1, 0.2), rate=500.0, max_gap=0.1, trim=17)
    resolved = resolve_preparation(chosen, [noisy(1e-5)])
    assert (resolved.cutoff, resolved.decimation, resolved.rate, resolved.max_gap) == (30.0, 5, 500.0, 0.1)
    assert resolved.trim == (17, 17)
    assert resolved.standstill.tolist() == [0.1, 0.2]
    assert resolve_preparation(replace(chosen, trim=None), [noisy(1e-5)]).trim == resolved.low_pass.ends()


def test_the_rate_is_the_median_of_the_recordings_whatever_gaps_they_have():
    holed = noisy(1e-5)
    keep = np.ones(holed.samples, dtype=bool)
    keep[5000:7000] = False
    keep[::77] = False
    holed = replace(holed, time=holed.time[keep], q=holed.q[:, keep])
    resolved = resolve_preparation(Preparation(cutoff=20.0), [holed, noisy(1e-5), noisy(1e-5, rate=250.0)])
    assert resolved.rate == RATE
    assert resolved.max_gap == pytest.approx(3 / 250.0, rel=1e-5)


def test_gaps_that_are_short_for_the_filter_are_bridged():
    """A tenth of the cut-off's period, and three intervals in any case, whatever their rounding."""
    for cutoff, gap in ((5.0, 0.02), (10.0, 0.01), (200.0, 3 / RATE)):
        resolved = resolve_preparation(Preparation(cutoff=cutoff), [noisy(1e-5)])
        assert resolved.max_gap == pytest.approx(gap, rel=1e-5)
        assert resolved.max_gap > gap


def test_stamps_rounded_to_whole_milliseconds_give_the_true_rate():
    recording = noisy(1e-5, rate=300.0)
    rounded = replace(recording, time=np.round(recording.time, 3))
    assert resolve_preparation(Preparation(cutoff=10.0), [rounded]).rate == pytest.approx(300.0, rel=1e-4)


def test_a_stream_is_resolved_like_the_recording_in_memory(tmp_path):
    model = model_of("scara_2r")
    recording = recording_for(model, 20_000)
    stream = stream_recording(model.robot, write_recording(recording, tmp_path / "log.npz"))
    one, other = resolve_preparation(Preparation(), [stream]), resolve_preparation(Preparation(), [recording])
    assert one.filter_text == other.filter_text
    np.testing.assert_array_equal(one.standstill, other.standstill)


def test_a_joint_at_rest_has_the_noise_it_shows():
    recording = noisy(1e-5)
    q = np.array(recording.q)
    q[1] = 1e-5 * np.random.default_rng(0).standard_normal(q.shape[1])
    resolved = resolve_preparation(Preparation(cutoff=40.0), [replace(recording, q=q)])
    np.testing.assert_allclose(resolved.velocity_noise[1], resolved.velocity_noise[0], rtol=0.1)


def test_without_motion_a_cutoff_must_be_given():
    still = replace(noisy(1e-5), q=1e-5 * np.random.default_rng(0).standard_normal((2, 40_000)))
    with pytest.raises(ObservationError, match="no joint stands 10 dB above its noise"):
        resolve_preparation(Preparation(), [still])
    assert resolve_preparation(Preparation(cutoff=20.0), [still]).cutoff == 20.0


def test_nothing_to_resolve_from_is_refused():
    with pytest.raises(ObservationError, match="no recording"):
        resolve_preparation(Preparation(), [])
    one_sample = Recording(("a",), np.zeros(1), np.zeros((1, 1)))
    with pytest.raises(ObservationError, match="1 samples"):
        resolve_preparation(Preparation(), [one_sample])
    other = Recording(("a", "b"), np.arange(100) / RATE, np.zeros((2, 100)))
    with pytest.raises(ObservationError, match="another robot"):
        resolve_preparation(Preparation(), [noisy(1e-5), other])
    with pytest.raises(ObservationError, match="3 speeds, allowed are one or 2"):
        resolve_preparation(Preparation(cutoff=10.0, standstill=(1.0, 2.0, 3.0)), [noisy(1e-5)])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("mode", "zero-phase", "did you mean 'zero_phase'"),
        ("resampling", "none", "linear, cubic, monotone"),
        ("cutoff", float("nan"), "finite number above 0"),
        ("rate", -1.0, "finite number above 0"),
        ("decimation", 0, "whole number from 1"),
        ("order", 2.5, "whole number"),
        ("trim", -1, "whole number from 0"),
        ("standstill", (0.1, -0.1), "a list of speeds; entry 2 must be a finite number of 0 or more"),
    ],
)
def test_a_wrong_choice_is_refused_when_it_is_made(field, value, message):
    with pytest.raises(ObservationError, match=message):
        Preparation(**{field: value})


def test_a_factor_with_a_large_prime_is_passed_over():
    for factor, taken in ((131, 130), (58, 57), (39, 39), (23, 23), (1, 1)):
        assert in_short_stages(factor) == taken
    resolved = resolve_preparation(Preparation(cutoff=0.8 * RATE / 31.01), [noisy(1e-5)])
    assert resolved.decimation == 30
