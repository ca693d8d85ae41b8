"""Central differences (P1.5), and positions behind elastic joints (P5.8).

The differences have no delay and known frequency responses.

| kind | formula | response at angular frequency w, step T |
|---|---|---|
| ``first`` | (x[k+1] - x[k-1]) / 2T | i sin(w T) / T |
| ``second`` | (x[k+1] - 2 x[k] + x[k-1]) / T^2 | -4 sin^2(w T / 2) / T^2 |
| ``twice_first`` | (x[k+2] - 2 x[k] + x[k-2]) / 4T^2 | -sin^2(w T) / T^2 |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import SignalError
from .checks import as_rows, check_choice, check_positive, frozen
from .lowpass import LowPass, apply_low_pass, trim_ends

Difference = Literal["first", "second", "twice_first"]
MARGIN = {"first": 1, "second": 1, "twice_first": 2}
"""Samples lost at each end."""


def central_difference(values: np.ndarray, rate: float, kind: Difference = "first") -> np.ndarray:
    """Differentiate signals (rows, N) sampled at ``rate`` [Hz].

    Returns:
        The derivative (rows, N - 2 margin); its first sample belongs to input sample ``margin`` (see ``MARGIN``).

    Raises:
        SignalError: If the signal is too short or not finite, or the kind is unknown.
    """
    check_choice(kind, tuple(MARGIN), "difference")
    margin, rate = MARGIN[kind], check_positive(rate, "sampling rate")
    rows = as_rows(values, least=2 * margin + 1)
    before, after = rows[:, : -2 * margin], rows[:, 2 * margin :]
    if kind == "first":
        return (after - before) * (rate / 2)
    return (after - 2 * rows[:, margin:-margin] + before) * (rate / margin) ** 2


def difference_response(frequency: np.ndarray, rate: float, kind: Difference = "first") -> np.ndarray:
    """Return the complex response of a difference at frequencies [Hz]; the ideal is (2 pi i f) or its square."""
    check_choice(kind, tuple(MARGIN), "difference")
    angle = 2 * np.pi * np.asarray(frequency, dtype=float) / rate
    if kind == "first":
        return 1j * np.sin(angle) * rate
    margin = MARGIN[kind]
    return -4 * np.sin(margin * angle / 2) ** 2 * (rate / margin) ** 2 + 0j


@dataclass(frozen=True)
class Derivatives:
    """Positions with their derivatives, filtered and trimmed alike.

    Attributes:
        q: Filtered positions (n, K).
        qd: First derivatives (n, K).
        qdd: Second derivatives (n, K).
        rate: Sampling rate [Hz].
        first: Number of the input sample to which the first column belongs.
        filter: The low-pass filter applied to the positions before.
        second: How the second derivative was formed.
    """

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    rate: float
    first: int
    filter: LowPass
    second: Difference


def differentiate(
    positions: np.ndarray, filter_: LowPass, second: Difference = "second", tolerance: float = 1e-4
) -> Derivatives:
    """Filter positions (n, N), differentiate them twice and trim the ends by the filter's memory (P1.5).

    Args:
        positions: Positions [rad or m].
        filter_: Low-pass filter, with the sampling rate in it.
        second: ``second`` for the second central difference, ``twice_first`` for the first one twice.
        tolerance: What may be left of the filter's transients at the ends.

    Raises:
        SignalError: If the signal is too short or not finite.
    """
    check_choice(second, ("second", "twice_first"), "second derivative")
    smooth = trim_ends(filter_, apply_low_pass(filter_, positions), tolerance)
    margin = MARGIN[second]
    qdd = central_difference(smooth, filter_.rate, second)
    inner = margin - MARGIN["first"]
    qd = central_difference(smooth, filter_.rate, "first")[:, inner : inner + qdd.shape[1]]
    q = smooth[:, margin:-margin]
    first = filter_.ends(tolerance)[0] + margin
    q, qd, qdd = (frozen(np.ascontiguousarray(part)) for part in (q, qd, qdd))
    return Derivatives(q, qd, qdd, filter_.rate, first, filter_, second)


def joint_positions(motor_positions: np.ndarray, joint_torques: np.ndarray, stiffness: np.ndarray) -> np.ndarray:
    """Return joint positions ``qa = q - tau_l / k`` (n, N).

    Args:
        motor_positions: Motor positions on the joint side (n, N) [rad or m].
        joint_torques: Joint torques (n, N) [N m or N].
        stiffness: Stiffness of each joint (n,) [N m/rad or N/m]; infinite for a rigid joint.

    Raises:
        SignalError: If the arrays do not fit or a stiffness is not above 0.
    """
    positions = as_rows(motor_positions, "motor positions")
    torques = as_rows(joint_torques, "joint torques")
    if torques.shape != positions.shape:
        raise SignalError(f"joint torques: got shape {torques.shape}, allowed is that of positions {positions.shape}")
    stiffness = np.asarray(stiffness, dtype=np.float64)
    if stiffness.shape != (len(positions),):
        raise SignalError(f"stiffness: got shape {stiffness.shape}, allowed is one for each of {len(positions)} joints")
    bad = np.flatnonzero(~(stiffness > 0))
    if len(bad):
        raise SignalError(f"stiffness of joint {bad[0] + 1}: got {stiffness[bad[0]]}, allowed are numbers above 0")
    return positions - torques / stiffness[:, None]
