"""Rows of equations of configurations that might be measured: what a pose design chooses from."""

from __future__ import annotations

import numpy as np

from ...errors import CalibrationError
from ..after.accuracy_map import seen_from_outside
from ..after.calibrated_arm import CalibratedArm
from ..measured.setup import Load
from .pose_search import Rows


def marker_rows(
    arm: CalibratedArm,
    markers: dict[str, tuple[float, float, float]],
    sigma: tuple[float, float, float],
    kept: tuple[str, ...],
    *,
    load: Load | None = None,
    base_rotation: np.ndarray | None = None,
) -> Rows:
    """Return a function from configurations to rows B / sigma (N, 3 M, p) of the positions of all M markers (P3 eq. 4).

    Args:
        arm: The arm, at the values about which the rows are linear: nominal before a calibration.
        markers: Positions of the markers in the measured link's frame [m], by name.
        sigma: Noise of the instrument in x, y, z [m].
        kept: Names of the unknowns to be found, the columns; those of base and markers may be among them.
        load: What pulls at the measured link: it bends the arm.
        base_rotation: Start R0 (3, 3) of the base in the measurement frame; its axes if not given.
    """
    missing = [name for name in kept if name not in arm.names]
    if missing or not kept or not markers:
        raise CalibrationError(
            f"rows of markers: got unknowns {', '.join(kept) or 'none'} and markers {', '.join(markers) or 'none'}; "
            f"allowed are unknowns of the arm{f', {missing[0]} is none' if missing else ''}, and at least one marker"
        )
    noise = np.asarray(sigma, dtype=float)
    if noise.shape != (3,) or not (noise > 0).all() or not np.isfinite(noise).all():
        raise CalibrationError(f"sigma: got {sigma}, allowed are three finite numbers above 0 [m]")
    columns = [arm.names.index(name) for name in kept]
    start = np.eye(3) if base_rotation is None else base_rotation

    def rows(q: np.ndarray) -> np.ndarray:
        rotation, position = arm.pose(q, load)
        blocks = []
        for name, point in markers.items():
            place = np.array(point)
            derivatives = arm.point_derivatives(q, place, load)
            for letter, direction in zip("xyz", rotation.transpose(2, 0, 1), strict=True):
                if f"{letter}[{name}]" in arm.names:
                    derivatives[:, :, arm.names.index(f"{letter}[{name}]")] = direction
            seen = seen_from_outside(arm, position + rotation @ place, derivatives, start)
            blocks.append(seen[:, :, columns] / noise[:, None])
        return np.concatenate(blocks, axis=1)

    return rows
