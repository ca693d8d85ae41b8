"""Periodic recordings: period and lines found or given, samples averaged over periods, noise from their spread.

Periods are averaged block by block, so that memory grows with the period, not with the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import EstimateError, SignalError
from ...observe import RowSource, raw_samples
from ...observe.resolve import LOOKED_AT
from ...recording import Recording
from ...recording.cache import mapping_of
from ...signals import OUT_OF_STEP, check_periodicity, find_period, significant_lines
from ...signals.fourier import fourier_basis
from .problem import LikelihoodSettings

# Of a stream, at least so many mean periods of neighbours are looked at to see whether it repeats.
_LEAST_GROUPS = 8


@dataclass(eq=False)
class LongestSegment:
    """The longest segment of a recording without a gap.

    Attributes:
        first: Number of its first sample.
        count: Number of its samples.
        parts: Positions (n, k) at its beginning, block by block: all of it, or as many as were wanted.
        samples: Samples of the whole recording.
    """

    first: int
    count: int = 0
    parts: list[np.ndarray] = field(default_factory=list)
    samples: int = 0

    @property
    def head(self) -> np.ndarray:
        """Positions (n, k) at its beginning."""
        return np.concatenate(self.parts, axis=1)


def longest_segment(source: RowSource, most: int | None) -> LongestSegment:
    """Return the longest segment of a recording: one pass.

    Args:
        source: The recording.
        most: Positions of its beginning that are wanted at most; None: all.
    """
    best, now, taken = LongestSegment(0), LongestSegment(0), 0
    for block in raw_samples(source):
        if block.starts:
            now = LongestSegment(taken)
        if most is None or now.count < most:
            now.parts.append(block.q if most is None else block.q[:, : most - now.count].copy())
        now.count += block.q.shape[1]
        taken += len(block.time)
        if now.count > best.count:
            best = now
    best.samples = taken
    return best


@dataclass(frozen=True, eq=False)
class AveragedPeriods:
    """Whole periods averaged: n joints, E equations, P samples a period.

    Attributes:
        mean: Mean period of positions and torques (n + E, P).
        pooled_variance: Variance of a single sample from the spread between periods (n + E,).
        repeated: Positions (n, k), period after period: all there are, or mean periods of so many neighbours that they
            are few enough.
    """

    mean: np.ndarray
    pooled_variance: np.ndarray
    repeated: np.ndarray


def averaged_periods(
    source: RowSource, segment: LongestSegment, samples: int, periods: int, most: int | None
) -> AveragedPeriods:
    """Average the periods of a recording: one pass, in memory of some periods.

    Args:
        source: The recording.
        segment: Which of its samples are used.
        samples: Samples of a period.
        periods: Whole periods.
        most: Samples of ``repeated``, about, if that is more than a few periods; None: all.
    """
    joints, place = len(source.equations.joints), -segment.first
    sums = _PeriodSums(joints + len(source.equations.kinds_joints), samples, periods)
    groups = _Groups(None if most is None else max(_LEAST_GROUPS, most // (2 * samples)))
    for block in raw_samples(source):
        signals = np.concatenate([block.q, block.y])[:, max(0, -place) : max(0, segment.count - place)]
        place += len(block.time)
        for period in sums.push(signals):
            groups.push(period[:joints])
    tail = [part[:joints] for part in sums.left_over] if groups.each == 1 else []
    variance = sums.squares / (periods - 1)
    return AveragedPeriods(sums.mean, variance.mean(axis=1), np.concatenate([*groups.means, *tail], axis=1))


class _PeriodSums:
    """Mean and spread of periods at every point of the period, updated by one period after the other (Welford)."""

    def __init__(self, rows: int, samples: int, periods: int) -> None:
        self.mean, self.squares = np.zeros((rows, samples)), np.zeros((rows, samples))
        self.left_over: list[np.ndarray] = []
        self._open, self._filled = np.empty((rows, samples)), 0
        self._count, self._periods = 0, periods

    def push(self, signals: np.ndarray) -> Iterator[np.ndarray]:
        """Take signals (rows, m) and yield the periods (rows, P) that are complete."""
        first, count, size = 0, signals.shape[1], self.mean.shape[1]
        while first < count and self._count < self._periods:
            last = min(count, first + size - self._filled)
            self._open[:, self._filled : self._filled + last - first] = signals[:, first:last]
            self._filled, first = self._filled + last - first, last
            if self._filled == size:
                self._close()
                yield self._open.copy()
        if first < count:
            self.left_over.append(signals[:, first:])

    def _close(self) -> None:
        self._filled, self._count = 0, self._count + 1
        off = self._open - self.mean
        self.mean += off / self._count
        self.squares += off * (self._open - self.mean)


class _Groups:
    """Mean periods of neighbours: of one each, then two, four ... so that there are fewer than twice those wanted."""

    def __init__(self, wanted: int | None) -> None:
        self.means: list[np.ndarray] = []
        self.each = 1
        self._wanted, self._sum, self._count = wanted, np.zeros(1), 0

    def push(self, period: np.ndarray) -> None:
        """Take the next period (n, P)."""
        self._sum, self._count = period + (self._sum if self._count else 0.0), self._count + 1
        if self._count == self.each:
            self.means.append(self._sum / self.each)
            self._count = 0
        if self._wanted is not None and len(self.means) == 2 * self._wanted:
            pairs = zip(self.means[::2], self.means[1::2], strict=True)
            self.means = [(early + late) / 2 for early, late in pairs]
            self.each *= 2


MOST_LINES = 40
"""Lines that are fitted, at most: the strongest."""


def repeated_lines(q: np.ndarray, rate: float, period: float, label: str) -> tuple[int, ...]:
    """Return the lines of positions (n, N) that stand out of the spread between periods, the strongest of them.

    Args:
        q: Positions over two periods or more.
        rate: Sampling rate [Hz].
        period: Period [s].
        label: Name of the recording, for messages.

    Raises:
        EstimateError: If no line stands out.
    """
    lines = significant_lines(q, rate, period)
    if not lines:
        raise EstimateError(
            f"recording '{label}': no harmonic of {period:g} s stands out of the noise; give period and harmonics, or "
            "use gls"
        )
    basis = fourier_basis(np.arange(q.shape[1]) / rate, 1 / period, lines)[:, 1:]
    power = np.sum((basis.T @ (q - q.mean(axis=1, keepdims=True)).T) ** 2, axis=1).reshape(2, -1).sum(axis=0)
    return tuple(sorted(np.array(lines)[np.argsort(power)[-MOST_LINES:]].tolist()))


def explaining_lines(q: np.ndarray, time: np.ndarray, period: float, label: str) -> tuple[int, ...]:
    """Return lines 1 to K with the least ``sum_j N log(rss_j) + n (2 K + 1) log N`` (Bayesian information).

    Args:
        q: Positions (n, N).
        time: Times (N,) [s].
        period: Period [s].
        label: Name of the recording, for messages.

    Raises:
        EstimateError: If there is less than one period.
    """
    count = q.shape[1]
    interval = float(np.diff(time).min(initial=np.inf))
    if count < 8 or time[-1] + 1.5 * interval < period:
        raise EstimateError(
            f"recording '{label}' is shorter than its period of {period:g} s: too short to find its harmonics; give "
            "them"
        )
    most = max(1, min(MOST_LINES, int(period / interval / 4), (count - 2) // 4))
    order = [0, *(k for line in range(most) for k in (1 + line, 1 + most + line))]
    basis = fourier_basis(time, 1 / period, range(1, most + 1))[:, order]
    explained = (np.linalg.qr(basis)[0].T @ q.T) ** 2
    total = np.sum(q**2, axis=1)
    rest = np.maximum(total - np.cumsum(explained, axis=0)[2::2], 1e-20 * total + 1e-300)
    lines = np.arange(1, most + 1)
    criterion = count * np.log(rest).sum(axis=1) + len(q) * (2 * lines + 1) * np.log(count)
    return tuple(range(1, int(np.argmin(criterion)) + 2))


LARGEST = 2_000_000_000
"""Bytes of sines and cosines at all instants, where samples are used as they are; all in all thrice that is needed."""

# So many lines are reckoned with before they are known.
_LIKELY_LINES = tuple(range(1, 11))

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

    Whole periods are averaged: for white noise the mean is a sufficient statistic (P4.1). Where the recording has
    fewer than two, or a period is no whole number of samples, the samples are used as they are. Of a recording that is
    not in memory the period is found in the first 200,000 samples, and lines in mean periods of neighbours.

    Args:
        source: The recording.
        settings: ``period`` and ``harmonics`` are used if they are given.

    Raises:
        EstimateError: If the motion is not periodic, or the period cannot be found.
    """
    in_memory = isinstance(source.recording, Recording) and mapping_of(source.recording.q) is None
    most = None if in_memory else LOOKED_AT
    segment, rate = longest_segment(source, most), source.resolved.rate
    known = _Periods(segment, settings.period or _found_period(segment.head, rate, source.label), rate, most)
    return (_averaged if known.is_whole else _as_they_are)(source, settings, known)


