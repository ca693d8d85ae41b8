"""Both engines: the textbook's filter with complex-step derivatives, each other, and bands that cover the truth."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from estimate.kalman.filter_cases import friction_model, stepped
from independent import complex_step
from steelyard.estimate.kalman.discrete import stage_points
from steelyard.estimate.kalman.dynamics import arm_graph
from steelyard.estimate.kalman.lapack_engine import CompiledArm, LapackEngine
from steelyard.estimate.kalman.loop_engine import SLOW_NOISE, LoopEngine
from steelyard.estimate.kalman.state import Shape, new_vector, parameter_root, restart
from steelyard.kernel import compile_batch

WIDTH, DT = 0.2, 0.01
NAMES = ("ZZ1", "ZZ2", "MX2", "MY2", "Fvm1", "Fvm2", "Fcm1", "Fcm2")
TRUE = np.array([3.42, 0.064, 0.262, 0.0, 0.07, 0.015, 0.58, 0.156])


def scara_graph(free=range(8)):
    model = friction_model("scara_2r")[0]
    return arm_graph(model, NAMES, list(free), loaded=False, held=False)


def engine_of(kind, graph, shape, integrator, free, *, measured=False):
    if kind is LoopEngine:
        return LoopEngine(graph, shape, integrator, tuple(free), measured=measured)
    return LapackEngine(CompiledArm(graph, integrator), shape, tuple(free), measured=measured)


LAST = [5.99, DT, WIDTH, 0.0, 0.0, 0.0, 0.0]
"""Bound, step, width, standstill and least pivots of two joints."""


def all_values(values):
    """Return P1's eight parameters as values of all standard ones."""
    names = friction_model("scara_2r")[0].names
    whole = np.zeros(len(names), dtype=np.asarray(values).dtype)
    for name, value in zip(NAMES, values, strict=True):
        whole[names.index(name)] = value
    return whole


def driven(steps, columns, seed, torque_noise, position_noise):
    """Return torques (T, 2, C), positions after each step (T, 2, C) and the first state of a PD-driven arm."""
    rng = np.random.default_rng(seed)
    points = compile_batch(stage_points(scara_graph(), "rk4"))
    turn, dt = np.full((2, columns), 1 / WIDTH), np.full((1, columns), DT)
    x = np.zeros((4, columns))
    values = np.repeat(TRUE[:, None], columns, axis=1)
    time = np.arange(steps) * DT
    wanted = np.array([0.5 * np.sin(2.1 * time) + 0.2 * np.sin(5.3 * time), 1.2 * np.sin(3.2 * time + 1) - 1.0])
    torques, positions = np.zeros((steps, 2, columns)), np.zeros((steps, 2, columns))
    gains = np.array([[400.0], [12.0]]), np.array([[70.0], [1.6]])
    for k in range(steps):
        torques[k] = gains[0] * (wanted[:, k : k + 1] - x[2:]) - gains[1] * x[:2]
        acting = torques[k] + np.array(torque_noise)[:, None] * rng.standard_normal((2, columns))
        x = points(x, acting, values, turn, dt)[3]
        positions[k] = x[2:] + position_noise * rng.standard_normal((2, columns))
    return torques, positions


START, VARIANCES = TRUE * 1.1 + 0.01, (0.2 * np.abs(TRUE) + 0.02) ** 2
NOISES = {"torque": np.array([0.5, 0.05]), "state": np.array([0.05, 0.05, 0.01, 0.01])}
STEPS = 12


@cache
def textbook(integrator, process):
    """The extended Kalman filter as books write it, with complex-step derivatives of an independent arm."""
    torques, positions = (part[:, :, 0] for part in driven(STEPS, 1, 0, (0.5, 0.05), 1e-4))
    noise, deviation = NOISES[process], 1e-3
    z = np.concatenate([np.zeros(4), START])
    P = np.diag(np.concatenate([np.full(4, 0.01), VARIANCES]))
    H = np.eye(12)[2:4]

    def following(z, torque):
        return np.concatenate([stepped("scara_2r", z[:4], torque, all_values(z[4:]), WIDTH, DT, integrator), z[4:]])

    squares = []
    for torque, position in zip(torques, positions, strict=True):
        F = complex_step(lambda z, torque=torque: following(z, torque), z)
        G = complex_step(lambda torque, z=z: following(z, torque), torque) if process == "torque" else np.eye(12)[:, :4]
        z = following(z, torque).real
        P = F @ P @ F.T + (G * noise**2) @ G.T
        innovation, S = position - z[2:4], H @ P @ H.T + deviation**2 * np.eye(2)
        K = P @ H.T @ np.linalg.inv(S)
        squares.append(innovation @ np.linalg.solve(S, innovation))
        z, P = z + K @ innovation, (np.eye(12) - K @ H) @ P
    return z, P, np.array(squares)


