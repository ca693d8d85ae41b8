"""Choice of the configurations to measure: the best few of many candidates, moved to a local optimum (P3.6).

After the choice among candidates all configurations are moved together, within limits, along the gradient of the
criterion: exact by the rows of equations, central differences of these by the joints.

:func:`choose_poses` is what ``steelyard poses`` runs; :func:`design_poses` works on any rows of equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ...errors import CalibrationError, nearest_match
from ...plain_data import plain
from ...robot import AnyRobot, Robot, load_robot
from ...text import csv_text, html_table, short_repr
from ..application.calibrated_arm import (
    CalibratedArm,
    calibrated_arm,
    in_measurement_frame,
    joint_range,
    random_configurations,
)
from ..application.targets import read_targets
from ..chain.problem import MeasuredProblem, measured_problem
from ..chain.simulated import planned_rows, planned_setup
from ..fit.identifiable import identifiability
from ..measurement.setup import CalibrationSetup, Load, default_setup, load_named
from .figures import to_html
from .pose_search import PoseCriterionName, PoseSearch, Rows, is_singular, pose_search

_DIFFERENCE = 1e-6
_RANDOM_CHOICES = 200
_TESTED = 20
_NOISE = 1e-4


@dataclass(frozen=True, eq=False)
class PoseDesign:
    """Configurations to measure.

    Attributes:
        q: The configurations (na, K).
        chosen: Candidates they come from (K,).
        criterion: Name of the criterion.
        value: Its figure: small is good for ``D``, ``A`` and ``industrial``, large for ``O1`` to ``O4``. Unknowns are
            in units of their columns' size over the candidates, but for ``industrial``, which is in its own units.
        value_of_candidates: The same before the configurations were moved off the candidates.
        value_of_random: The same for random choices of as many candidates, the median of 200; infinite (zero for O1 to
            O4) where most leave an unknown unidentifiable.
        covariance: Predicted covariance of the unknowns (p, p), all repeats counted.
        sweeps: Sweeps of exchanges over all configurations.
    """

    __repr__ = short_repr

    q: np.ndarray
    chosen: np.ndarray
    criterion: PoseCriterionName
    value: float
    value_of_candidates: float
    value_of_random: float
    covariance: np.ndarray
    sweeps: int


def design_poses(
    rows: Rows,
    candidates: np.ndarray,
    count: int,
    *,
    criterion: PoseCriterionName = "D",
    tests: np.ndarray | None = None,
    repeats: int = 1,
    lower: np.ndarray | None = None,
    upper: np.ndarray | None = None,
    movable: np.ndarray | None = None,
    names: Sequence[str] = (),
    seed: int = 0,
) -> PoseDesign:
    """Return the configurations to measure.

    Args:
        rows: Rows of equations of configurations, divided by the noise.
        candidates: Configurations to choose from (na, M), as ``random_configurations`` makes them.
        count: How many to choose, K.
        criterion: One of ``POSE_CRITERIA``.
        tests: For ``industrial``: matrices A_0 (T, r, p) of the test poses under their loads.
        repeats: How often each configuration is measured.
        lower: Lowest joint positions (na,); no limit if not given.
        upper: Highest joint positions (na,).
        movable: Which joints may be moved off the candidates (na,); all if not given.
        names: Names of the unknowns, for messages.
        seed: Of the random choices to compare with.
    """
    search = pose_search(rows, candidates, count, criterion, tests, repeats, names)
    chosen, sweeps = search.exchanged(search.added())
    free = np.ones(len(candidates), dtype=bool) if movable is None else np.asarray(movable, dtype=bool)
    q = _moved(search, candidates[:, chosen], free, lower, upper)
    blocks = search.rows(q)
    information = search.information(blocks)
    covariance = np.linalg.inv(information) * np.outer(search.scale, search.scale)
    rng = np.random.default_rng(seed)
    picks = (rng.choice(len(search.blocks), count, replace=False) for _ in range(_RANDOM_CHOICES))
    result = PoseDesign(
        q, chosen, criterion, search.figure(blocks), search.figure(search.blocks[chosen]),
        float(np.median([search.figure(search.blocks[pick]) for pick in picks])), covariance, sweeps,
    )  # fmt: skip
    for array in (result.q, result.chosen, result.covariance):
        array.setflags(write=False)
    return result


def pose_value(
    rows: Rows, q: np.ndarray, *, criterion: PoseCriterionName, tests: np.ndarray | None = None, repeats: int = 1
) -> float:
    """Return the figure of given configurations (na, K); unknowns in units of their columns' size over these."""
    search = pose_search(rows, q, q.shape[1], criterion, tests, repeats, ())
    return search.figure(search.blocks)


