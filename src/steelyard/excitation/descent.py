"""Local optimisation of a motion: an augmented Lagrangian minimised by L-BFGS, and its limits made to hold everywhere.

An augmented Lagrangian needs only the sum of the constraints' gradients, weighted by their multipliers: one reverse
pass, however many constraints there are. The penalty starts small, as a large one would hold the motion where it is.
The smoothed criterion is sharpened from stage to stage.

The descent keeps limits at the instants of a grid. For continuous time, what the certificate finds beyond a limit is
added to that limit's margin and the descent continues; if that is not enough, the motion is shrunk towards a posture in
which the arm may rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from .certify.certificate import Certificate, Certifier
from .problem import Multipliers, Problem

FIRST_PENALTY, LARGEST_PENALTY, GROWTH = 0.1, 100.0, 3.0
REPAIR_PENALTY = 100.0
CAREFUL_PENALTY = 300.0
"""With this a motion that keeps the constraints goes on keeping them."""

ENOUGH_DROP = 0.3
"""If a stage leaves more than this part of the violation, the penalty grows."""

MEMORY = 30
"""Steps that L-BFGS remembers."""

ROUGH, CLOSE, FINE = 1e-4, 1e-8, 1e-9
"""Relative gain of a step below which a stage ends: early stages only need to find the right basin."""

NEAR = 1e-3
SMALL_GRADIENT = 1e-5
"""Largest slope at which a stage ends."""

Stop = Callable[[], bool]
"""Returns whether the search shall end with the best motion so far."""


@dataclass(frozen=True)
class PenaltyStage:
    """One run of L-BFGS, multipliers and penalty as they are.

    Attributes:
        sharpness: Of the smoothed criterion.
        tolerance: Relative gain of a step below which it ends.
        steps: Most steps.
        weight: Of the objective; with 0 the constraints alone count.
        reach: How far the first step may go, in units of the variables. L-BFGS knows nothing of the scale then, and an
            augmented Lagrangian has other minima, away from all constraints: near the end it must not jump there.
    """

    sharpness: float
    tolerance: float
    steps: int
    weight: float = 1.0
    reach: float = 1.0


REPAIR = PenaltyStage(1.0, FINE, 200, 0.0)
EARLY = tuple(PenaltyStage(sharpness, ROUGH, 120) for sharpness in (1.0, 2.0, 4.0, 8.0))
"""Stages after which motions can be ranked by their augmented Lagrangian."""

LATE = tuple(PenaltyStage(sharpness, CLOSE, 300) for sharpness in (16.0, 32.0, 64.0, 64.0))
POLISHING = tuple(PenaltyStage(sharpness, FINE, 500, reach=NEAR) for sharpness in (64.0, 128.0, 256.0))
FEASIBILITY = (PenaltyStage(256.0, FINE, 60, reach=NEAR),) * 2


@dataclass(frozen=True, eq=False)
class DescentState:
    """A motion on the way.

    Attributes:
        z: Its variables.
        multipliers: Those of the augmented Lagrangian.
        violation: Its largest constraint on the grid, margins included; at most 0 where all are kept.
        value: The exact objective on the grid.
        augmented: The augmented Lagrangian after the last stage: about what the objective, as it was smoothed there,
            will be once the constraints are kept. To be compared with that of other motions after the same stages only.
    """

    z: np.ndarray
    multipliers: Multipliers
    violation: float
    value: float
    augmented: float = np.inf


def state_of(problem: Problem, z: np.ndarray, margins: Sequence[np.ndarray] | None = None) -> DescentState:
    """Return a state without multipliers."""
    multipliers = problem.no_multipliers(FIRST_PENALTY, margins)
    return DescentState(z, multipliers, _violation(problem.constraints(z), multipliers), problem.exact(z))


def repaired(problem: Problem, state: DescentState, stop: Stop) -> DescentState:
    """Return a motion that keeps the constraints on the grid, or comes as close as it can: they alone count."""
    strict = replace(state.multipliers, penalty=REPAIR_PENALTY)
    z, _ = _descended(problem, state.z, strict, REPAIR, stop)
    return state_of(problem, z, state.multipliers.margins)


def descended(problem: Problem, state: DescentState, stages: Sequence[PenaltyStage], stop: Stop) -> DescentState:
    """Return a better motion after some stages."""
    for one in stages:
        if stop():
            break
        z, augmented = _descended(problem, state.z, state.multipliers, one, stop)
        constraints = problem.constraints(z)
        violation = _violation(constraints, state.multipliers)
        multipliers = _updated(state.multipliers, constraints, is_slow=violation > ENOUGH_DROP * state.violation)
        state = DescentState(z, multipliers, violation, problem.exact(z), augmented)
    return state


def _descended(
    problem: Problem, z: np.ndarray, multipliers: Multipliers, one: PenaltyStage, stop: Stop
) -> tuple[np.ndarray, float]:
    """Return the variables after a stage and the augmented Lagrangian there."""

    def heed(intermediate_result: object) -> None:
        if stop():
            raise StopIteration

    def scaled(away: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = problem.lagrangian(z + one.reach * away, multipliers, one.sharpness, one.weight)
        return value, one.reach * gradient

    low, high = problem.bounds()
    result = minimize(
        scaled, np.zeros_like(z), jac=True, method="L-BFGS-B", callback=heed,
        bounds=list(zip((low - z) / one.reach, (high - z) / one.reach, strict=True)),
        options={
            "maxiter": one.steps, "maxfun": 2 * one.steps, "maxcor": MEMORY, "ftol": one.tolerance,
            "gtol": one.reach * SMALL_GRADIENT,
        },
    )  # fmt: skip
    return np.clip(z + one.reach * result.x, low, high), float(result.fun)


def _updated(given: Multipliers, constraints: Sequence[np.ndarray], is_slow: bool) -> Multipliers:
    values = tuple(
        np.maximum(0.0, value + given.penalty * (constraint + margin[:, None]))
        for value, constraint, margin in zip(given.values, constraints, given.margins, strict=True)
    )
    penalty = max(given.penalty, min(given.penalty * (GROWTH if is_slow else 1.0), LARGEST_PENALTY))
    return Multipliers(values, penalty, given.margins)


def _violation(constraints: Sequence[np.ndarray], multipliers: Multipliers) -> float:
    return max(
        float((constraint + margin[:, None]).max())
        for constraint, margin in zip(constraints, multipliers.margins, strict=True)
    )


ITERATIONS = 8
"""Times that margins are raised."""

BEYOND, LEAST_RAISE = 1.5, 1e-4
"""Margins grow by this many times what was found beyond the limit, and at least so much: going on moves the peaks."""

LEAST_MARGIN = 1e-5
"""Part of a limit that is kept clear of it, so that it can be decided that the limit is kept."""

PARTS = (*(1 - 10.0**-k for k in (5, 4, 3, 2)), *(0.97 * 0.9**k for k in range(60)))
"""Parts to which a motion is shrunk, one after the other."""


@dataclass(frozen=True, eq=False)
class FeasibleMotion:
    """A motion that keeps every limit at every instant.

    Attributes:
        z: Its variables.
        value: The exact objective on the grid.
        certificate: The proof.
    """

    z: np.ndarray
    value: float
    certificate: Certificate


def made_feasible(problem: Problem, certifier: Certifier, state: DescentState, stop: Stop) -> FeasibleMotion | None:
    """Return the motion with all limits kept over continuous time; None if none was found near it."""
    firm = max(state.multipliers.penalty, LARGEST_PENALTY)
    margins = [np.full(len(block.names), LEAST_MARGIN) for block in problem.blocks]
    for _ in range(ITERATIONS):
        certificate = certifier(problem.trajectory(state.z), decide=True)
        if certificate.holds or stop():
            break
        _raise(margins, problem, certificate)
        tightened = Multipliers(state.multipliers.values, firm, tuple(margins))
        state = descended(problem, DescentState(state.z, tightened, state.violation, state.value), FEASIBILITY, stop)
    return shrunk(problem, certifier, state.z)


def shrunk(problem: Problem, certifier: Certifier, z: np.ndarray) -> FeasibleMotion | None:
    """Return the motion, or the largest part of it about a posture of rest, that keeps every limit at every instant."""
    part = largest_part(problem, certifier, z)
    if part is None:
        return None
    certificate = certifier(problem.trajectory(part))
    return FeasibleMotion(part, problem.exact(part), certificate) if certificate.holds else None


def largest_part(problem: Problem, certifier: Certifier, z: np.ndarray) -> np.ndarray | None:
    """Return the variables of that part, without the worst value of each limit, which takes longer to find."""
    if certifier(problem.trajectory(z), decide=True).holds:
        return z
    rest = resting(problem, z)
    for part in PARTS:
        if certifier(problem.trajectory(rest + part * (z - rest)), decide=True).holds:
            return rest + part * (z - rest)
    return None


def resting(problem: Problem, z: np.ndarray) -> np.ndarray:
    """Return the variables of standing still in that posture of a motion which is farthest from all limits."""
    postures = problem.samples(z)[0]
    standing = np.zeros((4, *postures.shape))
    standing[0] = postures
    constraints = [block.values(standing).max(axis=0) for block in problem.blocks]
    best = int(np.argmin(np.max(constraints, axis=0)))
    time_scale = problem.coefficients(z)[1]
    return problem.variables_of(problem.family.still(postures[:, best]), time_scale)


def _raise(margins: list[np.ndarray], problem: Problem, certificate: Certificate) -> None:
    """Raise the margins by what was found beyond each limit."""
    beyond = {finding.name: finding.violation for finding in certificate.findings}
    for margin, block in zip(margins, problem.blocks, strict=True):
        excess = np.array([beyond.get(name, 0.0) for name in block.names]) / block.units
        margin += BEYOND * excess + LEAST_RAISE * (excess > 0)
