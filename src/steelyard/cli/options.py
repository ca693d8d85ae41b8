"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

OUTPUT = Group("Output", sort_key=1)

Robot = Annotated[str, Parameter(help="Catalogue name, URDF file or DH table (TOML); see 'steelyard robots'.")]
Json = Annotated[bool, Parameter(name="--json", negative="", group=OUTPUT, help="Print one JSON object, nothing else.")]
Out = Annotated[Path | None, Parameter(name="--out", group=OUTPUT, help="Folder for result.json.")]
Config = Annotated[Path | None, Parameter(name="--config", help="TOML file with settings; flags win over it.")]
Root = Annotated[Path | None, Parameter(help="Folder where the paths of --config start; default: its own.")]
Torque = Annotated[
    Literal["motor", "joint", "both", "difference"] | None,
    Parameter(help="Torques that are measured; default: the robot's own."),
]
Gravity = Annotated[
    str | None,
    Parameter(help="Gravity x,y,z in the base frame [m/s^2], if mounted otherwise.", allow_leading_hyphen=True),
]
SignWidth = Annotated[
    float | None, Parameter(help="Width of the smooth sign in friction [rad/s or m/s]; 0: exact sign.")
]
Lock = Annotated[
    tuple[str, ...], Parameter(negative="", help="Hold a joint: --lock JOINT=POSITION [rad or m]; may be repeated.")
]
Payload = Annotated[
    Literal["none", "loaded", "paired"] | None,
    Parameter(help="none; loaded: one data set with payload; paired: without and with. Default: as recorded, or none."),
]
Effects = Annotated[
    str | None, Parameter(help="Effects, separated by commas (inertia,Ia,Fvm,Fcm,...); default: the robot's own.")
]


def words(text: str | None) -> list[str] | None:
    """Return words that were given with commas between them."""
    return None if text is None else [word.strip() for word in text.split(",")]
