"""The functions of an identified arm that generated code computes: torques, their parts, and accelerations.

``tau = M(q) qdd + coriolis(q, qd) + gravity(q) + friction(q, qd)``. The inertia matrix holds drive inertias and the
inertia of coupled motors, gravity holds springs, balancers and torque ripple, friction all other effects: viscous,
Coulomb, by direction, offsets, coupled motors. Parameters are inputs of every function; generated code holds the
identified values beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Literal

import casadi as ca
import numpy as np

from ..effects import EFFECTS, SETUP_ERRORS, Side
from ..errors import ExportError, nearest_match
from ..model import Model, Parameter
from ..model.torques import ModelTorques, model_torques
from ..physics import composite_inertia_matrix, gravity_torques, velocity_torques
from ..robot import Body
from .identified import IdentifiedArm, refuse_unknown_inertias

TorqueSide = Literal["motor", "joint"]
"""``motor``: all effects; ``joint``: what a joint torque sensor measures, without effects on the motor side."""

_SIDES: dict[str, tuple[Side, ...]] = {"motor": ("motor", "link"), "joint": ("link",)}


@dataclass(frozen=True)
class Signature:
    """A function of the arm as every generated format names it.

    Attributes:
        name: Its name.
        inputs: Names of its inputs, each a vector with one entry a joint, without the parameters.
        output: Name of its output.
        is_matrix: Whether the output is a matrix (joints, joints) instead of a vector.
        summary: What it computes.
        expression: Makes its expression; called with the torques and the symbols of the torques that act.
    """

    name: str
    inputs: tuple[str, ...]
    output: str
    is_matrix: bool
    summary: str
    expression: Callable[[ModelTorques, ca.SX], ca.SX]


def _gravity(torques: ModelTorques, _: ca.SX) -> ca.SX:
    return gravity_torques(torques.model.robot, torques.motion.q, torques.inertias) + torques.elastic


def _inertia_matrix(torques: ModelTorques, _: ca.SX) -> ca.SX:
    matrix = composite_inertia_matrix(torques.model.robot, torques.motion.q, torques.inertias)
    return matrix + torques.drive_inertia


def _coriolis(torques: ModelTorques, _: ca.SX) -> ca.SX:
    return velocity_torques(torques.model.robot, torques.motion.q, torques.motion.qd, torques.inertias)


SIGNATURES: tuple[Signature, ...] = (
    Signature(
        "inverse_dynamics", ("q", "qd", "qdd"), "tau", False,
        "Torques of a motion: inertia_matrix * qdd + coriolis + gravity + friction.",
        lambda torques, _: torques.rigid + torques.others,
    ),
    Signature("gravity", ("q",), "tau", False, "Torques that hold the arm still: weight and springs.", _gravity),
    Signature(
        "inertia_matrix", ("q",), "M", True, "Symmetric inertia matrix, drive inertias included.", _inertia_matrix
    ),
    Signature("coriolis", ("q", "qd"), "tau", False, "Coriolis and centrifugal torques C(q, qd) qd.", _coriolis),
    Signature(
        "friction", ("q", "qd"), "tau", False,
        "Friction torques and offsets: all effects but inertias, weight and springs.",
        lambda torques, _: torques.friction,
    ),
    Signature(
        "forward_dynamics", ("q", "qd", "tau"), "qdd", False, "Accelerations that torques give, friction included.",
        lambda torques, tau: torques.accelerations(tau),
    ),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ArmDynamics:
    """The functions of an arm with its parameters as inputs.

    Attributes:
        arm: The identified arm.
        side: Which torques are meant.
        torques: Expressions of the model.
        parameters: The parameters that these torques depend on, in the order of the vector ``parameters``.
        values: Their identified values (p,).
        notes: What is not part of the functions.
    """

    arm: IdentifiedArm
    side: TorqueSide
    torques: ModelTorques
    parameters: tuple[Parameter, ...]
    values: np.ndarray
    notes: tuple[str, ...]

    @property
    def joints(self) -> tuple[Body, ...]:
        """The actuated joints, in the order of every vector."""
        return self.arm.robot.actuated

    @cached_property
    def functions(self) -> dict[str, ca.Function]:
        """Each function by name, its inputs those of the signature and then ``parameters``; outputs are dense."""
        names = self.torques.model.names
        used = ca.SX.sym("parameters", len(self.parameters))
        row_of = {parameter.name: row for row, parameter in enumerate(self.parameters)}
        values = ca.vertcat(*(used[row_of[name]] if name in row_of else ca.SX(0) for name in names))
        motion, tau = self.torques.motion, ca.SX.sym("tau", len(self.joints))
        symbols = {"q": motion.q, "qd": motion.qd, "qdd": motion.qdd, "tau": tau}
        functions = {}
        for one in SIGNATURES:
            output = ca.substitute(ca.densify(one.expression(self.torques, tau)), self.torques.values, values)
            inputs = [*(symbols[name] for name in one.inputs), used]
            functions[one.name] = ca.Function(
                one.name, inputs, [ca.cse(output)], [*one.inputs, "parameters"], [one.output]
            )
        return functions


def arm_dynamics(arm: IdentifiedArm, side: TorqueSide = "motor") -> ArmDynamics:
    """Return the functions of an identified arm.

    Args:
        arm: The arm; a payload of its model is left out.
        side: ``motor`` for the torques of the motors, ``joint`` for those of joint torque sensors.

    Raises:
        ExportError: If a link's inertia is unknown, a value is not finite, or the side is unknown.
    """
    if side not in _SIDES:
        raise ExportError(f"torque side '{side}'; allowed: motor, joint{nearest_match(side, _SIDES)}")
    refuse_unknown_inertias(arm.robot)
    # Balancers whose scale was known are not among the identified effects, but they are part of the arm.
    chosen = {"inertia", *arm.model.effects, *(["balancer"] if arm.robot.balancers else [])}
    effects = tuple(name for name in EFFECTS if name in chosen and name not in SETUP_ERRORS)
    joints_of = {name: numbers for name, numbers in arm.model.joints_of.items() if name != "balancer"}
    model = replace(arm.model, robot=arm.robot, effects=effects, payload="none", joints_of=joints_of)
    parameters = tuple(one for one in model.parameters if one.side in _SIDES[side])
    known = arm.robot.parameters
    values = np.array([known.get(one.name, 0.0) for one in parameters])
    for one, value in zip(parameters, values, strict=True):
        if not isfinite(value):
            raise ExportError(f"parameter {one.name} is {value}; a model needs finite values, identify it again")
    torques = model_torques(model, _SIDES[side]).steady()
    if ca.depends_on(torques.drive_inertia, torques.motion.qdd):
        raise ExportError(
            "an effect is not linear in the accelerations: accelerations cannot be solved for; leave it out"
        )
    return ArmDynamics(arm, side, torques, parameters, values, _notes(arm, model, parameters))


def _notes(arm: IdentifiedArm, model: Model, parameters: tuple[Parameter, ...]) -> tuple[str, ...]:
    known, included = arm.robot.parameters, {one.name for one in parameters}
    notes = []
    if arm.model.payload != "none":
        notes.append("the payload is not included: add its ten parameters to those of the link that carries it")
    if model.has_memory:
        notes.append("Dahl friction is that after long motion in one direction: Coulomb friction")
    if model.needs_temperature:
        notes.append(f"friction is that at {model.friction.temperature:g} deg C, the reference temperature")
    if any(EFFECTS[effect].is_load_dependent for effect in model.effects):
        notes.append("friction in proportion to the load is computed with the load without accelerations")
    setup = [one.name for one in arm.model.parameters if one.effect in SETUP_ERRORS and one.effect != "tilt"]
    if setup:
        notes.append(f"errors of gains and zeros are no part of the arm: {_listed(setup)}")
    across = [one.name for one in arm.model.parameters if one.symbol in ("gc", "gs")]
    if across:
        notes.append(f"a tilted base turns joints along gravity by the moments written here, not by {_listed(across)}")
    missing = [one.name for one in parameters if one.name not in known]
    if missing:
        notes.append(f"no value is known of {_listed(missing)}: taken as 0")
    on_motor = [one.name for one in model.parameters if one.name not in included]
    if on_motor:
        notes.append(f"joint torques: effects on the motor side are left out ({_listed(on_motor)})")
    symbols = {symbol for effect in EFFECTS.values() for symbol in effect.symbols}
    outside = [
        name for name, value in arm.robot.values.items()
        if name not in model.names and name.rstrip("0123456789") in symbols and value
    ]  # fmt: skip
    if outside:
        notes.append(f"values of the robot that are not part of the identified model are left out: {_listed(outside)}")
    return tuple(notes)


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:6])} and {len(names) - 6} more"
