"""Arrays in memory as a table: numpy arrays by name, pandas and polars frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import TableError
from .table import Block, ReadLog, Table


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
