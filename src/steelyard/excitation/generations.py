"""Multi-start search in generations: random motions first, then perturbations of the best motions so far.

After a few rough stages the order by the augmented Lagrangian is nearly the final one, so only a part of a generation
has to be finished. Minima next to a good one are often good, too: later generations start from perturbations of the
best motions. All choices depend on the motions alone, never on when they were ready, so a seed gives the same answer on
any number of cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ..errors import WorkerError
from ..workers import Run, Shared, Workers
from .assembly import Assembled
from .descent import CAREFUL_PENALTY, EARLY, LATE, DescentState, Stop, descended, repaired, state_of
from .problem import Problem

FEASIBLE = 0.01
"""A motion that violates a constraint by more than this part of its limit is behind all that do not."""

LARGE, SMALL = (1.0, 0.5), (0.3, 0.1)
"""Size and spread of random motions to start from."""

DRAWS, SMALLER = 8, 0.7
"""Random motions tried, each so much smaller than the one before, until one can be repaired."""


def random_start(problem: Problem, rng: np.random.Generator, size: float = 1.0, spread: float = 0.5) -> np.ndarray:
    """Return the variables of a random motion, about a third of the range large times ``size``.

    Its centre lies within ``spread`` of half the range from the middle.
    """
    lower, upper = problem.limits.lower, problem.limits.upper
    half = (upper - lower) / 2
    centre = (lower + upper) / 2 + half * rng.uniform(-spread, spread, len(half))
    return problem.variables_of(problem.family.random(centre, 0.3 * size * half, rng))


def drawn_motion(
    problem: Problem, rng: np.random.Generator, stop: Stop, size: float = 1.0, spread: float = 0.5
) -> DescentState:
    """Return a random motion that keeps the constraints on the grid, or the one of several that comes closest."""
    drawn: list[DescentState] = []
    for draw in range(DRAWS):
        rest = random_start(problem, rng, size * SMALLER**draw, spread)
        drawn.append(repaired(problem, state_of(problem, rest), stop))
        if drawn[-1].violation <= FEASIBLE or stop():
            break
    return min(drawn, key=lambda state: state.violation)


def disturbed(problem: Problem, z: np.ndarray, size: float, rng: np.random.Generator) -> DescentState:
    """Return a motion near another: each variable is moved by about ``size`` of their root mean square.

    The constraints may be broken, and multipliers and penalty start again: the descent reaches the same minimum by
    another path, or a neighbouring one.
    """
    moved = z + size * np.sqrt(np.mean(z**2)) * rng.standard_normal(len(z))
    return state_of(problem, np.clip(moved, *problem.bounds()))


FINISHED_PART = 4
"""One in so many of a generation is finished."""

OFFSPRING = (2, 2)
"""In each later generation one motion for so many starts; a single start has none."""

PARENTS = 3
DISTURBANCES = (0.05, 0.4)
"""Sizes of perturbations, alternating: the same minimum again, and a neighbouring one."""

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class SearchProgress:
    """Progress of the search.

    Attributes:
        done: Stages done, of ``total``.
        total: Stages in all.
        value: Best exact objective so far; None before the first.
        violation: Largest violation of that motion on the grid, as a part of its limit; 0 where all is kept.
    """

    done: int
    total: int
    value: float | None
    violation: float


SearchCallback = Callable[[SearchProgress], None]


def no_progress(update: SearchProgress) -> None:
    """Report nothing."""


class SearchRun:
    """Runs the tasks of a search on its workers, and reports the progress."""

    def __init__(self, shared: Shared[Assembled], workers: Workers, total: int, callback: SearchCallback) -> None:
        self._shared, self._workers, self._total, self._report = shared, workers, total, callback
        self._done, self._value, self._violation = 0, None, 0.0

    @property
    def problem(self) -> Problem:
        """The problem on its coarse grid."""
        return self._shared.here.problem

    @property
    def is_stopped(self) -> bool:
        """Whether the search shall end with the best motion so far."""
        return self._workers.stopping.is_set()

    def results(
        self,
        run: Run[Assembled, Task, Result],
        tasks: Sequence[Task],
        stages: int,
        reached: Callable[[Result], DescentState | None] = lambda result: None,
    ) -> list[Result]:
        """Return the results of tasks in their order.

        Args:
            run: A function of a module, called with the assembled problem, a task, and whether to stop.
            tasks: The tasks.
            stages: Stages of each.
            reached: Returns the motion that a result has reached, for the progress; None for none.
        """
        found: dict[int, Result] = {}
        for number, result in self._workers.finished(run, self._shared, tasks):
            if isinstance(result, WorkerError):
                raise result
            found[number] = result
            self.stages_done(stages, reached(result))
        return [found[number] for number in range(len(tasks))]

    def stages_done(self, stages: int, state: DescentState | None = None) -> None:
        """Count stages and report the progress of the search."""
        self._done += stages
        if state is not None and state.violation <= FEASIBLE and (self._value is None or state.value < self._value):
            self._value, self._violation = state.value, max(state.violation, 0.0)
        try:
            self._report(SearchProgress(min(self._done, self._total), self._total, self._value, self._violation))
        except KeyboardInterrupt:  # the callback may end the search, too
            self._workers.stopping.set()


@dataclass(frozen=True, eq=False)
class Candidate:
    """A motion of a generation.

    Attributes:
        number: Its number among all, from 0.
        origin: The number of the motion it is a perturbation of; None if it was drawn at random.
        ready: Where it began.
        state: Where it is.
        is_finished: Whether it went through all stages.
    """

    number: int
    origin: int | None
    ready: DescentState
    state: DescentState
    is_finished: bool = False


def stages_of(starts: int) -> int:
    """Return how many stages all generations take, the drawing of a random motion being one."""
    sizes = _sizes(starts)
    return starts + sum(size * len(EARLY) + _finishing(size) * len(LATE) for size in sizes)


def generations(run: SearchRun, starts: int, seed: int) -> list[Candidate]:
    """Return the motions of all generations, ordered by number; unfinished ones as they were given up."""
    first, *later = _sizes(starts)
    done = _generation(run, run.results(drawn_candidate, [(number, seed) for number in range(first)], 1))
    for size in later:
        parents = by_merit(done)[:PARENTS]
        numbers = range(len(done), len(done) + size)
        young = [_offspring(run.problem, parents[k % len(parents)], n, seed, k) for k, n in enumerate(numbers)]
        done += _generation(run, young)
    return sorted(done, key=lambda one: one.number)


def by_merit(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return those that were finished, the best first; those that break constraints come last."""
    finished = [one for one in candidates if one.is_finished]
    return sorted(finished, key=lambda one: (one.state.violation > FEASIBLE, one.state.value, one.number))


