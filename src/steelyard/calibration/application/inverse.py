"""Inverse kinematics of many poses at once: damped Newton steps within limits, then least motion from a posture.

A step d of the joints solves ``min |J d - e|^2 + mu |d|^2`` with e the pose error in base axes; mu grows when a step
does not help and shrinks with the error, so that the end is quadratic. Where joints outnumber what is wanted, steps
``d = h + J^+ (e - J h)``, h towards the home posture, go on until no motion along the solutions leads nearer to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

PoseOf = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From joint positions (na, N) to rotation (N, 3, 3) and position (N, 3) [m]."""

REACHED = 1e-9
"""A pose counts as reached when it errs by no more than this [m and rad]."""

_FINE = 1e-12
_MOST_STEPS = 60
_MOST_HOMEWARD_STEPS = 40
_LONGEST_STEP = 0.3  # rad or m: beyond it the linearisation is no guide
_DIFFERENCE = 1e-6  # rad or m: central differences err by about 1e-10
_LEAST_DAMPING, _MOST_DAMPING = 1e-10, 1e8


@dataclass(frozen=True, eq=False)
class Wanted:
    """Wanted poses in the robot's base frame.

    Attributes:
        position: Positions (N, 3) [m].
        rotation: Orientations (N, 3, 3); what stands where an orientation is free does not matter.
        turned: Whether the orientation counts (N,).
    """

    position: np.ndarray
    rotation: np.ndarray
    turned: np.ndarray

    def taken(self, chosen: np.ndarray) -> Wanted:
        """Return some of the poses, by numbers or as a mask."""
        return Wanted(self.position[chosen], self.rotation[chosen], self.turned[chosen])


@dataclass(frozen=True, eq=False)
class Postures:
    """Joint positions that bring the arm as near to the wanted poses as was found.

    Attributes:
        q: Joint positions (na, N).
        position_error: What is left (N,) [m].
        rotation_error: What is left (N,) [rad]; zero where the orientation is free.
    """

    q: np.ndarray
    position_error: np.ndarray
    rotation_error: np.ndarray

    @property
    def reached(self) -> np.ndarray:
        """Whether each pose is reached (N,)."""
        return np.hypot(self.position_error, self.rotation_error) <= REACHED


