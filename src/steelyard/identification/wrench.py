"""A payload from a wrist force/torque sensor: mass, centre, inertia and the bias of the sensor, with their covariance.

With ``d = R^T (a - g)``, ``w`` and ``w'`` in the frame of the sensor, it measures, up to a common sign,

    f = m d + w' x mc + w x (w x mc) + b_f
    n = I w' + w x I w + mc x d + b_n,

linear in the ten parameters of the payload and the bias. In static poses ``d = -R^T g`` and the rest is zero: mass and
force bias follow from the forces, centre and moment bias from the moments, and the inertia is not identifiable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import casadi as ca
import numpy as np

from ..distributions import t_ppf
from ..errors import EstimateError
from ..model.terms import payload_link
from ..physics import pose_function
from ..plain_data import plain
from ..recording import Recording
from ..robot import INERTIAL_NAMES, Link, Robot
from ..signals import apply_low_pass, central_difference, low_pass, trim_ends
from ..text import html_table, short_repr
from ..verdict import Reason
from .payload_body import PayloadBody, body_from_parameters, impossible_payload, payload_to_json

WrenchFrame = Literal["sensor", "base"]
BIAS_NAMES = ("bias_fx", "bias_fy", "bias_fz", "bias_tx", "bias_ty", "bias_tz")
COLUMNS = (*INERTIAL_NAMES, *BIAS_NAMES)
DEFAULT_CUTOFF = 5.0
"""Low-pass of poses and wrenches of a moving sensor [Hz]; at most a fifth of the sampling rate."""
BLOCKS = 20
"""Blocks of time over which the errors of moving recordings are jackknifed."""
_PASSES = 5
_DEPENDENT = 1e-6


def free_sensor() -> Robot:
    """Return a robot without joints: that of logs that hold poses of the sensor instead of joint positions."""
    return Robot("sensor", (Link("sensor"),), (), "sensor")


@dataclass(frozen=True, eq=False)
class WrenchPayload:
    """A payload that a force/torque sensor carries.

    Attributes:
        body: Mass, centre and inertia, in the frame of the sensor; NaN where not identifiable.
        bias: Force and moment bias of the sensor (6,) [N, N m].
        bias_sigma: Their sigmas (6,).
        covariance: Covariance of ten parameters and bias (16, 16), NaN where not identifiable.
        freedom: Degrees of freedom of t intervals.
        residual: Rms of what is not explained, by row of the wrench (6,) [N, N m].
        sign: 1 if the sensor reports the wrench that carries the payload, -1 if that of the payload on the sensor.
        rows: Samples used.
        is_static: Whether poses were static.
        link: Link whose frame it is in; ``sensor`` for logs with poses.
        reasons: What speaks against it, with remedies.
    """

    __repr__ = short_repr

    body: PayloadBody
    bias: np.ndarray
    bias_sigma: np.ndarray
    covariance: np.ndarray
    freedom: float
    residual: np.ndarray
    sign: int
    rows: int
    is_static: bool
    link: str
    reasons: tuple[Reason, ...]

    @property
    def half_width(self) -> np.ndarray:
        """Half widths of the 95 % intervals of ten parameters and bias (16,)."""
        return float(t_ppf(0.975, self.freedom)) * np.sqrt(np.diag(self.covariance))

    def to_json(self) -> dict[str, Any]:
        """Return the payload and the sensor as plain data."""
        sensor = {
            "bias": self.bias, "bias_sigma": self.bias_sigma, "covariance": self.covariance, "sign": self.sign,
            "residual_rms": self.residual, "samples": self.rows, "static": self.is_static,
        }  # fmt: skip
        return plain(
            {
                "payload": payload_to_json(self.body), "payload_link": self.link, "covariance": self.body.covariance,
                "reasons": [{"text": one.text, "remedy": one.remedy} for one in self.reasons], "wrench": sensor,
            }
        )  # fmt: skip

    def to_html(self, provenance: Mapping[str, str] | None = None) -> str:
        """Return the report as one HTML document."""
        from ..report import DataTable, Page, PageSection, page_html, sentence
        from .payload import payload_section

        units = ["N"] * 3 + ["N m"] * 3
        rows = zip(BIAS_NAMES, self.bias, self.bias_sigma, self.residual, units, strict=True)
        table = DataTable(
            "bias", ["quantity", "value", "sigma", "residual rms", "unit"], [list(row) for row in rows],
            "Bias of the sensor, and what the payload does not explain.",
        )  # fmt: skip
        reasons = [f"{sentence(one.text)} {sentence(one.remedy)}" for one in self.reasons]
        text = f"{self.rows} samples, {'static poses' if self.is_static else 'moving'}."
        sections = [payload_section(self.body, self.link, text, reasons), PageSection("The sensor", [table])]
        return page_html(Page("Payload of a force/torque sensor", text, sections, provenance=provenance or {}))

    def _repr_html_(self) -> str:
        """Return mass and bias as notebooks show them."""
        rows = [["mass", *self.body.mass, "kg"]]
        rows += [[name, *pair, ""] for name, *pair in zip(BIAS_NAMES, self.bias, self.bias_sigma, strict=True)]
        return html_table(("quantity", "value", "sigma", "unit"), rows)


def payload_from_wrench(
    recordings: Sequence[Recording],
    robot: Robot | None = None,
    *,
    link: str | None = None,
    static: bool = False,
    frame: WrenchFrame = "sensor",
    axis: str | None = None,
    cutoff: float | None = None,
) -> WrenchPayload:
    """Find the payload that a wrist force/torque sensor carries.

    Args:
        recordings: Recordings with a ``wrench`` channel, and with joint positions of the robot or poses of the sensor.
        robot: The arm; None: recordings have poses, gravity pulls along -z of the frame they are in.
        link: Link whose frame is that of the sensor; None: the one that carries payloads.
        static: Whether samples are static poses: no accelerations, and no inertia.
        frame: Axes in which the wrench was recorded, about the origin of the sensor: its own, or those of the base.
        axis: ``x``, ``y`` or ``z`` if the centre of mass is known to be on this axis of the sensor.
        cutoff: Low-pass of moving poses and wrenches [Hz].

    Raises:
        EstimateError: If a channel is missing, or there are too few poses.
    """
    if not recordings:
        raise EstimateError("no recording is given; give at least one log with a wrench")
    gravity = np.array((robot or free_sensor()).gravity)
    sensor = link or (payload_link(robot) if robot is not None and robot.bodies else "sensor")
    if axis not in (None, "x", "y", "z"):
        raise EstimateError(f"axis: got '{axis}', allowed are x, y and z of the sensor")
    parts, blocks = [], []
    for number, recording in enumerate(recordings):
        rotation, position = _poses(recording, robot, sensor)
        wrench = _wrench(recording, rotation, frame)
        rows = _static_rows(rotation, gravity) if static else None
        if rows is None:
            rows, wrench = _moving_rows(recording.time, rotation, position, wrench, gravity, cutoff)
        parts.append(np.concatenate([rows, wrench.T[:, :, None]], axis=2))
        count = len(rows)
        blocks.append(BLOCKS * number + (np.arange(count) if static else np.arange(count) * BLOCKS // count))
    return _estimated(np.concatenate(parts), np.concatenate(blocks), static, axis, sensor)


def _poses(recording: Recording, robot: Robot | None, sensor: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (N, 3, 3) and positions (N, 3) of the sensor in the base frame."""
    if robot is not None and robot.bodies:
        function, count = pose_function(robot, sensor), recording.samples
        found = np.array(function.map(count)(ca.DM(recording.q), ca.DM.zeros(0, count)))
        transforms = found.reshape(3, count, 4).transpose(1, 0, 2)
        return transforms[:, :, :3], transforms[:, :, 3]
    if recording.pose is None or len(recording.pose) != 7:
        raise EstimateError(
            "the log has no poses of the sensor, x y z and a quaternion; declare them with pose = ... in its set-up, "
            "or name the robot whose joint positions it holds with --robot"
        )
    lengths = np.linalg.norm(recording.pose[3:], axis=0)
    if not np.abs(lengths - 1).max() < 1e-2:
        raise EstimateError(
            f"quaternions of the pose have lengths from {lengths.min():.3g} to {lengths.max():.3g}, not 1; declare the "
            "columns in the order x y z qw qx qy qz"
        )
    return _rotations(recording.pose[3:] / lengths), recording.pose[:3].T


