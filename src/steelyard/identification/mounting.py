"""How the arm is mounted: a direction of gravity that fits better than the model's, and what to do about it.

Far from the model's it is another mounting (a wall, a ceiling, a slope), near to it a tilted base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..estimate import Estimate
from ..observe import Equations
from ..robot import Robot
from ..robot.placement import Vector3
from ..verdict import Grade, Reason

LARGE_TILT = 10.0
"""A direction nearer to the model's is a tilt, no other mounting [deg]."""
LEAST_TILT = 0.3
"""A smaller tilt is not worth a sentence [deg]."""
CERTAIN = 4.0
"""Standard errors of a tilt from none."""
RIGHT = 3.0
"""A direction nearer to an axis of the base is called that of a wall, a table or a ceiling [deg]."""
MOUNTING = "mounting"
"""What reasons of a verdict that name another direction of gravity are about."""


@dataclass(frozen=True)
class Mounting:
    """A direction of gravity that fits the training recordings far better than the model's.

    Attributes:
        gravity: Acceleration of gravity in the base frame [m/s^2]; 0 where a driver has taken it out of the torques.
        residual: Rms of the residuals over that of the torques with it, all joints alike.
        assumed_residual: The same with the model's own gravity.
        angle: Angle between both directions [deg].
    """

    gravity: Vector3
    residual: float
    assumed_residual: float
    angle: float = 0.0

    @property
    def is_removed(self) -> bool:
        """Whether gravity was taken out of the torques."""
        return not any(self.gravity)

    @property
    def ratio(self) -> float:
        """How many times smaller its residuals are."""
        return self.assumed_residual / self.residual if self.residual > 0 else np.inf

    @property
    def text(self) -> str:
        """What was found, in a sentence."""
        if self.is_removed:
            return (
                f"without gravity the fit is {self.ratio:.2g} times better: gravity seems to be taken out of these "
                "torques already, as some drivers do"
            )
        axis = _axis_along(self.gravity)
        if axis is None:
            return (
                f"gravity {self.angle:.3g} degrees away from where the model has it fits {self.ratio:.2g} times "
                "better, as on a slope"
            )
        return (
            f"gravity along {axis} of the base fits {self.ratio:.2g} times better than as the model has it, as on "
            f"{_base(axis)}"
        )

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.is_removed:
            return (
                f"record torques that contain gravity; or {identify_with(self.gravity)}: this fits these, but masses "
                "are not identifiable then"
            )
        return (
            f"if the arm is mounted so, {identify_with(self.gravity)}; if not, look for joints whose zero or sign is "
            "wrong"
        )

    @property
    def reason(self) -> Reason:
        """The same for a verdict."""
        return Reason(self.text, self.remedy, MOUNTING, "poor", "plausible")


def identify_with(gravity: Sequence[float]) -> str:
    """Return how to identify with another gravity, on the command line and in a configuration.

    Example:
        >>> from steelyard.identification.mounting import identify_with
        >>> identify_with((0.0, 0.0, 9.81))
        'identify with --gravity 0,0,9.81, or set gravity = [0, 0, 9.81] under [identify]'
    """
    parts = [f"{part:.4g}" for part in gravity]
    return f"identify with --gravity {','.join(parts)}, or set gravity = [{', '.join(parts)}] under [identify]"


def _axis_along(gravity: Vector3) -> str | None:
    """Return the axis of the base frame that gravity pulls along, such as ``-z``; None if it is none of them."""
    main = max(range(3), key=lambda axis: abs(gravity[axis]))
    axis = np.zeros(3)
    axis[main] = np.sign(gravity[main])
    sign = "+" if gravity[main] > 0 else "-"
    return f"{sign}{'xyz'[main]}" if angle_between(gravity, axis) < RIGHT else None


def _base(axis: str) -> str:
    return {"-z": "a table", "+z": "a ceiling"}.get(axis, "a wall")


