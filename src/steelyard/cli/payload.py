"""``steelyard payload``: the payload of an arm that is known from a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..files import require_files
from ..plain_data import json_text, plain
from .options import Config, Json, Out, Quiet, Root, Table, in_folder, quietly
from .output import Screen, print_reasons

if TYPE_CHECKING:
    from ..identification import PayloadBody, PayloadFound, SavedRun
    from ..recording import Recording

POOR = 2


def payload(
    run: Annotated[Path, Parameter(help="Folder of the identify run of the arm, without payload.")],
    /,
    *logs: Annotated[Path, Parameter(help="Recordings with the payload.")],
    robot: Annotated[str | None, Parameter(help="The run's robot file, if it has moved.")] = None,
    config: Config = None,
    table: Table = "recording",
    root: Root = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Identify mass, centre of mass and inertia of a payload, with the arm known from a run of identify."""
    from ..identification import identify_payload, read_run, robot_of_run
    from ..run import RunFolder, hashes_of
    from .logs import hashes_of_recordings, read_streams, streams_of

    require_files(run, *in_folder(root, logs), config)
    with quietly(quiet), RunFolder(out, "payload") as saved:
        known = read_run(run)
        arm = robot_of_run(known.content, robot)
        recordings = read_streams(streams_of(arm, logs, config, (table,), root))
        found = identify_payload(arm, known, recordings, os.cpu_count() or 1)
        inputs = {**hashes_of(run / "result.json", Path(arm.file), config), **hashes_of_recordings(recordings)}
        content = _payload_run_to_json(known, found, recordings)
        settings = {"run": str(run), "robot": arm.file, "logs": [str(log) for log in logs]}
        content = saved.save(settings, inputs, content, report=found.to_html)
        print(json_text("payload", content)) if json else _print(found, content, saved.place)
    return POOR if found.reasons else 0


def _payload_run_to_json(known: SavedRun, found: PayloadFound, recordings: Sequence[Recording]) -> dict[str, Any]:
    from ..identification import payload_to_json
    from ..model.terms import payload_link

    return plain(
        {
            "robot": known.content["robot"],
            "payload": payload_to_json(found.body),
            "payload_link": payload_link(found.robot),
            "locked_joints": dict(known.choices.lock),
            "covariance": found.body.covariance,
            "motion_was_enough": found.enough,
            "agreement": found.agreement,
            "reasons": [{"text": reason.text, "remedy": reason.remedy} for reason in found.reasons],
            "arm_verdict": {key: known.content["verdict"][key] for key in ("grade", "criteria", "reasons")},
            "recordings": [source.path for recording in recordings for source in recording.sources],
        }
    )


def _print(found: PayloadFound, content: dict[str, Any], out: Path | None) -> None:
    from ..identification.payload import ratio_text

    screen = Screen()
    screen.line(
        (content["robot"], "bold"),
        f": {len(content['recordings'])} recording(s), payload on link '{content['payload_link']}'",
    )
    print_payload(screen, found.body, always=True)
    enough = "was" if found.enough else "was not"
    screen.line(
        f"the motion {enough} enough; arm against its run: {ratio_text(found.agreement, 2)} (1 is what chance gives)",
        always=True,
    )
    print_reasons(screen, found.reasons)
    screen.saved(out)


def print_payload(screen: Screen, body: PayloadBody, *, always: bool = False) -> None:
    """Print mass, centre and inertia; ``always``: the mass with ``--quiet`` too."""
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
