"""``steelyard payload``: what is it holding, when the arm is known from a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..files import require_files
from ..plain_data import json_text, plain
from .options import DATA, Config, Json, Out, Quiet, Root, in_folder, quietly
from .output import ProgressBar, Screen

if TYPE_CHECKING:
    from ..identification import PayloadBody, PayloadFound, SavedRun
    from ..recording import Recording
    from ..robot import Robot

POOR = 2


def payload(
    run: Annotated[Path, Parameter(help="Folder of the identify run that knows the arm.")],
    /,
    *logs: Annotated[Path, Parameter(help="Recordings with the payload.")],
    robot: Annotated[str | None, Parameter(help="The run's robot file, if it has moved.")] = None,
    config: Config = None,
    table: Annotated[
        str, Parameter(group=DATA, help="Table of --config that describes the logs; default: recording.")
    ] = "recording",
    root: Root = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """What is it holding: mass, centre and inertia of a payload, when the arm is known from a run."""
    require_files(run, *in_folder(root, logs), config)
    with quietly(quiet):
        return _run(run, logs, config, table, root, robot, out, json)


def _run(
    folder: Path,
    logs: Sequence[Path],
    config: Path | None,
    table: str,
    root: Path | None,
    robot_name: str | None,
    out: Path | None,
    json: bool,
) -> int:
    """Find the payload, print and save it; return 2 if the motion was not enough or the arm has changed."""
    from ..identification import identify_payload, read_run
    from ..run import RunFolder, hashes_of

    with RunFolder(out, "payload") as saved:
        known = read_run(folder)
        robot = _robot_of(known, robot_name or str(known.settings["robot"]))
        recordings = _recordings(robot, logs, config, table, root)
        found = identify_payload(robot, known, recordings, os.cpu_count() or 1)
        inputs = {
            **hashes_of(folder / "result.json", config),
            **{source.path: source.sha256 for recording in recordings for source in recording.sources},
        }
        content = _payload_run_to_json(known, found, recordings)
        content = saved.save({"run": str(folder), "logs": [str(log) for log in logs]}, inputs, content)
        print(json_text("payload", content)) if json else _print(found, content, saved.place)
    return POOR if found.reasons else 0


def _recordings(
    robot: Robot, logs: Sequence[Path], config: Path | None, table: str, root: Path | None
) -> list[Recording]:
    from .logs import streams_of

    recordings = []
    with ProgressBar("reading") as progress:
        for done, stream in enumerate(streams := streams_of(robot, logs, config, (table,), root)):
            recordings.append(stream.whole())
            progress(done + 1, len(streams))
    return recordings


def _robot_of(known: SavedRun, name: str) -> Robot:
    """Return the run's robot, refusing a file that has changed since."""
    from ..errors import EstimateError
    from ..robot import load_robot
    from ..run import hashes_of

    path = Path(name)
    recorded = known.content["provenance"]["inputs"].get(name)
    if recorded is not None and not path.is_file():
        raise EstimateError(f"the run's robot file '{name}' is not here; name it with --robot")
    if recorded is not None and hashes_of(path)[str(path)] != recorded:
        raise EstimateError(f"the robot file '{name}' has changed since the run; identify the arm again")
    return load_robot(name)


def _payload_run_to_json(known: SavedRun, found: PayloadFound, recordings: Sequence[Recording]) -> dict[str, Any]:
    from ..identification import payload_to_json

    return plain(
        {
            "robot": known.content["robot"],
            "payload": payload_to_json(found.body),
            "covariance": found.body.covariance,
            "motion_was_enough": found.enough,
            "agreement": found.agreement,
            "reasons": [{"text": reason.text, "remedy": reason.remedy} for reason in found.reasons],
            "recordings": [source.path for recording in recordings for source in recording.sources],
        }
    )


def _print(found: PayloadFound, content: dict[str, Any], out: Path | None) -> None:
    screen = Screen()
    screen.line((content["robot"], "bold"), f": {len(content['recordings'])} recording(s)")
    print_payload(screen, found.body, always=True)
    enough = "was" if found.enough else "was not"
    screen.line(
        f"the motion {enough} enough; arm against its run: {found.agreement:.2f} (1 is what chance gives)", always=True
    )
    for reason in found.reasons:
        screen.line(f"- {reason.text}; ", (reason.remedy, "italic"))
    if out is not None:
        screen.line(f"saved: {out / 'result.json'}", always=True)


def print_payload(screen: Screen, body: PayloadBody, *, always: bool = False) -> None:
    """Print mass, centre and inertia; the mass with ``--quiet`` too if it is what was asked for."""
    screen.line()
    screen.line(("payload", "bold"), f"  mass {body.mass[0]:.4g} +- {body.mass[1]:.2g} kg (one sigma)", always=always)
    if body.centre is not None and body.centre_sigma is not None:
        shown = ", ".join(
            f"{1000 * c:.1f} +- {1000 * s:.1f}" for c, s in zip(body.centre, body.centre_sigma, strict=True)
        )
        screen.line(f"         centre {shown} mm")
    if body.inertia_at_centre is not None and body.inertia_at_centre_sigma is not None:
        pairs = zip(
            ("XX", "XY", "XZ", "YY", "YZ", "ZZ"), body.inertia_at_centre, body.inertia_at_centre_sigma, strict=True
        )
        shown = ", ".join(f"{name} {value:.3g} +- {sigma:.1g}" for name, value, sigma in pairs if isfinite(value))
        if shown:
            screen.line(f"         inertia about its centre {shown} kg m^2")
