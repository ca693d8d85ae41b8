"""A payload from a wrist force/torque sensor: static poses, motion, and the authors' values of a real sensor."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data_folder import data_folder
from steelyard.cli import main
from steelyard.errors import EstimateError
from steelyard.identification import payload_from_wrench
from steelyard.physics import pose_function
from steelyard.recording import Recording, TorqueChannel
from steelyard.robot import load_robot, parameters_from_centre

SETUPS = Path(__file__).parents[2] / "benchmarks" / "data"
GRAVITY = np.array([0.0, 0.0, -9.81])
INERTIA = np.array([[0.004, 0.0002, 0.0001], [0.0002, 0.005, 0.0003], [0.0001, 0.0003, 0.003]])
CENTRE = np.array([0.01, -0.02, 0.06])
TOOL = np.array(parameters_from_centre(1.4, CENTRE, INERTIA))
BIAS = np.array([2.0, -1.5, -13.0, 0.15, -0.08, 0.1])
NOISE = np.array([0.1, 0.1, 0.1, 0.003, 0.003, 0.003])


def quaternions(rng: np.random.Generator, count: int) -> np.ndarray:
    drawn = rng.standard_normal((4, count))
    return drawn / np.linalg.norm(drawn, axis=0)


def rotation(quaternion: np.ndarray) -> np.ndarray:
    w, v = quaternion[0], quaternion[1:]
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def wrench_of(R: np.ndarray, acceleration: np.ndarray, omega: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return the wrench about the sensor's origin from Newton's and Euler's equations about the centre of mass."""
    a = R.T @ (acceleration - GRAVITY) + np.cross(alpha, CENTRE) + np.cross(omega, np.cross(omega, CENTRE))
    moment = INERTIA @ alpha + np.cross(omega, INERTIA @ omega)
    return np.concatenate([1.4 * a, moment + np.cross(CENTRE, 1.4 * a)])


