"""A model: which effects are unknown and which torques are measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal, get_args

import casadi as ca

from ..effects import EFFECTS, SETUP_ERRORS, FrictionConstants, other_side
from ..errors import ModelError, nearest_match
from ..lazy import recent
from ..physics import motion_symbols
from ..robot import INERTIAL_NAMES, AnyRobot, Robot, load_robot
from ..robot.balancers import Balancer
from ..text import short_repr
from .terms import PAYLOAD_NAMES, MotionSymbols, Term, payload, payload_link, with_known_payload
from .terms.term import Parameter

Measured = Literal["motor", "joint", "both", "difference"]
Payload = Literal["none", "loaded", "paired"]
MEASURED: tuple[str, ...] = get_args(Measured)
PAYLOADS: tuple[str, ...] = get_args(Payload)


# Sides of the gears on which each kind of row depends (P5's models A, B and D; C stacks A and B).
_SIDES = {"motor": ("link", "motor"), "joint": ("link",), "difference": ("motor",)}


@dataclass(frozen=True)
class Model:
    """The unknowns of an arm and the equations that show them.

    Attributes:
        robot: The arm.
        effects: Names of the terms, as in ``EFFECTS``.
        joints_of: Of effects that only some joints have, the numbers of these joints.
        measured: ``motor`` (P5's A), ``joint`` (B), ``both`` stacked (C) or their ``difference`` (D).
        payload: ``none``; ``loaded``: one data set, with payload; ``paired``: without and with.
        sign_width: Width of the smooth sign in friction [rad/s or m/s]; 0 for the exact sign, sign(0) = 0.
        friction: Constants of friction that is not linear in them.

    Example:
        >>> model = steelyard.build_model("kuka_lwr4", measured="both")
        >>> len(model.names), model.names[0]
        (119, 'XX1')
    """

    __repr__ = short_repr

    robot: Robot
    effects: tuple[str, ...]
    measured: Measured = "motor"
    payload: Payload = "none"
    sign_width: float = 0.0
    friction: FrictionConstants = field(default_factory=FrictionConstants)
    joints_of: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def chosen_effects(self) -> tuple[str, ...]:
        """The effects as ``build_model`` takes them; those of some joints with their numbers, ``Fgm2``."""
        chosen: list[str] = []
        for effect in self.effects:
            numbers = self.joints_of.get(effect)
            chosen += [effect] if numbers is None else [f"{effect}{number}" for number in numbers]
        return tuple(chosen)

    @property
    def payload_link(self) -> str:
        """The link the payload is fixed to; its ten parameters are in that link's frame."""
        return payload_link(self.robot)

    @cached_property
    def motion(self) -> MotionSymbols:
        """The symbols q, qd, qdd, and those of friction with a state, in which the terms' columns are written."""
        states = len(self.friction.dahl) * len(self.robot.friction_coordinates())
        memory, temperature = ca.SX.sym("memory", states), ca.SX.sym("temperature", len(self.robot.actuated))
        known = self.friction.inertias or (self.robot.parameters if "inertias" in self.robot.carries else {})
        inertias = [known.get(f"{symbol}{body.number}", 0.0) for body in self.robot.bodies for symbol in INERTIAL_NAMES]
        drives, coupled = ([known.get(name, 0.0) for name in names] for names in drive_names(self.robot))
        return MotionSymbols(
            *motion_symbols(self.robot), self.sign_width,
            friction=self.friction, memory=memory, temperature=temperature,
            inertias=ca.DM(inertias) if known else None, drives=ca.DM(drives) if known else None,
            coupled_drives=ca.DM(coupled) if known else None,
        )  # fmt: skip

    @property
    def has_memory(self) -> bool:
        """Whether friction has a state: its rows then depend on the motion before, too."""
        return any(EFFECTS[effect].has_memory for effect in self.effects)

    @property
    def needs_temperature(self) -> bool:
        """Whether friction depends on the temperature of the joints."""
        return any(EFFECTS[effect].needs_temperature for effect in self.effects)

    @property
    def inputs(self) -> list[ca.SX]:
        """The symbols that the regressor is a function of: q, qd, qdd, and what friction depends on besides."""
        motion = self.motion
        return [motion.q, motion.qd, motion.qdd, *(getattr(motion, name) for name in self.further_inputs)]

    @property
    def further_inputs(self) -> tuple[str, ...]:
        """Which inputs the regressor has besides: ``memory``, the states of friction, and ``temperature`` [K].

        The temperature is that of each joint less the reference of the friction's constants.
        """
        needed = {"memory": self.has_memory, "temperature": self.needs_temperature}
        return tuple(name for name, is_needed in needed.items() if is_needed)

    @property
    def input_names(self) -> list[str]:
        """Names of ``inputs``."""
        return ["q", "qd", "qdd", *self.further_inputs]

    def with_inertias(self, known: Mapping[str, float]) -> Model:
        """Return the model with known inertial parameters, for effects in proportion to their torques."""
        return replace(self, friction=replace(self.friction, inertias=MappingProxyType(dict(known))))

    @cached_property
    def known_balancers(self) -> tuple[Balancer, ...]:
        """Balancers whose scale is no unknown of the model: their torques are subtracted from the measured ones."""
        if "balancer" not in self.effects:
            return self.robot.balancers
        unknown = self.joints_of.get("balancer")
        number_of = {body.joint.name: body.number for body in self.robot.bodies}
        return tuple(one for one in self.robot.balancers if unknown is not None and number_of[one.joint] not in unknown)

    @property
    def known_torque(self) -> ca.SX:
        """Torque of these balancers in every row (rows,), an expression of q."""
        motion, rows = self.motion, {body.joint.name: row for row, body in enumerate(self.robot.actuated)}
        torque = ca.SX(motion.q.shape[0], 1)
        for one in self.known_balancers:
            row = rows[one.joint]
            torque[row] = self.robot.values[f"Sb{self.robot.actuated[row].number}"] * one.torque(motion.q[row], ca)
        return ca.vertcat(*(torque if "link" in _SIDES[kind] else ca.SX(*torque.shape) for kind in self.kinds))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The effects with their parameters and columns, in order; the payload last."""
        return self.terms_in(self.motion)

    @cached_property
    def loaded_terms(self) -> tuple[Term, ...]:
        """The terms in rows with the payload: where its parameters are known, its torques are part of the load."""
        known = self.friction.inertias
        if self.payload == "none" or known.keys().isdisjoint(PAYLOAD_NAMES):
            return self.terms
        motion = with_known_payload(self.robot, self.motion, known)
        return tuple(
            EFFECTS[effect].term(self.robot, motion).of_joints(self.joints_of.get(effect))
            if effect in self.dependent_effects else term
            for effect, term in zip([*self.effects, "payload"], self.terms, strict=True)
        )  # fmt: skip

    @property
    def dependent_effects(self) -> tuple[str, ...]:
        """The effects in proportion to the torques of known inertias."""
        return tuple(effect for effect in self.effects if EFFECTS[effect].needs_inertias)

    def terms_in(self, motion: MotionSymbols) -> tuple[Term, ...]:
        """Return the same terms, in other symbols."""
        terms = [
            EFFECTS[effect].term(self.robot, motion).of_joints(self.joints_of.get(effect)) for effect in self.effects
        ]
        if self.payload != "none":
            terms.append(payload(self.robot, motion))
        return tuple(terms)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every standard parameter, in column order; the payload's last."""
        return tuple(parameter for term in self.terms for parameter in term.parameters)

    @cached_property
    def nonnegative_friction(self) -> frozenset[str]:
        """Names of the coefficients of friction that no arm has below zero: viscous and dry ones that stand alone.

        Beside curved friction of the same joint, or of a motor that turns with it, they may be negative: the sum of all
        brakes.
        """
        parts = [one for one in self.parameters if one.friction == "part"]
        number_of, bent = {body.joint.name: body.number for body in self.robot.actuated}, {one.number for one in parts}
        motors = {one.joint for one in parts if EFFECTS[one.effect].is_of_coupled_motors}
        bent |= {number_of[one.also_turns_with] for one in self.robot.gear_couplings if one.motor in motors}
        return frozenset(one.name for one in self.parameters if one.friction and one.number not in bent)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the standard parameters, in column order."""
        return tuple(parameter.name for parameter in self.parameters)

    def identified_robot(self, values: Mapping[str, float]) -> Robot:
        """Return the arm with identified values of the model's standard parameters; a payload's are left out.

        A tilt that was found is in its gravity; gains and zeros are no values of an arm.

        Values of the robot file for effects that the model lacks, and on which the measured torques depend, become 0:
        the identified parameters have absorbed what they stand for, and they would count twice.
        """
        sides = {side for kind in self.kinds for side in _SIDES[kind]}
        absorbed = {
            symbol for name, effect in EFFECTS.items()
            if name not in (*self.effects, "inertia", "balancer") and effect.side in sides for symbol in effect.symbols
        }  # fmt: skip
        zeros = {name: 0.0 for name in self.robot.values if name.rstrip("0123456789") in absorbed}
        apart = {one.name for one in self.parameters if one.effect in ("payload", *SETUP_ERRORS)}
        own = {name: value for name, value in values.items() if name not in apart and not name.endswith("L")}
        tilted = self.robot.tilted(values) if "tilt" in self.effects else self.robot
        return tilted.with_parameters({**zeros, **own})

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of torque that the rows equate."""
        return ("motor", "joint") if self.measured == "both" else (self.measured,)

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """Torque kind and joint of every row of the regressor; joint-major, motor rows before joint rows."""
        return tuple((kind, body.joint.name) for kind in self.kinds for body in self.robot.actuated)

    @cached_property
    def regressor(self) -> ca.Function:
        """The function of ``inputs`` that gives W (rows, parameters), with the payload's columns if there is one."""
        return self._regressor_function(loaded=True)

    @cached_property
    def unloaded_regressor(self) -> ca.Function:
        """The same function for rows recorded without payload: its columns are zero."""
        return self._regressor_function(loaded=False)

    def _regressor_function(self, *, loaded: bool) -> ca.Function:
        terms = self.loaded_terms if loaded else self.terms
        matrix = ca.cse(self.regressor_of(terms, loaded=loaded))
        return ca.Function("regressor", self.inputs, [matrix], self.input_names, ["W"])

    def regressor_of(self, terms: Iterable[Term], *, loaded: bool) -> ca.SX:
        """Return W (rows, parameters) as an expression of the symbols that the terms are written in."""
        blocks: dict[str, list[ca.SX]] = {kind: [] for kind in self.kinds}
        for term in terms:
            first = term.parameters[0]
            for kind, row in blocks.items():
                nonzero = first.side in _SIDES[kind] and (loaded or first.effect != "payload")
                row.append(term.columns if nonzero else ca.SX(*term.columns.shape))
        return ca.sparsify(ca.vertcat(*(ca.horzcat(*row) for row in blocks.values())))


def drive_names(robot: Robot) -> tuple[list[str], list[str]]:
    """Return the names of the drives' inertias, joint by joint, and of those of motors that turn with two joints."""
    number_of = {body.joint.name: body.number for body in robot.actuated}
    coupled = [f"Iac{number_of[one.motor]}" for one in robot.gear_couplings]
    return [f"Ia{number}" for number in number_of.values()], coupled


def refuse_history(model: Model, where: str) -> None:
    """Refuse effects whose columns are no functions of the motion at one instant.

    Args:
        model: The model.
        where: What cannot have them, for the message.

    Raises:
        ModelError: If friction has a state, or depends on temperature.

    Example:
        >>> from steelyard.model import refuse_history
        >>> refuse_history(steelyard.build_model("scara_2r"), "a filter")
    """
    for effect in (EFFECTS[name] for name in model.effects):
        if effect.has_memory or effect.needs_temperature:
            what = "has a state" if effect.has_memory else "depends on recorded temperatures"
            raise ModelError(
                f"effect '{effect.name}' ({effect.summary}) {what}, which {where} cannot have; leave it out"
            )


def build_model(
    robot: AnyRobot,
    effects: Iterable[str] | None = None,
    measured: str | None = None,
    payload: str = "none",
    sign_width: float = 0.0,
    friction: FrictionConstants | None = None,
) -> Model:
    """Return a checked model of a robot; what is not given comes from the robot's own defaults.

    Example:
        >>> model = steelyard.build_model("scara_2r", effects=["inertia", "Fvm"])
        >>> len(model.names), model.measured
        (22, 'motor')
    """
    robot = load_robot(robot)
    if not robot.bodies:
        raise ModelError(f"robot '{robot.name}' has no moving joint: nothing to identify")
    if robot.coordinates != "joint":
        raise ModelError(
            f"robot '{robot.name}' is described in motor coordinates; models are written on the joint side, "
            "give the robot itself (effect 'coupling' covers coupled motors)"
        )
    measured = robot.defaults.measured if measured is None else measured
    _check_choice("torque", measured, MEASURED)
    chosen, joints_of = _resolved_effects(robot, _default_effects(robot, measured), effects)
    _check_choice("payload", payload, PAYLOADS)
    if not (math.isfinite(sign_width) and sign_width >= 0):
        raise ModelError(f"sign width {sign_width}: give 0 for the exact sign, or a positive velocity")
    if payload != "none" and "inertia" not in chosen:
        raise ModelError("a payload is an inertia: add 'inertia' to the effects, or choose payload 'none'")
    in_order = tuple(effect for effect in EFFECTS if effect in chosen)
    friction = robot.friction if friction is None else friction
    model = Model(robot, in_order, measured, payload, float(sign_width), friction, joints_of)  # type: ignore[arg-type]
    return _known(model, robot.file)


@recent(8)
def _known(model: Model, file: str) -> Model:
    """Return an equal model of the same file, which has its symbols and regressor already, or this one."""
    del file  # robots of other files may be equal
    return model


def _default_effects(robot: Robot, measured: str) -> tuple[str, ...]:
    """Return the robot's default effects on the sides of the gears that the measured torques depend on.

    Where the robot's own are all on one side of the gears and other torques are measured, friction is put on the side
    that these depend on, with the offset of a joint torque sensor or the inertia of the drives. Couplings, springs and
    balancers of locked joints are left out; scales of balancers that the robot wants estimated are there.
    """
    number_of = {body.joint.name: body.number for body in robot.bodies}
    scales = [f"balancer{number_of[one.joint]}" for one in robot.balancers if one.estimate and measured != "difference"]
    present = {
        "coupling": bool(robot.gear_couplings), "spring": bool(robot.springs), "balancer": bool(robot.balancers),
    }  # fmt: skip
    own = tuple(effect for effect in robot.defaults.effects if present.get(effect, True))
    own = own if "balancer" in own else tuple(dict.fromkeys((*own, *scales)))
    twins = {effect: twin for effect in own if (twin := other_side(effect))}
    on_link = [effect for effect in twins if EFFECTS[effect].side == "link"]
    on_motor = [effect for effect in twins if EFFECTS[effect].side == "motor"]
    if measured in ("joint", "both") and on_motor and not on_link:
        retained = own if measured == "both" else tuple(effect for effect in own if effect not in (*on_motor, "Ia"))
        return tuple(dict.fromkeys((*retained, *(twins[effect] for effect in on_motor), "offl")))
    if measured != "joint" and on_link and not on_motor:
        retained = own if measured == "both" else tuple(effect for effect in own if effect not in on_link)
        return tuple(dict.fromkeys((*retained, "Ia", *(twins[effect] for effect in on_link))))
    return own


def _resolved_effects(
    robot: Robot, usual: tuple[str, ...], effects: Iterable[str] | None
) -> tuple[tuple[str, ...], Mapping[str, tuple[int, ...]]]:
    """Return the names of effects, and the joints of those that only some have.

    Args:
        robot: The arm.
        usual: Its default effects.
        effects: What was given: names; ``Fgm2`` is an effect of one joint; ``+Fgm`` adds to the defaults. None: the
            defaults.
    """
    given = tuple(usual if effects is None else effects)
    if given and all(name.startswith("+") for name in given):
        added = tuple(name[1:] for name in given)
        given = (*(name for name in usual if name not in added), *added)
    if not given:
        raise ModelError(f"no effects given; choose from {', '.join(EFFECTS)}")
    numbers: dict[str, list[int]] = {}
    for name in given:
        effect = name if name in EFFECTS else name.rstrip("0123456789")
        if effect not in EFFECTS:
            allowed = f"{', '.join(EFFECTS)}; Fcm2 for joint 2 alone, +Fgm to add to the defaults"
            raise ModelError(f"unknown effect '{name}'; allowed: {allowed}{nearest_match(name, EFFECTS)}")
        if effect in numbers and (effect == name or not numbers[effect] or int(name[len(effect) :]) in numbers[effect]):
            raise ModelError(f"effect '{name}' is given twice; name each effect once")
        numbers.setdefault(effect, []).extend([] if effect == name else [_joint_number(robot, effect, name)])
    return tuple(numbers), MappingProxyType({effect: tuple(sorted(own)) for effect, own in numbers.items() if own})


def _joint_number(robot: Robot, effect: str, name: str) -> int:
    number, actuated = int(name[len(effect) :]), [body.number for body in robot.actuated]
    if number not in actuated or effect in ("inertia", "tilt"):
        raise ModelError(
            f"effect '{name}': {effect} of joint {number} alone is not possible; allowed are friction, drive inertia "
            f"and offsets of joints {', '.join(map(str, actuated))}"
        )
    return number


def _check_choice(what: str, got: str, allowed: tuple[str, ...]) -> None:
    if got not in allowed:
        raise ModelError(f"unknown {what} '{got}'; allowed: {', '.join(allowed)}{nearest_match(got, allowed)}")
