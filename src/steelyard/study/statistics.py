"""Statistics of Monte Carlo runs: bias, efficiency, coverage and P4's checks, each with its confidence interval.

R runs give estimates x_r with mean m and standard deviation s. Their spread makes every figure uncertain in turn:

    bias         m - chi +- t(R - 1) s / sqrt(R)
    efficiency   sigma_cr^2 / mse, with R mse / E[mse] chi-square of R degrees
    coverage     k of R intervals hold chi: Wilson's interval of a binomial share
                 all parameters together: t test of the runs' shares h_r, as parameters of one run err together
    P4           |m - chi| <= t s / sqrt(R) at 68 %;  (R - 1) s^2 / sigma^2 within the 90 % interval of chi-square
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..distributions import binom_cdf, chi2_ppf, t_ppf, t_sf, wilson_interval
from ..errors import EstimateError
from ..text import short_repr
from .configuration import Case

LEVEL = 0.95
"""Of every interval reported, and of the intervals that are counted."""

MEAN_LEVEL, VARIANCE_LEVEL = 0.68, 0.90
"""P4's two checks: of means, and of variance ratios."""

POWER = 0.8
"""Part of the studies that must find a fault for it to count as one that they could have shown."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class IntervalChecks:
    """P4's two checks of a Monte-Carlo study; the shares expected are 0.68 and 0.90.

    Attributes:
        means: Share of parameters whose mean lies inside its 68 % interval about the truth.
        variances: Share of parameters whose variance ratio lies inside the 90 % chi-square interval; None without
            sigmas to compare with.
    """

    means: float
    variances: float | None


def interval_checks(estimates: np.ndarray, true: np.ndarray, sigma: np.ndarray | None) -> IntervalChecks:
    """Return P4's two checks.

    Args:
        estimates: Estimates (c, R) of R runs.
        true: True values (c,).
        sigma: Standard deviations (c,) that the spread is compared with; None for none.

    Raises:
        EstimateError: If there are fewer than two runs, or shapes do not fit.
    """
    estimates, true = _checked(estimates, true)
    count = estimates.shape[1]
    spread = estimates.std(axis=1, ddof=1)
    reach = t_ppf(0.5 + MEAN_LEVEL / 2, count - 1) * spread / np.sqrt(count)
    means = float(np.mean(np.abs(estimates.mean(axis=1) - true) <= reach))
    if sigma is None:
        return IntervalChecks(means, None)
    low, high = chi2_ppf([0.5 - VARIANCE_LEVEL / 2, 0.5 + VARIANCE_LEVEL / 2], count - 1)
    squares = (count - 1) * (spread / np.asarray(sigma, dtype=float)) ** 2
    return IntervalChecks(means, float(np.mean((squares >= low) & (squares <= high))))


def _checked(estimates: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    estimates, true = np.asarray(estimates, dtype=float), np.asarray(true, dtype=float)
    if estimates.ndim != 2 or true.shape != estimates.shape[:1]:
        raise EstimateError(
            f"estimates of shape {estimates.shape} and {true.shape} true values; needed are (c, R), (c,)"
        )
    if estimates.shape[1] < 2:
        raise EstimateError(f"{estimates.shape[1]} runs: at least 2 are needed, one has no spread")
    if not (np.isfinite(estimates).all() and np.isfinite(true).all()):
        raise EstimateError("estimates or true values are not finite; leave failed runs out")
    return estimates, true


def bias_test(errors: np.ndarray) -> tuple[Interval, float]:
    """Return the 95 % interval of the mean of errors (R,), and the probability of as large a one without bias (t)."""
    count = len(errors)
    mean, scale = float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(count))
    if scale == 0:
        return (mean, mean), 1.0 if mean == 0 else 0.0
    reach = float(t_ppf(0.5 + LEVEL / 2, count - 1)) * scale
    return (mean - reach, mean + reach), float(2 * t_sf(abs(mean) / scale, count - 1))


def efficiency(errors: np.ndarray, bound: float) -> tuple[float, Interval]:
    """Return the Cramer-Rao variance over the mean squared error of runs (R,), with its 95 % interval."""
    count = len(errors)
    squares = float(np.sum(errors**2))
    if squares == 0:
        return np.inf, (np.inf, np.inf)
    low, high = chi2_ppf([0.5 - LEVEL / 2, 0.5 + LEVEL / 2], count)
    return bound**2 * count / squares, (bound**2 * float(low) / squares, bound**2 * float(high) / squares)


def share_interval(hits: int, count: int) -> Interval:
    """Return Wilson's 95 % interval of a share of hits in so many trials."""
    return wilson_interval(hits, count, LEVEL)


