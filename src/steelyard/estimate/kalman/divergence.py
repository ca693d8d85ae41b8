"""What can go wrong in a filter, found at the step where it does and said once."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ...errors import EstimateError
from ..evidence import Evidence

LOST = 10.0
"""A predicted position farther than this from the measured one [rad or m]: the filter no longer follows the arm."""

RELATIVE_PIVOT = 1e-12
"""An inertia matrix whose smallest pivot is below this part of its largest is singular."""

LARGEST = 1e200
"""Sums of squares above this count as not finite."""


class Trouble(IntEnum):
    """Why a filter stopped."""

    INERTIA = 1
    LOST = 2
    STATE = 3


def divergence(trouble: Trouble, time: float, label: str, step: int, *, is_empty: bool) -> EstimateError:
    """Return the error that says when a filter stopped, why, and what to do.

    Args:
        trouble: What happened.
        time: When [s].
        label: In which recording.
        step: At which prediction, from 0.
        is_empty: Whether all parameters are zero.
    """
    when = (
        f"at {time:.6g} s of recording '{label}' ({'the first prediction' if step == 0 else f'prediction {step + 1}'})"
    )
    if is_empty:
        return EstimateError(
            f"the filter stopped {when}: the inertia matrix is singular because all parameters are zero; no "
            "factorisation cures that: give a prior, or start from 'auto', 'robot' or 'wls'"
        )
    if trouble is Trouble.INERTIA:
        return EstimateError(
            f"the filter stopped {when}: the inertia matrix of its parameters is singular or not positive definite; "
            "start nearer (start 'wls' or 'robot', or a prior with smaller deviations), or lock small parameters"
        )
    if trouble is Trouble.LOST:
        return EstimateError(
            f"the filter stopped {when}: its prediction is more than {LOST:g} rad or m off the measured position; "
            "start nearer, widen sign_width, or give smaller deviations of the start"
        )
    return EstimateError(
        f"the filter stopped {when}: state or parameters are not finite; start nearer, widen sign_width, or use "
        "integrator 'rk4'"
    )


def impossible_joint(evidence: Evidence, pivots: np.ndarray) -> str | None:
    """Return the first joint whose pivot of M (n,) is not above zero; None if all are."""
    bad = np.flatnonzero(~(pivots > RELATIVE_PIVOT * np.abs(pivots).max()))
    return evidence.equations.joints[int(bad[0])] if len(bad) else None
