"""The model-free checks find what was put in, say how much of it, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from recording.logs import Motion, kinds, one
from steelyard.errors import RecordingError
from steelyard.recording import check_recording, read_recording, recording_from_arrays, setup_from_table
from steelyard.recording import checks as checks_module
from steelyard.recording.assembly import Unwrapper
from steelyard.recording.checks import time_steps
from steelyard.recording.record import Samples
from steelyard.recording.units import QUANTITIES, si_scale
from steelyard.robot import load_robot, read_urdf
from steelyard.signals.sampling import GAP_INTERVALS


def findings_of(robot, arrays, **table):
    return recording_from_arrays(robot, arrays, setup_from_table(table)).findings


def test_a_clean_recording_has_nothing_to_look_at(robot, motion):
    findings = findings_of(robot, motion.arrays())
    assert kinds(findings, "warning", "bad") == set()
    values = one(findings, "jitter").values
    assert values["median"] == pytest.approx(0.005, rel=1e-12)
    assert values["rms"] < 1e-9


def test_jitter_is_measured(robot, motion):
    arrays = motion.arrays()
    noise = np.random.default_rng(1).uniform(-1e-3, 1e-3, motion.time.size)
    arrays["time"] = motion.time + noise
    finding = one(findings_of(robot, arrays), "jitter")
    steps = np.diff(arrays["time"])
    assert finding.severity == "warning"
    assert finding.values["median"] == pytest.approx(np.median(steps), rel=2e-3)
    assert (finding.values["min"], finding.values["max"]) == (steps.min(), steps.max())
    near = steps[steps <= 1.5 * np.median(steps)]
    assert finding.values["rms"] == pytest.approx(np.sqrt(np.mean((near - 0.005) ** 2)), rel=0.02)


def test_lost_samples_are_counted(robot, motion):
    lost = np.concatenate([[400], np.arange(900, 907), [1500, 1502]])
    arrays = {name: np.delete(values, lost, axis=-1) for name, values in motion.arrays().items()}
    finding = one(findings_of(robot, arrays), "gap")
    assert finding.count == 10
    assert finding.where[0] == motion.time[899]
    assert finding.values["longest"] == pytest.approx(0.04)
    assert finding.values["gaps"] == 4
    assert finding.remedy.endswith("to bridge these, set max_gap = 0.044 under [identify]")


def test_gaps_are_bridged_by_default_or_by_max_gap_or_too_long_for_it(robot, motion):
    assert time_steps.BRIDGED == GAP_INTERVALS
    for lost, expected in ((2, ""), (6, "set max_gap = 0.039 under"), (60, 'rows = "first:last" in [recording]')):
        keep = np.delete(np.arange(motion.time.size), np.arange(900, 900 + lost))
        remedy = one(findings_of(robot, {"time": motion.time[keep], "q": motion.q[:, keep]}), "gap").remedy
        assert expected in remedy if expected else not remedy


def test_a_late_stamp_is_not_a_lost_sample(robot, motion):
    arrays = motion.arrays()
    arrays["time"] = motion.time.copy()
    arrays["time"][500] += 0.003
    assert "gap" not in kinds(findings_of(robot, arrays))


def test_repeated_and_backward_stamps_are_left_out_and_counted(robot, motion):
    arrays = motion.arrays()
    arrays["time"] = motion.time.copy()
    arrays["time"][100] = arrays["time"][99]
    arrays["time"][200] = arrays["time"][190]
    recording = recording_from_arrays(robot, arrays)
    assert one(recording.findings, "duplicate_stamp").count == 1
    assert one(recording.findings, "backward_stamp").where == (motion.time[190],)
    assert recording.samples == motion.time.size - 2
    assert (np.diff(recording.time) > 0).all()


@pytest.mark.parametrize(("factor", "unit"), [(1e3, "ms"), (1e6, "us"), (1e9, "ns"), (1e-6, "s")])
def test_stamps_in_another_unit_are_found_by_their_size(robot, motion, factor, unit):
    finding = one(findings_of(robot, {"time": motion.time * factor, "q": motion.q}), "time_unit")
    assert finding.severity == "bad"
    assert f"declare time_unit = '{unit}'" in finding.remedy


def test_rows_without_a_number_are_left_out_and_counted_by_joint(robot, motion):
    arrays = {name: values.copy() for name, values in motion.arrays().items()}
    arrays["q"][1, [3, 5]] = np.nan
    arrays["joint_torque"][0, 7] = np.inf
    arrays["time"][9] = np.nan
    recording = recording_from_arrays(robot, arrays)
    assert recording.samples == motion.time.size - 4
    missing = one(recording.findings, "not_a_number", "elbow")
    assert (missing.count, missing.where, missing.where_unit) == (2, (4.0, 6.0), "row")
    infinite = one(recording.findings, "infinite")
    assert (infinite.joint, infinite.channel, infinite.count) == ("shoulder", "joint_torque", 1)
    assert one([f for f in recording.findings if f.channel == "time"], "not_a_number").where == (10.0,)


def test_a_jump_is_found_where_it_is(robot, motion):
    arrays = motion.arrays()
    arrays["q"] = motion.q.copy()
    arrays["q"][0, 700:] += 0.4
    finding = one(findings_of(robot, arrays), "jump")
    assert (finding.joint, finding.count, finding.where) == ("shoulder", 1, (motion.time[700],))


def test_an_encoder_that_wraps_is_found_and_undone_when_asked(robot, motion):
    arrays = {"time": motion.time, "q": motion.q + 3.0}
    wrapped = {**arrays, "q": (arrays["q"] + np.pi) % (2 * np.pi) - np.pi}
    expected = np.count_nonzero(np.abs(np.diff(wrapped["q"])) > 3, axis=1)
    findings = findings_of(robot, wrapped)
    assert [one(findings, "wrap", joint).count for joint in ("shoulder", "elbow")] == expected.tolist()
    recording = recording_from_arrays(robot, wrapped, setup_from_table({"q": {"columns": "q", "unwrap": True}}))
    np.testing.assert_allclose(recording.q, np.unwrap(wrapped["q"], axis=1), atol=1e-12)
    assert one(recording.findings, "unwrapped", "elbow").count == expected[1]
    assert "wrap" not in kinds(recording.findings)


def test_constant_channels_are_named(robot, motion):
    arrays = {**motion.arrays(), "joint_torque": motion.tau * [[1], [0]]}
    finding = one(findings_of(robot, arrays), "constant")
    assert (finding.channel, finding.joint, finding.severity) == ("joint_torque", "elbow", "warning")


def test_positions_outside_the_limits_are_counted(robot, motion):
    findings = findings_of(robot, {"time": motion.time, "q": motion.q + np.array([[0], [1.2]])})
    finding = one(findings, "outside_limits")
    assert finding.joint == "elbow"
    assert finding.count == np.count_nonzero(motion.q[1] + 1.2 > 2.0 + 0.005)


def test_degrees_taken_for_radians_are_found_by_their_size(robot, motion):
    degrees = {"time": motion.time, "q": np.degrees(motion.q)}
    findings = findings_of(robot, degrees)
    assert one(findings, "degrees").severity == "bad"
    assert one(findings, "degrees").fix == {"recording.q.unit": {"shoulder": "deg", "elbow": "deg"}}
    assert "outside_limits" not in kinds(findings)
    assert "degrees" not in kinds(findings_of(robot, degrees, q={"columns": "q", "unit": "deg"}))


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("velocities", ["none", "rad/s", "deg/s"])
def test_a_single_joint_in_degrees_is_named_with_its_unit_and_the_velocity_that_agrees(robot, motion, row, velocities):
    factor = np.where(np.arange(2) == row, 180 / np.pi, 1.0)[:, None]
    arrays = {"time": motion.time, "q": factor * motion.q}
    if velocities != "none":
        arrays["qd"] = (factor if velocities == "deg/s" else 1.0) * motion.qd
    findings = findings_of(robot, arrays)
    (joint, other), units = ("shoulder", "elbow")[:: 1 - 2 * row], ["deg", "rad"][:: 1 - 2 * row]
    finding = one(findings, "degrees", joint)
    assert finding.severity == "bad"
    assert f"positions of {joint} reach" in finding.text
    assert f"unit = {units} " in finding.remedy
    expected = {"recording.q.unit": {joint: "deg"}}
    assert finding.fix == expected | ({"recording.qd.unit": {joint: "deg/s"}} if velocities == "deg/s" else {})
    assert not [found for found in findings if found.kind == "degrees" and found.joint == other]


def test_velocities_show_that_a_joint_that_moves_by_few_degrees_is_in_degrees_too(robot, motion):
    little = np.array([[1.0], [0.01]])
    arrays = {"time": motion.time, "q": np.degrees(little * motion.q)}
    assert one(findings_of(robot, arrays), "degrees").fix == {"recording.q.unit": {"shoulder": "deg"}}
    finding = one(findings_of(robot, {**arrays, "qd": little * motion.qd}), "degrees")
    assert finding.fix == {"recording.q.unit": {"shoulder": "deg", "elbow": "deg"}}


def test_positions_of_motors_taken_for_those_of_joints_are_found_by_their_size(robot, motion):
    geared, time = load_robot("staubli_tx40"), np.arange(0.0, 4.0, 0.005)
    gears = np.array([body.joint.gear_ratio for body in geared.actuated], dtype=float)
    finding = one(findings_of(geared, {"time": time, "q": 0.8 * gears[:, None] * np.sin(time)}), "degrees")
    assert "motors before the gears" in finding.text
    assert "side = 'motor'" in finding.remedy
    assert not finding.fix  # which of the two it is, nothing says
    assert "motors" not in one(findings_of(robot, {"time": motion.time, "q": np.degrees(motion.q)}), "degrees").text


@pytest.mark.parametrize(
    ("change", "factor", "expected"),
    [
        (lambda qd: np.degrees(qd), 57.3, "degrees per second"),
        (lambda qd: -qd, -1, "the sign is the opposite"),
        (lambda qd: qd * 30 / np.pi, 9.55, "revolutions per minute"),
        (lambda qd: qd * 1e-3, 1e-3, ""),
        (lambda qd: qd * 1.5, 1.5, "another unit"),
    ],
)
def test_velocities_of_another_size_are_found_with_their_factor(robot, motion, change, factor, expected):
    findings = findings_of(robot, {**motion.arrays(), "qd": change(motion.qd)})
    for joint in ("shoulder", "elbow"):
        finding = one(findings, "velocity", joint)
        assert finding.values["factor"] == pytest.approx(factor, rel=0.02)
        assert finding.values["correlation"] > 0.99
        assert expected in finding.text


def test_a_velocity_that_is_a_little_too_large_is_a_warning(robot, motion):
    finding = one(findings_of(robot, {**motion.arrays(), "qd": motion.qd * [[1.0], [1.05]]}), "velocity_scale", "elbow")
    assert finding.severity == "warning"
    assert finding.values["factor"] == pytest.approx(1.05, abs=0.002)
    assert "velocity_scale" not in kinds(findings_of(robot, {**motion.arrays(), "qd": motion.qd * 1.02}))


@pytest.mark.parametrize(("factor", "kind"), [(2.0, "velocity"), (0.5, "velocity"), (1.05, "velocity_scale")])
def test_a_factor_that_all_joints_have_in_common_may_be_that_of_the_stamps(factor, kind):
    arm, time = load_robot("ur10e"), np.arange(2000) / 200
    q = np.sin(np.arange(1, 7)[:, None] * 0.7 * time) / np.arange(1, 7)[:, None]
    qd = 0.7 * np.cos(np.arange(1, 7)[:, None] * 0.7 * time)
    slow = findings_of(arm, {"time": factor * time, "q": q, "qd": qd})
    found = [finding for finding in slow if finding.kind == kind]
    assert len(found) == 6
    assert all(f"the steps of the stamps are {factor:.4g} times too long" in finding.text for finding in found)
    one_joint = findings_of(arm, {"time": time, "q": q, "qd": qd * np.where(np.arange(6) == 2, factor, 1.0)[:, None]})
    (finding,) = [finding for finding in one_joint if finding.kind == kind]
    assert "stamps" not in finding.text


def test_velocities_of_other_joints_are_found(robot, motion):
    findings = findings_of(robot, {**motion.arrays(), "qd": motion.qd[::-1]})
    assert one(findings, "velocity", "elbow").severity == "bad"


def test_stamps_in_milliseconds_show_in_the_velocities_too(robot, motion):
    finding = one(findings_of(robot, {**motion.arrays(), "time": motion.time * 1e3}), "velocity", "elbow")
    assert "milliseconds" in finding.text


def test_delayed_velocities_are_found_with_their_delay(robot, motion):
    late = np.roll(motion.qd, 4, axis=1)
    late[:, :4] = motion.qd[:, :1]
    finding = one(findings_of(robot, {**motion.arrays(), "qd": late}), "velocity_delay", "elbow")
    assert finding.values["delay"] == pytest.approx(0.02, rel=0.05)


def test_an_arm_that_stands_still_is_not_judged_by_its_velocity(robot, motion):
    q = np.round(np.random.default_rng(0).normal(0.3, 1e-4, (2, 2000)), 4)
    for qd in (np.zeros((2, 2000)), np.random.default_rng(1).normal(0, 1e-3, (2, 2000))):
        findings = findings_of(robot, {"time": motion.time, "q": q, "qd": qd})
        assert kinds(findings, "warning", "bad") == {"stands_still"}


def test_spoilt_ends_do_not_look_like_a_delay(robot, motion):
    """A filter that holds the last position while the velocity goes on, as some post-processing does."""
    q = motion.q.copy()
    q[:, -25:] = q[:, -25:-24]
    assert kinds(findings_of(robot, {**motion.arrays(), "q": q}), "warning", "bad") == set()


def test_quantised_positions_do_not_look_like_wrong_velocities(robot):
    motion = Motion(samples=20000, rate=5000.0)
    step = 2 * np.pi / 4096
    arrays = {**motion.arrays(), "q": np.round(motion.q / step) * step}
    findings = findings_of(robot, arrays)
    assert kinds(findings, "warning", "bad") == set()
    assert one(findings, "quantisation", "elbow").values["step"] == pytest.approx(step, rel=1e-6)


def test_a_smooth_signal_has_no_quantisation(robot):
    rng = np.random.default_rng(3)
    q = np.cumsum(rng.normal(size=(2, 3000)), axis=1) * 1e-3
    assert "quantisation" not in kinds(findings_of(robot, {"time": np.arange(3000) * 0.005, "q": q}))


def test_findings_do_not_depend_on_blocks(robot, monkeypatch):
    """A log with every fault, in blocks of any size: the same findings to the last bit."""
    motion = Motion(samples=5000)
    rng = np.random.default_rng(5)
    time = motion.time + rng.uniform(0, 2e-3, motion.time.size)
    q = np.round(motion.q, 4)
    q[0, 2500:] += 2 * np.pi
    q[1, [100, 3000]] += 0.7
    qd = motion.qd * 1.3
    lost = rng.choice(5000, 40, replace=False)
    monkeypatch.setattr(checks_module, "BLOCK", 256)
    recording = recording_from_arrays(
        robot, {name: np.delete(v, lost, axis=-1) for name, v in (("time", time), ("q", q), ("qd", qd))}
    )
    assert kinds(recording.findings, "warning", "bad") == {
        "jitter",
        "gap",
        "wrap",
        "jump",
        "outside_limits",
        "velocity",
    }
    assert recording.qd is not None
    for size in (1, 100, 257, 5000):
        checker = checks_module.Checker(checks_module.subject_of(robot, [("q", "q", None), ("qd", "qd", None)]))
        for first in range(0, recording.samples, size):
            part = slice(first, first + size)
            checker.take(Samples(recording.time[part], (recording.q[:, part], recording.qd[:, part])))
        assert tuple(checker.findings()) == recording.findings
    assert check_recording(robot, recording) == recording.findings


def test_joints_without_limits_are_checked_by_what_no_arm_does(motion):
    urdf = """<robot name="free"><link name="a"/><link name="b"/><joint name="turn" type="continuous">
    <parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>"""
    robot = read_urdf(urdf.encode())
    arrays = {"time": motion.time, "q": motion.q[:1] + 40 * motion.time}
    assert kinds(recording_from_arrays(robot, arrays).findings, "warning", "bad") == set()
    wrapped = {**arrays, "q": arrays["q"] % (2 * np.pi)}
    assert one(recording_from_arrays(robot, wrapped).findings, "wrap").count == pytest.approx(63, abs=1)


def test_appended_logs_follow_each_other_without_losing_a_row(robot):
    """Two logs in one file: the second's stamps go on after a pause, whatever the blocks; no gap is reported."""
    motion = Motion()
    arrays = {name: np.concatenate([values, values], axis=-1) for name, values in motion.arrays().items()}
    recording = recording_from_arrays(robot, arrays)
    assert recording.samples == 2 * motion.time.size
    assert (np.diff(recording.time) > 0).all()
    reported = one(recording.findings, "concatenated")
    assert (reported.severity, reported.count, reported.where) == ("warning", 1, (recording.time[motion.time.size],))
    assert kinds(recording.findings, "warning", "bad") == {"concatenated"}
    pause = recording.time[motion.time.size] - recording.time[motion.time.size - 1]
    assert pause == pytest.approx(1.0)


