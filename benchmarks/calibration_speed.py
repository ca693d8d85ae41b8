"""A calibration of 1,000 postures, 3 markers and 60 unknowns: ours against scipy's least squares over Pinocchio.

Both have the same measurements, unknowns, start and weights. That they are the same equations is checked before
anything is timed, and that they end at the same sum of squares afterwards. Ours gives the covariance too.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from benchmarks.peers.pinocchio_calibration import PinocchioCalibration
from benchmarks.timing import Timing, ratio, round_robin
from steelyard.calibration import (
    CalibrationSettings,
    CalibrationSetup,
    ElasticSetup,
    FrameSetup,
    Load,
    MarkerSetup,
    MeasuredProblem,
    Measurements,
    calibrated,
    identifiability,
    measured_problem,
    random_configurations,
)
from steelyard.calibration.chain.simulated import exact_measurements, planned_measurements, with_noise
from steelyard.calibration.fit.covariances import covariance_of
from steelyard.calibration.fit.stages import WeightedFit, weighted_fit
from steelyard.robot import Robot, load_robot

ROBOT = "franka_panda"
POSTURES = 1000
ROUNDS = 3
WANTED = 20
SAME_EQUATIONS, SAME_END = 1e-9, 1e-6
"""Largest difference of residuals at the truth [m], and relative one of their norms at the end."""

POINT = (0.02, 0.0, 0.12)
LOADS = (
    Load("down", (0.0, 0.0, -40.0), (0.0, 0.0, 0.0), POINT),
    Load("side", (0.0, 35.0, -15.0), (0.0, 0.0, 0.0), POINT),
    Load("pull", (30.0, 10.0, 20.0), (1.0, 0.0, -1.0), POINT),
)
MARKERS = (
    MarkerSetup("m1", (0.1, 0.0, 0.05)),
    MarkerSetup("m2", (-0.1, 0.1, 0.1)),
    MarkerSetup("m3", (0.0, -0.1, 0.2)),
)
NODES = {"joint_2": (-1.4, -0.7, 0.0, 0.7, 1.4), "joint_4": (-2.7, -2.0, -1.2, -0.4)}
"""Joints whose compliance depends on their position, as with a gravity compensator."""

SIZES = {"base": 5e-3, "marker": 2e-3, "joint": 5e-4, "compliance": 3e-6}
NOISE = 5e-5
DECLARED = CalibrationSettings(method="declared", sigma=(NOISE, NOISE, NOISE), covariance="classical")
"""The same question as scipy's: one fit with equal weights, and ``s^2 (B^T B)^-1``."""

FULL = CalibrationSettings(method="ols")
"""Sigmas and what is shared estimated from the residuals."""


@dataclass(frozen=True)
class Question:
    """What all are asked.

    Attributes:
        robot: The arm.
        setup: How it is measured.
        measurements: With noise.
        fitted: Names of the identifiable unknowns (k).
        columns: Their numbers.
        truth: Their true values (k,).
    """

    robot: Robot
    setup: CalibrationSetup
    measurements: Measurements
    fitted: tuple[str, ...]
    columns: np.ndarray
    truth: np.ndarray

    def problem(self) -> MeasuredProblem:
        """Return our equations, nothing of them compiled yet."""
        return measured_problem(self.robot, self.setup, self.measurements)


