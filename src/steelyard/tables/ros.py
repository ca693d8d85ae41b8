"""Joint states, states of trajectory controllers and wrenches in ROS bags, as tables.

Messages of one layout (names of joints, lengths of arrays) have their numbers at the same bytes: the layout is found
from one message, and the numbers of all that share it are taken at once.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np

from ..errors import TableError, nearest_match
from ..files import size_of
from ..text import counted
from .bag_records import Topic
from .bags import Bag, open_bag
from .table import FEW, MOST_COLUMNS, Block, ReadLog, Table, TextOptions

BLOCK_ROWS = 16_384
BLOCK_BYTES = 1 << 25
HEAD = 300
"""Messages that the columns are found from."""
MOST_LAYOUTS = 16
"""Layouts of messages of one length that are looked for in a block; the messages of others are read one by one."""
USUAL_TOPIC = "/joint_states"
_MOST_LISTED = 6
_WRENCH = ("fx", "fy", "fz", "tx", "ty", "tz")


class _UnreadableMessageError(ValueError):
    """A message that is not what its type says."""


_BROKEN = (_UnreadableMessageError, struct.error)


@dataclass(frozen=True)
class _MessageLayout:
    """Where the numbers of a message are.

    Attributes:
        names: Joints, or the axes of a wrench.
        stamp: Byte of the seconds and nanoseconds of its header.
        numbers: Byte of the first of as many numbers as there are names, for each quantity that is there.
        fixed: Bytes that are the same in all messages of this layout: names and lengths (bool, as many as bytes).
        order: ``<`` or ``>``, the order of bytes.
    """

    names: tuple[str, ...]
    stamp: int
    numbers: dict[str, int]
    fixed: np.ndarray
    order: str


class _Cursor:
    """Goes through the bytes of a message; alignment is that of CDR, ROS 1 has none."""

    def __init__(self, data: bytes, cdr: bool) -> None:
        self.data, self.cdr = data, cdr
        self.place = 4 if cdr else 0
        self.order = "<"
        self.fixed = np.zeros(len(data), dtype=bool)
        if cdr:
            if data[:2] not in (b"\0\0", b"\0\1"):
                raise _UnreadableMessageError("it is not serialised as CDR")
            self.order = "<" if data[1] else ">"
            self.fixed[:2] = True

    def skip(self, length: int, align: int = 1) -> int:
        """Return the byte at which something of so many bytes begins, and go on behind it."""
        # Alignment counts from behind the four bytes that say how a message is serialised.
        start = self.place + ((4 - self.place) % align if self.cdr else 0)
        if length > len(self.data) - start:
            raise _UnreadableMessageError("it ends early")
        self.place = start + length
        return start

    def count(self) -> int:
        start = self.skip(4, align=4)
        self.fixed[start : start + 4] = True
        return struct.unpack_from(f"{self.order}I", self.data, start)[0]

    def name(self) -> str:
        start = self.skip(self.count())
        self.fixed[start : self.place] = True
        return self.data[start : self.place].removesuffix(b"\0").decode("utf-8", "replace")

    def names(self) -> tuple[str, ...]:
        count = self.count()
        if count > MOST_COLUMNS:
            raise _UnreadableMessageError(f"it has {count} joints")
        return tuple(self.name() for _ in range(count))

    def header(self) -> int:
        """Return the byte of the stamp."""
        if not self.cdr:
            self.skip(4)  # the number of the message
        stamp = self.skip(8, align=4)
        self.skip(self.count())
        return stamp

    def numbers(self) -> tuple[int, int]:
        """Return the first byte and the length of an array of doubles."""
        count = self.count()
        return self.skip(8 * count, align=8 if count else 1), count

    def layout(self, names: tuple[str, ...], stamp: int, arrays: dict[str, tuple[int, int]]) -> _MessageLayout:
        found = {quantity: start for quantity, (start, count) in arrays.items() if count == len(names) > 0}
        return _MessageLayout(names, stamp, found, self.fixed, self.order)

    def finish(self) -> None:
        if len(self.data) - self.place > (3 if self.cdr else 0):
            raise _UnreadableMessageError("it is longer than its type")


def _joint_state(data: bytes, topic: Topic) -> _MessageLayout:
    cursor = _Cursor(data, topic.cdr)
    stamp, names = cursor.header(), cursor.names()
    arrays = {quantity: cursor.numbers() for quantity in ("q", "qd", "effort")}
    cursor.finish()
    return cursor.layout(names, stamp, arrays)


def _wrench(data: bytes, topic: Topic) -> _MessageLayout:
    cursor = _Cursor(data, topic.cdr)
    stamp = cursor.header()
    arrays = {"wrench": (cursor.skip(48, align=8), 6)}
    cursor.finish()
    return cursor.layout(_WRENCH, stamp, arrays)


_POINT = re.compile(r"^[ \t]*(?:trajectory_msgs/)?(?:msg/)?JointTrajectoryPoint[ \t]+(\w+)", re.MULTILINE)
_OLD_POINTS = ("desired", "actual", "error")
_NEW_POINTS = ("reference", "feedback", "error", "output")
"""Of ROS 2 from Humble on; what follows them differs between its versions and is not used."""


def _trajectory_state(data: bytes, topic: Topic) -> _MessageLayout:
    """Return the layout of a controller's state, whose points are those of its definition or of a known version."""
    defined = _defined_points(topic.definition)
    if defined:
        return _points(data, topic, defined, whole=False)
    try:
        return _points(data, topic, _OLD_POINTS, whole=True)
    except _BROKEN:
        return _points(data, topic, _NEW_POINTS, whole=False)


