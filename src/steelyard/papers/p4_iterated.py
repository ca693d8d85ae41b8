"""P4's iterated design: identify, minimise the Cramer-Rao bound at the estimate, repeat (P4.3).

With exact positions torques are linear in the parameters and the bound does not depend on them: there is nothing to
repeat. With noise on positions it does, through the torques that wrong positions bring about. Each round's motion is
simulated under control, its noisy recording identified by maximum likelihood, and the estimate is the next prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..estimate.likelihood import LikelihoodFit, LikelihoodProblem, LikelihoodRun, likelihood_fit, motion_basis
from ..motion import Trajectory
from ..progress import Progress, silent
from .claim import Claim, within
from .designs import Arm, designed, part_of, with_starts
from .p4_arm import C2, DURATION, HARMONICS, noisy_covariance
from .p4_bench import STANDSTILL, Bench, bench, measured, moved, simulated
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
        error: Largest error of a parameter identified from the round's simulated experiment, in its own sigmas.
    """

    prior_error: float
    promised: float
    true: float
    error: float


def iterated_design(arm: Arm, starts: int, threads: int = 1, progress: Progress = silent) -> list[Round]:
    """Design at a rough prior, simulate the motion, identify from the recording, design at the estimate, and again.

    Args:
        arm: The arm.
        starts: Of each search.
        threads: Starts that run at the same time.
        progress: Told how far it is.
    """
    rng, real = np.random.default_rng(0), bench(arm)
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
        off = base.regrouping @ np.array([prior.get(name, 0.0) - truth[name] for name in names])
        found = identified_by_likelihood(real, motion, seed=number)
        rounds.append(
            Round(
                float(np.abs(off / np.sqrt(np.diag(covariance))).max()),
                _log10_det(noisy_covariance(ready, motion, prior, noise)), _log10_det(covariance),
                float(np.abs((found.values - real.values) / found.sigma).max()),
            )
        )  # fmt: skip
        # Regrouped parameters count as part of those kept: the same torques.
        estimate = dict(zip(real.equations.names, found.values, strict=True))
        prior = {each.kept: float(estimate[each.kept]) for each in base.base}
    return rounds


def identified_by_likelihood(arm: Bench, motion: Trajectory, seed: int) -> LikelihoodFit:
    """Simulate one period of a motion and identify from its noisy positions and torques by maximum likelihood.

    Samples near standstill are left out by the commanded motion: positions are too noisy to say which they are.
    """
    run = simulated(arm, motion, position_noise=(POSITION_DEVIATION,) * len(motion.joints))
    q, y = measured(run, seed)
    moving = (np.abs(moved(motion, run.time)[1]) > STANDSTILL).all(axis=0)
    basis = motion_basis(run.time[moving], DURATION, tuple(range(1, HARMONICS + 1)))
    deviations = np.full(len(q), POSITION_DEVIATION)
    recorded = LikelihoodRun(q[:, moving], y[:, moving], basis, deviations, arm.deviations, loaded=False)
    return likelihood_fit(LikelihoodProblem(arm.equations, arm.equations.names, (recorded,)))


def _log10_det(covariance: np.ndarray) -> float:
    return float(np.linalg.slogdet(covariance)[1] / np.log(10.0))


def iterated_claims(rounds: list[Round]) -> Iterator[Claim]:
    """Return the claims that the iteration converges, on estimates from simulated experiments."""
    last, before = rounds[-1], rounds[-2]
    yield within(
        "iterated design: |promised - true log10 det of the covariance| of the last round", "converges",
        abs(last.promised - last.true), 0.0, 0.05,
        f"{abs(rounds[0].promised - rounds[0].true):.2g} at the rough prior, {abs(before.promised - before.true):.2g} "
        f"after one estimate; position noise {POSITION_DEVIATION:g} rad. With exact positions the bound does not "
        "depend on the parameters, and one round is enough",
        why="a twentieth of a decade over all parameters together", claimed=(0.0, 0.05),
        fails_if="estimates from the simulated experiments are so far off that the bound at them is another",
    )  # fmt: skip
    yield within(
        "iterated design: largest error of a parameter identified in a round, sigmas", "not said",
        max(each.error for each in rounds), 0.0, 4.5,
        why=f"{ROUNDS} experiments of 21 parameters: one in 2,000 by noise alone",
        fails_if="maximum likelihood is biased by noise on positions, by the controller or by samples near standstill",
    )  # fmt: skip


def iterated_table(rounds: list[Round]) -> Table:
    """Return the rounds."""
    rows = [
        [number, each.prior_error, each.promised, each.true, each.error] for number, each in enumerate(rounds, start=1)
    ]
    headings = [
        "round", "largest error of the prior, sigmas", "log10 det promised", "log10 det at the true parameters",
        "largest error of the estimate, sigmas",
    ]  # fmt: skip
    return table("Iterated design: minimise the Cramer-Rao bound at the estimate, repeat", headings, rows)
