"""Residual tests of one equation: whiteness, normality (P5.6), constant variance, and patterns in the residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..distributions import chi2_sf, f_sf, norm_cdf
from ..errors import EstimateError
from ..estimate import Estimate, NoiseModel
from ..observe import RowSource
from .patterns import Pattern, explain_residuals, may_explain
from .residuals import EquationRuns, residual_runs
from .whiteness import ResidualCorrelation, autocorrelation, checked_residuals, durbin_watson, ljung_box

# Quantiles of D (sqrt(n) - 0.01 + 0.85 / sqrt(n)) for normal samples with their own mean and deviation, by simulation
# (1,000,000 samples of 10 to 30,000 samples of 8000): the standard error of a 5 % point is below 0.003.
_PROBABILITIES = (0.99, 0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
_QUANTILES = {
    10: (0.3588, 0.4470, 0.5330, 0.6046, 0.6873, 0.7423, 0.8243, 0.8962, 0.9801, 1.0385, 1.2048),
    30: (0.3587, 0.4473, 0.5314, 0.6018, 0.6836, 0.7383, 0.8204, 0.8932, 0.9805, 1.0422, 1.2162),
    100: (0.3646, 0.4511, 0.5353, 0.6057, 0.6866, 0.7413, 0.8229, 0.8958, 0.9829, 1.0438, 1.2240),
    1000: (0.3722, 0.4593, 0.5432, 0.6137, 0.6943, 0.7489, 0.8305, 0.9045, 0.9951, 1.0578, 1.2458),
}


@dataclass(frozen=True)
class KolmogorovSmirnov:
    """Largest distance between the residuals' distribution and the normal one.

    Attributes:
        statistic: D, between 0 and 1.
        p: Probability of a larger D for normal residuals, with their own mean and deviation taken (Lilliefors).
    """

    statistic: float
    p: float


@dataclass(frozen=True)
class JarqueBera:
    """Skewness and kurtosis against those of a normal distribution.

    Attributes:
        statistic: ``n / 6 (S^2 + (K - 3)^2 / 4)``.
        p: Probability of a larger one for normal residuals, chi-square with two degrees of freedom.
        skewness: S; 0 if symmetric.
        kurtosis: K; 3 for a normal distribution, more with heavy tails.
    """

    statistic: float
    p: float
    skewness: float
    kurtosis: float


def kolmogorov_smirnov(residuals: np.ndarray, effective_samples: float | None = None) -> KolmogorovSmirnov:
    """Compare residuals (r,) with the normal distribution of their own mean and standard deviation.

    ``D = max |F_r(e) - Phi((e - mean) / s)|``. As mean and s come from the same residuals, D is smaller than
    Kolmogorov's table expects: that table would almost never object. The probability is Lilliefors's, from simulated
    quantiles of ``D (sqrt(n) - 0.01 + 0.85 / sqrt(n))`` (Stephens), between which log p is interpolated; below 0.001 it
    is extrapolated.

    Args:
        residuals: Residuals of one equation. Correlated ones make the test too eager: whiten them first, or
        effective_samples: say how many independent ones they are worth, ``r / (1 + 2 sum_k r(k))``; this is cautious.

    Raises:
        EstimateError: If there are fewer than five residuals, they are all alike or not finite.
    """
    values = checked_residuals(residuals, least=5)
    count = _effective(effective_samples, len(values))
    standard = (values - values.mean()) / values.std(ddof=1)
    below, steps = norm_cdf(np.sort(standard)), np.arange(len(values) + 1) / len(values)
    distance = float(max((steps[1:] - below).max(), (below - steps[:-1]).max()))
    return KolmogorovSmirnov(distance, _lilliefors_p(distance, count))


def jarque_bera(residuals: np.ndarray, effective_samples: float | None = None) -> JarqueBera:
    """Compare skewness and kurtosis of residuals (r,) with those of a normal distribution.

    Args:
        residuals: Residuals of one equation. Correlated ones make the test too eager: whiten them first, or
        effective_samples: say how many independent ones they are worth, in place of n.

    Raises:
        EstimateError: If there are fewer than five residuals, they are all alike or not finite.
    """
    values = checked_residuals(residuals, least=5)
    count = _effective(effective_samples, len(values))
    second, third, fourth = (float(np.mean((values - values.mean()) ** power)) for power in (2, 3, 4))
    skewness, kurtosis = third / second**1.5, fourth / second**2
    statistic = count / 6 * (skewness**2 + (kurtosis - 3) ** 2 / 4)
    return JarqueBera(statistic, float(chi2_sf(statistic, 2)), skewness, kurtosis)


def _effective(given: float | None, samples: int) -> float:
    if given is None:
        return float(samples)
    if not 1 < given < np.inf:
        raise EstimateError(f"effective samples: got {given}, allowed are numbers above 1; residuals are {samples}")
    return float(given)


def _lilliefors_p(distance: float, samples: float) -> float:
    scaled = distance * (np.sqrt(samples) - 0.01 + 0.85 / np.sqrt(samples))
    table = np.array(list(_QUANTILES.values()))
    sizes = np.log(list(_QUANTILES))
    at_size = np.array([np.interp(np.log(samples), sizes, column) for column in table.T])
    logs = np.log(_PROBABILITIES)
    # A Gaussian process's maximum: log p falls with the square of the distance.
    if scaled >= at_size[-1]:
        slope = (logs[-1] - logs[-2]) / (at_size[-1] ** 2 - at_size[-2] ** 2)
        return float(np.exp(logs[-1] + slope * (scaled**2 - at_size[-1] ** 2)))
    return float(np.exp(_monotone_cubic(np.concatenate([[0.0], at_size]), np.concatenate([[0.0], logs]), scaled)))


def _monotone_cubic(x: np.ndarray, y: np.ndarray, at: float) -> float:
    """Interpolate monotone points (n,), (n,) by cubics without overshoot (Fritsch and Butland: PCHIP).

    ``scipy.interpolate`` would take longer to import than all residual tests to run.
    """
    widths, slopes = np.diff(x), np.diff(y) / np.diff(x)
    left, right = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
    inner = (left + right) / (left / slopes[:-1] + right / slopes[1:])
    bent = np.concatenate([[_end_slope(widths, slopes)], inner, [_end_slope(widths[::-1], slopes[::-1])]])
    k = min(max(int(np.searchsorted(x, at)) - 1, 0), len(widths) - 1)
    part = (at - x[k]) / widths[k]
    rise = (3 * slopes[k] - 2 * bent[k] - bent[k + 1]) * part**2 + (bent[k] + bent[k + 1] - 2 * slopes[k]) * part**3
    return float(y[k] + widths[k] * (bent[k] * part + rise))


def _end_slope(widths: np.ndarray, slopes: np.ndarray) -> float:
    """Return the slope at the first point: of the parabola through three, unless it turns back."""
    slope = ((2 * widths[0] + widths[1]) * slopes[0] - widths[0] * slopes[1]) / (widths[0] + widths[1])
    return float(slope) if slope * slopes[0] > 0 else 0.0


class BreuschPagan(NamedTuple):
    """Breusch-Pagan test in Koenker's form.

    Attributes:
        lm: ``r R^2`` of the squared residuals on the regressors.
        p: Its probability, chi-square with as many degrees of freedom as regressors.
        f: F statistic of the same regression; better for few rows.
        f_p: Its probability.
    """

    lm: float
    p: float
    f: float
    f_p: float


def breusch_pagan(residuals: np.ndarray, regressors: np.ndarray) -> BreuschPagan:
    """Regress squared residuals on what might drive their size.

    ``e^2 = c_0 + c^T x + u``; under equal variance ``r R^2`` is chi-square. Koenker's form needs no normal residuals.

    Args:
        residuals: Residuals (r,).
        regressors: Rows such as |qd|, |tau| or temperature (k, r); the constant is added here.

    Raises:
        EstimateError: If shapes do not fit, a value is not finite, or the regressors are constant or dependent.
    """
    values = checked_residuals(residuals, least=4)
    rows = np.asarray(regressors, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(values) or rows.shape[0] == 0:
        raise EstimateError(
            f"regressors of the variance: got shape {rows.shape}, allowed is (k, {len(values)}): one row each, as long "
            "as the residuals"
        )
    if not np.isfinite(rows).all():
        raise EstimateError("regressors of the variance: got values that are not finite; leave these samples out")
    return _regression_test(values**2, _normalised(rows))


def _normalised(rows: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(axis=1, keepdims=True)
    size = np.linalg.norm(centred, axis=1, keepdims=True)
    constant = np.flatnonzero(size[:, 0] <= 1e-12 * np.linalg.norm(rows, axis=1))
    if constant.size:
        raise EstimateError(f"regressors of the variance: row {constant[0]} is constant; leave it out")
    return centred / size


def _regression_test(squares: np.ndarray, rows: np.ndarray) -> BreuschPagan:
    samples, count = len(squares), len(rows)
    free = samples - 1 - count
    if free < 1:
        raise EstimateError(f"Breusch-Pagan: got {samples} residuals, needed are at least {count + 2}")
    centred = squares - squares.mean()
    solution, _, rank, _ = np.linalg.lstsq(rows.T, centred, rcond=1e-10)
    if rank < count:
        raise EstimateError(f"regressors of the variance: got {count} rows of rank {rank}; leave dependent ones out")
    left, total = float(np.sum((centred - solution @ rows) ** 2)), float(centred @ centred)
    if total == 0:
        raise EstimateError("residuals: all have the same size, so their spread cannot be explained")
    lm = samples * (1 - left / total)
    f = (total - left) / count / (left / free) if left > 0 else np.inf
    return BreuschPagan(lm, float(chi2_sf(lm, count)), float(f), float(f_sf(f, count, free)))


LAGS = 10
"""Lags over which correlation is looked for."""

CLEARLY = 1.5
"""A pattern of unseen motion is clearly more than that of the fit where its size is so many times as large."""

LEAST_ROWS = 50
"""Fewer rows of an unseen recording show no pattern."""


@dataclass(frozen=True)
class JointTests:
    """Tests of one equation's residuals.

    Attributes:
        kind: Torque kind.
        joint: Joint.
        durbin_watson: Statistic of the decimated residuals.
        expected_durbin_watson: What white noise has after this decimator.
        ljung_box_p: Of the decimated residuals against the decimator's own correlation.
        order: Order of the noise model's autoregression.
        lag_one: Lag-one correlation of the noise beyond the decimator's.
        whitened_ljung_box_p: Of the residuals after the noise model was taken away.
        whitened_correlation: Largest correlation left then, at lags 1 to 10.
        kolmogorov_smirnov_p: Normality of the whitened residuals.
        jarque_bera_p: Normality of the whitened residuals.
        breusch_pagan_p: Whether the size of the whitened residuals depends on speed and acceleration.
        patterns: What the residuals depend on.
    """

    kind: str
    joint: str
    durbin_watson: float
    expected_durbin_watson: float
    ljung_box_p: float
    order: int
    lag_one: float
    whitened_ljung_box_p: float
    whitened_correlation: float
    kolmogorov_smirnov_p: float
    jarque_bera_p: float
    breusch_pagan_p: float
    patterns: tuple[Pattern, ...]

    @property
    def largest_share(self) -> float:
        """Largest part of the residual's variance that one pattern explains, 0 to 1."""
        return max((pattern.share_explained for pattern in self.patterns), default=0.0)

    @property
    def correlation(self) -> ResidualCorrelation:
        """What the verdict looks at: the correlation modelled, and what is left of it."""
        left, p = self.whitened_correlation, self.whitened_ljung_box_p
        return ResidualCorrelation(self.kind, self.joint, self.lag_one, left, p)


