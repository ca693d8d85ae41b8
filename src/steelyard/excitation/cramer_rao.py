"""Information about the unknowns when positions are measured with noise too: the Cramer-Rao bound (P4.2).

Maximum likelihood fits the unknowns theta and the motion's coefficients delta at once, to torques and positions. With
chi the parameters' present values, a row of equation e has the derivatives

    W_e by theta,    T_e[j,k](t) = dtau_e/dq_j B0_k + dtau_e/dqd_j B1_k + dtau_e/dqdd_j B2_k by delta,    tau = W chi,

and positions add ``P = B0 B0^T / sigma_q^2`` to the delta of their joint. The inverse of the whole Fisher information
bounds the covariance; its part for theta is the inverse of ``M = M_tt - M_td (M_dd + P)^-1 M_dt``.

The sign of Coulomb friction is held constant in T: a reversal moves by an instant, torques do not get steeper by it.

With W the rows by the unknowns and T those by the coefficients of the fitted motion, both over their noise, and P the
information of measured positions about the coefficients, the information about the unknowns alone is
``M = W W^T - W T^T (T T^T + P)^-1 T W^T``. With ``K = W T^T (T T^T + P)^-1`` it is
``(W - K T)(W - K T)^T + K P K^T``: the part of the rows that no change of the motion can imitate, and a sum of squares
whatever the rounding. K makes it least, so the gradient of M needs no derivative of K.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from scipy import linalg

from ..errors import DesignError, nearest_match
from .criteria import Weighting
from .family import FourierFamily, MotionFamily, fourier_basis
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
            own = self._nonzero(rows, loaded)
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
            by_rows.append(self._nonzero(by_rest, loaded))
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

    def _nonzero(self, rows: np.ndarray, loaded: bool) -> np.ndarray:
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
    columns = [model.names.index(parameter.column) for parameter in chosen.base.base]
    known = ca.DM(chosen.base.regrouping @ _parameter_values(chosen, values))
    regressors = [exact.regressor if loaded else exact.unloaded_regressor for loaded in chosen.loads]
    return [
        ca.cse(ca.densify(ca.mtimes(regressor(motion.q, motion.qd, motion.qdd)[:, columns], known)))
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
    """Return the Cholesky factor of the information of torques and positions about the motion's coefficients."""
    try:
        return linalg.cho_factor(matrix, lower=True, check_finite=False)
    except linalg.LinAlgError:
        raise DesignError(
            f"the motion's {len(matrix)} coefficients cannot be found from noisy positions: it is not finite, or its "
            "torques are so steep that positions add nothing; make the noise of positions smaller"
        ) from None


def fitted_basis(family: MotionFamily, time: np.ndarray) -> np.ndarray:
    """Return B (3, m, N): positions, velocities and accelerations of the motions that are fitted to a recording.

    A recorded Fourier series is fitted with its mean, all sines and all cosines: the arm need not start at rest as
    commanded. Other families are fitted with their own coefficients.

    Args:
        family: The family of the motion.
        time: Times (N,) [s].
    """
    if not isinstance(family, FourierFamily):
        return family.basis(time)[:3]
    ones = np.eye(family.harmonics)
    nothing = np.zeros_like(ones)
    return fourier_basis(np.vstack([ones, nothing]), np.vstack([nothing, ones]), family.period, time, 3)


class NoisyPositions:
    """The information about the unknowns where positions are measured with noise: stands in for ``Information``.

    Motions given to it lie on the family's own grid, ``family.grid(N)``, at time scale 1.

    Attributes:
        unknowns: What is to be found.
        family: The motions.
    """

    def __init__(
        self,
        chosen: Unknowns,
        values: Mapping[str, float],
        family: MotionFamily,
        position_deviations: np.ndarray,
        time_scale: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        """Compile the rows.

        Args:
            chosen: What is to be found.
            values: Present values of the model's standard parameters, by name; those not given are zero.
            family: The motions.
            position_deviations: Standard deviation of the noise of a sample of each position (n,) [rad or m].
            time_scale: Smallest and largest factor on the duration: a free one is refused.
        """
        if time_scale != (1.0, 1.0):
            raise DesignError(
                f"a free duration, {time_scale[0]:g} to {time_scale[1]:g} times as long, with noise on positions; fix "
                "the duration, or take positions as exact"
            )
        self.unknowns, self.family = chosen, family
        self._rows = NoisyRows(chosen, values, position_deviations)
        self._bases: dict[int, np.ndarray] = {}

    def sampled(self, motion: Motion) -> SampledRuns:
        """Return the rows of a motion on the family's grid."""
        count = motion[0].shape[1]
        if count not in self._bases:
            self._bases[count] = _checked_basis(fitted_basis(self.family, self.family.grid(count)))
        return self._rows.sampled(motion, self._bases[count])

    def matrix(self, sampled: SampledRuns, weighting: Weighting, samples: float) -> np.ndarray:
        """Return M (c, c) of so many samples spread as the grid's instants, earlier information not included."""
        _refuse_unweighted(weighting)
        return sampled.information * (samples / sampled.count)

    def pull_back(
        self, motion: Motion, sampled: SampledRuns, gradients: Mapping[Weighting, np.ndarray], samples: float
    ) -> tuple[np.ndarray, ...]:
        """Return gradients (n, N) by q, qd and qdd from a gradient by M (c, c)."""
        for weighting in gradients:
            _refuse_unweighted(weighting)
        return self._rows.pull_back(motion, sampled, gradients["noise"] * (samples / sampled.count))


def cramer_rao_information(
    chosen: Unknowns,
    values: Mapping[str, float],
    motion: Motion,
    basis: np.ndarray,
    position_deviations: np.ndarray,
) -> np.ndarray:
    """Return the information M (c, c) of a recording with noise on torques and positions; its inverse bounds P4.2's.

    Args:
        chosen: What is to be found; with a model of exact sign the bound is that of the experiment.
        values: Values of the model's standard parameters, by name; those not given are zero.
        motion: Positions, velocities and accelerations (n, N).
        basis: B (3, m, N) of the motions that are fitted, at the same instants: :func:`fitted_basis`.
        position_deviations: Noise of a sample of each position (n,) [rad or m].
    """
    return NoisyRows(chosen, values, position_deviations).sampled(motion, _checked_basis(basis)).information


def _refuse_unweighted(weighting: Weighting) -> None:
    if weighting == "none":
        raise DesignError(
            "a criterion of rows as they are, although positions are noisy: torques and positions can be compared only "
            "by their noise; choose condition_weighted or d"
        )


def _checked_basis(basis: np.ndarray) -> np.ndarray:
    """Return a basis (3, m, N) whose coefficients can be found from positions."""
    _, coefficients, count = basis.shape
    if np.linalg.matrix_rank(basis[0]) < coefficients:
        raise DesignError(
            f"the {coefficients} coefficients of a joint's motion are not identifiable from {count} instants; take more"
        )
    return basis
