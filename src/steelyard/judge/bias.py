"""Bias from errors in the positions, from the low-pass filter and from late torques, estimated by refits.

Errors in the positions (encoder steps, noise) get into the columns of W, where they shrink the parameters of
accelerations and give velocities near a reversal the wrong sign; the low-pass filter takes a little of the motion away.
Neither shows in the residuals. But each can be done a second time: noise of the same size added to the recorded
positions moves the estimate by about as much as the first time did (simulation extrapolation, first order). So does a
filter with a lower cut-off f: what a motion with steps of jerk has beyond f falls with the third power of f, so 0.8 f
takes twice as much as f. Filtering twice at f would find little, as what a sharp filter took is gone. Torques that come
late are a third cause; see :mod:`steelyard.judge.delay`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..estimate import Estimate, System
from ..observe import (
    Observations,
    ResolvedPreparation,
    RowSource,
    Whitening,
    busiest_part,
    reduce_rows,
    row_source,
)
from ..observe.reading import EvenStream
from ..progress import Progress, silent
from ..recording import Recording
from ..signals import LowPass, apply_low_pass, low_pass
from ..text import short_repr
from .delay import Delays, carried_over, estimate_delays
from .delay_trial import system_of_factors, system_of_rows

LOWER = 0.8
"""Cut-off of the second filter over that of the first: it takes about twice as much of the motion."""

REFITTED = 20.0
"""Seconds of each recording that are refitted: a bias and a delay show in them, whatever its length."""

_SAMPLES = 10_000, 20_000
"""Samples of them, at least (of a slow log, seconds hold few) and at most (of a fast one, neighbours say the same)."""

WORTH_NAMING = 0.5
"""Bias above this part of sigma is named: a 95 % interval then covers about 92 %."""


@dataclass(frozen=True, eq=False)
class Bias:
    """Estimated bias of every parameter.

    Attributes:
        columns: Names of the parameters.
        noise: Bias by errors in the positions (c,): attenuation, and wrong signs of velocity near reversals.
        noise_sigma: Standard error of that figure (c,).
        filter: Bias by the low-pass filter (c,).
        delays: Torques that are late against the positions, and the bias that this brings.
        over_sigma: Total bias over the parameter's sigma (c,).
        named: Parameters whose bias is worth naming, the worst first.
        exposed: Parameters that a delay too small to be detected would bias as much, the worst first.
    """

    __repr__ = short_repr

    columns: tuple[str, ...]
    noise: np.ndarray
    noise_sigma: np.ndarray
    filter: np.ndarray
    delays: Delays
    over_sigma: np.ndarray
    named: tuple[str, ...]
    exposed: tuple[str, ...]


def estimate_bias(
    recordings: Sequence[Recording],
    sources: Sequence[RowSource],
    estimate: Estimate,
    whitening: Whitening | None,
    repeats: int = 4,
    seed: int = 0,
    progress: Progress = silent,
    *,
    used: Observations | None = None,
) -> Bias:
    """Estimate the bias by position errors, by the low-pass filter and by late torques.

    Args:
        recordings: The recordings, in memory.
        sources: Their rows, in the same order.
        estimate: The estimate whose bias is estimated.
        whitening: How its rows were whitened, if they were.
        repeats: Times that noise is added.
        seed: Of that noise.
        progress: Progress callback, counting refits.
        used: Factors of these rows, whitened as they were, where they are known already.
    """
    total = repeats + 1
    refits = _Refits(recordings, sources, estimate, whitening, used)
    noise, error = refits.noise_bias(repeats, seed, lambda done, _: progress(done, total))
    filtered = refits.shift(_filtered_lower)
    progress(total, total)
    # A shift within twice its own standard error is chance.
    delays = estimate_delays(refits.sources, estimate, whitening, refits.whole, refits.before)
    firm = np.where(np.abs(noise) > 2 * error, noise, 0.0) + filtered + delays.bias
    ratio = firm / estimate.sigma
    named, exposed = _above(ratio, estimate.columns), _above(delays.exposure, estimate.columns)
    return Bias(estimate.columns, noise, error, filtered, delays, ratio, named, exposed)


def noise_bias(
    recordings: Sequence[Recording],
    sources: Sequence[RowSource],
    estimate: Estimate,
    whitening: Whitening | None,
    repeats: int = 4,
    seed: int = 0,
    *,
    used: Observations | None = None,
) -> np.ndarray:
    """Return the bias by position errors alone (c,); arguments as those of :func:`estimate_bias`."""
    return _Refits(recordings, sources, estimate, whitening, used).noise_bias(repeats, seed)[0]


def _above(ratio: np.ndarray, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns whose ratio is worth naming, the largest first."""
    worst = sorted((int(k) for k in np.flatnonzero(np.abs(ratio) > WORTH_NAMING)), key=lambda k: -abs(ratio[k]))
    return tuple(columns[k] for k in worst)