def test_a_late_packet_is_no_restart(robot, motion):
    arrays = {**motion.arrays(), "time": motion.time.copy()}
    arrays["time"][300] -= 0.08
    findings = recording_from_arrays(robot, arrays).findings
    assert one(findings, "backward_stamp").count == 1
    assert "concatenated" not in kinds(findings)


@pytest.mark.parametrize("channel", ["joint_torque", "q"])
def test_spikes_are_counted_with_their_size(robot, motion, channel):
    rng = np.random.default_rng(3)
    arrays = {**motion.arrays(), channel: motion.arrays()[channel].copy()}
    if channel == "joint_torque":
        arrays[channel] += 0.1 * rng.standard_normal(arrays[channel].shape)
    places = np.array([250, 700, 1203])
    arrays[channel][1, places] += 0.045 if channel == "q" else 20.0
    del arrays["qd"]
    finding = one(recording_from_arrays(robot, arrays).findings, "spikes")
    assert (finding.severity, finding.joint, finding.channel) == ("bad", "elbow", channel)
    assert finding.values["part"] > 0.1
    assert finding.where == tuple(motion.time[places])
    assert finding.values["largest"] == pytest.approx(0.045 if channel == "q" else 20.0, rel=0.25)


@pytest.mark.parametrize(("part", "severity"), [(0.03, "info"), (0.07, "warning"), (0.15, "bad")])
def test_the_severity_of_spikes_is_that_of_their_energy(robot, motion, part, severity):
    arrays = {"time": motion.time, "q": motion.q, "joint_torque": motion.tau.copy()}
    spread = float(np.std(motion.tau[1]))
    arrays["joint_torque"][1, 700] += part * spread * motion.time.size**0.5
    finding = one(recording_from_arrays(robot, arrays).findings, "spikes")
    assert finding.values["part"] == pytest.approx(part, rel=0.2)
    assert finding.severity == severity
    assert "has 1 spike of" in finding.text


