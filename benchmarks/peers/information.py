"""The question all peers answer: log det of the information in a Fourier motion, on the same columns and instants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.errors import ModelError
from steelyard.model import BaseParameters, Model, base_parameters, build_model, stacked_regressor
from steelyard.motion import limits_of
from steelyard.robot import Robot, load_robot, transform_from_placement

EFFECTS = ("inertia", "Ia", "Fvm", "Fcm", "offm")
SIGN_WIDTH = 0.05
_ALLOWED = {"inertia": "", "Ia": "Ia", "Fvm": "Fv", "Fcm": "Fc", "offm": "off"}


@dataclass(frozen=True, eq=False)
class Chain:
    """A serial arm of revolute joints, as numbers.

    Attributes:
        rotations: Of each link's frame in the one before, at zero position (n, 3, 3).
        translations: Of its origin (n, 3) [m].
        axes: Unit axes in the link's own frame (n, 3).
        gravity: In the base frame (3,) [m/s^2].
    """

    rotations: np.ndarray
    translations: np.ndarray
    axes: np.ndarray
    gravity: np.ndarray


@dataclass(frozen=True, eq=False)
class Question:
    """``log det sum_e w_e^2 W_e^T W_e`` of base columns as a function of X (n, m): ``q = X @ basis[0]``.

    Attributes:
        model: Inertias, Ia, viscous, smooth Coulomb friction and offsets, motor torques.
        base: Its base parameters.
        basis: What multiplies X for q, qd and qdd (3, m, N).
        weights: 1 / sigma of each joint's torque (n,).
    """

    model: Model
    base: BaseParameters
    basis: np.ndarray
    weights: np.ndarray

    @property
    def chain(self) -> Chain:
        """The arm's geometry."""
        return chain_of(self.model.robot)

    @property
    def inertial(self) -> list[int]:
        """Base columns that are inertial: column 10 b + k is parameter k of body b."""
        size = 10 * len(self.model.robot.bodies)
        return [column for column in self.base.base_columns if column < size]

    @property
    def drive(self) -> list[tuple[str, int]]:
        """Kind (``Ia``, ``Fv``, ``Fc``, ``off``) and joint of the other base columns, in order."""
        joints = [body.joint.name for body in self.model.robot.actuated]
        size = 10 * len(self.model.robot.bodies)
        chosen = [self.model.parameters[column] for column in self.base.base_columns if column >= size]
        return [(_ALLOWED[parameter.effect], joints.index(parameter.joint)) for parameter in chosen]

    def motion(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd, qdd (n, N)."""
        return X @ self.basis[0], X @ self.basis[1], X @ self.basis[2]

    def regressor(self, X: np.ndarray) -> np.ndarray:
        """Return Steelyard's own base columns (n, N, c), not weighted: what the peers are checked against."""
        stacked = stacked_regressor(self.model.regressor, *self.motion(X))
        return stacked[:, list(self.base.base_columns)].reshape(len(X), -1, len(self.base.base_columns))


def question(robot: str | Robot, harmonics: int = 5, samples: int = 1000, period: float = 10.0) -> Question:
    """Return the question for an arm of the catalogue: one period, samples spread evenly, unit weights."""
    arm = load_robot(robot) if isinstance(robot, str) else robot
    model = build_model(arm, EFFECTS, "motor", sign_width=SIGN_WIDTH)
    basis = fourier_basis(harmonics, period, np.arange(samples) * period / samples)
    return Question(model, base_parameters(model), basis, np.ones(len(arm.actuated)))


def chain_of(robot: Robot) -> Chain:
    """Return the geometry of a serial arm."""
    serial = all(body.parent == body.number - 1 and body.joint.kind == "revolute" for body in robot.bodies)
    if not serial or len(robot.actuated) != len(robot.bodies):
        raise ModelError(f"robot '{robot.name}': the peers are written for serial arms of revolute joints")
    placed = [transform_from_placement(body.placement) for body in robot.bodies]
    return Chain(
        np.array([rotation for rotation, _ in placed]),
        np.array([translation for _, translation in placed]),
        np.array([body.joint.axis for body in robot.bodies]),
        np.array(robot.gravity),
    )


def fourier_basis(harmonics: int, period: float, time: np.ndarray) -> np.ndarray:
    """Return the rows 1, sin(k w t), cos(k w t) with first and second derivatives (3, 1 + 2 nf, N)."""
    pace = 2 * np.pi / period * np.arange(1, harmonics + 1)[:, None]
    sin, cos = np.sin(pace * time), np.cos(pace * time)
    one, zero = np.ones((1, time.size)), np.zeros((1, time.size))
    return np.array(
        [
            np.vstack([one, sin, cos]),
            np.vstack([zero, pace * cos, -pace * sin]),
            np.vstack([zero, -(pace**2) * sin, -(pace**2) * cos]),
        ]
    )


def random_coefficients(requested: Question, seed: int = 0, share: float = 0.5) -> np.ndarray:
    """Return X (n, m) of a motion that uses a share of the velocity limits (of 2 rad/s where there is none)."""
    rng = np.random.default_rng(seed)
    limits = limits_of(requested.model.robot)
    X = rng.standard_normal((len(limits.joints), requested.basis.shape[1]))
    peak = np.abs(X @ requested.basis[1]).max(axis=1)
    allowed = share * np.where(np.isfinite(limits.velocity), limits.velocity, 2.0)
    X *= (allowed / peak)[:, None]
    X[:, 0] = rng.uniform(-0.5, 0.5, len(X))
    return X
