"""The same path at a slower pace."""

from __future__ import annotations

from dataclasses import replace

from ..errors import MotionError
from .approach import ApproachedTrajectory, with_approach
from .checks import checked_duration, fraction
from .fourier import FourierSeries
from .moves import Moves, QuinticMoves
from .piecewise import PiecewisePolynomial
from .quintic import quintic
from .trajectory import Trajectory
from .trapezoidal import trapezoidal


def at_speed(trajectory: Trajectory, speed: float) -> Trajectory:
    """Return the same path at a part of the pace.

    The slower motion is ``q(s t)`` with the speed s: it takes ``1 / s`` times as long, with velocities times s,
    accelerations times s^2 and jerks times s^3. It is of the same kind and can be written and read as the first.

    Args:
        trajectory: The motion at full pace.
        speed: Part of the pace, above 0 and at most 1.

    Raises:
        MotionError: If the speed is out of range, or so small that the motion would never end.
    """
    part = fraction(speed, "speed")
    if part == 1:
        return trajectory
    checked_duration(trajectory.duration / part, f"the duration [s] at speed {part:g}")
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
    """Return the moves made anew with longer durations, so that a file read again gives the same to the last bit."""
    durations = moves.durations / part
    if not isinstance(moves, QuinticMoves):
        return trapezoidal(moves.points, durations, joints, ramp=moves.ramp, cruise=moves.cruise)
    if moves.via != "given":
        return quintic(moves.points, durations, joints, via=moves.via)
    qd, qdd = moves.velocities * part, moves.accelerations * part**2
    return quintic(moves.points, durations, joints, velocities=qd, accelerations=qdd)
