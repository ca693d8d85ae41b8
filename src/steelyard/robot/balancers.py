"""Balancers: springs, gas springs and cylinders beside a joint, whose torque is known as a function of its position.

What is given is the torque that the drive has to provide for the balancer: it is subtracted from the measured one. A
balancer that pushes a joint forward relieves the drive, its torque is negative. As ``[[balancer]]`` of a robot table::

    [[balancer]]                       # a formula in q [rad or m]: + - * / **, sin cos sqrt abs exp log, pi
    joint = "joint_2"
    formula = "-1800 * sin(q + 0.2)"
    scale = 1.0                        # default; what the torque is multiplied by
    estimate = false                   # default; true: the scale is an unknown of the model, Sb2

    [[balancer]]                       # a table, interpolated by a cubic spline
    joint = "joint_2"
    position_deg = [-130, -90, -45, 0, 10]
    torque = [900, 1300, 1000, 100, -150]
    periodic = false                   # default; true: the table repeats after a turn

    [[balancer]]                       # between two points at these distances from the axis [m]
    joint = "joint_2"
    on_parent = 0.9                    # from the axis to the point on the link before
    on_link = 0.25                     # from the axis to the point on the moving link
    angle_deg = 90                     # from the first point to the second at q = 0, in the direction of q
    force = "2500 + 8000 * (length - 0.8)"   # pull [N] by the distance of the points; a cylinder that pushes: below 0

Instead of ``force``: ``stiffness`` [N/m], ``free_length`` [m] and ``preload`` [N], a coil spring. Formulas are parsed,
not run: a file from elsewhere can compute nothing but numbers.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from ..configuration import Section, flag, number, numbers, text
from ..errors import RobotError
from .parts import Joint
from .placement import radians_from_degrees

LONGEST_FORMULA = 500
DEEPEST_FORMULA = 40
LARGEST_POWER = 12
MOST_POINTS = 200
"""Points of a table: every one costs a few operations at every sample."""
LARGEST_TORQUE = 1e9
BEYOND = 0.01
"""Part of a table's width by which positions may be beyond it: noise, and encoders that end a little later."""

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_UNARY: dict[type, Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_FUNCTIONS = {"sin": "sin", "cos": "cos", "sqrt": "sqrt", "abs": "fabs", "exp": "exp", "log": "log"}


@dataclass(frozen=True)
class Formula:
    """An expression of one variable, for numbers and for symbols.

    Attributes:
        text: As it was written.
        variable: The name of its variable.

    Example:
        >>> from steelyard.robot.balancers import Formula
        >>> float(Formula("2 * sin(q) + 1", "q").value(0.0, np))
        1.0
    """

    text: str
    variable: str

    def value(self, at: Any, library: Any) -> Any:
        """Return its value; ``library`` is numpy, or casadi for symbols."""
        return _value(_parsed(self.text), at, self.variable, library, 0)


@lru_cache(maxsize=64)
def _parsed(formula: str) -> ast.expr:
    if len(formula) > LONGEST_FORMULA:
        raise ValueError(f"it has {len(formula)} letters, allowed are {LONGEST_FORMULA}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python's grammar: whatever is unusual is refused here
            return ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("it is no formula such as 1200 * sin(q - 0.3)") from None


def _value(node: ast.expr, at: Any, variable: str, library: Any, depth: int) -> Any:
    """Return the value of a part of a formula; anything but numbers, the variable and arithmetic is refused."""
    if depth > DEEPEST_FORMULA:
        raise ValueError(f"it is nested deeper than {DEEPEST_FORMULA}")

    def of(part: ast.expr) -> Any:
        return _value(part, at, variable, library, depth + 1)

    match node:
        case ast.Constant(value=int() | float() as constant) if not isinstance(constant, bool):
            return _number(constant)
        case ast.Name(id=name) if name in (variable, "pi"):
            return math.pi if name == "pi" else at
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(of(left), _exponent(right, library, depth), library)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](of(left), of(right))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](of(operand))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            return getattr(library, _FUNCTIONS[name])(of(argument))
    allowed = f"numbers, {variable}, pi, + - * / **, {', '.join(_FUNCTIONS)}"
    raise ValueError(f"{_described(node)} is not allowed in it; allowed are {allowed}")


