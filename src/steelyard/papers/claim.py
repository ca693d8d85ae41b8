"""A claim of a paper with our figure beside it; whether it comes out as expected is decided here, by figures alone.

Two questions are kept apart. ``holds``: is our figure what a correct implementation is expected to get? That decides
the exit code. ``paper_holds``: is the paper's own statement true of our figure? A statement that is known not to
reproduce is expected not to hold; the claim fails if it suddenly does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt

Figure = str | float
"""A number, or a text that stands for several."""

Range = tuple[float, float]


@dataclass(frozen=True)
class Claim:
    """A figure of a paper beside ours. Make one with :func:`near`, :func:`within` or :func:`same`.

    Attributes:
        name: What the figure is.
        paper: What the paper prints.
        ours: What was computed.
        expected: What a correct implementation gets, with its spread.
        holds: Whether ours is what is expected.
        fails_if: What would make ours differ from what is expected.
        paper_holds: Whether the paper's statement is true of ours; None where it states nothing that ours can decide.
        remark: How the paper misleads, or what stands behind a difference; empty if nothing does.
    """

    name: str
    paper: Figure
    ours: Figure
    expected: str
    holds: bool
    fails_if: str
    paper_holds: bool | None = None
    remark: str = ""

    def __post_init__(self) -> None:
        if not self.fails_if.strip():
            raise ValueError(f"claim '{self.name}': say in fails_if what would make it fail")

    @property
    def outcome(self) -> str:
        """The outcome in words: as expected or not, and whether the paper's statement holds."""
        words = "as expected" if self.holds else "not as expected"
        if self.paper_holds is None:
            return words
        return f"{words}; the paper's statement {'holds' if self.paper_holds else 'does not hold'}"


def within(
    name: str,
    paper: Figure,
    ours: float,
    low: float,
    high: float,
    remark: str = "",
    *,
    fails_if: str,
    why: str = "",
    claimed: Range | None = None,
) -> Claim:
    """Return a claim that is as expected where ours lies between two bounds, both allowed.

    Args:
        name: What the figure is.
        paper: What the paper prints.
        ours: What was computed.
        low: The smallest figure expected.
        high: The largest.
        remark: See :class:`Claim`.
        fails_if: See :class:`Claim`.
        why: Where the bounds come from.
        claimed: Range of figures for which the paper's statement is true; None if it states nothing. What is expected
            lies wholly inside or wholly outside of it.
    """
    if claimed is not None and not (claimed[0] <= low <= high <= claimed[1] or high < claimed[0] or low > claimed[1]):
        raise ValueError(f"claim '{name}': {_range(low, high)} is expected, which leaves open whether the paper holds")
    expected = _range(low, high) + (f" ({why})" if why else "")
    paper_holds = None if claimed is None else bool(claimed[0] <= ours <= claimed[1])
    return Claim(name, paper, _finite(ours), expected, bool(low <= ours <= high), fails_if, paper_holds, remark)


def near(
    name: str,
    paper: Figure,
    ours: float,
    reference: float,
    tolerance: float,
    remark: str = "",
    *,
    fails_if: str,
    why: str = "",
    claimed: Range | None = None,
) -> Claim:
    """Return a claim that is as expected where ours differs from a reference by no more than the tolerance."""
    found = within(
        name, paper, ours, reference - tolerance, reference + tolerance, remark, fails_if=fails_if, claimed=claimed
    )
    expected = f"{reference:.4g} +- {tolerance:.2g}" + (f" ({why})" if why else "")
    holds = bool(abs(ours - reference) <= tolerance)
    return Claim(name, paper, found.ours, expected, holds, fails_if, found.paper_holds, remark)


def same(
    name: str,
    paper: Figure,
    ours: Figure,
    expected: Figure,
    remark: str = "",
    *,
    fails_if: str,
    claimed: Figure | None = None,
) -> Claim:
    """Return a claim that is as expected where ours is exactly that; the paper holds where ours is what it claims."""
    paper_holds = None if claimed is None else ours == claimed
    return Claim(name, paper, ours, str(expected), ours == expected, fails_if, paper_holds, remark)


def two_standard_errors(spread: float, values: Sequence[float] | int) -> float:
    """Return twice the standard error of a mean: the spread of one experiment over the root of their number."""
    count = values if isinstance(values, int) else len(values)
    return 2 * spread / sqrt(count)


def _range(low: float, high: float) -> str:
    if low == high:
        return f"{low:.4g}"
    if high == inf:
        return f"at least {low:.4g}"
    return f"at most {high:.4g}" if low == -inf else f"{low:.4g} to {high:.4g}"


def _finite(value: float) -> Figure:
    """Return a number that JSON can hold; one that is not finite becomes a text."""
    return float(value) if isfinite(value) else str(float(value))
