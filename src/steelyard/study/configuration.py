"""Configuration of a study: methods, noise levels, starts and seeds; motion and noise that are chosen for an arm.

Experiment and settings of the fit are plain text, which can be sent to another process, hashed and stored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import __version__
from ..configuration import checked, choice, number
from ..errors import ConfigError, EstimateError, SimulationError, require_type
from ..estimators import ESTIMATORS, methods_with_start
from ..identification import Settings
from ..motion import FourierSeries, MotionLimits, Trajectory, at_speed, fourier, limits_of, load_trajectory
from ..motion.files import table_from_trajectory
from ..motion.limits import RATES
from ..robot import AnyRobot, Robot, load_robot
from ..run import hashes_of
from ..simulation import Experiment, Noise, simulate

LARGEST_SEED = 2**31
"""Seeds lie below this, so that they are the same number in every file."""


@dataclass(frozen=True)
class Case:
    """A row of the table of a study.

    Attributes:
        method: Name of the estimator.
        noise_level: Factor of all noise deviations.
        start: How far off the start is, as a part of each parameter; None: the method's own start.
    """

    method: str
    noise_level: float
    start: float | None = None

    @property
    def name(self) -> str:
        """The name of the case, which can be the name of a file."""
        start = "" if self.start is None else f"_start_{float(self.start)!r}"
        return f"{self.method}_noise_{float(self.noise_level)!r}{start}"


@dataclass(frozen=True)
class StudySettings:
    """Methods, seeds, noise levels and starts of a study.

    Attributes:
        methods: Names of estimators, of ``steelyard.estimators``.
        seeds: Number of seeds: simulated experiments of each noise level.
        first_seed: The first of them; the others follow it.
        noise_levels: Factors of all noise deviations of the experiment.
        starts: How far off the starts of methods that have one are, as a part of each parameter, drawn by seed;
            without any, every method starts as it would by itself.

    Example:
        >>> len(steelyard.StudySettings(methods=("wls", "gls"), seeds=20, noise_levels=(1.0, 2.0)).cases)
        4
    """

    methods: tuple[str, ...] = ("wls", "gls")
    seeds: int = 100
    first_seed: int = 0
    noise_levels: tuple[float, ...] = (1.0,)
    starts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for method in self.methods:
            checked(method, choice(*ESTIMATORS), "method", EstimateError)
        if self.seeds < 2:
            raise SimulationError(f"seeds: got {self.seeds}, needed are at least 2: one run has no spread; give 100")
        if not 0 <= self.first_seed <= LARGEST_SEED - self.seeds:
            raise SimulationError(f"first_seed: got {self.first_seed}, allowed is 0 to {LARGEST_SEED - self.seeds}")
        for level in self.noise_levels:
            checked(level, number(above=0, largest=1e300), "noise_levels", SimulationError)
        for start in self.starts:
            checked(start, number(least=0, largest=1e300), "starts", SimulationError)
        for what in ("methods", "noise_levels", "starts"):
            _check_list(what, getattr(self, what), needed=what != "starts")

    @property
    def all_seeds(self) -> range:
        """The seeds."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def cases(self) -> tuple[Case, ...]:
        """Every method at every noise level, and from every start if it has one."""
        return tuple(
            Case(method, level, start)
            for method in self.methods
            for level in self.noise_levels
            for start in (self.starts if has_start(method) and self.starts else (None,))
        )


def _check_list(what: str, got: Sequence[Any], *, needed: bool) -> None:
    if needed and not got:
        raise SimulationError(f"{what}: got none, needed is at least one")
    twice = [value for k, value in enumerate(got) if value in got[:k]]
    if twice:
        raise SimulationError(f"{what}: {twice[0]!r} is given twice; give each once")


@dataclass(frozen=True)
class StudyConfiguration:
    """An arm, a motion, an experiment and the choices of the fit. Make one with :func:`study_configuration`.

    Attributes:
        robot: Catalogue name or file.
        robot_hash: SHA-256 of the file; empty for an arm of the catalogue.
        motion: The motion's table as JSON.
        simulate: Settings of the experiment as JSON, keys of a ``[simulate]`` table.
        identify: Settings of the fit as JSON, keys of an ``[identify]`` table.

    Example:
        >>> motion = steelyard.fourier([0, 0], [[0.3], [0.5]], [[0.1], [0.2]], 5.0, ["joint_1", "joint_2"])
        >>> given = steelyard.study_configuration("scara_2r", motion, {"record_rate": 100}, {})
        >>> given.simulate
        '{"record_rate": 100}'
    """

    robot: str
    robot_hash: str
    motion: str
    simulate: str
    identify: str

    @property
    def fingerprint(self) -> dict[str, str]:
        """Everything that determines a run but its case and its seed, by name."""
        return {
            "robot": self.robot_hash or self.robot,
            "motion": hashlib.sha256(self.motion.encode()).hexdigest(),
            "simulate": self.simulate,
            "identify": self.identify,
            "steelyard": __version__,
        }


def study_configuration(
    robot: str | os.PathLike[str],
    motion: Trajectory | str | os.PathLike[str],
    simulate: Mapping[str, Any],
    identify: Mapping[str, Any],
) -> StudyConfiguration:
    """Return the configuration of a study.

    Args:
        robot: Catalogue name or file of the arm.
        motion: The commanded motion, or the path of its file.
        simulate: Settings of the experiment, as ``experiment_from_settings`` takes them.
        identify: Settings of the fit, as ``settings_from_table`` takes them; the method is the study's.

    Raises:
        ConfigError: If a setting is neither number, text, list nor table.

    Example:
        >>> motion = steelyard.fourier([0, 0], [[0.3], [0.5]], [[0.1], [0.2]], 5.0, ["joint_1", "joint_2"])
        >>> steelyard.study_configuration("scara_2r", motion, {"record_rate": 100}, {"cutoff": 10}).robot
        'scara_2r'
    """
    # Every process of a study loads the arm by its name.
    require_type(robot, (str, os.PathLike), "robot", "a catalogue name or the path of a file", ConfigError)
    name = os.fspath(robot)
    motion = load_trajectory(motion, [body.joint.name for body in load_robot(name).actuated])
    # The number of threads decides no result; the method is the case's.
    fitted = {key: value for key, value in identify.items() if key not in ("threads", "method")}
    table = {**table_from_trajectory(motion), "joints": list(motion.joints)}
    digest = next(iter(hashes_of(Path(name)).values()), "")
    return StudyConfiguration(name, digest, _text(table), _text(simulate), _text(fitted))


def _text(table: Mapping[str, Any]) -> str:
    return json.dumps(dict(table), sort_keys=True, default=_listed)


def _listed(value: object) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise ConfigError(f"setting {value!r}: allowed are numbers, texts, lists and tables of them")


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
