"""Gear coupling: a motor that turns with a second joint adds columns to both (the TX40's wrist).

Motor j turns with ``q_j + c q_i``. Its inertia and friction act on joint j and, times c, on joint i. What falls on a
joint's own velocity and acceleration is already counted in Ia and Fv of that joint, so the extra columns hold the
cross terms, and the Coulomb term of the motor's own direction of turning. Curved, Stribeck's, Dahl's and load-dependent
friction of the motor are columns of their own, in the coordinate of the motor.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from ...effects import Effect
from ...errors import ModelError
from ...robot import Robot
from .friction import CURVED_UNITS, curved, dahl_states
from .term import MotionSymbols, Term, joint_parameter, link_torques

_UNITS = {"Iac": ("kg m^2", "kg"), "Fvc": ("N m s/rad", "N s/m", "viscous"), "Fcc": ("N m", "N", "dry")}


def coupling(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return Iac, Fvc and Fcc for every motor that turns with more than one joint."""
    parameters, columns = [], []
    for own, other, ratio in _coupled(effect, robot):
        turning = motion.sign(motion.qd[own] + ratio * motion.qd[other])
        entries = {
            "Iac": (ratio * motion.qdd[other], ratio * motion.qdd[own]),
            "Fvc": (ratio * motion.qd[other], ratio * motion.qd[own]),
            "Fcc": (turning, ratio * turning),
        }
        for symbol, (on_own, on_other) in entries.items():
            column = ca.SX(motion.q.shape[0], 1)
            column[own], column[other] = on_own, on_other
            parameters.append(joint_parameter(robot.actuated[own], symbol, effect, *_UNITS[symbol]))
            columns.append(column)
    return Term(tuple(parameters), ca.horzcat(*columns))


def quadratic(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``C^T Fvv v |v|`` of every such motor, v its velocity ``C qd``."""
    return _curved_term(effect, robot, motion)


def square_root(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``C^T Fvr sqrt(|v|) sign(v)``."""
    return _curved_term(effect, robot, motion)


def third_root(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``C^T Fvt |v|^(1/3) sign(v)``."""
    return _curved_term(effect, robot, motion)


def stribeck(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``C^T Fs exp(-(v / v_s)^2) sign(v)``."""
    return _curved_term(effect, robot, motion)


def _curved_term(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    element = effect.element if effect.law == "stribeck" else 0
    torques = [curved(effect.law, velocity, motion, element) for velocity in _velocities(effect, robot, motion)]
    return _motor_term(effect, robot, torques, CURVED_UNITS[effect.law])


def dahl(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return Dahl friction of every such motor: ``C^T Fd z``, z the state over the motor's coordinate ``C q``."""
    count = len(_coupled(effect, robot))
    states = dahl_states(effect, motion)[-count:]
    return _motor_term(effect, robot, ca.vertsplit(states), ("N m", "N"))


def load(effect: Effect, robot: Robot, motion: MotionSymbols) -> Term:
    """Return ``C^T Fg |tau_m| sign(C qd)`` of every such motor, tau_m being the torque that this motor carries.

    Torques of joints are ``C^T tau_m``, so that ``tau_m = C^-T tau``: joint j loads motor j alone, and motor i carries
    what is left of its joint's torque, ``tau_i - c tau_j``. The joint torques are those of the links and of the
    drives' inertia, with the cross terms Iac of coupled motors.
    """
    coupled, on_joints = _coupled(effect, robot), link_torques(effect, robot, motion)
    qdd = motion.qdd if motion.load_qdd is None else motion.load_qdd
    inertias = ca.SX.zeros(len(coupled)) if motion.coupled_drives is None else ca.SX(motion.coupled_drives)
    for k, (own, other, ratio) in enumerate(coupled):
        on_joints[own] += ratio * inertias[k] * qdd[other]
        on_joints[other] += ratio * inertias[k] * qdd[own]
    on_motors = ca.mtimes(ca.DM(np.linalg.inv(robot.motor_coupling()).T), on_joints)
    velocities = _velocities(effect, robot, motion)
    torques = [
        ca.fabs(on_motors[own]) * motion.sign(velocity)
        for (own, _, _), velocity in zip(coupled, velocities, strict=True)
    ]
    return _motor_term(effect, robot, torques, ("1", "1"))


def _velocities(effect: Effect, robot: Robot, motion: MotionSymbols) -> list[ca.SX]:
    return [motion.qd[own] + ratio * motion.qd[other] for own, other, ratio in _coupled(effect, robot)]


def _motor_term(effect: Effect, robot: Robot, torques: list[ca.SX], units: tuple[str, str]) -> Term:
    """Return a part of friction of every coupled motor from its torque per unit: on its own joint and on the other."""
    parameters, columns = [], []
    for (own, other, ratio), torque in zip(_coupled(effect, robot), torques, strict=True):
        column = ca.SX(len(robot.actuated), 1)
        column[own], column[other] = torque, ratio * torque
        parameters.append(joint_parameter(robot.actuated[own], effect.symbols[0], effect, *units, "part"))
        columns.append(column)
    return Term(tuple(parameters), ca.horzcat(*columns))


def _coupled(effect: Effect, robot: Robot) -> list[tuple[int, int, float]]:
    """Return for every coupled motor the rows of its own joint and of the other, and the ratio."""
    if not robot.gear_couplings:
        raise ModelError(
            f"effect '{effect.name}': robot '{robot.name}' has no coupled motors; "
            "declare them under [[gear_coupling]] in its file, or leave the effect out"
        )
    row_of = {body.joint.name: row for row, body in enumerate(robot.actuated)}
    return [(row_of[one.motor], row_of[one.also_turns_with], one.ratio) for one in robot.gear_couplings]
