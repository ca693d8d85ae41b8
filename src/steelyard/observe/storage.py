"""Observations in a file: one ``.npz`` without pickled objects, written aside."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ObservationError
from ..files import opened_aside
from .factor import Factor
from .fingerprint import Fingerprint
from .observations import Observations, RecordingInfo

SCHEMA = 1

_BROKEN = (zipfile.BadZipFile, zlib.error, ValueError, KeyError, TypeError, EOFError, IndexError, AttributeError)


def save_observations(path: str | os.PathLike[str], observations: Observations) -> None:
    """Write observations to a file; a kill leaves the old file or the new one."""
    columns = list(dict.fromkeys(factor.columns for factor in observations.factors))
    place = {names: k for k, names in enumerate(columns)}
    document = {
        "schema": SCHEMA,
        "fingerprint": asdict(observations.fingerprint),
        "recordings": [asdict(info) for info in observations.recordings],
        "columns": columns,
        "factors": [[f.recording, f.kind, f.joint, f.block, place[f.columns], f.rows] for f in observations.factors],
    }
    triangles = [factor.triangle[np.triu_indices(len(factor.triangle))] for factor in observations.factors]
    with opened_aside(Path(path)) as file:
        np.savez(file, document=np.array(json.dumps(document)), triangles=np.concatenate([np.empty(0), *triangles]))


def load_observations(path: str | os.PathLike[str]) -> Observations:
    """Read observations from a file.

    Raises:
        ObservationError: If the file is missing, broken, or not one of observations.
    """
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            document, numbers = json.loads(str(file["document"])), np.asarray(file["triangles"])
        if document["schema"] != SCHEMA:
            raise ObservationError(
                f"'{path}' is of schema {document['schema']}, this version reads {SCHEMA}; reduce the recordings again"
            )
        return _observations(document, numbers)
    except OSError as error:
        raise ObservationError(f"cannot read observations '{path}': {error.strerror or error}") from error
    except _BROKEN as error:
        raise ObservationError(
            f"'{path}' does not hold observations, or is damaged ({type(error).__name__}); reduce the recordings again"
        ) from error


def _observations(document: dict[str, Any], numbers: np.ndarray) -> Observations:
    columns = [tuple(str(name) for name in names) for names in document["columns"]]
    factors, first = [], 0
    for recording, kind, joint, block, place, rows in document["factors"]:
        size = len(columns[place]) + 1
        last = first + size * (size + 1) // 2
        triangle = np.zeros((size, size))
        triangle[np.triu_indices(size)] = numbers[first:last]
        triangle.setflags(write=False)
        factors.append(Factor(recording, kind, joint, int(block), columns[place], triangle, int(rows)))
        first = last
    if first != len(numbers) or not np.isfinite(numbers).all():
        raise ValueError("triangles do not fit")
    recordings = [
        RecordingInfo(part["label"], tuple(part["sha256"]), part["payload"], int(part["samples"]))
        for part in document["recordings"]
    ]
    return Observations(Fingerprint(**document["fingerprint"]), tuple(factors), tuple(recordings))
