"""Settings of a single method, from a table of a file or from the command line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_type_hints

from ..errors import EstimateError, nearest_match
from ..estimate.instruments import InstrumentSettings
from ..estimate.kalman.settings import KalmanSettings
from ..estimate.likelihood import LikelihoodSettings
from ..estimate.recursive import RecursiveSettings

METHOD_SETTINGS: dict[str, type] = {
    "rls": RecursiveSettings,
    "ekf": KalmanSettings,
    "ml": LikelihoodSettings,
    "iv": InstrumentSettings,
}
"""Tables of methods that have settings of their own; ``iv`` serves ``didim`` too."""

TABLE_OF = {"rls": "rls", "ekf": "ekf", "ml": "ml", "iv": "iv", "didim": "iv"}

Chosen = TypeVar("Chosen")
_KINDS: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("tuple", (list, tuple), "a list"),
    ("bool", (bool,), "true or false"),
    ("str", (str,), "a text"),
    ("float", (int, float), "a number"),
    ("int", (int,), "a whole number"),
)


def settings_of_method(method: str, kind: type[Chosen], table: Mapping[str, Any]) -> Chosen:
    """Return the settings of a method from a table; every key is known and of the right type, or it is an error.

    Args:
        method: Name of the method, for messages.
        kind: Its settings.
        table: Keys and values as TOML has them.
    """
    known = {name: str(hint) for name, hint in get_type_hints(kind).items()}
    chosen = {}
    for key, value in table.items():
        if key not in known:
            raise EstimateError(
                f"{method}: unknown setting '{key}'; allowed: {', '.join(known)}{nearest_match(key, known)}"
            )
        chosen[key] = _as_asked(f"{method} {key}", value, known[key])
    try:
        return kind(**chosen)
    except TypeError:
        raise EstimateError(f"{method}: a list has an entry of the wrong kind in {dict(table)}; see its docs") from None


def _as_asked(what: str, value: Any, annotation: str) -> Any:
    """Return a value as its setting wants it; one number stands for a list of one."""
    # What is inside a tuple is checked by the settings themselves.
    outside = re.sub(r"tuple\[[^\]]*\]", "tuple", annotation.replace("typing.Literal", "str"))
    allowed = [(kinds, words) for word, kinds, words in _KINDS if word in outside]
    fits = any(isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)) for kinds, _ in allowed)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits and is_number and any(list in kinds for kinds, _ in allowed):
        return (value,)
    if not fits:
        raise EstimateError(f"{what}: got {value!r}, allowed is {' or '.join(words for _, words in allowed)}")
    return tuple(value) if isinstance(value, list) else value


def with_options(table: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """Return an ``[identify]`` table with options of its method as given on the command line, ``name=value`` each.

    Args:
        table: The table; options go into that of its method and win over what is there.
        texts: The options; a value is a number, true, false, a list in brackets, or a text.

    Raises:
        EstimateError: If the method has no options, or one has no ``=``.
    """
    if not texts:
        return dict(table)
    method = table.get("method", "gls")
    if method not in TABLE_OF:
        raise EstimateError(
            f"--option {texts[0]}: method '{method}' has no options of its own; those that have: {', '.join(TABLE_OF)}"
        )
    chosen = dict(table.get(TABLE_OF[method], {}))
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise EstimateError(f"--option {text}: needed is name=value, such as integrator=euler")
        chosen[name.strip().replace("-", "_")] = _value(value.strip())
    return {**table, TABLE_OF[method]: chosen}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
