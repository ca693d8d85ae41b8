"""Nothing is done before it is needed, or twice: names of packages loaded when first used, and results found again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package (PEP 562).

    Args:
        package: Its ``__name__``.
        modules: Public names by the module of the package that defines them. A module must not have the name of
            something public: once imported, it would stand in its place.
    """
    home = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module '{package}' has no attribute '{name}'; public names: {', '.join(home)}")
        return getattr(import_module(f".{home[name]}", package), name)

    def names() -> list[str]:
        return [*vars(import_module(package)), *home]

    return load, names


def recent(count: int) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Return a decorator that keeps the last ``count`` results of a function, found again by equal arguments.

    Unlike those of :func:`functools.lru_cache`, arguments are compared and not hashed: a model with its robot has no
    hash, and comparing two takes a tenth of a millisecond, deriving and compiling one a thousand times that.
    """

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        known: deque[tuple[Any, _Result]] = deque(maxlen=count)

        @wraps(function)
        def found(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            for given, result in tuple(known):
                if given == (args, kwargs):
                    return result
            result = function(*args, **kwargs)
            known.append(((args, kwargs), result))
            return result

        return found

    return decorate