def _described(node: ast.expr) -> str:
    name = node.func if isinstance(node, ast.Call) else node
    return f"'{name.id[:40]}'" if isinstance(name, ast.Name) else f"a {type(node).__name__.lower()}"


def _number(constant: float) -> float:
    try:
        value = float(constant)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError("a number in it is too large")
    return value


def _exponent(node: ast.expr, library: Any, depth: int) -> float:
    value = _value(node, 0.0, "", library, depth + 1)  # no variable: an exponent is a number
    if not abs(value) <= LARGEST_POWER:
        raise ValueError(f"an exponent in it is {value:g}, allowed is up to {LARGEST_POWER}")
    return float(value)


def _power(base: Any, exponent: float, library: Any) -> Any:
    """Return a power by products, or by the logarithm: operations that compilers and interval bounds have too."""
    if not exponent.is_integer():
        return library.exp(exponent * library.log(base))
    product: Any = 1.0
    for _ in range(int(abs(exponent))):
        product = product * base
    return product if exponent >= 0 else 1.0 / product


@dataclass(frozen=True)
class TorqueTable:
    """Torques at positions, a cubic spline between them; beyond the ends the torque there is held.

    Attributes:
        positions: Rising [rad or m].
        torques: [N m or N].
        periodic: Whether it repeats after a turn.
    """

    positions: tuple[float, ...]
    torques: tuple[float, ...]
    periodic: bool = False

    def value(self, at: Any, library: Any) -> Any:
        """Return its value: a sum over the intervals, each a cubic of the part of the way that lies in it."""
        knots, coefficients = spline_of(self)
        if self.periodic:
            at = at - 2 * math.pi * library.floor((at - knots[0]) / (2 * math.pi))
        total: Any = self.torques[0]
        for (start, end), (c3, c2, c1) in zip(pairwise(knots), coefficients, strict=True):
            # From 0 to the length of the interval; by magnitudes, whose slopes have interval bounds (fmin's have not).
            s = 0.5 * (library.fabs(at - start) - library.fabs(at - end) + (end - start))
            total = total + s * (c1 + s * (c2 + s * c3))
        return total


@lru_cache(maxsize=64)
def spline_of(table: TorqueTable) -> tuple[tuple[float, ...], list[list[float]]]:
    """Return knots (k + 1) and, for each interval, factors of the cube, square and first power of the way in it."""
    from scipy.interpolate import CubicSpline  # imported when used: few arms have a table

    positions, torques = table.positions, table.torques
    if table.periodic and positions[-1] < positions[0] + 2 * math.pi - 1e-9:
        positions, torques = (*positions, positions[0] + 2 * math.pi), (*torques, torques[0])
    elif table.periodic:
        torques = (*torques[:-1], torques[0])
    spline = CubicSpline(positions, torques, bc_type="periodic" if table.periodic else "not-a-knot")
    return positions, spline.c[:3].T.tolist()


@dataclass(frozen=True)
class Strut:
    """A spring or cylinder between a point on the link before a joint and one on the moving link.

    Attributes:
        on_parent: Distance of the first point from the axis [m].
        on_link: Distance of the second point from the axis [m].
        angle: From the first point to the second about the axis at q = 0 [rad].
        force: Pull by the variable ``length``, the distance of the points [N].
    """

    on_parent: float
    on_link: float
    angle: float
    force: Formula

    def value(self, at: Any, library: Any) -> Any:
        """Return the torque that the drive has to provide: pull times lever, ``d(length)/dq``."""
        a, b, angle = self.on_parent, self.on_link, at + self.angle
        length = library.sqrt(a**2 + b**2 - 2 * a * b * library.cos(angle))
        return self.force.value(length, library) * a * b * library.sin(angle) / length


