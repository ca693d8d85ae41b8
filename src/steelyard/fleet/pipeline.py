"""Fleets: every log of a manifest checked, reduced and identified on workers; units and their changes from that.

Logs stay where the workers read them; what comes back of each is its weighted triangle, some kilobytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, FileError, SteelyardError, WorkerError
from ..files import cannot_read, write_aside
from ..plain_data import frame_of, plain
from ..progress import Progress, Stage, no_stages
from ..text import counted, short_repr
from ..workers import Shared, Stop, Workers, open_workers
from .changes import LEAST_UNITS
from .log_results import (
    DeclaredModel,
    LogResult,
    ResultStore,
    declared_model,
    key_of,
    known_equations,
    log_hash,
    mark_of,
    result_of,
    stored_document,
)
from .manifest import FleetLog, Manifest, read_manifest
from .robot_fleet import FleetFinding, RobotFleet, analyse

if TYPE_CHECKING:
    import polars

STORE = "store"
FEW_LOGS = 10
"""With fewer logs beyond the first of each unit, how much logs of an unchanged unit differ is hardly known."""
FINDING_COLUMNS = (
    "code", "severity", "robot", "serial", "date", "cause", "value", "sigma", "p", "text", "remedy",
)  # fmt: skip
_MODELS, _DIGESTS = "models.json", "digests.json"


@dataclass(frozen=True, eq=False)
class FleetResult:
    """What a fleet's logs say.

    Attributes:
        logs: All logs of the manifest, in its order.
        results: What each shows, or why it is left out.
        models: Declared model of each robot.
        robots: The units of each robot with at least one log that counts.
        read: How many logs were read now; the others were in the store.
        notes: Notes for the reader, a sentence each.
    """

    __repr__ = short_repr

    logs: tuple[FleetLog, ...]
    results: tuple[LogResult, ...]
    models: Mapping[str, DeclaredModel]
    robots: tuple[RobotFleet, ...]
    read: int
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[FleetFinding, ...]:
        """What is worth a look in all units, the most certain first."""
        return tuple(sorted((one for robot in self.robots for one in robot.findings), key=lambda one: one.p))

    @cached_property
    def broken(self) -> tuple[tuple[FleetLog, LogResult], ...]:
        """Logs that are left out."""
        return tuple((log, one) for log, one in zip(self.logs, self.results, strict=True) if one.reason)

    def runs_frame(self) -> polars.DataFrame:
        """Return a row for every log."""
        return frame_of([_run_row(log, one) for log, one in zip(self.logs, self.results, strict=True)])

    def parameters_frame(self) -> polars.DataFrame:
        """Return a row for every parameter of every unit and of the common arm (serial empty)."""
        return frame_of([plain(row) for robot in self.robots for row in robot.parameter_rows()])

    def chart_frame(self) -> polars.DataFrame:
        """Return a row for every parameter of every log with its control limits."""
        return frame_of([plain(row) for robot in self.robots for row in robot.chart_rows()])

    def findings_frame(self) -> polars.DataFrame:
        """Return a row for every finding, those of single logs after those of units."""
        import polars as pl

        schema = {name: pl.Float64 if name in ("value", "sigma", "p") else pl.String for name in FINDING_COLUMNS}
        return pl.DataFrame([*map(_finding_row, self.findings), *self._log_findings()], schema=schema)

    def _log_findings(self) -> list[dict[str, Any]]:
        return [
            {
                "code": one["kind"], "severity": one["severity"], "robot": log.robot, "serial": log.serial,
                "date": log.date.isoformat(), "cause": one["joint"], "value": None, "sigma": None, "p": None,
                "text": one["text"], "remedy": one["remedy"],
            }
            for log, result in zip(self.logs, self.results, strict=True)
            for one in result.findings
        ]  # fmt: skip

    def to_html(self, provenance: Mapping[str, str] | None = None) -> str:
        """Return the report as one HTML document, as run folders have it."""
        from ..report import page_html
        from .report import fleet_page  # loaded when used: most fleets are looked at as tables

        return page_html(fleet_page(self, provenance or {}))

    def write_tables(self, folder: Path) -> None:
        """Write runs, parameters, control charts and findings as Parquet files into a folder."""
        frames = {
            "runs": self.runs_frame(), "parameters": self.parameters_frame(), "charts": self.chart_frame(),
            "findings": self.findings_frame(),
        }  # fmt: skip
        for name, frame in frames.items():
            frame.write_parquet(folder / f"{name}.parquet", compression="zstd", statistics=False)

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``result.json``, without what a run folder adds."""
        return plain(
            {
                "logs": len(self.logs),
                "left_out": [{**_run_row(log, one), "reason": one.reason} for log, one in self.broken],
                "models": {
                    name: {"measured": one.measured, "settings": dict(one.table)} for name, one in self.models.items()
                },
                "robots": [_robot_json(robot) for robot in self.robots],
                "findings": [_finding_row(one) for one in self.findings],
                "notes": self.notes,
            }
        )


