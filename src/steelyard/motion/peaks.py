"""From the times at which a motion can be extreme to its extremes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .trajectory import MotionExtrema, Peak

# Candidates this close, relative to their size, are one extreme reached twice: rounding shall not choose between them.
TIE = 1e-12

Candidates = tuple[np.ndarray, np.ndarray]
"""Times (c,) at which a joint can be extreme, and its values (c,) there."""


def extrema_from_candidates(candidates: Sequence[Sequence[Candidates]], joints: tuple[str, ...]) -> MotionExtrema:
    """Return the extremes among candidates, given for each order of derivative (0 to 3) and each joint."""
    position, velocity, acceleration, jerk = candidates
    return MotionExtrema(
        lower=_smallest(position),
        upper=_largest(position),
        velocity=_largest_magnitude(velocity),
        acceleration=_largest_magnitude(acceleration),
        jerk=_largest_magnitude(jerk),
        joints=joints,
    )


def extrema_of_parts(parts: Sequence[tuple[float, MotionExtrema]]) -> MotionExtrema:
    """Return the extremes of a motion made of parts, each given with the time [s] at which it begins."""
    joints = parts[0][1].joints

    def gathered(name: str) -> list[Candidates]:
        peaks = [(begin, getattr(extrema, name)) for begin, extrema in parts]
        times = np.array([begin + peak.time for begin, peak in peaks])
        values = np.array([peak.value for _, peak in peaks])
        return list(zip(times.T, values.T, strict=True))

    return MotionExtrema(
        lower=_smallest(gathered("lower")),
        upper=_largest(gathered("upper")),
        velocity=_largest(gathered("velocity")),
        acceleration=_largest(gathered("acceleration")),
        jerk=_largest(gathered("jerk")),
        joints=joints,
    )


def _largest(rows: Sequence[Candidates]) -> Peak:
    """Return the largest value of each joint, and the earliest of the times that reach it to rounding."""
    best = []
    for times, values in rows:
        largest = values.max()
        best.append((largest, times[values >= largest - TIE * np.abs(values).max()].min()))
    values, times = np.array(best).T
    return Peak(values, times)


def _smallest(rows: Sequence[Candidates]) -> Peak:
    largest = _largest([(times, -values) for times, values in rows])
    return Peak(-largest.value, largest.time)


def _largest_magnitude(rows: Sequence[Candidates]) -> Peak:
    return _largest([(times, np.abs(values)) for times, values in rows])
