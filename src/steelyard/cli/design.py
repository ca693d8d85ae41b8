"""``steelyard design``: the motion to record, certified to keep its limits, and its predicted sigmas."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ..errors import DesignError
from ..files import require_files, robot_file
from ..plain_data import json_text
from .options import (
    OUTPUT,
    Config,
    Effects,
    Json,
    Payload,
    Quiet,
    RobotName,
    Scheduler,
    Torque,
    comma_separated,
    numbers_from,
    quietly,
)
from .output import ProgressBar

if TYPE_CHECKING:
    from ..excitation import Design, SearchProgress
    from ..robot import Robot

MOTION_FILE = "motion.toml"
POOR = 2
KEYS = {
    "torque": str, "payload": str, "effects": tuple[str, ...], "limits": str, "start": tuple[float, ...],
    "carries": str, "after": str, "format": tuple[str, ...], "file_rate": float, "floor": (float, str),
    "position_scale": float, "gravity": tuple[float, float, float],
}  # fmt: skip
"""Keys of a ``[design]`` table besides those of the search."""
_WHERE = ("threads", "scheduler")


# What is minimised.
CriterionName = Annotated[
    str | None,
    Parameter(
        help="What is made small: d (default), a, e, worst_sigma, mean_sigma, condition, condition_normalised, "
        "condition_weighted, condition_weighted_normalised, condition_prior."
    ),
]
Goals = Annotated[
    tuple[str, ...],
    Parameter(negative="", help="Goal to attain with others: --goal condition=35; may be repeated."),
]
Parameters = Annotated[str | None, Parameter(help="Base parameters that count, by commas; default: all.")]

# The motions that are searched.
MotionKind = Annotated[
    Literal["fourier", "quintic", "trapezoidal"] | None, Parameter(help="Kind of motion; default: fourier.")
]
Duration = Annotated[str | None, Parameter(help="Duration [s], or smallest,largest; default: 20.")]
Harmonics = Annotated[str | None, Parameter(help="Harmonics of a Fourier series, or fewest,most; default: 5.")]
Periods = Annotated[int | None, Parameter(help="Periods within the duration; default: 1.")]
Moves = Annotated[int | None, Parameter(help="Moves through via points; default: one each 2 s.")]
StartPosture = Annotated[
    str | None,
    Parameter(help="Posture to start from and return to, by commas [rad or m].", allow_leading_hyphen=True),
]

# What it must keep.
LimitsFile = Annotated[Path | None, Parameter(help="TOML file with limits, space rules and obstacles.")]
Floor = Annotated[
    str | None,
    Parameter(
        help="Height of the floor above the base frame's origin [m], or none; default: by the robot's file.",
        allow_leading_hyphen=True,
    ),
]
PositionScale = Annotated[float | None, Parameter(help="Part of each position range that may be used; default: 0.95.")]
Gravity = Annotated[
    str | None,
    Parameter(help="Gravity x,y,z in the base frame [m/s^2]; default: the robot's.", allow_leading_hyphen=True),
]
Resonance = Annotated[float | None, Parameter(help="Lowest resonance [Hz]; the fastest harmonic stays below it.")]

# The experiment: noise, payload and earlier recordings.
TorqueNoise = Annotated[
    str | None, Parameter(help="Torque noise of a sample [N m or N], one or one a joint; default: 2 % of limits.")
]
PositionNoise = Annotated[float | None, Parameter(help="Noise of the positions [rad or m]; default: 0.")]
Rate = Annotated[float | None, Parameter(help="Samples a second of the recording [Hz]; default: 100.")]
Carries = Annotated[str | None, Parameter(help="Name of the payload carried, of those the robot knows.")]
AfterRun = Annotated[Path | None, Parameter(help="Run folder of earlier recordings: what should be recorded next?")]

# The search, and the files written.
Starts = Annotated[int | None, Parameter(help="Random motions to start from; default: 24.")]
Seed = Annotated[int | None, Parameter(help="Of the random motions; default: 0.")]
Threads = Annotated[int | None, Parameter(help="Threads; the result is the same. Default: all cores.")]
Formats = Annotated[
    str | None, Parameter(help="Files for robots, by commas: csv (default), npz, ros2, urscript, or none.")
]
FileRate = Annotated[float | None, Parameter(help="Rate of those files [Hz]; default: each format's own.")]
Out = Annotated[Path | None, Parameter(name="--out", group=OUTPUT, help="Folder for motion and result.")]


def design(
    robot: RobotName,
    /,
    *,
    torque: Torque = None,
    payload: Payload = None,
    effects: Effects = None,
    criterion: CriterionName = None,
    goal: Goals = (),
    motion: MotionKind = None,
    duration: Duration = None,
    harmonics: Harmonics = None,
    periods: Periods = None,
    moves: Moves = None,
    limits: LimitsFile = None,
    floor: Floor = None,
    position_scale: PositionScale = None,
    gravity: Gravity = None,
    parameters: Parameters = None,
    noise: TorqueNoise = None,
    rate: Rate = None,
    position_noise: PositionNoise = None,
    resonance: Resonance = None,
    start: StartPosture = None,
    after: AfterRun = None,
    carries: Carries = None,
    starts: Starts = None,
    seed: Seed = None,
    threads: Threads = None,
    scheduler: Scheduler = None,
    format: Formats = None,
    file_rate: FileRate = None,
    config: Config = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Design the motion to record: the most certain parameters within limits that hold at every instant."""
    require_files(robot_file(robot), limits, after, config)
    flags = {
        "torque": torque, "payload": payload, "effects": comma_separated(effects), "criterion": criterion,
        "goals": goal, "motion": motion, "duration": duration, "harmonics": harmonics,
        "periods": periods, "moves": moves, "parameters": comma_separated(parameters), "noise": noise, "rate": rate,
        "position_noise": position_noise, "resonance": resonance, "start": start, "carries": carries,
        "starts": starts, "seed": seed, "threads": threads, "scheduler": scheduler, "format": comma_separated(format),
        "file_rate": file_rate,
        "limits": limits, "after": after, "floor": floor, "position_scale": position_scale, "gravity": gravity,
    }  # fmt: skip
    with quietly(quiet):
        return _run(robot, _settings_table(flags, config), config, out, json)


