"""Rows of measurements as equations, what the chain predicts for them, and its derivatives by every unknown.

Samples of the chain that several equations need are computed once.
"""

from __future__ import annotations

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
    """Return the measured value of each coordinate of each row (R, 7), NaN where there is none."""
    numbers = np.full((measurements.rows, len(COORDINATES)), np.nan)
    apart = measurements.of_kind("distance")
    numbers[~apart, :3] = measurements.value[~apart]
    numbers[apart, DISTANCE] = measurements.value[apart, 0]
    turned = measurements.of_kind("pose") & np.isfinite(measurements.rotation).all(axis=(1, 2))
    if turned.any():
        vectors = Rotation.from_matrix(measurements.rotation[turned]).as_rotvec()
        numbers[turned, FIRST_ROTATION:DISTANCE] = vectors
    return numbers


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

Part = tuple[np.ndarray, np.ndarray]
"""Numbers of some equations (n,), and the derivatives of what is predicted for them, transposed (p, n)."""


class PointEquations:
    """Equations of marker positions, of their differences and of distances, and the samples they need.

    Attributes:
        samples: Joint positions and loads of the N samples.
        marker: Number of the marker of each sample (N,).
    """

    def __init__(self, chain: MeasuredChain, measurements: Measurements, equations: MeasurementEquations) -> None:
        row, coordinate = equations.row, equations.coordinate
        self._apart = np.flatnonzero(coordinate == DISTANCE)
        differs = measurements.of_kind("difference")[row]
        posed = measurements.of_kind("pose")[row]
        alone = np.flatnonzero(~(posed | differs | (coordinate == DISTANCE)))
        # Equations of one coordinate; of the last ones an unloaded position is subtracted.
        self._where = np.concatenate([alone, np.flatnonzero(differs)])
        loaded, unloaded, between = row[self._where], row[differs], row[self._apart]
        load, marker = measurements.load, measurements.marker
        wanted = [
            np.stack([loaded, load[loaded], marker[loaded]]),
            np.stack([unloaded, np.full(len(unloaded), -1), marker[unloaded]]),
            np.stack([between, load[between], marker[between]]),
            np.stack([between, load[between], measurements.other[between]]),
        ]
        (rows, loads, self.marker), number = _each_once(measurements, np.concatenate(wanted, axis=1))
        self.samples = chain.samples(np.ascontiguousarray(measurements.q[:, rows]), *loads_of(chain.setup, loads))
        first, second, *ends = np.split(number, np.cumsum([len(loaded), len(unloaded), len(between)]))
        self._ends = ends
        # Where the coordinates are among positions (3, N), counted row by row.
        self._first = coordinate[self._where] * len(rows) + first
        self._second = coordinate[differs] * len(rows) + second

    def subtract(self, result: np.ndarray, position: np.ndarray) -> None:
        """Subtract what positions (3, N) of the samples predict from measured numbers (E,)."""
        flat = position.reshape(-1)
        result[self._where] -= flat[self._first]
        result[self._where[len(self._where) - len(self._second) :]] += flat[self._second]
        if len(self._apart):
            one, other = self._ends
            result[self._apart] -= np.linalg.norm(position[:, one] - position[:, other], axis=0)

    def parts(self, position: np.ndarray, derivatives: np.ndarray) -> list[Part]:
        """Return derivatives of coordinates and of distances from those of the positions (p, 3, N)."""
        flat = derivatives.reshape(len(derivatives), -1)
        coordinates = _columns(flat, self._first)
        if len(self._second):
            coordinates[:, len(self._first) - len(self._second) :] -= flat[:, self._second]
        parts = [(self._where, coordinates)]
        if len(self._apart):
            one, other = self._ends
            between = position[:, one] - position[:, other]
            # Two markers of which nothing is known start at one point: a distance of zero has no direction.
            direction = between / np.maximum(np.linalg.norm(between, axis=0), np.finfo(float).tiny)
            moved = derivatives[:, :, one] - derivatives[:, :, other]
            parts.append((self._apart, np.einsum("cn,pcn->pn", direction, moved)))
        return parts


