"""Essential parameters: what is left when parameters that the data do not need have gone, one after the other.

All rules take away the parameter with the largest relative sigma that is left, and refit on the triangle alone:

| rule | goes on while |
|---|---|
| ``f`` | ``F = (||rho_c||^2 - ||rho||^2) / (||rho||^2 / (r - b))`` is below its 5 % point, 3.85 for many rows |
| ``rsd`` | the largest relative sigma is above a threshold, 20 % |
| ``bic`` | ``r log(||rho||^2 / r) + b log r`` is not yet at its smallest along the way |

The first is P5.6. For one parameter F is the square of its t value, so ``f`` keeps what has a relative sigma below
51 %; P5's printed counts follow ``rsd`` at 20 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from scipy import stats

from ..errors import EstimateError, nearest_match
from ..estimate import Estimate, System

Rule = Literal["f", "rsd", "bic", "none"]
RULES: tuple[str, ...] = get_args(Rule)


@dataclass(frozen=True)
class Step:
    """A parameter that went.

    Attributes:
        name: Its column.
        relative_sigma: Its relative sigma when it went [%].
        f: F statistic of leaving it out.
        total_f: F statistic of all that went so far, against the full model.
        bic: BIC after it went.
    """

    name: str
    relative_sigma: float
    f: float
    total_f: float
    bic: float


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduced estimate.

    Attributes:
        rule: The rule.
        threshold: F, per cent, or the BIC reached.
        steps: What went, in order.
        estimate: What is left, refitted, marked as after selection.
        protected: Columns that were not allowed to go.
    """

    rule: str
    threshold: float
    steps: tuple[Step, ...]
    estimate: Estimate
    protected: tuple[str, ...]


def reduce_parameters(
    estimate: Estimate,
    rule: str = "f",
    protected: Sequence[str] = (),
    *,
    level: float = 0.05,
    relative_sigma: float = 20.0,
) -> Reduction:
    """Leave out the parameters that the data do not need.

    Args:
        estimate: The estimate of all base parameters.
        rule: ``f``, ``rsd``, ``bic`` or ``none``.
        protected: Columns that stay whatever the statistics say (P2.7): those seen in rare motions only.
        level: Level of the F test.
        relative_sigma: Threshold of ``rsd`` [%].

    Raises:
        EstimateError: If the rule or a protected name is unknown.
    """
    if rule not in RULES:
        raise EstimateError(f"reduction: got '{rule}', allowed are {', '.join(RULES)}{nearest_match(rule, RULES)}")
    for name in protected:
        if name not in estimate.columns:
            known = nearest_match(name, estimate.columns)
            raise EstimateError(f"protected parameter '{name}' is not among those estimated{known}")
    critical = float(stats.f.isf(level, 1, estimate.system.freedom))
    path = _elimination(estimate, set(protected))
    steps = _until(rule, path, critical, relative_sigma, _bic(estimate.system))
    threshold = {"f": critical, "rsd": relative_sigma}.get(rule, steps[-1].bic if steps else _bic(estimate.system))
    gone = {step.name for step in steps}
    left = [name for name in estimate.columns if name not in gone]
    return Reduction(rule, threshold, steps, _restricted(estimate, left), tuple(protected))


def _elimination(estimate: Estimate, protected: set[str]) -> list[Step]:
    """Return the whole way down: each step takes the parameter with the largest relative sigma."""
    full = estimate.system
    gain = _gain(estimate)
    system, steps = full, []
    while True:
        # Scaled by the covariance in use, so that the order follows the sigmas that are told.
        sigma = _classical_sigma(estimate.method, system) * np.array([gain[name] for name in system.columns])
        t = np.abs(system.values) / sigma
        free = [k for k, name in enumerate(system.columns) if name not in protected]
        if not free or len(system.columns) == 1:
            return steps
        weakest = min(free, key=lambda k: t[k])
        name = system.columns[weakest]
        smaller = system.restricted([other for other in system.columns if other != name])
        f = (smaller.squares - system.squares) / _variance(system)
        total = (smaller.squares - full.squares) / (len(full.columns) - len(smaller.columns)) / _variance(full)
        relative = float(100 / t[weakest]) if t[weakest] > 0 else float("inf")
        steps.append(Step(name, relative, f / gain[name] ** 2, total, _bic(smaller)))
        system = smaller


def _variance(system: System) -> float:
    """Return the variance of a weighted equation, from this system's own residuals (P5.6)."""
    return system.squares / system.freedom if system.squares > 0 else 1e-300


def _scale(method: str, system: System) -> float:
    """Return the variance of a weighted equation: 1, but for ordinary least squares that of its residuals."""
    return _variance(system) if method == "ols" else 1.0


def _classical_sigma(method: str, system: System) -> np.ndarray:
    return np.sqrt(_scale(method, system) * np.diag(system.inverse))


def _gain(estimate: Estimate) -> dict[str, float]:
    """Return by how much each sigma that is told exceeds the classical one."""
    classical = _classical_sigma(estimate.method, estimate.system)
    return dict(zip(estimate.columns, estimate.sigma / classical, strict=True))


def _until(rule: str, path: list[Step], critical: float, largest: float, full: float) -> tuple[Step, ...]:
    if rule == "none":
        return ()
    if rule == "bic":
        criteria = [full, *(step.bic for step in path)]
        return tuple(path[: int(np.argmin(criteria))])
    taken: list[Step] = []
    for step in path:
        if (rule == "f" and step.f >= critical) or (rule == "rsd" and step.relative_sigma <= largest):
            break
        taken.append(step)
    return tuple(taken)


def _bic(system: System) -> float:
    mean = max(system.squares, 1e-300) / system.rows
    return float(system.rows * np.log(mean) + len(system.columns) * np.log(system.rows))


def _restricted(estimate: Estimate, left: Sequence[str]) -> Estimate:
    """Return the estimate with only these columns; sigmas keep the correction of the full one."""
    if len(left) == len(estimate.columns):
        return estimate
    system = estimate.system.restricted(left)
    index = [estimate.columns.index(name) for name in left]
    gain = np.array([_gain(estimate)[name] for name in left])
    covariance = _scale(estimate.method, system) * system.inverse * gain[:, None] * gain
    return replace(
        estimate, system=system, values=system.values, covariance=covariance, freedom=estimate.freedom[index],
        after_selection=True,
    )  # fmt: skip
