"""Friction of joints that changes with time within a recording, or differs between recordings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..distributions import t_ppf
from ..estimate import Estimate
from ..observe import Equations, Observations

CERTAIN = 4.0
"""A change is this many standard deviations from none."""
FRICTION_CHANGED, FRICTION_DIFFERS = 0.1, 0.03
"""Least change of a joint's friction that is a fault, as a part of it; and least difference of recordings to tell."""
BLOCKS = 20
"""Blocks of time of a recording whose friction is compared."""


@dataclass(frozen=True)
class FrictionChange:
    """Friction of a joint that is not the same all the time.

    Attributes:
        joint: The joint.
        kind: Its torque kind.
        recording: In which recording it changes with time, or which differs from the others.
        change: Change as a part of its friction: from the beginning to the end, or against the others.
        half_width: Half width of its 95 % interval.
        over_time: Whether it changes within the recording.
    """

    joint: str
    kind: str
    recording: str
    change: float
    half_width: float
    over_time: bool

    @property
    def is_small(self) -> bool:
        """Whether it is worth knowing, but no fault."""
        return abs(self.change) < FRICTION_CHANGED


def friction_changes(observations: Observations, equations: Equations, estimate: Estimate) -> Iterator[FrictionChange]:
    """Yield joints whose friction changes with time within a recording, or differs between recordings.

    The mean residual in the direction of motion is taken of every block; its spread over blocks says how sure a trend
    or a difference is.

    Args:
        observations: Factors by block of time.
        equations: Model and base parameters.
        estimate: Estimate of them all.
    """
    own = dict(zip(estimate.columns, estimate.values, strict=True))
    for kind, joint in equations.kinds_joints:
        columns = coulomb_columns(equations, kind, joint)
        if not columns:
            continue
        coulomb, *viscous = columns
        by_recording: dict[str, list[tuple[float, float, float]]] = {}
        levels = []
        for factor in observations.factors:
            if (factor.kind, factor.joint) != (kind, joint) or coulomb not in factor.columns:
                continue
            place = factor.columns.index(coulomb)
            values = np.array([own.get(name, 0.0) for name in factor.columns])
            direction = factor.triangle[:, place]
            size = float(direction @ direction)
            if size <= 0:
                continue
            residual = factor.triangle[:, -1] - factor.triangle[:, :-1] @ values
            by_recording.setdefault(factor.recording, []).append(
                (float(factor.block), float(direction @ residual) / size, size)
            )
            friction = own.get(coulomb, 0.0) * direction
            for name in set(viscous) & set(factor.columns):
                friction = friction + own.get(name, 0.0) * factor.triangle[:, factor.columns.index(name)]
            levels.append((float(direction @ friction), size))
        level = sum(one for one, _ in levels) / max(sum(size for _, size in levels), 1e-300)
        if level > 0:
            yield from _changes(joint, kind, by_recording, level)


def coulomb_columns(equations: Equations, kind: str, joint: str) -> tuple[str, ...]:
    """Return the columns of Coulomb and viscous friction of an equation; none if it has no Coulomb friction."""
    side = "l" if kind == "joint" else "m"
    named = {(one.effect, one.joint): one.name for one in equations.model.parameters if one.name in equations.names}
    if (f"Fc{side}", joint) not in named:
        return ()
    return tuple(named[law, joint] for law in (f"Fc{side}", f"Fv{side}") if (law, joint) in named)


def _changes(
    joint: str, kind: str, by_recording: dict[str, list[tuple[float, float, float]]], level: float
) -> Iterator[FrictionChange]:
    means: dict[str, tuple[float, float]] = {}
    for label, blocks in by_recording.items():
        if len(blocks) < 6:
            continue
        number, mean, size = np.array(sorted(blocks)).T
        time = (number - number.min()) / max(np.ptp(number), 1.0)
        weights = np.sqrt(size / size.sum())
        design = np.column_stack([np.ones_like(time), time]) * weights[:, None]
        found, *_ = np.linalg.lstsq(design, weights * mean, rcond=None)
        rest = weights * mean - design @ found
        freedom = len(time) - 2
        inverse = np.linalg.inv(design.T @ design)
        sigma = np.sqrt(inverse[1, 1] * (rest @ rest) / freedom)
        half = float(t_ppf(0.975, freedom)) * sigma / level
        change = float(found[1]) / level
        if abs(found[1]) > CERTAIN * sigma and abs(change) >= FRICTION_CHANGED:
            yield FrictionChange(joint, kind, label, change, half, True)
        average = float(weights**2 @ mean)
        spread = np.sqrt(np.sum(weights**4 * (mean - average) ** 2) * len(mean) / (len(mean) - 1))
        means[label] = average, float(spread)
    for label, (average, spread) in means.items():
        others = [one for name, one in means.items() if name != label]
        if not others:
            continue
        rest, variance = np.mean([one[0] for one in others]), sum(one[1] ** 2 for one in others) / len(others) ** 2
        sigma = float(np.hypot(spread, np.sqrt(variance)))
        change = (average - rest) / level
        is_most = all(abs(average - rest) >= abs(one[0] - average) / 2 for one in others)
        if abs(average - rest) > CERTAIN * sigma and abs(change) >= FRICTION_DIFFERS and is_most:
            yield FrictionChange(joint, kind, label, float(change), 2 * sigma / level, False)
