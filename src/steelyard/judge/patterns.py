"""What the residuals depend on: not 'p < 0.05' but 'friction at low speed on joint 3'.

Residuals are sorted into cells by velocity, acceleration, position, load, temperature and time. The signal that
explains most is taken first; the others must then explain something beyond it, so that one fault gives one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import EstimateError, nearest_match
from .bins import Cells, speed_cells
from .cell_test import CellTest
from .pattern_search import LEAST_SHARE, LEVEL, SIGNALS, PatternSearch
from .pattern_words import Units, constant_words, mean_words, spread_words
from .profile import mean_profile, spread_profile
from .serial import SerialCorrelation
from .series import checked_runs, squares_of

# A spread that is larger by less is not worth a sentence.
_LEAST_RATIO = 1.2


@dataclass(frozen=True)
class Pattern:
    """Something the residuals depend on.

    Attributes:
        signal: Name of the signal; ``constant`` for a mean that is not zero.
        kind: ``mean`` if the residual's mean depends on the signal, ``spread`` if its spread does.
        share_explained: Share of the residual's variance, less what chance explains.
        p: Probability of as strong a pattern by chance, times the number of patterns looked for (Bonferroni).
        worst_bin: Lower and upper limit of the signal (of its size, for velocity and load) where it is worst.
        mean_there: Mean residual there [N m or N]; along the direction of motion where the text says so.
        std_ratio_there: Spread of the residual there over ``noise_std``.
        text: One sentence for an engineer.
        remedy: What to do about it.
    """

    signal: str
    kind: Literal["mean", "spread"]
    share_explained: float
    p: float
    worst_bin: tuple[float, float]
    mean_there: float
    std_ratio_there: float
    text: str
    remedy: str


def explain_residuals(
    residual_runs: Sequence[np.ndarray],
    signals: Mapping[str, Sequence[np.ndarray]],
    joint: str,
    noise_std: float,
    correlation: np.ndarray | None = None,
    *,
    prismatic: bool = False,
) -> tuple[Pattern, ...]:
    """Say what the residuals of one equation depend on.

    For every signal the mean residual of its cells is tested jointly against their serial correlation
    (:func:`steelyard.judge.cell_test.wald_test`). A pattern is reported if its probability times the number of tests is
    below 0.05 and it explains at least 1 % of the residual's variance. Then the next one is looked for beyond it.

    Args:
        residual_runs: Residuals (n_i,) of each contiguous stretch [N m or N].
        signals: Any of velocity, acceleration, position [rad or m ...], load [N m or N], temperature [deg C], time [s];
            runs as long as those of the residuals. With velocity, friction that depends on load, temperature or time is
            seen.
        joint: What the sentences call it: ``joint 3``.
        noise_std: Standard deviation of the residual's noise [N m or N], to compare spreads with.
        correlation: The decimator's own correlation r(0) = 1, r(1), ...; None: white.
        prismatic: Units of a prismatic joint in the sentences.

    Returns:
        Patterns, the one that explains most first; empty if the residuals depend on nothing seen.

    Raises:
        EstimateError: If a signal is unknown or does not fit the residuals, or values are not finite.
    """
    runs = checked_runs(residual_runs)
    squares_of(runs)
    if not (np.isfinite(noise_std) and noise_std > 0):
        raise EstimateError(f"noise of the residuals: got {noise_std}, allowed are finite numbers above 0")
    joined = {name: _joined(name, parts, residual_runs) for name, parts in signals.items()}
    search = PatternSearch(runs, joined, SerialCorrelation(correlation))
    writer = _Writer(joint, float(noise_std), Units(prismatic), search)
    patterns = []
    while (found := search.strongest()) is not None:
        patterns.append(writer.mean_pattern(*found))
    patterns += writer.spread_pattern()
    return tuple(sorted(patterns, key=lambda pattern: -pattern.share_explained))


def _joined(name: str, parts: Sequence[np.ndarray], residual_runs: Sequence[np.ndarray]) -> np.ndarray:
    if name not in SIGNALS:
        raise EstimateError(
            f"signal '{name}' is not known; allowed: {', '.join(SIGNALS)}{nearest_match(name, SIGNALS)}"
        )
    got, wanted = ([len(run) for run in runs] for runs in (parts, residual_runs))
    if got != wanted:
        raise EstimateError(f"signal '{name}': got runs of {got} samples, allowed are those of the residuals, {wanted}")
    return np.concatenate(checked_runs(parts, f"signal '{name}'"))


@dataclass(frozen=True)
class _Writer:
    """Turns tests into patterns with their sentences."""

    joint: str
    noise_std: float
    units: Units
    search: PatternSearch

    def mean_pattern(self, name: str, cells: Cells | None, test: CellTest, before: np.ndarray) -> Pattern:
        """Return the pattern of a mean that depends on a signal, or of a mean that is not zero."""
        p = min(1.0, test.p * self.search.tests)
        if cells is None:
            mean, ratio = float(before.mean()), float(before.std()) / self.noise_std
            text, remedy = constant_words(mean, self.joint, test.share, self.units)
            return Pattern(name, "mean", test.share, p, (-np.inf, np.inf), mean, ratio, text, remedy)
        profile = mean_profile(cells, before)
        text, remedy = mean_words(profile, self.joint, test.share, self.units)
        there = before[profile.inside_worst(cells)]
        ratio = float(np.std(there if len(there) else before)) / self.noise_std
        return Pattern(name, "mean", test.share, p, profile.worst_bin, profile.worst_mean, ratio, text, remedy)

    def spread_pattern(self) -> list[Pattern]:
        """Return the pattern of a spread that depends on speed, if there is one."""
        velocity = self.search.signals.get("velocity")
        cells = None if velocity is None else speed_cells(velocity)
        test = None if cells is None else self.search.spread(cells)
        if velocity is None or cells is None or test is None or test.p * self.search.tests >= LEVEL:
            return []
        left = self.search.left
        profile = spread_profile(cells, left)
        inside = profile.inside_worst(cells)
        here, elsewhere = float(np.mean(left[inside] ** 2)), float(np.mean(left[~inside] ** 2))
        share = float(inside.sum()) * (here - elsewhere) / float(self.search.residual @ self.search.residual)
        if here < _LEAST_RATIO**2 * elsewhere or share < LEAST_SHARE:
            return []
        mean, ratio = float(left[inside].mean()), np.sqrt(here) / self.noise_std
        text, remedy = spread_words(profile, np.sqrt(here / elsewhere), self.joint, share, self.units)
        p = min(1.0, test.p * self.search.tests)
        return [Pattern("velocity", "spread", share, p, profile.worst_bin, mean, ratio, text, remedy)]
