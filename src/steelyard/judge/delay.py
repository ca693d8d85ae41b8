"""Torques that come late against positions, and what that does to the parameters.

A torque recorded late by d is ``y(t) = tau(t - d) = W x - d dtau/dt``: one more column for each equation, the
derivative of the model's torque. Left out, it goes where it fits best: for a motion of angular frequency w an inertia M
looks like a viscous friction ``-M d w^2`` (P1's forward-only filter is such a delay). A held command is late by half a
control period.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..estimate import Estimate, System, independent
from ..observe import RowSource, RowStack, Whitening
from .weights import row_weight

SIGNIFICANT = 3.0
"""A delay of fewer sigmas is chance."""


@dataclass(frozen=True, eq=False)
class Delays:
    """How late torques are, and what it does.

    Attributes:
        equations: Torque kind and joint of every equation.
        delay: By how much its torque is late against the positions (E,) [s]; negative if early.
        sigma: Standard deviations (E,); infinite where it cannot be told.
        bias: By how much the delays that are more than chance bias the parameters (c,).
    """

    equations: tuple[tuple[str, str], ...]
    delay: np.ndarray
    sigma: np.ndarray
    bias: np.ndarray

    @property
    def significant(self) -> tuple[int, ...]:
        """Numbers of the equations whose delay is more than chance."""
        return tuple(int(e) for e in np.flatnonzero(np.abs(self.delay) > SIGNIFICANT * self.sigma))


def estimate_delays(sources: Sequence[RowSource], estimate: Estimate, whitening: Whitening | None) -> Delays:
    """Estimate the delay of every equation's torque, all parameters free.

    Args:
        sources: The rows behind the estimate.
        estimate: The estimate.
        whitening: How its rows were whitened, if they were.
    """
    equations = sources[0].equations.kinds_joints
    names = tuple(f"delay {kind} {joint}" for kind, joint in equations)
    system = _with_delays(sources, estimate, whitening, names)
    known = dict(zip(system.columns, zip(system.values, np.sqrt(np.diag(system.inverse)), strict=True), strict=True))
    # Sigmas as told, with what correlated noise and small samples add to them.
    gain = float(np.median(estimate.sigma / np.sqrt(np.diag(estimate.system.inverse))))
    delay = np.array([known[name][0] if name in known else 0.0 for name in names])
    sigma = np.array([gain * known[name][1] if name in known else np.inf for name in names])
    found = Delays(equations, delay, sigma, np.zeros(len(estimate.columns)))
    firm = [names[e] for e in found.significant]
    if not firm:
        return found
    corrected = system.restricted([name for name in system.columns if name not in names or name in firm])
    values = dict(zip(corrected.columns, corrected.values, strict=True))
    shift = np.array([values.get(name, np.nan) for name in estimate.columns]) - estimate.values
    return Delays(equations, delay, sigma, -np.nan_to_num(shift))


def _with_delays(
    sources: Sequence[RowSource], estimate: Estimate, whitening: Whitening | None, names: tuple[str, ...]
) -> System:
    """Return the weighted system with a column for the delay of every equation."""
    columns = (*estimate.columns, *names)
    place = {name: k for k, name in enumerate(columns)}
    stack, count = RowStack(len(columns) + 1), 0
    for source in sources:
        for e, rows in _late_rows(source, estimate, whitening):
            felt = [name for name in source.equations.columns[e] if name in place]
            spread = np.zeros((len(rows), len(columns) + 1))
            spread[:, [*(place[name] for name in felt), place[names[e]], -1]] = rows
            stack.push(spread)
            count += len(rows)
    return independent(System(columns, stack.triangle(), count))


def _late_rows(source: RowSource, estimate: Estimate, whitening: Whitening | None) -> Iterator[tuple[int, np.ndarray]]:
    """Yield equation and weighted rows ``[W, -dtau/dt, y]``, run by run."""
    equations, rate = source.equations, source.settled.rate / source.settled.decimation
    known = set(estimate.columns)
    values = [estimate.full_values(names) for names in equations.columns]
    transforms = [None if whitening is None else whitening(source, e) for e in range(len(values))]
    for block in source:
        for e, names in enumerate(equations.columns):
            weight = row_weight(estimate, (source.label, *equations.kinds_joints[e]))
            kept = [k for k, name in enumerate(names) if name in known]
            for _, rows in block.runs(e):
                if weight == 0.0 or len(rows) < 3:
                    continue
                change = np.gradient(rows[:, :-1] @ values[e]) * rate
                late = np.column_stack([rows[:, kept], -change, rows[:, -1]])
                transform = transforms[e]
                if transform is not None:
                    transform.restart()
                    late = transform.push(late)
                yield e, late * weight
