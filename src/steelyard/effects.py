"""The registry of effects: what ``--effects`` allows, and the parameters that each of them adds to a model.

A new effect, linear in its parameters, is a function in a module of :mod:`steelyard.model.terms` and an entry here.
Readers of robot files, models, simulation and plausibility checks find it from the entry; its module is imported when a
model uses it, so that this list costs nothing to load.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, final

Side = Literal["link", "motor"]
"""``link``: acts on motor torques and joint torque sensors; ``motor``: on motor torques only."""


@final
@dataclass(frozen=True)
class Effect:
    """An effect that a model may contain.

    Attributes:
        name: Its name in ``--effects``.
        summary: A few words for tables and error messages.
        builder: Module and function below ``steelyard.model.terms``; called with this record, the robot and the symbols
            of motion, returns the term.
        symbols: Symbols of its parameters, without the number of the joint; a robot file gives their values by these
            names.
        side: Which measured torques depend on it.
    """

    name: str
    summary: str
    builder: str
    symbols: tuple[str, ...]
    side: Side

    def term(self, robot: Any, motion: Any) -> Any:
        """Return the term of a robot, in the symbols of its motion."""
        module, function = self.builder.split(".")
        return getattr(import_module(f"steelyard.model.terms.{module}"), function)(self, robot, motion)


_INERTIAL = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")

EFFECTS: dict[str, Effect] = {
    one.name: one
    for one in (
        Effect("inertia", "link inertias, first moments and masses", "inertia.link_inertia", _INERTIAL, "link"),
        Effect("Ia", "rotor and gear inertia on the joint side", "inertia.drive_inertia", ("Ia",), "motor"),
        Effect("Fvm", "viscous friction, motor side", "friction.viscous", ("Fvm",), "motor"),
        Effect("Fcm", "Coulomb friction, motor side", "friction.coulomb", ("Fcm",), "motor"),
        Effect("Fcam", "Coulomb friction by direction, motor side", "friction.asymmetric", ("Fcpm", "Fcnm"), "motor"),
        Effect("offm", "torque offset, motor side", "friction.offset", ("offm",), "motor"),
        Effect(
            "coupling", "motors that turn with two joints", "gear_coupling.coupling", ("Iac", "Fvc", "Fcc"), "motor"
        ),
        Effect("spring", "gravity compensation springs", "spring.spring", ("Ss", "Sc"), "link"),
        Effect("Fvl", "viscous friction, link side", "friction.viscous", ("Fvl",), "link"),
        Effect("Fcl", "Coulomb friction, link side", "friction.coulomb", ("Fcl",), "link"),
        Effect("Fcal", "Coulomb friction by direction, link side", "friction.asymmetric", ("Fcpl", "Fcnl"), "link"),
        Effect("offl", "torque offset, link side", "friction.offset", ("offl",), "link"),
    )
}
"""By name, in the order of a model's columns."""


def value_symbols() -> tuple[str, ...]:
    """Return the symbols of all effects but the links' inertias, which robot files give link by link."""
    return tuple(symbol for effect in EFFECTS.values() if effect.name != "inertia" for symbol in effect.symbols)


def other_side(name: str) -> str | None:
    """Return the same effect on the other side of the gears (``Fvm``, ``Fvl``), or None if there is none."""
    twin = name[:-1] + {"m": "l", "l": "m"}.get(name[-1], "")
    return twin if name[-1] in "ml" and twin in EFFECTS else None