def _run_row(log: FleetLog, one: LogResult) -> dict[str, Any]:
    return {
        "robot": log.robot, "serial": log.serial, "date": log.date.isoformat(),
        "files": ";".join(map(str, log.files)), "payload": log.payload, "status": "left out" if one.reason else "used",
        "reason": one.reason, "error_percent": plain(one.error), "samples": one.samples, "seconds": one.seconds,
    }  # fmt: skip


def _finding_row(one: FleetFinding) -> dict[str, Any]:
    return {
        "code": one.code, "severity": "warning", "robot": one.robot, "serial": one.serial,
        "date": None if one.date is None else one.date.isoformat(), "cause": one.cause, "value": plain(one.value),
        "sigma": plain(one.sigma), "p": one.p, "text": one.text, "remedy": one.remedy,
    }  # fmt: skip


def _robot_json(robot: RobotFleet) -> dict[str, Any]:
    return {
        "robot": robot.robot,
        "units": len(robot.serials),
        "logs": len(robot.logs),
        "iterations": robot.hierarchy.iterations,
        "unseen": robot.unseen,
        "common": [row for row in robot.parameter_rows() if not row["serial"]],
        "temperature_slopes": robot.slopes,
    }


def identify_fleet(
    manifest: Manifest | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    memory: int | None = None,
    false_alarms: float = 0.05,
    stage: Stage = no_stages,
) -> FleetResult:
    """Check, reduce and identify every log of a manifest, and say what its units have in common and what not.

    The result does not depend on the workers.

    Args:
        manifest: The logs, or the path of the file that names them; see :func:`read_manifest`.
        folder: Where results of single logs are kept: what is there is not read again. None: nowhere.
        settings: Settings of all models as ``[identify]`` has them; the manifest's own win.
        workers: Local processes that share the logs; a script with several needs ``if __name__ == "__main__":``.
        scheduler: Address of a Dask scheduler whose workers do it instead.
        memory: Most memory of each local worker [bytes]; None for no limit.
        false_alarms: Probability that a fleet without changes raises any alarm.
        stage: Called with the stage name; returns a progress callback.

    Raises:
        SteelyardError: If no log can be read, or the settings make no sense.
        KeyboardInterrupt: After an interrupt; results of logs that were finished are in the folder.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> experiment = steelyard.Experiment(record_rate=100, motor_noise=steelyard.Noise("white", (0.5, 0.05)))
        >>> run, lines = steelyard.simulate("scara_2r", motion, experiment, seeds=range(6)), ["robot,serial,date,files"]
        >>> for k in range(6):
        ...     path = steelyard.write_recording(steelyard.recording_of(run, k), f"log{k}.npz")
        ...     lines.append(f"scara_2r,{k // 2},2026-01-0{k + 1},{path.name}")
        >>> np.savetxt("manifest.csv", lines, fmt="%s")
        >>> found = steelyard.identify_fleet("manifest.csv")
        >>> [(one.robot, one.serials) for one in found.robots], found.findings
        ([('scara_2r', ('0', '1', '2'))], ())
    """
    given = manifest if isinstance(manifest, Manifest) else read_manifest(Path(manifest))
    place = None if folder is None else Path(folder)
    if place is not None and (place / STORE).exists() and not (place / STORE).is_dir():
        raise FileError(f"'{place / STORE}' is not a folder; results of logs are kept there: move it away")
    with open_workers(scheduler, workers, memory) as opened:
        return _identified(given, opened, place, settings or {}, false_alarms, stage)


