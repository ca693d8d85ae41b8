"""Instrumental variables and direct and inverse identification on P1's arm, where least squares errs by seven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from estimate.instruments.disturbed_scara import GAINS, equations, evidence_of, moves, quiet_run, true_values
from steelyard.errors import EstimateError, SimulationError
from steelyard.estimate import generalised
from steelyard.estimate.instruments import InstrumentSettings, direct_and_inverse, instrumental_variables
from steelyard.observe import Preparation
from steelyard.papers.p1_motion import CASES, scara_run
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, recording_of, simulate

METHODS = (instrumental_variables, direct_and_inverse)
REAL = InstrumentSettings(**GAINS)
SEEDS = 4
QUIET = Preparation(20.0, 4, decimation=4, trim=20, standstill=(0.02, 0.1))


@pytest.fixture(scope="module")
def disturbed():
    """Return P1's runs, unfiltered, as evidence: disturbance fed back, second differences of encoder steps."""
    run = scara_run(range(SEEDS), 1.0)
    return run, [evidence_of(recording_of(run, index), CASES["none"]) for index in range(SEEDS)]


def all_values(found) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of all parameters (R, c), and their sigmas, mean over the runs (c,)."""
    return np.array([one.estimate.values for one in found]), np.mean([one.estimate.sigma for one in found], axis=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.large
def test_all_parameters_are_unbiased_where_least_squares_errs_by_a_factor_of_seven(disturbed, method):
    run, evidences = disturbed
    columns = evidences[0].columns
    assert abs(np.mean([e.plain.values[columns.index("ZZ1")] for e in evidences]) - 0.49) < 0.03
    found = [method(evidence, REAL, {}) for evidence in evidences]
    values, sigma = all_values(found)
    truth = np.array([true_values(run)[name] for name in columns])
    # So few runs do not show their spread, so that the sigmas stand for it; that they may is for fifty runs to show.
    assert (np.abs(values.mean(axis=0) - truth) < 4 * sigma / np.sqrt(SEEDS)).all()
    for one in found:
        assert one.endogeneity is not None
        assert one.endogeneity.p < 1e-10
        assert (one.endogeneity.worst, one.endogeneity.worst_z > 20) == ("ZZ1", True)
        assert one.estimate.covariance_kind == "model"
        assert any(note.startswith("least squares of the same rows differs most in ZZ1, by 1") for note in one.notes)


@pytest.mark.large
@pytest.mark.parametrize("case", ["none", "full"])
@pytest.mark.parametrize("method", METHODS)
def test_fifty_seeds_leave_no_bias_and_intervals_cover(method, case):
    """Fs2 of 0.156 is 0.158 +- 0.004 N m: half a control period of hold, which noise-free rows have too."""
    run = scara_run(range(50), 1.0)
    evidences = [evidence_of(recording_of(run, index), CASES[case]) for index in range(50)]
    found = [method(evidence, REAL, {}) for evidence in evidences]
    values, sigma = all_values(found)
    truth = np.array([true_values(run)[name] for name in evidences[0].columns])
    spread = values.std(axis=0, ddof=1)
    assert (np.abs(values.mean(axis=0) - truth) < 4 * spread / np.sqrt(50)).all()
    # Spreads of 50 runs are known to a tenth each; the largest of eight is by chance a quarter above its sigma.
    assert abs(np.mean(spread / sigma) - 1) < 0.15
    assert np.abs(spread / sigma - 1).max() < 0.4
    inside = [np.abs(one.estimate.values - truth) < 1.96 * one.estimate.sigma for one in found]
    assert 0.92 < np.mean(inside) < 0.98


@pytest.mark.large
def test_iterations_converge_from_any_start(disturbed):
    _, evidences = disturbed
    evidence = evidences[0]
    robot = instrumental_variables(evidence, replace(REAL, start="robot"), {})
    prior = {"ZZ1": (5.0, 1.0), "ZZ2": (0.1, 0.1), "MX2": (0.1, 1.0), "MY2": (0.0, 1.0)}
    other = instrumental_variables(evidence, REAL, prior)
    assert robot.notes[0].endswith("iterations of simulation")
    np.testing.assert_allclose(other.estimate.values, robot.estimate.values, atol=0.05 * robot.estimate.sigma.min())
    few = instrumental_variables(evidence, replace(REAL, most_rounds=1), prior)
    assert any(note.startswith("the parameters still change by") for note in few.notes)


@pytest.mark.parametrize("method", METHODS)
def test_a_start_of_no_arm_is_left_for_the_robot_s_own_values(disturbed, method):
    evidence = disturbed[1][0]
    flipped = evidence.plain.values * np.where([name == "ZZ2" for name in evidence.columns], -1.0, 1.0)
    broken = replace(evidence, plain=replace(evidence.plain, values=flipped))
    found = method(broken, replace(REAL, start="wls", most_rounds=2), {})
    assert any("started again from the robot's own values: the inertia matrix" in note for note in found.notes)


@pytest.mark.large
def test_without_correlation_instruments_agree_with_least_squares_and_the_test_is_silent():
    run = quiet_run(12)
    truth = true_values(run)
    settings = InstrumentSettings(control_rate=200)
    distances, errors, p = [], [], []
    for index in range(12):
        evidence = evidence_of(recording_of(run, index), QUIET)
        found = instrumental_variables(evidence, settings, {})
        assert found.endogeneity is not None
        p.append(found.endogeneity.p)
        gls = generalised(evidence.sources, evidence.plain).estimate
        distances.append((found.estimate.values - gls.values) / gls.sigma)
        expected = np.array([truth[name] for name in evidence.columns])
        errors.append((found.estimate.values - expected) / found.estimate.sigma)
    assert np.sqrt(np.mean(np.square(distances))) < 0.3
    assert min(p) > 0.001
    assert np.mean(np.array(p) < 0.1) < 0.4
    assert 0.88 <= np.mean(np.abs(errors) < 1.96) <= 1.0


@pytest.mark.large
def test_intervals_cover_and_p_values_are_uniform_over_many_seeds():
    run = quiet_run(100)
    truth = np.array([true_values(run)[name] for name in equations().names])
    z, p = [], []
    for index in range(100):
        found = instrumental_variables(
            evidence_of(recording_of(run, index), QUIET), InstrumentSettings(control_rate=200), {}
        )
        assert found.endogeneity is not None
        z.append((found.estimate.values - truth) / found.estimate.sigma)
        p.append(found.endogeneity.p)
    assert 0.92 < np.mean(np.abs(z) < 1.96) < 0.97
    assert np.mean(np.array(p) < 0.05) < 0.1


def test_noise_on_recorded_positions_biases_least_squares_and_not_the_instruments():
    """Errors in the rows alone, no feedback: unfiltered second differences shrink the inertias."""
    experiment = Experiment(
        record_rate=100, control_rate=200, plant="ideal",
        motor_noise=Noise("white", (2.0, 0.1)), position_noise=Noise("white", (2e-4, 2e-4)),
    )  # fmt: skip
    run = simulate(load_robot("scara_2r"), moves(10), experiment, range(3))
    raw = Preparation(mode="none", decimation=1, trim=20, standstill=(0.1, 0.5))
    for index in range(3):
        evidence = evidence_of(recording_of(run, index), raw)
        found = instrumental_variables(evidence, InstrumentSettings(control_rate=200), {})
        place = evidence.columns.index("ZZ1")
        truth = true_values(run)["ZZ1"]
        assert evidence.plain.values[place] < 0.5 * truth
        assert abs(found.estimate.values[place] - truth) < 4 * found.estimate.sigma[place] < 0.3 * truth
        assert found.endogeneity is not None
        assert found.endogeneity.p < 1e-10


def test_a_recording_without_reference_is_followed_low_passed_and_said_so():
    run = quiet_run(12)
    evidence = evidence_of(replace(recording_of(run), reference=None), QUIET)
    found = instrumental_variables(evidence, InstrumentSettings(control_rate=200), {})
    assert any(note.startswith("no commanded positions were recorded") for note in found.notes)
    truth = np.array([true_values(run)[name] for name in evidence.columns])
    assert (np.abs(found.estimate.values - truth) < 4 * found.estimate.sigma).all()


def test_gains_that_lose_the_motion_are_an_error_with_what_to_do():
    evidence = evidence_of(recording_of(quiet_run(12)), QUIET)
    wild = InstrumentSettings(control="pd", kp=(-400.0, -12.0), kd=(0.0, 0.0), control_rate=200)
    with pytest.raises(EstimateError, match=r"diverged.*start=robot.*give the gains of the real controller"):
        instrumental_variables(evidence, wild, {})


def test_settings_check_themselves():
    with pytest.raises(EstimateError, match=r"start is 'robots'; allowed: auto, robot, wls.*robot"):
        InstrumentSettings(start="robots")  # type: ignore[arg-type]
    with pytest.raises(EstimateError, match="controller is 'me'"):
        InstrumentSettings(controller="me")  # type: ignore[arg-type]
    with pytest.raises(EstimateError, match="tolerance is nan"):
        InstrumentSettings(tolerance=float("nan"))
    with pytest.raises(EstimateError, match="most_rounds is 0"):
        InstrumentSettings(most_rounds=0)
    with pytest.raises(EstimateError, match="control_rate is -1"):
        InstrumentSettings(control_rate=-1.0)
    with pytest.raises(SimulationError, match="kp and kd belong together"):
        InstrumentSettings(kp=(1.0,))
    with pytest.raises(SimulationError, match="control is 'pid'; allowed: pd, computed_torque"):
        InstrumentSettings(control="pid")
