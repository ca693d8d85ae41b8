"""Geometric calibration of P3's arm: joint offsets, lengths and twists from positions of three markers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..calibration.chain.problem import measured_problem
from ..calibration.chain.simulated import planned_measurements, simulated_measurements
from ..calibration.fit.calibration import Calibration, calibrated
from ..calibration.fit.identifiable import identifiability
from ..calibration.measurement.setup import CalibrationSetup, FrameSetup, MarkerSetup
from ..progress import Progress
from ..robot import load_robot
from .claim import Claim, PaperTable, table, within
from .p3_runs import CONFIGURATIONS_DEG, MARKERS, p3_setup

CONFIGURATIONS, UNSEEN, NOISE, SEED = 40, 200, 50e-6, 13
LENGTH_ERROR, ANGLE_ERROR = 0.5e-3, 0.5e-3
"""Standard deviations of the simulated errors [m, rad]."""

BASE = FrameSetup((2.0, -1.0, 0.3), (0.01, -0.02, 0.7))


@dataclass(frozen=True, eq=False)
class Geometry3:
    """A simulated geometric calibration.

    Attributes:
        calibration: What was found.
        truth: True values of the fitted unknowns by name.
        before: Mean error of the nominal arm on unseen configurations, base and markers fitted [mm].
        unseen: The same of the calibrated arm [mm].
    """

    calibration: Calibration
    truth: dict[str, float]
    before: float
    unseen: float

    @property
    def coverage(self) -> float:
        """Part of the fitted unknowns whose 95 % interval contains the truth."""
        held = [low <= self.truth[name] <= high for name, (low, high) in self._kept_intervals()]
        return float(np.mean(held))

    def _kept_intervals(self) -> Iterator[tuple[str, tuple[float, float]]]:
        names = [each.name for each in self.calibration.problem.parameters]
        rows = self.calibration.interval(0.95)
        for name in self.calibration.fitted:
            low, high = rows[names.index(name)]
            yield name, (float(low), float(high))


def p3_geometry(progress: Progress) -> Geometry3:
    """Simulate and calibrate: unknown base and markers, and all identifiable errors of the joints."""
    robot = load_robot("kuka_kr270")
    springs = p3_setup(robot)
    setup = CalibrationSetup(
        link="tool", base=BASE, markers=tuple(MarkerSetup(each.name, each.position) for each in springs.markers)
    )
    printed = np.radians(CONFIGURATIONS_DEG.T)
    rng = np.random.default_rng(SEED)
    low, high = printed.min(axis=1)[:, None], printed.max(axis=1)[:, None]
    q, unseen = (rng.uniform(low, high, (len(printed), count)) for count in (CONFIGURATIONS, UNSEEN))
    problem = measured_problem(robot, setup, planned_measurements(robot, setup, q))
    identifiable = identifiability(problem.parameters, problem.at(problem.start).jacobian)
    truth = {each.name: each.nominal for each in problem.parameters}
    for column in identifiable.columns:
        each = problem.parameters[column]
        if each.group == "joint":
            truth[each.name] = float(rng.normal(0.0, ANGLE_ERROR if each.unit == "rad" else LENGTH_ERROR))
    measured = simulated_measurements(robot, setup, q, truth, sigma=NOISE, seed=SEED)
    progress(1, 2)
    found = calibrated(problem.with_measurements(measured))
    progress(2, 2)
    exact = simulated_measurements(robot, setup, unseen, truth, sigma=1e-12, seed=SEED)
    others = problem.with_measurements(exact)
    errors = [
        1e3 * float(np.linalg.norm(others.residual(values).reshape(3, -1), axis=0).mean())
        for values in (problem.start, found.values)
    ]
    return Geometry3(found, {name: truth[name] for name in identifiable.names}, errors[0], errors[1])


def geometry_claims(geometry: Geometry3) -> Iterator[Claim]:
    """Return the claims on the simulated calibration."""
    found = geometry.calibration
    yield within(
        f"geometry, {CONFIGURATIONS} configurations, {len(MARKERS)} markers, noise 0.05 mm: mean error on unseen "
        "configurations after calibration, mm",
        "not said", geometry.unseen, 0.0, 0.05,
        f"{geometry.before:.2f} mm before; {len(found.fitted)} of {len(found.problem.parameters)} unknowns are "
        "identifiable, base and markers among them", why="the noise of one measured coordinate",
        fails_if="a geometric error is missed or assigned to the wrong joint, or dependent unknowns are both fitted",
    )  # fmt: skip
    yield within(
        "geometry: part of the unknowns whose 95 % interval contains the truth", "not said", geometry.coverage, 0.85,
        1.0, why="one experiment", fails_if="sigmas are too small, or an unidentifiable unknown is fitted",
    )  # fmt: skip


def geometry_table(geometry: Geometry3) -> PaperTable:
    """Return what was found beside the truth."""
    found = geometry.calibration
    numbers = {each.name: k for k, each in enumerate(found.problem.parameters)}
    rows = []
    for name in found.fitted:
        each = found.problem.parameters[numbers[name]]
        rows.append(
            [name, each.meaning, each.unit, geometry.truth[name], float(found.values[numbers[name]]),
             float(found.sigma[numbers[name]])]
        )  # fmt: skip
    return table("Simulated geometry", ["unknown", "meaning", "unit", "true", "found", "sigma"], rows)
