"""P4's residual peaks at low speed: a true friction with a Stribeck part, identified without one (P4.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..identify import Identification, Settings, identify_arm
from ..motion import Trajectory
from ..recording import Recording, TorqueChannel
from .claim import Claim, same, within
from .p4_arm import POSITION_VARIANCE
from .p4_bench import Bench, instants, moved

PERIODS = 4
STRIBECK = (0.0, 12.0, 6.0)
"""Friction at standstill above Coulomb's, of every axis [N m]; axis 1 has none."""

STRIBECK_SPEED = 0.15
"""Speed at which most of it has gone [rad/s]."""


@dataclass(frozen=True, eq=False)
class Friction:
    """The same experiment with and without a Stribeck part in the true friction."""

    without: Identification
    with_stribeck: Identification


def friction_found(arm: Bench, trajectory: Trajectory, threads: int = 1, seed: int = 0) -> Friction:
    """Identify both arms from four periods, with the product's defaults."""
    settings = Settings(effects=arm.equations.model.effects, bias_repeats=0, threads=threads)
    robot = arm.equations.model.robot
    nothing = (0.0,) * len(STRIBECK)
    found = [
        identify_arm(robot, [recorded(arm, trajectory, size, seed)], settings=settings) for size in (nothing, STRIBECK)
    ]
    return Friction(*found)


def recorded(arm: Bench, trajectory: Trajectory, stribeck: tuple[float, ...], seed: int) -> Recording:
    """Return a recording of some periods with P4's noise and a Stribeck part of that size."""
    rng = np.random.default_rng(seed)
    time = instants(periods=PERIODS)
    q, qd, qdd = moved(trajectory, time)
    extra = np.array(stribeck)[:, None] * np.sign(qd) * np.exp(-((qd / STRIBECK_SPEED) ** 2))
    torque = arm.torques((q, qd, qdd)) + extra + rng.normal(size=q.shape) * arm.deviations[:, None]
    seen = q + rng.normal(size=q.shape) * np.sqrt(POSITION_VARIANCE)[:, None]
    return Recording(trajectory.joints, time, seen, torques=(TorqueChannel("motor_torque", torque),))


def low_speed_joints(found: Identification) -> list[str]:
    """Return the joints of which the residual tests say that friction at low speed is lacking."""
    return [
        test.joint
        for test in found.tests
        if any(pattern.signal == "velocity" and "low speed" in pattern.text for pattern in test.patterns)
    ]


def friction_claims(found: Friction) -> Iterator[Claim]:
    """Return the claims on residual peaks at low speed."""
    sentences = [
        pattern.text for test in found.with_stribeck.tests for pattern in test.patterns if "low speed" in pattern.text
    ]
    yield same(
        "residual peaks at low speed: axes named when the true friction of axes 2 and 3 has a Stribeck part",
        "friction model too simple", ", ".join(low_speed_joints(found.with_stribeck)), "joint_2, joint_3",
        sentences[0] if sentences else "", claimed="joint_2, joint_3",
        fails_if="the residual tests miss friction at low speed, or name an axis that has none",
    )  # fmt: skip
    yield same(
        "the same when it has none", "", ", ".join(low_speed_joints(found.without)) or "none", "none",
        "nothing is found where there is nothing",
        fails_if="the residual tests see friction at low speed where there is none",
    )  # fmt: skip
    with_it, without = (each.fit_error.joints[1].rms for each in (found.with_stribeck, found.without))
    yield within(
        "rms residual of axis 2 with the Stribeck part over that without", "not said", with_it / without, 1.02, np.inf,
        why="larger", fails_if="the friction model takes the Stribeck part up: residuals would not show it",
    )  # fmt: skip
