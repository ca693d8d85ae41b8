"""Measurements of an arm: markers and poses by joint positions and load, their declared noise, and orientations.

Standard deviations by row and axis follow from what the instrument's data sheet states. Orientations are read as
quaternions, as roll, pitch and yaw, or as matrices, and checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from ...errors import CalibrationError
from ...tables import NamedColumns
from ...text import short_repr
from ..records import MeasurementEquations
from .setup import KINDS, CalibrationSetup, Kind, TrackerNoise

NOT_MEASURED = -1
"""Number of a marker or load where there is none."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measured positions, poses, distances and deflections in SI units, a row for each marker and repeat.

    Attributes:
        joints: Names of the robot's actuated joints, the rows of ``q``.
        q: Joint positions (na, R) [rad or m]; zero for joints that do not move the measured link.
        kind: What each of the R rows measures: ``position`` of a marker, ``pose`` of the tool, ``distance`` between two
            markers (see ``other``), ``difference`` of a marker's position, loaded minus unloaded at the same joint
            positions.
        pose: Number of the configuration (R,), 0, 1, ...
        marker: Number of the marker (R,); -1 in rows of kind ``pose``, which measure the tool's frame.
        other: Number of the second marker of a distance (R,), -1 elsewhere.
        load: Number of the load among those of the set-up (R,), -1 for none.
        value: What was measured (R, 3) [m], NaN where a coordinate is missing; a distance is in ``value[:, 0]``.
        rotation: Measured orientation of the tool (R, 3, 3) in the measurement frame, NaN where not measured.
        repeat: Number of the repeat at the same configuration and load (R,), 0, 1, ...
        poses: Names of the configurations.
        markers: Names of the markers.
        notes: What was assumed in reading them.
    """

    __repr__ = short_repr

    joints: tuple[str, ...]
    q: np.ndarray
    kind: tuple[Kind, ...]
    pose: np.ndarray
    marker: np.ndarray
    other: np.ndarray
    load: np.ndarray
    value: np.ndarray
    rotation: np.ndarray
    repeat: np.ndarray
    poses: tuple[str, ...]
    markers: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rows = len(self.kind)
        shapes = {
            "q": (len(self.joints), rows), "pose": (rows,), "marker": (rows,), "other": (rows,), "load": (rows,),
            "value": (rows, 3), "rotation": (rows, 3, 3), "repeat": (rows,),
        }  # fmt: skip
        for name, shape in shapes.items():
            kind = float if name in ("q", "value", "rotation") else int
            array = np.array(getattr(self, name), dtype=kind)
            if array.shape != shape:
                raise CalibrationError(f"{name} has shape {array.shape}; {shape} is expected for {rows} rows")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        _check_numbers(self)

    @property
    def rows(self) -> int:
        """Number of rows R."""
        return len(self.kind)

    def of_kind(self, kind: Kind) -> np.ndarray:
        """Return a mask (R,) of the rows of one kind."""
        return np.array([each == kind for each in self.kind], dtype=bool)

    @property
    def complete(self) -> np.ndarray:
        """Mask (R,) of positions and poses whose x, y and z are all measured."""
        return (self.of_kind("position") | self.of_kind("pose")) & np.isfinite(self.value).all(axis=1)

    def taken(self, chosen: np.ndarray | Sequence[int]) -> Measurements:
        """Return some of the rows, by numbers or as a mask; names and numbers of poses and markers stay."""
        rows = np.arange(self.rows)[np.asarray(chosen)]
        return replace(
            self, q=self.q[:, rows], kind=tuple(self.kind[row] for row in rows), pose=self.pose[rows],
            marker=self.marker[rows], other=self.other[rows], load=self.load[rows], value=self.value[rows],
            rotation=self.rotation[rows], repeat=self.repeat[rows],
        )  # fmt: skip


def position_measurements(
    joints: Sequence[str],
    q: np.ndarray,
    value: np.ndarray,
    markers: Sequence[str] = ("marker_1",),
    load: int = NOT_MEASURED,
    kind: Kind = "position",
) -> Measurements:
    """Return measurements of every marker at every configuration, from arrays.

    Args:
        joints: Names of the actuated joints.
        q: Joint positions of the configurations (na, N) [rad or m].
        value: Positions (N, m, 3) or, with r repeats, (N, m, r, 3) [m], NaN where missing; m markers.
        markers: Names of the markers.
        load: Number of the load, -1 for none.
        kind: ``position`` or ``difference``.
    """
    q, value = np.atleast_2d(np.array(q, dtype=float)), np.array(value, dtype=float)
    value = value[:, :, np.newaxis] if value.ndim == 3 else value
    if value.ndim != 4 or value.shape[:2] != (q.shape[1], len(markers)) or value.shape[3] != 3:
        raise CalibrationError(
            f"value has shape {value.shape}; ({q.shape[1]}, {len(markers)}, repeats, 3) is expected, for "
            "configurations, markers, repeats and coordinates"
        )
    pose, marker, repeat = (index.ravel() for index in np.indices(value.shape[:3]))
    rows = pose.size
    return Measurements(
        joints=tuple(joints), q=q[:, pose], kind=(kind,) * rows, pose=pose, marker=marker,
        other=np.full(rows, NOT_MEASURED), load=np.full(rows, load), value=value.reshape(rows, 3),
        rotation=np.full((rows, 3, 3), np.nan), repeat=repeat,
        poses=tuple(str(number) for number in range(1, q.shape[1] + 1)), markers=tuple(markers),
    )  # fmt: skip


def _check_numbers(measured: Measurements) -> None:
    for kind in measured.kind:
        if kind not in KINDS:
            raise CalibrationError(f"a row measures '{kind}'; allowed: {', '.join(KINDS)}")
    if not np.isfinite(measured.q).all():
        row = int(np.flatnonzero(~np.isfinite(measured.q).all(axis=0))[0])
        raise CalibrationError(f"q of row {row + 1} holds {measured.q[:, row]}; joint positions must be finite numbers")
    for name, numbers, count, least in (
        ("pose", measured.pose, len(measured.poses), 0),
        ("marker", measured.marker, len(measured.markers), NOT_MEASURED),
        ("other", measured.other, len(measured.markers), NOT_MEASURED),
    ):
        if numbers.size and not (least <= numbers.min() and numbers.max() < count):
            raise CalibrationError(
                f"{name} holds numbers from {numbers.min()} to {numbers.max()}; allowed are {least} to {count - 1}"
            )


TWO_READINGS = np.sqrt(2.0)
"""A difference or a distance is made of two readings, each with the instrument's noise."""


