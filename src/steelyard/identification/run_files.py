"""Files of an ``identify`` run besides ``result.json`` (estimate, factors, history), and earlier runs as further rows.

The weighted triangle of a run stands for all its recordings: payloads and later data join it without reading them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import EstimateError, ObservationError, require_type
from ..estimate import Estimate, History, System, group_of, independent
from ..observe import (
    Equations,
    Fingerprint,
    Observations,
    load_observations,
    merge_observations,
    merged_triangle,
    save_observations,
)
from ..plain_data import plain
from ..robot import AnyRobot, Robot, catalogue_names, load_robot, robot_files
from ..run import LARGEST_VALUE, RunFolder, arrays_of, file_of, hashes_of, read_result, write_arrays
from ..text import short_repr
from .fitting import ArmFit
from .payload_body import COLUMNS
from .result import Identification
from .settings import FACTOR_METHODS, Settings, settings_from_table, settings_to_table

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
        or not all((np.abs(one) < np.float64(LARGEST_VALUE)).all() for one in numbers if one is not freedom)
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


def check_joinable(method: str) -> None:
    """Raise an EstimateError unless earlier runs can be counted with a method's estimate."""
    if method not in FACTOR_METHODS:
        raise EstimateError(
            f"earlier runs count as rows, and method '{method}' is not made of rows alone; give all recordings at once "
            f"and leave --add out, or choose --method {', '.join(FACTOR_METHODS)}"
        )


def run_rows(run: SavedRun, names: Sequence[str], *, keep_payload: bool = False) -> np.ndarray:
    """Return what a run knows as weighted rows (k, c + 1) in other columns.

    Columns of the run's payload are projected out unless they are to stay: the information on the others remains.

    Raises:
        EstimateError: If the run knows a parameter of the arm that is not among the columns.
    """
    known = run.estimate
    gone = [] if keep_payload else [name for name in known.columns if name in COLUMNS]
    others = [name for name in known.columns if name not in gone]
    missing = [name for name in others if name not in names]
    if missing:
        raise EstimateError(
            f"the run knows {', '.join(missing[:4])}, which this robot's model has not; is it another arm?"
        )
    order = [known.columns.index(name) for name in [*gone, *others]]
    triangle = np.asarray(np.linalg.qr(known.system.triangle[:, [*order, -1]], mode="r"))
    part = triangle[len(gone) : len(gone) + len(others), len(gone) : -1]
    # Sigmas that were widened, for a small sample or correlated noise, count in full; values stay.
    widened = part / known.widening[order][len(gone) :]
    rows = np.zeros((len(part), len(names) + 1))
    rows[:, [list(names).index(name) for name in others]] = widened
    rows[:, -1] = widened @ known.full_values(tuple(others))
    return rows


def joined(fit: ArmFit, rows: np.ndarray, equations: Equations) -> Estimate:
    """Return the estimate from the rows of a fit and further weighted rows (k, c + 1), over all columns.

    Columns that are not identifiable from the fit's recordings alone are tried again with the further rows.
    """
    names, new = equations.names, fit.estimate
    weights = {group: 1 / deviation for group, deviation in new.deviations.items()}
    factors = [factor for factor in fit.used.factors if group_of(factor) in weights]
    # What correlated noise, or estimating it, costs: the median over the parameters.
    gain = float(np.median(new.widening))
    triangle, count = merged_triangle(factors, names, lambda factor: weights[group_of(factor)] / gain)
    stacked = np.asarray(np.linalg.qr(np.vstack([triangle, rows]), mode="r"))
    system = independent(System(names, stacked, count))
    freedom = np.full(len(system.columns), float(np.median(new.freedom)))
    return Estimate(new.method, system, system.values, system.inverse, new.covariance_kind, freedom, new.deviations)


def with_earlier_runs(fit: ArmFit, equations: Equations, runs: Sequence[SavedRun]) -> Estimate:
    """Return the estimate of a fit together with what earlier runs knew.

    Raises:
        ObservationError: If a run is one of another geometry, filter, units or unknowns, or a recording comes twice.
        EstimateError: If a run has no factors.
    """
    merged = fit.observations
    rows = []
    carried = {info.payload for info in merged.recordings} - {None}
    for run in runs:
        earlier = _observations(run)
        _check_addable(run, merged.fingerprint, earlier.fingerprint)
        merged = merge_observations(merged, earlier)
        same_payload = carried == {info.payload for info in earlier.recordings} - {None}
        rows.append(run_rows(run, equations.names, keep_payload=same_payload))
    return joined(fit, np.vstack(rows), equations)


def _check_addable(run: SavedRun, here: Fingerprint, there: Fingerprint) -> None:
    """Refuse a run whose rows do not fit, and say with which options they would.

    Raises:
        ObservationError: If they do not.
    """
    content, settings = run.content, run.choices
    preparation = content["preparation"]
    cutoff = preparation["cutoff"]
    remedies = {
        "geometry": "give the robot file, --gravity and --lock of that run",
        "unknowns": f"identify with --effects {','.join(content['effects'])} --sign-width {settings.sign_width:g}",
        "filter": f"identify with {'' if cutoff is None else f'--cutoff {cutoff!r} '}--decimation "
        f"{preparation['decimation']} --velocity {preparation['velocity']}, from logs of its rate",
        "units": f"identify with --torque {content['torque']}",
    }
    for name, remedy in remedies.items():
        ours, theirs = getattr(here, name), getattr(there, name)
        if ours != theirs:
            values = "" if name == "geometry" else f" ('{theirs}', here '{ours}')"
            raise ObservationError(
                f"run '{run.folder}' cannot be added, because of other {name}{values}; {remedy}, or leave --add out "
                "and give all recordings at once"
            )


def _observations(run: SavedRun) -> Observations:
    """Return the factors of a run; recordings carry the run's name, so that two runs may have a ``log`` each."""
    found = run.observations
    prefix = run.folder.name
    factors = tuple(replace(factor, recording=f"{prefix}/{factor.recording}") for factor in found.factors)
    recordings = tuple(replace(info, label=f"{prefix}/{info.label}") for info in found.recordings)
    return Observations(found.fingerprint, factors, recordings)
