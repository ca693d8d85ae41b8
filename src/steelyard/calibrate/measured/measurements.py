"""Measurements of an arm: at which joint positions, under which load, which marker was seen where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from ...errors import CalibrationError
from ...text import short_repr
from .setup import KINDS, Kind

NOT_MEASURED = -1
"""Number of a marker or load where there is none."""


@final
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
        return np.array([word == kind for word in self.kind], dtype=bool)

    def taken(self, chosen: np.ndarray | Sequence[int]) -> Measurements:
        """Return some of the rows, by numbers or as a mask; names and numbers of poses and markers stay."""
        rows = np.arange(self.rows)[np.asarray(chosen)]
        return replace(
            self, q=self.q[:, rows], kind=tuple(self.kind[row] for row in rows), pose=self.pose[rows],
            marker=self.marker[rows], other=self.other[rows], load=self.load[rows], value=self.value[rows],
            rotation=self.rotation[rows], repeat=self.repeat[rows],
        )  # fmt: skip

    @property
    def size(self) -> int:
        """Number of measured numbers, three for a measured orientation: the equations of a calibration."""
        oriented = np.isfinite(self.rotation).all(axis=(1, 2))
        return int(np.isfinite(self.value).sum() + 3 * oriented.sum())


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
    for word in measured.kind:
        if word not in KINDS:
            raise CalibrationError(f"a row measures '{word}'; allowed: {', '.join(KINDS)}")
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


def joined(first: Measurements, second: Measurements) -> Measurements:
    """Return the rows of both, of the same joints and configurations; markers are those of the one that has some.

    Raises:
        CalibrationError: If joints or configurations differ, or both have other markers.
    """
    markers = first.markers or second.markers
    if first.joints != second.joints or first.poses != second.poses or (second.markers or markers) != markers:
        raise CalibrationError("measurements to be joined differ in joints, configurations or markers; join like ones")
    stacked = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in ("pose", "marker", "other", "load", "value", "rotation", "repeat")
    }
    return Measurements(
        joints=first.joints, q=np.hstack([first.q, second.q]), kind=first.kind + second.kind, poses=first.poses,
        markers=markers, notes=(*first.notes, *second.notes), **stacked,
    )  # fmt: skip
