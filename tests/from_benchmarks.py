"""Modules of the benchmarks, for tests of what they count."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

_ROOT = str(Path(__file__).parents[1])


def benchmark_module(name: str) -> ModuleType:
    """Return a module of the benchmarks, from wherever the tests are run."""
    if _ROOT not in sys.path:
        sys.path.append(_ROOT)
    return importlib.import_module(f"benchmarks.{name}")
