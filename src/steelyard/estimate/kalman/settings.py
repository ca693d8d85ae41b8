"""Settings of the extended Kalman filter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from ...configuration import Kind, list_of, number
from ...errors import EstimateError
from ...observe import check_fields
from .discrete import Integrator

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
        process: ``torque``: an unmeasured torque drives the arm; ``state``: noise is added to [qd, q].
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
        check_fields(self, _KINDS, "ekf", EstimateError)


def _each(kind: Kind[float]) -> Kind[tuple[float, ...]]:
    return list_of(kind, None, "one number or one for each joint", alone=True)


_KINDS: dict[str, Kind[Any]] = {
    **dict.fromkeys(("position_noise", "velocity_noise", "state_deviation"), _each(number(above=0, largest=math.inf))),
    **dict.fromkeys(("torque_noise", "state_noise"), _each(number(least=0, largest=math.inf))),
    **dict.fromkeys(("sign_width", "widen"), number(above=0, largest=math.inf)),
    "first": number(above=0, most=1),
}
