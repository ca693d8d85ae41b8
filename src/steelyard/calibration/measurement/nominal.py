"""Nominal poses of the measured link, and checks of measurements against them: units and handedness.

Positions and joint angles whose size does not fit the arm are refused, as are positions that fit the nominal arm only
in a left-handed frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from ...errors import CalibrationError
from ...robot import Robot, transform_from_placement
from .measurements import Measurements
from .setup import LENGTHS, CalibrationSetup, moving_chain


def nominal_poses(robot: Robot, link: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (N, 3, 3) and positions (N, 3) [m] of a link in the robot's base frame.

    Args:
        robot: The arm.
        link: Name of the link.
        q: Positions of the actuated joints (na, N) [rad or m].
    """
    matrix, offset = robot.coupling()
    positions = matrix @ q + offset[:, np.newaxis]
    rotation, point = np.tile(np.eye(3), (q.shape[1], 1, 1)), np.zeros((q.shape[1], 3))
    for body in moving_chain(robot, link):
        turn, shift = transform_from_placement(body.placement)
        rotation, point = rotation @ turn, point + rotation @ shift
        motion = positions[body.number - 1][:, np.newaxis] * np.array(body.joint.axis)
        if body.joint.kind == "prismatic":
            point = point + np.einsum("nij,nj->ni", rotation, motion)
        else:
            rotation = rotation @ Rotation.from_rotvec(motion).as_matrix()
    turn, shift = transform_from_placement(robot.frame(link).placement)
    return rotation @ turn, point + rotation @ shift


def reach(robot: Robot, link: str, q: np.ndarray) -> float:
    """Return the largest distance of a link from the first joint [m]: the sum of all lengths and slides of the chain.

    Args:
        robot: The arm.
        link: Name of the link.
        q: Positions at which it was measured (na, N), for slides.
    """
    matrix, offset = robot.coupling()
    positions = matrix @ q + offset[:, np.newaxis]
    chain = moving_chain(robot, link)
    total = float(np.linalg.norm(transform_from_placement(robot.frame(link).placement)[1]))
    for body in chain:
        if body is not chain[0]:
            total += float(np.linalg.norm(transform_from_placement(body.placement)[1]))
        if body.joint.kind == "prismatic":
            total += float(np.abs(positions[body.number - 1]).max(initial=0.0))
    return total


CLEARLY, SMALL = 4.0, 0.02
"""A mirrored frame must fit this many times better before it is believed, and to this part of the arm's reach: where it
does not, something else is wrong, such as the sign of a joint."""
ITERATIONS = 60
FEWEST_POSES = 6
MOST_ROWS = 3000
"""More rows than this make the answer no surer."""


def check_right_handed(robot: Robot, setup: CalibrationSetup, measurements: Measurements) -> None:
    """Refuse positions that fit the robot's file in a left-handed frame much better than in a right-handed one."""
    complete = measurements.taken(measurements.complete)
    if len(np.unique(complete.pose)) < FEWEST_POSES:
        return
    right, left = (nominal_misfit(robot, setup.link, complete, sign) for sign in (1.0, -1.0))
    if left * CLEARLY < right and left < SMALL * reach(robot, setup.link, measurements.q):
        raise CalibrationError(
            f"measured positions fit the arm to {1e3 * left:.3g} mm in a left-handed frame and to {1e3 * right:.3g} mm "
            "in a right-handed one; reverse one axis of the measurement, or exchange two"
        )


