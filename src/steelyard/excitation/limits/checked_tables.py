"""Tables of a limits file: known keys only, and values of the right kind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import DesignError, nearest_match
from ...robot.checks import LARGEST_NUMBER
from ..space.regions import Vector3

Table = Mapping[str, Any]


def check_keys(table: Table, allowed: Iterable[str], where: str) -> None:
    """Refuse the first key that is not allowed, with its nearest match."""
    words = list(allowed)
    for key in table:
        if key not in words:
            raise DesignError(f"{where}: unknown key '{key}'; allowed: {', '.join(words)}{nearest_match(key, words)}")


def table_in(document: Table, key: str) -> Table:
    """Return the table under a key, empty if there is none."""
    table = document.get(key, {})
    if not isinstance(table, dict):
        raise DesignError(f"'{key}' is {table!r}; a table is expected, write [{key}] on a line of its own")
    return table


def tables_in(document: Table, key: str) -> list[Table]:
    """Return the list of tables under a key, empty if there is none."""
    tables = document.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise DesignError(f"'{key}' is no list of tables; write [[{key}]], with double brackets, for each")
    return tables


def word_in(table: Table, key: str, allowed: Iterable[str], where: str, default: str | None = None) -> str:
    """Return one of the allowed words."""
    words, got = list(allowed), table.get(key, default)
    if isinstance(got, str) and got in words:
        return got
    if got is None:
        raise DesignError(f"{where}: '{key}' is missing; allowed: {', '.join(words)}")
    hint = nearest_match(got, words) if isinstance(got, str) else ""
    raise DesignError(f"{where}: {key} is {got!r}; allowed: {', '.join(words)}{hint}")


def text_in(table: Table, key: str, where: str, default: str | None = None) -> str:
    """Return the text under a key."""
    text = table.get(key, default)
    if text is None:
        raise DesignError(f"{where}: '{key}' is missing; add {key} = \"...\"")
    if not isinstance(text, str) or not text:
        raise DesignError(f"{where}: {key} is {text!r}; a text is expected")
    return text


def number_in(table: Table, key: str, where: str, default: float | None = None) -> float:
    """Return the number under a key; infinite ones are allowed, NaN is not."""
    return checked_number(_given(table, key, where, default), f"{where}: {key}")


def vector_in(table: Table, key: str, where: str, default: Vector3 | None = None) -> Vector3:
    """Return the three numbers under a key."""
    given = _given(table, key, where, default)
    if not isinstance(given, list | tuple) or len(given) != 3:
        raise DesignError(f"{where}: {key} is {given!r}; three numbers are expected, such as [0, 0, 0.1]")
    x, y, z = (checked_number(value, f"{where}: {key}") for value in given)
    return x, y, z


def checked_number(value: object, what: str) -> float:
    """Return the value as a float if it is a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DesignError(f"{what} is {value!r}; a number is expected")
    if math.isnan(value):
        raise DesignError(f"{what} is nan; a number is expected, leave it out if it is unknown")
    # A number beyond all measure is what people write for 'no limit'; where one is needed, infinity is refused.
    return float(value) if abs(value) <= LARGEST_NUMBER else math.copysign(math.inf, value)


def _given(table: Table, key: str, where: str, default: Any) -> Any:
    given = table.get(key, default)
    if given is None:
        raise DesignError(f"{where}: '{key}' is missing; add {key} = ...")
    return given
