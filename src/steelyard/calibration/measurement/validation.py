"""Validation of measurements before any fit: those from which no arm can be calibrated are refused with the reason.

Markers are on one rigid link: distances between the markers of one pose must be the same in every pose.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import CalibrationError
from ...robot import AnyRobot, load_robot
from .measurements import NOT_MEASURED, Measurements, check_rotations
from .nominal import check_right_handed, check_units
from .setup import CalibrationSetup

LIKELY = 8.0
"""Distances further from their median than this many robust standard deviations are not noise."""
SMALLEST_ERROR = 1e-3
"""Part of a distance below which its change is no gross error, whatever the noise is."""
FEWEST_SETS = 3
"""Medians over fewer poses say nothing."""
MOST_PERMUTED = 6
"""Most markers of which every order is tried; among more of them only pairs are exchanged."""
SAME_PLACE = 1e-9
"""Markers that agree this closely [m] in every pose are the same column twice."""
THIN = 1e-3
"""Four markers that span less than this part of a cube of their size have no sign of their volume."""


@dataclass(frozen=True)
class Suspicion:
    """A marker in a pose that does not fit the other poses; to be looked at, it is not left out.

    Attributes:
        pose: Name of the configuration.
        marker: Name of the marker, or ``a or b`` where the two are indistinguishable.
        size_mm: Largest change of its distances to the other markers [mm].
    """

    pose: str
    marker: str
    size_mm: float


def marker_sets(measurements: Measurements) -> tuple[np.ndarray, np.ndarray]:
    """Return markers measured at the same time: sets of the same configuration, load and repeat.

    Returns:
        Positions (S, m, 3) [m], NaN where a marker or a coordinate was not measured, and the number of the
        configuration of each set (S,).
    """
    rows = np.flatnonzero(measurements.of_kind("position"))
    keys = np.column_stack([measurements.pose[rows], measurements.load[rows], measurements.repeat[rows]])
    unique, member = np.unique(keys, axis=0, return_inverse=True)
    points = np.full((len(unique), len(measurements.markers), 3), np.nan)
    points[member.ravel(), measurements.marker[rows]] = measurements.value[rows]
    return points, unique[:, 0]


def check_markers(measurements: Measurements) -> tuple[Suspicion, ...]:
    """Refuse columns that are there twice, swapped and mirrored markers; return single points that do not fit.

    Distances between the markers of one pose are compared with their medians over all poses. A pose whose distances
    fit after an exchange of markers has them swapped; one in which only the distances to one marker do not fit is a
    suspicion. Sets of four and more markers that are mirrored have the wrong sign of the volume they span.
    """
    points, pose = marker_sets(measurements)
    names = [measurements.poses[number] for number in pose]
    _check_columns_differ(points, measurements.markers)
    if len(measurements.markers) < 2 or len(np.unique(pose)) < FEWEST_SETS:
        return ()
    distances = np.linalg.norm(points[:, :, np.newaxis] - points[:, np.newaxis], axis=3)
    median, allowed = _usual_distances(distances)
    found = []
    for name, own in zip(names, distances, strict=True):
        change = np.abs(own - median)
        if np.any(change > allowed):
            _check_order(own, median, allowed, name, measurements.markers)
            found += _suspicions(change, allowed, name, measurements.markers)
    _check_mirrored(points, names, measurements.markers)
    return tuple(found)


def _check_columns_differ(points: np.ndarray, names: Sequence[str]) -> None:
    for first, second in itertools.combinations(range(len(names)), 2):
        apart = np.abs(points[:, first] - points[:, second])
        if np.isfinite(apart).any() and np.nanmax(apart) <= SAME_PLACE:
            raise CalibrationError(
                f"markers '{names[first]}' and '{names[second]}' have the same positions in every pose; they are one "
                "column twice, leave one of them out of the set-up"
            )


def _usual_distances(distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return medians (m, m) over the sets and the largest change by noise; NaN for pairs never measured together."""
    measured = np.isfinite(distances).any(axis=0)
    filled = np.where(measured, distances, 0.0)
    median = np.where(measured, np.nanmedian(filled, axis=0), np.nan)
    scale = 1.4826 * np.nanmedian(np.abs(filled - np.where(measured, median, 0.0)), axis=0)
    return median, np.maximum(LIKELY * scale, SMALLEST_ERROR * median)


def _check_order(
    distances: np.ndarray, median: np.ndarray, allowed: np.ndarray, pose: str, names: Sequence[str]
) -> None:
    """Refuse a set whose distances fit when its markers are put in another order."""
    for order in _orders(len(names)):
        change = np.abs(distances[np.ix_(order, order)] - median)
        if np.all((change <= allowed) | np.isnan(change)):
            moved = [names[k] for k, other in enumerate(order) if k != other]
            raise CalibrationError(
                f"pose '{pose}': markers {' and '.join(moved)} are swapped: in another order their distances fit those "
                "of the other poses; put them back in the file"
            )


