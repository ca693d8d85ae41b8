"""The simulated arm: its equations, its true parameters by name, and one step in closed loop as a symbolic function.

The plant is the model's own equations solved for accelerations: ``M(q) qdd + ... = tau``, friction, drive inertia,
springs and couplings from the same terms that identification uses. Torques are held between control instants; within a
step the state is integrated by the classical Runge-Kutta method of order four.

A held torque jumps at each control instant, which is when it is recorded. What counts there is the mean of the torques
just before and just after: the mean over the period around the instant, in time with the positions. The command alone,
which acts on average half a period later, would be early by that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import casadi as ca
import numpy as np

from ..effects import EFFECTS
from ..errors import SimulationError, SteelyardError, nearest_match
from ..lazy import recent
from ..model import Model, build_model
from ..model.torques import model_torques
from ..robot import INERTIAL_NAMES, Robot, moved_parameters, transform_from_placement
from .experiment import Experiment


def plant_model(robot: Robot, sign_width: float) -> Model:
    """Return the model with all effects that the robot has values of: the plant's equations."""
    families = {name.rstrip("0123456789") for name in robot.values}
    effects = [name for name, effect in EFFECTS.items() if families.intersection(effect.symbols)]
    return build_model(robot, ["inertia", *effects], measured="both", sign_width=sign_width)


def true_values(model: Model, payload: str | None = None) -> Mapping[str, float]:
    """Return the value of every standard parameter of the plant, the payload added to the link that carries it."""
    robot = model.robot
    if "inertias" not in robot.carries:
        without = [body.link for body in robot.bodies if body.inertia is None]
        raise SimulationError(
            f"robot '{robot.name}' cannot be simulated: no inertia of link '{without[0]}'; give one in its file"
        )
    known = robot.parameters
    values = {name: known.get(name, 0.0) for name in model.names}
    if payload is not None:
        for name, value in _payload_on_arm(robot, payload).items():
            values[name] += value
    return MappingProxyType(values)


def truth_by_name(model: Model, payload: str | None) -> Mapping[str, float]:
    """Return the true parameters as an identification names them: the arm alone, and the payload as ``XXL ... ML``."""
    ten = None if payload is None else model.robot.payloads[payload]
    return MappingProxyType({**true_values(model), **payload_values(ten)})


def payload_values(payload: Sequence[float] | None) -> dict[str, float]:
    """Return the ten parameters of a payload by name, ``XXL ... ML``; empty without one."""
    return {} if payload is None else {f"{s}L": value for s, value in zip(INERTIAL_NAMES, payload, strict=True)}


def payload_of(robot: Robot, name: str, error: type[SteelyardError] = SimulationError) -> tuple[float, ...]:
    """Return the ten parameters of a payload that the robot knows, in the frame of the link that carries it."""
    if name not in robot.payloads:
        known = ", ".join(robot.payloads) or "none"
        raise error(
            f"robot '{robot.name}' knows no payload '{name}'; it knows: {known}{nearest_match(name, robot.payloads)}"
        )
    return robot.payloads[name]


def _payload_on_arm(robot: Robot, payload: str) -> dict[str, float]:
    """Return what a payload adds to the parameters of the moving link that carries it, by name."""
    ten = np.array(payload_of(robot, payload))
    frame = robot.frame(robot.payload_link or robot.bodies[-1].link)
    moved = moved_parameters(ten, *transform_from_placement(frame.placement))
    names = [f"{symbol}{frame.body}" for symbol in INERTIAL_NAMES] if frame.body else []
    return dict(zip(names, moved.tolist(), strict=False))


@dataclass(frozen=True)
class StepLayout:
    """Layout of the step function's vectors.

    Attributes:
        joints: Number of actuated joints n.
        values: Number of plant parameters p.
        delay_steps: Control periods a command waits.
        memory: Number of states of friction.
        loads: Number of accelerations that give the load of the gears: n, or 0 if no friction depends on it.
        temperatures: Number of temperatures: n, or 0 if no friction depends on them.
    """

    joints: int
    values: int
    delay_steps: int
    memory: int
    loads: int
    temperatures: int = 0

    @property
    def states(self) -> int:
        """q, qd, held torque, disturbance, encoder position and velocity before, waiting commands (n each), and more.

        These are states of friction, accelerations of the step before where the gears' load counts, and a counter: that
        of the steps since the last control instant; below 0 nothing was held before.
        """
        return self.joints * (6 + self.delay_steps) + self.memory + self.loads + 1

    @property
    def inputs(self) -> int:
        """Reference q, qd, qdd and disturbance torque (n each), and temperatures less their reference."""
        return 4 * self.joints + self.temperatures

    @property
    def parameters(self) -> int:
        """Plant values (p,), those the controller believes (p,), kp, kd, effort limit, encoder quantum (n each)."""
        return 2 * self.values + 4 * self.joints


