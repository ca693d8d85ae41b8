"""Simulated measurements of an arm whose errors, springs and markers are known, and plans of experiments.

A plan has rows without measured values; frames and markers whose places are not given are assumed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from ...errors import CalibrationError, nearest_match
from ...robot import AnyRobot, Robot, load_robot
from ..measurement.measurements import NOT_MEASURED, Measurements, instrument_sigma
from ..measurement.setup import CalibrationSetup, FrameSetup, Kind, MarkerSetup, completed_setup, load_named
from ..records import COORDINATES
from .problem import MeasuredProblem, measured_problem

ORIGIN = (0.0, 0.0, 0.0)


def simulated_measurements(
    robot: AnyRobot,
    setup: CalibrationSetup,
    q: np.ndarray,
    truth: Mapping[str, float],
    *,
    kind: Kind = "position",
    loads: Sequence[str] = ("",),
    repeats: int = 1,
    sigma: float | np.ndarray | None = None,
    angle_sigma: float = 0.0,
    seed: int = 0,
) -> Measurements:
    """Return simulated measurements with noise: every marker (or the tool) at every configuration, load and repeat.

    Args:
        robot: The arm.
        setup: How it is measured; markers and frames that it does not place are at the origin, but for ``truth``.
        q: Configurations (na, N) [rad or m].
        truth: True values of unknowns by name; others have their nominal values.
        kind: What is measured: ``position`` or ``difference`` of markers, or ``pose`` of the tool.
        loads: Names of the loads under which every configuration is measured; an empty one is no load.
        repeats: Measurements of each.
        sigma: Noise of x, y and z [m]: one number, (3,) or (R, 3) by row; None: the instrument of the set-up.
        angle_sigma: Noise of an orientation about each axis [rad].
        seed: Seed of the noise.
    """
    robot = load_robot(robot)
    planned = planned_measurements(robot, setup, q, kind=kind, loads=loads, repeats=repeats)
    exact = exact_measurements(robot, setup, planned, truth)
    found = instrument_sigma(setup, exact) if sigma is None else sigma
    if found is None:
        raise CalibrationError(
            "how noisy the instrument is, is not said; give sigma, or declare sigma or tracker in the set-up"
        )
    return with_noise(exact, found, angle_sigma, seed)


def planned_measurements(
    robot: Robot,
    setup: CalibrationSetup,
    q: np.ndarray,
    *,
    kind: Kind = "position",
    loads: Sequence[str] = ("",),
    repeats: int = 1,
) -> Measurements:
    """Return the rows of an experiment before it is done: every value is zero, every orientation none."""
    q = np.array(q, dtype=float)
    joints = tuple(body.joint.name for body in robot.actuated)
    markers = () if kind == "pose" else tuple(marker.name for marker in setup.markers)
    if q.ndim != 2 or q.shape[0] != len(joints) or not q.shape[1]:
        raise CalibrationError(
            f"q has shape {q.shape}; ({len(joints)}, configurations) is expected, a row for each joint"
        )
    if repeats < 1 or not loads or (kind != "pose" and not markers):
        raise CalibrationError(
            f"{repeats} repeats, {len(loads)} loads and {len(markers)} markers are planned; one or more are needed"
        )
    pose, load, marker, repeat = (
        index.ravel() for index in np.indices((q.shape[1], len(loads), max(len(markers), 1), repeats))
    )
    carried = [load_named(setup, name or None) for name in loads]
    numbers = np.array([NOT_MEASURED if load is None else setup.loads.index(load) for load in carried])
    rows, oriented = pose.size, kind == "pose"
    return Measurements(
        joints=joints, q=q[:, pose], kind=(kind,) * rows, pose=pose,
        marker=np.full(rows, NOT_MEASURED) if oriented else marker, other=np.full(rows, NOT_MEASURED),
        load=numbers[load], value=np.zeros((rows, 3)), repeat=repeat,
        rotation=np.tile(np.eye(3) if oriented else np.full((3, 3), np.nan), (rows, 1, 1)),
        poses=tuple(str(number) for number in range(1, q.shape[1] + 1)), markers=markers,
    )  # fmt: skip


def exact_measurements(
    robot: Robot, setup: CalibrationSetup, planned: Measurements, truth: Mapping[str, float]
) -> Measurements:
    """Return the measurements with what a perfect instrument sees in place of what they hold.

    Coordinates that the planned measurements do not have (NaN) stay missing. A problem whose measured numbers are
    zeros, and whose measured orientations are none, has minus the prediction as its residual.
    """
    blank = replace(
        planned,
        value=np.where(np.isfinite(planned.value), 0.0, np.nan),
        rotation=np.where(np.isfinite(planned.rotation), np.eye(3), np.nan),
    )
    problem = measured_problem(robot, _placed(setup, planned.markers), blank)
    equations, residual = problem.equations, problem.residual(true_values(problem, truth))
    value, turn = np.array(blank.value), np.zeros((blank.rows, 3))
    for number, coordinate in enumerate(COORDINATES):
        mine = equations.coordinate == number
        if coordinate.startswith("r"):
            turn[equations.row[mine], number - COORDINATES.index("rx")] = residual[mine]
        else:
            value[equations.row[mine], 0 if coordinate == "distance" else number] = -residual[mine]
    # residual = log(I R^T), so that R is the inverse of its exponential.
    rotation = np.where(np.isfinite(blank.rotation), Rotation.from_rotvec(turn).inv().as_matrix(), np.nan)
    return replace(planned, value=value, rotation=rotation)


def true_values(problem: MeasuredProblem, truth: Mapping[str, float]) -> np.ndarray:
    """Return the values (p,) of a problem's unknowns: where a fit begins, but for the true values by name."""
    names = [parameter.name for parameter in problem.parameters]
    values = np.array(problem.start)
    for name, value in truth.items():
        if name not in names:
            raise CalibrationError(
                f"'{name}' is no unknown of this set-up; unknowns: {', '.join(names)}{nearest_match(name, names)}"
            )
        values[names.index(name)] = value
    return values


