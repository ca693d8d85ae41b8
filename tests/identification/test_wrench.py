"""A payload from a wrist force/torque sensor: static poses, motion, and the authors' values of a real sensor."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data_folder import data_folder
from steelyard.cli import main
from steelyard.errors import EstimateError
from steelyard.identification import WrenchPayload, payload_from_wrench
from steelyard.identification.wrench_verdict import WrenchEvidence, judge_wrench
from steelyard.physics import pose_function
from steelyard.recording import Recording, TorqueChannel, write_recording
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


def test_a_cutoff_of_static_poses_is_refused_as_it_has_no_effect():
    with pytest.raises(EstimateError, match=r"cutoff: got 1 Hz for static poses.*leave --cutoff out"):
        payload_from_wrench([static_log(1, 40)], static=True, cutoff=1.0)


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


def rows_of(found: WrenchPayload) -> dict[str, str | None]:
    return {row.name: row.grade for row in found.verdict.criteria}


def in_base_axes(log: Recording) -> Recording:
    turns = [rotation(q) for q in np.asarray(log.pose)[3:].T]
    columns = zip(turns, log.torque().values.T, strict=True)
    wrench = np.array([np.concatenate([R @ column[:3], R @ column[3:]]) for R, column in columns]).T
    return replace(log, torques=(TorqueChannel("wrench", wrench),))


def with_wrench(log: Recording, factors: Sequence[float]) -> Recording:
    values = log.torque().values * np.array(factors)[:, None]
    return replace(log, torques=(TorqueChannel("wrench", values),))


def with_quaternions(log: Recording, order: list[int]) -> Recording:
    pose = np.asarray(log.pose)
    return replace(log, pose=np.concatenate([pose[:3], pose[3:][order]]))


SEVERAL = static_log(3, 14)
TURNED = replace(SEVERAL, torques=(TorqueChannel("wrench", np.roll(SEVERAL.torque().values, 3, axis=0)),))


def test_a_right_reading_is_good_in_either_frame():
    assert payload_from_wrench([SEVERAL], static=True).verdict.grade == "good"
    assert payload_from_wrench([in_base_axes(SEVERAL)], static=True, frame="base").verdict.grade == "good"


@pytest.mark.parametrize(
    ("log", "text", "remedy"),
    [
        (in_base_axes(SEVERAL), "the wrench in axes of the base", "--wrench-frame base"),
        (with_quaternions(SEVERAL, [1, 2, 3, 0]), "w as the last number", "order x y z qw qx qy qz"),
        (with_quaternions(SEVERAL, [3, 0, 1, 2]), "w as the second number", "order x y z qw qx qy qz"),
        (TURNED, "moments before forces", "order fx fy fz tx ty tz"),
        (
            with_quaternions(in_base_axes(SEVERAL), [1, 2, 3, 0]),
            "the wrench in axes of the base and w as the last number",
            "--wrench-frame base and declare",
        ),
    ],
)
def test_a_log_read_in_another_way_than_recorded_is_poor_and_the_cause_is_named(log, text, remedy):
    found = payload_from_wrench([log], static=True)
    assert found.verdict.grade == "poor"
    assert rows_of(found)["residual force over the payload's weight"] == "poor"
    cause = found.reasons[0]
    assert (cause.criterion, text in cause.text, remedy in cause.remedy) == ("likely cause", True, True)
    assert "mass 1.399 kg" in cause.text


@pytest.mark.parametrize(
    ("factors", "poor"),
    [
        ([1e3] * 3 + [1] * 3, {"payload's mass", "centre from the sensor's origin"}),
        ([1] * 3 + [1e-3] * 3, {"centre from the sensor's origin"}),
        ([1] * 3 + [1e3] * 3, {"centre from the sensor's origin"}),
        ([1e3] * 6, {"payload's mass"}),
        ([1e-3] * 6, {"payload's mass"}),
    ],
)
def test_units_that_are_wrong_by_a_thousand_are_poor_and_named(factors, poor):
    found = payload_from_wrench([with_wrench(SEVERAL, factors)], static=True)
    plausible = [row for row in found.verdict.criteria if row.question == "plausible"]
    assert {row.name for row in plausible if row.grade == "poor"} == poor
    assert found.verdict.grade == "poor"
    assert "forces in N, moments in N m" in found.reasons[0].remedy


@pytest.mark.parametrize("frame", ["sensor", "base"])
@pytest.mark.parametrize(("column", "name"), list(enumerate(("fx", "fy", "fz", "tx", "ty", "tz"))))
def test_a_column_that_is_reversed_is_named_and_the_remedy_helps(column, name, frame):
    signs = [-1 if place == column else 1 for place in range(6)]
    log = with_wrench(SEVERAL if frame == "sensor" else in_base_axes(SEVERAL), signs)
    found = payload_from_wrench([log], static=True, frame=frame)
    assert found.verdict.grade == "poor"
    cause = found.reasons[0]
    assert (cause.criterion, f"the column {name} of the wrench reversed" in cause.text) == ("likely cause", True)
    assert f"sign = {signs}" in cause.remedy
    assert payload_from_wrench([with_wrench(log, signs)], static=True, frame=frame).verdict.grade == "good"


def test_signs_of_several_columns_that_are_wrong_leave_residuals_without_a_cause():
    found = payload_from_wrench([with_wrench(SEVERAL, [-1, 1, 1, 1, -1, 1])], static=True)
    assert found.verdict.grade == "poor"
    assert all(one.criterion != "likely cause" for one in found.reasons)


def test_a_noisy_sensor_is_fair():
    noise = np.random.default_rng(2).normal(size=(6, 40)) * 4 * NOISE[:, None]
    log = static_log(1, 40)
    noisy = replace(log, torques=(TorqueChannel("wrench", log.torque().values + noise),))
    assert payload_from_wrench([noisy], static=True).verdict.grade == "fair"


def test_the_verdict_is_in_python_json_report_and_exit_code(tmp_path, capsys):
    log = write_recording(in_base_axes(SEVERAL), tmp_path / "log.npz")
    command = ["payload", str(log), "--wrench", "--static"]
    assert main([*command, "--json"]) == 2
    content = json.loads(capsys.readouterr().out)
    assert content["verdict"]["grade"] == "poor"
    assert content["verdict"]["reasons"][0]["about"] == "likely cause"
    assert content["reasons"][0]["text"] == content["verdict"]["reasons"][0]["text"]
    assert main([*command, "--wrench-frame", "base"]) == 0
    assert "verdict: good" in capsys.readouterr().out
    found = payload_from_wrench([in_base_axes(SEVERAL)], static=True)
    assert "give --wrench-frame base" in found.to_html()
    assert "<b>poor</b>" in found._repr_html_()


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
    assert found.verdict.grade == "good"


@pytest.mark.large
def test_an_arm_says_how_heavy_and_how_far_its_payload_can_be():
    log = moving_log(1)
    heavy = with_wrench(log, [100.0] * 6)
    rows = rows_of(payload_from_wrench([heavy], load_robot("ur10e")))
    assert rows["payload's mass"] == "poor"
    assert payload_from_wrench([log], load_robot("ur10e")).verdict.grade == "good"
    far = payload_from_wrench([with_wrench(SEVERAL, [1.0] * 3 + [25.0] * 3)], static=True)
    evidence = WrenchEvidence(far.body, far.deviation, far.explained)
    assert [judge_wrench(replace(evidence, reach=one)).grade for one in (None, 1.3)] == ["fair", "poor"]


@pytest.mark.large
def test_a_payload_with_a_fair_verdict_is_exported_and_one_with_a_poor_verdict_is_not(tmp_path, capsys):
    log, rng = moving_log(1), np.random.default_rng(0)
    export = ["--payload", "ur", "--robot", "ur10e", "--without-inertia", "--out", str(tmp_path / "exported")]
    for factor, verdict, code in ((15, 0, 0), (40, 2, 1)):
        noise = factor * NOISE[:, None] * rng.standard_normal((6, log.samples))
        noisy = replace(log, torques=(TorqueChannel("wrench", log.torque().values + noise),))
        file, run = write_recording(noisy, tmp_path / f"{factor}.npz"), str(tmp_path / f"run_{factor}")
        assert main(["payload", str(file), "--wrench", "--robot", "ur10e", "--out", run, "-q"]) == verdict
        assert main(["export", run, *export]) == code, capsys.readouterr().err
    assert "the verdict of the payload on link 'ee_link' is poor" in capsys.readouterr().err


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
def test_a_real_gripper_without_its_frame_is_poor(capsys):
    command = ["payload", "--wrench", "--static", "--config", str(SETUPS / "ft_gripper.toml"), "--json"]
    assert main([*command, "--root", str(data_folder())]) == 2
    cause = json.loads(capsys.readouterr().out)["verdict"]["reasons"][0]
    assert cause["remedy"] == "give --wrench-frame base"
    assert "mass 1.101 kg" in cause["text"]


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
