"""The command that judges estimators. Heavy imports wait inside, so that ``--help`` is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...files import require_files, robot_file
from ..options import DATA, OUTPUT, Effects, Json, Quiet, Robot, Torque, quietly, words


def montecarlo(
    robot: Robot,
    trajectory: Annotated[
        Path | None, Parameter(help="Motion (TOML); default: a random Fourier motion within the arm's limits.")
    ] = None,
    /,
    *,
    methods: Annotated[
        str | None, Parameter(help="Estimators, by commas, of those of 'steelyard identify'; default: wls,gls.")
    ] = None,
    seeds: Annotated[int | None, Parameter(help="Simulated experiments a noise level; default: 100.")] = None,
    first_seed: Annotated[int | None, Parameter(help="The first of their seeds; default: 0.")] = None,
    noise_levels: Annotated[
        str | None, Parameter(help="Factors of all noise of the experiment, by commas; default: 1.")
    ] = None,
    starts: Annotated[
        str | None,
        Parameter(help="How far off starts (rls, ekf, iv, didim) are, parts of each parameter: 0,0.2."),
    ] = None,
    rate: Annotated[float | None, Parameter(help="Rate of the recordings [Hz]; default: 200.")] = None,
    torque: Torque = None,
    effects: Effects = None,
    processes: Annotated[int | None, Parameter(help="Processes; the result is the same. Default: all cores.")] = None,
    parameters: Annotated[
        bool, Parameter(negative="", group=OUTPUT, help="Also print a table of parameters for each case.")
    ] = False,
    config: Annotated[
        Path | None,
        Parameter(
            name="--config", group=DATA, help="TOML file: tables montecarlo, simulate and identify; flags win over it."
        ),
    ] = None,
    out: Annotated[
        Path | None, Parameter(name="--out", group=OUTPUT, help="Folder for the result, and for runs as they finish.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Which estimator to trust: bias, efficiency, coverage and failures of many simulated experiments."""
    require_files(robot_file(robot), trajectory, config)
    from .. import montecarlo as command

    flags = {
        "methods": words(methods), "seeds": seeds, "first_seed": first_seed, "noise_levels": words(noise_levels),
        "starts": words(starts), "processes": processes,
    }  # fmt: skip
    asked = command.Asked(flags, {"record_rate": rate}, {"torque": torque, "effects": words(effects)})
    with quietly(quiet):
        return command.run(robot, trajectory, asked, config, out, json, parameters)
