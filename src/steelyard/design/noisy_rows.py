"""Rows by the unknowns and by the motion's own coefficients: what noise on positions leaves of the information.

With W the rows by the unknowns and T those by the coefficients of the fitted motion, both over their noise, and P what
measured positions tell of the coefficients, the information about the unknowns alone is
``M = W W^T - W T^T (T T^T + P)^-1 T W^T``. With ``K = W T^T (T T^T + P)^-1`` it is
``(W - K T)(W - K T)^T + K P K^T``: what of the rows no change of the motion can imitate, and a sum of squares whatever
the rounding. K makes it least, so the gradient of M needs no derivative of K.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from scipy import linalg

from ..errors import DesignError, nearest_match
from .information import Unknowns
from .rows import Motion, differentiable


@dataclass(frozen=True, eq=False)
class SampledRuns:
    """The rows of each run of a motion on a grid, over their noise, E equations at N instants.

    Attributes:
        basis: B (3, m, N) of the fitted motions.
        rest: For each run ``W - K T`` (c, E N).
        imitated: For each run K (c, n m).
        information: M (c, c) of as many samples as there are instants.
    """

    basis: np.ndarray
    rest: tuple[np.ndarray, ...]
    imitated: tuple[np.ndarray, ...]
    information: np.ndarray

    @property
    def count(self) -> int:
        """Number of instants."""
        return self.basis.shape[2]


class NoisyRows:
    """Rows by the unknowns and slopes of the torques by the motion, compiled, with noise on both sides.

    Runs without and with payload are experiments of their own: the same motion is driven, but measured anew.
    """

    def __init__(self, chosen: Unknowns, values: Mapping[str, float], position_deviations: np.ndarray) -> None:
        model, motion = chosen.model, chosen.model.motion
        symbols = (motion.q, motion.qd, motion.qdd)
        self.unknowns = chosen
        self._sigma_q = _checked_deviations(position_deviations, motion.q.shape[0])
        standard = [model.names.index(name) for name in chosen.columns]
        blocks = [model.regressor(*symbols)[:, standard]]
        blocks += [ca.jacobian(torque, ca.vertcat(*symbols)) for torque in _torques(chosen, values)]
        blocks = [ca.sparsify(block) for block in blocks]
        self._function = differentiable("noisy_rows", symbols, [ca.vertcat(*(block.nz[:] for block in blocks))])
        self._places = [_flat_places(block) for block in blocks]
        equations = len(chosen.deviations)
        self._noise = np.concatenate([chosen.deviations[places % equations] for places in self._places])[:, None]
        ends = np.cumsum([len(places) for places in self._places])
        self._parts = [slice(end - len(places), end) for end, places in zip(ends, self._places, strict=True)]
        effects = {parameter.name: parameter.effect for parameter in model.parameters}
        self._is_carried = np.array([effects[name] == "payload" for name in chosen.columns], dtype=bool)

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Number of unknowns, equations and joints."""
        return len(self.unknowns.columns), len(self.unknowns.deviations), len(self._sigma_q)

    def sampled(self, motion: Motion, basis: np.ndarray) -> SampledRuns:
        """Return the rows of a motion with a basis B (3, m, N) at its instants."""
        unknowns, equations, joints = self._shape
        rows, *slopes = self._spread(motion)
        rows = rows.reshape(unknowns, -1)
        by_positions = np.kron(np.diag(self._sigma_q**-2), basis[0] @ basis[0].T)
        rests, imitated, total = [], [], np.zeros((unknowns, unknowns))
        for loaded, slope in zip(self.unknowns.loads, slopes, strict=True):
            own = self._felt(rows, loaded)
            by_motion = _by_motion(slope.reshape(3, joints, equations, -1), basis)
            factor = _factorised(by_motion @ by_motion.T + by_positions)
            share = linalg.cho_solve(factor, by_motion @ own.T, check_finite=False).T
            rest = own - share @ by_motion
            total += rest @ rest.T + share @ by_positions @ share.T
            rests.append(rest)
            imitated.append(share)
        return SampledRuns(basis, tuple(rests), tuple(imitated), total)

    def pull_back(self, motion: Motion, sampled: SampledRuns, gradient: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return gradients (n, N) by q, qd and qdd from a gradient by the runs' information (c, c)."""
        _, equations, joints = self._shape
        by_rows: list[np.ndarray] = []
        by_slopes: list[np.ndarray] = []
        for loaded, rest, share in zip(self.unknowns.loads, sampled.rest, sampled.imitated, strict=True):
            by_rest = (2 * gradient) @ rest
            by_motion = (-share.T @ by_rest).reshape(joints, -1, equations, sampled.count)
            by_rows.append(self._felt(by_rest, loaded))
            by_slopes.append(np.array([np.einsum("jmet,mt->jet", by_motion, order) for order in sampled.basis]))
        return self._function.pull_back(motion, [self._gathered([sum(by_rows[1:], by_rows[0]), *by_slopes])])

    def _spread(self, motion: Motion) -> list[np.ndarray]:
        """Return the rows by the unknowns (c E, N) and, for each run, by the motion (3 n E, N), over their noise."""
        (stacked,) = self._function(motion)
        stacked = stacked / self._noise
        spread = []
        for part, places, size in zip(self._parts, self._places, self._sizes, strict=True):
            whole = np.zeros((size, stacked.shape[1]))
            whole[places] = stacked[part]
            spread.append(whole)
        return spread

    def _gathered(self, gradients: Sequence[np.ndarray]) -> np.ndarray:
        """Return seeds of the function's outputs (k, N) from gradients by what :meth:`_spread` returns."""
        picked = [
            gradient.reshape(size, -1)[places]
            for gradient, places, size in zip(gradients, self._places, self._sizes, strict=True)
        ]
        return np.concatenate(picked) / self._noise

    def _felt(self, rows: np.ndarray, loaded: bool) -> np.ndarray:
        """Return rows (c, E N) of a run: the payload's are zero where it is not carried."""
        return rows if loaded or not self._is_carried.any() else np.where(self._is_carried[:, None], 0.0, rows)

    @property
    def _sizes(self) -> list[int]:
        unknowns, equations, joints = self._shape
        return [unknowns * equations] + [3 * joints * equations] * len(self.unknowns.loads)


def _checked_deviations(deviations: np.ndarray, joints: int) -> np.ndarray:
    deviations = np.asarray(deviations, dtype=float)
    if deviations.shape != (joints,) or not (np.isfinite(deviations) & (deviations > 0)).all():
        raise DesignError(
            f"noise of positions: got {deviations.tolist()}; allowed is one positive standard deviation for each of "
            f"the {joints} joints"
        )
    return deviations


def _torques(chosen: Unknowns, values: Mapping[str, float]) -> list[ca.SX]:
    """Return the torques of each run, with the exact sign of friction: it has no slope.

    They are written with base parameters: the same torques, a third less to compute.
    """
    model, motion = chosen.model, chosen.model.motion
    exact = replace(model, sign_width=0.0)
    kept = [model.names.index(parameter.kept) for parameter in chosen.base.base]
    known = ca.DM(chosen.base.regrouping @ _parameter_values(chosen, values))
    regressors = [exact.regressor if loaded else exact.unloaded_regressor for loaded in chosen.loads]
    return [
        ca.cse(ca.densify(ca.mtimes(regressor(motion.q, motion.qd, motion.qdd)[:, kept], known)))
        for regressor in regressors
    ]


def _parameter_values(chosen: Unknowns, values: Mapping[str, float]) -> np.ndarray:
    names = chosen.model.names
    known = [name for name in names if name in values]
    if not known:
        given = next(iter(values), "nothing")
        raise DesignError(
            f"noise of positions counts by the torques' slopes, and no parameter of the model is known; got {given}"
            f"{nearest_match(given, names)}; give a robot with values, or a run by --after"
        )
    for name in known:
        if not np.isfinite(values[name]):
            raise DesignError(f"parameter '{name}' is {values[name]}; give a finite value")
    return np.array([values.get(name, 0.0) for name in names], dtype=float)


def _flat_places(block: ca.SX) -> np.ndarray:
    """Return where each structural non-zero of a matrix lies, column by column."""
    rows, columns = (np.asarray(index, dtype=np.intp) for index in block.sparsity().get_triplet())
    return columns * block.shape[0] + rows


def _by_motion(slopes: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return T (n m, E N) from slopes by q, qd and qdd (3, n, E, N) and a basis (3, m, N)."""
    whole = sum(slope[:, None] * order[None, :, None] for slope, order in zip(slopes, basis, strict=True))
    return np.asarray(whole).reshape(slopes.shape[1] * basis.shape[1], -1)


def _factorised(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the Cholesky factor of what torques and positions tell of the motion's coefficients."""
    try:
        return linalg.cho_factor(matrix, lower=True, check_finite=False)
    except linalg.LinAlgError:
        raise DesignError(
            f"the motion's {len(matrix)} coefficients cannot be found from noisy positions: it is not finite, or its "
            "torques are so steep that positions tell nothing beside them; make the noise of positions smaller"
        ) from None
