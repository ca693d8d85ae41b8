"""``identify --robust`` with all that works on its rows, and the errors of every validation recording apart."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from simulated_experiments import scara
from steelyard.cli import main
from steelyard.consistency import ConsistencySettings
from steelyard.errors import EstimateError
from steelyard.identification import Settings, identify, save_run
from steelyard.judge import evaluate
from steelyard.motion import quintic
from steelyard.observe import Preparation
from steelyard.recording import Recording, write_recording
from steelyard.simulation import Experiment, Noise, recording_of, simulate

NOISE = np.array([[0.5], [0.02]])
SETTINGS = Settings(
    select=False, bias_repeats=0, consistency=ConsistencySettings(draws=20),
    preparation=Preparation(decimation=1, cutoff=10.0),
)  # fmt: skip


@cache
def spoilt(seed: int) -> Recording:
    """Return a recording with one-sided spikes of 20 standard deviations in 5 % of its torques."""
    recording, rng = scara(seed), np.random.default_rng(seed)
    channel = recording.torques[0]
    values = channel.values + 20 * NOISE * (rng.random(channel.values.shape) < 0.05)
    return replace(recording, torques=(replace(channel, values=values), *recording.torques[1:]), sources=())


@cache
def clean(method: str = "gls"):
    return identify("scara_2r", [scara(0)], [scara(1)], replace(SETTINGS, method=method))


@cache
def quiet() -> Recording:
    """Return a recording that moves by a hundredth of the others."""
    experiment = Experiment(record_rate=100, encoder_quantum=1e-7, motor_noise=Noise("white", (0.5, 0.02)))
    points = 0.01 * np.random.default_rng(0).uniform(-1, 1, (2, 11)) * [[0.45], [2.6]]
    points[:, [0, -1]] = 0.0
    return recording_of(simulate("scara_2r", quintic(points, 1.0, ["joint_1", "joint_2"]), experiment, [5]))


def distance(found, reference) -> np.ndarray:
    """Return how far parameters are from those of a reference, in sigmas of the reference."""
    place = [found.estimate.columns.index(name) for name in reference.estimate.columns]
    return np.abs(found.estimate.values[place] - reference.estimate.values) / reference.estimate.sigma


CHOICES = [{"method": "gls"}, {"method": "wls"}, {"covariance": "block"}, {"select": True}, {"bias_repeats": 2}]
RARE = [
    {"method": "iterated"}, {"method": "ols"}, {"covariance": "model", "method": "wls"}, {"covariance": "sandwich"},
    {"covariance": "hac"}, {"reduction": "stepwise"}, {"reduction": "bic"}, {"prior": {"Fvm1": (0.07, 0.1)}},
]  # fmt: skip


@pytest.mark.parametrize("choices", [*CHOICES, *(pytest.param(one, marks=pytest.mark.large) for one in RARE)], ids=str)
def test_spikes_hardly_move_the_estimate_whatever_else_is_chosen(choices):
    found = identify("scara_2r", [spoilt(0)], [scara(1)], replace(SETTINGS, robust="tukey", **choices))
    reference = clean(choices.get("method", "gls"))
    assert np.sqrt(np.mean(distance(found, reference) ** 2)) < 1.2
    assert np.median(found.estimate.sigma / reference.estimate.sigma) == pytest.approx(1.05, abs=0.15)
    assert found.verdict.grade == "fair"  # for the spikes, which are poor without robust weights
    assert found.unseen_error.relative_percent < 1.1 * reference.unseen_error.relative_percent
    assert {row.name: row.grade for row in found.verdict.criteria}["residual correlation"] == "good"
    assert found.selection is None or not found.selection.steps
    if found.bias is not None:
        assert not found.bias.delays.has_common


def test_spikes_in_most_decimated_rows_leave_a_poor_verdict_with_robust_weights_too():
    preparation = Preparation(decimation=16, cutoff=10.0)
    found = identify("scara_2r", [spoilt(0)], [scara(1)], replace(SETTINGS, robust="tukey", preparation=preparation))
    assert found.verdict.grade == "poor"
    assert any("identify with --decimation 1" in reason.remedy for reason in found.verdict.reasons)


def test_without_robust_weights_the_same_spikes_spoil_estimate_and_choice():
    found = identify("scara_2r", [spoilt(0)], [scara(1)], replace(SETTINGS, select=True))
    assert np.sqrt(np.mean(distance(found, clean()) ** 2)) > 2
    assert found.verdict.grade == "poor"
    assert found.to_json()["robust"] is None


def test_what_was_down_weighted_is_said(tmp_path):
    found = identify("scara_2r", [spoilt(0)], [scara(1)], replace(SETTINGS, robust="huber"))
    content = found.to_json()["robust"]
    assert content["norm"] == "huber"
    assert content["converged"]
    assert content["expected_percent"] == pytest.approx(0.714, abs=1e-3)
    assert [one["joint"] for one in content["joints"]] == ["joint_1", "joint_2"]
    for one in content["joints"]:
        assert 4 < one["percent"] < 8
        assert 15 < one["largest"] < 25
    (note,) = [note for note in found.notes if note.startswith("robust weights (huber)")]
    assert "in normal noise 0.71 %" in note
    page = found.to_html()
    assert "Down-weighted rows" in page
    assert "Jarque-Bera below" not in page
    assert save_run(found, tmp_path / "run").choices.robust == "huber"
    # Errors of the fit are of the torques as recorded.
    assert found.fit_error.relative_percent > 3 * clean().fit_error.relative_percent


@pytest.mark.large
def test_earlier_runs_and_robust_rows_count_together(tmp_path):
    settings = replace(SETTINGS, robust="tukey")
    save_run(identify("scara_2r", [spoilt(0)], [scara(1)], settings), tmp_path / "first")
    both = identify("scara_2r", [spoilt(2)], [scara(1)], settings, earlier=[tmp_path / "first"])
    at_once = identify("scara_2r", [spoilt(0), spoilt(2)], [scara(1)], settings)
    assert distance(both, at_once).max() < 0.3
    np.testing.assert_allclose(both.estimate.sigma, at_once.estimate.sigma, rtol=0.1)


@pytest.mark.parametrize("norm", [pytest.param("huber", marks=pytest.mark.large), "tukey"])
def test_late_torques_are_still_found_in_full(norm):
    recording = spoilt(0)
    channel = recording.torques[0]
    values = np.array([np.interp(recording.time - 0.02, recording.time, row) for row in channel.values])
    late = replace(recording, torques=(replace(channel, values=values), *recording.torques[1:]), sources=())
    found = identify("scara_2r", [late], [scara(1)], replace(SETTINGS, select=True, robust=norm, bias_repeats=1))
    assert found.bias is not None
    delay, sigma = found.bias.delays.common
    assert found.bias.delays.has_common
    assert delay == pytest.approx(0.02, abs=max(3 * sigma, 5e-4))
    assert sigma < 2e-3


def test_many_down_weighted_rows_are_a_caution():
    recording, rng = scara(0), np.random.default_rng(0)
    channel = recording.torques[0]
    values = channel.values + 20 * NOISE * (rng.random(channel.values.shape) < 0.25)
    worse = replace(recording, torques=(replace(channel, values=values), *recording.torques[1:]), sources=())
    found = identify("scara_2r", [worse], [scara(1)], replace(SETTINGS, robust="tukey"))
    assert any("are down-weighted as outliers" in reason.text for reason in found.verdict.reasons)


@pytest.mark.parametrize("method", ["rls", "ekf", "ml", "iv", "didim"])
def test_methods_on_samples_refuse_robust_weights(method):
    with pytest.raises(EstimateError, match=f"robust 'huber' with method '{method}'.* gls, wls, iterated, ols"):
        Settings(method=method, robust="huber")


def test_an_unknown_norm_is_refused_by_settings():
    with pytest.raises(EstimateError, match="robust is 'cauchy'; allowed: huber, tukey"):
        Settings(robust="cauchy")


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, one in (("train", spoilt(0)), ("first", scara(1)), ("second", scara(2))):
        write_recording(one, Path(f"{name}.npz"))


def test_the_command_line_has_robust_weights_and_errors_of_every_file(logs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    command = ["identify", "scara_2r", "train.npz", "--validate", "first.npz", "--validate", "second.npz", "--plain"]
    assert main([*command, "--robust", "tukey", "--decimation", "1"]) == 0
    text = capsys.readouterr().out
    assert "unseen recordings apart" in text
    assert "robust weights (tukey)" in text
    assert main([*command, "--robust", "tukey", "--decimation", "1", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [one["label"] for one in content["validation"]["recordings"]] == ["first", "second"]
    assert main([*command, "--robust", "tukey", "--method", "ekf"]) == 1
    assert "robust 'tukey' with method 'ekf'" in capsys.readouterr().err


def test_errors_of_every_recording_are_those_of_each_alone():
    found = identify("scara_2r", [scara(0)], [scara(1), scara(2)], SETTINGS)
    content = found.to_json()["validation"]
    for source, part, told in zip(found.unseen, found.unseen_error.parts, content["recordings"], strict=True):
        alone = evaluate(source, found.essential, found.fit.noise)
        assert told["relative_error_percent"] == alone.relative_percent == part.relative_percent
        sums = [joint.sums for joint in alone.joints]
        error = sum(one.error + one.still_error for one in sums) / sum(one.torque + one.still_torque for one in sums)
        assert told["relative_error_percent_all_rows"] == pytest.approx(100 * np.sqrt(error))
        moving, still = sum(one.samples for one in sums), sum(one.still_samples for one in sums)
        assert told["standstill_percent"] == pytest.approx(100 * still / (still + moving))
    each = [one["relative_error_percent"] for one in content["recordings"]]
    assert min(each) < content["relative_error_percent"] < max(each)
    assert "errors-by-recording" in found.to_html()
    assert not [reason for reason in found.verdict.reasons if "validation recordings differ" in reason.text]


def test_a_recording_that_hardly_moves_or_is_far_worse_is_named_in_one_caution():
    channel = scara(3).torques[0]
    wrong = replace(scara(3), torques=(replace(channel, values=1.3 * channel.values),), sources=())
    found = identify("scara_2r", [scara(0)], [scara(1), quiet(), wrong], SETTINGS)
    (named,) = [reason.text for reason in found.verdict.reasons if "validation recordings differ" in reason.text]
    labels = [part.label for part in found.unseen_error.parts]
    assert f"'{labels[1]}' hardly moves joint_1, joint_2" in named
    assert f"'{labels[2]}' has a relative error of" in named
    assert f"'{labels[0]}'" not in named
