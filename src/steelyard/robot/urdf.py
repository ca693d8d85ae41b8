"""Robots from URDF files: link frames and joint axes are the file's own.

Angles within ``right_angle_tolerance`` of a multiple of 90 degrees (files write 1.5708 and 3.1416) are taken as exact
right angles, and ``Robot.notes`` says where. ``<dynamics>`` becomes ``Fvm<n>`` and ``Fcm<n>`` where it is not zero.
Unknown tags are ignored. Collision shapes that cannot be read are left out with a note, since no equation needs them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ..configuration import LARGEST_NUMBER, checked, choice, located, number
from ..errors import RobotError, nearest_match, one_line
from .checks import JOINT_KINDS, assembled_robot, checked_limits
from .drives import values_on_leaders
from .files import LARGEST_FILE, XACRO_MESSAGE, PathOrBytes, content_of, parse_xml_safely, place_of
from .inertia import checked_mass, moved_parameters
from .parts import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    Joint,
    JointKind,
    Limits,
    Link,
    MeshShape,
    Mimic,
    Shape,
    SphereShape,
    found_mesh,
)
from .placement import Placement, RightAngles, Vector3, Z, origin_placement, transform_from_placement
from .tree import Robot

OUT_OF_SCOPE = ("floating", "planar")
INERTIA_ATTRIBUTES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")

LONGEST_NUMBER = 1000
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(inf|infinity|nan)", re.IGNORECASE)


def children(element: etree._Element, name: str) -> Iterator[etree._Element]:
    """Iterate over the children with this tag, whatever their namespace."""
    return element.iterchildren("{*}" + name)


def child(element: etree._Element, name: str) -> etree._Element | None:
    """Return the first child with this tag, or None."""
    return next(children(element, name), None)


def attribute(element: etree._Element, name: str, what: str) -> str:
    """Return an attribute that must be there."""
    text = element.get(name)
    if text is None:
        tag = etree.QName(element).localname
        raise RobotError(f"{what}: <{tag}> has no attribute '{name}'; the URDF format requires it, add it")
    return text


def number_from_text(text: str, what: str, *, largest: float = LARGEST_NUMBER) -> float:
    """Return the finite number a text holds."""
    bare = text.strip()
    if "${" in bare or "$(" in bare:
        raise RobotError(f"{what} is '{bare}'; {XACRO_MESSAGE}")
    # The pattern takes a time that grows with the square of the number of digits.
    if len(bare) > LONGEST_NUMBER or not NUMBER.fullmatch(bare):
        raise RobotError(f"{what} is '{text}'; allowed: a number")
    return checked(float(bare), number(largest=largest), what, RobotError)


def vector_from_text(text: str, what: str) -> Vector3:
    """Return the three finite numbers a text holds."""
    if "${" in text or "$(" in text:
        raise RobotError(f"{what} is '{text}'; {XACRO_MESSAGE}")
    parts = text.split()
    if len(parts) != 3:
        raise RobotError(f"{what} is '{text}'; allowed: three numbers")
    x, y, z = (number_from_text(part, what) for part in parts)
    return x, y, z


def placement_from_origin(parent: etree._Element, angles: RightAngles, what: str) -> Placement:
    """Return the placement of the ``<origin>`` child; the identity if there is none."""
    origin = child(parent, "origin")
    given = {} if origin is None else origin.attrib
    xyz, rpy = (vector_from_text(given.get(key, "0 0 0"), f"{what}: origin {key}") for key in ("xyz", "rpy"))
    roll, pitch, yaw = (angles.angle(angle, what) for angle in rpy)
    return origin_placement(xyz, (roll, pitch, yaw))


def link_from_element(element: etree._Element, angles: RightAngles) -> Link:
    """Return a link; its inertia about the link frame's origin, or None without an ``<inertial>``."""
    name = attribute(element, "name", "a link")
    inertial = child(element, "inertial")
    if inertial is None:
        return Link(name)
    what = f"link '{name}'"
    mass_element, inertia_element = child(inertial, "mass"), child(inertial, "inertia")
    if mass_element is None or inertia_element is None:
        missing = "mass" if mass_element is None else "inertia"
        raise RobotError(f"{what}: <inertial> has no <{missing}>; add it, or delete the <inertial>")
    mass = checked_mass(number_from_text(attribute(mass_element, "value", what), f"{what}: mass"), f"{what}: mass")
    about_centre = [
        number_from_text(attribute(inertia_element, name, what), f"{what}: {name}") for name in INERTIA_ATTRIBUTES
    ]
    rotation, centre = transform_from_placement(placement_from_origin(inertial, angles, what))
    parameters = moved_parameters(np.array([*about_centre, 0.0, 0.0, 0.0, mass]), rotation, centre)
    return Link(name, tuple(float(value) for value in parameters))


