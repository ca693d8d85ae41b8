"""Collision shapes of a URDF: what cannot be read is left out with a note, since no equation needs it."""

from __future__ import annotations

from pathlib import Path

from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ..errors import RobotError, nearest_match, one_line
from .angles import RightAngles
from .placement import Placement
from .shapes import BoxShape, CapsuleShape, CylinderShape, MeshShape, Shape, SphereShape, found_mesh
from .urdf_elements import attribute, child, children, number_from_text, placement_from_origin, vector_from_text

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
