"""The elements of a URDF, one at a time: numbers, origins, links and joints."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ..errors import RobotError
from .angles import RightAngles
from .checks import JOINT_KINDS, LARGEST_NUMBER, checked_limits, checked_mass, checked_word, finite_number
from .inertia import moved_parameters
from .parts import Joint, JointKind, Limits, Link, Mimic
from .placement import Placement, Vector3, Z, origin_placement, transform_from_placement
from .xml_safety import XACRO_ADVICE

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
    word = text.strip()
    if "${" in word or "$(" in word:
        raise RobotError(f"{what} is '{word}'; {XACRO_ADVICE}")
    # The pattern takes a time that grows with the square of the number of digits.
    if len(word) > LONGEST_NUMBER or not NUMBER.fullmatch(word):
        raise RobotError(f"{what} is '{text}'; a number is expected")
    return finite_number(float(word), what, largest=largest)


def vector_from_text(text: str, what: str) -> Vector3:
    """Return the three finite numbers a text holds."""
    if "${" in text or "$(" in text:
        raise RobotError(f"{what} is '{text}'; {XACRO_ADVICE}")
    words = text.split()
    if len(words) != 3:
        raise RobotError(f"{what} is '{text}'; three numbers are expected")
    x, y, z = (number_from_text(word, what) for word in words)
    return x, y, z


def placement_from_origin(parent: etree._Element, angles: RightAngles, what: str) -> Placement:
    """Return the placement of the ``<origin>`` child; the identity if there is none."""
    origin = child(parent, "origin")
    xyz = (0.0, 0.0, 0.0) if origin is None else vector_from_text(origin.get("xyz", "0 0 0"), f"{what}: origin xyz")
    rpy = (0.0, 0.0, 0.0) if origin is None else vector_from_text(origin.get("rpy", "0 0 0"), f"{what}: origin rpy")
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
        number_from_text(attribute(inertia_element, word, what), f"{what}: {word}") for word in INERTIA_ATTRIBUTES
    ]
    rotation, centre = transform_from_placement(placement_from_origin(inertial, angles, what))
    parameters = moved_parameters(np.array([*about_centre, 0.0, 0.0, 0.0, mass]), rotation, centre)
    return Link(name, tuple(float(value) for value in parameters))


def joint_from_element(element: etree._Element, angles: RightAngles, notes: list[str]) -> Joint:
    """Return a joint; what is odd about its limits is added to ``notes``."""
    name = attribute(element, "name", "a joint")
    what = f"joint '{name}'"
    word = attribute(element, "type", what)
    kind = _kind(word, what)
    placement = placement_from_origin(element, angles, what)
    parent, link = _end(element, "parent", what), _end(element, "child", what)
    if kind == "fixed":
        return Joint(name, kind, parent, link, placement, Z)
    limits, limit_notes = _limits(element, name, word)
    notes.extend(limit_notes)
    return Joint(name, kind, parent, link, placement, _axis(element, angles, what), limits, _mimic(element, what))


def _kind(word: str, what: str) -> JointKind:
    if word in OUT_OF_SCOPE:
        raise RobotError(
            f"{what}: type '{word}' is out of scope (fixed-base arms only); allowed: {', '.join(JOINT_KINDS)}"
        )
    return JOINT_KINDS[checked_word(word, JOINT_KINDS, f"{what}: type")]


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


def _limits(element: etree._Element, name: str, word: str) -> tuple[Limits, list[str]]:
    """Return the limits; a continuous joint has no range, and a bound given alone leaves the other at 0 (URDF rule)."""
    limit = child(element, "limit")
    if limit is None:
        return Limits(), []
    wanted = ("velocity", "effort") if word == "continuous" else ("lower", "upper", "velocity", "effort")
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
