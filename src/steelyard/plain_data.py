"""Results as plain data (numbers, texts, lists, tables) and as JSON and YAML documents.

Every room has functions ``..._to_json`` that name the keys of its results; what becomes of arrays, records and numbers
that are not finite is decided here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from .text import for_json, for_yaml

if TYPE_CHECKING:
    import polars

SCHEMA_VERSION = 2
"""2: ``parameters[].value`` is that of the judged model; of the full set it is ``full_value``."""


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it.

    Arrays and sequences become lists, numpy scalars numbers, records (dataclasses) tables, paths texts; numbers that
    are not finite become None.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # arrays and scalars of numpy, which need not be loaded
        return plain(value.tolist())
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, PathLike):
        return fspath(value)
    return [plain(item) for item in value]


def frame_of(rows: Sequence[Mapping[str, Any]]) -> polars.DataFrame:
    """Return rows of plain data as a frame, one column a key; entries that are lists or tables have none.

    ``frame_of(rows).to_pandas()`` gives a pandas frame.
    """
    import polars

    keys = [key for key in (rows[0] if rows else ()) if not any(isinstance(row[key], list | dict) for row in rows)]
    return polars.DataFrame([{key: row[key] for key in keys} for row in rows], infer_schema_length=None)


def json_text(command: str, content: Mapping[str, Any]) -> str:
    """Return one JSON object: schema version and command first, then the content; NaN is refused."""
    return json_document({"schema": SCHEMA_VERSION, "command": command, **content})


def json_document(document: Mapping[str, Any]) -> str:
    """Return a JSON document with indented lines; unprintable characters are escaped, NaN is refused."""
    return for_json(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False))


def yaml_document(document: Mapping[str, Any]) -> str:
    """Return plain data as YAML 1.1 and 1.2; an entry of a table or list of the first level is one line."""
    lines = []
    for key, value in document.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{key}:", *(f"  {yaml_value(name)}: {yaml_value(item)}" for name, item in value.items())]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            lines += [f"{key}:", *(f"  - {yaml_value(item)}" for item in value)]
        else:
            lines.append(f"{key}: {yaml_value(value)}")
    return "\n".join(lines) + "\n"


def yaml_value(value: Any) -> str:
    """Return plain data in one line of YAML; keys of tables are the program's own words, texts are quoted.

    Numbers have all their digits; readers of YAML 1.1 know a float with an exponent only by its point.
    """
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {yaml_value(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(yaml_value, value))}]"
    if isinstance(value, str):
        return for_yaml(value)
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if not isfinite(value):
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    mantissa, mark, exponent = repr(float(value)).partition("e")
    return f"{mantissa}.0e{exponent}" if mark and "." not in mantissa else f"{mantissa}{mark}{exponent}"
