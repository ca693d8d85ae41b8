"""Runs of rows: columns selected by name, whitened within runs, weighted by noise group."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from estimate.synthetic import SyntheticRows, resolved_for, sources_of
from steelyard.observe import Whitening, weighted_runs
from steelyard.signals import RowWhitener

NAMES = (("p0", "p1", "p2"), ("p1", "p3"))
GROUPS = (("a", "motor", "joint_1"), ("a", "motor", "joint_2"))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((90, 4)), rng.standard_normal((90, 3))]


def source_of(rows, label="a"):
    return sources_of(SyntheticRows(label, rows, NAMES, factor=10, cuts=(30, 31), gaps=(50,)))[0]


def test_runs_carry_their_group_their_columns_and_where_they_start(rows):
    runs = list(source_of(rows).runs())
    assert [(run.equation, run.starts) for run in runs] == [
        (0, True), (1, True), (0, False), (1, False), (0, False), (0, True), (1, False), (1, True),
    ]  # fmt: skip
    assert {(run.group, run.columns) for run in runs} == set(zip(GROUPS, NAMES, strict=True))
    for e in (0, 1):
        own = [run.rows for run in runs if run.equation == e]
        np.testing.assert_array_equal(np.concatenate(own), np.delete(rows[e], 50, axis=0))
    assert {run.equation for run in source_of(rows).runs([1])} == {1}


def test_columns_are_selected_by_name_and_spread_over_those_wanted(rows):
    wanted = ("p3", "p1", "absent", "p0")
    found = list(weighted_runs(source_of(rows).runs(), wanted, {GROUPS[0]: 2.0, GROUPS[1]: 3.0}))
    for e, columns, weight in ((0, {"p0": 0, "p1": 1}, 2.0), (1, {"p1": 0, "p3": 1}, 3.0)):
        spread = np.concatenate([one.spread(4) for one in found if one.run.equation == e])
        expected = np.zeros((89, 5))
        for k, name in enumerate(wanted):
            if name in columns:
                expected[:, k] = weight * np.delete(rows[e], 50, axis=0)[:, columns[name]]
        expected[:, -1] = weight * np.delete(rows[e], 50, axis=0)[:, -1]
        np.testing.assert_array_equal(spread, expected)


def test_groups_without_a_weight_are_left_out(rows):
    found = weighted_runs(source_of(rows).runs(), NAMES[0], {GROUPS[1]: 1.0})
    assert {one.run.group for one in found} == {GROUPS[1]}


def test_rows_are_whitened_run_by_run_across_blocks_each_group_on_its_own(rows):
    correlation = resolved_for(10).decimation_filter.noise_correlation(160)
    whitening = Whitening(correlation, {("motor", "joint_1"): np.array([0.7])})
    sources = [source_of(rows), source_of([2 * part for part in rows], "b")]
    runs = chain.from_iterable(source.runs() for source in sources)
    found = list(weighted_runs(runs, ("p0", "p1", "p2", "p3"), whitening=whitening))
    for label, size in (("a", 1.0), ("b", 2.0)):
        for e, coefficients in ((0, [0.7]), (1, [])):
            whitener = RowWhitener(correlation, np.array(coefficients))
            first = whitener.push(size * rows[e][:50])
            whitener.restart()
            expected = np.concatenate([first, whitener.push(size * rows[e][51:])])
            own = [one.rows for one in found if one.run.group == (label, *GROUPS[e][1:])]
            np.testing.assert_allclose(np.concatenate(own), expected, atol=1e-12)
