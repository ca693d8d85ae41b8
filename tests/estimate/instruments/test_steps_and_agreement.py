"""Arms that no parameters belong to, and controllers that are not the real one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from estimate.instruments.disturbed_scara import GAINS, evidence_of, quiet_run, true_values
from simulated_experiments import lwr4, scara
from steelyard.errors import EstimateError
from steelyard.estimate.instruments import InstrumentSettings, direct_and_inverse, instrumental_variables
from steelyard.estimate.instruments.iterations import Steps
from steelyard.estimate.instruments.simulated import SimulatedMotion
from steelyard.identification import Settings, fit_arm
from steelyard.observe import Preparation
from steelyard.papers.p1_motion import CASES, scara_run
from steelyard.robot import load_robot
from steelyard.simulation import recording_of

METHODS = (instrumental_variables, direct_and_inverse)
REAL = InstrumentSettings(**GAINS)
QUICK = InstrumentSettings(control_rate=200)
WARNING = "the simulated controller is not the real one; give control, kp, kd"


def said(found) -> str:
    (note,) = [note for note in found.notes if note.startswith("simulated positions differ")]
    return note


@pytest.mark.parametrize("method", METHODS)
def test_a_controller_that_is_not_the_real_one_is_said(method):
    evidence = evidence_of(scara(3), Preparation())
    right, wrong = said(method(evidence, REAL, {})), said(method(evidence, InstrumentSettings(), {}))
    assert WARNING not in right
    assert wrong.endswith(WARNING)
    assert " rad rms on joint_" in wrong
    assert float(wrong.split(", ")[1].split()[0]) > 20


@pytest.mark.large
def test_disturbances_that_the_loop_feeds_back_explain_the_distance_of_the_right_controller():
    """Encoder steps of 0.0006 rad alone would not: positions are 0.0013 rad apart."""
    run = scara_run(range(1), 1.0)
    evidence = evidence_of(recording_of(run), CASES["full"])
    right = said(instrumental_variables(evidence, REAL, {}))
    assert 0.7 < float(right.split(", ")[1].split()[0]) < 1.4
    soft = replace(REAL, kp=(300.0, 9.0))
    assert said(instrumental_variables(evidence, soft, {})).endswith(WARNING)


def test_without_a_reference_computed_torque_keeps_to_the_measured_motion_and_pd_does_not():
    evidence = evidence_of(replace(scara(3), reference=None), Preparation())
    assert said(direct_and_inverse(evidence, InstrumentSettings(), {})).endswith("times what noise explains")
    lagging = said(direct_and_inverse(evidence, REAL, {}))
    assert lagging.endswith("declare a reference channel, or simulate control computed_torque")


def test_a_step_towards_no_arm_goes_a_part_of_the_way():
    evidence = evidence_of(recording_of(quiet_run(12)), Preparation())
    truth = true_values(quiet_run(12))
    steps = Steps(SimulatedMotion(evidence, QUICK), truth)
    target = np.array([truth[name] * (-0.5 if name == "ZZ2" else 1.0) for name in evidence.columns])
    assert steps.towards(evidence.columns, target)
    assert steps.shortened
    # Halved until ZZ2 is above what keeps M positive definite: 1, 1/2 are too far (-0.5, 0.25).
    assert 0 < steps.values["ZZ2"] < truth["ZZ2"]
    assert steps.note(0.3)[0].startswith("the arm was simulated with parameters 0.3 short of those found: the inertia")
    assert steps.towards(evidence.columns, np.array([truth[name] for name in evidence.columns]))
    assert not steps.shortened
    assert steps.note(0.3) == ()


def test_parameters_of_no_arm_are_approached_and_said():
    """Torques of joint 2 turned round: least squares wants a negative inertia, which cannot be simulated."""
    recording = recording_of(quiet_run(12))
    turned = tuple(replace(c, values=c.values * [[1.0], [-1.0]]) for c in recording.torques)
    evidence = evidence_of(replace(recording, torques=turned), Preparation(20.0, 4, decimation=4, trim=20))
    found = instrumental_variables(evidence, QUICK, {})
    assert found.estimate.values[evidence.columns.index("ZZ2")] < 0
    assert any("short of those found: the inertia matrix" in note for note in found.notes)
    with pytest.raises(
        EstimateError, match=r"the parameters still change by .*: the inertia matrix .*; start from the robot"
    ):
        direct_and_inverse(evidence, QUICK, {})


@pytest.fixture(scope="module")
def paired():
    recordings = [lwr4(1, moves=5), lwr4(2, "P5", moves=5)]
    return recordings, fit_arm(load_robot("kuka_lwr4"), recordings, Settings(method="gls"))


@pytest.mark.large
@pytest.mark.parametrize("method", ["iv", pytest.param("didim", marks=pytest.mark.large)])
def test_recordings_without_and_with_a_payload_agree_with_generalised_least_squares(paired, method):
    """Exact encoders, noise on torques alone: nothing correlates, so all methods must agree."""
    recordings, gls = paired
    robot = load_robot("kuka_lwr4")
    found = fit_arm(robot, recordings, Settings(method=method, options={"iv": QUICK}), equations=gls.equations).fit
    expected = gls.fit.estimate
    assert found.estimate.columns == expected.columns
    assert np.sqrt(np.mean(((found.estimate.values - expected.values) / expected.sigma) ** 2)) < 0.5
    place = expected.columns.index("ML")
    assert abs(found.estimate.values[place] - robot.payloads["P5"][9]) < 4 * found.estimate.sigma[place]


@pytest.mark.parametrize("method", METHODS)
def test_recorded_velocities_are_simulated_too(method):
    run = quiet_run(12)
    recording = replace(recording_of(run), qd=run.qd[0])
    evidence = evidence_of(recording, Preparation(20.0, 4, velocity="recorded", decimation=4, trim=20))
    found = method(evidence, QUICK, {})
    truth = np.array([true_values(run)[name] for name in evidence.columns])
    assert (np.abs(found.estimate.values - truth) < 4 * found.estimate.sigma).all()


@pytest.mark.parametrize("method", METHODS)
def test_positions_behind_elastic_joints_are_wound_up_alike(method):
    """Motor positions wound up by the measured torques: the preparation takes that off, and nothing is left of it."""
    rigid = recording_of(quiet_run(12))
    stiffness = (2e3, 5e2)
    torque = replace(rigid.torques[0], kind="joint_torque", name="joint_torque")
    rigid = replace(rigid, torques=(*rigid.torques, torque))
    wound = replace(rigid, q=rigid.q + torque.values / np.array(stiffness)[:, None])
    chosen = Preparation(20.0, 4, decimation=4, trim=20, standstill=(0.02, 0.1), rate=100.0)
    plain = method(evidence_of(rigid, chosen), QUICK, {})
    elastic = method(evidence_of(wound, replace(chosen, stiffness=stiffness)), QUICK, {})
    np.testing.assert_allclose(elastic.estimate.values, plain.estimate.values, atol=0.02 * plain.estimate.sigma.min())
    np.testing.assert_allclose(elastic.estimate.sigma, plain.estimate.sigma, rtol=0.02)


@pytest.mark.parametrize("method", [pytest.param("iv", marks=pytest.mark.large), "didim"])
def test_two_recordings_tell_more_than_one(method):
    robot, settings = load_robot("scara_2r"), Settings(method=method, options={"iv": REAL})
    one = fit_arm(robot, [scara(3)], settings)
    both = fit_arm(robot, [scara(3), scara(4)], settings, equations=one.equations).fit
    gls = fit_arm(robot, [scara(3), scara(4)], Settings(method="gls"), equations=one.equations).fit.estimate
    assert (both.estimate.sigma < 0.95 * one.fit.estimate.sigma).all()
    assert both.estimate.columns == gls.columns
    assert np.abs((both.estimate.values - gls.values) / both.estimate.sigma).max() < 3
