"""A run's folder: ``result.json`` with its provenance."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .. import __version__
from ..files import opened_aside, write_aside
from ..text import for_json

SCHEMA_VERSION = 2
"""2: ``parameters[].value`` is that of the judged model; of the full set it is ``full_value``."""


def json_text(command: str, content: Mapping[str, Any]) -> str:
    """Return one JSON object: schema version and command first, then the content; NaN is refused."""
    document = {"schema": SCHEMA_VERSION, "command": command, **content}
    return for_json(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False))


def hashes_of(*paths: Path | None) -> dict[str, str]:
    """Return the SHA-256 of those paths that are files, read in blocks; catalogue names and None are left out."""
    hashes = {}
    for path in paths:
        if path is not None and path.is_file():
            with path.open("rb") as file:
                hashes[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashes


def write_arrays(folder: Path, kind: str, content: bytes) -> str:
    """Write an array file that carries its hash in its name, and return that name.

    A result names its arrays: written first, they never belong to another result. See :func:`remove_other_arrays`.
    """
    name = f"{kind}.{hashlib.sha256(content).hexdigest()[:12]}.npz"
    with opened_aside(folder / name) as file:
        file.write(content)
    return name


def remove_other_arrays(folder: Path, files: Mapping[str, str]) -> None:
    """Remove array files of earlier results, by kind, once the new result is written."""
    for kind, name in files.items():
        for old in folder.glob(f"{kind}.*.npz"):
            if old.name != name:
                old.unlink()


def write_result(
    folder: Path, command: str, settings: Mapping[str, Any], inputs: Mapping[str, str], content: Mapping[str, Any]
) -> Path:
    """Write ``result.json`` into a run folder and return its path.

    Args:
        folder: The run folder; made if it is not there.
        command: The command that ran.
        settings: Its settings after flags and configuration file were merged.
        inputs: SHA-256 of every file it read, by path (see ``hashes_of``).
        content: The result itself.
    """
    provenance = {
        "settings": dict(settings),
        "inputs": dict(inputs),
        "versions": {
            "steelyard": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in ("numpy", "scipy", "casadi", "llvmlite")},
        },
    }
    path = folder / "result.json"
    write_aside(path, json_text(command, {**content, "provenance": provenance}) + "\n")
    return path
