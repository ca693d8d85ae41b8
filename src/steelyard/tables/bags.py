"""Messages of ROS bags as bytes: ``.bag`` of ROS 1, ``.db3`` and ``.mcap`` of ROS 2, and folders of these.

Bags are read from their beginning to their end, in memory that does not grow with the number of messages. Definitions
of messages in them are text that is never executed.
"""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

from ..archive import ALWAYS_UNPACKED, MOST_UNPACKED
from ..errors import TableError
from ..files import check_file, file_bytes, size_of
from .bag_records import (
    Channel,
    DamagedBagError,
    RecordFile,
    Topic,
    decompressor_of,
    open_mcap,
    open_rosbag,
    short_type,
    unpacked,
)
from .table import ReadLog

FILE_LIST = "metadata.yaml"
"""File of a folder that is a bag of ROS 2."""
_LARGEST_LIST = 1_000_000
_FILES = re.compile(r"^ *relative_file_paths: *(?:\[([^\]]*)\]|((?:\s*\n *- [^\n]+)+))", re.MULTILINE)
_COMPRESSION = re.compile(r"^ *compression_mode: *[\"']?(\w*)", re.MULTILINE)
_PIECE = 1 << 20
_BROKEN = (DamagedBagError, struct.error, sqlite3.Error, UnicodeDecodeError, OverflowError)


@dataclass(frozen=True)
class Bag:
    """A file or folder of messages.

    Attributes:
        topics: What is in it, by name.
        messages: Given a topic and a log to fill, returns when each message was logged [ns], and its bytes.
    """

    topics: tuple[Topic, ...]
    messages: Callable[[Topic, ReadLog], Iterator[tuple[int, bytes]]]


def open_bag(path: Path) -> Bag:
    """Return the messages of a file, by its ending, or of a folder with a list of files.

    Raises:
        TableError: If it is no bag, is damaged, or needs a package that is not installed.
    """
    if path.is_dir():
        return _open_folder(path)
    with _errors_of(path):
        return _OPENERS[path.suffix.lower()](path)


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise TableError(f"{path}: is damaged or no ROS bag ({error}); copy it again or record anew") from error
    except ImportError as error:
        raise TableError(f"{path}: {error}") from error


def _merged(channels: Iterable[Topic]) -> tuple[Topic, ...]:
    """Return topics with the messages of all their channels (of publishers and files) counted."""
    found: dict[tuple[str, str, bool], Topic] = {}
    for topic in channels:
        before = found.get(_key(topic), replace(topic, count=0))
        definition = before.definition or topic.definition
        found[_key(topic)] = replace(before, count=before.count + topic.count, definition=definition)
    return tuple(sorted(found.values(), key=_key))


def _key(topic: Topic) -> tuple[str, str, bool]:
    return topic.name, topic.type, topic.cdr


def _bag_of_records(path: Path, records: RecordFile) -> Bag:
    def messages(topic: Topic, log: ReadLog) -> Iterator[tuple[int, bytes]]:
        keys: set[int] = set()
        with _errors_of(path), path.open("rb") as file:
            for event in records.events(file, log, records.first):
                if not isinstance(event, Channel):
                    if event.key in keys and event.data:
                        yield event.time, bytes(event.data)
                elif _key(event.topic) == _key(topic):
                    keys.add(event.key)

    topics: tuple[Topic, ...] = ()
    if 0 < records.index < path.stat().st_size:
        try:
            topics = _topics_of_records(path, records, records.index)
        except _BROKEN:
            topics = ()  # of a damaged index nothing is used
    if not any(topic.count for topic in topics):  # no index, or one that does not count
        topics = _topics_of_records(path, records, records.first)
    return Bag(topics, messages)


def _topics_of_records(path: Path, records: RecordFile, start: int) -> tuple[Topic, ...]:
    channels: dict[int, Topic] = {}
    counts: dict[int, int] = {}
    with path.open("rb") as file:
        for event in records.events(file, ReadLog(), start):
            if isinstance(event, Channel):
                channels.setdefault(event.key, event.topic)
            else:
                counts[event.key] = counts.get(event.key, 0) + event.number
    return _merged(replace(topic, count=counts.get(key, 0)) for key, topic in channels.items())


_STEPS_AT_ONCE = 10_000
_STEPS_PER_BYTE = 20
"""Steps of SQLite's machine; reading a table to its end takes fewer, unless its pages refer to each other."""


