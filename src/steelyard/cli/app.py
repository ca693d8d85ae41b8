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
    suppress_keyboard_interrupt=False,  # told in one line below
)
_OUTPUT = Group("Output", sort_key=1)

Robot = Annotated[str, Parameter(help="Catalogue name, URDF file or DH table (TOML); see 'steelyard robots'.")]
Json = Annotated[
    bool, Parameter(name="--json", negative="", group=_OUTPUT, help="Print one JSON object, nothing else.")
]
Out = Annotated[Path | None, Parameter(name="--out", group=_OUTPUT, help="Folder for result.json.")]
Config = Annotated[Path | None, Parameter(name="--config", help="TOML file with settings; flags win over it.")]
Root = Annotated[Path | None, Parameter(help="Folder where the paths of --config start; default: its own.")]
Torque = Annotated[
    Literal["motor", "joint", "both", "difference"] | None,
    Parameter(help="Torques that are measured; default: the robot's own."),
]
Payload = Annotated[
    Literal["none", "loaded", "paired"] | None,
    Parameter(help="none; loaded: one data set with payload; paired: without and with. Default: as recorded, or none."),
]
Effects = Annotated[
    str | None, Parameter(help="Effects, separated by commas (inertia,Ia,Fvm,Fcm,...); default: the robot's own.")
]


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
    torque: Torque = None,
    payload: Payload = None,
    effects: Effects = None,
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
    root: Root = None,
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
        Parameter(
            negative="", show_default=False, help="Goal to attain with others: --goal condition=35; may be repeated."
        ),
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
    parameters: Annotated[str | None, Parameter(help="Base parameters that count, by commas; default: all.")] = None,
    noise: Annotated[
        str | None, Parameter(help="Torque noise of a sample [N m or N], one or one a joint; default: 2 % of limits.")
    ] = None,
    rate: Annotated[float | None, Parameter(help="Samples a second of the recording [Hz]; default: 100.")] = None,
    position_noise: Annotated[
        float | None, Parameter(help="Noise of the positions [rad or m] (Cramer-Rao bound of P4); default: 0.")
    ] = None,
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
    starts: Annotated[int | None, Parameter(help="Random motions to start from; default: 8.")] = None,
    seed: Annotated[int | None, Parameter(help="Of the random motions; default: 0.")] = None,
    threads: Annotated[int | None, Parameter(help="Threads; the result is the same. Default: all cores.")] = None,
    format: Annotated[
        str | None, Parameter(help="Files for robots, by commas: csv (default), npz, ros2, urscript, or none.")
    ] = None,
    file_rate: Annotated[float | None, Parameter(help="Rate of those files [Hz]; default: each format's own.")] = None,
    config: Config = None,
    out: Annotated[Path | None, Parameter(name="--out", group=_OUTPUT, help="Folder for motion and result.")] = None,
    json: Json = False,
) -> int:
    """Design the motion to record: the most certain parameters within limits that hold at every instant."""
    from . import design as command

    flags = {
        "torque": torque, "payload": payload, "effects": _words(effects), "criterion": criterion,
        "goals": list(goal) or None, "motion": motion, "duration": duration, "harmonics": harmonics,
        "periods": periods, "moves": moves, "parameters": _words(parameters), "noise": noise, "rate": rate,
        "position_noise": position_noise, "resonance": resonance, "start": start, "carries": carries,
        "starts": starts, "seed": seed, "threads": threads, "format": _words(format), "file_rate": file_rate,
        "limits": limits, "after": after,
    }  # fmt: skip
    return command.run(robot, flags, config, out, json)


