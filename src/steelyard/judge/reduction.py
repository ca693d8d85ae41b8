"""Reduction to essential parameters: those that the data do not need are left out, one after the other.

All rules take away the parameter with the largest relative sigma that is left, and refit on the triangle alone:

| rule | goes on while |
|---|---|
| ``f`` | ``t^2`` of the parameter, and ``x_S^T C_SS^-1 x_S / s`` of all s gone so far, are below their 5 % points |
| ``stepwise`` | ``F = (||rho_c||^2 - ||rho||^2) / (||rho||^2 / (r - b))`` is below its 5 % point, 3.85 for many rows |
| ``rsd`` | the largest relative sigma is above a threshold, 20 % |
| ``bic`` | ``r log(||rho||^2 / r) + b log r`` is not yet at its smallest along the way |

``f`` takes both tests from the covariance C that is reported for the full model, so removals that are harmless one by
one cannot add up. ``stepwise`` is P5.6: its variance is that of the step before and grows with each removal. P5's
printed counts follow ``rsd`` at 20 %; ``bic`` compares every step with the full model by itself.

Whatever the rule, a reduced model has to predict blocks of time that its fit left out as well as all parameters do
(:class:`LeftOutBlocks`); otherwise the last step that does is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from scipy import linalg

from ..distributions import f_isf
from ..errors import EstimateError, nearest_match
from ..estimate import Estimate, NoiseGroup, System, group_of
from ..observe import Factor, Observations, merged_triangle
from ..text import counted, short_repr

Rule = Literal["f", "stepwise", "rsd", "bic", "none"]
RULES: tuple[str, ...] = get_args(Rule)

PARTS = 5
"""Parts of consecutive blocks into which every recording is cut; each is left out once."""

WORSE = 1.02
"""A reduced model may predict a part by this factor worse than all parameters do: less is chance."""

_NOT_EXCITED = 1e-8
"""Directions that the other parts excite less than this, relative to the strongest, get no value in a refit."""


@dataclass(frozen=True)
class ReductionStep:
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
        stopped: Why fewer parameters went than the rule alone would take; empty if the rule had its way.
    """

    __repr__ = short_repr

    rule: str
    threshold: float
    steps: tuple[ReductionStep, ...]
    estimate: Estimate
    protected: tuple[str, ...]
    stopped: str = ""


class LeftOutBlocks:
    """Prediction of blocks of time that a fit left out, from factors alone: training data judge a reduced model.

    Every recording is cut into parts of consecutive blocks. Each part is predicted by least squares of all others.

    Args:
        rows: Factors of the rows as measured, which are predicted.
        used: Factors of the rows that are fitted, whitened or not.
        weights: Weight of every noise group in the fit.
        columns: The parameters.
        unit_of: What an equation's torque is measured in, so that N and N m are not added; all alike by default.
        parts: Parts of every recording.

    Attributes:
        columns: The parameters.
        parts: For every part the triangle of the rows of all others, weighted, and of its own rows by unit.
    """

    def __init__(
        self,
        rows: Observations,
        used: Observations,
        weights: Mapping[NoiseGroup, float],
        columns: Sequence[str],
        unit_of: Callable[[Factor], str] = lambda factor: "",
        parts: int = PARTS,
    ) -> None:
        self.columns = tuple(columns)
        part = _parts_of_blocks(rows, parts)
        fitted = [factor for factor in used.factors if group_of(factor) in weights]
        units = sorted({unit_of(factor) for factor in rows.factors})
        self.parts: list[tuple[np.ndarray, list[np.ndarray]]] = []
        own = [[f for f in fitted if part[f.recording, f.block] == number] for number in range(parts)]
        merged = [merged_triangle(some, self.columns, lambda factor: weights[group_of(factor)])[0] for some in own]
        for left in range(parts):
            others = [merged[number] for number in range(parts) if number != left and own[number]]
            unseen = [f for f in rows.factors if part[f.recording, f.block] == left]
            if others and unseen:
                triangle = np.asarray(np.linalg.qr(np.vstack(others), mode="r"))
                by_unit = [[f for f in unseen if unit_of(f) == unit] for unit in units]
                self.parts.append((triangle, [merged_triangle(some, self.columns)[0] for some in by_unit]))

    def squares(self, columns: Sequence[str]) -> np.ndarray:
        """Return the squared prediction errors of every part and unit (p, u) with these parameters alone."""
        index = [self.columns.index(name) for name in columns]
        found = []
        for triangle, unseen in self.parts:
            values = scaled_least_squares(triangle[:, index], triangle[:, -1], _NOT_EXCITED)
            found.append([np.sum((rows[:, index] @ values - rows[:, -1]) ** 2) for rows in unseen])
        return np.array(found)