def _open_db3(path: Path) -> Bag:
    """Return the messages of a database of ROS 2 (https://github.com/ros2/rosbag2, rosbag2_storage_sqlite3)."""
    with closing(_database(path)) as database:
        # Neither views nor virtual tables: both can compute anything.
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
        tables = {name for (name,) in database.execute(query)}
        if not {"topics", "messages"} <= tables:
            raise DamagedBagError("it has no tables 'topics' and 'messages'")
        counts = dict(database.execute("SELECT topic_id, count(*) FROM messages GROUP BY topic_id"))
        definitions: dict[Any, Any] = {}
        if "message_definitions" in tables:
            query = "SELECT topic_type, encoded_message_definition FROM message_definitions WHERE encoding = 'ros2msg'"
            definitions = dict(database.execute(query))
        rows = database.execute("SELECT id, name, type, serialization_format FROM topics").fetchall()
    ids: dict[Any, Topic] = {
        key: Topic(name, short_type(kind), True, str(definitions.get(kind, "")), counts.get(key, 0))
        for key, name, kind, encoding in rows
        if isinstance(name, str) and isinstance(kind, str) and encoding == "cdr"
    }

    def messages(topic: Topic, log: ReadLog) -> Iterator[tuple[int, bytes]]:
        chosen = [key for key, other in ids.items() if _key(topic) == _key(other)]
        size, total, done, held = path.stat().st_size, sum(ids[key].count for key in chosen), 0, 0
        marks = ", ".join("?" * len(chosen))
        unsaved = path.with_name(f"{path.name}-wal")  # left by a recorder that was killed; to read it is to write
        if unsaved.is_file() and size_of(unsaved):
            log.remarks.append(f"messages in {unsaved.name} are not read; open and close the bag with sqlite3 first")
        with _errors_of(path), closing(_database(path)) as database:
            query = f"SELECT timestamp, data FROM messages WHERE topic_id IN ({marks}) ORDER BY rowid"
            for time, data in database.execute(query, chosen):
                if not isinstance(time, int) or not isinstance(data, bytes):
                    raise DamagedBagError("a message is not bytes with a time")
                done, held = done + 1, held + len(data)
                if held > size:
                    raise DamagedBagError(f"it holds more than its {size} bytes")
                log.bytes_done = size * done // max(total, done)
                yield time, data

    return Bag(_merged(ids.values()), messages)


def _database(path: Path) -> sqlite3.Connection:
    """Return a database that is only read, and in which no query takes longer than the size of the file explains."""
    place = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    database = sqlite3.connect(place, uri=True, check_same_thread=False)
    size = path.stat().st_size
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(_PIECE, size))
    calls = iter(range(1000 + _STEPS_PER_BYTE * size // _STEPS_AT_ONCE))
    database.set_progress_handler(lambda: next(calls, None) is None, _STEPS_AT_ONCE)
    return database


_OPENERS: dict[str, Callable[[Path], Bag]] = {
    ".bag": lambda path: _bag_of_records(path, open_rosbag(path)),
    ".db3": _open_db3,
    ".mcap": lambda path: _bag_of_records(path, open_mcap(path)),
}


def _open_folder(path: Path) -> Bag:
    """Return the messages of all files that the folder lists, one file after the other."""
    try:
        text = file_bytes(path / FILE_LIST, "a list of files", TableError, _LARGEST_LIST).decode("utf-8", "replace")
    except TableError as error:
        raise TableError(f"{path / FILE_LIST}: {error}") from error
    files = _listed_files(path, text)
    mode = _COMPRESSION.search(text)
    packed = mode is not None and mode[1].lower() == "message"
    topics: list[Topic] = []
    for file in files:
        with _plain_file(file) as plain:
            topics += open_bag(plain).topics

    def messages(topic: Topic, log: ReadLog) -> Iterator[tuple[int, bytes]]:
        before = 0
        for file in files:
            own, size = ReadLog(), file.stat().st_size
            with _plain_file(file) as plain, _errors_of(file):
                plain_size = max(1, plain.stat().st_size)
                for time, data in open_bag(plain).messages(topic, own):
                    log.bytes_done = before + size * own.bytes_done // plain_size
                    yield time, bytes(unpacked("zstd", data)) if packed else data
            log.remarks += [f"{file.name}: {remark}" for remark in own.remarks]
            before += size

    return Bag(_merged(topics), messages)


def _listed_files(path: Path, text: str) -> list[Path]:
    found = _FILES.search(text)
    entries = re.split(r"[,\n]", (found[1] or found[2] or "") if found else "")
    # Only names count: a list of files does not lead out of its folder.
    names = [PurePath(entry.strip().removeprefix("- ").strip("\"' \r")).name for entry in entries]
    files = [path / name for name in names if name]
    if not files:
        raise TableError(f"{path}: {FILE_LIST} lists no files (relative_file_paths); run 'ros2 bag reindex'")
    for file in files:
        try:
            check_file(file, "messages", TableError)
        except TableError as error:
            raise TableError(f"{path}: {FILE_LIST} lists '{file.name}': {error}") from error
    return files


@contextmanager
def _plain_file(path: Path) -> Iterator[Path]:
    """Return a file of a folder; one that is packed as a whole is unpacked into a temporary file."""
    is_packed = path.suffix.lower() in (".zstd", ".zst")
    plain = Path(path.stem if is_packed else path.name)
    if plain.suffix.lower() not in (".db3", ".mcap"):
        raise TableError(f"{path}: kind of file '{plain.suffix}' is not known; allowed in a folder: .db3, .mcap")
    if not is_packed:
        yield path
        return
    with TemporaryDirectory() as folder:
        with _errors_of(path):
            _unpack_file(path, Path(folder) / plain)
        yield Path(folder) / plain


def _unpack_file(path: Path, plain: Path) -> None:
    most = max(ALWAYS_UNPACKED, MOST_UNPACKED * path.stat().st_size)
    decompressor, broken = decompressor_of("zstd")
    with path.open("rb") as packed, plain.open("wb") as file:
        while not decompressor.eof:
            piece = packed.read(_PIECE) if decompressor.needs_input else b""
            if decompressor.needs_input and not piece:
                raise DamagedBagError("it ends early")
            try:
                file.write(decompressor.decompress(piece, max_length=_PIECE))
            except broken as error:
                raise DamagedBagError(f"it cannot be unpacked: {error}") from error
            if file.tell() > most:
                raise DamagedBagError(f"it unpacks to over {most} bytes")