def joint_from_element(element: etree._Element, angles: RightAngles, notes: list[str]) -> Joint:
    """Return a joint; what is odd about its limits is added to ``notes``."""
    name = attribute(element, "name", "a joint")
    what = f"joint '{name}'"
    type_ = attribute(element, "type", what)
    kind = _kind(type_, what)
    placement = placement_from_origin(element, angles, what)
    parent, link = _end(element, "parent", what), _end(element, "child", what)
    if kind == "fixed":
        return Joint(name, kind, parent, link, placement, Z)
    limits, limit_notes = _limits(element, name, type_)
    notes.extend(limit_notes)
    return Joint(name, kind, parent, link, placement, _axis(element, angles, what), limits, _mimic(element, what))


def _kind(type_: str, what: str) -> JointKind:
    if type_ in OUT_OF_SCOPE:
        raise RobotError(
            f"{what}: type '{type_}' is out of scope (fixed-base arms only); allowed: {', '.join(JOINT_KINDS)}"
        )
    return JOINT_KINDS[checked(type_, choice(*JOINT_KINDS), f"{what}: type", RobotError)]


def _end(element: etree._Element, tag: str, what: str) -> str:
    end = child(element, tag)
    if end is None:
        raise RobotError(f'{what} has no <{tag}>; add <{tag} link="..."/>')
    return attribute(end, "link", what)


def _axis(element: etree._Element, angles: RightAngles, what: str) -> Vector3:
    """Return the unit axis; the URDF format's default is x."""
    axis = child(element, "axis")
    text = "1 0 0" if axis is None else axis.get("xyz", "1 0 0")
    return angles.direction(vector_from_text(text, f"{what}: axis"), what)


def _limits(element: etree._Element, name: str, type_: str) -> tuple[Limits, list[str]]:
    """Return the limits; a continuous joint has no range, and a bound given alone leaves the other at 0 (URDF rule)."""
    limit = child(element, "limit")
    if limit is None:
        return Limits(), []
    wanted = ("velocity", "effort") if type_ == "continuous" else ("lower", "upper", "velocity", "effort")
    given = {
        key: number_from_text(text, f"joint '{name}': {key} limit", largest=math.inf)
        for key in wanted
        for text in [limit.get(key)]
        if text is not None
    }
    if "lower" in given or "upper" in given:
        given = {"lower": 0.0, "upper": 0.0} | given
    return checked_limits(name, given)


def _mimic(element: etree._Element, what: str) -> Mimic | None:
    mimic = child(element, "mimic")
    if mimic is None:
        return None
    return Mimic(
        attribute(mimic, "joint", what),
        number_from_text(mimic.get("multiplier", "1"), f"{what}: mimic multiplier"),
        number_from_text(mimic.get("offset", "0"), f"{what}: mimic offset"),
    )


KINDS = ("box", "capsule", "cylinder", "mesh", "sphere")

# Longer names of files are nothing that a system could open.
LONGEST_FILE_NAME = 4000


def shapes_from_link(element: etree._Element, folder: Path | None, notes: list[str]) -> tuple[Shape, ...]:
    """Return the collision shapes of a ``<link>``; those that cannot be read are said in ``notes``.

    Args:
        element: The link.
        folder: Folder of the URDF, where meshes are looked for; None if it came as bytes.
        notes: Receives at most one note.
    """
    shapes: list[Shape] = []
    reasons: list[str] = []
    for collision in children(element, "collision"):
        try:
            shapes.append(_shape(collision, folder))
        except RobotError as error:
            reasons.append(str(error))
    if reasons:
        count = "a collision shape is" if len(reasons) == 1 else f"{len(reasons)} collision shapes are"
        notes.append(one_line(f"link '{element.get('name', '')}': {count} left out: {reasons[0]}"))
    return tuple(shapes)


def _shape(collision: etree._Element, folder: Path | None) -> Shape:
    geometry = child(collision, "geometry")
    given = [] if geometry is None else [part for part in geometry if isinstance(part.tag, str)]
    if len(given) != 1:
        raise RobotError(f"<collision> has {len(given)} elements in its <geometry>; one is expected")
    # Read literally: an angle that is nearly a right one changes no equation here, and needs no note.
    placement = placement_from_origin(collision, RightAngles(0.0), "<collision>")
    part = given[0]
    kind = etree.QName(part).localname
    if kind == "box":
        x, y, z = vector_from_text(attribute(part, "size", "<collision>"), "<box>: size")
        return BoxShape(placement, (_length(x, "<box>: size"), _length(y, "<box>: size"), _length(z, "<box>: size")))
    if kind == "mesh":
        return _mesh(part, placement, folder)
    if kind == "sphere":
        return SphereShape(placement, _measure(part, "radius"))
    if kind in ("cylinder", "capsule"):
        shape = CylinderShape if kind == "cylinder" else CapsuleShape
        return shape(placement, _measure(part, "radius"), _measure(part, "length"))
    raise RobotError(f"<geometry> holds <{kind}>; allowed: {', '.join(KINDS)}{nearest_match(kind, KINDS)}")


