"""A calibration as YAML: offsets, geometric errors and compliances with their sigmas, for people and controllers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ...files import write_aside
from ..chain.unknowns import error_motions
from .calibrated_arm import CalibratedArm
from .urdf import roll_pitch_yaw

FORMAT = 1


FramePlace = tuple[np.ndarray, np.ndarray]
"""Where a frame was found: rotation (3, 3) and translation (3,) [m]."""


def calibration_yaml(arm: CalibratedArm, *, base: FramePlace | None = None, tool: FramePlace | None = None) -> str:
    """Return the calibrated unknowns as YAML text.

    Every unknown is ``{value, sigma, unit, nominal, meaning}``; a sigma of null says that it was not estimated.

    Args:
        arm: The calibrated arm.
        base: The robot's base in the measurement frame, if it was found.
        tool: The tool in the measured link's frame, if it was found.
    """
    lines = [
        "# Joint errors are deviations from the robot's file: each joint's frame is followed by",
        "# Trans(x) Trans(y) Trans(z) Rot_x Rot_y Rot_z in its own axes; offset adds to the joint's position.",
        f"steelyard_calibration: {FORMAT}",
        f"robot: {_text(arm.robot.name)}",
        f"link: {_text(arm.link)}",
        *_frame("base", base, arm),
        *_joints(arm),
        *_frame("tool", tool, arm),
        *_section("markers", "marker", arm),
        *_section("compliances", "compliance", arm),
        *_section("weights", "weight", arm),
    ]
    return "\n".join(lines) + "\n"


def write_calibration_yaml(
    path: Path, arm: CalibratedArm, *, base: FramePlace | None = None, tool: FramePlace | None = None, run: str = ""
) -> None:
    """Write the calibrated unknowns as YAML, with the identifier of the run they come from, if there is one."""
    head = f"# run {run}\n" if run else ""
    write_aside(path, head + calibration_yaml(arm, base=base, tool=tool))


def _frame(name: str, place: FramePlace | None, arm: CalibratedArm) -> Iterator[str]:
    rows = _rows(arm, name)
    if place is None and not rows:
        return
    yield f"{name}:"
    if place is not None:
        yield f"  xyz: [{', '.join(_number(value) for value in place[1])}]"
        yield f"  rpy: [{', '.join(_number(value) for value in roll_pitch_yaw(place[0]))}]"
    if rows:
        yield "  unknowns:"
        yield from _entries(arm, rows, "    ")


def _joints(arm: CalibratedArm) -> Iterator[str]:
    if arm.in_group("joint").any():
        yield "joints:"
    for body in arm.robot.bodies:
        rows = [arm.names.index(motion.name) for motion in error_motions(body) if motion.name in arm.names]
        if rows:
            yield f"  {_text(body.joint.name)}:"
            yield from _entries(arm, rows, "    ")


def _section(title: str, group: str, arm: CalibratedArm) -> Iterator[str]:
    rows = _rows(arm, group)
    if rows:
        yield f"{title}:"
        yield from _entries(arm, rows, "  ")


def _rows(arm: CalibratedArm, group: str) -> list[int]:
    return [int(row) for row in np.flatnonzero(arm.in_group(group))]


def _entries(arm: CalibratedArm, rows: Iterable[int], indent: str) -> Iterator[str]:
    sigma = arm.sigma
    for row in rows:
        parameter = arm.parameters[row]
        entry = {
            "value": _number(arm.values[row]),
            "sigma": _number(sigma[row]) if sigma[row] > 0 else "null",
            "unit": _text(parameter.unit),
            "nominal": _number(parameter.nominal),
            "meaning": _text(parameter.meaning),
        }
        yield f"{indent}{_text(parameter.name)}: {{{', '.join(f'{key}: {value}' for key, value in entry.items())}}}"


def _text(text: str) -> str:
    """Return a quoted string: a JSON string is one in YAML too, whatever it holds."""
    return json.dumps(text)


def _number(value: float) -> str:
    """Return all digits of a number; readers of YAML 1.1 know a float with an exponent only by its point."""
    digits = repr(float(value))
    mantissa, mark, exponent = digits.partition("e")
    return f"{mantissa}.0e{exponent}" if mark and "." not in mantissa else digits
