"""Robots by catalogue name, or from a table or URDF file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from ..errors import RobotError, nearest_match, require_type
from .table import read_table, robot_from_table
from .tree import Robot
from .urdf import read_urdf


def catalogue_names() -> tuple[str, ...]:
    """Return the names of the known arms, sorted.

    Example:
        >>> "kuka_lwr4" in steelyard.catalogue_names()
        True
    """
    tables = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in tables if name.endswith(".toml")))


def read_catalogue(name: str) -> Robot:
    """Return a known arm by its name.

    Example:
        >>> from steelyard.robot import read_catalogue
        >>> read_catalogue("ur10e").name
        'ur10e'
    """
    names = catalogue_names()
    if name not in names:
        raise RobotError(f"unknown robot '{name}'; the catalogue has {', '.join(names)}{nearest_match(name, names)}")
    return robot_from_table(_folder().joinpath(f"{name}.toml").read_bytes(), f"catalogue entry '{name}'")


def _folder() -> Traversable:
    return files(__package__ or "steelyard.robot").joinpath("catalogue")


# The XML reader also takes the endings of formats it does not know: it looks inside and says what to do.
READERS: dict[str, Callable[[str], Robot]] = {
    ".toml": read_table,
    ".urdf": read_urdf,
    ".xml": read_urdf,
    ".xacro": read_urdf,
    ".sdf": read_urdf,
    ".mjcf": read_urdf,
}


AnyRobot = Robot | str | os.PathLike[str]
"""A robot, its catalogue name, or the path of its file: public functions take any of them."""


def load_robot(name_or_path: AnyRobot) -> Robot:
    """Return a robot by its catalogue name, or from a file: a table (.toml) or a URDF (.urdf, .xml).

    Args:
        name_or_path: A name of ``catalogue_names()``, or the path of a file; a robot is returned as it is.

    Example:
        >>> robot = steelyard.load_robot("scara_2r")
        >>> robot.name, len(robot.bodies)
        ('scara_2r', 2)
    """
    if isinstance(name_or_path, Robot):
        return name_or_path
    allowed = "a Robot, a catalogue name or the path of a file"
    require_type(name_or_path, (str, os.PathLike), "robot", allowed, RobotError)
    path = os.fspath(name_or_path)
    if isinstance(name_or_path, str) and path in catalogue_names():
        return replace(read_catalogue(path), file=path)
    suffix = Path(path).suffix.lower()
    if suffix in READERS:
        return replace(READERS[suffix](path), file=path)
    names = catalogue_names()
    if _exists(path):
        raise RobotError(f"{path}: kind of file '{suffix}' is not known; allowed: .toml (table), .urdf and .xml (URDF)")
    raise RobotError(
        f"unknown robot '{path}': no such file, and the catalogue has {', '.join(names)}; "
        f"give one of these or the path of a .toml or .urdf file{nearest_match(path, names)}"
    )


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False
