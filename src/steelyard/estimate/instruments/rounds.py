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
from ..lag_products import CellProducts, lag_products
from ..noise import NoiseModel, noise_model
from ..restricted_likelihood import fit_noise_around
from .pairs import PairedRows
from .settings import InstrumentSettings
from .simulated import SimulatedMotion, robot_values, start_values


@dataclass(frozen=True, eq=False)
class Solved:
    """Parameters of one round.

    Attributes:
        values: Values (c,).
        covariance: Their covariance (c, c).
        change: By what part they differ from those that were simulated.
    """

    values: np.ndarray
    covariance: np.ndarray
    change: float


@dataclass(frozen=True, eq=False)
class Settled:
    """What the rounds ended with.

    Attributes:
        solved: Parameters of the last round.
        simulated: Rows of the motion that was simulated last.
        noise: Noise model of the residuals.
        notes: What a reader should know, a sentence each.
    """

    solved: Solved
    simulated: tuple[RowSource, ...]
    noise: NoiseModel
    notes: tuple[str, ...]


Pair = Callable[[Sequence[RowSource], Sequence[RowSource], Sequence[str], NoiseModel], PairedRows]


@dataclass(frozen=True)
class Method:
    """How a round's parameters follow from the rows.

    Attributes:
        pair: Stacks the real rows beside the simulated ones.
        solve: Parameters from these, and from the parameters (c,) that were simulated.
        residuals: Lag products of the rows whose residuals are the noise, given the simulated rows.
        any_motion: Whether a round's parameters are good whatever was simulated for them, so that the rounds may end
            where an arm with the parameters found cannot be simulated.
    """

    pair: Pair
    solve: Callable[[PairedRows, np.ndarray], Solved]
    residuals: Callable[[tuple[RowSource, ...]], tuple[CellProducts, ...]]
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
        EstimateError: If the arm cannot be simulated with the parameters of some round.
    """
    motion = SimulatedMotion(evidence, settings)
    notes = () if motion.has_reference else (_NO_REFERENCE,)
    start, whose = start_values(evidence, motion, settings.start, prior)
    try:
        return _repeated(evidence, settings, motion, start, method, notes, progress)
    except SimulationError as error:
        again = _robot_start(evidence, motion) if whose == "wls" else None
        if again is None:
            raise EstimateError(f"{error}; {_NEXT}") from error
        notes = (*notes, f"started again from the robot's own values: {error}")
    try:
        return _repeated(evidence, settings, motion, again, method, notes, progress)
    except SimulationError as error:
        raise EstimateError(f"{error}; {_NEXT}") from error


_NO_REFERENCE = (
    "no commanded positions were recorded: the simulated arm follows the measured ones, low-passed, and the "
    "instruments carry a part of their noise; declare a reference channel"
)
_NEXT = 'give start = "robot" or the gains of the real controller, or use gls'


def _robot_start(evidence: Evidence, motion: SimulatedMotion) -> dict[str, float] | None:
    try:
        own = robot_values(evidence)
    except SimulationError:
        return None
    return own if motion.is_arm(own) else None


def _repeated(
    evidence: Evidence,
    settings: InstrumentSettings,
    motion: SimulatedMotion,
    start: Mapping[str, float],
    method: Method,
    notes: tuple[str, ...],
    progress: Progress,
) -> Settled:
    columns, noise = evidence.columns, evidence.noise
    before, simulated = start, motion.sources(start)
    count = 0
    while True:
        count += 1
        paired = method.pair(evidence.sources, simulated, columns, noise)
        solved = method.solve(paired, np.array([before.get(name, 0.0) for name in columns]))
        noise = noise_around(evidence, method.residuals(simulated), solved)
        found = Settled(solved, simulated, noise, (f"{count} round{'s' * (count > 1)} of simulation", *notes))
        progress(count, settings.most_rounds)
        if solved.change <= settings.tolerance and count > 1:
            return found
        if count == settings.most_rounds:
            return _noted(found, f"the parameters still change by {solved.change:.2g} after {count} rounds")
        before = dict(zip(columns, solved.values.tolist(), strict=True))
        try:
            simulated = motion.sources(before)
        except SimulationError as error:
            if not method.any_motion:
                raise
            told = f"the instruments stay those of the values before, which differ by {solved.change:.2g}: {error}"
            return _noted(found, told)


def _noted(found: Settled, note: str) -> Settled:
    return replace(found, notes=(*found.notes, note))


def noise_around(evidence: Evidence, cells: tuple[CellProducts, ...], solved: Solved) -> NoiseModel:
    """Return the noise model of residuals at an estimate, from the lag products of their rows."""
    scale = evidence.plain.system.scale
    fit = fit_noise_around(cells, solved.values * scale, solved.covariance * scale[:, None] * scale)
    return noise_model(fit, decimator_correlation(evidence.sources[0]))


def products_of(evidence: Evidence, sources: tuple[RowSource, ...]) -> tuple[CellProducts, ...]:
    """Return the lag products of rows, columns scaled as those of the evidence."""
    plain = evidence.plain
    return lag_products(sources, plain.columns, decimator_correlation(sources[0]), plain.system.scale)