def _settings_table(flags: Mapping[str, Any], config: Path | None) -> dict[str, Any]:
    """Return the ``[design]`` table of a configuration file with the flags, which win."""
    from ..excitation import SCHEMA
    from ..run import read_config

    settings = read_config(config, "design", {**SCHEMA, **KEYS}) if config else {}
    settings.update({key: value for key, value in _parsed(flags).items() if value is not None})
    settings.setdefault("threads", os.cpu_count() or 1)
    if settings.get("carries") and settings.get("payload", "none") == "none":
        raise DesignError(f"the arm carries '{settings['carries']}', but --payload is none; choose loaded or paired")
    return settings


def _run(name: str, settings: Mapping[str, Any], config: Path | None, out: Path | None, json: bool) -> int:
    """Design, write motion, exports and result, and print them; return 2 if a parameter is not identifiable."""
    from ..excitation import design as design_experiment
    from ..excitation import design_settings, design_to_json
    from ..identification import read_run
    from ..robot import load_robot
    from ..run import RunFolder, hashes_of
    from .design_table import print_design

    search, robot = design_settings(settings), _mounted(load_robot(name), settings)
    _check_formats(robot, _formats(settings), settings.get("file_rate"), search.durations[1])
    limits, after = (Path(settings[key]) if settings.get(key) else None for key in ("limits", "after"))
    with RunFolder(out, "design") as run:
        with ProgressBar("searching") as bar:
            design = design_experiment(
                robot, search, torque=settings.get("torque"), payload=settings.get("payload", "none"),
                effects=settings.get("effects"), limits=limits, carries=settings.get("carries"),
                after=None if after is None else read_run(after), start=settings.get("start"),
                floor=settings.get("floor"), position_scale=settings.get("position_scale"),
                callback=lambda update: _show(bar, update),
            )  # fmt: skip
        inputs = hashes_of(Path(name), config, limits, after / "result.json" if after else None)
        # The answer does not depend on where it is computed; neither shall the file.
        given = {"robot": name, **{key: value for key, value in settings.items() if key not in _WHERE}}
        content = run.save(
            given, inputs, design_to_json(design), lambda place, _: _write(design, place, settings),
            report=design.to_html,
        )  # fmt: skip
        if json:
            print(json_text("design", content))
        else:
            print_design(design, run.place, content.get("files", []))
    return POOR if content["condition_number"]["normalised"] is None else 0