def instrument_sigma(setup: CalibrationSetup, measurements: Measurements) -> np.ndarray | None:
    """Return the standard deviation of every row in x, y and z (R, 3) [m], or None where the set-up declares none.

    A difference or a distance has the noise of two readings. NaN where a coordinate is missing, and with it the
    distance from the tracker.
    """
    if setup.tracker is not None:
        if set(measurements.kind) - {"position", "pose"}:
            raise CalibrationError(
                "the noise of a tracker follows from measured positions; declare sigma instead of tracker in "
                f"[measurement] for rows of kind {', '.join(sorted(set(measurements.kind)))}"
            )
        return tracker_sigma(setup.tracker, measurements.value)
    if setup.sigma is None:
        return None
    sigma = np.tile(np.array(setup.sigma), (measurements.rows, 1))
    sigma[measurements.of_kind("difference") | measurements.of_kind("distance")] *= TWO_READINGS
    return sigma


def declared_sigma(setup: CalibrationSetup, measurements: Measurements, equations: MeasurementEquations) -> np.ndarray:
    """Return the declared standard deviation of every equation (E,) [m or rad]; NaN for rotations without one.

    A length is no angle: rotations have the set-up's ``sigma_rotation`` or none. A distance has the mean of x, y and z.

    Raises:
        CalibrationError: If the set-up declares neither sigma nor tracker.
    """
    rows = instrument_sigma(setup, measurements)
    if rows is None:
        raise CalibrationError("method 'declared': the set-up declares no sigma and no tracker; write one of them")
    turn = np.nan if setup.sigma_rotation is None else setup.sigma_rotation
    apart = np.sqrt((rows**2).mean(axis=1, keepdims=True))
    # By coordinate, in the order of COORDINATES.
    table = np.hstack([rows, np.full((len(rows), 3), turn), apart])
    return table[equations.row, equations.coordinate]


