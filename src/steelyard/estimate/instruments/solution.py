"""Instrumental variables, least squares, and Durbin, Wu and Hausman's test of bias, from a triangle of ``[Z W y]``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from ...distributions import f_sf
from ...errors import EstimateError, SignalError
from ..evidence import Endogeneity, Evidence
from ..gls import noise_around
from ..noise import NoiseModel
from ..system import DEPENDENT
from .iterations import IterationSolution
from .pairs import PairedRows, Twins, whitened_pairs

# Columns at unit length, a direction shorter than this is one of rounding.
_NOTHING = 1e-9


_NEXT = "give the gains of the real controller, or record the reference"


def check_instruments(paired: PairedRows) -> None:
    """Raise an EstimateError unless the columns of the simulated rows are independent."""
    count = len(paired.columns)
    triangle = paired.triangle[:count, :count]
    lengths = np.linalg.norm(triangle, axis=0)
    # A dependent column has nothing left on the diagonal, and QR puts an arbitrary direction in its place.
    lost = np.flatnonzero(~(np.abs(np.diag(triangle)) > DEPENDENT * lengths))
    if len(lost):
        name = paired.columns[int(lost[0])]
        raise EstimateError(
            f"in the simulated motion '{name}' is indistinguishable from the parameters before it; {_NEXT}"
        )


@dataclass(frozen=True, eq=False)
class InstrumentSolution:
    """Solutions of weighted rows ``y = W x`` with instruments Z.

    With the triangle ``[[Rzz, Rzw, rzy], [0, Rww, rwy], [0, 0, ryy]]`` of ``[Z W y]``, ``Z^T W = Rzz^T Rzw``, so that
    ``x = (Z^T W)^-1 Z^T y = Rzw^-1 rzy`` and ``(Z^T W)^-1 Z^T Z (W^T Z)^-1 = Rzw^-1 Rzw^-T``.

    Attributes:
        paired: The rows.
    """

    paired: PairedRows

    @property
    def _count(self) -> int:
        return len(self.paired.columns)

    @cached_property
    def _scale(self) -> np.ndarray:
        c = self._count
        lengths = np.linalg.norm(self.paired.triangle[:, c : 2 * c], axis=0)
        return np.where(lengths > 0, lengths, 1.0)

    @cached_property
    def _crossed(self) -> np.ndarray:
        """``Rzw`` with columns of W at unit length (c, c)."""
        c = self._count
        crossed = self.paired.triangle[:c, c : 2 * c] / self._scale
        check_instruments(self.paired)
        singular = np.linalg.svd(crossed, compute_uv=False)
        if not singular[-1] > _NOTHING * singular[0]:
            raise EstimateError(f"a combination of the parameters is not identifiable from the instruments; {_NEXT}")
        return crossed

    @cached_property
    def values(self) -> np.ndarray:
        """``(Z^T W)^-1 Z^T y`` (c,)."""
        return linalg.solve(self._crossed, self.paired.triangle[: self._count, -1]) / self._scale

    @cached_property
    def variance(self) -> float:
        """Variance of the residuals ``y - W x``: near 1 where the noise model is right."""
        return self.squares_at(self.values) / (self.paired.rows - self._count)

    @cached_property
    def covariance(self) -> np.ndarray:
        """``s^2 (Z^T W)^-1 Z^T Z (W^T Z)^-1`` (c, c), or with ``Z^T S Z`` where rows are not whitened."""
        inverse = linalg.inv(self._crossed) / self._scale[:, None]
        if self.paired.spread is None:
            return self.variance * inverse @ inverse.T
        c = self._count
        bread = linalg.solve_triangular(self.paired.triangle[:c, :c], inverse.T).T
        return bread @ self.paired.spread @ bread.T

    @cached_property
    def _least_squares(self) -> tuple[np.ndarray, np.ndarray]:
        """Values and ``(W^T W)^-1`` of least squares on the same rows."""
        triangle = np.asarray(np.linalg.qr(self.paired.triangle[:, self._count :], mode="r"))
        scaled = triangle[: self._count, : self._count] / self._scale
        values = linalg.solve_triangular(scaled, triangle[: self._count, -1]) / self._scale
        inverse = linalg.solve_triangular(scaled, np.eye(self._count)) / self._scale[:, None]
        return values, inverse @ inverse.T

    def squares_at(self, values: np.ndarray) -> float:
        """Return the sum of squared residuals of the rows at given values (c,)."""
        return float(np.sum((self.paired.triangle[:, self._count :] @ np.append(-values, 1.0)) ** 2))

    def change_from(self, values: np.ndarray) -> float:
        """Return by what part the values differ from others, every one weighed by the length of its column."""
        size = float(np.linalg.norm(self._scale * self.values))
        return float(np.linalg.norm(self._scale * (self.values - values))) / max(size, 1e-300)

    def endogeneity(self) -> Endogeneity:
        """Test whether least squares is biased by rows that correlate with their errors (Durbin, Wu, Hausman).

        ``V = W - Z (Z^T Z)^-1 Z^T W`` is what the instruments do not explain of the rows. In ``y = W x + V g + e`` it
        has no say unless it correlates with the errors: F test of ``g = 0``.
        """
        c, triangle = self._count, self.paired.triangle
        target = triangle[c:, -1]
        unexplained = triangle[c : 2 * c, c : 2 * c] / self._scale
        directions, sizes, _ = np.linalg.svd(unexplained)
        # Z spans all of W but for V, so that [W V] spans what [Z V] does: what is left of y is beyond both.
        used = directions[:, sizes > _NOTHING]
        rank = used.shape[1]
        full = float(np.sum(target**2) - np.sum((used.T @ target[:-1]) ** 2))
        restricted = self.squares_at(self._least_squares[0])
        freedom = self.paired.rows - c - rank
        worst, worst_z = self._farthest()
        if rank == 0 or freedom < 1:
            return Endogeneity(0.0, (rank, max(freedom, 0)), 1.0, worst, worst_z)
        statistic = max(restricted - full, 0.0) / rank / max(full / freedom, 1e-300)
        return Endogeneity(statistic, (rank, freedom), float(f_sf(statistic, rank, freedom)), worst, worst_z)

    def bias_note(self) -> str:
        """Return by how much least squares of the same rows differs, in sigmas of the instruments' own values."""
        shift = np.abs(self._least_squares[0] - self.values) / np.sqrt(np.diag(self.covariance))
        worst = int(np.argmax(shift))
        return (
            f"least squares of the same rows differs most in {self.paired.columns[worst]}, by {shift[worst]:.2g} sigmas"
        )

    def _farthest(self) -> tuple[str, float]:
        """Return the column whose two values differ most, in sigmas of the difference: ``C_iv - C_ls`` (Hausman)."""
        values, inverse = self._least_squares
        gained = np.diag(self.covariance) / self.variance - np.diag(inverse)
        floor = 1e-12 * np.diag(self.covariance) / self.variance
        distance = np.abs(values - self.values) / np.sqrt(self.variance * np.maximum(gained, floor))
        farthest = int(np.argmax(distance))
        return self.paired.columns[farthest], float(distance[farthest])


