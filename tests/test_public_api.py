"""Every public name has a docstring with an example, and the examples give what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import steelyard

ROOMS = ("kernel", "model", "motion", "physics", "robot")
"""Rooms that a library user needs; the others are behind the front door."""

TYPES = {
    "calibration": ("CalibrationResult", "CalibrationSetup", "MarkerSetup"),
    "excitation": ("Design", "DesignLimits"),
    "identification": ("Identification", "PayloadFound", "SavedRun"),
    "judge": ("Thresholds",),
    "recording": ("TorqueChannel",),
    "simulation": ("SimulatedRun",),
    "study": ("StudyConfiguration", "StudyResult"),
    "verdict": ("Verdict",),
}
"""What the functions of the front door take and return."""

NEEDS = {"steelyard.read_mjcf": "mujoco"}
"""Packages that examples need and that have no wheel for some platforms."""

INTERNAL = ("TYPE_CHECKING", "lazy_names")


def named(module: Any, names: Iterator[str] | tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield functions and classes of a module; constants and unions of types have no docstring."""
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isroutine(inspect.unwrap(value)):
            yield f"{module.__name__}.{name}", value


def public_names() -> dict[str, Any]:
    found = dict(named(steelyard, tuple(name for name in dir(steelyard) if name[0] != "_" and name not in INTERNAL)))
    for room in ROOMS:
        module = importlib.import_module(f"steelyard.{room}")
        found.update(named(module, tuple(name for name in vars(module) if name[0] != "_")))
    for room, names in TYPES.items():
        found.update(named(importlib.import_module(f"steelyard.{room}"), names))
    once = {id(value): name for name, value in reversed(found.items())}
    return {name: found[name] for name in once.values()}


PUBLIC = public_names()


def test_the_list_of_public_names_is_complete():
    assert {"steelyard.identify", "steelyard.Settings", "steelyard.identification.Identification"} <= set(PUBLIC)
    assert len(PUBLIC) > 130


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A folder as examples take it: ``log.npz``, a recording of the catalogue's SCARA, and ``my_run`` made of it."""
    folder = tmp_path_factory.mktemp("lab")
    sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
    motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
    log = steelyard.recording_of(steelyard.simulate("scara_2r", motion, steelyard.Experiment(record_rate=100)))
    steelyard.write_recording(log, folder / "log.npz")
    settings = steelyard.Settings(method="wls", reduction="none", bias_repeats=0)
    steelyard.save_run(steelyard.identify("scara_2r", folder / "log.npz", settings=settings), folder / "my_run")
    return folder


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_the_example_of_a_public_name_runs(name, tmp_path, monkeypatch, lab):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    if '"my_run"' in (PUBLIC[name].__doc__ or "") or '"log.npz"' in (PUBLIC[name].__doc__ or ""):
        shutil.copytree(lab, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder(recurse=False, exclude_empty=False).find(
        inspect.unwrap(PUBLIC[name]), name, globs={"steelyard": steelyard, "np": np}
    )
    assert example.examples, f"{name} has no example in its docstring"
    report: list[str] = []
    doctest.DocTestRunner().run(example, out=report.append)
    assert not report, "".join(report)
