"""Reading of a recording in blocks, from columns to checked samples, in memory that does not grow with the log."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import RecordingError
from ..files import file_hash, size_of
from ..progress import Progress, silent
from ..tables import Block, ReadLog
from ..text import counted
from .assembly import Assembly, side_by_side
from .cache import CachedColumns
from .checks import Checker, subject_of
from .plan import ReadingPlan
from .record import Finding, Recording, Samples, Source, TorqueChannel, reblocked
from .units import normal_unit

SHORTER = 0.01
"""Files side by side may differ in length by this part; more means that their rows do not belong together."""


@dataclass(frozen=True)
class StreamResult:
    """What is known when all of a recording has been read: its findings and its sources with their hashes."""

    findings: tuple[Finding, ...]
    sources: tuple[Source, ...]


class RecordingStream:
    """The blocks of a recording, read on demand. Make one with :func:`stream_recording`.

    Attributes:
        result: Findings and sources; None until the last block has been read.
        bytes_total: Size of the files.
        plan: How it is read.
    """

    def __init__(self, plan: ReadingPlan, block_rows: int | None) -> None:
        self.result: StreamResult | None = None
        self.bytes_total = sum(size_of(Path(table.path)) for table in plan.tables if table.on_disk)
        self.plan = plan
        self._block_rows = block_rows
        self._logs = [ReadLog() for _ in plan.tables]

    @property
    def bytes_done(self) -> int:
        """How much of the text files has been read."""
        return sum(log.bytes_done for log in self._logs)

    def __iter__(self) -> Iterator[Recording]:
        """Yield the blocks; each is a recording of its own without findings."""
        for samples in self.samples():
            yield recording_from_samples(self.plan, samples)

    def whole(self, progress: Progress = silent) -> Recording:
        """Read all of it and return it as one recording, with findings and hashes; a long one lies in a temporary file.

        Args:
            progress: Progress callback, counting bytes.
        """
        sizes = [1, *(len(channel.shift) for channel in self.plan.channels)]
        cache = CachedColumns(sum(sizes))
        for samples in self.samples():
            cache.put(np.concatenate([samples.time[None], *samples.channels]))
            progress(self.bytes_done, self.bytes_total)
        time, *channels = np.split(cache.whole(), np.cumsum(sizes)[:-1])
        return recording_from_samples(self.plan, Samples(time[0], tuple(channels)), self.result)

    def samples(self) -> Iterator[Samples]:
        """Yield the blocks as bare samples."""
        checked = self._checked_samples()
        return checked if self._block_rows is None else reblocked(checked, self._block_rows)

    def _checked_samples(self) -> Iterator[Samples]:
        plan = self.plan
        self._logs = [ReadLog() for _ in plan.tables]
        counters = [_Counted(t.read(w, log)) for t, w, log in zip(plan.tables, plan.wanted, self._logs, strict=True)]
        assembly = Assembly(plan)
        checker = _checker(plan, assembly.restarts)
        with ThreadPoolExecutor(1, "hash") as pool:
            hashes = [pool.submit(file_hash, Path(table.path)) if table.on_disk else None for table in plan.tables]
            for blocks in _one_ahead(side_by_side([iter(counter) for counter in counters])):
                samples = assembly.take(blocks)
                if samples is not None:
                    checker.take(samples)
                    yield samples
                if assembly.finished:
                    break
            lengths = [] if assembly.finished or len(counters) == 1 else [counter.total() for counter in counters]
            findings = self._line_findings() + _length_findings(plan, lengths)
            if not assembly.rows:
                raise RecordingError(self._no_rows())
            findings += assembly.findings() + checker.findings()
            digests = [found.result() if found else "" for found in hashes]
            sources = tuple(Source(t.path, digest) for t, digest in zip(plan.tables, digests, strict=True))
            self.result = StreamResult(tuple(findings), sources)

    def _no_rows(self) -> str:
        path, log = self.plan.tables[0].path, self._logs[0]
        if log.garbage + log.truncated:
            return f"{path}: none of its {log.garbage + log.truncated} lines is a row of numbers; check the separator"
        return f"{path}: there is a header but no row of numbers below it"

    def _line_findings(self) -> list[Finding]:
        found = []
        for table, log in zip(self.plan.tables, self._logs, strict=True):
            for kind, count, lines, fault in (
                ("garbage_lines", log.garbage, log.garbage_lines, "no numbers"),
                ("truncated_lines", log.truncated, log.truncated_lines, "too few values"),
            ):
                if count:
                    text = f"{table.path}: {fault} in {counted(count, 'line')}, left out"
                    where = tuple(float(line) for line in lines)
                    found.append(Finding(kind, "warning", text, count=count, where=where, where_unit="line"))
            found += [Finding("text", "info", f"{table.path}: {remark}") for remark in log.remarks]
        return found


def _one_ahead(stream: Iterator[list[Block]]) -> Iterator[list[Block]]:
    """Yield the same blocks; the next one is parsed while the current one is checked."""
    with ThreadPoolExecutor(1, "parse") as pool:
        pending = pool.submit(next, stream, None)
        while (blocks := pending.result()) is not None:
            pending = pool.submit(next, stream, None)
            yield blocks


class _Counted:
    """A stream of blocks that counts its rows."""

    def __init__(self, stream: Iterator[Block]) -> None:
        self._stream = stream
        self._rows = 0

    def __iter__(self) -> Iterator[Block]:
        for block in self._stream:
            self._rows += block.rows
            yield block

    def total(self) -> int:
        """Return the rows of all of it, reading on to its end."""
        return self._rows + sum(block.rows for block in self._stream)


def _checker(plan: ReadingPlan, restarts: list[float]) -> Checker:
    channels = [(c.setup.role, c.setup.label, c.setup.kind) for c in plan.channels]
    unit = plan.channels[0].setup.unit
    declared = normal_unit(unit) if isinstance(unit, str) else "rad" if unit is None else "mixed"
    return Checker(subject_of(plan.robot, channels, plan.channels[0].turn, declared, restarts))


def _length_findings(plan: ReadingPlan, lengths: list[int]) -> list[Finding]:
    """Return a finding if files side by side differ a little in length; refuse those that differ much."""
    if not lengths or min(lengths) == max(lengths):
        return []
    names = ", ".join(f"{Path(t.path).name} {n}" for t, n in zip(plan.tables, lengths, strict=True))
    if max(lengths) - min(lengths) > max(1, SHORTER * max(lengths)):
        raise RecordingError(
            f"files side by side have different numbers of rows ({names}); they do not belong together"
        )
    text = f"files side by side have different numbers of rows ({names}); the shortest counts"
    remedy = "check that they start alike"
    return [Finding("rows_differ", "bad", text, count=max(lengths) - min(lengths), remedy=remedy)]


def recording_from_samples(plan: ReadingPlan, samples: Samples, result: StreamResult | None = None) -> Recording:
    """Return samples of a plan as a recording."""
    arrays: dict[str, np.ndarray] = {}
    torques = []
    for channel, values in zip(plan.channels, samples.channels, strict=True):
        if channel.setup.kind is not None:
            setup, errors = channel.setup, channel.gain_covariance
            source = "" if channel.gain is None and errors is None else "the log's set-up"
            torques.append(TorqueChannel(channel.setup.kind, values, setup.name, channel.gain, errors, source))
        else:
            arrays[channel.setup.role] = values
    arrays.setdefault("q", np.zeros((0, samples.time.size)))
    described = [note for table in plan.tables for note in table.described.get("notes", ())]
    payloads = [plan.setup.payload, *(table.described.get("payload") for table in plan.tables)]
    return Recording(
        joints=plan.joints,
        time=samples.time,
        torques=tuple(torques),
        payload=next((payload for payload in payloads if payload), None),
        sources=result.sources if result else tuple(Source(table.path) for table in plan.tables),
        notes=tuple(dict.fromkeys([*described, *plan.notes])),
        findings=result.findings if result else (),
        **arrays,
    )
