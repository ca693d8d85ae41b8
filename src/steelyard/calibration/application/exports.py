"""Calibrations for other programs: YAML of all unknowns, and the robot's URDF with corrected joint origins.

The error of joint i follows its placement, ``placement_i Error_i``, so that it goes into the origin of that joint.
Origins are replaced byte by byte, the rest of the URDF stays as it is. Angles that were taken as exact right angles
when the robot was read are written as such on the whole path to the measured link, so that any reader of the file gets
the geometry that was calibrated. A URDF cannot hold springs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from xml.parsers import expat

import numpy as np
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ...configuration import vector
from ...errors import CalibrationError
from ...files import opened_aside, write_aside
from ...robot import Joint, origin_placement, parse_urdf_document, read_urdf, transform_from_placement
from ...robot.files import LARGEST_FILE, content_of
from ...robot.placement import Vector3
from ...robot.urdf import child, children, vector_from_text
from ..chain.unknowns import error_motions
from ..measurement.nominal import nominal_poses
from .calibrated_arm import CalibratedArm, random_configurations

_TAG = re.compile(rb"<(?:[^\"'>]|\"[^\"]*\"|'[^']*')*>")
_BLANK = re.compile(rb"\s*")
_JOINT_DEPTH = 2
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


Origin = tuple[Vector3, Vector3]
"""Where a joint's frame stands in its parent's: xyz [m], and roll, pitch and yaw [rad]."""


def with_origins(content: bytes, origins: Mapping[str, Origin]) -> bytes:
    """Return a URDF with the origins of some joints replaced; a joint that has none gets one.

    Args:
        content: The file, known to be safe XML (``parse_urdf_document`` has read it).
        origins: New origins by the joints' names.
    """
    if content.startswith(_UTF_16_MARKS):
        raise CalibrationError("the URDF is UTF-16 text, which is read but not edited; save it as utf-8")
    places = _Places(content)
    edits = [_edit(content, places.joints[name], places.origins.get(name), new) for name, new in origins.items()]
    for start, end, text in sorted(edits, reverse=True):
        content = content[:start] + text + content[end:]
    return content


class _Places:
    """Where the tags of joints and of their origins begin in the file."""

    def __init__(self, content: bytes) -> None:
        self.joints: dict[str, int] = {}
        self.origins: dict[str, int] = {}
        self._open: list[str] = []
        self._joint: str | None = None
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.Parse(content, True)

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition(":")[2]
        self._open.append(name)
        if len(self._open) == _JOINT_DEPTH:
            self._joint = attributes.get("name") if name == "joint" else None
            if self._joint is not None:
                self.joints[self._joint] = self._parser.CurrentByteIndex
        elif len(self._open) == _JOINT_DEPTH + 1 and name == "origin" and self._joint is not None:
            self.origins.setdefault(self._joint, self._parser.CurrentByteIndex)

    def _end(self, _: str) -> None:
        self._open.pop()


def _edit(content: bytes, joint: int, origin: int | None, new: Origin) -> tuple[int, int, bytes]:
    """Return start, end and text of a replacement."""
    if origin is not None:
        tag = _tag_at(content, origin)
        return origin, origin + len(tag), _with_place(tag, new)
    opening = _tag_at(content, joint)
    after = joint + len(opening)
    indent = _BLANK.match(content, after)
    prefix = opening[1:].split(b"joint", 1)[0]  # of a namespace
    return after, after, (indent.group() if indent else b"") + _with_place(b"<" + prefix + b"origin/>", new)


def _tag_at(content: bytes, start: int) -> bytes:
    found = _TAG.match(content, start)
    if found is None:
        raise CalibrationError("the URDF has a joint whose tag cannot be found again; save the file as plain utf-8 XML")
    return found.group()


def _with_place(tag: bytes, new: Origin) -> bytes:
    return _with_attribute(_with_attribute(tag, b"xyz", new[0]), b"rpy", new[1])


def _with_attribute(tag: bytes, name: bytes, values: Vector3) -> bytes:
    text = b'"' + " ".join(repr(value) for value in values).encode() + b'"'
    present = re.compile(rb"(\s" + name + rb"\s*=\s*)(\"[^\"]*\"|'[^']*')")
    if present.search(tag):
        return present.sub(lambda found: found.group(1) + text, tag, count=1)
    end = -2 if tag.endswith(b"/>") else -1
    return tag[:end].rstrip() + b" " + name + b"=" + text + tag[end:]


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
    content = with_origins(content_of(urdf, LARGEST_FILE), origins)
    _check(content, arm)
    return EditedUrdf(content, tuple(origins), _notes(arm, origins))


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


def roll_pitch_yaw(rotation: np.ndarray) -> Vector3:
    """Return the angles [rad] of ``Rz(yaw) Ry(pitch) Rx(roll)``, exact to rounding at any pitch.

    Pitch and roll are read off after the yaw is taken away: at a pitch of 90 degrees, where the yaw is free, they still
    make up for whatever yaw was found.
    """
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    cosine, sine = math.cos(yaw), math.sin(yaw)
    left = np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]]) @ rotation
    return math.atan2(-left[1, 2], left[1, 1]), math.atan2(-left[2, 0], left[0, 0]), yaw


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
