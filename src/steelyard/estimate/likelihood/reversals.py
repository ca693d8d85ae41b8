"""Which way a joint moves at the instants next to a reversal, where noisy positions do not tell but torques do.

Coulomb friction changes by twice its size when a joint turns. A sample on the wrong side of a reversal costs more than
all that noise does. Moving the motion by as much as puts that sample on the other side costs, as far as positions tell,
``(v / sigma_v)^2`` with v the velocity there and ``sigma_v^2 = sigma_q^2 B1^T (B0 B0^T)^-1 B1`` its variance. So a
sign is turned against the motion where that lowers the cost by more than this price, and back where it lowers the cost.
"""

from __future__ import annotations

import numpy as np

from .linearised import RunLikelihood

FARTHEST = 10.0
"""Velocities of more than this many standard deviations have their own sign."""


def turned_directions(
    run: RunLikelihood, coefficients: np.ndarray, directions: np.ndarray, theta: np.ndarray
) -> np.ndarray | None:
    """Return directions (n, N) with the signs turned that the torques want turned; None if there are none.

    Args:
        run: The recording.
        coefficients: Its motion (n, m).
        directions: Velocities by which signs are taken now (n, N).
        theta: Parameters (c,).
    """
    if not run.functions.steps:
        return None
    velocity = run.motion(coefficients)[1]
    is_turned = np.sign(velocity) != np.sign(directions)
    found, changed = directions.copy(), False
    for joint in np.flatnonzero(run.run.free):
        near = np.abs(velocity[joint]) <= FARTHEST * run.velocity_deviation[joint]
        at = np.flatnonzero(near | is_turned[joint])
        back = is_turned[joint, at]
        other = found[:, at]
        other[joint] = np.where(back, velocity[joint, at], -velocity[joint, at])
        price = np.where(back, 0.0, (velocity[joint, at] / run.velocity_deviation[joint, at]) ** 2)
        now, then = (_squares(run, coefficients, held, theta, at) for held in (found[:, at], other))
        better = now - then > price
        found[joint, at[better]] = other[joint, better]
        changed = changed or bool(better.any())
    return found if changed else None


def _squares(
    run: RunLikelihood, coefficients: np.ndarray, held: np.ndarray, theta: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """Return the weighted squares of the torques' residuals at some instants (k,), all equations together."""
    residual = run.run.y[:, at] - run.functions.torques(run.motion(coefficients, at), held, theta)
    return np.sum((residual / run.run.torque_deviation[:, None]) ** 2, axis=0)
