"""Validation of joint names, numbers and array shapes that motions are made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..configuration import LARGEST_NUMBER, Kind, T, checked, number
from ..errors import MotionError, nearest_match

# No arm moves in less [s]; fifth powers of durations stay above zero.
SHORTEST_DURATION = 1e-6
# A move shorter than this part of the whole motion is lost in the rounding of time.
SHORTEST_PART = 1e-9

FINITE = number()
POSITIVE = number(above=0)
FRACTION = number(above=0, most=1)
DURATION = number(least=SHORTEST_DURATION)
"""Kinds of numbers; a duration in seconds."""


def checked_joints(joints: Iterable[str]) -> tuple[str, ...]:
    """Return the joint names; each must be a text and occur once."""
    if isinstance(joints, str):
        raise MotionError(f"joints is the text {joints!r}; allowed is a list of joint names")
    names = tuple(joints)
    if not names:
        raise MotionError("joints is empty; name at least one joint")
    for name in names:
        if not isinstance(name, str) or not name:
            raise MotionError(f"joint name {name!r} is not a text; give each joint its name")
        if names.count(name) > 1:
            raise MotionError(f"joint '{name}' is named more than once; give each joint its own row")
    return names


def row_order(have: Sequence[str], want: Sequence[str]) -> list[int]:
    """Return the row of each wanted joint; both must be the same set of names."""
    wanted = checked_joints(want)
    for name in have:
        if name not in wanted:
            raise MotionError(
                f"the motion moves joint '{name}', which is not among the requested joints: "
                f"{', '.join(wanted)}{nearest_match(name, wanted)}"
            )
    for name in wanted:
        if name not in have:
            raise MotionError(
                f"the motion has no joint '{name}'; its joints: {', '.join(have)}{nearest_match(name, have)}"
            )
    return [have.index(name) for name in wanted]


def checked_scalar(value: float, what: str, kind: Kind[T] = FINITE) -> T:
    """Return a number of this kind, or raise a MotionError."""
    return checked(value, kind, what, MotionError)


def numbers(values: ArrayLike, what: str, *, finite: bool = True) -> np.ndarray:
    """Return a copy as an array of real numbers, finite ones by default."""
    try:
        array = np.array(values)
    except ValueError as error:
        raise MotionError(f"{what} has rows of unequal length; give every row as many numbers") from error
    if array.dtype.kind not in "iuf":
        raise MotionError(f"{what} holds {array.dtype.name} entries; real numbers are expected")
    array = array.astype(float)
    wrong = np.argwhere(~(np.abs(array) <= LARGEST_NUMBER) if finite else np.isnan(array))
    if len(wrong):
        place = f" at [{', '.join(str(k) for k in wrong[0])}]" if array.ndim else ""
        raise MotionError(
            f"{what} is {array[tuple(wrong[0])]:g}{place}; "
            f"allowed are finite numbers up to {LARGEST_NUMBER:g} (SI units)"
        )
    return array


def joint_array(
    values: ArrayLike, joints: Sequence[str], what: str, *columns: int | None, finite: bool = True
) -> np.ndarray:
    """Return an array with one entry (n,) or one row (n, columns) for each joint; None allows any number of columns."""
    array = numbers(values, what, finite=finite)
    wanted = (len(joints), *columns)
    if array.ndim != len(wanted) or any(w not in (None, got) for w, got in zip(wanted, array.shape, strict=True)):
        shape = f"({wanted[0]},), one number" if not columns else f"({wanted[0]}, {columns[0] or 'N'}), one row"
        raise MotionError(f"{what} has shape {array.shape}; allowed is {shape} for each joint: {', '.join(joints)}")
    return array


def checked_points(points: ArrayLike, joints: Sequence[str]) -> np.ndarray:
    """Return via points (n, K) with at least two columns."""
    array = joint_array(points, joints, "points", None)
    if array.shape[1] < 2:
        raise MotionError(f"points has {array.shape[1]} via point(s); a motion needs at least 2")
    return array


def checked_durations(durations: ArrayLike, moves: int) -> np.ndarray:
    """Return the duration of each move (moves,) [s]; one number stands for all moves."""
    array = numbers(durations, "durations")
    if array.ndim == 0:
        array = np.full(moves, float(array))
    if array.shape != (moves,):
        raise MotionError(f"durations has shape {array.shape}; allowed is one number or ({moves},), one for each move")
    shortest = max(SHORTEST_DURATION, SHORTEST_PART * array.sum())
    if not (array >= shortest).all():
        move = int(np.argmin(array))
        raise MotionError(f"durations is {array[move]:g} s for move {move + 1}; allowed is from {shortest:g} s")
    return array


def checked_times(time: ArrayLike) -> np.ndarray:
    """Return times (N,) [s]; a single number counts as one time."""
    array = np.atleast_1d(numbers(time, "time"))
    if array.ndim != 1:
        raise MotionError(f"time has shape {array.shape}; allowed is (N,)")
    return array
