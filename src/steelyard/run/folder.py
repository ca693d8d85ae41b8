"""Run folders: one writer at a time, and files that change together or not at all.

A run is prepared in a hidden folder of its own, with ``result.json`` and what belongs to it. Renaming that folder is
the moment at which the run exists: from then on its files only have to be moved into place, and the next process that
opens the folder does so if the writer was killed. ``result.json`` names its files with their SHA-256. A file that it
does not name is the user's and stays. The lock of a folder is released by the system when its holder dies.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import numpy as np

from .. import __version__
from ..errors import FileError
from ..files import file_hash, write_aside
from ..plain_data import SCHEMA_VERSION, json_document

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


RESULT = "result.json"
REPORT = "report.html"
TIMING = "timing.json"
LEAST_SPACE = 10_000_000
"""Bytes that must be free before the work begins."""

_HIDDEN = ".steelyard-"
_READY = f"{_HIDDEN}ready"
_LOCK = f"{_HIDDEN}lock"
_OBSOLETE = "obsolete.json"
_PROBE = 65_536

Timings = Mapping[str, float] | Sequence[Mapping[str, Any]]
"""Seconds by stage, or a table of them."""

Report = Callable[[Mapping[str, str]], str]
"""Returns the report of a run as HTML; gets where the run comes from, texts by name."""

Fill = Callable[[Path, str], Mapping[str, Any] | None]
"""Writes the files of a run into a folder; gets the identifier of the run, and may return further content."""


class RunFolder:
    """The folder that a command saves its run in; without a folder nothing is saved. Use it as a context.

    Opened before the work begins: a folder that cannot be written, a full disk and a second writer are reported then.

    Args:
        folder: The folder; made if it is not there. None: the result is only printed.
        command: The command that runs.

    Raises:
        FileError: If the folder cannot be written, has no space left, or another command is writing to it.
    """

    def __init__(self, folder: Path | None, command: str) -> None:
        self._folder, self._command = folder, command
        self._lock: FolderLock | None = None
        self._made: list[Path] = []
        self._problem = ""
        self.place = folder

    def __enter__(self) -> RunFolder:
        if self._folder is not None:
            with ExitStack() as undo:
                undo.callback(self._close)
                self._open(self._folder)
                undo.pop_all()
        return self

    def _open(self, folder: Path) -> None:
        self._made = [place for place in (folder, *folder.parents) if not place.exists()]  # the innermost first
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(folder / _LOCK, self._command)
            _move_into_place(folder)
            _remove_left_overs(folder)
            _check_space(folder)
        except OSError as error:
            raise _unwritable(folder, error) from error

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._close()
        if self._problem and kind is None:
            raise FileError(self._problem)

    def save(
        self,
        settings: Mapping[str, Any],
        inputs: Mapping[str, str],
        content: Mapping[str, Any],
        fill: Fill | None = None,
        seconds: Timings | None = None,
        report: Report | Mapping[str, Report] | None = None,
        *,
        report_has_times: bool = False,
    ) -> dict[str, Any]:
        """Save the run and return its content; if that fails, save it elsewhere and report so at the end.

        Args:
            settings: Settings after flags and configuration file were merged.
            inputs: SHA-256 of every file that was read, by path (see ``hashes_of``).
            content: The result itself.
            fill: Writes the other files of the run.
            seconds: How long each stage took; stored beside the result, which must not depend on it.
            report: Returns the page that is saved as ``report.html``; several by the names of their files.
            report_has_times: Whether pages hold times of this machine; then the result does not name their SHA-256.
        """
        if self._folder is None:
            return dict(content)
        pages = {} if report is None else report if isinstance(report, Mapping) else {REPORT: report}
        parts = (settings, inputs, content, fill, seconds, pages, report_has_times)
        try:
            return self._saved(self._folder, *parts)
        except (OSError, FileError) as error:
            problem = str(_unwritable(self._folder, error))
        try:
            self.place = Path(tempfile.mkdtemp(prefix="steelyard-"))
            self._problem = f"{problem}; the result is saved in '{self.place}' instead"
            return self._saved(self.place, *parts)
        except (OSError, FileError):
            self.place = None
            self._problem = (
                f"{problem}; the result is only printed: there is no room for it in a temporary folder either"
            )
            return dict(content)

    def _saved(
        self,
        folder: Path,
        settings: Mapping[str, Any],
        inputs: Mapping[str, str],
        content: Mapping[str, Any],
        fill: Fill | None,
        seconds: Timings | None,
        pages: Mapping[str, Report],
        pages_have_times: bool,
    ) -> dict[str, Any]:
        aside = Path(tempfile.mkdtemp(prefix=_HIDDEN, suffix=".tmp", dir=folder))
        try:
            run = _identifier(self._command, settings, inputs, content)
            whole = {**content, **((fill(aside, run) if fill else None) or {})}
            for name, page in pages.items():
                text = page(_origin(self._command, run, settings, inputs))
                (aside / name).write_text(text, encoding="utf-8", newline="\n")
            provenance = {
                "run": run,
                "settings": dict(settings),
                "inputs": dict(inputs),
                "versions": _versions(),
                "files": {
                    str(path.relative_to(aside)): "" if pages_have_times and path.name in pages else file_hash(path)
                    for path in _files_in(aside)
                },
            }
            document = sealed({"schema": SCHEMA_VERSION, "command": self._command, **whole, "provenance": provenance})
            if seconds is not None:
                write_aside(aside / TIMING, json.dumps(seconds, indent=2) + "\n")
            write_aside(aside / _OBSOLETE, json.dumps(_obsolete(folder, provenance["files"])))
            write_aside(aside / RESULT, json_document(document) + "\n")
            aside.rename(folder / _READY)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        _move_into_place(folder)
        return whole

    def _close(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        for made in self._made:  # nothing was saved: leave no empty folders
            try:
                made.rmdir()
            except OSError:
                break


def finish_interrupted_save(folder: Path, patience: float = 5.0) -> None:
    """Wait until no writer moves files in a run folder, and finish what a killed one left. For readers."""
    end = time.monotonic() + patience
    while (folder / _READY).is_dir():
        try:
            lock = FolderLock(folder / _LOCK, "reading")
        except FileError:
            if time.monotonic() > end:
                return
            time.sleep(0.02)
            continue
        except OSError:  # a folder that may only be read
            return
        try:
            _move_into_place(folder)
        finally:
            lock.release()


def write_arrays(folder: Path, kind: str, arrays: Mapping[str, np.ndarray] | bytes) -> str:
    """Write an NPZ file that carries its hash in its name, and return that name.

    A script that opened the arrays of an earlier run by their name cannot take these for them.
    """
    if isinstance(arrays, bytes):
        content = arrays
    else:
        memory = io.BytesIO()
        np.savez(memory, **arrays)  # type: ignore[arg-type]  # names are ours
        content = memory.getvalue()
    name = f"{kind}.{hashlib.sha256(content).hexdigest()[:12]}.npz"
    (folder / name).write_bytes(content)
    return name


def hashes_of(*paths: Path | None) -> dict[str, str]:
    """Return the SHA-256 of those paths that are files, read in blocks; catalogue names and None are left out."""
    return {str(path): file_hash(path) for path in paths if path is not None and path.is_file()}


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with the SHA-256 of all the rest of it: a reader sees whether it has been changed."""
    provenance = {key: value for key, value in document["provenance"].items() if key != "seal"}
    bare = {**document, "provenance": provenance}
    seal = hashlib.sha256(json_document(bare).encode("utf-8")).hexdigest()
    return {**bare, "provenance": {**provenance, "seal": seal}}


