"""Autoregressive noise: coefficients, stationarity, autocorrelation."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..signals.recursive import autoregression_filter

LARGEST_REFLECTION = 0.995
"""Noise more persistent than this cannot be told from a drift; it is held there."""

_SHRINKINGS = 30


def stationary(coefficients: np.ndarray, longest: float = np.inf) -> np.ndarray:
    """Return the nearest coefficients (p,) of ``v[t] = sum_k a_k v[t-k] + e[t]`` within bounds.

    Reflection coefficients are at most 0.995: down the Levinson recursion to them, and up again from those held. The
    correlation length (:func:`correlation_length`) is at most ``longest`` rows: poles are drawn towards 0, all by one
    factor, until it is.
    """
    held = _held_reflections(coefficients)
    if len(held) == 0 or correlation_length(held) <= longest:
        return held
    powers, low, high = np.arange(1, len(held) + 1), 0.0, 1.0
    for _ in range(_SHRINKINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if correlation_length(held * middle**powers) <= longest else (low, middle)
    return held * low**powers


def correlation_length(coefficients: np.ndarray) -> float:
    """Return how many rows count as one where the noise is strongest: its largest spectral density over its variance.

    At frequency 0 this is the sum of all autocorrelations, by which the variance of a mean exceeds that of white noise.
    """
    full = np.concatenate([[1.0], -np.asarray(coefficients, dtype=float)])
    smallest = np.min(np.abs(full @ _waves(len(full))) ** 2)
    return innovation_share(coefficients) / max(float(smallest), 1e-300)


@cache
def _waves(count: int) -> np.ndarray:
    """Return ``exp(-i w k)`` (count, frequencies) from frequency 0 to half the rate of rows."""
    return np.exp(-1j * np.outer(np.arange(count), np.linspace(0, np.pi, 513)))


def _held_reflections(coefficients: np.ndarray) -> np.ndarray:
    reflections = _reflections(np.asarray(coefficients, dtype=float))
    held = np.clip(reflections, -LARGEST_REFLECTION, LARGEST_REFLECTION)
    if np.array_equal(held, reflections):
        return np.asarray(coefficients, dtype=float)
    built = np.zeros(0)
    for reflection in held:
        built = np.concatenate([built - reflection * built[::-1], [reflection]])
    return built


def _reflections(coefficients: np.ndarray) -> np.ndarray:
    found = np.zeros(len(coefficients))
    current = coefficients.copy()
    for order in range(len(coefficients), 0, -1):
        last = current[-1]
        found[order - 1] = last
        # Beyond 1 the recursion has no meaning; what is below is judged as if at the bound.
        bounded = np.clip(last, -LARGEST_REFLECTION, LARGEST_REFLECTION)
        current = (current[:-1] + bounded * current[-2::-1]) / (1 - bounded**2) if order > 1 else current[:0]
    return found


def autocorrelation(coefficients: np.ndarray, lags: int) -> np.ndarray:
    """Return the autocorrelation (lags + 1,) of the noise, from the Yule-Walker equations."""
    order = len(coefficients)
    if order == 0:
        return np.eye(1, lags + 1)[0]
    # Unknown r(0..p): r(k) - sum_j a_j r(|k-j|) = variance of e at k = 0, 0 elsewhere.
    system = np.zeros((order + 1, order + 1))
    full = np.concatenate([[1.0], -coefficients])
    for k in range(order + 1):
        for j in range(order + 1):
            system[k, abs(k - j)] += full[j]
    start = np.linalg.solve(system, np.eye(order + 1)[0])
    if lags <= order:
        return start[: lags + 1] / start[0]
    further = autoregression_filter(coefficients, np.zeros((1, lags - order)), start[None, order:0:-1])
    return np.concatenate([start, further[0]]) / start[0]


def innovation_share(coefficients: np.ndarray) -> float:
    """Return the variance of e over that of v: what the past leaves unexplained."""
    return float(np.prod(1 - _reflections(np.asarray(coefficients, dtype=float)) ** 2))
