"""Corrected joint targets: commands with which the calibrated and loaded arm reaches the wanted poses.

A controller that knows the nominal arm goes to nominal joints q_n with ``f_nominal(q_n) = pose``. The real arm errs
there; the command q with ``f_calibrated(q, load) = pose`` is sought near q_n: within limits, on the same branch and,
where joints outnumber what is wanted, with the least motion from q_n.

They are written as a CSV file in the units of the targets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ...files import write_aside
from ...robot import AnyRobot, load_robot
from ...text import csv_text, short_repr
from ..measurement.setup import LENGTHS, TURNS, Load
from .calibrated_arm import CalibratedArm, configurations_of, joint_range, largest_semi_axis, random_configurations
from .inverse import InverseProblem, PoseOf, Postures, solved_postures
from .targets import Targets, unit_of

Status = Literal["reached", "out of reach", "limit", "far"]
"""``far``: reached only far from the nominal joints, which is no correction but another posture."""

LARGEST_CORRECTION = 0.2
"""A correction of a joint beyond this [rad or m] is called far: the pose is near a singularity."""

_MOST_STARTS = 20
_AT_LIMIT = 1e-9


@dataclass(frozen=True, eq=False)
class Corrected:
    """Corrected joint targets, one a target. Where a target fails, q is the nearest that was found: look at ``status``.

    Attributes:
        names: Names of the targets (N).
        joints: Names of the joints (na).
        nominal: Joints to which a controller would go by itself (na, N) [rad or m].
        q: Joints to command instead (na, N) [rad or m].
        status: What became of each target (N).
        why: Why a target failed; empty where it is reached (N).
        uncorrected: How far the arm would be from the wanted position at the nominal joints (N,) [m].
        residual: How far it is by the calibrated model at the corrected ones (N,) [m].
        residual_rotation: The same for the orientation (N,) [rad]; zero where that is free.
        sigma: Predicted covariance of the position there (N, 3, 3) [m^2].
        semi_axis: Largest semi-axis of the 1-sigma ellipsoid (N,) [m].
    """

    __repr__ = short_repr

    names: tuple[str, ...]
    joints: tuple[str, ...]
    nominal: np.ndarray
    q: np.ndarray
    status: tuple[Status, ...]
    why: tuple[str, ...]
    uncorrected: np.ndarray
    residual: np.ndarray
    residual_rotation: np.ndarray
    sigma: np.ndarray
    semi_axis: np.ndarray

    @property
    def reached(self) -> np.ndarray:
        """Whether each target is reached by a correction (N,)."""
        return np.array([status == "reached" for status in self.status])

    @property
    def correction(self) -> np.ndarray:
        """Corrected minus nominal joints (na, N) [rad or m]."""
        return self.q - self.nominal


def corrected_targets(
    arm: CalibratedArm,
    targets: Targets,
    *,
    load: Load | None = None,
    start: np.ndarray | None = None,
    seed: int = 0,
) -> Corrected:
    """Return the joint commands with which the calibrated arm reaches its targets.

    Args:
        arm: The calibrated arm.
        targets: Wanted poses.
        load: What pulls at the measured link: it bends the arm.
        start: Posture (na,) near which nominal joints are sought for targets that have none; the middle of the limits
            if not given.
        seed: Of the further starts that are tried where the first does not lead to a target.
    """
    nominal = nominal_joints(arm, targets, start, seed)
    problem = _problem(arm, targets, _model(arm, targets.point, load), _model(arm, targets.point, None, rigid=True))
    found = solved_postures(problem, nominal)
    uncorrected = np.linalg.norm(problem.pose_of(nominal)[1] - targets.wanted.position, axis=1)
    status, why = _outcome(arm, problem, nominal, found)
    sigma = arm.position_covariance(found.q, arm.point_derivatives(found.q, targets.point, load))
    result = Corrected(
        targets.names, tuple(body.joint.name for body in arm.robot.actuated), nominal, found.q, status, why,
        uncorrected, found.position_error, found.rotation_error, sigma, largest_semi_axis(sigma),
    )  # fmt: skip
    for value in vars(result).values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return result


def nominal_joints(arm: CalibratedArm, targets: Targets, start: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    """Return the joints that a controller would command (na, N): as given, or by the nominal arm's inverse kinematics.

    Targets that the first start does not lead to are tried from up to twenty random ones; where none leads there, the
    nearest that was found is returned.
    """
    if targets.joints is not None:
        return configurations_of(arm.robot, targets.joints).copy()
    samples = len(targets.names)
    first = _middle(arm) if start is None else np.asarray(start, dtype=float)
    home = np.repeat(configurations_of(arm.robot, first.reshape(-1, 1)), samples, axis=1)
    pose_of = _model(arm, targets.point, None, nominal=True)
    best = solved_postures(_problem(arm, targets, pose_of, pose_of), home)
    q, left, rng = best.q, np.hypot(best.position_error, best.rotation_error), np.random.default_rng(seed)
    for guess in random_configurations(arm.robot, _MOST_STARTS, rng).T:
        failed = np.flatnonzero(~(left <= _AT_LIMIT))
        if not len(failed):
            break
        problem = _problem(arm, targets, pose_of, pose_of, failed)
        other = solved_postures(problem, np.repeat(guess[:, None], len(failed), axis=1), home[:, failed])
        error = np.hypot(other.position_error, other.rotation_error)
        better = error < left[failed]
        q[:, failed[better]], left[failed[better]] = other.q[:, better], error[better]
    return q


def _middle(arm: CalibratedArm) -> np.ndarray:
    lower, upper = joint_range(arm.robot)
    with np.errstate(invalid="ignore"):  # a joint without limits has no middle
        middle = (lower + upper) / 2
    return np.where(np.isfinite(middle), middle, np.clip(0.0, lower, upper))


def _model(
    arm: CalibratedArm, point: np.ndarray, load: Load | None, *, rigid: bool = False, nominal: bool = False
) -> PoseOf:
    """Return the pose of the tool point by joints: calibrated, calibrated with stiff springs, or the controller's."""
    values = arm.controller_values if nominal else arm.rigid_values if rigid else arm.values

    def pose_of(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rotation, position = arm.pose(q, load, values)
        return rotation, position + rotation @ point

    return pose_of


def _problem(
    arm: CalibratedArm, targets: Targets, pose_of: PoseOf, smooth: PoseOf, chosen: np.ndarray | None = None
) -> InverseProblem:
    wanted = targets.wanted if chosen is None else targets.wanted.taken(chosen)
    return InverseProblem(pose_of, smooth, wanted, *joint_range(arm.robot))


def _outcome(
    arm: CalibratedArm, problem: InverseProblem, nominal: np.ndarray, found: Postures
) -> tuple[tuple[Status, ...], tuple[str, ...]]:
    """Return the status of every target, and why it failed."""
    beyond = _beyond_limits(problem, nominal, found)
    judged = [_judged(arm, problem, nominal[:, row], found, row, beyond.get(row)) for row in range(nominal.shape[1])]
    return tuple(status for status, _ in judged), tuple(why for _, why in judged)


def _beyond_limits(problem: InverseProblem, nominal: np.ndarray, found: Postures) -> dict[int, np.ndarray]:
    """Return, by target that is not reached, joints (na,) that would reach it without the joint limits."""
    failed = np.flatnonzero(~found.reached)
    if not len(failed):
        return {}
    unlimited = np.full(len(nominal), np.inf)
    wider = replace(problem, wanted=problem.wanted.taken(failed), lower=-unlimited, upper=unlimited)
    free = solved_postures(wider, nominal[:, failed])
    return {int(row): q for row, q, reached in zip(failed, free.q.T, free.reached, strict=True) if reached}


def _judged(
    arm: CalibratedArm,
    problem: InverseProblem,
    nominal: np.ndarray,
    found: Postures,
    row: int,
    beyond: np.ndarray | None,
) -> tuple[Status, str]:
    names = [body.joint.name for body in arm.robot.actuated]
    if not found.reached[row]:
        missing = f"{found.position_error[row] * 1e3:.3g} mm and {found.rotation_error[row]:.3g} rad are left"
        if beyond is None:
            return "out of reach", f"out of reach: {missing}; move the target or choose another posture"
        outside = np.flatnonzero((beyond < problem.lower - _AT_LIMIT) | (beyond > problem.upper + _AT_LIMIT))
        which = ", ".join(f"{names[k]} at {beyond[k]:.4g}" for k in outside) or "on the way there"
        return "limit", f"reached only beyond the limits ({which}): {missing}; choose another posture"
    change = np.abs(found.q[:, row] - nominal)
    if change.max() > LARGEST_CORRECTION:
        return "far", (
            f"reached only {change.max():.3g} from the nominal position of {names[int(change.argmax())]}, more than "
            f"{LARGEST_CORRECTION}: near a singularity; choose another posture"
        )
    return "reached", ""


FIGURES = ("uncorrected_mm", "residual_mm", "uncertainty_mm")
"""Error at the nominal joints, remaining error, and largest semi-axis of the 1-sigma ellipsoid."""


def corrected_csv(found: Corrected, robot: AnyRobot, *, length: str = "m", angle: str = "rad") -> str:
    """Return corrected targets as CSV text: name, joints, status, three figures, and why a target failed.

    Joints of targets that failed are left blank, so that nobody commands them by mistake.

    Args:
        found: The corrected targets.
        robot: The arm: which joints turn and which slide.
        length: Unit of sliding joints.
        angle: Unit of turning joints.
    """
    robot = load_robot(robot)
    metres, radians = unit_of(length, LENGTHS, "length"), unit_of(angle, TURNS, "angle")
    scale = [metres if body.joint.kind == "prismatic" else radians for body in robot.actuated]
    table = [["name", *found.joints, "status", *FIGURES, "why"]]
    for row, name in enumerate(found.names):
        reached = found.status[row] == "reached"
        joints = [repr(float(q / one)) if reached else "" for q, one in zip(found.q[:, row], scale, strict=True)]
        figures = (found.uncorrected[row], found.residual[row], found.semi_axis[row])
        table.append([name, *joints, found.status[row], *(f"{1e3 * x:.6g}" for x in figures), found.why[row]])
    return csv_text(table)


def write_corrected(path: Path, found: Corrected, robot: AnyRobot, *, length: str = "m", angle: str = "rad") -> None:
    """Write corrected targets as a CSV file; a reader sees the old file or the new, never a part."""
    write_aside(path, corrected_csv(found, robot, length=length, angle=angle))
