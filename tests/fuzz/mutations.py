"""Damage for small valid files: bytes, text, TOML, JSON, NPZ and Parquet. Everything follows from the generator given.

A change of this module, or of the valid files in ``kinds.py``, gives other cases for the same numbers.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import polars as pl

Mutation = Callable[[Random, bytes], bytes]

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?")
NUMBERS = (
    b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1.7e308", b"1e-320", b"1e400", b"-1", b"0", b"-0.0", b"1e30",
    b"1e15", b"9" * 400, b"-" + b"9" * 400, b"1" * 5000, b"9223372036854775808", b"60000000", b"1_000", b"0.1e", b"--1",
    b"true", b"1,5", b"", b"0x7fffffffffffffff", b"4294967296", b"2",
)  # fmt: skip
VALUES = (
    b"true", b"[]", b"[[]]", b"{}", b'""', b'"x"', b"'*'", b"1979-05-27T07:32:00Z", b"07:32:00", b'[1, "a"]',
    b"{a = 1}", b"[[1, 2], [3]]", b'"\\u0000"', b'"\\u001b[31m"', b'"\\u202e"', b"[nan]", b"[1e308, 1e308]", b"-1",
    b'"../.."', b'"/dev/zero"', b'"1:2"', b'"0:0"', b'"{1..9999999}"', b'"' + b"*" * 30 + b'b"', b"[" * 3000,
    b"[" * 40 + b"]" * 40, b"{a=" * 3000, b"{a=" * 60 + b"1" + b"}" * 60, b'"' + b"x" * 150_000 + b'"',
    b"[" + b"1," * 20_000 + b"]", b"9" * 400, b"0." + b"1" * 10_000, b'"""', b'"' + b"7" * 5000 + b'"',
)  # fmt: skip
LINES = (
    b"unknown = 1", b"[unknown]", b"[[unknown]]", b".".join([b"a"] * 40) + b" = 1", b".".join([b"a"] * 4000) + b" = 1",
    b"[" + b".".join([b"a"] * 40) + b"]", b"# " + b"x" * 5000, b"=", b"]", b"<", b"\xff\xfe", b"\0",
    b"a" * 5000 + b" = 1",
    b"\xc2\x9b\xe2\x80\xae", b",".join([b"1"] * 3000), b" " * 5000, b"1;2;3", b'"', b"'", b"\r",
)  # fmt: skip
JSON_VALUES: tuple[Any, ...] = (
    5, -1, 1e308, 10**400, True, None, "", "x", "\x00", [], [[]], {}, [5], [None], ["a", 5], {"a": 1}, {"": []},
    "7" * 6000,
    [[1], "a"], ["x" * 20_000], list(range(3000)), {"q": "motor_torque", "time": "wrench"}, float("nan"), float("-inf"),
)  # fmt: skip
SHAPES = (
    "(1000000000000,)", "(60000000, 1)", "(1, 60000000)", "(2, 60000000)", "(60000000, 60000000)", "(-1,)", "(0,)",
    "(2, 0)",
    "(9223372036854775808,)", "(True,)", "('a',)", "()", "(3, 3, 3)", "(2.5,)", "5", "(" * 200 + ")" * 200, "(1e3,)",
    "(30,)", "(15, 2)", "(30, 1)", "None", "(2, -3)",
)  # fmt: skip
TYPES = (
    "'|O'", "'<U99999999'", "'<f8,<f8'", "[('a', '<f8')]", "'<M8[ns]'", "'<m8'", "'>f8'", "'|S5'", "'<c16'", "'|V8'",
    "5", "'<f2'", "'|b1'", "'<i8'", "'>u4'", "'<g'", "'a8'", "'<f16'", "''", "'<U3'",
)  # fmt: skip


def mutated(rng: Random, name: str, data: bytes) -> bytes:
    """Return a file with one to four faults, fit for its ending."""
    ending = name.rpartition(".")[2]
    choices = (*_BY_ENDING.get(ending, ()), *BYTES)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choice(choices)(rng, data)
    return data


def _span(rng: Random, data: bytes) -> tuple[int, int]:
    first = rng.randrange(len(data) + 1)
    return first, min(len(data), first + rng.choice((1, 2, 5, 20, 100, 1000)))


