"""A table: named columns of numbers read in blocks, from a file or from arrays in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import TableError

FEW = 5
"""Places of faults that are stored."""
MOST_COLUMNS = 10_000
LONGEST_NAME = 500
LARGEST_GAIN = 1e15


@dataclass(frozen=True)
class TextOptions:
    """How a file is laid out, a text file above all, and what of it is read; None is found out from the file.

    Attributes:
        separator: ``,`` ``;`` tab, or ``whitespace`` for any run of blanks.
        header: Whether the first line names the columns.
        comment: What comment lines start with.
        skip_lines: Lines to leave out at the top.
        decimal: ``.`` or ``,``.
        reshape: For files of one value a line: values that make a row.
        topic: For ROS bags: name of the topic.
        group: For HDF5 and MAT files: the group or structure that is the recording; ``/`` for all of the file.
        episode: For LeRobot data sets: number of the episode.
    """

    separator: str | None = None
    header: bool | None = None
    comment: tuple[str, ...] = ("#", "%", "//")
    skip_lines: int = 0
    decimal: str | None = None
    reshape: int | None = None
    topic: str | None = None
    group: str | None = None
    episode: int | None = None


@dataclass(frozen=True)
class Block:
    """Some rows of a table.

    Attributes:
        columns: The requested columns, each (rows,).
        bad: Rows that are no data (garbage or cut lines), (rows,); None if there are none. They keep their place, so
            that files side by side stay in step.
    """

    columns: tuple[np.ndarray, ...]
    bad: np.ndarray | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.columns[0].size if self.columns else 0

    def part(self, first: int, last: int) -> Block:
        """Return rows ``first`` to ``last`` (not included), without copying."""
        bad = None if self.bad is None else self.bad[first:last]
        return Block(tuple(column[first:last] for column in self.columns), bad)


@dataclass
class ReadLog:
    """What happened while a table was read; filled in as it goes.

    Attributes:
        garbage: Lines that do not parse.
        truncated: Lines with too few values.
        garbage_lines: Numbers of the first few, from 1.
        truncated_lines: Numbers of the first few, from 1.
        remarks: Other things worth a finding: a last line without an end.
        bytes_done: How far the reading came.
    """

    garbage: int = 0
    truncated: int = 0
    garbage_lines: list[int] = field(default_factory=list)
    truncated_lines: list[int] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    bytes_done: int = 0


@dataclass(frozen=True)
class Table:
    """Columns of numbers, ready to be read.

    Attributes:
        path: The file, or a name for data in memory.
        names: Names of the columns; ``column_1`` and so on if the file names none.
        named: Whether the names are the file's own.
        read: Given column numbers (from 0) and a log to fill, returns the blocks.
        described: What the file says of itself (see ``write_recording``).
        on_disk: Whether ``path`` is a file with a hash and a size.
        left_out: What may hold a column that is missed, and how to get at it; empty if nothing does.
    """

    path: str
    names: tuple[str, ...]
    named: bool
    read: Callable[[Sequence[int], ReadLog], Iterator[Block]]
    described: Mapping[str, Any] = field(default_factory=dict)
    on_disk: bool = True
    left_out: str = ""


def check_width(columns: int, path: str) -> None:
    """Refuse more columns than a log can have, before their names are made."""
    if columns > MOST_COLUMNS:
        raise TableError(
            f"{path}: has {columns} columns; allowed are {MOST_COLUMNS}, is a row one sample, and the separator right?"
        )


def check_names(table: Table) -> None:
    """Refuse names of columns that are too many or too long to be looked through."""
    check_width(len(table.names), table.path)
    longest = max(table.names, key=len, default="")
    if len(longest) > LONGEST_NAME:
        raise TableError(
            f"{table.path}: the name of column {table.names.index(longest) + 1} has {len(longest)} letters "
            f"('{longest[:20]}...'); allowed {LONGEST_NAME}, is the separator right?"
        )


def description_from(text: str) -> dict[str, Any]:
    """Return what a file says of itself, as ``write_recording`` writes it, without what is not as it should be.

    Args:
        text: A JSON object with ``joints``, ``payload``, ``torques``, ``gain`` and ``notes``.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key: content[key] for key, fits in _DESCRIBED.items() if key in content and fits(content[key])}


