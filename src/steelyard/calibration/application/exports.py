"""Calibrations for other programs: YAML of all unknowns, and the robot's URDF with corrected joint origins.

The error of joint i follows its placement, ``placement_i Error_i``, so that it goes into the origin of that joint.
Only origins change, the rest of the URDF stays byte for byte. Angles that were taken as exact right angles when the
robot was read are written as such on the whole path to the measured link, so that any reader of the file gets the
geometry that was calibrated. A URDF cannot hold springs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ...configuration import vector
from ...errors import CalibrationError
from ...files import opened_aside, write_aside
from ...plain_data import yaml_value
from ...robot import (
    Joint,
    XmlDocument,
    origin_placement,
    parse_urdf_document,
    read_urdf,
    roll_pitch_yaw,
    set_origin,
    transform_from_placement,
)
from ...robot.files import LARGEST_FILE, content_of
from ...robot.urdf import child, children, vector_from_text
from ...robot.xml_edit import Origin
from ..chain.unknowns import error_motions
from ..measurement.nominal import nominal_poses
from .calibrated_arm import CalibratedArm, random_configurations

# How far the file may be from the robot that was calibrated [m, rad]: it was read with angles near 90 degrees as exact.
_SAME_PLACE = 2e-5
_RIGHT_ANGLE_OF_READERS = 1e-5
_AGREES = 1e-9
_CHECKED_CONFIGURATIONS = 20


@dataclass(frozen=True)
class EditedUrdf:
    """A calibrated URDF.

    Attributes:
        content: The file.
        joints: Joints whose origin was changed.
        notes: What a reader of the file should know.
    """

    content: bytes
    joints: tuple[str, ...]
    notes: tuple[str, ...]


def edited_urdf(urdf: Path | bytes, arm: CalibratedArm) -> EditedUrdf:
    """Return the URDF with calibrated joint origins; every other byte stays.

    Args:
        urdf: The file that the robot was read from, or its content.
        arm: The calibrated arm.

    Raises:
        CalibrationError: If the file is not that of the robot, or was calibrated before.
    """
    elements = {element.get("name"): element for element in children(parse_urdf_document(urdf).getroot(), "joint")}
    origins: dict[str, Origin] = {}
    for joint in _path(arm):
        if joint.name not in elements:
            raise CalibrationError(
                f"the URDF has no joint '{joint.name}', which robot '{arm.robot.name}' has; give the file that the "
                "robot was read from"
            )
        rotation, translation = _calibrated(arm, joint)
        if _moved(elements[joint.name], joint, rotation, translation):
            origins[joint.name] = (vector(translation.tolist()), roll_pitch_yaw(rotation))
    document = XmlDocument(content_of(urdf, LARGEST_FILE))
    for joint in document.root.elements("joint"):
        if joint.attributes["name"] in origins:
            set_origin(joint, origins[joint.attributes["name"]])
    content = document.edited()
    _check(content, arm)
    return EditedUrdf(content, tuple(origins), _notes(arm, origins))


def calibrated_origins(arm: CalibratedArm) -> dict[str, Origin]:
    """Return where the calibrated joints of an arm stand in their parents, by joint; only those that moved."""
    origins: dict[str, Origin] = {}
    for joint in _path(arm):
        rotation, translation = _calibrated(arm, joint)
        nominal = transform_from_placement(joint.placement)
        if np.abs(rotation - nominal[0]).max() > 1e-15 or np.abs(translation - nominal[1]).max() > 1e-15:
            origins[joint.name] = (vector(translation.tolist()), roll_pitch_yaw(rotation))
    return origins


def write_urdf(urdf: Path | bytes, arm: CalibratedArm, path: Path) -> EditedUrdf:
    """Write the URDF with calibrated joint origins; a reader sees the old file or the new, never a part."""
    result = edited_urdf(urdf, arm)
    with opened_aside(path) as file:
        file.write(result.content)
    return result


def joint_error(arm: CalibratedArm, joint: Joint) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation (3, 3) and translation (3,) [m] of a joint's calibrated error, in the joint's own frame."""
    found = dict(zip(arm.names, arm.values, strict=True))
    for body in arm.robot.bodies:
        if body.joint.name == joint.name:
            motions = (replace(motion, value=float(found.get(motion.name, 0.0))) for motion in error_motions(body))
            return transform_from_placement(tuple(motions))
    return np.eye(3), np.zeros(3)


