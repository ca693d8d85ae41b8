"""Parquet files, read in blocks; those of a LeRobot data set with the names that it describes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl

from ..archive import ALWAYS_UNPACKED, MOST_UNPACKED
from ..errors import TableError
from ..files import silent_panics
from .columns import MOST_ROWS, NamedColumns
from .table import LONGEST_NAME, Block, ReadLog, Table, TextOptions, check_width, expanded_names

BLOCK_ROWS = 262_144
INFO = "meta/info.json"
"""Describes a LeRobot data set, from its folder."""
LARGEST_INFO = 10_000_000
EPISODE = "episode_index"
_LISTS = (pl.List, pl.Array)
_PLAIN = (pl.Boolean, pl.String, pl.Null)
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def open_parquet(path: Path, options: TextOptions) -> Table:
    """Return a Parquet file as a table; a column of lists is ``name[1]`` ..., or as the data set names its entries."""
    names = dataset_names(path)
    if options.episode is None:
        return parquet_table(path, names)
    return parquet_table(path, names, rows_of_episode(path, options.episode), (f"episode {options.episode}",))


def parquet_table(
    path: Path,
    entries: Mapping[str, Sequence[str]] = MappingProxyType({}),
    rows: tuple[int, int] | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """Return a Parquet file as a table.

    Args:
        path: The file.
        entries: Names of the entries of columns of lists, where they are known.
        rows: First row and number of rows to read; all by default.
        notes: What to note of it.
    """
    frame, schema, total, places = _opened(path, entries)
    start, count = rows or (0, total)

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        columns = list(places.values())
        chosen = [_expression(*columns[k], schema, f"{position}") for position, k in enumerate(wanted)]
        lazy = frame.select(chosen)
        done, size = 0, path.stat().st_size
        while done < count:
            try:
                with silent_panics():
                    block = lazy.slice(start + done, min(BLOCK_ROWS, count - done)).collect()
            except _BROKEN as error:
                raise TableError(f"{path}: cannot be read as numbers ({_first_line(error)})") from error
            done += block.height
            log.bytes_done = size * done // count
            if not block.height:
                return
            yield Block(tuple(np.ascontiguousarray(series.to_numpy()) for series in block.iter_columns()))

    return Table(str(path), tuple(places), True, read, {"notes": list(notes)} if notes else {})


def episodes_in(path: Path) -> np.ndarray:
    """Return the number of the episode of each row of a file of a data set."""
    try:
        with silent_panics():
            frame = pl.scan_parquet(path, glob=False)
            if EPISODE not in frame.collect_schema():
                raise TableError(f"{path}: has no column '{EPISODE}'; leave episode out")
            _check_size(path, frame.select(pl.len()).collect().item())
            found = frame.select(pl.col(EPISODE).cast(pl.Int64)).collect()
    except _BROKEN as error:
        raise TableError(f"{path}: is no readable Parquet file ({_first_line(error)})") from error
    return found[EPISODE].fill_null(-1).to_numpy()


def rows_of_episode(path: Path, episode: int) -> tuple[int, int]:
    """Return first row and number of rows of an episode in a file."""
    numbers = episodes_in(path)
    found = np.flatnonzero(numbers == episode)
    if not found.size:
        held = f"{numbers.min()} to {numbers.max()}" if numbers.size else "none"
        raise TableError(f"{path}: has no episode {episode}; it holds {held}")
    if found.size != found[-1] - found[0] + 1:
        raise TableError(f"{path}: the rows of episode {episode} are not together; sort them by episode and time")
    return int(found[0]), int(found.size)


def dataset_names(path: Path) -> dict[str, list[str]]:
    """Return the names of the entries of list columns from ``meta/info.json`` of the data set that a file is in."""
    info = path.absolute().parent.parent.parent / INFO
    try:
        return entry_names(json.loads(info.read_bytes())) if info.stat().st_size <= LARGEST_INFO else {}
    except (OSError, ValueError, RecursionError):
        return {}  # not a file of such a data set


def entry_names(info: object) -> dict[str, list[str]]:
    """Return the names of the entries of each feature that a data set describes."""
    features = info.get("features") if isinstance(info, dict) else None
    found = {}
    for feature, about in features.items() if isinstance(features, dict) else ():
        names = about.get("names") if isinstance(about, dict) else None
        if isinstance(names, dict) and len(names) == 1:  # version 2.0: {"motors": [...]}
            names = next(iter(names.values()))
        if isinstance(names, list) and all(isinstance(name, str) and _is_name(name) for name in names):
            found[feature] = names
    return {feature: names for feature, names in found.items() if len(set(names)) == len(names)}


def _is_name(name: str) -> bool:
    return name.isprintable() and 0 < len(name) < LONGEST_NAME


def parquet_columns(path: Path) -> NamedColumns:
    """Return a Parquet file as columns of numbers and texts."""
    frame, schema, total, places = _opened(path, dataset_names(path))
    if total > MOST_ROWS:
        raise TableError(f"{path}: has {total} rows; at most {MOST_ROWS} are allowed, average or thin them out")
    chosen = [
        pl.col(name).fill_null("").alias(column)
        if schema[name] == pl.String
        else _expression(name, place, schema, column)
        for column, (name, place) in places.items()
    ]
    try:
        with silent_panics():
            found = frame.select(chosen).collect()
    except _BROKEN as error:
        raise TableError(f"{path}: cannot be read as numbers ({_first_line(error)})") from error
    cells = {series.name: series.to_list() if series.dtype == pl.String else series.to_numpy() for series in found}
    return NamedColumns(str(path), MappingProxyType(cells), total, range(1, total + 1), decimal_comma=True)


def _opened(
    path: Path, entries: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> tuple[pl.LazyFrame, pl.Schema, int, dict[str, tuple[str, int | None]]]:
    """Return the frame, its readable columns, its number of rows, and by name where each column of the table is."""
    try:
        with silent_panics():
            frame = pl.scan_parquet(path, glob=False)
            schema = pl.Schema({name: kind for name, kind in frame.collect_schema().items() if _is_readable(kind)})
            total = frame.select(pl.len()).collect().item()
            _check_size(path, total * len(schema))
            first = frame.select(list(schema)).head(1).collect()
    except _BROKEN as error:
        raise TableError(f"{path}: is no readable Parquet file ({_first_line(error)})") from error
    places: dict[str, tuple[str, int | None]] = {}
    for name, kind in schema.items():
        if kind.base_type() in _LISTS:
            width = len(first[name][0]) if first.height and first[name][0] is not None else 0
            check_width(width, str(path))
            places |= {
                column: (name, place) for place, column in enumerate(expanded_names(name, width, entries.get(name)))
            }
        else:
            places[name] = (name, None)
    return frame, schema, total, places


def _is_readable(kind: pl.DataType) -> bool:
    """Return whether a column holds numbers, or texts that may be numbers, or lists of them; others are left out."""
    inner = getattr(kind, "inner", None) if kind.base_type() in _LISTS else kind
    return inner is not None and (inner.is_numeric() or inner.is_temporal() or inner.base_type() in _PLAIN)


def _check_size(path: Path, numbers: int) -> None:
    """Refuse a file that claims to hold more than its size allows, before memory is allocated."""
    size = path.stat().st_size
    if 8 * numbers > max(ALWAYS_UNPACKED, MOST_UNPACKED * size):
        raise TableError(
            f"{path}: {size} bytes claim to hold {numbers} numbers; measurements do not pack so well, write it again"
        )


def _expression(name: str, place: int | None, schema: pl.Schema, alias: str) -> pl.Expr:
    column = pl.col(name)
    if schema[name].base_type() is pl.Datetime:
        column = column.dt.epoch("us") * 1e-6
    if place is not None:
        column = column.cast(pl.List(pl.Float64)).list.get(place, null_on_oob=True)
    return column.cast(pl.Float64).fill_null(float("nan")).alias(alias)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]
