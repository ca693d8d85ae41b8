"""Settings of maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ...configuration import Kind, list_of, number, whole_number
from ...errors import EstimateError
from ...observe import check_fields

_KINDS: dict[str, Kind[Any]] = {
    "period": number(above=0),
    "tolerance": number(above=0),
    "most_iterations": whole_number(1),
    "sign_width": number(least=0),
    "position_noise": list_of(number(least=0), None, "a list of standard deviations"),
    "torque_noise": list_of(number(above=0), None, "a list of standard deviations"),
    "lines": list_of(whole_number(1), None, "a list of harmonics"),
}


@dataclass(frozen=True)
class LikelihoodSettings:
    """Settings of maximum likelihood; None is found from the data.

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
    algorithm: Literal["gauss_newton", "levenberg_marquardt"] = "gauss_newton"
    tolerance: float = 1e-6
    most_iterations: int = 50
    sign_width: float | None = None

    def __post_init__(self) -> None:
        check_fields(self, _KINDS, "ml", EstimateError)
        if self.harmonics is not None and not self.lines:
            raise EstimateError("ml harmonics: got none, allowed is at least one line, such as 5 for lines 1 to 5")

    @property
    def lines(self) -> tuple[int, ...] | None:
        """The lines of the motion, if they are given."""
        if self.harmonics is None:
            return None
        if isinstance(self.harmonics, int):
            return tuple(range(1, self.harmonics + 1))
        return tuple(sorted(set(self.harmonics)))
