"""Numbers of figures, as charts and pages store them."""

from __future__ import annotations

import base64
import doctest
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import steelyard


def array_of(stored: dict[str, str]) -> np.ndarray:
    """Return the numbers of a trace."""
    return np.frombuffer(base64.b64decode(stored["bdata"]), f"<{stored['dtype']}").astype(float)


def example_failures(method: Callable[..., Any]) -> str:
    """Run the example in a docstring; return what went wrong."""
    (example,) = doctest.DocTestFinder(recurse=False, exclude_empty=False).find(
        inspect.unwrap(method), method.__name__, globs={"steelyard": steelyard, "np": np}
    )
    assert example.examples, f"{method.__name__} has no example in its docstring"
    report: list[str] = []
    doctest.DocTestRunner().run(example, out=report.append)
    return "".join(report)
