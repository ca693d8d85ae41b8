"""Which configurations to measure: the best few of many candidates, then moved to where they are best (P3.6).

After the choice among candidates all configurations are moved together, within limits, along the gradient of the
criterion: exact by the rows of equations, central differences of these by the joints.

Rows of equations of configurations that might be measured: what a pose design chooses from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import minimize

from ...errors import CalibrationError
from ...text import short_repr
from ..application.accuracy_map import seen_from_outside
from ..application.calibrated_arm import CalibratedArm
from ..measurement.setup import Load
from .pose_criteria import PoseCriterionName, is_singular
from .pose_search import PoseSearch, Rows, pose_search

_DIFFERENCE = 1e-6
_RANDOM_CHOICES = 200


@final
@dataclass(frozen=True, eq=False)
class PoseDesign:
    """Configurations to measure.

    Attributes:
        q: The configurations (na, K).
        chosen: Candidates they come from (K,).
        criterion: Name of the criterion.
        value: Its figure: small is good for ``D``, ``A`` and ``industrial``, large for ``O1`` to ``O4``. Unknowns are
            in units of their columns' size over the candidates, but for ``industrial``, which is in its own units.
        value_of_candidates: The same before the configurations were moved off the candidates.
        value_of_random: The same for random choices of as many candidates, the median of 200; infinite (zero for O1 to
            O4) where most leave an unknown unseen.
        covariance: Promised covariance of the unknowns (p, p), all repeats counted.
        sweeps: Rounds of exchanges.
    """

    __repr__ = short_repr

    q: np.ndarray
    chosen: np.ndarray
    criterion: PoseCriterionName
    value: float
    value_of_candidates: float
    value_of_random: float
    covariance: np.ndarray
    sweeps: int


def design_poses(
    rows: Rows,
    candidates: np.ndarray,
    count: int,
    *,
    criterion: PoseCriterionName = "D",
    tests: np.ndarray | None = None,
    repeats: int = 1,
    lower: np.ndarray | None = None,
    upper: np.ndarray | None = None,
    movable: np.ndarray | None = None,
    names: Sequence[str] = (),
    seed: int = 0,
) -> PoseDesign:
    """Return the configurations to measure.

    Args:
        rows: Rows of equations of configurations, divided by the noise.
        candidates: Configurations to choose from (na, M), as ``random_configurations`` makes them.
        count: How many to choose, K.
        criterion: One of ``POSE_CRITERIA``.
        tests: For ``industrial``: matrices A_0 (T, r, p) of the test poses under their loads.
        repeats: How often each configuration is measured.
        lower: Lowest joint positions (na,); no limit if not given.
        upper: Highest joint positions (na,).
        movable: Which joints may be moved off the candidates (na,); all if not given, none keeps to the candidates.
        names: Names of the unknowns, for messages.
        seed: Of the random choices to compare with.
    """
    search = pose_search(rows, candidates, count, criterion, tests, repeats, names)
    chosen, sweeps = search.exchanged(search.added())
    free = np.ones(len(candidates), dtype=bool) if movable is None else np.asarray(movable, dtype=bool)
    q = _moved(search, candidates[:, chosen], free, lower, upper)
    blocks = search.rows(q)
    information = search.information(blocks)
    covariance = np.linalg.inv(information) * np.outer(search.scale, search.scale)
    rng = np.random.default_rng(seed)
    picks = (rng.choice(len(search.blocks), count, replace=False) for _ in range(_RANDOM_CHOICES))
    result = PoseDesign(
        q, chosen, criterion, search.figure(blocks), search.figure(search.blocks[chosen]),
        float(np.median([search.figure(search.blocks[pick]) for pick in picks])), covariance, sweeps,
    )  # fmt: skip
    for array in (result.q, result.chosen, result.covariance):
        array.setflags(write=False)
    return result


def pose_value(
    rows: Rows, q: np.ndarray, *, criterion: PoseCriterionName, tests: np.ndarray | None = None, repeats: int = 1
) -> float:
    """Return the figure of given configurations (na, K); unknowns in units of their columns' size over these."""
    search = pose_search(rows, q, q.shape[1], criterion, tests, repeats, ())
    return search.figure(search.blocks)


def _moved(
    search: PoseSearch, q: np.ndarray, free: np.ndarray, lower: np.ndarray | None, upper: np.ndarray | None
) -> np.ndarray:
    """Return the configurations moved, all together, to a local optimum within limits; unmoved if that is no better."""
    if not free.any():
        return q.copy()
    low = np.full(len(q), -np.inf) if lower is None else np.asarray(lower, dtype=float)
    high = np.full(len(q), np.inf) if upper is None else np.asarray(upper, dtype=float)
    bounds = [(a, b) for a, b in zip(low[free], high[free], strict=True) for _ in range(q.shape[1])]

    def whole(moved: np.ndarray) -> np.ndarray:
        result = q.copy()
        result[free] = np.clip(moved.reshape(-1, q.shape[1]), low[free, None], high[free, None])
        return result

    def cost_and_slope(moved: np.ndarray) -> tuple[float, np.ndarray]:
        return _cost_and_slope(search, whole(moved), free)

    found = minimize(cost_and_slope, q[free].ravel(), jac=True, method="L-BFGS-B", bounds=bounds)
    better = whole(found.x)
    return better if search.cost(search.rows(better)) < search.cost(search.rows(q)) else q.copy()


def _cost_and_slope(search: PoseSearch, q: np.ndarray, free: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the smooth cost and its derivatives by the free joints, ``2 <B G, dB/dq>`` with G that by M."""
    blocks = search.rows(q)
    information = search.information(blocks)
    if is_singular(information):
        return 1e6, np.zeros(int(free.sum()) * q.shape[1])
    cost, gradient = search.criterion.smooth(information)
    by_rows = 2 * search.repeats * blocks @ gradient
    slopes = []
    for joint in np.flatnonzero(free):
        move = np.zeros((len(q), 1))
        move[joint] = _DIFFERENCE
        change = (search.rows(q + move) - search.rows(q - move)) / (2 * _DIFFERENCE)
        slopes.append((by_rows * change).sum(axis=(1, 2)))
    return cost, np.concatenate(slopes)


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
