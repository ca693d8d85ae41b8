"""Instruments, least squares and the test between them, against textbook formulas and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.errors import EstimateError
from steelyard.estimate.instruments.pairs import PairedRows
from steelyard.estimate.instruments.solution import InstrumentSolution

NAMES = ("a", "b", "c")
TRUE = np.array([3.0, -1.0, 0.5])


def drawn(seed: int, shared: float, rows: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return instruments, rows and targets; ``shared`` is how far errors of the rows are those of the targets."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(rows, 3)) @ np.array([[1.0, 0.4, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]])
    noise, own = rng.normal(size=rows), rng.normal(size=(rows, 3))
    w = z + 0.6 * (shared * noise[:, None] + np.sqrt(1 - shared**2) * own)
    return z, w, w @ TRUE + noise


def solution(z, w, y) -> InstrumentSolution:
    triangle = np.asarray(np.linalg.qr(np.column_stack([z, w, y]), mode="r"))
    return InstrumentSolution(PairedRows(NAMES[: z.shape[1]], triangle, len(y)))


def test_values_and_covariance_are_those_of_the_normal_equations():
    z, w, y = drawn(0, 0.7)
    found = solution(z, w, y)
    inverse = np.linalg.inv(z.T @ w)
    np.testing.assert_allclose(found.values, inverse @ z.T @ y, rtol=1e-10)
    residual = y - w @ found.values
    variance = residual @ residual / (len(y) - 3)
    np.testing.assert_allclose(found.covariance, variance * inverse @ z.T @ z @ inverse.T, rtol=1e-9)


def test_a_given_spread_of_the_noise_takes_the_place_of_white_noise():
    z, w, y = drawn(1, 0.2)
    size = np.linspace(0.5, 2.0, len(y))
    triangle = np.asarray(np.linalg.qr(np.column_stack([z, w, y]), mode="r"))
    paired = PairedRows(NAMES, triangle, len(y), (z.T * size**2) @ z)
    inverse = np.linalg.inv(z.T @ w)
    expected = inverse @ (z.T * size**2) @ z @ inverse.T
    np.testing.assert_allclose(InstrumentSolution(paired).covariance, expected, rtol=1e-9)


def test_the_test_is_the_f_test_of_the_augmented_regression():
    regression = pytest.importorskip("statsmodels.api")
    z, w, y = drawn(2, 0.15)
    unexplained = w - z @ np.linalg.lstsq(z, w, rcond=None)[0]
    full = regression.OLS(y, np.column_stack([w, unexplained])).fit()
    statistic, p, more = full.compare_f_test(regression.OLS(y, w).fit())
    found = solution(z, w, y).endogeneity()
    assert found.freedom == (more, len(y) - 6)
    assert found.statistic == pytest.approx(statistic, rel=1e-8)
    assert found.p == pytest.approx(p, rel=1e-6)


def test_columns_that_the_instruments_explain_count_for_nothing():
    z, w, y = drawn(3, 0.5)
    w = np.column_stack([z[:, :2], w[:, 2]])
    assert solution(z, w, y).endogeneity().freedom == (1, len(y) - 4)
    alike = solution(z, z, y).endogeneity()
    assert (alike.statistic, alike.p, alike.freedom[0]) == (0.0, 1.0, 0)
    assert alike.worst_z < 1e-3


def test_hausman_s_distance_names_the_column_that_least_squares_has_wrong():
    rng = np.random.default_rng(4)
    z, noise = rng.normal(size=(2000, 3)), rng.normal(size=2000)
    w = z + 0.1 * rng.normal(size=z.shape)
    w[:, 1] += 0.8 * noise
    found = solution(z, w, w @ TRUE + noise).endogeneity()
    assert found.worst == "b"
    assert found.worst_z > 10
    assert found.p < 1e-10


def test_size_power_and_coverage_are_those_promised():
    """400 draws without correlation: p-values uniform, intervals cover; with it, every draw is found out."""
    honest = [solution(*drawn(seed, 0.0)) for seed in range(400)]
    p = np.array([found.endogeneity().p for found in honest])
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert 0.025 < np.mean(p < 0.05) < 0.08
    for shared in (0.0, 0.7):
        found = [solution(*drawn(seed, shared)) for seed in range(400)]
        z = np.array([(one.values - TRUE) / np.sqrt(np.diag(one.covariance)) for one in found])
        assert abs(np.mean(np.abs(z) < 1.96) - 0.95) < 0.02
    assert max(one.endogeneity().p for one in found) < 1e-6
    plain = np.array([np.linalg.lstsq(*drawn(seed, 0.7)[1:], rcond=None)[0] for seed in range(50)])
    assert np.abs(plain.mean(axis=0) - TRUE).max() > 0.1


def test_instruments_that_do_not_tell_columns_apart_are_refused():
    z, w, y = drawn(5, 0.0)
    z[:, 2] = z[:, 0] + z[:, 1]
    with pytest.raises(EstimateError, match="'c' is indistinguishable from the parameters before it"):
        _ = solution(z, w, y).values
