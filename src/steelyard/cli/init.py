"""``steelyard init``: a set-up guessed from logs, what is sure and why, and the checks of the logs read with it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..errors import FileError, SteelyardError
from ..files import require_files, robot_file, write_aside
from ..plain_data import json_text, plain
from ..text import for_terminal
from .options import DATA, OUTPUT, Json, Quiet, RobotName, quietly
from .output import SEVERITY_STYLE, Column, Part, ProgressBar, Screen, print_findings

if TYPE_CHECKING:
    from ..recording import GuessItem, SetupGuess
    from ..robot import Robot

CONFIDENCE_STYLE = {"sure": "green", "likely": "yellow", "unsure": "red"}
WORST_SHOWN = 5
"""Findings that are printed."""


def init(
    robot: RobotName,
    /,
    *logs: Annotated[Path, Parameter(help="Logs of one arm; or the files side by side of one recording.")],
    topic: Annotated[str | None, Parameter(group=DATA, help="Topic of ROS bags that have several.")] = None,
    group: Annotated[str | None, Parameter(group=DATA, help="Group or structure of HDF5 and MAT files.")] = None,
    episode: Annotated[int | None, Parameter(group=DATA, help="Number of the episode of a LeRobot data set.")] = None,
    out: Annotated[
        Path, Parameter(name="--out", group=OUTPUT, help="File to write; default: steelyard.toml in this folder.")
    ] = Path("steelyard.toml"),
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Guess columns, units, rate, sides and signs of logs, and write them as a commented set-up."""
    from ..recording import guess_setup
    from ..robot import load_robot

    if out.exists() or out.is_symlink():
        raise FileError(f"'{out}' exists and is not overwritten; name another file with --out, or remove it")
    require_files(robot_file(robot), *logs)
    arm = load_robot(robot)
    with quietly(quiet):
        with ProgressBar("reading") as progress:
            guess = guess_setup(
                arm, logs, folder=out.parent, topic=topic, group=group, episode=episode, progress=progress
            )
        write_aside(out, guess.text)
        findings, problem = _checked(arm, out, guess)
        command = f"steelyard check {shlex.quote(robot)} --config {shlex.quote(str(out))}"
        content = {
            "robot": arm.name,
            "file": str(out),
            "items": [_item(item) for item in guess.items],
            "to_fill": list(guess.to_fill),
            "unused": [{"columns": names, "reason": reason} for names, reason in guess.unused],
            "findings": findings,
            "problem": problem,
            "next": command,
        }
        print(json_text("init", content)) if json else _print(content, guess)
    return 0


def _item(item: GuessItem) -> dict[str, Any]:
    return {**plain(item), "reason": item.reason}


def _checked(robot: Robot, path: Path, guess: SetupGuess) -> tuple[list[dict[str, Any]], str | None]:
    """Return the findings of the checks in the logs as the set-up reads them, and why it cannot read them, if so."""
    from ..recording import read_setup, stream_recordings

    setup = read_setup(path)
    if guess.to_fill:
        return [], "the logs are not checked before what is missing is filled in"
    found: list[dict[str, Any]] = []
    try:
        with ProgressBar("checking") as progress:
            for stream in stream_recordings(robot, setup):
                for _ in stream.samples():
                    progress(stream.bytes_done, stream.bytes_total)
                assert stream.result is not None  # it has been read
                file = str(stream.result.sources[0].path)
                found += [
                    {"file": file, "kind": one.kind, "severity": one.severity, "text": one.text, "remedy": one.remedy}
                    for one in stream.result.findings
                ]
    except SteelyardError as error:
        return found, str(error)
    order = list(SEVERITY_STYLE)
    return sorted(found, key=lambda one: -order.index(one["severity"])), None


def _print(content: dict[str, Any], guess: SetupGuess) -> None:
    screen = Screen()
    screen.line((content["file"], "bold"), f": set-up of {content['robot']}, written", always=True)
    rows: list[list[Part]] = [
        [item.channel, _columns(item), _unit(item), (item.confidence, CONFIDENCE_STYLE[item.confidence]), _why(item)]
        for item in guess.items
    ]
    headings = [("channel", "word"), ("columns", "text"), ("unit", "word"), ("", "word"), ("why", "text")]
    screen.table([Column(heading, kind) for heading, kind in headings], rows)  # type: ignore[arg-type]
    for one in content["unused"]:
        screen.line(f"not used: {one['columns']}: {one['reason']}", style="dim")
    for text in content["to_fill"]:
        screen.line(("to fill in", "red"), f": {text}", always=True)
    if content["problem"]:
        screen.line(content["problem"], style="yellow", always=True)
    worst = [one for one in content["findings"] if one["severity"] != "info"]
    print_findings(screen, [(one["severity"], one["text"], one["remedy"]) for one in worst[:WORST_SHOWN]])
    if len(worst) > WORST_SHOWN:
        screen.line(f"and {len(worst) - WORST_SHOWN} more findings")
    screen.line(f"next: {content['next']}", always=True)


def _columns(item: GuessItem) -> str:
    columns = item.columns
    shown = ", ".join(map(str, columns)) if isinstance(columns, tuple) else "" if columns is None else str(columns)
    return for_terminal(shown if len(shown) <= 40 else f"{shown[:37]}...")


def _unit(item: GuessItem) -> str:
    unit = item.unit if isinstance(item.unit, str) else "/".join(dict.fromkeys(item.unit or ()))
    return f"{unit}{' (motor)' if item.side == 'motor' else ''}{' sign' if -1 in item.sign else ''}"


def _why(item: GuessItem) -> str:
    """Return the reasons of the aspects that are least sure."""
    least = [one for one in item.aspects if one.confidence == item.confidence]
    reasons: dict[str, list[str]] = {}
    for one in least:
        reasons.setdefault(one.reason, []).append(one.aspect)
    return "; ".join(f"{', '.join(aspects)}: {reason}" for reason, aspects in reasons.items())
