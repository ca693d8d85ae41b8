"""``steelyard identify``: recordings to parameters, errors on unseen motion and a verdict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..identification import SCHEMA, identify_arm, read_run, settings_from_table, with_options, write_run
from ..progress import Progress
from ..recording import Recording
from ..robot import gravity_vector, load_robot, lock_positions
from ..run import RunFolder, hashes_of, json_text, read_config
from .identify_table import print_identification
from .logs import read_streams, sound, streams_of
from .model import SCHEMA as MODEL_SCHEMA
from .output import ProgressBar

CODE = {"good": 0, "fair": 0, "poor": 2}


def run(
    robot_name: str,
    logs: Sequence[Path],
    validate: Sequence[Path],
    flags: dict[str, Any],
    config: Path | None,
    tables: tuple[Sequence[str], Sequence[str]],
    root: Path | None,
    keep_bad: bool,
    add: Sequence[Path],
    out: Path | None,
    json: bool,
) -> int:
    """Identify, print and save; return 2 for a poor verdict."""
    table = {**read_config(config, "model", MODEL_SCHEMA), **read_config(config, "identify", SCHEMA)} if config else {}
    options = flags.pop("option")
    table.update({key: value for key, value in flags.items() if value is not None})
    table |= {"gravity": list(gravity_vector(table["gravity"]))} if "gravity" in table else {}
    table |= {"lock": lock_positions(table["lock"])} if "lock" in table else {}
    table = with_options(table, options or ())
    settings = settings_from_table(table)
    robot = load_robot(robot_name)
    timing = Timing()
    timing.stage("reading")
    training, unseen = _recordings(
        robot, logs, validate or [Path(v) for v in table.get("validate", ())], config, tables, root
    )
    kept, left_out = sound(training, keep_bad)
    with RunFolder(out, "identify") as saved:
        found = identify_arm(
            robot,
            kept,
            unseen,
            settings,
            payload=table.get("payload"),
            earlier=[read_run(run) for run in add],
            stage=timing.stage,
        )
        timing.finish()
        results = [run / "result.json" for run in add]
        inputs = {**hashes_of(Path(robot_name), config, *results), **_hashes([*kept, *unseen])}
        asked = {"robot": robot_name, "logs": [str(log) for log in logs], **_told_settings(table)}
        asked |= {"add": [str(run) for run in add]} if add else {}
        content = write_run(saved, asked, inputs, found, {"left_out": left_out}, timing.seconds)
        if json:
            print(json_text("identify", content))
        else:
            print_identification(found, left_out, saved.place)
    return CODE[found.verdict.grade]


def _recordings(
    robot: Any,
    logs: Sequence[Path],
    validate: Sequence[Path],
    config: Path | None,
    tables: tuple[Sequence[str], Sequence[str]],
    root: Path | None,
) -> tuple[list[Recording], list[Recording]]:
    """Read what is to be fitted and what is to be judged by; files named for validation are not fitted too."""
    training_tables, unseen_tables = tables
    unseen = []
    if validate or unseen_tables:
        unseen = read_streams(streams_of(robot, validate, config, unseen_tables or training_tables, root))
    streams = streams_of(robot, logs, config, training_tables, root)
    if not logs and validate:
        names = {path.name for path in validate}
        streams = [s for s in streams if not {Path(table.path).name for table in s.plan.tables} & names]
    return read_streams(streams), unseen


def _hashes(recordings: Sequence[Recording]) -> dict[str, str]:
    return {source.path: source.sha256 for recording in recordings for source in recording.sources}


def _told_settings(table: dict[str, Any]) -> dict[str, Any]:
    """Return settings that decide the result; the number of threads does not."""
    told = {key: list(value) if isinstance(value, tuple) else value for key, value in table.items()}
    told.pop("threads", None)
    return told


class Timing:
    """A bar for each stage on stderr, and the seconds each took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._bar: ProgressBar | None = None
        self._name, self._start = "", time.perf_counter()

    def stage(self, name: str) -> Progress:
        """End the stage before and begin one."""
        self.finish()
        self._name, self._start = name, time.perf_counter()
        self._bar = ProgressBar(name)
        return self._bar

    def finish(self) -> None:
        """End the stage at hand."""
        if self._bar is not None:
            self._bar.__exit__()
            self._bar = None
        if self._name:
            spent = self.seconds.get(self._name, 0.0) + time.perf_counter() - self._start
            self.seconds[self._name] = round(spent, 3)
            self._name = ""
