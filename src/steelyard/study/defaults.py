"""Defaults of a study: a motion and noise for an arm, noise levels, and starts that are off by a stated part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ..estimators import ESTIMATORS, methods_with_start
from ..identification import Settings
from ..motion import FourierSeries, MotionLimits, Trajectory, at_speed, fourier, limits_of
from ..motion.limits import RATES
from ..robot import AnyRobot, Robot, load_robot
from ..simulation import Experiment, Noise, simulate

HARMONICS, PERIOD, PERIODS = 5, 10.0, 2
"""Of the motion; the period [s] before it is slowed down to keep the limits."""

RANGE_PART, RATE_PART, TORQUE_PART = 0.6, 0.9, 0.8
"""Parts of the limits that the motion uses: of positions, of velocities and accelerations, of torques."""

NOISE_PART = 0.02
"""Noise of a torque as a part of the largest torque of the motion."""

_WITHOUT_LIMITS = {"revolute": np.pi / 2, "prismatic": 0.25}
"""Half the range of a joint that has no limits [rad or m]."""

_SLOWER, _MOST_SLOWED = 0.8, 12
_LOOK_RATE = 50.0


def default_motion(robot: AnyRobot, seed: int = 0) -> FourierSeries:
    """Return a random Fourier motion within the limits of an arm: 5 harmonics, two periods of 10 s, or slower.

    Positions keep within 0.6 of their range, velocities and accelerations within 0.9 of their limits, and motor
    torques within 0.8 of theirs, as far as slowing down helps: gravity does not become less.

    Args:
        robot: An arm with inertias.
        seed: Of the coefficients.
    """
    robot = load_robot(robot)
    limits = limits_of(robot)
    motion = _within_range(robot, limits, np.random.default_rng(seed))
    for _ in range(_MOST_SLOWED):
        if _is_slow_enough(motion, limits) and _is_weak_enough(motion, robot):
            break
        slower = at_speed(motion, _SLOWER)
        assert isinstance(slower, FourierSeries)
        motion = slower
    return motion


def _within_range(robot: Robot, limits: MotionLimits, rng: np.random.Generator) -> FourierSeries:
    size = len(limits.joints)
    free = np.array([_WITHOUT_LIMITS[body.joint.kind] for body in robot.actuated])
    bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    lower, upper = np.where(bounded, limits.lower, -free), np.where(bounded, limits.upper, free)
    # A range of many turns is not needed, and would need speeds beyond the arm's.
    half, middle = np.minimum((upper - lower) / 2, 2 * free), (upper + lower) / 2
    shape = (size, HARMONICS)
    # Higher harmonics are smaller, so that all have about the same velocity.
    sin, cos = (rng.standard_normal(shape) / np.arange(1, HARMONICS + 1) for _ in range(2))
    unit = fourier(np.zeros(size), sin, cos, PERIOD, limits.joints).extrema()
    reach = np.maximum(unit.upper.value, -unit.lower.value)
    scale = (RANGE_PART * half / reach)[:, None]
    return fourier(middle, scale * sin, scale * cos, PERIOD, limits.joints, PERIODS)


def _is_slow_enough(motion: FourierSeries, limits: MotionLimits) -> bool:
    extrema = motion.extrema()
    return all((getattr(extrema, rate).value <= RATE_PART * getattr(limits, rate)).all() for rate in RATES)


def _is_weak_enough(motion: FourierSeries, robot: Robot) -> bool:
    effort = np.array([body.joint.limits.effort for body in robot.actuated])
    return bool((_largest_torques(robot, motion, None)["motor"] <= TORQUE_PART * effort).all())


def default_noise(robot: AnyRobot, motion: Trajectory, payload: str | None = None) -> dict[str, Any]:
    """Return settings of white noise on the torques that an arm measures: 2 % of the largest of the motion.

    Args:
        robot: An arm with inertias.
        motion: The motion.
        payload: Name of the payload carried, None for none.
    """
    robot = load_robot(robot)
    sides = {"motor": ("motor",), "joint": ("joint",)}.get(robot.defaults.measured, ("motor", "joint"))
    largest = _largest_torques(robot, motion, payload)
    # An axle that nothing loads has no torque of its own, but its sensor has noise.
    sizes = {side: np.maximum(largest[side], 1e-3 * largest[side].max()) for side in sides}
    return {
        f"{side}_noise": {"kind": "white", "std": [float(f"{NOISE_PART * size:.3g}") for size in sizes[side]]}
        for side in sides
    }


def _largest_torques(robot: Robot, motion: Trajectory, payload: str | None) -> dict[str, np.ndarray]:
    """Return the largest motor and joint torques of a motion (n,) [N m or N], those of inverse dynamics."""
    ideal = Experiment(plant="ideal", control_rate=_LOOK_RATE, record_rate=_LOOK_RATE, payload=payload)
    run = simulate(robot, motion, ideal, [0])
    return {"motor": np.abs(run.motor_torque[0]).max(axis=1), "joint": np.abs(run.joint_torque[0]).max(axis=1)}


def noises_of(experiment: Experiment) -> dict[str, Noise]:
    """Return the noises of an experiment by the name of their setting, those that are there and not zero."""
    given = {one.name: getattr(experiment, one.name) for one in fields(Experiment)}
    return {name: noise for name, noise in given.items() if isinstance(noise, Noise) and any(noise.std)}


def scaled(experiment: Experiment, level: float) -> Experiment:
    """Return the experiment with all noise deviations multiplied."""
    noises = {
        name: replace(noise, std=tuple(level * std for std in noise.std))
        for name, noise in noises_of(experiment).items()
    }
    return replace(experiment, **noises)


def without_noise(experiment: Experiment) -> Experiment:
    """Return the experiment without any noise."""
    return replace(experiment, **dict.fromkeys(noises_of(experiment)))


_STREAM = 1_000
"""Number of the random stream of starts, beyond those of an experiment's noises."""


def has_start(method: str) -> bool:
    """Return whether a method begins with values that the study can choose."""
    return method in methods_with_start()


def with_start(
    settings: Settings, start: float | None, seed: int, names: Sequence[str], true: np.ndarray, units: Sequence[str]
) -> Settings:
    """Return settings whose method starts at ``chi (1 + start z)``, z normal.

    The prior has the standard deviation that the registry of estimators states: 100 % for recursive methods, which
    take it as prior knowledge of the order of magnitude; huge for the others, which only start there.

    Args:
        settings: Settings of one method.
        start: How far off, as a part of each parameter; None leaves the settings alone.
        seed: Of the run.
        names: Columns, c of them.
        true: Their true values chi (c,).
        units: Their units.
    """
    if start is None:
        return settings
    drawn = np.random.default_rng([seed, _STREAM]).standard_normal(len(true))
    sizes = (ESTIMATORS[settings.method].start_deviation or 1.0) * _sizes(true, units)
    prior = {
        name: (float(value), float(size))
        for name, value, size in zip(names, true * (1 + start * drawn), sizes, strict=True)
    }
    chosen = replace(settings, prior=MappingProxyType(prior))
    if settings.method != "rls":
        return chosen
    return replace(chosen, options={**chosen.options, "rls": replace(chosen.of_method, start="prior")})


def _sizes(true: np.ndarray, units: Sequence[str]) -> np.ndarray:
    """Return the order of magnitude of each parameter (c,); of one near zero that of its unit's middle one."""
    size = np.abs(true)
    for unit in set(units):
        own = np.array([other == unit for other in units])
        middle = float(np.median(size[own]))
        size[own] = np.maximum(size[own], middle if middle > 0 else max(float(size[own].max()), 1e-3))
    return size
