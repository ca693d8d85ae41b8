"""Settings of a calibration: methods, priors, and the limits of its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np

from ...configuration import checked, choice
from ...errors import CalibrationError, nearest_match
from ...text import short_repr
from ...verdict import check_thresholds
from ..records import FRAMES, Unknown
from .accuracy import VALIDATION_BASES, ValidationBase
from .covariances import COVARIANCES, CovarianceKind
from .identifiable import DEPENDENT
from .weights import GROUPINGS, LEAST_EQUATIONS, Grouping


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
        check_thresholds(self, CalibrationError, large_is_good=("enough",))


WIDE = MappingProxyType({"m": 0.02, "rad": 0.1, "rad/(N m)": 1e-2, "m/N": 1e-2, "kg m": 500.0, "kg": 1000.0})
"""Sigmas of the errors of a joint, of compliances and of weights before anything is measured, by unit: far beyond those
of any arm, they matter only for unknowns that are hardly identifiable, which would diverge without them."""

Method = Literal["wls", "ols", "eq14", "declared", "robust"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class CalibrationSettings:
    """Choices of a calibration; the defaults are meant to be right.

    Attributes:
        method: ``wls`` (weights one over estimated sigmas), ``ols`` (one sigma for positions, one for rotations),
            ``eq14`` (P3's damped weights), ``declared`` (one over ``sigma``), ``robust`` (wls with Tukey's weights).
        covariance: ``shared``, ``groups``, ``model``, ``classical`` or ``cluster``.
        grouping: Equations that share a sigma: by ``configuration`` (and direction), ``direction`` or ``kind``.
        least: Independent equations that a group must be worth to have its own sigma.
        reweightings: Most times that sigmas are estimated from the residuals and the fit is repeated.
        sigma: Declared sigmas, one an equation or one for each of x, y, z [m]; needed for ``declared`` only. NaN where
            none is declared, as of rotations: those are estimated from the residuals, one for each kind.
        sigma0: Claimed precision of the instrument in ``eq14`` [m].
        eta: Tuning factor in ``eq14``.
        prior: Sigmas about the nominal values, by name of an unknown or by unit (``m``, ``rad``, ...); unknowns of the
            arm that are not in it have the wide ones of ``WIDE``; base, tool and markers have none.
        screen: Whether gross errors are looked for, named and left out.
        folds: Parts of the configurations that are held out in turn; None: each alone up to 50, then 10 parts.
        tolerance: Relative distance below which an unknown counts as a combination of others.
        validation_base: Whose base holds for measurements to validate with: ``same``, that of the fit, or ``own``.
        level: Of the intervals.
        thresholds: Of the verdict.
        seed: Of the random subsets in screening and of the folds.

    Example:
        >>> steelyard.CalibrationSettings(method="ols", prior={"m": 1e-3, "rad": 1e-3}).covariance
        'shared'
    """

    __repr__ = short_repr

    method: Method = "wls"
    covariance: CovarianceKind = "shared"
    grouping: Grouping = "configuration"
    least: float = LEAST_EQUATIONS
    reweightings: int = 10
    sigma: np.ndarray | Sequence[float] | None = None
    sigma0: float = 10e-6
    eta: float = 1.0
    prior: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    screen: bool = True
    folds: int | None = None
    tolerance: float = DEPENDENT
    validation_base: ValidationBase = "same"
    level: float = 0.95
    thresholds: CalibrationThresholds = field(default_factory=CalibrationThresholds)
    seed: int = 0

    def __post_init__(self) -> None:
        for what, allowed in (
            ("method", METHODS),
            ("covariance", COVARIANCES),
            ("grouping", (*GROUPINGS, "equation")),
            ("validation_base", VALIDATION_BASES),
        ):
            checked(getattr(self, what), choice(*allowed), what, CalibrationError)
        for what, number in (("tolerance", self.tolerance), ("level", self.level)):
            if not 0 < number < 1:
                raise CalibrationError(f"{what}: got {number}, allowed is a number between 0 and 1")
        if self.reweightings < 0:
            raise CalibrationError(f"reweightings: got {self.reweightings}, allowed are 0 and above")
        if self.method == "declared" and self.sigma is None:
            raise CalibrationError("method 'declared': no sigma is given; give one an equation or one for x, y and z")


def prior_sigmas(settings: CalibrationSettings, parameters: Sequence[Unknown]) -> np.ndarray:
    """Return the prior's sigma of every unknown (p,), ``inf`` for none; a name wins over a unit.

    Raises:
        CalibrationError: If a key is neither a name nor a unit, or a sigma is not above 0.
    """
    allowed = {p.name for p in parameters} | {p.unit for p in parameters if p.group not in FRAMES}
    for key, sigma in settings.prior.items():
        if key not in allowed:
            raise CalibrationError(f"prior: got '{key}', allowed are unknowns and units{nearest_match(key, allowed)}")
        if not sigma > 0:
            raise CalibrationError(f"prior of {key}: got {sigma}, allowed is a sigma above 0, or inf for none")
    # A prior by unit is one about the arm: base, tool and markers have no nominal values to rely on.
    by_unit = {unit: settings.prior.get(unit, WIDE.get(unit, np.inf)) for unit in {p.unit for p in parameters}}
    return np.array([settings.prior.get(p.name, np.inf if p.group in FRAMES else by_unit[p.unit]) for p in parameters])
