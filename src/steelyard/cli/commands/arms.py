"""Commands that show what an arm is. Heavy imports wait inside, so that ``--help`` is instant."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ..options import Config, Effects, Json, Out, Payload, Robot, Torque


def robots(*, json: Json = False) -> None:
    """List the arms of the catalogue, what is known of each and its default model."""
    from .. import robots as command

    command.run(json)


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
    from .. import model as command

    flags = {
        "torque": torque, "payload": payload, "effects": effects, "gravity": gravity,
        "sign_width": sign_width, "lock": lock or None,
    }  # fmt: skip
    command.run(robot, flags, config, out, json)