def joint_tests(
    equation: tuple[str, str],
    residuals: Sequence[np.ndarray],
    whitened: Sequence[np.ndarray],
    signals: Mapping[str, Sequence[np.ndarray]],
    noise: NoiseModel,
    noise_std: float,
    *,
    prismatic: bool = False,
) -> JointTests:
    """Test the residuals of one equation.

    Args:
        equation: Torque kind and joint.
        residuals: Decimated residuals, run by run [N m or N].
        whitened: The same after the noise model, in units of its deviation.
        signals: Velocity, acceleration, position, load, temperature and time of the rows, run by run.
        noise: The noise model.
        noise_std: Standard deviation of the noise [N m or N].
        prismatic: Whether the joint is one.
    """
    kind, joint = equation
    watson = durbin_watson(residuals, noise.correlation)
    lags = min(LAGS, max(1, max(len(run) for run in residuals) // 5))
    order = len(noise.coefficients[equation])
    stacked = np.concatenate(whitened)
    left = autocorrelation(whitened, lags)
    motion = np.array([np.abs(np.concatenate(list(signals[name]))) for name in ("velocity", "acceleration")])
    named = f"{joint} ({kind} torque)"
    patterns = explain_residuals(
        residuals, signals, named, noise_std, noise.correlation, kind=kind, prismatic=prismatic
    )
    return JointTests(
        kind, joint, watson.statistic, watson.expected, ljung_box(residuals, lags, noise.correlation).p, order,
        noise.lag_one(equation), ljung_box(whitened, lags, fitted=min(order, lags - 1)).p,
        float(np.abs(left[1:]).max()), kolmogorov_smirnov(stacked).p, jarque_bera(stacked).p,
        breusch_pagan(stacked, motion).p, patterns,
    )  # fmt: skip


@dataclass(frozen=True)
class UnseenPattern:
    """A pattern in the residuals of unseen motion that those of the fit do not show, or clearly less.

    Attributes:
        kind: Torque kind.
        joint: Joint.
        recordings: Labels of the recordings that show it, the strongest first.
        share_of_fit: Share of the residual's variance that it explains in the fit; 0 if it is not found there.
        pattern: The pattern, in the recording where it explains most.
    """

    kind: str
    joint: str
    recordings: tuple[str, ...]
    share_of_fit: float
    pattern: Pattern

    @property
    def text(self) -> str:
        """The sentence, with the recordings."""
        labels = ", ".join(f"'{label}'" for label in self.recordings)
        here = f", {100 * self.share_of_fit:.2g} % in the fit" if self.share_of_fit else ", not in the fit"
        return f"in unseen motion ({labels}): {self.pattern.text}{here}"


def unseen_patterns(
    sources: Sequence[RowSource], estimate: Estimate, noise: NoiseModel, tests: Sequence[JointTests], least: float
) -> tuple[UnseenPattern, ...]:
    """Return what residuals of unseen motion depend on and those of the fit do not, or clearly less.

    Every recording is looked through once, by itself: of a long one, the rows that a :class:`RunCollector` retains.

    Args:
        sources: Rows of the unseen recordings.
        estimate: The parameters.
        noise: Noise model of the fit: size of its residuals, correlation of the decimator.
        tests: Tests of the residuals of the fit.
        least: Least share of the residual's variance, 0 to 1.

    Returns:
        The patterns, the one that explains most first.
    """
    before = {(test.kind, test.joint): test for test in tests}
    found: dict[tuple[str, str, str, str], list[tuple[str, Pattern, float]]] = {}
    for source in sources:
        for runs in residual_runs(source, estimate):
            equation = runs.kind, runs.joint
            if equation not in before or sum(map(len, runs.residual)) < LEAST_ROWS:
                continue
            joined = {name: np.concatenate(parts) for name, parts in runs.signals.items()}
            if not may_explain(np.concatenate(runs.residual), joined, least):
                continue
            for pattern, share in _new_patterns(runs, before[equation], noise):
                if pattern.share_explained > least:
                    key = *equation, pattern.signal, pattern.kind
                    found.setdefault(key, []).append((source.label, pattern, share))
    merged = []
    for (kind, joint, *_), shown in found.items():
        shown.sort(key=lambda one: -one[1].share_explained)
        merged.append(UnseenPattern(kind, joint, tuple(label for label, _, _ in shown), shown[0][2], shown[0][1]))
    return tuple(sorted(merged, key=lambda one: -one.pattern.share_explained))


def _new_patterns(runs: EquationRuns, before: JointTests, noise: NoiseModel) -> list[tuple[Pattern, float]]:
    """Return patterns of one equation that its fit does not have, or clearly less, with their share there."""
    size = float(np.sqrt(np.mean(np.concatenate(runs.residual) ** 2)))
    if size == 0:
        return []
    named, is_prismatic = f"{runs.joint} ({runs.kind} torque)", runs.unit == "N"
    patterns = explain_residuals(
        runs.residual, runs.signals, named, size, noise.correlation, kind=runs.kind, prismatic=is_prismatic
    )
    known = {(pattern.signal, pattern.kind): pattern.share_explained for pattern in before.patterns}
    deviations = [value for group, value in noise.deviations.items() if group[1:] == (runs.kind, runs.joint)]
    fitted = float(np.mean(np.square(deviations))) if deviations else size**2
    shares = [(pattern, known.get((pattern.signal, pattern.kind), 0.0)) for pattern in patterns]
    return [(one, share) for one, share in shares if one.share_explained * size**2 > CLEARLY**2 * share * fitted]