@dataclass(frozen=True)
class PlantEquations:
    """The plant's equations as functions of (q, qd, ..., values).

    ``history`` is what torques depend on besides: states of friction, accelerations that give the gears' load, and
    temperatures less their reference.
    """

    acceleration: ca.Function  # (q, qd, tau, values, history) -> qdd
    motor_side: ca.Function  # (q, qd, qdd, values, history) -> torque that a joint torque sensor does not measure
    motor_torque: ca.Function  # (q, qd, qdd, values) -> torque the motor needs after long motion in one direction
    torque: ca.Function  # (q, qd, qdd, values, history) -> torque the motor needs


@recent(4)
def plant_equations(model: Model) -> PlantEquations:
    """Return a model's equations solved for accelerations."""
    torques = model_torques(model)
    motion, values, steady = torques.motion, torques.values, torques.steady()
    history = torques.history
    tau = ca.SX.sym("tau", motion.q.shape[0])
    full = [motion.q, motion.qd, motion.qdd, values]
    return PlantEquations(
        ca.Function(
            "acceleration",
            [motion.q, motion.qd, tau, values, history],
            [ca.cse(ca.densify(torques.accelerations(tau)))],
        ),
        ca.Function("motor_side", [*full, history], [ca.densify(torques.sides["motor"])]),
        ca.Function("motor_torque", full, [ca.densify(steady.rigid + steady.others)]),
        ca.Function("torque", [*full, history], [ca.densify(torques.rigid + torques.others)]),
    )


def step_function(model: Model, experiment: Experiment, plant_rate: float) -> tuple[ca.Function, StepLayout]:
    """Return ``(state, input, parameters) -> (next state, output)`` of one plant step.

    The output is q, qd, qdd, motor torque and joint torque (n each) at the start of the step; where the torque jumps
    there, the last three are means of before and after.
    """
    equations = plant_equations(model)
    size = len(model.robot.actuated)
    memory = len(model.friction.dahl) * len(model.robot.friction_coordinates()) if model.has_memory else 0
    loads = size if any(EFFECTS[effect].needs_inertias for effect in model.effects) else 0
    warm = size if model.needs_temperature else 0
    layout = StepLayout(size, len(model.parameters), experiment.delay_steps, memory, loads, warm)
    state, given = ca.SX.sym("state", layout.states), ca.SX.sym("input", layout.inputs)
    parameters = ca.SX.sym("parameters", layout.parameters)
    values, believed = parameters[: layout.values], parameters[layout.values : 2 * layout.values]
    kp, kd, limit, quantum = ca.vertsplit(parameters[2 * layout.values :], size)
    first_memory = layout.states - 1 - memory - loads
    q, qd, held, disturbed, encoder, speed, *waiting = ca.vertsplit(state[:first_memory], size)
    past = _Past(
        model, q, state[first_memory : first_memory + memory], state[first_memory + memory : -1],
        given[4 * size :] if warm else ca.SX.zeros(size),
    )  # fmt: skip
    reference = ca.vertsplit(given[: 3 * size], size)
    disturbance = given[3 * size : 4 * size]
    is_control_instant = state[-1] <= 0
    encoder_now, speed_now = _measured(experiment, q, qd, encoder, speed, quantum)
    command = _command(experiment, equations, (encoder_now, speed_now), reference, (kp, kd, limit), believed)
    applied = command if not waiting else waiting[0]
    torque = ca.if_else(is_control_instant, applied, held)
    acceleration = past.acceleration(equations, torque + disturbance, values)
    qdd = acceleration(q, qd)
    q_next, qd_next = _runge_kutta(acceleration, q, qd, qdd, 1 / plant_rate)
    queue = [
        ca.if_else(is_control_instant, new, old) for old, new in zip(waiting, [*waiting[1:], command], strict=False)
    ]
    substeps = round(plant_rate / experiment.control_rate)
    passed = ca.fmax(state[-1], 0) + 1
    counter = ca.if_else(passed >= substeps, 0, passed)
    encoder_next = ca.if_else(is_control_instant, encoder_now, encoder)
    speed_next = ca.if_else(is_control_instant, speed_now, speed)
    past_next = [past.memory_at(q_next), qdd[:loads]]
    following = ca.vertcat(q_next, qd_next, torque, disturbance, encoder_next, speed_next, *queue, *past_next, counter)
    is_first = state[-1] < 0
    mean_torque = (torque + ca.if_else(is_first, torque, held)) / 2
    mean_disturbance = (disturbance + ca.if_else(is_first, disturbance, disturbed)) / 2
    mean_qdd = past.acceleration(equations, mean_torque + mean_disturbance, values)(q, qd)
    motor_side = equations.motor_side(q, qd, mean_qdd, values, past.history_at(q))
    joint_torque = mean_torque + mean_disturbance - motor_side
    output = ca.vertcat(q, qd, mean_qdd, mean_torque, joint_torque)
    shared = ca.cse(ca.densify(ca.vertcat(following, output)))
    step = ca.Function("step", [state, given, parameters], [shared[: layout.states], shared[layout.states :]])
    return step, layout


