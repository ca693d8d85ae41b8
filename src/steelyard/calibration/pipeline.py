"""Calibration from files: set-up and measurements are read and checked, the arm is fitted and judged.

:func:`calibrate` is what ``steelyard calibrate`` runs. Its parts are public too: :func:`read_measurements`,
:func:`measured_problem`, :func:`calibrated`, :func:`accuracy_map`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CalibrationError
from ..files import write_aside
from ..plain_data import frame_of, plain
from ..progress import Progress, silent
from ..robot import AnyRobot, Robot, load_robot
from ..run import hashes_of
from ..text import html_table, short_repr
from .application.calibrated_arm import (
    AccuracyMap,
    CalibratedArm,
    accuracy_map,
    calibrated_arm,
    map_csv,
    random_configurations,
)
from .application.exports import write_calibration_yaml, write_urdf
from .application.saved import calibration_to_json
from .chain.problem import MeasuredProblem, measured_problem
from .figures import plot_errors, to_html
from .fit.calibration import Calibration, calibrated
from .fit.settings import CalibrationSettings, Method
from .measurement.files import read_measurements
from .measurement.measurements import Measurements, declared_sigma
from .measurement.setup import CalibrationSetup, default_setup, load_named
from .measurement.setup_file import read_setup
from .measurement.validation import Suspicion, check_measurements

if TYPE_CHECKING:
    import polars

MAPPED = 1000
"""Random configurations of the accuracy map."""

EXPORTS = ("urdf", "yaml")
"""Files in which a calibration can be exported."""

SetupLike = CalibrationSetup | str | os.PathLike[str]
MeasurementsLike = Measurements | str | os.PathLike[str]
"""The record, or the path of its file."""

_SEED = 0


@dataclass(frozen=True, eq=False)
class CalibrationResult:
    """Result of a calibration from files.

    Attributes:
        problem: Robot, set-up and measurements, as unknowns and equations.
        calibration: What was found, how sure, and the verdict.
        workspace: Predicted uncertainty over the workspace; None if it was not computed.
        suspicions: Points whose distances to other markers do not fit, found before any fit.
        others: The measurements that were validated with; None if there are none.

    Example:
        >>> from steelyard.calibration import CalibrationSetup, MarkerSetup
        >>> from steelyard.calibration import random_configurations, simulated_measurements
        >>> nests = [(0.3, 0.0, 0.0), (0.2, 0.1, 0.0), (0.2, 0.0, 0.1)]
        >>> setup = CalibrationSetup("link_2", markers=tuple(MarkerSetup(f"nest_{k}", p) for k, p in enumerate(nests)))
        >>> q = random_configurations("scara_2r", 20, np.random.default_rng(0))
        >>> points = simulated_measurements(steelyard.load_robot("scara_2r"), setup, q, {"x2": 2e-3}, sigma=5e-5)
        >>> found = steelyard.calibrate("scara_2r", points, setup=setup, workspace=0)
        >>> found.to_frame().columns[:4]
        ['name', 'value', 'sigma', 'unit']
    """

    __repr__ = short_repr

    problem: MeasuredProblem
    calibration: Calibration
    workspace: AccuracyMap | None
    suspicions: tuple[Suspicion, ...]
    others: MeasuredProblem | None = None

    plot_errors = plot_errors
    to_html = to_html

    @property
    def arm(self) -> CalibratedArm:
        """The calibrated arm: poses with uncertainty, and what corrects targets."""
        found = self.calibration
        return calibrated_arm(self.problem, found.values, found.covariance, found.ranges, found.unmodelled)

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``result.json``, without what a run folder adds."""
        return {
            **calibration_to_json(self.calibration, self.workspace),
            "suspicions": plain(self.suspicions),
            "notes": plain(self.problem.measurements.notes),
        }

    def to_frame(self) -> polars.DataFrame:
        """Return the parameters as a frame: name, value, sigma, unit, nominal value and meaning, a row each."""
        return frame_of(self.to_json()["parameters"])

    def _repr_html_(self) -> str:
        """Return verdict and parameters as notebooks show them."""
        columns = ("name", "nominal", "value", "sigma", "unit")
        rows = [[one[column] for column in columns] for one in self.to_json()["parameters"]]
        return self.calibration.verdict._repr_html_() + html_table(("parameter", *columns[1:]), rows)


