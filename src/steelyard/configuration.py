"""Values of TOML and option tables: each is converted to its kind, or refused in one line.

A kind is a function that returns the value in its type, or raises ``ValueError`` with what it allows; a
:class:`Section` is a table with its name and the error class of its reader. Every message has one form,
``[joints]: velocity is 'fast'; allowed: a number``, and an unknown key comes with its nearest match::

    with toml_file(path, "the limits", DesignError) as file:
        rate = file.section("joints").get("rate", number(above=0), 100.0)

Records whose fields are annotated are read as a whole by :func:`record_from`.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from .errors import ConfigError, SteelyardError, nearest_match, short_value
from .files import toml_document

T = TypeVar("T")
Record = TypeVar("Record")
Kind = Callable[[Any], T]
Vector = tuple[float, float, float]
PerJoint = float | tuple[float, ...] | Mapping[str, float]
"""One number for all joints, one each in the robot's joint order, or by joint name."""

LARGEST_NUMBER = 1e9
"""No length, mass, inertia, angle or torque of an arm is larger in SI units; sums of products stay finite."""
ROOT = ""
"""Name of the outermost table, which messages leave out."""


def checked(value: Any, kind: Kind[T], what: str, error: type[SteelyardError]) -> T:
    """Return a value in its type, or raise an error of this class with what was got and what is allowed."""
    try:
        return kind(value)
    except ValueError as problem:
        raise error(f"{what} is {short_value(value)}; allowed: {problem}") from problem


def anything(value: Any) -> Any:
    """Any value, checked elsewhere."""
    return value


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A text or a list of texts."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or not all(isinstance(entry, str) and entry for entry in values):
        raise ValueError("a text or a list of texts")
    return tuple(values)


