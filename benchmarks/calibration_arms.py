"""The arms on which simulated calibrations are counted: 6R, 7R, a SCARA and an arm on a track."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from steelyard.calibration import (
    CalibrationSetup,
    ElasticSetup,
    FrameSetup,
    Load,
    MarkerSetup,
    MeasuredProblem,
    identifiability,
    measured_problem,
    random_configurations,
)
from steelyard.calibration.chain.simulated import planned_measurements
from steelyard.robot import Robot, load_robot, read_urdf

CONFIGURATIONS = 40
NOISE = np.array([30e-6, 50e-6, 100e-6])
"""Standard deviation of measured x, y and z [m]."""

SIZES = {"m": 5e-4, "rad": 5e-4, "rad/(N m)": 1e-6, "m/N": 1e-6}
"""Standard deviation of the arm's true errors, by unit; compliances are between a quarter of this and twice it."""

FRAME_SIZE = 5e-3
"""Standard deviation of what base and markers deviate from their start [m or rad]."""

MARKERS = ((0.12, 0.02, 0.05), (-0.08, 0.11, 0.1), (0.03, -0.12, 0.18))
POINT = (0.0, 0.05, 0.1)
RIGID = ElasticSetup()


def _urdf(name: str, *joints: tuple[str, str, str, str, float, float]) -> Robot:
    """Return a chain of joints: kind, origin xyz, origin rpy, axis, lower and upper limit."""
    parts = ['<link name="link_0"/>']
    for number, (kind, xyz, rpy, axis, lower, upper) in enumerate(joints, start=1):
        parts.append(
            f'<link name="link_{number}"/><joint name="joint_{number}" type="{kind}"><parent link="link_{number - 1}"/>'
            f'<child link="link_{number}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
            f'<limit lower="{lower}" upper="{upper}" velocity="1" effort="100"/></joint>'
        )
    return read_urdf(f'<robot name="{name}">{"".join(parts)}</robot>'.encode())


def scara() -> Robot:
    """Return a SCARA: two parallel vertical axes, a vertical slide and a last vertical axis."""
    return _urdf(
        "scara",
        ("revolute", "0 0 0.4", "0 0 0", "0 0 1", -2.3, 2.3),
        ("revolute", "0.4 0 0", "0 0 0", "0 0 1", -2.4, 2.4),
        ("prismatic", "0.35 0 0", "3.141592653589793 0 0", "0 0 1", 0.0, 0.3),
        ("revolute", "0 0 0.1", "0 0 0", "0 0 1", -3.1, 3.1),
    )


def on_a_track() -> Robot:
    """Return an arm of five revolute joints that rides on a slide."""
    return _urdf(
        "on_a_track",
        ("prismatic", "0 0 0.2", "0 0 0", "1 0 0", -1.0, 1.0),
        ("revolute", "0 0 0.3", "0 0 0", "0 0 1", -2.8, 2.8),
        ("revolute", "0.1 0 0.2", "0 0 0", "0 1 0", -1.8, 1.2),
        ("revolute", "0 0 0.6", "0 0 0", "0 1 0", -1.2, 2.2),
        ("revolute", "0.5 0 0.08", "0 0 0", "1 0 0", -2.8, 2.8),
        ("revolute", "0.1 0 0", "0 0 0", "0 1 0", -1.9, 1.9),
    )


def kr270() -> Robot:
    """Return P3's arm; its compliances are to be found from none."""
    return replace(load_robot("kuka_kr270"), values={})


@dataclass(frozen=True)
class CalibratedCase:
    """An arm in a simulated calibration.

    Attributes:
        name: Of the case.
        robot: Makes the arm.
        link: The measured link.
        elastic: Springs.
        loads: Forces [N] in base axes under which every configuration is measured; always without load, too.
    """

    name: str
    robot: Callable[[], Robot]
    link: str
    elastic: ElasticSetup = RIGID
    loads: tuple[tuple[float, float, float], ...] = ()

    def setup(self) -> CalibrationSetup:
        """Return how it is measured: base and markers are roughly known."""
        loads = tuple(
            Load(f"load_{number}", force, (0.0, 0.0, 0.0), POINT) for number, force in enumerate(self.loads, start=1)
        )
        markers = tuple(MarkerSetup(f"m{number}", place) for number, place in enumerate(MARKERS, start=1))
        base = FrameSetup((2.0, -1.0, 0.3), (0.1, -0.2, 2.0))
        return CalibrationSetup(link=self.link, base=base, markers=markers, loads=loads, elastic=self.elastic)


_SIX = tuple(f"joint_{number}" for number in range(1, 7))

CASES = (
    CalibratedCase(
        "6R industrial (KR 270), springs", kr270, "flange", ElasticSetup(joints=_SIX),
        ((0.0, 0.0, -2500.0), (0.0, 1500.0, -500.0)),
    ),
    CalibratedCase("7R (LWR4+)", lambda: load_robot("kuka_lwr4"), "link_7"),
    CalibratedCase(
        "SCARA (RRPR), springs", scara, "link_4", ElasticSetup(joints=_SIX[:3], lateral=_SIX[:2]),
        ((0.0, 0.0, -100.0), (60.0, 80.0, -20.0)),
    ),
    CalibratedCase("arm on a slide (PRRRRR)", on_a_track, "link_6"),
)  # fmt: skip


class SimulatedCalibration:
    """Measurements of an arm, drawn again and again: true values of all identifiable unknowns, and noise.

    What is not identifiable keeps its nominal value, so that the true values of the rest are what a fit should find.

    Args:
        case: The arm.
        configurations: Number of random configurations, the same in every draw.
    """

    def __init__(self, case: CalibratedCase, configurations: int = CONFIGURATIONS) -> None:
        robot, setup = case.robot(), case.setup()
        q = random_configurations(robot, configurations, np.random.default_rng(5))
        names = ("", *(load.name for load in setup.loads))
        self.problem = measured_problem(robot, setup, planned_measurements(robot, setup, q, loads=names))
        reported = identifiability(self.problem.parameters, self.problem.at(self.problem.start).jacobian)
        self.columns, self.fitted = reported.columns, reported.names

    def drawn(self, seed: int) -> tuple[MeasuredProblem, np.ndarray]:
        """Return the problem with the measured numbers of a seed, and the true values of all unknowns (p,)."""
        rng, problem = np.random.default_rng(seed), self.problem
        truth = problem.start.copy()
        for column in self.columns:
            truth[column] += self._deviation(int(column), rng)
        equations = problem.equations
        predicted = equations.measured - problem.residual(truth)
        measured = predicted + NOISE[equations.coordinate] * rng.standard_normal(equations.size)
        return replace(problem, equations=replace(equations, measured=measured)), truth

    def _deviation(self, column: int, rng: np.random.Generator) -> float:
        parameter = self.problem.parameters[column]
        if parameter.group in ("base", "marker"):
            return FRAME_SIZE * float(rng.standard_normal())
        size = SIZES[parameter.unit]
        return size * float(rng.uniform(0.25, 2.0) if parameter.group == "compliance" else rng.standard_normal())
