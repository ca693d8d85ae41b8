"""How small a rule's clearance can be while its points move on straight lines, up to a known error.

Every rule says how much its clearance changes at most for a given movement (``slack``): clearances at a few places
along the lines are then enough, but the bound converges only in proportion to the step. Rules whose form is known do
better. A point kept inside a convex region is worst at an end of its line. Kept outside, what is missing of its
clearance is concave, so it stays below its tangent. Two capsules stay apart by at least their distance along the
direction in which they are apart at the middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from ..space.capsules import CapsulePair
from ..space.regions import Box, Cylinder, HalfSpace, Sphere
from ..space.rules import PointRule, SpaceRule

# Places along the line of each interval: odd, so that the middle is one of them.
_PLACES = 5
# Roundings of a rule's own arithmetic, relative to the size of its places.
_ROUNDING = 1e-13
_CONVEX = (HalfSpace, Box, Cylinder, Sphere)


@dataclass(frozen=True, eq=False)
class Lines:
    """Where k points are during K intervals: ``place + d velocity``, ``|d| <= half``, each within its error of that.

    Attributes:
        place: At the middles (k, 3, K) [m].
        velocity: At the middles (k, 3, K) [m/s].
        half: Half the widths (K,) [s].
        error: How far each point can be off its line (k, K) [m].
    """

    place: np.ndarray
    velocity: np.ndarray
    half: np.ndarray
    error: np.ndarray

    def at(self, parts: np.ndarray) -> np.ndarray:
        """Return places (k, 3, P, K) at P parts of the half widths, from -1 to 1."""
        return self.place[:, :, None] + self.velocity[:, :, None] * (parts[:, None] * self.half)


def missing_bounds(rule: SpaceRule, lines: Lines) -> tuple[np.ndarray, np.ndarray]:
    """Return what is missing of the clearance, ``-clearance`` [m], at the middles and at most, both (K,)."""
    at_middle, along = _along(rule, lines)
    size = 1 + np.abs(lines.place).max(axis=(0, 1), initial=0.0) + np.abs(at_middle)
    return at_middle, along + rule.slack(lines.error) + _ROUNDING * size


@singledispatch
def _along(rule: SpaceRule, lines: Lines) -> tuple[np.ndarray, np.ndarray]:
    """Return ``-clearance`` at the middles and a bound on it for points exactly on their lines."""
    parts = np.linspace(-1, 1, 2 * _PLACES + 1)[1::2]
    missing = _missing(rule, lines.at(parts))
    left = np.linalg.norm(lines.velocity, axis=1) * lines.half / _PLACES
    return missing[_PLACES // 2], missing.max(axis=0) + rule.slack(left)


def _missing(rule: SpaceRule, places: np.ndarray) -> np.ndarray:
    """Return ``-clearance`` (P, K) at places (k, 3, P, K)."""
    flat = places.reshape(*places.shape[:2], -1)
    return -rule.clearance(flat)[0].reshape(places.shape[2:])


@_along.register
def _along_point(rule: PointRule, lines: Lines) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(rule.region, _CONVEX):
        return _along.dispatch(SpaceRule)(rule, lines)
    if rule.keep == "keep_in":
        missing = _missing(rule, lines.at(np.array([-1.0, 0.0, 1.0])))
        return missing[1], missing.max(axis=0)
    clearance, gradient = rule.clearance(lines.place)
    return -clearance, -clearance + lines.half * np.abs((gradient * lines.velocity).sum(axis=(0, 1)))


@_along.register
def _along_pair(rule: CapsulePair, lines: Lines) -> tuple[np.ndarray, np.ndarray]:
    """Take the better of the general bound and the one along the direction in which the capsules are apart."""
    at_middle, general = _along.dispatch(SpaceRule)(rule, lines)
    gradient = rule.clearance(lines.place)[1]
    direction = gradient[0] + gradient[1]  # the shares of a segment's two ends add up to the unit vector
    heights, rates = (np.einsum("xn,kxn->kn", direction, each) for each in (lines.place, lines.velocity))
    if rule.second.link is None:
        fixed = np.array([rule.second.start, rule.second.end]) @ direction
        heights, rates = np.concatenate([heights, fixed]), np.concatenate([rates, np.zeros_like(fixed)])
    gaps = heights[:2, None] - heights[None, 2:] - lines.half * np.abs(rates[:2, None] - rates[None, 2:])
    needed = rule.first.radius + rule.second.radius + rule.margin
    return at_middle, np.minimum(general, needed - gaps.min(axis=(0, 1)))
