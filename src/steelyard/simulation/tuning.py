"""Resolved settings of a closed loop: controller gains, and an integrator fast enough for the friction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from ..effects import EFFECTS
from ..errors import SimulationError
from ..lazy import recent
from ..model import Model, Parameter
from ..robot import Robot, transform_from_placement
from .experiment import Experiment
from .plant import plant_equations, plant_model, true_values

# Runge-Kutta of order four is stable up to 2.78 on the real axis; at 1 its error is still small.
_LARGEST_DECAY = 1.0
STABILITY_LIMIT = 2.5
"""Friction's decay over the integrator's rate, beyond which a step is refused."""
_FASTEST_PLANT = 200_000.0
_NARROWEST_SIGN = 1e-3
# Effort where a joint has no limit; finite, so that no product with zero can become NaN.
_UNLIMITED = 1e300


@dataclass(frozen=True)
class ClosedLoop:
    """An arm under control with all settings resolved: what a plant needs to run.

    Attributes:
        model: The plant's equations.
        truth: Its parameters by name.
        experiment: Controller, rates, disturbance.
        reference: q, qd, qdd at the control instants (3 n, K).
        plant_rate: Rate of the integrator [Hz].
        kp: Position gains (n,).
        kd: Velocity gains (n,).
        effort: Effort limits (n,).
        quantum: Encoder steps (n,), 0 for none.
    """

    model: Model
    truth: Mapping[str, float]
    experiment: Experiment
    reference: np.ndarray
    plant_rate: float
    kp: np.ndarray
    kd: np.ndarray
    effort: np.ndarray
    quantum: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """The plant's parameters in the model's order (p,)."""
        return np.array([self.truth[name] for name in self.model.names])

    @property
    def tuning(self) -> np.ndarray:
        """Gains, effort limits and encoder steps in the order of the step function (4 n,)."""
        return np.concatenate([self.kp, self.kd, self.effort, self.quantum])

    @property
    def substeps(self) -> int:
        """Steps of the integrator in a control period."""
        return round(self.plant_rate / self.experiment.control_rate)


def closed_loop(robot: Robot, experiment: Experiment, reference: np.ndarray) -> ClosedLoop:
    """Resolve the closed loop of an arm with its own parameters, for a motion (3 n, K) of q, qd, qdd."""
    model = plant_model(robot, sign_width=1.0)
    truth = true_values(model, experiment.payload)
    posture = reference[: len(robot.actuated)].mean(axis=1)
    inertia = np.array(inertia_function(model)(posture, np.array([truth[name] for name in model.names])))
    return resolved_loop(model, truth, experiment, reference, inertia)


def resolved_loop(
    model: Model, truth: Mapping[str, float], experiment: Experiment, reference: np.ndarray, inertia: np.ndarray
) -> ClosedLoop:
    """Resolve the closed loop of a model with these parameters, for a motion (3 n, K) of q, qd, qdd.

    Args:
        model: The plant; its sign's width is replaced by that of the experiment, or one the integrator can follow.
        truth: Its parameters by name.
        experiment: Controller and rates.
        reference: The motion.
        inertia: Inertia matrix with drives (n, n) in the middle of it.
    """
    robot, values = model.robot, np.array([truth[name] for name in model.names])
    size = len(robot.actuated)
    plant_rate, sign_width = _resolved_friction(experiment, robot, friction_decays(model, values, inertia))
    experiment = replace(experiment, plant_rate=plant_rate, sign_width=sign_width)
    kp, kd = controller_gains(experiment, inertia)
    limits = np.array([body.joint.limits.effort for body in robot.actuated])
    effort = np.where(np.isfinite(limits) & experiment.saturate, limits, _UNLIMITED)
    quantum = _encoder_quanta(experiment, size)
    smooth = replace(model, sign_width=sign_width)
    return ClosedLoop(smooth, truth, experiment, reference, plant_rate, kp, kd, effort, quantum)


def _encoder_quanta(experiment: Experiment, size: int) -> np.ndarray:
    quantum = np.asarray(experiment.encoder_quantum, dtype=float)
    if quantum.shape not in ((), (size,)) or not (np.isfinite(quantum) & (quantum >= 0)).all():
        raise SimulationError(
            f"encoder_quantum {experiment.encoder_quantum}: one number, or {size} of them, 0 or more are needed"
        )
    return np.broadcast_to(quantum, (size,))


@recent(4)
def inertia_function(model: Model) -> ca.Function:
    """Return ``(q, values) -> M`` (n, n), the inertia matrix with drives of a model."""
    motion, values = model.motion, ca.SX.sym("values", len(model.parameters))
    torque = plant_equations(model).motor_torque(motion.q, motion.qd, motion.qdd, values)
    slope = ca.substitute(ca.jacobian(torque, motion.qdd), motion.qd, ca.SX.zeros(*motion.qd.shape))
    return ca.Function("inertia", [motion.q, values], [ca.densify(slope)])


def controller_gains(experiment: Experiment, inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return kp and kd (n,): those given, or those of a critically damped loop of the wanted bandwidth."""
    size = len(inertia)
    if experiment.kp is not None and experiment.kd is not None:
        for what, gains in (("kp", experiment.kp), ("kd", experiment.kd)):
            if len(gains) != size or not all(math.isfinite(gain) for gain in gains):
                raise SimulationError(f"{what} {list(gains)}: {size} finite numbers are needed, one a joint")
        return np.array(experiment.kp), np.array(experiment.kd)
    omega = 2 * math.pi * experiment.bandwidth
    # The inertia of a joint when the others are free: with more, coupled joints would drive each other unstable.
    load = 1 / np.diag(np.linalg.inv(inertia)) if experiment.control == "pd" else np.ones(size)
    return load * omega**2, 2 * load * omega