@pytest.mark.parametrize(("lost", "wanted"), [([400], "1 gap in the stamps, about 1 sample lost"),
                                              ([400, 900], "2 gaps in the stamps, about 2 samples lost")])  # fmt: skip
def test_one_is_not_written_in_the_plural(robot, motion, lost, wanted):
    arrays = {name: np.delete(values, lost, axis=-1) for name, values in motion.arrays().items()}
    assert one(findings_of(robot, arrays), "gap").text.startswith(wanted)
    arrays = {name: values.copy() for name, values in motion.arrays().items()}
    arrays["q"][1, lost] = np.nan
    found = one(recording_from_arrays(robot, arrays).findings, "not_a_number", "elbow").text
    assert found == f"q of elbow: no number in {'1 row' if len(lost) == 1 else '2 rows'}, left out"


def test_friction_that_reverses_noise_and_steps_of_the_encoder_are_no_spikes(robot):
    """Coulomb friction of ten times the load, Laplace noise, torques and positions on a coarse grid: no alarm."""
    motion = Motion(samples=20_000)
    rng = np.random.default_rng(4)
    friction = 50 * np.sign(motion.qd) + motion.tau
    for torque in (friction, friction + rng.laplace(0, 2.0, friction.shape), np.round(friction / 5) * 5):
        arrays = {"time": motion.time, "q": np.round(motion.q, 3), "motor_torque": torque}
        assert "spikes" not in kinds(recording_from_arrays(robot, arrays).findings)


