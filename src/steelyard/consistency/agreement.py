"""Whether the prior is one of this arm: by which factor the data find each link heavier or lighter than the prior.

A prior with a chosen deviation gives way to data that contradict it. One that is ten times too heavy (pounds or grams,
another arm) would then go unnoticed, and still decide what the data do not show. Here each link is ``a`` times its
prior, of a shape that differs from it by 30 %:

    beta ~ N(sum_b a_b K theta_b, C + sum_b (s a_b)^2 K T_b T_b^T K^T)

with beta the base parameters of the arm that can exist and is nearest to the data, C their covariance and T_b the
matrix from the link's ``svec X`` to its parameters; what has no prior is free. Where the data are far from any arm they
hold errors of the model, and C is larger by as much. The factors of largest likelihood are compared with those of
largest likelihood near 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import linalg

from ..errors import EstimateError
from ..judge import LeftOutBlocks
from .constraints import ConsistencySettings
from .problem import StandardProblem
from .pseudo_inertia import divergence, smat

DEVIATIONS = (0.03, 0.1, 0.2, 0.5, 1.0, 3.0)
"""Relative deviations of the prior among which held-out error decides."""

CHANCE = 1.02
"""Held-out errors within this factor of the least one differ by chance."""

SHAPE = 0.3
"""Relative deviation of a link's mass distribution from the shape of its prior."""

FACTOR = 3.0
"""A prior that is so many times heavier or lighter than the data say is a mistake rather than an inexact CAD value."""

_NEAR = 1.5
"""Factors of a prior that is right, up to the usual inexactness of CAD values."""

_DOUBT, _NAMED = 5.0, 2.0
"""Difference of log-likelihoods from which on the prior is in doubt, and that from which on a link is named for it."""

_WIDEST, _USUAL = np.log(1e7), np.log(100.0)
"""Limits of a factor's logarithm, and its deviation beforehand: links that the data do not show have a factor of 1."""

_SCALE, _CLEAR = 1.25, 3.0
"""Factors of all links alike that inexact CAD values may have, since those of the links average out; and the difference
of log-likelihoods from which on they have another one (of 160 simulated arms off by 10 to 30 % none had half of it)."""

_LARGEST_SQUARE, _MOST_RAISES = 29.6, 20
"""Squared distance of a link from its prior, in its deviations, that chance exceeds once in a thousand (chi-square with
ten degrees of freedom); and how often a deviation is raised until it is not."""

_COMMON = np.logspace(-6, 6, 25)
"""Factors of all links together that are tried as a start."""


@dataclass(frozen=True)
class PriorDisagreement:
    """A link whose prior the data contradict.

    Attributes:
        link: The link.
        factor: How many times heavier the data find it than the prior.
        evidence: By how much the log-likelihood falls if the factor is kept near 1.
    """

    link: str
    factor: float
    evidence: float

    @property
    def deviation(self) -> float:
        """Least relative deviation of a prior that is off by this factor."""
        return abs(float(np.log(self.factor)))

    @property
    def text(self) -> str:
        """How far the prior is off, for messages."""
        return f"'{self.link}' ({factor_text(self.factor)})"


def factor_text(factor: float) -> str:
    """Return how far a prior is off, of which the data find the given times."""
    times, way = (factor, "light") if factor > 1 else (1 / factor, "heavy")
    return f"about {float(f'{times:.1g}'):g} times too {way}"


@dataclass(frozen=True)
class PriorUsed:
    """The prior of the links' inertias.

    Attributes:
        origin: Where its values come from.
        kind: ``geometric`` or ``euclidean``.
        deviation: Its relative standard deviation.
        chosen: Whether the deviation was chosen: by held-out error, and not below what disagreements need.
        held_out: Relative error [%] of left-out blocks for each deviation that was tried.
        disagreements: Links whose prior the data contradict by a factor.
        contradicted: Links that the data draw farther from the prior than the given deviation, or that of least
            held-out error, explains; and the deviation that would.
        common_factor: How many times heavier than the prior the data find all links alike; None if they do not.
    """

    origin: str
    kind: str
    deviation: float
    chosen: bool
    held_out: Mapping[float, float]
    disagreements: tuple[PriorDisagreement, ...] = ()
    contradicted: Mapping[str, float] = field(default_factory=dict)
    common_factor: float | None = None

    @property
    def factor_deviation(self) -> float:
        """Least relative deviation of a prior that is off by the factors found; 0 without any."""
        common = 0.0 if self.common_factor is None else abs(float(np.log(self.common_factor)))
        return max([common, *(one.deviation for one in self.disagreements)])


