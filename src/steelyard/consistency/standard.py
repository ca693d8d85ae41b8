"""Standard parameters of an arm that can exist: those of the data where they speak, else those of a prior or reference.

Data determine base parameters, sums of standard ones. Which of the many arms with the same torques is meant, the prior
decides: inertias of the robot file, with a relative deviation that is given or chosen by held-out error. Without one,
the robot file's values, or an arm of usual build, are a reference that decides only what no torque depends on: it
weighs so little that it moves nothing that the data show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from ..errors import EstimateError
from ..estimate import Estimate, System
from ..judge import LeftOutBlocks
from ..model import Model
from ..observe import Equations
from ..robot import Robot
from ..text import short_repr
from .agreement import PriorUsed, chosen_prior, with_disagreements
from .constraints import ConsistencySettings
from .problem import CHANCE_OF_A_LINK, REFERENCE, StandardProblem
from .programme import InfeasibleError, Programme, Solution, smallest_eigenvalues, solve
from .pseudo_inertia import divergence_hessian, smat

EDGE = 1e-2
"""A link is at the edge of the possible if its pseudo-inertia, in units of its reference, has a smaller eigenvalue."""

MOSTLY = 0.9
"""Share of the information from which a value is said to come from data alone; less the rest: from the prior alone."""

_ACTIVE = 1e-5
"""Room below which a bound of the user, as a row of unit length in the unknowns, holds a value."""

_MOST_REPEATS, _UNMOVED, _HELD = 5, 1e-6, 1e-3
"""Repeats of a solution without prior, the change in sigmas below which they end, and what may move afterwards."""


@dataclass(frozen=True, eq=False)
class StandardParameters:
    """All standard parameters of a model, as an arm that can exist has them.

    Attributes:
        model: The model; its robot is the arm as its file gives it.
        values: Value of every standard parameter (p,), in the order of ``model.names``.
        covariance: Their covariance (p, p); rows of parameters that only the reference decides mean nothing.
        share: Share of the information on each that comes from the data (p,), 0 to 1; 0 for a value without a prior
            of its own that the data do not determine by themselves; without any prior 1 if they do, else 0.
        sources: ``data``, ``prior``, ``both`` or ``reference`` for each; ``pinned``, ``bound`` (an active bound of the
            user holds it) or ``robot file`` (a link that it declares without mass) for what is not estimated.
        reference: Values of the prior or reference (p,).
        prior: The prior; None if there was none.
        base: The consistent base parameters, as an estimate over all base columns.
        misfit: By how much the weighted sum of squared residuals grows by consistency and prior.
        edges: Links at the edge of what a body can be: the data draw them beyond it.
        zeros: Friction and drive inertias that are held at zero.
        active: User's bounds that hold a value.
        implausible: Mass of links that are far too heavy for this arm, and the largest plausible one [kg].
        mended: Links whose reference was no possible body and was replaced by the nearest one.
        sigmas_by: ``analytic`` or ``bootstrap``: how the covariance was found.
        massless: Links that stay without mass, as the robot file declares them.
        released: Links that the robot file declares without mass, against the data: they are identified.
    """

    __repr__ = short_repr

    model: Model
    values: np.ndarray
    covariance: np.ndarray
    share: np.ndarray
    sources: tuple[str, ...]
    reference: np.ndarray
    prior: PriorUsed | None
    base: Estimate
    misfit: float
    edges: tuple[str, ...]
    zeros: tuple[str, ...]
    active: tuple[str, ...]
    implausible: Mapping[str, tuple[float, float]]
    mended: tuple[str, ...]
    sigmas_by: str
    massless: tuple[str, ...] = ()
    released: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.model.names

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations (p,); 0 for what is given, NaN for what only a reference or a bound decides."""
        known = np.array([source not in ("reference", "bound") for source in self.sources])
        return np.where(known, np.sqrt(np.diag(self.covariance)), np.nan)

    @cached_property
    def robot(self) -> Robot:
        """The arm with these values."""
        return self.model.identified_robot(dict(zip(self.names, self.values.tolist(), strict=True)))


