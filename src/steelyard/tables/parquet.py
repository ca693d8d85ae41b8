"""Parquet files, read in blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import MappingProxyType

import numpy as np
import polars as pl

from ..archive import ALWAYS_UNPACKED, MOST_UNPACKED
from ..errors import TableError
from .columns import MOST_ROWS, NamedColumns
from .table import Block, ReadLog, Table, TextOptions, check_width, expanded_names

BLOCK_ROWS = 262_144
_LISTS = (pl.List, pl.Array)
_PLAIN = (pl.Boolean, pl.String, pl.Null)
_ONE_AT_A_TIME = Lock()
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def open_parquet(path: Path, options: TextOptions) -> Table:
    """Return a Parquet file as a table; a column of lists is ``name[1]`` ... ``name[k]``."""
    frame, schema, total, places = _opened(path)

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        columns = list(places.values())
        chosen = [_expression(*columns[k], schema, f"{position}") for position, k in enumerate(wanted)]
        lazy = frame.select(chosen)
        rows, first_row, size = BLOCK_ROWS, 0, path.stat().st_size
        while rows == BLOCK_ROWS:
            try:
                with _silent_panics():
                    block = lazy.slice(first_row, BLOCK_ROWS).collect()
            except _BROKEN as error:
                raise TableError(f"{path}: cannot be read as numbers ({_first_line(error)})") from error
            rows = block.height
            first_row += rows
            log.bytes_done = size * first_row // max(total, 1)
            if rows:
                yield Block(tuple(np.ascontiguousarray(series.to_numpy()) for series in block.iter_columns()))

    return Table(str(path), tuple(places), True, read)


def parquet_columns(path: Path) -> NamedColumns:
    """Return a Parquet file as columns of numbers and texts."""
    frame, schema, total, places = _opened(path)
    if total > MOST_ROWS:
        raise TableError(f"{path}: has {total} rows; at most {MOST_ROWS} are allowed, average or thin them out")
    chosen = [
        pl.col(name).fill_null("").alias(column)
        if schema[name] == pl.String
        else _expression(name, place, schema, column)
        for column, (name, place) in places.items()
    ]
    try:
        with _silent_panics():
            found = frame.select(chosen).collect()
    except _BROKEN as error:
        raise TableError(f"{path}: cannot be read as numbers ({_first_line(error)})") from error
    cells = {series.name: series.to_list() if series.dtype == pl.String else series.to_numpy() for series in found}
    return NamedColumns(str(path), MappingProxyType(cells), total, range(1, total + 1), decimal_comma=True)


def _opened(path: Path) -> tuple[pl.LazyFrame, pl.Schema, int, dict[str, tuple[str, int | None]]]:
    """Return the frame, its readable columns, its number of rows, and by name where each column of the table is."""
    try:
        with _silent_panics():
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
            places |= {column: (name, place) for place, column in enumerate(expanded_names(name, width))}
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


@contextmanager
def _silent_panics() -> Iterator[None]:
    """Send file descriptor 2 nowhere: polars prints a panic with its stack there before Python sees the exception."""
    with _ONE_AT_A_TIME:
        try:
            saved = os.dup(2)
        except OSError:  # there is no standard error to keep silent
            yield
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, 2)
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            os.close(nowhere)


def _expression(name: str, place: int | None, schema: pl.Schema, alias: str) -> pl.Expr:
    column = pl.col(name)
    if schema[name].base_type() is pl.Datetime:
        column = column.dt.epoch("us") * 1e-6
    if place is not None:
        column = column.cast(pl.List(pl.Float64)).list.get(place, null_on_oob=True)
    return column.cast(pl.Float64).fill_null(float("nan")).alias(alias)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]
