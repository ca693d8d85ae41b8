"""Damaged inputs of every kind are refused in one line, in little time and memory; ``make fuzz`` tries more of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.cases import case_files
from fuzz.kinds import KINDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of time and memory need POSIX")


def test_two_thousand_damaged_inputs_and_all_that_once_failed(tmp_path):
    tests = str(Path(__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    options = ["--cases", "2000", "--workers", "1", "--regressions", "--keep", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", *options], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_the_same_every_time_and_its_example_is_valid(kind, tmp_path):
    assert case_files(kind, 7) == case_files(kind, 7)
    for number, files in enumerate(KINDS[kind].examples()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        KINDS[kind].read(folder)
