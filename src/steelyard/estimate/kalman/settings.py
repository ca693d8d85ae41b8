"""What may be chosen of the extended Kalman filter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import EstimateError, nearest_match
from .discrete import Integrator

_WORDS: dict[str, tuple[str, ...]] = {
    "integrator": ("rk4", "euler"),
    "observe": ("q", "q_qd"),
    "start": ("auto", "first", "robot", "wls", "zero"),
    "process": ("torque", "state"),
    "torque": ("held", "mean"),
    "derivatives": ("measured", "predicted"),
}
_POSITIVE = ("sign_width", "first", "widen", "position_noise", "velocity_noise", "state_deviation")
_NOT_NEGATIVE = ("torque_noise", "state_noise")

PerJoint = float | tuple[float, ...]
"""One number for all joints, or one for each."""


@dataclass(frozen=True)
class KalmanSettings:
    """Settings of the filter on ``[qd, q, chi]``; None is found from the data.

    Deviations are standard deviations per sample, one for all joints or one for each.

    Attributes:
        integrator: ``rk4``, or ``euler`` (P1).
        observe: ``q``, or ``q_qd``: recorded velocities too.
        torque: What drives the arm between two samples: ``held``, the torque of the first; ``mean`` of both, right for
            torques that change smoothly.
        sign_width: None: the direction of Coulomb friction is held over each step, and torques of a joint that stands
            still or turns back are hardly trusted; a width: it is ``tanh(v / width)`` at every instant (P1)
            [rad/s or m/s].
        start: Values to begin with. ``auto``: ``first`` with the robot's values as a weak prior, and only as far from
            them as the inertia matrix stays positive definite; ``first``: weighted least squares of the first part of
            the rows; ``robot``: the values of the robot's file; ``wls``: those of all rows; ``zero``. A prior
            overrides any of them by name.
        first: That part, 0 to 1.
        widen: Factor on the deviations of these values.
        process: ``torque``: a torque that nobody measures drives the arm; ``state``: noise is added to [qd, q].
        torque_noise: Its deviation [N m or N]; None: white noise with the power that the residuals have at low
            frequency.
        state_noise: Deviations of the noise on [qd, q] for each step, one number or 2n of them: qd first.
        position_noise: Deviation of recorded positions [rad or m]; None: their noise floor, at least that of the
            encoder's steps.
        velocity_noise: Deviation of recorded velocities [rad/s or m/s], likewise.
        state_deviation: Deviations of the first [qd, q] of every recording, one number or 2n of them; None: those
            of what it is made from, the first samples.
        locked: Names of parameters that stay at their start.
        derivatives: Along which motion the derivatives of a step are taken: ``measured``, the smoothed positions and
            their differences; ``predicted``, what the filter itself predicts from the torques, as the textbook does,
            which is biased by the square of the torques' noise. With ``process = "state"`` always ``predicted``.
    """

    integrator: Integrator = "rk4"
    observe: Literal["q", "q_qd"] = "q"
    torque: Literal["mean", "held"] = "mean"
    sign_width: float | None = None
    start: Literal["auto", "first", "robot", "wls", "zero"] = "auto"
    first: float = 0.3
    widen: float = 5.0
    process: Literal["torque", "state"] = "torque"
    torque_noise: PerJoint | None = None
    state_noise: PerJoint = (0.1,)
    position_noise: PerJoint | None = None
    velocity_noise: PerJoint | None = None
    state_deviation: PerJoint | None = None
    locked: tuple[str, ...] = ()
    derivatives: Literal["measured", "predicted"] = "measured"

    def __post_init__(self) -> None:
        for field, allowed in _WORDS.items():
            got = getattr(self, field)
            if got not in allowed:
                raise EstimateError(
                    f"ekf {field}: got '{got}', allowed are {', '.join(allowed)}{nearest_match(str(got), allowed)}"
                )
        for field in _POSITIVE:
            _check_numbers(field, getattr(self, field), above=True)
        for field in _NOT_NEGATIVE:
            _check_numbers(field, getattr(self, field), above=False)
        if self.first > 1:
            raise EstimateError(f"ekf first: got {self.first:g}, allowed are parts above 0 up to 1")


def _check_numbers(field: str, value: Any, *, above: bool) -> None:
    numbers = () if value is None else value if isinstance(value, tuple) else (value,)
    is_bad = value is not None and not numbers
    if is_bad or any(not math.isfinite(x) or x < 0 or (above and x == 0) for x in numbers):
        allowed = "finite numbers above 0" if above else "finite numbers of 0 and above"
        raise EstimateError(f"ekf {field}: got {value}, allowed are {allowed}, one or one for each joint")