def _mesh(part: etree._Element, placement: Placement, folder: Path | None) -> MeshShape:
    name = attribute(part, "filename", "<collision>").strip()
    if not name or len(name) > LONGEST_FILE_NAME:
        raise RobotError(f"<mesh>: the file's name has {len(name)} letters; allowed 1 to {LONGEST_FILE_NAME}")
    scale = vector_from_text(part.get("scale", "1 1 1"), "<mesh>: scale")
    return MeshShape(placement, name, found_mesh(name, folder), scale)


def _measure(part: etree._Element, name: str) -> float:
    what = f"<{etree.QName(part).localname}>: {name}"
    return _length(number_from_text(attribute(part, name, "<collision>"), what), what)


def _length(value: float, what: str) -> float:
    if value < 0:
        raise RobotError(f"{what} is {value:g}; a length must be zero or positive")
    return value


OTHER_FORMATS = {
    "mujoco": "is an MJCF file (root <mujoco>), not a URDF; read it with read_mjcf or load_robot",
    "sdf": "is an SDF file (root <sdf>), not a URDF; SDF is not read, give the arm's URDF",
}


def parse_urdf_document(path_or_bytes: PathOrBytes) -> etree._ElementTree:
    """Return the XML document of a URDF, comments and unknown tags untouched, to be read or edited in place.

    Example:
        >>> from steelyard.robot import parse_urdf_document
        >>> parse_urdf_document(b'<robot name="pendulum"><link name="base"/></robot>').getroot().get("name")
        'pendulum'
    """
    with located(place_of(path_or_bytes), RobotError):
        return _document(path_or_bytes)


def read_urdf(path_or_bytes: PathOrBytes, *, right_angle_tolerance: float = 1e-5) -> Robot:
    """Return the robot that a URDF describes.

    Args:
        path_or_bytes: Name of the file, or its content as bytes.
        right_angle_tolerance: Angles this near to a multiple of 90 degrees are taken as exact [rad]; 0 reads literally.

    Example:
        >>> urdf = b'<robot name="pendulum"><link name="base"/><link name="rod"/><joint name="pivot" type="continuous">'
        >>> urdf += b'<parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>'
        >>> steelyard.read_urdf(urdf).joints[0].axis
        (0.0, 1.0, 0.0)
    """
    with located(place_of(path_or_bytes), RobotError):
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
        known = own_friction(root, robot)
        values = {
            f"{family}{body.number}": known[body.joint.name][column]
            for body in robot.bodies
            for column, family in enumerate(("Fvm", "Fcm"))
            if known[body.joint.name][column]
        }
        return replace(robot, values=MappingProxyType(values_on_leaders(robot, values)))


def _document(path_or_bytes: PathOrBytes) -> etree._ElementTree:
    if not isinstance(path_or_bytes, bytes) and Path(path_or_bytes).suffix.lower() == ".xacro":
        raise RobotError(XACRO_MESSAGE)
    tree = parse_xml_safely(content_of(path_or_bytes, LARGEST_FILE))
    tag = etree.QName(tree.getroot()).localname
    if tag in OTHER_FORMATS:
        raise RobotError(OTHER_FORMATS[tag])
    if tag != "robot":
        raise RobotError(f"root element is <{tag}>, not a URDF; allowed is <robot>, give the arm's URDF")
    return tree


def own_friction(root: etree._Element, robot: Robot) -> dict[str, tuple[float, float]]:
    """Return damping and friction of every moving joint as its own ``<dynamics>`` gives them; 0 without one."""
    found = {body.joint.name: (0.0, 0.0) for body in robot.bodies}
    for element in children(root, "joint"):
        dynamics, joint = child(element, "dynamics"), element.get("name", "")
        if dynamics is not None and joint in found:
            texts = {key: dynamics.get(key, "0") for key in ("damping", "friction")}
            damping, friction = (number_from_text(text, f"joint '{joint}': {key}") for key, text in texts.items())
            found[joint] = (damping, friction)
    return found


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
        return number()(float(text))
    except ValueError:
        return 1.0


def _with_gear_ratio(joint: Joint, reductions: Mapping[str, float]) -> Joint:
    return replace(joint, gear_ratio=reductions.get(joint.name)) if joint.kind != "fixed" else joint
