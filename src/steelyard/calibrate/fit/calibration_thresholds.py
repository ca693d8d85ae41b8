"""Where a good calibration ends and a poor one begins: every number may be set."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite

from ...errors import CalibrationError


@dataclass(frozen=True)
class CalibrationThresholds:
    """Limits of the verdict's rows. Where small is good, good is up to ``_good``, fair up to ``_fair``, then poor.

    Attributes:
        gain_good: Held-out error over that of the nominal arm, base and markers fitted.
        gain_fair: The same.
        ratio_good: Held-out error over that of the fit.
        ratio_fair: The same.
        condition_good: Condition number, columns of unit length.
        condition_fair: The same.
        enough_good: Independent numbers for every unknown; good from here on.
        enough_fair: The same, fair from here on.
        outliers_good: Share of points that are left out [%].
        outliers_fair: The same.
        known_good: Unknowns of the arm that differ from nominal by more than their sigma [%]; fair below.
        size_good: Error after the fit over the arm's reach [%].
        size_fair: The same.
        rotation_good: Orientation error after the fit [deg].
        rotation_fair: The same.
        rotation_gain_good: Unseen orientation error over that of the nominal arm.
        rotation_gain_fair: The same.
        deviation_good: Largest error of a joint over what is usual, 0.1 rad or 20 mm; two sigmas are taken off.
        deviation_fair: The same.
    """

    gain_good: float = 0.5
    gain_fair: float = 1.0
    ratio_good: float = 1.5
    ratio_fair: float = 2.5
    condition_good: float = 200.0
    condition_fair: float = 2000.0
    enough_good: float = 3.0
    enough_fair: float = 1.5
    outliers_good: float = 2.0
    outliers_fair: float = 20.0
    known_good: float = 50.0
    size_good: float = 0.5
    size_fair: float = 2.0
    rotation_good: float = 1.0
    rotation_fair: float = 5.0
    rotation_gain_good: float = 1.1
    rotation_gain_fair: float = 1.5
    deviation_good: float = 1.0
    deviation_fair: float = 2.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (isinstance(value, int | float) and isfinite(value) and value >= 0):
                raise CalibrationError(
                    f"threshold {field.name}: got {value}, allowed are finite numbers of 0 and above"
                )
        for name in ("gain", "ratio", "condition", "outliers", "size", "rotation", "rotation_gain", "deviation"):
            self._check_order(f"{name}_good", f"{name}_fair")
        self._check_order("enough_fair", "enough_good")

    def _check_order(self, smaller: str, larger: str) -> None:
        if getattr(self, smaller) > getattr(self, larger):
            raise CalibrationError(
                f"threshold {smaller}: got {getattr(self, smaller):g}, allowed is at most {larger}, "
                f"{getattr(self, larger):g}"
            )
