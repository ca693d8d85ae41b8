"""A claim of a paper with our figure beside it; whether it holds is decided here, by the figures alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

Figure = str | float
"""A number, or a text that stands for several."""


@dataclass(frozen=True)
class Claim:
    """A figure of a paper beside ours. Make one with :func:`near`, :func:`within` or :func:`same`.

    Attributes:
        name: What the figure is.
        paper: What the paper prints.
        ours: What was computed.
        expected: What a correct implementation gets, with its spread.
        holds: Whether ours is what is expected.
        remark: How the paper misleads, or what stands behind a difference; empty if nothing does.
    """

    name: str
    paper: Figure
    ours: Figure
    expected: str
    holds: bool
    remark: str = ""


def near(
    name: str, paper: Figure, ours: float, reference: float, tolerance: float, remark: str = "", *, why: str = ""
) -> Claim:
    """Return a claim that holds where ours differs from a reference by no more than the tolerance.

    Args:
        name: What the figure is.
        paper: What the paper prints.
        ours: What was computed.
        reference: What a correct implementation gets.
        tolerance: The spread it is known to.
        remark: See :class:`Claim`.
        why: Where the tolerance comes from.
    """
    expected = f"{reference:.4g} +- {tolerance:.2g}" + (f" ({why})" if why else "")
    return Claim(name, paper, _finite(ours), expected, bool(abs(ours - reference) <= tolerance), remark)


def within(name: str, paper: Figure, ours: float, low: float, high: float, remark: str = "", *, why: str = "") -> Claim:
    """Return a claim that holds where ours lies between two bounds, both allowed."""
    expected = _range(low, high) + (f" ({why})" if why else "")
    return Claim(name, paper, _finite(ours), expected, bool(low <= ours <= high), remark)


def same(name: str, paper: Figure, ours: Figure, expected: Figure, remark: str = "") -> Claim:
    """Return a claim that holds where ours is exactly what is expected."""
    return Claim(name, paper, ours, str(expected), ours == expected, remark)


def _range(low: float, high: float) -> str:
    if low == high:
        return f"{low:.4g}"
    if high == float("inf"):
        return f"at least {low:.4g}"
    return f"at most {high:.4g}" if low == -float("inf") else f"{low:.4g} to {high:.4g}"


def _finite(value: float) -> Figure:
    """Return a number that JSON can hold; one that is not finite becomes a text."""
    return float(value) if isfinite(value) else str(float(value))
