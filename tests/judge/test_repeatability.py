"""Recordings fitted alone against all of them together."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest

from steelyard.estimate import weighted
from steelyard.identification import Settings, identify
from steelyard.judge import repeatability
from steelyard.motion import limits_of, quintic, quintic_profile, random_points
from steelyard.observe import Factor, Fingerprint, Observations, RecordingInfo
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, recording_of, simulate

COLUMNS = ("Fv1", "Fc1", "ZZ2", "MX2", "MY2", "ML")
ARM = COLUMNS[:-1]
TRUTH = np.array([1.0, 2.0, 0.5, 0.3, -0.2, 4.0])
SIGMA = 0.5
ROWS = 200


def recording(label, rng, truth=TRUTH, columns=COLUMNS, mix=None):
    """Return two equations of one recording as factors: random regressors, white noise."""
    factors = []
    index = [COLUMNS.index(name) for name in columns]
    for joint in ("j1", "j2"):
        W = rng.standard_normal((ROWS, len(columns)))
        if mix is not None:
            W = mix(W)
        y = W @ truth[index] + SIGMA * rng.standard_normal(ROWS)
        triangle = np.asarray(np.linalg.qr(np.column_stack([W, y]), mode="r"))
        factors.append(Factor(label, "motor", joint, 0, tuple(columns), triangle, ROWS))
    return factors


def observations(*recordings):
    factors = tuple(factor for parts in recordings for factor in parts)
    labels = dict.fromkeys(factor.recording for factor in factors)
    infos = tuple(RecordingInfo(label, (label,), None, ROWS) for label in labels)
    return Observations(Fingerprint(*("alike" for _ in fields(Fingerprint))), factors, infos)


def judged(data):
    result = alone_and_together(data)
    assert result is not None
    return result


def alone_and_together(data):
    deviations = {(f.recording, f.kind, f.joint): SIGMA for f in data.factors}
    estimate = weighted(data, COLUMNS, deviations)
    return repeatability(data, estimate, dict.fromkeys(deviations, 1 / SIGMA))


def test_the_spread_of_consistent_recordings_is_one_on_average():
    rng = np.random.default_rng(0)
    squares, per_recording = [], []
    for _ in range(200):
        result = judged(observations(*(recording(label, rng) for label in "abc")))
        assert dict(result.compared) == dict.fromkeys("abc", len(COLUMNS))
        squares.append(result.spread**2)
        per_recording += [spread**2 for spread in result.recordings.values()]
    # 200 experiments of 12 independent z^2: the mean has a standard deviation of sqrt(2 / 2400).
    assert np.mean(squares) == pytest.approx(1, abs=0.1)
    assert np.mean(per_recording) == pytest.approx(1, abs=0.1)


def test_other_friction_in_one_recording_is_detected_and_named():
    rng = np.random.default_rng(1)
    warm = TRUTH - np.array([0.5, 0, 0, 0, 0, 0])
    result = judged(observations(recording("a", rng), recording("cold", rng), recording("warm", rng, warm)))
    assert result.spread > 4
    assert (result.worst_column, result.worst_recording) == ("Fv1", "warm")
    assert result.worst_z < -10
    assert result.recordings["warm"] == max(result.recordings.values())


def test_columns_that_a_recording_does_not_have_are_not_compared_there():
    rng = np.random.default_rng(2)
    data = observations(recording("free", rng, columns=ARM), recording("loaded", rng), recording("loaded 2", rng))
    result = judged(data)
    assert dict(result.compared) == {"free": 5, "loaded": 6, "loaded 2": 6}


def test_columns_that_a_recording_sees_only_together_are_not_compared_there():
    def payload_and_link_alike(W):
        W[:, -1] = 2 * W[:, 3]
        return W

    rng = np.random.default_rng(3)
    spreads = []
    for _ in range(100):
        data = observations(recording("free", rng, columns=ARM), recording("loaded", rng, mix=payload_and_link_alike))
        result = judged(data)
        # MX2 and ML are one column in the loaded recording, which says nothing of either alone.
        assert dict(result.compared) == {"free": 5, "loaded": 4}
        spreads.append(result.spread**2)
    assert np.mean(spreads) == pytest.approx(1, abs=0.2)


def test_larger_sigmas_make_the_same_differences_smaller():
    rng = np.random.default_rng(4)
    data = observations(recording("a", rng), recording("b", rng))
    deviations = {(f.recording, f.kind, f.joint): SIGMA for f in data.factors}
    weights = dict.fromkeys(deviations, 1 / SIGMA)
    estimate = weighted(data, COLUMNS, deviations)
    wide = type(estimate)(
        estimate.method,
        estimate.system,
        estimate.values,
        4 * estimate.covariance,
        "model",
        estimate.freedom,
        deviations,
    )
    narrow, broad = (repeatability(data, one, weights) for one in (estimate, wide))
    assert narrow is not None
    assert broad is not None
    assert broad.spread == pytest.approx(narrow.spread / 2, rel=1e-12)


def test_one_recording_is_not_judged():
    assert alone_and_together(observations(recording("alone", np.random.default_rng(5)))) is None


def test_noise_within_a_recording_counts_with_its_share_of_the_difference():
    """A gain for each recording: slow noise in one of them widens its own scores and those of the other."""
    rng = np.random.default_rng(6)
    data = observations(recording("a", rng), recording("b", rng))
    deviations = {(f.recording, f.kind, f.joint): SIGMA for f in data.factors}
    estimate, weights = weighted(data, COLUMNS, deviations), dict.fromkeys(deviations, 1 / SIGMA)
    ones = np.ones(len(COLUMNS))
    alike = repeatability(data, estimate, weights, {"a": ones, "b": ones})
    unlike = repeatability(data, estimate, weights, {"a": ones, "b": 7 * ones})
    assert alike is not None
    assert unlike is not None
    # Both have about half of the information: the variance of their difference is 1 + 7 instead of 1 + 1.
    assert unlike.spread == pytest.approx(alike.spread / 2, rel=0.1)
    assert unlike.recordings["a"] == pytest.approx(unlike.recordings["b"], rel=0.1)


PAYLOAD = (0.02, 0.0, 0.0, 0.02, 0.0, 0.004, 0.05, 0.02, 0.16, 2.0)


@cache
def simulated(name, seed, loaded=False, gain=None, factor=0.9):
    """Return an undeclared recording of an arm, noise a hundredth of the torques; a joint's torques may be scaled."""
    robot = replace(load_robot(name), payloads={"tool": PAYLOAD})
    points = random_points(limits_of(robot), 8, 2.0, quintic_profile(), np.random.default_rng(seed))
    experiment = Experiment(
        plant="ideal", control_rate=200, record_rate=200, encoder_quantum=1e-6, payload="tool" if loaded else None
    )
    run = simulate(robot, quintic(points, 2.0, [body.joint.name for body in robot.actuated]), experiment, [seed])
    clean, rng, torques = recording_of(run), np.random.default_rng(seed), []
    for channel in clean.torques:
        size = 0.01 * np.sqrt((channel.values**2).mean(axis=1, keepdims=True))
        values = channel.values + size * rng.standard_normal(channel.values.shape)
        if gain is not None:
            values[gain] *= factor
        torques.append(replace(channel, values=values))
    return replace(clean, torques=tuple(torques), payload=None)


