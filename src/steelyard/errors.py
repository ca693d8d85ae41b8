"""Exceptions of the package; every message says what, got, allowed and what to do next."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from itertools import islice

LONGEST_MESSAGE = 500
"""Letters of a message at most: a damaged file can hold a name of megabytes."""
LONGEST_WORD = 120
"""Letters without a blank that a message too long keeps together; a path of a usual length is shorter."""
_MOST_COMPARED = 200
"""Words and letters that a nearest match is looked for in; the search is quadratic in both."""
LONGEST_VALUE = 120
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 12


class SteelyardError(Exception):
    """An error that the user can correct; the message is one printable line of bounded length that says how.

    Example:
        >>> try:
        ...     steelyard.load_robot("scara_3r")
        ... except steelyard.SteelyardError as error:
        ...     print(str(error).split(":")[0])
        unknown robot 'scara_3r'
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(str(message)))


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
    """Rows that do not determine the requested parameters."""


class DesignError(SteelyardError):
    """Limits, criteria or motions from which no experiment can be designed."""


class CalibrationError(SteelyardError):
    """Measurements, set-ups or targets from which an arm cannot be calibrated or corrected."""


class ExportError(SteelyardError):
    """An identified arm that a format cannot hold, or that must not be written."""


class WorkerError(SteelyardError):
    """Worker processes or a cluster that cannot be used, or a task that they could not finish."""


class TableError(RecordingError, CalibrationError):
    """A file that cannot be read as a table, be it a log or measurements: both readers raise it."""


class ConfigError(SteelyardError):
    """A configuration file with an unknown key or a value of the wrong kind."""


class FileError(SteelyardError):
    """A file that is not there or cannot be written."""


def nearest_match(got: str, allowed: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest allowed word, or an empty string."""
    if len(got) > _MOST_COMPARED:
        return ""
    words = [word for word in islice(allowed, _MOST_COMPARED) if len(word) <= _MOST_COMPARED]
    close = difflib.get_close_matches(got, words, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


def require_type(
    value: object, kinds: type | tuple[type, ...], what: str, allowed: str, kind: type[SteelyardError]
) -> None:
    """Refuse a value of a wrong type in one line.

    Args:
        value: What was given.
        kinds: Its allowed types.
        what: What the value is, such as ``settings``.
        allowed: The allowed types, for the message.
        kind: Error to raise.
    """
    if not isinstance(value, kinds):
        raise kind(one_line(f"{what}: got {short_value(value)} of type {type(value).__name__}; allowed: {allowed}"))


def short_value(value: object) -> str:
    """Return a value as messages show it, shortened."""
    if isinstance(value, int) and value.bit_length() > 64:
        return "a very large whole number"
    text = _SHORT.repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def one_line(text: str) -> str:
    """Return the text as one printable line of bounded length.

    Of a text too long, long words are shortened first, then its middle is cut: the beginning names the place, the end
    says what to do.
    """
    if len(text) > 100 * LONGEST_MESSAGE:
        text = _without_middle(text, 100 * LONGEST_MESSAGE)
    line = " ".join("".join(_visible(letter) for letter in text).split())
    if len(line) > LONGEST_MESSAGE:
        line = " ".join(_without_middle(word, LONGEST_WORD) for word in line.split())
    return _without_middle(line, LONGEST_MESSAGE)


def _visible(letter: str) -> str:
    r"""Return a letter as it is printed: one that a terminal would obey as ``\x1b``, line breaks as blanks."""
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else letter.encode("unicode_escape").decode("ascii")


def _without_middle(text: str, longest: int) -> str:
    half = longest // 2 - 3
    return text if len(text) <= longest else f"{text[:half]} ... {text[-half:]}"
