"""Writing of recordings to files that describe their columns, and can be read without a setup."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np

from ..errors import RecordingError, nearest_match
from ..files import opened_aside
from .record import POSE_ROWS, WRENCH_ROWS, Recording

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
    for name in ("qd", "reference", "temperature", "pose"):
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
