"""Robots from URDF files: link frames and joint axes are the file's own.

Angles within ``right_angle_tolerance`` of a multiple of 90 degrees (files write 1.5708 and 3.1416) are taken as exact
right angles, and ``Robot.notes`` says where. ``<dynamics>`` becomes ``Fvm<n>`` and ``Fcm<n>`` where it is not zero.
Tags this reader does not know are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ..errors import RobotError
from .angles import RightAngles
from .checks import finite_number
from .files import PathOrBytes, content_of, located, place_of
from .parts import Joint
from .structure import assembled_robot
from .tree import Robot
from .urdf_elements import child, children, joint_from_element, link_from_element, number_from_text
from .urdf_shapes import shapes_from_link
from .xml_safety import LARGEST_FILE, XACRO_ADVICE, parse_xml_safely

OTHER_FORMATS = {
    "mujoco": "is an MJCF file (root <mujoco>), not a URDF; MJCF is not read yet, give the arm's URDF",
    "sdf": "is an SDF file (root <sdf>), not a URDF; SDF is not read, give the arm's URDF",
}


def parse_urdf_document(path_or_bytes: PathOrBytes) -> etree._ElementTree:
    """Return the XML document of a URDF, comments and unknown tags untouched, to be read or edited in place."""
    with located(place_of(path_or_bytes)):
        return _document(path_or_bytes)


def read_urdf(path_or_bytes: PathOrBytes, *, right_angle_tolerance: float = 1e-5) -> Robot:
    """Return the robot that a URDF describes.

    Args:
        path_or_bytes: Name of the file, or its content as bytes.
        right_angle_tolerance: Angles this near to a multiple of 90 degrees are taken as exact [rad]; 0 reads literally.
    """
    with located(place_of(path_or_bytes)):
        angles = RightAngles(right_angle_tolerance)
        root = _document(path_or_bytes).getroot()
        notes: list[str] = []
        folder = None if isinstance(path_or_bytes, bytes) else Path(path_or_bytes).absolute().parent
        links = [
            replace(link_from_element(element, angles), shapes=shapes_from_link(element, folder, notes))
            for element in children(root, "link")
        ]
        reductions = _gear_ratios(root)
        joints = [
            _with_gear_ratio(joint_from_element(element, angles, notes), reductions)
            for element in children(root, "joint")
        ]
        name = root.get("name") or ("robot" if isinstance(path_or_bytes, bytes) else Path(path_or_bytes).stem)
        robot = assembled_robot(name, links, joints, [*angles.notes(), *notes], source=place_of(path_or_bytes))
        return replace(robot, values=MappingProxyType(_friction_values(root, robot)))


def _document(path_or_bytes: PathOrBytes) -> etree._ElementTree:
    if not isinstance(path_or_bytes, bytes) and Path(path_or_bytes).suffix.lower() == ".xacro":
        raise RobotError(XACRO_ADVICE)
    tree = parse_xml_safely(content_of(path_or_bytes, LARGEST_FILE))
    tag = etree.QName(tree.getroot()).localname
    if tag in OTHER_FORMATS:
        raise RobotError(OTHER_FORMATS[tag])
    if tag != "robot":
        raise RobotError(f"root element is <{tag}>, not a URDF; allowed is <robot>, give the arm's URDF")
    return tree


def _friction_values(root: etree._Element, robot: Robot) -> dict[str, float]:
    """Return Fvm and Fcm of the moving joints whose ``<dynamics>`` gives them."""
    number_of = {body.joint.name: body.number for body in robot.bodies}
    values: dict[str, float] = {}
    for element in children(root, "joint"):
        dynamics, joint = child(element, "dynamics"), element.get("name", "")
        if dynamics is None or joint not in number_of:
            continue
        for word, family in (("damping", "Fvm"), ("friction", "Fcm")):
            text = dynamics.get(word)
            value = 0.0 if text is None else number_from_text(text, f"joint '{joint}': {word}")
            if value:
                values[f"{family}{number_of[joint]}"] = value
    return values


def _gear_ratios(root: etree._Element) -> dict[str, float]:
    """Return the mechanical reduction of each joint that exactly one simple transmission drives.

    A reduction of 1 is what tools write where nothing is known, so it says nothing here either.
    """
    found: dict[str, list[float]] = {}
    for transmission in children(root, "transmission"):
        joints = [element.get("name", "") for element in children(transmission, "joint")]
        texts = [element.text or "" for element in transmission.iter("{*}mechanicalReduction")]
        for joint in joints:
            ratio = _reduction(texts[0]) if len(joints) == len(texts) == 1 else 1.0
            found.setdefault(joint, []).append(ratio)
    return {joint: ratios[0] for joint, ratios in found.items() if len(ratios) == 1 and ratios[0] not in (0.0, 1.0)}


def _reduction(text: str) -> float:
    try:
        return finite_number(float(text), "mechanicalReduction")
    except (ValueError, RobotError):
        return 1.0


def _with_gear_ratio(joint: Joint, reductions: Mapping[str, float]) -> Joint:
    return replace(joint, gear_ratio=reductions.get(joint.name)) if joint.kind != "fixed" else joint
