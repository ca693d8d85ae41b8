"""Weighted rows in the order of time: all equations of one instant together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...observe import MIN_SHARE, RowBlock, RowSource
from ..record import Estimate


@dataclass(frozen=True, eq=False)
class Instants:
    """Neighbouring instants that have at least one usable row.

    Attributes:
        time: Their times on the recording's clock (k,) [s].
        bounds: Rows of instant i are ``rows[bounds[i]:bounds[i + 1]]`` (k + 1,).
        rows: ``[W y]`` over the deviations of their cells (m, c + 1), columns as those of the estimate.
    """

    time: np.ndarray
    bounds: np.ndarray
    rows: np.ndarray


def instants_of(source: RowSource, plain: Estimate) -> Iterator[Instants]:
    """Yield the rows of a recording, weighted, block by block; columns that are not estimated count as zero.

    Args:
        source: The recording.
        plain: The estimate whose columns and weights are used.
    """
    cells = [(source.label, *equation) for equation in source.equations.kinds_joints]
    weights, place = plain.weights, {name: k for k, name in enumerate(plain.columns)}
    parts = []
    for e, cell in enumerate(cells):
        if cell in weights:
            names = source.equations.columns[e]
            kept = [k for k, name in enumerate(names) if name in place]
            parts.append((e, [*kept, len(names)], [*(place[names[k]] for k in kept), len(place)], weights[cell]))
    for block in source:
        found = _together(block, parts, len(place) + 1)
        if len(found.time):
            yield found


def _together(block: RowBlock, parts: list[tuple[int, list[int], list[int], float]], width: int) -> Instants:
    instants, stack = [np.zeros(0, dtype=np.intp)], [np.zeros((0, width))]
    for e, kept, places, weight in parts:
        usable = np.flatnonzero(block.share[e] >= MIN_SHARE)
        rows = np.zeros((len(usable), width))
        rows[:, places] = weight * block.rows[e][usable][:, kept]
        instants.append(usable)
        stack.append(rows)
    instant = np.concatenate(instants)
    order = np.argsort(instant, kind="stable")
    present, first = np.unique(instant[order], return_index=True)
    return Instants(block.time[present], np.append(first, len(order)), np.concatenate(stack)[order])
