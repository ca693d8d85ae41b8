"""Units a log may be written in, and what one of each is in SI."""

from __future__ import annotations

import math
import re

from ..errors import RecordingError, nearest_match

_ANGLE = {"rad": 1.0, "mrad": 1e-3, "deg": math.pi / 180, "rev": 2 * math.pi}
_LENGTH = {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "um": 1e-6}
_ANGULAR_SPEED = {"rad/s": 1.0, "mrad/s": 1e-3, "deg/s": math.pi / 180, "rev/s": 2 * math.pi, "rpm": math.pi / 30}
_LINEAR_SPEED = {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2}

QUANTITIES: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "angle": _ANGLE,
    "length": _LENGTH,
    "angular speed": _ANGULAR_SPEED,
    "linear speed": _LINEAR_SPEED,
    "current": {"A": 1.0, "mA": 1e-3},
    "moment": {"Nm": 1.0, "mNm": 1e-3, "Ncm": 1e-2, "kNm": 1e3},
    "force": {"N": 1.0, "mN": 1e-3, "kN": 1e3},
    "duty": {"1": 1.0, "percent": 1e-2, "permille": 1e-3},
    "temperature": {"degC": 1.0, "K": 1.0},
}
RELATIVE = {"percent": 1e-2, "permille": 1e-3}
"""Units that mean a part of a stated rating; for a duty cycle the rating is full scale."""
COUNTED = {"angle": "count", "angular speed": "count/s"}
"""Encoder counts: they need ``counts_per_turn``."""
KELVIN_AT_ZERO_CELSIUS = 273.15

_ALIASES = {
    "radian": "rad", "radians": "rad", "degree": "deg", "degrees": "deg", "°": "deg", "turn": "rev", "turns": "rev",
    "revolutions": "rev", "counts": "count", "ticks": "count", "increments": "count", "counts/s": "count/s",
    "rads": "rad/s", "radps": "rad/s", "°/s": "deg/s", "degps": "deg/s", "rev/min": "rpm", "1/min": "rpm",
    "n m": "Nm", "n*m": "Nm", "n·m": "Nm", "n.m": "Nm", "nm": "Nm", "newton": "N", "amp": "A", "amps": "A",
    "%": "percent", "‰": "permille", "fraction": "1", "sec": "s", "seconds": "s", "msec": "ms", "milliseconds": "ms",
    "usec": "us", "µs": "us", "microseconds": "us", "nanoseconds": "ns", "°c": "degC", "c": "degC", "celsius": "degC",
}  # fmt: skip
_BRACKETED = re.compile(r"^(.*?)\s*(?:\[([^\[\]]*)\]|\(([^()]*)\))\s*$", re.DOTALL)


def normal_unit(unit: str) -> str:
    """Return the unit as this page writes it: ``degrees`` becomes ``deg``."""
    word = unit.strip()
    return _ALIASES.get(word.lower(), word)


def allowed_units(quantity: str, rated: bool = False) -> tuple[str, ...]:
    """Return the units a quantity may be declared in; ``rated`` adds parts of a rating."""
    words = list(QUANTITIES[quantity])
    if quantity in COUNTED:
        words.append(COUNTED[quantity])
    return (*words, *(RELATIVE if rated else ()))


def si_scale(
    unit: str, quantity: str, where: str, rating: float | None = None, counts_per_turn: float | None = None
) -> float:
    """Return what one unit is in SI.

    Args:
        unit: The declared unit.
        quantity: A key of ``QUANTITIES``.
        where: What a message calls this channel.
        rating: What 100 percent is, in SI, for units relative to a rating.
        counts_per_turn: Encoder counts a turn, for counts.
    """
    word = normal_unit(unit)
    if word in QUANTITIES[quantity]:
        return QUANTITIES[quantity][word]
    if word in RELATIVE and quantity in ("current", "moment", "force"):
        if rating is None:
            raise RecordingError(f"{where}: unit '{word}' is a part of a rating; state it with rating = [...]")
        return RELATIVE[word] * rating
    if word == COUNTED.get(quantity):
        if not counts_per_turn:
            raise RecordingError(f"{where}: unit '{word}' needs the encoder's counts_per_turn")
        return 2 * math.pi / counts_per_turn
    words = allowed_units(quantity, quantity in ("current", "moment", "force"))
    raise RecordingError(
        f"{where}: unit '{unit}' is no unit of {quantity}; allowed: {', '.join(words)}{nearest_match(unit, words)}"
    )


def unit_in_name(name: str) -> tuple[str, str | None]:
    """Return a column's name without the unit it ends in (``q1 [deg]``, ``i (mA)``), and that unit or None."""
    match = _BRACKETED.match(name)
    if not match:
        return name, None
    word = normal_unit(match[2] if match[2] is not None else match[3])
    known = any(word in words for words in QUANTITIES.values()) or word in (*RELATIVE, *COUNTED.values())
    # '1' in brackets is a joint's number (q[1]), not the unit of a ratio.
    return (match[1], word) if known and word != "1" else (name, None)
