"""``steelyard gains``: drive gains from recordings without and with a payload of known mass."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..files import require_files, robot_file
from ..plain_data import json_text
from .options import (
    DATA,
    MODEL,
    Config,
    Effects,
    Json,
    Out,
    Quiet,
    RobotName,
    Root,
    Torque,
    comma_separated,
    in_folder,
    numbers_from,
    quietly,
)  # fmt: skip
from .output import Column, Part, Screen, Timing, print_verdict

if TYPE_CHECKING:
    from ..identification import GainsFound
    from ..recording import Recording
    from ..robot import Robot

POOR = 2
GRADE_STYLE = {"known": "green", "weak": "yellow", "unknown": "red", "doubtful": "red"}

Logs = Annotated[tuple[Path, ...], Parameter(group=DATA)]


def gains(
    robot: RobotName,
    /,
    *logs: Annotated[Path, Parameter(help="Recordings; their set-up says which of them carry the payload.")],
    unloaded: Annotated[Logs, Parameter(help="Recording without payload; may be repeated.")] = (),
    loaded: Annotated[Logs, Parameter(help="Recording with the payload; may be repeated.")] = (),
    mass: Annotated[
        float | None,
        Parameter(group=DATA, help="Mass of the payload [kg]; default: the robot file's payload that the logs name."),
    ] = None,
    centre: Annotated[
        str | None,
        Parameter(
            name=["--centre", "--com"], group=DATA, allow_leading_hyphen=True,
            help="Its centre of mass x,y,z in the frame of the link that carries it [m]; default: not known.",
        ),
    ] = None,
    config: Config = None,
    table: Annotated[
        tuple[str, ...],
        Parameter(group=DATA, help="Table of --config that describes the logs; may be repeated. Default: recording."),
    ] = ("recording",),
    root: Root = None,
    torque: Torque = None,
    effects: Effects = None,
    lock: Annotated[
        tuple[str, ...],
        Parameter(group=MODEL, help="Hold a joint: --lock JOINT=POSITION [rad or m]; may be repeated."),
    ] = (),
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:  # fmt: skip
    """Find drive gains from recordings without and with a payload of known mass; identify takes them with --gains."""
    from ..errors import EstimateError
    from ..identification import settings_from_table
    from ..robot import load_robot, lock_positions

    require_files(robot_file(robot), *in_folder(root, [*logs, *unloaded, *loaded]), config)
    options: dict[str, Any] = {"torque": torque, "effects": comma_separated(effects)}
    options |= {"lock": lock_positions(list(lock)) if lock else None, "threads": os.cpu_count() or 1}
    settings = settings_from_table({key: value for key, value in options.items() if value is not None})
    point = numbers_from(centre, "--centre", EstimateError)
    with quietly(quiet):
        arm, timing = load_robot(robot), Timing()
        timing.stage("reading")
        without, carrying = _recordings(arm, (logs, unloaded, loaded), config, table, root)
        return _run(arm, (without, carrying), (mass, point), settings, config, timing, out, json)


def _recordings(
    arm: Robot,
    groups: tuple[Sequence[Path], Sequence[Path], Sequence[Path]],
    config: Path | None,
    tables: Sequence[str],
    root: Path | None,
) -> tuple[list[Recording], list[Recording]]:
    """Return the recordings without and with payload: as they are given, or as their set-up says."""
    from .logs import read_streams, streams_of

    logs, unloaded, loaded = groups
    read = [
        read_streams(streams_of(arm, part, config, tables, root)) if part or (number == 0 and not any(groups)) else []
        for number, part in enumerate((logs, unloaded, loaded))
    ]
    by_setup = read[0]
    return (
        [*(one for one in by_setup if one.payload is None), *read[1]],
        [*(one for one in by_setup if one.payload is not None), *read[2]],
    )


def _run(
    arm: Robot,
    recordings: tuple[list[Recording], list[Recording]],
    payload: tuple[float | None, list[float] | None],
    settings: Any,
    config: Path | None,
    timing: Timing,
    out: Path | None,
    json: bool,
) -> int:
    from ..identification import identify_gains
    from ..recording import write_gains
    from ..recording.gains import FILE
    from ..robot import robot_files
    from ..run import RunFolder, hashes_of
    from .logs import hashes_of_recordings

    mass, centre = payload
    with RunFolder(out, "gains") as saved:
        found = identify_gains(arm, *recordings, mass, centre=centre, settings=settings, stage=timing.stage)
        timing.finish()
        every = [one for part in recordings for one in part]
        inputs = {**hashes_of(*robot_files(arm), config), **hashes_of_recordings(every)}
        paths = [source.path for one in every for source in one.sources]
        chosen = {"robot": arm.file, "logs": paths, "mass": mass, "centre": centre}

        def fill(folder: Path, _: str) -> dict[str, Any]:
            write_gains(folder / FILE, found.gains)
            return {"files": {"gains": FILE}}

        content = saved.save(chosen, inputs, found.to_json(), fill, timing.seconds, found.to_html)
        print(json_text("gains", content)) if json else print_gains(found, saved.place)
    return 0 if "known" in found.grades else POOR


def print_gains(found: GainsFound, out: Path | None) -> None:
    """Print gains joint by joint, and the verdict on them."""
    from ..identification.gains_result import NOTE
    from ..recording.gains import FILE

    screen, gains = Screen(), found.gains
    loaded = sum(carries for _, carries in found.recordings)
    counts = f"{len(found.recordings) - loaded} recording(s) without and {loaded} with a payload"
    where = f"of {found.mass:.4g} kg on link '{found.payload_link}'"
    screen.line((found.robot.name, "bold"), f": {counts} {where}; friction {found.models[found.chosen].name}")
    share = found.by_models**2 / (found.by_models**2 + found.by_blocks**2)
    ends, grades = found.interval, found.grades
    rows: list[list[Part]] = [
        [
            joint, f"{gains.values[j]:.4g}", f"{gains.sigma[j]:.2g}", f"{100 * gains.relative_sigma[j]:.2g}",
            f"{ends[j, 0]:.4g} to {ends[j, 1]:.4g}", f"{100 * share[j]:.0f}",
            "-" if found.nominal is None else f"{found.nominal.values[j]:.4g}", f"{found.weight[j]:.2f}",
            (grades[j], GRADE_STYLE[grades[j]]),
        ]
        for j, joint in enumerate(gains.joints)
    ]  # fmt: skip
    names = (
        f"gain\n[{gains.unit}]", "sigma", "sigma\n[%]", "95 % interval", "of sigma by\nfriction [%]", "given\nbefore",
        "payload's\nweight [Nm]",
    )  # fmt: skip
    screen.table([Column("joint", "key"), *(Column(name) for name in names), Column("", "word")], rows)
    known = [f"{joint} {gains.values[j]:.4g}" for j, joint in enumerate(gains.joints) if grades[j] == "known"]
    screen.line(f"known gains: {', '.join(known) or 'none'}", always=True)
    screen.line(f"note: {NOTE}")
    print_verdict(screen, found.verdict)
    screen.saved(out)
    if out is not None:
        screen.line(f"gains: {out / FILE} (steelyard identify --gains)", always=True)