def _rotations(quaternions: np.ndarray) -> np.ndarray:
    """Return the rotations (N, 3, 3) of unit quaternions w x y z (4, N)."""
    w, x, y, z = quaternions
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(rows).transpose(2, 0, 1)


def _wrench(recording: Recording, rotation: np.ndarray, frame: WrenchFrame) -> np.ndarray:
    """Return the wrench in the axes of the sensor (6, N)."""
    found = [channel.values for channel in recording.torques if channel.kind == "wrench"]
    if not found:
        raise EstimateError('the log has no wrench; declare its six columns with torque = { kind = "wrench", ... }')
    if frame == "sensor":
        return found[0]
    forces, moments = (np.einsum("nji,jn->in", rotation, part) for part in (found[0][:3], found[0][3:]))
    return np.concatenate([forces, moments])


def _static_rows(rotation: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    still = np.zeros((len(rotation), 3))
    return _rows(-np.einsum("nji,j->ni", rotation, gravity), still, still)


def _moving_rows(
    time: np.ndarray,
    rotation: np.ndarray,
    position: np.ndarray,
    wrench: np.ndarray,
    gravity: np.ndarray,
    cutoff: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (K, 6, 16) and wrenches (6, K), both through one low-pass, stamps made even."""
    rate = (len(time) - 1) / float(time[-1] - time[0])
    even = time[0] + np.arange(len(time)) / rate
    signals = np.concatenate([position.T, rotation.reshape(-1, 9).T, wrench])
    signals = np.array([np.interp(even, time, one) for one in signals])
    filter_ = low_pass(rate, min(cutoff or DEFAULT_CUTOFF, rate / 5))
    smooth = trim_ends(filter_, apply_low_pass(filter_, signals))
    place, turned = smooth[:3], smooth[3:12].T.reshape(-1, 3, 3)
    left, _, right = np.linalg.svd(turned)  # the nearest rotations
    turned = left @ right
    acceleration = central_difference(place, rate, "second")[:, 1:-1]
    spin = np.einsum("nji,njk->nik", turned[1:-1], (turned[2:] - turned[:-2]) * (rate / 2))
    omega = np.stack([spin[:, 2, 1] - spin[:, 1, 2], spin[:, 0, 2] - spin[:, 2, 0], spin[:, 1, 0] - spin[:, 0, 1]]) / 2
    alpha = central_difference(omega, rate)
    inner = turned[2:-2]
    d = np.einsum("nji,jn->ni", inner, acceleration - gravity[:, None])
    return _rows(d, omega[:, 1:-1].T, alpha.T), smooth[12:, 2:-2]


def _rows(d: np.ndarray, omega: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return the regressor of the wrench (N, 6, 16) for ten parameters and six biases."""
    rows = np.zeros((len(d), 6, 16))
    twist = _cross(omega)
    rows[:, :3, 9] = d
    rows[:, :3, 6:9] = _cross(alpha) + twist @ twist
    rows[:, 3:, 6:9] = -_cross(d)
    rows[:, 3:, :6] = _applied(alpha) + twist @ _applied(omega)
    rows[:, :, 10:] = np.eye(6)
    return rows


def _cross(vectors: np.ndarray) -> np.ndarray:
    """Return the matrices of ``v x`` (N, 3, 3)."""
    x, y, z = vectors.T
    zero = np.zeros(len(vectors))
    return np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)


def _applied(vectors: np.ndarray) -> np.ndarray:
    """Return the matrices (N, 3, 6) by which XX XY XZ YY YZ ZZ give ``I v``."""
    x, y, z = vectors.T
    zero = np.zeros(len(vectors))
    return np.array([[x, y, z, zero, zero, zero], [zero, x, zero, y, z, zero], [zero, zero, x, zero, y, z]]).transpose(
        2, 0, 1
    )


def _estimated(rows: np.ndarray, blocks: np.ndarray, static: bool, axis: str | None, link: str) -> WrenchPayload:
    """Return the payload from rows ``[W y]`` (N, 6, 17): weighted least squares, forces and moments by their noise."""
    held = [6 + k for k, name in enumerate("xyz") if axis is not None and name != axis]
    columns = [k for k in range(16) if k not in held and not (static and k < 6)]
    columns = _independent(rows, columns)
    if not {9, *range(10, 16)} <= set(columns):
        raise EstimateError(
            "the mass cannot be told from the bias of the sensor: its orientation to gravity hardly changes; record "
            "the sensor in several orientations"
        )
    if 6 * len(rows) <= len(columns) + 6:
        raise EstimateError(f"{len(rows)} poses are too few for {len(columns)} unknowns; record more of them")
    scale, freedom = np.ones(2), np.ones(2)
    values, covariance, residual = _weighted(rows[:, :, [*columns, 16]], scale)
    for _ in range(_PASSES):
        freedom = np.maximum(3 * len(rows) - _leverage(rows[:, :, columns], covariance, scale), 1.0)
        squares = [np.sum(residual[:, :3] ** 2), np.sum(residual[:, 3:] ** 2)]
        scale = np.maximum(np.sqrt(squares / freedom), 1e-12)
        values, covariance, residual = _weighted(rows[:, :, [*columns, 16]], scale)
    count = float(freedom.min())
    if not static:
        covariance, count = _jackknife(rows[:, :, [*columns, 16]], values, blocks, scale)
    sixteen, errors = np.full(16, np.nan), np.full((16, 16), np.nan)
    sixteen[columns], errors[np.ix_(columns, columns)] = values, covariance
    sixteen[held], errors[held, :], errors[:, held] = 0.0, 0.0, 0.0
    sign = 1 if sixteen[9] >= 0 else -1
    flip = np.where(np.arange(16) < 10, sign, 1)
    sixteen, errors = sixteen * flip, errors * np.outer(flip, flip)
    body = body_from_parameters(sixteen[:10], errors[:10, :10])
    rms = np.sqrt(np.mean(residual**2, axis=0))
    found = WrenchPayload(
        body, sixteen[10:], np.sqrt(np.diag(errors))[10:], errors, count, rms, sign, len(rows), static, link, ()
    )
    return replace(found, reasons=tuple(_reasons(found)))


def _independent(rows: np.ndarray, columns: Sequence[int]) -> list[int]:
    """Return the columns that the ones kept before do not span, the bias first: what looks like a bias is one."""
    ordered = sorted(columns, key=lambda k: (k < 10, -k))
    stacked = rows[:, :, ordered].reshape(-1, len(ordered))
    lengths = np.linalg.norm(stacked, axis=0)
    kept: list[int] = []
    for k in range(len(ordered)):
        if lengths[k] <= 1e-9 * lengths.max():
            continue
        one = stacked[:, k] / lengths[k]
        if kept:
            before = stacked[:, kept] / lengths[kept]
            one = one - before @ np.linalg.lstsq(before, one, rcond=None)[0]
        if np.linalg.norm(one) > _DEPENDENT:
            kept.append(k)
    return sorted(ordered[k] for k in kept)


def _weighted(rows: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, covariance and residuals (N, 6) of weighted least squares."""
    weights = 1 / np.repeat(scale, 3)
    stacked = (rows * weights[:, None]).reshape(-1, rows.shape[2])
    lengths = np.linalg.norm(stacked[:, :-1], axis=0)
    inverse = np.linalg.pinv(stacked[:, :-1] / lengths)
    values = inverse @ stacked[:, -1] / lengths
    covariance = inverse @ inverse.T / np.outer(lengths, lengths)
    return values, covariance, rows[:, :, -1] - rows[:, :, :-1] @ values


def _leverage(rows: np.ndarray, covariance: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return how many parameters forces and moments are spent on (2,)."""
    diagonal = np.einsum("nij,jk,nik->i", rows, covariance, rows) / np.repeat(scale, 3) ** 2
    return np.array([diagonal[:3].sum(), diagonal[3:].sum()])


def _jackknife(rows: np.ndarray, values: np.ndarray, blocks: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the covariance from leaving out each block of time once, and its degrees of freedom."""
    weighted = rows / np.repeat(scale, 3)[:, None]
    labels = np.unique(blocks)
    if len(labels) < 3:
        raise EstimateError("the log is too short for blocks of time; record longer")
    products = [np.einsum("nij,nik->jk", part, part) for part in (weighted[blocks == one] for one in labels)]
    lengths = np.sqrt(np.diag(np.sum(products, axis=0)))
    products = [product / np.outer(lengths, lengths) for product in products]
    total = np.sum(products, axis=0)
    moves = []
    for product in products:
        rest = total - product
        moves.append(np.linalg.solve(rest[:-1, :-1], rest[:-1, -1]) * lengths[-1] / lengths[:-1] - values)
    count, changes = len(labels), np.array(moves)
    return (count - 1) / count * changes.T @ changes, float(count - 1)


def _reasons(found: WrenchPayload) -> list[Reason]:
    mass, sigma = found.body.mass
    reasons = []
    if mass < 3 * sigma:
        text = f"the mass comes out as {mass:.3g} +- {sigma:.2g} kg, which is not significant"
        reasons.append(Reason(text, "check that the sensor carried a payload", "payload"))
    if impossible := impossible_payload(found.body):
        text = f"no body is like this: {', '.join(impossible)}"
        reasons.append(Reason(text, "check axes and units of the wrench and the poses", "payload"))
    return reasons
