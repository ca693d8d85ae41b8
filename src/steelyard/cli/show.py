"""``steelyard show``: the report of a run, or a quick page of a log or a motion."""

from __future__ import annotations

import shutil
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ..errors import FileError, RecordingError
from ..files import opened_aside, require_files, robot_file, toml_document, write_aside
from ..plain_data import json_text
from ..text import for_terminal
from .options import DATA, OUTPUT, Json
from .output import print_message

if TYPE_CHECKING:
    from ..report import Page

PAGES = ("report.html", "index.html")
"""Pages of run folders, the first that is there is shown."""


def show(
    path: Annotated[Path, Parameter(help="Run folder, motion (TOML), log, or set-up (TOML) that describes logs.")],
    /,
    *,
    robot: Annotated[
        str | None, Parameter(group=DATA, help="The arm: needed for a log; for a motion its limits are drawn too.")
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(
            name="--out",
            group=OUTPUT,
            help="File for the page, or for a copy of a run's report; default for a log or motion: here.",
        ),
    ] = None,
    no_open: Annotated[
        bool, Parameter(name="--no-open", group=OUTPUT, help="Print where the page is, do not open it.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the report of a run, or a quick page of a log or a motion, in the browser."""
    require_files(path, None if robot is None else robot_file(robot))
    folder = path.parent if path.name == "result.json" else path
    page = _report_of(folder, out) if folder.is_dir() else _written(path, robot, out)
    print(json_text("show", {"page": str(page)}) if json else for_terminal(str(page)))
    if sys.stdout.isatty() and not (no_open or json):
        webbrowser.open(page.resolve().as_uri())


def _report_of(folder: Path, out: Path | None) -> Path:
    """Return where the report of a run is, or its copy if one is wanted."""
    from ..report import is_page
    from ..run import is_changed

    page = next((folder / name for name in PAGES if (folder / name).is_file()), None)
    again = f"run its command again with --out '{folder}'"
    if page is None:
        raise FileError(f"'{folder}' has no {PAGES[0]}; {again}")
    if not is_page(page, whole=True):
        raise FileError(f"'{page}' is no page of steelyard, or only a part of one; {again}")
    if is_changed(page):
        print_message(f"note: '{page}' is not as the run wrote it; for the original {again}")
    if out is None:
        return page
    _check_place(out)
    with page.open("rb") as report, opened_aside(out) as copy:
        shutil.copyfileobj(report, copy)
    return out


def _written(path: Path, robot: str | None, out: Path | None) -> Path:
    """Write the page of a log or a motion, and return where it is."""
    from ..report import page_html

    place = out or Path(f"{path.stem}.html")
    _check_place(place)
    write_aside(place, page_html(_page_maker(path)(path, robot)))
    return place


def _check_place(place: Path) -> None:
    """Refuse to write a page over anything but a page."""
    from ..report import is_page

    if place.is_dir():
        raise FileError(f"'{place}' is a folder; give a file with --out")
    if place.exists() and not is_page(place):
        raise FileError(f"'{place}' exists and is no page of steelyard; give another file with --out")


def _page_maker(path: Path) -> Callable[[Path, str | None], Page]:
    """Return what makes the page: a TOML file is a motion, unless it describes recordings."""
    from ..errors import MotionError

    if path.suffix.lower() != ".toml":
        return _recording_page
    return _recording_page if "recording" in toml_document(path, "a motion", MotionError) else _motion_page


def _motion_page(path: Path, robot: str | None) -> Page:
    from ..motion import read_trajectory
    from ..report.signals import motion_page
    from ..robot import load_robot

    arm = None if robot is None else load_robot(robot)
    return motion_page(read_trajectory(path, None if arm is None else arm.joint_names), path.name, arm)


def _recording_page(path: Path, robot: str | None) -> Page:
    from ..recording import stream_recordings
    from ..report.signals import recording_page
    from ..robot import load_robot
    from .logs import read_streams

    if robot is None:
        raise RecordingError(f"'{path}' is read for an arm; name it with --robot, such as --robot kuka_lwr4")
    arm = load_robot(robot)
    recordings = read_streams(stream_recordings(arm, path))
    names = [", ".join(Path(source.path).name for source in one.sources) or path.name for one in recordings]
    unique = {name if names.count(name) == 1 else f"{name} ({k})": one for k, (name, one) in
              enumerate(zip(names, recordings, strict=True), 1)}  # fmt: skip
    return recording_page(unique, arm)
