"""Settings of the estimators that simulate the arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ...configuration import Kind, list_of, number, whole_number
from ...errors import EstimateError
from ...observe import check_fields
from ...simulation import Experiment

_KINDS: dict[str, Kind[Any]] = {
    **dict.fromkeys(("tolerance", "control_rate", "plant_rate"), number(above=0)),
    "most_rounds": whole_number(1),
    "delay": number(),
    "standstill": list_of(number(least=0), None, "a list of speeds", alone=True),
}
# Steps of the integrator in a control period: the motion is smooth, and many iterations are simulated.
_STEPS = 4


@dataclass(frozen=True)
class InstrumentSettings:
    """Settings of instrumental variables and of direct and inverse identification.

    The controller is that of :class:`~steelyard.simulation.Experiment`; give the real one where it is known.

    Attributes:
        control: ``computed_torque`` or ``pd``.
        kp: Position gains of every joint; None for gains of ``bandwidth``.
        kd: Velocity gains of every joint.
        bandwidth: Natural frequency of the closed loop where no gains are given [Hz].
        velocity: What the controller knows of velocity, ``tachometer`` or ``encoder``.
        control_rate: Rate of the controller [Hz], taken to the nearest whole multiple of the recording's.
        plant_rate: Rate of the integrator [Hz]; None for four times the controller's, or what ``sign_width`` needs.
        delay: Time from a command to its torque [s], taken to whole control periods.
        controller: Whose parameters computed torque believes: ``estimate``, those of the current iteration, so that the
            simulated arm keeps to its reference; or ``robot``, those of the robot's file.
        start: Parameters of the first simulation: ``robot``, those of the robot's file; ``wls``, weighted least
            squares; ``auto``, the robot's where it has them, else those of weighted least squares. Prior values, where
            there are any, take the place of either.
        tolerance: Iterations end when parameters change by less than this part, each weighed by its column's length.
        most_rounds: Iterations at most.
        sign_width: Width of the smooth sign in the simulated friction [rad/s or m/s]; None for one that the
            integrator can follow.
        standstill: Simulated speed below which a joint's own equations are left out [rad/s or m/s], one a joint or one
            for all; None: three times the rms difference between recorded and simulated velocities, at least the
            preparation's own standstill. That of the preparation is not used otherwise.
    """

    control: str = "computed_torque"
    kp: tuple[float, ...] | None = None
    kd: tuple[float, ...] | None = None
    bandwidth: float = 5.0
    velocity: str = "tachometer"
    control_rate: float = 1000.0
    plant_rate: float | None = None
    delay: float = 0.0
    controller: Literal["estimate", "robot"] = "estimate"
    start: Literal["auto", "robot", "wls"] = "auto"
    tolerance: float = 1e-4
    most_rounds: int = 20
    sign_width: float | None = None
    standstill: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self, _KINDS, "iv", EstimateError)
        self.experiment(self.control_rate)  # the rest is checked there

    def experiment(self, rate: float) -> Experiment:
        """Return the noise-free experiment with this controller, recorded at a rate [Hz]."""
        control_rate = rate * max(1, round(self.control_rate / rate))
        plant_rate = None if self.sign_width is not None else _STEPS * control_rate
        if self.plant_rate is not None:
            plant_rate = control_rate * max(1, round(self.plant_rate / control_rate))
        kp, kd = (None if gains is None else tuple(map(float, gains)) for gains in (self.kp, self.kd))
        given: dict[str, Any] = {"control": self.control, "velocity": self.velocity}  # checked by the experiment
        return Experiment(
            **given, kp=kp, kd=kd, bandwidth=self.bandwidth, control_rate=control_rate, plant_rate=plant_rate,
            record_rate=rate, delay=round(self.delay * control_rate) / control_rate, sign_width=self.sign_width,
            saturate=False,
        )  # fmt: skip