def _identified(
    manifest: Manifest,
    workers: Workers,
    folder: Path | None,
    settings: Mapping[str, Any],
    false_alarms: float,
    stage: Stage,
) -> FleetResult:
    if not 0 < false_alarms < 1:
        raise ConfigError(f"rate of false alarms: got {false_alarms:g}, allowed are numbers between 0 and 1")
    store = None if folder is None else ResultStore(folder / STORE)
    digests = _digests(manifest.logs, workers, folder, stage("looking for new logs"))
    models, reasons = _models(manifest, settings, folder)
    results, first = dict[int, LogResult](), dict[str, FleetLog]()
    for number, log in enumerate(manifest.logs):
        if digests[number].startswith(_FAILED):
            results[number] = LogResult(digests[number].removeprefix(_FAILED), is_final=False)
        elif log.robot not in models:
            results[number] = LogResult(reasons[log.robot], is_final=False)
        elif first.setdefault(digests[number], log) is not log:
            other = first[digests[number]]
            results[number] = LogResult(
                f"the same data as {other.place} (unit {other.serial}); each log counts once", is_final=False
            )
        elif store is not None and (known := store.read(key_of(models[log.robot], digests[number]))) is not None:
            results[number] = known
    new = [number for number in range(len(manifest.logs)) if number not in results]
    progress = stage("reading logs")
    for done, (number, result) in enumerate(_reduced(manifest.logs, new, models, workers), 1):
        results[number] = result
        if store is not None and result.is_final:
            store.write(key_of(models[manifest.logs[number].robot], digests[number]), result)
        progress(done, len(new))
    stage("comparing units")
    ordered = tuple(results[number] for number in range(len(manifest.logs)))
    if all(one.reason for one in ordered):
        first = f"{manifest.logs[0].place}: {ordered[0].reason}"
        raise FileError(f"no log of {len(ordered)} can be used; the first: {first}")
    robots = tuple(_robot_fleets(manifest.logs, ordered, models, false_alarms))
    return FleetResult(manifest.logs, ordered, models, robots, len(new), tuple(_notes(robots)))


_FAILED = "! "
"""Before the reason why a log has no digest."""


def _hashed(_: None, log: FleetLog, stop: Stop) -> str:
    try:
        return log_hash(log)
    except OSError as error:
        return f"{_FAILED}'{Path(error.filename or log.files[0]).name}' {cannot_read(error)}"


def _nothing() -> None:
    """Return what tasks without shared data share."""


def _reduced_log(models: Mapping[str, DeclaredModel], log: FleetLog, stop: Stop) -> LogResult:
    return result_of(models[log.robot], log)


def _same(models: Mapping[str, DeclaredModel]) -> Mapping[str, DeclaredModel]:
    return models


def _reduced(
    logs: Sequence[FleetLog], new: Sequence[int], models: Mapping[str, DeclaredModel], workers: Workers
) -> Iterator[tuple[int, LogResult]]:
    """Yield number and result of new logs as they are finished."""
    for place, result in workers.finished(_reduced_log, Shared(_same, dict(models)), [logs[number] for number in new]):
        if isinstance(result, WorkerError):
            yield new[place], LogResult(str(result), is_final=False)
        else:
            yield new[place], result