def test_motor_torques_before_the_gears_are_told_and_friction_is_not(robot, motion):
    friction = 3 * motion.tau.std() * np.sign(motion.qd) + motion.tau
    right = {"time": motion.time, "q": motion.q, "motor_torque": friction, "joint_torque": motion.tau}
    assert "torque_ratio" not in kinds(recording_from_arrays(robot, right).findings)
    findings = recording_from_arrays(robot, {**right, "motor_torque": motion.tau / 100}).findings
    for joint in ("shoulder", "elbow"):
        finding = one(findings, "torque_ratio", joint)
        assert finding.values["ratio"] == pytest.approx(100)
        assert 'side = "motor"' in finding.remedy
    opposite = recording_from_arrays(robot, {**right, "motor_torque": -motion.tau}).findings
    assert "signs are opposite" in one(opposite, "torque_ratio", "elbow").text


def test_a_rotor_of_ten_times_the_inertia_of_its_link_is_no_unit_and_thousandths_are(robot, motion):
    """Quick moves of a light wrist: both torques are almost the same signal, ten times apart, and right."""
    qdd = np.gradient(motion.qd, motion.time, axis=1)
    noise = np.random.default_rng(3).normal(0, 0.01, (2, *qdd.shape))
    joint = 0.1 * qdd + noise[0]
    right = {"time": motion.time, "q": motion.q, "motor_torque": joint + 0.9 * qdd + noise[1], "joint_torque": joint}
    correlation = np.corrcoef(right["motor_torque"][0], joint[0])[0, 1]
    assert correlation > 0.99
    assert "torque_ratio" not in kinds(recording_from_arrays(robot, right).findings)
    loaded = motion.tau + np.sign(motion.qd)
    wrong = {**right, "motor_torque": 1e3 * loaded, "joint_torque": motion.tau}
    assert "another unit" in one(recording_from_arrays(robot, wrong).findings, "torque_ratio", "elbow").text


