"""The search for the best motion: generations on a coarse grid of instants, the best refined and certified.

The best motions of all generations are optimised on a fine grid, and made to keep every limit at every instant. Random
motions under the same limits are the baseline that a design is compared with.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

import numpy as np

from ..errors import DesignError
from ..motion import Trajectory
from ..workers import Shared, Workers
from .assembly import Assembled
from .certify.certificate import Certifier
from .descent import (
    LARGEST_PENALTY,
    LATE,
    POLISHING,
    DescentState,
    FeasibleMotion,
    Stop,
    descended,
    largest_part,
    made_feasible,
    repaired,
    resting,
    shrunk,
)
from .generations import (
    FEASIBLE,
    Candidate,
    SearchCallback,
    SearchRun,
    by_merit,
    drawn_motion,
    generations,
    no_progress,
    stages_of,
)
from .predicted_accuracy import Figures, middle_figures
from .problem import Multipliers, Problem

FINER = 2
"""How many times finer the grid becomes for the last stages."""

FINALISTS = 2
"""Motions that go on on the fine grid."""

_FINAL_STAGES = len(POLISHING) + 1


@dataclass(frozen=True, eq=False)
class SearchStart:
    """The outcome of one motion that the search began with.

    Attributes:
        number: Its number, from 0.
        origin: Number of the motion that it is a disturbance of; None if it was drawn at random.
        value: Exact objective after its stages on the coarse grid.
        violation: Largest violation there on the grid, as a part of a limit; 0 where all is kept.
        final: Objective of the proven motion; None if it was left behind or could not be proven.
    """

    number: int
    origin: int | None
    value: float
    violation: float
    final: float | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """The best motion.

    Attributes:
        problem: The problem on the fine grid.
        best: The motion and its proof.
        starts: Outcome of each start.
        is_interrupted: Whether the search was ended before its time.
    """

    problem: Problem
    best: FeasibleMotion
    starts: tuple[SearchStart, ...]
    is_interrupted: bool


@contextmanager
def interruptible(stop: threading.Event) -> Iterator[None]:
    """Let an interrupt end the search with the best motion so far; a second one ends the program.

    An exception could be raised at any place, and the motions found so far be lost: the handler only sets the event.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end_search(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, end_search)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


def search(
    shared: Shared[Assembled], workers: Workers, *, starts: int, seed: int, callback: SearchCallback = no_progress
) -> Found:
    """Return the best motion that could be certified; it does not depend on the workers.

    Args:
        shared: The problem on its coarse grid and its certifier, and what assembles them in a worker process.
        workers: What works on several motions at the same time.
        starts: Number of random motions to start from.
        seed: Of those.
        callback: Called with the progress of the search.

    Raises:
        DesignError: If no motion was found that keeps all constraints: the constraint that cannot be met is named.
    """
    run = SearchRun(shared, workers, stages_of(starts) + FINALISTS * _FINAL_STAGES, callback)
    with interruptible(workers.stopping):
        return _found(shared.here, generations(run, starts, seed), run)


def _found(ready: Assembled, begun: Sequence[Candidate], run: SearchRun) -> Found:
    problem, certifier = ready.problem, ready.certifier
    best = by_merit(begun)
    if run.is_stopped:
        best = by_merit(run.results(hurried_candidate, best, 0))
    finalists = best[:FINALISTS]
    proven = run.results(proven_motion, [one.state for one in finalists], _FINAL_STAGES, lambda pair: pair[0])
    final = {one.number: found for one, (_, found) in zip(finalists, proven, strict=True) if found is not None}
    run.stages_done((FINALISTS - len(finalists)) * _FINAL_STAGES)
    if not final and run.is_stopped:
        raise DesignError("interrupted before a motion was proven to keep the limits: there is nothing to keep yet")
    fine = _finer(problem)
    if not final:
        final = _rescued(fine, problem, certifier, best)
    outcomes = tuple(
        SearchStart(
            one.number, one.origin, one.state.value, max(one.state.violation, 0.0),
            final[one.number].value if one.number in final else None,
        )
        for one in begun
    )  # fmt: skip
    return Found(fine, min(final.values(), key=lambda found: found.value), outcomes, run.is_stopped)