@dataclass(frozen=True)
class Tilt:
    """A base that is not level.

    Attributes:
        angle: Between gravity in its frame and that of the model [deg].
        half_width: Half width of its 95 % interval [deg].
        gravity: Acceleration of gravity in its frame [m/s^2], of the size that the model has.
    """

    angle: float
    half_width: float
    gravity: Vector3

    @property
    def text(self) -> str:
        """What was found, in a sentence."""
        return f"the base is tilted by {self.angle:.2g} +- {self.half_width:.1g} degrees against what the model says"

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return f"measure the mounting; or {identify_with(self.gravity)}"

    def reason(self, grade: Grade | None) -> Reason:
        """Return the same for a verdict: with a grade where the result is not that of the tilted arm."""
        return Reason(self.text, self.remedy, MOUNTING, grade, "plausible")


@dataclass(frozen=True)
class OtherMounting:
    """A recording of an arm that was mounted otherwise than in the other recordings.

    Attributes:
        label: Its label.
        gravity: Acceleration of gravity in the base frame there [m/s^2].
        others: The same in the other recordings.
        angle: Angle between both directions [deg].
    """

    label: str
    gravity: Vector3
    others: Vector3
    angle: float

    @property
    def is_far(self) -> bool:
        """Whether it is another mounting, no tilt."""
        return self.angle > LARGE_TILT

    @property
    def text(self) -> str:
        """What was found, in a sentence."""
        return (
            f"the recordings disagree: gravity pulls {self.angle:.2g} degrees away in '{self.label}' from where it "
            "pulls in the others, as if the base had been tilted or mounted otherwise"
        )

    @property
    def remedy(self) -> str:
        """What to do about it."""
        here, there = (",".join(f"{part:.4g}" for part in one) for one in (self.gravity, self.others))
        return (
            f"measure the mounting, and identify them apart: '{self.label}' with --gravity {here} (or gravity under "
            f"[identify]), the others with {there}"
        )


def angle_between(one: Sequence[float], other: Sequence[float] | np.ndarray) -> float:
    """Return the angle between two vectors [deg]."""
    return float(np.degrees(np.arctan2(np.linalg.norm(np.cross(one, other)), np.dot(one, other))))


def tilt_of(robot: Robot, names: Sequence[str], values: Sequence[float], half_widths: Sequence[float]) -> Tilt:
    """Return the tilt of a base from components of gravity across its axis.

    Args:
        robot: The arm as it is modelled.
        names: ``gx``, ``gy`` or ``gz``.
        values: What is added to these components [m/s^2].
        half_widths: Half widths of their 95 % intervals.
    """
    across, size = float(np.linalg.norm(values)), float(np.linalg.norm(robot.gravity))
    gravity = robot.tilted(dict(zip(names, values, strict=True))).gravity
    half = float(np.degrees(np.linalg.norm(np.multiply(values, half_widths)) / max(across, 1e-300) / size))
    return Tilt(angle_between(robot.gravity, gravity), half, gravity)


def estimated_tilt(equations: Equations, estimate: Estimate) -> Tilt | None:
    """Return the tilt of a model with that effect, if it is certain and worth a sentence; None if not."""
    names = [name for name in ("gx", "gy", "gz") if name in estimate.columns]
    if "tilt" not in equations.model.effects or not names:
        return None
    places = [estimate.columns.index(name) for name in names]
    values, sigma = estimate.values[places], estimate.sigma[places]
    found = tilt_of(equations.model.robot, names, values.tolist(), (1.96 * sigma).tolist())
    is_certain = bool(np.max(np.abs(values) / np.maximum(sigma, 1e-300)) > CERTAIN)
    return found if is_certain and found.angle >= LEAST_TILT else None


def tilt_reasons(equations: Equations, estimate: Estimate) -> Iterator[Reason]:
    """Yield a tilt that was estimated: the result is right with it, but a reader must know."""
    found = estimated_tilt(equations, estimate)
    if found is not None:
        yield found.reason(None)
