"""Starts that are off by a stated part of every parameter, drawn by seed: how far may a method be sent astray?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..identify import Settings

DEVIATIONS = {"rls": 1.0, "ekf": 1.0, "iv": 1e3, "didim": 1e3}
"""Methods that begin with values of the parameters, which they take from the prior, and the prior's standard deviation
as a part of each: recursive methods begin with it too, for the others it must not hold anything."""

_STREAM = 1_000
"""Number of the random stream of starts, beyond those of an experiment's noises."""


def has_start(method: str) -> bool:
    """Return whether a method begins with values that the study can choose."""
    return method in DEVIATIONS


def with_start(
    settings: Settings, start: float | None, seed: int, names: Sequence[str], true: np.ndarray, units: Sequence[str]
) -> Settings:
    """Return settings whose method starts at ``chi (1 + start z)``, z normal.

    Recursive methods are told a standard deviation of 100 %, that of somebody who knows the order of magnitude: the
    start is far from being information.

    Args:
        settings: Settings of one method.
        start: How far off, as a part of each parameter; None leaves the settings alone.
        seed: Of the run.
        names: Columns, c of them.
        true: Their true values chi (c,).
        units: Their units.
    """
    if start is None:
        return settings
    drawn = np.random.default_rng([seed, _STREAM]).standard_normal(len(true))
    sizes = DEVIATIONS[settings.method] * _sizes(true, units)
    prior = {
        name: (float(value), float(size))
        for name, value, size in zip(names, true * (1 + start * drawn), sizes, strict=True)
    }
    chosen = replace(settings, prior=MappingProxyType(prior))
    return replace(chosen, rls=replace(chosen.rls, start="prior")) if settings.method == "rls" else chosen


def _sizes(true: np.ndarray, units: Sequence[str]) -> np.ndarray:
    """Return the order of magnitude of each parameter (c,); of one near zero that of its unit's middle one."""
    size = np.abs(true)
    for unit in set(units):
        own = np.array([word == unit for word in units])
        middle = float(np.median(size[own]))
        size[own] = np.maximum(size[own], middle if middle > 0 else max(float(size[own].max()), 1e-3))
    return size