def static_log(seed: int, poses: int = 12, sign: int = 1) -> Recording:
    rng = np.random.default_rng(seed)
    turned = quaternions(rng, poses)
    still = np.zeros(3)
    clean = [sign * wrench_of(rotation(q), still, still, still) + BIAS for q in turned.T]
    noisy = np.array(clean).T + NOISE[:, None] * rng.standard_normal((6, poses))
    pose = np.concatenate([np.zeros((3, poses)), turned])
    return Recording(
        (), np.arange(poses) * 1.0, np.zeros((0, poses)), pose=pose, torques=(TorqueChannel("wrench", noisy),)
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_static_poses_show_mass_centre_and_bias_but_no_inertia(sign):
    found = payload_from_wrench([static_log(1, 40, sign)], static=True)
    assert found.sign == sign
    assert abs(found.body.mass[0] - TOOL[9]) < 3 * found.body.mass[1] < 0.02
    assert found.body.centre is not None
    assert found.body.centre_sigma is not None
    assert np.all(np.abs(found.body.centre - TOOL[6:9] / TOOL[9]) < 4 * found.body.centre_sigma)
    assert np.all(np.abs(found.bias - BIAS) < 4 * found.bias_sigma)
    assert np.isnan(found.body.inertia).all()
    assert found.reasons == ()
    assert "Bias of the sensor" in found.to_html()


def test_static_intervals_cover_95_percent():
    truth = np.concatenate([TOOL, BIAS])[6:]
    inside = []
    for seed in range(150):
        found = payload_from_wrench([static_log(seed)], static=True)
        values = np.concatenate([found.body.parameters, found.bias])[6:]
        inside.append(np.abs(values - truth) < found.half_width[6:])
    assert 0.93 < np.mean(inside) < 0.975


def moving_log(seed: int, seconds: float = 30.0) -> Recording:
    """Return a UR10e that moves, its wrist's wrench from poses differentiated with a step of 1 ms."""
    robot, rng = load_robot("ur10e"), np.random.default_rng(seed)
    rate, names = 100.0, robot.joint_names
    time = np.arange(int(seconds * rate)) / rate
    sizes = rng.uniform(-0.5, 0.5, (2, 6, 5)) / np.arange(1, 6)
    angle = 2 * np.pi * np.arange(1, 6) / 10.0

    def q_at(t: np.ndarray) -> np.ndarray:
        turns = np.multiply.outer(angle, t)
        return sizes[0] @ np.sin(turns) + sizes[1] @ np.cos(turns)

    function, step = pose_function(robot, "ee_link"), 1e-3
    before, now, after = (_poses(function, q_at(time + shift)) for shift in (-step, 0.0, step))
    wrenches = []
    for (Ra, pa), (R, p), (Rb, pb) in zip(before, now, after, strict=True):
        early, late = _axis(Ra.T @ R, step), _axis(R.T @ Rb, step)
        wrenches.append(wrench_of(R, (pa - 2 * p + pb) / step**2, (early + late) / 2, (late - early) / step))
    clean = np.array(wrenches).T + BIAS[:, None]
    noisy = clean + NOISE[:, None] * rng.standard_normal(clean.shape)
    return Recording(names, time, q_at(time), torques=(TorqueChannel("wrench", noisy),))


def _poses(function, q: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    found = [np.array(function(column, [])) for column in q.T]
    return [(one[:, :3], one[:, 3]) for one in found]


def _axis(turn: np.ndarray, step: float) -> np.ndarray:
    return np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / (2 * step)


def test_a_moving_sensor_shows_the_inertia_too():
    found = payload_from_wrench([moving_log(1)], load_robot("ur10e"))
    values = np.concatenate([found.body.parameters, found.bias])
    truth = np.concatenate([TOOL, BIAS])
    assert found.link == "ee_link"
    assert np.all(np.abs(values - truth) < 2 * found.half_width + 1e-3 * np.abs(truth))
    assert found.body.mass[1] < 0.01


@pytest.mark.large
def test_moving_intervals_cover_95_percent():
    truth, inside = np.concatenate([TOOL, BIAS]), []
    for seed in range(30):
        found = payload_from_wrench([moving_log(seed)], load_robot("ur10e"))
        values = np.concatenate([found.body.parameters, found.bias])
        inside.append(np.abs(values - truth) < found.half_width)
    assert 0.88 < np.mean(inside) <= 0.99


def test_what_a_log_lacks_is_said():
    log = static_log(1)
    with pytest.raises(EstimateError, match="no wrench"):
        payload_from_wrench([replace(log, torques=())], static=True)
    with pytest.raises(EstimateError, match="no poses of the sensor"):
        payload_from_wrench([replace(log, pose=None)], static=True)
    with pytest.raises(EstimateError, match="quaternions of the pose have lengths"):
        payload_from_wrench([replace(log, pose=2 * np.asarray(log.pose))], static=True)
    same = np.repeat(np.asarray(log.pose)[:, :1], log.samples, axis=1)
    with pytest.raises(EstimateError, match="cannot be told from the bias"):
        payload_from_wrench([replace(log, pose=same)], static=True)
    with pytest.raises(EstimateError, match="no recording"):
        payload_from_wrench([])


def test_options_of_the_sensor_need_wrench(capsys, tmp_path):
    assert main(["payload", str(tmp_path), "--static"]) == 1
    assert "without --wrench" in capsys.readouterr().err
    assert main(["payload"]) == 1
    assert "no run is given" in capsys.readouterr().err


@pytest.mark.data
def test_the_authors_values_of_a_real_gripper_are_reproduced(capsys):
    """Weight -10.80391 N; force bias -2.13583 -2.76399 -13.07675 N; centre z 0.05197 m; moment bias as below."""
    command = ["payload", "--wrench", "--static", "--wrench-frame", "base", "--axis", "z", "--json"]
    data = data_folder()
    assert main([*command, "--config", str(SETUPS / "ft_gripper.toml"), "--root", str(data)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["payload"]["mass"] * 9.81 == pytest.approx(10.80391, abs=1e-5)
    authors = [-2.13583, -2.76399, -13.07675, -0.15658, -0.07939, 0.12979]
    assert found["wrench"]["bias"] == pytest.approx(authors, abs=1.1e-5)
    assert found["payload"]["centre"][2] == pytest.approx(0.05197, abs=1e-5)
    assert found["wrench"]["sign"] == -1