@dataclass(frozen=True, eq=False)
class InverseProblem:
    """What to solve: a model, a smooth model near it for derivatives, wanted poses, and limits (na,)."""

    pose_of: PoseOf
    smooth_pose_of: PoseOf
    wanted: Wanted
    lower: np.ndarray
    upper: np.ndarray

    def error(self, q: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return wanted minus present pose (m, 6) of the chosen targets: translation, rotation vector in base axes."""
        wanted = self.wanted.taken(chosen)
        rotation, position = self.pose_of(q)
        turn = Rotation.from_matrix(wanted.rotation @ rotation.transpose(0, 2, 1)).as_rotvec()
        return np.hstack([wanted.position - position, np.where(wanted.turned[:, None], turn, 0.0)])

    def jacobian(self, q: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return derivatives of the pose by the joints (m, 6, na), in base axes; zero for free orientations."""
        size, samples = q.shape
        moves = np.repeat(np.eye(size) * _DIFFERENCE, samples, axis=1)
        tiled = np.tile(q, size)
        rotation, position = self.smooth_pose_of(np.hstack([tiled + moves, tiled - moves]))
        half = size * samples
        turn = Rotation.from_matrix(rotation[:half] @ rotation[half:].transpose(0, 2, 1)).as_rotvec()
        both = np.hstack([position[:half] - position[half:], turn]) / (2 * _DIFFERENCE)
        result = both.reshape(size, samples, 6).transpose(1, 2, 0)
        result[~self.wanted.turned[chosen], 3:] = 0.0
        return result


def solved_postures(problem: InverseProblem, start: np.ndarray, home: np.ndarray | None = None) -> Postures:
    """Return joint positions that reach the wanted poses, found from start postures.

    Args:
        problem: Model, wanted poses and limits.
        start: Postures to begin at (na, N).
        home: Postures to stay near to (na, N) where joints outnumber what is wanted; the start if not given.
    """
    home = start if home is None else home
    q = np.clip(start, problem.lower[:, None], problem.upper[:, None])
    q, error = _towards_target(problem, q)
    spare = np.where(problem.wanted.turned, 6, 3) < q.shape[0]
    converged = np.flatnonzero(spare & (_size(error) <= REACHED))
    if len(converged):
        q[:, converged], error[converged] = _towards_home(problem, q, error, home, converged)
    return Postures(q, np.linalg.norm(error[:, :3], axis=1), np.linalg.norm(error[:, 3:], axis=1))


def _size(error: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(error, axis=1)
    return np.where(np.isfinite(size), size, np.inf)


def _towards_target(problem: InverseProblem, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return joint positions (na, N) and errors (N, 6) after damped steps of every target that still errs."""
    samples = q.shape[1]
    error = problem.error(q, np.arange(samples))
    damping = np.ones(samples)
    for _ in range(_MOST_STEPS):
        active = np.flatnonzero((_size(error) > _FINE) & (damping < _MOST_DAMPING))
        if not len(active):
            break
        here, off = q[:, active], error[active]
        weight = damping[active] * _size(off) ** 2 + _FINE**2
        step = _bounded_step(problem, problem.jacobian(here, active), off, np.zeros_like(here), here, weight)
        there = here + step
        new = problem.error(there, active)
        better = _size(new) < _size(off)
        q[:, active[better]], error[active[better]] = there[:, better], new[better]
        damping[active] = np.where(better, np.maximum(damping[active] / 5, _LEAST_DAMPING), damping[active] * 4)
        # Rounding, not the model, keeps the last digits from becoming better.
        damping[active[~better & (_size(off) <= REACHED / 10)]] = _MOST_DAMPING
    return q, error


def _towards_home(
    problem: InverseProblem, q: np.ndarray, error: np.ndarray, home: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the postures nearest to home that still reach the chosen targets; what was there where none is nearer."""
    before, goal, off = q[:, chosen], home[:, chosen], error[chosen]
    here = before
    for _ in range(_MOST_HOMEWARD_STEPS):
        weight = np.full(len(chosen), _FINE)
        step = _bounded_step(problem, problem.jacobian(here, chosen), off, goal - here, here, weight)
        here = here + step
        off = problem.error(here, chosen)
        if np.abs(step).max() < REACHED:
            break
    nearer = np.linalg.norm(here - goal, axis=0) <= np.linalg.norm(before - goal, axis=0)
    better = nearer & (_size(off) <= REACHED)
    return np.where(better, here, before), np.where(better[:, None], off, error[chosen])


def _bounded_step(
    problem: InverseProblem,
    jacobian: np.ndarray,
    error: np.ndarray,
    homeward: np.ndarray,
    q: np.ndarray,
    damping: np.ndarray,
) -> np.ndarray:
    """Return steps (na, m) within limits: joints that would leave them stop there, and the others make up for it."""
    pull, here = homeward.T, q.T
    fixed, held = np.zeros(here.shape, dtype=bool), np.zeros(here.shape)
    # Rows of a free orientation are empty: a one on the diagonal keeps the small system solvable.
    blank = ~jacobian.any(axis=2)
    diagonal = (damping[:, None] + blank)[:, :, None] * np.eye(6)
    step = np.zeros_like(here)
    for _ in range(here.shape[1]):
        aim = np.where(fixed, held - here, pull)
        free = np.where(fixed[:, None, :], 0.0, jacobian)
        back, missing = free.transpose(0, 2, 1), error[:, :, None] - jacobian @ aim[:, :, None]
        step = aim + (back @ np.linalg.solve(free @ back + diagonal, missing))[:, :, 0]
        beyond = np.maximum(here + step - problem.upper, problem.lower - here - step)
        beyond = np.where(fixed, -np.inf, beyond)
        worst = beyond.argmax(axis=1)
        rows = np.flatnonzero(beyond.max(axis=1) > 0)
        if not len(rows):
            break
        fixed[rows, worst[rows]] = True
        held[rows, worst[rows]] = np.clip(here + step, problem.lower, problem.upper)[rows, worst[rows]]
    step = np.clip(here + step, problem.lower, problem.upper) - here
    longest = np.abs(step).max(axis=1, keepdims=True)
    return (step * np.minimum(1.0, _LONGEST_STEP / np.maximum(longest, _LONGEST_STEP))).T