def identified(name, *recordings, select=False):
    return identify(load_robot(name), recordings, settings=Settings(select=select, bias_repeats=0))


@pytest.mark.parametrize("name", ["scara_2r", pytest.param("ur10e", marks=pytest.mark.large)])
@pytest.mark.parametrize(("first", "select"), [(False, False), (True, True)])
def test_an_undeclared_payload_in_one_recording_is_named_before_any_reduction(name, first, select):
    result = identified(name, simulated(name, 1, loaded=first), simulated(name, 2, loaded=not first), select=select)
    assert result.disagreement is not None
    assert (result.disagreement.recording, result.disagreement.cause) == (
        "recording 1" if first else "recording 2",
        "payload",
    )
    assert "about 2 kg" in result.disagreement.text
    assert result.repeatability is not None
    assert result.repeatability.spread > 10
    # Nothing is left out because recordings disagree, and the record says why.
    assert result.reduction.steps == ()
    assert "disagree" in result.reduction.stopped
    assert result.unseen_error.relative_percent == result.unseen_error_of_all.relative_percent
    content = result.to_json()
    assert content["repeatability"]["disagreement"]["cause"] == "payload"
    assert content["reduction"]["stopped"] == result.reduction.stopped


@pytest.mark.parametrize(
    ("name", "joint", "select"),
    [
        ("scara_2r", 0, False),
        ("scara_2r", 1, True),
        *(pytest.param("ur10e", k, True, marks=pytest.mark.large) for k in (0, 1, 5)),
    ],
)
def test_a_gain_of_one_joint_in_one_recording_is_named(name, joint, select):
    result = identified(name, simulated(name, 1), simulated(name, 2, gain=joint), select=select)
    joints = [body.joint.name for body in load_robot(name).actuated]
    assert result.disagreement is not None
    assert result.disagreement.cause == f"gain of joint '{joints[joint]}'"
    assert "0.9 times as large in 'recording 2'" in result.disagreement.text


@pytest.mark.parametrize("name", ["scara_2r", pytest.param("ur10e", marks=pytest.mark.large)])
def test_recordings_of_one_arm_agree(name):
    result = identified(name, simulated(name, 1), simulated(name, 2))
    assert result.disagreement is None
    assert result.repeatability is not None
    assert result.repeatability.spread < 2
    assert result.reduction.stopped == "" or result.reduction.steps


def with_more_torque(log, more):
    torques = tuple(replace(c, values=c.values + more) for c in log.torques)
    return replace(log, torques=torques)


@pytest.mark.parametrize(
    ("more", "whose", "select"), [((3.0, 0.3), "all joints", False), ((0.0, 0.3), "joint 'joint_2'", True)]
)
def test_recordings_that_differ_in_friction_are_named(more, whose, select):
    """Neither a payload nor a gain explains that."""
    other = simulated("scara_2r", 2)
    speed = np.gradient(other.q, other.time, axis=1)
    other = with_more_torque(other, np.array(more)[:, None] * np.sign(speed))
    result = identified("scara_2r", simulated("scara_2r", 1), other, select=select)
    assert result.disagreement is not None
    assert result.disagreement.cause == f"friction of {whose}"
    assert result.disagreement.explained > 0.9
    assert {f"Fcm{k + 1}" for k in range(2) if more[k]} <= set(result.disagreement.columns)


def test_recordings_that_differ_in_more_than_one_cause_are_named_without_one():
    """A gain of the first joint, friction of the second: neither explains three quarters."""
    other = simulated("scara_2r", 2, gain=0)
    speed = np.gradient(other.q, other.time, axis=1)
    other = with_more_torque(other, np.array([[0.0], [0.05]]) * np.sign(speed))
    result = identified("scara_2r", simulated("scara_2r", 1), other)
    assert result.disagreement is not None
    assert result.disagreement.cause == ""
    assert result.disagreement.text.endswith("neither a payload nor a torque gain nor friction explains it")
