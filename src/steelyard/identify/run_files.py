"""What a run keeps besides ``result.json``: factors and estimate as arrays, for payloads, comparisons and later data.

Array files carry their content's hash in their name and ``result.json``, written last, says which belong to it. So a
killed run leaves the old result with its arrays, or the new one with its own; never a mixture.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import EstimateError, require_type
from ..estimate import Estimate, History, System
from ..observe import save_observations
from ..run import SCHEMA_VERSION, remove_other_arrays, write_arrays, write_result
from ..text import short_repr
from .identification import Identification
from .told import told

_ARRAYS = ("columns", "values", "covariance", "freedom", "triangle")


def write_run(
    folder: Path,
    command: str,
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    found: Identification,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write an identification into a run folder and return the content of its ``result.json``.

    Args:
        folder: The run folder; made if it is not there.
        command: The command that ran.
        settings: Its settings.
        inputs: SHA-256 of every file it read.
        found: The identification.
        extra: Further content, such as that of a demonstration.
    """
    files = {"estimate": _write_estimate(folder, found), "observations": _write_observations(folder, found)}
    history = found.fit.detail.history if found.fit.detail else None
    if history is not None:
        files["history"] = _write_history(folder, history)
    content = {**told(found), **(extra or {}), "files": files}
    write_result(folder, command, settings, inputs, content)
    remove_other_arrays(folder, files)
    return content


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
    memory = io.BytesIO()
    np.savez(memory, **arrays)  # type: ignore[arg-type]  # names are ours
    return write_arrays(folder, "estimate", memory.getvalue())


def _write_history(folder: Path, history: History) -> str:
    arrays = {
        "columns": np.array(history.columns),
        "time": history.time,
        "values": history.values,
        "sigma": history.sigma,
        **{name: array for name, array in (("q", history.q), ("qd", history.qd)) if array is not None},
    }
    memory = io.BytesIO()
    np.savez(memory, **arrays)  # type: ignore[arg-type]  # names are ours
    return write_arrays(folder, "history", memory.getvalue())


def _write_observations(folder: Path, found: Identification) -> str:
    aside = folder / f".observations.{hashlib.sha256(str(id(found)).encode()).hexdigest()[:8]}.npz"
    try:
        save_observations(aside, found.fit.observations)
        return write_arrays(folder, "observations", aside.read_bytes())
    finally:
        aside.unlink(missing_ok=True)


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


def read_result(folder: Path) -> dict[str, Any]:
    """Return the content of a run's ``result.json``.

    Raises:
        EstimateError: If there is none, or it is no result of ours.
    """
    path = folder / "result.json" if folder.is_dir() else folder
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EstimateError(f"no run in '{folder}': {error.strerror}; give the folder of an identify run") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise EstimateError(f"'{path}' is not JSON ({error}); give the folder of an identify run") from error
    if not isinstance(content, dict) or "parameters" not in content:
        raise EstimateError(f"'{path}' holds no identified parameters; give the folder of an identify run")
    if content.get("schema") != SCHEMA_VERSION:
        raise EstimateError(
            f"'{path}' has schema {content.get('schema')}, this version reads {SCHEMA_VERSION}; run identify again"
        )
    return content


def read_run(folder: Path) -> SavedRun:
    """Return a run with its arrays.

    Raises:
        EstimateError: If it is no identify run, or its arrays are missing or damaged.
    """
    content = read_result(folder)
    name = content.get("files", {}).get("estimate", "")
    try:
        with np.load(folder / name, allow_pickle=False) as arrays:
            columns, values, covariance, freedom, triangle = (arrays[key] for key in _ARRAYS)
            rows = int(arrays["rows"])
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise EstimateError(f"the arrays of run '{folder}' cannot be read ({error}); run identify again") from error
    system = System(tuple(str(column) for column in columns), triangle, rows)
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