class PoseEquations:
    """Equations of tool poses, and the samples they need.

    Attributes:
        samples: Joint positions and loads of the N samples.
    """

    def __init__(self, chain: MeasuredChain, measurements: Measurements, equations: MeasurementEquations) -> None:
        posed = np.flatnonzero(measurements.of_kind("pose")[equations.row])
        row, coordinate = equations.row[posed], equations.coordinate[posed]
        wanted = np.stack([row, measurements.load[row], np.full(len(row), -1)])
        (rows, loads, _), number = _each_once(measurements, wanted)
        self.samples = chain.samples(np.ascontiguousarray(measurements.q[:, rows]), *loads_of(chain.setup, loads))
        turns = coordinate >= FIRST_ROTATION
        oriented, at = np.unique(row[turns], return_index=True)
        self._sample, self._rotation = number[turns][at], measurements.rotation[oriented]
        # Where the coordinates are among positions (3, N) and rotation vectors (3, m), counted row by row.
        self._where, self._first = posed[~turns], coordinate[~turns] * len(rows) + number[~turns]
        self._turned = posed[turns]
        self._vector = (coordinate[turns] - FIRST_ROTATION) * len(oriented) + np.searchsorted(oriented, row[turns])

    def subtract(self, result: np.ndarray, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Set the residuals of poses (E,); return the rotation vectors (3, m) from predicted to measured rotations."""
        result[self._where] -= position.reshape(-1)[self._first]
        if not len(self._sample):
            return np.zeros((3, 0))
        apart = self._rotation @ rotation.transpose(2, 1, 0)[self._sample]
        vectors = Rotation.from_matrix(apart).as_rotvec().T
        result[self._turned] = vectors.reshape(-1)[self._vector]
        return vectors

    def parts(self, vectors: np.ndarray, derivatives: np.ndarray) -> list[Part]:
        """Return derivatives of positions and rotation vectors from those of the poses (p, 6, N)."""
        shifted = derivatives[:, :3].reshape(len(derivatives), -1)
        # log(exp(e) exp(-w)) = e - J(e) w: beyond the first order in w nothing is lost, however large e is.
        turned = np.einsum("cdn,pdn->pcn", _log_derivative(vectors), derivatives[:, 3:][:, :, self._sample])
        return [
            (self._where, shifted[:, self._first]),
            (self._turned, turned.reshape(len(derivatives), -1)[:, self._vector]),
        ]


class Prediction:
    """Residuals and derivatives of equations; samples that several equations share are computed once.

    Args:
        chain: The compiled chain.
        registration: Where base and tool are before their unknown parts, and the known markers.
        measurements: Rows that the equations come from.
        equations: The measured numbers (E).
    """

    def __init__(
        self, chain: MeasuredChain, registration: Registration, measurements: Measurements,
        equations: MeasurementEquations,
    ) -> None:  # fmt: skip
        self._chain, self._measured = chain, equations.measured
        self._registered = registration.markers
        self._frames = ChainFrames(registration.base, registration.tool)
        self._points = PointEquations(chain, measurements, equations)
        self._poses = PoseEquations(chain, measurements, equations)
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
        result, points, poses = self._measured.copy(), self._points, self._poses
        if len(points.marker):
            at = self.markers(values)[points.marker].T.copy()
            points.subtract(result, self._chain.points(values, points.samples, at, self._frames))
        if poses.samples.q.shape[1]:
            poses.subtract(result, *self._chain.poses(values, poses.samples, self._frames))
        return result

    def linearised(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return measured minus predicted (E,) and the derivatives of what is predicted, transposed (p, E)."""
        result, parts, points, poses = self._measured.copy(), [], self._points, self._poses
        if len(points.marker):
            at = self.markers(values)[points.marker].T.copy()
            position, derivatives, turn = self._chain.point_derivatives(values, points.samples, at, self._frames)
            for number, first in self._unknown:
                mine = points.marker == number
                derivatives[first : first + 3, :, mine] = turn[:, :, mine].transpose(1, 0, 2)
            points.subtract(result, position)
            parts += points.parts(position, derivatives)
        if poses.samples.q.shape[1]:
            rotation, position, derivatives = self._chain.pose_derivatives(values, poses.samples, self._frames)
            parts += poses.parts(poses.subtract(result, rotation, position), derivatives)
        return result, _joined(parts, len(values), len(result))


def _columns(flat: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return chosen columns; the array itself, without a copy, if these are all of them in order."""
    everything = len(chosen) == flat.shape[1] and (chosen == np.arange(flat.shape[1])).all()
    return flat if everything else np.take(flat, chosen, axis=1)


def _joined(parts: list[Part], unknowns: int, count: int) -> np.ndarray:
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
