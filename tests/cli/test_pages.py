"""``show``, and the reports of ``check`` and ``compare``."""

from __future__ import annotations

import base64
import json
import re
import webbrowser
from pathlib import Path

import numpy as np
import pytest

from steelyard.cli import main
from steelyard.motion import quintic, write_trajectory
from steelyard.recording import Recording, TorqueChannel, write_recording

JOINTS = ["joint_1", "joint_2"]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_trajectory(quintic([[0, 0.4, -0.3, 0], [0, 9.0, -1.5, 0]], 0.5, JOINTS), "motion.toml")
    time = np.arange(2000) / 1000
    q = np.array([np.sin(3 * time), np.cos(2 * time)])
    q[1, 900] += 40.0
    keep = np.r_[0:1200, 1500:2000]
    torque = TorqueChannel("motor_torque", np.array([np.sin(time), np.cos(time)])[:, keep])
    write_recording(Recording(tuple(JOINTS), time[keep], q[:, keep], torques=(torque,)), Path("log.npz"))
    return tmp_path


def figures_of(page: str) -> dict[str, dict]:
    found = re.findall(r'<script type="application/json" id="data-([a-z0-9-]+)">(.*?)</script>', page)
    return {name: json.loads(text) for name, text in found}


def values_of(packed: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["bdata"]), f"<{packed['dtype']}").astype(float)


def test_show_draws_a_motion_with_the_limits_of_its_arm(workplace, capsys):
    assert main(["show", "motion.toml"]) == 0
    assert capsys.readouterr().out == "motion.html\n"
    assert main(["show", "motion.toml", "--robot", "scara_2r", "--out", "limits.html"]) == 0
    page = Path("limits.html").read_text(encoding="utf-8")
    assert "Not kept: " in page
    assert figures_of(page)["motion"]["layout"]["shapes"]
    assert not figures_of(Path("motion.html").read_text(encoding="utf-8"))["motion"]["layout"]["shapes"]
    assert main(["show", "motion.toml", "--json"]) == 0  # over its own page


def test_show_draws_a_log_and_opens_nothing_through_a_pipe(workplace, capsys, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail(f"opened {url}"))
    assert main(["show", "log.npz", "--robot", "scara_2r"]) == 0
    capsys.readouterr()
    figure = figures_of(Path("log.html").read_text(encoding="utf-8"))["signals-1"]
    assert values_of(figure["data"][2]["y"])[np.isfinite(values_of(figure["data"][2]["y"]))].max() > 39


def test_show_opens_the_page_of_a_run_in_a_terminal(workplace, capsys, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    Path("run").mkdir()
    Path("run/report.html").write_text("a page")
    assert main(["show", "run"]) == 0
    assert opened == [Path("run/report.html").resolve().as_uri()]
    assert main(["show", "run", "--no-open"]) == 0
    assert main(["show", "run", "--json"]) == 0
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "nothing"),
        (["empty"], "has no report.html"),
        (["log.npz"], "name it with --robot"),
        (["log.npz", "--robot", "kuka_lwr4"], "joint"),
        (["motion.toml", "--robot", "nobody"], "nobody"),
        (["notes.toml"], "notes.toml"),
        (["motion.toml", "--out", "mine.html"], "is no page of steelyard"),
        (["motion.toml", "--out", "empty"], "is a folder"),
    ],
)
def test_bad_input_of_show_gets_one_line(arguments, message, workplace, capsys):
    Path("empty").mkdir()
    Path("mine.html").write_text("<html>mine</html>")
    Path("notes.toml").write_text("a = 1\n")
    assert main(["show", *arguments]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert Path("mine.html").read_text() == "<html>mine</html>"


def test_the_report_of_check_shows_the_samples_about_findings(workplace, capsys):
    assert main(["check", "scara_2r", "log.npz", "--out", "checked"]) == 2
    page = Path("checked/report.html").read_text(encoding="utf-8")
    findings = json.loads(Path("checked/result.json").read_text(encoding="utf-8"))["recordings"][0]["findings"]
    assert "samples lost" in page
    figures = figures_of(page)
    assert set(figures) == {"around-1", "steps-1", "signals-1"}
    steps = values_of(figures["steps-1"]["data"][0]["y"])
    assert np.nanmax(steps) == pytest.approx(301, abs=1)
    around = figures["around-1"]
    titles = [axis["title"]["text"] for name, axis in around["layout"].items() if name.startswith("yaxis")]
    assert any(title.endswith("time step<br>[ms]") for title in titles)
    assert any("joint_2<br>[rad]" in title for title in titles)
    tallest = [np.nanmax(values_of(trace["y"])) for trace in around["data"]]
    assert max(tallest) == pytest.approx(301, abs=1)  # the step behind a gap, far from its place in time
    assert len(findings) == page.count("warning</td>") + page.count("bad</td>") + page.count("info</td>")


def test_the_report_of_compare_has_values_intervals_and_differences(workplace, capsys):
    assert main(["compare", "p5_lwr4_c", "p2_lwr4", "--out", "compared"]) == 0
    content = json.loads(Path("compared/result.json").read_text(encoding="utf-8"))
    page = Path("compared/report.html").read_text(encoding="utf-8")
    figures = figures_of(page)
    sigmas = [row["differences_in_sigmas"][0] for row in content["parameters"]]
    known = sorted((abs(one) for one in sigmas if one is not None), reverse=True)
    np.testing.assert_allclose(np.abs(values_of(figures["differences"]["data"][0]["x"])), known, rtol=1e-5)
    assert [trace["name"] for trace in figures["values"]["data"]] == ["p5_lwr4_c", "p2_lwr4"]
    assert "p2_lwr4 against p5_lwr4_c: " in page
