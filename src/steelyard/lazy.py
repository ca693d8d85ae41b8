"""Public names of packages that are loaded when first used, so that a command starts without what it does not need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


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
