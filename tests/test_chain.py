"""The rooms together: motion, simulated arm, recording, signals, regressor and decimation give the truth back.

Plain least squares on a recording without noise; the identification proper has a room of its own.
"""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.kernel import compile_batch
from steelyard.model import base_parameters, build_model
from steelyard.motion import limits_of, quintic_profile, random_points, trapezoidal
from steelyard.robot import load_robot
from steelyard.signals import decimate, differentiate, low_pass
from steelyard.simulation import Experiment, recording_of, simulate

RATE, FACTOR = 1000.0, 50


@pytest.mark.large
def test_least_squares_on_a_clean_simulation_finds_the_truth():
    robot = load_robot("kuka_lwr4")
    joints = [body.joint.name for body in robot.actuated]
    points = random_points(limits_of(robot), 14, 2.0, quintic_profile(), np.random.default_rng(3))
    run = simulate(robot, trapezoidal(points, 2.0, joints), Experiment(record_rate=RATE))
    recording = recording_of(run)
    signals = differentiate(recording.q, low_pass(RATE, 20.0))
    model = build_model(robot, measured="both", sign_width=run.experiment.sign_width or 0.0)
    base = base_parameters(model)

    (dense,) = compile_batch(model.regressor).dense(signals.q, signals.qd, signals.qdd)
    retained = np.ascontiguousarray(dense[:, list(base.base_columns)])
    torques = np.vstack([recording.torque(kind).values for kind in ("motor_torque", "joint_torque")])
    used = torques[:, signals.first : signals.first + signals.q.shape[1]]
    columns = decimate(retained.reshape(-1, retained.shape[2]), RATE, FACTOR).values
    rows = columns.reshape(retained.shape[0], retained.shape[1], -1).transpose(0, 2, 1).reshape(-1, retained.shape[1])
    measured = decimate(used, RATE, FACTOR).values.ravel()

    scale = np.linalg.norm(rows, axis=0)
    found = np.linalg.lstsq(rows / scale, measured, rcond=None)[0] / scale
    true = base.regrouping @ np.array([run.truth[name] for name in model.names])
    # In units of torque: what each parameter's error does to the fit, against the torques themselves.
    influence = np.abs(found - true) * scale / np.linalg.norm(measured)
    assert influence.max() < 2e-3
    residual = np.linalg.norm(measured - rows @ found) / np.linalg.norm(measured)
    assert residual < 2e-3
    strong = dict(zip(base.names, zip(found, true, strict=True), strict=True))
    for name in ("Ia1", "Fvm1", "Fcm1", "MY2R", "MY4R", "ZZ2R"):
        assert abs(strong[name][0] - strong[name][1]) < 0.02 * abs(strong[name][1]), name
