"""The benchmark of real arms: its own judgement agrees with the product's, its set-ups are short, its tables hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data_folder import data_folder
from from_benchmarks import benchmark_module
from simulated_experiments import scara
from steelyard.identification import Settings, identify, predict, save_run
from steelyard.recording import Recording
from steelyard.robot import inertia_from_parameters, load_robot

real, scoring, tables, published = (
    benchmark_module(name) for name in ("real", "real_scoring", "real_tables", "real_published")
)


def raw(recording: Recording):
    return scoring.RawLog(recording.time, recording.q, None, recording.torques[0].values)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = Settings(evaluation_cutoff=8.0, bias_repeats=0)
    return save_run(identify("scara_2r", scara(1), scara(2), settings), tmp_path_factory.mktemp("real") / "run")


def test_the_judgement_from_raw_samples_equals_the_products(run):
    prediction = predict(run, [scara(2)])
    row = scoring.Judged("scara_2r", "", 8.0)
    found = scoring.score(raw(scara(2)), row, *real.predicted(prediction))
    assert prediction.error is not None
    assert found.moving == pytest.approx(prediction.error.relative_percent, rel=5e-3)
    assert found.moving == pytest.approx(run.content["validation"]["relative_error_percent"], rel=5e-3)


def test_a_part_held_out_at_the_end_is_judged_as_the_product_does(tmp_path):
    settings = Settings(evaluation_cutoff=8.0, bias_repeats=0, hold_out=0.4)
    run = save_run(identify("scara_2r", scara(3), settings=settings), tmp_path / "run")
    row = scoring.Judged("scara_2r", "", 8.0, held_out=0.4)
    found = scoring.score(raw(scara(3)), row, *real.predicted(predict(run, [scara(3)])))
    assert found.moving == pytest.approx(run.content["validation"]["relative_error_percent"], rel=5e-3)
    assert found.coverage > 0.85


def test_errors_are_as_planted():
    time = np.arange(4000) / 200
    torque = np.array([10 * np.sin(2 * time), 4 * np.cos(3 * time)])
    log = scoring.RawLog(time, 0 * torque, None, torque)
    wrong = torque + np.array([[0.0], [0.1]]) * torque + 0.5 * np.sin(2 * np.pi * 60 * time)  # the filter takes 60 Hz
    found = scoring.score(log, scoring.Judged("", "", 10.0), time, wrong)
    inner = (time > 0.4) & (time < time[-1] - 0.4)
    expected = 100 * np.sqrt((0.1 * torque[1, inner]) @ (0.1 * torque[1, inner]) / np.sum(torque[:, inner] ** 2))
    assert found.window == pytest.approx(expected, rel=1e-3)
    np.testing.assert_allclose(found.joints, [0, 10], atol=0.02)


def test_standstill_and_its_margins_are_left_out():
    time = np.arange(2000) / 100
    speed = np.where((time > 5) & (time < 10), 0.0, 0.5)
    log = scoring.RawLog(time, np.cumsum(speed)[None] / 100, speed[None], np.ones((1, 2000)))
    still = scoring.standing_still(log, time, 10.0)
    assert still[(time > 4.85) & (time < 10.15)].all()
    assert not still[(time < 4.7) | (time > 10.3)].any()


def test_set_ups_have_at_most_15_lines():
    for case in real.CASES:
        text = (real.TABLES / f"{case.config}.toml").read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 15, case.config


def test_a_published_sum_is_read_and_compared_whatever_is_regrouped(run):
    terms = published._standard_sum("J2xx-J2yy +J3yy +0.632c3zm3 +0.1067 (m3 +m4)")
    assert terms == {"XX2": 1, "YY2": -1, "YY3": 1, "MZ3": 0.632, "M3": 0.1067, "M4": 0.1067}
    equations = predict(run, [scara(2)]).equations
    place = [one.name for one in equations.base.base].index("ZZ1R")
    column = run.estimate.columns.index("ZZ1")
    sums = [
        published.PublishedSum("twice ZZ1R", {"ZZ1": 2.0, "M2": 0.5}, 6.0),
        published.PublishedSum("not identifiable", {"M2": 1.0}, 1.0),
        published.PublishedSum("no such parameter", {"ZZ9": 1.0}, 1.0),
    ]
    (found,) = published.compared(iter(sums), run, equations)
    assert equations.base.base[place].column == "ZZ1"
    assert found.value == pytest.approx(2 * run.estimate.values[column])
    assert found.sigma == pytest.approx(2 * run.estimate.sigma[column])


def test_the_consistent_arm_of_a_run_is_predicted_as_the_product_judged_it(run):
    arm = real.consistent(run, predict(run, [scara(2)]))
    error = predict(arm, [scara(2)]).error
    assert error is not None
    assert error.relative_percent == pytest.approx(run.content["consistency"]["validation"]["relative_error_percent"])


def test_sections_of_the_page_are_replaced_and_others_stay(tmp_path):
    page = tmp_path / "page.md"
    tables.write_section(page, "first", tables.markdown(("a", "b"), [["x|y", "1"]]))
    tables.write_section(page, "second", "kept")
    tables.write_section(page, "first", "new")
    text = page.read_text()
    assert text.startswith("# Benchmarks on real arms")
    assert "x" + chr(92) + "|y" not in text
    assert text.index("new") < text.index("kept")
    assert [tables.grade(error, 3.3, 2.35) for error in (2.354, 2.36, 3.31)] == ["excellent", "good", "missed"]


def test_peers_are_fitted_with_the_logs_of_our_commands():
    peers = benchmark_module("peers.real")
    assert {case.name: peers.training_logs(case) for case in real.CASES} == {
        "panda": [""], "lwr4_2+3": ["2", "3"], "lwr4_1": ["1"], "lwr4_3": ["3"], "tx40": [""],
        "ur10e": ["20_02_10-30sec_12harm"], "airbot": ["chirp"],
    }  # fmt: skip
    assert set(peers.SETTINGS) == {case.config for case in real.CASES} == set(scoring.READERS)


def test_mujoco_starts_from_links_that_can_exist():
    peers = benchmark_module("peers.real")
    robot = load_robot("staubli_tx40")  # whose file has a link that no body can be
    links = peers.possible_links(robot)
    changed = [new.link for old, new in zip(robot.bodies, links, strict=True) if old.inertia != new.inertia]
    assert "link_6" in changed
    assert len(changed) < len(links)
    for body in links:
        inertia, moment, mass = inertia_from_parameters(np.array(body.inertia))
        spread = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        assert np.linalg.eigvalsh(spread - np.outer(moment, moment) / mass).min() > 0


@pytest.mark.data
@pytest.mark.parametrize("case", real.CASES, ids=lambda case: case.name)
def test_raw_files_are_read_as_the_product_reads_them(case, monkeypatch):
    monkeypatch.setenv("STEELYARD_DATA", str(data_folder()))
    for row in {row for target in case.targets for row in target.judged}:
        log, recording = scoring.READERS[row.robot](data_folder(), row.log), real.recordings(row.robot)[row.log]
        np.testing.assert_allclose(log.q, recording.q, atol=1e-9)
        channel = recording.torques[0]
        gain = np.ones(len(log.q)) if channel.gain is None else np.abs(channel.gain)
        np.testing.assert_allclose(log.torque, gain[:, None] * channel.values, rtol=1e-9, atol=1e-9)


@pytest.mark.data
@pytest.mark.large
def test_a_real_arm_is_tabulated(tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_DATA", str(data_folder()))
    case = next(case for case in real.CASES if case.name == "airbot")
    (result,) = real.results_of(case, tmp_path)
    assert max(outcome.differs for outcome in result.outcomes.values()) < 0.1
    text = tables.section([result])
    assert "| AIRBOT chirp -> trapezoidal | 5 |" in text
    assert "steelyard identify $STEELYARD_DATA/airbot_play/" in text
    assert Path(tmp_path / "airbot_selected" / "result.json").exists()


@pytest.mark.large
@pytest.mark.data
def test_check_names_the_quirks_of_real_recordings(tmp_path):
    data_folder()
    doctor = benchmark_module("doctor")
    unnamed = []
    for quirk in doctor.quirks(tmp_path):
        findings = doctor.findings_of(quirk, tmp_path)
        if not any(one["code"] == quirk.code and quirk.joint in one["joint"] for one in findings):
            unnamed.append(quirk.what)
    assert unnamed == []
