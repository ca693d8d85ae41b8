"""Simulated experiments of a study: an arm, its motion and its equations, built once and used for every seed.

Jobs, some seeds at one noise level, are shared by workers, each of which builds the experiments once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..effects import EFFECTS
from ..errors import SimulationError, SteelyardError, one_line
from ..estimate.instruments import InstrumentSettings
from ..estimators import ESTIMATORS
from ..identification import Fitted, Settings, fit_arms, settings_from_table
from ..identification.inputs import model_of
from ..model import build_model
from ..motion import Trajectory
from ..motion.files import trajectory_from_table
from ..observe import Equations, Preparation, ResolvedPreparation, equations_of, resolve_preparation
from ..recording import Recording
from ..robot import Robot, load_robot
from ..simulation import Experiment, SimulatedRun, Simulator, experiment_from_settings, recording_of, simulate
from ..simulation.compiled_plant import FAR, departures
from ..simulation.plant import plant_model
from ..workers import Stop
from .configuration import Case, StudyConfiguration, scaled, with_start, without_noise
from .statistics import NOT_SIMULATED, CaseRuns

_BYTES_AT_ONCE = 200_000_000
"""Of simulated signals in a process."""

_FITS_AT_ONCE, _SECONDS_AT_ONCE = 16, 1.0
"""Seeds that are estimated together, and the CPU time that they may take [s]."""

MOST_SEEDS, FEWEST_SEEDS = 100, 4
"""Seeds that are simulated together."""

SMOOTH_WIDTHS = 4.0
"""From so many widths of its smooth sign on, simulated Coulomb friction is that of the model to 0.1 %."""

_CONTROLLER = ("control", "kp", "kd", "bandwidth", "velocity", "control_rate", "delay")


@dataclass(frozen=True)
class Job:
    """Some seeds at one noise level, and the cases that still lack them."""

    noise_level: float
    seeds: tuple[int, ...]
    cases: tuple[Case, ...]


class SimulatedExperiments:
    """A study configuration that is ready to run.

    Attributes:
        robot: The arm.
        motion: The commanded motion.
        experiment: The experiment at noise level 1.
        settings: Settings of the fit.
    """

    def __init__(self, given: StudyConfiguration) -> None:
        self.robot: Robot = load_robot(given.robot)
        self.motion: Trajectory = trajectory_from_table(json.loads(given.motion))
        self.experiment: Experiment = experiment_from_settings(json.loads(given.simulate))
        table = json.loads(given.identify)
        settings = replace(settings_from_table(table), threads=1)
        chosen = fitted_effects(self.robot) if settings.effects is None else settings.effects
        controller = known_controller(self.experiment, table.get("iv", {}))
        instruments = replace(settings.options.get("iv", InstrumentSettings()), **controller)
        self.settings: Settings = replace(settings, effects=chosen, options={**settings.options, "iv": instruments})
        self._simulators: dict[float, Simulator] = {}

    @cached_property
    def undisturbed(self) -> SimulatedRun:
        """The motion without noise or disturbance, the same for every seed."""
        return simulate(self.robot, self.motion, replace(self.experiment, disturbance=None), [0])

    @cached_property
    def _template(self) -> Recording:
        """A recording without noise."""
        return recording_of(replace(self.undisturbed, experiment=without_noise(self.undisturbed.experiment)))

    @cached_property
    def preparation(self) -> Preparation:
        """The preparation that was chosen, with samples left out at which the simulated friction is smooth.

        The sign of a simulated arm's friction is ``tanh(v / width)``, and wide where dry friction is strong. What a
        model lacks shows as bias, whatever the method; a study compares methods.
        """
        chosen, smooth = self.settings.preparation, SMOOTH_WIDTHS * (self.undisturbed.experiment.sign_width or 0.0)
        if chosen.standstill is not None:
            return chosen
        try:
            own = resolve_preparation(chosen, [self._template]).standstill
        except SteelyardError:
            return chosen  # every run then raises this error itself
        return replace(chosen, standstill=tuple(np.maximum(own, smooth))) if (own < smooth).any() else chosen

    @cached_property
    def equations(self) -> Equations:
        """Equations of the model that is fitted."""
        template = self._template
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
        """Return the runs of a job, a record a case; those finished so far if it is stopped."""
        simulated = self._simulated(job)
        lost = _lost(simulated)
        done: dict[Case, list[_Outcome]] = {case: [] for case in job.cases}
        first, count = 0, 1
        while first < len(job.seeds) and not stop():
            begin = time.process_time()
            seeds = job.seeds[first : first + count]
            recordings = {s: recording_of(simulated, simulated.seeds.index(s)) for s in seeds if s not in lost}
            for case, outcomes in done.items():
                made = {outcome.seed: outcome for outcome in self._outcomes(recordings, case)}
                outcomes += [made.get(s) or self._failed(s, NOT_SIMULATED + lost[s], np.nan) for s in seeds]
            first += len(seeds)
            count = _together(job.cases, (time.process_time() - begin) / len(seeds))
        return [self._collected(case, outcomes) for case, outcomes in done.items() if outcomes]

    def _simulated(self, job: Job) -> SimulatedRun:
        experiment = scaled(self.experiment, job.noise_level)
        if experiment.disturbance is not None:
            if job.noise_level not in self._simulators:
                self._simulators[job.noise_level] = Simulator(self.robot, self.motion, experiment)
            return self._simulators[job.noise_level].run(job.seeds, keep_going=True)
        # Noise on what is recorded leaves the motion as it is: one simulation serves all seeds.
        one, count = self.undisturbed, len(job.seeds)
        resolved = replace(experiment, plant_rate=one.experiment.plant_rate, sign_width=one.experiment.sign_width)
        shared = {
            name: np.broadcast_to(getattr(one, name), (count, *getattr(one, name).shape[1:]))
            for name in ("q", "qd", "qdd", "motor_torque", "joint_torque")
        }
        return replace(one, experiment=resolved, seeds=job.seeds, **shared)

    @cached_property
    def _resolved(self) -> ResolvedPreparation | None:
        """The resolved preparation where all seeds record the same positions; None where each seed has its own."""
        if self.experiment.disturbance is not None or self.experiment.position_noise is not None:
            return None
        try:
            return resolve_preparation(self.preparation, [self._template])
        except SteelyardError:
            return None  # every run then raises this error itself

    def _outcomes(self, recordings: Mapping[int, Recording], case: Case) -> Iterator[_Outcome]:
        """Yield the outcome of every recording; seeds are fitted together if the method can and they share a start."""
        seeds = tuple(recordings)
        together = ESTIMATORS[case.method].many and case.start is None
        for group in [seeds] if together and seeds else [(seed,) for seed in seeds]:
            settings = replace(self.settings, method=case.method, preparation=self.preparation)
            settings = with_start(settings, case.start, group[0], self.equations.names, self.true, self.units)
            begin = time.process_time()
            fits = fit_arms(self.robot, [[recordings[s]] for s in group], settings, self.equations, self._resolved)
            seconds = (time.process_time() - begin) / len(group)
            for seed, fitted in zip(group, fits, strict=True):
                yield self._outcome(seed, fitted, seconds)

    def _outcome(self, seed: int, fitted: Fitted | SteelyardError, seconds: float) -> _Outcome:
        if isinstance(fitted, SteelyardError):
            return self._failed(seed, str(fitted) or type(fitted).__name__, seconds)
        estimate = fitted.fit.estimate
        places = [self.equations.names.index(name) for name in estimate.columns]
        aligned = np.full((3, len(self.true)), np.nan)
        aligned[:, places] = [estimate.values, estimate.sigma, estimate.half_width()]
        return _Outcome(seed, aligned, seconds, "")

    def _failed(self, seed: int, message: str, seconds: float) -> _Outcome:
        return _Outcome(seed, np.full((3, len(self.true)), np.nan), seconds, one_line(message))

    def _collected(self, case: Case, outcomes: Sequence[_Outcome]) -> CaseRuns:
        values, sigma, half_width = (array.copy() for array in np.stack([one.found for one in outcomes], axis=2))
        seeds, seconds = np.array([one.seed for one in outcomes]), np.array([one.seconds for one in outcomes])
        failures = tuple(one.failure for one in outcomes)
        return CaseRuns(case, self.equations.names, seeds, values, sigma, half_width, seconds, failures)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """One run: values, sigmas and half widths (3, c), NaN where there are none; CPU seconds; why it failed."""

    seed: int
    found: np.ndarray
    seconds: float
    failure: str


def _lost(run: SimulatedRun) -> dict[int, str]:
    """Return the seeds that gave no useful recording, and why: the numbers overflowed, or the arm diverged."""
    why = f"left its motion by more than {FAR:g} times its width; lower the disturbance, or raise gains or limits"
    departed = [seed for seed, d in zip(run.seeds, departures(run.q, run.reference), strict=True) if d > FAR]
    return {**run.lost, **dict.fromkeys(departed, why)}


def _together(cases: Sequence[Case], seconds: float) -> int:
    """Return how many seeds to fit together: fast, but short enough for an interrupt to be handled soon.

    The numbers do not depend on it.
    """
    if not any(ESTIMATORS[case.method].many and case.start is None for case in cases):
        return 1
    return int(np.clip(_SECONDS_AT_ONCE / max(seconds, 1e-3), 1, _FITS_AT_ONCE))


def fitted_effects(robot: Robot) -> tuple[str, ...]:
    """Return the effects of the model where none are chosen: the robot's own, and all that the simulated arm has.

    What a model lacks shows as bias, whatever the method; a study compares methods.
    """
    had = {*build_model(robot).effects, *plant_model(robot, sign_width=1.0).effects}
    return tuple(effect for effect in EFFECTS if effect in had)


def known_controller(experiment: Experiment, chosen: Collection[str]) -> dict[str, Any]:
    """Return the experiment's own controller for methods that simulate, but for what the user chose."""
    return {name: getattr(experiment, name) for name in _CONTROLLER if name not in chosen}


def run_job(experiments: SimulatedExperiments, job: Job, stop: Stop) -> list[CaseRuns]:
    """Return the runs of a job: a task of workers."""
    return experiments.run(job, stop)
