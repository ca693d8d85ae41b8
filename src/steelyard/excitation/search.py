"""The search for the best motion: generations on a coarse grid of instants, the best polished, and the best proven.

The best motions of all generations go on on a fine grid, and are settled so that every limit is kept at every instant.
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
from .certify.certificate import Certifier, LimitFinding
from .descent import (
    LARGEST_PENALTY,
    LATE,
    POLISHING,
    DescentState,
    FeasibleMotion,
    descended,
    made_feasible,
    repaired,
    shrunk,
)
from .generations import KEPT, Candidate, by_merit, generations, in_parallel, rounds_of
from .problem import Multipliers, Problem

FINER = 2
"""How many times finer the grid becomes for the last rounds."""

FINALISTS = 2
"""Motions that go on on the fine grid."""


@dataclass(frozen=True)
class SearchProgress:
    """How far the search is.

    Attributes:
        done: Rounds done, of ``total``.
        total: Rounds in all.
        value: Best objective so far, as it is told; None before the first.
        violation: Largest violation of that motion on the grid, as a part of its limit; 0 where all is kept.
    """

    done: int
    total: int
    value: float | None
    violation: float


SearchCallback = Callable[[SearchProgress], None]


def no_progress(update: SearchProgress) -> None:
    """SearchCallback nobody."""


@dataclass(frozen=True, eq=False)
class SearchStart:
    """What became of one motion that the search began with.

    Attributes:
        number: Its number, from 0.
        origin: Number of the motion that it is a disturbance of; None if it was drawn at random.
        value: Objective after its coarse rounds, as it is told.
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
        starts: What became of each start.
        is_interrupted: Whether the search was ended before its time.
    """

    problem: Problem
    best: FeasibleMotion
    starts: tuple[SearchStart, ...]
    is_interrupted: bool


class _Workers:
    """Keeps the best motion so far and tells it; shared by the threads."""

    def __init__(self, total: int, threads: int, callback: SearchCallback, stop: threading.Event) -> None:
        self.threads, self.stop = threads, stop.is_set
        self._lock, self._report, self._total, self._ended = threading.Lock(), callback, total, stop
        self._done, self._value, self._violation = 0, None, 0.0

    def round_done(self, state: DescentState | None = None, rounds: int = 1) -> None:
        """Count rounds and tell how far the search is."""
        with self._lock:
            self._done += rounds
            if state is not None and state.violation <= KEPT and (self._value is None or state.value < self._value):
                self._value, self._violation = state.value, max(state.violation, 0.0)
            try:
                self._report(SearchProgress(min(self._done, self._total), self._total, self._value, self._violation))
            except KeyboardInterrupt:  # who is told may end the search, too
                self._ended.set()


@contextmanager
def interruptible(stop: threading.Event) -> Iterator[None]:
    """Let an interrupt end the search with what it has; a second one ends the program.

    An exception could be raised at any place, and what was found be lost: a handler only says that it shall end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def heed(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, heed)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


def search(
    problem: Problem,
    certifier: Certifier,
    *,
    starts: int,
    seed: int,
    threads: int = 1,
    callback: SearchCallback = no_progress,
) -> Found:
    """Return the best motion that could be proven.

    Args:
        problem: The problem on its coarse grid.
        certifier: What proves it.
        starts: Number of random motions to start from.
        seed: Of those.
        threads: Motions that are worked on at the same time.
        callback: Called with the progress of the search.

    Raises:
        DesignError: If no motion was found that keeps all constraints: the constraint that cannot be met is named.
    """
    if starts < 1:
        raise DesignError(f"{starts} starts; at least 1 is needed")
    stop = threading.Event()
    workers = _Workers(rounds_of(starts) + FINALISTS * (len(POLISHING) + 1), threads, callback, stop)
    with interruptible(stop):
        return _found(problem, certifier, generations(problem, starts, seed, workers), workers)


def _found(problem: Problem, certifier: Certifier, begun: Sequence[Candidate], workers: _Workers) -> Found:
    fine = replace(problem, grid=FINER * problem.grid)
    best = by_merit(begun)
    if workers.stop():
        best = by_merit(in_parallel(lambda one: _hurried(problem, one), best, workers.threads))
    finalists = best[:FINALISTS]
    proven = in_parallel(
        lambda one: _finished(problem, fine, certifier, one.state, workers), finalists, workers.threads
    )
    final = {one.number: found for one, found in zip(finalists, proven, strict=True) if found is not None}
    workers.round_done(rounds=(FINALISTS - len(finalists)) * (len(POLISHING) + 1))
    if not final and workers.stop():
        raise DesignError("interrupted before a motion was proven to keep the limits: there is nothing to keep yet")
    if not final:
        final = _rescued(fine, problem, certifier, best)
    told = tuple(
        SearchStart(
            one.number, one.origin, one.state.value, max(one.state.violation, 0.0),
            final[one.number].value if one.number in final else None,
        )
        for one in begun
    )  # fmt: skip
    return Found(fine, min(final.values(), key=lambda found: found.value), told, workers.stop())


def _hurried(problem: Problem, one: Candidate) -> Candidate:
    """Return a motion that an interrupt caught on its way, where limits may be broken by far, within them."""
    if one.state.violation <= KEPT:
        return one
    firm = replace(one.state.multipliers, penalty=LARGEST_PENALTY)
    return replace(one, state=descended(problem, replace(one.state, multipliers=firm), LATE[-2:], lambda: False))


def _finished(
    problem: Problem, fine: Problem, certifier: Certifier, state: DescentState, workers: _Workers
) -> FeasibleMotion | None:
    spread = tuple(np.repeat(values, FINER, axis=1) / FINER for values in state.multipliers.values)
    multipliers = Multipliers(spread, state.multipliers.penalty, state.multipliers.margins)
    state = replace(state, z=fine.variables_of(*problem.coefficients(state.z)), multipliers=multipliers)
    for one in POLISHING:
        state = descended(fine, state, [one], workers.stop)
        workers.round_done(state)
    found = made_feasible(fine, certifier, state, workers.stop)
    workers.round_done()
    return found


def _rescued(
    fine: Problem, problem: Problem, certifier: Certifier, best: Sequence[Candidate]
) -> dict[int, FeasibleMotion]:
    """Return the first motion, in the order of merit, that can be proven when it is repaired or shrunk.

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
    """Return a sentence that names what cannot be met, by how much, in the motion that comes closest."""
    worst = certifier(problem.trajectory(state.z)).worst_violation
    if worst is None:
        return "no motion could be proven to keep all limits; widen the tightest of them, or allow a longer duration"
    return (
        f"no motion was found that keeps '{worst.name}': the one that comes closest reaches {_told(worst)} at "
        f"{worst.instant:.3g} s; widen that limit (--limits FILE, --position-scale), or change what "
        "stands in its way (--floor HEIGHT or none)"
    )


def _told(finding: LimitFinding) -> str:
    return f"{finding.worst:.4g}, the limit is {finding.limit:.4g} (off by {finding.violation:.3g})"
