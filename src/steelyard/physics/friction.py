"""The direction of motion in friction laws, exact or smooth.

``sign(0) = 0``: at standstill Coulomb friction is undetermined, and zero is the only value that favours no
direction. A smooth sign of width w is ``tanh(v / w)``: 76 % at w, 96 % at 2 w, within 1e-8 of 1 beyond 10 w.
"""

from __future__ import annotations

import casadi as ca


def direction(velocity: ca.SX, width: float = 0.0) -> ca.SX:
    """Return the sign of a velocity, or ``tanh(velocity / width)`` for a width above zero [rad/s or m/s]."""
    return ca.sign(velocity) if width == 0.0 else ca.tanh(velocity / width)


def forward_part(velocity: ca.SX, width: float = 0.0) -> ca.SX:
    """Return 1 for motion forward, 0 for motion backward and at rest; smooth for a width above zero."""
    return velocity > 0 if width == 0.0 else 0.5 * (1 + ca.tanh(velocity / width))