def test_a_robot_in_the_place_of_the_log_is_one_clear_line(robot):
    with pytest.raises(RecordingError, match="a path or a RecordingSetup is expected, after the robot"):
        read_recording("log.npz", robot)


def test_turns_are_carried_from_block_to_block_and_only_angles_turn():
    angle, slide = np.linspace(0.0, 40.0, 400), np.tile([0.0, 7.0], 200)
    values = np.stack([(angle + np.pi) % (2 * np.pi) - np.pi, slide])
    unwrapper = Unwrapper()
    blocks = [unwrapper.take(block, np.array([1, 0])) for block in np.split(values, [100, 100, 101, 250], axis=1)]
    np.testing.assert_allclose(np.concatenate(blocks, axis=1), [angle, slide], atol=1e-12)
    assert unwrapper.turns.tolist() == [6, 0]


SI = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "angle": {"rad": 1.0, "mrad": 1e-3, "deg": np.pi / 180, "rev": 2 * np.pi},
    "length": {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6},
    "angular speed": {
        "rad/s": 1.0, "mrad/s": 1e-3, "deg/s": np.pi / 180, "rev/s": 2 * np.pi, "rpm": 2 * np.pi / 60
    },
    "linear speed": {"m/s": 1.0, "cm/s": 1e-2, "mm/s": 1e-3},
    "current": {"A": 1.0, "mA": 1e-3},
    "moment": {"Nm": 1.0, "Ncm": 1e-2, "mNm": 1e-3, "kNm": 1e3},
    "force": {"N": 1.0, "mN": 1e-3, "kN": 1e3},
    "duty": {"1": 1.0, "percent": 1e-2, "permille": 1e-3},
    "temperature": {"degC": 1.0, "K": 1.0},
}  # fmt: skip


def test_what_every_unit_is_in_si():
    assert QUANTITIES.keys() == SI.keys()
    for quantity, units in SI.items():
        assert QUANTITIES[quantity].keys() == units.keys()
        for unit, si in units.items():
            assert si_scale(unit, quantity, "column") == pytest.approx(si, rel=1e-15), unit