@app.command
def identify(
    robot: Robot,
    /,
    *logs: Annotated[Path, Parameter(help="Recordings to fit; each says what its columns are, or --config does.")],
    validate: Annotated[
        tuple[Path, ...],
        Parameter(
            negative="", help="Recording to judge by, not fitted; may be repeated. Default: the last part of each."
        ),
    ] = (),
    torque: Torque = None,
    payload: Payload = None,
    effects: Effects = None,
    method: Annotated[
        Literal["gls", "wls", "iterated", "ols"] | None,
        Parameter(help="gls (noise's own correlation; default), wls (P1), iterated, ols."),
    ] = None,
    covariance: Annotated[
        Literal["model", "classical", "sandwich", "block", "hac"] | None,
        Parameter(help="Whose sigmas; default: model with gls, else classical."),
    ] = None,
    reduction: Annotated[
        Literal["f", "rsd", "bic", "none"] | None, Parameter(help="Rule for essential parameters; default: f.")
    ] = None,
    protect: Annotated[
        tuple[str, ...], Parameter(negative="", help="Parameter that the reduction must keep; may be repeated.")
    ] = (),
    cutoff: Annotated[float | None, Parameter(help="Low-pass of the positions [Hz]; default: from the data.")] = None,
    decimation: Annotated[int | None, Parameter(help="Samples for one row; default: from the cut-off.")] = None,
    velocity: Annotated[
        Literal["differentiated", "recorded"] | None, Parameter(help="Where velocities come from.")
    ] = None,
    standstill: Annotated[
        float | None, Parameter(help="Speed below which a joint's own rows are left out; default: from its noise.")
    ] = None,
    evaluation_cutoff: Annotated[
        float | None, Parameter(help="Low-pass under which torques are compared [Hz]; default: the cut-off.")
    ] = None,
    hold_out: Annotated[float | None, Parameter(help="Part held out without --validate; default: 0.25.")] = None,
    keep_bad: Annotated[bool, Parameter(negative="", help="Use recordings although a check found them bad.")] = False,
    add: Annotated[
        tuple[Path, ...],
        Parameter(negative="", help="Run folder whose recordings count too, without being read; may be repeated."),
    ] = (),
    config: Config = None,
    table: Annotated[
        tuple[str, ...], Parameter(negative="", help="Table of --config that describes the logs; may be repeated.")
    ] = ("recording",),
    validate_table: Annotated[
        tuple[str, ...], Parameter(negative="", help="Table of --config that describes the recordings to judge by.")
    ] = (),
    root: Root = None,
    threads: Annotated[int | None, Parameter(help="Threads; the result is the same. Default: all cores.")] = None,
    out: Out = None,
    json: Json = False,
) -> int:
    """Identify an arm: parameters with sigmas, errors on unseen motion, and a verdict in plain words."""
    from . import identify as command

    flags = {
        "torque": torque, "payload": payload, "effects": _words(effects), "method": method,
        "covariance": covariance, "reduction": reduction, "protected": list(protect) or None, "cutoff": cutoff,
        "decimation": decimation, "velocity": velocity, "standstill": standstill,
        "evaluation_cutoff": evaluation_cutoff, "hold_out": hold_out, "threads": threads or os.cpu_count() or 1,
    }  # fmt: skip
    return command.run(robot, logs, validate, flags, config, (table, validate_table), root, keep_bad, add, out, json)


@app.command
def payload(
    run: Annotated[Path, Parameter(help="Folder of the identify run that knows the arm.")],
    /,
    *logs: Annotated[Path, Parameter(help="Recordings with the payload.")],
    robot: Annotated[str | None, Parameter(help="The run's robot file, if it has moved.")] = None,
    config: Config = None,
    table: Annotated[str, Parameter(help="Table of --config that describes the logs.")] = "recording",
    root: Root = None,
    out: Out = None,
    json: Json = False,
) -> int:
    """What is it holding: mass, centre and inertia of a payload, when the arm is known from a run."""
    from . import payload as command

    return command.run(run, logs, config, table, root, robot, out, json)


@app.command
def compare(
    *runs: Annotated[str, Parameter(help="Run folders, or names of published tables.")],
    essential: Annotated[bool, Parameter(negative="", help="Compare essential parameters only.")] = False,
    csv: Annotated[Path | None, Parameter(help="Also write the table as CSV.")] = None,
    latex: Annotated[Path | None, Parameter(help="Also write the table as LaTeX.")] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Compare the parameters of runs: differences in per cent and in sigmas."""
    from . import compare as command

    command.run(runs, essential, csv, latex, out, json)


@app.command
def papers(
    paper: Annotated[str, Parameter(help="P1, P2, P4 or P5.")],
    /,
    *,
    seeds: Annotated[int | None, Parameter(help="Simulated experiments; default: as many as the paper needs.")] = None,
    out: Out = None,
    json: Json = False,
) -> int:
    """Reproduce a paper's figures, beside those printed."""
    from . import papers as command

    return command.run(paper, seeds, out, json)


@app.command
def demo(*, out: Out = Path("demo"), json: Json = False) -> int:
    """The whole chain on the built-in KUKA LWR4+: motion, recordings, identification, verdict."""
    from . import demo as command

    return command.run(out or Path("demo"), json)


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 when done and good, 1 after an error told in one line, 2 for a poor verdict."""
    # Work is shared by threads of our own; those of BLAS would make the last digits depend on the number of cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
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