def rarely_covered(hits: int, count: int) -> float:
    """Return the probability of as few hits or fewer if the 95 % intervals of so many runs were right."""
    return binom_cdf(hits, count, LEVEL)


@dataclass(frozen=True)
class PooledCoverage:
    """Coverage of the 95 % intervals of all parameters of a case together.

    Attributes:
        share: Mean of the runs' shares of intervals that hold the truth.
        least: Right intervals have at least this share in 95 of 100 studies that spread as this one, in every case.
        shown: True share that four of five such studies would find below ``least``.
    """

    share: float
    least: float
    shown: float

    @property
    def is_too_low(self) -> bool:
        """Whether the share is too low to be chance."""
        return self.share < self.least


def pooled_coverage(hits: np.ndarray, cases: int) -> PooledCoverage:
    """Return what the intervals of all parameters together say.

    Runs are independent, parameters of one run are not: the share of each run is one observation. Its standard
    deviation is taken no smaller than that of independent intervals, which runs that all agree would hide.

    Args:
        hits: Whether each interval holds the truth (c, R), NaN where there is none; two runs at least have some.
        cases: How many such tests there are: each is one of so many that may err (Bonferroni).
    """
    shares = np.nanmean(hits[:, np.isfinite(hits).any(axis=0)], axis=0)
    count, free = len(shares), len(shares) - 1
    independent = float(np.sqrt(LEVEL * (1 - LEVEL) / len(hits)))
    error = max(float(shares.std(ddof=1)), independent) / float(np.sqrt(count))
    reach, further = t_ppf([1 - (1 - LEVEL) / cases, POWER], free) * error
    least = LEVEL - float(reach)
    return PooledCoverage(float(shares.mean()), max(0.0, least), max(0.0, least - float(further)))


def holm(probabilities: np.ndarray, level: float = 1 - LEVEL) -> np.ndarray:
    """Return which of several tests are significant together (Holm's step-down form of Bonferroni's rule).

    Args:
        probabilities: Of each test (k,).
        level: Allowed probability that any is called significant by chance.
    """
    order = np.argsort(probabilities, kind="stable")
    passed = probabilities[order] <= level / np.arange(len(order), 0, -1)
    significant = np.zeros(len(order), dtype=bool)
    significant[order] = np.logical_and.accumulate(passed)
    return significant


ARRAYS = ("seeds", "values", "sigma", "half_width", "seconds")
"""Arrays of :class:`CaseRuns`; runs are along the last axis."""

NOT_SIMULATED = "simulation: "
"""How the message of a run begins whose simulation diverged, so that there was nothing to estimate from."""


@dataclass(frozen=True, eq=False)
class CaseRuns:
    """Runs of one case, R of them; c parameters. NaN where a run failed or a parameter was not excited.

    Attributes:
        case: Method, noise level and start.
        names: Columns of the base parameters, c of them.
        seeds: Seed of each run (R,).
        values: Estimates (c, R).
        sigma: Reported standard deviations (c, R).
        half_width: Half the width of the reported 95 % intervals (c, R).
        seconds: CPU time of each estimation (R,) [s]; NaN where the simulation failed before it.
        failures: Message of each run that failed, empty for those that did not.
    """

    __repr__ = short_repr

    case: Case
    names: tuple[str, ...]
    seeds: np.ndarray
    values: np.ndarray
    sigma: np.ndarray
    half_width: np.ndarray
    seconds: np.ndarray
    failures: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ARRAYS:
            getattr(self, name).setflags(write=False)

    @property
    def times(self) -> np.ndarray:
        """CPU times of the estimations that were made [s]; one of zero if none was."""
        made = self.seconds[np.isfinite(self.seconds)]
        return made if made.size else np.zeros(1)

    def chosen(self, seeds: Sequence[int]) -> CaseRuns:
        """Return the runs of these seeds, in this order; each must be there."""
        place = {int(seed): k for k, seed in enumerate(self.seeds)}
        order = [place[seed] for seed in seeds]
        arrays = {name: getattr(self, name)[..., order] for name in ARRAYS}
        return replace(self, failures=tuple(self.failures[k] for k in order), **arrays)


def joined(parts: Sequence[CaseRuns]) -> CaseRuns:
    """Return the runs of several parts of one case, concatenated."""
    arrays = {name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in ARRAYS}
    return replace(parts[0], failures=tuple(text for part in parts for text in part.failures), **arrays)
