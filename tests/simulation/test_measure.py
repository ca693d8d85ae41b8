"""What a logger would have written of a simulated run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import signal

from steelyard.errors import SimulationError
from steelyard.motion import quintic
from steelyard.robot import load_robot
from steelyard.signals import joint_positions
from steelyard.simulation import Experiment, Noise, recording_of, simulate


def still_run(name: str, seconds: float = 20.0, **settings):
    """Return a run of an arm that holds a posture: what varies is noise."""
    robot = load_robot(name)
    posture = np.full((len(robot.actuated), 2), 0.2)
    path = quintic(posture, seconds, [body.joint.name for body in robot.actuated])
    return simulate(robot, path, Experiment(saturate=False, **settings))


@pytest.mark.large
def test_both_torques_of_the_lwr4_are_recorded_with_their_own_noise():
    std = (0.5, 1.0, 0.5, 0.5, 0.2, 0.2, 0.1)
    noise = Noise("white", std)
    run = still_run("kuka_lwr4", record_rate=100, motor_noise=noise, joint_noise=noise)
    recording = recording_of(run)
    assert [channel.kind for channel in recording.torques] == ["motor_torque", "joint_torque"]
    errors = [recording.torques[0].values - run.motor_torque[0], recording.torques[1].values - run.joint_torque[0]]
    for error in errors:
        np.testing.assert_allclose(error.std(axis=1), std, rtol=0.1)
    assert abs(np.corrcoef(errors[0][1], errors[1][1])[0, 1]) < 0.1


@pytest.mark.parametrize(("kind", "band"), [("band_limited", 5.0), ("correlated", 1.0)])
def test_noise_lies_in_its_band_and_has_its_size(kind, band):
    run = still_run(
        "scara_2r", seconds=300.0, record_rate=100, control_rate=100, motor_noise=Noise(kind, (1.0, 2.0), band)
    )
    error = recording_of(run).torque().values - run.motor_torque[0]
    np.testing.assert_allclose(error.std(axis=1), [1.0, 2.0], rtol=0.1)
    frequency, power = signal.welch(error, 100.0, nperseg=1024)
    low, high = power[:, frequency < band / 2].mean(axis=1), power[:, frequency > 6 * band].mean(axis=1)
    assert (high < 0.05 * low).all()


def test_elastic_joints_wind_up_by_torque_over_stiffness_and_can_be_undone():
    stiffness = (1e4,) * 5 + (7.5e3,) * 2
    run = still_run("kuka_lwr4", seconds=0.2, record_rate=100, stiffness=stiffness)
    recording = recording_of(run)
    wind_up = recording.q - run.q[0]
    np.testing.assert_allclose(wind_up, run.joint_torque[0] / np.array(stiffness)[:, None], atol=1e-12)
    assert np.abs(wind_up).max() > 5e-4
    joint = joint_positions(recording.q, recording.torque("joint_torque").values, np.array(stiffness))
    np.testing.assert_allclose(joint, run.q[0], atol=1e-12)
    with pytest.raises(SimulationError, match="7 positive numbers are needed"):
        recording_of(replace(run, experiment=replace(run.experiment, stiffness=(1.0,))))


def test_the_ur10e_records_currents_with_their_gains():
    run = still_run("ur10e", seconds=0.2, record_rate=100)
    channel = recording_of(run).torque()
    assert channel.kind == "motor_current"
    assert channel.gain is not None
    np.testing.assert_allclose(channel.values * channel.gain[:, None], run.motor_torque[0])


def test_a_payload_is_named_in_the_recording():
    assert recording_of(still_run("kuka_lwr4", seconds=0.1, record_rate=100, payload="P2")).payload == "P2"


def test_the_reference_is_recorded_as_it_was_commanded():
    run = still_run("scara_2r", seconds=0.2, record_rate=100, encoder_quantum=7e-3)
    recording = recording_of(run)
    np.testing.assert_array_equal(recording.reference, run.reference)
    assert np.abs(recording.q - run.reference).max() > 0