@pytest.mark.parametrize("engine_kind", [LoopEngine, LapackEngine])
@pytest.mark.parametrize(
    ("integrator", "process"), [pytest.param("rk4", "torque", marks=pytest.mark.large), ("euler", "state")]
)
def test_a_filter_is_that_of_the_textbook(engine_kind, integrator, process):
    z, P, squares = textbook(integrator, process)
    given, noise = np.concatenate(driven(STEPS, 1, 0, (0.5, 0.05), 1e-4), axis=1), NOISES[process]
    shape = Shape(2, 8, 8, 2, len(noise))
    engine = engine_of(engine_kind, scara_graph(), shape, integrator, range(8))
    vector = new_vector(shape, START, np.diag(VARIANCES))
    restart(shape, vector, np.zeros(4), np.full(4, 0.1))
    fixed = np.concatenate([START, noise, [1e-3, 1e-3], LAST])[:, None]
    vectors, recorded = engine.advance(vector[:, None], given, fixed, 0, 5)
    x, values, *_, tally = shape.split(vectors[:, 0])
    np.testing.assert_allclose(np.concatenate([x, values]), z, rtol=1e-8, atol=1e-9)
    root = parameter_root(shape, vectors[:, 0])
    scale = np.sqrt(np.diag(P)[4:])
    np.testing.assert_allclose(root @ root.T / np.outer(scale, scale), P[4:, 4:] / np.outer(scale, scale), atol=1e-7)
    assert tally[0] == STEPS
    assert tally[1] == pytest.approx(squares.sum(), rel=1e-7)
    assert tally[2] == (squares <= 5.99).sum()
    assert recorded.shape == (3, 20, 1)
    np.testing.assert_array_equal(recorded[0, 4:12, 0], START)
    np.testing.assert_allclose(recorded[0, 12:, 0], np.sqrt(VARIANCES), rtol=1e-12)


