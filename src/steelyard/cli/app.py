"""The commands and their options. Heavy imports wait inside the commands, so that ``--help`` is instant."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Group, Parameter

from .. import __version__
from ..errors import SteelyardError

app = App(
    name="steelyard",
    help="Identify and calibrate robot arms: from a robot description and recorded motion to parameters you can trust.",
    version=__version__,
    help_format="plaintext",
)
_OUTPUT = Group("Output", sort_key=1)

Robot = Annotated[str, Parameter(help="Catalogue name, URDF file or DH table (TOML); see 'steelyard robots'.")]
Json = Annotated[
    bool, Parameter(name="--json", negative="", group=_OUTPUT, help="Print one JSON object, nothing else.")
]
Out = Annotated[Path | None, Parameter(name="--out", group=_OUTPUT, help="Folder for result.json.")]
Config = Annotated[Path | None, Parameter(name="--config", help="TOML file with settings; flags win over it.")]


@app.command
def robots(*, json: Json = False) -> None:
    """List the arms of the catalogue, what is known of each and its default model."""
    from . import robots as command

    command.run(json)


@app.command
def model(
    robot: Robot,
    /,
    *,
    torque: Annotated[
        Literal["motor", "joint", "both", "difference"] | None,
        Parameter(help="Torques that are measured; default: the robot's own."),
    ] = None,
    payload: Annotated[
        Literal["none", "loaded", "paired"] | None,
        Parameter(help="none; loaded: one data set with payload; paired: without and with. Default: none."),
    ] = None,
    effects: Annotated[
        str | None, Parameter(help="Effects, separated by commas (inertia,Ia,Fvm,Fcm,...); default: the robot's own.")
    ] = None,
    gravity: Annotated[
        str | None, Parameter(help="Gravity x,y,z in the base frame [m/s^2].", allow_leading_hyphen=True)
    ] = None,
    sign_width: Annotated[
        float | None, Parameter(help="Width of the smooth sign in friction [rad/s or m/s]; 0: exact sign.")
    ] = None,
    lock: Annotated[
        tuple[str, ...], Parameter(negative="", help="Hold a joint: --lock JOINT=POSITION [rad or m]; may be repeated.")
    ] = (),
    config: Config = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Show a model: parameters, base parameters, and what cannot be seen and why."""
    from . import model as command

    flags = {
        "torque": torque, "payload": payload, "effects": effects, "gravity": gravity,
        "sign_width": sign_width, "lock": lock or None,
    }  # fmt: skip
    command.run(robot, flags, config, out, json)


@app.command
def check(
    robot: Robot,
    /,
    *logs: Annotated[Path, Parameter(help="Recordings; each says what its columns are, or --config does.")],
    config: Annotated[
        Path | None, Parameter(name="--config", help="TOML file that says which columns are what.")
    ] = None,
    table: Annotated[str, Parameter(help="Table of --config that describes the logs.")] = "recording",
    root: Annotated[Path | None, Parameter(help="Folder where the paths of --config start; default: its own.")] = None,
    out: Out = None,
    json: Json = False,
) -> int:
    """Is this data any good? Stamps, gaps, units, jumps, constant channels, limits, before any fit."""
    from . import check as command

    return command.run(robot, logs, config, table, root, out, json)


@app.command
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
    out: Annotated[Path, Parameter(name="--out", group=_OUTPUT, help="Folder for recording and truth.")] = Path(
        "simulation"
    ),
    json: Json = False,
) -> None:
    """Rehearse an experiment: a closed-loop arm follows a trajectory; recording and truth are saved."""
    from . import simulate as command

    flags = {
        "record_rate": rate, "control": control, "payload": payload, "plant": plant, "seed": seed, "runs": runs,
        "format": format,
    }  # fmt: skip
    command.run(robot, trajectory, flags, config, out, json)


@app.command
def demo(*, out: Out = Path("demo"), json: Json = False) -> None:
    """Show and save the model of the built-in KUKA LWR4+."""
    from . import model as command

    command.run("kuka_lwr4", {"payload": "paired"}, None, out, json, command="demo")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 when done and good, 1 after an error told in one line, 2 for a poor verdict."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
        return code or 0
    except CycloptsError as error:
        return _fail(tokens, "usage", " ".join(str(error).split()).rstrip(".") + "; see 'steelyard --help'")
    except SteelyardError as error:
        return _fail(tokens, type(error).__name__, str(error))
    except KeyboardInterrupt:
        return _fail(tokens, "interrupted", "interrupted; files that were written before are whole")
    except BrokenPipeError:
        # The reader of our output (such as head) has seen enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(tokens: Sequence[str], kind: str, message: str) -> int:
    from .output import fail

    return fail(tokens, kind, message)
