"""The registry of effects: what ``--effects`` allows, and the parameters that each of them adds to a model.

A new effect, linear in its parameters, is a function in a module of :mod:`steelyard.model.terms` and an entry here.
Readers of robot files, models, simulation and plausibility checks find it from the entry; its module is imported when a
model uses it, so that this list costs nothing to load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, final

Side = Literal["link", "motor"]
"""``link``: acts on motor torques and joint torque sensors; ``motor``: on motor torques only."""


@final
@dataclass(frozen=True)
class FrictionConstants:
    """Constants on which friction does not depend linearly; those of all joints alike.

    Attributes:
        dahl: Lengths of the Dahl elements ``Fd1`` to ``Fd6`` [rad or m]: over its length, the friction of an element
            changes after a reversal by 63 % of what it changes at all.
        stribeck: Velocities v_s of Stribeck friction ``Fs1`` to ``Fs4`` [rad/s or m/s]:
            ``Fs exp(-(v / v_s)^2) sign(v)``.
        temperature: At which friction in proportion to temperature (``FcTm``, ``FvTm``) is zero [deg C].
        ripple: Orders of torque ripple ``R1m`` to ``R4m``: periods in a turn.
        ripple_of: Whose turn: that of the ``motor``, by the gear ratio, or of the ``joint``.
        inertias: Inertial parameters of links and drives by standard name, for effects in proportion to their torques;
            empty: those of the robot file. Those of a payload, ``XXL`` to ``ML``, count in rows with it; ``gx``, ``gy``
            and ``gz`` [m/s^2] are the tilt about which that of the base is estimated.

    Example:
        >>> from steelyard.effects import FrictionConstants
        >>> FrictionConstants().stribeck
        (0.01, 0.03, 0.1, 0.3)
    """

    dahl: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    stribeck: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3)
    temperature: float = 25.0
    ripple: tuple[float, ...] = (1.0, 2.0, 4.0, 6.0)
    ripple_of: Literal["motor", "joint"] = "motor"
    inertias: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), hash=False)


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

    @property
    def element(self) -> int:
        """Which of the Dahl lengths, Stribeck velocities or orders of ripple it has, from 0."""
        return int(self.symbols[0][2]) - 1

    @property
    def law(self) -> str:
        """Its law, such as ``viscous``, ``stribeck`` or ``dahl``: that of joints and of coupled motors alike."""
        return self.builder.split(".")[1]

    @property
    def has_memory(self) -> bool:
        """Whether it depends on the motion before, by a state."""
        return self.law == "dahl"

    @property
    def is_load_dependent(self) -> bool:
        """Whether it is friction in proportion to the load of the gears."""
        return self.law == "load"

    @property
    def is_of_coupled_motors(self) -> bool:
        """Whether it acts on the two joints that a coupled motor turns with."""
        return self.builder.startswith("gear_coupling.")

    @property
    def is_of_joints(self) -> bool:
        """Whether it is friction or an offset of single joints, of no other cause."""
        return self.builder.startswith("friction.")

    @property
    def needs_temperature(self) -> bool:
        """Whether it depends on the temperature of the joints."""
        return self.builder.startswith("temperature.")

    @property
    def needs_inertias(self) -> bool:
        """Whether it is in proportion to torques of the links, of known inertias."""
        return self.is_load_dependent or self.builder.startswith("setup_errors.")

    def term(self, robot: Any, motion: Any) -> Any:
        """Return the term of a robot, in the symbols of its motion."""
        module, function = self.builder.split(".")
        return getattr(import_module(f"steelyard.model.terms.{module}"), function)(self, robot, motion)


_INERTIAL = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")


def _further_friction(side: Side) -> tuple[Effect, ...]:
    """Return the friction that real gears have beyond viscous and Coulomb's, on one side of them."""
    return _friction_laws(side[0], f"{side} side", "friction", side)


def _coupled_friction() -> tuple[Effect, ...]:
    """Return the same friction of motors that turn with two joints, in the coordinate of the motor."""
    return _friction_laws("c", "of motors that turn with two joints", "gear_coupling", "motor")


