"""Random motions under the same limits: what a design has to beat."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..motion import Trajectory
from .certify.certifier import Certifier
from .figures import Figures, middle_figures
from .problem import Problem
from .settling import largest_part, resting
from .starting import drawn_motion

RANDOM_MOTIONS = 5
_GROWTHS = 20
_SEEDS_APART = 1_000_000
"""Seeds of the random motions are none of those that a search starts from."""


def random_baseline(
    problem: Problem, certifier: Certifier, forecast: Callable[[Trajectory], Figures], seed: int
) -> Figures | None:
    """Return the medians of figures of random motions of the same kind and duration, as large as the limits allow.

    Args:
        problem: What the motions are of, and what they must keep.
        certifier: What proves that they do.
        forecast: Tells the figures of a motion.
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