def flipped(rng: Random, data: bytes) -> bytes:
    """Flip up to eight bits."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 9) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def flipped_late(rng: Random, data: bytes) -> bytes:
    """Flip bits in the last kilobyte, where archives keep their directory."""
    cut = max(0, len(data) - 1000)
    return data[:cut] + flipped(rng, data[cut:])


def truncated(rng: Random, data: bytes) -> bytes:
    """Cut the end off, or the beginning."""
    place = rng.randrange(len(data) + 1)
    return data[:place] if rng.random() < 0.8 else data[place:]


def deleted(rng: Random, data: bytes) -> bytes:
    """Take a part out."""
    first, last = _span(rng, data)
    return data[:first] + data[last:]


def duplicated(rng: Random, data: bytes) -> bytes:
    """Repeat a part, sometimes often."""
    first, last = _span(rng, data)
    return data[:last] + data[first:last] * rng.choice((1, 1, 2, 50)) + data[last:]


def moved(rng: Random, data: bytes) -> bytes:
    """Put a part elsewhere."""
    first, last = _span(rng, data)
    rest = data[:first] + data[last:]
    place = rng.randrange(len(rest) + 1)
    return rest[:place] + data[first:last] + rest[place:]


def overwritten(rng: Random, data: bytes) -> bytes:
    """Write random bytes over a part."""
    first, last = _span(rng, data)
    return data[:first] + rng.randbytes(last - first) + data[last:]


def long_field(rng: Random, data: bytes) -> bytes:
    """Put a long run of one letter somewhere."""
    place = rng.randrange(len(data) + 1)
    return (
        data[:place]
        + rng.choice((b"x", b"9", b" ", b'"', b",", b"[")) * rng.choice((300, 9000, 140_000))
        + data[place:]
    )


def lengths(rng: Random, data: bytes) -> bytes:
    """Write an extreme whole number of four or eight bytes somewhere, as lengths and places are written."""
    width = rng.choice((4, 8))
    value = rng.choice((0, 1, 255, len(data), 1 << 16, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 62))
    content = (value & ((1 << 8 * width) - 1)).to_bytes(width, rng.choice(("little", "big")))
    place = rng.randrange(max(1, len(data) - width))
    return data[:place] + content + data[place + width :]


def numbers(rng: Random, data: bytes) -> bytes:
    """Replace up to three numbers by others, or by those found elsewhere in the file."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        found = list(NUMBER.finditer(data))
        if not found:
            return data
        place = rng.choice(found)
        new = rng.choice(NUMBERS) if rng.random() < 0.8 else rng.choice(found)[0]
        data = data[: place.start()] + new + data[place.end() :]
    return data


def lines(rng: Random, data: bytes) -> bytes:
    """Delete, repeat, insert or swap lines."""
    rows = data.split(b"\n")
    place, other = rng.randrange(len(rows)), rng.randrange(len(rows))
    match rng.randrange(5):
        case 0:
            del rows[place]
        case 1:
            rows[place:place] = [rows[other]] * rng.choice((1, 1, 30))
        case 2:
            rows[place], rows[other] = rows[other], rows[place]
        case 3:
            rows.insert(place, rng.choice(LINES))
        case _:
            del rows[place:other]
    return b"\n".join(rows)


def texts(rng: Random, data: bytes) -> bytes:
    """Put a word of the file in place of another."""
    found = list(re.finditer(rb"[A-Za-z_][A-Za-z_0-9]*", data))
    if not found:
        return data
    place, other = rng.choice(found), rng.choice(found)
    return data[: place.start()] + other[0] + data[place.end() :]


def encoded(rng: Random, data: bytes) -> bytes:
    """Write the text in another encoding, or with other line ends."""
    text = data.decode("utf-8", "replace")
    match rng.randrange(6):
        case 0:
            return text.encode("utf-16")
        case 1:
            return text.encode("utf-32")
        case 2:
            return b"\xef\xbb\xbf" + data
        case 3:
            return text.replace("e", "é").encode("latin-1", "replace")
        case 4:
            return data.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\n", b"\0\n")))
        case _:
            return data.replace(b",", rng.choice((b";", b"\t", b" ", b"|"))).replace(b".", rng.choice((b".", b",")))


def toml_values(rng: Random, data: bytes) -> bytes:
    """Give a key a value of another kind."""
    found = list(re.finditer(rb"= *([^\n#]+)", data))
    if not found:
        return data
    place = rng.choice(found)
    return data[: place.start(1)] + rng.choice(VALUES + NUMBERS) + data[place.end(1) :]


def toml_entries(rng: Random, data: bytes) -> bytes:
    """Change one entry of a list, or one value of an inline table."""
    found = list(re.finditer(rb"(?<=[\[,{=])([^\[\],{}=\n]+)(?=[\],}])", data))
    if not found:
        return data
    place = rng.choice(found)
    return data[: place.start(1)] + rng.choice(VALUES + NUMBERS) + data[place.end(1) :]


