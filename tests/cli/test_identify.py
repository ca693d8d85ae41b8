"""``identify``, ``payload``, ``compare`` and ``papers`` as a user meets them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import steelyard
from simulated_experiments import lwr4, scara
from steelyard.cli import main
from steelyard.cli.identify_table import print_identification
from steelyard.errors import EstimateError
from steelyard.identification import read_payload, robot_of_run, settings_from_table
from steelyard.observe import part_of
from steelyard.recording import Recording, write_recording
from steelyard.robot import INERTIAL_NAMES, load_robot

LOGS = ["calm.npz", "lively.npz"]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_logs()
    return tmp_path


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory):
    """The folder of a run, to be copied; made once."""
    folder = tmp_path_factory.mktemp("saved")
    with contextlib.chdir(folder):
        write_logs()
        assert identify(*LOGS, "--validate", "unseen.npz", "--out", "run") == 0
    return folder / "run"


def write_logs() -> None:
    for name, seed in (("calm", 1), ("lively", 2), ("unseen", 3)):
        write_recording(scara(seed), Path(f"{name}.npz"))


def identify(*arguments: str) -> int:
    return main(["identify", "scara_2r", *arguments])


def test_the_screen_shows_the_verdict_first_then_errors_and_parameters(workplace, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    assert identify(*LOGS, "--validate", "unseen.npz", "--plain") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] in ("verdict: good", "verdict: fair")
    text = "\n".join(lines)
    assert text.index("verdict") < text.index("torque errors") < text.index("parameter  ") < text.index("not essential")
    assert "unseen relative error" in text
    assert "ZZ1R" in text


def test_a_run_folder_is_whole_and_the_same_for_the_same_input(saved_run, workplace, capsys):
    assert identify(*LOGS, "--validate", "unseen.npz", "--out", "one") == 0
    assert Path("one/result.json").read_bytes() == (saved_run / "result.json").read_bytes()
    content = json.loads(Path("one/result.json").read_text())
    names = {path.name for path in Path("one").iterdir()}
    assert names == {"report.html", "result.json", "timing.json", *content["files"].values()}
    assert set(content["provenance"]["inputs"]) == {*LOGS, "unseen.npz"}
    assert content["provenance"]["settings"]["logs"] == LOGS


@pytest.mark.large
def test_one_core_or_two_give_the_same_bytes(workplace):
    command = [sys.executable, "-m", "steelyard", "identify", "scara_2r", *LOGS, "--validate", "unseen.npz"]
    results = []
    for threads in ("1", "2"):
        folder = f"threads_{threads}"
        done = subprocess.run([*command, "--threads", threads, "--out", folder], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        results.append(Path(folder, "result.json").read_bytes())
    if hasattr(os, "sched_setaffinity"):
        core = min(os.sched_getaffinity(0))
        pinned = (
            f"import os, sys; os.sched_setaffinity(0, {{{core}}}); from steelyard.cli import main; sys.exit(main())"
        )
        done = subprocess.run(
            [sys.executable, "-c", pinned, *command[3:], "--out", "pinned"], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        results.append(Path("pinned/result.json").read_bytes())
    assert len(set(results)) == 1


def test_settings_come_from_the_file_and_flags_win(workplace, capsys):
    Path("setup.toml").write_text(
        '[identify]\nmethod = "wls"\nreduction = "rsd"\ncutoff = 15.0\nvalidate = ["unseen.npz"]\n'
        "thresholds = { error_good = 1.0, error_fair = 2.0 }\n"
    )
    assert identify(*LOGS, "--config", "setup.toml", "--cutoff", "18", "--json") == 2
    result = json.loads(capsys.readouterr().out)
    assert result["method"] == "wls"
    assert result["reduction"]["rule"] == "rsd"
    assert result["preparation"]["cutoff"] == 18.0
    assert result["validation"]["held_out"] is None
    assert result["verdict"]["grade"] == "poor"
    assert result["verdict"]["criteria"][4]["fair"] == "<= 2 %"


def test_a_bad_recording_is_left_out_unless_it_is_kept(workplace, capsys):
    wrong = replace(scara(4), qd=-3.0 * np.gradient(scara(4).q, scara(4).time, axis=1))
    write_recording(wrong, Path("wrong.npz"))
    assert identify("wrong.npz") == 1
    error = capsys.readouterr().err
    assert "no recording is left after the checks" in error
    assert error.count("\n") == 1
    identify("calm.npz", "wrong.npz", "--validate", "unseen.npz", "--plain", "--json")
    result = json.loads(capsys.readouterr().out)
    assert [one["label"] for one in result["recordings"]] == ["calm"]
    assert result["left_out"][0].startswith("wrong.npz is left out: ")
    identify("calm.npz", "wrong.npz", "--validate", "unseen.npz", "--keep-bad", "--plain", "--json")
    result = json.loads(capsys.readouterr().out)
    assert [one["label"] for one in result["recordings"]] == ["calm", "wrong"]
    assert result["left_out"] == []


def test_reversed_velocities_that_are_not_used_do_not_refuse_a_log(workplace, capsys):
    velocities = np.gradient(scara(4).q, scara(4).time, axis=1) * [[1.0], [-1.0]]
    write_recording(replace(scara(4), qd=velocities), Path("reversed.npz"))
    assert identify("reversed.npz", "--velocity", "recorded") == 1
    assert "qd of joint_2 is" in capsys.readouterr().err
    assert identify("reversed.npz", "--plain", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert [(one["kind"], one["severity"]) for one in result["findings"]] == [("velocity", "warning")]
    assert result["verdict"]["grade"] == "fair"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "no log given"),
        (["nowhere.npz"], "nowhere.npz"),
        ([*LOGS, "--validate", "calm.npz"], "is the same data as"),
        (["calm.npz", "calm.npz"], "are the same data"),
        ([*LOGS, "--payload", "paired"], "no recording says that it carries one"),
        ([*LOGS, "--effects", "inertia,Fwm"], "unknown effect 'Fwm'"),
        (["calm.npz", "--protect", "Fvm9", "--plain"], "unknown parameter 'Fvm9'"),
        (["calm.npz", "--protect", "Fvm9"], "unknown parameter 'Fvm9'"),
        ([*LOGS, "--torque", "joint"], "no joint_torque channel"),
        ([*LOGS, "--hold-out", "2"], "hold_out"),
        ([*LOGS, "--decimation", "500"], "gives no row"),
        (["calm.npz", "--decimation", "37"], "record longer or decimate less"),
        (["calm.npz", "--decimation", "37", "--plain"], "gives no row"),
        (["empty.npz"], "empty.npz"),
        ([*LOGS, "--method", "best"], "best"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(arguments, expected, workplace, capsys):
    Path("empty.npz").write_bytes(b"")
    assert identify(*arguments, "--out", "run") == 1
    captured = capsys.readouterr()
    assert expected in captured.err
    assert captured.err.count("\n") == 1
    assert not Path("run").exists()


def test_recordings_of_another_robot_are_refused(workplace, capsys):
    write_recording(lwr4(1), Path("other.npz"))
    assert identify("calm.npz", "other.npz") == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("where", ["reduce_rows", "generalised", "reduce_parameters", "save_observations"])
def test_an_interrupt_at_any_moment_leaves_no_half_written_run(where, saved_run, workplace, capsys, monkeypatch):
    shutil.copytree(saved_run, "run")
    before = {path.name: path.read_bytes() for path in Path("run").iterdir() if path.name != "timing.json"}
    place = {
        "reduce_rows": "steelyard.identification.fitting.reduce_rows",
        "generalised": "steelyard.estimate.gls.generalised",
        "reduce_parameters": "steelyard.identification.pipeline.reduce_parameters",
        "save_observations": "steelyard.identification.run_files.save_observations",
    }[where]

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupt)
    assert identify("unseen.npz", "--out", "run") == 1
    assert "interrupted" in capsys.readouterr().err
    after = {path.name: path.read_bytes() for path in Path("run").iterdir()}
    assert before.items() <= after.items()
    assert not [name for name in after if name.startswith(".")]


def test_a_payload_is_found_from_a_run(workplace, capsys):
    write_recording(lwr4(1, moves=6), Path("empty.npz"))
    write_recording(lwr4(2, "P5", moves=6), Path("loaded.npz"))
    assert main(["identify", "kuka_lwr4", "empty.npz", "--plain", "--torque", "joint", "--out", "arm"]) == 0
    capsys.readouterr()
    assert main(["payload", "arm", "loaded.npz", "--out", "held", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["payload"]["mass"] == pytest.approx(4.6136, abs=5 * result["payload"]["mass_sigma"])
    assert result["motion_was_enough"]
    saved = json.loads(Path("held/result.json").read_text())
    assert set(saved["provenance"]["inputs"]) == {"arm/result.json", "loaded.npz"}
    held = read_payload(Path("held"))
    assert robot_of_run(held.content).name == "kuka_lwr4"
    assert held.body.mass == (result["payload"]["mass"], result["payload"]["mass_sigma"])
    assert held.body.inertia_at_centre == pytest.approx(result["payload"]["inertia_at_centre"])
    with pytest.raises(EstimateError, match="the run 'arm' has no payload"):
        read_payload(Path("arm"))
    assert main(["payload", "arm", "loaded.npz"]) == 0
    assert "kg (one sigma)" in capsys.readouterr().out
    assert main(["payload", "nowhere", "loaded.npz"]) == 1
    assert "no such file or folder: 'nowhere'" in capsys.readouterr().err


def test_runs_are_compared(workplace, capsys):
    for seed, name in enumerate(LOGS):
        identify(name, "--plain", "--out", f"run_{seed}")
    capsys.readouterr()
    assert main(["compare", "run_0", "run_1", "--csv", "t.csv", "--latex", "t.tex", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["runs"] == ["run_0", "run_1"]
    first = result["parameters"][0]
    assert first["name"] == "ZZ1R"
    assert first["differences"][0] == pytest.approx(first["values"][1] - first["values"][0])
    assert "ZZ1R" in Path("t.csv").read_text()
    assert r"\toprule" in Path("t.tex").read_text()
    assert result["warnings"] == []
    assert main(["compare", "run_0", "run_1", "--out", "all"]) == 0
    assert re.search(r"\(\d left out,\swhose\ssigma\sis\sas\slarge\sas\sthe\svalue\)", capsys.readouterr().out)
    assert "all base parameters, with the values of the full model" in Path("all/report.html").read_text("utf-8")
    assert main(["compare", "run_0", "run_1", "--essential", "--out", "few", "--quiet"]) == 0
    capsys.readouterr()
    assert "essential parameters, with their values in the reduced model" in Path("few/report.html").read_text("utf-8")
    assert main(["compare", "run_0", "p2_lwr4", "--json"]) == 0
    assert "robot 'kuka_lwr4'" in json.loads(capsys.readouterr().out)["warnings"][0]
    assert main(["compare", "run_0", "run_1", "p2_lwr4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("warning: 'p2_lwr4' is of robot")
    assert main(["compare", "run_0"]) == 1
    assert "two runs" in capsys.readouterr().err
    assert main(["compare", "run_0", "p9_lwr4"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_is_compared_with_a_robot_file(saved_run, workplace, capsys, monkeypatch):
    shutil.copytree(saved_run, "run")
    table = files("steelyard.robot").joinpath("catalogue", "scara_2r.toml").read_text(encoding="utf-8")
    Path("arm.toml").write_text(re.sub(r"(?m)^Fcm = .*$", "", table))
    capsys.readouterr()
    assert main(["compare", "run", "scara_2r", "arm.toml", "--csv", "t.csv", "--out", "c", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["runs"] == ["run", "scara_2r", "arm.toml"]
    inertia = next(row for row in result["parameters"] if row["name"] == "ZZ1R")
    assert inertia["sigmas"][1:] == [None, None]
    difference = (inertia["values"][1] - inertia["values"][0]) / inertia["sigmas"][0]
    assert inertia["differences_in_sigmas"][0] == pytest.approx(difference)
    assert abs(difference) < 4
    whole, bare = result["torques"]
    assert (whole["file"], whole["run"], whole["notes"]) == ("scara_2r", "run", [])
    assert whole["relative_difference_percent"] < 1 < whole["run_error_percent"] < whole["file_error_percent"]
    assert bare["notes"] == ["'arm.toml' does not give Fcm: they count as zero in its parameters and torques"]
    assert bare["relative_difference_percent"] > 5
    saved = json.loads(Path("c/result.json").read_text())
    assert set(saved["provenance"]["inputs"]) == {"run/result.json", "arm.toml"}
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["compare", "scara_2r", "run", "--essential"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("torques on the rows of run: scara_2r differs by ") for line in lines)
    assert main(["compare", "run", "scara_2r", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("scara_2r against run: 8 parameters compared")
    Path("broken.toml").write_text("[robot]\nname = 3\n")
    for names, message in (
        (["run", "ur10e"], "'ur10e' is another robot than that of run 'run': its joints are shoulder_pan_joint"),
        (["scara_2r", "ur10e"], "robot 'scara_2r' is compared with a run of identify"),
        (["p2_lwr4", "kuka_lwr4"], "robot 'kuka_lwr4' is compared with a run of identify"),
        (["run", "nowhere.urdf"], "no such file or folder: 'nowhere.urdf'"),
        (["run", "broken.toml"], "broken.toml"),
    ):
        assert main(["compare", *names]) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_torques_are_predicted_along_a_log(saved_run, workplace, capsys):
    shutil.copytree(saved_run, "run")
    reported = json.loads(Path("run/result.json").read_text())["validation"]
    capsys.readouterr()
    assert main(["predict", "run", "unseen.npz", "--out", "torques.csv", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["relative_error_percent"] == pytest.approx(reported["relative_error_percent"], rel=1e-12)
    assert [one["rms"] for one in result["joints"]] == pytest.approx([one["rms"] for one in reported["joints"]])
    assert result["file"] == "torques.csv"
    header, *rows = Path("torques.csv").read_text().splitlines()
    assert header.startswith("time,predicted_motor[joint_1],band_motor[joint_1],measured_motor[joint_1],error_motor[")
    assert len(rows) > 1900
    assert main(["check", "run", "unseen.npz", "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert (checked["robot"], checked["valid"]) == ("scara_2r", True)
    assert [one["code"] for one in checked["findings"]] == ["model_valid"]
    assert checked["relative_error_percent"] == pytest.approx(reported["relative_error_percent"], rel=1e-12)
    assert checked["relative_error_percent_then"] == pytest.approx(reported["relative_error_percent"], rel=1e-12)
    assert main(["predict", "run", "unseen.npz", "--quiet"]) == 0
    assert re.fullmatch(r"relative error \d+\.\d\d %\n", capsys.readouterr().out)
    for arguments, message in (
        (["run", "unseen.npz", "--out", "torques.txt"], "name a file that ends with .csv"),
        (["run"], "no log given"),
        (["run", "unseen.npz", "--robot", "ur10e"], "the run is of robot 'scara_2r', got 'ur10e'"),
        (["nowhere", "unseen.npz"], "no such file or folder: 'nowhere'"),
        (["run", "unseen.npz", "--out", "run/result.json/t.csv"], "cannot write"),
    ):
        assert main(["predict", *arguments]) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_an_unknown_paper_is_one_line(capsys):
    assert main(["papers", "P9"]) == 1
    assert "P1" in capsys.readouterr().err


def with_late_torques(recording: Recording, samples: int) -> Recording:
    """Return the recording with torques that come so many samples late; the first samples go."""
    later = part_of(recording, samples, recording.samples)
    torques = tuple(replace(channel, values=channel.values[:, :-samples]) for channel in recording.torques)
    return replace(later, torques=torques, sources=())


@pytest.mark.parametrize(
    ("robot", "make", "samples"),
    [
        ("scara_2r", scara, 1),
        pytest.param("scara_2r", scara, 2, marks=pytest.mark.large),
        pytest.param("kuka_lwr4", lwr4, 2, marks=pytest.mark.large),
    ],
)
def test_a_delay_is_told_with_a_remedy_that_cures_it(robot, make, samples, tmp_path, monkeypatch, capsys):
    """Ten milliseconds and more, at the default preparation: found within the interval, corrected as advised."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("training", 1), ("unseen", 3)):
        write_recording(with_late_torques(make(seed), samples), Path(f"{name}.npz"))
    true = samples / (100 if make is scara else 200)
    command = ["identify", robot, "training.npz", "--validate", "unseen.npz", "--reduction", "none", "--json"]
    main(command)
    before = json.loads(capsys.readouterr().out)
    assert before["bias"]["common_delay"] == pytest.approx(true, abs=3 * before["bias"]["common_delay_sigma"])
    reason = next(reason for reason in before["verdict"]["reasons"] if reason["about"] == "delay")
    assert "late" in reason["text"]
    (advised,) = re.findall(r"(--delay) (\S+?),", reason["remedy"])
    flag, seconds = advised
    main([*command, flag, seconds])
    after = json.loads(capsys.readouterr().out)
    assert after["preparation"]["delay"] == float(seconds)
    assert abs(after["bias"]["common_delay"]) < 2 * after["bias"]["common_delay_sigma"]
    assert not any(reason["about"] == "delay" and "late" in reason["text"] for reason in after["verdict"]["reasons"])
    for part in ("fit", "validation"):
        assert after[part]["relative_error_percent"] < before[part]["relative_error_percent"]


