"""Motions to start from: random ones, and good ones disturbed."""

from __future__ import annotations

import numpy as np

from .descent import State, Stop, repaired, state_of
from .problem import Problem

KEPT = 0.01
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
) -> State:
    """Return a random motion that keeps the constraints on the grid, or the one of several that comes closest."""
    drawn: list[State] = []
    for draw in range(DRAWS):
        rest = random_start(problem, rng, size * SMALLER**draw, spread)
        drawn.append(repaired(problem, state_of(problem, rest), stop))
        if drawn[-1].violation <= KEPT or stop():
            break
    return min(drawn, key=lambda state: state.violation)


def disturbed(problem: Problem, z: np.ndarray, size: float, rng: np.random.Generator) -> State:
    """Return a motion near another: each variable is moved by about ``size`` of their root mean square.

    The constraints may be broken, and multipliers and penalty begin anew: from there the same valley is entered by
    another way, and often its neighbour.
    """
    moved = z + size * np.sqrt(np.mean(z**2)) * rng.standard_normal(len(z))
    return state_of(problem, np.clip(moved, *problem.bounds()))
