"""Optimality criteria: scalar functions of the information matrix ``M = W^T W``, with their exact gradients.

All are minimised as logarithms, so that one search fits them all. Those that are the maximum of several quantities
have a sharpness s: ``(1/s) log sum x^s`` replaces ``log max x`` and is smooth, and s is raised during the search until
the two agree. The condition number is ``0.5/s (log sum lam^s + log sum lam^-s)``, half
because the eigenvalues of M are the squares of W's singular values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, final

import numpy as np
from scipy import linalg

from ..configuration import checked, choice
from ..errors import DesignError

Valued = tuple[float, np.ndarray]
"""A value and its gradient by M (p, p), symmetric."""

Weighting = Literal["none", "noise"]

FLOOR = 1e-13
"""Part of the largest eigenvalue that is added to all: an unidentifiable parameter is bad, but no error."""


@dataclass(frozen=True)
class Criterion(ABC):
    """A scalar function of the information matrix.

    Attributes:
        name: Its name in settings.
        weighting: Rows divided by their noise, or as they are.
        description: The quantity whose logarithm is minimised.
    """

    name: str
    weighting: Weighting
    description: str

    @abstractmethod
    def log_value(self, information: np.ndarray, sharpness: float) -> Valued:
        """Return the smooth logarithm and its gradient by the information matrix (p, p)."""

    @abstractmethod
    def exact(self, information: np.ndarray) -> float:
        """Return the reported figure, not its logarithm."""


@final
@dataclass(frozen=True)
class Condition(Criterion):
    """Condition number of W, as it is or with columns at unit length."""

    normalised: bool = False

    def log_value(self, information: np.ndarray, sharpness: float) -> Valued:
        """Return the smooth log of the condition number."""
        matrix, undo = unit_diagonal(information) if self.normalised else (information, _unchanged)
        values, vectors = floored_eigen(matrix)
        logs = np.log(values)
        high, low = sharpness * (logs - logs[-1]), sharpness * (logs[0] - logs)
        up, down = np.exp(high), np.exp(low)
        value = 0.5 * (logs[-1] - logs[0] + (np.log(up.sum()) + np.log(down.sum())) / sharpness)
        slope = _with_floor(0.5 * (up / up.sum() - down / down.sum()) / values)
        return float(value), undo((vectors * slope) @ vectors.T)

    def exact(self, information: np.ndarray) -> float:
        """Return the condition number."""
        matrix = unit_diagonal(information)[0] if self.normalised else information
        return condition_of(matrix)


@final
@dataclass(frozen=True)
class Determinant(Criterion):
    """D: the volume of the confidence ellipsoid, ``-log det M`` for each parameter; independent of units."""

    def log_value(self, information: np.ndarray, sharpness: float) -> Valued:
        """Return ``-log det M / p``."""
        size = len(information)
        inverse, log_det = inverse_and_log_det(information)
        return -log_det / size, inverse / -size

    def exact(self, information: np.ndarray) -> float:
        """Return ``log10 det M^-1``."""
        return -inverse_and_log_det(information)[1] / np.log(10.0)


@final
@dataclass(frozen=True)
class Trace(Criterion):
    """A: the sum of the variances."""

    def log_value(self, information: np.ndarray, sharpness: float) -> Valued:
        """Return ``log trace M^-1``."""
        inverse, _ = inverse_and_log_det(information)
        trace = np.trace(inverse)
        return float(np.log(trace)), -(inverse @ inverse) / trace

    def exact(self, information: np.ndarray) -> float:
        """Return the trace."""
        return float(np.trace(inverse_and_log_det(information)[0]))


@final
@dataclass(frozen=True)
class SmallestEigenvalue(Criterion):
    """E: the longest axis of the confidence ellipsoid, ``1 / smallest eigenvalue``."""

    def log_value(self, information: np.ndarray, sharpness: float) -> Valued:
        """Return the smooth ``-log`` of the smallest eigenvalue."""
        values, vectors = floored_eigen(information)
        logs = np.log(values)
        down = np.exp(sharpness * (logs[0] - logs))
        slope = _with_floor(-(down / down.sum()) / values)
        return float(np.log(down.sum()) / sharpness - logs[0]), (vectors * slope) @ vectors.T

    def exact(self, information: np.ndarray) -> float:
        """Return one over the smallest eigenvalue."""
        return float(1.0 / max(linalg.eigvalsh(information)[0], np.finfo(float).tiny))


@final
@dataclass(frozen=True)
class RelativeSigma(Criterion):
    """Sigmas over the parameters' sizes: the worst of them, or their mean. Needs columns scaled by a prior."""

    worst: bool = True

    def log_value(self, information: np.ndarray, sharpness: float) -> Valued:
        """Return the smooth log of the worst, or the log of the mean."""
        inverse, _ = inverse_and_log_det(information)
        logs = 0.5 * np.log(np.diag(inverse))
        power = sharpness if self.worst else 1.0
        top = logs.max()
        parts = np.exp(power * (logs - top))
        count = 1.0 if self.worst else float(len(parts))
        value = top + np.log(parts.sum() / count) / power
        by_variance = parts / parts.sum() * 0.5 / np.diag(inverse)
        return float(value), -(inverse * by_variance) @ inverse

    def exact(self, information: np.ndarray) -> float:
        """Return the worst or mean relative sigma, a part of 1."""
        sigma = np.sqrt(np.diag(inverse_and_log_det(information)[0]))
        return float(sigma.max() if self.worst else sigma.mean())


