"""A payload from a wrist force/torque sensor: mass, centre, inertia and the bias of the sensor, with their covariance.

With ``d = R^T (a - g)``, ``w`` and ``w'`` in the frame of the sensor, it measures, up to a common sign,

    f = m d + w' x mc + w x (w x mc) + b_f
    n = I w' + w x I w + mc x d + b_n,

linear in the ten parameters of the payload and the bias. In static poses ``d = -R^T g`` and the rest is zero: mass and
force bias follow from the forces, centre and moment bias from the moments, and the inertia is not identifiable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..distributions import t_ppf
from ..errors import EstimateError
from ..model.terms import payload_link
from ..plain_data import plain
from ..recording import Recording
from ..robot import INERTIAL_NAMES, Link, Robot
from ..text import html_table, short_repr
from ..verdict import Reason, Verdict, verdict_of, verdict_to_json
from .payload_body import PayloadBody, body_from_parameters, mass_of, payload_to_json, reach_of
from .wrench_rows import (
    FRAMES,
    QUATERNIONS,
    WrenchFrame,
    moving_rows,
    other_rotations,
    sensor_poses,
    sensor_wrench,
    static_rows,
)
from .wrench_verdict import OtherReading, WrenchEvidence, judge_wrench

BIAS_NAMES = ("bias_fx", "bias_fy", "bias_fz", "bias_tx", "bias_ty", "bias_tz")
COLUMNS = (*INERTIAL_NAMES, *BIAS_NAMES)
BLOCKS = 20
"""Blocks of time over which the errors of moving recordings are jackknifed."""
ENOUGH_ROWS = 3000
"""Rows of a recording by which other readings of it are compared."""
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
        deviation: Deviation of residual forces and moments, per axis, unknowns counted (2,) [N, N m].
        explained: Rms of the payload's own force and moment, without bias, as vectors (2,) [N, N m].
        verdict: Whether it explains the wrench, and can be a payload.
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
    deviation: np.ndarray
    explained: np.ndarray
    verdict: Verdict

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """What speaks against it, with remedies: those of the verdict."""
        return self.verdict.reasons

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
                "verdict": verdict_to_json(self.verdict),
            }
        )  # fmt: skip

    def to_html(self, provenance: Mapping[str, str] | None = None) -> str:
        """Return the report as one HTML document."""
        from ..report import DataTable, Page, PageSection, page_html
        from .payload import payload_section

        units = ["N"] * 3 + ["N m"] * 3
        rows = zip(BIAS_NAMES, self.bias, self.bias_sigma, self.residual, units, strict=True)
        table = DataTable(
            "bias", ["quantity", "value", "sigma", "residual rms", "unit"], [list(row) for row in rows],
            "Bias of the sensor, and what the payload does not explain.",
        )  # fmt: skip
        text = f"{self.rows} samples, {'static poses' if self.is_static else 'moving'}."
        sections = [payload_section(self.body, self.link, text), PageSection("The sensor", [table])]
        title = "Payload of a force/torque sensor"
        return page_html(Page(title, text, sections, self.verdict, provenance=provenance or {}))

    def _repr_html_(self) -> str:
        """Return mass, bias and verdict as notebooks show them."""
        rows = [["mass", *self.body.mass, "kg"]]
        rows += [[name, *pair, ""] for name, *pair in zip(BIAS_NAMES, self.bias, self.bias_sigma, strict=True)]
        return html_table(("quantity", "value", "sigma", "unit"), rows) + self.verdict._repr_html_()


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
    sensor = link or (payload_link(robot) if robot is not None and robot.bodies else "sensor")
    if axis not in (None, "x", "y", "z"):
        raise EstimateError(f"axis: got '{axis}', allowed are x, y and z of the sensor")
    if static and cutoff is not None:
        raise EstimateError(
            f"cutoff: got {cutoff:g} Hz for static poses, which are not filtered; leave --cutoff out, or --static if "
            "the sensor moves"
        )
    reading = _Reading(robot, sensor, static, frame, axis, cutoff)
    found = reading.payload(recordings)
    arm, positions = reading.arm, np.concatenate([one.q for one in recordings], axis=1)
    evidence = WrenchEvidence(
        found.body, found.deviation, found.explained,
        *((None, None) if arm is None else (reach_of(arm, sensor, positions), mass_of(arm))),
    )  # fmt: skip
    if not evidence.explains:
        evidence = replace(evidence, others=tuple(_others(reading, recordings)))
    return replace(found, verdict=judge_wrench(evidence))


@dataclass(frozen=True)
class _Reading:
    """How logs are taken: as :func:`payload_from_wrench` is told, or otherwise, to see whether that explains more.

    Attributes:
        order: Meaning of the numbers of quaternions, one of ``QUATERNIONS``; empty for w x y z.
        swapped: Whether moments are taken to come before forces.
        reversed: Column of the wrench that is taken with the other sign; None: none is.
        most: Rows of a recording that are enough; None: all count.
    """

    robot: Robot | None
    sensor: str
    static: bool
    frame: WrenchFrame
    axis: str | None
    cutoff: float | None
    order: str = ""
    swapped: bool = False
    reversed: int | None = None
    most: int | None = None

    @property
    def arm(self) -> Robot | None:
        """The robot whose joint positions logs hold; None if they hold poses."""
        return self.robot if self.robot is not None and self.robot.bodies else None

    def payload(self, recordings: Sequence[Recording]) -> WrenchPayload:
        """Return the payload, not judged yet."""
        gravity, parts, blocks = np.array((self.robot or free_sensor()).gravity), [], []
        for number, recording in enumerate(recordings):
            rotation, position = sensor_poses(recording, self.robot, self.sensor)
            if self.order:
                rotation = other_rotations(recording, self.order)
            wrench = sensor_wrench(recording, rotation, self.frame, self.reversed)
            wrench = np.roll(wrench, 3, axis=0) if self.swapped else wrench
            rows = static_rows(rotation, gravity) if self.static else None
            if rows is None:
                rows, wrench = moving_rows(recording.time, rotation, position, wrench, gravity, self.cutoff)
            step = -(-len(rows) // (self.most or len(rows)))
            parts.append(np.concatenate([rows, wrench.T[:, :, None]], axis=2)[::step])
            count = len(parts[-1])
            blocks.append(BLOCKS * number + (np.arange(count) if self.static else np.arange(count) * BLOCKS // count))
        return _estimated(np.concatenate(parts), np.concatenate(blocks), self.static, self.axis, self.sensor)


def _others(reading: _Reading, recordings: Sequence[Recording]) -> Iterator[OtherReading]:
    """Yield what other readings give: other axes, moments before forces, quaternions in another order, signs."""
    for other, said in [*_otherwise_ordered(reading), *_otherwise_signed(reading)]:
        try:
            found = replace(other, most=ENOUGH_ROWS).payload(recordings)
        except EstimateError:
            continue
        text, remedy = (" and ".join(words) for words in zip(*said, strict=True))
        yield OtherReading(text, remedy, WrenchEvidence(found.body, found.deviation, found.explained))


def _otherwise_ordered(reading: _Reading) -> Iterator[tuple[_Reading, list[tuple[str, str]]]]:
    """Yield readings with other axes or another order of columns, with words and remedy of each difference."""
    orders = ("", *QUATERNIONS) if reading.arm is None else ("",)
    ways = [(order, False, frame) for order in orders for frame in FRAMES] + [("", True, frame) for frame in FRAMES]
    for order, swapped, frame in ways:
        said = [QUATERNIONS[order][2:]] if order else []
        if swapped:
            said.insert(
                0, ("moments before forces", "declare the columns of the wrench in the order fx fy fz tx ty tz")
            )
        if frame != reading.frame:
            said.insert(0, (f"the wrench in axes of the {frame}", f"give --wrench-frame {frame}"))
        if said:
            yield replace(reading, frame=frame, order=order, swapped=swapped), said


def _otherwise_signed(reading: _Reading) -> Iterator[tuple[_Reading, list[tuple[str, str]]]]:
    """Yield readings with one column reversed."""
    for k, name in enumerate(BIAS_NAMES):
        column = name.removeprefix("bias_")
        signs = [-1 if place == k else 1 for place in range(len(BIAS_NAMES))]
        remedy = f"reverse it in the set-up: sign = {signs} for the wrench"
        yield replace(reading, reversed=k), [(f"the column {column} of the wrench reversed", remedy)]


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
    own = np.sqrt(np.mean((rows[:, :, :10] @ np.nan_to_num(sixteen[:10])) ** 2, axis=0))
    explained = np.array([np.linalg.norm(own[:3]), np.linalg.norm(own[3:])])
    return WrenchPayload(
        body, sixteen[10:], np.sqrt(np.diag(errors))[10:], errors, count, rms, sign, len(rows), static, link, scale,
        explained, verdict_of(()),
    )  # fmt: skip


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
