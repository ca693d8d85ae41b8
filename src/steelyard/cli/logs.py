"""Recordings named on the command line, by a setup file or by logs that describe themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, RecordingError
from ..files import toml_document
from ..recording import Recording, RecordingStream, read_setup, stream_recordings
from ..robot import Robot
from .output import ProgressBar

if TYPE_CHECKING:
    from ..identification import SavedRun


def streams_of(
    robot: Robot, logs: Sequence[Path], config: Path | None, tables: Sequence[str], root: Path | None
) -> list[RecordingStream]:
    """Return the recordings that logs and a setup file mean; the setup's own files if no log is named.

    Raises:
        RecordingError: If neither logs nor a setup are given.
    """
    if config is not None and _has_setup(config, tables):
        folder = root if root or logs else config.parent
        return [
            stream
            for table in tables
            for stream in stream_recordings(robot, read_setup(config, table), list(logs) or None, root=folder)
        ]
    if not logs:
        raise RecordingError("no log given; name one, or a configuration file that names some with --config")
    return [stream for log in logs for stream in stream_recordings(robot, log if root is None else root / log)]


def with_declared_source(robot: Robot, config: Path | None, tables: Sequence[str]) -> Robot:
    """Return the robot with the ``inertia_source`` that the setup declares, if it declares one.

    Raises:
        ConfigError: If two tables declare different ones.
    """
    if config is None or not _has_setup(config, tables):
        return robot
    declared = {setup.inertia_source for table in tables for setup in [read_setup(config, table)]} - {None}
    if len(declared) > 1:
        raise ConfigError(f"{config}: inertia_source is both {' and '.join(sorted(map(str, declared)))}; keep one")
    return replace(robot, inertia_source=declared.pop()) if declared else robot


def _has_setup(config: Path, tables: Sequence[str]) -> bool:
    """Return whether a configuration file says what logs mean; one that only has settings does not."""
    try:
        document = toml_document(config, "the setup", ConfigError)
    except ConfigError:
        return True  # the reader of the setup reports what is wrong with the file
    return any(table in document for table in tables) or tuple(tables) != ("recording",)


def read_streams(streams: Sequence[RecordingStream]) -> list[Recording]:
    """Read recordings; a long one lies in a temporary file, not in memory."""
    found: list[Recording] = []
    done, total = 0, sum(stream.bytes_total for stream in streams)
    with ProgressBar("reading") as progress:
        for stream in streams:
            found.append(stream.whole(lambda read, _, before=done: progress(before + read, total)))
            done += stream.bytes_total
    return found


def run_and_recordings(
    run: Path, robot: str | None, logs: Sequence[Path], config: Path | None, table: str, root: Path | None
) -> tuple[SavedRun, Robot, list[Recording]]:
    """Return an identify run, its robot (``robot`` if its file has moved) and recordings of that robot."""
    from ..identification import read_run, robot_of_run

    known = read_run(run)
    arm = robot_of_run(known.content, robot)
    return known, arm, read_streams(streams_of(arm, logs, config, (table,), root))


def gains_file(given: Path | None) -> Path | None:
    """Return the file of ``--gains``, which may name the folder of a run."""
    from ..recording.gains import FILE

    return given / FILE if given is not None and given.is_dir() else given


def with_gains_file(recordings: list[Recording], given: Path | None) -> list[Recording]:
    """Return recordings with the gains of a file, if one is given."""
    from ..recording import read_gains, with_gains

    if given is None:
        return recordings
    gains = read_gains(given)
    return [with_gains(one, gains) for one in recordings]


def hashes_of_recordings(recordings: Sequence[Recording]) -> dict[str, str]:
    """Return the SHA-256 of the files of recordings, by path."""
    return {source.path: source.sha256 for recording in recordings for source in recording.sources}


def usable_recordings(
    recordings: Sequence[Recording], *, keep_bad: bool, uses_velocities: bool
) -> tuple[list[Recording], list[str]]:
    """Return the recordings without bad findings, and a sentence for each that is left out.

    Those with faults of single samples stay: they may be of a channel that is not used, and the verdict says what
    they spoil. So do those with reversed velocities that are not used: another factor may be that of the stamps.

    Raises:
        RecordingError: If none is left.
    """
    usable, left_out = [], []
    for recording in recordings:
        spoiled_by = [one for one in recording.spoiled_by if uses_velocities or not one.is_reversed_velocity]
        if spoiled_by and not keep_bad:
            left_out.append(f"{recording.sources[0].path} is left out: {spoiled_by[0].text}")
        else:
            usable.append(recording)
    if recordings and not usable:
        raise RecordingError(
            f"no recording is left after the checks: {left_out[0]}; correct the log (steelyard check lists all "
            "findings), or use it with --keep-bad"
        )
    return usable, left_out
