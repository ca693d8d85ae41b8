"""Commands about recordings: rehearse one, look at one. Heavy imports wait inside, so that ``--help`` is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ...files import require_files, robot_file
from ..options import DATA, OUTPUT, Config, Json, Out, Quiet, Robot, Root, in_folder, quietly


def check(
    robot: Robot,
    /,
    *logs: Annotated[Path, Parameter(help="Recordings; each says what its columns are, or --config does.")],
    config: Annotated[
        Path | None, Parameter(name="--config", group=DATA, help="TOML file that says which columns are what.")
    ] = None,
    table: Annotated[
        str, Parameter(group=DATA, help="Table of --config that describes the logs; default: recording.")
    ] = "recording",
    root: Root = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Is this data any good? Stamps, gaps, units, jumps, constant channels, limits, before any fit."""
    require_files(robot_file(robot), *in_folder(root, logs), config)
    from .. import check as command

    with quietly(quiet):
        return command.run(robot, logs, config, table, root, out, json)


def simulate(
    robot: Robot,
    trajectory: Annotated[Path, Parameter(help="Trajectory file (TOML).")],
    /,
    *,
    rate: Annotated[float | None, Parameter(help="Rate of the recording [Hz]; default: 1000.")] = None,
    control: Annotated[
        Literal["pd", "computed_torque"] | None, Parameter(help="Controller; default: computed_torque.")
    ] = None,
    payload: Annotated[str | None, Parameter(help="Name of a payload the robot knows.")] = None,
    plant: Annotated[Literal["compiled", "mujoco"] | None, Parameter(help="Who integrates; default: compiled.")] = None,
    seed: Annotated[int | None, Parameter(help="Seed of noise and disturbance; default: 0.")] = None,
    runs: Annotated[int | None, Parameter(help="Number of runs, with seeds from the first on; default: 1.")] = None,
    format: Annotated[Literal["npz", "csv"] | None, Parameter(help="Kind of recording; default: npz.")] = None,
    config: Config = None,
    out: Annotated[
        Path, Parameter(name="--out", group=OUTPUT, help="Folder for recording and truth; default: simulation.")
    ] = Path("simulation"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rehearse an experiment: a closed-loop arm follows a trajectory; recording and truth are saved."""
    require_files(robot_file(robot), trajectory, config)
    from .. import simulate as command

    flags = {
        "record_rate": rate, "control": control, "payload": payload, "plant": plant, "seed": seed, "runs": runs,
        "format": format,
    }  # fmt: skip
    with quietly(quiet):
        command.run(robot, trajectory, flags, config, out, json)
