"""Robots by catalogue name, from a table, URDF or MJCF file, or by name from the package robot_descriptions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module, util
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from ..errors import RobotError, nearest_match, require_type
from .files import LARGEST_FILE, PathOrBytes, content_of, parse_xml_safely
from .mjcf import read_mjcf
from .mjcf_files import MJCF_ROOT, mjcf_source
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


def read_xml(path_or_bytes: PathOrBytes) -> Robot:
    """Return the robot of an XML file, read as MJCF if its root is ``<mujoco>`` or a part of one, else as URDF."""
    return (read_mjcf if _is_mjcf(path_or_bytes) else read_urdf)(path_or_bytes)


def _is_mjcf(path_or_bytes: PathOrBytes) -> bool:
    try:
        root = parse_xml_safely(content_of(path_or_bytes, LARGEST_FILE)).getroot()
    except RobotError:
        return False  # the reader of URDF names the file and says what is wrong
    return etree.QName(root).localname in (MJCF_ROOT, f"{MJCF_ROOT}include")


# The XML readers also take the endings of formats they do not know: they look inside and say what to do.
READERS: dict[str, Callable[[str], Robot]] = {
    ".toml": read_table,
    **dict.fromkeys((".urdf", ".xml", ".xacro", ".sdf", ".mjcf"), read_xml),
}

DESCRIPTIONS = "robot_descriptions"
"""Package whose modules, one an arm, name a URDF or MJCF file; ``robot_descriptions:NAME`` loads one."""


def described_file(name: str) -> str:
    """Return the file that a module of the package robot_descriptions names, URDF before MJCF if it has both.

    The package downloads the repository of a description when its module is first imported; a line on the standard
    error output says so beforehand.

    Raises:
        RobotError: If the package or the description is missing, or the download fails.
    """
    module = f"{DESCRIPTIONS}.{name}"
    if not name.isidentifier():
        raise RobotError(f"{DESCRIPTIONS}:{name}: not the name of a description; write it as robot_descriptions has it")
    if DESCRIPTIONS not in sys.modules and util.find_spec(DESCRIPTIONS) is None:
        raise RobotError(
            f"{DESCRIPTIONS}:{name} needs the package {DESCRIPTIONS}; install it with: pip install {DESCRIPTIONS}"
        )
    if module not in sys.modules:
        if util.find_spec(module) is None:
            raise RobotError(
                f"the package {DESCRIPTIONS} has no '{name}'; its page lists the names, such as panda_description or "
                "panda_mj_description"
            )
        cache = os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")
        sys.stderr.write(f"{module}: its repository is downloaded into {cache} unless it is there already\n")
    try:
        found = import_module(module)
    except _loading_errors() as error:
        raise RobotError(f"{DESCRIPTIONS}:{name} cannot be loaded ({error}); is there a connection?") from error
    path = getattr(found, "URDF_PATH", None) or getattr(found, "MJCF_PATH", None)
    if not path:
        raise RobotError(f"{DESCRIPTIONS}:{name} names no URDF or MJCF file (a xacro?); expand it and give the file")
    return str(path)


def _loading_errors() -> tuple[type[Exception], ...]:
    """Return what a description's module raises if its repository cannot be downloaded; git is what downloads it."""
    git = getattr(sys.modules.get("git"), "GitError", None)
    return (ImportError, OSError, RuntimeError, *([git] if git else []))


AnyRobot = Robot | str | os.PathLike[str]
"""A robot, its catalogue name, or the path of its file: public functions take any of them."""


def load_robot(name_or_path: AnyRobot) -> Robot:
    """Return a robot by its catalogue name, or from a file: a table (.toml), a URDF or MJCF (.urdf, .xml, .mjcf).

    Args:
        name_or_path: A name of ``catalogue_names()``, the path of a file, or ``robot_descriptions:NAME``; a robot is
            returned as it is.

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
    if path.startswith(f"{DESCRIPTIONS}:"):
        path = described_file(path.partition(":")[2])
    suffix = Path(path).suffix.lower()
    if suffix in READERS:
        return replace(READERS[suffix](path), file=path)
    names = catalogue_names()
    if _exists(path):
        raise RobotError(
            f"{path}: kind of file '{suffix}' is not known; allowed: .toml (table), .urdf and .xml (URDF or MJCF)"
        )
    raise RobotError(
        f"unknown robot '{path}': no such file, and the catalogue has {', '.join(names)}; "
        f"give one of these or the path of a .toml, .urdf or MJCF file{nearest_match(path, names)}"
    )


def robot_files(robot: Robot) -> tuple[Path, ...]:
    """Return the files that a robot was loaded from: its own, and those that an MJCF file includes.

    Example:
        >>> from steelyard.robot import robot_files
        >>> robot_files(steelyard.load_robot("scara_2r"))
        ()
    """
    path = Path(robot.file)
    if not path.is_file():
        return ()
    included = mjcf_source(path).included if path.suffix.lower() != ".toml" and _is_mjcf(path) else ()
    return (path, *(path.parent / name for name in included))


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False
