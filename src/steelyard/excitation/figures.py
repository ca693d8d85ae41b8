"""Predicted figures of a motion: condition numbers and sigmas at the recording's own samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..motion import Trajectory
from ..text import short_repr
from .cramer_rao import cramer_rao_information, fitted_basis
from .criteria import condition_of, inverse_and_log_det, unit_diagonal
from .family import MotionFamily
from .information import Information, Unknowns

BLOCK = 4000
"""Samples evaluated at once: memory does not grow with the motion."""


@dataclass(frozen=True, eq=False)
class Figures:
    """Predicted figures of an experiment.

    Attributes:
        names: Names of the base parameters.
        raw: Condition number of W as it is.
        normalised: With columns at unit length.
        weighted: With rows over their noise.
        log10_det_covariance: Of the parameters' covariance.
        sigma: Standard deviations of the parameters (c,).
        relative_sigma: Over the parameters' sizes (c,); NaN where these are unknown or zero.
        is_prepared: Whether sigmas are those after identification's preparation; else those of all samples.
    """

    __repr__ = short_repr

    names: tuple[str, ...]
    raw: float
    normalised: float
    weighted: float
    log10_det_covariance: float
    sigma: np.ndarray
    relative_sigma: np.ndarray
    is_prepared: bool = False


@dataclass(frozen=True, eq=False)
class PositionNoise:
    """Noise of the positions, for the Cramer-Rao bound.

    Attributes:
        family: The motions whose coefficients are unknown too.
        values: Present values of the model's standard parameters, by name.
        deviations: Standard deviation of a sample of each position (n,) [rad or m].
    """

    family: MotionFamily
    values: Mapping[str, float]
    deviations: np.ndarray


def exact(chosen: Unknowns) -> Unknowns:
    """Return the unknowns with the exact sign of friction."""
    return replace(chosen, model=replace(chosen.model, sign_width=0.0))


class Forecast:
    """Predicts the figures of one motion after another. Compiled once."""

    def __init__(self, chosen: Unknowns, positions: PositionNoise | None = None) -> None:
        """Take the unknowns, whose smooth sign is replaced by the exact one, and the noise of positions if any."""
        self.unknowns = exact(chosen)
        self._information = Information(self.unknowns)
        self._positions = positions

    def __call__(self, trajectory: Trajectory) -> Figures:
        """Return the figures of a motion recorded at the unknowns' rate."""
        return self.of_matrices(*self.matrices(trajectory))

    def matrices(self, trajectory: Trajectory) -> tuple[np.ndarray, np.ndarray]:
        """Return ``W^T W`` (c, c) of all samples, rows as they are and over their noise, that of positions included."""
        plain, weighted = self._of_rows(trajectory)
        return plain, weighted if self._positions is None else self._noisy(trajectory)

    def cost_of_positions(self, trajectory: Trajectory) -> np.ndarray | None:
        """Return the covariance (c, c) that noise of the positions adds to that of exact ones; None if there is none.

        None, too, where not all unknowns are identifiable.
        """
        if self._positions is None:
            return None
        noisy = self._noisy(trajectory)
        if not np.isfinite(condition_of(unit_diagonal(noisy)[0])):
            return None
        return inverse_and_log_det(noisy)[0] - inverse_and_log_det(self._of_rows(trajectory)[1])[0]

    def _times(self, trajectory: Trajectory) -> np.ndarray:
        """Return the instants (N,) of the samples: each in the middle of its interval."""
        count = max(int(self.unknowns.rate * trajectory.duration), 1)
        return (np.arange(count) + 0.5) * (trajectory.duration / count)

    def _of_rows(self, trajectory: Trajectory) -> tuple[np.ndarray, np.ndarray]:
        """Return ``W^T W`` (c, c), rows as they are and over their noise, positions taken as exact."""
        times = self._times(trajectory)
        plain = weighted = np.zeros((len(self.unknowns.columns),) * 2)
        for first in range(0, len(times), BLOCK):
            q, qd, qdd, _ = trajectory.derivatives(times[first : first + BLOCK])
            sampled = self._information.sampled((q, qd, qdd))
            plain = plain + self._information.matrix(sampled, "none", sampled.count)
            weighted = weighted + self._information.matrix(sampled, "noise", sampled.count)
        return plain, weighted

    def _noisy(self, trajectory: Trajectory) -> np.ndarray:
        """Return the information about the unknowns if positions are noisy too (P4.2)."""
        positions, times = self._positions, self._times(trajectory)
        assert positions is not None
        # The longest motion of a family repeats its basis, at any pace.
        basis = fitted_basis(positions.family, times * (positions.family.duration / trajectory.duration))
        pace = (positions.family.duration / trajectory.duration) ** np.arange(3)
        motion = trajectory.derivatives(times)[:3]
        return cramer_rao_information(
            self.unknowns, positions.values, motion, basis * pace[:, None, None], positions.deviations
        )

    def of_matrices(self, plain: np.ndarray, weighted: np.ndarray) -> Figures:
        """Return the figures of information matrices (c, c), earlier information added to the weighted one."""
        known = self._with_earlier(weighted)
        log_det = inverse_and_log_det(known)[1]
        sigma = self.sigma(weighted)
        return Figures(
            self.unknowns.names, condition_of(plain), condition_of(unit_diagonal(plain)[0]), condition_of(known),
            -log_det / np.log(10.0), sigma, self.relative(sigma),
        )  # fmt: skip

    def sigma(self, weighted: np.ndarray) -> np.ndarray:
        """Return the standard deviations (c,) that a weighted information matrix (c, c) leaves, earlier one added."""
        return np.sqrt(np.diag(inverse_and_log_det(self._with_earlier(weighted))[0]))

    def relative(self, sigma: np.ndarray) -> np.ndarray:
        """Return standard deviations (c,) over the parameters' sizes; NaN where these are unknown or zero."""
        values = self.unknowns.values
        return sigma / np.where(values == 0, np.nan, np.abs(values))

    def _with_earlier(self, weighted: np.ndarray) -> np.ndarray:
        return weighted if self.unknowns.earlier is None else weighted + self.unknowns.earlier


def middle_figures(figures: Sequence[Figures]) -> Figures:
    """Return the medians of several motions' figures."""
    raw, normalised, weighted, log10_det = (
        float(np.median([getattr(one, what) for one in figures]))
        for what in ("raw", "normalised", "weighted", "log10_det_covariance")
    )
    sigma, relative = (
        np.median([getattr(one, what) for one in figures], axis=0) for what in ("sigma", "relative_sigma")
    )
    is_prepared = all(one.is_prepared for one in figures)
    return Figures(figures[0].names, raw, normalised, weighted, log10_det, sigma, relative, is_prepared)
