"""Results are written whole or not at all, and the same input gives the same bytes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from arms import SKEWED_CHAIN
from steelyard.cli import main
from steelyard.errors import FileError
from steelyard.plain_data import json_text
from steelyard.run import RunFolder, file_of, read_result


def saved(folder: Path, content: dict, files: dict[str, str] | None = None) -> None:
    def fill(place: Path, _: str) -> None:
        for name, text in (files or {}).items():
            (place / name).write_text(text)

    with RunFolder(folder, "model") as run:
        run.save({"robot": "x"}, {}, content, fill)


def content_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def test_the_same_input_gives_the_same_bytes(tmp_path):
    results = []
    for name in ("one", "two"):
        saved(tmp_path / name, {"value": 1.5}, {"table.csv": "1,2\n"})
        results.append((tmp_path / name / "result.json").read_bytes())
    assert results[0] == results[1]


def test_the_command_saves_what_it_prints(tmp_path, capsys):
    assert main(["model", "scara_2r", "--out", str(tmp_path / "run"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    saved = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    provenance = saved.pop("provenance")
    assert saved == printed
    assert set(provenance["versions"]) == {"steelyard", "python", "numpy", "scipy", "casadi", "llvmlite"}


def test_the_files_that_were_read_are_kept_by_hash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("arm.urdf").write_text(SKEWED_CHAIN)
    assert main(["model", "arm.urdf", "--torque", "joint", "--out", "run"]) == 0
    provenance = json.loads(Path("run/result.json").read_text(encoding="utf-8"))["provenance"]
    assert provenance["inputs"] == {"arm.urdf": hashlib.sha256(SKEWED_CHAIN.encode()).hexdigest()}
    assert provenance["settings"] == {"robot": "arm.urdf", "torque": "joint"}


def test_nan_never_reaches_a_result(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text("model", {"value": float("nan")})


def test_a_new_run_takes_the_old_one_s_files_with_it_and_leaves_the_user_s(tmp_path):
    saved(tmp_path, {"value": 1}, {"old.csv": "old", "both.csv": "old", "changed.csv": "old"})
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "changed.csv").write_text("changed by the user")
    (tmp_path / "both.csv").write_text("changed by the user")  # the new run has one of this name
    saved(tmp_path, {"value": 2}, {"both.csv": "new"})
    found = content_of(tmp_path)
    assert set(found) == {"result.json", "both.csv", "mine.txt", "changed.csv"}
    assert (found["both.csv"], found["mine.txt"]) == ("new", "mine")
    result = read_result(tmp_path, "model", FileError)
    assert result["value"] == 2
    assert result["provenance"]["files"] == {"both.csv": hashlib.sha256(b"new").hexdigest()}


class Killed(BaseException):
    """A process that ends at once: nothing is tidied up."""


@pytest.mark.parametrize("step", range(12))
def test_a_kill_at_any_step_leaves_the_old_run_or_the_new_one(step, tmp_path, monkeypatch):
    """Every change to the folder is a step; what comes after the kill does not happen."""
    saved(tmp_path, {"value": 1}, {"a.csv": "1", "b.csv": "1", "old.csv": "1"})
    done = []

    def counted(change):
        def changed(*arguments, **named):
            if len(done) >= step:
                raise Killed
            done.append(change)
            return change(*arguments, **named)

        return changed

    for owner, name in ((Path, "replace"), (Path, "rename"), (Path, "unlink"), (shutil, "rmtree")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    with contextlib.suppress(Killed):
        saved(tmp_path, {"value": 2}, {"a.csv": "2", "b.csv": "2"})
    monkeypatch.undo()
    result = read_result(tmp_path, "model", FileError)
    found = content_of(tmp_path)
    assert found["a.csv"] == found["b.csv"] == str(result["value"])
    saved(tmp_path, {"value": 3})
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert read_result(tmp_path, "model", FileError)["value"] == 3


def test_a_second_writer_is_told_who_writes(tmp_path):
    with RunFolder(tmp_path, "identify") as first:
        with pytest.raises(FileError, match=r"is being written by another command \(identify, process \d+\)"):
            RunFolder(tmp_path, "design").__enter__()
        first.save({}, {}, {"value": 1})
    saved(tmp_path, {"value": 2})
    assert content_of(tmp_path).keys() == {"result.json"}


def test_a_disk_that_fills_up_costs_no_result(tmp_path, monkeypatch):
    saved(tmp_path / "run", {"value": 1}, {"a.csv": "1"})
    before = content_of(tmp_path / "run")
    write = Path.write_text

    def full_disk(path: Path, text: str) -> int:
        if path.is_relative_to(tmp_path / "run"):
            raise OSError(28, "No space left on device")
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", full_disk)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(FileError, match=r"No space left on device; .* the result is saved in '(.*)' instead") as caught:
        saved(tmp_path / "run", {"value": 2}, {"a.csv": "2"})
    rescued = Path(re.findall("saved in '(.*)' instead", str(caught.value))[0])
    assert read_result(rescued, "model", FileError)["value"] == 2
    assert content_of(tmp_path / "run") == before


def test_where_nothing_can_be_saved_the_result_is_printed_and_this_is_told(tmp_path, monkeypatch):
    def full_disk(**_: object) -> None:
        raise OSError(28, "No space left on device")

    refusal = pytest.raises(FileError, match=r"No space left on device; .* the result is only printed")
    with refusal, RunFolder(tmp_path / "run", "model") as run:
        monkeypatch.setattr("tempfile.mkdtemp", full_disk)
        assert run.save({}, {}, {"value": 2}) == {"value": 2}
        assert run.place is None


def test_a_full_disk_is_told_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(FileError, match=r"0.001 MB are free on its disk, 10 MB are needed"):
        RunFolder(tmp_path / "a" / "b", "model").__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path, monkeypatch):
    def read_only(*_: object, **__: object) -> None:
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(FileError, match="Read-only file system; give another folder with --out"):
        RunFolder(tmp_path / "run", "model").__enter__()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"value": 1', '"value": 7'), "not as it was written"),
        (lambda text: text.replace('"value": 1', '"value": 1e999'), "not as it was written"),
        (lambda text: text.replace('"schema": 2', '"schema": 1'), "has schema 1"),
        (lambda text: text.replace('"command": "model"', '"command": "check"'), "run of 'check'"),
        (lambda text: text[:-20], "not JSON"),
        (lambda text: "[" * 100_000, "not JSON"),
        (lambda text: "[]", "no result of steelyard"),
        (lambda text: '{"provenance": 5}', "no result of steelyard"),
    ],
)
def test_a_result_that_was_changed_is_refused_in_one_line(change, message, tmp_path):
    saved(tmp_path, {"value": 1})
    path = tmp_path / "result.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(FileError, match=message):
        read_result(tmp_path, "model", FileError)


@pytest.mark.parametrize("name", ["../outside.npz", "/etc/passwd", "", 5, "arrays.npz"])
def test_a_run_names_only_files_of_its_own(name, tmp_path):
    saved(tmp_path / "run", {"files": {"arrays": name}}, {"other.npz": "x"})
    (tmp_path / "outside.npz").write_text("x")
    content = read_result(tmp_path / "run", "model", FileError)
    with pytest.raises(FileError, match="names no arrays file of its own"):
        file_of(tmp_path / "run", content, "arrays", FileError)


def test_a_folder_that_is_a_file_is_told(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["model", "scara_2r", "--out", str(tmp_path / "taken")]) == 1
    assert "is a file; give another folder with --out" in capsys.readouterr().err