def _identifier(command: str, *parts: Mapping[str, Any]) -> str:
    whole = "\n".join([command, *(json_document(part) for part in parts)])
    return hashlib.sha256(whole.encode("utf-8")).hexdigest()[:16]


def _origin(command: str, run: str, settings: Mapping[str, Any], inputs: Mapping[str, str]) -> dict[str, str]:
    """Return where a run comes from, as a report prints it."""
    versions = ", ".join(f"{name} {number}" for name, number in _versions().items())
    given = {f"setting {name}": json.dumps(json.loads(json_document(value))) for name, value in settings.items()}
    files = {f"sha256 of {name}": digest for name, digest in inputs.items()}
    return {"command": f"steelyard {command}", "run": run, "versions": versions, **given, **files}


def _versions() -> dict[str, str]:
    packages = ("numpy", "scipy", "casadi", "llvmlite")
    own = {"steelyard": __version__, "python": platform.python_version()}
    return {**own, **{package: version(package) for package in packages}}


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _obsolete(folder: Path, new: Mapping[str, str]) -> dict[str, str]:
    """Return the files of the result that is there which the new one does not have."""
    try:
        old = json.loads((folder / RESULT).read_text(encoding="utf-8"))["provenance"]["files"]
        return {str(name): str(digest) for name, digest in old.items() if name not in new}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}  # no run, or none that says what belongs to it: all files stay


def _move_into_place(folder: Path) -> None:
    """Move the files of a run that is ready, its result last; there is none unless a writer is at it or was killed."""
    ready = folder / _READY
    if not ready.is_dir():
        return
    result, obsolete_file = ready / RESULT, ready / _OBSOLETE
    files = [path for path in _files_in(ready) if path not in (result, obsolete_file)]
    for path in [*files, *([result] if result.exists() else [])]:
        target = folder / path.relative_to(ready)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    try:
        obsolete = json.loads(obsolete_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        obsolete = {}
    for name, digest in obsolete.items():
        path = folder / name
        # Not one that the user has changed, as far as that is known.
        if inside(folder, name) and path.is_file() and digest in ("", file_hash(path)):
            path.unlink()
    shutil.rmtree(ready)


def _check_space(folder: Path) -> None:
    """Refuse a folder that nothing can be written to, before the work."""
    free = shutil.disk_usage(folder).free
    if free < LEAST_SPACE:
        raise FileError(
            f"'{folder}': {free / 1e6:.3g} MB are free on its disk, {LEAST_SPACE / 1e6:g} MB are needed; make room "
            "or give another folder with --out"
        )
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_PROBE))
        file.flush()
        os.fsync(file.fileno())


def inside(folder: Path, name: str) -> bool:
    """Return whether a name stays within a folder."""
    return bool(name) and (folder / name).resolve().is_relative_to(folder.resolve())


def _remove_left_overs(folder: Path) -> None:
    for path in folder.glob(f"{_HIDDEN}*.tmp"):
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(".*.part"):
        path.unlink(missing_ok=True)


def _unwritable(folder: Path, error: OSError | FileError) -> FileError:
    if isinstance(error, FileError):
        return FileError(str(error).removesuffix("; choose another place"))
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    why = f"'{there}' is a file" if there.is_file() else error.strerror or str(error)
    return FileError(f"cannot write to '{folder}': {why}; give another folder with --out")