def _measured(
    experiment: Experiment, q: ca.SX, qd: ca.SX, encoder: ca.SX, speed: ca.SX, quantum: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """Return what the controller knows: quantised positions, and velocities of a tachometer or of the encoder."""
    step = ca.if_else(quantum > 0, quantum, 1.0)
    rounded = ca.if_else(quantum > 0, step * ca.floor(q / step + 0.5), q)
    if experiment.velocity == "tachometer":
        return rounded, qd
    pole = math.exp(-2 * math.pi / 10)  # a first-order low-pass at a tenth of the control rate
    return rounded, pole * speed + (1 - pole) * (rounded - encoder) * experiment.control_rate


def _command(
    experiment: Experiment,
    equations: PlantEquations,
    measured: tuple[ca.SX, ca.SX],
    reference: list[ca.SX],
    tuning: tuple[ca.SX, ca.SX, ca.SX],
    believed: ca.SX,
) -> ca.SX:
    (q, qd), (qr, qdr, qddr), (kp, kd, limit) = measured, reference, tuning
    correction = kp * (qr - q) + kd * (qdr - qd)
    # Friction is compensated for the wanted direction: the measured one would chatter at standstill.
    wanted = (q, qdr, qddr + correction, believed)
    command = correction if experiment.control == "pd" else equations.motor_torque(*wanted)
    return ca.fmax(-limit, ca.fmin(limit, command))


@dataclass(frozen=True)
class _Past:
    """What friction remembers at the start of a step.

    Attributes:
        model: The plant's model.
        q: Positions at the start (n,).
        memory: States of friction there (s,).
        qdd: Accelerations of the step before (n,); empty if no friction depends on the load.
        temperature: Temperatures less their reference (n,).
    """

    model: Model
    q: ca.SX
    memory: ca.SX
    qdd: ca.SX
    temperature: ca.SX

    def memory_at(self, q: ca.SX) -> ca.SX:
        """Return the states of friction after motion from the start to positions q, in one direction."""
        if not self.memory.shape[0]:
            return self.memory
        coordinates = self.model.robot.friction_coordinates()
        moved = ca.mtimes(ca.DM(coordinates), q - self.q)
        parts = zip(self.model.friction.dahl, ca.vertsplit(self.memory, len(coordinates)), strict=True)
        towards = ca.sign(moved)
        return ca.vertcat(*(towards + (z - towards) * ca.exp(-ca.fabs(moved) / length) for length, z in parts))

    def history_at(self, q: ca.SX) -> ca.SX:
        """Return the history as the plant's equations take it; what the plant does not depend on does not count."""
        count = len(self.model.friction.dahl) * len(self.model.robot.friction_coordinates())
        memory = self.memory_at(q) if self.memory.shape[0] else ca.SX.zeros(count)
        return ca.vertcat(memory, self.qdd if self.qdd.shape[0] else ca.SX.zeros(q.shape[0]), self.temperature)

    def acceleration(self, equations: PlantEquations, tau: ca.SX, values: ca.SX) -> Callable[[ca.SX, ca.SX], ca.SX]:
        """Return the accelerations under a held torque as a function of q and qd."""
        return lambda q, qd: equations.acceleration(q, qd, tau, values, self.history_at(q))


def _runge_kutta(
    acceleration: Callable[[ca.SX, ca.SX], ca.SX], q: ca.SX, qd: ca.SX, qdd: ca.SX, dt: float
) -> tuple[ca.SX, ca.SX]:
    """Advance q and qd by dt with the torque held; qdd is the acceleration at the start."""
    v2 = qd + dt / 2 * qdd
    a2 = acceleration(q + dt / 2 * qd, v2)
    v3 = qd + dt / 2 * a2
    a3 = acceleration(q + dt / 2 * v2, v3)
    v4 = qd + dt * a3
    a4 = acceleration(q + dt * v3, v4)
    return q + dt / 6 * (qd + 2 * v2 + 2 * v3 + v4), qd + dt / 6 * (qdd + 2 * a2 + 2 * a3 + a4)
