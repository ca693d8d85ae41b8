"""P1's experiment: a two-joint arm without gravity under PD control, disturbed by torques that nobody measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..estimate import Estimate, condition_number
from ..model import build_model
from ..motion import Trajectory, quintic
from ..observe import Equations, Preparation, equations_of, settle
from ..progress import Progress, silent
from ..robot import load_robot
from ..simulate import Experiment, Noise, SimulatedRun, recording_of, simulate
from .fits import PaperFit, paper_fit

LENGTH = 0.5
"""Length L of link 1 [m]."""

RATE, CUTOFF, ORDER, DECIMATION, TRIM = 100.0, 20.0, 4, 10, 20

# Paper's name -> column of the model, and by what the column's value is multiplied: LMX2 = L MX2.
NAMES = {
    "ZZR1": ("ZZ1", 1.0),
    "Fv1": ("Fvm1", 1.0),
    "Fs1": ("Fcm1", 1.0),
    "ZZ2": ("ZZ2", 1.0),
    "LMX2": ("MX2", LENGTH),
    "LMY2": ("MY2", LENGTH),
    "Fv2": ("Fvm2", 1.0),
    "Fs2": ("Fcm2", 1.0),
}
TRUE = {"ZZR1": 3.42, "Fv1": 0.07, "Fs1": 0.58, "ZZ2": 0.064, "LMX2": 0.131, "LMY2": 0.0, "Fv2": 0.015, "Fs2": 0.156}
"""P1's a-priori values: the truth of the simulation, and the prior of cond(U)."""

SIGN_WIDTH = 1e-3
"""Coulomb friction of the simulated arm is Fs tanh(v / this) [rad/s]."""

EXPERIMENT = Experiment(
    control="pd",
    kp=(400, 12),
    kd=(70, 1.6),
    plant_rate=10_000,
    sign_width=SIGN_WIDTH,
    record_rate=RATE,
    encoder_quantum=2 * np.pi / 10_000,
    disturbance=Noise("band_limited", (2.0, 0.10), 20.0),
)

# P1's cases: without any low-pass, hence without decimation too; forward only; zero phase and parallel decimation.
CASES = {
    "none": Preparation(mode="none", decimation=1, trim=TRIM, standstill=0),
    "forward": Preparation(CUTOFF, ORDER, "forward", decimation=1, trim=TRIM, standstill=0),
    "full": Preparation(CUTOFF, ORDER, decimation=DECIMATION, trim=TRIM, standstill=0),
}
# Between the cases: which of the two steps of full filtering takes the bias away?
BETWEEN = {
    "forward, decimated": Preparation(CUTOFF, ORDER, "forward", decimation=DECIMATION, trim=TRIM, standstill=0),
    "zero phase, not decimated": Preparation(CUTOFF, ORDER, decimation=1, trim=TRIM, standstill=0),
}


@dataclass(frozen=True, eq=False)
class CaseFits:
    """Fits of one filter case, one a seed."""

    fits: tuple[PaperFit, ...]

    @property
    def values(self) -> np.ndarray:
        """Estimates in the paper's parameters (8, seeds)."""
        return np.column_stack([paper_values(fit.estimate) for fit in self.fits])

    @property
    def relative_sigmas(self) -> np.ndarray:
        """Relative sigmas [%] of the paper's parameters (8, seeds)."""
        order = [self.fits[0].estimate.columns.index(column) for column, _ in NAMES.values()]
        return np.column_stack([fit.estimate.relative_sigma[order] for fit in self.fits])

    @property
    def conditions(self) -> tuple[float, float]:
        """cond(Ww) and cond(U) in the paper's parameters, mean over the seeds (P1.4)."""
        found = [_conditions(fit.estimate) for fit in self.fits]
        return float(np.mean([a for a, _ in found])), float(np.mean([b for _, b in found]))


def paper_values(estimate: Estimate) -> np.ndarray:
    """Return an estimate in the paper's parameters and their order (8,)."""
    return estimate.full_values(tuple(column for column, _ in NAMES.values())) * [scale for _, scale in NAMES.values()]


def _conditions(estimate: Estimate) -> tuple[float, float]:
    order = [estimate.columns.index(column) for column, _ in NAMES.values()]
    weighted = estimate.system.triangle[:-1, order] / [scale for _, scale in NAMES.values()]
    prior = np.array(list(TRUE.values()))
    # A prior of zero would make a column of zeros, and cond(U) infinite.
    return condition_number(weighted), condition_number((weighted * prior)[:, prior != 0])


def scara_moves(duration: float = 1.0) -> Trajectory:
    """Return 30 s of quintic moves of a duration [s] through random points."""
    moves = round(30 / duration)
    points = np.zeros((2, moves + 1))
    points[:, 1:-1] = np.random.default_rng(0).uniform(-1, 1, (2, moves - 1)) * [[0.45], [2.6]]
    return quintic(points, duration, ["joint_1", "joint_2"])


def scara_run(seeds: Sequence[int], duration: float, threads: int = 1, progress: Progress = silent) -> SimulatedRun:
    """Simulate 30 s of quintic moves of a duration [s] through random points, once for every seed."""
    return simulate(load_robot("scara_2r"), scara_moves(duration), EXPERIMENT, seeds, threads, progress)


def scara_equations() -> Equations:
    """Return P1's model: eight base parameters."""
    return equations_of(build_model(load_robot("scara_2r")))


def case_fits(run: SimulatedRun, equations: Equations, preparation: Preparation, seeds: int | None = None) -> CaseFits:
    """Fit every seed of a run under one preparation, or the first few of them."""
    fits = []
    for index in range(len(run.seeds) if seeds is None else seeds):
        recording = recording_of(run, index)
        fits.append(paper_fit({"run": recording}, equations, settle(preparation, [recording])))
    return CaseFits(tuple(fits))


def all_cases(run: SimulatedRun, equations: Equations, cases: Mapping[str, Preparation]) -> dict[str, CaseFits]:
    """Fit every seed of a run under every preparation."""
    return {name: case_fits(run, equations, preparation) for name, preparation in cases.items()}
