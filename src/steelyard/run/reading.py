"""Reading of run folders, which are not trusted: hashes, types and paths are checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..archive import ArchiveError, read_arrays
from ..errors import FileError, SteelyardError
from ..plain_data import SCHEMA_VERSION
from .folder import RESULT, finish_interrupted_save, hashes_of, inside, sealed

LARGEST_RESULT = 300_000_000
"""Bytes of a ``result.json``; ours have a few megabytes at most."""

LARGEST_VALUE = 1e100
"""Numbers of a run: their squares stay finite."""


def read_result(
    folder: Path,
    command: str | Sequence[str],
    error_kind: type[SteelyardError],
    needed: Mapping[str, type] | None = None,
) -> dict[str, Any]:
    """Return the content of a run's ``result.json``, as it was written.

    Args:
        folder: The run folder, or its ``result.json``.
        command: The command, or commands, whose run it must be.
        error_kind: Error to raise.
        needed: Keys that the content must have, and what they must be.

    Raises:
        SteelyardError: If there is none, it was changed since, lacks a key, or is of another command or version.
    """
    commands = (command,) if isinstance(command, str) else tuple(command)
    next_step = f"give the folder of a run of {' or '.join(commands)}"
    path = folder / RESULT if folder.is_dir() else folder
    if folder.is_dir():
        finish_interrupted_save(folder)
    if not path.is_file():
        raise error_kind(f"no run in '{folder}': there is no {RESULT}; {next_step}")
    content = _document(path, next_step, error_kind)
    if content.get("schema") != SCHEMA_VERSION:
        raise error_kind(
            f"'{path}' has schema {content.get('schema')!r}, this version reads {SCHEMA_VERSION}; run again"
        )
    if content.get("command") not in commands:
        raise error_kind(f"'{path}' is a run of {content.get('command')!r}; {next_step}")
    if not _is_sealed(content):
        raise error_kind(f"'{path}' is not as it was written (its seal does not fit); run the command again")
    for key, kind in {**(needed or {}), "provenance": dict}.items():
        if not isinstance(content.get(key), kind):
            raise error_kind(f"'{path}' has no {key} that can be used; run the command again")
    if not all(isinstance(content["provenance"].get(key), dict) for key in ("settings", "inputs", "files")):
        raise error_kind(f"'{path}' does not say where it comes from; run the command again")
    return content


def is_changed(path: Path) -> bool:
    """Return whether a file is not the one that the ``result.json`` beside it names; False where that is not known."""
    try:
        digest = _document(path.parent / RESULT, "", FileError)["provenance"]["files"][path.name]
    except (FileError, LookupError, TypeError):
        return False
    return bool(digest) and hashes_of(path).get(str(path)) != digest


def _is_sealed(content: Mapping[str, Any]) -> bool:
    """Return whether a result is as it was written; one of ours holds no infinite numbers and is not nested deeply."""
    try:
        return sealed(content) == content
    except (ValueError, RecursionError):
        return False


def _document(path: Path, next_step: str, error_kind: type[SteelyardError]) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_RESULT:
            raise error_kind(f"'{path}' is larger than {LARGEST_RESULT / 1e6:g} MB: it is no result; {next_step}")
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise error_kind(f"'{path}' cannot be read ({error.strerror}); {next_step}") from error
    except (ValueError, RecursionError) as error:
        raise error_kind(f"'{path}' is not JSON ({error}); {next_step}") from error
    if not isinstance(content, dict) or not isinstance(content.get("provenance"), dict):
        raise error_kind(f"'{path}' is no result of steelyard; {next_step}")
    return content


def arrays_of(
    folder: Path, content: Mapping[str, Any], kind: str, names: Sequence[str], error_kind: type[SteelyardError]
) -> dict[str, np.ndarray]:
    """Return arrays of a run, if the file is the one that its result names; numbers of any precision as doubles.

    Args:
        folder: The run folder.
        content: Its ``result.json``.
        kind: Which of its files.
        names: Arrays that it must have.
        error_kind: Error to raise.
    """
    path = file_of(folder, content, kind, error_kind)
    try:
        arrays = read_arrays(path)
    except ArchiveError as error:
        raise error_kind(f"the arrays '{path}' cannot be read ({error}); run the command again") from error
    if missing := [name for name in names if name not in arrays]:
        raise error_kind(f"'{path}' has no array {', '.join(missing)}; run the command again")
    return {name: one.astype(float) if one.dtype.kind == "f" else one for name, one in arrays.items()}


def file_of(folder: Path, content: Mapping[str, Any], kind: str, error_kind: type[SteelyardError]) -> Path:
    """Return the path of a file of a run, which must be within its folder and as it was written."""
    files, digests = content.get("files"), content["provenance"]["files"]
    name = files.get(kind) if isinstance(files, dict) else None
    home = folder if folder.is_dir() else folder.parent
    if not isinstance(name, str) or name not in digests or not inside(home, name):
        raise error_kind(f"the run '{folder}' names no {kind} file of its own; run the command again")
    path = home / name
    if hashes_of(path).get(str(path)) != digests[name]:
        raise error_kind(f"'{path}' is missing or not as it was written; run the command again")
    return path
