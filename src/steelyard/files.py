"""Writing that a kill cannot break: a reader sees the old content or the new, never a part."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import FileError


def write_aside(path: Path, content: str | bytes) -> None:
    """Write a file under another name in the same folder, then rename it; make the folder if it is not there."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        if aside.exists():
            aside.unlink()
        raise FileError(f"cannot write '{path}': {error.strerror}; choose another place") from error