@lru_cache(maxsize=4)
def _defined_points(definition: str) -> tuple[str, ...]:
    return tuple(_POINT.findall(definition.partition("\n====")[0]))


def _points(data: bytes, topic: Topic, points: Sequence[str], whole: bool) -> _MessageLayout:
    cursor = _Cursor(data, topic.cdr)
    stamp, names = cursor.header(), cursor.names()
    found: dict[str, tuple[int, int]] = {}
    for point in points:
        for array in ("positions", "velocities", "accelerations", "effort"):
            quantity = _OF_POINTS.get(f"{point} {array}", "")
            start, count = cursor.numbers()
            if count and quantity:
                found.setdefault(quantity, (start, count))
        cursor.skip(8, align=4)  # time from start
    if whole:
        cursor.finish()
    return cursor.layout(names, stamp, found)


_OF_POINTS = {
    **{f"{point} positions": "q" for point in ("feedback", "actual")},
    **{f"{point} velocities": "qd" for point in ("feedback", "actual")},
    **{f"{point} effort": "effort" for point in ("feedback", "actual")},
    **{f"{point} positions": "reference" for point in ("reference", "desired")},
    "output effort": "output",
}
_OF_JOINTS: dict[str, Callable[[bytes, Topic], _MessageLayout]] = {
    "sensor_msgs/JointState": _joint_state,
    "control_msgs/JointTrajectoryControllerState": _trajectory_state,
}
LAYOUTS = {**_OF_JOINTS, "geometry_msgs/WrenchStamped": _wrench}
"""What finds the layout of a message, by type."""


def open_ros(path: Path, options: TextOptions) -> Table:
    """Return one topic of a bag as a table: ``time``, ``q[joint]``, ``qd[joint]``, ``effort[joint]`` and so on."""
    bag = open_bag(path)
    topic, remark = _chosen(path, bag, options.topic)
    reader = _reader(path, bag, topic)

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        counts = _Counts()
        log.remarks += [remark] if remark else []
        for messages in _in_blocks(bag.messages(topic, log)):
            block = reader.block(messages, wanted, counts)
            if block.rows:
                yield block
        log.bytes_done = size_of(path)
        counts.report(reader, log)

    return Table(str(path), reader.names, True, read)