def nominal_misfit(robot: Robot, link: str, measurements: Measurements, sign: float = 1.0) -> float:
    """Return the median distance [m] of complete positions from the nominal arm in a frame of one handedness.

    ``value = A (point + rotation m) + t`` is solved for the frame and for the markers in turn, each by linear least
    squares (Kabsch).
    """
    taken = measurements.taken(np.arange(0, measurements.rows, -(-measurements.rows // MOST_ROWS)))
    rotation, point = nominal_poses(robot, link, taken.q)
    marker, value = taken.marker + 1, taken.value
    markers = np.zeros((marker.max() + 1, 3))
    misfit = np.zeros(len(value))
    for _ in range(ITERATIONS):
        there = point + np.einsum("nij,nj->ni", rotation, markers[marker])
        frame = orthogonal_part((value - value.mean(axis=0)).T @ (there - there.mean(axis=0)), sign)
        shift = np.median(value - there @ frame.T, axis=0)
        gap = (value - shift) @ frame - there
        misfit = np.linalg.norm(gap, axis=1)
        local = np.einsum("nji,nj->ni", rotation, gap)
        for number in np.unique(marker):
            markers[number] += np.median(local[marker == number], axis=0)
    return float(np.median(misfit))


def orthogonal_part(matrix: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """Return the orthogonal matrix (3, 3) of determinant ``sign`` that is nearest to a matrix.

    For ``target^T source`` of points about their means it is A with the least ``|target - A source|`` (Kabsch).
    """
    left, _, right = np.linalg.svd(matrix)
    return left @ np.diag([1.0, 1.0, sign * np.linalg.det(left @ right)]) @ right


MOST_TURN = 4 * math.pi
"""A joint that turns further [rad] from its zero was given in degrees."""
BEYOND_LIMITS = math.radians(20)
"""Joint positions may be beyond the file's limits by this [rad]: limits of files are often too narrow."""
LONGEST_TOOL = 1.0
"""Markers may be this far from the measured link [m], or as far as the arm reaches."""
TOO_LITTLE = 0.06
"""Markers that move less than this part of what the measured link moves are in another unit, if one fits."""
FITS = 4.0
"""A unit fits in which markers move up to this many times more or less than the measured link: one that turns about a
fixed point fits in none, and is no error."""
TOO_MUCH = 5.0
"""Markers that move this many times further than the measured link: with angles all within a few degrees, these are
radians declared as degrees."""
FEW_DEGREES = math.radians(2 * math.pi)
"""Half a turn to either side, when radians are taken as degrees [rad]."""
LARGEST_DEFLECTION = 0.1
"""A load bends no arm by more than this part of its reach."""


def check_units(robot: Robot, setup: CalibrationSetup, measurements: Measurements) -> None:
    """Refuse measurements whose size says that another unit was meant."""
    if setup.columns.angle == "rad":
        _check_not_degrees(robot, setup, measurements)
    spread = largest_spread(measurements)
    limit = reach(robot, setup.link, measurements.q)
    if spread is not None:
        _check_spread(robot, setup, measurements, spread, limit)
    _check_deflections(setup, measurements, limit)


def largest_spread(measurements: Measurements) -> float | None:
    """Return how far the positions of the median marker spread along an axis [m]; None if none are measured.

    Medians and the middle 90 % keep a single wrong number from deciding.
    """
    placed = measurements.of_kind("position") | measurements.of_kind("pose")
    spreads = []
    for marker in np.unique(measurements.marker[placed]):
        values = measurements.value[placed & (measurements.marker == marker)]
        columns = [column[np.isfinite(column)] for column in values.T]
        spreads.append(max((_middle_range(column) for column in columns if column.size), default=0.0))
    return float(np.median(spreads)) if spreads else None


def _middle_range(values: np.ndarray) -> float:
    low, high = np.quantile(values, [0.05, 0.95])
    return float(high - low)


def _check_not_degrees(robot: Robot, setup: CalibrationSetup, measurements: Measurements) -> None:
    chain = {body.joint.name for body in moving_chain(robot, setup.link)}
    for row, body in enumerate(robot.actuated):
        if body.joint.kind == "prismatic" or body.joint.name not in chain:
            continue
        low, high = float(measurements.q[row].min()), float(measurements.q[row].max())
        limits = body.joint.limits
        beyond = max(limits.lower - low, high - limits.upper)
        fits = limits.lower <= math.radians(low) and math.radians(high) <= limits.upper
        far = beyond > BEYOND_LIMITS and fits and high - low > 2 * math.pi
        if max(-low, high) > MOST_TURN or (far and _fits_in_degrees(robot, setup, measurements)):
            raise CalibrationError(
                f"joint '{body.joint.name}' goes from {low:.4g} to {high:.4g} rad, its limits are {limits.lower:.3g} "
                f'to {limits.upper:.3g} rad; if these are degrees, declare angle = "deg" in [measurement]'
            )


def _fits_in_degrees(robot: Robot, setup: CalibrationSetup, measurements: Measurements) -> bool:
    """Return whether the nominal arm fits the points better with angles in degrees, or nothing can be said."""
    read = measurements.taken(measurements.complete)
    if not read.rows:
        return True
    turns = np.array([body.joint.kind != "prismatic" for body in robot.actuated])
    degrees = replace(read, q=np.where(turns[:, np.newaxis], np.radians(read.q), read.q))
    return nominal_misfit(robot, setup.link, degrees) < nominal_misfit(robot, setup.link, read)


def _check_spread(
    robot: Robot, setup: CalibrationSetup, measurements: Measurements, spread: float, limit: float
) -> None:
    points = nominal_poses(robot, setup.link, measurements.q)[1]
    expected = max(_middle_range(column) for column in points.T)
    declared = setup.columns.position
    most = 2 * (limit + max(limit, LONGEST_TOOL))
    better, misfit = _better_unit(spread, declared, expected or limit or LONGEST_TOOL)
    if spread > most or (spread < TOO_LITTLE * expected and misfit < FITS):
        raise CalibrationError(
            f"measured positions spread over {spread:.3g} m, the arm's link '{setup.link}' over {expected:.3g} m at "
            f'these joint positions (reach {limit:.3g} m); positions are declared in "{declared}", {better}'
        )
    turns = [row for row, body in enumerate(robot.actuated) if body.joint.kind != "prismatic"]
    small = bool(turns) and float(np.abs(measurements.q[turns]).max()) <= FEW_DEGREES
    if setup.columns.angle == "deg" and small and spread > TOO_MUCH * expected:
        raise CalibrationError(
            f"no joint turns by more than 6.3 degrees, but markers spread over {spread:.3g} m and link '{setup.link}' "
            f'over {expected:.3g} m; if angles are in radians, declare angle = "rad" in [measurement]'
        )


def _better_unit(spread: float, declared: str, expected: float) -> tuple[str, float]:
    """Return as a remedy the unit in which the spread is nearest to the motion of the arm, and the ratio of the two."""
    raw = spread / LENGTHS[declared]
    sizes: Mapping[str, float] = {unit: abs(math.log(raw * scale / expected)) for unit, scale in LENGTHS.items() if raw}
    best = min(sizes, key=lambda unit: sizes[unit], default=declared)
    off = math.exp(min(sizes.get(best, math.inf), 700.0))
    if best == declared:
        return "check the robot and the joint columns", off
    return f'"{best}" would fit: declare position = "{best}" in [measurement]', off


def _check_deflections(setup: CalibrationSetup, measurements: Measurements, limit: float) -> None:
    values = measurements.value[measurements.of_kind("difference")]
    if not values.size:
        return
    size, declared = float(np.median(np.linalg.norm(np.nan_to_num(values), axis=1))), setup.columns.position
    if size > LARGEST_DEFLECTION * limit:
        raise CalibrationError(
            f"differences between loaded and unloaded positions are {size:.3g} m, the arm reaches {limit:.3g} m; "
            f'positions are declared in "{declared}", {_better_unit(size, declared, 0.002 * limit)[0]}'
        )
