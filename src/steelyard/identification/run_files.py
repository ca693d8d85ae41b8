"""Files of an ``identify`` run besides ``result.json``: estimate, factors, history; how they are written and read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import EstimateError, require_type
from ..estimate import Estimate, History, System
from ..observe import (
    Observations,
    load_observations,
    save_observations,
)
from ..plain_data import plain
from ..robot import AnyRobot, Robot, catalogue_names, load_robot, robot_files
from ..run import LARGEST_VALUE, RunFolder, arrays_of, file_of, hashes_of, read_result, write_arrays
from ..text import short_repr
from .result import Identification
from .settings import Settings, settings_from_table, settings_to_table

RUN_COMMANDS = ("identify", "demo")
"""Commands whose runs hold an identified arm."""

_CONTENT = {
    "robot": str, "method": str, "covariance": str, "torque": str, "payload_model": str, "effects": list,
    "parameters": list, "preparation": dict, "fit": dict, "recordings": list,
}  # fmt: skip
_ROW = {"name", "value", "sigma", "full_value", "full_sigma", "unit", "regrouping"}
_ARRAYS = ("columns", "values", "covariance", "freedom", "triangle", "rows")
_ESSENTIAL = ("essential_columns", "essential_values", "essential_covariance")


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
    content = {**found.to_json(), **(extra or {})}
    # The inertias that effects are in proportion to were found: without them the model could not be made again.
    settings = {**settings, **({} if found.settings.friction is None else {"friction": plain(found.settings.friction)})}
    prepared = {"cutoff": found.settings.preparation.cutoff, "evaluation_cutoff": found.settings.evaluation_cutoff}
    settings |= {name: value for name, value in prepared.items() if value is not None}
    if found.nonlinear:  # as found: what is made of the run later has to have them
        settings |= {"sign_width": found.settings.sign_width, "delay": found.settings.preparation.delay}
    return run.save(settings, inputs, content, lambda folder, _: fill_run(folder, found), seconds, found.to_html)


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
        essential: The essential parameters: those of the model that was judged.

    Example:
        >>> run = steelyard.load_run("my_run")  # saved by: steelyard identify scara_2r log.npz --out my_run
        >>> run.content["verdict"]["grade"], round(float(run.estimate.values[1]), 3)
        ('good', 0.064)
    """

    __repr__ = short_repr

    folder: Path
    content: Mapping[str, Any]
    estimate: Estimate
    essential: Estimate

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the command that made it."""
        return self.content["provenance"]["settings"]

    @property
    def choices(self) -> Settings:
        """The same as settings of an identification."""
        return settings_from_table({key: value for key, value in self.settings.items() if key not in _NO_CHOICES})

    @property
    def observations(self) -> Observations:
        """Factors of the rows of its recordings.

        Raises:
            EstimateError: If it has none.
        """
        return load_observations(file_of(self.folder, self.content, "observations", EstimateError))


_NO_CHOICES = ("robot", "logs", "add", "gains")


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
    arrays = arrays_of(folder, content, "estimate", (*_ARRAYS, *_ESSENTIAL), EstimateError)
    columns, values, covariance, freedom, triangle, rows = (arrays[name] for name in _ARRAYS)
    count = columns.size
    shapes = [(count,), (count,), (count, count), (count,), (count + 1, count + 1), ()]
    essential = [str(column) for column in arrays["essential_columns"].ravel()]
    shapes += [(len(essential),), (len(essential),), (len(essential), len(essential))]
    numbers = (values, covariance, freedom, triangle, rows, *(arrays[name] for name in _ESSENTIAL[1:]))
    names = tuple(str(column) for column in columns.ravel())
    if (
        [arrays[name].shape for name in (*_ARRAYS, *_ESSENTIAL)] != shapes
        or any(one.dtype.kind not in "fiu" for one in numbers)
        or not set(essential) <= set(names)
        or not all((np.abs(one) < LARGEST_VALUE).all() for one in numbers if one is not freedom)
        or not (freedom > 0).all()
        or not all((np.diag(one) >= 0).all() for one in (covariance, arrays["essential_covariance"]))
    ):
        raise EstimateError(f"the arrays of '{folder}' do not fit each other; run identify again")
    estimate = Estimate(
        str(content["method"]), System(names, triangle, int(rows)), values, covariance, str(content["covariance"]),
        freedom, {},
    )  # fmt: skip
    judged = replace(
        estimate, system=estimate.system.restricted(essential), values=arrays["essential_values"],
        covariance=arrays["essential_covariance"], freedom=freedom[[names.index(name) for name in essential]],
        after_selection=len(essential) < count,
    )  # fmt: skip
    return SavedRun(folder, content, estimate, judged)


RunLike = SavedRun | str | os.PathLike[str]
"""A run, or its folder: public functions take either."""


def load_run(run: RunLike) -> SavedRun:
    """Return a run, read from its folder if that is given.

    Example:
        >>> steelyard.load_run("my_run").estimate.method  # a folder of steelyard identify --out my_run
        'wls'
    """
    if isinstance(run, SavedRun):
        return run
    require_type(run, (str, os.PathLike), "run", "a SavedRun or the folder of an identify run", EstimateError)
    return read_run(Path(run))


def save_run(found: Identification, folder: str | os.PathLike[str]) -> SavedRun:
    """Save an identification in a run folder, as ``steelyard identify --out`` does; return it as ``load_run`` would.

    Args:
        found: The identification.
        folder: The folder; made if it is not there. An earlier run in it is replaced.

    Raises:
        FileError: If the folder cannot be written.

    Example:
        >>> found = steelyard.identify("scara_2r", "log.npz", settings=steelyard.Settings(method="wls"))
        >>> steelyard.save_run(found, "my_run").settings["method"]
        'wls'
    """
    robot = found.equations.model.robot.file
    files = {path: digest for one in found.training for path, digest in one.files}
    settings = {"robot": robot, "logs": sorted(files), **settings_to_table(found.settings)}
    with RunFolder(Path(folder), "identify") as run:
        write_run(
            run, settings, {**hashes_of(*robot_files(found.equations.model.robot)), **files}, found, {"left_out": []}
        )
        place = run.place
    return read_run(Path(folder) if place is None else place)


def robot_of_run(content: Mapping[str, Any], robot: AnyRobot | None = None) -> Robot:
    """Return the robot of a run, refusing a file that is not the one that the run read.

    Args:
        content: The ``result.json`` of a run that names its robot: of ``identify`` or of ``payload``.
        robot: The robot, or its file if that has moved; None: the file or catalogue name that the run names.

    Raises:
        EstimateError: If the run's file is not here, has changed, or the robot is another one.
    """
    provenance = content["provenance"]
    known = str(provenance["settings"].get("robot") or "")
    if robot is None and not known:
        raise EstimateError("the run does not say from which file its robot came; give the robot")
    recorded = provenance["inputs"].get(known)
    named = known if robot is None else robot
    if isinstance(named, Robot):
        return _same_name(named, content)
    path = Path(named)
    if str(named) not in catalogue_names():
        if not path.is_file():
            next_step = f"the run's robot file '{named}' is not here; name it with --robot"
            raise EstimateError(next_step if robot is None else f"no robot file '{named}'; check the path")
        if recorded is not None and hashes_of(path)[str(path)] != recorded:
            changed = f"the robot file '{named}' has changed since the run; restore it, or identify the arm again"
            raise EstimateError(changed if robot is None else f"'{named}' is not the file that the run read: {changed}")
    found = _same_name(load_robot(named), content)
    for part, digest in hashes_of(*robot_files(found)).items():  # files that it includes
        if provenance["inputs"].get(part, digest) != digest:
            raise EstimateError(
                f"the robot file '{part}' has changed since the run; restore it, or identify the arm again"
            )
    return found


def _same_name(robot: Robot, content: Mapping[str, Any]) -> Robot:
    if robot.name != content["robot"]:
        raise EstimateError(
            f"the run is of robot '{content['robot']}', got '{robot.name}'; give the robot that was identified"
        )
    return robot
