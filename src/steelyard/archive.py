"""Checked reading of NumPy's ``.npz`` archives from untrusted sources.

``numpy.load`` trusts headers: 182 bytes can claim any amount of memory, and a damaged header raises whatever the
parser of Python's syntax raises. Here headers are checked against the size of the file before data are read.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

MOST_UNPACKED = 100
"""An archive may hold this many times its own size, or ``ALWAYS_UNPACKED`` bytes; measurements do not pack better."""
ALWAYS_UNPACKED = 1 << 26
MOST_DIMENSIONS = 8
_LONGEST_HEADER = 10_000
_SIZE_BYTES = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}
_KIND = re.compile(r"""['"]descr['"]\s*:\s*['"]([<>|=]?(?:f[248]|f16|[iu][1248]|b1|[US][1-9]\d{0,8}))['"]""")
_ORDER = re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)""")
_SHAPE = re.compile(r"""['"]shape['"]\s*:\s*\(([\d,\s]{0,200})\)""")
_BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError, NotImplementedError,
)  # fmt: skip
_LAST_LETTER = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)


class ArchiveError(ValueError):
    """An archive that cannot be read; the message says why, without its name."""


@dataclass(frozen=True)
class ArrayHeader:
    """What the header of an array says, checked.

    Attributes:
        shape: Lengths of its axes.
        fortran: Whether the first axis runs fastest.
        dtype: Numbers, truth values or texts.
        start: Where its data begin, in bytes from the beginning of its file.
    """

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int

    @property
    def size(self) -> int:
        """Number of bytes of its data."""
        return math.prod(self.shape) * self.dtype.itemsize


@contextmanager
def opened_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive whose content is no larger than its size allows.

    Raises:
        ArchiveError: If it is no archive, damaged, encrypted, packed in another way than numpy does or too far, here
            or while it is read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(archive, path.stat().st_size)
            yield archive
    except ArchiveError:
        raise
    except _BROKEN as error:
        raise ArchiveError(getattr(error, "strerror", None) or str(error) or type(error).__name__) from error


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    members = archive.infolist()
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
        raise ArchiveError("it is packed in another way than numpy does")
    unpacked = sum(member.file_size for member in members)
    if unpacked > max(ALWAYS_UNPACKED, MOST_UNPACKED * size):
        raise ArchiveError(f"{size} bytes claim to hold {unpacked}, more than {MOST_UNPACKED} times as many")


def array_headers(archive: zipfile.ZipFile) -> dict[str, ArrayHeader]:
    """Return the headers of the arrays of numbers and texts by name; arrays of other kinds are left out."""
    headers = {}
    for member in archive.infolist():
        if not member.filename.endswith(".npy"):
            continue
        with archive.open(member.filename) as file:
            header = _header(file)
        if header is None:
            continue
        if header.start + header.size > archive.getinfo(member.filename).file_size:
            raise ArchiveError(f"an array of shape {header.shape} is longer than its file")
        headers[member.filename.removesuffix(".npy")] = header
    return headers


def _header(file: IO[bytes]) -> ArrayHeader | None:
    """Return a header, None for an array of another kind."""
    start = file.read(8)
    if start[:6] != b"\x93NUMPY" or start[6:] not in _SIZE_BYTES:
        raise ArchiveError(f"an array begins with {start[:8]!r}, not as numpy writes it")
    length = _SIZE_BYTES[start[6:]]
    size = int.from_bytes(file.read(length), "little")
    text = file.read(min(size, _LONGEST_HEADER)).decode("latin-1")
    kind, order, shape = _KIND.search(text), _ORDER.search(text), _SHAPE.search(text)
    if len(text) != size or order is None:
        raise ArchiveError("the header of an array is cut or damaged")
    if kind is None:
        return None
    if shape is None:
        raise ArchiveError("the header of an array has no shape")
    lengths = tuple(int(word) for word in shape[1].replace(",", " ").split())
    if len(lengths) > MOST_DIMENSIONS:
        raise ArchiveError(f"an array has {len(lengths)} dimensions; allowed {MOST_DIMENSIONS}")
    try:
        return ArrayHeader(lengths, order[1] == "True", np.dtype(kind[1]), 8 + length + size)
    except TypeError:
        return None  # a long float that this processor does not have


def read_array(archive: zipfile.ZipFile, name: str, header: ArrayHeader) -> np.ndarray:
    """Return one array."""
    with archive.open(f"{name}.npy") as file:
        file.read(header.start)
        data = file.read(header.size)
    if len(data) != header.size:
        raise ArchiveError("an array ends early")
    if header.dtype.kind == "U":
        _check_letters(np.frombuffer(data, header.dtype.byteorder.replace("|", "=") + "u4"))
    return np.frombuffer(data, header.dtype).reshape(header.shape, order="F" if header.fortran else "C")


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays of numbers and texts of an archive by name."""
    with opened_archive(path) as archive:
        return {name: read_array(archive, name, header) for name, header in array_headers(archive).items()}


def _check_letters(codes: np.ndarray) -> None:
    """Refuse numbers that are no letters: numpy would make texts of them that nothing can print."""
    first, last = _SURROGATES
    if ((codes > _LAST_LETTER) | ((codes >= first) & (codes <= last))).any():
        raise ArchiveError("a text has letters that do not exist")
