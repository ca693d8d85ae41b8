"""Lines of signals."""

from __future__ import annotations

import numpy as np

from steelyard.plots import JointSeries, series_plot


def test_more_lines_than_colours_differ_in_their_dashes_and_keep_their_style_in_every_row():
    x = np.arange(3.0)
    lines = {f"k{number}": (x, number * x) for number in range(16)}
    chart = series_plot([JointSeries("a", "m", lines), JointSeries("b", "m", {"k9": (x, x)})])
    found = [(trace["line"]["color"], trace["line"].get("dash", "solid")) for trace in chart.data]
    assert len(set(found[:16])) == 16
    assert found[16] == found[9]
