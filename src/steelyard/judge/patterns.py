"""Patterns in residuals: what they depend on, as a sentence such as 'friction at low speed on joint 3'.

Residuals are sorted into bins by velocity, acceleration, position, load, temperature and time. The signal that explains
most is taken first; the others must then explain something beyond it, so that one fault gives one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..configuration import checked, choice
from ..errors import EstimateError, nearest_match
from .bins import CROSSED, BinNoise, Bins, BinTest, bins_of, mean_profile, speed_bins, spread_profile, wald_test
from .pattern_text import TORQUE_KINDS, TestedTorque, constant_text, mean_text, spread_text
from .whiteness import SerialCorrelation, checked_runs, squares_of

SIGNALS = ("velocity", "acceleration", "position", "load", "temperature", "time")
LEVEL = 0.05
"""Chance of any false pattern for residuals that depend on nothing."""
LEAST_SHARE = 0.01
"""Patterns that explain less of the residual's variance than this are not worth a sentence."""
# Time moves with everything that changes slowly: it is named only where it explains clearly more than they do.
_HANDICAP = {"time": 0.8}


class PatternSearch:
    """Forward selection: what has been found becomes part of the base of the next tests."""

    def __init__(
        self, runs: Sequence[np.ndarray], signals: Mapping[str, np.ndarray], serial: SerialCorrelation
    ) -> None:
        self.residual = np.concatenate(runs)
        self.signals = signals
        self.left = self.residual
        self._base = np.zeros((len(self.residual), 0))
        self._open: dict[str, Bins | None] = {name: bins_of(name, signals) for name in SIGNALS if name in signals}
        self.tests = len(self._open) + 2  # those of the mean itself and of the spread
        self._noise = BinNoise([len(run) for run in runs], np.ones(len(self.residual)), serial)
        bins = self._open.get("velocity")
        if bins is not None:
            self._noise = replace(self._noise, size=self._size_by_speed(bins))

    def strongest(self) -> tuple[str, Bins | None, BinTest, np.ndarray] | None:
        """Return the next pattern with its test and the residual less the base, or None if nothing is left."""
        if self._base.shape[1] == 0:
            found = self._constant()
            if found is not None:
                return found
        tested = {name: self._tested(name, bins) for name, bins in self._open.items() if bins is not None}
        worth = {name: (test, before) for name, (test, before) in tested.items() if test and self._holds(test)}
        if not worth:
            return None
        best = max(worth, key=lambda name: worth[name][0].share * _HANDICAP.get(name, 1.0))
        test, before = worth[best]
        bins = self._open.pop(best)
        self._base, self.left = test.basis, test.left
        return best, bins, test, before

    def levene(self, values: np.ndarray, bins: Bins) -> BinTest | None:
        """Test whether the size of values (n,) depends on the bins (Levene's test, correlated samples)."""
        size = np.abs(values)
        base = np.full((len(size), 1), len(size) ** -0.5)
        # The decimator's correlation is that of the residuals, not of their sizes.
        noise = BinNoise(self._noise.lengths, np.ones(len(size)), SerialCorrelation())
        return wald_test(size - size.mean(), base, bins.columns(), noise)

    def _size_by_speed(self, bins: Bins) -> np.ndarray:
        """Return the noise's size at each sample (n,): that of its speed class, if classes differ at all.

        A spread that is wider near reversals would otherwise pass for a mean that differs there.
        """
        centred = self.residual - bins.average(self.residual)[bins.label]
        speeds = speed_bins(self.signals["velocity"])
        test = None if speeds is None else self.levene(centred, speeds)
        if speeds is None or test is None or test.p * self.tests >= LEVEL:
            return self._noise.size
        size = np.sqrt(speeds.average(centred**2))
        return np.maximum(size, 1e-3 * size.max())[speeds.label]

    def _constant(self) -> tuple[str, None, BinTest, np.ndarray] | None:
        ones = np.ones((len(self.residual), 1))
        test = wald_test(self.residual, self._base, ones, self._noise, LEAST_SHARE)
        # Found or not, all other tests are about differences from the mean.
        self._base = ones / np.sqrt(len(ones))
        self.left = self.residual - self.residual.mean()
        return ("constant", None, test, self.residual) if test and self._holds(test) else None

    def _tested(self, name: str, bins: Bins) -> tuple[BinTest | None, np.ndarray]:
        base = self._base
        if name in CROSSED and "velocity" in self.signals:
            direction = bins.direction[bins.label]
            extra = direction - base @ (base.T @ direction)
            size = float(np.linalg.norm(extra))
            base = np.column_stack([base, extra / size]) if size > 1e-6 * np.sqrt(len(extra)) else base
        test = wald_test(self.residual, base, bins.columns(), self._noise, LEAST_SHARE)
        return test, self.residual - base @ (base.T @ self.residual)

    def _holds(self, test: BinTest) -> bool:
        return test.p * self.tests < LEVEL and test.share >= LEAST_SHARE


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
    kind: str = "motor",
    prismatic: bool = False,
) -> tuple[Pattern, ...]:
    """Say what the residuals of one equation depend on.

    For every signal the mean residual of its bins is tested jointly against their serial correlation
    (:func:`steelyard.judge.bins.wald_test`). A pattern is reported if its probability times the number of tests is
    below 0.05 and it explains at least 1 % of the residual's variance. Then the next one is looked for beyond it.

    Args:
        residual_runs: Residuals (n_i,) of each contiguous segment [N m or N].
        signals: Any of velocity, acceleration, position [rad or m ...], load [N m or N], temperature [deg C], time [s];
            runs as long as those of the residuals. With velocity, friction that depends on load, temperature or time is
            detected.
        joint: What the sentences call it: ``joint 3``.
        noise_std: Standard deviation of the residual's noise [N m or N], to compare spreads with.
        correlation: The decimator's own correlation r(0) = 1, r(1), ...; None: white.
        kind: Where the torque is measured, for remedies that fit: ``motor``, ``joint`` (a torque sensor) or
            ``difference``.
        prismatic: Units of a prismatic joint in the sentences.

    Returns:
        Patterns, the one that explains most first; empty if the residuals depend on none of the signals.

    Raises:
        EstimateError: If a signal is unknown or does not fit the residuals, or values are not finite.
    """
    runs = checked_runs(residual_runs)
    squares_of(runs)
    if not (np.isfinite(noise_std) and noise_std > 0):
        raise EstimateError(f"noise of the residuals: got {noise_std}, allowed are finite numbers above 0")
    checked(kind, choice(*TORQUE_KINDS), "kind", EstimateError)
    joined = {name: _joined(name, parts, residual_runs) for name, parts in signals.items()}
    search = PatternSearch(runs, joined, SerialCorrelation(correlation))
    writer = _PatternWriter(TestedTorque(joint, kind, prismatic), float(noise_std), search)
    patterns = []
    while (found := search.strongest()) is not None:
        patterns.append(writer.mean_pattern(*found))
    patterns += writer.spread_pattern()
    return tuple(sorted(patterns, key=lambda pattern: -pattern.share_explained))


