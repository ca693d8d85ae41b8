"""The vector functions against the C library in extended precision."""

from __future__ import annotations

import casadi
import numpy as np
import pytest

from steelyard.kernel import Target, baseline_target, compile_batch, host_target

COUNT = 100_001
# Where long double is no more than double, the reference itself may be wrong by one unit.
ALLOWED_UNITS = 2.0 if np.finfo(np.longdouble).eps < np.finfo(np.float64).eps else 3.0

RANGES = {
    "sin": [(-1e6, 1e6), (-8.0, 8.0), (-1e-3, 1e-3)],
    "cos": [(-1e6, 1e6), (-8.0, 8.0), (-1e-3, 1e-3)],
    "exp": [(-708.0, 709.7), (-1.0, 1.0), (-745.0, -708.0)],
    "log": [(1e-300, 1e300), (0.5, 2.0), (0.999, 1.001), (5e-324, 2.2e-308)],
    "tanh": [(-25.0, 25.0), (-1.0, 1.0), (-1e-6, 1e-6)],
}
CASES = [(name, low, high) for name, ranges in RANGES.items() for low, high in ranges]


@pytest.fixture(params=["host", "baseline"])
def target(request: pytest.FixtureRequest) -> Target:
    return host_target() if request.param == "host" else baseline_target()


def compiled(name: str, x: np.ndarray, target: Target | None = None) -> np.ndarray:
    symbol = casadi.SX.sym("x")
    function = casadi.Function(name, [symbol], [getattr(casadi, name)(symbol)])
    return compile_batch(function, target=target)(x[None])[0][0]


def units_in_the_last_place(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    return np.abs(got - want) / np.spacing(np.abs(want.astype(np.float64)))


@pytest.mark.parametrize(("name", "low", "high"), CASES)
def test_a_function_is_within_two_units_in_the_last_place(name: str, low: float, high: float, target: Target) -> None:
    x = np.random.default_rng(3).uniform(low, high, COUNT)
    want = getattr(np, name)(x.astype(np.longdouble))
    assert units_in_the_last_place(compiled(name, x, target), want).max() <= ALLOWED_UNITS


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_the_absolute_error_of_an_angle_function_is_small(name: str) -> None:
    x = np.random.default_rng(4).uniform(-1e6, 1e6, COUNT)
    want = getattr(np, name)(x.astype(np.longdouble))
    assert np.abs(compiled(name, x) - want).max() <= 2.5e-16


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_multiples_of_a_quarter_turn_keep_their_relative_accuracy(name: str) -> None:
    x = np.arange(-600_000, 600_000, 7) * (np.pi / 2)
    want = getattr(np, name)(x.astype(np.longdouble))
    assert units_in_the_last_place(compiled(name, x), want).max() <= ALLOWED_UNITS


def test_the_logarithm_is_right_over_all_magnitudes() -> None:
    x = 10.0 ** np.random.default_rng(5).uniform(-323, 308, COUNT)
    assert units_in_the_last_place(compiled("log", x), np.log(x.astype(np.longdouble))).max() <= ALLOWED_UNITS


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_angles_are_the_c_library_s(name: str) -> None:
    x = np.array([1e6, np.nextafter(1e6, 2e6), -1e7, 1e22, -1e300, 1.7976931348623157e308])
    np.testing.assert_allclose(compiled(name, x), getattr(np, name)(x), rtol=4e-16, atol=0)


def test_a_large_angle_does_not_change_its_neighbours() -> None:
    x = np.linspace(-3.0, 3.0, 16)
    alone = compiled("sin", x)
    x[5], x[11] = 1e200, np.nan
    beside = compiled("sin", x)
    rest = np.delete(np.arange(16), [5, 11])
    np.testing.assert_array_equal(beside[rest], alone[rest])


@pytest.mark.parametrize(
    ("name", "x", "want"),
    [
        ("sin", np.nan, np.nan),
        ("sin", np.inf, np.nan),
        ("cos", -np.inf, np.nan),
        ("exp", np.inf, np.inf),
        ("exp", -np.inf, 0.0),
        ("exp", 710.0, np.inf),
        ("exp", -746.0, 0.0),
        ("exp", -745.0, 5e-324),
        ("exp", np.nan, np.nan),
        ("exp", -0.0, 1.0),
        ("log", 0.0, -np.inf),
        ("log", -0.0, -np.inf),
        ("log", -1.0, np.nan),
        ("log", -np.inf, np.nan),
        ("log", np.inf, np.inf),
        ("log", np.nan, np.nan),
        ("log", 1.0, 0.0),
        ("tanh", np.inf, 1.0),
        ("tanh", -np.inf, -1.0),
        ("tanh", np.nan, np.nan),
        ("tanh", 5e-324, 5e-324),
    ],
)
def test_a_special_argument_gives_the_special_value(name: str, x: float, want: float, target: Target) -> None:
    np.testing.assert_array_equal(compiled(name, np.array([x]), target), [want])


@pytest.mark.parametrize("name", ["sin", "tanh"])
def test_an_odd_function_keeps_minus_zero(name: str, target: Target) -> None:
    assert np.signbit(compiled(name, np.array([-0.0]), target)[0])