def _is_text(value: object) -> bool:
    # JSON can hold halves of letters that nothing can print.
    return isinstance(value, str) and value.encode("utf-8", "replace").decode() == value


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(_is_text(entry) for entry in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_GAIN


def _is_numbers(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


def _is_table(entry_fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, dict) and all(_is_text(name) and entry_fits(entry) for name, entry in value.items())
    )


_DESCRIBED: dict[str, Callable[[object], bool]] = {
    "recording": lambda value: isinstance(value, int),
    "joints": _is_texts,
    "payload": _is_text,
    "torques": _is_table(_is_text),
    "gain": _is_table(_is_numbers),
    "gain_covariance": _is_table(lambda value: isinstance(value, list) and all(map(_is_numbers, value))),
    "notes": _is_texts,
}


def reshaped(table: Table, width: int) -> Table:
    """Return a table of ``width`` columns from a table of one."""
    if len(table.names) != 1:
        raise TableError(
            f"{table.path}: has {len(table.names)} columns; reshape = {width} is for files of one value a line"
        )
    check_width(width, table.path)

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        rest = np.empty(0)
        for block in table.read([0], log):
            _refuse_lost_lines(table.path, block, log)
            values = np.concatenate([rest, block.columns[0]])
            rows = values.size // width
            rest = values[rows * width :]
            matrix = values[: rows * width].reshape(rows, width).T
            if rows:
                yield Block(tuple(np.ascontiguousarray(matrix[k]) for k in wanted))
        if rest.size:
            log.truncated += 1
            log.remarks.append(f"the last row has {rest.size} of {width} values and is left out")

    names = tuple(f"{table.names[0]}[{number}]" for number in range(1, width + 1))
    return replace(table, names=names, read=read)


def _refuse_lost_lines(path: str, block: Block, log: ReadLog) -> None:
    if block.bad is not None and block.bad.any():
        line = (log.garbage_lines + log.truncated_lines)[0]
        raise TableError(
            f"{path}: line {line} is no number; in a file of one value a line its loss would shift every joint after it"
        )


def table_from_arrays(
    arrays: Mapping[str, Any], path: str = "arrays", described: Mapping[str, Any] | None = None
) -> Table:
    """Return a table of arrays by name: (N,), (N, k), or (k, N) with k < N or where a one-dimensional one is N long."""
    checked = {str(name): _numbers(name, values, path) for name, values in arrays.items()}
    checked = {name: values for name, values in checked.items() if values.size}
    samples = sample_count({name: values.shape for name, values in checked.items()}, path)
    joints = (described or {}).get("joints")
    names, columns = [], []
    for name, values in checked.items():
        if values.ndim == 1:
            names.append(name)
            columns.append(values)
            continue
        across = values if samples_last(values.shape, samples, described) else values.T
        names += expanded_names(name, len(across), joints)
        columns += list(across)

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        chosen = tuple(columns[column] for column in wanted)
        check_lengths({names[column]: columns[column].size for column in wanted}, path)
        yield Block(chosen)

    return Table(path, tuple(names), True, read, described or {}, on_disk=False)


def table_from_frame(frame: Any) -> Table:
    """Return a table of a pandas or polars DataFrame."""
    if not hasattr(frame, "columns") or not hasattr(frame, "__getitem__"):
        raise TableError(f"a pandas or polars DataFrame is expected; got {type(frame).__name__}")
    names = tuple(str(name) for name in frame.columns)
    if len(set(names)) != len(names):
        raise TableError("the frame has two columns of one name; rename one")
    keys = list(frame.columns)

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        yield Block(tuple(_numbers(names[k], frame[keys[k]].to_numpy(), "frame", flat=True) for k in wanted))

    return Table("frame", names, True, read, on_disk=False)


def expanded_names(name: str, count: int, joints: Sequence[str] | None = None) -> list[str]:
    """Return the column names of a two-dimensional array: ``q[1]`` ..., or by joint where the file names them."""
    if joints is not None and len(joints) == count:
        return [f"{name}[{joint}]" for joint in joints]
    return [f"{name}[{number}]" for number in range(1, count + 1)]


def sample_count(shapes: Mapping[str, tuple[int, ...]], path: str) -> int:
    """Return N: the length of the longest axis of all arrays."""
    longest = max((max(shape, default=0) for shape in shapes.values()), default=0)
    if not longest:
        raise TableError(f"{path}: there are no numbers in it; arrays of samples are expected")
    return longest


def samples_last(shape: tuple[int, ...], samples: int, described: Mapping[str, Any] | None) -> bool:
    """Return whether the samples run along the last axis; square arrays have a row a sample unless we wrote them."""
    if described:
        return True
    return shape[1] == samples and shape[0] != samples


def check_lengths(lengths: Mapping[str, int], path: str) -> None:
    """Refuse arrays of different numbers of samples."""
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:6])
        raise TableError(f"{path}: the numbers of samples differ ({shown}); they must be equal")


def _numbers(name: Any, values: Any, path: str, flat: bool = False) -> np.ndarray:
    try:
        if np.asarray(values).dtype.kind == "M":
            values = np.asarray(values).astype("datetime64[ns]").astype(np.int64) * 1e-9
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TableError(f"{path}: '{name}' is not numbers; give numbers or leave it out") from error
    if array.ndim not in ((1,) if flat else (1, 2)):
        raise TableError(f"{path}: '{name}' has shape {array.shape}; one row or column a sample is expected")
    return array
