"""What is printed of many outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.coverage_exact import Outcome
from benchmarks.coverage_pipeline import PipelineOutcome

MEAN_RANGE = (0.935, 0.965)
LEAST = 0.90
BIASED = 0.5
"""Bias over sd from which a parameter counts as biased."""


def print_exact(title: str, outcomes: Sequence[Outcome]) -> None:
    """Print coverage, sd ratio, orders and time; then what other covariances would have covered."""
    columns = outcomes[0].columns
    covered = np.mean([outcome.covered for outcome in outcomes], axis=0)
    weakest = int(np.argmin(covered))
    spread = np.std([outcome.error for outcome in outcomes], axis=0, ddof=1)
    ratio = np.sqrt(np.mean([outcome.sigma**2 for outcome in outcomes], axis=0)) / spread
    holds = MEAN_RANGE[0] <= covered.mean() <= MEAN_RANGE[1] and covered.min() >= LEAST
    print(f"  {title}: {'holds' if holds else 'MISSES'}")
    print(
        f"    mean {100 * covered.mean():.2f} % (wanted: 93.5 to 96.5), smallest {100 * covered.min():.1f} % "
        f"({columns[weakest]}; wanted: 90), sigma over sd {ratio.mean():.3f} ({ratio.min():.3f} to {ratio.max():.3f})"
    )
    counts = Counter(order for outcome in outcomes for order in outcome.orders)
    shares = ", ".join(f"{order}: {100 * counts[order] / counts.total():.0f} %" for order in sorted(counts))
    seconds = np.median([outcome.seconds for outcome in outcomes])
    print(f"    autoregressive order {shares}; {1000 * seconds:.0f} ms for an estimate")
    compared = [outcome.others for outcome in outcomes if outcome.others]
    if compared:
        figures = {kind: np.mean([others[kind] for others in compared], axis=0) for kind in compared[0]}
        texts = ", ".join(f"{kind} {100 * c.mean():.1f} % (least {100 * c.min():.0f})" for kind, c in figures.items())
        print(f"    weighted least squares instead, {len(compared)} seeds: {texts}")


def print_pipeline(title: str, outcomes: Sequence[PipelineOutcome]) -> None:
    """Print coverage and bias of every parameter, and what the tool said of the bias itself."""
    columns = outcomes[0].columns
    error = np.array([outcome.error for outcome in outcomes])
    spread = np.nanstd(error, axis=0, ddof=1)
    bias = np.nanmean(error, axis=0) / spread
    covered = np.nanmean([outcome.covered for outcome in outcomes], axis=0)
    ratio = np.sqrt(np.nanmean([outcome.sigma**2 for outcome in outcomes], axis=0)) / spread
    mean = float(np.nanmean(covered))
    print(f"  {title}: {'holds' if mean >= LEAST else 'MISSES'}")
    seconds = np.median([outcome.seconds for outcome in outcomes])
    print(
        f"    mean {100 * mean:.2f} % (wanted: 90), sigma over sd {np.nanmean(ratio):.3f}, "
        f"{1000 * seconds:.0f} ms from recordings to estimate"
    )
    groups = [f"{name} {100 * c:.0f} ({b:+.2f})" for name, c, b in zip(columns, covered, bias, strict=True)]
    print("    coverage in per cent (bias over sd):")
    for first in range(0, len(groups), 8):
        print("      " + "  ".join(f"{group:<18}" for group in groups[first : first + 8]).rstrip())
    _print_named(outcomes, columns, bias)


def _print_named(outcomes: Sequence[PipelineOutcome], columns: Sequence[str], bias: np.ndarray) -> None:
    requested = [outcome for outcome in outcomes if outcome.named is not None]
    if not requested:
        return
    biased = _in_half(requested, lambda outcome: outcome.named or ())
    exposed = _in_half(requested, lambda outcome: outcome.exposed)
    really = {name for name, size in zip(columns, bias, strict=True) if abs(size) > BIASED}
    print(f"    biased by more than {BIASED:g} sd; asked {len(requested)} times; named in half of them or more")
    for word, names in (
        ("said and true", biased & really), ("said that an unseen delay would do it, and true", exposed & really),
        ("not said", really - biased - exposed), ("said, not true", biased - really),
        ("said that an unseen delay would do it, and there is none", exposed - really),
    ):  # fmt: skip
        print(f"      {word}: {', '.join(name for name in columns if name in names) or 'none'}")


def _in_half(requested: Sequence[PipelineOutcome], said: Callable[[PipelineOutcome], Sequence[str]]) -> set[str]:
    counts = Counter(name for outcome in requested for name in said(outcome))
    return {name for name, count in counts.items() if 2 * count >= len(requested)}
