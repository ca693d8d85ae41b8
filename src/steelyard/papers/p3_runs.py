"""P3's experiment on the KUKA KR-270, and its weights over many simulated experiments: claimed and true accuracy.

Fifteen configurations, three markers, six repeats, a vertical load.

Table 1 gives the noise by configuration and direction, Table 2 the configurations, Table 3 the compliances (in the
catalogue). Positions of markers and load point are assumed, as the paper does not print them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..calibration.chain.problem import MeasuredProblem, measured_problem
from ..calibration.chain.simulated import exact_measurements, planned_measurements
from ..calibration.fit.covariances import covariance_of, overlap
from ..calibration.fit.fit import CalibrationFit, fitted
from ..calibration.fit.settings import CalibrationSettings
from ..calibration.fit.stages import weighted_fit
from ..calibration.measurement.setup import CalibrationSetup, ElasticSetup, FrameSetup, Load, MarkerSetup
from ..calibration.records import CalibrationProblem, Linearised, MeasurementEquations, Unknown
from ..progress import Progress
from ..robot import Robot, load_robot, transform_from_placement

CONFIGURATIONS_DEG = np.array(
    [
        [79.2, -0.01, -5.57, 51, -97.52, -91.67],
        [63, -0.01, -12.22, -56.49, 41.42, 150.55],
        [63, -0.01, -47.98, -70.04, -61.55, 177.16],
        [95, -25.24, 33, 129.69, -98.1, 90.57],
        [95, -25.24, -107.01, 109.95, -61.19, 174.21],
        [105, -25.24, 14.3, 55.21, 41.26, -152.97],
        [56.6, -56.9, 44.54, -55.11, 41.9, 152.06],
        [56.6, -56.9, 64.73, -129.65, -98.26, -90.55],
        [144.8, -56.9, 104.49, -69.41, 61.67, -6.33],
        [-41, -99.85, -91.68, 55.12, 41.53, -152.48],
        [-143, -99.85, -32.64, 110.31, -61.47, -6.29],
        [-143, -99.85, -72.01, 129.65, -98.09, 90.82],
        [133, -140, 147.68, 129.64, -97.9, 90.99],
        [-60, -140, 7.59, -110.09, -61.36, -174.09],
        [-60, -140, -52, -124.89, -41.62, 27.78],
    ]
)
"""Table 2: joint angles (15, 6) [deg]; q2 is the same in each triple."""

SIGMA_UM = np.array(
    [
        [150, 64, 33], [57, 86, 118], [97, 70, 44], [28, 19, 35], [72, 48, 17], [153, 46, 22], [112, 66, 53],
        [74, 55, 59], [80, 63, 102], [69, 73, 79], [80, 36, 26], [53, 39, 29], [26, 29, 29], [88, 121, 42],
        [90, 52, 50],
    ]
)  # fmt: skip
"""Table 1: noise in x, y and z by configuration (15, 3) [um]."""

NODES = tuple(np.radians([-0.01, -25.24, -56.9, -99.85, -140.0]).tolist())
"""Positions of joint 2 at which its compliance, with the gravity compensator, has a value of its own."""

MASS, POINT, REPEATS, SIGMA0 = 265.0, (0.15, 0.0, -0.40), 6, 10e-6
MARKERS = ("marker_1", "marker_2", "marker_3")


@dataclass(frozen=True, eq=False)
class Experiment3:
    """P3's experiment without its noise.

    Attributes:
        robot: The arm.
        setup: How it is measured.
        problem: Its equations, the measured numbers exact.
        truth: True values of the unknowns (p,).
        sigma: True noise of every equation (E,) [m].
    """

    robot: Robot
    setup: CalibrationSetup
    problem: MeasuredProblem
    truth: np.ndarray
    sigma: np.ndarray

    @cached_property
    def there(self) -> Linearised:
        """Residuals and B at the start."""
        return self.problem.at(self.problem.start)

    def noise(self, seed: int) -> np.ndarray:
        """Return the noise of a seed (E,) [m]."""
        return np.random.default_rng([3, seed]).standard_normal(len(self.sigma)) * self.sigma


def p3_setup(robot: Robot) -> CalibrationSetup:
    """Return P3's set-up: base and markers known, springs about all joints, the load vertical."""
    joints = tuple(body.joint.name for body in robot.actuated)
    force = tuple(MASS * np.array(robot.gravity))
    tool = transform_from_placement(robot.frame("tool").placement)[1]
    places = {name: transform_from_placement(robot.frame(name).placement)[1] - tool for name in MARKERS}
    origin = FrameSetup((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), known=True)
    return CalibrationSetup(
        link="tool", base=origin, tool=origin, geometry="none",
        markers=tuple(
            MarkerSetup(name, (float(x), float(y), float(z)), known=True) for name, (x, y, z) in places.items()
        ),
        loads=(Load("mass", force, (0.0, 0.0, 0.0), POINT),),
        elastic=ElasticSetup(joints=joints, nodes={joints[1]: NODES}),
    )  # fmt: skip


