"""Where a calibration starts: base, tool and markers where the set-up says nothing of them.

With the measured link at (R_s, t_s) in the robot's base, a marker m is measured at ``p = R0 (t_s + R_s m) + t0``. With
Q = R0^T and c the mean of the points, ``Q (p - c) - s - R_s m = t_s``: linear in all but the rotation, and the
linear unknowns s and m (and a tool, whose rotation is left free here) can be projected out once, whatever Q is. What is
left is a least-squares problem in nine numbers over rotations: Kabsch's for known markers, and small for unknown ones,
so that it is solved from all 24 rotations of a cube and the best solution is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import orth
from scipy.spatial.transform import Rotation

from ...errors import CalibrationError
from ...robot import origin_placement, transform_from_placement
from ..measurement.measurements import Measurements
from ..measurement.nominal import orthogonal_part
from ..measurement.setup import CalibrationSetup, FrameSetup, MarkerSetup

# Points within this of a line, relative to their spread, do not fix a rotation about it.
_ON_A_LINE = 1e-4
# Steps of a search over rotations: far more than the twenty or so that the slowest start needs; it ends when no start
# turns further than this [rad].
_STEPS, _STILL = 60, 1e-9
# skew(e) of the three axes.
_GENERATORS = np.cross(np.eye(3)[:, None, :], np.eye(3)[None, :, :]).swapaxes(1, 2)


@dataclass(frozen=True, eq=False)
class Registration:
    """Frames and markers by the set-up, or found from the measurements.

    Attributes:
        base: Rotation (9, row by row) and translation (3) of the base in the measurement frame.
        tool: The same of the tool in the measured link's frame.
        markers: Positions of the markers (M, 3) in the measured link's frame [m].
    """

    base: np.ndarray
    tool: np.ndarray
    markers: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.base, self.tool, self.markers):
            array.setflags(write=False)


def register(
    setup: CalibrationSetup, measurements: Measurements, rotation: np.ndarray, position: np.ndarray
) -> Registration:
    """Return where base, tool and markers are, well enough to start a fit.

    What the set-up gives is taken as it is. Of the measurements only complete positions and poses are used.

    Args:
        setup: Its markers are those of the measurements.
        measurements: R rows.
        rotation: Rotation of the measured link in the robot's base at each row (R, 3, 3), by the nominal model.
        position: Its position (R, 3) [m].

    Raises:
        CalibrationError: If nothing is known of the base's orientation and the measurements do not fix it.
    """
    lines = _Lines(setup, measurements, rotation, position)
    given = setup.base.known or setup.base.rpy is not None
    turn = frame_numbers(setup.base)[:9].reshape(3, 3).T if given else _best_rotation(lines)
    return lines.solved(turn)


def frame_numbers(frame: FrameSetup) -> np.ndarray:
    """Return rotation (9, row by row) and translation (3) of a frame; what is not given is none."""
    none = (0.0, 0.0, 0.0)
    rotation, translation = transform_from_placement(origin_placement(frame.xyz or none, frame.rpy or none))
    return np.concatenate([rotation.ravel(), translation])


class _Lines:
    """Linear equations ``rows vec(Q) - columns y = right`` of all complete measurements.

    y holds, where the set-up does not give them, the shift s of the base (key ``base``), the rotation of the tool
    (``turn``, nine numbers), its translation (-1) and the markers (0, 1, ...).
    """

    def __init__(
        self, setup: CalibrationSetup, measurements: Measurements, rotation: np.ndarray, position: np.ndarray
    ) -> None:
        placed = measurements.complete
        turned = measurements.of_kind("pose") & np.isfinite(measurements.rotation).all(axis=(1, 2))
        self.base, self.tool = frame_numbers(setup.base), frame_numbers(setup.tool)
        self.points = {-1: self.tool[9:]} | {k: _position(marker) for k, marker in enumerate(setup.markers)}
        observed_points = set(measurements.marker[placed].tolist())
        self.free = _free_unknowns(setup, observed_points, orientation=bool(turned.any()))
        self.width = max((part.stop for part in self.free.values()), default=0)
        observed = measurements.value[placed]
        self.count = len(observed)
        self.centre = observed.mean(axis=0) if "base" in self.free and self.count else self.base[9:]
        self.size = float(np.sqrt(((observed - self.centre) ** 2).sum(axis=1).mean())) if self.count else 1.0
        parts = (
            self._of_points(measurements.marker[placed], observed - self.centre, rotation[placed], position[placed]),
            self._of_turns(measurements.rotation[turned], rotation[turned]),
        )
        self.rows, self.columns, self.right = (np.concatenate(part) for part in zip(*parts, strict=True))

    def _of_points(
        self, marker: np.ndarray, observed: np.ndarray, rotation: np.ndarray, position: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the equations of points, ``Q (p - c) - s - R_s m = t_s``."""
        columns = np.zeros((len(observed), 3, self.width))
        if "base" in self.free:
            columns[:, :, self.free["base"]] = np.eye(3)
        right = position.copy()
        for number in np.unique(marker).tolist():
            mine = marker == number
            if number in self.free:
                columns[mine, :, self.free[number]] = rotation[mine]
            else:
                right[mine] += rotation[mine] @ self.points[number]
        return _in_nine_numbers(observed), columns.reshape(right.size, self.width), right.ravel()

    def _of_turns(self, observed: np.ndarray, rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the equations of orientations, ``Q R_measured - R_s R_tool = 0``, by columns, scaled to the points."""
        columns = np.zeros((len(observed), 3, 3, self.width))
        right = np.zeros((len(observed), 3, 3))
        if "turn" in self.free:
            first = self.free["turn"].start
            for column in range(3):
                columns[:, column, :, first + column : first + 9 : 3] = self.size * rotation
        else:
            right += self.size * (rotation @ self.tool[:9].reshape(3, 3)).transpose(0, 2, 1)
        axes = self.size * observed.transpose(0, 2, 1).reshape(-1, 3)
        return _in_nine_numbers(axes), columns.reshape(right.size, self.width), right.ravel()

    def without_linear_unknowns(self) -> np.ndarray:
        """Return what y cannot explain of ``[rows right]``, as a triangle of ten columns."""
        both = np.column_stack([self.rows, self.right])
        explained = orth(self.columns) if self.width else np.zeros((len(both), 0))
        return np.asarray(np.linalg.qr(both - explained @ (explained.T @ both), mode="r"))

    def solved(self, turn: np.ndarray) -> Registration:
        """Return frames and markers at a rotation Q (3, 3) of measurement axes into base axes."""
        y = np.linalg.lstsq(self.columns, self.rows @ turn.ravel() - self.right, rcond=None)[0]
        base, tool = self.base.copy(), self.tool.copy()
        base[:9] = turn.T.ravel()
        if "base" in self.free:
            base[9:] = self.centre + turn.T @ y[self.free["base"]]
        if "turn" in self.free:
            tool[:9] = orthogonal_part(y[self.free["turn"]].reshape(3, 3)).ravel()
        points = {number: y[self.free[number]] if number in self.free else at for number, at in self.points.items()}
        tool[9:] = points.pop(-1)
        return Registration(base, tool, np.array(list(points.values())).reshape(-1, 3))


def _position(marker: MarkerSetup) -> np.ndarray:
    return np.array(marker.position or (0.0, 0.0, 0.0))


def _free_unknowns(setup: CalibrationSetup, observed: set[int], *, orientation: bool) -> dict[str | int, slice]:
    """Return the place in y of each linear unknown that was measured and that the set-up does not give."""
    sizes: dict[str | int, int] = {}
    if not setup.base.known and setup.base.xyz is None:
        sizes["base"] = 3
    if orientation and not setup.tool.known and setup.tool.rpy is None:
        sizes["turn"] = 9
    if -1 in observed and not setup.tool.known and setup.tool.xyz is None:
        sizes[-1] = 3
    sizes |= {k: 3 for k, marker in enumerate(setup.markers) if k in observed and marker.position is None}
    ends = np.cumsum([0, *sizes.values()]).tolist()
    return {key: slice(first, end) for key, first, end in zip(sizes, ends[:-1], ends[1:], strict=True)}


def _in_nine_numbers(vectors: np.ndarray) -> np.ndarray:
    """Return rows (3 n, 9) that give Q v from vec(Q), row by row, for vectors (n, 3)."""
    return np.einsum("ij,nk->nijk", np.eye(3), vectors).reshape(-1, 9)


def _best_rotation(lines: _Lines) -> np.ndarray:
    """Return the rotation Q with the smallest error, from the best of 24 starts.

    Raises:
        CalibrationError: If a turn of Q changes nothing: too few points, or all on a line.
    """
    triangle = lines.without_linear_unknowns()
    rows, right = triangle[:, :9], triangle[:, 9]
    best = _nearest_solutions(rows, right)[0]
    if _weakest_turn(rows, best) <= _ON_A_LINE * np.linalg.norm(lines.rows):
        raise CalibrationError(
            f"base: got {lines.count} complete positions that do not fix its orientation, needed are at least 3 that "
            f"are not on a line (with unknown markers: in several orientations of the link); measure at more "
            f"configurations, or give xyz and rpy of the base in the set-up"
        )
    return best


def _nearest_solutions(rows: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return 24 rotations (24, 3, 3) that are local minima of ``|rows vec(Q) - right|``, the best first.

    Levenberg-Marquardt steps on all of them at once, each with a damping of its own.
    """

    def error(turn: np.ndarray) -> np.ndarray:
        return turn.reshape(-1, 9) @ rows.T - right

    turn = Rotation.create_group("O").as_matrix()
    size = float((rows**2).sum()) or 1.0
    damping, here = np.full(len(turn), 1e-3), error(turn)
    for _ in range(_STEPS):
        slope = _turned(turn) @ rows.T
        normal = slope @ slope.transpose(0, 2, 1) + (damping * size)[:, None, None] * np.eye(3)
        step = -np.linalg.solve(normal, slope @ here[:, :, None])[:, :, 0]
        tried = Rotation.from_rotvec(step).as_matrix() @ turn
        there = error(tried)
        better = (there**2).sum(axis=1) < (here**2).sum(axis=1)
        turn, here = np.where(better[:, None, None], tried, turn), np.where(better[:, None], there, here)
        damping = np.maximum(np.where(better, damping / 10, damping * 4), np.finfo(float).eps)
        if np.abs(step).max() < _STILL:
            break
    return turn[np.argsort((here**2).sum(axis=1), kind="stable")]


def _turned(turn: np.ndarray) -> np.ndarray:
    """Return how vec(Q) changes with a small turn of Q about x, y and z: ``skew(e) Q`` (..., 3, 9)."""
    return (_GENERATORS @ turn[..., None, :, :]).reshape(*turn.shape[:-2], 3, 9)


def _weakest_turn(rows: np.ndarray, turn: np.ndarray) -> float:
    """Return the least change of ``rows vec(Q)`` by a small turn of Q of size 1; zero for fewer than three rows."""
    if len(rows) < 3:
        return 0.0
    return float(np.linalg.svd(rows @ _turned(turn).T, compute_uv=False)[-1])
