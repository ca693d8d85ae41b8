"""Robot files as bytes: bounded in size, and every failure one line that names the file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import RobotError

PathOrBytes = str | os.PathLike[str] | bytes


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put the name of the file in front of every robot error raised inside."""
    try:
        yield
    except RobotError as error:
        raise RobotError(f"{where}: {error}") from error


def place_of(path_or_bytes: PathOrBytes) -> str:
    """Return what a message calls this input: the path, or a word for bytes."""
    if isinstance(path_or_bytes, bytes):
        return "robot description (bytes)"
    return os.fspath(path_or_bytes)


def content_of(path_or_bytes: PathOrBytes, limit: int) -> bytes:
    """Return the bytes given, or those of the file, refusing more than ``limit`` of them."""
    data = path_or_bytes if isinstance(path_or_bytes, bytes) else _read_file(os.fspath(path_or_bytes), limit)
    if len(data) > limit:
        raise RobotError(_too_large(len(data), limit))
    if not data.strip():
        raise RobotError("the file is empty; a robot description was expected")
    return data


def _read_file(name: str, limit: int) -> bytes:
    """Read a regular file; its size is looked up before a byte is read."""
    if name.lstrip().startswith("<"):
        raise RobotError("got XML text where a path was expected; pass the text as bytes, or the name of a file")
    try:
        status = os.stat(name)
        if stat.S_ISDIR(status.st_mode):
            raise RobotError("is a directory, not a robot file; name a .urdf or .toml file inside it")
        if not stat.S_ISREG(status.st_mode):
            raise RobotError("is a device or a pipe, not a regular file; name a .urdf or .toml file")
        if status.st_size > limit:
            raise RobotError(_too_large(status.st_size, limit))
        with Path(name).open("rb") as file:
            return file.read(limit + 1)
    except FileNotFoundError as error:
        raise RobotError("no such file; check the path and its spelling") from error
    except PermissionError as error:
        raise RobotError("permission denied; make the file readable for this user") from error
    except OSError as error:
        raise RobotError(f"cannot be read ({error.strerror}); check the path") from error
    except ValueError as error:
        raise RobotError(f"cannot be a path ({error}); check its spelling") from error


def _too_large(size: int, limit: int) -> str:
    return (
        f"the file has {size / 1e6:.4g} MB, at most {limit / 1e6:.4g} MB are read; "
        "a robot description is far smaller: is this the right file?"
    )