def p3_experiment() -> Experiment3:
    """Return P3's experiment: differences of marker positions, loaded minus unloaded."""
    robot = load_robot("kuka_kr270")
    setup = p3_setup(robot)
    planned = planned_measurements(
        robot, setup, np.radians(CONFIGURATIONS_DEG.T), kind="difference", loads=("mass",), repeats=REPEATS
    )
    problem = measured_problem(robot, setup, planned)
    truth = {each.name: robot.values.get(each.name, 0.0) for each in problem.parameters}
    problem = problem.with_measurements(exact_measurements(robot, setup, planned, truth))
    equations = problem.equations
    sigma = 1e-6 * SIGMA_UM[equations.pose, equations.coordinate]
    return Experiment3(robot, setup, problem, np.array(list(truth.values())), sigma)


ETAS = (0.5, 1.0, 2.0)
# A residual of zero would be an infinite weight.
_LEAST_RESIDUAL = 1e-9
OWN_ITERATIONS = 4
"""Iterations of weights by own residuals; they never converge."""

Outcome = tuple[np.ndarray, np.ndarray]
"""Values and claimed sigmas, each (k,)."""


@dataclass(frozen=True, eq=False)
class Runs3:
    """Estimates over simulated experiments.

    Attributes:
        truth: True compliances (k,).
        values: Estimates (runs, k) by method.
        sigmas: Sigmas that each method reports (runs, k).
    """

    truth: np.ndarray
    values: Mapping[str, np.ndarray]
    sigmas: Mapping[str, np.ndarray]

    @property
    def methods(self) -> Sequence[str]:
        """Names of the methods."""
        return tuple(self.values)

    @property
    def count(self) -> int:
        """Number of experiments."""
        return len(self.values["ols"])

    def has_claim(self, method: str) -> bool:
        """Whether the method has sigmas."""
        return method in self.sigmas

    def mean(self, method: str) -> np.ndarray:
        """Return the mean estimates (k,)."""
        return self.values[method].mean(axis=0)

    def spread(self, method: str) -> np.ndarray:
        """Return the standard deviations of the estimates over the runs (k,)."""
        return self.values[method].std(axis=0, ddof=1)

    def claimed(self, method: str) -> np.ndarray:
        """Return the claimed sigmas (k,), root mean square over the runs."""
        return np.sqrt(np.mean(self.sigmas[method] ** 2, axis=0))

    def coverage(self, method: str) -> np.ndarray:
        """Return how often three sigmas about the estimate contain the truth (k,)."""
        return (np.abs(self.values[method] - self.truth) <= 3 * self.sigmas[method]).mean(axis=0)

    def moved_by_eta(self) -> np.ndarray:
        """Return by how many sigmas the smallest and the largest eta move the estimates, mean over runs (2, k)."""
        middle = self.values["eta 1"]
        moves = [np.abs(self.values[f"eta {eta:g}"] - middle) for eta in (ETAS[0], ETAS[-1])]
        return np.array([(move / self.sigmas["eta 1"]).mean(axis=0) for move in moves])


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """P3 eq. 4: deflections are linear in the compliances, ``dp = B X``, with the B of the problem's start.

    Attributes:
        parameters: The unknowns (p).
        equations: The measured numbers (E).
        start: Where B holds (p,).
        there: Residuals of exact numbers at the start, and B.
        noise: What is added to exact numbers (E,).
    """

    parameters: tuple[Unknown, ...]
    equations: MeasurementEquations
    start: np.ndarray
    there: Linearised
    noise: np.ndarray

    def at(self, values: np.ndarray) -> Linearised:
        """Return residuals and B."""
        return Linearised(self.residual(values), self.there.jacobian)

    def residual(self, values: np.ndarray) -> np.ndarray:
        """Return the residuals."""
        return self.there.residual + self.noise - self.there.jacobian @ (values - self.start)

    def taken(self, chosen: np.ndarray) -> LinearProblem:
        """Return some of the equations."""
        part = Linearised(self.there.residual[chosen], self.there.jacobian[chosen])
        return LinearProblem(self.parameters, self.equations.taken(chosen), self.start, part, self.noise[chosen])


