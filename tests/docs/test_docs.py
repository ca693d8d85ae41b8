"""The documentation cannot lie: its commands and code run, its links lead somewhere, JSON is described key by key."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import shlex
import shutil
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from arms import SKEWED_CHAIN
from dask_cluster import dask_cluster
from measured_arms import any_arm, write_measured_arms
from simulated_experiments import lwr4, scara
from steelyard.calibration import read_setup, write_measurements
from steelyard.cli import main
from steelyard.cli.app import app
from steelyard.motion import write_trajectory
from steelyard.recording import Recording, TorqueChannel, write_recording
from steelyard.recording.record import POSE_ROWS, WRENCH_ROWS
from steelyard.robot import load_robot
from steelyard.study import default_motion

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGE_IDS = [str(page.relative_to(ROOT)) for page in PAGES]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
FOLLOWED = ("README.md", "docs/tutorial.md")
COMMANDS = sorted(name for name in app if not name.startswith("-"))
URDF = SKEWED_CHAIN.replace("shoulder", "joint_1").replace("elbow", "joint_2")
SET_UPS = ("setup", "tracker", "every_key", "springs")
"""Names of the TOML tables in docs/calibrate.md, in order."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module", autouse=True)
def searched_once():
    """P1's search of motions and the demo's simulations are the longest part of several commands: each is done once."""
    with pytest.MonkeyPatch.context() as patch:
        p1, demo = (importlib.import_module(f"steelyard.{name}") for name in ("papers.p1", "cli.demo"))
        search, simulate = p1.optimised_motions, demo.simulated_runs
        searches, runs = {}, {}

        def searched(starts, threads, progress):
            return searches.get(starts) or searches.setdefault(starts, search(starts, threads, progress))

        def simulated(robot, timing):
            key = robot.name, demo.MOVES
            return runs.get(key) or runs.setdefault(key, simulate(robot, timing))

        patch.setattr(p1, "optimised_motions", searched)
        patch.setattr(demo, "simulated_runs", simulated)
        yield


SLOW = ("steelyard papers", "steelyard montecarlo", "steelyard demo", "steelyard gains", "steelyard fleet")
SLOW_PAGES = ("docs/papers.md", "docs/calibrate.md", "docs/design.md")
"""Commands and pages that take half a minute: they are run by ``make test-all``."""


@pytest.fixture(scope="module")
def files_of_the_pages(tmp_path_factory):
    """A folder with the files the pages speak of."""
    folder = tmp_path_factory.mktemp("pages")
    with contextlib.chdir(folder):
        write_files()
    return folder


@pytest.fixture
def workplace(files_of_the_pages, tmp_path, monkeypatch):
    """A folder with the files the pages speak of, to work in."""
    shutil.copytree(files_of_the_pages, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_files() -> None:
    """Write the files the pages speak of."""
    Path("my_arm.urdf").write_text(URDF)
    for name, table in zip(("cell", "design"), blocks(ROOT / "docs" / "design.md", "toml"), strict=True):
        Path(f"{name}.toml").write_text(table)
    rows = "[0, 0, 0, 0, 0, 0, 0], [0.4, 0.3, -0.3, 0.5, 0.4, -0.4, 0.3]"
    names = ", ".join(f'"joint_{k}"' for k in range(1, 8))
    Path("my_motion.toml").write_text(f'kind = "quintic"\njoints = [{names}]\ndurations = 0.5\npoints = [{rows}]\n')
    _write_log(Path("my_log.csv"), [f"joint_{k}" for k in range(1, 8)])
    _write_log(Path("my_arm_log.csv"), ["joint_1", "joint_2", "wrist"])
    for name, table in zip(("steelyard", "study"), blocks(ROOT / "docs" / "commands.md", "toml"), strict=True):
        Path(f"{name}.toml").write_text(table)
    write_trajectory(default_motion(load_robot("scara_2r")), "scara_motion.toml")
    for name, recording in (("calm", (1,)), ("lively", (2,)), ("unseen", (3,))):
        write_recording(scara(*recording), Path(f"{name}.npz"))
    _write_drive_log(Path("drive_log.csv"), scara(1))
    Path("fleet.csv").write_text(blocks(ROOT / "docs" / "fleet.md", "csv")[0])
    write_recording(lwr4(1), Path("empty.npz"))
    write_recording(lwr4(2, "P5"), Path("loaded.npz"))
    Path("wrench_poses.csv").write_text(wrench_poses())
    write_saved_run("kuka_lwr4", Path("arm_run"))
    write_saved_run("scara_2r", Path("scara_run"))
    for name, content in calibration_files().items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content)


