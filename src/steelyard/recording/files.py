"""Reading of recordings from files and memory as a setup declares them, and writing of self-describing files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import RecordingError, nearest_match, require_type
from ..files import opened_aside, require_files
from ..robot import AnyRobot, load_robot
from ..tables import Table, open_table, table_from_arrays, table_from_frame
from .checks import Checker, subject_of
from .plan import make_plan
from .record import POSE_ROWS, WRENCH_ROWS, Finding, Recording, Samples
from .setup import RecordingSetup, read_setup
from .stream import RecordingStream

Path_ = str | os.PathLike[str]
Files = Path_ | Sequence[Path_]
SetupOrPath = RecordingSetup | Path_ | None
AnyRecording = Recording | RecordingStream
RecordingsLike = AnyRecording | Path_ | Sequence[AnyRecording | Path_]
"""Recordings, or the paths of their files, or a single one: public functions take any of them."""

_ALLOWED = "recordings, or the paths of logs"


def read_recording(
    robot: AnyRobot, setup_or_path: SetupOrPath, files: Files | None = None, *, root: Path_ | None = None
) -> Recording:
    """Return one recording, all of it in memory, checked.

    Args:
        robot: The arm it was made with.
        setup_or_path: How to read it: a setup, or the path of a ``steelyard.toml``; or the path of a log whose
            columns say what they are (``time``, ``q[joint_1]`` ...).
        files: The log, where the setup does not name it; the parts in their order if it has several.
        root: Folder where relative paths start; by default the setup file's, for ``files`` the current one.

    Raises:
        RecordingError: If there is nothing to use, or columns, units or joints do not fit.
        ConfigError: If the setup makes no sense.

    Example:
        >>> time = np.arange(100) / 100
        >>> log = steelyard.Recording(("joint_1", "joint_2"), time, np.array([np.sin(time), np.cos(time)]))
        >>> path = steelyard.write_recording(log, "log.npz")
        >>> bool((steelyard.read_recording("scara_2r", path).q == log.q).all())
        True
    """
    return stream_recording(robot, setup_or_path, files, root=root).whole()


def read_recordings(
    robot: AnyRobot, setup_or_path: SetupOrPath, files: Files | None = None, *, root: Path_ | None = None
) -> tuple[Recording, ...]:
    """Return all recordings that a setup names, or those given; arguments as for :func:`read_recording`."""
    return tuple(stream.whole() for stream in stream_recordings(robot, setup_or_path, files, root=root))


def load_recordings(robot: AnyRobot, given: RecordingsLike, what: str = "recordings") -> list[Recording]:
    """Return recordings: those given as they are, streams and those named by the paths of their files read.

    Args:
        robot: The arm they were made with.
        given: Recordings, streams of recordings or paths of logs that describe themselves, or a single one.
        what: What they are, for messages.

    Raises:
        RecordingError: If one is something else, or cannot be read.
    """
    every = [given] if isinstance(given, Recording | RecordingStream | str | os.PathLike) else given
    require_type(every, Iterable, what, _ALLOWED, RecordingError)
    for one in every:
        require_type(one, (Recording, RecordingStream, str, os.PathLike), what, _ALLOWED, RecordingError)
    require_files(*(Path(one) for one in every if not isinstance(one, Recording | RecordingStream)))
    found: list[Recording] = []
    for one in every:
        if isinstance(one, Recording | RecordingStream):
            found.append(one if isinstance(one, Recording) else one.whole())
        else:
            found += read_recordings(robot, one)
    return found


def stream_recording(
    robot: AnyRobot,
    setup_or_path: SetupOrPath,
    files: Files | None = None,
    *,
    root: Path_ | None = None,
    block_rows: int | None = None,
) -> RecordingStream:
    """Return the blocks of a recording, read on demand in memory that does not grow.

    Args:
        robot: The arm it was made with.
        setup_or_path: As for :func:`read_recording`.
        files: As for :func:`read_recording`.
        root: As for :func:`read_recording`.
        block_rows: Samples in a block (the last may have fewer); whatever suits the file by default.

    Returns:
        An iterable of recordings; its ``result`` holds findings and hashes when the last has been read.
    """
    chosen = _recordings(setup_or_path, files, root)
    if len(chosen) != 1:
        names = ", ".join(str(paths[0].name) for _, paths in chosen[:8])
        raise RecordingError(f"the setup names {len(chosen)} recordings; name one with files: {names}")
    return _stream(robot, *chosen[0], block_rows)


def stream_recordings(
    robot: AnyRobot,
    setup_or_path: SetupOrPath,
    files: Files | None = None,
    *,
    root: Path_ | None = None,
    block_rows: int | None = None,
) -> tuple[RecordingStream, ...]:
    """Return the streams of all recordings that a setup names; arguments as for :func:`stream_recording`."""
    return tuple(_stream(robot, *chosen, block_rows) for chosen in _recordings(setup_or_path, files, root))


def recording_from_arrays(robot: AnyRobot, arrays: Mapping[str, Any], setup: RecordingSetup | None = None) -> Recording:
    """Return a recording from numpy arrays by name.

    Args:
        robot: The arm.
        arrays: Arrays (N,), (N, k) or (k, N). Without a setup they are named ``time``, ``q``, ``qd``, ``joint_torque``
            and so on, in SI units and the robot's joint order.
        setup: What the arrays mean, where their names do not say it.
    """
    return _from_table(robot, table_from_arrays(arrays), setup)


def recording_from_frame(robot: AnyRobot, frame: Any, setup: RecordingSetup | None = None) -> Recording:
    """Return a recording from a pandas or polars DataFrame with columns named as in a file."""
    return _from_table(robot, table_from_frame(frame), setup)


def check_recording(robot: AnyRobot, recording: Recording) -> tuple[Finding, ...]:
    """Return the findings of the model-free checks in a recording that was not read from a file."""
    arrays = [recording.q]
    channels: list[tuple[str, str, str | None]] = [("q", "q", None)]
    if recording.qd is not None:
        arrays.append(recording.qd)
        channels.append(("qd", "qd", None))
    arrays += [channel.values for channel in recording.torques]
    channels += [("torque", channel.name, channel.kind) for channel in recording.torques]
    checker = Checker(subject_of(load_robot(robot), channels))
    checker.take(Samples(recording.time, tuple(arrays)))
    return tuple(checker.findings())


def _from_table(robot: AnyRobot, table: Table, setup: RecordingSetup | None) -> Recording:
    setup = setup or RecordingSetup()
    if len(setup.parts) != 1:
        raise RecordingError(f"the setup has {len(setup.parts)} parts; data in memory are one")
    return RecordingStream(make_plan(load_robot(robot), setup, [table]), None).whole()


def _stream(robot: AnyRobot, setup: RecordingSetup, paths: Sequence[Path], block_rows: int | None) -> RecordingStream:
    if block_rows is not None and block_rows < 1:
        raise RecordingError(f"block_rows is {block_rows}; a number above zero is expected")
    tables = [open_table(path, part.text) for path, part in zip(paths, setup.parts, strict=True)]
    return RecordingStream(make_plan(load_robot(robot), setup, tables), block_rows)


def _recordings(
    setup_or_path: SetupOrPath, files: Files | None, root: Path_ | None
) -> list[tuple[RecordingSetup, list[Path]]]:
    """Return the setup and the files of every recording meant; all files that are missing are named at once."""
    given = [files] if isinstance(files, str | os.PathLike) else list(files or [])
    setup, given = _setup_of(setup_or_path, given)
    folder = Path(root) if root is not None else (Path() if given else setup.folder)
    in_parts = bool(setup.parts[0].path)
    names = given or [part.path for part in setup.parts if in_parts] or list(setup.files)
    if in_parts and len(names) != len(setup.parts):
        raise RecordingError(f"the setup has {len(setup.parts)} parts, but {len(names)} files are given; one each")
    if not names:
        raise RecordingError("no file is named; give files, or list them in the setup with files = [...]")
    paths = [folder / name for name in names]
    require_files(*paths, error=RecordingError)
    if in_parts:
        return [(setup, paths)]
    return [(setup.for_file(os.fspath(name)), [path]) for name, path in zip(names, paths, strict=True)]


def _setup_of(setup_or_path: SetupOrPath, files: list[Path_]) -> tuple[RecordingSetup, list[Path_]]:
    """Return the setup and the files; a path that is no setup file is a log of its own."""
    if setup_or_path is None:
        return RecordingSetup(), files
    if isinstance(setup_or_path, RecordingSetup):
        return setup_or_path, files
    if not isinstance(setup_or_path, str | os.PathLike):
        raise RecordingError(
            f"the log is given as {type(setup_or_path).__name__}; a path or a RecordingSetup is expected, "
            "after the robot"
        )
    if Path(setup_or_path).suffix.lower() == ".toml":
        return read_setup(setup_or_path), files
    if files:
        raise RecordingError(
            f"'{setup_or_path}' is no setup (.toml), and files are given too; give one log, or a setup"
        )
    return RecordingSetup(), [setup_or_path]


VERSION = 1


def write_recording(recording: Recording, path: str | os.PathLike[str]) -> Path:
    """Write a recording as ``.npz`` or ``.csv`` and return the path.

    Columns (``.csv``) are named ``time``, ``q[joint]``, ``qd[joint]``, ``reference[joint]``, ``motor_torque[joint]``
    ..., arrays (``.npz``) ``time`` (N,), ``q`` (n, N) ...; SI units, joint side. Payload, notes, gains and channel
    kinds stand in a comment or a text beside them. Numbers come back exactly. The file is written aside and renamed,
    so it is never half written.

    Raises:
        RecordingError: If the ending is not known.
        FileError: If the file cannot be written.

    Example:
        >>> time = np.arange(100) / 100
        >>> log = steelyard.Recording(("joint_1", "joint_2"), time, np.array([np.sin(time), np.cos(time)]))
        >>> steelyard.write_recording(log, "log.csv").name
        'log.csv'
    """
    target = Path(path)
    writer = WRITERS.get(target.suffix.lower())
    if writer is None:
        raise RecordingError(
            f"{target}: cannot write '{target.suffix}'; allowed: {', '.join(WRITERS)}"
            f"{nearest_match(target.suffix, WRITERS)}"
        )
    with opened_aside(target) as file:
        writer(recording, file)
    return target


def _arrays(recording: Recording) -> dict[str, np.ndarray]:
    arrays = {"time": recording.time, "q": recording.q}
    for name in ("qd", "reference", "temperature", "known_torque", "pose"):
        values = getattr(recording, name)
        if values is not None:
            arrays[name] = values
    arrays.update({channel.name: channel.values for channel in recording.torques})
    return arrays


def _description(recording: Recording) -> str:
    content = {
        "recording": VERSION,
        "joints": list(recording.joints),
        "payload": recording.payload,
        "torques": {channel.name: channel.kind for channel in recording.torques},
        "gain": {channel.name: channel.gain.tolist() for channel in recording.torques if channel.gain is not None},
        "notes": list(recording.notes),
    }
    errors = {c.name: c.gain_covariance for c in recording.torques if c.gain_covariance is not None}
    if errors:  # an unknown gain is told by the set-up alone: JSON has no infinite numbers
        known = {name: one for name, one in errors.items() if np.isfinite(one).all()}
        content["gain_covariance"] = {name: one.tolist() for name, one in known.items()}
    return json.dumps(content, ensure_ascii=True, allow_nan=False)


def _write_npz(recording: Recording, file: IO[bytes]) -> None:
    np.savez(file, **_arrays(recording), steelyard=np.array(_description(recording)))  # type: ignore[arg-type]


def _write_csv(recording: Recording, file: IO[bytes]) -> None:
    import polars as pl  # imported when used: most commands write no table

    columns: dict[str, np.ndarray] = {}
    for name, values in _arrays(recording).items():
        if values.ndim == 1:
            columns[name] = values
            continue
        wrench = any(channel.name == name and channel.kind == "wrench" for channel in recording.torques)
        rows = POSE_ROWS if name == "pose" else WRENCH_ROWS if wrench else recording.joints
        columns.update({f"{name}[{row}]": row_values for row, row_values in zip(rows, values, strict=False)})
    file.write(f"# steelyard {_description(recording)}\n".encode())
    file.write(pl.DataFrame(columns).write_csv().encode())


WRITERS: dict[str, Callable[[Recording, IO[bytes]], None]] = {".npz": _write_npz, ".csv": _write_csv}
