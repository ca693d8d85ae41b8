"""Errors between predicted and measured torques: sums of squares that add up over recordings, and figures from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from math import nan, sqrt
from operator import add

import numpy as np

from ..errors import EstimateError
from ..text import short_repr

FASTER = 1.2
"""Unseen motion faster than that of the fit by more than this is extrapolation."""

WIDER = 0.25
"""Unseen positions farther outside those of the fit than this part of their range are extrapolation."""

HARDLY = 0.1
"""A joint whose range and top speed in unseen motion are smaller parts of those of the fit hardly moves."""


NOISE_ALONE = 0.5
"""Part of the squared error that noise must be for it to be called the reason."""


@dataclass(frozen=True)
class ErrorSums:
    """Sums over the samples of one equation; those of several recordings add up.

    Attributes:
        samples: Filtered samples in which the joint moves.
        error: Sum of ``(tau - tau_hat)^2`` over them.
        torque: Sum of ``tau^2`` over them.
        maximum: Largest ``|tau - tau_hat|`` among them.
        still_samples: Filtered samples near standstill.
        still_error: Sum of ``(tau - tau_hat)^2`` over those.
        still_torque: Sum of ``tau^2`` over those.
        rows: Decimated rows.
        residual: Sum of their squared residuals.
        differences: Sum of squared differences of neighbouring residuals.
        expected: What ``differences`` is for white noise before the decimator, for residuals of mean square 1.
        white_rows: Decimated rows that were whitened.
        white: Sum of squared whitened residuals over the noise's variance.
        torque_variation: Sum of ``(tau - mean)^2`` over the moving samples, the mean that of each recording.
        error_variation: Sum of ``(tau - tau_hat - mean)^2`` over them: what a constant bias cannot explain.
        torque_max: Largest ``|tau|`` among all filtered samples.
        noise: Sum of squares, over the moving samples, of the white noise within the band of the evaluation filter, as
            what the torque has above that band says; no model is behind it.
    """

    samples: int = 0
    error: float = 0.0
    torque: float = 0.0
    maximum: float = 0.0
    still_samples: int = 0
    still_error: float = 0.0
    still_torque: float = 0.0
    rows: int = 0
    residual: float = 0.0
    differences: float = 0.0
    expected: float = 0.0
    white_rows: int = 0
    white: float = 0.0
    torque_variation: float = 0.0
    error_variation: float = 0.0
    torque_max: float = 0.0
    noise: float = 0.0

    def __add__(self, other: ErrorSums) -> ErrorSums:
        both = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        largest = {name: max(getattr(self, name), getattr(other, name)) for name in ("maximum", "torque_max")}
        return ErrorSums(**{**both, **largest})


@dataclass(frozen=True)
class JointError:
    """Errors of one equation; a figure with no sample behind it is NaN.

    Attributes:
        kind: Torque kind.
        joint: Name of the joint.
        unit: ``N m`` or ``N``.
        speed_max: Highest speed of the joint [rad/s or m/s].
        sums: The sums from which all figures follow.
    """

    kind: str
    joint: str
    unit: str
    speed_max: float
    sums: ErrorSums

    @property
    def samples(self) -> int:
        """Samples judged: those in which the joint moves."""
        return self.sums.samples

    @property
    def rms(self) -> float:
        """Root mean square of ``tau - tau_hat`` [N m or N]."""
        return _root(self.sums.error, self.sums.samples)

    @property
    def torque_rms(self) -> float:
        """Root mean square of the measured torque [N m or N]."""
        return _root(self.sums.torque, self.sums.samples)

    @property
    def torque_deviation(self) -> float:
        """Standard deviation of the measured torque within each recording [N m or N], without any constant bias."""
        return _root(self.sums.torque_variation, self.sums.samples)

    @property
    def varying_percent(self) -> float:
        """Relative error [%] after the mean of each recording is subtracted from torque and error."""
        return 100 * _root(self.sums.error_variation, self.sums.torque_variation)

    @property
    def torque_max(self) -> float:
        """Largest measured torque below the evaluation cut-off [N m or N]."""
        return self.sums.torque_max

    @property
    def noise_rms(self) -> float:
        """Noise of the measured torque within the evaluation band [N m or N], judged by what is above the band."""
        return _root(self.sums.noise, self.sums.samples)

    @property
    def relative_percent(self) -> float:
        """Relative error ``100 ||tau - tau_hat|| / ||tau||`` [%], nothing subtracted from either."""
        return 100 * _root(self.sums.error, self.sums.torque)

    @property
    def maximum(self) -> float:
        """Largest ``|tau - tau_hat|`` [N m or N]."""
        return self.sums.maximum if self.sums.samples else nan

    @property
    def standstill_rms(self) -> float:
        """Root mean square of ``tau - tau_hat`` near standstill [N m or N], which counts in none of the others."""
        return _root(self.sums.still_error, self.sums.still_samples)

    @property
    def durbin_watson(self) -> float:
        """Durbin-Watson statistic of the decimated residuals."""
        return self.sums.differences / self.sums.residual if self.sums.residual > 0 else nan

    @property
    def expected_durbin_watson(self) -> float:
        """Its value for white noise before the decimator."""
        return self.sums.expected / self.sums.rows if self.sums.rows else nan

    @property
    def noise_ratio(self) -> float:
        """Root mean square of the whitened residuals over the noise's deviation: 1 is what the noise allows."""
        return _root(self.sums.white, self.sums.white_rows)


