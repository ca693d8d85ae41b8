"""What a motion tells of the unknowns when positions are measured with noise too: the Cramer-Rao bound (P4.2).

Maximum likelihood fits the unknowns theta and the motion's coefficients delta at once, to torques and positions. With
chi the parameters' present values, a row of equation e has the derivatives

    W_e by theta,    T_e[j,k](t) = dtau_e/dq_j B0_k + dtau_e/dqd_j B1_k + dtau_e/dqdd_j B2_k by delta,    tau = W chi,

and positions add ``P = B0 B0^T / sigma_q^2`` to the delta of their joint. The inverse of the whole Fisher information
bounds the covariance; its part for theta is the inverse of ``M = M_tt - M_td (M_dd + P)^-1 M_dt``.

Coulomb friction has its sign held in T: a reversal moves by an instant, torques do not get steeper by it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import DesignError
from ..motion.harmonics import differentiated, series_values
from .criteria import Weighting
from .family import FourierFamily, MotionFamily
from .information import Unknowns
from .noisy_rows import NoisyRows, SampledRuns
from .rows import Motion


def fitted_basis(family: MotionFamily, time: np.ndarray) -> np.ndarray:
    """Return B (3, m, N): positions, velocities and accelerations of the motions that are fitted to a recording.

    A recorded Fourier series is fitted with its mean, all sines and all cosines: that it was told to start at rest is
    not known of the arm. Other families are fitted with their own coefficients.

    Args:
        family: The family of the motion.
        time: Times (N,) [s].
    """
    if not isinstance(family, FourierFamily):
        return family.basis(time)[:3]
    frequency, ones = 2 * np.pi / family.period, np.eye(family.harmonics)
    nothing = np.zeros_like(ones)
    orders = [(np.vstack([ones, nothing]), np.vstack([nothing, ones]))]
    for _ in range(2):
        orders.append(differentiated(*orders[-1], frequency))
    rows = np.array(series_values(frequency * time, orders))
    mean = np.zeros((3, 1, len(time)))
    mean[0] = 1.0
    return np.concatenate([mean, rows], axis=1)


class NoisyPositions:
    """The information about the unknowns where positions are measured with noise: stands in for ``Information``.

    Motions given to it lie on the family's own grid, ``family.grid(N)``, and are not stretched.

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
        stretch: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        """Compile the rows.

        Args:
            chosen: What is to be found.
            values: Present values of the model's standard parameters, by name; those not given are zero.
            family: The motions.
            position_deviations: Standard deviation of the noise of a sample of each position (n,) [rad or m].
            stretch: Smallest and largest stretch of the duration: a free one is refused.
        """
        if stretch != (1.0, 1.0):
            raise DesignError(
                f"a duration stretched by {stretch[0]:g} to {stretch[1]:g} together with noise on positions; fix the "
                "duration, or take positions as exact"
            )
        self.unknowns, self.family = chosen, family
        self._rows = NoisyRows(chosen, values, position_deviations)
        self._bases: dict[int, np.ndarray] = {}

    def sampled(self, motion: Motion) -> SampledRuns:
        """Return the rows of a motion on the family's grid."""
        count = motion[0].shape[1]
        if count not in self._bases:
            self._bases[count] = _checked_basis(fitted_basis(self.family, self.family.grid(count)), count)
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
    samples: float | None = None,
) -> np.ndarray:
    """Return the information M (c, c) of a recording with noise on torques and positions; its inverse bounds P4.2's.

    Args:
        chosen: What is to be found; with a model of exact sign the bound is that of the experiment.
        values: Values of the model's standard parameters, by name; those not given are zero.
        motion: Positions, velocities and accelerations (n, N).
        basis: B (3, m, N) of the motions that are fitted, at the same instants: :func:`fitted_basis`.
        position_deviations: Noise of a sample of each position (n,) [rad or m].
        samples: How many samples the instants stand for; as many as there are by default.
    """
    if not all(np.isfinite(rows).all() for rows in motion):
        raise DesignError("the motion has positions, velocities or accelerations that are not finite")
    basis = _checked_basis(basis, motion[0].shape[1])
    sampled = NoisyRows(chosen, values, position_deviations).sampled(motion, basis)
    return sampled.information * (1.0 if samples is None else samples / sampled.count)


def _refuse_unweighted(weighting: Weighting) -> None:
    if weighting == "none":
        raise DesignError(
            "a criterion of rows as they are, although positions are noisy: torques and positions can be compared only "
            "by their noise; choose condition_weighted or d"
        )


def _checked_basis(basis: np.ndarray, count: int) -> np.ndarray:
    """Return a basis (3, m, N) whose coefficients can be found from positions."""
    if basis.ndim != 3 or basis.shape[0] != 3 or basis.shape[2] != count:
        raise DesignError(f"basis of the motion: got shape {basis.shape}; allowed is (3, m, {count}), m coefficients")
    if np.linalg.matrix_rank(basis[0]) < basis.shape[1]:
        raise DesignError(
            f"{count} instants do not tell the {basis.shape[1]} coefficients of a joint's motion; take more instants"
        )
    return basis