def _moved(
    search: PoseSearch, q: np.ndarray, free: np.ndarray, lower: np.ndarray | None, upper: np.ndarray | None
) -> np.ndarray:
    """Return the configurations moved, all together, to a local optimum within limits; unmoved if that is no better."""
    if not free.any():
        return q.copy()
    low = np.full(len(q), -np.inf) if lower is None else np.asarray(lower, dtype=float)
    high = np.full(len(q), np.inf) if upper is None else np.asarray(upper, dtype=float)
    bounds = [(a, b) for a, b in zip(low[free], high[free], strict=True) for _ in range(q.shape[1])]

    def whole(moved: np.ndarray) -> np.ndarray:
        result = q.copy()
        result[free] = np.clip(moved.reshape(-1, q.shape[1]), low[free, None], high[free, None])
        return result

    def cost_and_slope(moved: np.ndarray) -> tuple[float, np.ndarray]:
        return _cost_and_slope(search, whole(moved), free)

    found = minimize(cost_and_slope, q[free].ravel(), jac=True, method="L-BFGS-B", bounds=bounds)
    better = whole(found.x)
    return better if search.cost(search.rows(better)) < search.cost(search.rows(q)) else q.copy()


def _cost_and_slope(search: PoseSearch, q: np.ndarray, free: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the smooth cost and its derivatives by the free joints, ``2 <B G, dB/dq>`` with G that by M."""
    blocks = search.rows(q)
    information = search.information(blocks)
    if is_singular(information):
        return 1e6, np.zeros(int(free.sum()) * q.shape[1])
    cost, gradient = search.criterion.smooth(information)
    by_rows = 2 * search.repeats * blocks @ gradient
    slopes = []
    for joint in np.flatnonzero(free):
        move = np.zeros((len(q), 1))
        move[joint] = _DIFFERENCE
        change = (search.rows(q + move) - search.rows(q - move)) / (2 * _DIFFERENCE)
        slopes.append((by_rows * change).sum(axis=(1, 2)))
    return cost, np.concatenate(slopes)


def marker_rows(
    arm: CalibratedArm,
    markers: dict[str, tuple[float, float, float]],
    sigma: tuple[float, float, float],
    unknowns: tuple[str, ...],
    *,
    load: Load | None = None,
    base_rotation: np.ndarray | None = None,
) -> Rows:
    """Return a function from configurations to rows B / sigma (N, 3 M, p) of the positions of all M markers (P3 eq. 4).

    Args:
        arm: The arm, at the values about which the rows are linear: nominal before a calibration.
        markers: Positions of the markers in the measured link's frame [m], by name.
        sigma: Noise of the instrument in x, y, z [m].
        unknowns: Names of the unknowns to be found, the columns; those of base and markers may be among them.
        load: What pulls at the measured link: it bends the arm.
        base_rotation: Start R0 (3, 3) of the base in the measurement frame; its axes if not given.
    """
    missing = [name for name in unknowns if name not in arm.names]
    if missing or not unknowns or not markers:
        raise CalibrationError(
            f"rows: got unknowns {', '.join(unknowns) or 'none'} and markers {', '.join(markers) or 'none'}; "
            f"allowed are unknowns of the arm{f', {missing[0]} is none' if missing else ''}, and at least one marker"
        )
    noise = np.asarray(sigma, dtype=float)
    if noise.shape != (3,) or not (noise > 0).all() or not np.isfinite(noise).all():
        raise CalibrationError(f"sigma: got {sigma}, allowed are three finite numbers above 0 [m]")
    columns = [arm.names.index(name) for name in unknowns]
    start = np.eye(3) if base_rotation is None else base_rotation

    def rows(q: np.ndarray) -> np.ndarray:
        rotation, position = arm.pose(q, load)
        blocks = []
        for name, point in markers.items():
            place = np.array(point)
            derivatives = arm.point_derivatives(q, place, load)
            for letter, direction in zip("xyz", rotation.transpose(2, 0, 1), strict=True):
                if f"{letter}[{name}]" in arm.names:
                    derivatives[:, :, arm.names.index(f"{letter}[{name}]")] = direction
            moved = in_measurement_frame(arm, position + rotation @ place, derivatives, start)
            blocks.append(moved[:, :, columns] / noise[:, None])
        return np.concatenate(blocks, axis=1)

    return rows


@dataclass(frozen=True, eq=False)
class ChosenPoses:
    """Configurations to measure on an arm, and their predicted accuracy.

    Attributes:
        robot: The arm.
        design: The configurations and the figure of the criterion.
        names: The unknowns that can be found (p).
        units: Their units (p).
    """

    __repr__ = short_repr

    robot: Robot
    design: PoseDesign
    names: tuple[str, ...]
    units: tuple[str, ...]

    to_html = to_html

    @property
    def joints(self) -> list[str]:
        """Names of the joints, in the order of the rows of ``design.q``."""
        return [body.joint.name for body in self.robot.actuated]

    @property
    def predicted_sigma(self) -> dict[str, float]:
        """Predicted standard deviation of every unknown."""
        return dict(zip(self.names, np.sqrt(np.diag(self.design.covariance)).tolist(), strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``result.json``."""
        design = self.design
        return plain(
            {
                "criterion": design.criterion,
                "value": design.value,
                "value_of_random_choice": design.value_of_random,
                "configurations": [dict(zip(self.joints, column, strict=True)) for column in design.q.T],
                "predicted_sigma": self.predicted_sigma,
                "units": dict(zip(self.names, self.units, strict=True)),
            }
        )

    def _repr_html_(self) -> str:
        """Return the configurations as notebooks show them."""
        rows = [[k + 1, *column] for k, column in enumerate(self.design.q.T.tolist())]
        units = ["m" if body.joint.kind == "prismatic" else "rad" for body in self.robot.actuated]
        return html_table(("pose", *(f"{name} [{unit}]" for name, unit in zip(self.joints, units, strict=True))), rows)

    def to_csv(self) -> str:
        """Return the configurations as CSV: one a row, joints [rad or m] by name."""
        rows = [[str(k + 1), *(f"{x:.9g}" for x in column)] for k, column in enumerate(self.design.q.T)]
        return csv_text([["pose", *self.joints], *rows])


def choose_poses(
    robot: AnyRobot,
    count: int = 20,
    *,
    setup: CalibrationSetup | None = None,
    criterion: PoseCriterionName = "D",
    candidates: int | np.ndarray | Path = 400,
    keep: bool = False,
    tests: np.ndarray | Path | None = None,
    sigma: float | None = None,
    repeats: int = 1,
    load: str | None = None,
    fixed: Sequence[str] = (),
    seed: int = 0,
) -> ChosenPoses:
    """Choose the configurations of an arm to measure for its calibration.

    Args:
        robot: The arm, its catalogue name or the path of its file.
        count: How many configurations.
        setup: How it will be measured; if not given, a marker at the last link and errors of all joints.
        criterion: One of ``POSE_CRITERIA``.
        candidates: What to choose from: a number of random configurations, configurations (na, M), or a CSV file of
            joints.
        keep: Whether chosen configurations stay at their candidates instead of being moved to where they are best.
        tests: For ``industrial``: configurations (na, T) or a CSV file of joints where accuracy counts; 20 random ones
            if not given.
        sigma: Noise of the instrument [m]; that of the set-up if not given, or 0.1 mm.
        repeats: How often each configuration is measured.
        load: Name of the load of the set-up that the arm carries.
        fixed: Joints that are not moved off a candidate.
        seed: Of random configurations.

    Raises:
        CalibrationError: If a number is not allowed, or no choice shows all unknowns.

    Example:
        >>> from steelyard.calibration import choose_poses
        >>> choose_poses("scara_2r", 8, candidates=40, keep=True).design.q.shape
        (2, 8)
    """
    _check_numbers(count, candidates, repeats, sigma)
    robot = load_robot(robot)
    setup = planned_setup(default_setup(robot) if setup is None else setup)
    movable = _movable(robot, fixed) & (not keep)
    rng = np.random.default_rng(seed)
    given = _configurations(robot, setup, candidates, rng)
    if given.shape[1] < count:
        raise CalibrationError(f"{count} configurations cannot be chosen from {given.shape[1]} candidates")
    problem = measured_problem(robot, setup, planned_rows(robot, setup, given, load))
    unknowns = identifiability(problem.parameters, problem.at(problem.start).jacobian).names
    arm, carried = _nominal_arm(problem), load_named(setup, load)
    markers = {each.name: each.position or (0.0, 0.0, 0.0) for each in setup.markers}
    x, y, z = (sigma,) * 3 if sigma is not None else setup.sigma or (_NOISE,) * 3
    base_rotation = problem.registration.base[:9].reshape(3, 3)
    rows = marker_rows(arm, markers, (x, y, z), unknowns, load=carried, base_rotation=base_rotation)
    test_rows = None
    if criterion == "industrial":
        tested = _configurations(robot, setup, _TESTED if tests is None else tests, rng)
        test_rows = marker_rows(arm, {"tool": (0.0, 0.0, 0.0)}, (1.0, 1.0, 1.0), unknowns, load=carried)(tested)
    lower, upper = joint_range(robot)
    design = design_poses(
        rows, given, count, criterion=criterion, tests=test_rows, repeats=repeats, lower=lower, upper=upper,
        movable=movable, names=unknowns, seed=seed,
    )  # fmt: skip
    units = {each.name: each.unit for each in problem.parameters}
    return ChosenPoses(robot, design, unknowns, tuple(units[name] for name in unknowns))


def _check_numbers(count: int, candidates: int | np.ndarray | Path, repeats: int, sigma: float | None) -> None:
    for what, number in (("count", count), ("candidates", candidates), ("repeats", repeats)):
        if isinstance(number, int) and number < 1:
            raise CalibrationError(f"{what} is {number}; allowed are whole numbers from 1 on")
    if sigma is not None and not (np.isfinite(sigma) and sigma > 0):
        raise CalibrationError(f"sigma is {sigma}; allowed is a number above 0 [m]")


def _configurations(
    robot: Robot, setup: CalibrationSetup, given: int | np.ndarray | Path, rng: np.random.Generator
) -> np.ndarray:
    """Return configurations (na, N): random ones, those given, or those of a file."""
    if isinstance(given, np.ndarray):
        return given
    if isinstance(given, int):
        return random_configurations(robot, given, rng)
    problem = measured_problem(robot, setup, planned_rows(robot, setup, np.zeros((len(robot.actuated), 1))))
    targets = read_targets(given, _nominal_arm(problem))
    if targets.joints is None:
        raise CalibrationError(f"'{given}' has no columns of joints; configurations are given by their joints")
    return targets.joints


def _nominal_arm(problem: MeasuredProblem) -> CalibratedArm:
    size = len(problem.parameters)
    return calibrated_arm(problem, problem.start, np.zeros((size, size)))


def _movable(robot: Robot, fixed: Sequence[str]) -> np.ndarray:
    names = [body.joint.name for body in robot.actuated]
    for name in fixed:
        if name not in names:
            raise CalibrationError(f"fixed: no joint '{name}'; joints: {', '.join(names)}{nearest_match(name, names)}")
    return np.array([name not in fixed for name in names])