def described(rng: Random, text: str) -> str:
    """Change what a file of ours says of itself."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(content, dict) and content and rng.random() < 0.8:
        content[rng.choice(sorted(content))] = rng.choice(JSON_VALUES)
        return json.dumps(content)
    changed = rng.choice((numbers, flipped, truncated, duplicated, long_field))(rng, text.encode())
    return rng.choice((changed.decode("utf-8", "replace"), "[" * 3000, json.dumps(rng.choice(JSON_VALUES))))


def described_in_text(rng: Random, data: bytes) -> bytes:
    """Change what the first comment of a text log says."""
    first, _, rest = data.partition(b"\n")
    mark = b"# steelyard "
    return mark + described(rng, first.removeprefix(mark).decode("utf-8", "replace")).encode() + b"\n" + rest


def _archive(members: Sequence[tuple[str, bytes]], kind: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name are wanted here
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = kind
            archive.writestr(info, content)
    return file.getvalue()


def _members(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def in_archive(rng: Random, data: bytes) -> bytes:
    """Damage one array of an archive that stays whole otherwise."""
    try:
        members = _members(data)
    except (zipfile.BadZipFile, ValueError, RuntimeError, EOFError, OSError, zlib.error, lzma.LZMAError):
        return flipped(rng, data)
    if not members:
        return data
    place = rng.randrange(len(members))
    name, content = members[place]
    match rng.randrange(8):
        case 0:
            del members[place]
        case 1:
            members.append(
                (rng.choice((name, "q.npy", "x" * 60_000 + ".npy", "../q.npy", "a[1].npy", ".npy")), content)
            )
        case 2 | 3:
            members[place] = (name, rng.choice(BYTES)(rng, content))
        case 4:
            members[place] = (name, _other_text(rng, content))
        case 5:
            members[place] = (name, np_bytes(np.zeros((1, rng.choice((9, 20_000, 300_000))), np.int8)))
        case _:
            members[place] = (name, _other_header(rng, content))
    return _archive(members, rng.choice((zipfile.ZIP_STORED,) * 5 + (zipfile.ZIP_DEFLATED,) * 2 + (zipfile.ZIP_LZMA,)))


def np_bytes(array: np.ndarray) -> bytes:
    """Return an array as a ``.npy`` file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _other_header(rng: Random, content: bytes) -> bytes:
    """Change shape, kind, version or length in the header of an array."""
    if content[:6] != b"\x93NUMPY" or len(content) < 12:
        return content
    size = int.from_bytes(content[8:10], "little")
    header, body = content[10 : 10 + size].decode("latin-1"), content[10 + size :]
    match rng.randrange(5):
        case 0:
            header = header[: rng.randrange(len(header) + 1)]
        case 1 | 2:
            header = re.sub(r"'shape': \([^)]*\)", lambda _: f"'shape': {rng.choice(SHAPES)}", header)
        case 3:
            header = re.sub(r"'descr': '[^']*'", lambda _: f"'descr': {rng.choice(TYPES)}", header)
        case _:
            return content[:6] + rng.randbytes(rng.choice((1, 2, 4))) + content[8:]
    return content[:8] + len(header).to_bytes(2, "little") + header.encode("latin-1", "replace") + body


def _other_text(rng: Random, content: bytes) -> bytes:
    """Change what an archive of ours says of itself, where the array is one text."""
    start = 10 + int.from_bytes(content[8:10], "little")
    if b"'descr': '<U" not in content[:start]:
        return content
    text = content[start:].decode("utf-32-le", "replace")
    return np_bytes(np.array(described(rng, text)))


# Columns that other programs write: rows to a column of so many.
_COLUMNS: tuple[Callable[[int], pl.Series], ...] = (
    *(
        lambda n, value=value: pl.Series([value] * n)
        for value in (
            "x", "1.5", b"\xff", True, None, 1e308, float("nan"), {"a": 1, "b": "x"}, [], [1.0, 2.0], ["a"], [[1]],
            [{"a": 1}], [0.0] * 20_000,
        )
    ),
    *(
        lambda n, kind=kind: pl.Series(range(n)).cast(kind)
        for kind in (pl.Date, pl.Time, pl.Duration("ms"), pl.Datetime("ns", "UTC"), pl.Decimal(20, 3), pl.UInt64)
    ),
    *(lambda n, kind=kind: pl.Series(["a"] * n, dtype=kind) for kind in (pl.Categorical, pl.Enum(["a"]))),
    lambda n: pl.Series([[1.0] * (k % 3) for k in range(n)]),
    lambda n: pl.Series([None, [1.0]] * n).head(n),
    lambda n: pl.Series([[1.0, 2.0]] * n, dtype=pl.Array(pl.Float64, 2)),
)  # fmt: skip