def standard_parameters(
    equations: Equations,
    estimate: Estimate,
    settings: ConsistencySettings | None = None,
    *,
    prior: Robot | None = None,
    origin: str = "",
    left_out: LeftOutBlocks | None = None,
) -> StandardParameters:
    """Return the physically consistent parameters nearest to what the data say.

    Args:
        equations: Model and base parameters.
        estimate: The estimate of the data alone.
        settings: Bounds and kind of the prior.
        prior: The robot whose inertias are the prior; None for none.
        origin: Where the prior's values come from.
        left_out: Blocks of the data by whose prediction the deviation of the prior is chosen, if none is given.

    Raises:
        EstimateError: If bounds contradict each other, or the prior is one of another arm.
    """
    settings = settings or ConsistencySettings()
    problem = StandardProblem(equations, estimate, settings, prior)
    used = None
    if prior is not None:
        used = with_disagreements(chosen_prior(problem, origin, left_out), problem)
    deviation = None if used is None else used.deviation
    programme, solution = _solved(problem, deviation)
    values = problem.values(solution)
    sizes = smallest_eigenvalues(programme, solution.x)
    edges = tuple(link for link, size in zip(problem.links, sizes, strict=True) if size < EDGE)
    zeros, active = _active(problem, programme, solution)
    covariance, share, sources = _information(problem, programme, solution)
    sources = _with_bounds(problem, programme, solution, sources)
    by = "analytic"
    if edges or zeros or active:  # elsewhere draws would only add chance to what is known exactly
        drawn = problem.draws(values, deviation, settings.draws, settings.seed)
        covariance, by = np.cov(drawn.T), "bootstrap"
    given = [k for k, source in enumerate(sources) if source in ("pinned", "robot file")]
    covariance[given, :] = covariance[:, given] = 0.0
    mended = tuple(link for link, body in zip(problem.links, problem.bodies, strict=True) if body.raised)
    return StandardParameters(
        problem.model, values, covariance, share, sources, problem.reference, used,
        _base_estimate(equations, estimate, values), problem.misfit(values), edges, zeros, active,
        problem.implausible(values), mended, by, tuple(problem.massless), problem.released,
    )  # fmt: skip


def _solved(problem: StandardProblem, deviation: float | None) -> tuple[Programme, Solution]:
    """Return the programme and its solution, one whose links are possible without what is fixed to them if it may be.

    A file with one of them changed keeps the links that are fixed to it. Where the data clearly contradict those, the
    arm is right as a whole, and the file has to be corrected.
    """

    def solution_of(programme: Programme) -> Solution:
        return _data_alone(problem, programme) if deviation is None else problem.solved(programme)

    programme = problem.programme(deviation)
    solution = solution_of(programme)
    if problem.keeps_fixed(problem.values(solution)):
        return programme, solution
    kept = problem.programme(deviation, keep_fixed=True)
    try:
        other = solution_of(kept)
    except EstimateError:
        return programme, solution
    cost = problem.misfit(problem.values(other)) - problem.misfit(problem.values(solution))
    return (kept, other) if cost <= CHANCE_OF_A_LINK else (programme, solution)


def _data_alone(problem: StandardProblem, programme: Programme) -> Solution:
    """Return the solution of the data alone, nearest to the reference where they say nothing.

    A far reference moves what the data show by a little. Drawn to the last solution instead of the reference, the next
    one is moved by ever less (iterated Tikhonov regularisation); then, with the data's directions held where they are,
    the reference decides the others.
    """
    solution = problem.solved(programme)
    for _ in range(_MOST_REPEATS):
        before = programme.rows @ solution.x
        solution = problem.solved(replace(programme, pull_to=solution.x))
        if np.linalg.norm(programme.rows @ solution.x - before) < _UNMOVED:
            break
    _, sizes, directions = np.linalg.svd(programme.rows, full_matrices=False)
    known, (rows, target, pull) = directions[sizes > np.sqrt(REFERENCE)], problem.reference_terms(programme)
    # Half the margin leaves links at the edge some room: without an interior the solver loses digits.
    held = replace(
        programme, rows=rows, target=target, pull=pull, margin=programme.margin / 2,
        equal=np.vstack([programme.equal, known]), value=np.concatenate([programme.value, known @ solution.x]),
    )  # fmt: skip
    try:
        nearest = solve(held).x
    except (InfeasibleError, EstimateError):
        return solution
    moved = np.linalg.norm(programme.rows @ (nearest - solution.x))
    is_possible = smallest_eigenvalues(programme, nearest).min() > programme.margin / 4
    return replace(solution, x=nearest) if is_possible and moved < _HELD else solution


def _active(problem: StandardProblem, programme: Programme, solution: Solution) -> tuple[tuple[str, ...], ...]:
    """Return the parameters held at zero, and the user's bounds that hold a value."""
    slack = programme.bound - programme.upper @ solution.x
    texts = [bound.text for bound in problem.bounds if not bound.equal for _ in bound.limit]
    given = zip(texts[len(problem.positive) :], slack[len(problem.positive) :], strict=True)
    # A bound that the user gave is worth naming even where the data alone would lie on it.
    bounds = dict.fromkeys(text for text, room in given if room < _ACTIVE)
    return tuple(problem.names[k] for k in problem.held_at_zero(solution)), tuple(bounds)