def with_noise(
    measurements: Measurements, sigma: float | np.ndarray, angle_sigma: float = 0.0, seed: int = 0
) -> Measurements:
    """Return the measurements with normal noise on every measured number.

    Args:
        measurements: R rows.
        sigma: Standard deviation of x, y and z [m]: one number, (3,) or (R, 3).
        angle_sigma: Standard deviation of a measured orientation about each axis [rad].
        seed: Seed of the noise.
    """
    sizes = np.asarray(sigma, dtype=float)
    if sizes.shape not in ((), (3,), (measurements.rows, 3)) or np.any(sizes < 0) or np.isinf(sizes).any():
        raise CalibrationError(
            f"sigma has shape {sizes.shape}; one number, (3,) or ({measurements.rows}, 3), none below 0, is expected"
        )
    random = np.random.default_rng(seed)
    value = measurements.value + random.standard_normal(measurements.value.shape) * sizes
    turn = Rotation.from_rotvec(angle_sigma * random.standard_normal((measurements.rows, 3))).as_matrix()
    return replace(measurements, value=value, rotation=turn @ measurements.rotation)


def _placed(setup: CalibrationSetup, markers: Sequence[str]) -> CalibrationSetup:
    """Return the set-up with frames and markers that it does not place at the origin, unknown as before."""
    setup = completed_setup(setup, markers)
    placed = tuple(replace(marker, position=marker.position or ORIGIN) for marker in setup.markers)
    return replace(setup, base=_at_origin(setup.base), tool=_at_origin(setup.tool), markers=placed)


def _at_origin(frame: FrameSetup) -> FrameSetup:
    """Return a frame at the origin of its parent as far as its place is not given."""
    return FrameSetup(frame.xyz or ORIGIN, frame.rpy or ORIGIN, frame.known)


LEVER = 0.1
"""Distance of assumed markers from the measured link's origin [m]."""

ASSUMED_MARKERS = tuple(
    MarkerSetup(f"marker_{number}", tuple(LEVER * (axis == number) for axis in (1, 2, 3)))  # type: ignore[arg-type]
    for number in (1, 2, 3)
)
"""Three markers on the axes of the measured link, where a set-up names none."""


def planned_setup(setup: CalibrationSetup) -> CalibrationSetup:
    """Return the set-up with a start for all that has none: the base at the origin, markers on the link's axes."""
    markers = tuple(
        each if each.position is not None else replace(assumed, name=each.name)
        for each, assumed in zip(setup.markers, itertools.cycle(ASSUMED_MARKERS), strict=False)
    )
    return replace(setup, base=_at_origin(setup.base), markers=markers or ASSUMED_MARKERS)


def planned_rows(robot: AnyRobot, setup: CalibrationSetup, q: np.ndarray, load: str | None = None) -> Measurements:
    """Return rows of positions of all markers at configurations (na, N), under a load of the set-up if one is named."""
    load_named(setup, load)
    return planned_measurements(load_robot(robot), setup, q, loads=(load or "",))
