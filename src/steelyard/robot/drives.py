"""Drive inertia and friction of joints: what robot files hold of them, and those of joints that follow others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..configuration import Kind, kind_of, number, numbers
from ..effects import FrictionConstants
from .tree import Robot, leaders

VISCOUS = ("Fvm", "Fvl")
COULOMB = ("Fcm", "Fcl")
DAHL = tuple(f"Fd{k}{side}" for side in "ml" for k, _ in enumerate(FrictionConstants().dahl, 1))
"""Coulomb friction after long motion in one direction."""
BY_DIRECTION = (("Fcpm", "Fcnm"), ("Fcpl", "Fcnl"))
_BY_GAIN_SQUARED = ("Ia", "Fvm", "Fvl")
_BY_GAIN = {"Fcm": "Fcm", "Fcl": "Fcl", "Fcpm": "Fcnm", "Fcnm": "Fcpm", "Fcpl": "Fcnl", "Fcnl": "Fcpl"}
"""Coulomb friction, and what it is to a leader that moves the other way."""


def _by_name(value: Any) -> Mapping[str, float]:
    """Values by parameter name."""
    return {name: number()(one) for name, one in kind_of(dict)(value).items()}


def _orders(value: Any) -> tuple[float, ...]:
    """Orders of torque ripple."""
    what, most = "one to four orders above 0, periods in a turn", len(FrictionConstants().ripple)
    orders = numbers(None, number(above=0), what)(value)
    if not 1 <= len(orders) <= most:
        raise ValueError(what)
    return orders


FRICTION_KINDS: dict[str, Kind[Any]] = {
    "dahl": numbers(len(FrictionConstants().dahl), number(above=0), "six lengths above 0 [rad or m]"),
    "stribeck": numbers(len(FrictionConstants().stribeck), number(above=0), "four velocities above 0 [rad/s or m/s]"),
    "temperature": number(),
    "ripple": _orders,
    "inertias": _by_name,
}
"""What the constants of friction may be, in robot files and in settings."""


def values_on_leaders(robot: Robot, values: Mapping[str, float]) -> dict[str, float]:
    """Return values by parameter name, drive inertia and friction of followers carried over to the joints they follow.

    A follower moves ``gain`` times as fast as its leader: its drive inertia and viscous friction count ``gain^2`` times
    there, its Coulomb friction ``|gain|`` times.

    Args:
        robot: The arm.
        values: Values of all moving joints, by name.
    """
    by_name = {joint.name: joint for joint in robot.joints}
    number_of, found = {body.joint.name: body.number for body in robot.actuated}, dict(values)
    for body in robot.bodies:
        leader, gain, _ = list(leaders(body.joint, by_name))[-1]
        if leader.name == body.joint.name:
            continue
        same = {symbol: (symbol, gain**2) for symbol in _BY_GAIN_SQUARED}
        dry = {one: (one if gain > 0 else other, abs(gain)) for one, other in _BY_GAIN.items()}
        for symbol, (target, factor) in (same | dry).items():
            value = factor * found.pop(f"{symbol}{body.number}", 0.0)
            if value:
                name = f"{target}{number_of[leader.name]}"
                found[name] = found.get(name, 0.0) + value
    return found


class JointValues(NamedTuple):
    """What a robot file can say of a joint.

    Attributes:
        damping: Viscous friction of motor side and link side together [N m s/rad or N s/m].
        friction: Coulomb friction of both sides together [N m or N]; of friction by direction the mean of both, and
            Dahl's as after long motion in one direction.
        armature: Drive inertia on the joint side [kg m^2 or kg].
    """

    damping: float
    friction: float
    armature: float


def joint_values(robot: Robot) -> dict[str, JointValues]:
    """Return what robot files can say of every moving joint, by its name; 0 where nothing is known."""
    known = robot.values

    def total(number: int, symbols: tuple[str, ...]) -> float:
        return sum(known.get(f"{symbol}{number}", 0.0) for symbol in symbols)

    return {
        body.joint.name: JointValues(
            total(body.number, VISCOUS),
            total(body.number, (*COULOMB, *DAHL)) + sum(total(body.number, pair) for pair in BY_DIRECTION) / 2,
            total(body.number, ("Ia",)),
        )
        for body in robot.bodies
    }
