"""Conversion of raw columns to samples: unusable rows are dropped and counted, units become SI, sides become joints.

Encoders that wrap round are made continuous, and logs appended to each other are put one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import RecordingError
from ..tables import Block
from ..tables.table import FEW
from ..text import counted
from .plan import PlannedChannel, ReadingPlan
from .record import Finding, Samples

TURN = 2 * np.pi


class Unwrapper:
    """Undoes jumps of more than half a turn, block after block.

    Attributes:
        turns: How often each row jumped so far (rows,).
    """

    def __init__(self) -> None:
        self.turns = np.array([], int)
        self._added = np.array([])
        self._last: np.ndarray | None = None

    def take(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the values (n, N) [rad] with whole turns added where ``rows`` (n,) says the row is an angle."""
        if not values.shape[1]:
            return values
        if self._last is None:
            self.turns, self._added = np.zeros(len(values), int), np.zeros(len(values))
            self._last = values[:, 0].copy()
        steps = np.diff(values, axis=1, prepend=self._last[:, None])
        turned = -np.round(steps / TURN) * rows[:, None]
        added = self._added[:, None] + np.cumsum(turned, axis=1)
        self.turns += np.count_nonzero(turned, axis=1)
        self._added, self._last = added[:, -1].copy(), values[:, -1].copy()
        return values + added * TURN


RESTART = 0.5
"""Stamps that go back by more than this, and by more than RESTART_STEPS, start again: appended logs [s]."""
RESTART_STEPS = 20
BREAK = 1.0
"""Pause put between the parts of such a log, or BREAK_STEPS if that is longer: no filter bridges it [s]."""
BREAK_STEPS = 100
LARGEST = 1e30
"""Beyond this a number is no measurement; it is counted with the infinite ones."""


def side_by_side(streams: Sequence[Iterator[Block]]) -> Iterator[list[Block]]:
    """Yield blocks of files side by side, cut to equal numbers of rows; ends with the shortest file."""
    pending: list[Block | None] = [None] * len(streams)
    while True:
        for k, stream in enumerate(streams):
            pending[k] = pending[k] or next(stream, None)
        if any(block is None for block in pending):
            return
        blocks = [block for block in pending if block is not None]
        rows = min(block.rows for block in blocks)
        yield [block.part(0, rows) for block in blocks]
        pending = [block.part(rows, block.rows) if block.rows > rows else None for block in blocks]


