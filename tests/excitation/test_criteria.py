"""Criteria of the information matrix: exact values by numpy, gradients by complex steps or differences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from independent import complex_step, log_determinant
from steelyard.errors import DesignError
from steelyard.excitation.criteria import (
    CRITERIA,
    FLOOR,
    condition_of,
    criterion,
    floored_eigen,
    inverse_and_log_det,
    unit_diagonal,
)

SHARPNESSES = (1.0, 4.0, 64.0)


def rows(seed: int = 0, count: int = 40, size: int = 6) -> np.ndarray:
    """Return W with columns of different sizes."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(count, size))
        @ (np.eye(size) + 0.5 * rng.normal(size=(size, size)))
        * np.logspace(-1.0, 1.0, size)
    )


def normalised(W: np.ndarray) -> np.ndarray:
    return W / np.linalg.norm(W, axis=0)


def sigmas(W: np.ndarray) -> np.ndarray:
    return np.sqrt(np.diag(np.linalg.inv(W.T @ W)))


EXACT = {
    "condition": np.linalg.cond,
    "condition_normalised": lambda W: np.linalg.cond(normalised(W)),
    "condition_weighted": np.linalg.cond,
    "condition_weighted_normalised": lambda W: np.linalg.cond(normalised(W)),
    "condition_prior": np.linalg.cond,
    "d": lambda W: -np.linalg.slogdet(W.T @ W)[1] / np.log(10),
    "a": lambda W: np.trace(np.linalg.inv(W.T @ W)),
    "e": lambda W: 1 / np.linalg.eigvalsh(W.T @ W)[0],
    "worst_sigma": lambda W: sigmas(W).max(),
    "mean_sigma": lambda W: sigmas(W).mean(),
}


def test_every_criterion_is_known_here():
    assert set(EXACT) == set(CRITERIA)


@pytest.mark.parametrize("name", EXACT)
def test_figures_are_those_of_numpy(name):
    for seed in range(5):
        W = rows(seed)
        assert criterion(name).exact(W.T @ W) == pytest.approx(EXACT[name](W), rel=1e-9)


@pytest.mark.parametrize("name", EXACT)
def test_smooth_values_become_the_figures_as_they_sharpen(name):
    M = rows().T @ rows()
    chosen = criterion(name)
    wanted = chosen.exact(M)
    # D is reported as a decimal logarithm of the whole, and searched by the natural one of each parameter.
    wanted = wanted * np.log(10) / len(M) if name == "d" else np.log(wanted)
    apart = [abs(chosen.log_value(M, sharpness)[0] - wanted) for sharpness in (1.0, 10.0, 100.0, 1e4)]
    assert apart[-1] < 2e-4
    assert all(late <= early + 1e-12 for early, late in pairwise(apart))


@pytest.mark.parametrize("name", [name for name in EXACT if name.startswith("condition") or name == "e"])
def test_a_smooth_largest_is_never_below_the_true_one(name):
    M = rows(2).T @ rows(2)
    for sharpness in SHARPNESSES:
        # The floor under the eigenvalues takes away what is left of this.
        assert criterion(name).log_value(M, sharpness)[0] >= np.log(criterion(name).exact(M)) - 1e-8


def by_traces(name: str, M: np.ndarray, sharpness: float) -> complex:
    """Return the smooth value by powers and inverses of matrices: analytic, so that complex steps go through."""
    normal = M / np.sqrt(np.outer(np.diag(M), np.diag(M))) if name.endswith("normalised") else M
    power = np.linalg.matrix_power
    if name.startswith("condition"):
        inverse = np.linalg.inv(normal)
        s = int(sharpness)
        return 0.5 / s * (np.log(np.trace(power(normal, s))) + np.log(np.trace(power(inverse, s))))
    inverse = np.linalg.inv(M)
    if name == "d":
        return -log_determinant(M) / len(M)
    if name == "a":
        return np.log(np.trace(inverse))
    if name == "e":
        return np.log(np.trace(power(inverse, int(sharpness)))) / sharpness
    sigma = np.sqrt(np.diag(inverse))
    return np.log((sigma**sharpness).sum()) / sharpness if name == "worst_sigma" else np.log(sigma.mean())


