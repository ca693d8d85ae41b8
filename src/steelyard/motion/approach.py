"""Motions with an approach from rest and a return to rest, and the same path at lower speed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ..errors import MotionError
from ..text import short_repr
from .checks import DURATION, FRACTION, checked_scalar, joint_array
from .fourier import FourierSeries
from .piecewise import Moves, PiecewisePolynomial, QuinticMoves, quintic, trapezoidal
from .trajectory import Derivatives, MotionExtrema, Trajectory, extrema_of_parts, freeze


@final
@dataclass(frozen=True, eq=False)
class ApproachedTrajectory(Trajectory):
    """A motion with a way in from rest and a way out to rest. Make one with :func:`with_approach`.

    Attributes:
        joints: Names of the joints.
        core: The motion proper, which runs during ``core_interval``.
        start_posture: Where it begins at rest (n,) [rad or m].
        end_posture: Where it ends at rest (n,) [rad or m].
        way_in: From the start posture to the core's first state.
        way_out: From the core's last state to the end posture.

    Example:
        >>> from steelyard.motion import with_approach
        >>> core = steelyard.fourier([0.0], sin=[[0.3]], cos=[[0.1]], period=5.0, joints=["joint_1"])
        >>> with_approach(core, [0.0], 2.0, 1.0).duration
        8.0
    """

    __repr__ = short_repr

    core: Trajectory
    start_posture: np.ndarray
    end_posture: np.ndarray
    way_in: PiecewisePolynomial
    way_out: PiecewisePolynomial

    def __post_init__(self) -> None:
        freeze(self, "start_posture", "end_posture")

    @property
    def duration(self) -> float:
        """How long way in, core and way out take together [s]."""
        return self.core_interval[1] + self.way_out.duration

    @property
    def core_interval(self) -> tuple[float, float]:
        """Start and stop of the motion proper [s], without approach and return."""
        return self.way_in.duration, self.way_in.duration + self.core.duration

    def derivatives(self, time: np.ndarray) -> Derivatives:
        """Return position, velocity, acceleration and jerk (n, N) at times (N,) in the motion."""
        result = np.empty((4, len(self.joints), len(time)))
        part_of = np.searchsorted(self.core_interval, time, side="right")
        for number, (begin, part) in enumerate(self._parts()):
            columns = part_of == number
            inside = np.clip(time[columns] - begin, 0.0, part.duration)
            result[:, :, columns] = part.derivatives(inside)
        return result[0], result[1], result[2], result[3]

    def extrema(self) -> MotionExtrema:
        """Return the exact extremes over way in, core and way out."""
        return extrema_of_parts([(begin, part.extrema()) for begin, part in self._parts()])

    def _parts(self) -> tuple[tuple[float, Trajectory], ...]:
        start, stop = self.core_interval
        return (0.0, self.way_in), (start, self.core), (stop, self.way_out)

    def _with_rows(self, joints: tuple[str, ...], rows: list[int]) -> ApproachedTrajectory:
        parts = (self.way_in.in_order(joints), self.way_out.in_order(joints))
        return ApproachedTrajectory(
            joints, self.core.in_order(joints), self.start_posture[rows], self.end_posture[rows], *parts
        )


def with_approach(
    trajectory: Trajectory,
    start_posture: ArrayLike,
    duration_in: float,
    duration_out: float,
    end_posture: ArrayLike | None = None,
) -> ApproachedTrajectory:
    """Return the motion with a fifth-order polynomial from rest into it and one back to rest.

    Position, velocity and acceleration are continuous where the parts meet; the jerk may jump.

    Args:
        trajectory: The motion proper; ``core_interval`` of the result is when it runs.
        start_posture: Posture at rest from which to start (n,) [rad or m].
        duration_in: Duration of the way in [s]. A short way into a fast motion swings far out: check the result with
            :func:`~steelyard.motion.limit_violations`.
        duration_out: Duration of the way out [s].
        end_posture: Posture at rest in which to end (n,); the start posture by default.

    Raises:
        MotionError: If shapes or numbers do not fit.

    Example:
        >>> from steelyard.motion import with_approach
        >>> core = steelyard.fourier([0.0], sin=[[0.3]], cos=[[0.1]], period=5.0, joints=["joint_1"])
        >>> with_approach(core, start_posture=[0.0], duration_in=2.0, duration_out=1.0).core_interval
        (2.0, 7.0)
    """
    joints = trajectory.joints
    start = joint_array(start_posture, joints, "start_posture")
    end = start if end_posture is None else joint_array(end_posture, joints, "end_posture")
    checked_scalar(duration_in, "duration_in [s]", DURATION)
    checked_scalar(duration_out, "duration_out [s]", DURATION)
    states = np.array(trajectory.derivatives(np.array([0.0, trajectory.duration]))[:3])
    rest = np.zeros_like(start)
    way_in = _way(np.array([start, rest, rest]), states[:, :, 0], float(duration_in), joints)
    way_out = _way(states[:, :, 1], np.array([end, rest, rest]), float(duration_out), joints)
    return ApproachedTrajectory(joints, trajectory, start, end, way_in, way_out)


def _way(begin: np.ndarray, end: np.ndarray, duration: float, joints: tuple[str, ...]) -> PiecewisePolynomial:
    """Return one fifth-order polynomial between two states (3, n): positions, velocities, accelerations."""
    q, qd, qdd = np.stack([begin, end], axis=-1)
    return quintic(q, duration, joints, velocities=qd, accelerations=qdd)


def at_speed(trajectory: Trajectory, speed: float) -> Trajectory:
    """Return the same path at a fraction of its speed.

    The slower motion is ``q(s t)`` with the speed s: it takes ``1 / s`` times as long, with velocities times s,
    accelerations times s^2 and jerks times s^3. It is of the same kind and can be written and read as the first.

    Args:
        trajectory: The motion at full speed.
        speed: Fraction of the speed, above 0 and at most 1.

    Raises:
        MotionError: If the speed is out of range, or so small that the motion would never end.

    Example:
        >>> from steelyard.motion import at_speed
        >>> at_speed(steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"]), 0.5).duration
        2.0
    """
    part = checked_scalar(speed, "speed", FRACTION)
    if part == 1:
        return trajectory
    checked_scalar(trajectory.duration / part, f"the duration [s] at speed {part:g}", DURATION)
    match trajectory:
        case FourierSeries():
            return replace(trajectory, period=trajectory.period / part)
        case PiecewisePolynomial():
            return _slower_moves(trajectory.moves, trajectory.joints, part)
        case ApproachedTrajectory():
            lengths = trajectory.way_in.duration / part, trajectory.way_out.duration / part
            core = at_speed(trajectory.core, part)
            return with_approach(core, trajectory.start_posture, *lengths, trajectory.end_posture)
    raise MotionError(f"a {type(trajectory).__name__} cannot be slowed; allowed are the motions that files can hold")


def _slower_moves(moves: Moves, joints: tuple[str, ...], part: float) -> PiecewisePolynomial:
    """Return the moves with longer durations, built from their points so that a file gives the same motion exactly."""
    durations = moves.durations / part
    if not isinstance(moves, QuinticMoves):
        return trapezoidal(moves.points, durations, joints, ramp=moves.ramp, cruise=moves.cruise)
    if moves.via != "given":
        return quintic(moves.points, durations, joints, via=moves.via)
    qd, qdd = moves.velocities * part, moves.accelerations * part**2
    return quintic(moves.points, durations, joints, velocities=qd, accelerations=qdd)