@lru_cache(maxsize=1)
def calibration_files() -> dict[str, bytes]:
    """Return the files of docs/calibrate.md: its tables and targets, measurements, and the run of ``points.csv``."""
    page = ROOT / "docs" / "calibrate.md"
    with TemporaryDirectory() as folder:
        place = Path(folder)
        for name, table in zip(SET_UPS, blocks(page, "toml"), strict=True):
            (place / f"{name}.toml").write_text(table)
        for name, table in zip(("targets", "drilling"), blocks(page, "csv"), strict=True):
            (place / f"{name}.csv").write_text(table)
        (place / "my_arm.urdf").write_text(URDF)
        write_measured_arms(place)
        write_measurements(place / "my_arm_points.csv", any_arm(place / "my_arm.urdf", "hand", {"offset2": 5e-3}))
        command = ["calibrate", "ur10e", f"{folder}/points.csv", "--config", f"{folder}/setup.toml"]
        assert main([*command, "--out", f"{folder}/calibrated", "--json"]) == 0
        return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@lru_cache(maxsize=2)
def saved_run(robot: str) -> dict[str, bytes]:
    """Return the files of a run that identified an arm: that of ``empty.npz``, or that of ``calm.npz`` and others."""
    with TemporaryDirectory() as folder:
        recordings = [lwr4(1)] if robot == "kuka_lwr4" else [scara(1), scara(2)]
        logs, run = [Path(folder, f"log_{k}.npz") for k in range(len(recordings))], Path(folder, "run")
        for recording, log in zip(recordings, logs, strict=True):
            write_recording(recording, log)
        plain = ["--plain"] if robot == "kuka_lwr4" else []  # a choice of effects takes most of the time of this arm
        assert main(["identify", robot, *map(str, logs), *plain, "--out", str(run), "--json"]) == 0
        return {path.name: path.read_bytes() for path in run.iterdir()}


def write_saved_run(robot: str, folder: Path) -> None:
    folder.mkdir()
    for name, content in saved_run(robot).items():
        (folder / name).write_bytes(content)


def wrench_poses() -> str:
    """Return a log of a 1.2 kg tool in six static poses of a force/torque sensor, its wrench in axes of the base."""
    names = [f"pose[{row}]" for row in POSE_ROWS] + [f"wrench[{row}]" for row in WRENCH_ROWS]
    lines, half = ["time," + ",".join(names)], np.sqrt(0.5)
    quaternions = [(1, 0, 0, 0), (half, half, 0, 0), (half, -half, 0, 0), (half, 0, half, 0), (half, 0, 0, half)]
    for k, (w, x, y, z) in enumerate([*quaternions, (0, 1, 0, 0), (half, 0, -half, 0), (0.5, 0.5, 0.5, 0.5)]):
        lever = 0.05 * np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
        force = np.array([0, 0, -9.81 * 1.2])
        noise = 1e-3 * np.cos(np.arange(6) * (k + 1.7))
        row = np.concatenate([[k, 0.4, 0.1, 0.5, w, x, y, z], np.append(force, np.cross(lever, force)) + noise])
        lines.append(",".join(f"{value:.9g}" for value in row))
    return "\n".join(lines) + "\n"


def _write_log(path: Path, joints: list[str]) -> None:
    """Write a short recording with self-describing columns, with a gap in it."""
    time = np.delete(np.arange(0, 2, 0.01), [50, 51, 52])
    pace = np.arange(1, len(joints) + 1)[:, None]
    channel = TorqueChannel("joint_torque", 5 * np.cos(3 * pace * time))
    write_recording(Recording(tuple(joints), time, 0.3 * np.sin(2 * pace * time), torques=(channel,)), path)


def _write_drive_log(path: Path, recording: Recording) -> None:
    """Write a log as drives do: milliseconds, degrees, and a counter that is of no use."""
    q, samples = np.degrees(recording.q), np.arange(recording.samples)
    rows = [1e3 * recording.time, *q, *np.gradient(q, recording.time, axis=1), *recording.torque().values, samples % 7]
    names = "t_ms,q1_deg,q2_deg,qd1,qd2,tau1,tau2,state"
    np.savetxt(path, np.column_stack(rows), delimiter=",", header=names, comments="")


@pytest.fixture
def running_scheduler(tmp_path_factory):
    """The address of a cluster of this machine, in the place of that which a page shows."""
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'steelyard[cluster]'")
    with dask_cluster(tmp_path_factory.mktemp("dask"), workers=2) as cluster:
        yield cluster.address


def shown_commands() -> list[Any]:
    """Return page and commands of every block; commands of one block follow each other and use what the others left.

    README and tutorial are followed as a whole, from an empty folder.
    """
    found = []
    for page, name in zip(PAGES, PAGE_IDS, strict=True):
        if name in FOLLOWED:
            continue
        for block in blocks(page, "console"):
            commands = [line[2:] for line in block.splitlines() if line.startswith("$ steelyard")]
            slow = name in SLOW_PAGES or any(
                command.startswith(SLOW) or "--nonlinear" in command for command in commands
            )
            found += [pytest.param(name, commands, marks=pytest.mark.large if slow else ())] if commands else []
    return found


