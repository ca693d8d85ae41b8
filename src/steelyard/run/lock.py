"""One writer for a folder: a lock that the system lets go of when its holder dies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from ..errors import FileError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt

# Windows locks bytes: one that is never written, so that others may read who holds the lock.
_FAR = 1 << 30


class FolderLock:
    """An exclusive lock, taken at once or refused.

    Args:
        path: The lock file; it is there while the lock is held.
        holder: Who takes it, for those who are refused.

    Raises:
        FileError: If another holds it.
        OSError: If the file cannot be made.
    """

    def __init__(self, path: Path, holder: str) -> None:
        self._path = path
        while True:
            file = path.open("a+b")
            if not _taken(file):
                file.seek(0)
                other = file.read(200).decode("utf-8", "replace")
                file.close()
                raise FileError(
                    f"'{path.parent}' is being written by another command ({other or 'just begun'}); wait for it, or "
                    "give another folder with --out"
                )
            if _is_there(file, path):
                break
            file.close()  # its last holder has just removed it
        file.truncate(0)
        file.write(f"{holder}, process {os.getpid()}".encode())
        file.flush()
        self._file = file

    def release(self) -> None:
        """Let go of the lock and remove its file."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError:  # Windows removes no open file; an empty one does no harm
            self._file.truncate(0)
        finally:
            self._file.close()


def _taken(file: IO[bytes]) -> bool:
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            file.seek(_FAR)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # Windows only
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_there(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