def _orders(count: int) -> list[tuple[int, ...]]:
    if count <= MOST_PERMUTED:
        # Exchanges of few markers come first: they are the likelier mistake.
        orders = [order for order in itertools.permutations(range(count)) if order != tuple(range(count))]
        return sorted(orders, key=lambda order: sum(k != other for k, other in enumerate(order)))
    pairs = itertools.combinations(range(count), 2)
    return [tuple({one: other, other: one}.get(k, k) for k in range(count)) for one, other in pairs]


def _suspicions(change: np.ndarray, allowed: np.ndarray, pose: str, names: Sequence[str]) -> list[Suspicion]:
    """Return the markers that explain the distances that do not fit, those with most of them first."""
    found = []
    bad = change > allowed
    while bad.any():
        counts = bad.sum(axis=1)
        worst = int(np.argmax(counts + 1e-9 * np.nan_to_num(change).sum(axis=1) / np.nanmax(change)))
        alike = np.flatnonzero((counts == counts[worst]) & bad[worst])
        name = f"{names[worst]} or {names[alike[0]]}" if counts[worst] == 1 and alike.size else names[worst]
        found.append(Suspicion(pose, name, 1e3 * float(np.nanmax(np.where(bad[worst], change[worst], np.nan)))))
        bad[worst], bad[:, worst] = False, False
    return found


def _check_mirrored(points: np.ndarray, poses: Sequence[str], markers: Sequence[str]) -> None:
    """Refuse sets of markers whose signed volume has the opposite sign of most sets."""
    for four in itertools.islice(itertools.combinations(range(len(markers)), 4), 20):
        edges = points[:, four[1:]] - points[:, [four[0]]]
        volume = np.linalg.det(np.nan_to_num(edges))
        length = np.linalg.norm(np.nan_to_num(edges), axis=2).max(initial=0.0)
        usual = np.median(volume)
        mirrored = np.flatnonzero((volume * usual < 0) & (np.abs(volume) > 0.5 * np.abs(usual)))
        if mirrored.size and np.abs(usual) > THIN * length**3:
            raise CalibrationError(
                f"pose '{poses[mirrored[0]]}': markers {', '.join(markers[k] for k in four)} are mirrored against the "
                "other poses; check the signs and the order of its coordinates"
            )


def check_measurements(
    robot: AnyRobot, setup: CalibrationSetup, measurements: Measurements, fewest: int = 2
) -> tuple[Suspicion, ...]:
    """Refuse measurements from which the arm cannot be calibrated; return points that do not fit the others.

    Args:
        robot: The arm.
        setup: How it was measured.
        measurements: What was measured.
        fewest: Configurations that are needed at least.

    Raises:
        CalibrationError: One line that says what is wrong and what to do: one configuration only, wrong units by size,
            left-handed frames, markers that are swapped, mirrored or there twice, differences without a load.
    """
    robot = load_robot(robot)
    check_configurations(measurements, fewest)
    check_loads(setup, measurements)
    check_rotations(measurements.rotation, [f"pose '{measurements.poses[pose]}'" for pose in measurements.pose])
    check_units(robot, setup, measurements)
    suspicions = check_markers(measurements)
    check_right_handed(robot, setup, measurements)
    return suspicions


def check_configurations(measurements: Measurements, fewest: int = 2) -> None:
    """Refuse measurements without numbers, and of one configuration, which show nothing of the joints."""
    if not measurements.rows or not np.isfinite(measurements.value).any():
        raise CalibrationError("there are no measured numbers; at least two configurations are needed, better thirty")
    distinct = np.unique(np.round(measurements.q.T, 9), axis=0)
    if len(distinct) < fewest:
        raise CalibrationError(
            f"all {measurements.rows} rows are at one configuration; measure at different joint positions, better "
            "thirty than ten"
        )


def check_loads(setup: CalibrationSetup, measurements: Measurements) -> None:
    """Refuse loads that the set-up does not have, and differences between loaded and unloaded without a load."""
    loads = len(setup.loads)
    if measurements.load.size and not NOT_MEASURED <= measurements.load.min() <= measurements.load.max() < loads:
        raise CalibrationError(
            f"load numbers go from {measurements.load.min()} to {measurements.load.max()}; the set-up has {loads} "
            "loads, -1 stands for none"
        )
    bare = np.flatnonzero(measurements.of_kind("difference") & (measurements.load == NOT_MEASURED))
    if bare.size:
        raise CalibrationError(
            f"pose '{measurements.poses[measurements.pose[bare[0]]]}' measures a difference between loaded and "
            'unloaded, but names no load; add a column load, or load = "NAME" in [measurement] and [loads.NAME]'
        )
