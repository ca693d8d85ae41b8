"""Limits of the verdict on an identification, which a user may set."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import EstimateError
from ..verdict import check_thresholds


@dataclass(frozen=True)
class Thresholds:
    """Limits of the verdict's rows. Where small is good, good is up to ``_good``, fair up to ``_fair``, then poor.

    Attributes:
        ratio_good: Unseen relative error over that of the fit.
        ratio_fair: The same.
        error_good: Unseen relative error over all joints [%].
        error_fair: The same.
        condition_good: Condition number, columns normalised.
        condition_fair: The same.
        known_good: Essential parameters that are well known [%]; good from here on.
        known_fair: The same, fair from here on.
        relative_sigma: A parameter is well known up to this relative sigma [%].
        lag_one: Correlation of neighbouring residuals beyond the decimator's that is strong, though modelled.
        leftover: Correlation of whitened residuals that may be left at any lag.
        leftover_p: Or its Ljung-Box probability, above which it may be chance.
        spread_good: Spread of recordings fitted alone, over their sigmas.
        spread_fair: The same.
        impossible_fair: Part of a joint's torque that an impossible value may stand for [%]; above, it is poor.
        joint_good: Unseen relative error of the worst joint, its mean apart [%].
        joint_fair: The same.
        effort_good: Largest torque over the robot file's effort limit.
        effort_fair: The same.
        scale_good: By what factor rigid-body torques may differ from those of the robot file's inertias.
        scale_fair: The same.
        delay: Delay of torques, of all or of one, from which a result is fair at best [s].
        pattern: Part of a joint's residual variance that one pattern may explain [%]; above, the joint's parameters
            carry what the model lacks.

    Example:
        >>> from steelyard.judge import Thresholds
        >>> steelyard.Settings(thresholds=Thresholds(error_good=3.0)).thresholds.error_fair
        15.0
    """

    ratio_good: float = 1.3
    ratio_fair: float = 2.0
    error_good: float = 5.0
    error_fair: float = 15.0
    condition_good: float = 30.0
    condition_fair: float = 100.0
    known_good: float = 80.0
    known_fair: float = 50.0
    relative_sigma: float = 20.0
    lag_one: float = 0.5
    leftover: float = 0.2
    leftover_p: float = 0.001
    spread_good: float = 2.0
    spread_fair: float = 4.0
    impossible_fair: float = 5.0
    joint_good: float = 30.0
    joint_fair: float = 50.0
    effort_good: float = 1.05
    effort_fair: float = 1.5
    scale_good: float = 3.0
    scale_fair: float = 6.0
    delay: float = 0.005
    pattern: float = 10.0

    def __post_init__(self) -> None:
        check_thresholds(self, EstimateError, large_is_good=("known",))
