"""Values of a setup file: each is turned into its type or refused with a line that says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

from ..errors import ConfigError, nearest_match
from .record import TORQUE_KINDS
from .setup import Columns, PerJoint, Side

LARGEST = 1e15
"""Largest number of a setup: products with measured numbers stay finite."""
Converter = Callable[[Any], Any]
"""Returns the value as its type, or raises ValueError with what is allowed."""


def taken(table: Any, converters: Mapping[str, Converter], where: str) -> dict[str, Any]:
    """Return the values of a table, converted; an unknown key or a wrong value is an error that names it."""
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table; got {table!r}")
    values = {}
    for key, value in table.items():
        if key not in converters:
            raise ConfigError(
                f"{where}: unknown key '{key}'; allowed: {', '.join(converters)}{nearest_match(key, converters)}"
            )
        try:
            values[key] = converters[key](value)
        except ValueError as error:
            raise ConfigError(f"{where}: '{key}' must be {error}; got {value!r}") from error
    return values


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A text or a list of texts."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or not all(isinstance(word, str) and word for word in values):
        raise ValueError("a text or a list of texts")
    return tuple(values)


def choice(*words: str) -> Converter:
    """Return a converter that takes one of some words."""

    def convert(value: Any) -> str:
        if value not in words:
            raise ValueError(f"one of {', '.join(words)}{nearest_match(str(value), words)}")
        return value

    return convert


def number(value: Any) -> float:
    """A number up to ``LARGEST``."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise ValueError(f"a finite number up to {LARGEST:g}")
    return float(value)


def positive(value: Any) -> float:
    """A number above zero, from 1 / ``LARGEST`` to ``LARGEST``."""
    if number(value) < 1 / LARGEST:
        raise ValueError("a number above zero")
    return float(value)


def count(value: Any) -> int:
    """A whole number, zero or more."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
        raise ValueError("a whole number, zero or more")
    return value


def separator(value: Any) -> str:
    """One printable letter that no number has, a tab, or a word for blanks."""
    if value in ("tab", "\t", "whitespace", "space", " "):
        return value
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or not value.isprintable():
        raise ValueError("one letter such as , or ;, 'tab' or 'whitespace'")
    if value.isalnum() or value in '+-."':
        raise ValueError("a letter that stands in no number, such as , or ;")
    return value


def yes_or_no(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def numbers(value: Any) -> tuple[float, ...]:
    """A list of finite numbers."""
    if not isinstance(value, list) or not value:
        raise ValueError("a list of numbers")
    return tuple(number(entry) for entry in value)


def matrix(value: Any) -> tuple[tuple[float, ...], ...]:
    """A square list of lists of numbers."""
    if not isinstance(value, list) or not value:
        raise ValueError("a square matrix, a list of rows")
    rows = tuple(numbers(row) for row in value)
    if any(len(row) != len(rows) for row in rows):
        raise ValueError("a square matrix, a list of rows")
    return rows


def per_joint(value: Any) -> PerJoint:
    """A number, a list of numbers in the robot's joint order, or a table by joint name."""
    if isinstance(value, dict):
        return {name: number(entry) for name, entry in value.items()}
    return numbers(value) if isinstance(value, list) else number(value)


def signs(value: Any) -> PerJoint:
    """+1 or -1 for each joint."""
    converted = per_joint(value)
    entries = converted.values() if isinstance(converted, Mapping) else converted
    if any(abs(entry) != 1 for entry in ([entries] if isinstance(entries, int | float) else entries)):
        raise ValueError("1 or -1 for each joint")
    return converted


def degrees(value: Any) -> PerJoint:
    """As per joint, in degrees."""
    converted = per_joint(value)
    if isinstance(converted, Mapping):
        return {name: math.radians(entry) for name, entry in converted.items()}
    return tuple(map(math.radians, converted)) if isinstance(converted, tuple) else math.radians(converted)


def column(value: Any) -> str | int:
    """A column's name, or its number from 1."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "" or value == 0:
        raise ValueError("a column's name, or its number counted from 1")
    return value


def columns(value: Any) -> Columns:
    """A name, a pattern, an index range or a list of these."""
    if isinstance(value, list) and value:
        return tuple(column(entry) for entry in value)
    return column(value)


def row_range(value: Any) -> tuple[int, int]:
    """First and last row: ``"635:3510"``, an end left out is open."""
    first, colon, last = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not colon or not all(not end.strip() or end.strip().isdecimal() for end in (first, last)):
        raise ValueError('first and last row from 1, as "635:3510"')
    if max(len(first), len(last)) > 15:
        raise ValueError("first and last row of at most 15 digits")
    ends = int(first) if first.strip() else 1, int(last) if last.strip() else 0
    if ends[0] < 1 or (ends[1] and ends[1] < ends[0]):
        raise ValueError('first and last row from 1, as "635:3510", the last not before the first')
    return ends


def second_range(value: Any) -> tuple[float, float]:
    """First and last second, counted from the first stamp."""
    ends = numbers(value)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise ValueError("two numbers, first and last second, as [2.5, 20]")
    return ends[0], ends[1]


torque_kind = choice(*TORQUE_KINDS)
side = choice(*get_args(Side))
