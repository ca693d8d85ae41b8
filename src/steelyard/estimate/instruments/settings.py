"""What the user may choose for estimators that simulate the arm."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import EstimateError, nearest_match
from ...simulation import Experiment

_STARTS = ("auto", "robot", "wls")
_CONTROLLERS = ("estimate", "robot")
# Steps of the integrator in a control period: the motion is smooth, and many rounds are simulated.
_STEPS = 4


@dataclass(frozen=True)
class InstrumentSettings:
    """Choices of instrumental variables and of direct and inverse identification.

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
        controller: Whose parameters computed torque believes: ``estimate``, those of the round at hand, so that the
            simulated arm keeps to its reference; or ``robot``, those of the robot's file.
        start: Parameters of the first simulation: ``robot``, those of the robot's file; ``wls``, weighted least
            squares; ``auto``, the robot's where it has them, else those of weighted least squares. Prior values, where
            there are any, take the place of either.
        tolerance: Rounds end when the parameters change by less than this part, each weighed by its column's length.
        most_rounds: Rounds at most.
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
    controller: str = "estimate"
    start: str = "auto"
    tolerance: float = 1e-4
    most_rounds: int = 20
    sign_width: float | None = None
    standstill: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for what, got, allowed in (("start", self.start, _STARTS), ("controller", self.controller, _CONTROLLERS)):
            if got not in allowed:
                raise EstimateError(
                    f"{what}: got '{got}', allowed are {', '.join(allowed)}{nearest_match(str(got), allowed)}"
                )
        if not (math.isfinite(self.tolerance) and self.tolerance > 0):
            raise EstimateError(f"tolerance: got {self.tolerance}, allowed are numbers above 0, such as 1e-4")
        if int(self.most_rounds) != self.most_rounds or self.most_rounds < 1:
            raise EstimateError(f"most_rounds: got {self.most_rounds}, allowed are whole numbers from 1 on")
        for what, rate in (("control_rate", self.control_rate), ("plant_rate", self.plant_rate)):
            if rate is not None and not (math.isfinite(rate) and rate > 0):
                raise EstimateError(f"{what}: got {rate}, allowed are numbers above 0")
        if not math.isfinite(self.delay):
            raise EstimateError(f"delay: got {self.delay}, allowed are times of 0 and above")
        if self.standstill is not None and not all(math.isfinite(speed) and speed >= 0 for speed in self.standstill):
            raise EstimateError(f"standstill: got {self.standstill}, allowed are speeds of 0 and above")
        self.experiment(self.control_rate)  # the rest is checked there

    def experiment(self, rate: float) -> Experiment:
        """Return the noise-free experiment with this controller, recorded at a rate [Hz]."""
        control_rate = rate * max(1, round(self.control_rate / rate))
        return Experiment(
            control=self.control,  # type: ignore[arg-type]  # checked by the experiment
            kp=None if self.kp is None else tuple(float(gain) for gain in self.kp),
            kd=None if self.kd is None else tuple(float(gain) for gain in self.kd),
            bandwidth=self.bandwidth,
            velocity=self.velocity,  # type: ignore[arg-type]  # checked by the experiment
            control_rate=control_rate,
            plant_rate=self._plant_rate(control_rate),
            record_rate=rate,
            delay=round(self.delay * control_rate) / control_rate,
            sign_width=self.sign_width,
            saturate=False,
        )

    def _plant_rate(self, control_rate: float) -> float | None:
        if self.plant_rate is not None:
            return control_rate * max(1, round(self.plant_rate / control_rate))
        return None if self.sign_width is not None else _STEPS * control_rate
