"""Commands that show what an arm is. Heavy imports wait inside, so that ``--help`` is instant."""

from __future__ import annotations

from ...files import require_files, robot_file
from ..options import Config, Effects, Gravity, Json, Lock, Out, Payload, Quiet, Robot, SignWidth, Torque, quietly


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
    gravity: Gravity = None,
    sign_width: SignWidth = None,
    lock: Lock = (),
    config: Config = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show a model: parameters, base parameters, and what cannot be seen and why."""
    require_files(robot_file(robot), config)
    from .. import model as command

    flags = {
        "torque": torque, "payload": payload, "effects": effects, "gravity": gravity,
        "sign_width": sign_width, "lock": lock or None,
    }  # fmt: skip
    with quietly(quiet):
        command.run(robot, flags, config, out, json)
