"""What the names of columns and files say: the quantity, its unit, the joint, measured or commanded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...robot import Robot
from ..columns import joint_in_name
from ..units import unit_in_name

_POSITION = "q pos position positions angle angles theta enc encoder"
_VELOCITY = "qd dq qdot dqdt qp vel velocity velocities speed speeds omega"
_ACCELERATION = "qdd ddq qddot qpp acc accel acceleration accelerations"
_TORQUE = "tau taus torque torques trq tq effort efforts moment moments"
_CURRENT = "current currents curr cur amp amps amperage i iq"
_WORDS: dict[str, str] = {
    word: quantity
    for quantity, words in (
        ("position", _POSITION),
        ("velocity", _VELOCITY),
        ("acceleration", _ACCELERATION),
        ("torque", _TORQUE),
        ("current", _CURRENT),
        ("pwm", "pwm duty dutycycle"),
        ("load", "load loads"),
        ("temperature", "temp temps temperature temperatures"),
        ("time", "time times t stamp stamps timestamp timestamps"),
    )
    for word in words.split()
}
_STRENGTH = ("time", "temperature", "pwm", "acceleration", "velocity", "current", "torque", "load", "position")
"""Where a name has words of several quantities, the first of these counts: motor_position_speed is a speed."""
COMMANDED = frozenset(
    [
        "cmd",
        "command",
        "commanded",
        "commands",
        "target",
        "targets",
        "des",
        "desired",
        "ref",
        "reference",
        "references",
        "set",
        "setpoint",
        "goal",
        "d",
    ]
)
COMPUTED = frozenset(
    [
        "ext",
        "external",
        "hat",
        "est",
        "estimate",
        "estimated",
        "gravity",
        "coriolis",
        "friction",
        "model",
        "predicted",
        "error",
    ]
)
MOTOR = frozenset(["motor", "motors", "mot", "drive", "drives", "rotor"])
JOINT = frozenset(["joint", "joints", "link", "jnt", "axis", "j", "sensor", "sensors"])
SECONDS, NANOSECONDS = frozenset(("secs", "sec", "seconds")), frozenset(("nsecs", "nsec", "nanosec", "nanoseconds"))
COUNTERS = frozenset(
    ["index", "idx", "seq", "frame", "sample", "samples", "step", "tick", "ticks", "counter", "count", "row"]
)
_UNIT_WORDS = {
    "rad": "rad", "rads": "rad/s", "radps": "rad/s", "deg": "deg", "degree": "deg", "degrees": "deg",
    "degps": "deg/s", "degs": "deg/s", "mrad": "mrad", "rev": "rev", "rpm": "rpm", "mm": "mm", "nm": "Nm", "mnm": "mNm",
    "ncm": "Ncm", "ma": "mA", "amp": "A", "amps": "A", "percent": "percent", "pct": "percent", "permille": "permille",
    "ms": "ms", "us": "us", "ns": "ns", "msec": "ms", "usec": "us", "nsec": "ns", "counts": "count", "mm/s": "mm/s",
}  # fmt: skip
_LAST_NUMBER = re.compile(r"(\d{1,9})(?!.*\d)", re.DOTALL)
_PIECES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True)
class NamedRole:
    """What words say.

    Attributes:
        quantity: ``position``, ``velocity``, ``acceleration``, ``torque``, ``current``, ``pwm``, ``load``,
            ``temperature`` or ``time``.
        commanded: Whether it is a reference, not a measurement.
        computed: Whether it is an estimate of something else, such as an external torque.
        place: ``motor``, ``joint`` or empty.
        word: The word that says the quantity.
    """

    quantity: str
    commanded: bool
    computed: bool
    place: str
    word: str

    @property
    def text(self) -> str:
        """The role in words, equal for equal roles."""
        return ("commanded " if self.commanded else "computed " if self.computed else "") + self.quantity


@dataclass(frozen=True)
class ColumnName:
    """A column's name taken apart.

    Attributes:
        stem: The name without joint, number and unit: columns of one group have the same.
        joint: The joint it names, None if it names none.
        number: The last number in it, None if there is none.
        unit: The unit at its end, None if there is none.
    """

    stem: str
    joint: str | None
    number: int | None
    unit: str | None


def words_in(name: str) -> tuple[str, ...]:
    """Return the words of a name in small letters: ``actualQ_1`` has ``actual``, ``q``."""
    return tuple(piece.lower() for piece in _PIECES.findall(name) if not piece.isdigit())


def role_in_words(words: Sequence[str]) -> NamedRole | None:
    """Return what words say of a quantity; None if they say nothing."""
    found = {_WORDS[word]: word for word in reversed(words) if word in _WORDS}
    if not found:
        return None
    quantity = next(one for one in _STRENGTH if one in found)
    places = ("motor" if MOTOR & set(words) else "", "joint" if JOINT & set(words) else "")
    place = next((one for one in places if one), "")
    return NamedRole(quantity, bool(COMMANDED & set(words)), bool(COMPUTED & set(words)), place, found[quantity])


def taken_apart(name: str, robot: Robot) -> ColumnName:
    """Return the parts of a column's name."""
    joint = joint_in_name(robot, name)
    bare, unit = (name, None) if name.endswith(f"[{joint}]") else unit_in_name(name)
    unit = unit or next((_UNIT_WORDS[word] for word in words_in(bare)[::-1][:1] if word in _UNIT_WORDS), None)
    if joint is not None:
        start = bare.lower().rfind(joint.lower())
        return ColumnName(f"{bare[:start]}#{bare[start + len(joint) :]}", joint, None, unit)
    number = _LAST_NUMBER.search(bare)
    if number is None:
        return ColumnName(bare, None, None, unit)
    return ColumnName(f"{bare[: number.start()]}#{bare[number.end() :]}", None, int(number[1]), unit)


def taken_unit(name: str) -> str | None:
    """Return the unit that the name of a single column ends in, such as that of stamps: ``t [ms]``, ``time_us``."""
    bare, unit = unit_in_name(name)
    last = words_in(bare)[-1:]
    return unit or ("s" if last == ("s",) else _UNIT_WORDS.get("".join(last)))
