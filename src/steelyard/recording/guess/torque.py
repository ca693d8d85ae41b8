"""Torques by physics: recorded groups compared with the torques that the robot's own inertias need for the motion.

For each joint, what its own acceleration, velocity, direction and a constant explain is taken out of both the recorded
group and the torque of the model; the factor b between what is left holds unit, gears, drive gain and sign. Where the
robot has no inertias, or they act only by the joint's own acceleration, the signs of own inertia and friction remain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...robot import Robot
from .motion import gears_of

SMOOTHING = 0.06
"""Length of the moving average over positions and torques, applied twice [s]."""
STEP_WITHOUT_TIME = 0.01
"""Time step that is taken for smoothing where none is known [s]."""
MOST_SAMPLES = 1500
SLOW = 0.02
"""Speeds below this part of a joint's largest count as standing still."""
EXPLAINED, WELL_EXPLAINED = 0.6, 0.85
"""Partial correlations from which the model speaks of a joint, and from which it is believed alone."""
LEAST_SHARE = 0.1
"""Part of the model's torque that must remain after own inertia and friction."""
CLEARLY_BETTER = 0.2
"""Gain in squared correlations, of two joints together, with which exchanged columns are likelier."""
SCALE = 2.5
"""Inertias of robot files are this far from the truth at most: factors nearer than that are of one unit."""


@dataclass(frozen=True, eq=False)
class SmoothMotion:
    """Motion and torques of the model at a number of instants, all smoothed alike.

    Attributes:
        places: Which samples (m,).
        size: Samples in a window of the moving average.
        qd: Velocities (n, m).
        qdd: Accelerations (n, m).
        model: Torques that the robot's inertias need (n, m); None if it has none.
        q: Positions (n, m).
        is_static: Whether the model's torques are those of gravity alone, as there is no time.
    """

    places: np.ndarray
    size: int
    qd: np.ndarray
    qdd: np.ndarray
    model: np.ndarray | None
    q: np.ndarray
    is_static: bool


@dataclass(frozen=True, eq=False)
class TorqueFit:
    """A recorded group compared with the torques of the motion.

    Attributes:
        factor: Recorded over model torque (n,), signed.
        correlation: Partial correlation with the model's torque (n,), 0 where that says nothing.
        power: Correlation of recorded torque with own acceleration and friction (n,), signed.
        size: 99 % quantile of the recorded numbers (n,).
    """

    factor: np.ndarray
    correlation: np.ndarray
    power: np.ndarray
    size: np.ndarray

    @property
    def speaking(self) -> np.ndarray:
        """Joints of which the model speaks (n,)."""
        return np.abs(self.correlation) > EXPLAINED

    @property
    def is_confirmed(self) -> bool:
        """Whether the model explains at least two joints (the only one, of one) well."""
        well = np.abs(self.correlation) > WELL_EXPLAINED
        return int(well.sum()) >= min(2, len(well)) and bool(self.speaking.any())

    @property
    def strength(self) -> float:
        """Mean squared partial correlation."""
        return float(np.mean(self.correlation**2))

    @property
    def likeness(self) -> float:
        """How much the group looks like a torque: the model's share, or own inertia and friction where that is more."""
        return float(np.mean(np.maximum(np.abs(self.correlation), np.abs(self.power))))


