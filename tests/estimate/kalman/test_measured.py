"""The measured motion beside raw samples."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.estimate.kalman.noises import with_motion
from steelyard.observe import RawBlock

RATE, CUTOFF = 100.0, 10.0
WINDOW = 21  # two periods of the cut-off, an odd number of samples


def block_of(time, q, *, starts):
    return RawBlock(starts, time, q, None, np.zeros_like(q))


def blocks_of(q, lengths, *, starts=(True,)):
    """Return positions (n, N) cut into blocks."""
    time = np.arange(q.shape[1]) / RATE
    bounds = [0, *np.cumsum(lengths)]
    flags = [*starts, *[False] * (len(lengths) - len(starts))]
    return [
        block_of(time[a:b], q[:, a:b], starts=flag) for a, b, flag in zip(bounds[:-1], bounds[1:], flags, strict=True)
    ]


def motion_of(blocks):
    return np.concatenate([motion for _, motion in with_motion(blocks, RATE, CUTOFF)], axis=1)


def test_a_cubic_motion_is_found_exactly_up_to_both_ends():
    time = np.arange(200) / RATE
    q = np.array([1 + 2 * time - 3 * time**2 + 0.5 * time**3, time])
    found = motion_of(blocks_of(q, [200]))
    expected = [q[0], q[1], 2 - 6 * time + 1.5 * time**2, 1 + 0 * time, -6 + 3 * time, 0 * time]
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("lengths", [[100, 100, 100], [150, 140, 10], [3, 280, 17], [30, 270]])
def test_the_motion_does_not_know_where_blocks_end(lengths):
    q = np.random.default_rng(0).normal(size=(2, 300))
    whole = motion_of(blocks_of(q, [300]))
    np.testing.assert_allclose(motion_of(blocks_of(q, lengths)), whole, rtol=1e-9, atol=1e-8)


def test_a_new_segment_knows_nothing_of_the_one_before():
    q = np.random.default_rng(1).normal(size=(1, 200))
    found = motion_of(blocks_of(q, [120, 80], starts=(True, True)))
    alone = [motion_of(blocks_of(q[:, part], [part.stop - part.start])) for part in (slice(0, 120), slice(120, 200))]
    np.testing.assert_allclose(found, np.concatenate(alone, axis=1))


def test_a_segment_shorter_than_a_cubic_is_left_out_and_what_follows_begins_anew():
    q = np.random.default_rng(2).normal(size=(1, 200))
    found = list(with_motion(blocks_of(q, [90, WINDOW - 1, 90], starts=(True, True, True)), RATE, CUTOFF))
    assert [(len(block.time), block.starts) for block, _ in found] == [(90, True), (90, True)]
    assert len(list(with_motion(blocks_of(q[:, :WINDOW], [WINDOW]), RATE, CUTOFF))) == 1
    assert not list(with_motion(blocks_of(q[:, : WINDOW - 1], [WINDOW - 1]), RATE, CUTOFF))


def test_a_first_block_too_short_for_a_cubic_with_what_follows_is_left_out_alone():
    q = np.random.default_rng(3).normal(size=(1, 200))
    found = list(with_motion(blocks_of(q, [5, 6, 100]), RATE, CUTOFF))
    assert [(len(block.time), block.starts) for block, _ in found] == [(6, True), (100, False)]
