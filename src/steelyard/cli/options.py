"""Options that several commands share, their groups in ``--help``, and the state of ``--quiet``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from ..errors import SteelyardError
from ..estimators import ESTIMATORS

DATA, MODEL, ESTIMATOR, PREPARATION, OUTPUT = (
    Group(name, sort_key=place)
    for place, name in enumerate(("Data", "Model", "Estimator", "Preparation", "Output"), start=1)
)

RobotName = Annotated[
    str, Parameter(help="Catalogue name, URDF or MJCF file, or DH table (TOML); see 'steelyard robots'.")
]
Json = Annotated[bool, Parameter(name="--json", group=OUTPUT, help="Print one JSON object, nothing else.")]
Quiet = Annotated[
    bool,
    Parameter(
        name=["--quiet", "-q"], group=OUTPUT,
        help="No progress, no tables: print only the verdict and where it was saved.",
    ),
]  # fmt: skip
Out = Annotated[Path | None, Parameter(name="--out", group=OUTPUT, help="Folder for result.json.")]
Config = Annotated[
    Path | None, Parameter(name="--config", group=DATA, help="TOML file with settings; flags win over it.")
]
CalibrationConfig = Annotated[
    Path | None,
    Parameter(
        name="--config",
        group=DATA,
        help="TOML file: link, units, columns, base, markers, loads, springs; see the docs.",
    ),
]
Table = Annotated[str, Parameter(group=DATA, help="Table of --config that describes the logs; default: recording.")]
Root = Annotated[Path | None, Parameter(group=DATA, help="Folder where the paths of --config start; default: its own.")]
Gains = Annotated[
    Path | None,
    Parameter(
        group=DATA, help="Gains of the drives: gains.toml, or the folder of a run of gains; default: the log's own."
    ),
]
Scheduler = Annotated[
    str | None,
    Parameter(help="Dask scheduler whose workers do the work: tcp://127.0.0.1:8786, tls://HOST:8786. Same result."),
]
Torque = Annotated[
    Literal["motor", "joint", "both", "difference"] | None,
    Parameter(group=MODEL, help="Torques that are measured; default: the robot's own."),
]
Payload = Annotated[
    Literal["none", "loaded", "paired"] | None,
    Parameter(
        group=MODEL,
        help="none; loaded: one data set with payload; paired: without and with. Default: as recorded, or none.",
    ),
]
Effects = Annotated[
    str | None,
    Parameter(
        group=MODEL,
        help="Effects, separated by commas (inertia,Ia,Fvm,Fcm,...); +Fgm adds to the robot's own, Fgm2 is of joint 2 "
        "alone; default: the robot's own, to which identify adds unless --plain.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class ModelOptions:
    """Options of the model of an arm, as ``model`` and ``identify`` take them."""

    torque: Torque = None
    payload: Payload = None
    effects: Effects = None
    gravity: Annotated[
        str | None,
        Parameter(
            group=MODEL,
            help="Gravity x,y,z in the base frame [m/s^2], if mounted otherwise.",
            allow_leading_hyphen=True,
        ),
    ] = None
    lock: Annotated[
        tuple[str, ...],
        Parameter(group=MODEL, help="Hold a joint: --lock JOINT=POSITION [rad or m]; may be repeated."),
    ] = ()
    sign_width: Annotated[
        float | None, Parameter(group=MODEL, help="Width of the smooth sign in friction [rad/s or m/s]; 0: exact sign.")
    ] = None


DEFAULT_MODEL = ModelOptions()

if TYPE_CHECKING:
    _MethodName = str
else:
    _MethodName = Literal[tuple(ESTIMATORS)]
Method = Annotated[
    _MethodName | None,
    Parameter(group=ESTIMATOR, help=", ".join(f"{name} ({one.summary})" for name, one in ESTIMATORS.items()) + "."),
]


def in_folder(root: Path | None, paths: Iterable[Path]) -> list[Path]:
    """Return paths as they are read: below ``--root`` if it is given."""
    return [path if root is None else root / path for path in paths]


def given(*options: object) -> dict[str, Any]:
    """Return the options that were given, of records of options."""
    every = {key: value for record in options for key, value in vars(record).items()}
    return {key: value for key, value in every.items() if value not in (None, ())}


def comma_separated(text: str | None) -> list[str] | None:
    """Return the comma-separated parts of a text."""
    return None if text is None else [part.strip() for part in text.split(",")]


def numbers_from(text: str | None, what: str, error: type[SteelyardError]) -> list[float] | None:
    """Return the numbers of a text that has commas between them."""
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError as problem:
        raise error(f"{what} is '{text}'; allowed are numbers separated by commas, such as 0.5,1,2") from problem


is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """With ``--quiet``, print only verdicts and where they were saved, and no progress."""
    token = is_quiet.set(quiet)
    try:
        yield
    finally:
        is_quiet.reset(token)
