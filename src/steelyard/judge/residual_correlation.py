"""What a noise model takes up of the correlation of residuals, and what it leaves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResidualCorrelation:
    """Correlation of one equation's residuals.

    Attributes:
        kind: Torque kind.
        joint: Name of the joint.
        lag_one: Lag-one correlation of the fitted noise beyond the decimator's.
        largest: Largest ``|r(1)| ... |r(10)|`` of the whitened residuals.
        p: Ljung-Box probability of as much by chance, the noise model's order taken off.
    """

    kind: str
    joint: str
    lag_one: float
    largest: float
    p: float