def reduce_parameters(
    estimate: Estimate,
    rule: str = "f",
    protected: Sequence[str] = (),
    *,
    level: float = 0.05,
    relative_sigma: float = 20.0,
    left_out: LeftOutBlocks | None = None,
    hold: str = "",
) -> Reduction:
    """Leave out the parameters that the data do not need.

    Args:
        estimate: The estimate of all base parameters.
        rule: ``f``, ``stepwise``, ``rsd``, ``bic`` or ``none``.
        protected: Columns that stay whatever the statistics say (P2.7): those excited in rare motions only.
        level: Level of the F tests.
        relative_sigma: Threshold of ``rsd`` [%].
        left_out: Blocks of the training data that a reduced model has to predict as well as the full one.
        hold: A reason to leave out nothing at all, such as recordings that disagree.

    Raises:
        EstimateError: If the rule or a protected name is unknown.
    """
    if rule not in RULES:
        raise EstimateError(f"reduction: got '{rule}', allowed are {', '.join(RULES)}{nearest_match(rule, RULES)}")
    for name in protected:
        if name not in estimate.columns:
            known = nearest_match(name, estimate.columns)
            raise EstimateError(f"protected parameter '{name}' is not among those estimated{known}")
    critical = float(f_isf(level, 1, estimate.system.freedom))
    path = iter(()) if hold or rule == "none" else _elimination(estimate, set(protected), rule)
    steps, stopped = _until(rule, path, estimate, level, relative_sigma), hold
    if steps and left_out is not None:
        steps, stopped = _predicting(steps, estimate.columns, left_out)
    threshold = {"f": critical, "stepwise": critical, "rsd": relative_sigma}.get(
        rule, steps[-1].bic if steps else _bic(estimate.system)
    )
    gone = {step.name for step in steps}
    left = [name for name in estimate.columns if name not in gone]
    return Reduction(rule, threshold, steps, _restricted(estimate, left), tuple(protected), stopped)


def _elimination(estimate: Estimate, protected: set[str], rule: str) -> Iterator[ReductionStep]:
    """Yield the steps of the whole way down: each takes the parameter with the largest relative sigma."""
    full = estimate.system
    scale = _variance(full) if estimate.method == "ols" else 1.0
    gain = dict(zip(estimate.columns, estimate.sigma / np.sqrt(scale * np.diag(full.inverse)), strict=True))
    system, gone = full, []
    while True:
        sigma = np.sqrt(np.diag(_carried(estimate, system)))
        t = np.abs(system.values) / sigma
        free = [k for k, name in enumerate(system.columns) if name not in protected]
        if not free or len(system.columns) == 1:
            return
        weakest = min(free, key=lambda k: t[k])
        name = system.columns[weakest]
        gone.append(name)
        smaller = system.restricted([other for other in system.columns if other != name])
        if rule == "stepwise":
            f = (smaller.squares - system.squares) / _variance(system) / gain[name] ** 2
            total = (smaller.squares - full.squares) / len(gone) / _variance(full)
        else:
            f, total = float(t[weakest] ** 2), _wald(estimate, gone)
        relative = float(100 / t[weakest]) if t[weakest] > 0 else float("inf")
        yield ReductionStep(name, relative, f, total, _bic(smaller))
        system = smaller


def _carried(estimate: Estimate, system: System) -> np.ndarray:
    """Return the covariance of a system's solution, from the one that is reported for all parameters.

    With ``A = W^T W`` and parameters S left out, those left are ``x_R + A_RR^-1 A_RS x_S``: linear in x.
    """
    if len(system.columns) == len(estimate.columns):
        return estimate.covariance
    full = estimate.system
    left = [full.columns.index(name) for name in system.columns]
    gone = [k for k in range(len(full.columns)) if k not in set(left)]
    root = full.triangle[:-1, :-1]
    carry = np.zeros((len(left), len(full.columns)))
    carry[:, left] = np.eye(len(left))
    carry[:, gone] = system.inverse_root @ (system.inverse_root.T @ (root[:, left].T @ root[:, gone]))
    return carry @ estimate.covariance @ carry.T


