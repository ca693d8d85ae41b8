"""Rows of measurements as equations, and the samples of the chain that they need, each once.

What the chain predicts for equations, and its derivatives by every unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from ..measurement.measurements import Measurements
from ..measurement.setup import CalibrationSetup, Kind
from ..records import COORDINATES, MeasurementEquations
from .chain import ChainFrames, MeasuredChain
from .registration import Registration

DISTANCE = COORDINATES.index("distance")
FIRST_ROTATION = COORDINATES.index("rx")
TOOL = "tool"
"""What poses measure, in the place of a marker's name."""


def equations_of(measurements: Measurements) -> MeasurementEquations:
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
    return MeasurementEquations(*arrays, measurements.poses, names)


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


def point_equations(measurements: Measurements, equations: MeasurementEquations) -> PointEquations:
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


def pose_equations(measurements: Measurements, equations: MeasurementEquations) -> PoseEquations:
    """Return the equations of poses."""
    posed = np.flatnonzero(measurements.of_kind("pose")[equations.row])
    row, coordinate = equations.row[posed], equations.coordinate[posed]
    rows, number = _each_once(measurements, np.stack([row, measurements.load[row], np.full(len(row), -1)]))
    turns = coordinate >= FIRST_ROTATION
    observed, at = np.unique(row[turns], return_index=True)
    vector = (coordinate[turns] - FIRST_ROTATION) * len(observed) + np.searchsorted(observed, row[turns])
    return PoseEquations(
        q=np.ascontiguousarray(measurements.q[:, rows[0]]), load=rows[1], where=posed[~turns],
        first=coordinate[~turns] * rows.shape[1] + number[~turns], turned=posed[turns], vector=vector,
        sample=number[turns][at], rotation=measurements.rotation[observed],
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


# Below this angle [rad] the first terms of the rotation vector's derivative are exact to rounding.
_SMALL_ANGLE = 1e-3


class Prediction:
    """Residuals and derivatives of equations; samples that several equations share are computed once.

    Args:
        chain: The compiled chain.
        registration: Where base and tool are before their unknown parts, and the known markers.
        measurements: Rows that the equations come from.
        equations: The measured numbers (E).
    """

    def __init__(
        self,
        chain: MeasuredChain,
        registration: Registration,
        measurements: Measurements,
        equations: MeasurementEquations,
    ) -> None:
        self._chain, self._measured = chain, equations.measured
        self._registered = registration.markers
        self._frames = ChainFrames(registration.base, registration.tool)
        self._points = point_equations(measurements, equations)
        self._poses = pose_equations(measurements, equations)
        self._at_points = chain.samples(self._points.q, *loads_of(chain.setup, self._points.load))
        self._at_poses = chain.samples(self._poses.q, *loads_of(chain.setup, self._poses.load))
        column = {name: k for k, name in enumerate(chain.names)}
        # Marker number and column of x of every marker that is unknown; y and z follow.
        markers = enumerate(chain.setup.markers)
        self._unknown = [(k, column[f"x[{marker.name}]"]) for k, marker in markers if not marker.known]

    def markers(self, values: np.ndarray) -> np.ndarray:
        """Return the markers' positions (M, 3) in the measured link's frame."""
        positions = self._registered.copy()
        for number, first in self._unknown:
            positions[number] = values[first : first + 3]
        return positions

    def residual(self, values: np.ndarray) -> np.ndarray:
        """Return measured minus predicted (E,)."""
        result = self._measured.copy()
        if len(self._points.marker):
            point = self._sampled_markers(values)
            position = self._chain.points(values, self._at_points, point, self._frames)
            self._subtract_points(result, position)
        if len(self._poses.load):
            rotation, position = self._chain.poses(values, self._at_poses, self._frames)
            self._subtract_poses(result, rotation, position)
        return result

    def linearised(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return measured minus predicted (E,) and the derivatives of what is predicted, transposed (p, E)."""
        result, parts = self._measured.copy(), []
        if len(self._points.marker):
            point = self._sampled_markers(values)
            position, derivatives, turn = self._chain.point_derivatives(values, self._at_points, point, self._frames)
            for number, first in self._unknown:
                mine = self._points.marker == number
                derivatives[first : first + 3, :, mine] = turn[:, :, mine].transpose(1, 0, 2)
            self._subtract_points(result, position)
            parts += self._point_parts(position, derivatives)
        if len(self._poses.load):
            rotation, position, derivatives = self._chain.pose_derivatives(values, self._at_poses, self._frames)
            vectors = self._subtract_poses(result, rotation, position)
            parts += self._pose_parts(vectors, derivatives)
        return result, _joined(parts, len(values), len(result))

    def _sampled_markers(self, values: np.ndarray) -> np.ndarray:
        return self.markers(values)[self._points.marker].T.copy()

    def _subtract_points(self, result: np.ndarray, position: np.ndarray) -> None:
        points = self._points
        flat = position.reshape(-1)
        result[points.where] -= flat[points.first]
        result[points.where[len(points.where) - len(points.second) :]] += flat[points.second]
        if len(points.apart):
            result[points.apart] -= np.linalg.norm(position[:, points.ends[0]] - position[:, points.ends[1]], axis=0)

    def _point_parts(self, position: np.ndarray, derivatives: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return derivatives (p, n) of coordinates and of distances, each with the numbers of their equations."""
        points = self._points
        flat = derivatives.reshape(len(derivatives), -1)
        coordinates = _columns(flat, points.first)
        if len(points.second):
            coordinates[:, len(points.first) - len(points.second) :] -= flat[:, points.second]
        parts = [(points.where, coordinates)]
        if len(points.apart):
            one, other = points.ends
            between = position[:, one] - position[:, other]
            # Two markers of which nothing is known begin at one point: a distance of zero has no direction.
            direction = between / np.maximum(np.linalg.norm(between, axis=0), np.finfo(float).tiny)
            moved = derivatives[:, :, one] - derivatives[:, :, other]
            parts.append((points.apart, np.einsum("cn,pcn->pn", direction, moved)))
        return parts

    def _subtract_poses(self, result: np.ndarray, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Set the residuals of poses; return the rotation vectors (3, m) from predicted to measured rotations."""
        poses = self._poses
        result[poses.where] -= position.reshape(-1)[poses.first]
        if not len(poses.sample):
            return np.zeros((3, 0))
        apart = poses.rotation @ rotation.transpose(2, 1, 0)[poses.sample]
        vectors = Rotation.from_matrix(apart).as_rotvec().T
        result[poses.turned] = vectors.reshape(-1)[poses.vector]
        return vectors

    def _pose_parts(self, vectors: np.ndarray, derivatives: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        poses = self._poses
        shifted = derivatives[:, :3].reshape(len(derivatives), -1)
        # log(exp(e) exp(-w)) = e - J(e) w: beyond the first order in w nothing is lost, however large e is.
        turned = np.einsum("cdn,pdn->pcn", _log_derivative(vectors), derivatives[:, 3:][:, :, poses.sample])
        return [
            (poses.where, shifted[:, poses.first]),
            (poses.turned, turned.reshape(len(derivatives), -1)[:, poses.vector]),
        ]


def _columns(flat: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return chosen columns; the array itself, without a copy, if these are all of them in order."""
    everything = len(chosen) == flat.shape[1] and (chosen == np.arange(flat.shape[1])).all()
    return flat if everything else np.take(flat, chosen, axis=1)


def _joined(parts: list[tuple[np.ndarray, np.ndarray]], unknowns: int, count: int) -> np.ndarray:
    """Return the derivatives (p, E) of parts that have the numbers of their equations beside them."""
    where, first = parts[0] if parts else (np.arange(0), np.empty((unknowns, 0)))
    if len(where) == count and (where == np.arange(count)).all():
        return first
    joined = np.empty((unknowns, count))
    for where, derivatives in parts:
        joined[:, where] = derivatives
    return joined


def _log_derivative(vectors: np.ndarray) -> np.ndarray:
    """Return the inverse right Jacobian (3, 3, m) of rotation vectors (3, m).

    ``J = 1 + E/2 + (1/a^2 - (1 + cos a) / (2 a sin a)) E^2`` with E the cross-product matrix and a the angle; the
    factor is 1/12 for small angles.
    """
    angle = np.linalg.norm(vectors, axis=0)
    large = np.where(angle > _SMALL_ANGLE, angle, 1.0)
    factor = np.where(angle > _SMALL_ANGLE, 1 / large**2 - 0.5 / (large * np.tan(large / 2)), 1 / 12)
    x, y, z = vectors
    none = np.zeros_like(x)
    skew = np.array([[none, -z, y], [z, none, -x], [-y, x, none]])
    return np.eye(3)[:, :, None] + skew / 2 + factor * np.einsum("ijn,jkn->ikn", skew, skew)