WHOLE = 0.995
"""Part of the decimation window that moves in rows that are tested."""

FINE_ORDER = 12
"""Highest order of the noise model of rows that are not decimated."""

# With fewer degrees of freedom left, rows near standstill are tested too.
_LEAST_FREEDOM = 20

_NEAR_STANDSTILL = (
    "the Durbin-Wu-Hausman test has too few rows away from standstill and takes those near it, whose noise is not that "
    "of the others: it may reject two or three times as often as its p says; decimate less"
)


def hausman_test(
    evidence: Evidence, twins: Twins, solved: IterationSolution, noise: NoiseModel, whitened: InstrumentSolution
) -> tuple[Endogeneity, tuple[str, ...]]:
    """Return the test, and what to say of it.

    The F test needs rows whose noise is white and of one size, much more than the estimate does: it looks at the small
    part of the rows that the instruments do not explain. Two kinds of rows do not have such noise. Near standstill the
    decimation window is bridged by the mean of the samples before, noise and all: these rows are left out. And at the
    full rate noise may have sharper colours than an autoregression of low order: there a higher one is tried.

    Args:
        evidence: The recordings.
        twins: Their rows and those of the simulated motion.
        solved: The parameters around which the noise is found.
        noise: The noise model of the recordings' rows.
        whitened: All rows, whitened with it: tested where too few are left.
    """
    everything, finer = whitened.endogeneity(), _finer(evidence, twins, solved, noise)
    try:
        test = InstrumentSolution(whitened_pairs(twins, evidence.columns, finer, WHOLE)).endogeneity()
    except EstimateError:
        return everything, (_NEAR_STANDSTILL,)
    if test.freedom[1] < min(_LEAST_FREEDOM, everything.freedom[1]):
        return everything, (_NEAR_STANDSTILL,)
    return test, ()


def _finer(evidence: Evidence, twins: Twins, solved: IterationSolution, noise: NoiseModel) -> NoiseModel:
    """Return a noise model of higher order of rows at the full rate; the given one where there is none."""
    if evidence.sources[0].resolved.decimates:
        return noise
    try:
        finer = noise_around(twins.real, evidence.plain.system, solved.values, solved.covariance, FINE_ORDER)
        for equation in finer.coefficients:
            finer.whitening.whitener(equation)  # refuses what is all but known from the rows before
    except (EstimateError, SignalError):
        return noise
    # From runs of rows shorter than the order their noise is not identifiable.
    return finer if finer.deviations.keys() == noise.deviations.keys() else noise
