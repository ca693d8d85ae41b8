"""What a run of ``identify`` keeps besides ``result.json``: factors and estimate, for payloads and later data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import EstimateError, require_type
from ..estimate import Estimate, History, System
from ..observe import save_observations
from ..run import RunFolder, arrays_of, read_result, write_arrays
from ..text import short_repr
from .identification import Identification
from .told import told

RUN_COMMANDS = ("identify", "demo")
"""Commands whose runs hold an identified arm."""

_CONTENT = {
    "robot": str, "method": str, "covariance": str, "torque": str, "payload_model": str, "effects": list,
    "parameters": list,
}  # fmt: skip
_ROW = {"name", "value", "sigma", "full_value", "full_sigma", "unit", "regrouping"}
_ARRAYS = ("columns", "values", "covariance", "freedom", "triangle", "rows")


def write_run(
    run: RunFolder,
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    found: Identification,
    extra: Mapping[str, Any] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Save an identification and return the content of its ``result.json``.

    Args:
        run: Where to save it.
        settings: Settings of the command.
        inputs: SHA-256 of every file it read.
        found: The identification.
        extra: Further content.
        seconds: How long each stage took.
    """
    content = {**told(found), **(extra or {})}
    return run.save(settings, inputs, content, lambda folder, _: fill_run(folder, found), seconds)


def fill_run(folder: Path, found: Identification) -> dict[str, Any]:
    """Write the arrays of an identification into a folder and return their names."""
    files = {"estimate": _write_estimate(folder, found), "observations": _write_observations(folder, found)}
    history = found.fit.detail.history if found.fit.detail else None
    if history is not None:
        files["history"] = _write_history(folder, history)
    return {"files": files}


def _write_estimate(folder: Path, found: Identification) -> str:
    estimate, essential = found.estimate, found.essential
    arrays = {
        "columns": np.array(estimate.columns),
        "values": estimate.values,
        "covariance": estimate.covariance,
        "freedom": estimate.freedom,
        "triangle": estimate.system.triangle / estimate.unit,  # rows in units of their noise, whatever the method
        "rows": np.array(estimate.system.rows),
        "essential_columns": np.array(essential.columns),
        "essential_values": essential.values,
        "essential_covariance": essential.covariance,
    }
    return write_arrays(folder, "estimate", arrays)


def _write_history(folder: Path, history: History) -> str:
    arrays = {
        "columns": np.array(history.columns),
        "time": history.time,
        "values": history.values,
        "sigma": history.sigma,
        **{name: array for name, array in (("q", history.q), ("qd", history.qd)) if array is not None},
    }
    return write_arrays(folder, "history", arrays)


def _write_observations(folder: Path, found: Identification) -> str:
    path = folder / "observations.npz"
    save_observations(path, found.fit.observations)
    name = write_arrays(folder, "observations", path.read_bytes())
    path.unlink()
    return name


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A run read back.

    Attributes:
        folder: Its folder.
        content: Its ``result.json``.
        estimate: All base parameters, with their weighted system.
    """

    __repr__ = short_repr

    folder: Path
    content: Mapping[str, Any]
    estimate: Estimate

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the command that made it."""
        return self.content["provenance"]["settings"]


def read_identified(folder: Path) -> dict[str, Any]:
    """Return the content of a run's ``result.json``.

    Raises:
        EstimateError: If it is no run of ``identify``, or not as it was written.
    """
    content = read_result(folder, RUN_COMMANDS, EstimateError, _CONTENT)
    if not all(isinstance(row, dict) and row.keys() >= _ROW for row in content["parameters"]):
        raise EstimateError(f"'{folder}' has parameters without a name or a value; run identify again")
    return content


def read_run(folder: Path) -> SavedRun:
    """Return a run with its arrays.

    Raises:
        EstimateError: If it is no run of ``identify``, or not as it was written.
    """
    content = read_identified(folder)
    arrays = arrays_of(folder, content, "estimate", _ARRAYS, EstimateError)
    columns, values, covariance, freedom, triangle, rows = (arrays[name] for name in _ARRAYS)
    count = columns.size
    shapes = [(count,), (count,), (count, count), (count,), (count + 1, count + 1), ()]
    numbers = (values, covariance, freedom, triangle, rows)
    if [arrays[name].shape for name in _ARRAYS] != shapes or any(one.dtype.kind not in "fiu" for one in numbers):
        raise EstimateError(f"the arrays of '{folder}' do not fit each other; run identify again")
    system = System(tuple(str(column) for column in columns), triangle, int(rows))
    method, kind = str(content["method"]), str(content["covariance"])
    return SavedRun(folder, content, Estimate(method, system, values, covariance, kind, freedom, {}))


RunLike = SavedRun | str | os.PathLike[str]
"""A run, or its folder: public functions take either."""


def load_run(run: RunLike) -> SavedRun:
    """Return a run, read from its folder if that is given."""
    if isinstance(run, SavedRun):
        return run
    require_type(run, (str, os.PathLike), "run", "a SavedRun or the folder of an identify run", EstimateError)
    return read_run(Path(run))
