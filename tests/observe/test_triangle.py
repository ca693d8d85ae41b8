"""Triangles: orthogonal reduction in pieces against numpy on the whole, however columns are scaled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.observe.factor import CHUNK, RowStack, TimeBlocks


def stacked(rows: np.ndarray, cuts: list[int]) -> RowStack:
    stack = RowStack(rows.shape[1])
    for part in np.split(rows, cuts):
        stack.push(part)
    return stack


def assert_same_triangle(found: np.ndarray, rows: np.ndarray) -> None:
    """Compare with numpy's QR, column by column relative to the column's own size; signs of rows are free."""
    wanted = np.linalg.qr(rows, mode="r")
    wanted = np.vstack([wanted, np.zeros((max(0, rows.shape[1] - len(wanted)), rows.shape[1]))])
    scale = np.linalg.norm(rows, axis=0)
    np.testing.assert_array_less(np.abs(np.abs(found) - np.abs(wanted)).max(axis=0), 1e-12 * scale + 1e-300)
    assert np.array_equal(found, np.triu(found))


def rough_rows(count: int, columns: int, seed: int = 0) -> np.ndarray:
    """Return rows whose columns differ by sixteen powers of ten in size."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, columns)) * np.logspace(-8, 8, columns)


@pytest.mark.parametrize("count", [1, 5, 40, CHUNK + 9, 3 * CHUNK + 5])
def test_the_triangle_is_numpys_for_columns_from_tiny_to_huge(count):
    rows = rough_rows(count, 9)
    assert_same_triangle(stacked(rows, [count // 3, count // 2]).triangle(), rows)


@given(cuts=st.lists(st.integers(0, 2500), max_size=6))
def test_the_triangle_does_not_depend_on_the_pieces(cuts):
    rows = rough_rows(2500, 5, seed=1)
    found = stacked(rows, sorted(cuts)).triangle()
    assert np.array_equal(found, stacked(rows, []).triangle())


def test_columns_that_depend_on_others_keep_the_gram_matrix_of_the_whole():
    rng = np.random.default_rng(2)
    few = rng.standard_normal((5000, 4))
    rows = few @ rng.standard_normal((4, 9))
    triangle = stacked(rows, [700, 701, 4000]).triangle()
    np.testing.assert_allclose(triangle.T @ triangle, rows.T @ rows, rtol=0, atol=1e-12 * len(rows))
    assert np.linalg.matrix_rank(triangle) == 4


def test_columns_of_zeros_stay_zero_to_the_last_bit():
    rows = rough_rows(3000, 6)
    rows[:, [0, 3]] = 0.0
    triangle = stacked(rows, [100, 2000]).triangle()
    assert not triangle[:, [0, 3]].any()
    others = [1, 2, 4, 5]
    assert_same_triangle(stacked(triangle[:, others], []).triangle(), rows[:, others])


def test_no_row_gives_a_triangle_of_zeros():
    assert not RowStack(3).triangle().any()
    assert RowStack(3).triangle().shape == (3, 3)


@pytest.mark.parametrize("count", [3, 100, 159, 1000, 7777])
def test_blocks_of_time_cover_all_rows_in_order_and_number_about_what_was_wanted(count):
    rows = rough_rows(count, 4)
    blocks = TimeBlocks(4, 20)
    at = 0
    while at < count:
        step = min(blocks.room, 37, count - at)
        blocks.add(rows[at : at + step])
        blocks.elapse(step)
        at += step
    found = blocks.finish()
    assert sum(part for _, part in found) == count
    assert len(found) <= 40
    assert count < 8 * 20 or len(found) >= 20
    first = 0
    for triangle, part in found:
        assert_same_triangle(triangle, rows[first : first + part])
        first += part


def test_time_passes_without_rows_too():
    blocks = TimeBlocks(2, 1)
    for _ in range(8):
        blocks.elapse(1)  # one block of eight samples, of which none was usable
    blocks.add(np.ones((4, 2)))
    for _ in range(4):
        blocks.elapse(1)
    assert [part for _, part in blocks.finish()] == [0, 4]