def tracker_sigma(noise: TrackerNoise, points: np.ndarray) -> np.ndarray:
    """Return standard deviations along x, y and z (R, 3) [m] of points (R, 3) that a tracker measures.

    With u the unit vector from the station to the point at distance r, the covariance is
    ``s_r^2 u u^T + (r s_a)^2 (I - u u^T)``, ``s_r = distance + distance_per_metre r``, and its diagonal is returned.
    """
    ray = points - np.array(noise.station)
    distance = np.linalg.norm(ray, axis=1, keepdims=True)
    along = (ray / np.where(distance > 0, distance, 1.0)) ** 2
    radial = (noise.distance + noise.distance_per_metre * distance) ** 2
    across = (noise.angle * distance) ** 2
    return np.sqrt(radial * along + across * (1 - along))


QUATERNION = ("qw", "qx", "qy", "qz")
EULER = ("roll", "pitch", "yaw")
MATRIX = tuple(f"rotation[{number}]" for number in range(1, 10))
"""A rotation matrix row by row, as an array ``rotation`` (rows, 3, 3) of an NPZ file has it."""
UNIT_LENGTH = 1e-2
"""A quaternion may be this far from unit length (it is rounded in files); it is made one."""
ORTHOGONAL = 1e-3
"""Columns of a rotation matrix may be this far from orthonormal."""


def measured_rotations(table: NamedColumns, columns: Sequence[str], unit: float) -> np.ndarray:
    """Return rotation matrices (rows, 3, 3), NaN in rows where the orientation is not filled in.

    Args:
        table: The file.
        columns: Four of a quaternion w, x, y, z; or three of roll, pitch, yaw as in a URDF: Rz(yaw) Ry(pitch) Rx(roll);
            or nine of a rotation matrix, row by row.
        unit: One unit of the angles [rad].
    """
    numbers = np.stack([table.numbers(column, may_miss=True) for column in columns], axis=1)
    there = np.isfinite(numbers).all(axis=1)
    rotations = np.full((table.rows, 3, 3), np.nan)
    if not there.any():
        return rotations
    if len(columns) == len(MATRIX):
        rotations[there] = numbers[there].reshape(-1, 3, 3)
        check_rotations(rotations, [f"line {line} of {table.path}" for line in table.lines])
    elif len(columns) == len(EULER):
        rotations[there] = Rotation.from_euler("xyz", numbers[there] * unit).as_matrix()
    else:
        _check_lengths(table, np.where(there, np.linalg.norm(numbers, axis=1), 1.0))
        rotations[there] = Rotation.from_quat(numbers[there], scalar_first=True).as_matrix()
    return rotations


def _check_lengths(table: NamedColumns, lengths: np.ndarray) -> None:
    wrong = np.flatnonzero(np.abs(lengths - 1) > UNIT_LENGTH)
    if wrong.size:
        row = int(wrong[0])
        raise CalibrationError(
            f"{table.path}: the quaternion in line {table.lines[row]} has length {lengths[row]:.4g}; 1 is expected, "
            "its columns are w, x, y, z"
        )


def check_rotations(rotation: np.ndarray, rows: Sequence[str], most: float = ORTHOGONAL) -> None:
    """Refuse matrices (R, 3, 3) that are no rotations: left-handed frames and axes that are not orthonormal.

    Args:
        rotation: The matrices, NaN where not measured.
        rows: What messages call each row, as in ``pose '3'``.
        most: Largest deviation of its axes from orthonormal.
    """
    there = np.flatnonzero(np.isfinite(rotation).all(axis=(1, 2)))
    square = np.einsum("rij,rkj->rik", rotation[there], rotation[there])
    askew = np.abs(square - np.eye(3)).max(axis=(1, 2), initial=0.0)
    for place, row in enumerate(there.tolist()):
        if askew[place] > most:
            raise CalibrationError(
                f"the orientation of {rows[row]} is no rotation: its axes are {askew[place]:.2g} from orthonormal; "
                f"at most {most:g} is allowed, check the order of its numbers"
            )
        if np.linalg.det(rotation[row]) < 0:
            raise CalibrationError(
                f"the orientation of {rows[row]} is a left-handed frame (determinant -1); frames must be right-handed, "
                "reverse one of its axes"
            )
