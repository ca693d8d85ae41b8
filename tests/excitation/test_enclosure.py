"""Functions over boxes: never too narrow, and narrow enough to be of use."""

from __future__ import annotations

from fractions import Fraction

import casadi as ca
import numpy as np
import pytest

from arms import arm, inertias_of, motion_of
from steelyard.errors import DesignError
from steelyard.excitation.certify.enclosure import enclosure_of
from steelyard.physics import inverse_dynamics_function

X = ca.SX.sym("x", 2)
EXPRESSIONS = {
    "sum": X[0] + X[1],
    "difference": X[0] - X[1],
    "product": X[0] * X[1],
    "square": X[0] * X[0],
    "twice": 2 * X[0],
    "quotient": X[0] / X[1],
    "inverse": 1 / X[0],
    "root": ca.sqrt(X[0] ** 2 + X[1] ** 2),
    "magnitude": ca.fabs(X[0]),
    "smaller": ca.fmin(X[0], X[1]),
    "larger": ca.fmax(X[0], X[1]),
    "sine": ca.sin(X[0]),
    "cosine": ca.cos(3 * X[0]),
    "tangent": ca.tan(0.1 * X[0]),
    "hyperbolic tangent": ca.tanh(2 * X[0]),
    "arc tangent": ca.atan(X[0]),
    "exponential": ca.exp(X[0]),
    "logarithm": ca.log(X[0] ** 2 + 0.1) + ca.log(X[1] ** 2 + 1),
    "floor": ca.floor(1.7 * X[0]),
    "clamped": ca.fmin(ca.fmax(X[0] - 0.5, 0), 0.7),
    "sign": ca.sign(X[0]) + 2 * ca.sign(X[1]),
    "less": X[0] < X[1],
    "at most": X[0] <= X[1],
    "choice": ca.if_else(X[0] > X[1], ca.sin(X[0]), X[1]),
}
SMOOTH = ("sum", "product", "square", "quotient", "root", "sine", "cosine", "hyperbolic tangent", "exponential")


