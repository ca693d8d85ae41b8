"""Manifests: which logs of which units of a fleet there are.

A CSV file has one row for each log, a TOML file one ``[[log]]`` table, with the same keys; paths are relative to the
manifest. What its models have in common is declared once for each robot: ``[model.ROBOT]`` in a TOML file.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ..configuration import Section, kind_of, located, text, texts, toml_file
from ..errors import ConfigError
from ..files import decoded, file_bytes, files_of, robot_file
from ..identification import SCHEMA
from ..text import short_repr

NEEDED, OPTIONAL = ("robot", "serial", "date", "files"), ("payload", "config")
"""Keys of a log."""
LARGEST = 64_000_000
"""Bytes of a manifest."""


@dataclass(frozen=True)
class FleetLog:
    """A log of one unit.

    Attributes:
        robot: Name or file of its robot.
        serial: Serial number of the unit.
        date: When it was recorded.
        files: Its files.
        payload: Name of the payload it carried; empty if none.
        config: File that says what its columns are; None if it says so itself.
        place: Where the manifest names it.
    """

    robot: str
    serial: str
    date: datetime
    files: tuple[Path, ...]
    payload: str
    config: Path | None
    place: str

    @property
    def paths(self) -> list[Path]:
        """All that is read of it, in order."""
        named = [*self.files, *([] if self.config is None else [self.config])]
        return [file for path in named for file in files_of(path)]


@dataclass(frozen=True)
class Manifest:
    """The logs of a fleet.

    Attributes:
        logs: The logs, in the order of the file.
        models: What is declared of each robot's model and filter.
    """

    __repr__ = short_repr

    logs: tuple[FleetLog, ...]
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_manifest(path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> Manifest:
    """Read a manifest.

    Args:
        path: CSV or TOML file.
        root: Folder where its paths start, and which none of them leaves; default: that of the manifest.

    Raises:
        ConfigError: If it cannot be read, lacks a key, has a date that is none, or a path leaves the root.

    Example:
        >>> lines = ["robot,serial,date,files", "franka_panda,7,2026-03-31T22:15,a.csv;b.csv"]
        >>> np.savetxt("manifest.csv", lines, fmt="%s")
        >>> log = steelyard.read_manifest("manifest.csv").logs[0]
        >>> log.serial, [file.name for file in log.files]
        ('7', ['a.csv', 'b.csv'])
    """
    path = Path(path)
    folder = path.parent if root is None else Path(root)
    models: dict[str, Mapping[str, Any]] = {}
    if path.suffix.lower() == ".toml":
        with toml_file(path, "the manifest", ConfigError) as file:
            file.check_keys(("log", "model"))
            logs = [_log(part, folder) for part in file.sections("log")]
            for name, part in file.section("model").named_sections().items():
                part.values({key: kind_of(kind) for key, kind in SCHEMA.items()})
                models[name] = dict(part.table)
    else:
        with located(str(path), ConfigError):
            logs = list(_csv_logs(path, folder))
    if not logs:
        raise ConfigError(f"the manifest '{path}' names no log; needed is a row (CSV) or a [[log]] (TOML) for each")
    unused = [name for name in models if name not in {log.robot for log in logs}]
    if unused:
        raise ConfigError(f"{path}: [model.{unused[0]}] is of no log's robot; name it as the logs do")
    return Manifest(tuple(logs), models)


def _csv_logs(path: Path, folder: Path) -> Iterator[FleetLog]:
    content = decoded(file_bytes(path, "the manifest", ConfigError, LARGEST), ConfigError)
    lines = content.split("\n")
    separator = ";" if lines[0].count(";") > lines[0].count(",") and '"' not in lines[0] else ","
    try:
        rows = list(csv.reader(lines, delimiter=separator, strict=True))
    except csv.Error as error:
        raise ConfigError(f"not a table of comma-separated values ({error}); save it as CSV") from error
    header = [name.strip() for name in rows[0]]
    Section(dict.fromkeys(header), "header", ConfigError).check_keys((*NEEDED, *OPTIONAL))
    twice = [name for name in (*NEEDED, *OPTIONAL) if header.count(name) > 1]
    if twice:
        raise ConfigError(f"column {twice[0]} is there {header.count(twice[0])} times; keep one")
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise ConfigError(f"no column {', '.join(missing)}; needed are {', '.join(NEEDED)} (and {', '.join(OPTIONAL)})")
    for number, row in enumerate(rows[1:], 2):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise ConfigError(
                f"line {number} has {len(cells)} cells, the header {len(header)}; quote cells with commas"
            )
        table: dict[str, Any] = {key: cell for key, cell in zip(header, cells, strict=True) if cell}
        table["files"] = [name.strip() for name in table.get("files", "").split(";") if name.strip()]
        yield _log(Section(table, f"line {number}", ConfigError), folder)


def _log(part: Section, folder: Path) -> FleetLog:
    part.check_keys((*NEEDED, *OPTIONAL))
    config, robot, payload = part.optional("config", text), part.get("robot", text), part.optional("payload", text)
    return FleetLog(
        robot if robot_file(robot) is None else str(_inside(part, folder, robot)),
        part.get("serial", _name),
        part.get("date", _moment),
        tuple(_inside(part, folder, name) for name in part.get("files", texts)),
        "" if payload in (None, "none") else payload,
        None if config is None else _inside(part, folder, config),
        part.where,
    )


def _inside(part: Section, folder: Path, name: str) -> Path:
    """Return a path of the manifest; a manifest from elsewhere is not to name files of this machine.

    Raises:
        ConfigError: If it leaves the folder.
    """
    path = folder / name
    if "\0" in name or not path.resolve().is_relative_to(folder.resolve()):
        raise part.failure(
            f"'{name}' is outside '{folder}', where paths start; name a folder that holds all with --root"
        )
    return path


def _name(value: Any) -> str:
    """A text or a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError("a serial number, as a text or a whole number")
    return str(value)


def _moment(value: Any) -> datetime:
    """A date as ISO 8601 has it; one without a time zone is taken as UTC."""
    try:
        if isinstance(value, date) and not isinstance(value, datetime):
            found = datetime(value.year, value.month, value.day)
        else:
            found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("a date such as 2026-03-31 or 2026-03-31T22:15") from None