def foreign_columns(rng: Random, data: bytes) -> bytes:
    """Give one or two columns of a Parquet file another kind."""
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return data
    for _ in range(rng.choice((1, 2))):
        name = rng.choice([*frame.columns, "new", "", "x" * 3000])
        frame = frame.with_columns(rng.choice(_COLUMNS)(frame.height).alias(name))
    file = io.BytesIO()
    frame.head(rng.choice((0, 1, frame.height, frame.height))).write_parquet(
        file, compression=rng.choice(("zstd", "uncompressed"))
    )
    return file.getvalue()


# Where HDF5 keeps its structure: trees, heaps, symbol tables, headers of objects.
_MARKS = (b"\x89HDF", b"TREE", b"HEAP", b"SNOD", b"OHDR", b"OCHK", b"GCOL", b"FRHP", b"FHDB", b"BTHD", b"EAHD", b"FAHD")
_INTEGERS = (
    0, 1, 2, 7, 8, 14, 15, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32,
    10**12, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
)  # fmt: skip


def integers(rng: Random, data: bytes) -> bytes:
    """Replace integers of one to eight bytes, near the marks of HDF5 or anywhere: lengths, counts, kinds, addresses."""
    changed = bytearray(data)
    marks = [0, *(place.start() for mark in _MARKS for place in re.finditer(re.escape(mark), data))]
    for _ in range(rng.choice((1, 1, 2, 3)) if len(data) > 8 else 0):
        size = rng.choice((1, 1, 2, 4, 8))
        place = rng.choice(marks) + rng.randrange(64) if rng.random() < 0.5 else rng.randrange(len(data))
        place = min(place - place % size if rng.random() < 0.7 else place, len(data) - size)
        old = int.from_bytes(changed[place : place + size], "little")
        new = rng.choice((rng.choice(_INTEGERS), old + rng.choice((-8, -1, 1, 8, 64)), rng.choice(marks)))
        changed[place : place + size] = (new % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed)


def in_compressed(rng: Random, data: bytes) -> bytes:
    """Damage one compressed variable of a MAT-file inside, and pack it again, or put a bomb in its place."""
    place = 128
    while place + 8 <= len(data):
        kind, size = (int.from_bytes(data[k : k + 4], "little") for k in (place, place + 4))
        if kind == 15 and rng.random() < 0.4:
            break
        place += 8 + (size if kind == 15 else -(-size // 8) * 8)
    else:
        return integers(rng, data)
    try:
        content = zlib.decompress(data[place + 8 : place + 8 + size])
    except zlib.error:
        return integers(rng, data)
    content = rng.choice((integers, integers, *BYTES))(rng, content) if rng.random() < 0.95 else bytes(80_000_000)
    packed = zlib.compress(content)
    head = b"".join(number.to_bytes(4, "little") for number in (15, len(packed)))
    return data[:place] + head + packed + data[place + 8 + size :]


def in_encoding(rng: Random, data: bytes) -> bytes:
    """Damage the text of a file in UTF-16 and write it in that encoding again."""
    coding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(data[:2])
    if coding is None:
        return rng.choice(TEXT)(rng, data)
    text = rng.choice(TEXT)(rng, data[2:].decode(coding, "replace").encode())
    return data[:2] + text.decode("utf-8", "replace").encode(coding)


BYTES: tuple[Mutation, ...] = (flipped, truncated, deleted, duplicated, moved, overwritten, long_field)
TEXT: tuple[Mutation, ...] = (numbers, numbers, lines, lines, texts, encoded)
TOML: tuple[Mutation, ...] = (toml_values, toml_values, toml_values, toml_entries, *TEXT)
_BY_ENDING: dict[str, tuple[Mutation, ...]] = {
    "toml": TOML,
    "urdf": TEXT,
    "xml": TEXT,
    "csv": (*TEXT, described_in_text),
    "txt": TEXT,
    "json": TEXT,
    "npz": (in_archive,) * 12 + (flipped_late,),
    "yaml": TEXT,
    **dict.fromkeys(("bag", "db3", "mcap"), (lengths, lengths, lengths, flipped_late)),
    "h5": (integers,) * 14,
    "mat": (integers,) * 8 + (in_compressed,) * 8,
    "asc": (in_encoding,) * 12,
    "parquet": (foreign_columns,) * 4 + (flipped_late,) * 6,
}
