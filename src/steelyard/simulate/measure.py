"""What a logger would have written: encoder steps, elastic joints, noise on the torques."""

from __future__ import annotations

import numpy as np

from ..errors import SimulationError
from ..recording import Recording, TorqueChannel
from .noise import noise_of_seed
from .simulator import SimulatedRun


def recording_of(run: SimulatedRun, index: int = 0) -> Recording:
    """Return one run as a recording like any other: positions and the torques this arm measures.

    Args:
        run: The simulated run.
        index: Which of its seeds, counted from 0.
    """
    robot, experiment = run.robot, run.experiment
    return Recording(
        joints=tuple(body.joint.name for body in robot.actuated),
        time=run.time,
        q=_seen_positions(run, index),
        torques=tuple(_channels(run, index)),
        payload=experiment.payload,
        reference=run.reference,
        notes=(f"simulated: {robot.name}, seed {run.seeds[index]}, plant '{experiment.plant}'",),
    )


def _seen_positions(run: SimulatedRun, index: int) -> np.ndarray:
    """Return encoder positions (n, N): with elastic joints those of the motors, ``q + tau_l / k`` (P5, appendix 2)."""
    q = run.q[index]
    if run.experiment.stiffness is not None:
        stiffness = np.array(run.experiment.stiffness)
        if stiffness.shape != (len(q),) or not (stiffness > 0).all():
            raise SimulationError(f"stiffness {run.experiment.stiffness}: {len(q)} positive numbers are needed")
        q = q + run.joint_torque[index] / stiffness[:, None]
    if run.experiment.position_noise is not None:
        q = q + _noise(run, index, "position_noise")
    quantum = np.broadcast_to(np.asarray(run.experiment.encoder_quantum, float), (len(q),))[:, None]
    step = np.where(quantum > 0, quantum, 1.0)
    return np.where(quantum > 0, step * np.floor(q / step + 0.5), q)


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
    return TorqueChannel("motor_current", torque / gain[:, None], gain=gain)


def _noise(run: SimulatedRun, index: int, stream: str) -> np.ndarray:
    joints, samples = run.motor_torque[index].shape
    noise = getattr(run.experiment, stream)
    return noise_of_seed(noise, stream, run.seeds[index], joints, samples, run.experiment.record_rate)