def _mounted(robot: Robot, settings: Mapping[str, Any]) -> Robot:
    """Return the robot under the gravity of the settings."""
    from ..configuration import checked, vector

    if "gravity" not in settings:
        return robot
    return robot.mounted(checked(settings["gravity"], vector, "gravity", DesignError))


def _show(bar: ProgressBar, update: SearchProgress) -> None:
    if update.value is not None:
        limits = "limits kept" if update.violation == 0 else f"worst constraint {100 * update.violation:.2g} % over"
        bar.relabel(f"searching: best {update.value:.5g}, {limits}")
    bar(update.done, update.total)


def _parsed(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return flags with lists of numbers and goals in place of their texts."""
    parsed = {**flags, "goals": dict(_goal(text) for text in flags["goals"]) or None}
    for key in ("duration", "noise", "harmonics", "start", "gravity"):
        numbers = numbers_from(flags[key], f"--{key}", DesignError) or []
        if key == "harmonics":
            numbers = [int(count) if count.is_integer() else count for count in numbers]
        is_one = len(numbers) == 1 and key not in ("start", "gravity")
        parsed[key] = numbers[0] if is_one else numbers or None
    with suppress(TypeError, ValueError):
        parsed["floor"] = float(flags["floor"])
    for key in ("limits", "after"):
        parsed[key] = None if flags[key] is None else str(flags[key])
    return parsed


def _goal(text: str) -> tuple[str, float]:
    name, _, wanted = text.rpartition("=")
    try:
        return name, float(wanted)
    except ValueError as error:
        raise DesignError(f"--goal is '{text}'; allowed is NAME=VALUE, such as condition=35") from error


def _formats(settings: Mapping[str, Any]) -> list[str]:
    return [name for name in dict.fromkeys(settings.get("format", ["csv"])) if name != "none"]


def _check_formats(robot: Robot, formats: Sequence[str], rate: float | None, longest: float) -> None:
    """Refuse files that could not be written, before the long search; a still motion stands for the slowest."""
    import numpy as np

    from ..configuration import checked, choice
    from ..motion import EXPORT_FORMATS, quintic
    from ..motion.export_formats import planned_export
    from ..motion.exports import FIRST_SPEEDS

    joints = [body.joint.name for body in robot.actuated]
    still = quintic(np.zeros((len(joints), 2)), longest / min(FIRST_SPEEDS), joints)
    for name in formats:
        checked(name, choice(*EXPORT_FORMATS, "none"), "format", DesignError)
        planned_export(still, EXPORT_FORMATS[name], rate, robot)


def _write(design: Design, place: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Write the motion and its exports, all proven first; return the names of the files."""
    from ..motion import export_set, write_trajectory

    formats, robot = _formats(settings), design.model.robot
    file_rate = settings.get("file_rate")
    exported = (
        export_set(design.trajectory, place, formats, file_rate, check=design.check, robot=robot) if formats else []
    )
    write_trajectory(design.trajectory, place / MOTION_FILE)
    return {"files": [MOTION_FILE, *(path.name for path in exported)]}
