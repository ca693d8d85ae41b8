"""Time stamps: rate, jitter and gaps are found, uneven stamps are never taken for even ones."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import SignalError
from steelyard.signals import describe_sampling, uniform_rate


def test_even_stamps_have_their_rate():
    assert uniform_rate(5.0 + np.arange(1000) / 125.0) == pytest.approx(125.0)


def test_even_stamps_in_seconds_of_the_epoch_are_even():
    assert uniform_rate(1.7e9 + np.arange(1000) / 1000.0) == pytest.approx(1000.0, rel=1e-6)


def test_stamps_rounded_to_the_microsecond_are_even():
    assert uniform_rate(np.round(np.arange(1000) / 300.0, 6)) == pytest.approx(300.0, rel=1e-5)


def test_uneven_stamps_are_refused_with_the_jitter_found():
    time = np.arange(100) / 100.0
    time[-1] += 0.002
    with pytest.raises(SignalError, match=r"interval of 0.012 s after sample 98 .*jitter 19.8 %.*resample"):
        uniform_rate(time)
    assert uniform_rate(time, tolerance=0.25) == pytest.approx(99 / 0.992)


def test_gaps_and_jitter_are_described():
    rng = np.random.default_rng(0)
    time = np.cumsum(rng.uniform(0.0095, 0.0105, 500))
    time[200:] += 0.05
    sampling = describe_sampling(time)
    assert sampling.rate == pytest.approx(100.0, rel=0.01)
    (gap,) = sampling.gaps
    assert (gap.index, gap.missing) == (199, 5)
    assert gap.duration == pytest.approx(0.06, abs=1e-3)
    assert 0.03 < sampling.jitter < 0.06
    assert sampling.jitter_std == pytest.approx(0.05 / np.sqrt(3), rel=0.1)
    assert describe_sampling(time, max_gap=0.1).gaps == ()


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([], "got 0 samples"),
        ([1.0], "got 1 samples, needed are at least 2"),
        ([0.0, 1.0, 1.0], r"got 1 s at sample 2 after 1 s \(1 such steps"),
        ([0.0, 2.0, 1.0], "strictly increasing"),
        ([0.0, np.nan, 1.0], "got nan at sample 1"),
        ([[0.0, 1.0]], "got shape"),
    ],
)
def test_stamps_that_are_no_times_are_refused(time, message):
    for function in (uniform_rate, describe_sampling):
        with pytest.raises(SignalError, match=message):
            function(np.array(time))


def test_a_longest_gap_shorter_than_every_interval_is_refused():
    with pytest.raises(SignalError, match="every interval"):
        describe_sampling(np.arange(10.0), max_gap=0.5)
