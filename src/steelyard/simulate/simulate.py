"""Rehearsal of an experiment: a trajectory on a closed-loop arm, one column of a compiled loop for every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SimulationError
from ..model import Model
from ..motion import Trajectory
from ..progress import Progress, silent
from ..robot import Robot
from .compiled_plant import CompiledPlant
from .experiment import Experiment
from .ideal_plant import ideal_outputs
from .mujoco_plant import MujocoPlant
from .truth import plant_model, told_truth, true_values
from .tuning import closed_loop


@dataclass(frozen=True)
class SimulatedRun:
    """What really happened, for every seed, at the recording's instants; noise comes with ``recordings``.

    Attributes:
        robot: The arm.
        experiment: The experiment, with the integrator's rate and the sign's width settled.
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
    """

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


def simulate(
    robot: Robot,
    trajectory: Trajectory,
    experiment: Experiment | None = None,
    seeds: Sequence[int] = (0,),
    threads: int = 1,
    progress: Progress = silent,
) -> SimulatedRun:
    """Run a trajectory on a simulated arm.

    Args:
        robot: An arm with inertias.
        trajectory: The motion to follow; its joints are the robot's actuated ones.
        experiment: Controller, rates, noise; the defaults if not given.
        seeds: One run for each; the seed decides disturbance and noise.
        threads: Threads that share the seeds.
        progress: Told how far the run is.
    """
    experiment = experiment or Experiment()
    _check_joints(robot, trajectory)
    reference = _reference(trajectory, experiment)
    chosen = tuple(int(seed) for seed in seeds)
    if experiment.plant == "ideal":
        # Nothing is integrated, so nothing asks for a smooth sign.
        model = plant_model(robot, experiment.sign_width or 0.0)
        truth = true_values(model, experiment.payload)
        values = np.array([truth[name] for name in model.names])
        return _collected(
            model, experiment, reference, chosen, ideal_outputs(model, values, experiment, reference, chosen)
        )
    loop = closed_loop(robot, experiment, reference)
    if experiment.plant == "mujoco":
        outputs = MujocoPlant(loop).run(chosen, progress)
    else:
        outputs = CompiledPlant(loop).run(chosen, threads, progress)
    return _collected(loop.model, loop.experiment, reference, chosen, outputs)


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
    parts = [outputs[:, k * size : (k + 1) * size] for k in range(5)]
    for array in (time, commanded, *parts):
        array.setflags(write=False)
    truth = told_truth(model, experiment.payload)
    return SimulatedRun(model.robot, experiment, truth, model.effects, seeds, time, commanded, *parts)
