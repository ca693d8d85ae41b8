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
from steelyard.report import Page, page_html

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
    write_page(Path("run/report.html"))
    assert main(["show", "run"]) == 0
    assert opened == [Path("run/report.html").resolve().as_uri()]
    assert main(["show", "run", "--no-open"]) == 0
    assert main(["show", "run", "--json"]) == 0
    assert len(opened) == 1


def write_page(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(page_html(Page("A run", "of a test", [])), encoding="utf-8")


def test_show_copies_the_report_of_a_run(workplace, capsys):
    write_page(Path("run/report.html"))
    assert main(["show", "run", "--out", "copy.html"]) == 0
    assert capsys.readouterr().out == "copy.html\n"
    assert Path("copy.html").read_bytes() == Path("run/report.html").read_bytes()
    assert main(["show", "run", "--out", "copy.html"]) == 0  # a page may be replaced
    Path("mine.html").write_text("<html>mine</html>")
    assert main(["show", "run", "--out", "mine.html"]) == 1
    assert "is no page of steelyard" in capsys.readouterr().err
    assert Path("mine.html").read_text() == "<html>mine</html>"


@pytest.mark.parametrize("spoil", [lambda page: "<html>broken", lambda page: page[: len(page) // 2]])
def test_a_broken_report_is_not_shown(spoil, workplace, capsys, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["check", "scara_2r", "log.npz", "--out", "run", "--quiet"]) == 2
    whole = Path("run/report.html").read_text(encoding="utf-8")
    Path("run/report.html").write_text(spoil(whole), encoding="utf-8")
    capsys.readouterr()
    assert main(["show", "run"]) == 1
    shown = capsys.readouterr()
    assert "only a part of one; run its command again with --out 'run'" in shown.err
    assert shown.err.count("\n") == 1
    assert (shown.out, opened) == ("", [])


def test_a_report_that_was_changed_is_shown_with_a_note(workplace, capsys):
    assert main(["check", "scara_2r", "log.npz", "--out", "run", "--quiet"]) == 2
    capsys.readouterr()
    assert main(["show", "run"]) == 0
    assert capsys.readouterr().err == ""
    page = Path("run/report.html").read_text(encoding="utf-8")
    Path("run/report.html").write_text(page.replace("</main>", "<p>mine</p></main>"), encoding="utf-8")
    assert main(["show", "run"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{Path('run/report.html')}\n"
    assert "is not as the run wrote it" in shown.err


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


def row_of(figure: dict, number: int) -> list[dict]:
    """Return the traces about a finding."""
    axes = {
        name.replace("axis", ""): axis["title"]["text"]
        for name, axis in figure["layout"].items()
        if name.startswith("yaxis")
    }
    return [trace for trace in figure["data"] if axes[trace.get("yaxis", "y")].startswith(f"{number}: ")]


def test_a_step_is_drawn_over_the_time_it_spans_and_marked_there(workplace, capsys):
    main(["check", "scara_2r", "log.npz", "--out", "checked"])
    page = Path("checked/report.html").read_text(encoding="utf-8")
    findings = json.loads(Path("checked/result.json").read_text(encoding="utf-8"))["recordings"][0]["findings"]
    figures = figures_of(page)
    assert figures["steps-1"]["data"][0]["line"]["shape"] == "vh"
    number = next(k for k, one in enumerate(findings, 1) if one["kind"] == "gap")
    line, mark = row_of(figures["around-1"], number)
    assert line["line"]["shape"] == "vh"
    assert values_of(mark["y"]) == pytest.approx(301, abs=0.1)
    assert values_of(mark["x"]).tolist() == [0.0]
    others = [trace for trace in figures["around-1"]["data"] if trace["mode"] == "lines" and trace is not line]
    assert not any("shape" in trace["line"] for trace in others)


def test_rows_that_are_left_out_are_drawn_as_a_gap(workplace, capsys):
    time = np.arange(500) / 100
    q = np.array([np.sin(3 * time), np.cos(2 * time)])
    torque = np.array([np.sin(time), np.cos(time)])
    torque[1, 200:220] = np.nan
    channel = TorqueChannel("motor_torque", torque)
    write_recording(Recording(tuple(JOINTS), time, q, torques=(channel,)), Path("nan.npz"))
    main(["check", "scara_2r", "nan.npz", "--out", "checked"])
    page = Path("checked/report.html").read_text(encoding="utf-8")
    findings = json.loads(Path("checked/result.json").read_text(encoding="utf-8"))["recordings"][0]["findings"]
    number, finding = next((k, one) for k, one in enumerate(findings, 1) if one["kind"] == "not_a_number")
    assert finding["values"] == {"sample_before": pytest.approx(1.99)}
    line, mark = row_of(figures_of(page)["around-1"], number)
    assert values_of(mark["x"]) == pytest.approx([0, 21], abs=1e-3)
    assert values_of(mark["y"]) == pytest.approx([torque[1, 199], torque[1, 220]], abs=1e-6)
    x, y = values_of(line["x"]), values_of(line["y"])
    assert np.isnan(y[(x > 0) & (x < 21.5)]).any()
    assert ">row 201<" in page
    assert ">1.99 s<" in page
    jitter = next(k for k, one in enumerate(findings, 1) if one["kind"] == "jitter")
    assert f"Without a picture: {jitter} (about all of the recording)." in page
    assert "the first 2 of each finding (where rows are left out, the first)" in page


def test_lines_of_a_file_have_no_picture_and_the_page_says_so(workplace, capsys):
    time = np.arange(300) / 100
    q = np.array([np.sin(3 * time), np.cos(2 * time)])
    write_recording(Recording(tuple(JOINTS), time, q), Path("log.csv"))
    lines = Path("log.csv").read_text().splitlines()
    Path("log.csv").write_text("\n".join([*lines[:100], "rubbish, of, all, kinds", *lines[100:]]) + "\n")
    main(["check", "scara_2r", "log.csv", "--out", "checked"])
    page = Path("checked/report.html").read_text(encoding="utf-8")
    assert "no numbers in 1 line, left out" in page
    assert ">line 101<" in page
    assert "(lines of the file, not samples)" in page


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
