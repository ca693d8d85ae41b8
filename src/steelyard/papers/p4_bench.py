"""P4's arm, three axes of a KUKA IR 361 with 21 parameters: workspace, noise, rows and simulated experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..excitation import (
    CRITERIA,
    ArmPoint,
    Cylinder,
    DesignLimits,
    DesignSettings,
    HalfSpace,
    PointRule,
    Unknowns,
    known_of,
)
from ..excitation.assembly import Assembled
from ..excitation.cramer_rao import cramer_rao_information, fitted_basis
from ..excitation.predicted_accuracy import exact
from ..model import build_model
from ..motion import FourierSeries, Trajectory, limits_of
from ..observe import Equations, equations_of
from ..robot import load_robot
from ..signals import fit_fourier
from ..simulation import Experiment, Noise, SimulatedRun, recording_of, simulate
from .designs import Arm

DURATION, HARMONICS, RATE = 10.0, 5, 150.0
TORQUE_VARIANCE = (25.0, 26.0, 10.0)
"""Of the torque noise [N^2 m^2] (P4.5)."""

POSITION_VARIANCE = (1.1e-9, 8.3e-10, 2.9e-9)
"""Of the position noise [rad^2]; their orders are assumed."""

C1, C2 = "condition_weighted_normalised", "d"
"""P4's criteria: condition number of the weighted matrix with columns at unit length; determinant of the covariance."""

PLAIN = ("inertia", "Fvm", "Fcm")
"""What is unknown in P4's designs."""

SPRING = ("inertia", "Fvm", "Fcm", "spring", "offm")
"""What is unknown in P4's experiment (P4.6)."""


def p4_arm(effects: tuple[str, ...] = PLAIN) -> Arm:
    """Return the arm with P4's workspace; effects are the unknown ones."""
    robot = load_robot("kuka_ir361")
    tool = ArmPoint("tool")
    rules = (
        PointRule("height", tool, HalfSpace((0.0, 0.0, 1.0), 0.8)),
        PointRule("distance from axis 1", tool, Cylinder(0.7, upper=1.8), "keep_out"),
    )
    model = build_model(robot, effects)
    # The whole position ranges and the paper's workspace: neither floor nor self-collision besides.
    limits = DesignLimits(limits_of(robot), np.full(3, np.inf), "motor", rules=rules, notes=())
    noise = tuple(float(each) for each in np.sqrt(TORQUE_VARIANCE))
    settings = DesignSettings(duration=DURATION, harmonics=HARMONICS, criterion=C1, noise=noise, rate=RATE)
    return Arm(model, limits, known_of(model, limits)[0], settings)


def first_criterion(ready: Assembled, trajectory: Trajectory) -> float:
    """Return c1 of a motion at the recording's own samples."""
    return CRITERIA[C1].exact(ready.forecast().matrices(trajectory)[1])


def with_joint_scaled(motion: FourierSeries, joint: int, factor: float) -> FourierSeries:
    """Return a motion with one joint moving that much less about its mean."""
    scale = np.ones((len(motion.joints), 1))
    scale[joint] = factor
    return replace(motion, sin=scale * motion.sin, cos=scale * motion.cos)


def noisy_covariance(
    ready: Assembled, trajectory: Trajectory, values: dict[str, float], deviations: np.ndarray
) -> np.ndarray:
    """Return the Cramer-Rao bound (c, c) with noise on torques and positions (P4.2).

    Args:
        ready: The problem whose family the motion is of.
        trajectory: The motion.
        values: Standard parameters by name; those not given are zero.
        deviations: Standard deviation of a sample of each position (n,) [rad].
    """
    unknowns: Unknowns = exact(ready.unknowns)
    count = round(unknowns.rate * trajectory.duration)
    times = (np.arange(count) + 0.5) * (trajectory.duration / count)
    basis = fitted_basis(ready.problem.family, times)
    motion = trajectory.derivatives(times)[:3]
    return np.linalg.inv(cramer_rao_information(unknowns, values, motion, basis, deviations))


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
        for e, (nonzero, names) in enumerate(zip(outputs, compiled.columns, strict=True)):
            whole[e][:, [self.equations.names.index(name) for name in names]] = nonzero.T
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
    """Return q, qd, qdd of a periodic motion at any instants."""
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
