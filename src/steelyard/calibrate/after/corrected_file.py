"""Corrected targets as a CSV file, in the units in which the targets came: what a controller is to be told."""

from __future__ import annotations

from pathlib import Path

from ...files import write_aside
from ...robot import AnyRobot, load_robot
from ...text import csv_text
from ..measured.setup import LENGTHS, TURNS
from .corrected import Corrected
from .target_file import unit_of

FIGURES = ("uncorrected_mm", "residual_mm", "uncertainty_mm")
"""What the arm would err by at the nominal joints; what is left; the largest semi-axis of the 1-sigma ellipsoid."""


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
        table.append([name, *joints, found.status[row], *(f"{1e3 * x:.6g}" for x in figures), found.told[row]])
    return csv_text(table)


def write_corrected(path: Path, found: Corrected, robot: AnyRobot, *, length: str = "m", angle: str = "rad") -> None:
    """Write corrected targets as a CSV file; a reader sees the old file or the new, never a part."""
    write_aside(path, corrected_csv(found, robot, length=length, angle=angle))
