"""Rehearsal of an experiment: a trajectory on a closed-loop arm, one column of a compiled loop for every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SimulationError
from ..motion import Trajectory
from ..progress import Progress, silent
from ..robot import Robot
from .compiled_plant import CompiledPlant
from .experiment import Experiment
from .mujoco_plant import MujocoPlant
from .truth import told_truth
from .tuning import ClosedLoop, closed_loop


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
    loop = closed_loop(robot, experiment, _reference(trajectory, experiment))
    chosen = tuple(int(seed) for seed in seeds)
    if experiment.plant == "mujoco":
        outputs = MujocoPlant(loop).run(chosen, progress)
    else:
        outputs = CompiledPlant(loop).run(chosen, threads, progress)
    return _collected(loop, chosen, outputs)


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


def _collected(loop: ClosedLoop, seeds: tuple[int, ...], outputs: np.ndarray) -> SimulatedRun:
    """Return the run from its outputs (S, 5 n, N): q, qd, qdd, motor torque, joint torque."""
    size = loop.reference.shape[0] // 3
    time = np.arange(outputs.shape[2]) / loop.experiment.record_rate
    commanded = loop.reference[:size, :: loop.experiment.record_every]
    parts = [outputs[:, k * size : (k + 1) * size] for k in range(5)]
    for array in (time, commanded, *parts):
        array.setflags(write=False)
    model = loop.model
    truth = told_truth(model, loop.experiment.payload)
    return SimulatedRun(model.robot, loop.experiment, truth, model.effects, seeds, time, commanded, *parts)
