"""Decimation in place: the outputs of the decimator for arrays, whatever the width and the pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.observe import Preparation, resolve_preparation
from steelyard.observe.decimated import in_place_decimator
from steelyard.recording import Recording
from steelyard.signals import decimate

RATE = 1000.0
STILL = Recording(("a",), np.arange(100) / RATE, np.zeros((1, 100)))


def outputs_of(values: np.ndarray, factor: int, width: int, pieces: list[int], **choices) -> np.ndarray:
    resolved = resolve_preparation(replace(Preparation(cutoff=1.0, decimation=factor), **choices), [STILL])
    decimator = in_place_decimator(resolved, len(values), width)
    results, first = [], 0
    while first < values.shape[1]:
        count = min(pieces[len(results) % len(pieces)], width, values.shape[1] - first)
        decimator.inputs[:, :count] = values[:, first : first + count]
        outputs = np.empty((len(values), (count + 2 * resolved.decimation_filter.half) // factor + 2))
        results.append(outputs[:, : decimator.advance(count, outputs)])
        first += count
    return np.concatenate([*results, decimator.flush()], axis=1)


@pytest.mark.parametrize("ends", ["drop", "mirror"])
@pytest.mark.parametrize("factor", [2, 3, 10, 24, 500])
def test_outputs_are_those_of_whole_arrays(factor, ends):
    values = np.random.default_rng(0).standard_normal((3, 45 * factor + 17))
    found = outputs_of(values, factor, 96, [96], ends=ends)
    np.testing.assert_allclose(found, decimate(values, RATE, factor, ends=ends).values, rtol=0, atol=1e-12)


@given(
    factor=st.sampled_from([2, 7, 10, 60]),
    width=st.integers(1, 200),
    pieces=st.lists(st.integers(1, 200), min_size=1, max_size=5),
)
def test_outputs_do_not_depend_on_width_and_pieces(factor, width, pieces):
    values = np.random.default_rng(1).standard_normal((2, 40 * factor + 5))
    found = outputs_of(values, factor, width, pieces)
    np.testing.assert_allclose(found, decimate(values, RATE, factor).values, rtol=0, atol=1e-12)


def test_a_filter_without_decimation_filters_only():
    values = np.random.default_rng(2).standard_normal((2, 900))
    found = outputs_of(values, 1, 64, [64], decimation_cutoff=50.0)
    np.testing.assert_allclose(found, decimate(values, RATE, 1, 50.0).values, rtol=0, atol=1e-12)


def test_without_a_filter_samples_pass():
    values = np.random.default_rng(3).standard_normal((2, 300))
    assert np.array_equal(outputs_of(values, 1, 64, [64]), values)
