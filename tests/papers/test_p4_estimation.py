"""P4's estimation on a random motion: every part against something independent, and able to fail."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.motion import fourier
from steelyard.papers.p4_bench import (
    C1,
    DURATION,
    POSITION_VARIANCE,
    RATE,
    SAMPLES,
    SPRING,
    STANDSTILL,
    bench,
    identified,
    instants,
    measured,
    moved,
    p4_arm,
    simulated,
    solved,
)
from steelyard.papers.p4_estimation import (
    FEW_SAMPLES,
    STRIBECK,
    friction_found,
    low_speed_joints,
    spring_fit,
    study_checks,
)
from steelyard.papers.p4_experiment import FILTER, averaging, filtered, validated, validation_motion
from steelyard.papers.p4_iterated import compared, identified_by_likelihood
from steelyard.simulation.plant import plant_equations, plant_model, true_values


@pytest.fixture(scope="module")
def motion():
    rng = np.random.default_rng(3)
    sin, cos = 0.12 * rng.standard_normal((2, 3, 5))
    return fourier([0.0, -0.8, 0.8], sin, cos, DURATION, ["joint_1", "joint_2", "joint_3"])


@pytest.fixture(scope="module")
def full():
    return bench(p4_arm(SPRING))


@pytest.fixture(scope="module")
def simple():
    return bench(p4_arm())


def test_torques_of_the_bench_are_those_of_the_simulator_s_plant(full, motion):
    model = plant_model(full.equations.model.robot, sign_width=1e-9)
    plant, truth = plant_equations(model), true_values(model)
    values = np.array([truth[name] for name in model.names])
    q, qd, qdd = moved(motion, instants()[::97])
    there = np.array(plant.motor_torque(q, qd, qdd, np.repeat(values[:, None], q.shape[1], axis=1)))
    np.testing.assert_allclose(full.torques((q, qd, qdd)), there, rtol=1e-9, atol=1e-8)


@pytest.mark.large
def test_both_interval_checks_are_near_what_theory_expects_and_fail_where_positions_are_poor(simple, motion):
    right = study_checks(simple, motion, FEW_SAMPLES, repeats=1)
    assert right.means == pytest.approx(0.68, abs=0.35)
    assert right.variances == pytest.approx(0.90, abs=0.2)
    wrong = study_checks(simple, motion, FEW_SAMPLES, repeats=1, position_noise=(1e-2,) * 3)
    assert wrong.means < 0.35


def test_an_arm_simulated_under_control_is_identified_without_bias_once_it_moves(full, motion):
    run = simulated(full, motion)
    q, y = run.q[0], run.motor_torque[0]
    values, covariance = identified(full, q, y, run.time, STANDSTILL)
    assert np.abs((values - full.values) / np.sqrt(np.diag(covariance))).max() < 0.5
    noisy_q, noisy_y = measured(run, 3)
    np.testing.assert_allclose((noisy_y - y).std(axis=1), full.deviations, rtol=0.1)
    np.testing.assert_allclose((noisy_q - q).std(axis=1), np.sqrt(POSITION_VARIANCE), rtol=0.1)


@pytest.mark.large
def test_a_round_of_the_iterated_design_identifies_from_its_simulated_recording(simple, motion):
    found = identified_by_likelihood(simple, motion, seed=0)
    off = (found.values - simple.values) / found.sigma
    assert 0.4 < np.sqrt(np.mean(off**2)) < 1.6
    other = identified_by_likelihood(simple, motion, seed=1)
    assert np.abs(other.values - found.values).max() > 0


def test_maximum_likelihood_and_least_squares_agree_where_positions_are_good(simple, motion):
    good = compared(simple, motion, 1e-5, STANDSTILL, 2)
    bad = compared(simple, motion, 1e-2, 0.0, 6)
    assert good.difference < 1e-4
    assert bad.likelihood < bad.least_squares


def test_sixteen_periods_are_four_times_as_good_as_one(full, motion):
    found = averaging(full, motion, runs=15)
    assert found.gain == pytest.approx(4.0, abs=0.6)
    assert found.variance_ratio == pytest.approx(1.0, abs=0.02)
    assert found.error == pytest.approx(1.0, abs=0.15)


def test_the_anti_alias_filter_is_butterworth_s_and_is_undone(full, motion):
    hertz = np.array([1.0, 10.0, 40.0, 60.0])
    np.testing.assert_allclose(np.abs(FILTER.response(hertz)), 1 / np.sqrt(1 + (hertz / 40.0) ** 16), rtol=1e-9)
    found = filtered(full, motion)
    assert found.plain[0] > 10
    assert found.undone[0] < 0.3 * found.plain[0]
    assert found.alike[0] < 0.5


def test_spring_and_offsets_are_found_and_missed_where_they_are_not_unknown(full, simple, motion):
    found = spring_fit(full, simple, motion)
    np.testing.assert_allclose(found.squares, 1.0, atol=0.15)
    assert (found.without > 1.5).any()
    assert np.abs((found.values - found.true) / found.sigma).max() < 4.5


@pytest.mark.large
def test_the_error_of_a_model_on_unseen_motion_is_that_of_its_covariance(full, motion):
    unseen = validation_motion(np.array([-1.0, -1.5, 0.0]), np.array([1.0, 0.0, 1.5]))
    assert np.abs(unseen.derivatives(np.linspace(0, unseen.duration, 20_000))[2]).max() == pytest.approx(5.0, rel=1e-3)
    found = validated(full, {C1: motion}, unseen, seeds=12, periods=2)
    there, time = simulated(full, unseen), np.arange(SAMPLES) / RATE
    rows = full.rows((there.q[0], there.qd[0], there.qdd[0]))
    q, qd, qdd = moved(motion, time)
    moving = (np.abs(qd) >= STANDSTILL).all(axis=0)
    weighted = full.weighted([part[:, moving] for part in (q, qd, qdd)])
    covariance = solved(weighted, weighted @ full.values)[1] / 2
    expected = np.einsum("enc,cd,end->en", rows, covariance, rows).mean(axis=1)
    np.testing.assert_allclose(found.model_error[C1], expected, rtol=0.6)
    assert found.worst < 5
    assert (found.residual[C1] > found.model_error[C1]).all()


def test_friction_at_low_speed_is_named_where_there_is_some_and_only_there(full, motion):
    found = friction_found(full, motion)
    wanted = [f"joint_{axis}" for axis, size in enumerate(STRIBECK, 1) if size]
    assert low_speed_joints(found.with_stribeck) == wanted
    assert low_speed_joints(found.without) == []