@dataclass(frozen=True, eq=False)
class _Periods:
    """The segment that is used, its period [s] and rate [Hz], and how many samples are looked at, at most."""

    segment: LongestSegment
    period: float
    rate: float
    most: int | None

    @property
    def periods(self) -> int:
        """Number of whole periods."""
        length = self.period * self.rate
        return int((self.segment.count + 1e-6 * length) / length)

    @property
    def is_whole(self) -> bool:
        """Whether periods can be averaged: two at least, of a whole number of samples."""
        length, samples = self.period * self.rate, round(self.period * self.rate)
        return self.periods >= 2 and samples >= 4 and abs(samples - length) * self.periods <= OUT_OF_STEP


def _averaged(source: RowSource, settings: LikelihoodSettings, known: _Periods) -> PeriodicSamples:
    rate, period, periods = source.resolved.rate, known.period, known.periods
    mean = averaged_periods(source, known.segment, round(period * rate), periods, known.most)
    lines = _lines(mean.repeated, settings, known, source.label)
    spread = np.sqrt(mean.pooled_variance / periods)
    time = np.arange(mean.mean.shape[1]) / rate
    return _described(source, settings, known, lines, time, mean.mean, periods, spread)


def _as_they_are(source: RowSource, settings: LikelihoodSettings, known: _Periods) -> PeriodicSamples:
    segment, joints, label = known.segment, len(source.equations.joints), source.label
    _check_size(settings.lines or _LIKELY_LINES, known, label)
    blocks = [(block.time, np.concatenate([block.q, block.y])) for block in raw_samples(source)]
    time, signals = (np.concatenate(parts, axis=-1) for parts in zip(*blocks, strict=True))
    time -= time[0]
    q = signals[:joints, segment.first : segment.first + segment.count]
    if not settings.period and segment.head.shape[1] < segment.count:
        known = replace(known, period=_found_period(q, known.rate, label))
    if settings.lines or known.periods >= 2:
        lines = _lines(q, settings, known, label)
    else:
        lines = explaining_lines(signals[:joints], time, known.period, label)
        _check_rate(lines, known.period, known.rate, label)
    _check_size(lines, known, label)
    return _described(source, settings, known, lines, time, signals, 1, None)