def chosen_prior(problem: StandardProblem, origin: str, left_out: LeftOutBlocks | None) -> PriorUsed:
    """Return the prior with its deviation: the given one, or the smallest that predicts left-out blocks as well as any.

    Blocks of the same motion say little of directions that it hardly excites, where the prior matters most: among
    deviations that chance may order, the prior is trusted.
    """
    settings = problem.settings
    if settings.deviation is not None:
        return PriorUsed(origin, settings.kind, settings.deviation, False, {})
    if left_out is None:
        raise EstimateError("the deviation of the prior needs blocks of data to be chosen by; give it, such as 0.2")
    # Correlated noise makes fewer samples of many: all rows count less, by the median over the parameters.
    gain = problem.estimate.unit * float(np.median(problem.estimate.widening))
    columns = [left_out.columns.index(name) for name in problem.estimate.columns]
    errors: dict[float, float] = {}
    for deviation in DEVIATIONS:
        squares = np.zeros((2, len(left_out.parts[0][1])))  # of error and of torque, by unit
        for fitted, unseen in left_out.parts:
            rows, target = fitted[:, columns] / gain, fitted[:, -1] / gain
            values = problem.regrouping @ problem.values(problem.solved(problem.programme(deviation, rows, target)))
            squares[0] += [np.sum((part[:, columns] @ values - part[:, -1]) ** 2) for part in unseen]
            squares[1] += [np.sum(part[:, -1] ** 2) for part in unseen]
        errors[deviation] = 100 * float(np.sqrt(np.mean(squares[0] / squares[1])))
    alike = [deviation for deviation, error in errors.items() if error <= CHANCE * min(errors.values())]
    return PriorUsed(origin, settings.kind, min(alike), True, errors)


def with_disagreements(prior: PriorUsed, problem: StandardProblem) -> PriorUsed:
    """Return the prior with what contradicts it; a chosen deviation is not below what explains that.

    Sigmas take data and prior as agreeing: with a smaller deviation they would be too small.
    """
    of_data = _values_of_data(problem)
    if of_data is None:
        return prior
    found = replace(
        prior,
        disagreements=prior_disagreements(problem, of_data),
        common_factor=common_factor(problem, of_data),
        contradicted=needed_deviations(problem, prior.deviation, of_data),
    )
    if not prior.chosen:
        return found
    deviation = max(prior.deviation, float(np.ceil(10 * found.factor_deviation) / 10))
    for _ in range(_MOST_RAISES):  # a wider prior gives way to the data, and is farther from them
        needed = needed_deviations(problem, deviation, of_data)
        if not needed:
            break
        deviation = float(np.ceil(100 * max(needed.values())) / 100)
    return replace(found, deviation=deviation)


def _values_of_data(problem: StandardProblem) -> np.ndarray | None:
    """Return the standard parameters (p,) of the arm that the data alone give; None if there is none."""
    free = StandardProblem(
        problem.equations, problem.estimate, ConsistencySettings(), massless=problem.massless
    )  # fmt: skip
    try:
        return free.values(free.solved(free.programme(None)))
    except EstimateError:
        return None


def needed_deviations(problem: StandardProblem, deviation: float, values: np.ndarray) -> dict[str, float]:
    """Return the links that the data draw farther from the prior than its deviation explains, and which one would.

    With data and prior that agree, ``2 d(X) / s^2`` of a link is about chi-square distributed with ten degrees of
    freedom, or less where the data do not show all of it. The link that is farthest off comes first.

    Args:
        problem: The data and the prior.
        deviation: Relative deviation s of the prior.
        values: Standard parameters (p,) of the arm that the data alone give.
    """
    root = problem.root / _model_error(problem, values)
    solution = problem.solved(problem.programme(deviation, root, root @ problem.estimate.values))
    found = {}
    for k, link in enumerate(problem.links):
        inside = smat(solution.x[10 * k : 10 * k + 10])
        geometric = problem.settings.kind == "geometric"
        square = 2 * divergence(inside) if geometric else float(np.sum((inside - np.eye(4)) ** 2))
        if problem.has_prior(k) and square > _LARGEST_SQUARE * deviation**2:
            found[link] = float(np.sqrt(square / _LARGEST_SQUARE))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _model_error(problem: StandardProblem, values: np.ndarray) -> float:
    """Return by how much deviations of the data are larger than noise: that of the arm (p,) nearest to them."""
    return float(np.sqrt(max(1.0, problem.misfit(values) / len(problem.root))))


def common_factor(problem: StandardProblem, values: np.ndarray) -> float | None:
    """Return how many times heavier than the prior the data find all links alike; None if that is no clear factor.

    Args:
        problem: The data and the prior.
        values: Standard parameters (p,) of the arm that the data alone give.
    """
    likelihood = FactorLikelihood(problem, values)
    count = len(likelihood.links)
    if not len(likelihood.target) or count < 2:
        return None
    best, value = likelihood.largest_common(_WIDEST)
    if abs(best) < np.log(_NEAR) or value - likelihood.largest_common(np.log(_SCALE))[1] < _CLEAR:
        return None
    single = likelihood.largest(np.full(count, _WIDEST), np.full(count, best))[1]
    return float(np.exp(best)) if single - value < _DOUBT else None


