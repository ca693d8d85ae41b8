"""One log of a fleet: checked, identified with the declared model, and reduced to what the fleet needs of it.

Its weighted triangle is all that later steps need: logs merge by adding rows. Results lie in a folder by the SHA-256 of
what made them: the log's bytes, its configuration, the robot, the model and the filter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..archive import ArchiveError, read_arrays
from ..configuration import Section, anything, record_from
from ..errors import RecordingError, SteelyardError
from ..estimate import Estimate, group_of
from ..estimate.gls import with_correlated_noise
from ..files import cannot_read, file_hash, opened_aside
from ..identification import Settings, fit_arm, settings_from_table
from ..identification.fitting import Fitted
from ..identification.inputs import arm_of, model_of
from ..judge import combined, evaluate
from ..judge.bias import noise_bias
from ..model import Parameter, build_model
from ..model.terms import PAYLOAD_NAMES
from ..observe import Equations, equations_of, geometry_hash, merged_triangle, resolve_preparation
from ..recording import Recording, read_setup, stream_recordings
from ..robot import Robot, load_robot
from ..text import short_repr, with_remedy
from .manifest import FleetLog

SCHEMA = 5
IMPOSSIBLE = 8.0
"""A log whose friction is negative by so many sigmas is left out."""
POOREST = 50.0
"""Logs of whose torques the declared model explains so little [% error] are left out: they are not of this arm."""


@dataclass(frozen=True)
class DeclaredModel:
    """Model and filter of all logs of a robot.

    Attributes:
        robot: Name or file of the robot.
        table: Settings as ``[identify]`` of a configuration file has them, cut-off and decimation among them.
        measured: Torques that are modelled: ``motor``, ``joint`` or ``both``.
    """

    robot: str
    table: Mapping[str, Any]
    measured: str

    @property
    def settings(self) -> Settings:
        """Settings of the fits."""
        return replace(settings_from_table(dict(self.table)), measured=self.measured, select=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what it means: the arm's geometry and catalogue values, and the settings."""
        robot = load_robot(self.robot)
        parts = [SCHEMA, __version__, geometry_hash(robot), repr(robot.values), dict(self.table), self.measured]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class LogResult:
    """What a log shows of the declared model's parameters, or why it shows nothing.

    Attributes:
        reason: Why the log is left out; empty if it is not.
        is_final: Whether the same bytes would give the same again; a missing file or too little memory may be mended.
        columns: Names of the base columns.
        rows: Weighted rows ``[W y]`` (k, c + 1) with noise of variance 1: its information.
        error: Relative error of the fit, all joints [%].
        samples: Samples that became rows.
        seconds: Duration of the recording [s].
        temperature: Mean temperature of each joint [deg C]; empty if none was recorded.
        findings: What checks found: severity, kind, joint, text and remedy of each.
    """

    __repr__ = short_repr

    reason: str = ""
    is_final: bool = True
    columns: tuple[str, ...] = ()
    rows: np.ndarray = field(default_factory=lambda: np.zeros((0, 1)))
    error: float = float("nan")
    samples: int = 0
    seconds: float = 0.0
    temperature: tuple[float, ...] = ()
    findings: tuple[Mapping[str, str], ...] = ()


def log_hash(log: FleetLog) -> str:
    """Return the SHA-256 of a log's bytes and of what says how to read them.

    Raises:
        OSError: If a file cannot be read.
    """
    return hashlib.sha256(json.dumps([*map(file_hash, log.paths), log.payload]).encode()).hexdigest()


def declared_model(log: FleetLog, table: Mapping[str, Any]) -> DeclaredModel:
    """Return the model of a robot: what the table leaves open is as one of its logs has it.

    Raises:
        SteelyardError: If the log cannot be read.
    """
    robot = load_robot(log.robot)
    settings = settings_from_table(dict(table))
    recordings = _usable(robot, log)
    model = model_of(robot, [(log.place, one) for one in recordings], (), settings, "none")
    resolved = resolve_preparation(settings.preparation, recordings)
    chosen: dict[str, Any] = {"decimation": resolved.decimation}
    if resolved.low_pass.cutoff is not None:
        chosen["cutoff"] = float(f"{resolved.low_pass.cutoff:.4g}")
    return DeclaredModel(log.robot, {**chosen, **table}, model.measured)


