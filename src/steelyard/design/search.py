"""The search for the best motion: several starts, the best of them polished, and the best of those proven.

Each start is a random motion, repaired until it keeps the constraints and then improved on a coarse grid of instants.
The best of them go on on a fine grid, and are settled so that every limit is kept at every instant. Starts are
independent and their choice depends on their results alone: a seed gives the same answer on any number of cores.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

import numpy as np

from ..errors import DesignError
from .certify.certificate import Finding
from .certify.certifier import Certifier
from .descent import ANNEALING, CAREFUL_PENALTY, LARGEST_PENALTY, POLISHING, State, Stop, descended, repaired, state_of
from .problem import Multipliers, Problem
from .settling import Settled, settled, shrunk

REPAIR_STEPS, STEPS, POLISHING_STEPS = 200, 120, 150
FINER = 2
"""How many times finer the grid becomes for the last rounds."""

KEPT = 0.01
"""A start that violates a constraint by more than this part of its limit is behind all that do not."""

LARGE, SMALL = (1.0, 0.5), (0.3, 0.1)
"""Size and spread of random motions to start from."""

DRAWS, SMALLER = 8, 0.7
"""Random motions tried, each so much smaller than the one before, until one can be repaired."""


@dataclass(frozen=True)
class News:
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


Tell = Callable[[News], None]


def silent_news(news: News) -> None:
    """Tell nobody."""


@dataclass(frozen=True, eq=False)
class Start:
    """What became of one start.

    Attributes:
        number: Its number, from 0.
        value: Objective after its coarse rounds, as it is told.
        violation: Largest violation there on the grid, as a part of a limit; 0 where all is kept.
        final: Objective of the proven motion; None if it was left behind or could not be proven.
    """

    number: int
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
    best: Settled
    starts: tuple[Start, ...]
    is_interrupted: bool


class _Ledger:
    """Keeps the best motion so far and tells it; shared by the threads."""

    def __init__(self, total: int, tell: Tell, stop: threading.Event) -> None:
        self._lock, self._tell, self._total, self._stop = threading.Lock(), tell, total, stop
        self._done, self._value, self._violation = 0, None, 0.0

    def round_done(self, state: State | None = None, rounds: int = 1) -> None:
        with self._lock:
            self._done += rounds
            if state is not None and state.violation <= KEPT and (self._value is None or state.value < self._value):
                self._value, self._violation = state.value, max(state.violation, 0.0)
            try:
                self._tell(News(min(self._done, self._total), self._total, self._value, self._violation))
            except KeyboardInterrupt:  # who is told may end the search, too
                self._stop.set()


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
    problem: Problem, certifier: Certifier, *, starts: int, seed: int, threads: int = 1, tell: Tell = silent_news
) -> Found:
    """Return the best motion that could be proven.

    Args:
        problem: The problem on its coarse grid.
        certifier: What proves it.
        starts: Number of random motions to start from.
        seed: Of those.
        threads: Starts that run at the same time.
        tell: Told how far it is.

    Raises:
        DesignError: If no motion was found that keeps all constraints: the constraint that cannot be met is named.
    """
    if starts < 1:
        raise DesignError(f"{starts} starts; at least 1 is needed")
    rounds = starts * (len(ANNEALING) + 1) + _finalists(starts) * (len(POLISHING) + 2)
    stop = threading.Event()
    ledger = _Ledger(rounds, tell, stop)
    with interruptible(stop):
        return _found(problem, certifier, starts, seed, threads, ledger, stop)


def _finalists(starts: int) -> int:
    """Return how many starts go on on the fine grid."""
    return max(1, -(-starts // 3))


def _found(
    problem: Problem, certifier: Certifier, starts: int, seed: int, threads: int, ledger: _Ledger, stop: threading.Event
) -> Found:
    first = _all(
        lambda number: _started(problem, np.random.default_rng([seed, number]), number, ledger, stop.is_set),
        range(starts), threads,
    )  # fmt: skip
    if stop.is_set():
        broken = [number for number, state in first.items() if state.violation > KEPT]
        first |= _all(lambda number: _hurried(problem, first[number]), broken, threads)
    fine = replace(problem, grid=FINER * problem.grid)
    proven = _all(
        lambda number: _finished(problem, fine, certifier, first[number], ledger, stop.is_set),
        _by_merit(first)[: _finalists(starts)], threads,
    )  # fmt: skip
    final = {number: found for number, found in proven.items() if found is not None}
    if not final and stop.is_set():
        raise DesignError("interrupted before a motion was proven to keep the limits: there is nothing to keep yet")
    if not final:
        final = _rescued(fine, problem, certifier, first)
    told = tuple(
        Start(n, state.value, max(state.violation, 0.0), final[n].value if n in final else None)
        for n, state in sorted(first.items())
    )
    return Found(fine, min(final.values(), key=lambda found: found.value), told, stop.is_set())


def _all(work: Callable[[int], object], numbers: Sequence[int], threads: int) -> dict:
    """Return the results by number."""
    with ThreadPoolExecutor(threads, "steelyard-design") as pool:
        futures = {pool.submit(work, number): number for number in numbers}
        return {number: future.result() for future, number in futures.items()}


def random_start(problem: Problem, rng: np.random.Generator, size: float = 1.0, spread: float = 0.5) -> np.ndarray:
    """Return the variables of a random motion, about a third of the range large times ``size``.

    Its centre lies within ``spread`` of half the range from the middle.
    """
    lower, upper = problem.limits.lower, problem.limits.upper
    half = (upper - lower) / 2
    centre = (lower + upper) / 2 + half * rng.uniform(-spread, spread, len(half))
    return problem.variables_of(problem.family.random(centre, 0.3 * size * half, rng))


def _started(problem: Problem, rng: np.random.Generator, number: int, ledger: _Ledger, stop: Stop) -> State:
    """Return a random motion after its rounds: large ones anywhere and small ones in the middle take turns.

    With a small penalty a motion may slip through an obstacle and be caught on the other side: then it goes back to
    where it started, and the way is gone again with a penalty that keeps it from leaving what is allowed.
    """
    ready = drawn_motion(problem, rng, stop, *(LARGE, SMALL)[number % 2])
    ledger.round_done()
    state = _improved(problem, ready, ANNEALING, STEPS, ledger, stop)
    if state.violation <= KEPT or ready.violation > KEPT or stop():
        return state
    careful = replace(ready, multipliers=replace(ready.multipliers, penalty=CAREFUL_PENALTY))
    return descended(problem, careful, ANNEALING, STEPS, stop)


def drawn_motion(
    problem: Problem, rng: np.random.Generator, stop: Stop, size: float = 1.0, spread: float = 0.5
) -> State:
    """Return a random motion that keeps the constraints on the grid, or the one of several that comes closest."""
    drawn: list[State] = []
    for draw in range(DRAWS):
        rest = random_start(problem, rng, size * SMALLER**draw, spread)
        drawn.append(repaired(problem, state_of(problem, rest), REPAIR_STEPS, stop))
        if drawn[-1].violation <= KEPT or stop():
            break
    return min(drawn, key=lambda state: state.violation)


def _improved(
    problem: Problem, state: State, sharpnesses: Sequence[float], steps: int, ledger: _Ledger, stop: Stop
) -> State:
    for sharpness in sharpnesses:
        state = descended(problem, state, [sharpness], steps, stop)
        ledger.round_done(state)
    return state


def _hurried(problem: Problem, state: State) -> State:
    """Return a motion that an interrupt caught on its way, where limits may be broken by far, within them."""
    firm = replace(state.multipliers, penalty=LARGEST_PENALTY)
    return descended(problem, replace(state, multipliers=firm), ANNEALING[-2:], STEPS, lambda: False)


def _by_merit(states: Mapping[int, State]) -> list[int]:
    """Return the numbers of the starts, the best first; those that break constraints come last."""
    return sorted(states, key=lambda n: (states[n].violation > KEPT, states[n].value, n))


def _finished(
    problem: Problem, fine: Problem, certifier: Certifier, state: State, ledger: _Ledger, stop: Stop
) -> Settled | None:
    spread = tuple(np.repeat(values, FINER, axis=1) / FINER for values in state.multipliers.values)
    multipliers = Multipliers(spread, state.multipliers.penalty, state.multipliers.margins)
    state = replace(state, z=fine.variables_of(*problem.coefficients(state.z)), multipliers=multipliers)
    state = _improved(fine, state, POLISHING, POLISHING_STEPS, ledger, stop)
    found = settled(fine, certifier, state, POLISHING[-1], stop)
    ledger.round_done(rounds=2)
    return found


def _rescued(fine: Problem, problem: Problem, certifier: Certifier, first: Mapping[int, State]) -> dict[int, Settled]:
    """Return the first motion, in the order of merit, that can be proven when it is repaired or shrunk.

    Raises:
        DesignError: If there is none: what cannot be met is named.
    """
    closest = []
    for number in _by_merit(first):
        found = shrunk(fine, certifier, fine.variables_of(*problem.coefficients(first[number].z)))
        if found is None:
            mended = repaired(problem, first[number], REPAIR_STEPS, lambda: False)
            closest.append(mended)
            found = shrunk(fine, certifier, fine.variables_of(*problem.coefficients(mended.z)))
        if found is not None:
            return {number: found}
    raise DesignError(_impossible(problem, certifier, min(closest, key=lambda state: state.violation)))


def _impossible(problem: Problem, certifier: Certifier, state: State) -> str:
    """Return a sentence that names what cannot be met, by how much, in the motion that comes closest."""
    worst = certifier(problem.trajectory(state.z)).worst_violation
    if worst is None:
        return "no motion could be proven to keep all limits; widen the tightest of them, or allow a longer duration"
    return (
        f"no motion was found that keeps '{worst.name}': the one that comes closest reaches {_told(worst)} at "
        f"{worst.instant:.3g} s; widen that limit, or change what stands in its way"
    )


def _told(finding: Finding) -> str:
    return f"{finding.worst:.4g}, the limit is {finding.limit:.4g} (off by {finding.violation:.3g})"
