"""A plain fit of the busiest parts of recordings, on which faults of the log and its set-up are tested."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from math import comb

import numpy as np

from ..estimate import stacked_system, weighted, with_correlated_noise
from ..judge import Disagreement, Plausibility, combined, disagreement, evaluate, plausibility, recordings_agree
from ..model import Model
from ..observe import (
    Equations,
    Observations,
    ResolvedPreparation,
    RowSource,
    busiest_part,
    equations_of,
    reduce_rows,
    resolve_preparation,
)
from .gravity_fits import GravityFits
from .inputs import Labelled, check_motion, sources_of
from .payload_body import LoadBeyondFile, load_beyond_file
from .payload_gains import gains_used
from .settings import Settings
from .setup_faults import BLOCKS, SetupError, setup_errors

LOOKED_AT = 40_000
"""Samples of each recording that are fitted: those in which all joints move most."""
COMPUTED, TYPICALLY_COMPUTED, SURELY_COMPUTED = 2e-3, 4e-3, 1e-3
"""Torques that follow from the motion to this part of their size (rms, median) and have no noise were computed, not
measured; with noise, only if they follow from it to the last part: long slow logs average the noise of good sensors."""
NO_TORQUE_NOISE = 1e-3
"""Torques with less noise than this part of their size, from sample to sample, have none."""


class PlainFit:
    """A plain fit of the busiest parts of recordings, as the tests need it.

    Args:
        model: The plain model.
        labelled: The recordings.
        settings: Preparation and threads.
        dead: Equations that are left out.
    """

    def __init__(
        self, model: Model, labelled: Sequence[Labelled], settings: Settings, dead: Collection[tuple[str, str]]
    ) -> None:
        self.model, self.settings, self.dead, self.whole = model, settings, dead, labelled
        self.short = tuple((label, busiest_part(one, LOOKED_AT)) for label, one in labelled)
        self.resolved: ResolvedPreparation = resolve_preparation(settings.preparation, [one for _, one in self.short])
        self.equations: Equations = equations_of(model, without=dead)
        self.sources: list[RowSource] = sources_of(self.short, self.equations, self.resolved)
        self.observations: Observations = reduce_rows(self.sources, blocks=BLOCKS, threads=settings.threads)
        check_motion(self.sources)
        columns = stacked_system(self.observations, self.equations.names).columns
        plain = weighted(self.observations, columns)
        noise = with_correlated_noise(self.sources, plain, self.observations)
        self.plain, self.estimate, self.noise = plain, noise.estimate, noise.noise
        cutoff = settings.evaluation_cutoff
        self.fitted = combined([evaluate(one, self.estimate, self.noise, cutoff) for one in self.sources])
        self.residual = self.fitted.relative_percent / 100

    def under(self, gravity: Sequence[float]) -> PlainFit:
        """Return the fit of the same recordings under another gravity."""
        x, y, z = gravity
        turned = replace(self.model, robot=self.model.robot.with_gravity((x, y, z)))
        return PlainFit(turned, self.whole, self.settings, self.dead)

    @cached_property
    def plausible(self) -> Plausibility:
        """What speaks for or against this estimate."""
        return plausibility(self.equations, self.estimate, self.observations, self.fitted, self.fitted)

    def of(self, labels: Collection[str]) -> PlainFit:
        """Return the fit of some of the recordings."""
        own = [one for one in self.whole if one[0] in labels]
        return PlainFit(self.model, own, self.settings, self.dead)

    @cached_property
    def set_up_errors(self) -> tuple[tuple[SetupError, ...], tuple[str, ...]]:
        """Errors of the set-up, and joints whose zeros do not show.

        Gains of currents that nobody knows differ by design: ``steelyard gains`` finds them.
        """
        known = all(one.is_known for one in gains_used(self.sources))
        return setup_errors(self.equations, self.short, self.resolved, self.plain, self.settings, gains=known)

    @cached_property
    def disagreement(self) -> Disagreement | None:
        """A recording that is not of the same arm as the others, and what explains it; None if they agree."""
        repeated = recordings_agree(self.observations, self.sources, self.plain.columns)
        return disagreement(self.observations, self.equations, repeated)

    @cached_property
    def gravity_fits(self) -> GravityFits:
        """Fits with gravity as it may be."""
        return GravityFits(self.equations, self.short, self.resolved, self.settings.threads)

    @cached_property
    def undeclared_load(self) -> LoadBeyondFile | None:
        """A load that the robot file does not have, if it is certain and one that an arm can carry."""
        return load_beyond_file(self.equations, self.estimate, self.model.robot)

    @property
    def typical_residual(self) -> float:
        """Median residual of a row over its torque's rms, as a standard deviation, of the median equation.

        What filters leave where a joint with much friction turns round is in few rows, and is no noise.
        """
        left: dict[int, list[np.ndarray]] = {}
        for run in (one for source in self.sources for one in source.runs()):
            rest = run.rows[:, -1] - run.rows[:, :-1] @ self.estimate.full_values(run.columns)
            left.setdefault(run.equation, []).append(np.column_stack([rest, run.rows[:, -1]]))
        sizes = []
        for parts in left.values():
            rest, torque = np.vstack(parts).T
            sizes.append(float(np.median(np.abs(rest)) / 0.6745 / max(np.sqrt(np.mean(torque**2)), 1e-300)))
        return float(np.median(sizes)) if sizes else np.inf

    @cached_property
    def computed_to(self) -> float | None:
        """Part of their size to which computed torques follow from the motion; None if they were measured."""
        typical = self.residual
        if COMPUTED <= self.residual < 10 * COMPUTED:
            typical = min(typical, self.typical_residual)
        follows = self.residual < COMPUTED or typical < TYPICALLY_COMPUTED
        is_computed = self.residual < SURELY_COMPUTED or (follows and _torque_noise(self) < NO_TORQUE_NOISE)
        return typical if is_computed else None


def _torque_noise(fit: PlainFit) -> float:
    """Return the noise of the torques from sample to sample over their rms, of the median joint."""
    sizes = [
        noise_of(channel.values) / np.maximum(channel.values.std(axis=1), 1e-300)
        for _, one in fit.short
        for channel in one.torques
        if channel.kind != "wrench"
    ]
    return float(np.median(np.concatenate(sizes)))


def noise_of(q: np.ndarray) -> np.ndarray:
    """Return the standard deviation of what is left of signals (n, samples) in differences of high order (n,)."""
    order = 8
    if q.shape[1] <= 4 * order:
        return np.full(len(q), np.inf)
    differences = np.abs(np.diff(q, n=order, axis=1))
    return np.median(differences, axis=1) / (0.6745 * np.sqrt(comb(2 * order, order)))
