"""A fleet as a hierarchy: a common arm, the deviation of each unit from it, and that of each log from its unit.

Parameters of log l of unit u are ``theta_ul = mu + b_u + d_ul`` with ``b_u ~ N(0, T)``, ``d_ul ~ N(0, Omega)``, both
diagonal, and what the log shows of them is an information matrix J with ``h = J theta``. Everything is in information
form: a log in which a parameter cannot be seen has zeros there and needs no special case.

Variances maximise the restricted likelihood by minorisation (Zhou et al., 2019): ``T_j`` times the root of
``sum_u g_uj^2 / sum_u P_ujj``, with ``g`` the scores of the units and ``P`` their variances. They stay positive and the
likelihood never falls; longer steps are taken as long as it does not either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..distributions import chi2_ppf
from ..text import short_repr

MOST_ITERATIONS, CONVERGED = 200, 1e-3
"""Of the variances; gain of the log-likelihood."""
UNSHOWN = 1e-9
"""Scores with a smaller part of the information than this show nothing of a variance."""
EXPONENTS = (1.5, 0.5)
"""Of the steps of the variances, the first that makes them likelier: the last always does, the first is faster."""
START = 0.05
"""First guess of all deviations, as a part of the parameters' sizes."""


@dataclass(frozen=True, eq=False)
class LogInformation:
    """What one log shows of the parameters.

    Attributes:
        unit: Number of its unit.
        J: Information matrix (c, c).
        h: ``J theta`` (c,).
    """

    unit: int
    J: np.ndarray
    h: np.ndarray

    def without(self, directions: np.ndarray) -> LogInformation:
        """Return what the log shows of all but unknown changes along some directions (c, r)."""
        known = self.J @ directions
        scale = 1 / np.sqrt(np.maximum(np.sum(directions * known, axis=0), np.finfo(float).tiny))
        known, along = known * scale, directions * scale
        pulled = np.linalg.pinv(along.T @ known, rcond=1e-9, hermitian=True) @ known.T
        return LogInformation(self.unit, self.J - known @ pulled, self.h - pulled.T @ (along.T @ self.h))


