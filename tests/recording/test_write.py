"""What is written is read again, number for number, without a setup."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import FileError, RecordingError
from steelyard.recording import Recording, TorqueChannel, read_recording, write_recording
from steelyard.robot import load_robot


def full_recording(robot, motion) -> Recording:
    count = motion.time.size
    rng = np.random.default_rng(0)
    temperature = rng.normal(40, 1, (2, count))
    temperature[:, ::3] = np.nan
    return Recording(
        joints=("shoulder", "elbow"),
        time=motion.time + 1.46e9,
        q=motion.q * 1.0000000000000002,
        qd=motion.qd,
        reference=motion.q + 1e-3,
        torques=(
            TorqueChannel("motor_current", rng.normal(size=(2, count)), gain=np.array([10.1, 20.2])),
            TorqueChannel("motor_torque", rng.normal(size=(2, count)) * 1e-300, name="wanted"),
            TorqueChannel("joint_torque", motion.tau),
            TorqueChannel("wrench", rng.normal(size=(6, count))),
        ),
        temperature=temperature,
        pose=rng.normal(size=(7, count)),
        payload='a "plate", 3 kg',
        notes=("first note", "second, with a comma\nand a line"),
    )


@pytest.mark.parametrize("ending", [".npz", ".csv"])
def test_a_recording_comes_back_as_it_was(robot, motion, tmp_path, ending):
    recording = full_recording(robot, motion)
    path = write_recording(recording, tmp_path / f"new folder/run{ending}")
    again = read_recording(robot, path)
    for name in ("time", "q", "qd", "reference", "temperature", "pose"):
        np.testing.assert_array_equal(getattr(again, name), getattr(recording, name))
    assert [channel.name for channel in again.torques] == ["motor_current", "joint_torque", "wrench", "wanted"]
    for channel in recording.torques:
        back = again.torque(channel.name)
        assert back.kind == channel.kind
        np.testing.assert_array_equal(back.values, channel.values)
    np.testing.assert_array_equal(again.torque("motor_current").gain, [10.1, 20.2])
    assert again.payload == recording.payload
    assert again.notes == recording.notes
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".npz", ".csv"])
def test_few_samples_of_many_joints_come_back(tmp_path, ending):
    """Seven samples of seven joints: the file itself says which way round they are."""
    robot = load_robot("kuka_lwr4")
    joints = tuple(body.joint.name for body in robot.actuated)
    q = np.random.default_rng(0).normal(size=(7, 7))
    path = write_recording(Recording(joints, np.arange(7) * 0.1, q), tmp_path / f"run{ending}")
    np.testing.assert_array_equal(read_recording(robot, path).q, q)


def test_a_recording_of_another_robot_is_refused(robot, motion, tmp_path):
    for ending in (".npz", ".csv"):
        path = write_recording(full_recording(robot, motion), tmp_path / f"run{ending}")
        with pytest.raises(RecordingError, match=r"is this its recording\?"):
            read_recording(load_robot("scara_2r"), path)
        with pytest.raises(RecordingError, match=r"2 columns, but robot 'kuka_lwr4' has 7 joints"):
            read_recording(load_robot("kuka_lwr4"), path)


def test_what_cannot_be_written_is_told(robot, motion, tmp_path):
    recording = full_recording(robot, motion)
    with pytest.raises(RecordingError, match=r"cannot write '.cvs'; allowed: .npz, .csv; did you mean '.csv'"):
        write_recording(recording, tmp_path / "run.cvs")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot write"):
        write_recording(recording, tmp_path / "file" / "run.csv")


def test_a_failed_write_leaves_the_old_file(robot, motion, tmp_path, monkeypatch):
    recording = full_recording(robot, motion)
    path = write_recording(recording, tmp_path / "run.npz")
    before = path.read_bytes()

    def no_room(*arguments, **arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", no_room)
    with pytest.raises(FileError, match="No space left"):
        write_recording(recording, path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def test_records_refuse_arrays_that_do_not_fit():
    time, q = np.arange(5.0), np.zeros((2, 5))
    with pytest.raises(RecordingError, match=r"q has shape \(2, 5\); expected \(3, 5\) for 3 joints"):
        Recording(("a", "b", "c"), time, q)
    with pytest.raises(RecordingError, match=r"torque kind 'motor_curent' is not known.*did you mean 'motor_current'"):
        TorqueChannel("motor_curent", q)  # type: ignore[arg-type]
    with pytest.raises(RecordingError, match="only currents and torques take one"):
        TorqueChannel("motor_pwm", q, gain=np.ones(2))
    with pytest.raises(RecordingError, match="share a name"):
        Recording(("a", "b"), time, q, torques=(TorqueChannel("motor_torque", q), TorqueChannel("motor_torque", q)))
    recording = Recording(("a", "b"), time, q, torques=(TorqueChannel("motor_torque", q),))
    assert recording.torque().kind == "motor_torque"
    assert recording.duration == 4.0
    with pytest.raises(RecordingError, match="no torque channel 'joint_torqe'"):
        recording.torque("joint_torqe")
