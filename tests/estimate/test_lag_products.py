"""Lag products: equal to a plain loop, whatever the pieces; nothing reaches across a break."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimate.synthetic import SyntheticRows, names_of, resolved_for, sources_of
from steelyard.estimate import lag_products as module
from steelyard.estimate.lag_products import HIGHEST_ORDER, LagProducts, group_products, lag_products
from steelyard.signals import RowWhitener

WHITE = np.eye(1, 20)[0]


def by_a_loop(runs, order):
    columns = runs[0].shape[1]
    G, count = np.zeros((order + 1, order + 1, columns, columns)), 0
    for rows in runs:
        for t in range(order, len(rows)):
            count += 1
            for k in range(order + 1):
                for m in range(order + 1):
                    G[k, m] += np.outer(rows[t - k], rows[t - m])
    return G, count


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 60), max_size=8), order=st.sampled_from([0, 1, 4]))
def test_pieces_of_any_size_give_the_loop(cuts, order):
    rows = np.random.default_rng(0).standard_normal((60, 3))
    sums = LagProducts(order, 3)
    for part in np.split(rows, sorted(cuts)):
        sums.push(part)
    expected, count = by_a_loop([rows], order)
    np.testing.assert_allclose(sums.products(), expected, atol=1e-12)
    assert sums.count == count


def test_long_pieces_are_taken_in_chunks(monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 7)
    rows = np.random.default_rng(1).standard_normal((50, 2))
    sums = LagProducts(3, 2)
    sums.push(rows)
    np.testing.assert_allclose(sums.products(), by_a_loop([rows], 3)[0], atol=1e-12)


def test_products_do_not_reach_across_a_break():
    runs = np.split(np.random.default_rng(2).standard_normal((60, 2)), [20, 23, 45])
    sums = LagProducts(4, 2)
    for run in runs:
        sums.restart()
        sums.push(run)
    expected, count = by_a_loop(runs, 4)
    np.testing.assert_allclose(sums.products(), expected, atol=1e-12)
    assert sums.count == count == 16 + 0 + 18 + 11


def test_gram_and_expected_moments_are_sums_over_all_pairs_of_lags():
    rng = np.random.default_rng(3)
    G, count = by_a_loop([rng.standard_normal((40, 4))], 4)
    group = group_products(("a", "motor", "j"), np.array([0, 2, 5]), G, count)
    weights = rng.standard_normal((5, 5))
    full = np.einsum("kl,klij->ij", weights, G)
    np.testing.assert_allclose(group.gram(weights), (full + full.T) / 2, atol=1e-12)
    mean, root = rng.standard_normal(6), rng.standard_normal((6, 6))
    covariance = root @ root.T
    signed = np.append(-mean[[0, 2, 5]], 1.0)
    moments = np.outer(signed, signed)
    moments[:-1, :-1] += covariance[np.ix_([0, 2, 5], [0, 2, 5])]
    expected = np.einsum("klij,ij->kl", G, moments)
    np.testing.assert_allclose(group.expected(mean, covariance), (expected + expected.T) / 2, rtol=1e-11)


@pytest.mark.parametrize("cuts", [(), (1, 2, 50), (64, 128)])
def test_rows_of_a_source_are_freed_of_the_decimator_run_by_run(cuts):
    rng = np.random.default_rng(4)
    rows = [rng.standard_normal((150, 4)), rng.standard_normal((150, 3))]
    names = (("p0", "p1", "p2"), ("p1", "gone"))
    source = SyntheticRows("a", rows, names, factor=10, cuts=cuts, gaps=(40, 41, 90))
    scale = np.array([2.0, 3.0, 5.0])
    correlation = resolved_for(10).decimation_filter.noise_correlation(160)
    first, second = lag_products(sources_of(source), names_of(3), correlation, scale)
    (longer, _) = lag_products(sources_of(source), names_of(3), correlation, scale, order=7)
    assert (first.lags, longer.lags, first.count - longer.count) == (HIGHEST_ORDER + 1, 8, 3 * 3)
    assert (first.group, second.group) == (("a", "motor", "joint_1"), ("a", "motor", "joint_2"))
    np.testing.assert_array_equal(second.index, [1])
    for group, part, selected, lengths in (
        (first, rows[0], [0, 1, 2, 3], scale),
        (second, rows[1], [0, 2], scale[1:2]),
    ):
        runs = [part[:40], part[42:90], part[91:]]
        white = [RowWhitener(correlation, np.zeros(0)).push(run[:, selected] / np.append(lengths, 1)) for run in runs]
        G, count = by_a_loop(white, HIGHEST_ORDER)
        weights = rng.standard_normal((5, 5))
        full = np.einsum("kl,klij->ij", weights, G)
        np.testing.assert_allclose(group.gram(weights), (full + full.T) / 2, rtol=1e-9, atol=1e-9)
        assert group.count == count
