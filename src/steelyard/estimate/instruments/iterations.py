"""Iterations of simulation and estimate: simulate the arm, estimate, simulate with the new values until they converge.

Where no arm has the new parameters, the step towards them is halved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import EstimateError, SimulationError
from ...observe import RowSource
from ...progress import Progress
from ..evidence import Evidence, Prior
from ..gls import noise_around
from ..noise import NoiseModel
from .pairs import MovingRows, PairedRows, Twins
from .simulated import InstrumentSettings, SimulatedMotion, robot_values, start_values

# Of the margin that the start's inertia matrix has against being singular, this part must remain.
_MARGIN = 0.1
# A step shorter than this part leads nowhere.
_SHORTEST = 1 / 256


class Steps:
    """The parameters of the simulated arm, iteration after iteration.

    Args:
        motion: Simulates the recordings.
        start: Base parameters of the first simulation, by column.

    Attributes:
        values: Base parameters of the last simulation, by column.
        simulated: Rows of that simulation.
        shortened: Whether the last step went a part of the way.
        reason: Why a step had to be shortened, None if none was.

    Raises:
        SimulationError: If the start's parameters are those of no arm, or the loop diverges.
    """

    def __init__(self, motion: SimulatedMotion, start: Mapping[str, float]) -> None:
        self._motion = motion
        self.values: Mapping[str, float] = start
        self.simulated = motion.sources(start)
        self._least = _MARGIN * motion.margin(start)
        self.shortened = False
        self.reason: str | None = None

    def vector(self, columns: Sequence[str]) -> np.ndarray:
        """Return the parameters of the last simulation in the order of some columns (c,)."""
        return np.array([self.values.get(name, 0.0) for name in columns])

    def towards(self, columns: Sequence[str], values: np.ndarray) -> bool:
        """Simulate with values (c,) of columns, or halve the step until an arm has the parameters; say if one had."""
        target, part = dict(zip(columns, values.tolist(), strict=True)), 1.0
        while part >= _SHORTEST:
            trial = target
            if part < 1.0:
                pairs = {
                    name: (self.values.get(name, 0.0), target.get(name, 0.0)) for name in {**self.values, **target}
                }
                trial = {name: (1 - part) * old + part * new for name, (old, new) in pairs.items()}
            try:
                self._check(trial)
                self.simulated = self._motion.sources(trial)
            except SimulationError as error:
                self.reason = str(error)
                part /= 2
                continue
            self.values, self.shortened = trial, part < 1.0
            return True
        self.shortened = True
        return False

    def note(self, ahead: float) -> tuple[str, ...]:
        """Return what to say of an arm that was simulated with other parameters than those found, by a part."""
        if not self.shortened:
            return ()
        return (f"the arm was simulated with parameters {ahead:.2g} short of those found: {self.reason}",)

    def _check(self, trial: Mapping[str, float]) -> None:
        margin = self._motion.margin(trial)
        if not margin >= self._least:
            raise SimulationError(
                f"the inertia matrix of these is not positive definite, or hardly (least over largest eigenvalue "
                f"{margin:.2g}, needed is {self._least:.2g})"
            )


@dataclass(frozen=True, eq=False)
class IterationSolution:
    """Parameters of one iteration.

    Attributes:
        values: Values (c,).
        covariance: Their covariance (c, c).
        change: Returns by what part the values differ from others (c,).
    """

    values: np.ndarray
    covariance: np.ndarray
    change: Callable[[np.ndarray], float]

    def distance(self, others: np.ndarray) -> float:
        """Return how far other values (c,) are, in sigmas, rms over the parameters."""
        return float(np.sqrt(np.mean((self.values - others) ** 2 / np.diag(self.covariance))))


@dataclass(frozen=True, eq=False)
class Converged:
    """What the iterations ended with.

    Attributes:
        solved: Parameters of the last iteration.
        twins: Rows of the recordings and of the motion that was simulated last.
        simulated: The parameters of that motion, by column.
        motion: What simulated it.
        noise: Noise model of the residuals.
        notes: What a reader should know, a sentence each.
    """

    solved: IterationSolution
    twins: Twins
    simulated: Mapping[str, float]
    motion: SimulatedMotion
    noise: NoiseModel
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Method:
    """How the parameters of an iteration follow from the rows.

    Attributes:
        pair: Stacks the real rows beside the simulated ones.
        solve: Parameters from these.
        noisy: The rows whose residuals are the noise.
        any_motion: Whether these parameters are good whatever was simulated for them.
    """

    pair: Callable[[Twins, Sequence[str], NoiseModel], PairedRows]
    solve: Callable[[PairedRows], IterationSolution]
    noisy: Callable[[Twins], tuple[RowSource, ...]]
    any_motion: bool


def converged_iterations(
    evidence: Evidence, settings: InstrumentSettings, prior: Prior, method: Method, progress: Progress
) -> Converged:
    """Repeat simulation and estimate until the parameters converge.

    Args:
        evidence: The real recordings.
        settings: Controller, start, tolerance.
        prior: Values to start from.
        method: The estimate of an iteration.
        progress: Progress callback, counting iterations.

    Raises:
        EstimateError: If no arm can be simulated, or the parameters do not converge and the method needs that.
    """
    motion = SimulatedMotion(evidence, settings)
    notes = () if motion.has_reference else (_NO_REFERENCE,)
    start, whose = start_values(evidence, motion, settings.start, prior)
    iterations = _Iterations(evidence, settings, motion, method, progress)
    try:
        found = iterations.converged(start)
    except SimulationError as error:
        again = _robot_start(evidence, motion) if whose == "wls" else None
        if again is None:
            raise EstimateError(f"{error}; {_next(settings)}") from error
        notes = (*notes, f"started again from the robot's own values: {error}")
        try:
            found = iterations.converged(again)
        except SimulationError as second:
            raise EstimateError(f"{second}; {_next(settings)}") from second
    return replace(found, notes=(*found.notes, *notes))


_NO_REFERENCE = (
    "no commanded positions were recorded: the simulated arm follows the measured ones, low-passed, and the "
    "instruments carry a part of their noise; declare a reference channel"
)
# What is found stays if it moves by less than so many sigmas, rms over the parameters.
_STAYS = 0.1
# Rows of the simulated motion alone are those of the arm found if its parameters are within this part.
_NEAR = 0.1


def _next(settings: InstrumentSettings) -> str:
    """Return what helps where an arm cannot be simulated; a start that has been tried does not."""
    start = "" if settings.start == "robot" else "start from the robot's own values (--option start=robot), "
    return f"{start}give the gains of the real controller (options kp and kd), or use --method gls"


def _robot_start(evidence: Evidence, motion: SimulatedMotion) -> dict[str, float] | None:
    try:
        own = robot_values(evidence)
    except SimulationError:
        return None
    return own if motion.is_arm(own) else None


@dataclass(frozen=True, eq=False)
class _Iterations:
    evidence: Evidence
    settings: InstrumentSettings
    motion: SimulatedMotion
    method: Method
    progress: Progress

    def converged(self, start: Mapping[str, float]) -> Converged:
        """Return the last iteration from a start.

        Raises:
            SimulationError: If the arm cannot be simulated with the start's parameters.
        """
        moving, steps = MovingRows(self.evidence, self.settings.standstill), Steps(self.motion, start)
        columns, noise, before, count = self.evidence.columns, self.evidence.noise, None, 0
        while True:
            count += 1
            found = self._iteration(moving.twins(steps.simulated), steps.values, noise)
            noise, solved = found.noise, found.solved
            self.progress(count, self.settings.most_rounds)
            ahead = solved.change(steps.vector(columns))
            # Short of parameters that no arm has, the iterations end when what they give stays.
            stays = before is not None and steps.shortened and solved.distance(before) <= _STAYS
            near = self.method.any_motion or ahead <= _NEAR
            if count > 1 and (ahead <= self.settings.tolerance or (stays and near)):
                return _noted(found, count, steps.note(ahead))
            before = solved.values
            if count == self.settings.most_rounds or not steps.towards(columns, before):
                return self._not_converged(found, count, ahead, steps)

    def _iteration(self, twins: Twins, simulated: Mapping[str, float], noise: NoiseModel) -> Converged:
        solved = self.method.solve(self.method.pair(twins, self.evidence.columns, noise))
        system = self.evidence.plain.system
        noise = noise_around(self.method.noisy(twins), system, solved.values, solved.covariance)
        return Converged(solved, twins, simulated, self.motion, noise, ())

    def _not_converged(self, found: Converged, count: int, ahead: float, steps: Steps) -> Converged:
        text = f"the parameters still change by {ahead:.2g} after {count} iteration{'s' * (count > 1)}"
        if steps.reason is None:
            return _noted(found, count, (text,))
        if not self.method.any_motion:
            raise EstimateError(f"{text}: {steps.reason}; {_next(self.settings)}")
        return _noted(found, count, (text, *steps.note(ahead)))


def _noted(found: Converged, count: int, notes: tuple[str, ...]) -> Converged:
    return replace(found, notes=(f"{count} iteration{'s' * (count > 1)} of simulation", *notes))
