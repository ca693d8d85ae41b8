"""P3's industrial pose design: fifteen configurations for the accuracy after compensation, beside those of Table 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..calibrate.after.calibrated_arm import calibrated_arm
from ..calibrate.poses.pose_design import PoseDesign, design_poses, pose_value
from ..calibrate.poses.pose_rows import marker_rows
from ..progress import Progress
from .claim import Claim, within
from .p3_arm import CONFIGURATIONS_DEG, NODES, POINT, REPEATS, SIGMA_UM, Experiment3
from .result import Table, table

CANDIDATES, SEED = 600, 3
TESTED_DEG = (0.0, 60.0, 0.0, 45.0, 0.0)
"""Joints 1, 3, 4, 5 and 6 of the test poses; joint 2 stands at each of its nodes in turn."""

_UM2 = 1e12


@dataclass(frozen=True, eq=False)
class Poses3:
    """Designed configurations.

    Attributes:
        design: The fifteen configurations; values are traces [m^2].
        printed: The criterion of Table 2's configurations [m^2].
    """

    design: PoseDesign
    printed: float


def p3_poses(experiment: Experiment3, columns: np.ndarray, progress: Progress) -> Poses3:
    """Choose as many configurations as Table 2 has, within its ranges, by the largest trace over five test poses."""
    problem, robot = experiment.problem, experiment.robot
    size = len(problem.parameters)
    arm = calibrated_arm(problem, problem.start, np.zeros((size, size)))
    kept = tuple(problem.parameters[column].name for column in columns)
    load = experiment.setup.loads[0]
    markers = {each.name: each.position for each in experiment.setup.markers if each.position is not None}
    noise = float(np.sqrt(np.mean((1e-6 * SIGMA_UM) ** 2)))
    rows = marker_rows(arm, markers, (noise, noise, noise), kept, load=load)
    tested = np.radians(np.tile(np.insert(TESTED_DEG, 1, 0.0)[:, None], (1, len(NODES))))
    tested[1] = NODES
    tests = marker_rows(arm, {"load": POINT}, (1.0, 1.0, 1.0), kept, load=load)(tested)
    printed = np.radians(CONFIGURATIONS_DEG.T)
    lower, upper = printed.min(axis=1), printed.max(axis=1)
    rng = np.random.default_rng(SEED)
    candidates = rng.uniform(lower[:, None], upper[:, None], (len(robot.actuated), CANDIDATES))
    candidates[1] = np.resize(NODES, CANDIDATES)
    progress(0, 1)
    design = design_poses(
        rows, candidates, len(CONFIGURATIONS_DEG), criterion="industrial", tests=tests, repeats=REPEATS,
        lower=lower, upper=upper, movable=np.arange(len(lower)) != 1, names=kept, seed=SEED,
    )  # fmt: skip
    progress(1, 1)
    return Poses3(design, pose_value(rows, printed, criterion="industrial", tests=tests, repeats=REPEATS))


def pose_claims(poses: Poses3) -> Iterator[Claim]:
    """Return the claim on the design."""
    design = poses.design
    yield within(
        "industrial pose design: its criterion over that of Table 2's fifteen configurations", "optimal by it",
        design.value / poses.printed, 0.0, 1.0,
        f"rms after compensation at the worst of five test poses under load: {_rms(design.value):.1f} um designed, "
        f"{_rms(poses.printed):.1f} um with Table 2, {_rms(design.value_of_random):.1f} um with a random choice; the "
        "paper's own test pose is not printed",
    )  # fmt: skip


def pose_table(poses: Poses3) -> Table:
    """Return the configurations."""
    rows = [[k + 1, *(float(angle) for angle in column)] for k, column in enumerate(np.degrees(poses.design.q.T))]
    return table("Designed configurations, deg", ["number", "q1", "q2", "q3", "q4", "q5", "q6"], rows)


def _rms(trace: float) -> float:
    return float(np.sqrt(_UM2 * trace))
