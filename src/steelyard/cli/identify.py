"""``steelyard identify``: recordings to parameters, errors on unseen motion and a verdict."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ..files import require_files, robot_file
from ..plain_data import json_text
from .identify_table import print_identification
from .model import SCHEMA as MODEL_SCHEMA
from .options import (
    DATA,
    DEFAULT_MODEL,
    ESTIMATOR,
    PREPARATION,
    Config,
    Gains,
    Json,
    Method,
    ModelOptions,
    Out,
    Quiet,
    RobotName,
    Root,
    comma_separated,
    given,
    in_folder,
    quietly,
)  # fmt: skip
from .output import Timing

if TYPE_CHECKING:
    from ..identification import Settings
    from ..recording import Recording
    from ..robot import Robot

EXIT_CODES = {"good": 0, "fair": 0, "poor": 2}


@Parameter(name="*")
@dataclass(frozen=True)
class EstimatorOptions:
    """Options of the estimator."""

    select: Annotated[
        bool | None,
        Parameter(
            negative="--plain",
            group=ESTIMATOR,
            help="Choose further effects (friction by load, curved, with memory; a tilted base; drive gains) by "
            "cross-validation within the training recordings; --plain: the classical model. Default: choose, unless "
            "--effects names all effects or --method another method.",
        ),
    ] = None
    method: Method = None
    option: Annotated[
        tuple[str, ...],
        Parameter(group=ESTIMATOR, help="Setting of the method, name=value (ekf: integrator=euler); may be repeated."),
    ] = ()
    covariance: Annotated[
        Literal["model", "classical", "sandwich", "block", "hac"] | None,
        Parameter(
            group=ESTIMATOR,
            help="How the covariance of the estimate is computed; default: model with gls, else classical.",
        ),
    ] = None
    nonlinear: Annotated[
        str | None,
        Parameter(
            group=ESTIMATOR,
            help="Constants of friction and signals that are estimated too, by commas: stribeck (velocities), dahl "
            "(lengths), sign-width, delay (of all torques); for gls, wls, iterated and ols.",
        ),
    ] = None
    robust: Annotated[
        Literal["huber", "tukey"] | None,
        Parameter(
            group=ESTIMATOR,
            help="Rows far from the model count less: huber, or tukey, for which outliers do not count at all; for "
            "gls, wls, iterated and ols.",
        ),
    ] = None
    reduction: Annotated[
        Literal["f", "stepwise", "rsd", "bic", "none"] | None,
        Parameter(group=ESTIMATOR, help="Rule for essential parameters; default: f."),
    ] = None
    prior: Annotated[
        str | None,
        Parameter(
            name="--prior",
            negative="",
            group=ESTIMATOR,
            help="Robot (name or file) whose link inertias are the prior of the consistent parameters; default: the "
            "robot's own if they are CAD or vendor values.",
        ),
    ] = None
    no_prior: Annotated[
        bool, Parameter(name="--no-prior", negative="", group=ESTIMATOR, help="Consistent parameters without a prior.")
    ] = False
    prior_deviation: Annotated[
        float | None,
        Parameter(group=ESTIMATOR, help="Relative deviation of the prior, such as 0.2; default: by held-out error."),
    ] = None
    protect: Annotated[
        tuple[str, ...], Parameter(group=ESTIMATOR, help="Parameter that the reduction must keep; may be repeated.")
    ] = ()
    threads: Annotated[
        int | None, Parameter(group=ESTIMATOR, help="Threads; the result is the same. Default: all cores.")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class PreparationOptions:
    """Options of the preparation of rows."""

    cutoff: Annotated[
        float | None, Parameter(group=PREPARATION, help="Low-pass of the positions [Hz]; default: from the data.")
    ] = None
    decimation: Annotated[
        int | None, Parameter(group=PREPARATION, help="Samples for one row; default: from the cut-off.")
    ] = None
    velocity: Annotated[
        Literal["differentiated", "recorded"] | None,
        Parameter(group=PREPARATION, help="Where velocities come from; default: differentiated."),
    ] = None
    standstill: Annotated[
        float | None,
        Parameter(
            group=PREPARATION, help="Speed below which a joint's own rows are left out; default: from its noise."
        ),
    ] = None
    delay: Annotated[
        float | None,
        Parameter(
            group=PREPARATION,
            help="Delay of all torques against the positions [s], which is compensated; default: 0.",
        ),
    ] = None
    joint_delay: Annotated[
        tuple[str, ...],
        Parameter(
            group=PREPARATION,
            help="Further delay of one joint's torque: --joint-delay JOINT=SECONDS; may be repeated.",
        ),
    ] = ()
    evaluation_cutoff: Annotated[
        float | None,
        Parameter(group=PREPARATION, help="Low-pass under which torques are compared [Hz]; default: the cut-off."),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class DataOptions:
    """Options that say which recordings are used, and how."""

    validate: Annotated[
        tuple[Path, ...],
        Parameter(
            group=DATA, help="Recording for validation, not fitted; may be repeated. Default: the last part of each."
        ),
    ] = ()
    hold_out: Annotated[
        float | None, Parameter(group=DATA, help="Part of each recording held out without --validate; default: 0.25.")
    ] = None
    keep_bad: Annotated[bool, Parameter(group=DATA, help="Use recordings although a check found them bad.")] = False
    add: Annotated[
        tuple[Path, ...],
        Parameter(group=DATA, help="Earlier run whose data are added, without reading its logs; may be repeated."),
    ] = ()
    config: Config = None
    table: Annotated[
        tuple[str, ...],
        Parameter(group=DATA, help="Table of --config that describes the logs; may be repeated. Default: recording."),
    ] = ("recording",)
    validate_table: Annotated[
        tuple[str, ...], Parameter(group=DATA, help="Table of --config that describes the validation recordings.")
    ] = ()
    root: Root = None
    gains: Gains = None
    inertia_source: Annotated[
        Literal["cad", "vendor", "identified", "unknown"] | None,
        Parameter(group=DATA, help="Where the robot file's inertias come from; default: as the file or --config says."),
    ] = None


_DATA, _ESTIMATOR, _PREPARATION = DataOptions(), EstimatorOptions(), PreparationOptions()


def identify(
    robot: RobotName,
    /,
    *logs: Annotated[Path, Parameter(help="Recordings to fit; each says what its columns are, or --config does.")],
    data: DataOptions = _DATA,
    model: ModelOptions = DEFAULT_MODEL,
    estimator: EstimatorOptions = _ESTIMATOR,
    preparation: PreparationOptions = _PREPARATION,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Identify an arm: parameters with sigmas, errors on unseen motion, and a verdict in plain words."""
    paths = in_folder(data.root, [*logs, *data.validate])
    require_files(robot_file(robot), *paths, *data.add, data.config, data.gains)
    flags = given(model, estimator, preparation)
    if data.hold_out is not None:
        flags["hold_out"] = data.hold_out
    with quietly(quiet):
        table = settings_table(flags, data.config)
        return _run(robot, logs, data, table, out, json, needs_prior=estimator.prior_deviation is not None)


