"""A model: which effects are unknown and which torques are measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import casadi as ca

from ..effects import EFFECTS, other_side
from ..errors import ModelError, nearest_match
from ..physics import motion_symbols
from ..robot import AnyRobot, Robot, load_robot
from ..text import short_repr
from .terms import MotionSymbols, Term, payload, payload_link
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
        measured: ``motor`` (P5's A), ``joint`` (B), ``both`` stacked (C) or their ``difference`` (D).
        payload: ``none``; ``loaded``: one data set, with payload; ``paired``: without and with.
        sign_width: Width of the smooth sign in friction [rad/s or m/s]; 0 for the exact sign, sign(0) = 0.

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

    @property
    def payload_link(self) -> str:
        """The link the payload is fixed to; its ten parameters are in that link's frame."""
        return payload_link(self.robot)

    @cached_property
    def motion(self) -> MotionSymbols:
        """The symbols q, qd, qdd in which the terms' columns are written."""
        return MotionSymbols(*motion_symbols(self.robot), self.sign_width)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The effects with their parameters and columns, in order; the payload last."""
        return self.terms_in(self.motion)

    def terms_in(self, motion: MotionSymbols) -> tuple[Term, ...]:
        """Return the same terms, in other symbols."""
        terms = [EFFECTS[effect].term(self.robot, motion) for effect in self.effects]
        if self.payload != "none":
            terms.append(payload(self.robot, motion))
        return tuple(terms)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every standard parameter, in column order; the payload's last."""
        return tuple(parameter for term in self.terms for parameter in term.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the standard parameters, in column order."""
        return tuple(parameter.name for parameter in self.parameters)

    def identified_robot(self, values: Mapping[str, float]) -> Robot:
        """Return the arm with identified values of the model's standard parameters; a payload's are left out.

        Values of the robot file for effects that the model lacks, and on which the measured torques depend, become 0:
        the identified parameters have absorbed what they stand for, and they would count twice.
        """
        sides = {side for kind in self.kinds for side in _SIDES[kind]}
        absorbed = {
            symbol for name, effect in EFFECTS.items()
            if name not in self.effects and name != "inertia" and effect.side in sides for symbol in effect.symbols
        }  # fmt: skip
        zeros = {name: 0.0 for name in self.robot.values if name.rstrip("0123456789") in absorbed}
        return self.robot.with_parameters({**zeros, **{k: v for k, v in values.items() if not k.endswith("L")}})

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
        """The function ``(q, qd, qdd) -> W`` (rows, parameters), with the payload's columns where there is one."""
        return self._regressor_function(loaded=True)

    @cached_property
    def unloaded_regressor(self) -> ca.Function:
        """The same function for rows recorded without payload: its columns are zero."""
        return self._regressor_function(loaded=False)

    def _regressor_function(self, *, loaded: bool) -> ca.Function:
        motion, matrix = self.motion, ca.cse(self.regressor_of(self.terms, loaded=loaded))
        return ca.Function("regressor", [motion.q, motion.qd, motion.qdd], [matrix], ["q", "qd", "qdd"], ["W"])

    def regressor_of(self, terms: Iterable[Term], *, loaded: bool) -> ca.SX:
        """Return W (rows, parameters) as an expression of the symbols that the terms are written in."""
        blocks: dict[str, list[ca.SX]] = {kind: [] for kind in self.kinds}
        for term in terms:
            first = term.parameters[0]
            for kind, row in blocks.items():
                nonzero = first.side in _SIDES[kind] and (loaded or first.effect != "payload")
                row.append(term.columns if nonzero else ca.SX(*term.columns.shape))
        return ca.sparsify(ca.vertcat(*(ca.horzcat(*row) for row in blocks.values())))


def build_model(
    robot: AnyRobot,
    effects: Iterable[str] | None = None,
    measured: str | None = None,
    payload: str = "none",
    sign_width: float = 0.0,
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
    chosen = _default_effects(robot, measured) if effects is None else tuple(effects)
    _check_effects(chosen)
    _check_choice("payload", payload, PAYLOADS)
    if not (math.isfinite(sign_width) and sign_width >= 0):
        raise ModelError(f"sign width {sign_width}: give 0 for the exact sign, or a positive velocity")
    if payload != "none" and "inertia" not in chosen:
        raise ModelError("a payload is an inertia: add 'inertia' to the effects, or choose payload 'none'")
    in_order = tuple(effect for effect in EFFECTS if effect in chosen)
    return Model(robot, in_order, measured, payload, float(sign_width))  # type: ignore[arg-type]  # checked above


def _default_effects(robot: Robot, measured: str) -> tuple[str, ...]:
    """Return the robot's default effects on the sides of the gears that the measured torques depend on.

    Where the robot's own are all on one side of the gears and other torques are measured, friction is put on the side
    that these depend on, with the offset of a joint torque sensor or the inertia of the drives. Couplings and springs
    of locked joints are left out.
    """
    present = {"coupling": bool(robot.gear_couplings), "spring": bool(robot.springs)}
    own = tuple(effect for effect in robot.defaults.effects if present.get(effect, True))
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


def _check_effects(effects: tuple[str, ...]) -> None:
    if not effects:
        raise ModelError(f"no effects given; choose from {', '.join(EFFECTS)}")
    for effect in effects:
        if effect not in EFFECTS:
            raise ModelError(
                f"unknown effect '{effect}'; allowed: {', '.join(EFFECTS)}{nearest_match(effect, EFFECTS)}"
            )
    repeated = sorted({effect for effect in effects if effects.count(effect) > 1})
    if repeated:
        raise ModelError(f"effect '{repeated[0]}' is given twice; name each effect once")


def _check_choice(what: str, got: str, allowed: tuple[str, ...]) -> None:
    if got not in allowed:
        raise ModelError(f"unknown {what} '{got}'; allowed: {', '.join(allowed)}{nearest_match(got, allowed)}")