def problem(observed, noises, free, columns=3):
    rng = np.random.default_rng(5)
    torques, positions = driven(60, columns, 1, (0.5, 0.05), 1e-4)
    measured = positions if observed == 2 else np.concatenate([np.gradient(positions, DT, axis=0), positions], axis=1)
    shape = Shape(2, len(free), 8, observed, noises)
    vectors, fixed = [], []
    for _ in range(columns):
        start = TRUE * rng.uniform(0.9, 1.1, 8) + 0.01
        vector = new_vector(shape, start[free], np.diag(0.1 * np.abs(TRUE[free]) + 0.005) ** 2)
        restart(shape, vector, np.zeros(4), np.full(4, 0.1))
        vectors.append(vector)
        fixed.append(np.concatenate([start, np.full(noises, 0.05), np.full(observed, 1e-2), LAST]))
    return shape, np.column_stack(vectors), np.concatenate([torques, measured], axis=1), np.column_stack(fixed)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize(
    ("observed", "noises", "free"), [(2, 2, list(range(8))), (4, 4, [0, 2, 5]), (4, 2, [1]), (2, 4, [7, 3])]
)
def test_both_engines_give_the_same_numbers(integrator, observed, noises, free):
    shape, vectors, given, fixed = problem(observed, noises, free)
    graph = scara_graph(free)
    results = [
        engine_of(kind, graph, shape, integrator, free).advance(vectors, given, fixed, 3, 7)
        for kind in (LoopEngine, LapackEngine)
    ]
    compiled, lapack = results
    assert compiled[1].shape == lapack[1].shape == (len(range(4, 60, 7)), 4 + 2 * len(free), 3)
    np.testing.assert_allclose(compiled[1], lapack[1], rtol=1e-9, atol=1e-9)
    states = slice(0, 4 + len(free))
    np.testing.assert_allclose(compiled[0][states], lapack[0][states], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(compiled[0][-6:], lapack[0][-6:], rtol=1e-9)


def moving(columns, steps, seed=3):
    """Return some measured motion: positions, velocities before and after each step, accelerations (T, 8, C)."""
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1.0, (steps, 8, columns))


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_both_engines_agree_on_held_directions_slow_joints_and_measured_motion(integrator):
    shape, vectors, given, fixed = problem(2, 2, list(range(8)))
    fixed[-4:-2] = 0.3
    graph = arm_graph(friction_model("scara_2r")[0], NAMES, range(8), loaded=False, held=True)
    inputs = np.concatenate([given, moving(3, len(given))], axis=1)
    compiled, lapack = (
        engine_of(kind, graph, shape, integrator, range(8), measured=True).advance(vectors, inputs, fixed, 0, 7)
        for kind in (LoopEngine, LapackEngine)
    )
    np.testing.assert_allclose(compiled[1], lapack[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(compiled[0][:12], lapack[0][:12], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine_kind", [LoopEngine, LapackEngine])
def test_torques_of_joints_that_stand_still_are_hardly_trusted(engine_kind):
    shape, vectors, given, fixed = problem(2, 2, list(range(8)))
    engine = engine_of(engine_kind, scara_graph(), shape, "rk4", range(8))
    slow, noisy = fixed.copy(), fixed.copy()
    slow[-3] = 1e6  # the second joint's speed of standstill
    noisy[9] *= SLOW_NOISE
    found, expected = (engine.advance(vectors, given, each, 0, 7)[0] for each in (slow, noisy))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine_kind", [LoopEngine, LapackEngine])
def test_a_measured_slow_joint_is_hardly_trusted_whatever_the_filter_believes_of_its_speed(engine_kind):
    shape, vectors, given, fixed = problem(2, 2, list(range(8)))
    engine = engine_of(engine_kind, scara_graph(), shape, "rk4", range(8), measured=True)
    motion = moving(3, len(given))
    motion[:, 2:6] = 1.0
    slow, noisy = motion.copy(), fixed.copy()
    slow[:, 3], slow[:, 5] = 0.2, 1.8  # the second joint is slow before each step; its mean velocity is the same
    fixed[-3], noisy[-3] = 0.5, 0.0
    noisy[9] *= SLOW_NOISE
    found = engine.advance(vectors, np.concatenate([given, slow], axis=1), fixed, 0, 7)[0]
    expected = engine.advance(vectors, np.concatenate([given, motion], axis=1), noisy, 0, 7)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine_kind", [LoopEngine, LapackEngine])
def test_where_a_coupled_motor_stands_still_both_its_joints_are_hardly_trusted(engine_kind):
    shape, vectors, given, fixed = problem(2, 2, list(range(8)))
    graph = scara_graph()
    coupled = replace(graph, coupling=np.array([[1.0, 0.0], [1.0, 1.0]]))
    motion = moving(3, len(given))
    motion[:, 2:6] = np.array([1.0, -1.2, 1.0, -1.2])[:, None]  # the second motor turns with -0.2 rad/s
    inputs = np.concatenate([given, motion], axis=1)
    fixed[-4:-2], noisy = 0.5, fixed.copy()
    noisy[8:10] *= SLOW_NOISE
    plain, found = (
        engine_of(engine_kind, each, shape, "rk4", range(8), measured=True).advance(vectors, inputs, fixed, 0, 7)[0]
        for each in (graph, coupled)
    )
    expected = engine_of(engine_kind, graph, shape, "rk4", range(8), measured=True).advance(
        vectors, inputs, noisy, 0, 7
    )[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert np.abs(found - plain).max() > 1e-3


@pytest.mark.parametrize("engine_kind", [LoopEngine, LapackEngine])
def test_derivatives_along_the_measured_motion_are_the_textbooks_where_it_is_the_predicted_one(engine_kind):
    shape, vectors, given, fixed = problem(4, 2, list(range(8)))
    graph, first = scara_graph(), given[:1]
    plain = engine_of(engine_kind, graph, shape, "euler", range(8)).advance(vectors, first, fixed, 0, 7)[0]
    still = np.zeros((2, 3))
    qdd = compile_batch(graph.acceleration).dense(still, still, first[0, :2], vectors[4:12], still + 1 / WIDTH)[0]
    engine = engine_of(engine_kind, graph, shape, "euler", range(8), measured=True)

    def followed(acceleration):
        motion = np.concatenate([np.zeros((6, 3)), acceleration.reshape(2, 3)])[None]
        return engine.advance(vectors, np.concatenate([first, motion], axis=1), fixed, 0, 7)[0]

    np.testing.assert_allclose(followed(qdd), plain, rtol=1e-9, atol=1e-9)
    assert np.abs(followed(qdd + 1.0)[4:12] - plain[4:12]).max() > 1e-6


@pytest.mark.parametrize("engine_kind", [LoopEngine, LapackEngine])
def test_an_interrupted_run_is_the_same_run(engine_kind):
    shape, vectors, given, fixed = problem(2, 2, list(range(8)))
    engine = engine_of(engine_kind, scara_graph(), shape, "rk4", range(8))
    whole, recorded = engine.advance(vectors, given, fixed, 0, 7)
    state, pieces = vectors, []
    for first, last in ((0, 5), (5, 6), (6, 33), (33, 60)):
        state, piece = engine.advance(state, given[first:last], fixed, first, 7)
        pieces.append(piece)
    np.testing.assert_allclose(state, whole, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.concatenate(pieces), recorded, rtol=1e-12, atol=1e-12)
    assert not np.array_equal(vectors, whole)


@pytest.mark.parametrize("engine_kind", [LoopEngine, LapackEngine])
def test_the_first_bad_step_and_its_reason_are_recorded(engine_kind):
    shape, vectors, given, fixed = problem(2, 2, list(range(8)))
    engine = engine_of(engine_kind, scara_graph(), shape, "rk4", range(8))
    jumped = given.copy()
    jumped[30:, 2, 1] += 50.0
    tally = engine.advance(vectors, jumped, fixed, 0, 7)[0][-6:]
    assert tally[3].tolist() == [-1, 30, -1]
    assert tally[4].tolist() == [0, 2, 0]
    negative = vectors.copy()
    negative[4, 2] = -1.0
    tally = engine.advance(negative, given, fixed, 0, 7)[0][-6:]
    assert tally[3].tolist() == [-1, -1, 0]
    assert tally[4].tolist() == [0, 0, 1]


def test_bands_cover_and_estimates_are_unbiased_where_the_filter_has_the_true_noise():
    columns, steps = 200, 1200
    torque_noise, position_noise = np.array([0.5, 0.03]), 2e-4
    given = np.concatenate(driven(steps, columns, 7, torque_noise, position_noise), axis=1)
    rng = np.random.default_rng(8)
    deviation = 0.05 * np.abs(TRUE) + 0.003
    start = TRUE[:, None] + deviation[:, None] * rng.standard_normal((8, columns))
    shape = Shape(2, 8, 8, 2, 2)
    first = np.array([1e-2, 1e-2, 1e-3, 1e-3])
    vectors = []
    for column in range(columns):
        vector = new_vector(shape, start[:, column], np.diag(deviation**2))
        restart(shape, vector, first * rng.standard_normal(4), first)
        vectors.append(vector)
    noise = np.concatenate([torque_noise, [position_noise, position_noise], LAST])
    fixed = np.concatenate([start, np.repeat(noise[:, None], columns, axis=1)])
    engine = engine_of(LoopEngine, scara_graph(), shape, "rk4", range(8))
    vectors, _ = engine.advance(np.column_stack(vectors), given, fixed, 0, steps)
    values, tally = vectors[4:12], vectors[-6:]
    sigma = np.column_stack([np.linalg.norm(parameter_root(shape, vector), axis=1) for vector in vectors.T])
    assert (tally[3] < 0).all()
    assert (sigma.mean(axis=1) < 0.6 * deviation).sum() >= 6  # the data have said something
    error = (values - TRUE[:, None]) / sigma
    coverage = (np.abs(error) < 1.96).mean()
    assert 0.93 < coverage < 0.97
    assert np.abs(error.mean(axis=1)).max() < 4 / np.sqrt(columns)
    assert np.abs(error.std(axis=1) - 1).max() < 0.2
    assert tally[1].sum() / (2 * steps * columns) == pytest.approx(1.0, abs=0.01)
    assert tally[2].sum() / (steps * columns) == pytest.approx(0.95, abs=0.005)