@pytest.mark.parametrize(("page", "commands"), shown_commands())
def test_every_command_shown_runs(page, commands, workplace, capsys, request):
    if any("--scheduler" in command for command in commands):
        address = request.getfixturevalue("running_scheduler")
        commands = [re.sub(r"--scheduler \S+", f"--scheduler {address}", command) for command in commands]
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command + capsys.readouterr().err
        out = capsys.readouterr().out
        if "--json" in command:
            json.loads(out)


@pytest.mark.parametrize(
    ("page", "code"),
    [
        pytest.param(name, code, marks=pytest.mark.large if name in SLOW_PAGES else ())
        for page, name in zip(PAGES, PAGE_IDS, strict=True)
        if name not in FOLLOWED
        for code in blocks(page, "python")
    ],
)
def test_every_python_example_runs(page, code, workplace):
    exec(compile(code, page, "exec"), {})


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_can_be_followed_from_an_empty_folder(page, tmp_path, monkeypatch, capsys):
    """As a newcomer does: every block in the order of the page; tables are files that the text has just named.

    The demo's motions are a third as long here; in full it is run by ``make test-all``.
    """
    monkeypatch.setattr(importlib.import_module("steelyard.cli.demo"), "MOVES", 8)
    monkeypatch.chdir(tmp_path)
    text, done = (ROOT / page).read_text(encoding="utf-8"), 0
    for block in BLOCK.finditer(text):
        language, content = block.groups()
        if language == "toml":
            name = re.findall(r"`([\w.]+\.toml)`", text[: block.start()])[-1]
            Path(name).write_text(content, encoding="utf-8")
        elif language == "python":
            exec(compile(content, page, "exec"), {})
        else:
            assert language == "console"
            for line in content.splitlines():
                assert line.startswith("$ steelyard "), line
                assert main(shlex.split(line)[2:]) == 0, line + capsys.readouterr().err
                done += 1
    assert done > 5


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("table", blocks(ROOT / "docs" / "robot-files.md", "toml"))
def test_robot_tables_shown_can_be_read(table, tmp_path):
    path = tmp_path / "shown.toml"
    path.write_text(table)
    assert main(["model", str(path), "--json"]) == 0