def calibrate(
    robot: AnyRobot,
    measurements: MeasurementsLike,
    *,
    setup: SetupLike | None = None,
    method: Method | None = None,
    settings: CalibrationSettings | None = None,
    validate: MeasurementsLike | None = None,
    workspace: int = MAPPED,
    load: str | None = None,
    progress: Progress = silent,
) -> CalibrationResult:
    """Calibrate an arm from measured positions or poses: geometry, compliances, accuracy, and a verdict.

    Args:
        robot: The arm, its catalogue name or the path of its file.
        measurements: What was measured, or its file.
        setup: How it was measured, or its file (TOML); if not given, the last link of the arm and all joints.
        method: ``wls``, ``ols``, ``eq14``, ``declared`` or ``robust``; that of the settings if not given. ``declared``
            takes the sigmas that the set-up declares.
        settings: Everything else that may be chosen.
        validate: Measurements to judge by, which are not fitted; without them the verdict uses cross-validation.
        workspace: Random configurations of the accuracy map; 0 for no map.
        load: Name of the load of the set-up under which the map holds; None for no load.
        progress: Called with the amount done and the amount in all.

    Raises:
        CalibrationError: If the files cannot be read, or the measurements cannot give what is wanted.

    Example:
        >>> from steelyard.calibration import CalibrationSetup, MarkerSetup
        >>> from steelyard.calibration import random_configurations, simulated_measurements
        >>> nests = [(0.3, 0.0, 0.0), (0.2, 0.1, 0.0), (0.2, 0.0, 0.1)]
        >>> setup = CalibrationSetup("link_2", markers=tuple(MarkerSetup(f"nest_{k}", p) for k, p in enumerate(nests)))
        >>> q = random_configurations("scara_2r", 20, np.random.default_rng(0))
        >>> points = simulated_measurements(steelyard.load_robot("scara_2r"), setup, q, {"x2": 2e-3}, sigma=5e-5)
        >>> found = steelyard.calibrate("scara_2r", points, setup=setup, workspace=0)
        >>> found.calibration.verdict.grade, round(found.calibration.before.mean_mm, 1)
        ('good', 1.8)
    """
    if workspace < 0:
        raise CalibrationError(f"workspace: got {workspace} configurations; allowed are 0 and above")
    robot = load_robot(robot)
    chosen = load_setup(robot, setup)
    carried = load_named(chosen, load) if workspace else None
    measured = _measurements(robot, chosen, measurements)
    suspicions = check_measurements(robot, chosen, measured)
    problem = measured_problem(robot, chosen, measured)
    progress(1, 4)
    others = None if validate is None else _validation(problem, measurements, validate)
    found = calibrated(problem, settings=_settings(problem, settings, method), validation=others)
    progress(2, 4)
    result = CalibrationResult(problem, found, None, suspicions, others)
    if workspace:
        q = random_configurations(robot, workspace, np.random.default_rng(_SEED))
        result = replace(result, workspace=accuracy_map(result.arm, q, load=carried))
    progress(4, 4)
    return result


def load_setup(robot: Robot, setup: SetupLike | None) -> CalibrationSetup:
    """Return a set-up, read from its file if it is the path of one; the default one if None is given."""
    if setup is None:
        return default_setup(robot)
    return setup if isinstance(setup, CalibrationSetup) else read_setup(Path(setup), robot)


def _measurements(robot: Robot, setup: CalibrationSetup, measurements: MeasurementsLike) -> Measurements:
    if isinstance(measurements, Measurements):
        return measurements
    return read_measurements(Path(measurements), robot, setup)


def _settings(
    problem: MeasuredProblem, settings: CalibrationSettings | None, method: Method | None
) -> CalibrationSettings:
    chosen = settings or CalibrationSettings()
    if method == "declared" and chosen.sigma is None:
        chosen = replace(chosen, sigma=declared_sigma(problem.setup, problem.measurements, problem.equations))
    return chosen if method is None else replace(chosen, method=method)


def _validation(problem: MeasuredProblem, fitted: MeasurementsLike, validate: MeasurementsLike) -> MeasuredProblem:
    """Return measurements to validate with; those that are fitted are refused."""
    if fitted is validate or _is_same_file(fitted, validate):
        raise CalibrationError(f"'{validate}' is the file that is fitted; validate with other measurements")
    measured = _measurements(problem.robot, problem.setup, validate)
    check_measurements(problem.robot, problem.setup, measured, fewest=1)
    return problem.for_validation(measured)


def _is_same_file(one: MeasurementsLike, other: MeasurementsLike) -> bool:
    if isinstance(one, Measurements) or isinstance(other, Measurements):
        return False
    first, second = Path(one), Path(other)
    hashes = [list(hashes_of(path).values()) for path in (first, second)]
    return first.resolve() == second.resolve() or hashes[0] == hashes[1]


def export_calibration(
    result: CalibrationResult,
    folder: Path,
    formats: Sequence[str] = ("yaml",),
    *,
    robot_file: Path | None = None,
    run: str = "",
) -> list[str]:
    """Write a calibration for other programs, and its accuracy map; return the names of the files.

    Args:
        result: The calibration.
        folder: Where the files go.
        formats: Of ``EXPORTS``: ``yaml`` (corrections by joint), ``urdf`` (the robot's file with corrected joints).
        robot_file: The robot's URDF; needed for ``urdf``.
        run: Identifier of the run, noted in the YAML file.
    """
    found, problem, written = result.calibration, result.problem, []
    arm = calibrated_arm(problem, found.values, found.covariance)
    if "yaml" in formats:
        base, tool = problem.base_pose(found.values), problem.tool_pose(found.values)
        write_calibration_yaml(folder / "calibration.yaml", arm, base=base, tool=tool, run=run)
        written.append("calibration.yaml")
    if "urdf" in formats:
        if robot_file is None:
            raise CalibrationError("export urdf: the robot's URDF is not given; give robot_file, or take yaml")
        write_urdf(robot_file, arm, folder / "calibrated.urdf")
        written.append("calibrated.urdf")
    if result.workspace is not None:
        joints = [body.joint.name for body in problem.robot.actuated]
        write_aside(folder / "workspace.csv", map_csv(result.workspace, joints))
        written.append("workspace.csv")
    return written
