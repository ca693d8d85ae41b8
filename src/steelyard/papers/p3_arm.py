"""P3's experiment on the KUKA KR-270: fifteen configurations, three markers, six repeats, a vertical load.

Table 1 gives the noise by configuration and direction, Table 2 the configurations, Table 3 the compliances (in the
catalogue). Positions of markers and load point are assumed, as the paper does not print them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..calibrate.chain.problem import MeasuredProblem, measured_problem
from ..calibrate.chain.rehearse import exact_measurements, planned_measurements
from ..calibrate.measured.measurements import Measurements
from ..calibrate.measured.setup import CalibrationSetup, ElasticSetup, FrameSetup, Load, MarkerSetup
from ..calibrate.records import Linearised
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


def loaded_plan(robot: Robot, setup: CalibrationSetup, q: np.ndarray) -> Measurements:
    """Return the rows of other configurations (6, N) [rad], each measured once."""
    return planned_measurements(robot, setup, q, kind="difference", loads=("mass",))
