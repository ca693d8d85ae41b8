"""The torques that a motion asks for, with what is known of the arm, and the way back from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import casadi as ca
import numpy as np

from ..model import Model, build_model
from ..robot import INERTIAL_NAMES, Robot
from ..simulate.truth import plant_model, true_values
from .rows import Differentiable, differentiable

Side = Literal["motor", "joint"]


@dataclass(frozen=True, eq=False)
class KnownTorques:
    """What is known of an arm's torques before the experiment.

    Attributes:
        model: A model of all known effects, its rows those of one side of the gears.
        values: Values of its standard parameters (p,).
        covariance: Their covariance (p, p), of parameters that come from a run; None if they are taken as they are.
    """

    model: Model
    values: np.ndarray
    covariance: np.ndarray | None = None

    def function(self, loaded: bool, sign_width: float) -> Differentiable:
        """Return the compiled torques ``(q, qd, qdd) -> tau`` (n, N), with a smooth sign of friction."""
        smooth = build_model(
            self.model.robot, self.model.effects, self.model.measured, self.model.payload, sign_width=sign_width
        )
        motion = smooth.motion
        regressor = smooth.regressor if loaded or smooth.payload == "none" else smooth.unloaded_regressor
        torque = ca.mtimes(regressor(motion.q, motion.qd, motion.qdd), ca.DM(self.values))
        return differentiable("torques", (motion.q, motion.qd, motion.qdd), [torque])


def known_torques(robot: Robot, side: Side, payload: tuple[float, ...] | None = None) -> KnownTorques | None:
    """Return the torques by the robot's own description; None if it has no inertias.

    Args:
        robot: The arm.
        side: Torques of the motors, on the joint side, or those that a joint torque sensor feels.
        payload: Ten inertial parameters of the payload in the frame of the link that carries it, if there is one.
    """
    if "inertias" not in robot.carries:
        return None
    plant = plant_model(robot, 0.0)
    model = build_model(robot, plant.effects, side, "none" if payload is None else "paired")
    values: Mapping[str, float] = true_values(plant)
    if payload is not None:
        values = {**values, **{f"{symbol}L": x for symbol, x in zip(INERTIAL_NAMES, payload, strict=True)}}
    return KnownTorques(model, np.array([values[name] for name in model.names]))
