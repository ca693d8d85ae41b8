"""The true parameters of a simulated arm, by name: what an identification should find."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ..errors import SimulationError, nearest_match
from ..model import EFFECTS, Model, build_model
from ..robot import INERTIAL_NAMES, Robot, moved_parameters, transform_from_placement

# Which values of a robot mean that it has an effect.
_FAMILY_OF_EFFECT = {"coupling": "Iac", "spring": "Ss", "Fcam": "Fcpm", "Fcal": "Fcpl"}


def plant_model(robot: Robot, sign_width: float) -> Model:
    """Return the model of everything the robot is known to have: the plant's equations."""
    families = {name.rstrip("0123456789") for name in robot.values}
    effects = [effect for effect in EFFECTS if _FAMILY_OF_EFFECT.get(effect, effect) in families]
    return build_model(robot, ["inertia", *effects], measured="both", sign_width=sign_width)


def true_values(model: Model, payload: str | None = None) -> Mapping[str, float]:
    """Return the value of every standard parameter of the plant, the payload added to the link that carries it."""
    robot = model.robot
    if "inertias" not in robot.carries:
        without = [body.link for body in robot.bodies if body.inertia is None]
        raise SimulationError(
            f"robot '{robot.name}' cannot be simulated: no inertia of link '{without[0]}'; give one in its file"
        )
    values = dict.fromkeys(model.names, 0.0)
    for body in robot.bodies:
        ten = np.array(body.inertia) + _payload_on(robot, body.number, payload)
        values.update({f"{symbol}{body.number}": float(x) for symbol, x in zip(INERTIAL_NAMES, ten, strict=True)})
    values.update({name: value for name, value in robot.values.items() if name in values})
    return MappingProxyType(values)


def truth_to_json(model: Model, payload: str | None) -> Mapping[str, float]:
    """Return the truth as an identification names it: the arm alone, and the payload as ``XXL ... ML``."""
    report = dict(true_values(model))
    if payload is not None:
        ten = model.robot.payloads[payload]
        report.update({f"{symbol}L": value for symbol, value in zip(INERTIAL_NAMES, ten, strict=True)})
    return MappingProxyType(report)


def _payload_on(robot: Robot, number: int, payload: str | None) -> np.ndarray:
    """Return the payload's ten parameters in the frame of a body, zero if it is carried by another."""
    if payload is None:
        return np.zeros(10)
    if payload not in robot.payloads:
        known = ", ".join(robot.payloads) or "none"
        raise SimulationError(
            f"robot '{robot.name}' knows no payload '{payload}'; it knows: {known}"
            f"{nearest_match(payload, robot.payloads)}"
        )
    frame = robot.frame(robot.payload_link or robot.bodies[-1].link)
    if frame.body != number:
        return np.zeros(10)
    return moved_parameters(np.array(robot.payloads[payload]), *transform_from_placement(frame.placement))
