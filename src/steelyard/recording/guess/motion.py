"""Positions and velocities by physics: which group is the derivative of which, and what units fit the joint limits.

Velocities are compared with differences of positions over windows of about 20 ms, ``y = f (v - d a)`` by least squares:
the factor f holds units, gears and sign, the delay d a filter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...robot import Robot
from ..units import QUANTITIES, gear_matrix
from .groups import Group

WINDOW = 0.02
"""Length of a window [s]."""
WINDOWS_WITHOUT_TIME = (1, 2, 5, 10, 25)
"""Samples in a window that are tried where the rate is not known."""
MOST_WINDOWS = 20_000
REACH = 2
MOST_DELAY = 3.0
"""Delay of recorded velocities, at most, in windows."""
LEAST_MOTION = 0.03
"""Joints slower than this part of the fastest one (rms) say nothing."""
AGREES = 0.9
"""Correlation from which a group is the derivative of another."""
FACTOR_TOLERANCE = 0.04
SMALL, SMALL_IF_ODD, CLEARLY_SMALL = 0.12, 0.3, 0.035
"""An arm moves at least one joint by this much [rad]: else the unit is another; for units that are rare; and the motion
below which the other unit is out of the question."""
SMALL_SLIDE = 0.003
"""The same of sliding joints [m]."""
ROOM = 1.03
"""Motion over the range of a joint, at most."""
TOO_FAST = 1.5
"""Speed over the limit of a joint, at most."""
TURNS = 4 * math.pi
"""Range of joints without limits [rad]."""
_ODD = ("mrad", "rev", "cm")


@dataclass(frozen=True, eq=False)
class DerivativeFit:
    """A group compared with the derivative of another.

    Attributes:
        factor: f of each joint (n,).
        correlation: Of each joint (n,).
        moving: Which joints move enough to say something (n,).
    """

    factor: np.ndarray
    correlation: np.ndarray
    moving: np.ndarray

    @property
    def agreement(self) -> float:
        """The lower quartile of the correlations of joints that move."""
        return float(np.quantile(self.correlation[self.moving], 0.25)) if self.moving.any() else 0.0

    @property
    def agrees(self) -> bool:
        """Whether one is the derivative of the other."""
        return self.agreement > AGREES


@dataclass(frozen=True, eq=False)
class UnitFit:
    """A unit and side that positions may have.

    Attributes:
        units: Unit of each joint (n,).
        side: ``joint`` or ``motor``.
        q: Positions on the joint side in SI units (n, N).
        inside: Whether they lie within the limits, not only their range.
        rank: The smaller, the more usual.
        extent: Largest motion of a turning joint [rad]; of a sliding one [m] where no joint turns.
    """

    units: tuple[str, ...]
    side: str
    q: np.ndarray
    inside: bool
    rank: int
    extent: float

    @property
    def text(self) -> str:
        """Unit and side in words."""
        units = "/".join(dict.fromkeys(self.units))
        return f"{units} on the {self.side} side"

    @property
    def is_odd(self) -> bool:
        """Whether nobody uses it without saying so."""
        return any(unit in _ODD for unit in self.units)


def derivative_fit(positions: np.ndarray, velocities: np.ndarray, seconds: np.ndarray | None) -> DerivativeFit:
    """Return how far velocities (n, N) are the derivative of positions (n, N); of a sample if there is no time."""
    if seconds is not None:
        step = float(np.median(np.diff(seconds)))
        return _fit(positions, velocities, seconds, max(1, round(WINDOW / step)) if step > 0 else 1)
    samples = np.arange(positions.shape[1], dtype=float)
    fits = [_fit(positions, velocities, samples, size) for size in WINDOWS_WITHOUT_TIME]
    return max(fits, key=lambda fit: fit.agreement)


def _fit(positions: np.ndarray, velocities: np.ndarray, time: np.ndarray, size: int) -> DerivativeFit:
    count = min(positions.shape[1] // size, MOST_WINDOWS)
    edges = np.arange(count) * size
    none = np.zeros(len(positions))
    if count < 4 * REACH:
        return DerivativeFit(none, none, none > 0)
    lengths = np.diff(time[edges])
    middle = (velocities[:, 1:] + velocities[:, :-1]) / 2 * np.diff(time)
    whole = np.concatenate([np.zeros((len(middle), 1)), np.cumsum(middle, axis=1)], axis=1)
    with np.errstate(all="ignore"):
        speed = np.diff(positions[:, edges], axis=1) / lengths
        mean = np.diff(whole[:, edges], axis=1) / lengths
    inner = slice(REACH, -REACH)
    acceleration = (speed[:, 2 * REACH :] - speed[:, : -2 * REACH]) / (2 * REACH * np.median(lengths))
    typical = float(np.median(lengths))
    good = (lengths[inner] > 0.3 * typical) & (lengths[inner] < 3 * typical)
    latest = MOST_DELAY * typical
    rows = [
        _row_fit(v[inner][good], a[good], y[inner][good], latest)
        for v, a, y in zip(speed, acceleration, mean, strict=True)
    ]
    factor, correlation, rms = np.array(rows).T
    return DerivativeFit(factor, correlation, rms > LEAST_MOTION * max(rms.max(), 1e-300))


def _row_fit(v: np.ndarray, a: np.ndarray, y: np.ndarray, latest: float) -> tuple[float, float, float]:
    """Return factor, correlation and rms speed of a joint, without windows in which a position jumps.

    A delay beyond ``latest`` is none: with it any two signals of one frequency would agree.
    """
    use = np.isfinite(v) & np.isfinite(a) & np.isfinite(y)
    if np.count_nonzero(use) < 2 * REACH:
        return 0.0, 0.0, 0.0
    use &= np.abs(v) <= 10 * max(float(np.quantile(np.abs(v[use]), 0.98)), 1e-300)
    v, a, y = v[use], a[use], y[use]
    rms, size = float(np.sqrt(np.mean(v**2))), float(y @ y)
    if rms == 0 or size == 0:
        return 0.0, 0.0, rms
    solution = np.linalg.lstsq(np.column_stack([v, a]), y, rcond=None)[0]
    if abs(solution[1]) > latest * abs(solution[0]):
        solution = np.array([float(v @ y) / float(v @ v), 0.0])
    explained = float(y @ (v * solution[0] + a * solution[1]))
    return float(solution[0]), math.sqrt(max(explained / size, 0.0)), rms


def gears_of(robot: Robot) -> np.ndarray | None:
    """Return R with ``q_motor = R q``, if the robot knows its gears and they differ from 1."""
    if any(body.joint.gear_ratio is None for body in robot.actuated):
        return None
    gears = gear_matrix(robot, None, None)
    return gears if np.abs(np.diag(gears)).max() > 1.5 else None


def is_sliding(robot: Robot) -> np.ndarray:
    """Return which joints slide (n,)."""
    return np.array([body.joint.kind == "prismatic" for body in robot.actuated])


def unit_fits(robot: Robot, values: np.ndarray, seconds: np.ndarray | None) -> list[UnitFit]:
    """Return the units and sides in which positions (n, N) fit the limits of the joints, the most usual first."""
    slides = is_sliding(robot)
    turning = ("rad", "deg", "mrad", "rev")
    gears = gears_of(robot)
    found = []
    for side in ("joint", "motor") if gears is not None else ("joint",):
        matrix = np.eye(len(values)) if side == "joint" or gears is None else np.linalg.inv(gears)
        for place, unit in enumerate(turning):
            units = _units_for(unit, robot, matrix @ values, slides)
            q = matrix @ (scale_of(units, slides, "angle", "length")[:, None] * values)
            rank = 2 * place + (1 if side == "motor" else 0)
            if (fit := _fitting(robot, q, units, side, seconds, rank)) is not None:
                found.append(fit)
        if slides.all():
            found = [fit for k, fit in enumerate(found) if fit.units not in [one.units for one in found[:k]]]
    return sorted(found, key=lambda fit: (fit.is_odd, not fit.inside, fit.rank))


def scale_of(units: Sequence[str], slides: np.ndarray, turning: str, sliding: str) -> np.ndarray:
    """Return what one unit of each joint is in SI (n,)."""
    pairs = zip(units, slides, strict=True)
    return np.array([QUANTITIES[sliding if slide else turning].get(unit, 1.0) for unit, slide in pairs])


def _units_for(unit: str, robot: Robot, values: np.ndarray, slides: np.ndarray) -> tuple[str, ...]:
    """Return this unit for turning joints, and for sliding ones the first in which they stay in their range."""
    units = []
    for body, slide, row in zip(robot.actuated, slides, values, strict=True):
        width = body.joint.limits.upper - body.joint.limits.lower
        room = ROOM * (width if math.isfinite(width) else 5.0)
        fits = [one for one in ("m", "cm", "mm") if np.ptp(row) * QUANTITIES["length"][one] <= room]
        # Millimetres are usual, centimetres are not.
        units.append(unit if not slide else "m" if "m" in fits else "mm")
    return tuple(units)


def _fitting(
    robot: Robot, q: np.ndarray, units: tuple[str, ...], side: str, seconds: np.ndarray | None, rank: int
) -> UnitFit | None:
    """Return the fit if the motion is within what the joints can do, and not too small to be meant."""
    limits = [body.joint.limits for body in robot.actuated]
    slides = is_sliding(robot)
    width = np.array([one.upper - one.lower for one in limits])
    width = np.where(np.isfinite(width), width, np.where(slides, 5.0, TURNS))
    low, high = np.quantile(q, [0.001, 0.999], axis=1)
    extent = high - low
    if (extent > ROOM * width + np.where(slides, 0.002, 0.05)).any():
        return None
    fastest = np.array([one.velocity for one in limits])
    if seconds is not None and (top_speed(q, seconds) > TOO_FAST * fastest).any():
        return None
    turned = float(extent[~slides].max(initial=0.0))
    moved = turned >= (SMALL_IF_ODD if any(unit in _ODD for unit in units) else SMALL)
    if not moved and not (slides.all() and float(extent.max()) >= SMALL_SLIDE):
        return None
    margin = np.where(slides, 0.002, 0.1)
    inside = all(
        one.lower - m <= a and b <= one.upper + m for one, a, b, m in zip(limits, low, high, margin, strict=True)
    )
    inside = inside and bool(np.abs(q[~slides]).max(initial=0.0) <= TURNS)
    return UnitFit(units, side, q, inside, rank, turned if not slides.all() else float(extent.max()))


def top_speed(q: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return the speed of each joint (n,) that one window in a thousand exceeds."""
    step = float(np.median(np.diff(seconds)))
    size = max(1, round(WINDOW / step)) if step > 0 else 1
    edges = np.arange(q.shape[1] // size) * size
    lengths = np.diff(seconds[edges])
    good = lengths > 0.3 * size * step
    speed = np.abs(np.diff(q[:, edges], axis=1)[:, good] / lengths[good])
    return np.quantile(speed, 0.995, axis=1) if speed.shape[1] else np.zeros(len(q))


@dataclass(frozen=True)
class VelocityUnit:
    """A unit, side and signs of velocities that agree with the derivative of positions."""

    unit: str
    side: str
    signs: tuple[int, ...]


def velocity_units(
    robot: Robot, q: np.ndarray, velocities: np.ndarray, seconds: np.ndarray
) -> tuple[list[VelocityUnit], DerivativeFit]:
    """Return the units and sides in which velocities (n, N) are the derivative of q (n, N) [rad or m]."""
    slides, gears = is_sliding(robot), gears_of(robot)
    found, best = [], None
    for side in ("joint", "motor") if gears is not None else ("joint",):
        moved = q if side == "joint" or gears is None else gears @ q
        fit = derivative_fit(moved, velocities, seconds)
        best = fit if best is None or fit.agreement > best.agreement else best
        if not fit.agrees:
            continue
        for unit in ("rad/s", "deg/s", "rpm", "rev/s", "mrad/s"):
            expected = 1 / scale_of([unit] * len(q), slides, "angular speed", "linear speed")
            ratio = np.abs(fit.factor / expected)[fit.moving & ~slides if not slides.all() else fit.moving]
            if (
                ratio.size
                and np.abs(np.median(ratio) - 1) < FACTOR_TOLERANCE
                and np.mean(np.abs(ratio - 1) < 3 * FACTOR_TOLERANCE) > 0.7
            ):
                signs = tuple(-1 if f < 0 and m else 1 for f, m in zip(fit.factor, fit.moving, strict=True))
                found.append(VelocityUnit(unit, side, signs))
        if slides.all():
            found = found[:1]
    assert best is not None
    return found, best


def position_like(
    groups: Sequence[Group], seconds: np.ndarray | None
) -> tuple[list[tuple[Group, Group, DerivativeFit]], bool]:
    """Return positions and their velocities among groups by the derivative test alone, the best pair first.

    A group that is itself the derivative of another is a velocity, and its derivative an acceleration.

    Returns:
        The pairs, and whether they are beyond doubt: in motion of one frequency each is the derivative of the other.
    """
    pairs = [(p, v, derivative_fit(p.values, v.values, seconds)) for p in groups for v in groups if p is not v]
    agreeing = [pair for pair in pairs if pair[2].agrees]
    derived = {v.key for _, v, _ in agreeing}
    roots = [pair for pair in agreeing if pair[0].key not in derived]
    same_sign = [pair for pair in roots or agreeing if np.median(pair[2].factor[pair[2].moving]) > 0]
    return sorted(same_sign or roots or agreeing, key=lambda pair: -pair[2].agreement), bool(roots)