def boxes(width: float, seed: int, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return 2 * rng.normal(size=(2, count)), width * rng.random((2, count))


def sampled(function: ca.Function, middle: np.ndarray, radius: np.ndarray, seed: int, count: int = 60) -> np.ndarray:
    """Return values at random points of each box, its corners among them (count, K)."""
    rng = np.random.default_rng(seed)
    parts = rng.uniform(-1, 1, (count, *middle.shape))
    parts[:20] = np.sign(parts[:20])
    return np.array([np.array(function(middle + part * radius))[0] for part in parts])


@pytest.mark.parametrize("width", [1e-3, 0.3, 4.0])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_no_value_of_a_box_lies_outside_its_enclosure(name: str, width: float) -> None:
    function = ca.Function("f", [X], [ca.densify(EXPRESSIONS[name])])
    middle, radius = boxes(width, seed=1)
    ((c, r),) = enclosure_of(function)([middle], [radius])
    off = np.abs(sampled(function, middle, radius, seed=2) - c)
    assert (off <= r + 1e-15).all()


@pytest.mark.parametrize("name", SMOOTH)
def test_radii_of_narrow_boxes_are_those_of_the_slopes(name: str) -> None:
    function = ca.Function("f", [X], [ca.densify(EXPRESSIONS[name])])
    middle, radius = boxes(1e-6, seed=3)
    ((c, r),) = enclosure_of(function)([middle], [radius])
    slopes = ca.Function("s", [X], [ca.densify(ca.jacobian(EXPRESSIONS[name], X))])
    wanted = np.array([np.abs(np.array(slopes(m))[0]) @ w for m, w in zip(middle.T, radius.T, strict=True)])
    # Values used twice count as independent: the slopes' magnitudes add up, here to at most the sum itself.
    np.testing.assert_allclose(r[0], wanted, rtol=2e-3, atol=1e-11)
    np.testing.assert_allclose(c[0], np.array(function(middle))[0], rtol=1e-12)


def test_sign_is_everything_between_its_ends_only_where_zero_is_inside() -> None:
    function = ca.Function("f", [X], [ca.sign(X[0])])
    middle = np.array([[0.1, 0.1, -0.1, 0.0], [0.0] * 4])
    radius = np.array([[0.2, 0.05, 0.05, 0.0], [0.0] * 4])
    ((c, r),) = enclosure_of(function)([middle], [radius])
    assert c[0].tolist() == [0.0, 1.0, -1.0, 0.0]
    np.testing.assert_allclose(r[0], [1.0, 0.0, 0.0, 1.0], atol=1e-10)


def test_an_exact_point_is_enclosed_although_its_sums_cancel() -> None:
    rng = np.random.default_rng(4)
    x = ca.SX.sym("x", 40)
    total = 0.1
    for k in range(40):
        total = (total + 1e6 * x[k]) * x[(k + 1) % 40] - 1e6 * x[k] * x[(k + 1) % 40]
    function = ca.Function("f", [x], [total])
    points = rng.uniform(0.9, 1.1, (40, 30))
    ((c, r),) = enclosure_of(function)([points], [np.zeros_like(points)])
    for column, values in enumerate(points.T):
        exact = Fraction(0.1)
        f = [Fraction(float(value)) for value in values]
        for k in range(40):
            exact = (exact + 1000000 * f[k]) * f[(k + 1) % 40] - 1000000 * f[k] * f[(k + 1) % 40]
        error = abs(Fraction(float(c[0, column])) - exact)
        assert 0 < error <= Fraction(float(r[0, column]))
        assert r[0, column] < 1e-4


@pytest.mark.parametrize("name", ["ur10e", "kuka_lwr4", "sliding_tree"])
def test_torques_of_a_box_of_motions_are_enclosed(name: str) -> None:
    robot = arm(name)
    function = inverse_dynamics_function(robot)
    motion = np.array(motion_of(robot, 700))  # more boxes than are taken at a time
    inertias = np.tile(inertias_of(robot)[:, None], 700)
    radii = 0.02 * np.abs(motion)
    enclosed = enclosure_of(function)([*motion, inertias], [*radii, np.zeros_like(inertias)])
    rng = np.random.default_rng(5)
    parts = rng.uniform(-1, 1, (10, *motion.shape))
    parts[:5] = np.sign(parts[:5])
    for part in parts:
        tau = np.array(function(*(motion + part * radii), inertias))
        assert (np.abs(tau - enclosed[0][0]) <= enclosed[0][1]).all()


def test_nothing_is_promised_where_a_divisor_can_be_zero() -> None:
    function = ca.Function("f", [X], [X[0] / X[1], X[0] + 1])
    (quotient, plain) = enclosure_of(function)([np.array([[1.0], [0.1]])], [np.array([[0.0], [0.2]])])
    assert np.isinf(quotient[1]).all()
    assert np.isfinite(plain[1]).all()


def test_an_output_that_is_constantly_zero_has_no_width() -> None:
    function = ca.Function("f", [X], [ca.vertcat(ca.SX(0), X[0])])
    ((c, r),) = enclosure_of(function)([np.ones((2, 3))], [np.zeros((2, 3))])
    assert c[0].tolist() == [0.0] * 3
    assert r[0].tolist() == [0.0] * 3


def test_an_operation_without_a_rule_is_named() -> None:
    with pytest.raises(DesignError, match=r"'ceil'.*allowed are"):
        enclosure_of(ca.Function("steps", [X], [ca.ceil(X[0])]))


def test_a_function_too_deep_for_its_rounding_is_refused() -> None:
    y = X[0]
    for _ in range(500):
        y = ca.sin(y) + X[1]
    with pytest.raises(DesignError, match="follow one another"):
        enclosure_of(ca.Function("deep", [X], [y]))
