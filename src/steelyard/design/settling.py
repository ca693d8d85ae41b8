"""From a motion that keeps its limits at the instants of a grid to one that keeps them at every instant.

What the certificate finds beyond a limit is added to that limit's margin, and the descent goes on from where it was.
Should that not do, the motion is shrunk towards a posture in which the arm may rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .certify.certificate import Certificate
from .certify.certifier import Certifier
from .descent import LARGEST_PENALTY, SETTLING, State, Stop, descended
from .problem import Multipliers, Problem

ROUNDS = 8
"""Times that margins are raised."""

BEYOND, LEAST_RAISE = 1.5, 1e-4
"""Margins grow by this many times what was found beyond the limit, and at least so much: going on moves the peaks."""

LEAST_MARGIN = 1e-5
"""Part of a limit that is kept clear of it, so that it can be decided that the limit is kept."""

PARTS = (*(1 - 10.0**-k for k in (5, 4, 3, 2)), *(0.97 * 0.9**k for k in range(60)))
"""Parts to which a motion is shrunk, one after the other."""


@dataclass(frozen=True, eq=False)
class Settled:
    """A motion that keeps every limit at every instant.

    Attributes:
        z: Its variables.
        value: The objective as it is told, on the grid.
        certificate: The proof.
    """

    z: np.ndarray
    value: float
    certificate: Certificate


def settled(problem: Problem, certifier: Certifier, state: State, stop: Stop) -> Settled | None:
    """Return the motion with all limits kept over continuous time; None if none was found near it."""
    firm = max(state.multipliers.penalty, LARGEST_PENALTY)
    margins = [np.full(len(block.names), LEAST_MARGIN) for block in problem.blocks]
    for _ in range(ROUNDS):
        certificate = certifier(problem.trajectory(state.z), decide=True)
        if certificate.holds or stop():
            break
        _raise(margins, problem, certificate)
        tightened = Multipliers(state.multipliers.values, firm, tuple(margins))
        state = descended(problem, State(state.z, tightened, state.violation, state.value), SETTLING, stop)
    return shrunk(problem, certifier, state.z)


def shrunk(problem: Problem, certifier: Certifier, z: np.ndarray) -> Settled | None:
    """Return the motion, or the largest part of it about a posture of rest, that keeps every limit at every instant."""
    part = largest_part(problem, certifier, z)
    return None if part is None else _proven(problem, certifier, part)


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
    stretch = problem.coefficients(z)[1]
    return problem.variables_of(problem.family.still(postures[:, best]), stretch)


def _proven(problem: Problem, certifier: Certifier, z: np.ndarray) -> Settled | None:
    certificate = certifier(problem.trajectory(z))
    return Settled(z, problem.exact(z), certificate) if certificate.holds else None


def _raise(margins: list[np.ndarray], problem: Problem, certificate: Certificate) -> None:
    """Raise the margins by what was found beyond each limit."""
    beyond = {finding.name: finding.violation for finding in certificate.findings}
    for margin, block in zip(margins, problem.blocks, strict=True):
        excess = np.array([beyond.get(name, 0.0) for name in block.names]) / block.units
        margin += BEYOND * excess + LEAST_RAISE * (excess > 0)
