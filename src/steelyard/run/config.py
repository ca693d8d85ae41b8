"""Settings from a ``steelyard.toml``: every key is known, every value has the right type, or it is an error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError, nearest_match
from ..files import toml_document

Kind = type | tuple[type, ...]
_TYPE_NAMES = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    bool: "true or false",
    dict: "a table",
}


def read_config(path: Path, table: str, schema: Mapping[str, Kind]) -> dict[str, Any]:
    """Return the settings of one table of a configuration file.

    Args:
        path: The TOML file.
        table: Name of the command's table; tables of other commands are left alone.
        schema: Allowed keys and their types; ``float`` takes whole numbers too.
    """
    try:
        document = toml_document(path, "the configuration", ConfigError)
    except ConfigError as error:
        raise ConfigError(f"configuration '{path}': {error}") from error
    settings = document.get(table, {})
    if not isinstance(settings, dict):
        raise ConfigError(f"configuration '{path}': '{table}' must be a table; write [{table}] on a line of its own")
    for key, value in settings.items():
        _check(path, table, key, value, schema)
    return settings


def _check(path: Path, table: str, key: str, value: Any, schema: Mapping[str, Kind]) -> None:
    if key not in schema:
        raise ConfigError(
            f"configuration '{path}': unknown key '{key}' in [{table}]; "
            f"allowed: {', '.join(schema)}{nearest_match(key, schema)}"
        )
    kinds = schema[key]
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if not any(_fits(value, kind) for kind in wanted):
        names = " or ".join(_TYPE_NAMES[kind] for kind in wanted)
        raise ConfigError(f"configuration '{path}': '{key}' in [{table}] must be {names}, got {value!r}")


def _fits(value: Any, kind: type) -> bool:
    if kind in (float, int):
        return isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    return isinstance(value, kind)
