"""A fresh URDF of a robot that was read from something else: a table, the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ..configuration import located
from ..errors import ExportError, RobotError
from ..robot import (
    BoxShape,
    CapsuleShape,
    ElementaryMotion,
    Joint,
    Link,
    MeshShape,
    Placement,
    Robot,
    Shape,
    SphereShape,
    XmlDocument,
    centre_from_parameters,
    roll_pitch_yaw,
    transform_from_placement,
)
from ..robot.drives import JointValues, joint_values
from ..robot.placement import Z
from ..robot.urdf import INERTIA_ATTRIBUTES

UNLIMITED = 1e16
"""Stands for limits that are not known: a URDF must give them, and readers of Steelyard take it as not given."""

NEW_URDF_NOTES = (
    "new file: it holds the links, joints, limits and collision shapes that Steelyard knows, and no visual shapes",
    f"limits that are not known are written as {UNLIMITED:g}",
)


def new_urdf(robot: Robot, comment: str = "") -> bytes:
    """Return a URDF of a robot: links with inertias and collision shapes, joints with limits, friction and mimics.

    Args:
        robot: The robot.
        comment: Put at the top.

    Raises:
        ExportError: If a name cannot stand in XML.
        RobotError: If a link has a first moment without a mass.
    """
    try:
        root = etree.Element("robot", name=robot.name)
        for link in robot.links:
            _add_link(root, link)
        values = joint_values(robot)
        for joint in robot.joints:
            _add_joint(root, joint, values.get(joint.name, JointValues(0.0, 0.0, 0.0)))
    except ValueError as error:
        raise ExportError(f"robot '{robot.name}': a name has letters that XML cannot hold; rename it") from error
    text = etree.tostring(root, xml_declaration=True, encoding="utf-8", pretty_print=True)
    return XmlDocument(text.replace(b"<?xml version='1.0' encoding='utf-8'?>", b'<?xml version="1.0"?>', 1)).edited(
        comment
    )


def _add(parent: etree._Element, tag: str, **attributes: object) -> etree._Element:
    """Add an element; numbers are written with all digits that distinguish them."""
    return etree.SubElement(parent, tag, {name: _text(value) for name, value in attributes.items()})


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return " ".join(repr(float(number) + 0.0) for number in np.atleast_1d(value))  # type: ignore[arg-type]


def _add_origin(parent: etree._Element, placement: Placement) -> None:
    rotation, translation = transform_from_placement(placement)
    _add(parent, "origin", xyz=translation, rpy=roll_pitch_yaw(rotation))


def _add_link(root: etree._Element, link: Link) -> None:
    element = _add(root, "link", name=link.name)
    if link.inertia is not None:
        with located(f"link '{link.name}'", RobotError):
            mass, centre, about_centre = centre_from_parameters(np.array(link.inertia))
        inertial = _add(element, "inertial")
        _add(inertial, "origin", xyz=centre, rpy=np.zeros(3))
        _add(inertial, "mass", value=mass)
        _add(inertial, "inertia", **dict(zip(INERTIA_ATTRIBUTES, about_centre[np.triu_indices(3)], strict=True)))
    for shape in link.shapes:
        for placement, tag, attributes in _geometries(shape):
            collision = _add(element, "collision")
            _add_origin(collision, placement)
            _add(_add(collision, "geometry"), tag, **attributes)


def _geometries(shape: Shape) -> Iterator[tuple[Placement, str, dict[str, object]]]:
    """Yield placement, tag and attributes; a capsule, which few readers know, is a cylinder and two balls."""
    if isinstance(shape, SphereShape):
        yield shape.placement, "sphere", {"radius": shape.radius}
    elif isinstance(shape, BoxShape):
        yield shape.placement, "box", {"size": shape.size}
    elif isinstance(shape, MeshShape):
        yield shape.placement, "mesh", {"filename": shape.name, "scale": shape.scale}
    else:
        yield shape.placement, "cylinder", {"radius": shape.radius, "length": shape.length}
    if isinstance(shape, CapsuleShape):
        for end in (-shape.length / 2, shape.length / 2):
            placement = (*shape.placement, ElementaryMotion("translate", Z, end, "z"))
            yield placement, "sphere", {"radius": shape.radius}


def _add_joint(root: etree._Element, joint: Joint, values: JointValues) -> None:
    limits = joint.limits
    endless = joint.kind == "revolute" and math.isinf(limits.lower) and math.isinf(limits.upper)
    element = _add(root, "joint", name=joint.name, type="continuous" if endless else joint.kind)
    _add_origin(element, joint.placement)
    _add(element, "parent", link=joint.parent)
    _add(element, "child", link=joint.child)
    if joint.kind == "fixed":
        return
    _add(element, "axis", xyz=joint.axis)
    span = {} if endless else {"lower": limits.lower, "upper": limits.upper}
    known = {**span, "effort": limits.effort, "velocity": limits.velocity}
    if not endless or any(map(math.isfinite, known.values())):
        _add(element, "limit", **{name: np.clip(value, -UNLIMITED, UNLIMITED) for name, value in known.items()})
    if values.damping or values.friction:
        _add(element, "dynamics", damping=values.damping, friction=values.friction)
    if joint.mimic is not None:
        mimic = joint.mimic
        _add(element, "mimic", joint=mimic.leader, multiplier=mimic.multiplier, offset=mimic.offset)