def test_the_set_up_with_every_key_can_be_read(workplace):
    setup = read_setup("every_key.toml", load_robot("kuka_kr270"))
    assert setup.geometry == ("joint_2", "joint_3")
    assert len(setup.elastic.nodes["joint_2"]) == 5


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_is_documented(command):
    assert app[command].help
    assert f"## steelyard {command}" in (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert f"\n## {command}\n" in (ROOT / "docs" / "json.md").read_text(encoding="utf-8")


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name != "index.md":
            assert f"({page.relative_to(ROOT / 'docs')})" in index


def described_keys(section: str) -> set[str]:
    """Return the keys of a section.

    ``a.{b,c}`` stands for ``a.b`` and ``a.c``, a row "`a.*` | as `b.*`" (of another section) for the keys of ``b``.
    """
    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    body = text.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    first_cells = re.findall(r"^\| ((?:`[^`]+`(?:, )?)+) \|", body, re.MULTILINE)
    keys = {key for cell in first_cells for name in re.findall(r"`([^`*]+)`", cell) for key in _expanded(name)}
    for name, other, place in re.findall(r"^\| `([^`]+)\.\*` \| as `([^`]+)\.\*`(?: of `(\w+)`)?", body, re.MULTILINE):
        same = {key for key in (described_keys(place) if place else keys) if key.startswith(f"{other}.")}
        assert same, f"{section}: no keys of {other}"
        keys |= {name + key[len(other) :] for key in same}
    return keys


def _expanded(name: str) -> list[str]:
    """Return ``a.b`` and ``a.c`` of ``a.{b,c}``, another name as it is."""
    parent, brace, last = name.partition("{")
    return [parent + key for key in last.rstrip("}").split(",")] if brace else [name]


# Objects keyed by data (joint numbers, parameter names, package names): described as a whole.
OPEN = {
    "arm_verdict",
    "recordings[].findings[].values",
    "names",
    "base[].regrouping",
    "provenance.settings",
    "provenance.inputs",
    "provenance.versions",
    "provenance.files",
    "preparation.standstill",
    "findings",
    "noise[].deviations",
    "tests[].patterns",
    "selection",
    "widening",
    "unseen_patterns",
    "repeatability.recordings",
    "repeatability.compared",
    "bias.over_sigma",
    "bias.by_position_errors",
    "bias.by_filter",
    "bias.by_delay",
    "reasons",
    "predicted_sigma",
    "predicted_relative_sigma",
    "random_baseline.predicted_sigma",
    "random_baseline.predicted_relative_sigma",
    "targets[].joints",
    "targets[].nominal",
    "configurations[]",
    "held_out_before",
    "cross_validated",
    "units",
    "consistency.prior",
    "files[].comparisons",
    "models{}",
    "locked_joints",
}
"""Those with ``{}`` are such objects in one command and described lists in another."""


def keys_of(value, path: str = "") -> set[str]:
    if path in OPEN:
        return {path}
    if isinstance(value, dict) and f"{path}{{}}" in OPEN:
        return {path}
    if isinstance(value, dict):
        return {key for name, part in value.items() for key in keys_of(part, f"{path}.{name}" if path else name)}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {key for part in value for key in keys_of(part, f"{path}[]")}
    return {path}


EXAMPLES = {
    "robots": ["robots"],
    "model": ["model", "kuka_lwr4", "--payload", "paired"],
    "demo": ["demo"],
    "init": ["init", "scara_2r", "drive_log.csv", "--out", "guessed.toml"],
    "check": ["check", "kuka_lwr4", "my_log.csv"],
    "simulate": ["simulate", "scara_2r", "scara_motion.toml", "--rate", "100"],
    "design": ["design", "scara_2r", "--starts", "1", "--duration", "5", "--harmonics", "2", "--goal", "condition=12"],
    "identify": ["identify", "scara_2r", "calm.npz", "lively.npz", "--validate", "unseen.npz"],
    "export": ["export", "scara_run", "--urdf", "--out", "exported"],
    "gains": ["gains", "kuka_lwr4", "empty.npz", "loaded.npz", "--mass", "6"],  # wrong, so that there are reasons
    "payload": ["payload", "arm_run", "loaded.npz"],
    "calibrate": ["calibrate", "ur10e", "spoilt_points.csv", "--config", "setup.toml", "--workspace", "50"],
    "apply": ["apply", "calibrated", "targets.csv", "--angle", "deg"],
    "poses": ["poses", "scara_2r", "--count", "6", "--candidates", "20"],
    "predict": ["predict", "scara_run", "unseen.npz", "--out", "torques.csv"],
    "compare": ["compare", "scara_run", "scara_2r"],
    "montecarlo": ["montecarlo", "scara_2r", "--seeds", "3", "--rate", "100", "--processes", "1"],
    "fleet": ["fleet", "fleet.csv", "--workers", "1"],
    "papers": ["papers", "P1", "--seeds", "2"],
    "show": ["show", "scara_motion.toml"],
}


def test_every_command_has_an_example_for_its_json():
    assert sorted(EXAMPLES) == COMMANDS


@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=pytest.mark.large if name in ("demo", "papers", "gains") else ()) for name in EXAMPLES],
)
def test_json_has_exactly_the_described_keys(command, workplace, capsys):
    assert main([*EXAMPLES[command], "--json"]) in ((0, 2) if command == "papers" else (0,))
    described = {"schema", "command"} | described_keys(command)
    if command == "demo":
        payload = {key for key in described_keys("payload") if key.startswith("payload.")}
        described |= (described_keys("identify") - {"payload"}) | payload
    assert keys_of(json.loads(capsys.readouterr().out)) == described


def test_json_of_a_wrench_has_exactly_the_described_keys(workplace, capsys):
    """Its keys are listed in a sentence; the wrench is taken in wrong axes, so that there are reasons."""
    assert main(["payload", "wrench_poses.csv", "--wrench", "--static", "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8").split("With `--wrench`:", 1)[1].split("\n\n", 1)[0]
    assert {*found, *found["wrench"]} - {"schema", "command"} <= set(re.findall(r"`(\w+)`", text))
    verdict = {f"verdict.{key}" for key in keys_of(found["verdict"])}
    assert {key.split("[]")[0] for key in verdict} <= {key.split("[]")[0] for key in described_keys("identify")}


def test_result_json_and_errors_have_exactly_the_described_keys(workplace, capsys):
    assert main(["model", "scara_2r", "--out", "run"]) == 0
    every = described_keys("Every command")
    saved = keys_of(json.loads(Path("run/result.json").read_text(encoding="utf-8")))
    assert saved == described_keys("model") | {key for key in every if not key.startswith("error")}
    capsys.readouterr()
    assert main(["model", "scara_2", "--json"]) == 1
    assert keys_of(json.loads(capsys.readouterr().out)) == {key for key in every if "provenance" not in key}


def test_the_readme_is_at_most_a_screen_and_a_half():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 75
