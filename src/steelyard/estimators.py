"""The registry of estimators: what ``--method`` allows, and where each of them is found.

A new estimator is a module of :mod:`steelyard.estimate` and an entry here. Its settings, help text and documentation
page are found from the entry; its module is imported when a fit uses it, so that this list costs nothing to load.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, final

_ESTIMATE = "steelyard.estimate"

Data = Literal["factors", "whitened", "rows"]
"""What an estimator works on: triangular factors of the rows, factors of whitened rows, or rows and samples in time."""


@final
@dataclass(frozen=True)
class Estimator:
    """An estimator as identification, the Monte Carlo study, the command line and the documentation know it.

    Attributes:
        name: Its name in ``--method``.
        summary: A few words for ``--help``.
        document: Its page, relative to ``docs``.
        module: Module below ``steelyard.estimate`` that defines it.
        function: Its function there, by ``data``. ``factors``: called with observations and columns, returns an
            estimate. ``whitened``: called with row sources, weighted least squares and ``threads``, returns what
            generalised least squares does. Both get the settings of the method, if it has any, as third argument.
            ``rows``: called with evidence, settings of the method, prior and progress, returns what it estimated.
        data: What it works on.
        settings: Class of its settings in that module; empty if it has none.
        table: Name of the table of its settings, ``[identify.TABLE]``; empty if it has none.
        many: Function that takes many experiments of one arm together, with the same results; empty if there is none.
        starts_at_prior: Whether it begins at the prior, which is then not to be counted a second time.
        start_deviation: Standard deviation of a start that a study draws, as a part of each parameter: small where the
            start counts as information, huge where it must not; None if the estimator has no start to choose.
        lacks: Properties of effects that it cannot hold, by their names in :class:`steelyard.effects.Effect`; such
            effects are not chosen for it.
    """

    name: str
    summary: str
    document: str
    module: str
    function: str
    data: Data = "factors"
    settings: str = ""
    table: str = ""
    many: str = ""
    starts_at_prior: bool = False
    start_deviation: float | None = None
    lacks: tuple[str, ...] = ()

    def load(self) -> Callable[..., Any]:
        """Return its function."""
        return self._loaded(self.function)

    def load_many(self) -> Callable[..., Any]:
        """Return the function that takes many experiments together."""
        return self._loaded(self.many)

    def load_settings(self) -> type[Any]:
        """Return the class of its settings."""
        return self._loaded(self.settings)

    def _loaded(self, name: str) -> Any:
        return getattr(import_module(f"{_ESTIMATE}.{self.module}"), name)


_LEAST_SQUARES, _INSTRUMENTS = "methods/estimation.md", "methods/instruments.md"

ESTIMATORS: dict[str, Estimator] = {
    one.name: one
    for one in (
        Estimator("gls", "correlated noise, the default", _LEAST_SQUARES, "gls", "generalised", "whitened"),
        Estimator("wls", "a variance for each joint", _LEAST_SQUARES, "least_squares", "weighted"),
        Estimator("iterated", "variances estimated again", _LEAST_SQUARES, "least_squares", "iterated"),
        Estimator("ols", "unweighted", _LEAST_SQUARES, "least_squares", "ordinary"),
        Estimator(
            "rls", "recursive", "methods/recursive.md", "recursive", "recursive_least_squares", "rows",
            "RecursiveSettings", "rls", starts_at_prior=True, start_deviation=1.0,
        ),
        Estimator(
            "ekf", "Kalman filter", "methods/kalman.md", "kalman", "kalman_filter", "rows",
            "KalmanSettings", "ekf", many="kalman_filters", starts_at_prior=True, start_deviation=1.0,
            lacks=("has_memory", "needs_inertias"),
        ),
        Estimator(
            "ml", "noise on positions too", "methods/likelihood.md", "likelihood", "maximum_likelihood", "rows",
            "LikelihoodSettings", "ml", lacks=("has_memory",),
        ),
        Estimator(
            "iv", "instrumental variables", _INSTRUMENTS, "instruments", "instrumental_variables", "rows",
            "InstrumentSettings", "iv", start_deviation=1e3,
        ),
        Estimator(
            "didim", "direct and inverse identification", _INSTRUMENTS, "instruments", "direct_and_inverse", "rows",
            "InstrumentSettings", "iv", start_deviation=1e3,
        ),
    )
}  # fmt: skip
"""By name, in the order of the documentation."""


def methods_on_factors() -> tuple[str, ...]:
    """Return estimators that need no rows in time: other covariances and earlier runs are for them."""
    return tuple(name for name, one in ESTIMATORS.items() if one.data != "rows")


def methods_with_start() -> tuple[str, ...]:
    """Return estimators whose start can be chosen."""
    return tuple(name for name, one in ESTIMATORS.items() if one.start_deviation is not None)


def settings_tables() -> dict[str, Estimator]:
    """Return the tables of settings, each with the first estimator that has it."""
    found: dict[str, Estimator] = {}
    for one in ESTIMATORS.values():
        if one.table:
            found.setdefault(one.table, one)
    return found
