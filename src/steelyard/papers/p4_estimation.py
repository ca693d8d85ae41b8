"""P4's estimation: the study of 200 runs, maximum likelihood, the experiment with spring and offsets, friction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..identify.pipeline import Stage
from ..motion import Trajectory
from .claim import Claim, within
from .designs import Arm
from .p4_arm import C2
from .p4_bench import STANDSTILL, Bench, bench, identified, instants, moved
from .p4_experiment import (
    PERIODS,
    averaging,
    experiment_claims,
    filtered,
    validated,
    validation_motion,
    validation_table,
)
from .p4_friction import friction_claims, friction_found
from .p4_likelihood import RUNS, likelihood_claims, likelihood_study, likelihood_table
from .p4_study import both_studies, study_claims, study_table
from .result import Table, table


@dataclass(frozen=True)
class Estimation:
    """Claims, tables and notes of P4's estimation."""

    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]


def estimation(
    arm: Arm,
    motions: Mapping[str, Trajectory],
    sprung: Arm,
    resprung: Mapping[str, Trajectory],
    runs: int | None,
    threads: int,
    stage: Stage,
) -> Estimation:
    """Reproduce P4's estimation with designed motions.

    Args:
        arm: The arm of P4's simulation, 21 unknowns.
        motions: Its motions by criterion.
        sprung: The arm of P4's experiment, spring and offsets unknown too.
        resprung: Its motions by criterion.
        runs: Runs of maximum likelihood at every noise of the positions; None: as many as the claims are made for.
        threads: Threads that share the work.
        stage: Told which stage begins.
    """
    simple, full = bench(arm), bench(sprung)
    tell = stage("200 runs, repeated")
    studies = both_studies(simple, motions[C2])
    tell(1, 1)
    likely = likelihood_study(simple, motions[C2], runs or RUNS, stage("maximum likelihood"))
    tell = stage("experiment")
    mean, analogue = averaging(full, resprung[C2]), filtered(full, resprung[C2])
    limits = sprung.limits.motion
    unseen = validated(full, resprung, validation_motion(limits.lower, limits.upper))
    spring = spring_fit(full, simple, resprung[C2])
    tell(1, 2)
    friction = friction_found(full, resprung[C2], threads)
    tell(2, 2)
    claims = (
        *study_claims(studies), *likelihood_claims(likely), *_spring_claims(spring),
        *experiment_claims(mean, analogue, unseen), *friction_claims(friction),
    )  # fmt: skip
    tables = (study_table(studies), likelihood_table(likely), validation_table(unseen), _spring_table(spring))
    return Estimation(claims, tables, _notes(runs or RUNS))


@dataclass(frozen=True, eq=False)
class SpringFit:
    """The experiment fitted with and without spring and offsets, mean of sixteen periods.

    Attributes:
        names: Columns of the model with them.
        values: Estimates (c,).
        true: True values (c,).
        sigma: Standard deviations (c,).
        squares: Mean squared residuals of each axis, in variances of the mean, with them.
        without: The same without them.
    """

    names: tuple[str, ...]
    values: np.ndarray
    true: np.ndarray
    sigma: np.ndarray
    squares: np.ndarray
    without: np.ndarray


def spring_fit(full: Bench, simple: Bench, trajectory: Trajectory, seed: int = 0) -> SpringFit:
    """Fit one experiment with the model that has spring and offsets, and with the one that has not."""
    time = instants()
    motion = moved(trajectory, time)
    deviations = full.deviations[:, None] / np.sqrt(PERIODS)
    y = full.torques(motion) + np.random.default_rng(seed).normal(size=motion[0].shape) * deviations
    values, covariance = identified(full, motion[0], y, time)
    less, _ = identified(simple, motion[0], y, time)
    squares = [
        np.mean(((y - each.rows(motion) @ found) / deviations) ** 2, axis=1)
        for each, found in ((full, values), (simple, less))
    ]
    sigma = np.sqrt(np.diag(covariance) / PERIODS)
    return SpringFit(full.equations.names, values, full.values, sigma, squares[0], squares[1])


def _spring_claims(found: SpringFit) -> Iterator[Claim]:
    off = np.abs(found.values - found.true) / found.sigma
    yield within(
        "spring and offsets as extra unknowns: largest error of the 24 parameters, sigmas", "not said",
        float(off.max()), 0.0, 3.9, why=f"one in 10,000 for each; rms {np.sqrt(np.mean(off**2)):.2f}",
        fails_if="spring or offsets are not what the model says, or cannot be told from first moments",
    )  # fmt: skip
    yield within(
        "mean squared residual without them over that with them, largest of the axes", "not said",
        float((found.without / found.squares).max()), 1.5, np.inf,
        "offsets are what the simpler model lacks: the spring acts like first moments of link 2 and is regrouped with "
        "them, which are then wrong, but not the torques",
        why="clearly worse",
        fails_if="the simpler model explains the torques as well: spring and offsets need not be unknowns",
    )  # fmt: skip


def _spring_table(found: SpringFit) -> Table:
    shown = ("MX2", "MY2", "offm1", "offm2", "offm3")
    rows = [
        [name, float(found.true[k]), float(found.values[k]), float(found.sigma[k])]
        for k, name in enumerate(found.names)
        if name in shown
    ]
    headings = ["parameter", "true", "found", "sigma"]
    return table("Experiment with spring and offsets, mean of 16 periods: MX2 and MY2 hold the spring", headings, rows)


def _notes(runs: int) -> tuple[str, ...]:
    return (
        "Monte Carlo with P4's noise on torques and positions, a Fourier series fitted to each run's positions; "
        f"maximum likelihood: {runs} runs at every noise of the positions, the arm following its motion exactly",
        "experiment: 16 periods; the anti-alias filter acts on torques alone, as on the paper's arm; validation and "
        "iterated design identify from runs simulated under computed-torque control, samples slower than "
        f"{STANDSTILL:g} rad/s left out; validation moves through 20 random points, each at 5 rad/s^2",
        "the paper's residuals are those of a real arm, whose model lacks something: here the model is true, and "
        "friction with a Stribeck part is tried on its own",
    )
