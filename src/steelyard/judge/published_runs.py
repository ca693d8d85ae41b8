"""Printed tables of the papers as runs, to compare with: the values and relative sigmas as printed."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

from ..errors import EstimateError, nearest_match
from .comparison import ComparedRun, ComparedValue


def published_names() -> tuple[str, ...]:
    """Return the names of the published runs, sorted."""
    tables = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in tables if name.endswith(".toml")))


def published_run(name: str) -> ComparedRun:
    """Return a published run by its name.

    A parameter is ``[value, relative sigma in per cent]`` there, with its regrouping where that differs between models.

    Raises:
        EstimateError: If there is none of this name.
    """
    names = published_names()
    if name not in names:
        raise EstimateError(f"unknown published run '{name}'; there are {', '.join(names)}{nearest_match(name, names)}")
    table = tomllib.loads(_folder().joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    regrouping = table.get("regrouping", {})
    parameters = {
        parameter: ComparedValue(value, abs(value) * percent / 100, _unit(parameter), regrouping.get(parameter, ""))
        for parameter, (value, percent) in table["parameters"].items()
    }
    return ComparedRun(name, MappingProxyType(parameters), table["source"], table["robot"])


def _unit(parameter: str) -> str:
    """Return the unit of a parameter of a revolute joint."""
    family = parameter.rstrip("R").rstrip("0123456789L")
    units = {"Ia": "kg m^2", "Fv": "N m s/rad", "Fc": "N m", "off": "N m", "M": "kg"}
    if family in ("MX", "MY", "MZ"):
        return "kg m"
    return units.get(family.rstrip("ml"), "kg m^2")


def _folder() -> Traversable:
    return files(__package__ or "steelyard.judge").joinpath("published")
