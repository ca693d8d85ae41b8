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


def divergence(trouble: Trouble, time: float, label: str, step: int, start: str, *, is_empty: bool) -> EstimateError:
    """Return the error that says when a filter stopped, why, and what to do.

    Args:
        trouble: What happened.
        time: When [s].
        label: In which recording.
        step: At which prediction, from 0.
        start: Where the settings let it start: what has been tried is not advised.
        is_empty: Whether all parameters are zero.
    """
    when = (
        f"at {time:.6g} s of recording '{label}' ({'the first prediction' if step == 0 else f'prediction {step + 1}'})"
    )
    if is_empty:
        return EstimateError(
            f"the filter stopped {when}: the inertia matrix is singular because all parameters are zero; no "
            f"factorisation cures that: give a prior, or {_nearer(start)}"
        )
    if trouble is Trouble.INERTIA:
        return EstimateError(
            f"the filter stopped {when}: the inertia matrix of its parameters is singular or not positive definite; "
            f"{_nearer(start)}, give a prior with smaller deviations, or lock small parameters (option locked)"
        )
    if trouble is Trouble.LOST:
        return EstimateError(
            f"the filter stopped {when}: its prediction is more than {LOST:g} rad or m off the measured position; "
            f"{_nearer(start)}, or smooth the sign of friction with a larger sign_width"
        )
    return EstimateError(
        f"the filter stopped {when}: state or parameters are not finite; {_nearer(start)}, widen sign_width, or use "
        "integrator 'rk4'"
    )


def _nearer(start: str) -> str:
    """Return what brings the start nearer to the arm, as options of the command line."""
    if start != "auto":
        return "start from a possible arm (--option start=auto)"
    return "trust the start more (--option widen=1)"


def impossible_start(joint: str) -> EstimateError:
    """Return the error of a start at a robot's own values that no arm can have."""
    return EstimateError(
        f"ekf start 'robot': with the values of the robot's file the inertia matrix is not positive definite at joint "
        f"'{joint}': its links have no usable inertias there; start from the recordings (--option start=auto), give a "
        "prior, or complete the file"
    )


def impossible_joint(evidence: Evidence, pivots: np.ndarray) -> str | None:
    """Return the first joint whose pivot of M (n,) is not above zero; None if all are."""
    bad = np.flatnonzero(~(pivots > RELATIVE_PIVOT * np.abs(pivots).max()))
    return evidence.equations.joints[int(bad[0])] if len(bad) else None