def names(what: str = "names", *, twice: bool = True) -> Kind[tuple[str, ...]]:
    """Return the kind of a list of names, which may be empty; ``twice`` whether one may come again."""

    def convert(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise ValueError(f"a list of {what}")
        if not twice and (len(set(value)) < len(value) or "" in value):
            raise ValueError(f"a list of {what}, each once")
        return tuple(value)

    return convert


def choice(*allowed: str) -> Kind[str]:
    """Return the kind of a text that is one of some."""

    def convert(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            hint = nearest_match(value, allowed) if isinstance(value, str) else ""
            raise ValueError(", ".join(allowed) + hint)
        return value

    return convert


def whole_number(least: int, largest: float = math.inf) -> Kind[int]:
    """Return the kind of a whole number from ``least`` on."""

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= largest:
            raise ValueError(f"a whole number from {least}")
        return int(value)

    return convert


def number(
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    largest: float = LARGEST_NUMBER,
    infinite: bool = False,
) -> Kind[float]:
    """Return the kind of a number.

    Args:
        above: It is larger than this.
        least: It is at least this.
        most: It is at most this.
        largest: A magnitude beyond this is no measure of an arm: an error, or infinite.
        infinite: Whether numbers beyond ``largest``, which people write for 'no limit', are taken as infinite.
    """
    limits = [f"above {above:g}"] if above is not None else [f"of {least:g} or more"] if least is not None else []
    limits += [f"at most {most:g}"] if most is not None else []
    allowed = f"a {'' if infinite else 'finite '}number {' and '.join(limits)}".strip()

    def convert(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(allowed)
        size = cast(Any, abs(value))
        if not size <= math.inf or (size == math.inf and not infinite):
            raise ValueError(f"{allowed}; leave it out if it is unknown")
        if size > largest and not infinite:
            raise ValueError(f"a finite number up to {largest:g}; check the unit (SI)")
        converted = float(value) if size <= largest else math.copysign(math.inf, value)
        too_low = (above is not None and not converted > above) or (least is not None and converted < least)
        if too_low or (most is not None and converted > most):
            raise ValueError(allowed)
        return converted

    return convert


def list_of(kind: Kind[T], count: int | None, what: str, *, alone: bool = False) -> Kind[tuple[T, ...]]:
    """Return the kind of a list, of a given length if there is one; ``alone`` whether one number stands for a list."""

    def convert(value: Any) -> tuple[T, ...]:
        is_number = alone and isinstance(value, Real) and not isinstance(value, bool)
        entries = [value] if is_number else value
        if not isinstance(entries, list | tuple) or (count is not None and len(entries) != count):
            raise ValueError(what)
        converted = []
        for place, entry in enumerate(entries, start=1):
            try:
                converted.append(kind(entry))
            except ValueError as error:
                raise ValueError(f"{what}; entry {place} must be {error}") from error
        return tuple(converted)

    return convert


def numbers(count: int | None = None, each: Kind[float] | None = None, what: str = "") -> Kind[tuple[float, ...]]:
    """Return the kind of a list of numbers, of a given length if there is one; messages call it ``what``."""
    return list_of(each or number(), count, what or f"a list of {'' if count is None else f'{count} '}numbers")


def vector(value: Any, each: Kind[float] | None = None) -> Vector:
    """Three numbers."""
    x, y, z = numbers(3, each, "three numbers, such as [0, 0, 0.1]")(value)
    return x, y, z


def per_joint(each: Kind[float]) -> Kind[PerJoint]:
    """Return the kind of one number, a list of numbers in the robot's joint order, or a table by joint name."""

    def convert(value: Any) -> PerJoint:
        if isinstance(value, dict):
            return {name: each(entry) for name, entry in value.items()}
        if value == []:
            raise ValueError("a number, a list of numbers or a table by joint name")
        return numbers(None, each)(value) if isinstance(value, list) else each(value)

    return convert


def in_radians(kind: Kind[T], convert: Callable[[float], float] = math.radians) -> Kind[T]:
    """Return the kind of the same numbers given in degrees."""

    def turned(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: turned(entry) for name, entry in value.items()}
        return tuple(map(turned, value)) if isinstance(value, tuple) else convert(value)

    return lambda value: turned(kind(value))


@dataclass(frozen=True)
class Section:
    """A table of a file, of a command line or of a caller.

    Attributes:
        table: Keys and values as TOML has them.
        where: What messages call it.
        error: Class of the errors raised.
    """

    table: Mapping[str, Any]
    where: str
    error: type[SteelyardError]

    def __contains__(self, key: str) -> bool:
        """Return whether the table has a key."""
        return key in self.table

    def failure(self, message: str) -> SteelyardError:
        """Return the error with the name of the table in front of the message."""
        return self.error(self._within(message))

    def _within(self, text: str) -> str:
        return f"{self.where}: {text}" if self.where else text

    def check_keys(self, allowed: Iterable[str]) -> None:
        """Refuse the first key that is not allowed, with its nearest match."""
        known = list(allowed)
        for key in self.table:
            if key not in known:
                raise self.failure(f"unknown key '{key}'; allowed: {', '.join(known)}{nearest_match(key, known)}")

    def get(self, key: str, kind: Kind[T], default: T | None = None) -> T:
        """Return the value under a key; one without a default must be there."""
        if key in self.table:
            return checked(self.table[key], kind, self._within(key), self.error)
        if default is not None:
            return default
        try:
            return kind(None)  # its error says what is allowed
        except ValueError as problem:
            raise self.failure(f"'{key}' is missing; add {key} = ..., allowed: {problem}") from None

    def optional(self, key: str, kind: Kind[T]) -> T | None:
        """Return the value under a key, None if it is not there."""
        return self.get(key, kind) if key in self.table else None

    def angles(self, key: str, kind: Kind[T], convert: Callable[[float], float] = math.radians) -> T | None:
        """Return the value under ``key``, or under ``key_deg`` in degrees; None if neither is there."""
        in_degrees = f"{key}_deg"
        self.refuse_both(key, in_degrees)
        return self.optional(in_degrees, in_radians(kind, convert)) if in_degrees in self else self.optional(key, kind)

    def refuse_both(self, first: str, second: str) -> None:
        """Refuse two keys that exclude each other."""
        if first in self and second in self:
            raise self.failure(f"both {first} and {second} are given; keep one")

    def values(self, kinds: Mapping[str, Kind[Any]]) -> dict[str, Any]:
        """Return the values that are there, each by its kind; other keys are refused."""
        self.check_keys(kinds)
        return {key: self.get(key, kinds[key]) for key in self.table}

    def section(self, key: str) -> Section:
        """Return the table under a key, empty if there is none."""
        table = self.table.get(key, {})
        if not isinstance(table, Mapping):
            raise self.failure(f"{key} is {short_value(table)}; allowed: a table, write [{key}] on a line of its own")
        where = self._within(key) if self.where else f"[{key}]"
        return Section(table, where, self.error)

    def sections(self, key: str) -> list[Section]:
        """Return the tables of the list under a key, numbered from 1 in messages; empty if there is none."""
        tables = self.table.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.failure(f"{key} is no list of tables; write [[{key}]], with double brackets, for each")
        place = f"{self.where} {key}" if self.where else f"[[{key}]]"
        return [Section(table, f"{place} {k}", self.error) for k, table in enumerate(tables, start=1)]

    def named_sections(self) -> dict[str, Section]:
        """Return the tables in this one by their names, such as ``[markers.nose]`` in ``[markers]``."""
        places = {name: f"[{self.where.strip('[]')}.{name}]" for name in self.table}
        for name, table in self.table.items():
            if not isinstance(table, dict):
                raise self.failure(f"{name} is {short_value(table)}; allowed: a table, write {places[name]}")
        return {name: Section(table, places[name], self.error) for name, table in self.table.items()}

    def renamed(self, where: str) -> Section:
        """Return the same table under another name."""
        return replace(self, where=where)


@contextmanager
def located(where: str, error: type[SteelyardError]) -> Iterator[None]:
    """Put the name of a file in front of every error of this class raised inside."""
    try:
        yield
    except error as problem:
        raise error(f"{where}: {problem}") from problem


@contextmanager
def toml_file(path: Path, what: str, error: type[SteelyardError]) -> Iterator[Section]:
    """Yield the content of a TOML file; every error of this class raised inside names the file.

    Args:
        path: The file.
        what: What it should hold, as in ``the limits``.
        error: Error of its reader.
    """
    with located(str(path), error):
        yield Section(toml_document(path, what, error), ROOT, error)


def read_config(path: Path, table: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of one table of a configuration file, as they are there.

    Args:
        path: The TOML file.
        table: Name of the command's table; tables of other commands are left alone.
        schema: Allowed keys and their types, as :func:`kind_of` takes them; ``float`` takes whole numbers too.
    """
    with toml_file(path, "the configuration", ConfigError) as file:
        section = file.section(table)
        section.values({key: kind_of(kind) for key, kind in schema.items()})
        return dict(section.table)


def record_from(record: type[Record], section: Section, kinds: Mapping[str, Kind[Any]] | None = None) -> Record:
    """Return a record from a table: its annotations say which keys there are and what each takes.

    Args:
        record: A dataclass; a field annotated by another one is a table of its own.
        section: The table; keys left out have the record's defaults.
        kinds: Kinds of fields whose annotation does not say enough.
    """
    hints = get_type_hints(record)
    known = [field for field in fields(record) if field.init]  # type: ignore[arg-type]
    section.check_keys([field.name for field in known])
    values: dict[str, Any] = {}
    for field in known:
        name, hint = field.name, hints[field.name]
        needed = (field.default, field.default_factory) == (MISSING, MISSING)
        inner = next((entry for entry in (hint, *get_args(hint)) if is_dataclass(entry)), None)
        if inner is not None and (needed or section.table.get(name) is not None):
            values[name] = record_from(inner, section.section(name))  # type: ignore[arg-type]
        elif inner is None and (needed or name in section):
            values[name] = section.get(name, (kinds or {}).get(name) or kind_of(hint))
    return record(**values)


_PLAIN: dict[Any, tuple[type | tuple[type, ...], str]] = {
    str: (str, "a text"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    bool: (bool, "true or false"),
    list: (list, "a list"),
    dict: (dict, "a table"),
    types.NoneType: (types.NoneType, ""),
}


def kind_of(annotation: Any) -> Kind[Any]:
    """Return the kind that an annotation means: plain types, ``Literal``, ``tuple``, and unions or tuples of them.

    Ranges of numbers are left to the record that holds them. Where a list of any length is allowed, one number stands
    for a list of one.
    """
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return choice(*inside)
    if origin in (Union, types.UnionType) or isinstance(annotation, tuple):
        return _one_of([kind_of(entry) for entry in sorted(inside or annotation, key=lambda e: get_origin(e) is tuple)])
    if origin is tuple:
        count = None if inside[-1] is Ellipsis else len(inside)
        what = "a list" if count is None else f"a list of {count}"
        return list_of(kind_of(inside[0]), count, what, alone=count is None)
    allowed, phrase = _PLAIN[annotation]

    def convert(value: Any) -> Any:
        if not isinstance(value, allowed) or (isinstance(value, bool) and annotation is not bool):
            raise ValueError(phrase)
        try:
            return value if annotation is types.NoneType else annotation(value)
        except OverflowError:
            raise ValueError(phrase) from None

    return convert


def _one_of(kinds: Iterable[Kind[Any]]) -> Kind[Any]:
    def convert(value: Any) -> Any:
        problems = []
        for kind in kinds:
            try:
                return kind(value)
            except ValueError as error:
                problems.append(str(error))
        raise ValueError(" or ".join(dict.fromkeys(filter(None, problems))))

    return convert


flag: Kind[bool] = kind_of(bool)
"""True or false."""
