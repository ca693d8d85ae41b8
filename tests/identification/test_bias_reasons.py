"""Torques that are not in time lower the grade, and the joint that is late is the one that is named."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from simulated_experiments import scara
from steelyard.consistency import ConsistencySettings
from steelyard.errors import SteelyardError
from steelyard.identification import Identification, Settings, identify, settings_from_table
from steelyard.observe import Preparation
from steelyard.recording import Recording
from steelyard.verdict import Reason

SETTINGS = Settings(
    select=False,
    bias_repeats=1,
    consistency=ConsistencySettings(draws=20),
    preparation=Preparation(decimation=1, cutoff=10.0),
)
LATE = 0.02


def late(recording: Recording, joints: tuple[int, ...]) -> Recording:
    """Return the recording with torques of some joints that come 20 ms late."""
    channel, time = recording.torques[0], recording.time
    values = channel.values.copy()
    for joint in joints:
        values[joint] = np.interp(time - LATE, time, values[joint])
    return replace(recording, torques=(replace(channel, values=values), *recording.torques[1:]), sources=())


@cache
def identified(joints: tuple[int, ...], delay: float = 0.0) -> Identification:
    settings = replace(SETTINGS, preparation=replace(SETTINGS.preparation, delay=delay))
    return identify("scara_2r", [late(scara(3), joints)], [late(scara(1), joints)], settings)


def reasons(found: Identification, question: str = "plausible") -> list[Reason]:
    return [one for one in found.verdict.reasons if one.criterion == "delay" and one.question == question]


@pytest.mark.parametrize("joint", [0, pytest.param(1, marks=pytest.mark.large)])
def test_one_late_joint_is_named_alone_and_leaves_no_good_result(joint):
    found = identified((joint,))
    assert found.verdict.grade != "good"
    reason = reasons(found)[0]
    assert reason.grade == "fair"
    assert f"joint_{joint + 1} (motor) late by" in reason.text
    assert f"joint_{2 - joint}" not in reason.text
    assert "identify with --delay" not in reason.remedy
    assert f"identify with --joint-delay joint_{joint + 1}=0.0" in reason.remedy


def test_following_the_remedy_of_one_late_joint_puts_it_back_in_time():
    flag = re.search(r"--joint-delay joint_2=(\S+);", reasons(identified((1,)))[0].remedy)
    assert flag is not None
    assert float(flag[1]) == pytest.approx(LATE, rel=0.1)
    preparation = settings_from_table({"joint_delays": {"joint_2": float(flag[1])}}).preparation
    settings = replace(SETTINGS, preparation=replace(SETTINGS.preparation, joint_delays=preparation.joint_delays))
    found = identify("scara_2r", [late(scara(3), (1,))], [late(scara(1), (1,))], settings)
    assert found.verdict.grade == "good"
    assert not any(reason.grade or "late" in reason.text for reason in reasons(found))
    assert found.to_json()["preparation"]["joint_delays"] == {"joint_2": float(flag[1])}


@pytest.mark.parametrize(
    ("delays", "message"),
    [({"elbow": 0.01}, "delay of 'elbow': there is no such joint"), ({"joint_1": 8.0}, "delay of joint_1: got 8 s")],
)
def test_delays_of_unknown_joints_and_in_milliseconds_are_refused(delays, message):
    with pytest.raises(SteelyardError, match=message):
        identify("scara_2r", [scara(3)], [scara(1)], settings_from_table({"joint_delays": delays}))


def test_parameters_that_a_delay_moves_out_of_their_intervals_are_named():
    found = identified((1,))
    (reason,) = reasons(found, "known")
    assert reason.grade == "fair"
    assert "Fvm2" in reason.text
    assert found.verdict.questions["known"] != "good"


def test_a_delay_of_all_is_still_told_with_its_remedy():
    reason = reasons(identified((0, 1)))[0]
    assert reason.grade == "fair"
    assert "on all joints together" in reason.text
    assert "identify with --delay 0.0" in reason.remedy


def test_a_correction_of_all_for_one_late_joint_is_told_to_be_left_out():
    reason = reasons(identified((1,), LATE))[0]
    assert "joint_1 (motor) early by" in reason.text
    assert reason.remedy.startswith("identify without --delay")


def test_torques_in_time_stay_good():
    found = identified(())
    assert found.verdict.grade == "good"
    assert not any(reason.grade for reason in found.verdict.reasons if reason.criterion == "delay")
    assert not any("late" in reason.text for reason in reasons(found))


def with_late_positions(recording: Recording, joints: tuple[int, ...]) -> Recording:
    """Return the recording with positions of some joints that come 20 ms late."""
    q, time = recording.q.copy(), recording.time
    for joint in joints:
        q[joint] = np.interp(time - LATE, time, q[joint])
    return replace(recording, q=q, qd=None, sources=())


@pytest.mark.large
def test_positions_that_are_all_late_are_not_called_early_torques_alone_and_the_remedy_gives_the_same_parameters():
    logs = [with_late_positions(scara(seed), (0, 1)) for seed in (3, 1)]
    (first, *_) = reasons(identify("scara_2r", logs[:1], logs[1:], SETTINGS))
    assert "early against positions" in first.text
    assert "or positions late" in first.text
    assert "late stamp or filter of the positions first" in first.remedy
    delay = float(first.remedy.split("--delay ")[1].split(",")[0])
    assert delay == pytest.approx(-0.02, abs=0.002)
    corrected = replace(SETTINGS, preparation=replace(SETTINGS.preparation, delay=delay))
    shifted = identify("scara_2r", logs[:1], logs[1:], corrected)
    right = identify("scara_2r", [scara(3)], [scara(1)], SETTINGS)
    difference = np.abs(shifted.estimate.values - right.estimate.values)
    assert np.all(difference < 3 * right.estimate.sigma)


def test_a_delay_that_validation_does_not_have_is_not_to_be_corrected_in_all_logs():
    found = identify("scara_2r", [with_late_positions(scara(3), (0, 1))], [scara(1)], SETTINGS)
    (first, *_) = reasons(found)
    assert "mend the stamps of the recordings of the fit" in first.remedy
    assert "would move 'recording 2' too" in first.remedy


@pytest.mark.large
def test_the_late_position_of_one_joint_is_not_called_an_early_torque():
    logs = [with_late_positions(scara(seed), (1,)) for seed in (3, 1)]
    (first, *_) = reasons(identify("scara_2r", logs[:1], logs[1:], SETTINGS))
    assert "the position of joint_2 is late against all torques, by" in first.text
    assert "no --joint-delay corrects this" in first.remedy