def result_of(model: DeclaredModel, log: FleetLog) -> LogResult:
    """Check, identify and reduce a log; what is wrong with it is its result."""
    try:
        return _result(model, log)
    except SteelyardError as error:
        return LogResult(str(error))
    except OSError as error:
        return LogResult(cannot_read(error), is_final=False)
    except MemoryError:
        return LogResult("needs more memory than a worker has; give each more with --memory", is_final=False)


def _result(model: DeclaredModel, log: FleetLog) -> LogResult:
    robot, settings = load_robot(model.robot), model.settings
    recordings = _usable(robot, log)
    equations = known_equations(model, loaded=bool(log.payload))
    fitted = fit_arm(robot, recordings, settings, equations=equations)
    estimate, noise = fitted.fit.estimate, fitted.fit.noise
    error = combined([evaluate(one, estimate, noise, decimated=False) for one in fitted.sources]).relative_percent
    if not error <= POOREST:
        raise RecordingError(
            f"the model leaves {error:.0f} % of its torques unexplained; is it of this robot? Try steelyard check"
        )
    _refuse_reversed(equations, estimate)
    own = tuple(name for name in equations.names if name not in PAYLOAD_NAMES)
    # Logs of a fleet repeat motions: what errors in the positions do to one they do to all, and no mean takes it away.
    bias = noise_bias(recordings, fitted.sources, estimate, fitted.fit.whitening, used=fitted.fit.used)
    return LogResult(
        "",
        True,
        own,
        _information_rows(fitted, equations.names, own, dict(zip(estimate.columns, bias, strict=True))),
        error,
        sum(source.samples for source in fitted.sources),
        float(sum(one.time[-1] - one.time[0] for one in recordings)),
        _temperature(recordings),
        tuple(
            {"severity": one.severity, "kind": one.kind, "joint": one.joint, "text": one.text, "remedy": one.remedy}
            for recording in recordings
            for one in recording.findings
            if one.severity != "info"
        ),
    )


def _refuse_reversed(equations: Equations, estimate: Estimate) -> None:
    """Refuse a log with friction that drives a joint: its torques, or its positions, have the wrong sign.

    Raises:
        RecordingError: If there is such a joint.
    """
    known = dict(zip(estimate.columns, zip(estimate.values, estimate.sigma, strict=True), strict=True))
    of_joint: dict[str, list[Parameter]] = {}
    for one in equations.model.parameters:
        if one.friction in ("viscous", "dry") and one.name in known:
            of_joint.setdefault(one.joint, []).append(one)
    for joint, own in of_joint.items():
        worst = min(own, key=lambda one: known[one.name][0] / known[one.name][1])
        value, sigma = known[worst.name]
        if value < -IMPOSSIBLE * sigma and all(known[one.name][0] < 0 for one in own):
            raise RecordingError(
                f"{worst.name} is {value:.3g} +- {sigma:.2g} {worst.unit}: friction would drive '{joint}'; do its "
                "torques have the wrong sign? Try steelyard check"
            )


_equations: dict[tuple[str, bool], Equations] = {}
"""Equations of this process, compiled once for each declared model."""


def known_equations(model: DeclaredModel, *, loaded: bool = False) -> Equations:
    """Return the equations of a declared model, with columns of a payload or without."""
    key = (model.digest, loaded)
    if key not in _equations:
        settings = model.settings
        arm, payload = arm_of(load_robot(model.robot), settings), "paired" if loaded else "none"
        built = build_model(arm, settings.effects, model.measured, payload, settings.sign_width, settings.friction)
        _equations[key] = equations_of(built)
    return _equations[key]


def _usable(robot: Robot, log: FleetLog) -> list[Recording]:
    """Return the recordings of a log.

    Raises:
        RecordingError: If one has a fault that spoils all of it.
    """
    if log.config is None:
        streams = [stream for path in log.files for stream in stream_recordings(robot, path)]
    else:
        streams = list(stream_recordings(robot, read_setup(log.config), list(log.files)))
    found = [replace(stream.whole(), payload=log.payload or None) for stream in streams]
    for worst in (one for recording in found for one in recording.spoiled_by):
        raise RecordingError(with_remedy(worst.text, worst.remedy))
    return found


