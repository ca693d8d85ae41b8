"""Collision shapes of a link: what a description says about the room a link takes, none of it interpreted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .placement import Placement, Vector3


@dataclass(frozen=True)
class SphereShape:
    """A ball about the origin of its placement.

    Attributes:
        placement: Frame of the shape in the link's frame.
        radius: [m].
    """

    placement: Placement
    radius: float


@dataclass(frozen=True)
class CylinderShape:
    """A cylinder along z, its middle at the origin of its placement.

    Attributes:
        placement: Frame of the shape in the link's frame.
        radius: [m].
        length: From one flat end to the other [m].
    """

    placement: Placement
    radius: float
    length: float


@dataclass(frozen=True)
class CapsuleShape:
    """A cylinder along z with a half ball on each end, its middle at the origin of its placement.

    Attributes:
        placement: Frame of the shape in the link's frame.
        radius: [m].
        length: Of the cylinder, without the half balls [m].
    """

    placement: Placement
    radius: float
    length: float


@dataclass(frozen=True)
class BoxShape:
    """A box along the axes of its placement, its middle at the origin.

    Attributes:
        placement: Frame of the shape in the link's frame.
        size: Lengths along x, y and z [m].
    """

    placement: Placement
    size: Vector3


@dataclass(frozen=True)
class MeshShape:
    """A surface in a file of its own.

    Attributes:
        placement: Frame of the shape in the link's frame.
        name: The file's name as the description writes it.
        path: Where the file was found; None if it was not.
        scale: Factors on the vertices' x, y and z; a negative one mirrors.
    """

    placement: Placement
    name: str
    path: Path | None
    scale: Vector3 = (1.0, 1.0, 1.0)


Shape = SphereShape | CylinderShape | CapsuleShape | BoxShape | MeshShape


def found_mesh(name: str, folder: Path | None) -> Path | None:
    """Return the file that a mesh's name means, or None if there is none.

    ``package://NAME/rest`` is looked up beside the package's folder: in the first folder above the description that
    holds ``NAME/rest``. Other names are absolute (``file://`` in front or not) or relative to the description's folder.

    Args:
        name: The name as the description writes it.
        folder: Folder of the description; None if it came without a file.
    """
    kind, separator, rest = name.partition("://")
    if not separator:
        candidates = [Path(name)] if folder is None else [folder / name]
    elif kind == "file":
        candidates = [Path(rest)]
    elif kind == "package" and folder is not None:
        candidates = [parent / rest.lstrip("/") for parent in (folder, *folder.parents)]
    else:
        candidates = []
    return next((path for path in candidates if (folder is not None or path.is_absolute()) and _is_file(path)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, or one that no file can have
        return False
