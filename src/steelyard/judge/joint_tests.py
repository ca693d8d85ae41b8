"""All residual tests of one equation, and what the residuals depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..estimate import NoiseModel
from .heteroscedasticity import breusch_pagan
from .normality import jarque_bera, kolmogorov_smirnov
from .patterns import Pattern, explain_residuals
from .residual_correlation import ResidualCorrelation
from .whiteness import autocorrelation, durbin_watson, ljung_box

LAGS = 10
"""Lags over which correlation is looked for."""


@dataclass(frozen=True)
class JointTests:
    """Tests of one equation's residuals.

    Attributes:
        kind: Torque kind.
        joint: Joint.
        durbin_watson: Statistic of the decimated residuals.
        expected_durbin_watson: What white noise has after this decimator.
        ljung_box_p: Of the decimated residuals against the decimator's own correlation.
        order: Order of the noise model's autoregression.
        lag_one: Lag-one correlation of the noise beyond the decimator's.
        whitened_ljung_box_p: Of the residuals after the noise model was taken away.
        whitened_correlation: Largest correlation left then, at lags 1 to 10.
        kolmogorov_smirnov_p: Normality of the whitened residuals.
        jarque_bera_p: Normality of the whitened residuals.
        breusch_pagan_p: Whether the size of the whitened residuals depends on speed and acceleration.
        patterns: What the residuals depend on.
    """

    kind: str
    joint: str
    durbin_watson: float
    expected_durbin_watson: float
    ljung_box_p: float
    order: int
    lag_one: float
    whitened_ljung_box_p: float
    whitened_correlation: float
    kolmogorov_smirnov_p: float
    jarque_bera_p: float
    breusch_pagan_p: float
    patterns: tuple[Pattern, ...]

    @property
    def largest_share(self) -> float:
        """Largest part of the residual's variance that one pattern explains, 0 to 1."""
        return max((pattern.share_explained for pattern in self.patterns), default=0.0)

    @property
    def correlation(self) -> ResidualCorrelation:
        """What the verdict looks at: the correlation modelled, and what is left of it."""
        return ResidualCorrelation(
            self.kind, self.joint, self.lag_one, self.whitened_correlation, self.whitened_ljung_box_p
        )


def joint_tests(
    equation: tuple[str, str],
    residuals: Sequence[np.ndarray],
    whitened: Sequence[np.ndarray],
    signals: Mapping[str, Sequence[np.ndarray]],
    noise: NoiseModel,
    noise_std: float,
    *,
    prismatic: bool = False,
) -> JointTests:
    """Test the residuals of one equation.

    Args:
        equation: Torque kind and joint.
        residuals: Decimated residuals, run by run [N m or N].
        whitened: The same after the noise model, in units of its deviation.
        signals: Velocity, acceleration, position, load, temperature and time of the rows, run by run.
        noise: The noise model.
        noise_std: Standard deviation of the noise [N m or N].
        prismatic: Whether the joint is one.
    """
    kind, joint = equation
    watson = durbin_watson(residuals, noise.correlation)
    lags = min(LAGS, max(1, max(len(run) for run in residuals) // 5))
    order = len(noise.coefficients[equation])
    stacked = np.concatenate(whitened)
    left = autocorrelation(whitened, lags)
    motion = np.array([np.abs(np.concatenate(list(signals[name]))) for name in ("velocity", "acceleration")])
    return JointTests(
        kind=kind,
        joint=joint,
        durbin_watson=watson.statistic,
        expected_durbin_watson=watson.expected,
        ljung_box_p=ljung_box(residuals, lags, noise.correlation).p,
        order=order,
        lag_one=noise.lag_one(equation),
        whitened_ljung_box_p=ljung_box(whitened, lags, fitted=min(order, lags - 1)).p,
        whitened_correlation=float(np.abs(left[1:]).max()),
        kolmogorov_smirnov_p=kolmogorov_smirnov(stacked).p,
        jarque_bera_p=jarque_bera(stacked).p,
        breusch_pagan_p=breusch_pagan(stacked, motion).p,
        patterns=explain_residuals(
            residuals, signals, f"{joint} ({kind} torque)", noise_std, noise.correlation, prismatic=prismatic
        ),
    )
