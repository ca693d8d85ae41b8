"""HDF5 files and MATLAB's version 7.3, read in blocks by a process of their own (``hdf5_process.py``)."""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from ..archive import ALWAYS_UNPACKED, MOST_UNPACKED
from ..errors import TableError
from .columns import MOST_ROWS, NamedColumns
from .datasets import Dataset, DatasetTree, Place, sampled_columns
from .table import Block, ReadLog, Table, TextOptions

BLOCK_ROWS = 65_536
BLOCK_BYTES = 1 << 25
LARGE_CHUNK = 1 << 25
"""Chunks beyond this are not cached: a block takes all of them."""
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def is_hdf5(path: Path) -> bool:
    """Return whether a file is HDF5, behind a header of another program or not."""
    with path.open("rb") as file:
        head = file.read(4096)
    return any(head[start : start + len(SIGNATURE)] == SIGNATURE for start in (0, 512, 1024, 2048))


def open_hdf5(path: Path, options: TextOptions, matlab: bool = False) -> Table:
    """Return the datasets of a file as a table.

    Args:
        path: The file.
        options: ``group`` chooses a part of the file.
        matlab: Whether MATLAB wrote it: axes are swapped, and names of structures joined by points.
    """
    content = sampled_columns(_tree(path, matlab), options.group)
    places = list(content.places.values())

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        if content.remark:
            log.remarks.append(content.remark)
        size = path.stat().st_size
        for done, columns in _blocks(path, [places[k] for k in wanted], content.samples):
            log.bytes_done = size * done // content.samples
            yield Block(columns)

    return Table(str(path), tuple(content.places), True, read, left_out=content.deep)


def hdf5_columns(path: Path, options: TextOptions, matlab: bool = False) -> NamedColumns:
    """Return the datasets of a small file as columns of numbers and texts; arguments as for :func:`open_hdf5`."""
    content = sampled_columns(_tree(path, matlab), options.group)
    if content.samples > MOST_ROWS:
        raise TableError(
            f"{path}: has {content.samples} rows; at most {MOST_ROWS} are allowed, average or thin them out"
        )
    blocks = [columns for _, columns in _blocks(path, list(content.places.values()), content.samples)]
    cells: dict[str, Sequence[str] | np.ndarray] = {
        name: np.concatenate([columns[k] for columns in blocks]) for k, name in enumerate(content.places)
    }
    for name, dataset in content.texts.items():
        cells[name] = _ask(path, "texts", dataset=dataset.path)[0]["texts"]
    _close(path)
    rows = content.samples
    return NamedColumns(str(path), MappingProxyType(cells), rows, range(1, rows + 1))


def _tree(path: Path, matlab: bool) -> DatasetTree:
    found, _ = _ask(path, "list")
    _close(path)
    datasets = [_dataset(entry) for entry in found["datasets"]]
    _check_size(path, datasets)
    deep = {name: tuple(shape[::-1] if matlab else shape) for name, shape in found["deep"]}
    return DatasetTree(str(path), datasets, found["groups"], found["skipped"], matlab, matlab, deep)


def _dataset(entry: Mapping[str, Any]) -> Dataset:
    fields = tuple((name, width) for name, width in entry["fields"])
    return Dataset(entry["path"], tuple(entry["shape"]), entry["size"], entry["text"], fields, tuple(entry["chunks"]))


def _check_size(path: Path, datasets: Sequence[Dataset]) -> None:
    """Refuse a file that claims to hold more than its size allows, before memory is allocated."""
    size = path.stat().st_size
    claimed = sum(math.prod(dataset.shape) * dataset.size for dataset in datasets)
    chunk = max((math.prod(dataset.chunks) * dataset.size for dataset in datasets), default=0)
    if max(claimed, chunk) > max(ALWAYS_UNPACKED, MOST_UNPACKED * size):
        raise TableError(
            f"{path}: {size} bytes claim to hold {max(claimed, chunk)}, more than {MOST_UNPACKED} times as many; "
            "measurements do not pack so well, write it again"
        )


