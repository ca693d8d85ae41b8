"""The information matrix of a motion on a grid of instants, and its adjoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..errors import DesignError
from ..model import BaseParameters, Model, base_parameters
from ..text import short_repr
from .criteria import Weighting
from .rows import Motion, RowBlocks, differentiable

LOADS = {"none": (False,), "loaded": (True,), "paired": (False, True)}
"""Whether the payload is carried in each run of the motion, by the model's ``payload``."""


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The parameters to be identified, the torques measured, and their noise.

    Attributes:
        model: The model; its smooth sign makes gradients exact.
        base: Its base parameters.
        columns: Unknowns that count, names of base columns; a choice of the base parameters.
        deviations: Standard deviation of the noise of a sample, of each equation of the model (E,) [N m or N].
        rate: Samples a second [Hz]; their noise is taken as independent.
        values: Sizes of the unknowns (c,), for relative sigmas; NaN where nothing is known.
        earlier: Information from earlier recordings (c, c), noise-weighted; None if there is none.
    """

    __repr__ = short_repr

    model: Model
    base: BaseParameters
    columns: tuple[str, ...]
    deviations: np.ndarray
    rate: float
    values: np.ndarray
    earlier: np.ndarray | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns as base parameters."""
        named = {parameter.column: parameter.name for parameter in self.base.base}
        return tuple(named[column] for column in self.columns)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the unknowns."""
        units = {parameter.column: parameter.unit for parameter in self.base.base}
        return tuple(units[column] for column in self.columns)

    @property
    def loads(self) -> tuple[bool, ...]:
        """Whether the payload is carried, run by run."""
        return LOADS[self.model.payload]


def unknowns(
    model: Model,
    deviations: np.ndarray,
    rate: float,
    *,
    columns: Sequence[str] | None = None,
    values: Mapping[str, float] | None = None,
    earlier: np.ndarray | None = None,
) -> Unknowns:
    """Return checked unknowns.

    Args:
        model: The model.
        deviations: Noise of each equation (E,).
        rate: Samples a second [Hz].
        columns: Names of the unknowns that count, as base parameters or base columns; all by default.
        values: Sizes of standard parameters, by name, to be regrouped; nothing is known by default.
        earlier: Information from earlier recordings, by the same columns.
    """
    base = base_parameters(model)
    all_columns = [parameter.column for parameter in base.base]
    chosen = all_columns if columns is None else [_base_column(base, name) for name in columns]
    deviations = np.asarray(deviations, dtype=float)
    if deviations.shape != (len(model.rows),) or not (np.isfinite(deviations) & (deviations > 0)).all():
        raise DesignError(
            f"noise: got {deviations.tolist()}; allowed is one positive standard deviation for each of the "
            f"{len(model.rows)} equations"
        )
    if not (np.isfinite(rate) and rate > 0):
        raise DesignError(f"rate {rate}: give the samples a second of the recording [Hz]")
    sizes = np.full(len(all_columns), np.nan)
    if values is not None:
        sizes = base.regrouping @ np.array([values.get(name, 0.0) for name in model.names])
    places = [place for place, name in enumerate(all_columns) if name in chosen]
    in_order = tuple(all_columns[place] for place in places)
    return Unknowns(model, base, in_order, deviations, float(rate), sizes[places], earlier)


def _base_column(base: BaseParameters, name: str) -> str:
    for parameter in base.base:
        if name in (parameter.name, parameter.column):
            return parameter.column
    raise DesignError(f"'{name}' is no base parameter of this model; it has {', '.join(base.names)}")


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Rows of the regressor on a grid.

    Attributes:
        rows: W transposed, equation under equation, nonzero columns of each equation only (r, N).
        products: ``W_e^T W_e`` of one run of the motion, side by side (p,).
    """

    rows: np.ndarray
    products: np.ndarray

    @property
    def count(self) -> int:
        """Number of instants."""
        return self.rows.shape[1]


class Information:
    """Maps a motion on a grid to the information matrix, and gradients back. Compiled once for each problem.

    Runs of the same motion without and with payload have the same rows but for the payload's columns: they are
    evaluated once, and products of columns count as often as both are there.
    """

    def __init__(self, chosen: Unknowns) -> None:
        self._unknowns = chosen
        model, motion = chosen.model, chosen.model.motion
        standard = [model.names.index(name) for name in chosen.columns]
        matrix = ca.sparsify(model.regressor(motion.q, motion.qd, motion.qdd)[:, standard])
        nonzero = [matrix[row, :].sparsity().get_triplet()[1] for row in range(matrix.shape[0])]
        entries = [matrix[row, column] for row, columns in enumerate(nonzero) for column in columns]
        self._function = differentiable("design_rows", (motion.q, motion.qd, motion.qdd), [ca.vertcat(*entries)])
        self._blocks = RowBlocks([np.array(columns, dtype=np.intp) for columns in nonzero], len(standard))
        runs = self._shared_runs()
        self._weights: Mapping[Weighting, np.ndarray] = {
            "none": runs,
            "noise": runs / chosen.deviations[self._blocks.equation] ** 2,
        }

    @property
    def unknowns(self) -> Unknowns:
        """What the information is about."""
        return self._unknowns

    def _shared_runs(self) -> np.ndarray:
        """Return in how many runs both columns of each product are there (p,)."""
        effects = {parameter.name: parameter.effect for parameter in self.unknowns.model.parameters}
        carried = np.array([effects[column] == "payload" for column in self.unknowns.columns], dtype=bool)
        only_loaded = carried[self._blocks.first] | carried[self._blocks.second]
        return np.sum([loaded | ~only_loaded for loaded in self.unknowns.loads], axis=0, dtype=float)

    def sampled(self, motion: Motion) -> SampledRows:
        """Return rows and their squares at the instants of a motion."""
        (rows,) = self._function(motion)
        return SampledRows(rows, self._blocks.products(rows))

    def matrix(self, sampled: SampledRows, weighting: Weighting, samples: float) -> np.ndarray:
        """Return M (c, c) of so many samples spread as the grid's instants, earlier information not included."""
        return self._blocks.summed((samples / sampled.count) * self._weights[weighting] * sampled.products)

    def pull_back(
        self, motion: Motion, sampled: SampledRows, gradients: Mapping[Weighting, np.ndarray], samples: float
    ) -> tuple[np.ndarray, ...]:
        """Return gradients (n, N) by q, qd and qdd from gradients by M (c, c) of one or both weightings."""
        by_product = np.zeros_like(sampled.products)
        for weighting, gradient in gradients.items():
            by_product += self._weights[weighting] * self._blocks.spread(gradient)
        # A product of two rows changes by both of them.
        seeds = self._blocks.multiplied((2 * samples / sampled.count) * by_product, sampled.rows)
        return self._function.pull_back(motion, [seeds])
