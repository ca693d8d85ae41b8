"""``steelyard payload``: the payload of an arm that is known from a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from ..errors import EstimateError
from ..files import require_files
from ..plain_data import json_text, plain
from .options import DATA, Config, Json, Out, Quiet, Root, Table, in_folder, quietly
from .output import Screen, print_reasons, print_verdict

if TYPE_CHECKING:
    from ..identification import PayloadBody, PayloadFound, SavedRun
    from ..identification.wrench import WrenchPayload
    from ..recording import Recording

POOR = 2
SENSOR = Group("Force/torque sensor", sort_key=2)


@Parameter(name="*")
@dataclass(frozen=True)
class WrenchOptions:
    """Options of a payload that a wrist force/torque sensor measures."""

    wrench: Annotated[
        bool,
        Parameter(
            group=SENSOR,
            help="From the wrench of a wrist force/torque sensor, without a run: all arguments are logs, with poses of "
            "the sensor, or with joint positions of --robot.",
        ),
    ] = False
    static: Annotated[bool, Parameter(group=SENSOR, help="Samples are static poses: no accelerations, no inertia.")] = (
        False
    )
    wrench_frame: Annotated[
        Literal["sensor", "base"], Parameter(group=SENSOR, help="Axes of the wrench; default: those of the sensor.")
    ] = "sensor"
    sensor_link: Annotated[
        str | None, Parameter(group=SENSOR, help="Link of --robot that is the sensor; default: its payload_link.")
    ] = None
    axis: Annotated[
        Literal["x", "y", "z"] | None,
        Parameter(group=SENSOR, help="Axis of the sensor on which the centre of mass is known to be; default: none."),
    ] = None
    cutoff: Annotated[
        float | None,
        Parameter(group=SENSOR, help="Low-pass of poses and wrenches of a moving sensor [Hz]; default: 5."),
    ] = None


_WRENCH = WrenchOptions()


def payload(
    run: Annotated[
        Path | None, Parameter(help="Folder of the identify run of the arm, without payload; with --wrench a log.")
    ] = None,
    /,
    *logs: Annotated[Path, Parameter(help="Recordings with the payload.")],
    robot: Annotated[str | None, Parameter(help="The run's robot file, if it has moved.")] = None,
    gain_sigma: Annotated[
        str | None,
        Parameter(
            group=DATA,
            help="Relative sigma of the gains, common to all joints: 10%, 0.1, 0 or unknown; default: the run's own.",
        ),
    ] = None,
    config: Config = None,
    table: Table = "recording",
    root: Root = None,
    sensor: WrenchOptions = _WRENCH,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Identify mass, centre of mass and inertia of a payload: the arm known from a run, or by a force/torque sensor."""
    if sensor.wrench:
        with quietly(quiet):
            return _from_wrench([run, *logs] if run else list(logs), robot, config, table, root, sensor, out, json)
    from ..identification import identify_payload
    from ..run import RunFolder, hashes_of
    from .logs import hashes_of_recordings, run_and_recordings

    if run is None:
        raise EstimateError(
            "no run is given; give the folder of an identify run, or --wrench for a force/torque sensor"
        )
    if sensor != _WRENCH:
        raise EstimateError("options of a force/torque sensor are given without --wrench; add it, or leave them out")
    require_files(run, *in_folder(root, logs), config)
    with quietly(quiet), RunFolder(out, "payload") as saved:
        known, arm, recordings = run_and_recordings(run, robot, logs, config, table, root)
        found = identify_payload(arm, known, recordings, os.cpu_count() or 1, _part(gain_sigma))
        inputs = {**hashes_of(run / "result.json", Path(arm.file), config), **hashes_of_recordings(recordings)}
        content = _payload_run_to_json(known, found, recordings)
        settings = {"run": str(run), "robot": arm.file, "logs": [str(log) for log in logs]}
        settings |= {"gain_sigma": gain_sigma} if gain_sigma is not None else {}
        content = saved.save(settings, inputs, content, report=found.to_html)
        print(json_text("payload", content)) if json else _print(found, content, saved.place)
    return POOR if found.reasons else 0


