"""Parquet files, read in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ...errors import RecordingError
from ..setup import TextOptions
from .memory import expanded_names
from .table import Block, ReadLog, Table

BLOCK_ROWS = 262_144
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def open_parquet(path: Path, options: TextOptions) -> Table:
    """Return a Parquet file as a table; a column of lists is ``name[1]`` ... ``name[k]``."""
    try:
        frame = pl.scan_parquet(path, glob=False)
        schema = frame.collect_schema()
        first = frame.head(1).collect()
        total = frame.select(pl.len()).collect().item()
    except _BROKEN as error:
        raise RecordingError(f"{path}: is no readable Parquet file ({_first_line(error)})") from error
    names: list[str] = []
    places: list[tuple[str, int | None]] = []
    for name, kind in schema.items():
        if kind.base_type() in (pl.List, pl.Array):
            width = len(first[name][0]) if first.height and first[name][0] is not None else 0
            names += expanded_names(name, width)
            places += [(name, place) for place in range(width)]
        else:
            names.append(name)
            places.append((name, None))

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        chosen = [_expression(*places[k], schema, f"{position}") for position, k in enumerate(wanted)]
        lazy = frame.select(chosen)
        rows, first_row, size = BLOCK_ROWS, 0, path.stat().st_size
        while rows == BLOCK_ROWS:
            try:
                block = lazy.slice(first_row, BLOCK_ROWS).collect()
            except _BROKEN as error:
                raise RecordingError(f"{path}: cannot be read as numbers ({_first_line(error)})") from error
            rows = block.height
            first_row += rows
            log.bytes_done = size * first_row // max(total, 1)
            if rows:
                yield Block(tuple(np.ascontiguousarray(series.to_numpy()) for series in block.iter_columns()))

    return Table(str(path), tuple(names), True, read)


def _expression(name: str, place: int | None, schema: pl.Schema, alias: str) -> pl.Expr:
    column = pl.col(name)
    if schema[name].base_type() is pl.Datetime:
        column = column.dt.epoch("us") * 1e-6
    if place is not None:
        column = column.cast(pl.List(pl.Float64)).list.get(place, null_on_oob=True)
    return column.cast(pl.Float64).fill_null(float("nan")).alias(alias)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]
