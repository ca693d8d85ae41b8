"""Values of a set-up's tables: finite numbers, lists of names, column names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ...errors import CalibrationError
from ...excitation.limits.checked_tables import Table, checked_number, number_in
from ...robot.checks import LARGEST_NUMBER
from ...robot.placement import Vector3


def finite_in(table: Table, key: str, where: str, default: float | None = None) -> float:
    """Return the finite number under a key."""
    return _finite(number_in(table, key, where, default), f"{where}: {key}")


def checked_numbers(given: Any, what: str, count: int | None = None) -> tuple[float, ...]:
    """Return a list of finite numbers, of a given length if one is asked for."""
    if not isinstance(given, list | tuple) or (count is not None and len(given) != count):
        wanted = "a list of numbers is" if count is None else f"{count} numbers are"
        raise CalibrationError(f"{what} is {given!r}; {wanted} expected")
    return tuple(_finite(checked_number(value, what), what) for value in given)


def vector_under(table: Table, key: str, where: str) -> Vector3 | None:
    """Return the three finite numbers under a key, in degrees under ``key_deg``; None if neither is there."""
    in_degrees = f"{key}_deg"
    if key in table and in_degrees in table:
        raise CalibrationError(f"{where}: both {key} and {in_degrees} are given; keep one")
    word = in_degrees if in_degrees in table else key
    if word not in table:
        return None
    x, y, z = checked_numbers(table[word], f"{where}: {word}", 3)
    return (math.radians(x), math.radians(y), math.radians(z)) if word == in_degrees else (x, y, z)


def names_in(table: Table, key: str, where: str) -> tuple[str, ...]:
    """Return the list of texts under a key, empty if there is none."""
    given = table.get(key, [])
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise CalibrationError(f"{where}: {key} is {given!r}; a list of names is expected")
    return tuple(given)


def columns_in(table: Table, where: str, counts: Iterable[int]) -> tuple[str, ...]:
    """Return the names of columns under ``columns``: as many as one of the counts, or none."""
    names, allowed = names_in(table, "columns", where), tuple(counts)
    if "columns" in table and len(names) not in allowed:
        raise CalibrationError(f"{where}: columns has {len(names)} names; allowed: {' or '.join(map(str, allowed))}")
    return names


def yes_or_no(table: Table, key: str, where: str) -> bool:
    """Return true or false under a key, false if it is not there."""
    given = table.get(key, False)
    if not isinstance(given, bool):
        raise CalibrationError(f"{where}: {key} is {given!r}; true or false is expected")
    return given


def _finite(number: float, what: str) -> float:
    if not abs(number) <= LARGEST_NUMBER:
        raise CalibrationError(f"{what} is {number:g}; a finite number up to {LARGEST_NUMBER:g} is expected")
    return number