class _Refits:
    """Refits of changed recordings, weights and noise model held; of long ones the part in which all joints move most.

    Attributes:
        sources: Rows of the recordings that are refitted.
        whole: The system of all rows.
        before: The system of the rows that are refitted, as they were.
    """

    def __init__(
        self,
        recordings: Sequence[Recording],
        sources: Sequence[RowSource],
        estimate: Estimate,
        whitening: Whitening | None,
        used: Observations | None,
    ) -> None:
        self._recordings, self._estimate, self._whitening = recordings, estimate, whitening
        self.sources = sources
        if used is None:
            used = reduce_rows(sources, whitening, blocks=1)
        self.whole = self.before = system_of_factors(used, estimate.columns, estimate.weights)
        most = int(np.clip(REFITTED * sources[0].resolved.rate, *_SAMPLES))
        if any(recording.samples > most for recording in recordings):
            self._recordings = [busiest_part(recording, most) for recording in recordings]
            self.sources = self._changed(lambda recording, source: recording)
            self.before = self._system(self.sources)

    def shift(self, change: Callable[[Recording, RowSource], Recording]) -> np.ndarray:
        """Return by how much the estimate moves when the recordings are changed."""
        return carried_over(self._estimate, self.whole, self.before, self._system(self._changed(change)))

    def noise_bias(self, repeats: int, seed: int, progress: Progress = silent) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean shift by added position noise (c,), and its standard error (c,)."""
        rng, shifts = np.random.default_rng(seed), []
        for done in range(repeats):
            shifts.append(self.shift(lambda r, s: _noisier(r, s, rng)))
            progress(done + 1, repeats)
        noise = np.mean(shifts, axis=0)
        unknown = np.full(noise.shape, np.inf)
        return noise, np.std(shifts, axis=0, ddof=1) / np.sqrt(repeats) if repeats > 1 else unknown

    def _changed(self, change: Callable[[Recording, RowSource], Recording]) -> list[RowSource]:
        return [
            row_source(change(recording, source), source.equations, source.resolved, source.label).adjusted(
                source.adjustment
            )
            for recording, source in zip(self._recordings, self.sources, strict=True)
        ]

    def _system(self, sources: Sequence[RowSource]) -> System:
        return system_of_rows(sources, self._estimate.columns, self._estimate.weights, self._whitening)


def _noisier(recording: Recording, source: RowSource, rng: np.random.Generator) -> Recording:
    noise = source.resolved.signal_noise
    size = len(recording.q)
    q = recording.q + noise[:size, None] * rng.standard_normal(recording.q.shape)
    qd = recording.qd
    if qd is not None and len(noise) > size:
        qd = qd + noise[size:, None] * rng.standard_normal(qd.shape)
    return replace(recording, q=q, qd=qd, sources=())


def _filtered_lower(recording: Recording, source: RowSource) -> Recording:
    resolved = source.resolved
    if resolved.cutoff is None:
        return replace(recording, sources=())
    used = resolved.low_pass
    lower = low_pass(used.rate, LOWER * resolved.cutoff, used.order, used.mode, used.design)
    qd = recording.qd
    if qd is not None and resolved.chosen.velocity == "recorded":
        qd = _filtered(lower, recording.time, qd, resolved)
    return replace(recording, q=_filtered(lower, recording.time, recording.q, resolved), qd=qd, sources=())


def _filtered(filter_: LowPass, time: np.ndarray, values: np.ndarray, resolved: ResolvedPreparation) -> np.ndarray:
    """Return signals (rows, N) filtered as rows are: at even times, each part between gaps by itself.

    What the filter takes is found at even times and brought back to the stamps; parts too short for it stay.
    """
    stream = EvenStream(resolved)
    pieces = [*stream.push(time, values), *stream.flush()]
    starts = [number for number, piece in enumerate(pieces) if piece.starts]
    found = np.array(values, dtype=float)
    for first, last in pairwise([*starts, len(pieces)]):
        even = np.concatenate([piece.time for piece in pieces[first:last]])
        rows = np.concatenate([piece.values for piece in pieces[first:last]], axis=1)
        if len(even) <= max(sum(filter_.ends()), filter_.pad):
            continue
        change, near = apply_low_pass(filter_, rows) - rows, 0.5 / resolved.rate
        inside = (time > even[0] - near) & (time < even[-1] + near)
        found[:, inside] += np.stack([np.interp(time[inside], even, row) for row in change])
    return found
