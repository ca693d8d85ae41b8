"""Commands that find parameters and compare them. Heavy imports wait inside, so that ``--help`` is instant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ...files import require_files, robot_file
from ..options import (
    DATA,
    ESTIMATOR,
    OUTPUT,
    PREPARATION,
    Config,
    Effects,
    Gravity,
    Json,
    Lock,
    Out,
    Payload,
    Quiet,
    Robot,
    Root,
    SignWidth,
    Torque,
    in_folder,
    quietly,
    words,
)


def identify(
    robot: Robot,
    /,
    *logs: Annotated[Path, Parameter(help="Recordings to fit; each says what its columns are, or --config does.")],
    validate: Annotated[
        tuple[Path, ...],
        Parameter(
            group=DATA,
            negative="",
            help="Recording to judge by, not fitted; may be repeated. Default: the last part of each.",
        ),
    ] = (),
    torque: Torque = None,
    payload: Payload = None,
    effects: Effects = None,
    gravity: Gravity = None,
    lock: Lock = (),
    sign_width: SignWidth = None,
    method: Annotated[
        Literal["gls", "wls", "iterated", "ols", "rls", "ekf", "ml", "iv", "didim"] | None,
        Parameter(
            group=ESTIMATOR,
            help="gls (noise's own correlation; default), wls (a variance a joint), iterated, ols, rls (recursive), "
            "ekf (Kalman filter), ml (noise on positions too), iv and didim (simulated regressor).",
        ),
    ] = None,
    option: Annotated[
        tuple[str, ...],
        Parameter(
            group=ESTIMATOR,
            negative="",
            help="Setting of the method, name=value (ekf: integrator=euler); may be repeated.",
        ),
    ] = (),
    covariance: Annotated[
        Literal["model", "classical", "sandwich", "block", "hac"] | None,
        Parameter(group=ESTIMATOR, help="Whose sigmas; default: model with gls, else classical."),
    ] = None,
    reduction: Annotated[
        Literal["f", "stepwise", "rsd", "bic", "none"] | None,
        Parameter(group=ESTIMATOR, help="Rule for essential parameters; default: f."),
    ] = None,
    protect: Annotated[
        tuple[str, ...],
        Parameter(group=ESTIMATOR, negative="", help="Parameter that the reduction must keep; may be repeated."),
    ] = (),
    cutoff: Annotated[
        float | None, Parameter(group=PREPARATION, help="Low-pass of the positions [Hz]; default: from the data.")
    ] = None,
    decimation: Annotated[
        int | None, Parameter(group=PREPARATION, help="Samples for one row; default: from the cut-off.")
    ] = None,
    velocity: Annotated[
        Literal["differentiated", "recorded"] | None,
        Parameter(group=PREPARATION, help="Where velocities come from; default: differentiated."),
    ] = None,
    standstill: Annotated[
        float | None,
        Parameter(
            group=PREPARATION, help="Speed below which a joint's own rows are left out; default: from its noise."
        ),
    ] = None,
    delay: Annotated[
        float | None,
        Parameter(
            group=PREPARATION,
            help="By how much all torques are late against the positions [s]; they are put back. Default: 0.",
        ),
    ] = None,
    evaluation_cutoff: Annotated[
        float | None,
        Parameter(group=PREPARATION, help="Low-pass under which torques are compared [Hz]; default: the cut-off."),
    ] = None,
    hold_out: Annotated[
        float | None, Parameter(group=DATA, help="Part held out without --validate; default: 0.25.")
    ] = None,
    keep_bad: Annotated[
        bool, Parameter(group=DATA, negative="", help="Use recordings although a check found them bad.")
    ] = False,
    add: Annotated[
        tuple[Path, ...],
        Parameter(
            group=DATA, negative="", help="Run folder whose recordings count too, without being read; may be repeated."
        ),
    ] = (),
    config: Config = None,
    table: Annotated[
        tuple[str, ...],
        Parameter(
            group=DATA,
            negative="",
            help="Table of --config that describes the logs; may be repeated. Default: recording.",
        ),
    ] = ("recording",),
    validate_table: Annotated[
        tuple[str, ...],
        Parameter(group=DATA, negative="", help="Table of --config that describes the recordings to judge by."),
    ] = (),
    root: Root = None,
    threads: Annotated[
        int | None, Parameter(group=ESTIMATOR, help="Threads; the result is the same. Default: all cores.")
    ] = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Identify an arm: parameters with sigmas, errors on unseen motion, and a verdict in plain words."""
    require_files(robot_file(robot), *in_folder(root, logs), *in_folder(root, validate), *add, config)
    from .. import identify as command

    flags = {
        "torque": torque, "payload": payload, "effects": words(effects), "gravity": gravity,
        "lock": lock or None, "sign_width": sign_width, "method": method, "option": option or None,
        "covariance": covariance, "reduction": reduction, "protected": list(protect) or None, "cutoff": cutoff,
        "decimation": decimation, "velocity": velocity, "standstill": standstill, "delay": delay,
        "evaluation_cutoff": evaluation_cutoff, "hold_out": hold_out, "threads": threads or os.cpu_count() or 1,
    }  # fmt: skip
    with quietly(quiet):
        return command.run(
            robot, logs, validate, flags, config, (table, validate_table), root, keep_bad, add, out, json
        )


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
    from .. import payload as command

    with quietly(quiet):
        return command.run(run, logs, config, table, root, robot, out, json)


def compare(
    *runs: Annotated[str, Parameter(help="Run folders, or names of published tables.")],
    essential: Annotated[bool, Parameter(negative="", help="Compare essential parameters only.")] = False,
    csv: Annotated[Path | None, Parameter(group=OUTPUT, help="Also write the table as CSV.")] = None,
    latex: Annotated[Path | None, Parameter(group=OUTPUT, help="Also write the table as LaTeX.")] = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare the parameters of runs: differences in per cent and in sigmas."""
    from .. import compare as command

    with quietly(quiet):
        command.run(runs, essential, csv, latex, out, json)
