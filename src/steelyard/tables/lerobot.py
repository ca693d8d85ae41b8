"""LeRobot data sets: folders of Parquet files, one for each episode (version 2) or for several (version 3)."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ..errors import TableError
from ..files import file_bytes
from .parquet import INFO, LARGEST_INFO, entry_names, episodes_in, parquet_table, rows_of_episode
from .table import Table, TextOptions

MOST_FILES = 100_000
_FILES = "data/chunk-*/*.parquet"
_ONE_EPISODE = re.compile(r"^episode_(\d{1,9})\.parquet$")


def open_lerobot(folder: Path, options: TextOptions) -> Table:
    """Return one episode of a data set as a table: the one chosen by ``episode``, or the only one."""
    try:
        info = json.loads(file_bytes(folder / INFO, "a description of the data set", TableError, LARGEST_INFO))
    except (ValueError, RecursionError) as error:
        raise TableError(f"{folder / INFO}: is no JSON ({type(error).__name__}); download it again") from error
    except TableError as error:
        raise TableError(f"{folder / INFO}: {error}") from error
    files = sorted(folder.glob(_FILES))[:MOST_FILES]
    if not files:
        raise TableError(f"{folder}: has no files {_FILES}; download the data set, not its description alone")
    episode = _only_episode(folder, files) if options.episode is None else options.episode
    path = _file_of(folder, files, episode)
    return parquet_table(path, entry_names(info), rows_of_episode(path, episode), (f"episode {episode}",))


def _episodes(path: Path) -> set[int]:
    """Return the episodes of a file: its name says it, or a column."""
    named = _ONE_EPISODE.match(path.name)
    return {int(named[1])} if named else set(episodes_in(path).tolist())


def _only_episode(folder: Path, files: list[Path]) -> int:
    episodes = sorted(set[int]().union(*map(_episodes, files)))
    if len(episodes) != 1:
        held = f" ({episodes[0]} to {episodes[-1]})" if episodes else ""
        first = episodes[0] if episodes else 0
        raise TableError(
            f"{folder}: is a data set of {len(episodes)} episodes{held}; choose one with episode = {first} in "
            "[recording] (init: --episode)"
        )
    return episodes[0]


def _file_of(folder: Path, files: list[Path], episode: int) -> Path:
    for path in files:
        if episode in _episodes(path):
            return path
    raise TableError(f"{folder}: has no episode {episode} in its {len(files)} files {_FILES}; check its number")