def smooth_motion(robot: Robot, q: np.ndarray, seconds: np.ndarray | None) -> SmoothMotion | None:
    """Return velocities, accelerations and model torques of positions q (n, N) [rad or m] at up to 1500 instants.

    Without time the model's torques are those of gravity alone, and velocities have no unit.
    """
    is_static = seconds is None
    seconds = np.arange(q.shape[1]) * STEP_WITHOUT_TIME if seconds is None else seconds
    step = float(np.median(np.diff(seconds)))
    size = max(1, round(SMOOTHING / step)) if step > 0 else 1
    count = q.shape[1]
    if count < 8 * size or count < 30:
        return None
    even = np.arange(seconds[0], seconds[-1], step)[: 2 * count]
    smooth = _averaged(np.array([np.interp(even, seconds, row) for row in q]), size)
    reach = max(1, size // 2)
    qd = (smooth[:, 2 * reach :] - smooth[:, : -2 * reach]) / (2 * reach * step)
    qdd = (smooth[:, 2 * reach :] - 2 * smooth[:, reach:-reach] + smooth[:, : -2 * reach]) / (reach * step) ** 2
    margin = 2 * size + reach
    chosen = np.unique(np.linspace(margin, even.size - margin - 1, MOST_SAMPLES).astype(int))
    if chosen.size < 20:
        return None
    inner = chosen - reach
    places = np.clip(np.searchsorted(seconds, even[chosen]), 0, count - 1)
    found = SmoothMotion(places, size, qd[:, inner], qdd[:, inner], None, smooth[:, chosen], is_static)
    return shifted_motion(robot, found, np.zeros(len(q)))


def shifted_motion(robot: Robot, motion: SmoothMotion, offsets: np.ndarray) -> SmoothMotion:
    """Return a motion with offsets (n,) [rad or m] added to its positions, and the torques that it needs."""
    q, moves = motion.q + offsets[:, None], 0.0 if motion.is_static else 1.0
    return replace(motion, q=q, model=model_torques_of(robot, q, moves * motion.qd, moves * motion.qdd))


def model_torques_of(robot: Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray | None:
    """Return the torques (n, m) that rigid bodies need; None if the robot has no inertias."""
    if any(body.inertia is None for body in robot.bodies) or not robot.bodies:
        return None
    inertias = np.concatenate([np.array(body.inertia, dtype=float) for body in robot.bodies])
    if not np.any(inertias):
        return None
    function = _inverse_dynamics(robot).map(q.shape[1])
    repeated = np.repeat(inertias[:, None], q.shape[1], axis=1)
    return np.array(function(q, qd, qdd, repeated))


def _inverse_dynamics(robot: Robot) -> Any:
    """Return the inverse dynamics of a robot; that of the last one is remembered, as many motions are compared."""
    from ...physics import inverse_dynamics_function  # imported when used: CasADi takes a while

    if _LAST[0] is not robot:
        _LAST[:] = [robot, inverse_dynamics_function(robot)]
    return _LAST[1]


_LAST: list[Any] = [None, None]


def torque_fit(values: np.ndarray, motion: SmoothMotion) -> TorqueFit:
    """Return how recorded numbers (n, N) go with the torques of a motion."""
    recorded = _averaged(values, motion.size)[:, motion.places]
    rows = []
    for row, torque in enumerate(recorded):
        own = _own_torques(motion, row)
        model = None if motion.model is None else motion.model[row]
        rows.append((*_against_model(torque, model, own), _against_own(torque, own)))
    factor, correlation, power = np.array(rows).T
    return TorqueFit(factor, correlation, power, np.nanquantile(np.abs(values), 0.99, axis=1))


def better_exchanged(values: np.ndarray, motion: SmoothMotion) -> tuple[int, int] | None:
    """Return two joints whose recorded numbers (n, N) go better with each other's model torques; None if none do."""
    if motion.model is None:
        return None
    recorded, count = _averaged(values, motion.size)[:, motion.places], len(values)
    likeness = np.array([
        [_against_model(torque, motion.model[row], _own_torques(motion, row))[1] ** 2 for row in range(count)]
        for torque in recorded
    ])  # fmt: skip
    straight = np.diag(likeness)
    gains = likeness + likeness.T - straight[:, None] - straight
    first, second = np.unravel_index(int(np.argmax(gains)), gains.shape)
    return (int(min(first, second)), int(max(first, second))) if gains[first, second] > CLEARLY_BETTER else None


def _own_torques(motion: SmoothMotion, row: int) -> np.ndarray:
    """Return what inertia and friction of a joint alone would need, without their sizes (m, 3)."""
    qd, qdd = motion.qd[row], motion.qdd[row]
    sign = np.where(np.abs(qd) > SLOW * np.abs(qd).max(initial=0.0), np.sign(qd), 0.0)
    return np.column_stack([_scaled(qdd), _scaled(qd), sign])


def _averaged(values: np.ndarray, size: int) -> np.ndarray:
    """Return a moving average of ``size`` samples, applied twice, in place (no delay)."""
    for _ in range(2):
        padded = np.pad(values, ((0, 0), (size // 2 + 1, size - size // 2 - 1)), mode="edge")
        sums = np.cumsum(np.nan_to_num(padded), axis=1)
        values = (sums[:, size:] - sums[:, :-size])[:, : values.shape[1]] / size if size > 1 else values
    return values


def _scaled(values: np.ndarray) -> np.ndarray:
    return values / max(float(np.abs(values).max(initial=0.0)), 1e-300)


def _against_model(torque: np.ndarray, model: np.ndarray | None, own: np.ndarray) -> tuple[float, float]:
    """Return factor and partial correlation of recorded and model torque; zeros where the model says nothing."""
    if model is None:
        return 0.0, 0.0
    basis = np.column_stack([own, np.ones(len(own))])
    left = [values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0] for values in (torque, model)]
    recorded, expected = left
    if np.std(expected) < LEAST_SHARE * np.std(model) or np.std(model) == 0 or np.std(recorded) == 0:
        return 0.0, 0.0
    product = float(recorded @ expected)
    return product / float(expected @ expected), product / math.sqrt(
        float(recorded @ recorded) * float(expected @ expected)
    )


def _against_own(torque: np.ndarray, own: np.ndarray) -> float:
    """Return the correlation with own inertia and friction, negative if both brake."""
    centred = torque - torque.mean()
    basis = own - own.mean(axis=0)
    if not np.any(centred):
        return 0.0
    solution = np.linalg.lstsq(basis, centred, rcond=None)[0]
    explained = basis @ solution
    size = math.sqrt(float(explained @ explained) / float(centred @ centred))
    work = float(centred @ basis[:, 2]) + float(centred @ basis[:, 1])
    return math.copysign(min(size, 1.0), work)


@dataclass(frozen=True)
class TorqueUnit:
    """What a group of torques may be.

    Attributes:
        kind: ``torque`` or ``current``.
        unit: Its unit.
        side: ``joint`` or ``motor``.
        distance: Median distance of the factors from what is expected, as a logarithm.
        spread: How far single joints are from that, as a logarithm.
        fit: The comparison behind it.
    """

    kind: str
    unit: str
    side: str
    distance: float
    spread: float
    fit: TorqueFit


TORQUES = {"Nm": 1.0, "mNm": 1e3}
"""Units of torques per N m; others are not used without saying so."""


def torque_units(robot: Robot, values: np.ndarray, motion: SmoothMotion) -> tuple[list[TorqueUnit], TorqueFit]:
    """Return what the factors between recorded and model torques say of unit and side, the nearest first."""
    plain = torque_fit(values, motion)
    gears, gains = gears_of(robot), gains_of_robot(robot)
    found = _near(plain, "torque", "joint", TORQUES, np.ones(len(values)))
    if gears is not None:
        turned = torque_fit(gears.T @ values, motion)
        found += _near(turned, "torque", "motor", TORQUES, np.ones(len(values)))
    if gains is not None:
        found += _near(plain, "current", "joint", {"A": 1.0, "mA": 1e3}, 1 / gains)
    return sorted(found, key=lambda one: one.distance + one.spread), plain


def gains_of_robot(robot: Robot) -> np.ndarray | None:
    """Return the drive gains [N m/A] (n,) that the robot's file states, None if it does not."""
    values = [robot.values.get(f"drive_gain{body.number}") for body in robot.actuated]
    known = [value for value in values if value]
    return np.array(known) if len(known) == len(values) and known else None


def _near(fit: TorqueFit, kind: str, side: str, units: dict[str, float], expected: np.ndarray) -> list[TorqueUnit]:
    speaking = fit.speaking
    if not speaking.any():
        return []
    ratios = np.log(np.abs(fit.factor[speaking]) / np.abs(expected[speaking]))
    found = []
    for unit, per in units.items():
        distances = np.abs(ratios - math.log(per))
        distance = abs(float(np.median(ratios)) - math.log(per))
        if distance < math.log(SCALE):
            found.append(TorqueUnit(kind, unit, side, distance, float(np.median(distances)), fit))
    return found


def roughness(values: np.ndarray) -> float:
    """Return the noise of a group over its size: of twins, the measured one is rougher than the commanded one."""
    second = np.diff(values, n=2, axis=1)
    sizes = np.nanstd(values, axis=1)
    with np.errstate(all="ignore"):
        ratios = np.nanstd(second, axis=1) / sizes
    return float(np.nanmedian(ratios)) if np.isfinite(ratios).any() else 0.0


def likeness_of(one: np.ndarray, other: np.ndarray) -> float:
    """Return the median correlation of two groups, joint by joint."""
    a, b = (x - np.nanmean(x, axis=1, keepdims=True) for x in (one, other))
    with np.errstate(all="ignore"):
        found = np.nansum(a * b, axis=1) / np.sqrt(np.nansum(a * a, axis=1) * np.nansum(b * b, axis=1))
    return float(np.nanmedian(found)) if np.isfinite(found).any() else 0.0