def _sizes(starts: int) -> list[int]:
    return [size for size in (starts, *(starts // share for share in OFFSPRING)) if size]


def _finishing(size: int) -> int:
    return -(-size // FINISHED_PART)


def drawn_candidate(assembled: Assembled, task: tuple[int, int], stop: Stop) -> Candidate:
    """Return the random motion of a number and a seed: large ones anywhere and small ones in the middle take turns."""
    number, seed = task
    rng = np.random.default_rng([seed, number])
    ready = drawn_motion(assembled.problem, rng, stop, *(LARGE, SMALL)[number % 2])
    return Candidate(number, None, ready, ready)


def _offspring(problem: Problem, parent: Candidate, number: int, seed: int, turn: int) -> Candidate:
    size = DISTURBANCES[turn // PARENTS % len(DISTURBANCES)]
    ready = disturbed(problem, parent.state.z, size, np.random.default_rng([seed, number]))
    return Candidate(number, parent.number, ready, ready)


def _generation(run: SearchRun, ready: Sequence[Candidate]) -> list[Candidate]:
    begun = run.results(begun_candidate, ready, len(EARLY), _state)
    order = sorted(begun, key=lambda one: (one.state.augmented, one.number))
    promising, left = order[: _finishing(len(order))], order[_finishing(len(order)) :]
    return run.results(finished_candidate, promising, len(LATE), _state) + left


def _state(one: Candidate) -> DescentState:
    return one.state


def begun_candidate(assembled: Assembled, one: Candidate, stop: Stop) -> Candidate:
    """Return a motion after its early stages."""
    return replace(one, state=descended(assembled.problem, one.state, EARLY, stop))


def finished_candidate(assembled: Assembled, one: Candidate, stop: Stop) -> Candidate:
    """Return a motion after its late stages.

    With a small penalty a motion may pass through an obstacle and be trapped on the other side: then the descent starts
    again from its first motion, with a penalty that keeps it feasible.
    """
    problem = assembled.problem
    done = replace(one, state=descended(problem, one.state, LATE, stop), is_finished=True)
    if done.state.violation <= FEASIBLE or one.ready.violation > FEASIBLE or stop():
        return done
    careful = replace(one.ready, multipliers=replace(one.ready.multipliers, penalty=CAREFUL_PENALTY))
    return replace(done, state=descended(problem, careful, EARLY + LATE, stop))
