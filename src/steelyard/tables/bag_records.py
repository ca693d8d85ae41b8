"""Records of bag files, from the first to the last: ``.bag`` of ROS 1, and MCAP.

Both formats are records one after the other, most of them in chunks, with an index at the end that can be done
without: a file without its end (the recorder was killed) is read up to there. Lengths are checked against the size of
the file, and no chunk unpacks to more than measurements can be packed to.
"""

from __future__ import annotations

import bz2
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..archive import ALWAYS_UNPACKED, MOST_UNPACKED
from .table import ReadLog

_TYPE = re.compile(r"^(\w+)/(?:msg/)?(\w+)$")


@dataclass(frozen=True)
class Topic:
    """Messages of one type under one name.

    Attributes:
        name: Such as ``/joint_states``.
        type: Their type without ``msg``: ``sensor_msgs/JointState``.
        cdr: Whether they are serialised as in ROS 2 (CDR), not as in ROS 1.
        definition: Text of the type's definition; empty where the file has none.
        count: How many there are.
    """

    name: str
    type: str
    cdr: bool
    definition: str = ""
    count: int = 0


class Channel(NamedTuple):
    """A topic, and the key that its messages have in this file; a topic may have several (one a publisher)."""

    key: int
    topic: Topic


class Messages(NamedTuple):
    """One message of a channel with its time [ns] and its bytes; or, in an index, only how many there are."""

    key: int
    number: int
    time: int = 0
    data: bytes | memoryview = b""


Event = Channel | Messages


@dataclass(frozen=True)
class RecordFile:
    """A file of records.

    Attributes:
        events: Given the open file, a log to fill and a byte to begin with, returns channels and messages.
        first: Where the records begin [byte].
        index: Where the index begins [byte]; 0 if there is none.
    """

    events: Callable[[IO[bytes], ReadLog, int], Iterator[Event]]
    first: int
    index: int


class DamagedBagError(ValueError):
    """Bytes that are not as the format says; the message does not name the file."""


def short_type(name: str) -> str:
    """Return the name of a message type without ``msg``, which only ROS 2 has in it."""
    found = _TYPE.match(name)
    return f"{found[1]}/{found[2]}" if found else name


def _read_on(file: IO[bytes], length: int, log: ReadLog) -> memoryview | None:
    """Return the next bytes; None, with a remark, if the file ends before."""
    place = file.tell()
    if length > os.fstat(file.fileno()).st_size - place:
        log.remarks.append(f"the file ends within a record at byte {place}; what was recorded after that is lost")
        return None
    return memoryview(file.read(length))


def _part(data: memoryview, start: int, length: int) -> memoryview:
    if length > len(data) - start:
        raise DamagedBagError(f"a length of {length} where {max(0, len(data) - start)} bytes are left")
    return data[start : start + length]


# MCAP, https://mcap.dev/spec: a record is its kind (1 byte), its length (8 bytes) and its content.
_MCAP_MAGIC = b"\x89MCAP0\r\n"
_MCAP_RECORD = struct.Struct("<BQ")
_MCAP_MESSAGE = struct.Struct("<HIQQ")
_MCAP_FOOTER = b"\x02" + struct.pack("<Q", 20)
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _STATISTICS, _DATA_END = 2, 3, 4, 5, 6, 11, 15


def open_mcap(path: Path) -> RecordFile:
    """Return where the records of an MCAP file are."""
    with path.open("rb") as file:
        if file.read(8) != _MCAP_MAGIC:
            raise DamagedBagError("it does not begin as an MCAP file does")
        file.seek(max(8, path.stat().st_size - 37))
        end, summary = file.read(), 0
        if end.startswith(_MCAP_FOOTER) and end.endswith(_MCAP_MAGIC):
            (summary,) = struct.unpack_from("<Q", end, 9)
    return RecordFile(_mcap_events, 8, summary)


