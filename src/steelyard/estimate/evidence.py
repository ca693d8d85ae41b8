"""Records that all estimators share: the evidence they are given, and the estimate they return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..distributions import t_ppf
from ..errors import EstimateError, nearest_match
from ..observe import Equations, RowSource
from ..text import short_repr
from .noise import NoiseModel
from .system import NoiseGroup, System

Prior = Mapping[str, tuple[float, float]]
"""Value and standard deviation of parameters by name."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters with their uncertainty.

    Attributes:
        method: ``ols``, ``wls``, ``iterated``, ``ridge`` or ``gls``.
        system: The weighted system that was solved (for ``gls`` whitened too).
        values: Value of every column of the system (c,), SI units.
        covariance: Covariance of the values (c, c).
        covariance_kind: ``model`` (noise model, small-sample corrected), ``classical``, ``sandwich``, ``block`` or
            ``hac``.
        freedom: Degrees of freedom of each value's t interval (c,).
        deviations: Standard deviation of every noise group's noise, as used in the weights.
        unweighted: Whether rows count alike in the system (``ols``) instead of by one over their deviation.
        after_selection: Whether columns were left out because these data said so: intervals are then too narrow.
    """

    __repr__ = short_repr

    method: str
    system: System
    values: np.ndarray
    covariance: np.ndarray
    covariance_kind: str
    freedom: np.ndarray
    deviations: Mapping[NoiseGroup, float]
    unweighted: bool = False
    after_selection: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the values: standard names of the base columns."""
        return self.system.columns

    @property
    def weights(self) -> dict[NoiseGroup, float]:
        """By what the rows of every noise group were multiplied; rows of other groups are not in the system."""
        return {group: 1.0 if self.unweighted else 1 / deviation for group, deviation in self.deviations.items()}

    @property
    def unit(self) -> float:
        """Standard deviation of a row of the system as its deviations say: 1 unless it is unweighted."""
        return next(iter(self.deviations.values())) if self.unweighted else 1.0

    @property
    def widening(self) -> np.ndarray:
        """By how much each sigma exceeds that of white noise of these deviations (c,), at least 1."""
        return np.maximum(self.sigma / (self.unit * np.sqrt(np.diag(self.system.inverse))), 1.0)

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations (c,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def relative_sigma(self) -> np.ndarray:
        """Standard deviations in per cent of the absolute values (c,); infinite for a value of zero (P1.3)."""
        size = np.abs(self.values)
        return 100 * np.divide(self.sigma, size, out=np.full(size.shape, np.inf), where=size > 0)

    def half_width(self, level: float = 0.95) -> np.ndarray:
        """Return half the width of every t interval of this level (c,)."""
        return self.sigma * t_ppf(0.5 + level / 2, self.freedom)

    def full_values(self, columns: tuple[str, ...]) -> np.ndarray:
        """Return values for other columns, by name; 0 for those that are not among the estimate's."""
        known = dict(zip(self.columns, self.values, strict=True))
        return np.array([known.get(name, 0.0) for name in columns])


@dataclass(frozen=True, eq=False)
class Evidence:
    """Recordings as an estimator gets them.

    Attributes:
        sources: The recordings: their decimated rows, and behind them the samples (``source.recording``).
        equations: Model and base parameters.
        plain: Weighted least squares (P1.3) of the same rows: which columns the data excite, a start, and the
            deviation of every noise group.
        noise: Noise model of its residuals.
        correlated: ``plain`` with the sigmas that this noise gives it; None if rows are to be taken as white.
    """

    __repr__ = short_repr

    sources: tuple[RowSource, ...]
    equations: Equations
    plain: Estimate
    noise: NoiseModel
    correlated: Estimate | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the unknowns: the base columns that the data excite."""
        return self.plain.columns

    @property
    def widening(self) -> np.ndarray:
        """By how much correlated noise makes the sigmas of ``plain`` larger (c,); 1 if rows are taken as white."""
        if self.correlated is None:
            return np.ones(len(self.plain.columns))
        return self.correlated.sigma / self.plain.sigma


def checked_prior(prior: Prior, columns: Sequence[str]) -> Iterator[tuple[int, float, float]]:
    """Yield the column's place, the value and the standard deviation of every entry of a prior.

    Raises:
        EstimateError: If a name is not among the columns, or a deviation is not above 0.
    """
    for name, (value, deviation) in prior.items():
        if name not in columns:
            raise EstimateError(
                f"prior for '{name}', which is not estimated; estimated are {', '.join(columns[:8])} ..."
                f"{nearest_match(name, columns)}"
            )
        if not (np.isfinite(value) and np.isfinite(deviation) and deviation > 0):
            raise EstimateError(f"prior for '{name}': got {value} +- {deviation}, needed is a deviation above 0")
        yield columns.index(name), value, deviation


@dataclass(frozen=True, eq=False)
class History:
    """An estimate as a function of time.

    Attributes:
        columns: Names of the parameters, c of them.
        time: Instants (K,) [s]; recordings follow one another, each on its own clock, shifted behind the one before.
        values: Parameters as known then (c, K).
        sigma: Their standard deviations (c, K).
        q: Filtered positions (n, K), None if the method has none.
        qd: Filtered velocities (n, K), None if the method has none.
    """

    __repr__ = short_repr

    columns: tuple[str, ...]
    time: np.ndarray
    values: np.ndarray
    sigma: np.ndarray
    q: np.ndarray | None = None
    qd: np.ndarray | None = None

    def converged_after(self, name: str, value: float, part: float = 0.05) -> float | None:
        """Return when a parameter came within a part of a value for good [s]; None if it never did."""
        outside = np.flatnonzero(~(np.abs(self.values[self.columns.index(name)] - value) <= part * abs(value)))
        if not len(outside):
            return float(self.time[0])
        return float(self.time[outside[-1] + 1]) if outside[-1] + 1 < len(self.time) else None


@dataclass(frozen=True)
class Endogeneity:
    """Durbin, Wu and Hausman's test: is least squares biased by rows that correlate with their own errors?

    Attributes:
        statistic: F of the rows' part that the instruments do not explain, added to the regression.
        freedom: Its degrees of freedom, above and below.
        p: Probability of as large a value if least squares is right.
        worst: Column whose least-squares value is farthest from that of the instruments, in sigmas of the difference.
        worst_z: How far.
    """

    statistic: float
    freedom: tuple[int, int]
    p: float
    worst: str
    worst_z: float


@dataclass(frozen=True, eq=False)
class Estimated:
    """What an estimator found.

    Attributes:
        estimate: The parameters.
        history: How they came about in time, for methods that work through time.
        endogeneity: The test that methods with instruments make.
        notes: What a reader should know, a sentence each.
    """

    __repr__ = short_repr

    estimate: Estimate
    history: History | None = None
    endogeneity: Endogeneity | None = None
    notes: tuple[str, ...] = ()


def equivalent_system(columns: Sequence[str], values: np.ndarray, covariance: np.ndarray, rows: int) -> System:
    """Return the linear system of unit noise that has these values and this covariance.

    Reduction, priors and comparisons need a triangle; near its optimum every estimate is one of least squares, with
    ``R^T R = C^-1`` and ``y = R x``.

    Args:
        columns: Names of the unknowns, c of them.
        values: Their values (c,).
        covariance: Their covariance (c, c).
        rows: Number of equations behind them.

    Raises:
        EstimateError: If the covariance is not positive definite, or values are not finite.
    """
    count = len(columns)
    if not (np.isfinite(values).all() and np.isfinite(covariance).all()):
        raise EstimateError("the estimate is not finite: the method diverged; start nearer, or use wls")
    scale = np.sqrt(np.abs(np.diag(covariance)))
    try:
        factor = linalg.cholesky(covariance / np.outer(scale, scale), lower=True)
    except (linalg.LinAlgError, ValueError):
        raise EstimateError(
            "the covariance of the estimate is not positive definite: not all parameters are identifiable from these "
            "recordings; give a prior, or record a more exciting motion"
        ) from None
    inverse = linalg.solve_triangular(factor, np.diag(1 / scale), lower=True)
    root = np.asarray(np.linalg.qr(inverse, mode="r"))
    triangle = np.zeros((count + 1, count + 1))
    triangle[:count, :count] = root
    triangle[:count, count] = root @ values
    triangle[count, count] = np.sqrt(max(rows - count, 1))
    triangle.setflags(write=False)
    return System(tuple(columns), triangle, rows)


def estimate_of(
    method: str, kind: str, evidence: Evidence, values: np.ndarray, covariance: np.ndarray, freedom: float
) -> Estimate:
    """Return an estimate that any method found, for the columns of the evidence.

    Args:
        method: Name of the method.
        kind: What its covariance is: ``filter``, ``cramer_rao``, ``model`` ...
        evidence: What it was given.
        values: Values (c,).
        covariance: Covariance (c, c).
        freedom: Degrees of freedom of the t intervals.
    """
    plain = evidence.plain
    system = equivalent_system(plain.columns, values, covariance, plain.system.rows)
    degrees = np.full(len(plain.columns), float(freedom))
    return Estimate(method, system, values, covariance, kind, degrees, plain.deviations)
