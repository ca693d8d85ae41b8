"""What the court looks at: which methods, at which noise, from which starts, how often."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import EstimateError, SimulationError, nearest_match
from ..identify import METHODS
from .starting import has_start

LARGEST_SEED = 2**31
"""Seeds lie below this, so that they are the same number in every file."""


@dataclass(frozen=True)
class Case:
    """A row of the court's table.

    Attributes:
        method: Name of the estimator.
        noise_level: Factor of all noise deviations.
        start: How far off the start is, as a part of each parameter; None: the method's own start.
    """

    method: str
    noise_level: float
    start: float | None = None

    @property
    def name(self) -> str:
        """The case in words that can be a file's name."""
        start = "" if self.start is None else f"_start_{float(self.start)!r}"
        return f"{self.method}_noise_{float(self.noise_level)!r}{start}"


@dataclass(frozen=True)
class Study:
    """How much is tried.

    Attributes:
        methods: Names of estimators, of ``identify.METHODS``.
        seeds: Number of seeds: simulated experiments of each noise level.
        first_seed: The first of them; the others follow it.
        noise_levels: Factors of all noise deviations of the experiment.
        starts: How far off the starts of methods that have one are, as a part of each parameter, drawn by seed;
            without any, every method starts as it would by itself.
    """

    methods: tuple[str, ...] = ("wls", "gls")
    seeds: int = 100
    first_seed: int = 0
    noise_levels: tuple[float, ...] = (1.0,)
    starts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for method in self.methods:
            if method not in METHODS:
                raise EstimateError(
                    f"method: got '{method}', allowed are {', '.join(METHODS)}{nearest_match(method, METHODS)}"
                )
        if self.seeds < 2:
            raise SimulationError(f"seeds: got {self.seeds}, needed are at least 2: one run has no spread; give 100")
        if not 0 <= self.first_seed <= LARGEST_SEED - self.seeds:
            raise SimulationError(f"first_seed: got {self.first_seed}, allowed is 0 to {LARGEST_SEED - self.seeds}")
        _check_numbers("noise_levels", self.noise_levels, 0.0, "above 0, such as 1", lowest_allowed=False)
        _check_numbers("starts", self.starts, 0.0, "of 0 and above, such as 0.2", lowest_allowed=True)
        for what in ("methods", "noise_levels", "starts"):
            _check_list(what, getattr(self, what), needed=what != "starts")

    @property
    def all_seeds(self) -> range:
        """The seeds."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def cases(self) -> tuple[Case, ...]:
        """Every method at every noise level, and from every start if it has one."""
        return tuple(
            Case(method, level, start)
            for method in self.methods
            for level in self.noise_levels
            for start in (self.starts if has_start(method) and self.starts else (None,))
        )


def _check_numbers(what: str, got: Sequence[Any], lowest: float, allowed: str, *, lowest_allowed: bool) -> None:
    for value in got:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or value < lowest or (value == lowest and not lowest_allowed):
            raise SimulationError(f"{what}: got {value!r}, allowed are numbers {allowed}")


def _check_list(what: str, got: Sequence[Any], *, needed: bool) -> None:
    if needed and not got:
        raise SimulationError(f"{what}: got none, needed is at least one")
    twice = [value for k, value in enumerate(got) if value in got[:k]]
    if twice:
        raise SimulationError(f"{what}: {twice[0]!r} is given twice; give each once")