@dataclass(frozen=True)
class Balancer:
    """A known torque of one joint. Its scale is the value ``Sb`` of the joint, 1 unless the file says otherwise.

    Attributes:
        joint: Name of the joint.
        law: Torque that the drive has to provide for it, by the position.
        estimate: Whether models have its scale as an unknown by default.

    Example:
        >>> from steelyard.robot.balancers import Balancer, Formula
        >>> float(Balancer("joint_2", Formula("100 * cos(q)", "q")).torque(0.0, np))
        100.0
    """

    joint: str
    law: Formula | TorqueTable | Strut
    estimate: bool = False

    def torque(self, q: Any, library: Any) -> Any:
        """Return the torque at a position [N m or N]; ``library`` is numpy, or casadi for symbols."""
        return self.law.value(q, library)

    @property
    def range(self) -> tuple[float, float]:
        """Positions between which it is known."""
        if not isinstance(self.law, TorqueTable) or self.law.periodic:
            return -math.inf, math.inf
        return self.law.positions[0], self.law.positions[-1]

    def is_beyond(self, q: np.ndarray) -> np.ndarray:
        """Return which positions are beyond a table, by more than noise."""
        least, most = self.range
        room = BEYOND * (most - least) if math.isfinite(most) else 0.0
        return (q < least - room) | (q > most + room)


_TABLE_KEYS = ("position", "position_deg", "torque", "periodic")
_STRUT_KEYS = ("on_parent", "on_link", "angle", "angle_deg", "force", "stiffness", "free_length", "preload")
_KEYS = ("joint", "scale", "estimate", "formula", *_TABLE_KEYS, *_STRUT_KEYS)


def read_balancers(rows: Sequence[Section], joints: Sequence[Joint], notes: list[str]) -> dict[Balancer, float]:
    """Return the balancers of a robot table with their scales.

    Args:
        rows: Its ``[[balancer]]`` tables.
        joints: Its joints; those that follow others cannot have one.
        notes: Receives where a table ends before the joint does.
    """
    found: dict[Balancer, float] = {}
    by_name = {joint.name: joint for joint in joints if joint.moves and joint.mimic is None}
    for row in rows:
        row.check_keys(_KEYS)
        name = row.get("joint", text)
        if name not in by_name:
            raise row.failure(f"joint '{name}' is none that moves on its own; allowed: {', '.join(by_name)}")
        if any(one.joint == name for one in found):
            raise row.failure(f"joint '{name}' has two balancers; give their sum as one")
        scale = row.get("scale", number(), 1.0)
        balancer = Balancer(name, _law(row, by_name[name]), row.get("estimate", flag, False))
        notes += _checked_over_range(balancer, by_name[name], row)
        found[balancer] = scale
    return found


def _law(row: Section, joint: Joint) -> Formula | TorqueTable | Strut:
    given = {
        "formula": "formula" in row,
        "position and torque": any(key in row for key in _TABLE_KEYS),
        "on_parent, on_link and force": any(key in row for key in _STRUT_KEYS),
    }
    if sum(given.values()) != 1:
        got = " and ".join(what for what, there in given.items() if there) or "none"
        raise row.failure(f"got {got}; give one of: {'; '.join(given)}")
    if given["formula"]:
        return Formula(row.get("formula", text), "q")
    return _table(row, joint) if given["position and torque"] else _strut(row, joint)