def _path(arm: CalibratedArm) -> list[Joint]:
    """Return all joints, fixed ones too, from the root to the measured link."""
    by_child = {joint.child: joint for joint in arm.robot.joints}
    path, link = [], arm.link
    while link in by_child:
        path.append(by_child[link])
        link = by_child[link].parent
    return path[::-1]


def _calibrated(arm: CalibratedArm, joint: Joint) -> tuple[np.ndarray, np.ndarray]:
    rotation, translation = transform_from_placement(joint.placement)
    turn, shift = joint_error(arm, joint)
    return rotation @ turn, translation + rotation @ shift


def _moved(element: etree._Element, joint: Joint, rotation: np.ndarray, translation: np.ndarray) -> bool:
    """Return whether a joint's origin must be changed; refuse an origin that is not the robot's."""
    origin, what = child(element, "origin"), f"joint '{joint.name}'"
    xyz, rpy = (
        vector_from_text("0 0 0" if origin is None else origin.get(key, "0 0 0"), f"{what}: origin {key}")
        for key in ("xyz", "rpy")
    )
    turn, shift = transform_from_placement(origin_placement(xyz, rpy))
    nominal_turn, nominal_shift = transform_from_placement(joint.placement)
    if max(np.abs(turn - nominal_turn).max(), np.abs(shift - nominal_shift).max()) > _SAME_PLACE:
        raise CalibrationError(
            f"{what} stands elsewhere in the URDF than in the robot that was calibrated; give the file that the robot "
            "was read from, not one that was calibrated before"
        )
    return bool(np.abs(turn - rotation).max() > 1e-15 or np.abs(shift - translation).max() > 1e-15)


def _is_taken_as_right(angle: float) -> bool:
    off = abs(angle - round(angle / (math.pi / 2)) * math.pi / 2)
    return 1e-12 < off <= _RIGHT_ANGLE_OF_READERS


def _notes(arm: CalibratedArm, origins: Mapping[str, Origin]) -> tuple[str, ...]:
    notes = []
    near_right = [name for name, origin in origins.items() if any(_is_taken_as_right(angle) for angle in origin[1])]
    if near_right:
        notes.append(
            f"angles of {', '.join(near_right)} lie within {_RIGHT_ANGLE_OF_READERS:g} rad of a right angle; Steelyard "
            "reads them exactly only with read_urdf(..., right_angle_tolerance=0)"
        )
    if arm.values[arm.in_group("compliance")].any():
        notes.append("compliances have no place in a URDF: the file holds the unloaded, rigid arm")
    return tuple(notes)


def _check(content: bytes, arm: CalibratedArm) -> None:
    """Compare the edited file, read literally, with the calibrated model."""
    q = random_configurations(arm.robot, _CHECKED_CONFIGURATIONS, np.random.default_rng(0))
    locked = {joint.name: joint.locked_at for joint in arm.robot.joints if joint.locked_at is not None}
    read = read_urdf(content, right_angle_tolerance=0).with_locked(locked)
    rotation, position = nominal_poses(read, arm.link, q)
    wanted_rotation, wanted_position = arm.pose(q, None, arm.rigid_values)
    off = max(np.abs(rotation - wanted_rotation).max(), np.abs(position - wanted_position).max())
    if not off <= _AGREES:
        raise CalibrationError(
            f"the edited URDF differs from the calibrated model by {off:.2g} m or rad; is a joint's axis not of unit "
            "length or nearly, but not quite, along x, y or z? Write it out exactly"
        )


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
        f"robot: {yaml_value(arm.robot.name)}",
        f"link: {yaml_value(arm.link)}",
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
        yield f"  xyz: {yaml_value(place[1].tolist())}"
        yield f"  rpy: {yaml_value(roll_pitch_yaw(place[0]))}"
    if rows:
        yield "  unknowns:"
        yield from _entries(arm, rows, "    ")


def _joints(arm: CalibratedArm) -> Iterator[str]:
    if arm.in_group("joint").any():
        yield "joints:"
    for body in arm.robot.bodies:
        rows = [arm.names.index(motion.name) for motion in error_motions(body) if motion.name in arm.names]
        if rows:
            yield f"  {yaml_value(body.joint.name)}:"
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
            "value": float(arm.values[row]),
            "sigma": float(sigma[row]) if sigma[row] > 0 else None,
            "unit": parameter.unit,
            "nominal": float(parameter.nominal),
            "meaning": parameter.meaning,
        }
        yield f"{indent}{yaml_value(parameter.name)}: {yaml_value(entry)}"
