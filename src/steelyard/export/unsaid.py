"""Friction that a robot file is to hold, and what it cannot say of an identified arm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..effects import EFFECTS
from ..model import build_model
from ..model.terms.term import Parameter
from ..robot import Robot
from ..robot.drives import BY_DIRECTION, COULOMB, DAHL, VISCOUS
from ..robot.placement import Vector3
from ..robot.tree import STANDARD_GRAVITY
from .differences import without_noise
from .identified import IdentifiedArm

_FRICTION_KINDS = (VISCOUS, (*COULOMB, *(symbol for pair in BY_DIRECTION for symbol in pair)))


NEGLIGIBLE = 1e-7
"""Values below this share of the arm's largest in their unit are numerical noise: they are not listed."""


def robot_to_write(arm: IdentifiedArm) -> Robot:
    """Return the arm's robot without a priori friction that identified friction stands for, and without noise.

    A file's damping counts as motor-side friction when it is read; if the model has viscous friction on the link side
    only, the sum of both would count it twice. Coulomb friction likewise.
    """
    of_model = {symbol for effect in arm.model.effects for symbol in EFFECTS[effect].symbols}
    replaced = {symbol for kind in _FRICTION_KINDS if of_model.intersection(kind) for symbol in kind} - of_model
    numbers = [body.number for body in arm.robot.actuated]
    dropped = {f"{symbol}{number}" for symbol in replaced for number in numbers}
    values = {name: value for name, value in arm.robot.values.items() if name not in dropped}
    return without_noise(replace(arm.robot, values=values), arm.model.robot)


def unsaid(
    robot: Robot, held: tuple[str, ...] = (*VISCOUS, *COULOMB), gravity: Vector3 = STANDARD_GRAVITY
) -> list[str]:
    """Return, with numbers and units, what the file of a robot cannot say.

    Args:
        robot: The arm.
        held: Symbols of the parameters that the format holds.
        gravity: Gravity as readers of the file take it [m/s^2].
    """
    lines: dict[tuple[str, str], list[str]] = {}
    known, parameters = robot.parameters, list(_parameters(robot))
    largest: dict[str, float] = {}
    for one in parameters:
        largest[one.unit] = max(largest.get(one.unit, 0.0), abs(known.get(one.name, 0.0)))
    for parameter in (one for one in parameters if one.effect != "inertia"):
        value = robot.values.get(parameter.name, 0.0)
        if abs(value) > NEGLIGIBLE * largest[parameter.unit] and parameter.symbol not in held:
            values = lines.setdefault((parameter.effect, parameter.symbol), [])
            values.append(f"{parameter.joint} {value!r} {parameter.unit}")
    listed = [
        f"{EFFECTS[effect].summary} ({symbol}{_MEANINGS.get(symbol, '')}): {', '.join(values)}"
        for (effect, symbol), values in lines.items()
    ]
    couplings = [f"motor of {c.motor} turns with {c.also_turns_with} by {c.ratio!r}" for c in robot.gear_couplings]
    return [*listed, *([f"gear coupling: {', '.join(couplings)}"] if couplings else []), *_gravity(robot, gravity)]


_MEANINGS = {
    **dict.fromkeys(("Fcpm", "Fcpl"), ", forward; friction holds the mean of both directions"),
    **dict.fromkeys(("Fcnm", "Fcnl"), ", backward"),
    **dict.fromkeys(DAHL, ", turns over a length after reversals; friction holds it as Coulomb friction"),
    "Ia": ", 'armature' of simulators",
    "Ss": ", torque Ss sin(q)",
    "Sc": ", torque Sc cos(q)",
    "Sb": ", factor of the torque that the robot file gives by position",
}


def _parameters(robot: Robot) -> Iterator[Parameter]:
    """Iterate over the parameters of all effects of which the arm has a value."""
    families = {name.rstrip("0123456789") for name in robot.values}
    known = build_model(robot, ["inertia"]).motion
    for name, effect in EFFECTS.items():
        has_values = name == "inertia" or families.intersection(effect.symbols)
        if has_values and not (effect.needs_inertias and known.inertias is None):
            yield from effect.term(robot, known).parameters


def _gravity(robot: Robot, gravity: Vector3) -> list[str]:
    if robot.gravity == gravity:
        return []
    own, taken = (" ".join(map(repr, one)) for one in (robot.gravity, gravity))
    return [f"gravity in the base frame: {own} m/s^2, set it where the file is loaded (programs take {taken})"]