def _lines(q: np.ndarray, settings: LikelihoodSettings, known: _Periods, label: str) -> tuple[int, ...]:
    """Return the lines of positions (n, N) that repeat, or that are given; refuse those that do not repeat."""
    tested = check_periodicity(q, known.rate, known.period) if known.periods >= 3 else None
    if tested is not None and not tested.is_periodic:
        raise EstimateError(
            f"recording '{label}' does not repeat after {known.period:g} s ({tested.reason}, rows counted from 0); "
            "maximum likelihood needs a periodic motion: give its period, or use gls or iv"
        )
    lines = settings.lines or repeated_lines(q, known.rate, known.period, label)
    _check_rate(lines, known.period, known.rate, label)
    return lines


def _described(
    source: RowSource,
    settings: LikelihoodSettings,
    known: _Periods,
    lines: tuple[int, ...],
    time: np.ndarray,
    signals: np.ndarray,
    averaged: int,
    spread: np.ndarray | None,
) -> PeriodicSamples:
    """Return the samples with a note of what was done."""
    joints, used = len(source.equations.joints), f"{averaged} periods averaged"
    if averaged == 1:
        used = f"{len(time) / source.resolved.rate:g} s of samples as they are"
    which = f"1 to {len(lines)}"
    if lines != tuple(range(1, len(lines) + 1)):
        which = f"{', '.join(map(str, lines[:12]))}{' ...' if len(lines) > 12 else ''}"
    how, from_where = ("given" if given else "found" for given in (settings.period, settings.lines))
    note = f"recording '{source.label}': period {known.period:g} s ({how}), harmonics {which} ({from_where}); {used}"
    q, y = signals[:joints], signals[joints:]
    return PeriodicSamples(source.label, source.loaded, time, q, y, known.period, lines, averaged, spread, note)


def _check_size(lines: tuple[int, ...], known: _Periods, label: str) -> None:
    samples = known.segment.samples
    needed = 3 * (2 * len(lines) + 1) * 8 * samples
    if needed > LARGEST:
        why = "a period is no whole number of samples" if known.periods >= 2 else "there are fewer than two periods"
        raise EstimateError(
            f"recording '{label}': {why}, and {samples} samples as they are need {needed / 1e9:.2g} GB, allowed are "
            f"{LARGEST / 1e9:g}; prepare at a rate of which {known.period:g} s is a whole multiple, cut the recording, "
            "or give fewer harmonics"
        )


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


def _check_rate(lines: tuple[int, ...], period: float, rate: float, label: str) -> None:
    if lines[-1] / period >= rate / 2:
        raise EstimateError(
            f"recording '{label}': harmonic {lines[-1]} of {period:g} s is not below half of {rate:g} Hz; take fewer"
        )
