"""An arm that follows its trajectory exactly, and noise on what is recorded of its positions."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import SimulationError
from steelyard.model import build_model, stacked_regressor
from steelyard.motion import quintic
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, experiment_from_settings, recording_of, simulate

PATH = quintic([[0, 0.4, -0.3, 0.2], [0, 2.0, -1.5, 0.3]], 0.5, ["joint_1", "joint_2"])


def run_of(seeds=(0,), **settings):
    return simulate(load_robot("scara_2r"), PATH, Experiment(record_rate=100, plant="ideal", **settings), seeds)


def test_the_arm_is_where_the_trajectory_says():
    run = run_of(seeds=(0, 1))
    samples = PATH.at(run.time)
    np.testing.assert_allclose(run.q[1], samples.q, atol=1e-14)
    np.testing.assert_allclose(run.qd[1], samples.qd, atol=1e-13)
    np.testing.assert_allclose(run.qdd[1], samples.qdd, atol=1e-12)
    np.testing.assert_array_equal(run.q[0], run.reference)


def test_torques_are_the_model_s_with_the_exact_sign():
    run = run_of()
    model = build_model(run.robot, run.effects, measured="both")
    rows = stacked_regressor(model.regressor, run.q[0], run.qd[0], run.qdd[0])
    predicted = (rows @ [run.truth[name] for name in model.names]).reshape(2, 2, -1)
    np.testing.assert_allclose(run.motor_torque[0], predicted[0], atol=1e-12)
    np.testing.assert_allclose(run.joint_torque[0], predicted[1], atol=1e-12)


def test_a_disturbance_is_what_the_motor_need_not_give():
    """As in the closed loop, where it helps the motor: ``M qdd + ... = tau + d``."""
    calm, pushed = run_of(), run_of(seeds=(0, 1), disturbance=Noise("white", (2.0, 0.1)))
    push = calm.motor_torque[0] - pushed.motor_torque
    assert np.abs(push[0] - push[1]).max() > 0.1
    np.testing.assert_allclose(push.std(axis=(0, 2)), [2.0, 0.1], rtol=0.15)
    np.testing.assert_allclose(pushed.joint_torque[0], calm.joint_torque[0], atol=1e-12)
    np.testing.assert_array_equal(pushed.q[0], calm.q[0])


@pytest.mark.parametrize("plant", ["ideal", "compiled"])
def test_noise_on_positions_is_recorded_and_nothing_else_changes(plant):
    quiet = Experiment(record_rate=100, plant=plant, motor_noise=Noise("white", (1.0, 1.0)))
    noisy = experiment_from_settings(
        {
            "record_rate": 100, "plant": plant, "motor_noise": {"kind": "white", "std": [1.0, 1.0]},
            "position_noise": {"kind": "white", "std": [1e-3, 2e-3]},
        }
    )  # fmt: skip
    robot = load_robot("scara_2r")
    before, after = (simulate(robot, PATH, experiment, (0, 5)) for experiment in (quiet, noisy))
    np.testing.assert_array_equal(before.q, after.q)
    error = [recording_of(after, k).q - recording_of(before, k).q for k in range(2)]
    np.testing.assert_allclose(np.std(np.concatenate(error, axis=1), axis=1), [1e-3, 2e-3], rtol=0.12)
    assert np.abs(error[0] - error[1]).max() > 1e-4
    np.testing.assert_array_equal(recording_of(before).torque().values, recording_of(after).torque().values)


def test_noise_of_the_wrong_length_and_unknown_plants_are_refused():
    with pytest.raises(SimulationError, match=r"position_noise std .*2 numbers are needed"):
        recording_of(run_of(position_noise=Noise("white", (1e-3,))))
    with pytest.raises(SimulationError, match=r"plant is 'idle'; allowed: compiled, mujoco, ideal.*ideal"):
        Experiment(plant="idle")  # type: ignore[arg-type]