def _friction_laws(suffix: str, where: str, module: str, side: Side) -> tuple[Effect, ...]:
    shapes = FrictionConstants()

    def effect(symbol: str, summary: str, builder: str) -> Effect:
        return Effect(f"{symbol}{suffix}", f"{summary}, {where}", f"{module}.{builder}", (f"{symbol}{suffix}",), side)

    return (
        effect("Fvv", "friction in proportion to v|v|", "quadratic"),
        effect("Fvr", "friction in proportion to the square root of speed", "square_root"),
        effect("Fvt", "friction in proportion to the third root of speed", "third_root"),
        effect("Fg", "Coulomb friction in proportion to the load", "load"),
        *(effect(f"Fs{k}", f"Stribeck friction, velocity {k}", "stribeck") for k, _ in enumerate(shapes.stribeck, 1)),
        *(effect(f"Fd{k}", f"Dahl friction, length {k}", "dahl") for k, _ in enumerate(shapes.dahl, 1)),
    )


def _periodic_and_thermal(side: Side) -> tuple[Effect, ...]:
    """Return torque ripple, and friction that changes with temperature, on one side of the gears."""
    s = side[0]
    ripple = (
        Effect(f"R{k}{s}", f"torque ripple, order {k}, {side} side", "ripple.ripple", (f"Rs{k}{s}", f"Rc{k}{s}"), side)
        for k, _ in enumerate(FrictionConstants().ripple, 1)
    )
    kinds = {"FcT": ("Coulomb", "coulomb"), "FvT": ("viscous", "viscous")}
    thermal = (
        Effect(
            f"{symbol}{s}", f"{word} friction in proportion to temperature, {side} side", f"temperature.{function}",
            (f"{symbol}{s}",), side,
        )
        for symbol, (word, function) in kinds.items()
    )  # fmt: skip
    return (*thermal, *ripple)


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
        Effect("balancer", "known torques of balancers, by a scale", "spring.balancer", ("Sb",), "link"),
        Effect("Fvl", "viscous friction, link side", "friction.viscous", ("Fvl",), "link"),
        Effect("Fcl", "Coulomb friction, link side", "friction.coulomb", ("Fcl",), "link"),
        Effect("Fcal", "Coulomb friction by direction, link side", "friction.asymmetric", ("Fcpl", "Fcnl"), "link"),
        Effect("offl", "torque offset, link side", "friction.offset", ("offl",), "link"),
        Effect(
            "tilt",
            "gravity across its nominal direction: a tilted base",
            "setup_errors.tilt",
            ("gx", "gy", "gz", "gc", "gs"),
            "link",
        ),
        Effect("gain", "error of the torque gain", "setup_errors.gain", ("kt",), "link"),
        Effect("zero", "error of the joint zeros", "setup_errors.zero", ("dq",), "link"),
        Effect("scale", "error of the scale of positions", "setup_errors.scale", ("kq",), "link"),
        *_further_friction("motor"),
        *_further_friction("link"),
        *_periodic_and_thermal("motor"),
        *_periodic_and_thermal("link"),
        *_coupled_friction(),
    )
}
"""By name, in the order of a model's columns."""


SETUP_ERRORS = ("tilt", "gain", "zero", "scale")
"""Effects that belong to mounting and sensors and not to the arm."""


def value_symbols() -> tuple[str, ...]:
    """Return the symbols that ``[values]`` of a robot file may have: inertias and balancers stand elsewhere in it."""
    others = (effect for effect in EFFECTS.values() if effect.name not in ("inertia", "balancer", *SETUP_ERRORS))
    return tuple(symbol for effect in others for symbol in effect.symbols)


def other_side(name: str) -> str | None:
    """Return the same effect on the other side of the gears (``Fvm``, ``Fvl``), or None if there is none."""
    twin = name[:-1] + {"m": "l", "l": "m"}.get(name[-1], "")
    return twin if name[-1] in "ml" and twin in EFFECTS else None