def _table(row: Section, joint: Joint) -> TorqueTable:
    if joint.kind == "prismatic" and ("position_deg" in row or "periodic" in row):
        raise row.failure("a prismatic joint has no turn; give position [m], without periodic")
    positions = row.angles("position", numbers(), radians_from_degrees)
    torques, periodic = row.get("torque", numbers()), row.get("periodic", flag, False)
    if positions is None:
        raise row.failure("torque has no position; give as many positions, or position_deg")
    if len(positions) != len(torques) or not 4 <= len(positions) <= MOST_POINTS:
        raise row.failure(
            f"got {len(positions)} positions and {len(torques)} torques; as many of both are needed, 4 to {MOST_POINTS}"
        )
    if not all(b - a > 1e-6 for a, b in pairwise(positions)):
        raise row.failure("positions have to rise, by more than 1e-6 from one to the next")
    if periodic and positions[-1] - positions[0] > 2 * math.pi + 1e-6:
        raise row.failure("a periodic table has positions of one turn at most")
    return TorqueTable(positions, torques, periodic)


def _strut(row: Section, joint: Joint) -> Strut:
    if joint.kind == "prismatic":
        raise row.failure("on_parent and on_link are distances from an axis, the joint is prismatic; give a formula")
    distance = number(above=0, largest=100)
    angle = row.angles("angle", number(), radians_from_degrees) or 0.0
    spring = [key for key in ("stiffness", "free_length", "preload") if key in row]
    if ("force" in row) == bool(spring):
        raise row.failure("give force, a number or a formula in length, or stiffness, free_length and preload")
    if spring:
        stiffness, free = row.get("stiffness", number(above=0)), row.get("free_length", number(least=0))
        force = f"{row.get('preload', number(), 0.0)!r} + {stiffness!r} * (length - {free!r})"
    else:
        force = row.table["force"]
        force = text(force) if isinstance(force, str) else repr(row.get("force", number()))
    return Strut(row.get("on_parent", distance), row.get("on_link", distance), angle, Formula(force, "length"))


def _checked_over_range(balancer: Balancer, joint: Joint, row: Section) -> list[str]:
    """Refuse a torque that is no number somewhere in the joint's range; return where a table ends before that."""
    wide = 1.0 if joint.kind == "prismatic" else math.pi
    least = joint.limits.lower if math.isfinite(joint.limits.lower) else -wide
    most = joint.limits.upper if math.isfinite(joint.limits.upper) else wide
    q = np.linspace(least, most, 721)
    try:
        with np.errstate(all="ignore"):
            torque = np.broadcast_to(np.asarray(balancer.torque(q, np), dtype=float), q.shape)
    except ValueError as error:
        raise row.failure(f"the formula cannot be used: {error}") from None
    except (OverflowError, ZeroDivisionError):
        raise row.failure("the formula cannot be used: a constant in it is no finite number") from None
    wrong = ~(np.abs(torque) <= LARGEST_TORQUE)
    if wrong.any():
        raise row.failure(
            f"the torque at position {q[wrong][0]:.4g} is {torque[wrong][0]:.3g}; allowed are finite ones"
        )
    ends = balancer.range
    if ends[0] - least <= 1e-6 and most - ends[1] <= 1e-6:
        return []
    return [
        f"balancer of joint '{joint.name}': its table has positions {ends[0]:.4g} to {ends[1]:.4g}, the joint "
        f"{least:.4g} to {most:.4g}; beyond the table the torque at its end is taken, and recordings are refused"
    ]


def check_within_tables(balancers: Sequence[Balancer], joints: Sequence[str], q: np.ndarray, label: str) -> None:
    """Raise a RobotError if recorded positions are beyond the table of a balancer.

    Args:
        balancers: The balancers.
        joints: Names of the joints, the rows of q.
        q: Positions (n, m).
        label: Name of the recording, for the message.
    """
    for balancer in balancers:
        own = q[joints.index(balancer.joint)]
        beyond = balancer.is_beyond(own)
        if beyond.any():
            raise RobotError(
                f"recording '{label}': joint '{balancer.joint}' is at {own[beyond][0]:.4g}, the table of its balancer "
                f"has positions {balancer.range[0]:.4g} to {balancer.range[1]:.4g}; extend the table, or leave these "
                "samples out"
            )
