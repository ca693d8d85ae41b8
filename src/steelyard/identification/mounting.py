"""The direction of gravity in the base frame, tested on the training recordings: is the arm mounted as the model says?

Gravity enters the equations linearly, but multiplied by the first moments: it cannot be estimated beside them by linear
least squares. A wrong direction leaves most of the gravity torques unexplained, so the residuals of six small fits
show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..estimate import stacked_system
from ..observe import Equations, Observations, ResolvedPreparation, busiest_part, equations_of, reduce_rows
from ..verdict import Reason
from .inputs import Labelled, sources_of

FAR_BETTER = 2.0
"""Residuals must be this many times smaller: another direction also shows two parameters more."""
LOOKED_AT = 20_000
"""Samples at the start of each recording that are fitted."""

REMOVED = "removed"
"""Stands for torques from which the controller has removed gravity."""

_AXES = {"+x": (1, 0, 0), "-x": (-1, 0, 0), "+y": (0, 1, 0), "-y": (0, -1, 0), "+z": (0, 0, 1), "-z": (0, 0, -1)}


@dataclass(frozen=True)
class Mounting:
    """A direction of gravity that fits the training recordings far better than the model's.

    Attributes:
        direction: Axis of the base frame along which gravity pulls: ``+x``, ``-x`` ... ``-z``; or ``removed``.
        gravity: Acceleration of gravity in the base frame [m/s^2].
        residual: Rms of the residuals over that of the torques with it, all joints alike.
        assumed_residual: The same with the model's own gravity.
    """

    direction: str
    gravity: tuple[float, float, float]
    residual: float
    assumed_residual: float

    @property
    def ratio(self) -> float:
        """How many times smaller its residuals are."""
        return self.assumed_residual / self.residual if self.residual > 0 else np.inf

    @property
    def text(self) -> str:
        """What was found, in a sentence."""
        if self.direction == REMOVED:
            return (
                f"without gravity the fit is {self.ratio:.2g} times better: gravity seems to be taken out of these "
                "torques already, as some drivers do"
            )
        return (
            f"gravity along {self.direction} of the base fits {self.ratio:.2g} times better than as the model has it, "
            "as on a wall, a ceiling or a slope"
        )

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.direction == REMOVED:
            return f"record torques that contain gravity; {self.flag} fits these, but masses are not identifiable then"
        return f"if the arm is mounted so, give {self.flag}; if not, look for joints whose zero or sign is wrong"

    @property
    def flag(self) -> str:
        """What to give to ``steelyard identify``."""
        return f"--gravity {','.join(f'{part:g}' for part in self.gravity)}"


def better_mounting(
    equations: Equations, training: Sequence[Labelled], resolved: ResolvedPreparation, threads: int = 1
) -> Mounting | None:
    """Return the direction of gravity that fits far better than the model's, None if there is none.

    Args:
        equations: The equations with the gravity that was assumed.
        training: The recordings that were fitted.
        resolved: Their preparation.
        threads: Threads that share the reduction.
    """
    recordings = [(label, busiest_part(one, LOOKED_AT)) for label, one in training]
    assumed = equations.model.robot.gravity
    size = float(np.linalg.norm(assumed)) or 9.81

    def residual(gravity: tuple[float, float, float]) -> float:
        robot = equations.model.robot.with_gravity(gravity)
        left_out = set(equations.model.rows) - set(equations.kinds_joints)
        turned = equations_of(replace(equations.model, robot=robot), without=left_out)
        return _relative_residual(reduce_rows(sources_of(recordings, turned, resolved), threads=threads), turned.names)

    now = residual(assumed)
    tried = {}
    for direction, axis in _AXES.items():
        gravity = (size * axis[0], size * axis[1], size * axis[2])
        if not np.allclose(gravity, assumed, atol=0.1 * size):
            tried[direction] = (residual(gravity), gravity)
    if any(assumed):
        tried[REMOVED] = (residual((0.0, 0.0, 0.0)), (0.0, 0.0, 0.0))
    best = min(tried, key=lambda direction: tried[direction][0])
    found = Mounting(best, tried[best][1], tried[best][0], now)
    return found if found.ratio >= FAR_BETTER else None


def _relative_residual(observations: Observations, names: Sequence[str]) -> float:
    """Return the rms of the residuals of least squares, every joint's torques scaled to an rms of one."""
    squares: dict[tuple[str, str, str], list[float]] = {}
    for factor in observations.factors:
        total = squares.setdefault((factor.recording, factor.kind, factor.joint), [0.0, 0.0])
        total[0] += float(np.sum(factor.triangle[:, -1] ** 2))
        total[1] += factor.rows
    weights = {group: float(np.sqrt(rows / total)) if total > 0 else 0.0 for group, (total, rows) in squares.items()}
    system = stacked_system(observations, names, weights)
    return float(np.sqrt(system.squares / system.rows))


def mounting_reason(found: Mounting) -> Reason:
    """Return the reason that names a direction of gravity that fits better."""
    return Reason(found.text, found.remedy, "mounting", "poor", "plausible")
