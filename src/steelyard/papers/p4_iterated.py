"""P4's iterated design: identify, minimise the Cramer-Rao bound at the estimate, repeat (P4.3).

With exact positions torques are linear in the parameters and the bound does not depend on them: there is nothing to
repeat. With noise on positions it does, through the torques that wrong positions bring about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..progress import Progress, silent
from .claim import Claim, within
from .designs import Arm, designed, part_of, with_starts
from .p4_arm import C2, noisy_covariance
from .result import Table, table

POSITION_DEVIATION = 1e-2
"""Noise of the positions at which the bound does depend on the parameters [rad]."""

ROUNDS = 3
ROUGH = 0.5
"""The first prior is off by up to this part of each parameter."""


@dataclass(frozen=True)
class Round:
    """One round of an iterated design.

    Attributes:
        prior_error: Error of the base parameters designed with, in sigmas of the round's own experiment, largest.
        promised: log10 det of the covariance that the prior promises.
        true: The same with the true parameters.
    """

    prior_error: float
    promised: float
    true: float


def iterated_design(arm: Arm, starts: int, threads: int = 1, progress: Progress = silent) -> list[Round]:
    """Design at a rough prior, draw an estimate from the Cramer-Rao bound at the truth, design at it, and again.

    Args:
        arm: The arm.
        starts: Of each search.
        threads: Starts that run at the same time.
        progress: Told how far it is.
    """
    rng = np.random.default_rng(0)
    truth = dict(arm.known.values)
    prior = {name: value * (1 + ROUGH * rng.uniform(-1, 1)) for name, value in truth.items()}
    noise = np.full(len(arm.limits.motion.joints), POSITION_DEVIATION)
    asked = replace(with_starts(arm.settings, starts, threads), criterion=C2, position_noise=POSITION_DEVIATION)
    rounds = []
    for number in range(ROUNDS):
        ready = arm.ready(asked, replace(arm.known, values=prior))
        motion = designed(ready, asked, part_of(progress, number, ROUNDS)).trajectory
        covariance = noisy_covariance(ready, motion, truth, noise)
        base, names = ready.unknowns.base, ready.unknowns.model.names
        there = base.regrouping @ np.array([truth[name] for name in names])
        off = base.regrouping @ np.array([prior.get(name, 0.0) for name in names]) - there
        rounds.append(
            Round(
                float(np.abs(off / np.sqrt(np.diag(covariance))).max()),
                _log10_det(noisy_covariance(ready, motion, prior, noise)), _log10_det(covariance),
            )
        )  # fmt: skip
        estimate = rng.multivariate_normal(there, covariance, method="cholesky")
        # Regrouped parameters count as part of those kept: the same torques.
        prior = {kept.kept: float(value) for kept, value in zip(base.base, estimate, strict=True)}
    return rounds


def _log10_det(covariance: np.ndarray) -> float:
    return float(np.linalg.slogdet(covariance)[1] / np.log(10.0))


def iterated_claim(rounds: list[Round]) -> Claim:
    """Return the claim that the iteration converges."""
    last, before = rounds[-1], rounds[-2]
    return within(
        "iterated design: |promised - true log10 det of the covariance| of the last round", "converges",
        abs(last.promised - last.true), 0.0, 0.05,
        f"{abs(rounds[0].promised - rounds[0].true):.2g} at the rough prior, {abs(before.promised - before.true):.2g} "
        f"after one estimate; position noise {POSITION_DEVIATION:g} rad. With exact positions the bound does not "
        "depend on the parameters, and one round is enough",
        why="a twentieth of a decade over all parameters together",
    )  # fmt: skip


def iterated_table(rounds: list[Round]) -> Table:
    """Return the rounds."""
    rows = [[number, each.prior_error, each.promised, each.true] for number, each in enumerate(rounds, start=1)]
    headings = ["round", "largest error of the prior, sigmas", "log10 det promised", "log10 det at the true parameters"]
    return table("Iterated design: minimise the Cramer-Rao bound at the estimate, repeat", headings, rows)
