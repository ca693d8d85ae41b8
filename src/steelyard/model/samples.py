"""Random motion inside an arm's limits, and the regressor there: what the structure of a model is judged by."""

from __future__ import annotations

import math

import casadi as ca
import numpy as np

from ..robot import AnyRobot, Limits, load_robot
from .model import Model

# Where a file gives no limit. Only the structure is judged on these samples, so the values matter little;
# they keep all columns of similar size.
_DEFAULT_RANGE = {"revolute": math.pi, "prismatic": 1.0}
_DEFAULT_VELOCITY = 2.0
_DEFAULT_ACCELERATION = 5.0


def random_motion(robot: AnyRobot, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, qd, qdd (na, count), uniform within the limits of the actuated joints."""
    robot = load_robot(robot)
    size = len(robot.actuated)
    lower, upper = np.array([_position_range(body.joint.limits, body.joint.kind) for body in robot.actuated]).T
    velocity = np.array([_finite(body.joint.limits.velocity, _DEFAULT_VELOCITY) for body in robot.actuated])
    acceleration = np.array([_finite(body.joint.limits.acceleration, _DEFAULT_ACCELERATION) for body in robot.actuated])
    shape = (size, count)
    q = lower[:, None] + (upper - lower)[:, None] * rng.random(shape)
    return q, velocity[:, None] * rng.uniform(-1, 1, shape), acceleration[:, None] * rng.uniform(-1, 1, shape)


def _position_range(limits: Limits, kind: str) -> tuple[float, float]:
    span = _DEFAULT_RANGE[kind]
    lower, upper = limits.lower, limits.upper
    if math.isinf(lower) and math.isinf(upper):
        return -span, span
    if math.isinf(lower):
        return upper - 2 * span, upper
    return lower, (lower + 2 * span if math.isinf(upper) else upper)


def _finite(limit: float, default: float) -> float:
    return limit if math.isfinite(limit) else default


def stacked_regressor(function: ca.Function, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Return W (rows * N, parameters), joint-major, from samples given as columns (na, N)."""
    rows, columns = function.size_out(0)
    values = np.array(function(q, qd, qdd))
    return values.reshape(rows, -1, columns).reshape(-1, columns)


def structural_samples(model: Model, seed: int = 0) -> np.ndarray:
    """Return W (r, p) on random motion; for a paired payload, unloaded rows on top of loaded ones."""
    rng = np.random.default_rng(seed)
    # Four times as many rows as columns: enough for the rank, little enough to stay instant.
    count = max(50, math.ceil(4 * len(model.parameters) / len(model.rows)))
    loaded = stacked_regressor(model.regressor, *random_motion(model.robot, count, rng))
    if model.payload != "paired":
        return loaded
    unloaded = stacked_regressor(model.unloaded_regressor, *random_motion(model.robot, count, rng))
    return np.vstack([unloaded, loaded])