def _from_wrench(
    logs: list[Path],
    robot: str | None,
    config: Path | None,
    table: str,
    root: Path | None,
    options: WrenchOptions,
    out: Path | None,
    json: bool,
) -> int:
    """Find the payload of a force/torque sensor, print and save it."""
    from ..identification.wrench import free_sensor, payload_from_wrench
    from ..robot import load_robot, robot_files
    from ..run import RunFolder, hashes_of
    from .logs import hashes_of_recordings, read_streams, streams_of

    require_files(*in_folder(root, logs), config)
    with RunFolder(out, "payload") as saved:
        arm = None if robot is None else load_robot(robot)
        recordings = read_streams(streams_of(arm or free_sensor(), logs, config, (table,), root))
        found = payload_from_wrench(
            recordings, arm, link=options.sensor_link, static=options.static, frame=options.wrench_frame,
            axis=options.axis, cutoff=options.cutoff,
        )  # fmt: skip
        files = [] if arm is None else robot_files(arm)
        inputs = {**hashes_of(*files, config), **hashes_of_recordings(recordings)}
        settings = {"robot": robot, "logs": [str(log) for log in logs], **vars(options)}
        content = {"robot": arm.name if arm else "sensor", "locked_joints": {}, **found.to_json()}
        content = saved.save(settings, inputs, content, report=found.to_html)
        print(json_text("payload", content)) if json else _print_wrench(found, saved.place)
    return POOR if found.verdict.grade == "poor" else 0


def _print_wrench(found: WrenchPayload, out: Path | None) -> None:
    screen = Screen()
    posed = "static poses" if found.is_static else "samples"
    screen.line(f"{found.rows} {posed}; payload in the frame of '{found.link}'")
    print_payload(screen, found.body, always=True)
    for name, part, unit in (("force", slice(0, 3), "N"), ("moment", slice(3, 6), "N m")):
        pairs = zip(found.bias[part], found.bias_sigma[part], strict=True)
        shown = ", ".join(f"{value:.4g} +- {sigma:.2g}" for value, sigma in pairs)
        rms = " ".join(f"{one:.2g}" for one in found.residual[part])
        screen.line(f"         {name} bias {shown} {unit}; residual rms {rms} {unit}")
    print_verdict(screen, found.verdict)
    screen.saved(out)


def _part(text: str | None) -> float | None:
    """Return a part from '10%' or '0.1', infinite from 'unknown'."""
    try:
        percent = text is not None and text.strip().endswith("%")
        word = (text or "").strip().removesuffix("%")
        value = None if text is None else inf if word == "unknown" else float(word) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if value is not None and not value >= 0:
        raise EstimateError(f"--gain-sigma is '{text}'; allowed is a part such as 10% or 0.1, 0, or unknown")
    return value


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
            "gains": [one.to_json() for one in found.gains],
            "mass_variance_by_gains": found.gain_share,
            "motion_was_enough": found.enough,
            "agreement": found.agreement,
            "reasons": [{"text": reason.text, "remedy": reason.remedy} for reason in found.reasons],
            "arm_verdict": {key: known.content["verdict"][key] for key in ("grade", "criteria", "reasons")},
            "recordings": [source.path for recording in recordings for source in recording.sources],
        }
    )


def _print(found: PayloadFound, content: dict[str, Any], out: Path | None) -> None:
    from ..identification.payload import ratio_text
    from ..identification.payload_gains import gains_text

    screen = Screen()
    screen.line(
        (content["robot"], "bold"),
        f": {len(content['recordings'])} recording(s), payload on link '{content['payload_link']}', in its frame",
    )
    for one in found.gains:
        screen.line(gains_text(one))
    print_payload(screen, found.body, always=True)
    if found.gain_share > 0:
        screen.line(f"         {100 * found.gain_share:.0f} % of the variance of the mass is that of the gains")
    enough = "was" if found.enough else "was not"
    screen.line(
        f"the motion {enough} enough; arm against its run: {ratio_text(found.agreement, 2)} (1 is what chance gives)",
        always=True,
    )
    print_reasons(screen, found.reasons)
    screen.saved(out)


def print_payload(screen: Screen, body: PayloadBody, *, always: bool = False) -> None:
    """Print mass, centre and inertia; ``always``: the mass with ``--quiet`` too."""
    from ..identification.payload_body import centre_text

    screen.line()
    screen.line(("payload", "bold"), f"  mass {body.mass[0]:.4g} +- {body.mass[1]:.2g} kg (one sigma)", always=always)
    screen.line(f"         centre {centre_text(body)}")
    if body.inertia_at_centre is not None and body.inertia_at_centre_sigma is not None:
        pairs = zip(
            ("XX", "XY", "XZ", "YY", "YZ", "ZZ"), body.inertia_at_centre, body.inertia_at_centre_sigma, strict=True
        )
        shown = ", ".join(f"{name} {value:.3g} +- {sigma:.1g}" for name, value, sigma in pairs if isfinite(value))
        if shown:
            screen.line(f"         inertia about its centre {shown} kg m^2")
