"""Every example runs, as written, in an empty folder."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, id=path.stem, marks=pytest.mark.large if "payload" in path.stem else ()) for path in EXAMPLES],
)
def test_an_example_runs(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example))
    assert capsys.readouterr().out.strip()
