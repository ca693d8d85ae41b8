"""Simulate with the parameters at hand, estimate, simulate with those found: until they stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import EstimateError, SimulationError
from ...observe import RowSource
from ...progress import Progress
from ..evidence import Evidence
from ..gls import decimator_correlation
from ..lag_products import HIGHEST_ORDER, lag_products
from ..noise import NoiseModel, noise_model
from ..restricted_likelihood import fit_noise_around
from .moving import MovingRows, Twins
from .pairs import PairedRows
from .settings import InstrumentSettings
from .simulated import SimulatedMotion, robot_values, start_values
from .steps import Steps


@dataclass(frozen=True, eq=False)
class Solved:
    """Parameters of one round.

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
class Settled:
    """What the rounds ended with.

    Attributes:
        solved: Parameters of the last round.
        twins: Rows of the recordings and of the motion that was simulated last.
        simulated: The parameters of that motion, by column.
        motion: What simulated it.
        noise: Noise model of the residuals.
        notes: What a reader should know, a sentence each.
    """

    solved: Solved
    twins: Twins
    simulated: Mapping[str, float]
    motion: SimulatedMotion
    noise: NoiseModel
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Method:
    """How a round's parameters follow from the rows.

    Attributes:
        pair: Stacks the real rows beside the simulated ones.
        solve: Parameters from these.
        noisy: The rows whose residuals are the noise.
        any_motion: Whether a round's parameters are good whatever was simulated for them.
    """

    pair: Callable[[Twins, Sequence[str], NoiseModel], PairedRows]
    solve: Callable[[PairedRows], Solved]
    noisy: Callable[[Twins], tuple[RowSource, ...]]
    any_motion: bool


def settled_rounds(
    evidence: Evidence,
    settings: InstrumentSettings,
    prior: Mapping[str, tuple[float, float]],
    method: Method,
    progress: Progress,
) -> Settled:
    """Repeat simulation and estimate until the parameters stay.

    Args:
        evidence: The real recordings.
        settings: Controller, start, tolerance.
        prior: Values to start from.
        method: The estimate of a round.
        progress: Told how many rounds are done.

    Raises:
        EstimateError: If no arm can be simulated, or the parameters do not settle and the method needs that.
    """
    motion = SimulatedMotion(evidence, settings)
    notes = () if motion.has_reference else (_NO_REFERENCE,)
    start, whose = start_values(evidence, motion, settings.start, prior)
    rounds = _Rounds(evidence, settings, motion, method, progress)
    try:
        found = rounds.settled(start)
    except SimulationError as error:
        again = _robot_start(evidence, motion) if whose == "wls" else None
        if again is None:
            raise EstimateError(f"{error}; {_next(settings)}") from error
        notes = (*notes, f"started again from the robot's own values: {error}")
        try:
            found = rounds.settled(again)
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
class _Rounds:
    evidence: Evidence
    settings: InstrumentSettings
    motion: SimulatedMotion
    method: Method
    progress: Progress

    def settled(self, start: Mapping[str, float]) -> Settled:
        """Return the last round from a start.

        Raises:
            SimulationError: If the arm cannot be simulated with the start's parameters.
        """
        moving, steps = MovingRows(self.evidence, self.settings.standstill), Steps(self.motion, start)
        columns, noise, before, count = self.evidence.columns, self.evidence.noise, None, 0
        while True:
            count += 1
            found = self._round(moving.twins(steps.simulated), steps.values, noise)
            noise, solved = found.noise, found.solved
            self.progress(count, self.settings.most_rounds)
            ahead = solved.change(steps.vector(columns))
            # Short of parameters that no arm has, the rounds end when what they give stays.
            stays = before is not None and steps.shortened and solved.distance(before) <= _STAYS
            near = self.method.any_motion or ahead <= _NEAR
            if count > 1 and (ahead <= self.settings.tolerance or (stays and near)):
                return _noted(found, count, steps.note(ahead))
            before = solved.values
            if count == self.settings.most_rounds or not steps.towards(columns, before):
                return self._unsettled(found, count, ahead, steps)

    def _round(self, twins: Twins, simulated: Mapping[str, float], noise: NoiseModel) -> Settled:
        solved = self.method.solve(self.method.pair(twins, self.evidence.columns, noise))
        noise = noise_around(self.evidence, self.method.noisy(twins), solved)
        return Settled(solved, twins, simulated, self.motion, noise, ())

    def _unsettled(self, found: Settled, count: int, ahead: float, steps: Steps) -> Settled:
        told = f"the parameters still change by {ahead:.2g} after {count} round{'s' * (count > 1)}"
        if steps.reason is None:
            return _noted(found, count, (told,))
        if not self.method.any_motion:
            raise EstimateError(f"{told}: {steps.reason}; {_next(self.settings)}")
        return _noted(found, count, (told, *steps.note(ahead)))


def _noted(found: Settled, count: int, notes: tuple[str, ...]) -> Settled:
    return replace(found, notes=(f"{count} round{'s' * (count > 1)} of simulation", *notes))


def noise_around(
    evidence: Evidence, sources: tuple[RowSource, ...], solved: Solved, order: int = HIGHEST_ORDER
) -> NoiseModel:
    """Return the noise model of the residuals of rows at an estimate, of an order at most."""
    plain, correlation = evidence.plain, decimator_correlation(evidence.sources[0])
    scale = plain.system.scale
    cells = lag_products(sources, plain.columns, correlation, scale, order)
    fit = fit_noise_around(cells, solved.values * scale, solved.covariance * scale[:, None] * scale)
    return noise_model(fit, correlation)