@pytest.mark.parametrize("sharpness", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("name", EXACT)
def test_values_and_gradients_are_those_of_matrix_powers_by_complex_steps(name, sharpness):
    W = rows(3, size=4)
    M = W.T @ W
    value, gradient = criterion(name).log_value(M, sharpness)
    np.testing.assert_allclose(gradient, gradient.T, rtol=0, atol=1e-12 * np.abs(gradient).max())
    # The floor that keeps singular matrices harmless shows here as one part in 1e13 of the largest eigenvalue.
    assert value == pytest.approx(by_traces(name, M, sharpness).real, abs=1e-8)

    def along(x: np.ndarray) -> np.ndarray:
        # Both of two entries that mirror each other move: the matrix stays symmetric.
        moved = M.astype(complex)
        moved[places] += x
        moved[places[::-1]] += np.where(places[0] == places[1], 0.0, x)
        return np.array([by_traces(name, moved, sharpness)])

    places = np.triu_indices(len(M))
    wanted = complex_step(along, np.zeros(len(places[0])))[0]
    got = gradient[places] * np.where(places[0] == places[1], 1.0, 2.0)
    size = np.sqrt(np.outer(np.diag(M), np.diag(M)))[places]
    np.testing.assert_allclose(got * size, wanted * size, rtol=0, atol=1e-8 * np.abs(wanted * size).max())


@pytest.mark.parametrize("sharpness", [16.0, 256.0])
@pytest.mark.parametrize("name", EXACT)
def test_sharp_gradients_are_those_of_differences(name, sharpness):
    W = rows(4)
    M = W.T @ W
    scale = np.sqrt(np.diag(M))
    chosen = criterion(name)
    _, gradient = chosen.log_value(M, sharpness)
    rng = np.random.default_rng(1)
    for _ in range(5):
        way = rng.normal(size=M.shape)
        way = (way + way.T) * np.outer(scale, scale) * 1e-6
        values = {k: chosen.log_value(M + k * way, sharpness)[0] for k in (-2, -1, 1, 2)}
        slope = (8 * (values[1] - values[-1]) - (values[2] - values[-2])) / 12
        assert (gradient * way).sum() == pytest.approx(slope, rel=2e-4, abs=1e-10)


@pytest.mark.parametrize("name", EXACT)
def test_a_motion_that_does_not_show_a_parameter_is_bad_but_no_error(name):
    W = rows(5)
    W[:, 3] = W[:, 1] - 2 * W[:, 2]
    whole, singular = criterion(name), W.T @ W
    value, gradient = whole.log_value(singular, 8.0)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert value > whole.log_value(rows(5).T @ rows(5), 8.0)[0]


@pytest.mark.parametrize("name", EXACT)
def test_a_parameter_never_seen_at_all_is_no_error_either(name):
    W = rows(6)
    W[:, 2] = 0.0
    value, gradient = criterion(name).log_value(W.T @ W, 4.0)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_the_condition_number_without_rank_is_infinite():
    W = rows(7)
    W[:, 0] = W[:, 1]
    assert condition_of(W.T @ W) == np.inf
    assert condition_of(np.diag([1.0, 4.0])) == pytest.approx(2.0)


def test_inverse_and_log_det_are_those_of_numpy_whatever_the_units():
    W = rows(8)
    for units in (np.ones(6), np.logspace(-6, 6, 6)):
        M = (W * units).T @ (W * units)
        inverse, log_det = inverse_and_log_det(M)
        wanted = np.linalg.inv(W.T @ W) / np.outer(units, units)
        np.testing.assert_allclose(inverse, wanted, rtol=1e-8, atol=0)
        assert log_det == pytest.approx(np.linalg.slogdet(W.T @ W)[1] + 2 * np.log(units).sum(), rel=1e-12)


def test_eigenvalues_have_a_floor():
    values, vectors = floored_eigen(np.diag([0.0, 2.0]))
    np.testing.assert_allclose(values, [2 * FLOOR, 2.0], rtol=1e-9)
    np.testing.assert_allclose(np.abs(vectors), np.eye(2))


@pytest.mark.parametrize("name", ["condition", "e"])
def test_gradients_know_of_the_floor(name):
    """Eigenvalues so far apart that the floor under the smallest is as large as itself."""
    values = np.array([1e-13, 0.3, 1.0])
    gradient = np.diag(criterion(name).log_value(np.diag(values), 1.0)[1])
    step = 1e-4
    slopes = []
    for k in range(3):
        up, down = (np.diag(values * (1 + sign * step * np.eye(3)[k])) for sign in (1, -1))
        slopes.append((criterion(name).log_value(up, 1.0)[0] - criterion(name).log_value(down, 1.0)[0]) / (2 * step))
    np.testing.assert_allclose(gradient * values, slopes, rtol=0, atol=1e-7)


def test_columns_of_unit_length_have_a_unit_diagonal():
    scaled, _ = unit_diagonal(rows(9).T @ rows(9))
    np.testing.assert_allclose(scaled, normalised(rows(9)).T @ normalised(rows(9)), rtol=0, atol=1e-12)


def test_an_unknown_criterion_is_refused_with_the_nearest():
    with pytest.raises(DesignError, match=r"criterion is 'condtion'; allowed: condition, .*'condition'"):
        criterion("condtion")
