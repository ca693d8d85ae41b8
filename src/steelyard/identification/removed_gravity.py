"""Torques from which gravity was removed, as some drivers do: told before a fit, which they would spoil."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import EstimateError, ObservationError
from ..observe import Equations, ResolvedPreparation, RowBlock, RowSource, busiest_part, reduce_rows
from .inputs import Labelled, sources_of
from .mounting import MASSIVE, REMOVED, WELL, GravityFits, relative_residual

FIRST_LOOK, LEAST_ROWS, WHOLE, SHOWN = 4_000, 200, 0.999, 0.9
"""A first look takes so many samples of each recording, and so many decimated ones at least, of which such a part was
moving: where residuals with gravity are less than this part of those without, it is in the torques."""


def refuse_removed_gravity(
    equations: Equations, training: Sequence[Labelled], resolved: ResolvedPreparation, threads: int = 1
) -> None:
    """Refuse torques from which gravity was taken out, unless the model has none.

    Args:
        equations: Equations of the plain model.
        training: The recordings.
        resolved: Their preparation.
        threads: Threads that share the reduction.

    Raises:
        EstimateError: With the words of ``steelyard check``.
    """
    model = equations.model
    if "inertia" not in model.effects or model.measured == "difference" or not any(model.robot.gravity):
        return
    feels_gravity, is_regrouped = _columns_at_rest(equations)
    if not feels_gravity or (not is_regrouped and _gravity_shows(equations, training, resolved)):
        return
    fits = GravityFits(equations, training, resolved, threads)
    # The other directions are tried only where none at all fits better than the model's.
    found = fits.best() if fits.removed() else None
    if found is not None and found.direction == REMOVED and found.residual <= WELL:
        raise EstimateError(f"{found.text}; {found.remedy}")


def _gravity_shows(equations: Equations, training: Sequence[Labelled], resolved: ResolvedPreparation) -> bool:
    """Return whether a short part of each recording has gravity in it beyond doubt; no second model is compiled.

    What the regressor has at rest is gravity's: without it the rows are those of a weightless arm.
    """
    samples = max(FIRST_LOOK, LEAST_ROWS * resolved.decimation)
    sources = sources_of([(label, busiest_part(one, samples)) for label, one in training], equations, resolved)
    try:
        for source in sources:
            list(source)  # read once: both share the rows
        with_it, without = (
            relative_residual(reduce_rows(rows, blocks=1), equations.names)
            for rows in (
                [one.adjusted(_AtDecimatedMotion(one, gravity=gravity)) for one in sources] for gravity in (True, False)
            )
        )
        return with_it < SHOWN * without
    except (EstimateError, ObservationError):
        return False  # too few rows in this part


def _columns_at_rest(equations: Equations) -> tuple[bool, bool]:
    """Return whether masses have torques at rest, and whether other effects (springs) are regrouped with these."""
    model = equations.model
    inputs = [np.zeros(one.shape) for one in model.inputs]
    inputs[0] += 0.7 * np.arange(1, len(inputs[0]) + 1)[:, None]  # no special posture
    at_rest = np.asarray(model.regressor(*inputs)).any(axis=0)
    massive, base = np.array([one.effect in MASSIVE for one in model.parameters]), equations.base
    with_masses = base.regrouping[massive[list(base.base_columns)]].any(axis=0)
    return bool((at_rest & massive).any()), bool((at_rest & ~massive & with_masses).any())


class _AtDecimatedMotion:
    """Evaluates the columns of masses at the decimated motion, with gravity or without: an adjustment of rows.

    Decimated gravity less gravity at decimated positions would be no zero. Rows of which a part was near standstill are
    left out: they are not of the decimated positions.
    """

    def __init__(self, source: RowSource, *, gravity: bool) -> None:
        self._compiled, self._gravity = source.equations.compiled(source.loaded), gravity
        self._inputs = [one.shape[0] for one in source.equations.inputs.values()]
        effects = {one.name: one.effect for one in source.equations.model.parameters}
        columns = self._compiled.columns
        self._massive = [np.array([effects[name] in MASSIVE for name in of_one]) for of_one in columns]

    def __call__(self, block: RowBlock) -> RowBlock:
        """Return the rows at the decimated motion."""
        massive, rows = self._massive, [values.copy() for values in block.rows]
        moving, at_rest = self._values(block.q, block.qd, block.qdd), self._values(block.q)
        for e, places in enumerate(self._compiled.places):
            values = moving[e] if self._gravity else moving[e] - at_rest[e]
            rows[e][:, places[massive[e]]] = values[massive[e]].T
        return replace(block, rows=tuple(rows), share=np.where(block.share > WHOLE, block.share, 0.0))

    def _values(self, *motion: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the columns at a motion; what else they depend on, which masses do not, is zero."""
        given = [np.ascontiguousarray(values) for values in motion]
        samples = given[0].shape[1]
        return self._compiled.function(*given, *(np.zeros((rows, samples)) for rows in self._inputs[len(given) :]))