def _wald(estimate: Estimate, gone: Sequence[str]) -> float:
    """Return ``x_S^T C_SS^-1 x_S / rank`` of parameters S of the full model."""
    index = [estimate.columns.index(name) for name in gone]
    sigma = estimate.sigma[index]
    sizes, vectors = np.linalg.eigh(estimate.covariance[np.ix_(index, index)] / np.outer(sigma, sigma))
    held = sizes > _NOT_EXCITED * sizes[-1]
    along = vectors[:, held].T @ (estimate.values[index] / sigma)
    return float(np.mean(along**2 / sizes[held]))


def _variance(system: System) -> float:
    """Return the variance of a weighted equation, from this system's own residuals (P5.6)."""
    return system.squares / system.freedom if system.squares > 0 else 1e-300


def _until(
    rule: str, path: Iterator[ReductionStep], estimate: Estimate, level: float, largest: float
) -> tuple[ReductionStep, ...]:
    """Return the steps that a rule takes; only ``bic`` has to see the whole path."""
    if rule == "bic":
        steps = tuple(path)
        criteria = [_bic(estimate.system), *(step.bic for step in steps)]
        return steps[: int(np.argmin(criteria))]
    freedom = estimate.system.freedom
    taken: list[ReductionStep] = []
    for step in path:
        needed = step.f >= f_isf(level, 1, freedom)
        if rule == "f":
            needed |= step.total_f >= f_isf(level, len(taken) + 1, freedom)
        if rule == "rsd":
            needed = step.relative_sigma <= largest
        if needed:
            break
        taken.append(step)
    return tuple(taken)


def _predicting(
    steps: tuple[ReductionStep, ...], columns: Sequence[str], left_out: LeftOutBlocks
) -> tuple[tuple[ReductionStep, ...], str]:
    """Return the steps after which left-out blocks are still predicted as well as with all columns, and why not all.

    No step on the way may predict any part worse than by a factor; the last one none the worse in all parts together.
    """
    left, full = list(columns), left_out.squares(columns)
    taken = 0
    for number, step in enumerate(steps, 1):
        left.remove(step.name)
        now = left_out.squares(left)
        worst = np.sqrt(np.max(now / np.maximum(full, 1e-300), initial=0.0))
        if worst > WORSE:
            break
        if np.all(now.sum(axis=0) <= full.sum(axis=0)):
            taken = number
    if taken == len(steps):
        return steps, ""
    return steps[:taken], (
        f"the rule would leave out {counted(len(steps), 'parameter')}; it was stopped after {taken}, because with "
        "fewer the parts of the training data that a fit leaves out are predicted worse than with all parameters"
    )


def _parts_of_blocks(rows: Observations, parts: int) -> dict[tuple[str, int], int]:
    """Return the part of every block of every recording: consecutive blocks share one."""
    blocks: dict[str, set[int]] = {}
    for factor in rows.factors:
        blocks.setdefault(factor.recording, set()).add(factor.block)
    return {
        (recording, block): k * parts // len(numbers)
        for recording, numbers in blocks.items()
        for k, block in enumerate(sorted(numbers))
    }


def scaled_least_squares(rows: np.ndarray, y: np.ndarray, rcond: float) -> np.ndarray:
    """Return least squares (c,) of rows (m, c), columns at unit length; directions below ``rcond`` get no value."""
    scale = np.linalg.norm(rows, axis=0)
    scale[scale == 0] = 1.0
    values, *_ = linalg.lstsq(rows / scale, y, cond=rcond, lapack_driver="gelsy", check_finite=False)  # type: ignore[misc]
    return values / scale


def _bic(system: System) -> float:
    mean = max(system.squares, 1e-300) / system.rows
    return float(system.rows * np.log(mean) + len(system.columns) * np.log(system.rows))


def _restricted(estimate: Estimate, left: Sequence[str]) -> Estimate:
    """Return the estimate with only these columns, its covariance carried over from that of all."""
    if len(left) == len(estimate.columns):
        return estimate
    system = estimate.system.restricted(left)
    index = [estimate.columns.index(name) for name in left]
    return replace(
        estimate, system=system, values=system.values, covariance=_carried(estimate, system),
        freedom=estimate.freedom[index], after_selection=True,
    )  # fmt: skip
