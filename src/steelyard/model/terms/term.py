"""Terms of a model: named parameters, each with its unit, joint and link, and the columns that they multiply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import casadi as ca

from ...effects import Effect, FrictionConstants, Side
from ...errors import ModelError, nearest_match
from ...physics import direction, forward_part, inverse_dynamics
from ...robot import INERTIAL_NAMES, Body, Robot

Friction = Literal["", "viscous", "dry", "part"]
"""Viscous friction vanishes at rest, dry friction changes there by a step, a part bends them; empty: no friction."""

INERTIAL_UNITS: dict[str, str] = dict(zip(INERTIAL_NAMES, ["kg m^2"] * 6 + ["kg m"] * 3 + ["kg"], strict=True))


@dataclass(frozen=True)
class Parameter:
    """A standard parameter of a model.

    Attributes:
        name: Symbol and number, ``ZZ2``, ``Fvm1``; ``ZZL`` for the payload.
        symbol: The name without its number.
        unit: SI unit.
        number: Number of the moving joint, 0 for the payload.
        joint: Name of the joint, empty for the payload.
        link: Name of the link it belongs to.
        effect: The model term it comes from.
        side: ``link`` if it acts on a joint torque sensor, ``motor`` if on the motor torque only.
        friction: Whether it is a coefficient of viscous or of dry friction, which no real arm has below zero, or of a
            part of friction that may have either sign beside them.

    Example:
        >>> parameter = steelyard.build_model("scara_2r").parameters[-1]
        >>> parameter.name, parameter.unit, parameter.side
        ('Fcm2', 'N m', 'motor')
    """

    name: str
    symbol: str
    unit: str
    number: int
    joint: str
    link: str
    effect: str
    side: Side
    friction: Friction = ""


def joint_parameter(
    body: Body, symbol: str, effect: Effect, rotary_unit: str, linear_unit: str, friction: Friction = ""
) -> Parameter:
    """Return a parameter of one joint, with the unit that fits a revolute or a prismatic joint."""
    unit = linear_unit if body.joint.kind == "prismatic" else rotary_unit
    return Parameter(
        f"{symbol}{body.number}", symbol, unit, body.number, body.joint.name, body.link, effect.name, effect.side,
        friction,
    )  # fmt: skip


def resolve_name(robot: Robot, parameters: Sequence[Parameter], text: str) -> str:
    """Return the parameter's name from the name itself or the alias ``ZZ[wrist_3_link]`` (link or joint name).

    Example:
        >>> from steelyard.model import resolve_name
        >>> model = steelyard.build_model("scara_2r")
        >>> resolve_name(model.robot, model.parameters, "Fvm[joint_2]")
        'Fvm2'
    """
    names = [parameter.name for parameter in parameters]
    if text in names:
        return text
    alias = re.fullmatch(r"(\w+)\[(.+)\]", text)
    if alias:
        symbol, owner = alias.groups()
        for parameter in parameters:
            if parameter.symbol == symbol and owner in (parameter.link, parameter.joint):
                return parameter.name
    allowed = [*names, *(f"{p.symbol}[{p.link}]" for p in parameters)]
    raise ModelError(
        f"unknown parameter '{text}' of robot '{robot.name}': write a symbol and a joint number such as "
        f"{names[0] if names else 'ZZ1'}, or a symbol and a link such as ZZ[link]{nearest_match(text, allowed)}"
    )


@dataclass(frozen=True)
class MotionSymbols:
    """Symbols of a motion, in which columns are written.

    Attributes:
        q: Positions (na,).
        qd: Velocities (na,).
        qdd: Accelerations (na,).
        sign_width: Width of the smooth sign in friction [rad/s or m/s]; 0 for the exact sign.
        turn: Velocities over the width of the sign (na,) from which directions of friction are taken instead, so that
            an integrator can hold them over a step; None: directions are those of ``qd``.
        friction: Constants of friction that is not linear in them.
        memory: States of the Dahl elements, -1 to 1 (elements * k,), those of the first length first, in the k
            coordinates of ``Robot.friction_coordinates``; None: there are none, and friction with a state cannot be
            written.
        temperature: Temperatures less the reference of the friction's constants [K] (na,); None: they are not known,
            and friction that depends on them cannot be written.
        inertias: Known inertial parameters, ten a body (10 nb,); None: effects in proportion to the torques of the
            links cannot be written.
        drives: Known inertias of the drives (na,); None with ``inertias``.
        coupled_drives: Known inertias Iac of the motors that turn with two joints (nc,); None with ``inertias``.
        load_qdd: Accelerations (na,) with which the load of the gears is computed instead of ``qdd``, so that
            accelerations can be solved for; None: ``qdd``.
    """

    q: ca.SX
    qd: ca.SX
    qdd: ca.SX
    sign_width: float = 0.0
    turn: ca.SX | None = None
    friction: FrictionConstants = field(default_factory=FrictionConstants)
    memory: ca.SX | None = None
    temperature: ca.SX | None = None
    inertias: ca.DM | ca.SX | None = None
    drives: ca.DM | ca.SX | None = None
    coupled_drives: ca.DM | ca.SX | None = None
    load_qdd: ca.SX | None = None

    def sign(self, velocity: ca.SX) -> ca.SX:
        """Return the direction of a velocity, an expression of ``qd``: -1 to 1."""
        return direction(*self._turned(velocity))

    def forward(self, velocity: ca.SX) -> ca.SX:
        """Return 1 where a velocity, an expression of ``qd``, is positive, else 0; smooth as the sign is."""
        return forward_part(*self._turned(velocity))

    def _turned(self, velocity: ca.SX) -> tuple[ca.SX, float]:
        if self.turn is None:
            return velocity, self.sign_width
        return ca.substitute(velocity, self.qd, self.turn), 1.0


@dataclass(frozen=True)
class Term:
    """An effect: torque on the actuated joints = ``columns @ parameters``.

    Attributes:
        parameters: The unknowns, k of them.
        columns: Torque on each actuated joint per unit of each unknown (na, k).
    """

    parameters: tuple[Parameter, ...]
    columns: ca.SX

    def of_joints(self, numbers: tuple[int, ...] | None) -> Term:
        """Return the part of it that belongs to the joints of these numbers; all of it for None.

        Raises:
            ModelError: If it has no part of one of these joints.
        """
        if numbers is None:
            return self
        chosen = [k for k, parameter in enumerate(self.parameters) if parameter.number in numbers]
        there = {parameter.number for parameter in self.parameters}
        for number in numbers:
            if number not in there:
                effect = self.parameters[0].effect
                raise ModelError(
                    f"effect '{effect}{number}': joint {number} has no part of '{effect}'; allowed are joints "
                    f"{', '.join(map(str, sorted(there)))}"
                )
        return Term(tuple(self.parameters[k] for k in chosen), self.columns[:, chosen])


def link_torques(effect: Effect, robot: Robot, motion: MotionSymbols, gravity: ca.SX | None = None) -> ca.SX:
    """Return the torques that known links need (na,), and those of the drives' inertia for an effect on their side.

    Data often show the inertia of a link and of its drive as one: their sum is what is known.

    Args:
        effect: The effect that is in proportion to them.
        robot: The arm.
        motion: Symbols of the motion; they hold the known inertial parameters.
        gravity: Acceleration of gravity in the base frame (3,); the robot's own by default.

    Raises:
        ModelError: If no inertial parameters are known.
    """
    if motion.inertias is None:
        raise ModelError(
            f"effect '{effect.name}' is in proportion to the torques of the links, whose inertias are not known here; "
            "leave it out, or give the robot file inertias"
        )
    qdd = motion.qdd if motion.load_qdd is None else motion.load_qdd
    links = inverse_dynamics(robot, motion.q, motion.qd, qdd, ca.SX(motion.inertias), gravity=gravity)
    return links + ca.SX(motion.drives) * qdd if effect.side == "motor" and motion.drives is not None else links


def diagonal_term(parameters: list[Parameter], entries: ca.SX) -> Term:
    """Return a term with one parameter for each actuated joint, which acts on that joint only."""
    return Term(tuple(parameters), ca.diag(ca.densify(entries)))


def on_joint(motion: MotionSymbols, row: int, torque: ca.SX) -> ca.SX:
    """Return a column (na,) of a torque that acts on one joint."""
    column = ca.SX(motion.q.shape[0], 1)
    column[row] = torque
    return column
