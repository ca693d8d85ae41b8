"""The semidefinite programme against cvxpy, with the same solver and with another one."""

from __future__ import annotations

import numpy as np
import pytest

from from_benchmarks import benchmark_module
from steelyard.consistency import programme as programmes
from steelyard.consistency.programme import InfeasibleError, Programme, Solver, solve
from steelyard.consistency.pseudo_inertia import IDENTITY, smat

NO_CVXPY = "cvxpy is not installed"


def programme(seed: int, weight: float, links: int = 2, quadratic: float = 0.0) -> Programme:
    """Return a problem whose data draw one link beyond what a body can be and one friction below zero."""
    rng = np.random.default_rng(seed)
    size, data = 10 * links + 3, 13 * links
    rows = 5 * rng.standard_normal((data, size))
    wanted = np.concatenate([*(IDENTITY + 0.4 * rng.standard_normal(10) for _ in range(links)), [0.5, -1.0, 0.2]])
    wanted[:10] -= 1.2 * IDENTITY
    pull = np.full(size, 1e-6)
    pull[: 10 * links] = quadratic
    upper = np.zeros((2, size))
    upper[0, -3], upper[1, -2] = -1.0, -1.0
    return Programme(
        rows, rows @ wanted, tuple(range(0, 10 * links, 10)), np.full(links, weight), np.tile(IDENTITY, (links, 1)),
        pull, np.concatenate([np.tile(IDENTITY, links), np.zeros(3)]), upper, np.zeros(2),
        np.zeros((0, size)), np.zeros(0), 0.0, np.zeros((links, 10)),
    )  # fmt: skip


objective = benchmark_module("consistency").objective


def with_cvxpy(one: Programme, solver: str, **options: float) -> np.ndarray:
    cp = pytest.importorskip("cvxpy", reason=NO_CVXPY)
    x = cp.Variable(one.size)
    cost = cp.sum_squares(one.rows @ x - one.target) / 2
    cost += cp.sum(cp.multiply(one.pull / 2, cp.square(x - one.pull_to)))
    constraints = [one.upper @ x <= one.bound]
    for first, weight, centre in zip(one.bodies, one.weights, one.centres, strict=True):
        body = cp.Variable((4, 4), symmetric=True)
        entries = [
            body[i, j] * (1.0 if i == j else np.sqrt(2)) == x[first + k]
            for k, (i, j) in enumerate((i, j) for j in range(4) for i in range(j + 1))
        ]
        constraints += [*entries, body >> 0]
        if weight > 0:
            cost += weight * (centre @ x[first : first + 10] - cp.log_det(body))
    cp.Problem(cp.Minimize(cost), constraints).solve(solver=solver, **options)
    return np.asarray(x.value)


@pytest.mark.parametrize(("weight", "quadratic"), [(0.0, 1e-4), (0.0, 4.0), (2.0, 0.0), (25.0, 0.0)])
@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("CLARABEL", {}),
        pytest.param("SCS", {"eps": 1e-9, "max_iters": 100_000}, marks=pytest.mark.large),
    ],
)
def test_it_is_solved_as_cvxpy_solves_it(weight, quadratic, solver, options):
    one = programme(3, weight, quadratic=quadratic)
    found, other = solve(one), with_cvxpy(one, solver, **options)
    assert objective(one, found.x) == pytest.approx(objective(one, other), rel=1e-6)
    np.testing.assert_allclose(one.rows @ found.x, one.rows @ other, atol=1e-4 * np.abs(one.rows @ other).max())


@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_a_solver_serves_other_targets_and_centres(weight):
    first = programme(3, weight, quadratic=1e-4)
    centres = np.tile(1.5 * IDENTITY, (2, 1))
    other = Programme(
        **{**vars(first), "target": 0.8 * first.target + 1, "centres": centres, "pull_to": first.pull_to / 2}
    )
    solver = Solver(first)
    before, again, alone = solver.solve(first), solver.solve(other), solve(other)
    np.testing.assert_allclose(again.x, alone.x, atol=1e-5)
    assert objective(other, again.x) == pytest.approx(objective(other, alone.x), rel=1e-8)
    np.testing.assert_allclose(again.bound_prices, alone.bound_prices, rtol=1e-3, atol=1e-6)
    assert np.abs(again.x - before.x).max() > 0.1


def test_links_stay_bodies_and_friction_stays_positive():
    one = programme(1, 0.0, quadratic=1e-4)
    found = solve(one)
    assert np.linalg.eigvalsh(smat(found.x[:10]))[0] == pytest.approx(0, abs=1e-7)
    assert found.x[-2] == pytest.approx(0, abs=1e-7)
    assert found.bound_prices[1] > 1e-3 > 1e-6 > found.bound_prices[0]


def test_bounds_that_contradict_each_other_are_recognised():
    one = programme(1, 0.0, quadratic=1e-4)
    both = np.vstack([one.upper, [[0.0] * (one.size - 1) + [1.0], [0.0] * (one.size - 1) + [-1.0]]])
    impossible = Programme(**{**vars(one), "upper": both, "bound": np.array([0.0, 0.0, -1.0, -1.0])})
    with pytest.raises(InfeasibleError):
        solve(impossible)


def test_a_panic_of_the_solver_is_one_failed_attempt(monkeypatch):
    class PanicException(BaseException):  # as the solver's own is called
        """What a panic in Rust is in Python."""

    solved, calls = programmes._Attempt._solved, []

    def panicking(self, linear, right):
        calls.append(1)
        if len(calls) == 1:
            raise PanicException
        return solved(self, linear, right)

    one = programme(3, 2.0)
    expected = solve(one).x
    monkeypatch.setattr(programmes._Attempt, "_solved", panicking)
    assert solve(one).x == pytest.approx(expected, abs=1e-5)
    assert len(calls) == 2