def _information_rows(
    fitted: Fitted, names: Sequence[str], own: Sequence[str], bias: Mapping[str, float]
) -> np.ndarray:
    """Return what a fit knows of the arm's columns as rows (k, c + 1) with noise of variance 1, without its bias.

    The covariance of a fit is widened parameter by parameter. That is right for their sigmas, but makes other sums of
    them well known than those that are. So its weighted triangle is taken, zero in directions that the log does not
    show, less what is known of a payload only and widened alike in all; of a fit that was not whitened, the inverse of
    the covariance that the correlation of its residuals gives.
    """
    fit, estimate = fitted.fit, fitted.fit.estimate
    if fit.distrust and tuple(names) == estimate.columns:
        covariance = with_correlated_noise(fitted.sources, estimate).estimate.covariance
        root = np.linalg.inv(np.linalg.cholesky(covariance))
        return np.column_stack([root, root @ (estimate.values - [bias[name] for name in own])])
    weights = {group: 1 / deviation for group, deviation in estimate.deviations.items()}
    factors = [factor for factor in fit.used.factors if group_of(factor) in weights]
    gain = float(np.median(estimate.widening))
    gone = [name for name in names if name not in own]
    triangle, _ = merged_triangle(factors, [*gone, *own], lambda factor: weights[group_of(factor)] / gain)
    rows = triangle[len(gone) : len(gone) + len(own), len(gone) :]
    rows[:, -1] -= rows[:, :-1] @ [bias.get(name, 0.0) for name in own]
    return rows


def _temperature(recordings: Sequence[Recording]) -> tuple[float, ...]:
    known = [one.temperature for one in recordings if one.temperature is not None]
    if not known:
        return ()
    every = np.concatenate(known, axis=1)
    counted = np.isfinite(every).sum(axis=1)
    sums = np.nansum(every, axis=1)
    return tuple(np.where(counted > 0, sums / np.maximum(counted, 1), np.nan).tolist())


class ResultStore:
    """Results of logs in a folder, each named by what made it; a file is complete or absent.

    Args:
        folder: The folder; made when the first result is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, key: str) -> Path:
        """Return where the result of a key is, or would be."""
        return self._folder / key[:2] / f"{key}.npz"

    def read(self, key: str) -> LogResult | None:
        """Return a result, None if it is not there or its file is damaged: it is then made again."""
        path = self.path(key)
        if not path.exists():
            return None
        try:
            arrays = read_arrays(path)
            document = Section(dict(json.loads(str(arrays["document"]))), "", RecordingError)
            found = record_from(LogResult, document, {"findings": _findings, "rows": anything})
        except (ArchiveError, ValueError, KeyError, TypeError, RecursionError, RecordingError):
            return None
        rows = arrays.get("rows", np.zeros(0))
        width = 1 if found.reason else len(found.columns) + 1
        is_sound = rows.dtype == float and rows.ndim == 2 and rows.shape[1] == width and np.isfinite(rows).all()
        return replace(found, rows=rows) if is_sound else None

    def write(self, key: str, result: LogResult) -> None:
        """Write a result aside, then rename it."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {name: value for name, value in asdict(result).items() if name != "rows"}
        with opened_aside(path) as file:
            np.savez(file, document=np.array(json.dumps(document)), rows=result.rows)


def _findings(value: Any) -> tuple[Mapping[str, str], ...]:
    """Findings of a log, texts by key."""
    for one in value:
        if set(one) != _FINDING_KEYS or not all(isinstance(entry, str) for entry in one.values()):
            raise ValueError("findings")
    return tuple(value)


_FINDING_KEYS = {"severity", "kind", "joint", "text", "remedy"}


def key_of(model: DeclaredModel, digest: str) -> str:
    """Return the name of a result: log, configuration, robot, model and filter."""
    return hashlib.sha256(f"{model.digest} {digest}".encode()).hexdigest()


def mark_of(log: FleetLog) -> str:
    """Return names, sizes and times of a log's files, as far as this machine sees them; empty if it does not."""
    try:
        parts = [(str(path), (known := path.stat()).st_size, known.st_mtime_ns) for path in log.paths]
    except OSError:
        return ""
    return json.dumps([parts, log.payload])


def stored_document(path: Path | None) -> dict[str, Any]:
    """Return what a file of the store holds; nothing if it is not there or damaged: it is then made again."""
    try:
        found = {} if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}  # values are checked where they are used
