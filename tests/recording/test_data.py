"""The real recordings are read as their setups declare, and the findings are what their authors' notes say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data_folder import data_folder
from recording.logs import kinds, known, one
from steelyard.recording import Recording, read_recording, read_recordings, read_setup, stream_recording
from steelyard.robot import load_robot

pytestmark = pytest.mark.data
SETUPS = Path(__file__).parents[2] / "benchmarks" / "data"


def read(robot: str, setup: str, **more) -> Recording:
    return read_recording(load_robot(robot), SETUPS / f"{setup}.toml", root=data_folder(), **more)


def test_the_panda_lost_samples_and_its_stamps_jitter():
    recording = read("franka_panda", "franka_panda")
    assert recording.samples == 20544
    assert recording.duration == pytest.approx(21.0, abs=0.01)
    timing = one(recording.findings, "jitter")
    assert timing.severity == "warning"
    assert timing.values["median"] == pytest.approx(1e-3, rel=1e-3)
    assert timing.values["min"] == pytest.approx(0.7e-3, rel=1e-3)
    assert timing.values["max"] == pytest.approx(8.8e-3, rel=5e-3)
    # 21.0 s at 1 kHz are 456 samples more than there are.
    assert one(recording.findings, "gap").count == pytest.approx(456, rel=0.05)
    assert kinds(recording.findings) == {"jitter", "gap", "quantisation", "velocity_delay", "held"}
    held = next(found for found in recording.findings if found.kind == "held" and found.channel == "q")
    assert held.severity == "info"  # a sample of 1 ms is short
    # Counted by hand: steps of no joint, among those in which any joint moves by more than 20 urad on either side.
    steps = np.abs(np.diff(recording.q, axis=1)).max(axis=0)
    moving = (steps[:-2] > 2e-5) & (steps[2:] > 2e-5)
    assert held.values["part"] == pytest.approx(np.mean(steps[1:-1][moving] == 0), abs=0.01)
    folder = data_folder() / "franka_panda_gaz"
    np.testing.assert_array_equal(recording.q.T.ravel(), np.loadtxt(folder / "exciting_traj_positions.txt"))
    np.testing.assert_array_equal(recording.torque().values.T.ravel(), np.loadtxt(folder / "exciting_traj_torques.txt"))


def test_the_panda_s_velocities_are_as_late_as_their_correlation_says():
    """The delay that the check reports, against the shift at which velocity and derivative agree best."""
    recording = read("franka_panda", "franka_panda")
    even = np.arange(recording.time[0], recording.time[-1], 1e-3)
    for row in range(7):
        q = np.interp(even, recording.time, recording.q[row])
        speed = np.convolve(np.gradient(q, even), np.full(21, 1 / 21), "same")
        qd = np.convolve(np.interp(even, recording.time, known(recording.qd)[row]), np.full(21, 1 / 21), "same")
        middle = slice(1000, -1000)
        errors = [np.std(np.roll(qd, -lag)[middle] - speed[middle]) for lag in range(10)]
        reported = one(recording.findings, "velocity_delay", f"joint_{row + 1}").values["delay"]
        assert 1e3 * reported == pytest.approx(np.argmin(errors), abs=1)


@pytest.mark.parametrize("robot", ["kuka_lwr4", "own"])
def test_the_three_runs_of_the_lwr_are_even(robot):
    arm = load_robot(data_folder() / "kuka_lwr4" / "kuka_lwr4.urdf" if robot == "own" else robot)
    runs = read_recordings(arm, SETUPS / "kuka_lwr4.toml", root=data_folder())
    for number, run in enumerate(runs, 1):
        assert run.samples == 5027
        timing = one(run.findings, "jitter")
        assert timing.severity == "info"
        assert timing.values["median"] == pytest.approx(5e-3, rel=1e-3)
        assert timing.values["min"] > 3.2e-3
        assert timing.values["max"] < 6.8e-3
        assert kinds(run.findings, "warning", "bad") <= {"alike", "filtered_differently"}
        corners = {found.channel: found.values["corner"] for found in run.findings if found.kind == "filtered"}
        assert set(corners) == {"q", "qd", "joint_torque"}
        assert max(corners.values()) < 4.5
        alike = [found for found in run.findings if found.kind == "alike"]
        assert [found.count for found in alike] == [5, 2]
        assert f"{run.joints[1]} and {run.joints[4]}" in alike[1].text
        with np.load(data_folder() / "kuka_lwr4" / f"measurements_{number}.npz") as stored:
            np.testing.assert_array_equal(run.q, stored["positions"].T)
            np.testing.assert_array_equal(run.torque("joint_torque").values, stored["torques"].T)
    assert np.abs(runs[0].q - runs[1].q).max() < 0.007
    assert np.abs(known(runs[2].qd)).max() == pytest.approx(1.84, abs=0.01)


def test_the_tx40_is_brought_to_the_joints_with_its_coupling():
    recording = read("staubli_tx40", "staubli_tx40")
    assert (recording.samples, recording.duration) == (45000, pytest.approx(9.0, abs=1e-3))
    folder = data_folder() / "staubli_tx40"
    motors = np.loadtxt(folder / "pos_read_data.csv", delimiter=",", skiprows=1).T
    currents = np.loadtxt(folder / "curr_data.csv", delimiter=",", skiprows=1).T
    gears = np.diag([32.0, 32, 45, -48, 45, 32])
    gears[5, 4] = 32
    q = np.linalg.solve(gears, motors) + np.array([0, -np.pi / 2, np.pi / 2, 0, 0, 0])[:, None]
    np.testing.assert_allclose(recording.q, q, atol=1e-12)
    np.testing.assert_allclose(recording.torque("motor_torque").values, gears.T @ currents, atol=1e-10)
    assert kinds(recording.findings, "warning", "bad") == set()
    still = one(recording.findings, "stands_still").values
    assert 7.4 < still["start"] < 7.9
    assert still["end"] > 8.9
    # 65536 counts a turn of the motor, three times as many for joint 1; elsewhere five written digits hide them.
    counts = {"joint_1": 196608 * 32, "joint_4": 65536 * 48, "joint_5": 65536 * 45}
    for joint, in_a_turn in counts.items():
        step = one(recording.findings, "quantisation", joint).values["step"]
        assert step == pytest.approx(2 * np.pi / in_a_turn, rel=0.01)


def test_the_ur10e_s_stamps_jitter():
    runs = read_recordings(load_robot("ur10e"), SETUPS / "ur10e.toml", root=data_folder())
    assert len(runs) == 13
    timings = [one(run.findings, "jitter") for run in runs]
    assert {timing.severity for timing in timings} == {"warning"}
    assert [timing.values["median"] for timing in timings] == pytest.approx([0.01] * 13, rel=1e-3)
    assert min(timing.values["min"] for timing in timings) == pytest.approx(0.002)
    assert max(timing.values["max"] for timing in timings) == pytest.approx(0.034)
    assert [run.payload for run in runs].count("load") == 2
    assert runs[0].samples == 3510 - 635 + 1
    assert not set().union(*(kinds(run.findings, "bad") for run in runs))
    raw = np.loadtxt(data_folder() / "ur10e/identification/ur-20_02_10-30sec_12harm.csv", delimiter=",")[634:3510].T
    np.testing.assert_array_equal(runs[0].time, raw[0])
    np.testing.assert_array_equal(runs[0].q, raw[1:7])
    np.testing.assert_array_equal(known(runs[0].qd), raw[7:13])
    np.testing.assert_array_equal(runs[0].torque("motor_current").values, raw[13:19])


def test_static_poses_of_the_ur10e_have_constant_velocities():
    recording = read("ur10e", "ur10e", files="ur10e/validation/ur-20_01_17-p1.csv")
    still = [finding for finding in recording.findings if finding.kind == "constant"]
    assert {(finding.channel, finding.values["value"]) for finding in still} == {("qd", 0.0)}
    assert "velocity" not in kinds(recording.findings)


@pytest.mark.parametrize(
    ("table", "samples", "payload"),
    [("chirp", 2998, None), ("chirp_loaded", 2998, "load"), ("trapezoidal", 2788, None)],
)
def test_the_airbot_has_even_samples_and_coarse_encoders(table, samples, payload):
    robot = load_robot(data_folder() / "airbot_play" / "airbot_play_v3_0_gripper.urdf")
    setup = read_setup(SETUPS / "airbot_play.toml", table)
    recording = read_recording(robot, setup, root=data_folder())
    assert (recording.samples, recording.payload) == (samples, payload)
    assert one(recording.findings, "jitter").values["rate"] == pytest.approx(100)
    coarse = [found for found in recording.findings if found.kind == "quantisation"]
    assert [found.values["step"] for found in coarse if found.channel == "q"] == pytest.approx([0.00038] * 6, rel=0.01)
    # Drives report 12 bits of a torque.
    assert {round(30 / 2048, 5), round(10 / 2048, 5)} >= {
        round(found.values["step"], 5) for found in coarse if found.channel != "q"
    }
    assert kinds(recording.findings, "warning", "bad") == {"alike", "quantisation"}
    assert one(recording.findings, "alike").text.startswith("all joints move alike")


def test_a_real_recording_streams_as_it_reads():
    arm, setup = load_robot("franka_panda"), SETUPS / "franka_panda.toml"
    whole = read_recording(arm, setup, root=data_folder())
    stream = stream_recording(arm, setup, root=data_folder(), block_rows=777)
    q = np.concatenate([block.q for block in stream], axis=1)
    np.testing.assert_array_equal(q, whole.q)
    assert stream.result is not None
    assert (stream.result.findings, stream.result.sources) == (whole.findings, whole.sources)