def information_of_rows(unit: int, rows: np.ndarray) -> LogInformation:
    """Return the information in weighted rows ``[W y]`` (k, c + 1) with noise of variance 1."""
    W, y = rows[:, :-1], rows[:, -1]
    return LogInformation(unit, W.T @ W, W.T @ y)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Common arm, units and their variances. Make one with :func:`fit_hierarchy`.

    Attributes:
        unit_of: Number of the unit of each log (N,).
        J: Information matrices of the logs (N, c, c).
        h: ``J theta`` of the logs (N, c).
        between_units: Variances T of the units' deviations (c,).
        between_logs: Variances Omega of the logs' deviations from their units (c,).
        iterations: Iterations of the variances.
    """

    __repr__ = short_repr

    unit_of: np.ndarray
    J: np.ndarray
    h: np.ndarray
    between_units: np.ndarray
    between_logs: np.ndarray
    iterations: int = 0

    @property
    def units(self) -> int:
        """Number of units U."""
        return int(self.unit_of.max()) + 1

    @cached_property
    def _of_logs(self) -> tuple[np.ndarray, np.ndarray]:
        """Information of each log on its unit, ``W = (J^-1 + Omega)^-1`` (N, c, c), and ``W theta`` (N, c)."""
        return _through(self.J, self.h, self.between_logs)

    @cached_property
    def _of_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Information of each unit's logs on it (U, c, c), and that times its parameters (U, c)."""
        W, w = self._of_logs
        A, a = np.zeros((self.units, *W.shape[1:])), np.zeros((self.units, W.shape[1]))
        np.add.at(A, self.unit_of, W)
        np.add.at(a, self.unit_of, w)
        return A, a

    @cached_property
    def _on_common(self) -> tuple[np.ndarray, np.ndarray]:
        """Information of each unit on the common arm (U, c, c), and that times its parameters (U, c)."""
        return _through(*self._of_units, self.between_units)

    @cached_property
    def common_covariance(self) -> np.ndarray:
        """Covariance of the common arm's parameters (c, c)."""
        return np.linalg.inv(self._on_common[0].sum(axis=0))

    @cached_property
    def common(self) -> np.ndarray:
        """Parameters of the common arm (c,)."""
        return self.common_covariance @ self._on_common[1].sum(axis=0)

    @cached_property
    def unit_scores(self) -> np.ndarray:
        """Scores of the units: derivatives of the likelihood by their deviations (U, c)."""
        V, v = self._on_common
        return v - V @ self.common

    @cached_property
    def unit_score_covariance(self) -> np.ndarray:
        """Covariance of the units' scores (U, c, c)."""
        V = self._on_common[0]
        return V - V @ self.common_covariance @ V

    @cached_property
    def unit_values(self) -> np.ndarray:
        """Parameters of the units, drawn to the common arm as far as their logs leave them open (U, c)."""
        return self.common + self.unit_scores * self.between_units

    @cached_property
    def unit_covariance(self) -> np.ndarray:
        """Covariance of the units' parameters (U, c, c), that of the common arm included."""
        T, V = np.diag(self.between_units), self._on_common[0]
        drawn = np.eye(len(T)) - T @ V
        return T - T @ V @ T + drawn @ self.common_covariance @ np.swapaxes(drawn, 1, 2)

    @property
    def unit_sigma(self) -> np.ndarray:
        """Standard deviations of the units' parameters (U, c).

        That variances between units are estimated too counts twice: they draw by a wrong part, and the part by which
        they seem to be drawn is wrong (Prasad and Rao, 1990).
        """
        P, V = (np.diagonal(one, axis1=1, axis2=2) for one in (self.unit_score_covariance, self._on_common[0]))
        variance = 1 / np.maximum(np.diagonal(self._information_on_variances), np.finfo(float).tiny)
        estimated = 2 * variance * P * (1 - self.between_units * V) ** 2
        return np.sqrt(np.diagonal(self.unit_covariance, axis1=1, axis2=2) + estimated)

    @cached_property
    def _information_on_variances(self) -> np.ndarray:
        """Expected information on the variances between units (c, c)."""
        return (self.unit_score_covariance**2).sum(axis=0) / 2

    @cached_property
    def log_scores(self) -> np.ndarray:
        """Scores of the logs: derivatives of the likelihood by their deviations from their units (N, c)."""
        return self.scores_beside(self.unit_values[self.unit_of])

    def scores_beside(self, values: np.ndarray) -> np.ndarray:
        """Return the scores of the logs (N, c) where their units' parameters are values (N, c)."""
        W, w = self._of_logs
        return w - np.einsum("nij,nj->ni", W, values)

    @cached_property
    def log_score_variances(self) -> np.ndarray:
        """Variances of the logs' scores (N, c)."""
        W = self._of_logs[0]
        taken = np.einsum("nij,nij->ni", W @ self.unit_covariance[self.unit_of], W)
        return np.diagonal(W, axis1=1, axis2=2) - taken

    def contrast(self, unit: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and information of effects that add ``weights_kl delta_k`` to the parameters of log l.

        Args:
            unit: Number of the unit whose logs they are.
            weights: The weights (K, L) in the order of its logs: 1 from a date on is a change there, a temperature is
                a slope; 1 in all logs is a unit that differs.

        Returns:
            Scores (K, c) and their covariance (K, c, K, c), the unit's own deviation taken out as far as units vary.
        """
        mine = np.flatnonzero(self.unit_of == unit)
        W = self._of_logs[0][mine]
        score = weights @ self.log_scores[mine]
        along = np.einsum("kl,lij->kij", weights, W)
        direct = np.einsum("kl,ml,lij->kimj", weights, weights, W)
        return score, direct - np.tensordot(along @ self.unit_covariance[unit], along, axes=(2, 1))

    def updated(self, log: LogInformation) -> tuple[np.ndarray, np.ndarray]:
        """Return parameters (c,) and sigmas (c,) of a unit with one more log, common arm and variances as they are."""
        W, w = _through(log.J[None], log.h[None], self.between_logs)
        A, a = self._of_units[0][log.unit] + W[0], self._of_units[1][log.unit] + w[0]
        V, v = _through(A[None], a[None], self.between_units)
        drawn = np.eye(len(a)) - self.between_units[:, None] * V[0]
        values = self.common + self.between_units * (v[0] - V[0] @ self.common)
        covariance = np.diag(self.between_units) @ drawn.T + drawn @ self.common_covariance @ drawn.T
        return values, np.sqrt(np.diagonal(covariance))

    def single_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Return parameters (U, c) and sigmas (U, c) of units from their own logs alone; NaN where they show none."""
        A, a = self._of_units
        values, sigma = np.full_like(a, np.nan), np.full_like(a, np.nan)
        for u, (matrix, side) in enumerate(zip(A, a, strict=True)):
            scale = 1 / np.sqrt(np.maximum(np.diagonal(matrix), np.finfo(float).tiny))
            if np.linalg.cond(matrix * np.outer(scale, scale)) < 1 / np.finfo(float).eps:
                covariance = np.linalg.inv(matrix)
                values[u], sigma[u] = covariance @ side, np.sqrt(np.diagonal(covariance))
        return values, sigma

    def variance_interval(self, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return an interval of each variance between units (c,), (c,).

        The variance of a unit's estimate, of which that between units is a part, is nearly a chi-square with as many
        degrees of freedom as the information on it says (Satterthwaite): the rest of it is known.
        """
        P, V = (np.diagonal(one, axis1=1, axis2=2) for one in (self.unit_score_covariance, self._on_common[0]))
        shown = P.sum(axis=0) > UNSHOWN * V.sum(axis=0)
        total = 1 / np.where(shown, P.mean(axis=0), 1.0)
        known = total - self.between_units
        freedom = np.maximum(2 * total**2 * np.diagonal(self._information_on_variances), UNSHOWN)
        low, high = (total * freedom / chi2_ppf(quantile, freedom) - known for quantile in _tails(confidence))
        return np.where(shown, np.maximum(low, 0.0), 0.0), np.where(shown, np.maximum(high, 0.0), np.inf)

    def is_likelier(self, other: Hierarchy) -> bool:
        """Return whether the variances have a higher restricted likelihood than those of another fit."""
        return self.restricted_likelihood >= other.restricted_likelihood

    @cached_property
    def restricted_likelihood(self) -> float:
        """Restricted log-likelihood but for a constant."""
        A, a = self._of_units
        w, v = self._of_logs[1], self._on_common[1]
        # Sums of squares that deviations explain, h (D^-1 + J)^-1 h, and the common arm.
        quadratic = float(np.sum(self.h * self.between_logs * w) + np.sum(a * self.between_units * v))
        quadratic += float(v.sum(axis=0) @ self.common)
        volume = _log_volume(self.J, self.between_logs) + _log_volume(A, self.between_units)
        return (quadratic - volume + float(np.linalg.slogdet(self.common_covariance)[1])) / 2


def _tails(confidence: float) -> tuple[float, float]:
    return (1 + confidence) / 2, (1 - confidence) / 2


def _through(J: np.ndarray, h: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what information is left behind a deviation: ``(J^-1 + D)^-1`` and that times the parameters."""
    inner = np.linalg.inv(np.eye(len(variances)) + J * variances)
    return inner @ J, np.einsum("nij,nj->ni", inner, h)


def _log_volume(J: np.ndarray, variances: np.ndarray) -> float:
    return float(np.linalg.slogdet(np.eye(len(variances)) + J * variances)[1].sum())


def fit_hierarchy(
    logs: Sequence[LogInformation], sizes: np.ndarray, variances: tuple[np.ndarray, np.ndarray] | None = None
) -> Hierarchy:
    """Estimate the common arm, its units and their variances by restricted likelihood.

    Args:
        logs: What each log shows; together they show every parameter.
        sizes: Sizes of the parameters (c,), for a first guess of the variances.
        variances: A better guess of those between units and between logs, of a fit of nearly the same logs.
    """
    unit_of = np.array([log.unit for log in logs])
    J, h = np.array([log.J for log in logs]), np.array([log.h for log in logs])
    several = len(unit_of) > len(set(unit_of.tolist()))
    first = (START * np.asarray(sizes, dtype=float)) ** 2
    between = variances or (first, first if several else np.zeros_like(first))
    found = Hierarchy(unit_of, J, h, *between)
    for iteration in range(1, MOST_ITERATIONS + 1):
        after = next(
            (one for exponent in EXPONENTS if (one := _improved(found, exponent, iteration)).is_likelier(found)), None
        )
        if after is None:
            break
        gain, found = after.restricted_likelihood - found.restricted_likelihood, after
        if gain < CONVERGED:
            break
    return found


def _improved(found: Hierarchy, exponent: float, iteration: int) -> Hierarchy:
    parts = []
    units = np.diagonal(found.unit_score_covariance, axis1=1, axis2=2)
    for variances, scores, expected, information in (
        (found.between_units, found.unit_scores, units, found._on_common[0]),
        (found.between_logs, found.log_scores, found.log_score_variances, found._of_logs[0]),
    ):
        whole, sums = np.diagonal(information, axis1=1, axis2=2).sum(axis=0), expected.sum(axis=0)
        # What a single unit, or a single log of each, shows has no deviation of its own.
        shown = sums > UNSHOWN * whole
        ratio = np.where(shown, np.sum(scores**2, axis=0) / np.where(shown, sums, 1.0), 0.0)
        parts.append(variances * ratio**exponent)
    return Hierarchy(found.unit_of, found.J, found.h, parts[0], parts[1], iteration)