def _blocks(path: Path, wanted: Sequence[Place], samples: int) -> Iterator[tuple[int, tuple[np.ndarray, ...]]]:
    """Yield the rows read so far, and columns of the next ones."""
    reads, order, width = [], [], 0
    ordered = sorted(range(len(wanted)), key=lambda k: (wanted[k].dataset.path, wanted[k].field or ""))
    for (dataset, field, axis), places in groupby(
        ordered, lambda k: (wanted[k].dataset, wanted[k].field, wanted[k].axis)
    ):
        members = list(places)
        across = [wanted[k].across for k in members]
        reads.append([dataset.path, field, axis, across])
        order += members
        width += max(across) - min(across) + 1
    rows = max(1, min(BLOCK_ROWS, BLOCK_BYTES // (8 * max(width, 1))))
    rows = max([rows, *(_chunk_rows(place) for place in wanted)])
    finished = False
    try:
        for first in range(0, samples, rows):
            last = min(samples, first + rows)
            _, data = _ask(path, "numbers", reads=reads, first=first, last=last)
            values = np.frombuffer(data).reshape(len(wanted), last - first)
            columns: list[Any] = [None] * len(wanted)
            for row, k in enumerate(order):
                columns[k] = values[row]
            yield last, tuple(columns)
        finished = True
        _close(path)
    finally:
        if not finished:  # perhaps in a garbage collection during another request: the next one says it
            _TO_CLOSE.append(os.path.abspath(path))


def _chunk_rows(place: Place) -> int:
    """Return the rows of a chunk that is too large for the cache, else 0."""
    chunks = place.dataset.chunks
    return chunks[place.axis] if chunks and math.prod(chunks) * place.dataset.size > LARGE_CHUNK else 0


_LOCK = Lock()
_RUNNING: dict[int, subprocess.Popen[bytes]] = {}
"""The reading process of this process, by its id: one that was forked off has its own."""
_TO_CLOSE: list[str] = []
"""Files whose reading was given up."""


def _ask(path: Path, what: str, **more: Any) -> tuple[dict[str, Any], bytes]:
    """Return the answer of the reading process, and the bytes behind it."""
    with _LOCK:
        process = _process()
        closed, _TO_CLOSE[:] = _TO_CLOSE[:], []
        content = {"what": what, "path": os.path.abspath(path), "close": closed, **more}
        request = json.dumps(content).encode("ascii") + b"\n"
        try:
            reply, data = _exchange(process, request)
        except (OSError, EOFError, ValueError) as error:
            _end()
            raise TableError(
                f"{path}: the HDF5 library fails in reading it, or takes too long; the file is damaged, copy it again"
            ) from error
        except BaseException:  # an answer that nobody reads would be taken for that to the next request
            _end()
            raise
    if "error" in reply:
        raise TableError(f"{path}: is no readable HDF5 file ({reply['error']}); copy or write it again")
    return reply, data


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> tuple[dict[str, Any], bytes]:
    requests, answers = cast("Any", process.stdin), cast("Any", process.stdout)
    requests.write(request)
    requests.flush()
    line = answers.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    reply = json.loads(line)
    data = answers.read(reply.get("bytes", 0))
    if len(data) != reply.get("bytes", 0):
        raise EOFError
    return reply, data


def _close(path: Path) -> None:
    """Let the reading process close a file; where it has ended, nothing is open."""
    if _RUNNING.get(os.getpid()) is not None:
        with contextlib.suppress(TableError):
            _ask(path, "close")


def _process() -> subprocess.Popen[bytes]:
    running = _RUNNING.get(os.getpid())
    if running is not None and running.poll() is None:
        return running
    if find_spec("h5py") is None:
        raise TableError("HDF5 files need h5py; install it with: pip install 'steelyard[data]'")
    script = Path(__file__).with_name("hdf5_process.py")
    # Filters of other makers would be programs that a file can name; threads of linear algebra are not needed.
    environment = {**os.environ, "HDF5_PLUGIN_PRELOAD": "::", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(
        [sys.executable, "-P", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment,
    )  # fmt: skip
    _RUNNING[os.getpid()] = running
    return running


@atexit.register
def _end() -> None:
    """End the reading process."""
    process = _RUNNING.pop(os.getpid(), None)
    if process is None:
        return
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            cast("Any", pipe).close()
    process.kill()
    process.wait()