def _resolved_friction(
    experiment: Experiment, robot: Robot, decays: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float]:
    """Return the integrator's rate [Hz] and the width of the smooth sign: those requested, or stable ones.

    Friction slows a joint with the rate (Fv + Fc / width) over its free inertia; the integrator must follow.
    """
    viscous, dry = decays
    rate = experiment.plant_rate or 10 * experiment.control_rate
    if experiment.sign_width is None:
        room = np.maximum(_LARGEST_DECAY * rate - viscous, 0.1 * rate)
        return rate, max(_NARROWEST_SIGN, float((dry / room).max()))
    width = experiment.sign_width
    decay = viscous + dry / width
    joint = robot.actuated[int(np.argmax(decay))].joint.name
    if experiment.plant_rate is None:
        rate = experiment.control_rate * math.ceil(max(rate, decay.max() / _LARGEST_DECAY) / experiment.control_rate)
    if decay.max() / rate > STABILITY_LIMIT or rate > max(_FASTEST_PLANT, 10 * experiment.control_rate):
        raise SimulationError(
            f"friction of {joint} with sign_width {width:g} needs a plant_rate of {decay.max() / STABILITY_LIMIT:.0f} "
            f"Hz or more, got {experiment.plant_rate or rate:g} Hz; raise it, or give a wider sign"
        )
    return rate, width


_TOP_SPEED = 5.0
"""Of joints without a velocity limit [rad/s or m/s]."""


def friction_decays(model: Model, values: np.ndarray, inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return viscous friction [1/s] and friction that steps at rest [rad/s^2] over the free inertia of joints (n,).

    Curved friction counts with its slope at top speed, Dahl's as the spring that it is after a reversal, and friction
    in proportion to the load with the largest weight that the links can be. Such friction of a coupled motor acts
    on the inertia that is free along the motor's own coordinate.
    """
    inverse, coupling = np.linalg.inv(inertia), model.robot.motor_coupling()
    free = np.diag(inverse)
    of_motors = np.diag(coupling @ inverse @ coupling.T) / free
    rows = {body.number: row for row, body in enumerate(model.robot.actuated)}
    viscous, dry, stiff = np.zeros((3, len(rows)))
    for parameter, value in zip(model.parameters, np.abs(values), strict=True):
        if parameter.effect not in EFFECTS:
            continue
        effect, row = EFFECTS[parameter.effect], rows.get(parameter.number, 0)
        if effect.is_of_coupled_motors and parameter.friction == "part":
            value = value * of_motors[row]
        if parameter.friction == "viscous":
            viscous[row] += value
        elif effect.law == "quadratic":
            speed = model.robot.bodies[parameter.number - 1].joint.limits.velocity
            viscous[row] += 2 * value * (speed if math.isfinite(speed) else _TOP_SPEED)
        elif effect.law == "load":
            dry[row] += value * _largest_weight(model, values)
        elif effect.law == "dahl":
            stiff[row] += value / model.friction.dahl[effect.element]
        elif effect.law == "ripple":
            stiff[row] += value * _periods(model, parameter)
        elif parameter.friction == "dry" or effect.law in _STEPS_AT_REST:
            dry[row] += value
    return viscous * free + np.sqrt(stiff * free), dry * free


def _periods(model: Model, parameter: Parameter) -> float:
    """Return how many radians of ripple there are in one of the joint."""
    ratio = model.robot.bodies[parameter.number - 1].joint.gear_ratio or 1.0
    order = model.friction.ripple[EFFECTS[parameter.effect].element]
    return order * abs(ratio if model.friction.ripple_of == "motor" else 1.0)


_STEPS_AT_REST = ("stribeck", "square_root", "third_root")


def _largest_weight(model: Model, values: np.ndarray) -> float:
    """Return the torque of gravity on all links with the arm stretched out, which no joint exceeds [N m]."""
    known = dict(zip(model.names, values.tolist(), strict=True))
    reach, weight = 0.0, 0.0
    for body in model.robot.bodies:
        reach += float(np.linalg.norm(transform_from_placement(body.placement)[1]))
        mass, *moment = (abs(known.get(f"{symbol}{body.number}", 0.0)) for symbol in ("M", "MX", "MY", "MZ"))
        weight += mass * reach + float(np.linalg.norm(moment))
    return weight * float(np.linalg.norm(model.robot.gravity))