def _information(
    problem: StandardProblem, programme: Programme, solution: Solution
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return the covariance (p, p) without regard to inequalities, the share of the data (p,), and sources (p,)."""
    # Roots, not squares: of information that ranges over fifteen orders the squares would have no digits left.
    prior = np.diag(np.sqrt(programme.pull))
    for k, first in enumerate(programme.bodies):
        if programme.weights[k] > 0:
            block, inside = slice(first, first + 10), smat(solution.x[first : first + 10])
            prior[block, block] = np.sqrt(programme.weights[k]) * np.linalg.cholesky(divergence_hessian(inside)).T
    matrix, rows = problem.to_parameters, programme.rows
    if problem.pinned:  # their unknowns do not vary
        varied = linalg.null_space(programme.equal)
        matrix, rows, prior = matrix @ varied, rows @ varied, prior @ varied
    spread = _spread(np.vstack([rows, prior]), matrix)
    covariance, before = spread.T @ spread, np.sum(_spread(prior, matrix) ** 2, axis=0)
    given = np.ones(len(before), dtype=bool)
    given[np.setdiff1d(problem.free, problem.pinned)] = False
    gained = np.where(given, 0.0, np.clip(1 - np.diag(covariance) / np.where(given, 1.0, before), 0.0, 1.0))
    alone = _share_alone(problem, np.diag(covariance))
    if problem.prior is None:  # a share of what a reference knows would mean nothing
        share = (alone > 0).astype(float)
        return covariance, share, tuple("data" if part else "reference" for part in share)
    own = np.zeros(len(gained), dtype=bool)
    own[[k for n, place in enumerate(problem.links.values()) if problem.has_prior(n) for k in place]] = True
    own[problem.prior_drives] = True
    share = np.where(own, gained, alone)
    return covariance, share, tuple(map(_source, share, own, gained))


def _spread(root: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return S (n, p) with ``S^T S`` the covariance of ``matrix @ x``, if ``root^T root`` is the information on x."""
    triangle = np.asarray(np.linalg.qr(root, mode="r"))
    return linalg.solve_triangular(triangle.T, matrix.T, lower=True)


def _share_alone(problem: StandardProblem, variances: np.ndarray) -> np.ndarray:
    """Return the share (p,) of the information on each parameter that the data have without any prior.

    It is 0 for those that are no sum of excited base parameters.
    """
    varied = np.setdiff1d(problem.free, problem.pinned)
    regrouping, variances, share = problem.regrouping[:, varied], variances[varied], np.zeros(len(variances))
    sums = np.linalg.pinv(regrouping)
    determined = np.abs(sums @ regrouping - np.eye(len(sums))).max(axis=1) < 1e-9
    of_data = np.sum(linalg.solve_triangular(problem.root.T, sums.T, lower=True) ** 2, axis=0)
    share[varied] = np.where(determined, np.clip(variances / np.where(determined, of_data, 1.0), 0.0, 1.0), 0.0)
    return share


def _with_bounds(
    problem: StandardProblem, programme: Programme, solution: Solution, sources: Sequence[str]
) -> tuple[str, ...]:
    """Return the sources (p,) with what is not estimated: pinned, without mass by the file, or held by a bound."""
    found = list(sources)
    slack = programme.bound - programme.upper @ solution.x
    rows = [row for bound in problem.bounds if not bound.equal for row in bound.matrix]
    masses = {place[9] for place in problem.links.values()}
    signs = len(problem.positive)
    for row, room in zip(rows[signs:], slack[signs:], strict=True):
        places = np.flatnonzero(row).tolist() if room < _ACTIVE else []
        # A side of a box for the centre holds a first moment, whatever the mass is; a total mass holds no single one.
        held = [k for k in places if k not in masses] or [k for k in places if len(places) == 1 or found[k] != "data"]
        for k in held if len(held) == 1 or masses.issuperset(held) else ():
            found[k] = "bound"
    for k in range(len(found)):
        if k in problem.pinned:
            found[k] = "pinned"
        elif k not in problem.free:
            found[k] = "robot file"
    return tuple(found)


def _source(share: float, own: bool, gained: float) -> str:
    """Return where a value comes from.

    Args:
        share: Share of the data.
        own: Whether it has a prior of its own.
        gained: Part of its variance before that data and all priors take away.
    """
    if share >= MOSTLY:
        return "data"
    if own:
        return "both" if share > 1 - MOSTLY else "prior"
    # Data show a sum of it and of others, whose priors tell it apart.
    return "both" if gained >= MOSTLY else "reference"


def _base_estimate(equations: Equations, estimate: Estimate, values: np.ndarray) -> Estimate:
    """Return the consistent base parameters over all base columns, excited by the data or not."""
    base = equations.base.regrouping @ values
    size = len(equations.names)
    system = System(equations.names, np.zeros((size + 1, size + 1)), estimate.system.rows)
    unknown = np.full((size, size), np.nan)
    return replace(
        estimate, method="consistent", system=system, values=base, covariance=unknown, freedom=np.full(size, np.nan)
    )