def settings_table(flags: dict[str, Any], config: Path | None) -> dict[str, Any]:
    """Return the ``[identify]`` table of a configuration file with the flags, which win."""
    from ..identification import SCHEMA, with_options
    from ..identification.settings import joint_delays
    from ..robot import gravity_vector, lock_positions
    from ..run import read_config

    table = {**read_config(config, "model", MODEL_SCHEMA), **read_config(config, "identify", SCHEMA)} if config else {}
    option, protect, effects, kinds = (flags.pop(key, None) for key in ("option", "protect", "effects", "nonlinear"))
    consistency = _consistency_table(*(flags.pop(key, None) for key in ("prior", "no_prior", "prior_deviation")))
    table = {"threads": os.cpu_count() or 1, **table, **flags}
    table |= {"effects": comma_separated(effects)} if effects is not None else {}
    table |= {"nonlinear": [kind.replace("-", "_") for kind in comma_separated(kinds) or ()]} if kinds else {}
    table |= {"protected": list(protect)} if protect else {}
    table |= {"consistency": {**table.get("consistency", {}), **consistency}} if consistency else {}
    table |= {"gravity": list(gravity_vector(table["gravity"]))} if "gravity" in table else {}
    table |= {"lock": lock_positions(table["lock"])} if "lock" in table else {}
    late = table.pop("joint_delay", None)
    table |= {"joint_delays": {**table.get("joint_delays", {}), **joint_delays(late)}} if late else {}
    return with_options(table, option or ())


