"""The one error tree of the product: every message says what, got, allowed and what to do next."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable

# A message longer than this is cut in its middle: a hostile file can hold a name of megabytes.
LONGEST_MESSAGE = 900
LONGEST_VALUE = 60


class SteelyardError(Exception):
    """Something the user can mend; the message is one line that says how."""


class RobotError(SteelyardError):
    """A robot description that cannot be used."""


class ModelError(SteelyardError):
    """A choice of effects, torques or payload that the robot cannot carry."""


class KernelError(SteelyardError):
    """A symbolic function that cannot be compiled, or arrays that do not fit it."""


class MotionError(SteelyardError):
    """A motion that cannot be built or evaluated."""


class SignalError(SteelyardError):
    """Samples or filter settings that make no sense together."""


class RecordingError(SteelyardError):
    """A log that cannot be read as declared."""


class SimulationError(SteelyardError):
    """A simulated experiment that cannot be run."""


class ObservationError(SteelyardError):
    """Recordings, factors or settings from which no rows of equations can be made."""


class EstimateError(SteelyardError):
    """Rows that cannot give the parameters asked for."""


class DesignError(SteelyardError):
    """Limits, criteria or motions from which no experiment can be designed."""


class CalibrationError(SteelyardError):
    """Measurements, set-ups or targets from which an arm cannot be calibrated or corrected."""


class ConfigError(SteelyardError):
    """A configuration file with an unknown key or a value of the wrong kind."""


class FileError(SteelyardError):
    """A file that is not there or cannot be written."""


def nearest_match(got: str, allowed: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest allowed word, or an empty string."""
    close = difflib.get_close_matches(got, list(allowed), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


def require_type(
    value: object, kinds: type | tuple[type, ...], what: str, allowed: str, kind: type[SteelyardError]
) -> None:
    """Refuse a value of a wrong type in one line.

    Args:
        value: What was given.
        kinds: Its allowed types.
        what: What the value is, such as ``settings``.
        allowed: The allowed types in words.
        kind: Error to raise.
    """
    if not isinstance(value, kinds):
        raise kind(one_line(f"{what}: got {_short(value)} of type {type(value).__name__}; allowed: {allowed}"))


def _short(value: object) -> str:
    text = reprlib.repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def one_line(text: str) -> str:
    """Return the text as one printable line of bounded length."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    if len(line) <= LONGEST_MESSAGE:
        return line
    half = LONGEST_MESSAGE // 2
    return f"{line[:half]} ... {line[-half:]}"
