"""Lines that come in blocks are thinned evenly, whatever the blocks, and keep peaks and gaps."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.plots import Thinned


@pytest.mark.parametrize("block", [700, 4096, 100_000])
def test_early_points_are_as_dense_as_late_ones(block):
    time = np.arange(100_000) / 1000
    values = np.sin(2 * np.pi * time)
    values[[123, 99_000]] = 7.0, -7.0
    lines = Thinned(1, 1500)
    for first in range(0, len(time), block):
        lines.add(time[first : first + block], values[None, first : first + block])
    ((x, y),) = lines.lines()
    assert 900 <= len(x) <= 1500
    assert (y.max(), y.min()) == (7.0, -7.0)
    assert (np.diff(x) > 0).all()
    counts = np.histogram(x, 10, (0, 100))[0]
    assert counts.min() > 0.9 * counts.max()
    np.testing.assert_array_equal(values[np.round(1000 * x).astype(int)], y)


def test_a_gap_stays_and_few_points_stay_as_they_are():
    lines = Thinned(1, 30)
    lines.add(np.arange(500.0), np.ones((1, 500)))
    lines.break_lines(499.5)
    lines.add(np.arange(500.0, 1000.0), np.ones((1, 500)))
    ((x, y),) = lines.lines()
    assert x[np.isnan(y)].tolist() == [499.5]
    few = Thinned(2, 30)
    assert few.lines()[1][0].size == 0
    few.add(np.arange(3.0), np.arange(6.0).reshape(2, 3))
    assert few.lines()[1][1].tolist() == [3.0, 4.0, 5.0]
