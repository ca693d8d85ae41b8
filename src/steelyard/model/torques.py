"""Torques of a model as expressions of motion and parameters: rigid bodies, other effects, and accelerations.

A model's regressor is for unknown parameters. Simulation and exported models need the same equations with values: the
torques of each side of the gears, and the accelerations that torques give.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import casadi as ca

from ..effects import SETUP_ERRORS, Side
from ..physics import forward_dynamics, inverse_dynamics
from .model import Model, drive_names
from .terms import MotionSymbols


@dataclass(frozen=True)
class ModelTorques:
    """Torques on the actuated joints (na,), in symbols.

    Attributes:
        model: The model; it has the effect ``inertia`` and no payload.
        motion: Symbols q, qd, qdd (na,).
        values: Symbols of the parameters (p,), in the order of ``model.names``.
        sides: Torques of all effects but the links' inertias, by the side of the gears they act on.
        elastic: The part of them that depends on positions alone: springs.
        inelastic: The rest of them: drive inertias, friction, offsets.
        memory: Symbols of the states of friction (s,).
        load_qdd: Symbols of the accelerations with which the load of the gears is computed (na,).
        temperature: Symbols of the temperatures less their reference (na,).
    """

    model: Model
    motion: MotionSymbols
    values: ca.SX
    sides: dict[Side, ca.SX]
    elastic: ca.SX
    inelastic: ca.SX
    memory: ca.SX
    load_qdd: ca.SX
    temperature: ca.SX

    @property
    def history(self) -> ca.SX:
        """What torques depend on besides the motion: states of friction, accelerations of the load, temperatures."""
        return ca.vertcat(self.memory, self.load_qdd, self.temperature)

    def steady(self) -> ModelTorques:
        """Return the torques where friction has no state: as after long motion in one direction, under static load.

        Temperatures are those of the reference.
        """
        motion, given = self.motion, self.history
        coordinates = ca.DM(self.model.robot.friction_coordinates())
        turned = motion.sign(ca.mtimes(coordinates, motion.qd))
        turned = ca.repmat(turned, self.memory.shape[0] // turned.shape[0], 1)
        place = ca.vertcat(turned, ca.SX.zeros(given.shape[0] - turned.shape[0]))
        sides = {side: ca.substitute(torque, given, place) for side, torque in self.sides.items()}
        elastic, inelastic = (ca.substitute(torque, given, place) for torque in (self.elastic, self.inelastic))
        return replace(self, sides=sides, elastic=elastic, inelastic=inelastic)

    @property
    def inertias(self) -> ca.SX:
        """Ten parameters a body (10 nb,), the first of the values."""
        return self.values[: 10 * len(self.model.robot.bodies)]

    @property
    def rigid(self) -> ca.SX:
        """Torques of the rigid bodies."""
        return inverse_dynamics(self.model.robot, self.motion.q, self.motion.qd, self.motion.qdd, self.inertias)

    @property
    def others(self) -> ca.SX:
        """Torques of all other effects."""
        return self.sides["motor"] + self.sides["link"]

    @property
    def drive_inertia(self) -> ca.SX:
        """What the other effects add to the inertia matrix (na, na), sparse."""
        return ca.jacobian(self.others, self.motion.qdd)

    @property
    def others_at_rest(self) -> ca.SX:
        """Torques of the other effects without acceleration."""
        return self._without_acceleration(self.others)

    @property
    def friction(self) -> ca.SX:
        """Torques of friction and offsets: all other effects without springs and acceleration."""
        return self._without_acceleration(self.inelastic)

    def _without_acceleration(self, torque: ca.SX) -> ca.SX:
        return ca.substitute(torque, self.motion.qdd, ca.SX.zeros(self.motion.qdd.shape[0]))

    def accelerations(self, tau: ca.SX) -> ca.SX:
        """Return the accelerations (na,) that torques (na,) give."""
        drive = self.drive_inertia
        is_diagonal = all(row == column for row, column in zip(*drive.sparsity().get_triplet(), strict=True))
        return forward_dynamics(
            self.model.robot, self.motion.q, self.motion.qd, tau - self.others_at_rest, self.inertias,
            ca.diag(drive) if is_diagonal else ca.densify(drive),
        )  # fmt: skip


def model_torques(model: Model, sides: Collection[Side] = ("motor", "link")) -> ModelTorques:
    """Return the torques of a model that has the effect ``inertia`` and no payload.

    Errors of the set-up, such as gains of torque sensors, are no torques of the arm and are left out.

    Args:
        model: The model.
        sides: Sides of the gears whose effects count; ``("link",)`` gives what a joint torque sensor measures.
    """
    size = model.motion.q.shape[0]
    values, load_qdd = ca.SX.sym("values", len(model.parameters)), ca.SX.sym("load_qdd", size)
    inertias = values[: 10 * len(model.robot.bodies)]
    drives, coupled = (
        ca.vertcat(*(values[model.names.index(name)] if name in model.names else ca.SX(0) for name in names))
        for names in drive_names(model.robot)
    )
    motion = replace(model.motion, inertias=inertias, drives=drives, coupled_drives=coupled, load_qdd=load_qdd)
    memory, temperature = (ca.SX(0, 1) if one is None else one for one in (motion.memory, motion.temperature))
    torques: dict[Side, ca.SX] = {"motor": ca.SX(size, 1), "link": ca.SX(size, 1)}
    elastic, inelastic = ca.SX(size, 1), ca.SX(size, 1)
    first = 0
    for term in model.terms_in(motion):
        count, parameter = len(term.parameters), term.parameters[0]
        if parameter.effect not in ("inertia", *SETUP_ERRORS) and parameter.side in sides:
            torque = ca.mtimes(term.columns, values[first : first + count])
            torques[parameter.side] += torque
            if _is_elastic(term.columns, motion):
                elastic += torque
            else:
                inelastic += torque
        first += count
    return ModelTorques(model, motion, values, torques, elastic, inelastic, memory, load_qdd, temperature)


def _is_elastic(columns: ca.SX, motion: MotionSymbols) -> bool:
    moving = ca.depends_on(columns, ca.vertcat(motion.qd, motion.qdd))
    return ca.depends_on(columns, motion.q) and not moving
