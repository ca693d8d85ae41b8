"""Accelerations and derivatives against a second statement of the physics, by complex steps."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from estimate.kalman.filter_cases import acceleration, friction_model, numbers, stepped
from independent import complex_step
from steelyard.errors import EstimateError
from steelyard.estimate.kalman.discrete import StepDerivative, discrete_step, stage_points
from steelyard.estimate.kalman.dynamics import arm_graph
from steelyard.kernel import compile_batch

WIDTH = 0.3
ARMS = ("scara_2r", "kuka_ir361", "ur10e")


def graph_of(name, free=None):
    model, values = friction_model(name)
    chosen = range(len(values)) if free is None else free
    return arm_graph(model, model.names, chosen, loaded=False, held=False), values


def turn_of(graph):
    return np.full(graph.joints, 1 / WIDTH)


def along(function, z, seed=0):
    """Return random directions in which z moves, and the derivatives of a function along them by complex steps."""
    directions = np.random.default_rng(seed).standard_normal((len(z), 6))
    return directions, complex_step(lambda t: function(z + directions @ t), np.zeros(6))


def motion_of(graph, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (3, graph.joints)) * [[2.0], [1.0], [5.0]]


@pytest.mark.parametrize("name", ARMS)
def test_accelerations_are_those_of_the_independent_arm(name):
    graph, values = graph_of(name)
    q, qd, tau = motion_of(graph)
    qdd, pivots = (numbers(part).ravel() for part in graph.acceleration(q, qd, tau, values, turn_of(graph)))
    np.testing.assert_allclose(qdd, np.real(acceleration(name, q, qd, tau, values, WIDTH)), rtol=1e-9)
    assert (pivots > 0).all()


@pytest.mark.parametrize("name", ARMS)
def test_derivatives_of_the_acceleration_are_those_of_complex_steps(name):
    graph, values = graph_of(name)
    q, qd, tau = motion_of(graph, 1)
    n = graph.joints
    qdd = np.real(acceleration(name, q, qd, tau, values, WIDTH))

    def moved(z):
        return acceleration(name, z[n : 2 * n], z[:n], z[2 * n : 3 * n], z[3 * n :], WIDTH)

    directions, expected = along(moved, np.concatenate([qd, q, tau, values]))
    found = numbers(graph.sensitivity(q, qd, qdd, values, turn_of(graph))) @ directions
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("name", "integrator"),
    [
        ("scara_2r", "euler"),
        *(pytest.param(name, "rk4", marks=() if name == "scara_2r" else pytest.mark.large) for name in ARMS),
    ],
)
def test_derivatives_of_a_whole_step_are_those_of_complex_steps(name, integrator):
    graph, values = graph_of(name)
    q, qd, tau = motion_of(graph, 2)
    n, x, dt = graph.joints, np.concatenate([qd, q]), 0.02

    def moved(z):
        return stepped(name, z[: 2 * n], z[2 * n : 3 * n], z[3 * n :], WIDTH, dt, integrator)

    directions, expected = along(moved, np.concatenate([x, tau, values]))
    tolerance = {"rtol": 1e-8, "atol": 1e-10 * np.abs(expected).max()}
    turn = turn_of(graph)[:, None]
    points = compile_batch(stage_points(graph, integrator))
    derivative = StepDerivative(graph, compile_batch(graph.sensitivity), integrator)
    derivative.begin(dt)
    *stages, following, _ = points(x[:, None], tau[:, None], values[:, None], turn, np.array([[dt]]))
    for buffer, stage in zip(derivative.motion, stages, strict=True):
        buffer[:] = stage.reshape(buffer.shape)
    np.testing.assert_allclose(
        following[:, 0], np.real(stepped(name, x, tau, values, WIDTH, dt, integrator)), rtol=1e-9
    )
    np.testing.assert_allclose(derivative.at(values[:, None], turn).T @ directions, expected, **tolerance)

    symbols = [ca.SX.sym("x", 2 * n), ca.SX.sym("tau", n), ca.SX.sym("chi", len(values)), ca.SX.sym("turn", n)]
    _, slope, _ = discrete_step(graph, integrator, ca.SX(dt), *symbols)
    written = numbers(ca.Function("step", symbols, [slope])(x, tau, values, turn))
    np.testing.assert_allclose(written @ directions, expected, **tolerance)


@pytest.mark.parametrize("name", ARMS)
def test_a_held_direction_is_that_of_another_velocity_and_has_no_slope(name):
    model, values = friction_model(name)
    graph = arm_graph(model, model.names, range(len(values)), loaded=False, held=True)
    q, qd, tau = motion_of(graph, 5)
    n, links = graph.joints, 10 * len(model.robot.bodies)
    known = np.array([0.7, -0.4, 1.1, -2.0, 0.1, 0.6])[:n]
    without = values.copy()
    without[links + n :] = 0.0
    applied = tau - values[links + n :] * np.tanh(known)
    qdd, _ = graph.acceleration(q, qd, tau, values, known)
    np.testing.assert_allclose(numbers(qdd).ravel(), acceleration(name, q, qd, applied, without, WIDTH), rtol=1e-9)
    by_speed = complex_step(lambda v: acceleration(name, q, v, applied, without, WIDTH), qd)
    found = numbers(graph.sensitivity(q, qd, qdd, values, known))[:, :n]
    np.testing.assert_allclose(found, by_speed, rtol=1e-8, atol=1e-9 * np.abs(by_speed).max())


@pytest.mark.parametrize("name", ARMS)
def test_a_form_of_the_inertia_matrix_is_linear_in_the_parameters(name):
    graph, values = graph_of(name)
    q, u, _ = motion_of(graph, 6)
    M, pivots = (numbers(part) for part in graph.inertia(q, values))
    row = numbers(graph.inertia_row(q, u)).ravel()
    assert row @ values == pytest.approx(u @ M @ u, rel=1e-10)
    assert np.prod(pivots) == pytest.approx(np.linalg.det(M), rel=1e-9)


def test_only_free_parameters_have_derivatives():
    whole, values = graph_of("scara_2r")
    some, _ = graph_of("scara_2r", free=[5, 21])
    q, qd, qdd = motion_of(whole, 3)
    expected = numbers(whole.sensitivity(q, qd, qdd, values, turn_of(whole)))
    np.testing.assert_array_equal(
        numbers(some.sensitivity(q, qd, qdd, values, turn_of(whole))), expected[:, [*range(6), 11, 27]]
    )


def test_an_indefinite_inertia_shows_in_the_pivots():
    graph, values = graph_of("scara_2r")
    q, qd, tau = motion_of(graph, 4)
    _, pivots = graph.acceleration(q, qd, tau, -values, turn_of(graph))
    assert numbers(pivots).min() < 0


@pytest.mark.parametrize("measured", ["both", "difference"])
def test_two_equations_a_joint_are_refused_with_the_remedy(measured):
    model = replace(friction_model("scara_2r")[0], measured=measured)
    with pytest.raises(EstimateError, match=f"torque '{measured}'; choose `--torque motor` or `--torque joint`"):
        arm_graph(model, model.names, [0], loaded=False, held=False)
