"""Writing that a kill cannot break: a reader sees the old content or the new, never a part. Reading of TOML.

Also what every command asks first: are the files there?
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import FileError, SteelyardError


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


def require_files(*paths: Path | None) -> None:
    """Refuse files and folders that do not exist, before any work: all that are missing are named at once.

    Raises:
        FileError: If some are missing.
    """
    missing = list(dict.fromkeys(path for path in paths if path is not None and not _exists(path)))
    if missing:
        names = ", ".join(f"'{path}'" for path in missing)
        what = "no such file or folder" if len(missing) == 1 else f"{len(missing)} files or folders are missing"
        raise FileError(f"{what}: {names}; check the path and its spelling")


def robot_file(name: str) -> Path | None:
    """Return the path that a robot's name is, or None for a name of the catalogue."""
    return Path(name) if Path(name).suffix else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return True  # the reader says what is wrong with such a path


def toml_document(path: Path, largest: int, what: str, error_kind: type[SteelyardError]) -> dict[str, Any]:
    """Return the content of a TOML file, or raise an error that says in one line why it cannot be read.

    Args:
        path: The file.
        largest: Most bytes that such a file can have.
        what: What it should hold, as in ``a motion``.
        error_kind: Error to raise.
    """
    try:
        if path.exists() and not path.is_file():
            raise error_kind(f"is a folder or a device, not a file; name the TOML file of {what}")
        if path.stat().st_size > largest:
            raise error_kind(f"the file is larger than {largest / 1e6:g} MB; is this the right file?")
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise error_kind("no such file; check the path and its spelling") from error
    except OSError as error:
        raise error_kind(f"cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise error_kind(f"not a text file in utf-8 ({error.reason}); save it as utf-8") from error
    except (ValueError, RecursionError) as error:
        raise error_kind(f"not TOML ({error}); correct it there") from error
