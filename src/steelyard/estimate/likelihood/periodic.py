"""A recording as periods of one motion: period and lines found or given, samples averaged, noise from their spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import EstimateError, SignalError
from ...observe import RowSource
from ...observe.raw_samples import raw_samples
from ...signals import average_periods, check_periodicity, find_period, fold
from .lines import explaining_lines, repeated_lines
from .settings import LikelihoodSettings

CERTAIN = 4.0
"""A period found is taken as a whole number of samples if it is within this many of its standard deviations."""


@dataclass(frozen=True, eq=False)
class PeriodicSamples:
    """Even samples of a repeated motion: n joints, E equations.

    Attributes:
        label: Name of the recording.
        loaded: Whether it carries the model's payload.
        time: Times (N,) [s] since the first sample.
        q: Positions (n, N), a mean period if periods were averaged.
        y: Torques (E, N), likewise.
        period: Period [s].
        lines: The motion's lines, as multiples of one over the period.
        averaged: Periods averaged, 1 if the samples are as they were.
        spread: Standard deviation of a sample of q and y (n + E,) as it is here, from the spread between periods;
            None where there was nothing to average.
        note: What was done, in a sentence.
    """

    label: str
    loaded: bool
    time: np.ndarray
    q: np.ndarray
    y: np.ndarray
    period: float
    lines: tuple[int, ...]
    averaged: int
    spread: np.ndarray | None
    note: str


def periodic_samples(source: RowSource, settings: LikelihoodSettings) -> PeriodicSamples:
    """Return the samples of a recording of a periodic motion.

    Whole periods are averaged: for white noise the mean tells all there is to know (P4.1). Where the recording has
    fewer than two, or a period is no whole number of samples, the samples are used as they are.

    Args:
        source: The recording.
        settings: ``period`` and ``harmonics`` are used if they are given.

    Raises:
        EstimateError: If the motion is not periodic, or the period cannot be found.
    """
    time, signals, longest = _samples(source)
    joints, rate = len(source.equations.joints), source.settled.rate
    q = signals[:joints, longest]
    period = settings.period or _found_period(q, rate, source.label)
    periods = int((q.shape[1] + 1e-6 * period * rate) / (period * rate))
    if periods >= 3:
        _check_repeats(q, rate, period, source.label)
    if settings.lines or periods >= 2:
        lines = settings.lines or repeated_lines(q, rate, period, source.label)
    else:
        lines = explaining_lines(signals[:joints], time, period, source.label)
    _check_rate(lines, period, rate, source.label)
    spread, averaged = None, 1
    if periods >= 2 and fold(q[:1], rate, period).method == "exact":
        mean = average_periods(signals[:, longest], rate, period)
        spread, averaged, signals = np.sqrt(mean.pooled_variance / periods), periods, mean.mean
        time = np.arange(signals.shape[1]) / rate
    note = f"recording '{source.label}': {_told(settings, period, lines)}; {_told_periods(averaged, len(time), rate)}"
    return PeriodicSamples(
        source.label, source.loaded, time, signals[:joints], signals[joints:], period, lines, averaged, spread, note
    )


def _samples(source: RowSource) -> tuple[np.ndarray, np.ndarray, slice]:
    """Return times (N,) since the first sample, positions and torques (n + E, N), and the longest stretch of them."""
    time, signals, starts, count = [], [], [], 0
    for block in raw_samples(source):
        if block.starts:
            starts.append(count)
        time.append(block.time)
        signals.append(np.concatenate([block.q, block.y]))
        count += len(block.time)
    bounds = np.array([*starts, count])
    longest = int(np.argmax(np.diff(bounds)))
    stamps = np.concatenate(time)
    return stamps - stamps[0], np.concatenate(signals, axis=1), slice(int(bounds[longest]), int(bounds[longest + 1]))


def _found_period(q: np.ndarray, rate: float, label: str) -> float:
    try:
        found = find_period(q, rate)
    except SignalError as problem:
        raise EstimateError(
            f"recording '{label}' is not periodic ({problem}); give the period and the harmonics of its motion if it "
            "is, else use gls or iv"
        ) from None
    samples = round(found.period * rate)
    near = abs(samples - found.period * rate) <= max(CERTAIN * found.std * rate, 1e-6 * samples)
    return samples / rate if near else found.period


def _check_repeats(q: np.ndarray, rate: float, period: float, label: str) -> None:
    tested = check_periodicity(q, rate, period)
    if not tested.is_periodic:
        raise EstimateError(
            f"recording '{label}' does not repeat after {period:g} s ({tested.reason}, rows counted from 0); maximum "
            "likelihood needs a periodic motion: give its period, or use gls or iv"
        )


def _check_rate(lines: tuple[int, ...], period: float, rate: float, label: str) -> None:
    if lines[-1] / period >= rate / 2:
        raise EstimateError(
            f"recording '{label}': harmonic {lines[-1]} of {period:g} s is not below half of {rate:g} Hz; take fewer"
        )


def _told(settings: LikelihoodSettings, period: float, lines: tuple[int, ...]) -> str:
    how = "given" if settings.period else "found"
    is_whole = lines == tuple(range(1, len(lines) + 1))
    which = (
        f"1 to {len(lines)}" if is_whole else f"{', '.join(map(str, lines[:12]))}{' ...' if len(lines) > 12 else ''}"
    )
    return f"period {period:g} s ({how}), harmonics {which} ({'given' if settings.lines else 'found'})"


def _told_periods(averaged: int, samples: int, rate: float) -> str:
    return f"{averaged} periods averaged" if averaged > 1 else f"{samples / rate:g} s of samples as they are"