def test_a_delay_may_stand_in_the_configuration_and_must_be_seconds(workplace, capsys):
    Path("late.toml").write_text("[identify]\ndelay = 0.004\nbias_repeats = 0\n")
    assert identify("calm.npz", "--plain", "--config", "late.toml", "--json") in (0, 2)
    assert json.loads(capsys.readouterr().out)["preparation"]["delay"] == 0.004
    assert identify("calm.npz", "--plain", "--delay", "-0.0005", "--json") in (0, 2)
    assert json.loads(capsys.readouterr().out)["preparation"]["delay"] == -0.0005
    assert identify(*LOGS, "--delay", "10") == 1
    assert "delay: got 10 s, allowed are seconds from -1 to 1" in capsys.readouterr().err


def test_a_prior_is_not_taken_for_a_bias(workplace, capsys):
    """A prior that holds a parameter far from the data was reported as a bias of 900 sigmas."""
    Path("prior.toml").write_text("[identify]\n[identify.prior]\nFvm1 = [0.5, 0.001]\n")
    identify(*LOGS, "--validate", "unseen.npz", "--config", "prior.toml", "--json")
    bias = json.loads(capsys.readouterr().out)["bias"]
    assert max(abs(ratio) for ratio in bias["over_sigma"].values()) < 5
    assert "Fvm1" not in bias["named"]
    assert "Fvm1" not in bias["exposed_to_delay"]


