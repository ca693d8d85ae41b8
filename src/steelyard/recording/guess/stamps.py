"""The time of a log: the column of the stamps, their unit by the typical step, or the rate by recorded velocities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .groups import SingleColumn
from .names import COUNTERS, NANOSECONDS, SECONDS, role_in_words, taken_unit, words_in

STEPS = (5e-5, 0.2)
"""Typical steps of logs [s]."""
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
UNIX = (9.4e8, 4.2e9)
"""Seconds since 1970 from the year 2000 to 2100."""
LEAST_RISING = 0.98
"""Part of the steps of stamps that must be above zero: few are repeated or go back."""
MOST_UNEVEN = 1.0
"""Deviation of the steps over their median, at most, of a column without a name that is taken for stamps."""
ROUND_RATES = (10, 20, 25, 40, 50, 100, 125, 200, 250, 400, 500, 800, 1000, 1250, 2000, 2500, 4000, 5000, 8000, 10000)
NEAR = 0.01


@dataclass(frozen=True, eq=False)
class TimeGuess:
    """Where the time comes from.

    Attributes:
        part: File of the stamps; None if there are none.
        column: Their column.
        unit: Their unit.
        seconds: Stamps from the first on (N,) [s]; None if there are none.
        rate: Samples a second, where there are no stamps but something says it.
        named: Whether a name says that they are stamps.
        confidence: ``sure``, ``likely`` or ``unsure``.
        reason: Why.
    """

    part: int | None
    column: int | None
    unit: str | None
    seconds: np.ndarray | None
    rate: float | None
    named: bool
    confidence: str
    reason: str


NO_TIME = TimeGuess(None, None, None, None, None, False, "unsure", "no column is time, and nothing says the rate")


def guess_time(columns: Sequence[SingleColumn]) -> TimeGuess:
    """Return the stamps among columns: by name, else the one column that rises evenly."""
    named = [one for one in columns if _is_named(one) and _rises(one.values)]
    for one in named:
        return _stamps(one, True)
    pair = _seconds_and_nanoseconds(columns)
    if pair is not None:
        step = float(np.median(np.diff(pair)))
        rate, is_round = nearest_rate(1 / step) if step > 0 else (0.0, False)
        if step > 0:
            text = (
                "stamps are in two columns, seconds and nanoseconds, of which a set-up can name one; this is their rate"
            )
            return TimeGuess(None, None, None, None, rate, True, "likely" if is_round else "unsure", text)
    rising = [one for one in columns if _rises(one.values) and not COUNTERS & set(words_in(one.name))]
    even = [one for one in rising if _unevenness(one.values) < MOST_UNEVEN]
    found = min(even, key=lambda one: _unevenness(one.values), default=None)
    if found is None:
        return NO_TIME
    guess = _stamps(found, False)
    return NO_TIME if guess.unit is None else guess


def nearest_rate(rate: float) -> tuple[float, bool]:
    """Return a rate rounded to one that drives have, and whether it is near one."""
    near = min(ROUND_RATES, key=lambda one: abs(np.log(one / rate)))
    if abs(near / rate - 1) < NEAR:
        return float(near), True
    return float(f"{rate:.4g}"), False


def _is_named(column: SingleColumn) -> bool:
    words = words_in(column.name)
    role = role_in_words(words)
    return role is not None and role.quantity == "time" and not NANOSECONDS & set(words)


def _steps(values: np.ndarray) -> np.ndarray:
    return np.diff(values[np.isfinite(values)])


def _rises(values: np.ndarray) -> bool:
    steps = _steps(values)
    return steps.size > 2 and float(np.mean(steps > 0)) > LEAST_RISING


def _unevenness(values: np.ndarray) -> float:
    steps = _steps(values)
    middle = float(np.median(steps))
    return float(np.quantile(np.abs(steps - middle), 0.95)) / middle if middle > 0 else np.inf


def _stamps(column: SingleColumn, named: bool) -> TimeGuess:
    values = column.values
    finite = values[np.isfinite(values)]
    step, first = float(np.median(np.diff(finite))), float(finite[0])
    told = taken_unit(column.name)
    plausible = [unit for unit, scale in UNITS.items() if STEPS[0] <= step * scale <= STEPS[1]]
    dated = [unit for unit in plausible if UNIX[0] <= first * UNITS[unit] <= UNIX[1]]
    unit, confidence, reason = _unit(told, plausible, dated, step, named, column.name)
    if unit is None:
        return NO_TIME if not named else TimeGuess(
            column.part, column.column, "s", values - first, None, True, "unsure",
            f"named as time, but steps of {step:.4g} are no time step in any unit",
        )  # fmt: skip
    seconds = (values - first) * UNITS[unit]
    return TimeGuess(column.part, column.column, unit, seconds, None, named, confidence, reason)


def _unit(
    told: str | None, plausible: list[str], dated: list[str], step: float, named: bool, name: str
) -> tuple[str | None, str, str]:
    """Return the unit of stamps, how sure it is, and why."""
    size = f"steps of {step:.4g}"
    if told in UNITS:
        if told in plausible:
            return told, "sure", f"named as time in {told}, and {size} {told} are {1 / (step * UNITS[told]):.4g} Hz"
        return told, "unsure", f"named as time in {told}, but {size} {told} are an odd rate"
    if not plausible:
        return None, "unsure", ""
    unit = (dated or plausible)[0]
    rate = f"{1 / (step * UNITS[unit]):.4g} Hz"
    if dated:
        return unit, "sure", f"stamps since 1970 in {unit}, {rate}"
    if len(plausible) > 1:
        return unit, "unsure", f"{size} may be {' or '.join(plausible)}; {unit} is {rate}"
    if not named and step == 1.0:
        return unit, "unsure", f"rises by 1: a count of samples, or {unit} at {rate}"
    if named:
        return unit, "sure", f"named as time, and {size} are {rate} in {unit} only"
    return unit, "likely", f"the column that rises evenly; {size} are {rate} in {unit}"


def _seconds_and_nanoseconds(columns: Sequence[SingleColumn]) -> np.ndarray | None:
    """Return the stamps [s] of a pair of columns, such as ``secs`` and ``nsecs``."""
    whole = next((one for one in columns if SECONDS & set(words_in(one.name))), None)
    parts = next((one for one in columns if NANOSECONDS & set(words_in(one.name))), None)
    if whole is None or parts is None:
        return None
    stamps = (whole.values - whole.values[0]) + 1e-9 * parts.values
    return stamps if _rises(stamps) else None
