"""Torques that come late against positions, and what that does to the parameters.

A torque recorded late by d is ``y(t) = tau(t - d) = W x - d dtau/dt``: one more column for each equation, the
derivative of the model's torque. Left out, it goes where it fits best: for a motion of angular frequency w an inertia M
looks like a viscous friction ``-M d w^2`` (P1's forward-only filter is such a delay). A held command is late by half a
control period.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..estimate import Estimate, System, independent
from ..observe import RowSource, RowStack, Whitening

SIGNIFICANT = 3.0
"""A delay of fewer sigmas is chance."""


@dataclass(frozen=True, eq=False)
class Delays:
    """How late torques are, and what it does.

    Attributes:
        equations: Torque kind and joint of every equation.
        delay: By how much its torque is late against the positions (E,) [s]; negative if early.
        sigma: Standard deviations (E,); infinite where it cannot be told.
        common: The delay of all torques together and its sigma [s]: one clock is better known than each joint alone.
        bias: By how much delays that are more than chance bias the parameters (c,).
        exposure: How far a common delay of one of its sigmas, too small to be seen, moves each parameter, over that
            parameter's sigma (c,).
    """

    equations: tuple[tuple[str, str], ...]
    delay: np.ndarray
    sigma: np.ndarray
    common: tuple[float, float]
    bias: np.ndarray
    exposure: np.ndarray

    @property
    def significant(self) -> tuple[int, ...]:
        """Numbers of the equations whose own delay is more than chance."""
        return tuple(int(e) for e in np.flatnonzero(np.abs(self.delay) > SIGNIFICANT * self.sigma))

    @property
    def has_common(self) -> bool:
        """Whether the common delay is more than chance."""
        return abs(self.common[0]) > SIGNIFICANT * self.common[1]


def estimate_delays(sources: Sequence[RowSource], estimate: Estimate, whitening: Whitening | None) -> Delays:
    """Estimate the delay of the torques, all parameters free: of each equation, and one for all.

    Args:
        sources: The rows behind the estimate.
        estimate: The estimate.
        whitening: How its rows were whitened, if they were.
    """
    equations = sources[0].equations.kinds_joints
    names = tuple(f"delay {kind} {joint}" for kind, joint in equations)
    each = _with_delays(sources, estimate, whitening, names)
    together = independent(_one_delay(each, names))
    # Sigmas as told, with what correlated noise and small samples add to them.
    gain = float(np.median(estimate.sigma / np.sqrt(np.diag(estimate.system.inverse))))
    each = independent(each)
    told = [_told(each, name, gain) for name in names]
    delay, sigma = np.array(told).T
    nothing, exposure = np.zeros(len(estimate.columns)), _exposure(together, estimate)
    found = Delays(equations, delay, sigma, _told(together, _COMMON, gain), nothing, exposure)
    firm = {names[e] for e in found.significant}
    if found.has_common:
        return replace(found, bias=_bias(together, estimate))
    if firm:
        kept = [name for name in each.columns if name not in names or name in firm]
        return replace(found, bias=_bias(each.restricted(kept), estimate))
    return found


_COMMON = "delay of all"


def _one_delay(system: System, names: tuple[str, ...]) -> System:
    """Return the system with one delay for all equations."""
    count = len(system.columns) - len(names)
    triangle = system.triangle
    columns = [triangle[:, :count], triangle[:, count:-1].sum(axis=1, keepdims=True), triangle[:, -1:]]
    reduced = np.asarray(np.linalg.qr(np.hstack(columns), mode="r"))
    return System((*system.columns[:count], _COMMON), reduced, system.rows)


def _told(system: System, name: str, gain: float) -> tuple[float, float]:
    """Return a delay and its sigma; 0 and infinity where it cannot be told."""
    if name not in system.columns:
        return 0.0, float("inf")
    place = system.columns.index(name)
    return float(system.values[place]), gain * float(np.sqrt(system.inverse[place, place]))


def _bias(system: System, estimate: Estimate) -> np.ndarray:
    """Return by how much leaving the delays out moves the parameters (c,)."""
    values = dict(zip(system.columns, system.values, strict=True))
    return np.array(
        [value - values.get(name, value) for name, value in zip(estimate.columns, estimate.values, strict=True)]
    )


def _exposure(system: System, estimate: Estimate) -> np.ndarray:
    """Return by how many sigmas a common delay of one sigma moves each parameter (c,); 0 where it cannot be told."""
    if _COMMON not in system.columns:
        return np.zeros(len(estimate.columns))
    inverse, place = system.inverse, system.columns.index(_COMMON)
    moved = dict(zip(system.columns, np.abs(inverse[place]) / np.sqrt(inverse[place, place]), strict=True))
    alone = np.sqrt(np.diag(estimate.system.inverse))
    return np.array([moved.get(name, 0.0) for name in estimate.columns]) / alone


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
    return System(columns, stack.triangle(), count)


def _late_rows(source: RowSource, estimate: Estimate, whitening: Whitening | None) -> Iterator[tuple[int, np.ndarray]]:
    """Yield equation and weighted rows ``[W, -dtau/dt, y]``, run by run."""
    equations, rate = source.equations, source.settled.rate / source.settled.decimation
    known, weights = set(estimate.columns), estimate.weights
    values = [estimate.full_values(names) for names in equations.columns]
    transforms = [None if whitening is None else whitening(source, e) for e in range(len(values))]
    for block in source:
        for e, names in enumerate(equations.columns):
            weight = weights.get((source.label, *equations.kinds_joints[e]), 0.0)
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