def _finer(problem: Problem) -> Problem:
    return replace(problem, grid=FINER * problem.grid)


def hurried_candidate(assembled: Assembled, one: Candidate, stop: Stop) -> Candidate:
    """Return a motion within its limits from one that was interrupted far from feasible."""
    if one.state.violation <= FEASIBLE:
        return one
    firm = replace(one.state.multipliers, penalty=LARGEST_PENALTY)
    start = replace(one.state, multipliers=firm)
    return replace(one, state=descended(assembled.problem, start, LATE[-2:], lambda: False))


def proven_motion(assembled: Assembled, state: DescentState, stop: Stop) -> tuple[DescentState, FeasibleMotion | None]:
    """Return a motion after its stages on the fine grid, and made to keep every limit at every instant."""
    problem, fine = assembled.problem, _finer(assembled.problem)
    spread = tuple(np.repeat(values, FINER, axis=1) / FINER for values in state.multipliers.values)
    multipliers = Multipliers(spread, state.multipliers.penalty, state.multipliers.margins)
    state = replace(state, z=fine.variables_of(*problem.coefficients(state.z)), multipliers=multipliers)
    state = descended(fine, state, POLISHING, stop)
    return state, made_feasible(fine, assembled.certifier, state, stop)


def _rescued(
    fine: Problem, problem: Problem, certifier: Certifier, best: Sequence[Candidate]
) -> dict[int, FeasibleMotion]:
    """Return the first motion, best first, that can be certified after it is repaired or shrunk.

    Raises:
        DesignError: If there is none: what cannot be met is named.
    """
    closest = []
    for one in best:
        found = shrunk(fine, certifier, fine.variables_of(*problem.coefficients(one.state.z)))
        if found is None:
            mended = repaired(problem, one.state, lambda: False)
            closest.append(mended)
            found = shrunk(fine, certifier, fine.variables_of(*problem.coefficients(mended.z)))
        if found is not None:
            return {one.number: found}
    raise DesignError(_impossible(problem, certifier, min(closest, key=lambda state: state.violation)))


def _impossible(problem: Problem, certifier: Certifier, state: DescentState) -> str:
    """Return the message with the limit that the closest motion breaks, and by how much."""
    worst = certifier(problem.trajectory(state.z)).worst_violation
    if worst is None:
        return "no motion could be proven to keep all limits; widen the tightest of them, or allow a longer duration"
    return (
        f"no motion was found that keeps '{worst.name}': the one that comes closest reaches {worst.worst:.4g}, the "
        f"limit is {worst.limit:.4g} (off by {worst.violation:.3g}) at {worst.instant:.3g} s; widen that limit "
        "(--limits FILE, --position-scale), or change what stands in its way (--floor HEIGHT or none)"
    )


RANDOM_MOTIONS = 5
_GROWTHS = 20
_SEEDS_APART = 1_000_000
"""Seeds of the random motions are none of those that a search starts from."""


def random_baseline(
    problem: Problem, certifier: Certifier, forecast: Callable[[Trajectory], Figures], seed: int
) -> Figures | None:
    """Return the medians of figures of random motions of the same kind and duration, as large as the limits allow.

    Args:
        problem: The family of motions and their constraints.
        certifier: Certifies that they hold.
        forecast: Returns the figures of a motion.
        seed: Of the motions.

    Returns:
        The medians; None if no random motion could be made to keep the limits.
    """
    found = []
    for number in range(RANDOM_MOTIONS):
        drawn = drawn_motion(problem, np.random.default_rng([_SEEDS_APART + seed, number]), lambda: False)
        proven = largest_part(problem, certifier, grown(problem, drawn.z))
        if proven is not None:
            found.append(forecast(problem.trajectory(proven)))
    return middle_figures(found) if found else None


def grown(problem: Problem, z: np.ndarray) -> np.ndarray:
    """Return the motion made larger about a posture of rest until it reaches a limit on the grid."""
    rest = resting(problem, z)
    low, high = 1.0, 16.0
    for _ in range(_GROWTHS):
        part = float(np.sqrt(low * high))
        worst = max(float(values.max()) for values in problem.constraints(rest + part * (z - rest)))
        low, high = (part, high) if worst <= 0 else (low, part)
    return rest + low * (z - rest)
