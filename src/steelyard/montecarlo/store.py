"""Finished runs in a folder, so that an interrupted study goes on where it was."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..errors import FileError
from ..files import opened_aside, write_aside
from .runs import CaseRuns, joined
from .study import Case

STUDY_FILE = "study.json"
_ARRAYS = ("seeds", "values", "sigma", "half_width", "seconds")
_WORDS = {
    "robot": "another arm",
    "motion": "another trajectory",
    "simulate": "other settings of the experiment",
    "identify": "other settings of the fit",
    "steelyard": "another version of steelyard",
}


class RunStore:
    """Runs of one arrangement in a folder; each file holds some seeds of one case and is whole or not there."""

    def __init__(self, folder: Path, fingerprint: Mapping[str, str]) -> None:
        """Open the folder, or make it.

        Raises:
            FileError: If the folder holds runs of something else, or cannot be read.
        """
        self.folder = folder
        known = _known(folder / STUDY_FILE)
        if known is None:
            write_aside(folder / STUDY_FILE, json.dumps(dict(fingerprint), indent=2) + "\n")
            return
        other = [word for key, word in _WORDS.items() if known.get(key) != fingerprint.get(key)]
        if other:
            raise FileError(
                f"'{folder}' holds runs of another study ({', '.join(other)}); give another folder with --out, or "
                "remove this one"
            )

    def write(self, runs: CaseRuns) -> None:
        """Write runs as one file, aside and renamed."""
        first, last = int(runs.seeds.min()), int(runs.seeds.max())
        arrays = {name: getattr(runs, name) for name in _ARRAYS}
        texts = {"names": np.array(runs.names, dtype=np.str_), "failures": np.array(runs.failures, dtype=np.str_)}
        with opened_aside(self.folder / f"{runs.case.name}_{first:07d}_{last:07d}.npz") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays, **texts)

    def read(self, case: Case, names: Sequence[str]) -> CaseRuns | None:
        """Return all runs of a case that are there, None if there are none.

        Raises:
            FileError: If a file is damaged.
        """
        digits = "[0-9]" * 7
        found = [_read(path, case) for path in sorted(self.folder.glob(f"{case.name}_{digits}*_{digits}*.npz"))]
        if not found:
            return None
        for part in found:
            if part.names != tuple(names):
                raise FileError(f"'{self.folder}' holds runs with other parameters; give another folder with --out")
        return joined(found)


def _known(path: Path) -> dict[str, str] | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read '{path}' ({error}); give another folder with --out") from error


def _read(path: Path, case: Case) -> CaseRuns:
    try:
        # A file that numpy opens itself stays open where it is no archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            arrays = {name: content[name] for name in _ARRAYS}
            names, failures = (tuple(str(text) for text in content[name]) for name in ("names", "failures"))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(f"'{path}' is damaged; remove it, and its runs are made again") from error
    return CaseRuns(
        case,
        names,
        arrays["seeds"],
        arrays["values"],
        arrays["sigma"],
        arrays["half_width"],
        arrays["seconds"],
        failures,
    )