def _digests(logs: Sequence[FleetLog], workers: Workers, folder: Path | None, progress: Progress) -> list[str]:
    """Return the SHA-256 of every log; of files whose size and time are known it is not computed again."""
    path = None if folder is None else folder / STORE / _DIGESTS
    known = stored_document(path)
    marks = [mark_of(log) for log in logs]
    found = {number: digest for number, mark in enumerate(marks) if isinstance(digest := known.get(mark), str)}
    new = [number for number in range(len(logs)) if number not in found]
    done = len(found)
    for place, digest in workers.finished(_hashed, Shared(_nothing), [logs[number] for number in new]):
        found[new[place]] = f"{_FAILED}{digest}" if isinstance(digest, WorkerError) else digest
        done += 1
        progress(done, len(logs))
    if path is not None and new:
        kept = {
            mark: digest
            for number, mark in enumerate(marks)
            if mark and not (digest := found[number]).startswith(_FAILED)
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        write_aside(path, json.dumps({**known, **kept}, indent=0) + "\n")
    return [found[number] for number in range(len(logs))]


def _models(
    manifest: Manifest, settings: Mapping[str, Any], folder: Path | None
) -> tuple[dict[str, DeclaredModel], dict[str, str]]:
    """Return the declared model of each robot, as first declared in the folder, and why others have none."""
    path = None if folder is None else folder / STORE / _MODELS
    known, found, reasons = stored_document(path), dict[str, DeclaredModel](), dict[str, str]()
    for robot in dict.fromkeys(log.robot for log in manifest.logs):
        given = {**settings, **manifest.models.get(robot, {})}
        key = json.dumps([robot, given], sort_keys=True)
        if (before := declared_before(robot, known.get(key))) is not None:
            found[robot] = before
            continue
        for log in (log for log in manifest.logs if log.robot == robot):
            try:
                found[robot] = declared_model(log, given)
            except (SteelyardError, OSError) as error:
                reasons.setdefault(robot, str(error))
                continue
            known[key] = {"table": dict(found[robot].table), "measured": found[robot].measured}
            break
    if path is not None and found:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_aside(path, json.dumps(known, indent=2) + "\n")
    return found, reasons


def declared_before(robot: str, entry: object) -> DeclaredModel | None:
    """Return the model that the store declares; None if it has none, or none that makes sense."""
    match entry:
        case {"table": dict(table), "measured": str(measured)}:
            declared = DeclaredModel(robot, table, measured)
            try:
                return declared if declared.settings else None
            except SteelyardError:
                return None
    return None


def _robot_fleets(
    logs: Sequence[FleetLog], results: Sequence[LogResult], models: Mapping[str, DeclaredModel], false_alarms: float
) -> Iterator[RobotFleet]:
    for robot, model in models.items():
        own = [k for k, log in enumerate(logs) if log.robot == robot and not results[k].reason]
        if own:
            share, equations = false_alarms / len(models), known_equations(model)
            if any(results[k].columns != equations.names for k in own):
                raise FileError(f"'{STORE}' has results of another model of {robot}; delete that folder and try again")
            yield analyse(robot, [logs[k] for k in own], [results[k] for k in own], equations, share)


def _notes(robots: Sequence[RobotFleet]) -> Iterator[str]:
    for robot in robots:
        units, again = len(robot.serials), len(robot.logs) - len(robot.serials)
        if units < LEAST_UNITS + 1:
            yield (
                f"{robot.robot}: {counted(units, 'unit')}: too few to say whether one is unlike the others; it takes "
                f"{LEAST_UNITS + 1} for a single parameter"
            )
        if 0 < again < FEW_LOGS:
            yield (
                f"{robot.robot}: {counted(again, 'log')} beyond the first of each unit: too few to know how much logs "
                "of an unchanged unit differ; a change as large as they do is not seen"
            )
        if not again:
            yield f"{robot.robot}: one log of each unit: what differs from log to log counts as variation between units"
        doubted = [log for log, by in zip(robot.logs, robot.doubt, strict=True) if by > 1]
        if doubted:
            named = ", ".join(f"{log.serial} {log.date:%Y-%m-%d}" for log in doubted[:5])
            yield (
                f"{robot.robot}: {counted(len(doubted), 'log')} in disagreement with the others of the unit in "
                f"everything, counting less: {named}{', ...' if len(doubted) > 5 else ''}"
            )
        if robot.unseen:
            yield f"{robot.robot}: no log shows {', '.join(robot.unseen[:6])}; record other motion to see them"