def test_a_method_that_predicts_worse_advises_least_squares(tmp_path, monkeypatch, capsys):
    """Late torques mislead the simulated regressor: its unseen error is twice that of least squares."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("training", 1), ("unseen", 3)):
        write_recording(with_late_torques(scara(seed), 2), Path(f"{name}.npz"))
    identify("training.npz", "--validate", "unseen.npz", "--method", "didim", "--json")
    reasons = json.loads(capsys.readouterr().out)["verdict"]["reasons"]
    worse = next(reason for reason in reasons if "predicts worse than least squares" in reason["text"])
    assert "--method gls" in worse["remedy"]
    assert not any(reason["remedy"].startswith("keep this method") for reason in reasons)


def robot_file(*left_out: str) -> str:
    """Write the SCARA's file without the lines that begin with these texts, and return its name."""
    text = files("steelyard.robot").joinpath("catalogue/scara_2r.toml").read_text(encoding="utf-8")
    Path("scara.toml").write_text("\n".join(line for line in text.splitlines() if not line.startswith(left_out)))
    return "scara.toml"


def test_a_filter_does_not_advise_the_start_that_failed(workplace, capsys):
    command = ["identify", robot_file("inertia"), "calm.npz", "--validate", "unseen.npz", "--method", "ekf"]
    assert main([*command, "--option", "start=robot"]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "start 'robot'" in message
    assert "joint 'joint_1'" in message
    (flag,) = re.findall(r"\((--option start=\w+)\)", message)
    assert flag != "--option start=robot"
    assert main([*command, *flag.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["validation"]["relative_error_percent"] < 5


def test_a_filter_starts_from_a_file_without_friction(workplace, capsys):
    """What the file does not know was held near zero, by five sigmas of least squares."""
    command = ["identify", robot_file("Fvm", "Fcm"), *LOGS, "--validate", "unseen.npz", "--method", "ekf", "--json"]
    main([*command, "--option", "start=robot"])
    reasons = json.loads(capsys.readouterr().out)["verdict"]["reasons"]
    assert not any("weighted least squares of the same" in reason["text"] for reason in reasons)


@pytest.mark.parametrize(("ours", "code", "expected"), [(1.0, 0, "as expected"), (30.0, 2, "not as expected")])
def test_a_paper_s_statement_that_does_not_hold_as_expected_is_no_failure(ours, code, expected, monkeypatch, capsys):
    from steelyard import papers
    from steelyard.papers import PaperResult, within

    claim = within("gain [kg]", "27 to 42", ours, 0, 3, "a remark", fails_if="it gains", claimed=(27, 42))
    monkeypatch.setattr(papers, "reproduce", lambda *given, **also: PaperResult("P3", "title", (claim,), (), ()))
    monkeypatch.setenv("COLUMNS", "150")
    assert main(["papers", "P3"]) == code
    text = " ".join(capsys.readouterr().out.split())
    assert "gain [kg]" in text
    assert f" {expected}; the paper's statement" in text
    assert f"{1 - code // 2} of 1 claims came out as expected" in text
    assert main(["papers", "P3", "--json"]) == code
    assert json.loads(capsys.readouterr().out)["claims"][0]["paper_holds"] is (code == 2)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--no-prior"], "--prior-deviation and --no-prior exclude each other"),
        ([], "--prior-deviation 0.1 has no effect: no prior: the source of the robot file's inertias is unknown"),
    ],
)
def test_a_deviation_without_a_prior_is_refused(workplace, capsys, flags, message):
    assert identify(*LOGS, "--inertia-source", "unknown", "--prior-deviation", "0.1", *flags) == 1
    assert message in capsys.readouterr().err


def test_pinned_links_are_shown_as_pinned(workplace, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    Path("pinned.toml").write_text("[identify.consistency]\npinned = ['link_2']\n")
    identify("calm.npz", "--plain", "--validate", "unseen.npz", "--config", "pinned.toml")
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "10 pinned" in line]
    assert row.split()[2] == "pinned"


def test_links_whose_prior_contradicts_the_data_are_marked(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    arm = load_robot("scara_2r")
    own = {f"{symbol}2" for symbol in INERTIAL_NAMES}
    heavy = arm.with_parameters({name: 10 * value for name, value in arm.parameters.items() if name in own})
    settings = settings_from_table({"select": False, "bias_repeats": 0, "consistency": {"deviation": 0.3, "draws": 2}})
    found = steelyard.identify(replace(heavy, inertia_source="cad"), scara(1), settings=settings)
    print_identification(found, [], None)
    marked = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "prior contradicts data" in line]
    assert marked == ["link_2"]
