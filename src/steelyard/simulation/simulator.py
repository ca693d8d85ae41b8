"""Simulated experiments: a trajectory on an arm in closed loop, and the recording that a logger would have written.

The ideal plant follows its trajectory exactly: torques come from inverse dynamics and nothing is integrated (P4).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType, NoneType

import casadi as ca
import numpy as np

from ..errors import SimulationError, require_type
from ..kernel import BatchFunction, compile_batch
from ..lazy import recent
from ..model import Model
from ..motion import Trajectory, load_trajectory
from ..progress import Progress, part_of, silent
from ..recording import Recording, TorqueChannel
from ..robot import AnyRobot, Robot, load_robot
from ..signals import DahlElements
from ..text import short_repr
from .compiled_plant import CompiledPlant, run_together, warmth_of
from .experiment import Experiment, noise_of_seed, quantised, temperatures
from .mujoco_plant import MujocoPlant
from .plant import plant_equations, plant_model, true_values, truth_by_name
from .tuning import closed_loop


def ideal_outputs(
    model: Model, values: np.ndarray, experiment: Experiment, reference: np.ndarray, seeds: tuple[int, ...]
) -> np.ndarray:
    """Return q, qd, qdd, motor torque, joint torque of every seed at the recording's instants (S, 5 n, N).

    The motor gives ``tau = M(q) qdd + ... - d``: what the motion needs, less what the disturbance d already gives.

    Args:
        model: The plant's equations.
        values: Its parameters in the model's order (p,).
        experiment: Rates and disturbance; controller, delay and effort limits are not used.
        reference: q, qd, qdd at the control instants (3 n, K).
        seeds: The seeds.
    """
    motion = reference[:, :: experiment.record_every]
    size = len(motion) // 3
    elements = DahlElements(model.friction.dahl, size, model.robot.friction_coordinates())
    memory = elements.push(reference[:size])[:, :: experiment.record_every]
    warmth = warmth_of(model, experiment, reference.shape[1]) or [np.zeros((size, reference.shape[1]))]
    history = np.concatenate([memory, motion[2 * size :], warmth[0][:, :: experiment.record_every]])
    needed, motor_side = _torques(model)(*np.split(motion, 3), values, history)
    joint = needed - motor_side
    outputs = []
    for seed in seeds:
        torque = noise_of_seed(experiment, "disturbance", seed, size, reference.shape[1], experiment.control_rate)
        outputs.append(np.concatenate([motion, needed - torque[:, :: experiment.record_every], joint]))
    return np.stack(outputs)


@recent(4)
def _torques(model: Model) -> BatchFunction:
    equations = plant_equations(model)
    size, count = len(model.robot.actuated), len(model.parameters)
    symbols = [*(ca.SX.sym(word, size) for word in ("q", "qd", "qdd")), ca.SX.sym("values", count)]
    symbols.append(ca.SX.sym("history", equations.torque.size1_in(4)))
    outputs = [equations.torque(*symbols), equations.motor_side(*symbols)]
    return compile_batch(ca.Function("ideal", symbols, [ca.densify(ca.cse(output)) for output in outputs]))


@dataclass(frozen=True)
class SimulatedRun:
    """The true motion and torques of every seed at the recording's instants; :func:`recording_of` adds noise.

    Attributes:
        robot: The arm.
        experiment: The experiment, with the integrator's rate and the sign's width resolved.
        truth: True standard parameters by name, those of the payload as ``XXL ... ML``.
        effects: Effects the plant has, of those a model may contain.
        seeds: The seeds, S of them.
        time: (N,) [s].
        reference: Commanded positions (n, N).
        q: True joint positions (S, n, N).
        qd: Velocities (S, n, N).
        qdd: Accelerations (S, n, N).
        motor_torque: Commanded motor torques, on the joint side (S, n, N).
        joint_torque: Torques on the link side of the gears (S, n, N).
        lost: Requested seeds that are not among these, and why: the run diverged.

    Example:
        >>> motion = steelyard.quintic([[0, 0.4, 0], [0, 1.5, 0]], 1.0, ["joint_1", "joint_2"])
        >>> run = steelyard.simulate("scara_2r", motion, steelyard.Experiment(record_rate=100))
        >>> run.time.shape, run.motor_torque.shape
        ((200,), (1, 2, 200))
    """

    __repr__ = short_repr

    robot: Robot
    experiment: Experiment
    truth: Mapping[str, float]
    effects: tuple[str, ...]
    seeds: tuple[int, ...]
    time: np.ndarray
    reference: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    motor_torque: np.ndarray
    joint_torque: np.ndarray
    lost: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))


def simulate(
    robot: AnyRobot,
    trajectory: Trajectory | str | os.PathLike[str],
    experiment: Experiment | None = None,
    seeds: Sequence[int] = (0,),
    threads: int = 1,
    progress: Progress = silent,
    keep_going: bool = False,
) -> SimulatedRun:
    """Run a trajectory on a simulated arm.

    Args:
        robot: An arm with inertias, its catalogue name or the path of its file.
        trajectory: The motion to follow, or the path of its file; its joints are the robot's actuated ones.
        experiment: Controller, rates, noise; the defaults if not given.
        seeds: One run for each; the seed decides disturbance and noise.
        threads: Threads that share the seeds.
        progress: Progress callback of the run.
        keep_going: Whether seeds whose runs diverge are left out and named in ``lost``; else the first is an error.

    Raises:
        SimulationError: If experiment, motion and arm do not fit each other, or a run diverges and must not.

    Example:
        >>> motion = steelyard.quintic([[0, 0.4, 0], [0, 1.5, 0]], 1.0, ["joint_1", "joint_2"])
        >>> run = steelyard.simulate("scara_2r", motion, steelyard.Experiment(record_rate=100), seeds=range(3))
        >>> run.q.shape, run.truth["ZZ2"]
        ((3, 2, 200), 0.064)
    """
    robot = load_robot(robot)
    require_type(experiment, (Experiment, NoneType), "experiment", "Experiment(...) or None", SimulationError)
    motion = load_trajectory(trajectory, [body.joint.name for body in robot.actuated])
    return Simulator(robot, motion, experiment or Experiment()).run(seeds, threads, progress, keep_going)


class Simulator:
    """A trajectory on a simulated arm, prepared once and run with any seeds, any number of times.

    Args:
        robot: An arm with inertias.
        trajectory: The motion to follow; its joints are the robot's actuated ones.
        experiment: Controller, rates, noise.

    Raises:
        SimulationError: If experiment, motion and arm do not fit each other.
    """

    def __init__(self, robot: Robot, trajectory: Trajectory, experiment: Experiment) -> None:
        _check_joints(robot, trajectory)
        self._reference = _reference(trajectory, experiment)
        self._plant: CompiledPlant | MujocoPlant | None = None
        if experiment.plant == "ideal":
            # Nothing is integrated, so the sign need not be smooth.
            self._model, self._experiment = plant_model(robot, experiment.sign_width or 0.0), experiment
            return
        loop = closed_loop(robot, experiment, self._reference)
        self._model, self._experiment = loop.model, loop.experiment
        self._plant = MujocoPlant(loop) if experiment.plant == "mujoco" else CompiledPlant(loop)

    def run(
        self, seeds: Sequence[int], threads: int = 1, progress: Progress = silent, keep_going: bool = False
    ) -> SimulatedRun:
        """Run the trajectory with every seed; arguments as for :func:`simulate`."""
        chosen, lost = tuple(int(seed) for seed in seeds), dict[int, str]()
        if self._plant is None:
            truth = true_values(self._model, self._experiment.payload)
            values = np.array([truth[name] for name in self._model.names])
            outputs = ideal_outputs(self._model, values, self._experiment, self._reference, chosen)
        else:
            outputs = self._plant.run(chosen, threads, progress, lost.__setitem__ if keep_going else _refuse)
        if lost:
            outputs = outputs[[seed not in lost for seed in chosen]]
        followed = tuple(seed for seed in chosen if seed not in lost)
        return replace(self._collected(followed, outputs), lost=MappingProxyType(lost))

    def _collected(self, seeds: tuple[int, ...], outputs: np.ndarray) -> SimulatedRun:
        return _collected(self._model, self._experiment, self._reference, seeds, outputs)


def simulate_together(
    simulators: Sequence[Simulator], seeds: Sequence[int], threads: int = 1, progress: Progress = silent
) -> tuple[SimulatedRun, ...]:
    """Run every simulator with its own seed; the results are those of running them one after the other.

    Runs of the same equations, rates and duration are columns of one compiled loop, which takes little longer for a few
    columns than for one: motions, payloads, gains and noise may differ.

    Args:
        simulators: Arms with their trajectories and experiments.
        seeds: One for each.
        threads: Threads that share the runs.
        progress: Progress callback of all runs.

    Raises:
        SimulationError: If a run diverges.

    Example:
        >>> from steelyard.simulation import Simulator, simulate_together
        >>> robot, experiment = steelyard.load_robot("scara_2r"), steelyard.Experiment(record_rate=100)
        >>> motions = [steelyard.quintic([[0, x, 0], [0, 1, 0]], 1.0, ["joint_1", "joint_2"]) for x in (0.2, 0.4)]
        >>> runs = simulate_together([Simulator(robot, one, experiment) for one in motions], seeds=[1, 2])
        >>> [float(abs(run.reference[0]).max().round(3)) for run in runs]
        [0.2, 0.4]
    """
    groups, found = _groups(simulators), dict[int, SimulatedRun]()
    for index, group in enumerate(groups):
        plants = [plant for k in group if isinstance(plant := simulators[k]._plant, CompiledPlant)]
        done, own = part_of(progress, index, len(groups)), tuple(int(seeds[k]) for k in group)
        if plants:
            outputs = run_together(plants, own, threads, done, _refuse)
            each = zip(group, own, outputs, strict=True)
            found |= {k: simulators[k]._collected((seed,), output[None]) for k, seed, output in each}
        else:
            found |= {k: simulators[k].run([seeds[k]], threads, done) for k in group}
    return tuple(found[k] for k in range(len(simulators)))


def _groups(simulators: Sequence[Simulator]) -> list[list[int]]:
    """Return the places of simulators that run as columns of one loop; of others each is a group."""
    groups: list[list[int]] = []
    for k, one in enumerate(simulators):
        plant = one._plant
        for group in groups:
            first = simulators[group[0]]._plant
            if isinstance(first, CompiledPlant) and isinstance(plant, CompiledPlant) and plant.runs_beside(first):
                group.append(k)
                break
        else:
            groups.append([k])
    return groups


def _refuse(seed: int, why: str) -> None:
    raise SimulationError(f"the simulation of seed {seed} {why}")


def _check_joints(robot: Robot, trajectory: Trajectory) -> None:
    wanted = tuple(body.joint.name for body in robot.actuated)
    if tuple(trajectory.joints) != wanted:
        raise SimulationError(
            f"the trajectory moves {', '.join(trajectory.joints)}; robot '{robot.name}' has {', '.join(wanted)}"
        )


def _reference(trajectory: Trajectory, experiment: Experiment) -> np.ndarray:
    """Return q, qd, qdd stacked (3 n, K) at the control instants, whole recording periods."""
    samples = trajectory.sample(experiment.control_rate)
    whole = samples.time.size // experiment.record_every * experiment.record_every
    if whole == 0:
        raise SimulationError(
            f"the trajectory lasts {trajectory.duration:g} s, less than one sample at {experiment.record_rate:g} Hz"
        )
    return np.vstack([samples.q, samples.qd, samples.qdd])[:, :whole]


def _collected(
    model: Model, experiment: Experiment, reference: np.ndarray, seeds: tuple[int, ...], outputs: np.ndarray
) -> SimulatedRun:
    """Return the run from its outputs (S, 5 n, N): q, qd, qdd, motor torque, joint torque."""
    size = reference.shape[0] // 3
    time = np.arange(outputs.shape[2]) / experiment.record_rate
    commanded = reference[:size, :: experiment.record_every]
    q, qd, qdd, motor, joint = (outputs[:, k * size : (k + 1) * size] for k in range(5))
    for array in (time, commanded, q, qd, qdd, motor, joint):
        array.setflags(write=False)
    truth = truth_by_name(model, experiment.payload)
    return SimulatedRun(model.robot, experiment, truth, model.effects, seeds, time, commanded, q, qd, qdd, motor, joint)


def recording_of(run: SimulatedRun, index: int = 0) -> Recording:
    """Return one run as a recording: positions and the torques that this arm measures.

    Args:
        run: The simulated run.
        index: Which of its seeds, counted from 0.

    Example:
        >>> motion = steelyard.quintic([[0, 0.4, 0], [0, 1.5, 0]], 1.0, ["joint_1", "joint_2"])
        >>> run = steelyard.simulate("scara_2r", motion, steelyard.Experiment(record_rate=100))
        >>> steelyard.recording_of(run).q.shape
        (2, 200)
    """
    robot, experiment = run.robot, run.experiment
    warm = temperatures(experiment, run.time)
    return Recording(
        joints=tuple(body.joint.name for body in robot.actuated),
        time=run.time,
        q=_encoder_positions(run, index),
        torques=tuple(_channels(run, index)),
        temperature=None if warm is None else np.tile(warm, (len(robot.actuated), 1)),
        payload=experiment.payload,
        reference=run.reference,
        notes=(f"simulated: {robot.name}, seed {run.seeds[index]}, plant '{experiment.plant}'",),
    )


def _encoder_positions(run: SimulatedRun, index: int) -> np.ndarray:
    """Return encoder positions (n, N): with elastic joints those of the motors, ``q + tau_l / k`` (P5, appendix 2)."""
    q = run.q[index]
    if run.experiment.stiffness is not None:
        stiffness = np.array(run.experiment.stiffness)
        if stiffness.shape != (len(q),) or not (stiffness > 0).all():
            raise SimulationError(f"stiffness {run.experiment.stiffness}: {len(q)} positive numbers are needed")
        q = q + run.joint_torque[index] / stiffness[:, None]
    if run.experiment.position_noise is not None:
        q = q + _noise(run, index, "position_noise")
    quantum = np.broadcast_to(np.asarray(run.experiment.encoder_quantum, float), (len(q),))
    return quantised(q, quantum[:, None])


def _channels(run: SimulatedRun, index: int) -> list[TorqueChannel]:
    """Return the channels the arm measures; both where its defaults say so."""
    measured = run.robot.defaults.measured
    channels = []
    if measured != "joint":
        noise = _noise(run, index, "motor_noise")
        channels.append(_motor_channel(run, run.motor_torque[index] + noise))
    if measured != "motor":
        noise = _noise(run, index, "joint_noise")
        channels.append(TorqueChannel("joint_torque", run.joint_torque[index] + noise))
    return channels


def _motor_channel(run: SimulatedRun, torque: np.ndarray) -> TorqueChannel:
    gains = [run.robot.values.get(f"drive_gain{body.number}") for body in run.robot.actuated]
    if run.robot.defaults.torque != "motor_current" or None in gains:
        return TorqueChannel("motor_torque", torque)
    gain = np.array(gains, dtype=float)
    exact = np.zeros((len(gain), len(gain)))
    return TorqueChannel("motor_current", torque / gain[:, None], "", gain, exact, "the simulation")


def _noise(run: SimulatedRun, index: int, stream: str) -> np.ndarray:
    joints, samples = run.motor_torque[index].shape
    return noise_of_seed(run.experiment, stream, run.seeds[index], joints, samples, run.experiment.record_rate)