def question(springs: bool) -> Question:
    """Return measurements of an arm whose unknowns, as far as they are identifiable, deviate at random."""
    robot, rng = load_robot(ROBOT), np.random.default_rng(1)
    joints = tuple(body.joint.name for body in robot.actuated)
    elastic = ElasticSetup(joints=joints, lateral=joints, nodes=NODES) if springs else ElasticSetup()
    setup = CalibrationSetup(
        link="flange", base=FrameSetup((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), markers=MARKERS,
        loads=LOADS if springs else (), elastic=elastic,
    )  # fmt: skip
    planned = planned_measurements(robot, setup, random_configurations(robot, POSTURES, rng))
    if springs:
        planned = replace(planned, load=planned.pose % (len(LOADS) + 1) - 1)
    problem = measured_problem(robot, setup, planned)
    reported = identifiability(problem.parameters, problem.at(problem.start).jacobian)
    parameters = [problem.parameters[column] for column in reported.columns]
    truth = {p.name: p.nominal + SIZES[p.group] * _size(p.group, rng) for p in parameters}
    measured = with_noise(exact_measurements(robot, setup, planned, truth), NOISE, seed=2)
    return Question(robot, setup, measured, reported.names, reported.columns, np.array(list(truth.values())))


def _size(group: str, rng: np.random.Generator) -> float:
    """Return a deviation of either sign; springs only give way."""
    return float(rng.uniform(0.3, 1.0)) if group == "compliance" else float(rng.standard_normal())


def our_fit(problem: MeasuredProblem, columns: np.ndarray | None, settings: CalibrationSettings) -> WeightedFit:
    """Return the converged fit, its covariance computed; identifiable unknowns are found first if not given."""
    if columns is None:
        columns = identifiability(problem.parameters, problem.at(problem.start).jacobian).columns
    found = weighted_fit(problem, columns, settings, problem.start)
    covariance_of(found.fit, problem.equations, found.sigmas, settings.covariance)
    return found


def run() -> None:
    """Print times and ratios, one thread, CPU time."""
    print(f"{POSTURES} postures, 3 markers, {ROBOT}, one thread, CPU time; load average {os.getloadavg()[0]:.1f}")
    _race(question(springs=True), "geometry, base, markers and springs", f"  (wanted: {WANTED})")
    _race(question(springs=False), "geometry, base and markers, no spring", "")


def _race(requested: Question, texts: str, wanted: str) -> None:
    started = time.process_time()
    problem = requested.problem()
    problem.at(problem.start)
    problem.residual(problem.start)
    compiling = time.process_time() - started
    theirs = PinocchioCalibration(requested.robot, requested.setup, requested.measurements, requested.fitted)
    _check_equations(requested, problem, theirs)
    start = problem.start[requested.columns]
    ends: dict[str, tuple[float, int]] = {}

    def ours() -> None:
        found = our_fit(problem, requested.columns, DECLARED)
        ends["ours"] = float(np.linalg.norm(found.fit.residual)), len(found.iterations)

    def scipy_by(method: Literal["trf", "lm"]) -> None:
        found = theirs.fit(start, method)
        ends[method] = float(np.linalg.norm(found.fun)), int(found.nfev)

    contestants = {"ours": ours, "trf": lambda: scipy_by("trf"), "lm": lambda: scipy_by("lm")}
    more = {"told": lambda: our_fit(problem, None, FULL), "whole": lambda: calibrated(problem, settings=FULL)}
    times = round_robin({**contestants, **more}, ROUNDS)
    print(
        f"  {texts}: {len(requested.fitted)} unknowns, {problem.equations.size} equations; compiled {compiling:.2f} s"
    )
    print(f"    ours, fit and covariance    {_told(times['ours'])}, {ends['ours'][1]} iterations")
    for method in ("trf", "lm"):
        apart = abs(ends[method][0] - ends["ours"][0]) / ends["ours"][0]
        end = f"norm of residuals apart by {apart:.0e}{'' if apart < SAME_END else ', NOT THE SAME END'}"
        print(f"    scipy's {method:3s} over Pinocchio  {_told(times[method])}, {ends[method][1]} steps; {end}")
    better = times[min(("trf", "lm"), key=lambda method: times[method].median)]
    print(f"    ours: times faster than the better of them  {ratio(better, times['ours'])}{wanted}")
    print(f"      identifiable unknowns and sigmas found, too    {ratio(better, times['told'])}")
    print(f"      and outliers, and cross-validation        {ratio(better, times['whole'])}")


def _check_equations(requested: Question, problem: MeasuredProblem, theirs: PinocchioCalibration) -> None:
    """Refuse to time what is not the same function."""
    values = problem.start.copy()
    values[requested.columns] = requested.truth
    apart = float(np.abs(problem.residual(values) - theirs.residual(requested.truth)).max())
    if not apart < SAME_EQUATIONS:
        raise ArithmeticError(f"Pinocchio's residuals are others than ours: apart by {apart:.1e} m")


def _told(timing: Timing) -> str:
    return f"{timing.median:.3f} s ({min(timing.seconds):.3f} to {max(timing.seconds):.3f})"
