"""Arms as an identification might find them: other inertias of real bodies, other friction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from arms import with_possible_inertia
from steelyard.export import IdentifiedArm
from steelyard.model import build_model
from steelyard.robot import INERTIAL_NAMES, Link, Robot, parameters_from_inertia, pseudo_inertia


def deformed(inertia: np.ndarray, rng: np.random.Generator, size: float) -> np.ndarray:
    """Return the ten parameters of a body whose every point moved a little, linearly: again those of a real body."""
    moved = np.eye(4) + size * rng.normal(size=(4, 4))
    pseudo = moved @ pseudo_inertia(inertia) @ moved.T
    second = pseudo[:3, :3]
    return parameters_from_inertia(np.trace(second) * np.eye(3) - second, pseudo[:3, 3], float(pseudo[3, 3]))


def other_values(robot: Robot, seed: int = 0, size: float = 0.05) -> dict[str, float]:
    """Return other inertias of all bodies: the moving links changed, links fixed to them did not."""
    rng = np.random.default_rng(seed)
    moving = {body.link for body in robot.bodies}
    links = tuple(_other_link(link, rng, size) if link.name in moving else link for link in robot.links)
    found = replace(robot, links=links).parameters
    return {name: value for name, value in found.items() if name.rstrip("0123456789") in INERTIAL_NAMES}


def _other_link(link: Link, rng: np.random.Generator, size: float) -> Link:
    known = np.array(with_possible_inertia(link, rng).inertia)
    return replace(link, inertia=tuple(deformed(known, rng, size).tolist()))


def identified(
    robot: Robot,
    values: dict[str, float],
    effects: Iterable[str] | None = None,
    measured: str | None = None,
    run: str = "",
) -> IdentifiedArm:
    """Return a robot as identified with other values."""
    return IdentifiedArm(robot.with_parameters(values), build_model(robot, effects, measured), run=run)
