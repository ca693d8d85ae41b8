"""P4's maximum likelihood against weighted least squares, positions with more and more noise (P4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..estimate.likelihood import LikelihoodProblem, LikelihoodRun, likelihood_fit, motion_basis
from ..motion import Trajectory
from ..progress import Progress, silent
from .claim import Claim, within
from .p4_arm import DURATION, HARMONICS
from .p4_bench import STANDSTILL, Bench, identified, instants, moved
from .result import Table, table

DEVIATIONS = (1e-5, 1e-4, 1e-3, 1e-2)
"""Noise of a sample of each position [rad]."""

RUNS = 60


@dataclass(frozen=True)
class Compared:
    """Both estimators on the same runs.

    Attributes:
        deviation: Noise of the positions [rad].
        standstill: Speed below which samples were left out [rad/s]; 0: all are used.
        difference: rms difference of the two estimates, in sigmas.
        least_squares: rms error of weighted least squares over the Cramer-Rao bound.
        likelihood: That of maximum likelihood.
        covered: Share of parameters inside the 95 % intervals of maximum likelihood.
        bound: Mean sigma of the bound over that with exact positions.
    """

    deviation: float
    standstill: float
    difference: float
    least_squares: float
    likelihood: float
    covered: float
    bound: float


def likelihood_study(
    arm: Bench, trajectory: Trajectory, runs: int = RUNS, progress: Progress = silent
) -> list[Compared]:
    """Run both estimators at every noise of the positions, without and with the samples near standstill."""
    cases = [(deviation, standstill) for standstill in (STANDSTILL, 0.0) for deviation in DEVIATIONS]
    found = []
    for deviation, standstill in cases:
        found.append(compared(arm, trajectory, deviation, standstill, runs))
        progress(len(found), len(cases))
    return found


def compared(arm: Bench, trajectory: Trajectory, deviation: float, standstill: float, runs: int) -> Compared:
    """Run both estimators at one noise of the positions [rad], samples slower than a speed [rad/s] left out."""
    time = instants()
    time = time[(np.abs(moved(trajectory, time)[1]) > standstill).all(axis=0)]
    motion = moved(trajectory, time)
    torque = arm.torques(motion)
    basis = motion_basis(time, DURATION, tuple(range(1, HARMONICS + 1)))
    exact = np.sqrt(np.diag(identified(arm, motion[0], torque, time)[1]))
    rng = np.random.default_rng(1)
    figures = []
    for _ in range(runs):
        q = motion[0] + deviation * rng.normal(size=torque.shape)
        y = torque + rng.normal(size=torque.shape) * arm.deviations[:, None]
        run = LikelihoodRun(q, y, basis, np.full(len(q), deviation), arm.deviations, loaded=False)
        likely = likelihood_fit(LikelihoodProblem(arm.equations, arm.equations.names, (run,)))
        plain, _ = identified(arm, q, y, time)
        figures.append(
            [(plain - likely.values) / likely.sigma, (plain - arm.values) / likely.sigma,
             (likely.values - arm.values) / likely.sigma, likely.sigma / exact]
        )  # fmt: skip
    difference, least, likelihood, bound = np.moveaxis(np.array(figures), 1, 0)
    return Compared(
        deviation, standstill, _rms(difference), _rms(least), _rms(likelihood),
        float(np.mean(np.abs(likelihood) < 1.96)), float(bound.mean()),
    )  # fmt: skip


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def likelihood_claims(found: list[Compared]) -> Iterator[Claim]:
    """Return the claims on maximum likelihood."""
    moving = [each for each in found if each.standstill]
    everything = next(each for each in found if not each.standstill and each.deviation == DEVIATIONS[-1])
    for each, most in zip(moving, (1e-4, 1e-4, 2e-3, 0.1), strict=True):
        yield within(
            f"position noise {each.deviation:g} rad: rms difference of maximum likelihood and least squares, sigmas",
            "small", each.difference, 0.0, most,
            why="reference under 1e-4 up to 1e-4 rad, 0.002 at 1e-3 rad",
            fails_if="maximum likelihood does not end at the minimum, or moves the positions without need",
        )  # fmt: skip
    yield within(
        "position noise 0.01 rad, samples near standstill used: error of maximum likelihood over that of least squares",
        "better", everything.likelihood / everything.least_squares, 0.0, 1.08 / 1.11,
        f"over the Cramer-Rao bound {everything.likelihood:.2f} and {everything.least_squares:.2f}: what maximum "
        "likelihood gains is the sign of friction near standstill, which noisy positions leave open; this motion "
        "starts at rest, with many such samples",
        why="reference 1.08 / 1.11, which ours may go below", claimed=(0.0, 1.0),
        fails_if="noise on positions costs least squares nothing, or maximum likelihood stays at its start",
    )  # fmt: skip
    yield within(
        "share of true parameters in the 95 % intervals of maximum likelihood, samples near standstill left out",
        "Cramer-Rao", float(np.mean([each.covered for each in moving])), 0.93, 0.97,
        why=f"{RUNS} runs of 21 parameters, the same noise of torques at every noise of positions",
        fails_if="the information matrix is wrong, or errors are larger than the bound",
    )  # fmt: skip


def likelihood_table(found: list[Compared]) -> Table:
    """Return both estimators by noise of the positions."""
    rows = [
        [
            each.deviation, each.standstill or "used", each.difference, each.least_squares, each.likelihood,
            each.covered, each.bound,
        ]
        for each in found
    ]  # fmt: skip
    headings = [
        "position noise rad", "slower samples, rad/s", "difference, sigmas", "WLS error over bound",
        "ML error over bound", "ML coverage", "bound over that of exact positions",
    ]  # fmt: skip
    return table("Maximum likelihood against weighted least squares, one period", headings, rows)