class Assembly:
    """Turns blocks of raw columns into samples, one after the other, and counts what was left out.

    Attributes:
        rows: Data rows read so far.
        used: Samples passed on so far.
        finished: True when no later row can be wanted.
        restarts: Stamps, in the clock of the samples, at which the stamps of the log started again.
    """

    def __init__(self, plan: ReadingPlan) -> None:
        self.rows = 0
        self.used = 0
        self.finished = False
        self.restarts: list[float] = []
        self._plan = plan
        self._first_row, self._last_row = plan.setup.rows or (1, 0)
        self._unwrappers = {k: Unwrapper() for k, c in enumerate(plan.channels) if c.setup.unwrap}
        self._unusable: dict[tuple[str, int, str], list[int]] = {}
        self._new_unusable: dict[tuple[str, int, str], int] = {}
        self._stamp_before: dict[tuple[str, int, str], float] = {}
        self._first_stamp: float | None = None
        self._latest = -np.inf
        self._last_stamp: float | None = None
        self._typical_step = 0.0
        self._shift = 0.0
        self._farthest_back = np.inf
        self._backwards: Counter[str] = Counter()
        self._backwards_at: dict[str, list[float]] = {"duplicate_stamp": [], "backward_stamp": []}

    def take(self, blocks: Sequence[Block]) -> Samples | None:
        """Return the samples of the next rows of all files, None if none of them is to be used."""
        start, self.rows = self.rows, self.rows + blocks[0].rows
        first = max(0, self._first_row - 1 - start)
        last = min(blocks[0].rows, self._last_row - start) if self._last_row else blocks[0].rows
        self.finished = bool(self._last_row) and self.rows >= self._last_row
        if first >= last:
            return None
        with np.errstate(all="ignore"):
            samples = self._samples([block.part(first, last) for block in blocks], start + first)
        self.used += samples.count
        return samples if samples.count else None

    def _samples(self, blocks: Sequence[Block], start: int) -> Samples:
        time = self._time(blocks, start)
        usable = self._usable_rows(blocks, time, start)
        columns = [block.columns for block in blocks]
        if not usable.all():
            columns = [tuple(column[usable] for column in part) for part in columns]
            time = time[usable]
        time = self._continued(time)
        self._find_stamps_before(usable, time)
        keep = self._later(time)
        if not keep.all():
            columns = [tuple(column[keep] for column in part) for part in columns]
            time = time[keep]
        channels = tuple(self._converted(k, c, columns[c.part]) for k, c in enumerate(self._plan.channels))
        return self._within_seconds(Samples(time, channels))

    def _time(self, blocks: Sequence[Block], start: int) -> np.ndarray:
        if self._plan.time is None:
            return np.arange(start, start + blocks[0].rows) / (self._plan.setup.rate or 1.0)
        part, column, scale = self._plan.time
        return blocks[part].columns[column] * scale

    def _usable_rows(self, blocks: Sequence[Block], time: np.ndarray, start: int) -> np.ndarray:
        """Return which rows have a finite number everywhere; count the others by channel and row."""
        usable = np.ones(time.size, bool)
        for block in blocks:
            if block.bad is not None:
                usable &= ~block.bad
        whole = usable.copy()
        rows = [("time", 0, time)]
        for channel in self._plan.channels:
            if channel.required:
                columns = blocks[channel.part].columns
                places = [(row, place) for row, place in enumerate(channel.columns) if place is not None]
                rows += [(channel.setup.label, row, columns[place]) for row, place in places]
        for label, row, values in rows:
            # One fast pass: a sum of squares is small and finite only if every number is.
            if not np.einsum("i,i->", values, values) < LARGEST**2:
                self._count_unusable(label, row, values, whole, start)
                usable &= np.abs(values) < LARGEST
        return usable

    def _count_unusable(self, label: str, row: int, values: np.ndarray, whole: np.ndarray, start: int) -> None:
        for kind, mask in (("not_a_number", np.isnan(values)), ("infinite", np.abs(values) >= LARGEST)):
            found = np.flatnonzero(mask & whole)
            if found.size:
                if (label, row, kind) not in self._unusable:
                    self._new_unusable[label, row, kind] = int(found[0])
                entry = self._unusable.setdefault((label, row, kind), [0])
                entry[0] += found.size
                entry += [int(place) + start + 1 for place in found[: max(0, FEW + 1 - len(entry))]]

    def _find_stamps_before(self, usable: np.ndarray, time: np.ndarray) -> None:
        """Find the stamp of the sample before the first unusable row of each kind; stamps are of the usable rows."""
        for key, place in self._new_unusable.items():
            before = int(np.count_nonzero(usable[:place]))
            stamp = float(time[before - 1]) if before else self._latest
            if np.isfinite(stamp):
                self._stamp_before[key] = stamp
        self._new_unusable.clear()

    def _continued(self, time: np.ndarray) -> np.ndarray:
        """Return the stamps with those that start again (logs appended to each other) put after those before."""
        before = [] if self._last_stamp is None else [self._last_stamp]
        steps = np.diff(np.concatenate([before, time]))
        if time.size:
            self._last_stamp = float(time[-1])
        if not steps.size:
            return time + self._shift
        self._typical_step = self._typical_step or float(np.median(np.abs(steps)))
        back = np.flatnonzero(steps < -max(RESTART, RESTART_STEPS * self._typical_step)) + 1 - len(before)
        if not back.size:
            return time + self._shift if self._shift else time
        parts, first = [], 0
        for place in (*back.tolist(), time.size):
            parts.append(time[first:place] + self._shift)
            latest = max([self._latest, *(float(part.max()) for part in parts if part.size)])
            if place < time.size:
                pause = max(BREAK, BREAK_STEPS * self._typical_step)
                self._farthest_back = min(self._farthest_back, float(steps[place - 1 + len(before)]))
                self._shift = latest + pause - float(time[place])
                self.restarts.append(float(time[place] + self._shift))
            first = place
        return np.concatenate(parts)

    def _later(self, time: np.ndarray) -> np.ndarray:
        """Return which stamps are later than all before them; count the others."""
        if not time.size:
            return np.ones(0, bool)
        if time[0] > self._latest and (time[1:] > time[:-1]).all():
            self._latest = float(time[-1])
            return np.ones(time.size, bool)
        before = np.maximum.accumulate(np.concatenate([[self._latest], time]))[:-1]
        keep = time > before
        for kind, mask in (("duplicate_stamp", time == before), ("backward_stamp", time < before)):
            self._backwards[kind] += int(mask.sum())
            places = self._backwards_at[kind]
            places += [float(stamp) for stamp in time[mask][: FEW - len(places)]]
        self._latest = max(self._latest, float(time.max()))
        return keep

    def _converted(self, number: int, channel: PlannedChannel, columns: tuple[np.ndarray, ...]) -> np.ndarray:
        values = np.empty((len(channel.columns), columns[0].size))
        for row, place in enumerate(channel.columns):
            if place is None:
                values[row] = 0.0
            else:
                np.multiply(columns[place], channel.scale[row], out=values[row])
        if number in self._unwrappers:
            values = self._unwrappers[number].take(values, channel.turn > 0)
        if channel.to_joint is not None:
            values = channel.to_joint @ values if channel.to_joint.ndim == 2 else channel.to_joint[:, None] * values
        if channel.shift.any():
            values += channel.shift[:, None]
        return values

    def _within_seconds(self, samples: Samples) -> Samples:
        if not samples.count:
            return samples
        if self._first_stamp is None:
            self._first_stamp = float(samples.time[0])
        if self._plan.setup.seconds is None:
            return samples
        first, last = self._plan.setup.seconds
        since = samples.time - self._first_stamp
        self.finished = self.finished or bool(since[-1] > last)
        return samples.chosen((since >= first) & (since <= last))

    def findings(self) -> list[Finding]:
        """Return what was dropped and what was undone; refuse a recording of which nothing useful is left."""
        self._refuse_too_little()
        found = [self._unusable_finding(*key, places) for key, places in self._unusable.items()]
        if self.restarts:
            found.append(self._restart_finding())
        faults = {"duplicate_stamp": "a repeated stamp", "backward_stamp": "a stamp before an earlier one"}
        for kind, count in self._backwards.items():
            if count:
                text = f"{faults[kind]} in {counted(count, 'row')}, left out"
                where = tuple(self._backwards_at[kind])
                found.append(Finding(kind, "warning", text, "time", count=count, where=where, where_unit="s"))
        for number, unwrapper in self._unwrappers.items():
            label = self._plan.channels[number].setup.label
            for joint, turns in zip(self._plan.joints, unwrapper.turns, strict=False):
                if turns:
                    text = f"{label} of {joint} wrapped round {counted(turns, 'time')}; undone, because unwrap = true"
                    found.append(Finding("unwrapped", "info", text, label, joint, int(turns)))
        return found

    def _restart_finding(self) -> Finding:
        count = len(self.restarts)
        text = (
            f"the stamps start again {counted(count, 'time')}, by up to {-self._farthest_back:.4g} s: "
            f"logs appended to each other, or a clock set back; split into {count + 1} parts, no row is lost"
        )
        where = tuple(self.restarts[:FEW])
        remedy = "give each log as a file of its own, so that each has its own noise and its own part held out"
        return Finding("concatenated", "warning", text, "time", "", count, where, "s", remedy=remedy)

    def _unusable_finding(self, label: str, row: int, kind: str, places: list[int]) -> Finding:
        name, joint = self._named(label, row)
        fault = "no number" if kind == "not_a_number" else "an infinite or absurd number"
        text = f"{name}: {fault} in {counted(places[0], 'row')}, left out"
        before = self._stamp_before.get((label, row, kind))
        values = {} if before is None else {"sample_before": before}
        return Finding(kind, "warning", text, label, joint, places[0], tuple(places[1:]), "row", values)

    def _named(self, label: str, row: int) -> tuple[str, str]:
        """Return what messages call a row of a channel, and its joint, empty if it has none."""
        joint = "" if label == "time" or row >= len(self._plan.joints) else self._plan.joints[row]
        return (f"{label} of {joint}" if joint else label), joint

    def _refuse_too_little(self) -> None:
        path = self._plan.tables[0].path
        backwards = sum(self._backwards.values()) + len(self.restarts)
        if self.used < 2 and self._unusable:
            (label, row, _), places = max(self._unusable.items(), key=lambda item: item[1][0])
            raise RecordingError(
                f"{path}: {self._named(label, row)[0]} has no finite number in {places[0]} of {self.rows} rows, too "
                "few samples are left; check the columns, or leave this channel out"
            )
        if self.used < 2 or backwards > self.used:
            reason = f"{backwards} stamps are not later than those before them" if backwards else "no more are usable"
            raise RecordingError(
                f"{path}: {self.used} samples are left of {self.rows} rows ({reason}); at least 2 and most of the rows "
                "are needed, check the rows to use and the time column"
            )
