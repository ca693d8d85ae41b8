"""The arms that come with the product: one table each, facts with their sources."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from ..errors import RobotError, nearest_match
from .table import robot_from_table
from .tree import Robot


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