def _root(numerator: float, denominator: float) -> float:
    return sqrt(numerator / denominator) if denominator > 0 else nan


@dataclass(frozen=True, eq=False)
class MotionExtent:
    """How far and how hard each joint moved; those of several recordings add up.

    Attributes:
        speed_max: Highest speed (n,) [rad/s or m/s].
        lower: Lowest position (n,) [rad or m].
        upper: Highest position (n,).
        acceleration_squares: Sum of squared accelerations (n,).
        samples: Number of samples.
    """

    __repr__ = short_repr

    speed_max: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    acceleration_squares: np.ndarray
    samples: int

    @staticmethod
    def of(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> MotionExtent:
        """Return the extent of samples (n, k)."""
        speed_max, squares = np.abs(qd).max(axis=1), np.sum(qdd**2, axis=1)
        return MotionExtent(speed_max, q.min(axis=1), q.max(axis=1), squares, q.shape[1])

    def __add__(self, other: MotionExtent) -> MotionExtent:
        return MotionExtent(
            np.maximum(self.speed_max, other.speed_max), np.minimum(self.lower, other.lower),
            np.maximum(self.upper, other.upper), self.acceleration_squares + other.acceleration_squares,
            self.samples + other.samples,
        )  # fmt: skip

    @property
    def acceleration_rms(self) -> np.ndarray:
        """Root mean square acceleration (n,) [rad/s^2 or m/s^2]."""
        return np.sqrt(self.acceleration_squares / max(self.samples, 1))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """An estimate tried on recordings.

    Attributes:
        label: Name of the recording or recordings.
        cutoff: Cut-off of the evaluation filter [Hz]; a figure without it means nothing.
        joints: Errors of every equation.
        joint_names: Names of the joints, n of them.
        extent: How far and how hard each joint moved.
        skipped_segments: Segments too short for the evaluation filter.
        parts: The evaluation of every recording, where it is one of several together.
    """

    __repr__ = short_repr

    label: str
    cutoff: float
    joints: tuple[JointError, ...]
    joint_names: tuple[str, ...]
    extent: MotionExtent
    skipped_segments: int = 0
    parts: tuple[Evaluation, ...] = ()

    @property
    def speed_max(self) -> np.ndarray:
        """Highest speed of each joint (n,) [rad/s or m/s]."""
        return self.extent.speed_max

    @property
    def relative_by_unit(self) -> Mapping[str, float]:
        """Relative error of all equations of one unit together [%]: never N with N m."""
        return {unit: 100 * _root(total.error, total.torque) for unit, total in self._sums_by_unit().items()}

    def _sums_by_unit(self) -> dict[str, ErrorSums]:
        sums: dict[str, ErrorSums] = {}
        for joint in self.joints:
            sums[joint.unit] = sums.get(joint.unit, ErrorSums()) + joint.sums
        return sums

    @property
    def relative_percent(self) -> float:
        """Relative error over all joints [%]; that of the worse unit where some slide and others turn."""
        return max((value for value in self.relative_by_unit.values() if value == value), default=nan)

    @property
    def relative_percent_all_rows(self) -> float:
        """The same over all samples, those near standstill included [%]."""
        found = (
            100 * _root(total.error + total.still_error, total.torque + total.still_torque)
            for total in self._sums_by_unit().values()
        )
        return max((value for value in found if value == value), default=nan)

    @property
    def standstill_percent(self) -> float:
        """Part of the samples of all joints that is near standstill [%]."""
        still, moving = (sum(getattr(j.sums, name) for j in self.joints) for name in ("still_samples", "samples"))
        return 100 * still / (still + moving) if still + moving else nan

    @property
    def noise_limited(self) -> bool:
        """Whether noise of the torques, as what they have above the band shows it, is most of the error."""
        error, noise = (sum(getattr(joint.sums, name) for joint in self.joints) for name in ("error", "noise"))
        return noise >= NOISE_ALONE * error


def combined(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Return one evaluation of several recordings, from the sums of all their samples.

    Raises:
        EstimateError: If there is none, or equations or cut-offs differ.
    """
    if not evaluations:
        raise EstimateError("no evaluation is given to combine; at least one is needed")
    first = evaluations[0]
    for other in evaluations[1:]:
        if _meaning(other) != _meaning(first):
            raise EstimateError(
                f"evaluations of '{first.label}' ({first.cutoff:g} Hz) and '{other.label}' ({other.cutoff:g} Hz) "
                "differ in equations or cut-off and do not add up; evaluate them alike"
            )
    joints = tuple(_combined_joint(parts) for parts in zip(*(part.joints for part in evaluations), strict=True))
    extent = reduce(add, (part.extent for part in evaluations))
    label = ", ".join(part.label for part in evaluations)
    skipped = sum(part.skipped_segments for part in evaluations)
    return Evaluation(label, first.cutoff, joints, first.joint_names, extent, skipped, tuple(evaluations))


def _meaning(evaluation: Evaluation) -> tuple[object, ...]:
    equations = tuple((joint.kind, joint.joint, joint.unit) for joint in evaluation.joints)
    return evaluation.cutoff, evaluation.joint_names, equations


def _combined_joint(parts: tuple[JointError, ...]) -> JointError:
    first = parts[0]
    sums = sum((part.sums for part in parts), ErrorSums())
    return JointError(first.kind, first.joint, first.unit, max(part.speed_max for part in parts), sums)


def faster_joints(train: Evaluation, unseen: Evaluation, factor: float = FASTER) -> tuple[str, ...]:
    """Return the joints whose top speed in unseen motion is more than ``factor`` times that of the fit.

    Friction there is an extrapolation: errors may be larger, or small by luck.
    """
    known = dict(zip(train.joint_names, train.speed_max, strict=True))
    speeds = zip(unseen.joint_names, unseen.speed_max, strict=True)
    return tuple(joint for joint, speed in speeds if speed > factor * known.get(joint, np.inf))


def wider_joints(train: Evaluation, unseen: Evaluation, part: float = WIDER) -> tuple[str, ...]:
    """Return the joints that in unseen motion go farther outside the range of the fit than a part of that range."""
    outside = {}
    for joint, lower, upper in zip(train.joint_names, train.extent.lower, train.extent.upper, strict=True):
        outside[joint] = (lower - part * (upper - lower), upper + part * (upper - lower))
    reached = zip(unseen.joint_names, unseen.extent.lower, unseen.extent.upper, strict=True)
    everywhere = (-np.inf, np.inf)
    return tuple(
        joint
        for joint, lower, upper in reached
        if lower < outside.get(joint, everywhere)[0] or upper > outside.get(joint, everywhere)[1]
    )


def hardly_moving(train: Evaluation, unseen: Evaluation, part: float = HARDLY) -> tuple[str, ...]:
    """Return the joints whose range and top speed in unseen motion are both below a part of those of the fit."""
    known = {}
    spans = train.extent.upper - train.extent.lower
    for joint, span, speed in zip(train.joint_names, spans, train.speed_max, strict=True):
        known[joint] = (part * span, part * speed)
    spans = unseen.extent.upper - unseen.extent.lower
    reached = zip(unseen.joint_names, spans, unseen.speed_max, strict=True)
    return tuple(
        joint for joint, span, speed in reached if joint in known and span < known[joint][0] and speed < known[joint][1]
    )
