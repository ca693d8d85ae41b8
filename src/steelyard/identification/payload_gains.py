"""What gains of drives and torque sensors do to a payload: whose gains count, and what their errors add to its sigmas.

The arm of a run stands in units of the gains that it was identified with, so that loaded recordings are read with the
same. An error of a gain multiplies the torques of its joint in both: the payload moves by ``d p / d log g_j``, which
weighted least squares gives at once, ``x = (W^T W)^-1 sum_j W_j^T y_j`` being a sum over joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..configuration import kind_of
from ..errors import EstimateError, RecordingError
from ..estimate import Estimate, group_factors
from ..observe import Observations, RowSource, channel_of, merged_triangle
from ..recording import DriveGains, Recording, gains_of, with_gains
from ..recording.gains import GAIN_KINDS
from .payload_body import COLUMNS, PayloadBody, body_from_parameters, payload_body

_SIDE = {"motor_current": "motor", "motor_torque": "motor", "joint_torque": "joint"}


def gains_used(sources: Sequence[RowSource]) -> tuple[DriveGains, ...]:
    """Return the gains by which the torques of recordings were measured, one entry for each side of the gears."""
    first = sources[0]
    model, found = first.equations.model, []
    for side in ("motor", "joint") if model.measured in ("both", "difference") else (model.measured,):
        channel = channel_of(first.template, side, first.label)
        found.append(gains_of(model.robot, channel))
    return tuple(one for one in found if one is not None)


def gains_of_run(content: Mapping[str, object]) -> tuple[DriveGains, ...]:
    """Return the gains of a run from its ``result.json``; none if it does not say them.

    Raises:
        EstimateError: If they make no sense.
    """
    given = content.get("gains")
    try:
        return tuple(_from_json(one) for one in given) if isinstance(given, list) else ()
    except (KeyError, TypeError, ValueError):
        raise EstimateError("the run has gains that cannot be read; run identify again") from None


def _from_json(given: Mapping[str, object]) -> DriveGains:
    joints = tuple(str(joint) for joint in kind_of(list)(given["joints"]))
    values = np.array(given["values"], dtype=float)
    errors = given["relative_covariance"]
    shape = (len(joints), len(joints))
    covariance = np.full(shape, np.inf) if errors is None else np.array(errors, dtype=float)
    if given["kind"] not in GAIN_KINDS or values.shape != shape[:1] or covariance.shape != shape:
        raise ValueError
    return DriveGains(str(given["kind"]), joints, values, covariance, str(given["source"]))


def with_run_gains(
    recording: Recording, gains: Sequence[DriveGains], label: str, *, may_differ: bool = False
) -> Recording:
    """Return a recording read with the gains of a run.

    Args:
        recording: The recording.
        gains: Those of the run.
        label: Name of the recording, for messages.
        may_differ: Whether it may have other kinds of torque than the run.

    Raises:
        EstimateError: If it has and may not.
    """
    for one in gains:
        there = {channel.kind for channel in recording.torques}
        if not may_differ and one.kind not in there and _SIDE[one.kind] in {_SIDE.get(kind) for kind in there}:
            raise EstimateError(
                f"recording '{label}' has {', '.join(sorted(there))}, the arm was identified from a {one.kind}; record "
                "the same torques"
            )
        if one.kind in there and (not may_differ or set(recording.joints) <= set(one.joints)):
            try:
                recording = with_gains(recording, one)
            except RecordingError as error:
                raise EstimateError(f"recording '{label}': {error}") from error
    return recording


def check_same_gains(sources: Sequence[RowSource], earlier: Sequence[Mapping[str, object]]) -> None:
    """Refuse earlier runs whose torques were measured with other gains than those of the recordings.

    Args:
        sources: Rows of the recordings.
        earlier: ``result.json`` of every run.

    Raises:
        EstimateError: If gains differ.
    """
    here = {one.kind: one for one in gains_used(sources)}
    for content in earlier:
        for one in gains_of_run(content):
            ours = here.get(one.kind)
            if ours is not None and not np.allclose(one.values, ours.values, rtol=1e-6):
                raise EstimateError(
                    f"an earlier run has other gains of its {one.kind} ({one.source}) than the recordings "
                    f"({ours.source}); identify both with the same --gains"
                )


def refuse_unknown_gains(gains: Sequence[DriveGains], effects: Sequence[str]) -> None:
    """Refuse to name a mass where gains are unknown, or estimated for the arm's torques alone.

    Args:
        gains: Gains of the recordings with the payload.
        effects: Effects of the run that identified the arm.

    Raises:
        EstimateError: If they are.
    """
    for one in gains:
        if not one.is_known:
            joints = [j for j, sigma in zip(one.joints, one.relative_sigma, strict=True) if not np.isfinite(sigma)]
            raise EstimateError(
                f"the payload's mass is not identifiable: the gain of the {one.kind} is unknown ({one.source}; "
                f"{', '.join(joints)}), and torques of twice the gain are those of twice the mass; find the gains with "
                "a payload that was weighed (steelyard gains), or declare how far they may be off (gain_sigma)"
            )
    others = [name for name in effects if name.rstrip("0123456789") != "gain"]
    if len(others) < len(effects):
        raise EstimateError(
            "the run's model has errors of the drives' gains (effect 'gain'), which a payload's torques would have "
            f"too; identify the arm again with --effects {','.join(others)}, or find the gains (steelyard gains)"
        )


def payload_and_notes(
    estimate: Estimate, observations: Observations, sources: Sequence[RowSource]
) -> tuple[PayloadBody | None, tuple[str, ...]]:
    """Return the payload of an identification, None where gains are unknown, and a note that says so."""
    gains = gains_used(sources)
    if all(one.is_known for one in gains):
        return payload_with_gains(estimate, [observations], gains), ()
    note = (
        "the payload is not identifiable: gains are unknown, and torques of twice the gain are those of twice the mass"
    )
    return None, () if payload_body(estimate) is None else (note,)


def payload_with_gains(
    estimate: Estimate, observations: Sequence[Observations], gains: Sequence[DriveGains]
) -> PayloadBody | None:
    """Return the payload of an estimate with the errors of gains in its covariance; None if it has no mass.

    Args:
        estimate: Arm and payload together.
        observations: Factors of all recordings behind it.
        gains: The gains of their torques, with known errors.
    """
    body = payload_body(estimate)
    inexact = [one for one in gains if not one.is_exact]
    if body is None or not inexact:
        return body
    added = np.zeros((10, 10))
    for one in inexact:
        slopes = _slopes(estimate, observations, _SIDE[one.kind], one.joints)
        added += slopes @ one.covariance @ slopes.T
    return body_from_parameters(_parameters(estimate), body.covariance + added)


def _parameters(estimate: Estimate) -> np.ndarray:
    values = np.full(10, np.nan)
    for k, name in enumerate(COLUMNS):
        if name in estimate.columns:
            values[k] = estimate.values[estimate.columns.index(name)]
    return values


def _slopes(estimate: Estimate, observations: Sequence[Observations], side: str, joints: Sequence[str]) -> np.ndarray:
    """Return the derivatives of the payload's parameters by the logarithms of the gains of one side (10, n)."""
    columns, parts, targets = estimate.columns, [], []
    for one in observations:
        for group, factors in group_factors(one).items():
            triangle, rows = merged_triangle(factors, columns)
            residual = triangle @ np.append(-estimate.values, 1.0)
            weight = np.sqrt(rows) / max(float(np.linalg.norm(residual)), 1e-300)
            target = np.zeros((len(triangle), len(joints)))
            if group[1] == side:
                target[:, joints.index(group[2])] = weight * triangle[:, -1]
            parts.append(weight * triangle[:, :-1])
            targets.append(target)
    stacked = np.vstack(parts)
    lengths = np.linalg.norm(stacked, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    found = np.linalg.lstsq(stacked / lengths, np.vstack(targets), rcond=1e-10)[0] / lengths[:, None]
    slopes = np.zeros((10, len(joints)))
    for k, name in enumerate(COLUMNS):
        if name in columns:
            slopes[k] = found[columns.index(name)]
    return slopes


def gains_text(gains: DriveGains) -> str:
    """Return which gains a payload was found with, their errors and where they come from."""
    values = " ".join(f"{value:.4g}" for value in gains.values)
    sigmas = 100 * gains.relative_sigma
    is_common = np.ptp(sigmas) < 1e-9 * sigmas.max(initial=1.0)
    size = f"{sigmas[0]:.2g}" if is_common else " ".join(f"{one:.2g}" for one in sigmas)
    errors = "taken as exact" if gains.is_exact else f"relative sigma {size} %"
    factors = "torques as recorded" if np.all(gains.values == 1) and gains.unit == "1" else f"{values} {gains.unit}"
    source = "" if gains.source == factors else f", from {gains.source}"
    return f"gains of the {gains.kind}: {factors}{source}; {errors}"
