"""Agreement of channels: recorded velocities with the derivative of positions, motor torques with joint torques.

Velocities: over windows of about 20 ms, ``v = dq / dt`` and ``y``, the mean of the recorded velocity, are compared by
least squares, ``y = f (v - d a)`` with ``a = dv / dt``: f is the factor between them (57.3 for degrees) and d the delay
of the recorded one. Windows suppress encoder steps, which dominate the derivative from one sample to the next.

Torques: the ratio of their deviations over the whole log; where they correlate, joint torques far above motor torques
are a gear, and opposite ones a sign. Motor torques far above joint torques are a unit only where friction and rotor
inertia do not explain them: the factor b of ``motor = b joint + c0 + c1 v + c2 sign(v) + c3 a`` is 1 for right units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..record import Finding, Samples
from .subject import Subject

WINDOW = 0.02
"""Length of a window [s]."""
FACTOR_TOLERANCE = 0.1
FINE_TOLERANCE, CLOSE_CORRELATION = 0.03, 0.999
"""Where velocities follow positions so closely, a factor that differs from one by more than this is no noise."""
ALIKE = 0.01
"""Factors of all joints that differ by less than this are those of the stamps, or of one unit."""
LEAST_CORRELATION = 0.9
LEAST_SPEED = 0.02
"""Slower motion than this (rms) says nothing [rad/s or m/s]."""
LEAST_WINDOWS = 20
REACH = 2
"""Accelerations are differences over so many windows either way: noise in them would make delays look smaller."""
SEGMENT = 50
"""Windows that are judged together: a second of motion."""
LEAST_SEGMENTS = 5
OUTLYING = 10.0
"""Segments that fit this many times worse than the median (ends spoilt by a filter, a jump) are left out."""
_KNOWN = (
    (180 / math.pi, "velocities are in degrees per second"),
    (math.pi / 180, "positions are in degrees"),
    (30 / math.pi, "velocities are in revolutions per minute"),
    (1e3, "the stamps are in milliseconds, or velocities in thousandths"),
    (1e-3, "the stamps are in seconds but declared otherwise, or velocities in thousands"),
    (1e6, "the stamps are in microseconds"),
)


_REMEDY = "check columns, unit and sign of q and qd in the table [recording] of a file for --config"


class VelocityAgreement:
    """Keeps the sums of the least-squares comparison."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._step: float | None = None
        self._sums = np.zeros((6, len(subject.joints)))
        self._windows = np.zeros(len(subject.joints), int)

    def take(self, block: Samples, fresh: int) -> None:
        """Add the windows of a block."""
        positions, velocities = self._subject.row("q"), self._subject.row("qd")
        if positions is None or velocities is None or block.count < 4:
            return
        if self._step is None:
            self._step = float(np.median(np.diff(block.time)))
        seconds, size, edges = _windows(block.time, self._step)
        lengths = np.diff(block.time[edges])
        speed = np.diff(block.channels[positions][:, edges], axis=1) / lengths
        mean = _integrals(block.channels[velocities], seconds, edges, size) / lengths
        self._add(speed, mean, lengths, block.time[edges], size)

    def _add(self, speed: np.ndarray, mean: np.ndarray, lengths: np.ndarray, edges: np.ndarray, size: int) -> None:
        count = speed.shape[1]
        if count < 2 * REACH + 1:
            return
        acceleration = _acceleration(speed, edges)
        use = _calm(speed, lengths <= 3 * size * (self._step or 0.0), self._subject.fastest)
        inner = slice(REACH, count - REACH)
        self._sums += _consistent(_segment_sums(speed[:, inner] * use, acceleration * use, mean[:, inner] * use))
        self._windows += use.sum(axis=1)

    def findings(self) -> Iterator[Finding]:
        """Yield joints whose recorded velocity is not the derivative of their position."""
        found, factors = list[Finding](), list[float]()
        for row, joint in enumerate(self._subject.joints):
            vv, va, aa, vy, ay, yy = self._sums[:, row]
            windows = int(self._windows[row])
            if windows < LEAST_WINDOWS or math.sqrt(max(vv, yy) / windows) < LEAST_SPEED:
                continue
            if vv == 0 or yy == 0:
                found.append(self._one_still(joint, yy == 0))
                continue
            solution = np.linalg.lstsq(np.array([[vv, va], [va, aa]]), np.array([vy, ay]), rcond=1e-12)[0]
            factor = float(solution[0])
            explained = float(solution @ [vy, ay])
            correlation = math.sqrt(min(1.0, max(0.0, explained / yy)))
            delay = -float(solution[1]) / factor if factor else 0.0
            factors.append(factor)
            finding = self._judged(joint, factor, delay, correlation)
            if finding:
                found.append(finding)
        yield from _of_the_stamps(found, factors)

    def _one_still(self, joint: str, recorded: bool) -> Finding:
        what = "the recorded velocity is zero while the position moves" if recorded else "the position never moves"
        text = f"qd of {joint} disagrees with its position: {what}"
        return Finding("velocity", "bad", text, "qd", joint, remedy=_REMEDY)

    def _judged(self, joint: str, factor: float, delay: float, correlation: float) -> Finding | None:
        values = {"factor": factor, "delay": delay, "correlation": correlation}
        if correlation < LEAST_CORRELATION:
            text = f"qd of {joint} does not follow its position (correlation {correlation:.2f})"
            return Finding("velocity", "bad", text, "qd", joint, values=values, remedy=_REMEDY)
        if abs(factor - 1) > FACTOR_TOLERANCE:
            row = self._subject.joints.index(joint)
            text = f"qd of {joint} is {factor:.4g} times the derivative of its position: {self._reason(row, factor)}"
            return Finding("velocity", "bad", text, "qd", joint, values=values, remedy=_REMEDY)
        if abs(factor - 1) > FINE_TOLERANCE and correlation > CLOSE_CORRELATION:
            text = f"qd of {joint} is {factor:.4g} times the derivative of its position"
            remedy = "leave --velocity at 'differentiated', or check the gear ratio and the unit of its qd"
            return Finding("velocity_scale", "warning", text, "qd", joint, values=values, remedy=remedy)
        step = self._step or 0.0
        if abs(delay) > max(1.5 * step, 0.002):
            where = "behind" if delay > 0 else "ahead of"
            text = f"qd of {joint} is {1e3 * abs(delay):.3g} ms {where} its position's derivative: filtered, or shifted"
            remedy = "leave --velocity at 'differentiated', or declare the qd that was not filtered"
            return Finding("velocity_delay", "warning", text, "qd", joint, values=values, remedy=remedy)
        return None

    def _reason(self, row: int, factor: float) -> str:
        size = abs(factor)
        reasons = [text for known, text in _KNOWN if abs(size / known - 1) < FACTOR_TOLERANCE]
        gear = abs(self._subject.gears[row])
        if gear > 1.5 and abs(size / gear - 1) < FACTOR_TOLERANCE:
            reasons.append("velocities are on the motor side")
        if factor < 0:
            reasons.append("the sign is the opposite")
        return "; ".join(reasons) or "another unit"


