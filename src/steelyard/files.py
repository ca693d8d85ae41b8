"""Files: atomic writing (a reader sees the old content or the new), and checked reading of bytes, text and TOML."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import IO, Any

from .errors import FileError, SteelyardError
from .text import for_yaml

LARGEST_TOML = 1_000_000
"""More bytes than this [B] are no settings."""
DEEPEST_TOML = 32
"""Tables and lists inside each other, and parts of a dotted key, at most."""
LARGEST_INTEGER = 1 << 63
_LONG_PART = re.compile(r"[^\n=,{\[]{65,}")
_DOT_IN_KEY = re.compile(r"""[\w"'-][ \t]*\.[ \t]*(?=[\w"'-])""")


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


def require_files(*paths: Path | None, error: type[SteelyardError] = FileError) -> None:
    """Refuse files and folders that do not exist, before any work: all that are missing are named at once.

    Args:
        paths: The files and folders; None is passed over.
        error: What is raised if some are missing.
    """
    missing = list(dict.fromkeys(path for path in paths if path is not None and not _exists(path)))
    if missing:
        names = ", ".join(f"'{path}'" for path in missing)
        what = "no such file or folder" if len(missing) == 1 else f"{len(missing)} files or folders are missing"
        raise error(f"{what}: {names}; check the path and its spelling")


def robot_file(name: str) -> Path | None:
    """Return the path that a robot's name is, or None for a name of the catalogue."""
    return Path(name) if Path(name).suffix else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return True  # the reader says what is wrong with such a path


def check_file(path: Path, what: str, error_kind: type[SteelyardError], largest: int | None = None) -> None:
    """Refuse what is no regular file before it is opened: a pipe or a device would block, or never end.

    Args:
        path: The file.
        what: What it should hold, as in ``a motion``.
        error_kind: Error to raise; its message does not name the path.
        largest: Most bytes that such a file can have.
    """
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise error_kind("no such file; check the path and its spelling") from error
    except OSError as error:
        raise error_kind(cannot_read(error)) from error
    except ValueError as error:
        raise error_kind(f"cannot be a path ({error}); check its spelling") from error
    if not stat.S_ISREG(status.st_mode):
        raise error_kind(f"is a folder or a device, not a file; name the file of {what}")
    if largest is not None and status.st_size > largest:
        raise error_kind(too_large(largest))


def too_large(largest: int) -> str:
    """Return the message about a file that has more bytes than are read."""
    return f"is larger than {largest / 1e6:g} MB; is this the right file?"


def files_of(path: Path) -> list[Path]:
    """Return the regular files of a folder, at any depth and by name; of a file itself."""
    return sorted(inner for inner in path.rglob("*") if inner.is_file()) if path.is_dir() else [path]


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    return sum(file.stat().st_size for file in files_of(path))


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, read in blocks; of a folder, that of the names and hashes of its files."""
    if path.is_dir():
        lines = [f"{file.relative_to(path).as_posix()} {file_hash(file)}" for file in files_of(path)]
        return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cannot_read(error: OSError) -> str:
    """Return the message about a file that cannot be read."""
    if isinstance(error, PermissionError):
        return "permission denied; make the file readable for this user"
    return f"cannot be read ({error.strerror or error}); check the path"


def file_bytes(path: Path, what: str, error_kind: type[SteelyardError], largest: int) -> bytes:
    """Return the content of a file; arguments as for :func:`check_file`."""
    check_file(path, what, error_kind, largest)
    try:
        with path.open("rb") as file:
            return file.read(largest + 1)
    except OSError as error:
        raise error_kind(cannot_read(error)) from error


def decoded(data: bytes, error_kind: type[SteelyardError]) -> str:
    """Return the text that utf-8 bytes hold, its lines ended by line feeds."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise error_kind(f"not a text file in utf-8 ({error.reason}); save it as utf-8") from error


def toml_document(
    path: Path, what: str, error_kind: type[SteelyardError], largest: int = LARGEST_TOML
) -> dict[str, Any]:
    """Return the content of a TOML file, or raise an error that says in one line why it cannot be read.

    Args:
        path: The file.
        what: What it should hold, as in ``a motion``.
        error_kind: Error to raise; its message does not name the path.
        largest: Most bytes that such a file can have.
    """
    return parsed_toml(decoded(file_bytes(path, what, error_kind, largest), error_kind), error_kind)


def parsed_toml(text: str, error_kind: type[SteelyardError]) -> dict[str, Any]:
    """Return the content of a text in TOML that is not nested beyond all measure; whole numbers have 64 bits."""
    try:
        # The standard reader takes a time that grows with the square of the number of parts of a key.
        for part in _LONG_PART.finditer(text):
            if len(_DOT_IN_KEY.findall(part[0])) > DEEPEST_TOML:
                raise ValueError(f"a key has more than {DEEPEST_TOML} parts")
        document = tomllib.loads(text)
    except RecursionError as error:
        raise error_kind("not TOML (nested too deep); correct it there") from error
    except ValueError as error:
        raise error_kind(f"not TOML ({error}); correct it there") from error
    level: list[tuple[str, Any]] = [("", document)]
    for _ in range(DEEPEST_TOML):
        entries = [entry for key, outer in level for entry in _entries(key, outer)]
        for key, value in entries:
            if isinstance(value, int) and not -LARGEST_INTEGER <= value < LARGEST_INTEGER:
                raise error_kind(f"'{key}' holds a very large whole number, beyond 64 bits; check the unit (SI)")
        level = [(key, value) for key, value in entries if isinstance(value, dict | list)]
        if not level:
            return document
    raise error_kind(f"not TOML that can be used (nested deeper than {DEEPEST_TOML}); correct it there")


def _entries(key: str, value: dict[str, Any] | list[Any]) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else ((key, entry) for entry in value)


def toml_text(document: Mapping[str, Any]) -> str:
    """Return a document as TOML: tables at the top as sections, all below them in line."""
    plain = [f"{_key(key)} = {toml_value(value)}" for key, value in document.items() if not isinstance(value, Mapping)]
    tables = [
        "\n".join([f"[{_key(name)}]", *(f"{_key(key)} = {toml_value(value)}" for key, value in table.items())])
        for name, table in document.items()
        if isinstance(table, Mapping)
    ]
    return "\n\n".join([*(["\n".join(plain)] if plain else []), *tables]) + "\n"


def toml_value(value: Any) -> str:
    """Return a value as TOML in one line: texts quoted, unprintable characters escaped."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if value == float(f"{value:g}") else repr(value)
    return repr(value) if isinstance(value, int) else for_yaml(str(value))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else for_yaml(name)


_ONE_AT_A_TIME = Lock()


@contextmanager
def silent_panics() -> Iterator[None]:
    """Send file descriptor 2 nowhere: libraries in Rust print a panic with its stack there before Python sees it."""
    with _ONE_AT_A_TIME:
        try:
            saved = os.dup(2)
        except OSError:  # there is no standard error to keep silent
            yield
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, 2)
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            os.close(nowhere)
