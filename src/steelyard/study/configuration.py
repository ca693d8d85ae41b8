"""Configuration of a study: methods, noise levels, starts and seeds.

Experiment and settings of the fit are plain text, which can be sent to another process, hashed and stored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..configuration import checked, choice, number
from ..errors import ConfigError, EstimateError, SimulationError, require_type
from ..estimators import ESTIMATORS
from ..motion import Trajectory, load_trajectory
from ..motion.files import table_from_trajectory
from ..robot import load_robot
from ..run import hashes_of
from .defaults import has_start

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
