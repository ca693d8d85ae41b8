"""A run's folder: ``result.json`` with its provenance."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .. import __version__
from ..files import write_aside

SCHEMA_VERSION = 1


def json_text(command: str, content: Mapping[str, Any]) -> str:
    """Return one JSON object: schema version and command first, then the content; NaN is refused."""
    document = {"schema": SCHEMA_VERSION, "command": command, **content}
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)


def write_result(
    folder: Path, command: str, settings: Mapping[str, Any], inputs: Sequence[Path], content: Mapping[str, Any]
) -> Path:
    """Write ``result.json`` into a run folder and return its path.

    Args:
        folder: The run folder; made if it is not there.
        command: The command that ran.
        settings: Its settings after flags and configuration file were merged.
        inputs: Files it read; their hashes are kept.
        content: The result itself.
    """
    provenance = {
        "settings": dict(settings),
        "inputs": {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in inputs},
        "versions": {
            "steelyard": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in ("numpy", "scipy", "casadi", "llvmlite")},
        },
    }
    path = folder / "result.json"
    write_aside(path, json_text(command, {**content, "provenance": provenance}) + "\n")
    return path
