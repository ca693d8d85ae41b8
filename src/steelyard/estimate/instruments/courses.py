"""What the arm was told to do: the reference of a recording, stretch by stretch, at the controller's instants."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.interpolate import CubicSpline

from ...errors import EstimateError
from ...observe import Preparation, RowSource, SettledPreparation, settle
from ...observe.regular import is_even
from ...recording import Recording
from ...signals import LowPass, apply_low_pass, low_pass

# A stretch shorter than this gives no rows worth a simulation.
_LEAST_SAMPLES = 8


@dataclass(frozen=True, eq=False)
class Course:
    """A stretch of a recording without gaps.

    Attributes:
        samples: Which samples of the recording it is.
        stamps: Their times on an even grid of the recording's rate, in samples (m,).
        reference: q, qd, qdd at the control instants (3 n, K).
        followed: Whether the stretch is long enough to be simulated; else the reference stands for the motion.
    """

    samples: slice
    stamps: np.ndarray
    reference: np.ndarray
    followed: bool

    def at_stamps(self, values: np.ndarray) -> np.ndarray:
        """Return a signal (n, N) of the even grid at the stamps (n, m)."""
        if np.array_equal(self.stamps, np.arange(len(self.stamps))):
            return values[:, : len(self.stamps)]
        return CubicSpline(np.arange(values.shape[1]), values, axis=1)(self.stamps)


def whole_recording(source: RowSource) -> Recording:
    """Return the recording of a source, all of it in memory: a simulation of it is as long."""
    recording = source.recording
    return recording if isinstance(recording, Recording) else recording.whole()


def courses_of(recording: Recording, settled: SettledPreparation, every: int, label: str) -> tuple[Course, ...]:
    """Return the stretches of a recording with what the arm was told to do.

    The reference is the recorded one, or the measured positions, low-passed, where none was recorded. Between samples
    it is a cubic spline, whose derivatives are its velocities and accelerations.

    Args:
        recording: The recording.
        settled: Its preparation.
        every: Control periods between two samples.
        label: Name of the recording, for messages.

    Raises:
        EstimateError: If the reference has values that are no numbers.
    """
    commanded = recording.q if recording.reference is None else recording.reference
    if not np.isfinite(commanded).all():
        joint = recording.joints[int(np.flatnonzero(~np.isfinite(commanded).all(axis=1))[0])]
        raise EstimateError(
            f"recording '{label}': the reference of joint '{joint}' has values that are no numbers; cut these samples "
            "out, or leave the reference channel away"
        )
    smooth = None if recording.reference is not None else _smoothing(recording, settled)
    breaks = np.flatnonzero(np.diff(recording.time) > settled.max_gap) + 1
    bounds = [0, *(int(k) for k in breaks), recording.samples]
    return tuple(
        _course(recording, commanded, slice(first, last), settled, every, smooth) for first, last in pairwise(bounds)
    )


def _smoothing(recording: Recording, settled: SettledPreparation) -> LowPass:
    """Return the low-pass that makes measured positions a reference: the preparation's, without delay."""
    cutoff = settled.cutoff or settle(Preparation(rate=settled.rate), [recording]).cutoff
    return low_pass(settled.rate, cutoff, settled.chosen.order)


def _course(
    recording: Recording,
    commanded: np.ndarray,
    samples: slice,
    settled: SettledPreparation,
    every: int,
    smooth: LowPass | None,
) -> Course:
    time, told, rate = recording.time[samples], commanded[:, samples], settled.rate
    needed = _LEAST_SAMPLES if smooth is None else max(_LEAST_SAMPLES, sum(smooth.ends()) + 1, smooth.pad + 1)
    if len(time) < needed:
        return Course(samples, np.arange(len(time)), told, followed=False)
    stamps = np.arange(len(time), dtype=float)
    if not is_even(time, rate, settled.max_gap):
        stamps = (time - time[0]) * rate
        grid = np.arange(int(np.ceil(stamps[-1] - 1e-9)) + 1, dtype=float)
        told = CubicSpline(stamps, told, axis=1)(np.minimum(grid, stamps[-1]))
    if smooth is not None:
        if told.shape[1] < needed:
            return Course(samples, np.arange(len(time)), commanded[:, samples], followed=False)
        told = apply_low_pass(smooth, told)
    count = told.shape[1]
    spline = CubicSpline(np.arange(count), told, axis=1)
    instants = np.minimum(np.arange(count * every) / every, count - 1)
    parts = [spline(instants, order) * rate**order for order in range(3)]
    return Course(samples, stamps, np.concatenate(parts), followed=True)
