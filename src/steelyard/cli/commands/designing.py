"""The command that designs the motion to record. Heavy imports wait inside, so that ``--help`` is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ...files import require_files, robot_file
from ..options import OUTPUT, Config, Effects, Json, Payload, Quiet, Robot, Torque, quietly, words


def design(
    robot: Robot,
    /,
    *,
    torque: Torque = None,
    payload: Payload = None,
    effects: Effects = None,
    criterion: Annotated[
        str | None,
        Parameter(
            help="What is made small: d (default), a, e, worst_sigma, mean_sigma, condition, condition_normalised, "
            "condition_weighted, condition_weighted_normalised, condition_prior."
        ),
    ] = None,
    goal: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="Goal to attain with others: --goal condition=35; may be repeated."),
    ] = (),
    motion: Annotated[
        Literal["fourier", "quintic", "trapezoidal"] | None, Parameter(help="Kind of motion; default: fourier.")
    ] = None,
    duration: Annotated[str | None, Parameter(help="Duration [s], or smallest,largest; default: 20.")] = None,
    harmonics: Annotated[
        str | None, Parameter(help="Harmonics of a Fourier series, or fewest,most; default: 5.")
    ] = None,
    periods: Annotated[int | None, Parameter(help="Periods within the duration; default: 1.")] = None,
    moves: Annotated[int | None, Parameter(help="Moves through via points; default: one each 2 s.")] = None,
    limits: Annotated[Path | None, Parameter(help="TOML file with limits, space rules and obstacles.")] = None,
    floor: Annotated[
        str | None,
        Parameter(
            help="Height of the floor above the base frame's origin [m], or none; default: by the robot's file.",
            allow_leading_hyphen=True,
        ),
    ] = None,
    position_scale: Annotated[
        float | None, Parameter(help="Part of each position range that may be used; default: 0.95.")
    ] = None,
    gravity: Annotated[
        str | None,
        Parameter(help="Gravity x,y,z in the base frame [m/s^2]; default: the robot's.", allow_leading_hyphen=True),
    ] = None,
    parameters: Annotated[str | None, Parameter(help="Base parameters that count, by commas; default: all.")] = None,
    noise: Annotated[
        str | None, Parameter(help="Torque noise of a sample [N m or N], one or one a joint; default: 2 % of limits.")
    ] = None,
    rate: Annotated[float | None, Parameter(help="Samples a second of the recording [Hz]; default: 100.")] = None,
    position_noise: Annotated[float | None, Parameter(help="Noise of the positions [rad or m]; default: 0.")] = None,
    resonance: Annotated[
        float | None, Parameter(help="Lowest resonance [Hz]; the fastest harmonic stays below it.")
    ] = None,
    start: Annotated[
        str | None,
        Parameter(help="Posture to start from and return to, by commas [rad or m].", allow_leading_hyphen=True),
    ] = None,
    after: Annotated[
        Path | None, Parameter(help="Run folder of earlier recordings: what should be recorded next?")
    ] = None,
    carries: Annotated[str | None, Parameter(help="Name of the payload carried, of those the robot knows.")] = None,
    starts: Annotated[int | None, Parameter(help="Random motions to start from; default: 24.")] = None,
    seed: Annotated[int | None, Parameter(help="Of the random motions; default: 0.")] = None,
    threads: Annotated[int | None, Parameter(help="Threads; the result is the same. Default: all cores.")] = None,
    format: Annotated[
        str | None, Parameter(help="Files for robots, by commas: csv (default), npz, ros2, urscript, or none.")
    ] = None,
    file_rate: Annotated[float | None, Parameter(help="Rate of those files [Hz]; default: each format's own.")] = None,
    config: Config = None,
    out: Annotated[Path | None, Parameter(name="--out", group=OUTPUT, help="Folder for motion and result.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Design the motion to record: the most certain parameters within limits that hold at every instant."""
    require_files(robot_file(robot), limits, after, config)
    from .. import design as command

    flags = {
        "torque": torque, "payload": payload, "effects": words(effects), "criterion": criterion,
        "goals": list(goal) or None, "motion": motion, "duration": duration, "harmonics": harmonics,
        "periods": periods, "moves": moves, "parameters": words(parameters), "noise": noise, "rate": rate,
        "position_noise": position_noise, "resonance": resonance, "start": start, "carries": carries,
        "starts": starts, "seed": seed, "threads": threads, "format": words(format), "file_rate": file_rate,
        "limits": limits, "after": after, "floor": floor, "position_scale": position_scale, "gravity": gravity,
    }  # fmt: skip
    with quietly(quiet):
        return command.run(robot, flags, config, out, json)
