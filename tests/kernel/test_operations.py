"""Each operation against CasADi's own evaluation, special values included."""

from __future__ import annotations

import itertools

import casadi
import numpy as np
import pytest

from steelyard.errors import KernelError
from steelyard.kernel import Target, baseline_target, compile_batch, host_target

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-310, -5e-324, 1e300, -1e300, np.inf, -np.inf, np.nan]
PAIRS = np.array(list(itertools.product(SPECIAL, SPECIAL))).T  # (2, 196)

EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a, b: -a,
    "inv": lambda a, b: 1 / a,
    "sq": lambda a, b: a**2,
    "twice": lambda a, b: a + a,
    "sqrt": lambda a, b: casadi.sqrt(a),
    "fabs": lambda a, b: casadi.fabs(a),
    "sign": lambda a, b: casadi.sign(a),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "not": lambda a, b: casadi.logic_not(a),
    "and": lambda a, b: casadi.logic_and(a, b),
    "or": lambda a, b: casadi.logic_or(a, b),
    "if_else_zero": lambda a, b: casadi.if_else(a, b, 0),
    "if_else": lambda a, b: casadi.if_else(a < b, a, b),
    "copysign": lambda a, b: casadi.copysign(a, b),
    "floor": lambda a, b: casadi.floor(a),
    "ceil": lambda a, b: casadi.ceil(a),
    "fmin": lambda a, b: casadi.fmin(a, b),
    "fmax": lambda a, b: casadi.fmax(a, b),
    "constant": lambda a, b: casadi.SX(0.1) + 0 * a,
}

ROUNDED = {
    "sin": lambda a, b: casadi.sin(a),
    "cos": lambda a, b: casadi.cos(a),
    "tan": lambda a, b: casadi.tan(a),
    "exp": lambda a, b: casadi.exp(a),
    "log": lambda a, b: casadi.log(a),
    "tanh": lambda a, b: casadi.tanh(a),
    "asin": lambda a, b: casadi.asin(a),
    "acos": lambda a, b: casadi.acos(a),
    "atan": lambda a, b: casadi.atan(a),
    "sinh": lambda a, b: casadi.sinh(a),
    "cosh": lambda a, b: casadi.cosh(a),
    "asinh": lambda a, b: casadi.asinh(a),
    "acosh": lambda a, b: casadi.acosh(a),
    "atanh": lambda a, b: casadi.atanh(a),
    "erf": lambda a, b: casadi.erf(a),
    "expm1": lambda a, b: casadi.expm1(a),
    "log1p": lambda a, b: casadi.log1p(a),
    "pow": lambda a, b: a**b,
    "constpow": lambda a, b: casadi.constpow(a, 1.7),
    "atan2": lambda a, b: casadi.atan2(a, b),
    "fmod": lambda a, b: casadi.fmod(a, b),
    "remainder": lambda a, b: casadi.remainder(a, b),
    "hypot": lambda a, b: casadi.hypot(a, b),
}


def binary(name: str) -> casadi.Function:
    a, b = casadi.SX.sym("a"), casadi.SX.sym("b")
    return casadi.Function(name, [a, b], [(EXACT | ROUNDED)[name](a, b)])


def expected(function: casadi.Function) -> np.ndarray:
    return np.array([float(function(a, b)) for a, b in PAIRS.T])


@pytest.fixture(params=["host", "baseline"])
def target(request: pytest.FixtureRequest) -> Target:
    return host_target() if request.param == "host" else baseline_target()


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_operation_equals_casadi_for_all_special_values(name: str, target: Target) -> None:
    function = binary(name)
    (got,) = compile_batch(function, target=target)(PAIRS[:1], PAIRS[1:])
    np.testing.assert_array_equal(got[0], expected(function))


@pytest.mark.parametrize("name", sorted(EXACT.keys() - {"fmin", "fmax"}))
def test_an_exact_operation_keeps_the_sign_of_zero(name: str) -> None:
    function = binary(name)
    want = expected(function)
    (got,) = compile_batch(function)(PAIRS[:1], PAIRS[1:])
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[0, number]), np.signbit(want[number]))


@pytest.mark.parametrize("name", ROUNDED)
def test_a_rounded_operation_is_within_three_units_of_casadi(name: str, target: Target) -> None:
    function = binary(name)
    want = expected(function)
    (got,) = compile_batch(function, target=target)(PAIRS[:1], PAIRS[1:])
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[0, ~finite], want[~finite])
    assert np.all(np.abs(got[0, finite] - want[finite]) <= 3 * np.spacing(np.abs(want[finite])))


def test_sine_and_cosine_of_the_same_angle_are_paired_rightly() -> None:
    x = casadi.SX.sym("x", 2)
    outputs = [casadi.sin(x[0]), casadi.cos(x[1]), casadi.cos(x[0]), casadi.sin(x[0]) * casadi.sin(x[1])]
    function = casadi.Function("angles", [x], [casadi.vertcat(*outputs)])
    angles = np.array([[0.3, -2.0, 5.0], [1.1, 0.0, 1e8]])
    (got,) = compile_batch(function)(angles)
    s, c = np.sin(angles), np.cos(angles)
    np.testing.assert_allclose(got, [s[0], c[1], c[0], s[0] * s[1]], rtol=1e-15)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("subtract", [False, True])
def test_fused_products_have_the_right_signs(swap: bool, subtract: bool) -> None:
    x = casadi.SX.sym("x", 3)
    product, other = x[0] * x[1], x[2]
    left, right = (other, product) if swap else (product, other)
    function = casadi.Function("fused", [x], [left - right if subtract else left + right])
    (got,) = compile_batch(function)(np.array([[2.0], [3.0], [5.0]]))
    left, right = (5.0, 6.0) if swap else (6.0, 5.0)
    assert got[0, 0] == (left - right if subtract else left + right)


def test_a_product_that_is_an_output_too_is_computed() -> None:
    x = casadi.SX.sym("x", 3)
    product = x[0] * x[1]
    function = casadi.Function("shared", [x], [casadi.vertcat(product, product + x[2], x[2] ** 2 - x[0])])
    (got,) = compile_batch(function)(np.array([[2.0], [3.0], [5.0]]))
    assert got[:, 0].tolist() == [6.0, 11.0, 23.0]


def test_an_unsupported_operation_names_itself_and_its_function() -> None:
    x = casadi.SX.sym("x")
    function = casadi.Function("strange", [x], [casadi.erfinv(x)])
    with pytest.raises(KernelError, match=r"function 'strange': operation 'erfinv' cannot be compiled, allowed are "):
        compile_batch(function)


def test_a_function_that_is_not_sx_is_refused() -> None:
    x = casadi.MX.sym("x")
    with pytest.raises(KernelError, match=r"function 'mx': got a MXFunction, allowed is an SXFunction"):
        compile_batch(casadi.Function("mx", [x], [2 * x]))


@pytest.mark.parametrize("sparsity", [casadi.Sparsity.dense(2, 2), casadi.Sparsity(3, 1)])
def test_an_input_that_is_no_dense_column_is_refused(sparsity: casadi.Sparsity) -> None:
    x = casadi.SX.sym("x", sparsity)
    with pytest.raises(KernelError, match=r"input 'i0' is .*, allowed is a dense column vector"):
        compile_batch(casadi.Function("matrix", [x], [casadi.sum1(casadi.sum2(x))]))


def test_a_vector_width_that_no_processor_has_is_refused() -> None:
    with pytest.raises(KernelError, match=r"got 3 lanes, allowed are \(2, 4, 8\)"):
        Target("x86-64", "", lanes=3, fma=False)
