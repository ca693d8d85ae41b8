"""Rows of measurements as equations, and the samples of the chain that they need, each once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from ..measured.measurements import Measurements
from ..measured.setup import CalibrationSetup, Kind
from ..records import COORDINATES, Equations

DISTANCE = COORDINATES.index("distance")
FIRST_ROTATION = COORDINATES.index("rx")
TOOL = "tool"
"""What poses measure, in the place of a marker's name."""


def equations_of(measurements: Measurements) -> Equations:
    """Return every finite number that was measured: kind by kind, and of each kind all x, then all y, then all z ...

    Poses count as those of a marker of their own, ``tool``, after the others.
    """
    finite = _measured_numbers(measurements)
    kinds: tuple[Kind, ...] = ("position", "difference", "distance", "pose")
    found = [np.argwhere((np.isfinite(finite) & measurements.of_kind(kind)[:, None]).T) for kind in kinds]
    coordinate, row = np.concatenate(found).T
    posed = measurements.of_kind("pose")
    marker = np.where(posed, len(measurements.markers), measurements.marker)
    names = (*measurements.markers, TOOL) if posed.any() else measurements.markers
    arrays = (finite[row, coordinate], measurements.pose[row], marker[row], coordinate, row)
    for array in arrays:
        array.setflags(write=False)
    return Equations(*arrays, measurements.poses, names)


def _measured_numbers(measurements: Measurements) -> np.ndarray:
    """Return what each row says of each coordinate (R, 7), NaN where nothing."""
    numbers = np.full((measurements.rows, len(COORDINATES)), np.nan)
    apart = measurements.of_kind("distance")
    numbers[~apart, :3] = measurements.value[~apart]
    numbers[apart, DISTANCE] = measurements.value[apart, 0]
    turned = measurements.of_kind("pose") & np.isfinite(measurements.rotation).all(axis=(1, 2))
    if turned.any():
        vectors = Rotation.from_matrix(measurements.rotation[turned]).as_rotvec()
        numbers[turned, FIRST_ROTATION:DISTANCE] = vectors
    return numbers


@dataclass(frozen=True, eq=False)
class PointEquations:
    """Equations of marker positions, of their differences and of distances, and the samples they need.

    Attributes:
        q: Joint positions (na, N) of the samples.
        load: Number of the load of each sample (N,), -1 for none.
        marker: Number of the marker of each sample (N,).
        where: Numbers of the equations of one coordinate (n,).
        first: Where the coordinate is among the samples' positions (3, N), counted row by row (n,).
        second: Likewise what is subtracted: the unloaded position, for the last ``len(second)`` of them.
        apart: Numbers of the equations of distances (d,).
        ends: The two samples of each distance (2, d).
    """

    q: np.ndarray
    load: np.ndarray
    marker: np.ndarray
    where: np.ndarray
    first: np.ndarray
    second: np.ndarray
    apart: np.ndarray
    ends: np.ndarray


@dataclass(frozen=True, eq=False)
class PoseEquations:
    """Equations of tool poses, and the samples they need.

    Attributes:
        q: Joint positions (na, N) of the samples.
        load: Number of the load of each sample (N,), -1 for none.
        where: Numbers of the equations of positions (n,).
        first: Where the coordinate is among the samples' positions (3, N), counted row by row (n,).
        turned: Numbers of the equations of rotations (r,).
        vector: Where the coordinate is among the rotation vectors (3, m), counted row by row (r,).
        sample: Sample of each measured rotation (m,).
        rotation: The measured rotations (m, 3, 3).
    """

    q: np.ndarray
    load: np.ndarray
    where: np.ndarray
    first: np.ndarray
    turned: np.ndarray
    vector: np.ndarray
    sample: np.ndarray
    rotation: np.ndarray


def point_equations(measurements: Measurements, equations: Equations) -> PointEquations:
    """Return the equations that are not of poses."""
    row, coordinate = equations.row, equations.coordinate
    apart = np.flatnonzero(coordinate == DISTANCE)
    differs = measurements.of_kind("difference")[row]
    posed = measurements.of_kind("pose")[row]
    alone = np.flatnonzero(~(posed | differs | (coordinate == DISTANCE)))
    where = np.concatenate([alone, np.flatnonzero(differs)])
    loaded, unloaded = row[where], row[differs]
    load, marker = measurements.load, measurements.marker
    wanted = np.concatenate(
        [
            np.stack([loaded, load[loaded], marker[loaded]]),
            np.stack([unloaded, np.full(len(unloaded), -1), marker[unloaded]]),
            np.stack([row[apart], load[row[apart]], marker[row[apart]]]),
            np.stack([row[apart], load[row[apart]], measurements.other[row[apart]]]),
        ],
        axis=1,
    )
    rows, number = _each_once(measurements, wanted)
    first, second, one, other = np.split(number, np.cumsum([len(loaded), len(unloaded), len(apart)]))
    count = rows.shape[1]
    return PointEquations(
        q=np.ascontiguousarray(measurements.q[:, rows[0]]), load=rows[1], marker=rows[2], where=where,
        first=coordinate[where] * count + first, second=coordinate[differs] * count + second,
        apart=apart, ends=np.stack([one, other]),
    )  # fmt: skip


def pose_equations(measurements: Measurements, equations: Equations) -> PoseEquations:
    """Return the equations of poses."""
    posed = np.flatnonzero(measurements.of_kind("pose")[equations.row])
    row, coordinate = equations.row[posed], equations.coordinate[posed]
    rows, number = _each_once(measurements, np.stack([row, measurements.load[row], np.full(len(row), -1)]))
    turns = coordinate >= FIRST_ROTATION
    seen, at = np.unique(row[turns], return_index=True)
    vector = (coordinate[turns] - FIRST_ROTATION) * len(seen) + np.searchsorted(seen, row[turns])
    return PoseEquations(
        q=np.ascontiguousarray(measurements.q[:, rows[0]]), load=rows[1], where=posed[~turns],
        first=coordinate[~turns] * rows.shape[1] + number[~turns], turned=posed[turns], vector=vector,
        sample=number[turns][at], rotation=measurements.rotation[seen],
    )  # fmt: skip


def _each_once(measurements: Measurements, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return samples (row, load, marker) without repeats of q, load and marker, in the order they first appear.

    Args:
        measurements: Where the rows' joint positions are.
        wanted: Row, load and marker (3, n).

    Returns:
        The samples (3, N) and the number of the sample of each wanted one (n,).
    """
    _, posture = np.unique(measurements.q, axis=1, return_inverse=True)
    keys = np.stack([posture.reshape(-1)[wanted[0]], wanted[1], wanted[2]])
    _, at, number = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(at)
    return wanted[:, at[order]], np.argsort(order)[number.reshape(-1)]


def loads_of(setup: CalibrationSetup, load: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return wrench (6, N) in base axes and its point (3, N) in the measured link's frame, by number of the load."""
    wrenches = np.array([(*each.force, *each.moment) for each in setup.loads] + [(0.0,) * 6])
    points = np.array([each.point for each in setup.loads] + [(0.0,) * 3])
    return wrenches[load].T.copy(), points[load].T.copy()
