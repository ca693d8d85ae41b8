"""Is the measurement frame right-handed? Positions that fit the arm only in a mirror say that it is not."""

from __future__ import annotations

import numpy as np

from ...errors import CalibrationError
from ...robot import Robot
from .measurements import Measurements
from .nominal import nominal_poses, reach
from .setup import CalibrationSetup

CLEARLY, SMALL = 4.0, 0.02
"""A mirrored frame must fit this many times better before it is believed, and to this part of the arm's reach: where it
does not, something else is wrong, such as the sign of a joint."""
ROUNDS = 60
FEWEST_POSES = 6
MOST_ROWS = 3000
"""More rows than this make the answer no surer."""


def check_right_handed(robot: Robot, setup: CalibrationSetup, measurements: Measurements) -> None:
    """Refuse positions that fit the robot's file in a left-handed frame much better than in a right-handed one."""
    whole = np.isfinite(measurements.value).all(axis=1)
    seen = (measurements.of_kind("position") | measurements.of_kind("pose")) & whole
    if len(np.unique(measurements.pose[seen])) < FEWEST_POSES:
        return
    right, left = (nominal_misfit(robot, setup.link, measurements.taken(seen), sign) for sign in (1.0, -1.0))
    if left * CLEARLY < right and left < SMALL * reach(robot, setup.link, measurements.q):
        raise CalibrationError(
            f"measured positions fit the arm to {1e3 * left:.3g} mm in a left-handed frame and to {1e3 * right:.3g} mm "
            "in a right-handed one; turn one axis of the measurement round, or exchange two"
        )


def nominal_misfit(robot: Robot, link: str, measurements: Measurements, sign: float = 1.0) -> float:
    """Return the median distance [m] of complete positions from the nominal arm in a frame of one handedness."""
    taken = measurements.taken(np.arange(0, measurements.rows, -(-measurements.rows // MOST_ROWS)))
    return _misfit(*nominal_poses(robot, link, taken.q), taken.marker + 1, taken.value, sign)


def _misfit(rotation: np.ndarray, point: np.ndarray, marker: np.ndarray, value: np.ndarray, sign: float) -> float:
    """Return the median distance [m] that a frame of one handedness leaves, with free base and markers.

    ``value = A (point + rotation m) + t``: frame and markers in turn, each by linear least squares (Kabsch).
    """
    markers = np.zeros((marker.max() + 1, 3))
    misfit = np.zeros(len(value))
    for _ in range(ROUNDS):
        there = point + np.einsum("nij,nj->ni", rotation, markers[marker])
        frame = _aligned(there, value, sign)
        shift = np.median(value - there @ frame.T, axis=0)
        gap = (value - shift) @ frame - there
        misfit = np.linalg.norm(gap, axis=1)
        local = np.einsum("nji,nj->ni", rotation, gap)
        for number in np.unique(marker):
            markers[number] += np.median(local[marker == number], axis=0)
    return float(np.median(misfit))


def _aligned(source: np.ndarray, target: np.ndarray, sign: float) -> np.ndarray:
    """Return the orthogonal matrix of determinant ``sign`` with the least ``|target - A source|`` about the means."""
    cross = (target - target.mean(axis=0)).T @ (source - source.mean(axis=0))
    left, _, right = np.linalg.svd(cross)
    return left @ np.diag([1.0, 1.0, sign * np.linalg.det(left @ right)]) @ right
