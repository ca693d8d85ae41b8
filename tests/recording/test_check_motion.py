"""How the arm moves: joints that hardly move or move alike, and standstill, are found; ordinary motion is not."""

from __future__ import annotations

import numpy as np
import pytest

from recording.logs import Motion, kinds, one
from steelyard.recording import recording_from_arrays

NEW = {"hardly_moving", "alike", "stands_still"}


def findings_of(robot, time, q, seed=0):
    noise = np.random.default_rng(seed).normal(0, 1e-5, q.shape)
    return recording_from_arrays(robot, {"time": time, "q": q + noise}).findings


def test_ordinary_motion_raises_nothing(robot, motion):
    assert not NEW & kinds(findings_of(robot, motion.time, motion.q))


@pytest.mark.parametrize(("moved", "severity"), [(0.30, None), (0.06, "warning"), (0.004, "warning")])
def test_a_joint_that_hardly_moves_is_named_with_how_much(robot, motion, moved, severity):
    q = motion.q.copy()
    q[1] *= moved / np.ptp(q[1])
    findings = findings_of(robot, motion.time, q)
    if severity is None:
        assert "hardly_moving" not in kinds(findings)
        return
    found = one(findings, "hardly_moving")
    assert (found.joint, found.severity) == ("elbow", severity)
    assert found.values["moved"] == pytest.approx(moved, rel=0.05)
    assert found.values["part"] == pytest.approx(moved / 4.0, rel=0.05)
    assert "--lock elbow=" in found.remedy


def test_a_joint_held_within_a_few_encoder_steps_is_good_to_know_only(robot, motion):
    q = motion.q.copy()
    q[1] = 1e-3 * np.random.default_rng(0).integers(0, 3, motion.time.size)
    found = one(recording_from_arrays(robot, {"time": motion.time, "q": q}).findings, "hardly_moving")
    assert (found.joint, found.severity) == ("elbow", "info")
    assert "2 steps" in found.text


@pytest.mark.parametrize("sign", [1, -1])
def test_joints_that_move_alike_are_found_whatever_their_sign_and_size(robot, motion, sign):
    q = np.array([motion.q[0], 0.4 * sign * motion.q[0] + 0.2])
    found = one(findings_of(robot, motion.time, q), "alike")
    assert found.severity == "warning"
    assert found.text.startswith("all joints move alike")
    assert found.values["correlation"] > 0.999


@pytest.mark.parametrize(("own", "alike"), [(0.3, False), (0.1, True)])
def test_a_tenth_of_own_motion_does_not_tell_joints_apart(robot, motion, own, alike):
    q = np.array([motion.q[0], 0.5 * motion.q[0] + own * 0.5 * motion.q[1]])
    assert ("alike" in kinds(findings_of(robot, motion.time, q))) == alike


@pytest.mark.parametrize(("share", "severity"), [(0.05, None), (0.3, "info"), (0.7, "warning"), (0.98, "bad")])
def test_standstill_is_measured(robot, share, severity):
    motion = Motion(4000)
    moving = round(4000 * (1 - share))
    q = np.hstack([motion.q[:, :moving], np.repeat(motion.q[:, moving - 1 : moving], 4000 - moving, axis=1)])
    findings = findings_of(robot, motion.time, q)
    if severity is None:
        assert "stands_still" not in kinds(findings)
        return
    found = one(findings, "stands_still")
    assert found.severity == severity
    assert found.values["share"] == pytest.approx(share, abs=0.02)
    assert found.values["start"] == pytest.approx(motion.time[moving], abs=0.4)
    assert found.values["end"] == pytest.approx(20.0, abs=0.4)


def test_a_standstill_over_many_blocks_is_one(robot):
    time = np.arange(60_000) / 1000
    q = np.array([[1.5], [1.0]]) * np.sin(np.array([[1.3], [2.1]]) * np.minimum(time, 20.0))
    found = one(findings_of(robot, time, q), "stands_still")
    assert found.values["start"] == pytest.approx(20.0, abs=0.4)
    assert found.values["end"] == pytest.approx(60.0, abs=0.4)


def test_other_joints_do_not_count_as_hardly_moving_in_a_log_at_rest(robot, motion):
    findings = findings_of(robot, motion.time, np.full_like(motion.q, 0.3))
    assert NEW & kinds(findings) == {"stands_still"}