def may_explain(residual: np.ndarray, signals: Mapping[str, np.ndarray], least: float) -> bool:
    """Return whether a pattern can explain more than a share of the residuals (n,): a quick test before the search.

    The means of bins explain at least what a pattern is credited with, as chance is taken off there.
    """
    total = float(residual @ residual)
    for name in signals:
        bins = bins_of(name, signals)
        if bins is not None and float(np.sum(bins.count * bins.average(residual) ** 2)) > least * total:
            return True
    speeds = speed_bins(signals["velocity"]) if "velocity" in signals else None
    if speeds is None:
        return float(np.sum(residual)) ** 2 > least * total * len(residual)
    excess = speeds.count * (speeds.average(residual**2) - total / len(residual))
    inside = excess > 0
    elsewhere = max(len(residual) - int(speeds.count[inside].sum()), 1)
    return float(excess[inside].sum()) * len(residual) / elsewhere > least * total


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
class _PatternWriter:
    """Turns tests into patterns with their sentences."""

    tested: TestedTorque
    noise_std: float
    search: PatternSearch

    def mean_pattern(self, name: str, bins: Bins | None, test: BinTest, before: np.ndarray) -> Pattern:
        """Return the pattern of a mean that depends on a signal, or of a mean that is not zero."""
        p = min(1.0, test.p * self.search.tests)
        if bins is None:
            mean, ratio = float(before.mean()), float(before.std()) / self.noise_std
            text, remedy = constant_text(mean, test.share, self.tested)
            return Pattern(name, "mean", test.share, p, (-np.inf, np.inf), mean, ratio, text, remedy)
        profile = mean_profile(bins, before)
        text, remedy = mean_text(profile, test.share, self.tested)
        there = before[profile.inside_worst(bins)]
        ratio = float(np.std(there if len(there) else before)) / self.noise_std
        return Pattern(name, "mean", test.share, p, profile.worst_bin, profile.worst_mean, ratio, text, remedy)

    def spread_pattern(self) -> list[Pattern]:
        """Return the pattern of a spread that depends on speed, if there is one."""
        velocity = self.search.signals.get("velocity")
        bins = None if velocity is None else speed_bins(velocity)
        test = None if bins is None else self.search.levene(self.search.left, bins)
        if velocity is None or bins is None or test is None or test.p * self.search.tests >= LEVEL:
            return []
        left = self.search.left
        profile = spread_profile(bins, left)
        inside = profile.inside_worst(bins)
        here, elsewhere = float(np.mean(left[inside] ** 2)), float(np.mean(left[~inside] ** 2))
        share = float(inside.sum()) * (here - elsewhere) / float(self.search.residual @ self.search.residual)
        if here < _LEAST_RATIO**2 * elsewhere or share < LEAST_SHARE:
            return []
        mean, ratio = float(left[inside].mean()), np.sqrt(here) / self.noise_std
        text, remedy = spread_text(profile, np.sqrt(here / elsewhere), share, self.tested)
        p = min(1.0, test.p * self.search.tests)
        return [Pattern("velocity", "spread", share, p, profile.worst_bin, mean, ratio, text, remedy)]
