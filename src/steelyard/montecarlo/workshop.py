"""Where runs are made: an arm, its motion and its equations, built once in a process and used for every seed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import SimulationError, SteelyardError, one_line
from ..identify import Settings, fit_arm, settings_from_table
from ..identify.inputs import model_of
from ..model import EFFECTS, build_model
from ..motion import Trajectory
from ..motion.document import trajectory_from_table
from ..observe import Equations, equations_of
from ..recording import Recording
from ..robot import Robot, load_robot
from ..simulate import Experiment, Noise, SimulatedRun, experiment_from_settings, recording_of, simulate
from ..simulate.truth import plant_model
from .arrangement import Arrangement
from .runs import CaseRuns
from .starting import with_start
from .study import Case

_BYTES_AT_ONCE = 200_000_000
"""Of simulated signals in a process."""

MOST_SEEDS, FEWEST_SEEDS = 100, 4
"""Seeds that are simulated together."""

_CONTROLLER = ("control", "kp", "kd", "bandwidth", "velocity", "control_rate", "delay")

Stop = Callable[[], bool]


@dataclass(frozen=True)
class Job:
    """Some seeds at one noise level, and the cases that still lack them."""

    noise_level: float
    seeds: tuple[int, ...]
    cases: tuple[Case, ...]


class Workshop:
    """An arrangement that is ready to run.

    Attributes:
        robot: The arm.
        motion: The motion it is told to follow.
        experiment: The experiment at noise level 1.
        settings: Settings of the fit.
    """

    def __init__(self, given: Arrangement) -> None:
        self.robot: Robot = load_robot(given.robot)
        self.motion: Trajectory = trajectory_from_table(json.loads(given.motion))
        self.experiment: Experiment = experiment_from_settings(json.loads(given.simulate))
        table = json.loads(given.identify)
        settings = replace(settings_from_table(table), threads=1)
        chosen = fitted_effects(self.robot) if settings.effects is None else settings.effects
        controller = known_controller(self.experiment, table.get("iv", {}))
        self.settings: Settings = replace(settings, effects=chosen, iv=replace(settings.iv, **controller))

    @cached_property
    def undisturbed(self) -> SimulatedRun:
        """The motion without noise or disturbance, the same for every seed."""
        return simulate(self.robot, self.motion, replace(self.experiment, disturbance=None), [0])

    @cached_property
    def equations(self) -> Equations:
        """Equations of the model that is fitted."""
        template = recording_of(replace(self.undisturbed, experiment=without_noise(self.undisturbed.experiment)))
        model = model_of(self.robot, (("recording 1", template),), (), self.settings)
        there = {channel.kind.split("_")[0] for channel in template.torques}
        lacking = {"both": {"motor", "joint"}, "difference": {"motor", "joint"}}.get(model.measured, {model.measured})
        if lacking - there:
            raise SimulationError(
                f"torque '{model.measured}': the simulated arm measures {' and '.join(sorted(there))} torques only; "
                "choose these, or leave --torque away"
            )
        return equations_of(model)

    @cached_property
    def true(self) -> np.ndarray:
        """True values of all base parameters (c,)."""
        return np.array(list(self.equations.base_values(self.undisturbed.truth).values()))

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the base parameters."""
        return tuple(parameter.unit for parameter in self.equations.base.base)

    @property
    def seeds_together(self) -> int:
        """How many seeds may be simulated together within bounded memory."""
        if self.experiment.disturbance is None:
            return MOST_SEEDS
        # State, output and their copies on the way.
        each = 3 * 5 * 8 * self.undisturbed.q.shape[1] * self.undisturbed.q.shape[2]
        return int(np.clip(_BYTES_AT_ONCE // each, FEWEST_SEEDS, MOST_SEEDS))

    def run(self, job: Job, stop: Stop = lambda: False) -> list[CaseRuns]:
        """Return the runs of a job, a record a case; those finished until then if it is told to stop."""
        simulated = self._simulated(job)
        done: dict[Case, list[_Outcome]] = {case: [] for case in job.cases}
        for index in range(len(job.seeds)):
            if stop():
                break
            recording = recording_of(simulated, index)
            for case in job.cases:
                done[case].append(self._outcome(recording, case, job.seeds[index]))
        return [self._collected(case, outcomes) for case, outcomes in done.items() if outcomes]

    def _simulated(self, job: Job) -> SimulatedRun:
        experiment = scaled(self.experiment, job.noise_level)
        if experiment.disturbance is not None:
            return simulate(self.robot, self.motion, experiment, job.seeds)
        # Noise on what is recorded leaves the motion as it is: one simulation serves all seeds.
        one, count = self.undisturbed, len(job.seeds)
        settled = replace(experiment, plant_rate=one.experiment.plant_rate, sign_width=one.experiment.sign_width)
        shared = {
            name: np.broadcast_to(getattr(one, name), (count, *getattr(one, name).shape[1:]))
            for name in ("q", "qd", "qdd", "motor_torque", "joint_torque")
        }
        return replace(one, experiment=settled, seeds=job.seeds, **shared)

    def _outcome(self, recording: Recording, case: Case, seed: int) -> _Outcome:
        settings = replace(self.settings, method=case.method)
        settings = with_start(settings, case.start, seed, self.equations.names, self.true, self.units)
        begin = time.process_time()
        try:
            fitted = fit_arm(self.robot, [recording], settings, equations=self.equations)
        except SteelyardError as error:
            nothing = np.full((3, len(self.true)), np.nan)
            return _Outcome(seed, nothing, time.process_time() - begin, one_line(str(error)) or type(error).__name__)
        seconds = time.process_time() - begin
        estimate = fitted.fit.estimate
        found = np.array([estimate.values, estimate.sigma, estimate.half_width()])
        places = [self.equations.names.index(name) for name in estimate.columns]
        aligned = np.full((3, len(self.true)), np.nan)
        aligned[:, places] = found
        return _Outcome(seed, aligned, seconds, "")

    def _collected(self, case: Case, outcomes: Sequence[_Outcome]) -> CaseRuns:
        values, sigma, half_width = np.stack([outcome.found for outcome in outcomes], axis=2)
        return CaseRuns(
            case,
            self.equations.names,
            np.array([outcome.seed for outcome in outcomes]),
            values.copy(),
            sigma.copy(),
            half_width.copy(),
            np.array([outcome.seconds for outcome in outcomes]),
            tuple(outcome.failure for outcome in outcomes),
        )


@dataclass(frozen=True, eq=False)
class _Outcome:
    """One run: values, sigmas and half widths (3, c), NaN where there are none; CPU seconds; why it failed."""

    seed: int
    found: np.ndarray
    seconds: float
    failure: str


def fitted_effects(robot: Robot) -> tuple[str, ...]:
    """Return the effects of the model where none are chosen: the robot's own, and all that the simulated arm has.

    What a model lacks shows as bias, whatever the method; here methods are judged.
    """
    had = {*build_model(robot).effects, *plant_model(robot, sign_width=1.0).effects}
    return tuple(effect for effect in EFFECTS if effect in had)


def known_controller(experiment: Experiment, chosen: Collection[str]) -> dict[str, Any]:
    """Return the experiment's own controller, which methods that simulate are told but for what the user chose."""
    return {name: getattr(experiment, name) for name in _CONTROLLER if name not in chosen}


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
