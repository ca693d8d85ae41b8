"""What may be chosen for maximum likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import EstimateError, nearest_match

ALGORITHMS = ("gauss_newton", "levenberg_marquardt")


@dataclass(frozen=True)
class LikelihoodSettings:
    """Choices of maximum likelihood; None is found from the data.

    Attributes:
        period: Period of the motion [s].
        harmonics: Lines of the motion, as multiples of one over the period: a number K for 1 to K, or a list.
        position_noise: Standard deviation of the noise on a sample of each joint's position, or one for all
            [rad or m]; 0: this position is exact.
        torque_noise: Standard deviation of the noise on a sample of each equation's torque, or one for all [N m or N].
        algorithm: ``gauss_newton``: damped only where a whole step does not lower the cost; ``levenberg_marquardt``:
            damped from the start.
        tolerance: The iteration ends when the step that is left is below this many standard deviations, all
            unknowns together.
        most_iterations: Steps, at most.
        sign_width: Width of the smooth sign in friction [rad/s or m/s]; 0 for the exact one; None: the model's.
    """

    period: float | None = None
    harmonics: int | tuple[int, ...] | None = None
    position_noise: tuple[float, ...] | None = None
    torque_noise: tuple[float, ...] | None = None
    algorithm: str = "gauss_newton"
    tolerance: float = 1e-6
    most_iterations: int = 50
    sign_width: float | None = None

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            hint = nearest_match(self.algorithm, ALGORITHMS)
            raise EstimateError(f"ml algorithm: got '{self.algorithm}', allowed are {', '.join(ALGORITHMS)}{hint}")
        _check("period", self.period, 0.0, "a time above 0 [s]", above=True)
        _check("tolerance", self.tolerance, 0.0, "a number above 0", above=True)
        _check("most_iterations", self.most_iterations, 1.0, "whole numbers from 1 on")
        _check("sign_width", self.sign_width, 0.0, "0 or a speed above it")
        for value in self.position_noise or ():
            _check("position_noise", value, 0.0, "standard deviations of 0 and above")
        for value in self.torque_noise or ():
            _check("torque_noise", value, 0.0, "standard deviations above 0", above=True)
        if self.harmonics is not None and not self.lines:
            raise EstimateError("ml harmonics: got none, allowed is at least one line, such as 5 for lines 1 to 5")
        for line in self.lines or ():
            _check("harmonics", line, 1.0, "whole numbers from 1 on")

    @property
    def lines(self) -> tuple[int, ...] | None:
        """The lines of the motion, if they are given."""
        if self.harmonics is None:
            return None
        if isinstance(self.harmonics, int):
            return tuple(range(1, self.harmonics + 1))
        return tuple(sorted(set(self.harmonics)))


def _check(what: str, value: float | None, least: float, allowed: str, *, above: bool = False) -> None:
    if value is None:
        return
    whole = "whole" not in allowed or int(value) == value
    if not (math.isfinite(value) and whole and (value > least if above else value >= least)):
        raise EstimateError(f"ml {what}: got {value}, allowed is {allowed}")
