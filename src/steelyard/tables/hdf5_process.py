"""The process that reads HDF5 files, run as a script by ``hdf5.py``: a damaged file can crash the HDF5 library.

With about one in a thousand files whose metadata have changed fields, HDF5 2.0 ends its process or loops for ever.
Requests are lines of JSON on standard input, and answers lines of JSON on standard output, followed by numbers where
``bytes`` says so. It imports nothing of the package, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
from collections.abc import Iterator
from typing import IO, Any, cast

import numpy as np

MOST_OBJECTS = 20_000
"""Groups and datasets that are looked at."""
DEEPEST = 32
LONGEST_NAME = 500
LONGEST_TEXT = 10_000
MOST_SECONDS = 30.0
"""One request may take so long; a damaged file can make the library loop for ever."""
LEAST_MEMORY = 1 << 30
MEMORY_PER_BYTE = 4
"""Address space that a request may take: ``LEAST_MEMORY`` and this many times the size of the file."""
CHUNK_CACHE = 1 << 25
MOST_DEEP = 20
"""Datasets of three and more dimensions that are named."""
_DEEP = "of three and more dimensions"
_MATLAB_HIDDEN = ("#refs#", "#subsystem#")
_MATLAB_OTHER = ("char", "cell", "function_handle", "string", "table", "datetime")


class RefusedError(Exception):
    """A request that is not answered; its text says why."""


class Files:
    """The files that are open, by path."""

    def __init__(self) -> None:
        self._open: dict[str, Any] = {}

    def get(self, path: str) -> Any:
        """Return an open file."""
        import h5py

        if path not in self._open:
            # No lock: a file that is being written can be looked at, and folders may be read-only.
            self._open[path] = h5py.File(path, "r", locking=False, rdcc_nbytes=CHUNK_CACHE)
        return self._open[path]

    def close(self, path: str) -> None:
        """Close a file if it is open."""
        file = self._open.pop(path, None)
        if file is not None:
            file.close()


def listed(file: Any) -> dict[str, Any]:
    """Return the datasets of a file that may be columns, its groups, and how many objects are left out by reason.

    Datasets of three and more dimensions are named with their shapes: episodes of one length may be stacked in them.
    """
    datasets: list[dict[str, Any]] = []
    groups: list[str] = []
    skipped: dict[str, int] = {}
    deep: list[tuple[str, list[int]]] = []
    for path, item in _objects(file, skipped):
        if path is None:
            continue
        if len(path) > LONGEST_NAME:
            raise RefusedError(f"the name '{path[:20]}...' has {len(path)} letters; allowed {LONGEST_NAME}")
        if not hasattr(item, "shape"):
            groups.append(path)
            continue
        found = _dataset(path, item)
        if isinstance(found, str):
            skipped[found] = skipped.get(found, 0) + 1
            if found == _DEEP and len(deep) < MOST_DEEP:
                deep.append((path, [int(length) for length in item.shape]))
        else:
            datasets.append(found)
    return {"datasets": datasets, "groups": groups, "skipped": skipped, "deep": deep}


def _objects(file: Any, skipped: dict[str, int]) -> Iterator[tuple[str | None, Any]]:
    """Yield groups and datasets with their paths, each group once: groups may hold each other."""
    import h5py

    address_of = cast("Any", h5py).h5o.get_info
    seen = {address_of(file.id).addr}
    waiting: list[tuple[str, Any, int]] = [("", file, 0)]
    count = 0
    while waiting:
        before, group, depth = waiting.pop()
        inner: list[tuple[str, Any, int]] = []
        for name in group:
            count += 1
            if count > MOST_OBJECTS:
                raise RefusedError(f"it holds more than {MOST_OBJECTS} objects")
            if name in _MATLAB_HIDDEN:
                continue
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                skipped["links"] = skipped.get("links", 0) + 1
                continue
            item = group.get(name)
            path = f"{before}/{name}" if before else name
            if isinstance(item, h5py.Datatype):
                continue
            if isinstance(item, h5py.Group):
                address = address_of(item.id).addr
                if address in seen:
                    continue
                seen.add(address)
                if depth >= DEEPEST:
                    raise RefusedError(f"groups are nested deeper than {DEEPEST}")
                inner.append((path, item, depth + 1))
            yield path, item
        waiting += reversed(inner)


def _dataset(path: str, item: Any) -> dict[str, Any] | str:
    """Return what is needed to read a dataset, or the reason why it is left out."""
    try:
        shape, dtype = item.shape, item.dtype
    except (TypeError, ValueError, OSError):
        return "of kinds that numpy does not have"
    if not shape or not all(shape):
        return "of single values, or empty"
    if item.is_virtual or item.id.get_create_plist().get_external_count():
        return "that lie in other files"
    if _is_foreign_to_matlab(item):
        return "of texts, cells or objects"
    if len(shape) > 2:
        return _DEEP
    text = _is_text(item)
    fields = _fields(dtype)
    if not text and dtype.kind not in "fiub" and not fields:
        return "of texts, references or other kinds"
    chunks = item.chunks or ()
    return {
        "path": path, "shape": [int(length) for length in shape], "size": dtype.itemsize, "text": text,
        "fields": fields, "chunks": [int(length) for length in chunks],
    }  # fmt: skip


def _is_foreign_to_matlab(item: Any) -> bool:
    kind = item.attrs.get("MATLAB_class", b"")
    kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
    return kind in _MATLAB_OTHER or "MATLAB_empty" in item.attrs


def _is_text(item: Any) -> bool:
    import h5py

    return len(item.shape) == 1 and (h5py.check_string_dtype(item.dtype) is not None)


def _fields(dtype: np.dtype[Any]) -> list[tuple[str, int]]:
    """Return the numeric fields of a compound dataset with their widths, 0 for a single number."""
    found = []
    for name in dtype.names or ():
        inner, shape = dtype[name].base, dtype[name].shape
        if inner.kind in "fiub" and len(shape) < 2:
            found.append((name, int(shape[0]) if shape else 0))
    return found


def numbers(file: Any, reads: list[Any], first: int, last: int) -> np.ndarray:
    """Return rows of columns (columns, rows).

    Args:
        file: The open file.
        reads: A dataset, its field or None, the axis of its samples, and the places across it that are wanted.
        first: First row.
        last: Behind the last row.
    """
    pieces = []
    for path, field, axis, places in reads:
        item = file[path]
        low, high = min(places), max(places) + 1
        if field is not None:
            values = np.asarray(item.fields(field)[first:last])
            values = values.reshape(len(values), -1).T
            values = values[low:high]
        elif len(item.shape) == 1:
            values = item[first:last][None]
        elif axis == 0:
            values = item[first:last, low:high].T
        else:
            values = item[low:high, first:last]
        if values.shape != (high - low, last - first):
            raise RefusedError(f"'{path[:40]}' ends early")
        with np.errstate(all="ignore"):  # numbers that no double can hold become infinite, and are counted as such
            pieces.append(values[[place - low for place in places]].astype(np.float64))
    return np.ascontiguousarray(np.concatenate(pieces))


def texts(file: Any, path: str) -> list[str]:
    """Return a dataset of texts."""
    return [
        (cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell))[:LONGEST_TEXT]
        for cell in file[path][...]
    ]


def answer(request: dict[str, Any], files: Files) -> tuple[dict[str, Any], bytes]:
    """Return the answer to one request, and the bytes that follow it."""
    path = request["path"]
    for other in request["close"]:
        files.close(other)
    _limit_memory(os.path.getsize(path))
    match request["what"]:
        case "list":
            return listed(files.get(path)), b""
        case "numbers":
            data = numbers(files.get(path), request["reads"], request["first"], request["last"]).tobytes()
            return {"bytes": len(data)}, data
        case "texts":
            return {"texts": texts(files.get(path), request["dataset"])}, b""
        case _:
            files.close(path)
            return {}, b""


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until there are no more."""
    files = Files()
    for line in requests:
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        try:
            reply, data = answer(json.loads(line), files)
        except MemoryError:
            reply, data = {"error": "it needs more memory than is allowed"}, b""
        except Exception as error:  # noqa: BLE001 - h5py raises any kind on a damaged file; the caller says it in one line
            reply, data = {"error": (str(error).splitlines() or [type(error).__name__])[0][:200]}, b""
        faulthandler.cancel_dump_traceback_later()
        # Halves of letters, which damaged names can hold, are no text that could be sent or printed.
        answers.write(json.dumps(reply).encode("ascii") + b"\n" + data)
        answers.flush()


def _limit_memory(size: int) -> None:
    """Bound the address space for reading a file of a size: a damaged one can claim any amount."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # there are no such limits on Windows
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = LEAST_MEMORY + MEMORY_PER_BYTE * size
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
