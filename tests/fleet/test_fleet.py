"""Fleets from a manifest to findings: broken logs are rows, nothing is read twice, workers do not change a byte."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dask_cluster import dask_cluster, kill
from from_benchmarks import benchmark_module
from steelyard.cli import main
from steelyard.errors import ConfigError, EstimateError, FileError, WorkerError
from steelyard.fleet import identify_fleet, log_results, pipeline, read_manifest, result_of
from steelyard.recording import write_recording

bench = benchmark_module("fleet")
ROBOT, UNITS = "scara_2r", 8
CHANGES = (
    bench.Planted(ROBOT, 2, 3, 2, (1, 1, 1, 1.5, 1.5)),
    bench.Planted(ROBOT, 5, 2, 0, (0, 0, 1.0, 1.0, 1.0)),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the logs of SCARA arms: friction of one changes, one gets a payload, three logs are broken."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "planted", lambda units: CHANGES)
        truth = bench.make_fleet(folder, UNITS, (ROBOT,))
    return folder, truth


def few_logs(folder: Path, count: int) -> Path:
    """Return a manifest of the first few logs."""
    few = folder / f"few_{count}.csv"
    few.write_text("\n".join((folder / "manifest.csv").read_text().splitlines()[: count + 1]))
    return few


@pytest.fixture(scope="module")
def found(made):
    folder, _ = made
    return identify_fleet(folder / "manifest.csv", folder / "known")


def test_planted_changes_are_found_with_unit_date_and_size(found, made):
    by_serial = {one.serial: one for one in found.findings}
    assert sorted(by_serial) == ["SC002", "SC005"]
    friction, payload = by_serial["SC002"], by_serial["SC005"]
    assert (friction.code, f"{friction.date:%Y-%m}") == ("changed", "2026-04")
    assert "joint_2" in friction.cause or friction.cause.endswith("m2")
    assert (payload.code, f"{payload.date:%Y-%m}") == ("payload", "2026-03")


def test_broken_logs_are_rows_with_their_reason(found):
    reasons = {(log.serial, log.date.month): one.reason for log, one in found.broken}
    assert sorted(reasons) == [("SC001", 2), ("SC002", 2), ("SC004", 2)]
    assert all(0 < len(reason) < 500 for reason in reasons.values())
    rows = found.runs_frame()
    assert rows.filter(pl.col("status") == "left out").height == 3
    assert rows.height == UNITS * bench.LOGS


def test_units_are_known_within_their_sigmas_and_variation_within_its_interval(found, made):
    _, truth = made
    (robot,) = found.robots
    places = [truth.columns[ROBOT].index(one.column) for one in robot.parameters]
    values, sigma = robot.unit_values
    errors = np.abs(values - truth.units[ROBOT][:, places])[[0, 1, 3, 4, 6, 7]]
    assert 0.85 <= np.mean(errors < 1.96 * sigma[[0, 1, 3, 4, 6, 7]]) <= 1
    low, high = robot.hierarchy.variance_interval()
    spread = truth.spread[ROBOT][places]
    assert np.mean((low <= spread**2) & (spread**2 <= high)) >= 0.75


def test_what_is_known_is_not_read_again_and_gives_the_same(found, made, monkeypatch):
    folder, _ = made

    def read(*_):
        raise AssertionError("a log was read again")

    monkeypatch.setattr(pipeline, "result_of", read)
    monkeypatch.setattr(log_results, "file_hash", read)
    again = identify_fleet(folder / "manifest.csv", folder / "known")
    assert again.read == 0
    assert again.to_json() == found.to_json()


def test_a_copied_log_is_known_by_its_content(found, made, tmp_path):
    folder, _ = made
    for path in folder.glob("*.npz"):
        shutil.copy(path, tmp_path)
    shutil.copy(folder / "manifest.csv", tmp_path)
    assert identify_fleet(tmp_path / "manifest.csv", folder / "known").read == 0


def test_a_log_named_twice_counts_once_and_its_other_row_says_so(made, tmp_path):
    folder, _ = made
    lines = (folder / "manifest.csv").read_text().splitlines()
    shutil.copy(folder / "scara_2r_000_0.npz", folder / "copied.npz")
    (folder / "twice.csv").write_text("\n".join([*lines[:2], "scara_2r,SC099,2026-01-15,copied.npz"]))
    found = identify_fleet(folder / "twice.csv", folder / "known")
    ((log, result),) = found.broken
    assert (log.serial, result.reason) == ("SC099", "the same data as line 2 (unit SC000); each log counts once")
    assert "too few to say whether one is unlike the others" in found.notes[0]


def test_an_interrupt_keeps_what_was_finished(made, tmp_path, monkeypatch):
    manifest = few_logs(made[0], 5)
    real, done = pipeline.result_of, []

    def interrupted(model, log):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(log)
        return real(model, log)

    monkeypatch.setattr(pipeline, "result_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        identify_fleet(manifest, tmp_path)
    monkeypatch.setattr(pipeline, "result_of", real)
    assert identify_fleet(manifest, tmp_path).read == 2


def test_one_more_log_updates_a_unit_without_the_others(found, made):
    (robot,) = found.robots
    (model,) = found.models.values()
    values, sigma = robot.update("SC003", result_of(model, robot.logs_of(3)[0]))
    assert values == pytest.approx(robot.unit_values[0][3], abs=3 * float(robot.unit_values[1][3].max()))
    assert (sigma <= robot.hierarchy.unit_sigma[3]).all()
    with pytest.raises(EstimateError, match="no unit 'X' in this fleet"):
        robot.update("X", found.results[0])
    with pytest.raises(EstimateError, match="the log is left out: "):
        robot.update("SC003", found.broken[0][1])


def test_the_command_writes_tables_and_a_page_and_says_what_it_found(found, made, tmp_path, capsys):
    folder, _ = made
    shutil.copytree(folder / "known", tmp_path / "out")
    assert main(["fleet", str(folder / "manifest.csv"), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "40 logs of 8 units (0 read now, 40 known), 3 left out" in said
    assert "unit SC002 (scara_2r)" in said
    content = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [one["serial"] for one in content["findings"]] == [one.serial for one in found.findings]
    parameters = pl.read_parquet(tmp_path / "out" / "parameters.parquet")
    assert parameters["serial"].n_unique() == UNITS + 1
    charts = pl.read_parquet(tmp_path / "out" / "charts.parquet").filter(pl.col("beyond"))
    assert set(charts["serial"]) == {"SC002", "SC005"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Drift charts of scara_2r" in page


def test_a_fleet_of_which_nothing_can_be_read_is_an_error(tmp_path, capsys):
    (tmp_path / "manifest.csv").write_text("robot,serial,date,files\nscara_2r,1,2026-01-01,no.npz\n")
    assert main(["fleet", str(tmp_path / "manifest.csv"), "--out", str(tmp_path / "out"), "--workers", "1"]) == 1
    assert "no log of 1 can be used; the first: line 2: " in capsys.readouterr().err
    assert not (tmp_path / "out" / "result.json").exists()
    with pytest.raises(FileError, match="no log of 1 can be used"):
        identify_fleet(tmp_path / "manifest.csv")


@pytest.mark.parametrize("other", ["processes", pytest.param("cluster", marks=pytest.mark.large)])
def test_processes_and_a_cluster_give_the_bytes_of_one_process(other, found, made, tmp_path):
    folder, _ = made
    few = few_logs(folder, 6)
    alone = identify_fleet(few, tmp_path / "one")
    if other == "processes":
        shared = identify_fleet(few, tmp_path / "other", workers=2)
    else:
        pytest.importorskip("distributed")
        with dask_cluster(tmp_path, workers=2) as running:
            shared = identify_fleet(few, tmp_path / "other", scheduler=running.address)
    assert alone.read == shared.read == 6
    assert json.dumps(alone.to_json()) == json.dumps(shared.to_json())
    stored = sorted(path.name for path in (tmp_path / "other" / "store").rglob("*.npz"))
    assert stored == sorted(path.name for path in (tmp_path / "one" / "store").rglob("*.npz"))


@pytest.mark.large
def test_a_killed_worker_and_a_lost_scheduler_lose_nothing_that_was_finished(found, made, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    folder, _ = made
    real, written = log_results.ResultStore.write, []
    with dask_cluster(tmp_path, workers=4) as running:

        def write(self, key, result):
            real(self, key, result)
            written.append(key)
            if len(written) == 3:
                kill(running.workers[0])
            if len(written) == 8:
                kill(running.scheduler)

        monkeypatch.setattr(log_results.ResultStore, "write", write)
        with pytest.raises(WorkerError, match="was lost"):
            identify_fleet(folder / "manifest.csv", tmp_path / "out", scheduler=running.address)
    assert 8 <= len(written) < UNITS * bench.LOGS
    monkeypatch.setattr(log_results.ResultStore, "write", real)
    (tmp_path / "again").mkdir()
    with dask_cluster(tmp_path / "again", workers=4) as running:
        again = identify_fleet(folder / "manifest.csv", tmp_path / "out", scheduler=running.address)
    assert again.read == UNITS * bench.LOGS - len(written)
    assert json.dumps(again.to_json()) == json.dumps(found.to_json())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("robot,serial,date\n", "no column files; needed are robot, serial, date, files"),
        ("robot,serial,date,files,colour\n", "unknown key 'colour'; allowed: robot"),
        ("robot,serial,date,files\na,1,soon,x.csv\n", "line 2: date is 'soon'; allowed: a date such as"),
        ("robot,serial,date,files\na,1,2026-01-01\n", "line 2 has 3 cells, the header 4"),
        ("robot,serial,date,files\na,1,2026-01-01,\n", "line 2: files is .*; allowed: a text or a list of texts"),
        ("robot,serial,date,files\n", "names no log"),
        ("robot,serial,date,files\na,1,2026-01-01,../x.csv\n", "line 2: '../x.csv' is outside '.*'.*--root"),
        ("robot,serial,date,files\na,1,2026-01-01,/etc/passwd\n", "line 2: '/etc/passwd' is outside"),
        ("robot,serial,date,files,config\na,1,2026-01-01,x.csv,../c.toml\n", "'../c.toml' is outside"),
        ("robot,serial,date,files\n../arm.urdf,1,2026-01-01,x.csv\n", "'../arm.urdf' is outside"),
        ("", "no column robot"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(tmp_path, text, message):
    (tmp_path / "manifest.csv").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_manifest(tmp_path / "manifest.csv")


def test_a_manifest_in_toml_declares_models(tmp_path):
    path = tmp_path / "manifest.toml"
    path.write_text(
        '[[log]]\nrobot = "scara_2r"\nserial = 12\ndate = 2026-03-31\nfiles = ["a.csv", "b.csv"]\npayload = "nonebox"\n'
        "[model.scara_2r]\ncutoff = 8.0\n"
    )
    found = read_manifest(path)
    (log,) = found.logs
    assert (log.serial, log.payload, [file.name for file in log.files]) == ("12", "nonebox", ["a.csv", "b.csv"])
    assert found.models == {"scara_2r": {"cutoff": 8.0}}
    path.write_text(path.read_text().replace("cutoff", "cutof"))
    with pytest.raises(ConfigError, match="unknown key 'cutof'"):
        read_manifest(path)


def test_paths_start_at_the_manifest_and_spreadsheets_may_use_semicolons(tmp_path):
    path = tmp_path / "manifest.csv"
    path.write_text("﻿robot;serial;date;files;payload\nscara_2r;7;2026-03-31T22:15;a.csv;none\n")
    (log,) = read_manifest(path).logs
    assert log.files == (tmp_path / "a.csv",)
    assert log.payload == ""
    assert read_manifest(path, tmp_path / "logs").logs[0].files == (tmp_path / "logs" / "a.csv",)
    assert f"{log.date:%Y-%m-%d %H:%M %Z}" == "2026-03-31 22:15 UTC"


@pytest.fixture(scope="module")
def known_logs(tmp_path_factory):
    """Where results of single logs are kept: those that are right are the same in several fleets, and read once."""
    return tmp_path_factory.mktemp("known")


class TestWrongLogs:
    """A fleet of SCARA arms that vary as usual, one log of which is wrong."""

    UNITS, LOGS = 7, 3

    @pytest.fixture(autouse=True)
    def store(self, known_logs):
        self.known = known_logs

    def fleet(self, folder: Path, wrong, payload: str = ""):
        """Identify a fleet; ``wrong(maker, unit, log, parameters)`` returns parameters and torque signs of a log."""
        maker = bench.ArmMaker(ROBOT, self.LOGS)
        lines = ["robot,serial,date,files,payload"]
        for unit in range(self.UNITS):
            parameters = maker.unit(np.random.default_rng((5, unit)))
            for log in range(self.LOGS):
                used, sign = wrong(maker, unit, log, parameters)
                recording = maker.recording(log, used, np.random.default_rng((5, unit, log)))
                torque = replace(recording.torques[0], values=recording.torques[0].values * sign)
                path = folder / f"{unit}_{log}.npz"
                write_recording(replace(recording, torques=(torque,), notes=(), findings=()), path)
                loaded = payload if not np.array_equal(used, parameters) else ""
                lines.append(f"{ROBOT},{unit},2026-0{log + 1}-15,{path.name},{loaded}")
        (folder / "manifest.csv").write_text("\n".join(lines))
        return identify_fleet(folder / "manifest.csv", self.known)

    def test_reversed_torques_are_left_out(self, tmp_path):
        def wrong(maker, unit, log, parameters):
            return parameters, np.array([[1.0], [-1.0 if (unit, log) == (2, 1) else 1.0]])

        found = self.fleet(tmp_path, wrong)
        ((log, result),) = found.broken
        assert (log.serial, log.date.month) == ("2", 2)
        assert "joint_2" in result.reason
        assert "wrong sign" in result.reason
        assert not found.findings

    def test_torques_of_another_scale_are_no_payload(self, tmp_path):
        found = self.fleet(tmp_path, lambda maker, unit, log, own: (own * (1.3 if (unit, log) == (3, 2) else 1), 1.0))
        finding = found.findings[0]
        assert (finding.serial, f"{finding.date:%m}", finding.cause) == ("3", "03", "scale of the torques")
        assert finding.value == pytest.approx(0.3, abs=0.1)
        assert "larger than before" in finding.text
        assert {one.serial for one in found.findings} == {"3"}

    def test_a_declared_payload_is_not_found_and_an_undeclared_one_is(self, tmp_path):
        def wrong(maker, unit, log, parameters):
            return parameters + maker.payload(1.0) * (unit == 4 and log > 0), 1.0

        (finding,) = self.fleet(tmp_path, wrong).findings
        assert (finding.serial, f"{finding.date:%m}", finding.code) == ("4", "02", "payload")
        assert not self.fleet(tmp_path, wrong, "ball").findings

    def test_a_unit_unlike_the_others_is_found_among_few(self, tmp_path):
        def wrong(maker, unit, log, parameters):
            friction = np.array([one.name == "Fcm2" for one in maker.model.parameters])
            return np.where(friction & (unit == 1), 4 * parameters, parameters), 1.0

        found = self.fleet(tmp_path, wrong)
        (finding,) = found.findings
        assert (finding.serial, finding.code, finding.cause) == ("1", "differs", "Fcm2")

    def test_one_log_is_identified_as_by_itself(self, tmp_path):
        self.fleet(tmp_path, lambda maker, unit, log, own: (own, 1.0))
        lines = (tmp_path / "manifest.csv").read_text().splitlines()
        (tmp_path / "one.csv").write_text("\n".join(lines[:2]))
        found = identify_fleet(tmp_path / "one.csv")
        frame = found.parameters_frame().filter(pl.col("serial") != "")
        assert len(frame) == 8
        assert frame["value"].to_list() == pytest.approx(frame["alone"].to_list(), rel=1e-6)
        assert frame["sigma"].to_list() == pytest.approx(frame["alone_sigma"].to_list(), rel=1e-6)
        assert found.findings_frame().columns == list(pipeline.FINDING_COLUMNS)