def linear_problem(experiment: Experiment3, seed: int) -> LinearProblem:
    """Return P3's linear form with the noise of a seed."""
    problem = experiment.problem
    return LinearProblem(
        tuple(problem.parameters), problem.equations, problem.start, experiment.there, experiment.noise(seed)
    )


@dataclass(frozen=True, eq=False)
class OneRun3:
    """Estimates and intervals of one experiment.

    Attributes:
        iterations: WLS estimates after each estimation of the weights (iterations, k), OLS first.
        ols: 3-sigma intervals of OLS (k, 2).
        wls: 3-sigma intervals of WLS (k, 2).
    """

    iterations: np.ndarray
    ols: np.ndarray
    wls: np.ndarray

    @property
    def overlapping(self) -> int:
        """How many intervals of the two have a point in common."""
        return int(overlap(self.ols, self.wls).sum())

    @property
    def steps(self) -> np.ndarray:
        """Largest change of an estimate by each iteration, in half widths of the WLS interval (iterations - 1,)."""
        return (np.abs(np.diff(self.iterations, axis=0)) / (np.diff(self.wls).ravel() / 2)).max(axis=1)


def one_run(experiment: Experiment3, columns: np.ndarray, seed: int = 0) -> OneRun3:
    """Return the estimates of one experiment by iteration, and its intervals."""
    problem = linear_problem(experiment, seed)
    found = {}
    for method in ("ols", "wls"):
        values, sigma = _weighted(problem, columns, CalibrationSettings(method=method, covariance="groups"))
        found[method] = np.column_stack([values - 3 * sigma, values + 3 * sigma])
    iterations = weighted_fit(problem, columns, CalibrationSettings(method="wls")).history[:, columns]
    return OneRun3(iterations, found["ols"], found["wls"])


def monte_carlo(experiment: Experiment3, columns: np.ndarray, runs: int, progress: Progress) -> Runs3:
    """Return estimates of the compliances (by number) over experiments with other noise."""
    values: dict[str, list[np.ndarray]] = {}
    sigmas: dict[str, list[np.ndarray]] = {}
    for run in range(runs):
        for method, (found, claimed) in _estimates(linear_problem(experiment, run), columns).items():
            values.setdefault(method, []).append(found)
            if claimed is not None:
                sigmas.setdefault(method, []).append(claimed)
        progress(run + 1, runs)
    return Runs3(
        experiment.truth[columns],
        {name: np.array(rows) for name, rows in values.items()},
        {name: np.array(rows) for name, rows in sigmas.items()},
    )


def _estimates(problem: CalibrationProblem, columns: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    plain = fitted(problem, columns)
    found: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
        "ols": _weighted(problem, columns, CalibrationSettings(method="ols", covariance="groups")),
        "wls": _weighted(problem, columns, CalibrationSettings(method="wls", covariance="groups")),
        "wls, one iteration": (
            weighted_fit(problem, columns, CalibrationSettings(method="wls", reweightings=1)).fit.values[columns],
            None,
        ),
    }
    found.update(_self_confirmed(problem, columns, plain))
    for eta in ETAS:
        settings = CalibrationSettings(method="eq14", covariance="groups", sigma0=SIGMA0, eta=eta)
        found[f"eta {eta:g}"] = _weighted(problem, columns, settings)
    return found


def _weighted(problem: CalibrationProblem, columns: np.ndarray, settings: CalibrationSettings) -> Outcome:
    weighted = weighted_fit(problem, columns, settings)
    covariance = covariance_of(weighted.fit, problem.equations, weighted.sigmas, settings.covariance)
    return weighted.fit.values[columns], covariance.sigma


def own_residuals(iterations: int) -> str:
    """Return the name of the weights by own residuals after so many iterations."""
    return f"own residuals, iteration {iterations}"


def _self_confirmed(problem: CalibrationProblem, columns: np.ndarray, fit: CalibrationFit) -> dict[str, Outcome]:
    """Return what weights of one over each equation's own residual give, eq. 13, by iteration.

    Steelyard rejects such weights; they show where the paper's figures come from.
    """
    found = {}
    for number in range(1, OWN_ITERATIONS + 1):
        weight = 1 / np.maximum(np.abs(fit.residual), _LEAST_RESIDUAL)
        fit = fitted(problem, columns, weight, start=fit.values)
        found[own_residuals(number)] = (fit.values[columns], np.sqrt(np.diag(fit.inverse)))
    return found