def _chosen(path: Path, bag: Bag, wanted: str | None) -> tuple[Topic, str]:
    """Return the topic that is read, and a remark if others could be."""
    if wanted is not None:
        found = [topic for topic in bag.topics if topic.name.strip("/") == wanted.strip("/")]
        if not found:
            near = nearest_match(wanted, [topic.name for topic in bag.topics])
            raise TableError(f"{path}: there is no topic '{wanted}'; topics: {_listed(bag.topics)}{near}")
        if found[0].type not in LAYOUTS:
            raise TableError(f"{path}: {_listed(found[:1])} cannot be read; types that can: {', '.join(LAYOUTS)}")
        return found[0], ""
    joints = [topic for topic in bag.topics if topic.type in _OF_JOINTS and topic.count]
    usable = joints or [topic for topic in bag.topics if topic.type in LAYOUTS and topic.count]
    if not bag.topics:
        raise TableError(f"{path}: has no messages; it is empty, or cut off before the end of its first chunk")
    if not usable:
        raise TableError(f"{path}: no messages of {' or '.join(LAYOUTS)}; topics: {_listed(bag.topics)}")
    usual = [topic for topic in usable if topic.name == USUAL_TOPIC]
    if len(usable) > 1 and len(usual) != 1:
        raise TableError(
            f'{path}: has {len(usable)} topics that can be read; choose one with topic = "{usable[0].name}" in '
            f"[recording] (init: --topic): {_listed(usable)}"
        )
    if len(usable) > 1:
        return usual[0], f"{USUAL_TOPIC} is read, one of {_listed(usable)}; choose another with topic = ..."
    return usable[0], ""


def _listed(topics: Sequence[Topic]) -> str:
    shown = [f"{topic.name} ({topic.type}, {counted(topic.count, 'message')})" for topic in topics[:_MOST_LISTED]]
    more = f" and {len(topics) - _MOST_LISTED} more" if len(topics) > _MOST_LISTED else ""
    return f"{', '.join(shown) or 'none'}{more}"


