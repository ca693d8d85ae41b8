"""A constrained design as one would write it today: scipy's SLSQP with finite differences over Pinocchio's loop.

Zero velocity and acceleration at the start are built in by a null space, so the search has no equations left. Limits
are kept at the samples only. ``python -m benchmarks.peers.slsqp_design SECONDS [SAMPLES [WAY]]`` prints what it reaches
over CPU time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from benchmarks.peers.constrained_task import (
    Bounds,
    DesignTask,
    Rows,
    criterion_of,
    excess_between,
    start_at_rest,
    task_for,
)
from benchmarks.peers.pinocchio_logdet import PinocchioLogDet

Clock = Callable[[], float]

FEASIBLE = 1e-6
"""Largest excess over a limit, relative to it, that counts as feasible."""


@dataclass(frozen=True, eq=False)
class DesignReached:
    """What the search gave.

    Attributes:
        X: Coefficients (n, m) of the best motion that keeps its limits at the samples, or of the start if none does.
        value: Its criterion, log det or log cond.
        feasible: Whether the limits are kept at the samples.
        seconds: Time used.
        starts: Number of starts begun.
        evaluations: Of the criterion.
        history: Time and best feasible criterion at each improvement.
        motions: Coefficients (n, m) at each improvement.
    """

    X: np.ndarray
    value: float
    feasible: bool
    seconds: float
    starts: int
    evaluations: int
    history: tuple[tuple[float, float], ...]
    motions: tuple[np.ndarray, ...]


class _OutOfTimeError(Exception):
    """The time allowed is used up."""


class Search:
    """Criterion and constraints of free coefficients z: ``X = (Z z)^T`` joint by joint.

    Args:
        task: The task.
        seconds_allowed: Time after which the search stops.
        clock: What measures it.
    """

    def __init__(self, task: DesignTask, seconds_allowed: float, clock: Clock = time.perf_counter) -> None:
        self.task, self.peer = task, PinocchioLogDet(task.requested)
        self.space = start_at_rest(task.requested.basis)
        self.bounds = Bounds.of(task)
        self.clock, self.began, self.allowed = clock, clock(), seconds_allowed
        self.evaluations = 0
        self.best: np.ndarray | None = None
        self.history: list[tuple[float, float]] = []
        self.motions: list[np.ndarray] = []

    @property
    def seconds(self) -> float:
        """Time since the search began."""
        return self.clock() - self.began

    @property
    def size(self) -> int:
        """Number of free coefficients."""
        return len(self.task.torque) * self.space.shape[1]

    def coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return X (n, m)."""
        return z.reshape(len(self.task.torque), -1) @ self.space.T

    def cost(self, z: np.ndarray) -> float:
        """Return what is made small: -log det or log cond; a large number where the columns are dependent."""
        if self.seconds > self.allowed:
            raise _OutOfTimeError
        self.evaluations += 1
        value = criterion_of(self.task, self.peer, self.coefficients(z))
        return (-value if self.task.criterion == "logdet" else value) if np.isfinite(value) else 1e6

    def margins(self, z: np.ndarray) -> np.ndarray:
        """Return how far each limit is kept, relative to it; negative where it is broken."""
        if self.seconds > self.allowed:
            raise _OutOfTimeError
        margins = self.bounds.margins(self.task.requested, self.peer, self.coefficients(z))
        return margins.ravel() if self.task.rows == "samples" else margins.min(axis=1)

    def note(self, z: np.ndarray) -> None:
        """Keep a motion if it is feasible and better than the best so far."""
        worst = self.bounds.margins(self.task.requested, self.peer, self.coefficients(z)).min()
        cost = self.cost(z) if worst >= -FEASIBLE else np.inf
        if cost < 1e6 and (not self.history or cost < self._signed(self.history[-1][1])):
            self.best = z.copy()
            self.history.append((self.seconds, self._signed(cost)))
            self.motions.append(self.coefficients(z))

    def _signed(self, value: float) -> float:
        return -value if self.task.criterion == "logdet" else value


def random_start(search: Search, rng: np.random.Generator) -> np.ndarray:
    """Return a random motion about the middle of the range, made smaller until it keeps its limits (30 times)."""
    task = search.task
    middle = np.where(
        np.isfinite(task.limits.lower + task.limits.upper), (task.limits.lower + task.limits.upper) / 2, 0.0
    )
    swing = search.coefficients(rng.standard_normal(search.size))
    swing[:, 0] = -(swing @ task.requested.basis[0]).mean(axis=1) + swing[:, 0]
    centre = middle + rng.uniform(-0.5, 0.5, len(middle))
    X = swing
    for shrinks in range(30):
        X = 0.8**shrinks * swing
        X[:, 0] += centre
        if search.bounds.margins(task.requested, search.peer, X).min() >= 0:
            break
    return (X @ search.space).ravel()


def design(
    task: DesignTask,
    seconds_allowed: float,
    seed: int = 0,
    starts_allowed: int = 1000,
    clock: Clock = time.perf_counter,
) -> DesignReached:
    """Search from random starts, one after the other, until time or starts are used up.

    Args:
        task: The task.
        seconds_allowed: Time after which the search stops, in the middle of a start if need be.
        seed: Of the starts.
        starts_allowed: Largest number of starts.
        clock: What measures the time: wall time, or ``time.process_time`` on a machine that does other things too.
    """
    search = Search(task, seconds_allowed, clock)
    rng = np.random.default_rng(seed)
    starts, z = 0, np.zeros(search.size)
    try:
        while search.seconds < seconds_allowed and starts < starts_allowed:
            z = random_start(search, rng)
            starts += 1
            search.note(z)
            found = optimize.minimize(
                search.cost, z, method="SLSQP", constraints={"type": "ineq", "fun": search.margins},
                callback=search.note, options={"maxiter": 1000, "ftol": 1e-6},
            )  # fmt: skip
            search.note(found.x)
    except _OutOfTimeError:
        pass
    retained = z if search.best is None else search.best
    value = search.history[-1][1] if search.history else np.nan
    return DesignReached(
        search.coefficients(retained), value, search.best is not None, search.seconds, starts, search.evaluations,
        tuple(search.history), tuple(search.motions),
    )  # fmt: skip


def main() -> None:
    """Print what is reached over CPU time, for one way to write the constraints or both."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    samples = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    ways: tuple[Rows, ...] = ("samples", "peaks")
    for rows in [way for way in ways if way in sys.argv[3:] or len(sys.argv) < 4]:
        task = replace(task_for(samples=samples), rows=rows)
        reached = design(task, seconds, clock=time.process_time)
        excess = excess_between(task, reached.X, 10.0)
        print(
            f"{rows}: log det {reached.value:.3f}, feasible {reached.feasible}, {reached.seconds:.1f} s, "
            f"{reached.starts} starts, {reached.evaluations} evaluations, excess between samples {100 * excess:.2f} %"
        )
        shown = reached.history[:: len(reached.history) // 15 + 1]
        print("  " + "  ".join(f"{at:.1f} s: {value:.2f}" for at, value in (*shown, reached.history[-1])), flush=True)


if __name__ == "__main__":
    main()
