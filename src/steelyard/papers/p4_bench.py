"""P4's arm: rows of its equations at given instants, and experiments simulated with it under control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..model import build_model
from ..motion import FourierSeries, Trajectory
from ..observe import Equations, equations_of
from ..robot import load_robot
from ..signals import fit_fourier
from ..simulate import Experiment, Noise, SimulatedRun, recording_of, simulate
from .designs import Arm
from .p4_arm import DURATION, HARMONICS, POSITION_VARIANCE, RATE, TORQUE_VARIANCE

Motion = Sequence[np.ndarray]
"""Positions, velocities and accelerations (n, N)."""

SAMPLES = round(DURATION * RATE)
"""Samples of a period."""

CONTROL_RATE = 1500.0
STANDSTILL = 0.02
"""Samples at which an axis moves slower than this are left out where that is said [rad/s]: their sign is not known."""

POSITION_NOISE = tuple(float(each) for each in np.sqrt(POSITION_VARIANCE))


@dataclass(frozen=True, eq=False)
class Bench:
    """An arm whose true parameters are known.

    Attributes:
        equations: Its equations.
        values: True base parameters (c,), as ``equations.names``.
        deviations: Noise of a torque sample of each joint (n,) [N m].
    """

    equations: Equations
    values: np.ndarray
    deviations: np.ndarray

    def rows(self, motion: Motion) -> np.ndarray:
        """Return W of every equation (n, N, c)."""
        compiled = self.equations.compiled(loaded=False)
        outputs = compiled.function(*(np.ascontiguousarray(part) for part in motion))
        whole = np.zeros((len(outputs), motion[0].shape[1], len(self.equations.names)))
        for e, (felt, names) in enumerate(zip(outputs, compiled.columns, strict=True)):
            whole[e][:, [self.equations.names.index(name) for name in names]] = felt.T
        return whole

    def torques(self, motion: Motion) -> np.ndarray:
        """Return the true torques (n, N)."""
        return self.rows(motion) @ self.values

    def weighted(self, motion: Motion) -> np.ndarray:
        """Return the stack of all rows over their noise (n N, c), joint by joint."""
        return np.concatenate(list(self.rows(motion) / self.deviations[:, None, None]))


def bench(arm: Arm) -> Bench:
    """Return the bench of an arm with the effects of its model."""
    equations = equations_of(build_model(load_robot(arm.model.robot.name), arm.model.effects))
    known = {name: arm.known.values.get(name, 0.0) for name in arm.model.names}
    true = equations.base_values(known)
    return Bench(equations, np.array([true[name] for name in equations.names]), np.sqrt(TORQUE_VARIANCE))


def instants(count: int = SAMPLES, periods: int = 1) -> np.ndarray:
    """Return the sampling instants of some periods [s].

    They lie half a step from the start, where the motion is at rest and the sign of friction undetermined.
    """
    return (np.arange(count * periods) + 0.5) * (DURATION / count)


def moved(trajectory: Trajectory, time: np.ndarray) -> Motion:
    """Return q, qd, qdd of a periodic motion at instants, however late."""
    return trajectory.derivatives(np.mod(time, trajectory.duration))[:3]


def solved(weighted: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return least squares of weighted rows (r, c) and y (r,): values (c,) and covariance (c, c)."""
    q, r = np.linalg.qr(weighted)
    inverse = np.linalg.inv(r)
    return inverse @ (q.T @ y), inverse @ inverse.T


def identified(
    arm: Bench, q: np.ndarray, y: np.ndarray, time: np.ndarray, standstill: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted least squares at the Fourier series fitted to positions (P4.1): values and covariance.

    Args:
        arm: The arm.
        q: Positions as measured (n, N) [rad].
        y: Torques as measured (n, N) [N m].
        time: Their instants, within one period (N,) [s].
        standstill: Samples at which an axis of the fitted motion is slower are left out [rad/s]; 0: all are used.
    """
    fitted = fit_fourier(q, time, DURATION, HARMONICS).evaluate(time)
    moving = (np.abs(fitted[1]) >= standstill).all(axis=0)
    torque = (y[:, moving] / arm.deviations[:, None]).ravel()
    return solved(arm.weighted([part[:, moving] for part in fitted]), torque)


def simulated(
    arm: Bench, trajectory: Trajectory, periods: int = 1, position_noise: tuple[float, ...] = POSITION_NOISE
) -> SimulatedRun:
    """Simulate the arm along a motion under computed-torque control; noise comes with :func:`measured`.

    The simulated arm has what the bench's model has: spring and offsets only where they are unknowns.

    Args:
        arm: The arm.
        trajectory: The motion; a Fourier series where there are several periods.
        periods: How often it is repeated.
        position_noise: Standard deviation of a sample of each position [rad].
    """
    robot, names = arm.equations.model.robot, set(arm.equations.model.names)
    robot = replace(robot, values={name: value for name, value in robot.values.items() if name in names})
    if isinstance(trajectory, FourierSeries):
        trajectory = replace(trajectory, periods=periods)
    experiment = Experiment(
        control_rate=CONTROL_RATE, record_rate=RATE, motor_noise=Noise("white", tuple(arm.deviations.tolist())),
        position_noise=Noise("white", position_noise), saturate=False,
    )  # fmt: skip
    return simulate(robot, trajectory, experiment)


def measured(run: SimulatedRun, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions and torques (n, N) of a simulated run with the noise of a seed."""
    recording = recording_of(replace(run, seeds=(seed,)))
    return recording.q, recording.torques[0].values
