"""Torques along a log: the errors are those that identify reports, the file holds what they are made of."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import numpy as np
import polars
import pytest

from simulated_experiments import lwr4, scara
from steelyard import predict
from steelyard.errors import EstimateError, ObservationError
from steelyard.identification import Settings, fit_arm, identify, load_run, robot_of_run, save_run
from steelyard.observe import Preparation, part_of, prepared_blocks
from steelyard.recording import Finding, Recording, TorqueChannel, write_recording
from steelyard.robot import load_robot
from steelyard.signals import SegmentFilter, evaluation_filter

QUICK = Settings(bias_repeats=0)


@pytest.fixture(scope="module")
def found():
    return identify("scara_2r", [scara(1), scara(2)], scara(3), QUICK)


@pytest.fixture(scope="module")
def run(found, tmp_path_factory):
    return save_run(found, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def lwr4_run(tmp_path_factory):
    return save_run(identify("kuka_lwr4", lwr4(1), lwr4(5), QUICK), tmp_path_factory.mktemp("lwr4"))


def test_errors_are_those_of_the_validation(found, run):
    error = predict(run, scara(3)).error
    assert error is not None
    for ours, theirs in zip(error.joints, found.unseen_error.joints, strict=True):
        assert (ours.samples, ours.kind, ours.joint) == (theirs.samples, theirs.kind, theirs.joint)
        for figure in ("rms", "relative_percent", "maximum", "torque_rms", "standstill_rms", "noise_rms"):
            assert getattr(ours, figure) == pytest.approx(getattr(theirs, figure), rel=1e-12)
    assert error.relative_percent == pytest.approx(found.unseen_error.relative_percent, rel=1e-12)
    assert error.cutoff == found.unseen_error.cutoff


@pytest.mark.parametrize(
    "preparation",
    [
        Preparation(cutoff=9.0, decimation=4, standstill=(0.02, 0.03), delay=0.01),
        Preparation(mode="none", decimation=1),
        Preparation(velocity="recorded", second="twice_first"),
    ],
)
def test_filters_that_were_chosen_are_used_again(preparation, tmp_path):
    logs = [scara(seed) for seed in (1, 3)]
    logs = [replace(log, qd=np.gradient(log.q, log.time, axis=1)) for log in logs]
    settings = Settings(bias_repeats=0, preparation=preparation, evaluation_cutoff=7.0, method="wls")
    found = identify("scara_2r", logs[0], logs[1], settings)
    error = predict(save_run(found, tmp_path / "run"), logs[1]).error
    assert error is not None
    assert error.relative_percent == pytest.approx(found.unseen_error.relative_percent, rel=1e-12)
    assert error.cutoff == 7.0


@pytest.mark.large
def test_errors_of_motor_and_joint_torques_are_those_reported(lwr4_run):
    error = predict(lwr4_run, lwr4(5)).error
    assert error is not None
    reported = {(one["kind"], one["name"]): one["rms"] for one in lwr4_run.content["validation"]["joints"]}
    assert {(one.kind, one.joint): one.rms for one in error.joints} == pytest.approx(reported, rel=1e-12)


def test_the_file_holds_what_the_figures_are_made_of(run, tmp_path):
    prediction = predict(run, scara(3))
    table = polars.read_csv(prediction.write_csv(tmp_path / "torques.csv"))
    assert table.equals(prediction.to_frame())
    assert prediction.error is not None
    low = evaluation_filter(100.0, prediction.error.cutoff)
    for joint in prediction.error.joints:
        columns = [table[f"{what}_motor[{joint.joint}]"].to_numpy() for what in ("measured", "predicted")]
        moving = table[f"moving[{joint.joint}]"].to_numpy()
        segment = SegmentFilter(low)
        parts = [segment.push(np.array(columns), moving[None].astype(float)), segment.flush()]
        measured, predicted, moves = np.concatenate([part for part in parts if part is not None], axis=1)
        error = (measured - predicted)[moves > 0]
        assert np.sqrt(np.mean(error**2)) == pytest.approx(joint.rms, rel=1e-9)
        plain = table[f"error_motor[{joint.joint}]"].to_numpy()
        assert plain == pytest.approx(columns[0] - columns[1])


def test_times_and_torques_are_those_of_the_log(run):
    log = scara(3)
    table = predict(run, log).to_frame()
    place = np.searchsorted(log.time, table["time"].to_numpy() - 1e-9)
    assert log.time[place] == pytest.approx(table["time"].to_numpy())
    assert np.array_equal(table["measured_motor[joint_2]"].to_numpy(), log.torques[0].values[1, place])


def test_the_band_is_that_of_the_parameters(run):
    """Against W of the model itself, and against predictions with parameters drawn from their covariance."""
    prediction = predict(run, scara(3))
    block = next(prediction.blocks())
    model, estimate = prediction.equations.model, run.essential
    motion = load_motion(prediction)
    full = np.array(model.regressor(*(signal[:, 40] for signal in motion)))
    regressor = full[:, [model.names.index(name) for name in estimate.columns]]
    assert block.torque[:, 40] == pytest.approx(regressor @ estimate.values, rel=1e-9)
    sigma = np.sqrt(np.diag(regressor @ estimate.covariance @ regressor.T))
    assert block.half_width[:, 40] == pytest.approx(1.96 * sigma, rel=0.01)
    drawn = np.random.default_rng(0).multivariate_normal(estimate.values, estimate.covariance, 4000)
    inside = np.abs((drawn - estimate.values) @ regressor.T) < block.half_width[:, 40]
    assert inside.mean(axis=0) == pytest.approx(0.95, abs=0.015)


def load_motion(prediction):
    """Return q, qd and qdd of the first block as they were prepared."""
    block = next(prepared_blocks(prediction.sources[0]))
    return block.q, block.qd, block.qdd


def test_a_log_without_torques_is_predicted_and_not_judged(run, tmp_path):
    log = scara(3)
    bare = predict(run, replace(log, torques=()))
    table = polars.read_csv(bare.write_csv(tmp_path / "bare.csv"))
    whole = predict(run, log).to_frame()
    assert bare.error is None
    assert "nothing to compare with" in bare.notes[0]
    assert bare.to_json()["relative_error_percent"] is None
    assert table["predicted_motor[joint_1]"].equals(whole["predicted_motor[joint_1]"])
    assert not any(name.startswith(("measured", "error")) for name in table.columns)


@pytest.mark.large
def test_of_a_log_with_one_of_two_torques_that_one_is_judged(lwr4_run):
    log = lwr4(5)
    motor = replace(log, torques=tuple(one for one in log.torques if one.kind == "motor_torque"))
    whole, part = predict(lwr4_run, log), predict(lwr4_run, motor)
    assert whole.error is not None
    assert part.error is not None
    assert [one.kind for one in part.error.joints] == ["motor"] * 7
    rms = {(one.kind, one.joint): one.rms for one in whole.error.joints}
    assert [one.rms for one in part.error.joints] == pytest.approx(
        [rms["motor", one.joint] for one in part.error.joints]
    )
    table = part.to_frame()
    assert "predicted_joint[joint_3]" in table.columns
    assert "measured_joint[joint_3]" not in table.columns


def test_several_logs_stand_one_after_the_other(run, tmp_path):
    for seed in (3, 4):
        write_recording(scara(seed), tmp_path / f"log_{seed}.csv")
    both = predict(run, [tmp_path / "log_3.csv", tmp_path / "log_4.csv"])
    table = both.to_frame()
    assert table["recording"].unique(maintain_order=True).to_list() == ["log_3", "log_4"]
    alone = [predict(run, scara(seed)).error for seed in (3, 4)]
    assert both.error is not None
    assert both.error.joints[0].samples == sum(one.joints[0].samples for one in alone if one)


def test_memory_does_not_grow_with_the_log(run):
    log = scara(3)
    count = 60_000
    time, motion = np.arange(count) / 100, np.array([[0.7], [1.1]])
    torques = (TorqueChannel("motor_torque", np.zeros((2, count))),)
    long = Recording(log.joints, time, 0.4 * np.sin(motion * time), torques=torques)
    sizes = [len(block.time) for block in predict(run, long).blocks()]
    assert max(sizes) < 20_000
    assert sum(sizes) > 0.99 * count


def test_a_joint_that_was_held_is_no_part_of_the_prediction(tmp_path):
    robot = load_robot("scara_2r")
    log = scara(1)
    held = replace(log, q=np.vstack([np.zeros_like(log.time), log.q[1]]))
    settings = Settings(bias_repeats=0, lock={"joint_1": 0.0}, method="wls")
    found = identify(robot, held, settings=settings)
    prediction = predict(save_run(found, tmp_path / "run"), held)
    assert prediction.to_frame().columns[1] == "predicted_motor[joint_2]"
    assert [one.joint for one in prediction.error.joints] == ["joint_2"]  # type: ignore[union-attr]


def test_a_payload_that_the_run_does_not_know_is_noted(run):
    noted = predict(run, replace(scara(3), payload="plate"))
    assert "carries payload 'plate', the arm of the run none" in noted.notes[0]


def test_a_bad_log_is_predicted_and_said_to_be_bad(run):
    bad = Finding("dead_channel", "bad", "the torque of joint_1 is constant")
    assert predict(run, replace(scara(3), findings=(bad,))).notes == (
        "recording 'recording 1': the torque of joint_1 is constant",
    )


@pytest.mark.large
def test_the_run_s_payload_is_predicted_and_another_refused(tmp_path):
    paired = identify("kuka_lwr4", [lwr4(1), lwr4(2, "P5")], lwr4(3, "P5"), QUICK)
    run = save_run(paired, tmp_path / "paired")
    error = predict(run, lwr4(3, "P5")).error
    assert error is not None
    assert error.relative_percent == pytest.approx(paired.unseen_error.relative_percent, rel=1e-12)
    with pytest.raises(EstimateError, match="carries payload 'P2', the run knows 'P5'"):
        predict(run, replace(lwr4(2), payload="P2"))


TABLE = files("steelyard.robot").joinpath("catalogue", "scara_2r.toml").read_text(encoding="utf-8")


def test_the_robot_file_must_be_the_one_of_the_run(tmp_path):
    file, moved, log = tmp_path / "arm.toml", tmp_path / "elsewhere.toml", scara(3)
    file.write_text(TABLE)
    settings = Settings(bias_repeats=0, method="wls", reduction="none")
    run = save_run(identify(str(file), scara(1), settings=settings), tmp_path / "run").folder
    assert predict(run, log).error is not None
    file.rename(moved)
    with pytest.raises(EstimateError, match="is not here; name it with --robot"):
        predict(run, log)
    assert predict(run, log, str(moved)).error is not None
    moved.write_text(TABLE + "# edited")
    with pytest.raises(EstimateError, match=r"elsewhere.toml' is not the file that the run read: .*has changed"):
        predict(run, log, str(moved))
    file.write_text(TABLE + "# edited")
    with pytest.raises(EstimateError, match="has changed since the run"):
        predict(run, log)
    with pytest.raises(EstimateError, match="the run is of robot 'scara_2r', got 'ur10e'"):
        robot_of_run(load_run(run).content, "ur10e")
    with pytest.raises(EstimateError, match=r"no robot file 'nowhere\.urdf'"):
        robot_of_run(load_run(run).content, "nowhere.urdf")


def test_an_arm_that_moves_otherwise_is_refused(run):
    turned = load_robot("scara_2r").with_gravity((0.0, -9.81, 0.0))
    with pytest.raises(EstimateError, match="geometry or gravity differ"):
        predict(run, scara(3), turned)


def test_a_log_of_another_arm_or_none_is_one_line(run):
    with pytest.raises(ObservationError, match="is it a recording of another robot"):
        predict(run, replace(scara(3), joints=("joint_1", "joint_3")))
    with pytest.raises(EstimateError, match="no recording is given"):
        predict(run, [])
    with pytest.raises(EstimateError, match="none of its 1 segments is long enough for an evaluation filter"):
        predict(run, part_of(scara(3), 0, 120))


def test_a_run_keeps_its_essential_parameters(found, run):
    assert run.essential.columns == found.essential.columns
    assert np.array_equal(run.essential.values, found.essential.values)
    assert np.array_equal(run.essential.covariance, found.essential.covariance)
    assert run.choices == replace(found.settings, threads=1)
    assert fit_arm("scara_2r", scara(1)).fit.observations.fingerprint.geometry == run.observations.fingerprint.geometry