def prior_disagreements(problem: StandardProblem, values: np.ndarray) -> tuple[PriorDisagreement, ...]:
    """Return the links whose prior the data contradict by a factor of three or more.

    Args:
        problem: The data and the prior.
        values: Standard parameters (p,) of the arm that the data alone give.
    """
    likelihood = FactorLikelihood(problem, values)
    if not len(likelihood.target):
        return ()
    near, count = np.log(_NEAR), len(likelihood.links)
    best, value = likelihood.largest(np.full(count, _WIDEST))
    far = [k for k in range(count) if abs(best[k]) > np.log(FACTOR)]
    if not far or value - likelihood.largest(np.full(count, near), best)[1] < _DOUBT:
        return ()
    evidence = {}
    for k in far:
        limits = np.full(count, _WIDEST)
        limits[k] = near
        evidence[k] = value - likelihood.largest(limits, best)[1]
    # Links that move together may each be explained by the others: then all of them are in doubt.
    named = [k for k in far if evidence[k] >= _NAMED] or far
    return tuple(PriorDisagreement(likelihood.links[k], float(np.exp(best[k])), float(evidence[k])) for k in named)


class FactorLikelihood:
    """Likelihood of the estimate as a function of the links' factors.

    Args:
        problem: The data and the prior.
        values: Standard parameters (p,) of the arm that the data alone give.
    """

    def __init__(self, problem: StandardProblem, values: np.ndarray) -> None:
        with_prior = [
            (link, list(place), body)
            for k, ((link, place), body) in enumerate(zip(problem.links.items(), problem.bodies, strict=True))
            if problem.has_prior(k)
        ]
        self.links = [link for link, _, _ in with_prior]
        drives, drive_values = problem.prior_drives, problem.reference[problem.prior_drives]
        known = {k for _, place, _ in with_prior for k in place} | set(drives)
        rows = problem.root @ problem.regrouping / _model_error(problem, values)
        target = rows @ values
        shown = _complement(rows[:, [k for k in problem.free if k not in known]])
        rows = shown.T @ rows
        self.target = shown.T @ target - rows[:, drives] @ drive_values
        self.design = np.column_stack([rows[:, place] @ body.parameters for _, place, body in with_prior])
        self.shapes = [SHAPE * rows[:, place] @ body.to_parameters for _, place, body in with_prior]
        own = SHAPE * rows[:, drives] * drive_values
        self.noise = np.hstack([np.eye(len(rows)), own])

    def largest(self, limits: np.ndarray, start: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """Return the logarithms of the factors (b,) of largest log-likelihood within +- limits (b,), and its value."""
        from scipy.optimize import minimize  # takes a while to load, and only a prior needs it

        if start is None:  # the likelihood may have several maxima: begin at the best common factor too
            common = min(_COMMON, key=lambda factor: self.negative_log(np.full(len(limits), np.log(factor)))[0])
            starts = [np.zeros(len(limits)), np.full(len(limits), np.log(common))]
        else:
            starts = [start]
        bounds = list(zip(-limits, limits, strict=True))
        found = [minimize(self.negative_log, np.clip(one, -limits, limits), jac=True, bounds=bounds) for one in starts]
        best = min(found, key=lambda one: one.fun)
        return best.x, -float(best.fun)

    def largest_common(self, limit: float) -> tuple[float, float]:
        """Return the logarithm of the factor of all links alike of largest log-likelihood within +- limit, and it."""
        from scipy.optimize import minimize

        ones = np.ones(len(self.links))

        def negative_log(log: np.ndarray) -> tuple[float, float]:
            value, slopes = self.negative_log(log[0] * ones)
            return value, float(slopes.sum())

        grid = np.clip(np.log(_COMMON), -limit, limit)
        start = min(grid, key=lambda log: self.negative_log(log * ones)[0])
        found = minimize(negative_log, [start], jac=True, bounds=[(-limit, limit)])
        return float(found.x[0]), -float(found.fun)

    def negative_log(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the negative log-likelihood and its gradient by the logarithms of the factors (b,)."""
        factors = np.exp(logs)
        # The triangle of all deviations together: squares of their range would have no digits left.
        stacked = np.hstack([self.noise, *(a * shape for a, shape in zip(factors, self.shapes, strict=True))])
        root = np.asarray(np.linalg.qr(stacked.T, mode="r")).T
        white = linalg.solve_triangular(
            root, np.column_stack([self.target, self.design, *self.shapes]), lower=True, check_finite=False
        )
        seen, design = white[:, 0], white[:, 1 : 1 + len(factors)]
        residual = seen - design @ factors
        slopes = []
        for k, (a, column) in enumerate(zip(factors, design.T, strict=True)):
            shape = white[:, 1 + len(factors) + 10 * k : 11 + len(factors) + 10 * k]
            slopes.append(a**2 * (np.sum(shape**2) - np.sum((residual @ shape) ** 2)) - a * (column @ residual))
        value = np.log(np.abs(np.diag(root))).sum() + residual @ residual / 2 + logs @ logs / (2 * _USUAL**2)
        return float(value), np.array(slopes) + logs / _USUAL**2


def _complement(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (r, m) of what is orthogonal to columns (r, n)."""
    lengths = np.linalg.norm(columns, axis=0)
    vectors, sizes, _ = np.linalg.svd(columns[:, lengths > 0] / lengths[lengths > 0])
    return vectors[:, int(np.sum(sizes > 1e-9)) :]
