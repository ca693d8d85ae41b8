"""The contract of estimators: histories, and the linear system that stands for an estimate."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import EstimateError
from steelyard.estimate import History, equivalent_system

RNG = np.random.default_rng(0)


def covariance(size: int) -> np.ndarray:
    root = RNG.normal(size=(size, size)) * 10.0 ** RNG.uniform(-4, 2, size)[:, None]
    return root @ root.T


def test_an_equivalent_system_has_the_values_and_the_covariance_it_stands_for():
    values, wanted = RNG.normal(size=6), covariance(6)
    system = equivalent_system(list("abcdef"), values, wanted, 100)
    scale = np.sqrt(np.diag(wanted))
    np.testing.assert_allclose(system.values, values, rtol=1e-8)
    np.testing.assert_allclose(system.inverse / np.outer(scale, scale), wanted / np.outer(scale, scale), atol=1e-8)
    assert system.squares / system.freedom == pytest.approx(1.0)


def test_leaving_a_column_out_conditions_on_zero_as_a_normal_distribution_does():
    values, wanted = RNG.normal(size=4), covariance(4)
    left = equivalent_system(list("abcd"), values, wanted, 50).restricted(["a", "b", "c"])
    gain = wanted[:3, 3] / wanted[3, 3]
    np.testing.assert_allclose(left.values, values[:3] - gain * values[3], rtol=1e-7)
    np.testing.assert_allclose(left.inverse, wanted[:3, :3] - np.outer(gain, wanted[3, :3]), rtol=1e-6)


def test_a_covariance_that_is_none_is_refused():
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(EstimateError, match="not positive definite"):
        equivalent_system(["a", "b"], np.zeros(2), bad, 10)
    with pytest.raises(EstimateError, match="diverged"):
        equivalent_system(["a", "b"], np.array([np.nan, 0.0]), np.eye(2), 10)


def test_a_history_shows_when_a_value_has_converged_for_good():
    values = np.array([[0.5, 0.97, 1.2, 1.04, 0.96], [3.0, 3.0, 3.0, 3.0, 3.0], [0.0, 0.0, 1.0, 1.0, 0.0]])
    history = History(("a", "b", "c"), np.arange(5.0), values, np.zeros_like(values))
    assert history.converged_after("a", 1.0) == 3.0
    assert history.converged_after("b", 3.0) == 0.0
    assert history.converged_after("c", 1.0) is None