def _of_the_stamps(found: Sequence[Finding], factors: Sequence[float]) -> Iterator[Finding]:
    """Yield findings; factors that all joints have in common may be those of the stamps."""
    common = float(np.median(factors)) if len(factors) > 2 else 0.0
    if common <= 0 or np.ptp(factors) > ALIKE * common:
        yield from found
        return
    for one in found:
        if one.kind in ("velocity", "velocity_scale"):
            text = f"{one.text}, as of all joints: or the steps of the stamps are {common:.4g} times too long"
            one = replace(one, text=text, remedy=f"{one.remedy}; and the stamps (time_unit, or rate without stamps)")
        yield one


def _windows(time: np.ndarray, step: float) -> tuple[np.ndarray, int, np.ndarray]:
    """Return the sampling intervals, the intervals in a window, and the indices of the windows' edges."""
    seconds = np.diff(time)
    size = max(1, min(round(WINDOW / step), seconds.size // 3)) if step > 0 else 1
    return seconds, size, np.arange(seconds.size // size + 1) * size


def _acceleration(speed: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the acceleration in every window that has `REACH` windows on either side."""
    middles = (edges[1:] + edges[:-1]) / 2
    return (speed[:, 2 * REACH :] - speed[:, : -2 * REACH]) / (middles[2 * REACH :] - middles[: -2 * REACH])


def _calm(speed: np.ndarray, regular: np.ndarray, fastest: np.ndarray) -> np.ndarray:
    """Return the windows without a gap or a jump in themselves and in the neighbours used with them."""
    calm = regular & (np.abs(speed) < fastest[:, None])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(calm, 2 * REACH + 1, axis=1).all(axis=2))


def _integrals(values: np.ndarray, seconds: np.ndarray, edges: np.ndarray, size: int) -> np.ndarray:
    """Return the integral of the values over every window (rows, windows), trapezoidal, in one pass."""
    count = edges.size - 1
    weights = 0.5 * seconds[: count * size]
    weights[1:] += 0.5 * seconds[: count * size - 1]
    weights[edges[1:-1]] = 0.5 * seconds[edges[1:-1]]
    shape, strides = (len(values), count, size), (values.strides[0], size * values.strides[1], values.strides[1])
    windows = np.lib.stride_tricks.as_strided(values, shape, strides, writeable=False)
    inside = np.einsum("ijk,jk->ij", windows, weights.reshape(count, size))
    return inside + 0.5 * seconds[edges[1:] - 1] * values[:, edges[1:]]


def _segment_sums(v: np.ndarray, a: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the sums of products of every segment (6, joints, segments); what is left over joins the last one."""
    starts = np.arange(max(1, v.shape[1] // SEGMENT)) * SEGMENT
    products = (v * v, v * a, a * a, v * y, a * y, y * y)
    return np.array([np.add.reduceat(product, starts, axis=1) for product in products])


def _consistent(sums: np.ndarray) -> np.ndarray:
    """Return the sums (6, joints) over the segments that agree with most of the others."""
    if sums.shape[2] < LEAST_SEGMENTS:
        return sums.sum(axis=2)
    vv, va, aa, vy, ay, yy = sums
    determinant = vv * aa - va * va
    factor = _median(np.where(determinant > 0, (vy * aa - ay * va) / determinant, np.nan))
    shift = _median(np.where(determinant > 0, (ay * vv - vy * va) / determinant, np.nan))
    error = yy - 2 * (factor * vy + shift * ay) + factor**2 * vv + 2 * factor * shift * va + shift**2 * aa
    misfit = error / (yy + factor**2 * vv)
    typical = _median(misfit)
    keep = ~(misfit > OUTLYING * np.maximum(typical, 1e-9))
    return (sums * keep).sum(axis=2)


def _median(values: np.ndarray) -> np.ndarray:
    """Return the median of the numbers in each row (rows, 1), 0 where there are none (a joint that stands still)."""
    numbers = np.count_nonzero(~np.isnan(values), axis=1, keepdims=True)
    middle = np.take_along_axis(np.sort(values, axis=1), np.maximum(numbers - 1, 0) // 2, axis=1)
    return np.where(numbers > 0, middle, 0.0)


FACTOR = 3.0
"""Friction and rotor inertia do not make motor torques differ more than this from joint torques."""
FOLLOWS, OPPOSITE = 0.2, -0.9
"""Correlations from which a factor speaks. Joint torques above motor torques need little: friction and rotors only add
to what a motor has to do."""
SAME = 0.9
"""Motor torques above joint torques are in another unit where so much of what friction and rotor leave correlates."""
LEAST_LEFT = 0.05
"""The part of a joint torque's variance that the motion of its own joint must not explain: a torque that is all own
inertia says nothing, as a rotor may have ten times a wrist's."""
NEAR_A_GEAR = 0.25


class TorqueRatio:
    """Keeps sums of both torques and of their products."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        kinds = subject.kinds
        self._motor = kinds.index("motor_torque") if "motor_torque" in kinds else None
        self._joint = kinds.index("joint_torque") if "joint_torque" in kinds else None
        self._step: float | None = None
        self._sums = np.zeros((5, len(subject.joints)))
        self._count = 0
        self._gram = np.zeros((len(subject.joints), 6, 6))

    def take(self, block: Samples, fresh: int) -> None:
        """Add the products of a block."""
        if self._motor is None or self._joint is None:
            return
        m, j = block.channels[self._motor][:, fresh:], block.channels[self._joint][:, fresh:]
        self._sums += np.array([part.sum(axis=1) for part in (m, j, m * m, m * j, j * j)])
        self._count += m.shape[1]
        self._add_windows(block, self._motor, self._joint)

    def _add_windows(self, block: Samples, motor: int, joint: int) -> None:
        """Add the products of motor and joint torque and of what friction and rotor depend on, all smoothed alike."""
        positions = self._subject.row("q")
        if positions is None or block.count < 4:
            return
        if self._step is None:
            self._step = float(np.median(np.diff(block.time)))
        seconds, size, edges = _windows(block.time, self._step)
        if edges.size < 2 * REACH + 2:
            return
        lengths = np.diff(block.time[edges])
        speed = np.diff(block.channels[positions][:, edges], axis=1) / lengths
        torques = [_integrals(block.channels[row], seconds, edges, size) / lengths for row in (motor, joint)]
        smooth = [_smoothed(values) for values in (*torques, speed, np.sign(speed))]
        acceleration = _acceleration(speed, block.time[edges])
        use = _calm(speed, lengths <= 3 * size * self._step, self._subject.fastest)
        regressors = np.stack([*smooth, acceleration, np.ones_like(acceleration)], axis=1) * use[:, None, :]
        self._gram += regressors @ regressors.transpose(0, 2, 1)

    def findings(self) -> Iterator[Finding]:
        """Yield joints whose motor torque is a multiple of their joint torque."""
        if self._count < 2 or self._motor is None:
            return
        m, j, mm, mj, jj = self._sums / self._count
        mm, mj, jj = mm - m * m, mj - m * j, jj - j * j
        for row, joint in enumerate(self._subject.joints):
            if mm[row] <= 0 or jj[row] <= 0:
                continue
            correlation = mj[row] / np.sqrt(mm[row] * jj[row])
            ratio = float(np.sqrt(jj[row] / mm[row]) * np.sign(mj[row]))
            speaks = correlation <= OPPOSITE if ratio < 0 else ratio > FACTOR and correlation >= FOLLOWS
            if speaks or (0 < ratio < 1 / FACTOR and self._in_another_unit(row)):
                yield self._finding(row, joint, ratio, float(correlation))

    def _in_another_unit(self, row: int) -> bool:
        """Return whether motor torque is a multiple of joint torque in what friction and rotor do not explain."""
        gram = self._gram[row]
        friction, torques = slice(2, 6), slice(0, 2)
        explained = np.linalg.lstsq(gram[friction, friction], gram[friction, torques], rcond=1e-12)[0]
        (mm, mj), (_, jj) = gram[torques, torques] - gram[torques, friction] @ explained
        if jj <= LEAST_LEFT * (gram[1, 1] - gram[1, 5] ** 2 / gram[5, 5]) or mm <= 0:
            return False
        return bool(mj / jj > FACTOR and mj / np.sqrt(mm * jj) >= SAME)

    def _finding(self, row: int, joint: str, ratio: float, correlation: float) -> Finding:
        gear, size = abs(float(self._subject.gears[row])), abs(ratio)
        if size > FACTOR:
            known = f", whose ratio is {gear:g}" if abs(size / gear - 1) < NEAR_A_GEAR else ""
            hints = f"; motor torque seems to be before the gears{known}"
            remedy = 'declare side = "motor" for the motor torque in [recording], and gear_ratio if the robot has none'
        else:
            hints = "; one of them is in another unit or on another side" if size < 1 / FACTOR else ""
            remedy = "check unit, side and sign of both torques in the table [recording] of a file for --config"
        hints += "; their signs are opposite" if ratio < 0 else ""
        text = f"joint torque of {joint} is {ratio:.3g} times its motor torque (correlation {correlation:.2f}){hints}"
        values = {"ratio": ratio, "correlation": correlation}
        channel = self._subject.labels[self._motor or 0]
        return Finding("torque_ratio", "warning", text, channel, joint, values=values, remedy=remedy)


def _smoothed(values: np.ndarray) -> np.ndarray:
    """Return the mean over the windows that an acceleration spans: what is compared must lose the same frequencies."""
    windows = np.lib.stride_tricks.sliding_window_view(values, 2 * REACH + 1, axis=1)
    weights = np.ones(2 * REACH + 1)
    weights[[0, -1]] = 0.5
    return windows @ weights / weights.sum()
