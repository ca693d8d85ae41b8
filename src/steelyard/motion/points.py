"""Via points: random ones within limits, and how long the moves between points must take."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..configuration import number, whole_number
from ..errors import MotionError
from .checks import FRACTION, checked_durations, checked_points, checked_scalar, joint_array
from .limits import RATES, MotionLimits
from .piecewise import Profile


def move_durations(
    points: ArrayLike,
    limits: MotionLimits,
    profile: Profile,
    *,
    speed_fraction: float = 1.0,
    shortest: float = 0.0,
) -> np.ndarray:
    """Return the shortest duration of each move from rest to rest that keeps the limits (K-1,) [s].

    A move of a joint over ``d`` in time T peaks at ``p1 |d| / T``, ``p2 |d| / T^2`` and ``p3 |d| / T^3``, with p the
    peaks of the profile; the joint that needs longest decides.

    Args:
        points: Via points (n, K) [rad or m].
        limits: Limits of the joints; those of velocity, acceleration and jerk count.
        profile: Shape of the moves: ``quintic_profile()`` or ``trapezoidal_profile(...)``.
        speed_fraction: Part of these limits to use.
        shortest: No move takes less [s]; needed where all joints stay where they are.

    Raises:
        MotionError: If a move would take no time: none of its limits is finite, or no joint moves.

    Example:
        >>> from steelyard.motion import motion_limits, move_durations, quintic_profile
        >>> limits = motion_limits(["joint_1"], velocity=1.0)
        >>> move_durations([[0.0, 0.4, 0.0]], limits, quintic_profile()).round(3).tolist()
        [0.75, 0.75]
    """
    steps = np.abs(np.diff(checked_points(points, limits.joints)))
    allowed = checked_scalar(speed_fraction, "speed_fraction", FRACTION)
    durations = np.full(steps.shape[1], checked_scalar(shortest, "shortest [s]", number(least=0)))
    for order, rate in enumerate(RATES, start=1):
        needed = getattr(profile, rate) * steps / (allowed * getattr(limits, rate)[:, None])
        durations = np.maximum(durations, (needed ** (1 / order)).max(axis=0))
    if not (durations > 0).all():
        move = int(np.argmin(durations > 0)) + 1
        raise MotionError(
            f"move {move} takes no time: no joint moves, or no limit is finite; give 'shortest' [s] or finite limits"
        )
    return durations


def random_points(
    limits: MotionLimits,
    count: int,
    durations: ArrayLike,
    profile: Profile,
    rng: np.random.Generator,
    *,
    range_fraction: float = 0.9,
    speed_fraction: float = 0.95,
    start: ArrayLike | None = None,
    stop: ArrayLike | None = None,
) -> np.ndarray:
    """Return random via points for moves of given durations (P5.7): start, ``count`` points, stop (n, count + 2).

    Each point is drawn uniformly in the middle part of the position limits; a step longer than the limits of
    velocity, acceleration and jerk allow is cut there, and so is a point from which the stop is out of reach in the
    moves that are left. P5 has 44 points with start and stop at zero: 45 moves of 2 s.

    Args:
        limits: Limits of the joints; the position limits must be finite.
        count: Number of random points between start and stop.
        durations: Duration of each of the ``count + 1`` moves [s], or one number for all.
        profile: Shape of the moves: ``quintic_profile()`` or ``trapezoidal_profile(...)``.
        rng: Source of randomness.
        range_fraction: Part of the position range to use, about its middle.
        speed_fraction: Part of the limits of velocity, acceleration and jerk to use.
        start: First posture (n,); the middle of the position range by default.
        stop: Last posture (n,); the start by default.

    Raises:
        MotionError: If a position limit is infinite, a posture lies outside the limits, or the stop is out of reach.

    Example:
        >>> from steelyard.motion import limits_of, quintic_profile, random_points
        >>> random_points(limits_of("scara_2r"), 5, 1.0, quintic_profile(), np.random.default_rng(0)).shape
        (2, 7)
    """
    moves = checked_scalar(count, "count", whole_number(1)) + 1
    lengths = checked_durations(durations, moves)
    middle, half = _range(limits, checked_scalar(range_fraction, "range_fraction", FRACTION))
    first = middle if start is None else _posture(start, limits, "start")
    last = first if stop is None else _posture(stop, limits, "stop")
    steps = _longest_steps(limits, lengths, profile, checked_scalar(speed_fraction, "speed_fraction", FRACTION))
    reach = np.cumsum(steps[:, ::-1], axis=1)[:, ::-1]  # how far the moves from this one on can go
    _check_reach(limits, np.abs(last - first), reach[:, 0])
    drawn = rng.uniform(middle - half, middle + half, size=(count, len(middle))).T
    points = np.column_stack([first, drawn, last])
    for k in range(1, moves):
        low = np.maximum(points[:, k - 1] - steps[:, k - 1], last - reach[:, k])
        high = np.minimum(points[:, k - 1] + steps[:, k - 1], last + reach[:, k])
        points[:, k] = np.clip(points[:, k], low, high)
    return points


def _range(limits: MotionLimits, part: float) -> tuple[np.ndarray, np.ndarray]:
    """Return middle and used half width of the position ranges."""
    for row, joint in enumerate(limits.joints):
        if not (np.isfinite(limits.lower[row]) and np.isfinite(limits.upper[row])):
            raise MotionError(
                f"joint '{joint}': position limits are {limits.lower[row]:g} and {limits.upper[row]:g}; "
                "random points need finite ones, give them with motion_limits(...)"
            )
    return (limits.lower + limits.upper) / 2, part * (limits.upper - limits.lower) / 2


def _posture(given: ArrayLike, limits: MotionLimits, what: str) -> np.ndarray:
    posture = joint_array(given, limits.joints, what)
    for value, low, high, joint in zip(posture, limits.lower, limits.upper, limits.joints, strict=True):
        if not low <= value <= high:
            raise MotionError(f"{what} of joint '{joint}' is {value:g}; its limits are {low:g} to {high:g}")
    return posture


def _longest_steps(limits: MotionLimits, durations: np.ndarray, profile: Profile, part: float) -> np.ndarray:
    """Return how far each joint may go in each move (n, moves)."""
    steps = [
        part * getattr(limits, rate)[:, None] * durations**order / getattr(profile, rate)
        for order, rate in enumerate(RATES, start=1)
    ]
    # No step is longer than the range; infinite ones would make nan of the sums over moves.
    return np.minimum.reduce([*steps, np.broadcast_to((limits.upper - limits.lower)[:, None], steps[0].shape)])


def _check_reach(limits: MotionLimits, distance: np.ndarray, reach: np.ndarray) -> None:
    for joint, far, near in zip(limits.joints, distance, reach, strict=True):
        if far > near:
            raise MotionError(
                f"joint '{joint}': stop is {far:g} from start, but the moves reach only {near:g} within the speed "
                "limits; give longer durations or more points"
            )
