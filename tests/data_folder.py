"""Where the real recordings are: the only place that knows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).parents[2] / "shared" / "data"


def data_folder() -> Path:
    """Return the folder of the real recordings; skip the test where there is none."""
    named = os.environ.get("STEELYARD_DATA")
    folder = Path(named) if named else _BESIDE
    if not folder.is_dir():
        pytest.skip(f"no real recordings: STEELYARD_DATA is {named or 'not set'}, and no such folder beside this one")
    return folder