def _consistency_table(prior: str | None, no_prior: bool | None, deviation: float | None) -> dict[str, Any]:
    """Return what the flags say of the prior."""
    from ..errors import EstimateError

    if prior is not None and no_prior:
        raise EstimateError("--prior and --no-prior exclude each other; give one of them")
    if deviation is not None and no_prior:
        raise EstimateError("--prior-deviation and --no-prior exclude each other; give one of them")
    chosen = "none" if no_prior else prior
    found: dict[str, Any] = {} if chosen is None else {"prior": chosen}
    return found | ({} if deviation is None else {"deviation": deviation})


def _require_prior(robot: Robot, settings: Settings) -> None:
    """Refuse a deviation of a prior that is not used.

    Raises:
        EstimateError: If there is no prior.
    """
    from ..errors import EstimateError
    from ..identification.consistent import inertia_prior

    prior, note = inertia_prior(robot, settings)
    if prior is None:
        raise EstimateError(f"--prior-deviation {settings.consistency.deviation:g} has no effect: {note}")


def _run(
    name: str,
    logs: Sequence[Path],
    data: DataOptions,
    table: dict[str, Any],
    out: Path | None,
    json: bool,
    *,
    needs_prior: bool = False,
) -> int:
    """Identify, print and save; return 2 for a poor verdict."""
    from ..identification import identify as identify_arm
    from ..identification import read_run, settings_from_table, write_run
    from ..robot import load_robot, robot_files
    from ..run import RunFolder, hashes_of
    from .logs import gains_file, hashes_of_recordings, usable_recordings, with_declared_source

    settings, timing = settings_from_table(table), Timing()
    robot = with_declared_source(load_robot(name), data.config, data.table)
    if data.inertia_source is not None:
        robot = replace(robot, inertia_source=data.inertia_source)
    if needs_prior:
        _require_prior(robot, settings)
    timing.stage("reading")
    training, unseen = _recordings(robot, logs, data, table)
    used, left_out = usable_recordings(
        training, keep_bad=data.keep_bad, uses_velocities=settings.preparation.velocity == "recorded"
    )
    with RunFolder(out, "identify") as saved:
        earlier = [read_run(run) for run in data.add]
        found = identify_arm(
            robot, used, unseen, settings, payload=table.get("payload"), earlier=earlier, stage=timing.stage
        )
        timing.finish()
        results = [run / "result.json" for run in data.add]
        prior = settings.consistency.prior
        files = [*robot_files(robot), *([] if prior in ("auto", "none") else robot_files(load_robot(prior)))]
        inputs = {**hashes_of(*files, data.config, *results), **hashes_of_recordings([*used, *unseen])}
        inputs |= hashes_of(gains_file(data.gains))
        # The number of threads does not change the result.
        decisive = {key: list(v) if isinstance(v, tuple) else v for key, v in table.items() if key != "threads"}
        content = {"robot": robot.file, "logs": [str(log) for log in logs], **decisive}
        content |= {"validate": [str(log) for log in data.validate]} if data.validate else {}
        content |= {"add": [str(run) for run in data.add]} if data.add else {}
        content |= {"gains": str(data.gains)} if data.gains else {}
        content = write_run(saved, content, inputs, found, {"left_out": left_out}, timing.seconds)
        if json:
            print(json_text("identify", content))
        else:
            print_identification(found, left_out, saved.place)
    return EXIT_CODES[found.verdict.grade]


def _recordings(
    robot: Robot, logs: Sequence[Path], data: DataOptions, settings: Mapping[str, Any]
) -> tuple[list[Recording], list[Recording]]:
    """Read what is to be fitted and what is to be judged by; files named for validation are not fitted too."""
    from .logs import read_streams, streams_of, with_gains_file

    validate = data.validate or [Path(path) for path in settings.get("validate", ())]
    unseen = []
    if validate or data.validate_table:
        tables = data.validate_table or data.table
        unseen = read_streams(streams_of(robot, validate, data.config, tables, data.root))
    streams = streams_of(robot, logs, data.config, data.table, data.root)
    if not logs and validate:
        names = {path.name for path in validate}
        streams = [s for s in streams if not {Path(table.path).name for table in s.plan.tables} & names]
    return with_gains_file(read_streams(streams), data.gains), with_gains_file(unseen, data.gains)