def _in_blocks(messages: Iterator[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    block: list[tuple[int, bytes]] = []
    size = 0
    for message in messages:
        block.append(message)
        size += len(message[1])
        if len(block) == BLOCK_ROWS or size > BLOCK_BYTES:
            yield block
            block, size = [], 0
    yield block


@dataclass
class _Counts:
    """Messages that are no rows: of other joints, and those that cannot be decoded, with the numbers of the first."""

    messages: int = 0
    others: int = 0
    other_names: tuple[str, ...] = ()
    broken: int = 0
    first_broken: tuple[int, ...] = ()

    def report(self, reader: _Reader, log: ReadLog) -> None:
        """Write them into the log; a message that cannot be decoded, or is not found, counts as a line."""
        log.garbage += self.broken
        log.garbage_lines += self.first_broken
        name, missing = reader.topic.name, reader.topic.count - self.messages
        if missing > 0:  # the index knows of more: the file is damaged
            log.truncated += missing
            log.remarks.append(f"{name}: {missing} of {counted(reader.topic.count, 'message')} are missing")
        if self.others:
            named = ", ".join(self.other_names[:3]) or "none"
            log.remarks.append(f"{name}: {counted(self.others, 'message')} of other joints ({named}) left out")
        if not reader.stamped:
            log.remarks.append(f"{name}: stamps are zero; time is that at which messages were logged")


@dataclass(frozen=True)
class _Reader:
    """How messages of a topic become rows.

    Attributes:
        topic: What is read.
        joints: Joints of the columns.
        quantities: Quantities of the columns; each has a column for each joint.
        stamped: Whether time is that of the headers, not that at which messages were logged.
    """

    topic: Topic
    joints: tuple[str, ...]
    quantities: tuple[str, ...]
    stamped: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return ("time", *(f"{quantity}[{joint}]" for quantity in self.quantities for joint in self.joints))

    def block(self, messages: Sequence[tuple[int, bytes]], wanted: Sequence[int], counts: _Counts) -> Block:
        """Return the rows of some messages, in their order."""
        values = np.full((len(messages), len(self.names)), np.nan)
        usable = np.zeros(len(messages), dtype=bool)
        lengths: dict[int, list[int]] = {}
        for number, (_, data) in enumerate(messages):
            lengths.setdefault(len(data), []).append(number)
        for length, numbers in lengths.items():
            joined = b"".join(messages[number][1] for number in numbers)
            self._fill(np.frombuffer(joined, np.uint8).reshape(-1, length), np.array(numbers), values, usable, counts)
        if not self.stamped:
            values[:, 0] = [1e-9 * time for time, _ in messages]
        counts.messages += len(messages)
        return Block(tuple(np.ascontiguousarray(values[usable, column]) for column in wanted))

    def _fill(
        self, data: np.ndarray, numbers: np.ndarray, values: np.ndarray, usable: np.ndarray, counts: _Counts
    ) -> None:
        """Write the numbers of messages of equal length (k, length) into their rows."""
        rest = np.arange(len(data))
        layouts = 0
        while rest.size:
            layouts += 1
            first, same = rest[0], np.zeros(rest.size, dtype=bool)
            same[0] = True
            try:
                layout = LAYOUTS[self.topic.type](data[first].tobytes(), self.topic)
            except _BROKEN:
                counts.broken += 1
                place = counts.messages + int(numbers[first]) + 1
                counts.first_broken = tuple(sorted({*counts.first_broken, place}))[:FEW]
            else:
                if layouts <= MOST_LAYOUTS:
                    same = (data[rest][:, layout.fixed] == data[first, layout.fixed]).all(axis=1)
                self._take(layout, data[rest[same]], numbers[rest[same]], values, usable, counts)
            rest = rest[~same]

    def _take(
        self, layout: _MessageLayout, data: np.ndarray, rows: np.ndarray, values: np.ndarray, usable: np.ndarray,
        counts: _Counts,
    ) -> None:  # fmt: skip
        """Write the numbers of messages of one layout into their rows."""
        places = {joint: place for place, joint in reversed(list(enumerate(layout.names)))}
        if not places.keys() >= set(self.joints):
            counts.others += len(rows)
            counts.other_names = counts.other_names or layout.names
            return
        usable[rows] = True
        order = [places[joint] for joint in self.joints]
        for group, quantity in enumerate(self.quantities):
            if quantity in layout.numbers:
                found = _view(data, layout.numbers[quantity], len(layout.names), f"{layout.order}f8")
                first = 1 + group * len(self.joints)
                values[rows, first : first + len(self.joints)] = found[:, order]
        seconds, nanoseconds = _view(data, layout.stamp, 2, f"{layout.order}u4").T
        if self.topic.cdr:
            seconds = seconds.astype(np.uint32).view(np.int32)
        values[rows, 0] = seconds + 1e-9 * nanoseconds


def _view(data: np.ndarray, start: int, count: int, kind: str) -> np.ndarray:
    """Return numbers that lie at the same bytes of each message (messages, count)."""
    return np.ascontiguousarray(data[:, start : start + np.dtype(kind).itemsize * count]).view(kind)


def _reader(path: Path, bag: Bag, topic: Topic) -> _Reader:
    """Return the columns that the first messages have: those of the joints that most of them name."""
    layouts: list[_MessageLayout] = []
    stamps: list[bytes] = []
    fault = ""
    for _, data in islice(bag.messages(topic, ReadLog()), HEAD):
        try:
            layout = LAYOUTS[topic.type](data, topic)
        except _BROKEN as error:
            fault = f"; the last one: {error}"
            continue
        if layout.numbers:
            layouts.append(layout)
            stamps.append(data[layout.stamp : layout.stamp + 8])
    if not layouts:
        raise TableError(
            f"{path}: no message of {topic.name} ({topic.type}) among the first {HEAD} holds numbers of joints{fault}; "
            "check it, or choose another topic with topic = ... in [recording]"
        )
    ((main, _),) = Counter(frozenset(layout.names) for layout in layouts).most_common(1)
    chosen = [(layout, stamp) for layout, stamp in zip(layouts, stamps, strict=True) if main == set(layout.names)]
    quantities = dict.fromkeys(quantity for layout, _ in chosen for quantity in layout.numbers)
    stamped = any(any(stamp) for _, stamp in chosen)
    return _Reader(topic, tuple(dict.fromkeys(chosen[0][0].names)), tuple(quantities), stamped)
