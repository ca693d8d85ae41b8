"""Writing that a kill cannot break: a reader sees the old content or the new, never a part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .errors import FileError


@contextmanager
def opened_aside(path: Path) -> Iterator[IO[bytes]]:
    """Open a file under another name in the same folder, renamed when all went well; make the folder if needed."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        raise FileError(f"cannot write '{path}': {error.strerror}; choose another place") from error
    finally:
        if aside.exists():
            aside.unlink()


def write_aside(path: Path, content: str) -> None:
    """Write a text file aside and rename it."""
    with opened_aside(path) as file:
        file.write(content.encode("utf-8"))
