"""Results are written whole or not at all, and the same input gives the same bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from arms import SKEWED_CHAIN
from steelyard.cli import main
from steelyard.errors import FileError
from steelyard.run import json_text, write_result


def test_the_same_input_gives_the_same_bytes(tmp_path):
    results = []
    for name in ("one", "two"):
        path = write_result(tmp_path / name, "model", {"robot": "x"}, {}, {"value": 1.5})
        results.append(path.read_bytes())
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


def test_a_failed_write_leaves_the_old_result_and_no_litter(tmp_path, monkeypatch):
    write_result(tmp_path, "model", {}, {}, {"value": 1})
    before = (tmp_path / "result.json").read_bytes()

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(FileError, match="No space left on device; choose another place"):
        write_result(tmp_path, "model", {}, {}, {"value": 2})
    assert (tmp_path / "result.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_folder_that_is_a_file_is_told(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["model", "scara_2r", "--out", str(tmp_path / "taken")]) == 1
    assert "choose another place" in capsys.readouterr().err
