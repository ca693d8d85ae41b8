"""Settings of a simulated experiment: controller, rates, noise and disturbance.

Every seed has its own random streams, so that each run can be repeated alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..configuration import ROOT, Section, checked, kind_of, number, numbers, record_from
from ..errors import SimulationError
from ..signals import autoregressive_noise, band_limited_noise, white_noise

Control = Literal["pd", "computed_torque"]
Velocity = Literal["tachometer", "encoder"]
NoiseKind = Literal["white", "band_limited", "correlated"]
Plant = Literal["compiled", "mujoco", "ideal"]


@dataclass(frozen=True)
class Noise:
    """Noise on a measured signal, or an unmeasured disturbance torque.

    Attributes:
        kind: ``white``; ``band_limited``: white through a Butterworth low-pass of order 2; ``correlated``:
            first-order autoregressive with the time constant ``1 / (2 pi band)``.
        std: Standard deviation of every joint [N m or N, rad or m].
        band: Cut-off of the noise [Hz]; not used for white noise.

    Example:
        >>> steelyard.Noise("band_limited", std=(2.0, 0.1), band=20.0).kind
        'band_limited'
    """

    kind: NoiseKind
    std: tuple[float, ...]
    band: float = 0.0

    def __post_init__(self) -> None:
        checked(self.kind, kind_of(NoiseKind), "kind of noise", SimulationError)
        checked(self.std, numbers(each=number(least=0)), "noise std", SimulationError)
        if self.kind != "white" and not self.band > 0:
            raise SimulationError(f"{self.kind} noise needs a band above 0 Hz, got {self.band}; give band = 50, say")


@dataclass(frozen=True)
class Experiment:
    """A simulated experiment on an arm.

    Attributes:
        control: ``pd``: ``tau = kp (qr - q) + kd (qdr - qd)``; ``computed_torque``: the arm's own inverse dynamics
            at ``qddr + kp (qr - q) + kd (qdr - qd)``.
        kp: Position gains of every joint; None for gains of ``bandwidth``.
        kd: Velocity gains of every joint.
        bandwidth: Natural frequency of the closed loop where no gains are given [Hz].
        velocity: What the controller knows of velocity: ``tachometer`` (the true one) or ``encoder`` (differences
            of the quantised position through a first-order low-pass at a tenth of the control rate).
        control_rate: Rate of the controller [Hz].
        plant_rate: Rate of the integrator [Hz]; None for ten times the controller's, or more if friction needs it.
        record_rate: Rate of the recording [Hz].
        delay: Time from a command to its torque, whole control periods [s].
        encoder_quantum: Smallest step of every encoder [rad or m]; 0 for none.
        sign_width: Width of the smooth sign in the plant's Coulomb friction [rad/s or m/s]; None for 0.001, or
            more if the integrator needs it.
        motor_noise: Noise on the recorded motor torques.
        joint_noise: Noise on the recorded joint torques.
        position_noise: Noise on the recorded positions, before the encoder's rounding; the controller is not
            affected.
        disturbance: Torque that acts on the motors and is not measured.
        stiffness: Of every joint [N m/rad]: recorded motor positions are ``q + tau_l / k`` (P5, appendix 2).
        saturate: Whether torques stop at the robot's effort limits.
        payload: Name of the payload attached; None for none.
        temperature: Of all joints, warming up: at the start, in the end [deg C] and the time constant [s]; None: that
            of the reference of friction, not recorded.
        plant: ``compiled``; ``mujoco``: an independent implementation; ``ideal``: the arm follows the trajectory
            exactly, without controller or limits, and motor torques are those of inverse dynamics less the disturbance.

    Example:
        >>> steelyard.Experiment(record_rate=100, motor_noise=steelyard.Noise("white", (0.5, 0.05))).control
        'computed_torque'
    """

    control: Control = "computed_torque"
    kp: tuple[float, ...] | None = None
    kd: tuple[float, ...] | None = None
    bandwidth: float = 5.0
    velocity: Velocity = "tachometer"
    control_rate: float = 1000.0
    plant_rate: float | None = None
    record_rate: float = 1000.0
    delay: float = 0.0
    encoder_quantum: tuple[float, ...] | float = 0.0
    sign_width: float | None = None
    motor_noise: Noise | None = None
    joint_noise: Noise | None = None
    disturbance: Noise | None = None
    stiffness: tuple[float, ...] | None = None
    saturate: bool = True
    payload: str | None = None
    plant: Plant = "compiled"
    position_noise: Noise | None = None
    temperature: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        for what, allowed in (("control", Control), ("velocity", Velocity), ("plant", Plant)):
            checked(getattr(self, what), kind_of(allowed), what, SimulationError)
        for what in ("bandwidth", "control_rate", "plant_rate", "record_rate", "sign_width"):
            if getattr(self, what) is not None:
                checked(getattr(self, what), number(above=0), what, SimulationError)
        if (self.kp is None) != (self.kd is None):
            raise SimulationError("kp and kd belong together: give both, or neither for gains of the bandwidth")
        if self.temperature is not None:
            what = "three numbers: degrees Celsius at the start and in the end, time constant [s] above 0"
            checked(self.temperature, numbers(3, number(), what), "temperature", SimulationError)
            checked(self.temperature[2], number(above=0), "time constant of temperature", SimulationError)
        _whole_ratio("control_rate", self.control_rate, "record_rate", self.record_rate)
        if self.plant_rate is not None:
            _whole_ratio("plant_rate", self.plant_rate, "control_rate", self.control_rate)
        if self.delay < 0 or abs(self.delay * self.control_rate - self.delay_steps) > 1e-6:
            raise SimulationError(
                f"delay {self.delay} s: whole control periods of {1 / self.control_rate:g} s are needed, 0 or more"
            )

    @property
    def delay_steps(self) -> int:
        """Number of control periods a command waits."""
        return round(self.delay * self.control_rate)

    @property
    def record_every(self) -> int:
        """Number of control periods between two recorded samples."""
        return round(self.control_rate / self.record_rate)


def temperatures(experiment: Experiment, time: np.ndarray) -> np.ndarray | None:
    """Return the temperature at times (N,) [s] of an experiment [deg C]; None if it has none."""
    if experiment.temperature is None:
        return None
    start, end, constant = experiment.temperature
    return end + (start - end) * np.exp(-time / constant)


def _whole_ratio(fast: str, fast_rate: float, slow: str, slow_rate: float) -> None:
    ratio = fast_rate / slow_rate
    if not 1 <= ratio < float("inf") or abs(ratio - round(ratio)) > 1e-9 * ratio:
        raise SimulationError(f"{fast} {fast_rate:g} Hz must be a whole multiple of {slow} {slow_rate:g} Hz")


def experiment_from_settings(settings: Mapping[str, Any]) -> Experiment:
    """Return the experiment of a ``[simulate]`` table."""
    return record_from(Experiment, Section(settings, ROOT, SimulationError))


# The order of these names fixes which stream belongs to whom; new ones go to the end.
STREAMS = ("disturbance", "motor_noise", "joint_noise", "position_noise")


def noise_of_seed(experiment: Experiment, stream: str, seed: int, joints: int, samples: int, rate: float) -> np.ndarray:
    """Return the noise (n, N) of one stream and seed at a rate [Hz]; zeros where there is none."""
    noise: Noise | None = getattr(experiment, stream)
    if noise is None:
        return np.zeros((joints, samples))
    if len(noise.std) != joints:
        raise SimulationError(f"{stream} std {list(noise.std)}: {joints} numbers are needed, one a joint")
    rng = np.random.default_rng([seed, STREAMS.index(stream)])
    std = np.array(noise.std)
    if noise.kind == "white":
        return white_noise(samples, std, rng)
    if noise.kind == "band_limited":
        return band_limited_noise(samples, rate, noise.band, std, rng)
    return autoregressive_noise(samples, np.array([np.exp(-2 * np.pi * noise.band / rate)]), std, rng)


def quantised(q: np.ndarray, quantum: np.ndarray) -> np.ndarray:
    """Return positions rounded to encoder steps, as they are where the step is 0."""
    step = np.where(quantum > 0, quantum, 1.0)
    return np.where(quantum > 0, step * np.floor(q / step + 0.5), q)
