"""Observations: recordings of any length as small squares, with a fingerprint of what they are squares of."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..errors import ObservationError
from ..progress import Progress, silent
from ..text import short_repr
from .factor import Factor
from .fingerprint import Fingerprint, check_same, fingerprint_of
from .reduction import Whitening, reduced_source
from .rows import RowSource


@dataclass(frozen=True)
class RecordingInfo:
    """Which recording factors came from.

    Attributes:
        label: Its label.
        sha256: SHA-256 of its files, or of its arrays.
        payload: Name of the payload it carried, None if none.
        samples: Samples that became rows, before decimation.
    """

    label: str
    sha256: tuple[str, ...]
    payload: str | None
    samples: int


@dataclass(frozen=True, eq=False)
class Observations:
    """All that least squares needs of some recordings.

    Attributes:
        fingerprint: What must be equal for factors to be merged.
        factors: The factors, by recording, equation and block of time.
        recordings: The recordings they came from.
    """

    __repr__ = short_repr

    fingerprint: Fingerprint
    factors: tuple[Factor, ...]
    recordings: tuple[RecordingInfo, ...]


def reduce_rows(
    sources: Sequence[RowSource],
    whiten: Whitening | None = None,
    blocks: int = 20,
    threads: int = 1,
    progress: Progress = silent,
) -> Observations:
    """Reduce the rows of recordings to factors, one for each recording, equation and block of time.

    Args:
        sources: The rows of each recording.
        whiten: Gives a transform of the rows of a source's equation, restarted where a run of rows begins.
        blocks: Blocks of time of each recording; between this many and twice as many come out.
        threads: Threads that share the recordings, or the equations of a single one; the result is the same.
        progress: Told how many recordings are done, in parts.

    Raises:
        ObservationError: If there is nothing to reduce, a label or a recording comes twice, or rows do not belong
            together.
    """
    _check_sources(sources, blocks, threads)
    fingerprints = [fingerprint_of(source.equations, source.settled) for source in sources]
    for other in fingerprints[1:]:
        check_same(fingerprints[0], other)
    factors = _all_factors(sources, whiten, blocks, threads, progress)
    recordings = tuple(RecordingInfo(s.label, s.sha256, s.payload, s.samples) for s in sources)
    _check_distinct(recordings)
    return Observations(fingerprints[0], factors, recordings)


def _check_sources(sources: Sequence[RowSource], blocks: int, threads: int) -> None:
    if not sources:
        raise ObservationError("no recording is left to reduce; give at least one")
    for word, value in (("blocks", blocks), ("threads", threads)):
        if int(value) != value or value < 1:
            raise ObservationError(f"{word}: got {value}, allowed are whole numbers from 1 on")


def _all_factors(
    sources: Sequence[RowSource], whiten: Whitening | None, blocks: int, threads: int, progress: Progress
) -> tuple[Factor, ...]:
    lock = threading.Lock()

    def tell() -> None:
        with lock:
            progress(sum(source.read for source in sources), len(sources))

    if threads == 1:
        parts = [reduced_source(source, whiten, blocks, None, tell) for source in sources]
    else:
        with ThreadPoolExecutor(threads, "steelyard-reduce") as pool:
            if len(sources) == 1:
                parts = [reduced_source(sources[0], whiten, blocks, pool, tell)]
            else:
                parts = list(pool.map(lambda source: reduced_source(source, whiten, blocks, None, tell), sources))
    return tuple(factor for part in parts for factor in part)


def merge_observations(*observations: Observations) -> Observations:
    """Return observations together, factor by factor.

    Raises:
        ObservationError: If geometry, unknowns, filter or units differ, or a recording or a label comes twice.
    """
    if not observations:
        raise ObservationError("no observations are given; at least one is needed")
    for other in observations[1:]:
        check_same(observations[0].fingerprint, other.fingerprint)
    recordings = tuple(info for part in observations for info in part.recordings)
    _check_distinct(recordings)
    factors = tuple(factor for part in observations for factor in part.factors)
    return Observations(observations[0].fingerprint, factors, recordings)


def _check_distinct(recordings: Sequence[RecordingInfo]) -> None:
    labels: set[str] = set()
    label_of: dict[tuple[str, ...], str] = {}
    for info in recordings:
        content = tuple(sorted(info.sha256))
        if any(content) and content in label_of:
            raise ObservationError(
                f"recordings '{label_of[content]}' and '{info.label}' are the same data (SHA-256 {content[0][:9]}...); "
                "each counts once, leave one away"
            )
        if info.label in labels:
            raise ObservationError(f"two recordings have the label '{info.label}'; give each its own")
        labels.add(info.label)
        label_of[content] = info.label