CRITERIA: Mapping[str, Criterion] = MappingProxyType(
    {
        made.name: made
        for made in (
            Condition("condition", "none", "condition number"),
            Condition("condition_normalised", "none", "condition number, columns at unit length", True),
            Condition("condition_weighted", "noise", "condition number, rows over their noise"),
            Condition(
                "condition_weighted_normalised", "noise", "condition number, rows over noise, unit columns", True
            ),
            Condition("condition_prior", "noise", "condition number, columns times the parameters (P1's cond(U))"),
            Determinant("d", "noise", "log10 det of the covariance"),
            Trace("a", "noise", "trace of the covariance"),
            SmallestEigenvalue("e", "noise", "largest eigenvalue of the covariance"),
            RelativeSigma("worst_sigma", "noise", "worst relative sigma"),
            RelativeSigma("mean_sigma", "noise", "mean relative sigma", worst=False),
        )
    }
)
"""Every criterion by its name."""

NEED_PRIOR = ("condition_prior", "worst_sigma", "mean_sigma")
"""Criteria about sizes of parameters: their columns are multiplied by the parameters."""


def criterion(name: str) -> Criterion:
    """Return the criterion of that name."""
    return CRITERIA[checked(name, choice(*CRITERIA), "criterion", DesignError)]


def floored_eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues, ascending and above zero, and eigenvectors."""
    values, vectors = linalg.eigh(matrix, check_finite=False)
    return np.maximum(values, 0.0) + FLOOR * values[-1], vectors


def _with_floor(slope: np.ndarray) -> np.ndarray:
    """Return slopes by the eigenvalues themselves from those by the floored ones: the largest raises all."""
    slope[-1] += FLOOR * slope.sum()
    return slope


def inverse_and_log_det(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the inverse and the log of the determinant, both of the matrix with unit diagonal, then scaled back."""
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0, scale, 1.0)
    shrink = 1.0 / (scale[:, None] * scale)
    # Column by column, as LAPACK wants it; the matrix is symmetric.
    scaled = (matrix * shrink).T
    factorise, invert = linalg.get_lapack_funcs(("potrf", "potri"), (scaled,))
    factor, info = factorise(scaled, lower=0, clean=1, overwrite_a=1)
    diagonal = factor.diagonal()
    if info == 0 and diagonal.min() > np.sqrt(FLOOR):
        log_det = 2 * np.log(diagonal).sum()
        upper, _ = invert(factor, lower=0, overwrite_c=1)
        inverse = upper + upper.T
        np.fill_diagonal(inverse, upper.diagonal())
    else:
        values, vectors = floored_eigen(matrix * shrink)
        inverse, log_det = (vectors / values) @ vectors.T, np.log(values).sum()
    return inverse * shrink, float(log_det + 2 * np.log(scale).sum())


def condition_of(matrix: np.ndarray) -> float:
    """Return the condition number of W from ``M = W^T W``; infinite if the rank is deficient."""
    values = linalg.eigvalsh(matrix)
    return float(np.sqrt(values[-1] / values[0])) if values[0] > FLOOR * values[-1] else float("inf")


def unit_diagonal(matrix: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Return M with columns of W at unit length, and the map from a gradient by that to one by M."""
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0, scale, 1.0)
    scaled = matrix / np.outer(scale, scale)

    def undo(gradient: np.ndarray) -> np.ndarray:
        back = gradient / np.outer(scale, scale)
        back[np.diag_indices(len(scale))] -= (gradient * scaled).sum(axis=1) / scale**2
        return back

    return scaled, undo


def _unchanged(gradient: np.ndarray) -> np.ndarray:
    return gradient