def _mcap_events(file: IO[bytes], log: ReadLog, first: int) -> Iterator[Event]:
    schemas: dict[int, tuple[str, str]] = {}
    file.seek(first)
    while (head := _read_on(file, _MCAP_RECORD.size, log)) is not None:
        kind, length = _MCAP_RECORD.unpack(head)
        if kind in (_FOOTER, _DATA_END) or (body := _read_on(file, length, log)) is None:
            return
        if kind != _CHUNK:
            yield from _mcap_record(kind, body, schemas)
        else:
            content, place = _mcap_chunk(body), 0
            while place < len(content):
                kind, length = _MCAP_RECORD.unpack_from(content, place)
                place += _MCAP_RECORD.size + length
                yield from _mcap_record(kind, _part(content, place - length, length), schemas)
        log.bytes_done = file.tell()


def _mcap_chunk(body: memoryview) -> memoryview:
    _, _, size, checksum = struct.unpack_from("<QQQI", body)
    codec, place = _mcap_text(body, 28)
    (length,) = struct.unpack_from("<Q", body, place)
    content = memoryview(unpacked(codec, _part(body, place + 8, length), size))
    if checksum and zlib.crc32(content) != checksum:
        raise DamagedBagError("the checksum of a chunk is wrong")
    return content


def _mcap_text(body: memoryview, place: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<I", body, place)
    return bytes(_part(body, place + 4, length)).decode(), place + 4 + length


def _mcap_record(kind: int, body: memoryview, schemas: dict[int, tuple[str, str]]) -> Iterable[Event]:
    if kind == _MESSAGE:
        key, _, time, _ = _MCAP_MESSAGE.unpack_from(body)
        return (Messages(key, 1, time, body[_MCAP_MESSAGE.size :]),)
    if kind == _SCHEMA:
        (number,) = struct.unpack_from("<H", body)
        name, place = _mcap_text(body, 2)
        encoding, place = _mcap_text(body, place)
        definition = _mcap_text(body, place)[0] if encoding in ("ros1msg", "ros2msg") else ""
        schemas[number] = short_type(name), definition
    elif kind == _CHANNEL:
        key, number = struct.unpack_from("<HH", body)
        name, place = _mcap_text(body, 4)
        encoding, _ = _mcap_text(body, place)
        if encoding in ("cdr", "ros1"):
            message_type, definition = schemas.get(number, ("", ""))
            return (Channel(key, Topic(name, message_type, encoding == "cdr", definition)),)
    elif kind == _STATISTICS:
        (length,) = struct.unpack_from("<I", body, 42)
        return [Messages(*pair) for pair in struct.iter_unpack("<HQ", _part(body, 46, length))]
    return ()


# Bags of ROS 1, https://wiki.ros.org/Bags/Format/2.0: a record is a header of named fields and data, each after its
# length (4 bytes).
_ROSBAG_MAGIC = b"#ROSBAG V2.0\n"
_LENGTH = struct.Struct("<I")
_TIME = struct.Struct("<II")
_BAG_MESSAGE, _BAG_CHUNK, _BAG_CHUNK_INFO, _BAG_CONNECTION = b"\2", b"\5", b"\6", b"\7"


def open_rosbag(path: Path) -> RecordFile:
    """Return where the records of a bag of ROS 1 are."""
    with path.open("rb") as file:
        start = file.read(len(_ROSBAG_MAGIC))
        if start != _ROSBAG_MAGIC:
            old = "; one of another version: convert it with 'rosbag migrate'" if start.startswith(b"#ROSBAG") else ""
            raise DamagedBagError(f"it does not begin as a bag of ROS 1 does{old}")
        (length,) = _LENGTH.unpack(file.read(4))
        header = _fields(_read_on(file, length, ReadLog()) or memoryview(b""))
    (index,) = struct.unpack("<Q", header.get(b"index_pos", bytes(8)))
    return RecordFile(_rosbag_events, len(_ROSBAG_MAGIC), index)


def _rosbag_events(file: IO[bytes], log: ReadLog, first: int) -> Iterator[Event]:
    size = os.fstat(file.fileno()).st_size
    file.seek(first)
    while file.tell() < size:
        header, data = _sized(file, log), _sized(file, log)
        if header is None or data is None:
            return
        fields = _fields(header)
        if fields.get(b"op") == _BAG_CHUNK:
            codec = fields.get(b"compression", b"").decode()
            yield from _rosbag_chunk(unpacked(codec, data, _whole(fields, b"size")))
        else:
            yield from _rosbag_record(fields, data)
        log.bytes_done = file.tell()


def _sized(file: IO[bytes], log: ReadLog) -> memoryview | None:
    length = _read_on(file, 4, log)
    return None if length is None else _read_on(file, _LENGTH.unpack(length)[0], log)


def _rosbag_chunk(content: bytes | memoryview) -> Iterator[Event]:
    records, place = memoryview(content), 0
    while place < len(records):
        header = _part(records, place + 4, *_LENGTH.unpack_from(records, place))
        place += 4 + len(header)
        data = _part(records, place + 4, *_LENGTH.unpack_from(records, place))
        place += 4 + len(data)
        yield from _rosbag_record(_fields(header), data)


def _rosbag_record(fields: dict[bytes, bytes], data: memoryview) -> Iterable[Event]:
    kind = fields.get(b"op")
    if kind == _BAG_MESSAGE:
        seconds, nanoseconds = _TIME.unpack(fields.get(b"time", b""))
        return (Messages(_whole(fields, b"conn"), 1, 10**9 * seconds + nanoseconds, data),)
    if kind == _BAG_CONNECTION:
        inner = _fields(data)
        name, message_type = fields.get(b"topic", b"").decode(), inner.get(b"type", b"").decode()
        definition = inner.get(b"message_definition", b"").decode("utf-8", "replace")
        topic = Topic(name, short_type(message_type), False, definition)
        return (Channel(_whole(fields, b"conn"), topic),)
    return [Messages(*pair) for pair in _TIME.iter_unpack(data)] if kind == _BAG_CHUNK_INFO else ()


def _whole(fields: dict[bytes, bytes], name: bytes) -> int:
    return _LENGTH.unpack(fields.get(name, b""))[0]


def _fields(header: memoryview) -> dict[bytes, bytes]:
    content, fields, place = bytes(header), {}, 0
    while place < len(content):
        end = place + 4 + _LENGTH.unpack_from(content, place)[0]
        if end > len(content):
            raise DamagedBagError("a field is longer than its header")
        name, _, fields[name] = content[place + 4 : end].partition(b"=")
        place = end
    return fields


def unpacked(codec: str, data: bytes | memoryview, size: int | None = None) -> bytes | memoryview:
    """Return the content of a chunk.

    Args:
        codec: How it is packed: ``none`` (or empty), ``bz2``, ``lz4`` or ``zstd``.
        data: The packed bytes.
        size: How many bytes it should unpack to, where that is declared.
    """
    if codec in ("", "none"):
        return data
    most = max(ALWAYS_UNPACKED, MOST_UNPACKED * len(data))
    if size is not None and size > most:
        raise DamagedBagError(f"{len(data)} bytes claim to hold {size}")
    decompressor, broken = decompressor_of(codec)
    try:
        content = decompressor.decompress(bytes(data), max_length=(most if size is None else size) + 1)
    except broken as error:
        raise DamagedBagError(f"a chunk cannot be unpacked: {error}") from error
    if not decompressor.eof or (size is not None and len(content) != size):
        raise DamagedBagError("a chunk does not unpack to its size")
    return content


def decompressor_of(codec: str) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return what unpacks a codec in steps, and the errors that it raises if data are damaged.

    Raises:
        ImportError: If the package for it is not installed; the message says how to install it.
    """
    try:
        if codec == "bz2":
            return bz2.BZ2Decompressor(), (OSError, EOFError)
        if codec == "lz4":
            return import_module("lz4.frame").LZ4FrameDecompressor(), (RuntimeError, EOFError)
        if codec == "zstd":
            zstd = _zstd()
            return zstd.ZstdDecompressor(), (zstd.ZstdError, EOFError)
    except ImportError as error:
        message = f"is packed with {codec}, for which a package is missing; run: pip install 'steelyard[ros]'"
        raise ImportError(message) from error
    raise DamagedBagError(f"chunks are packed with '{codec}'; allowed: none, bz2, lz4, zstd")


def _zstd() -> Any:
    try:
        return import_module("compression.zstd")  # part of Python from 3.14 on
    except ImportError:
        return import_module("backports.zstd")
