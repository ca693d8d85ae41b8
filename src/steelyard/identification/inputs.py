"""Recordings of an identification by role (training, unseen) with labels, and the model that they allow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, NoneType

import numpy as np

from ..effects import EFFECTS, SETUP_ERRORS, FrictionConstants
from ..errors import EstimateError, require_type
from ..estimate import Estimate, robust_fit, stacked_system, weighted, with_correlated_noise
from ..model import Model, build_model
from ..model.terms import PAYLOAD_NAMES
from ..observe import (
    Equations,
    Observations,
    RecordingInfo,
    ResolvedPreparation,
    RowSource,
    equations_of,
    hashes_of,
    part_of,
    reduce_rows,
    row_source,
    shares_samples,
)
from ..recording import Recording, TorqueChannel
from ..robot import Robot
from .settings import Settings

HELD = 0.01
"""A joint that is farther from where it is said to be held was not held there [rad or m]."""

Labelled = tuple[str, Recording]
"""A recording with its label."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """Recordings by their role.

    Attributes:
        training: Recordings to fit, with their labels.
        unseen: Recordings to judge by, with their labels.
        held_out: Part of every recording that was held out because no validation was given; 0 if one was.
    """

    training: tuple[Labelled, ...]
    unseen: tuple[Labelled, ...]
    held_out: float = 0.0


def settings_of(settings: Settings | None) -> Settings:
    """Return the settings, the defaults if none are given."""
    require_type(settings, (Settings, NoneType), "settings", "Settings(...) or None", EstimateError)
    return settings or Settings()


def inputs_of(recordings: Sequence[Recording], validation: Sequence[Recording], settings: Settings) -> Inputs:
    """Return training and unseen recordings; without validation the last part of each recording is held out.

    Raises:
        EstimateError: If there is no recording, or a validation recording is one of those trained on.
    """
    if not recordings:
        raise EstimateError("no recording is left to identify from; give at least one log that passed its checks")
    labels = labels_of([*recordings, *validation])
    given = zip(labels, [*recordings, *validation], strict=True)
    moving = tuple((label, without_locked(one, label, settings.lock)) for label, one in given)
    training, unseen = moving[: len(recordings)], moving[len(recordings) :]
    if unseen:
        _check_unseen(training, unseen)
        return Inputs(training, unseen)
    return _held_out(training, settings.hold_out)


def _held_out(given: tuple[Labelled, ...], part: float) -> Inputs:
    training, unseen = [], []
    for label, recording in given:
        last = round(recording.samples * (1 - part))
        training.append((label, part_of(recording, 0, last)))
        unseen.append((f"{label} (held out)", part_of(recording, last, recording.samples)))
    return Inputs(tuple(training), tuple(unseen), part)


def labels_of(recordings: Sequence[Recording]) -> list[str]:
    """Return a label for each recording: its file's name, numbered where two share one."""
    names = []
    for number, recording in enumerate(recordings, 1):
        sources = recording.sources
        names.append(Path(sources[0].path).stem if sources and sources[0].path else f"recording {number}")
    repeated = {name for name in names if names.count(name) > 1}
    return [f"{name} ({number})" if name in repeated else name for number, name in enumerate(names, 1)]


def without_locked(recording: Recording, label: str, lock: Mapping[str, float]) -> Recording:
    """Return the recording with the rows of the joints that move; held ones must be where they are said to be.

    Raises:
        EstimateError: If a joint is elsewhere than it is said to be held.
    """
    if not lock or not set(lock) & set(recording.joints):
        return recording
    for joint in set(lock) & set(recording.joints):
        q = recording.q[recording.joints.index(joint)]
        away = float(np.abs(q - lock[joint]).max(initial=0.0))
        if away > HELD:
            raise EstimateError(
                f"--lock {joint}={lock[joint]:.6g}: in recording '{label}' it is between {q.min():.4g} and "
                f"{q.max():.4g}; lock a joint where it was held, or leave it free"
            )
    rows = [row for row, joint in enumerate(recording.joints) if joint not in lock]
    torques = tuple(_with_rows(channel, rows, len(recording.joints)) for channel in recording.torques)
    moving = {
        name: None if values is None else values[rows]
        for name in ("qd", "reference", "temperature", "known_torque")
        for values in (getattr(recording, name),)
    }
    joints = tuple(recording.joints[row] for row in rows)
    return replace(recording, joints=joints, q=recording.q[rows], torques=torques, **moving)


def _with_rows(channel: TorqueChannel, rows: list[int], joints: int) -> TorqueChannel:
    if channel.kind == "wrench" or len(channel.values) != joints:
        return channel
    gain, errors = channel.gain, channel.gain_covariance
    return replace(
        channel, values=channel.values[rows], gain=None if gain is None else gain[rows],
        gain_covariance=None if errors is None else errors[np.ix_(rows, rows)],
    )  # fmt: skip


def arm_of(robot: Robot, settings: Settings) -> Robot:
    """Return the robot as it is mounted, held joints locked."""
    mounted = robot if settings.gravity is None else robot.mounted(settings.gravity)
    return mounted.with_locked(settings.lock) if settings.lock else mounted


def _check_unseen(training: tuple[Labelled, ...], unseen: tuple[Labelled, ...]) -> None:
    known = {digest: label for label, recording in training for digest in hashes_of(recording)}
    for label, recording in unseen:
        for digest in hashes_of(recording):
            if digest in known:
                raise EstimateError(
                    f"validation recording '{label}' is the same data as '{known[digest]}' (SHA-256 {digest[:12]}...): "
                    "errors on it would say nothing; give a recording that was not used to fit"
                )
        same = next((own for own, one in training if shares_samples(one, recording)), None)
        if same is not None:
            raise EstimateError(
                f"validation recording '{label}' has samples of '{same}', which is fitted: errors on it would say "
                "little; give a recording of another run"
            )


def refuse_same_data(known: Sequence[RecordingInfo], recordings: Sequence[Recording]) -> None:
    """Refuse recordings to which the run of an arm was fitted: by them it carries nothing, up to rounding."""
    labels = {digest: one.label for one in known for digest in one.sha256}
    for label, recording in zip(labels_of(recordings), recordings, strict=True):
        for digest in hashes_of(recording):
            if digest in labels:
                raise EstimateError(
                    f"recording '{label}' is the same data as '{labels[digest]}' of the arm's own run (SHA-256 "
                    f"{digest[:12]}...); give a recording that was made with the payload"
                )


def model_of(
    robot: Robot,
    training: Sequence[Labelled],
    unseen: Sequence[Labelled],
    settings: Settings,
    payload: str | None = None,
) -> Model:
    """Return the model: payload columns as the recordings carry one, torques as far as they are recorded.

    Args:
        robot: The arm.
        training: The recordings to fit.
        unseen: Those to judge by.
        settings: The choices.
        payload: ``none``, ``loaded`` or ``paired``; None: as the recordings say.

    Raises:
        EstimateError: If a payload is requested that no recording carries, or two different ones are carried.
    """
    templates = [recording for _, recording in training]
    carried = [template.payload for template in templates]
    names = sorted({name for name in carried if name is not None})
    if len(names) > 1:
        raise EstimateError(f"recordings carry different payloads ({', '.join(names)}); identify one payload at a time")
    found = "none" if not names else "loaded" if all(carried) else "paired"
    if payload not in (None, "none") and not names:
        raise EstimateError(
            f"payload '{payload}' is requested, but no recording says that it carries one; declare it in the log's "
            'setup with payload = "name", or leave --payload away'
        )
    _check_payload_of_unseen(unseen, names)
    measured = settings.measured or measured_side(robot, templates)
    arm = arm_of(robot, settings)
    if measured == "difference":
        found = "none"  # the difference of motor and joint torques does not depend on a payload
    return build_model(arm, settings.effects, measured, payload or found, settings.sign_width, settings.friction)


def _check_payload_of_unseen(unseen: Sequence[Labelled], known: list[str]) -> None:
    for label, recording in unseen:
        payload = recording.payload
        if payload is not None and payload not in known:
            carried = f"'{known[0]}'" if known else "none"
            raise EstimateError(
                f"validation recording '{label}' carries payload '{payload}', the recordings to fit carry {carried}: "
                "its torques could not be predicted; validate with the same payload, or none"
            )


def measured_side(robot: Robot, templates: Sequence[Recording]) -> str:
    """Return the robot's measured torques, less those that the recordings lack."""
    kinds = [{channel.kind for channel in template.torques} for template in templates]
    motor = all(there & {"motor_torque", "motor_current"} for there in kinds)
    joint = all("joint_torque" in there for there in kinds)
    if robot.defaults.measured in ("both", "motor", "joint") and motor != joint:
        return "motor" if motor else "joint"
    return robot.defaults.measured


def sources_of(recordings: Sequence[Labelled], equations: Equations, resolved: ResolvedPreparation) -> list[RowSource]:
    """Return the rows of recordings with their labels."""
    return [row_source(recording, equations, resolved, label) for label, recording in recordings]


MASSIVE = ("inertia", "payload")
"""Effects with torques of gravity."""


def feels_gravity(model: Model) -> bool:
    """Return whether masses have torques at rest."""
    return bool((_at_rest(model) & _is_massive(model)).any())


def shows_moments(equations: Equations) -> bool:
    """Return whether torques of gravity are told from others at rest, which springs of a level arm may look like."""
    model, base = equations.model, equations.base
    massive = _is_massive(model)
    others = ~massive & np.array([one.effect not in SETUP_ERRORS for one in model.parameters])
    with_masses = base.regrouping[massive[list(base.base_columns)]].any(axis=0)
    return not (_at_rest(model) & others & with_masses).any()


def _at_rest(model: Model) -> np.ndarray:
    """Return which parameters have torques at rest."""
    inputs = [np.zeros(one.shape) for one in model.inputs]
    inputs[0] += 0.7 * np.arange(1, len(inputs[0]) + 1)[:, None]  # no special posture
    return np.any(np.asarray(model.regressor(*inputs)), axis=0)


def _is_massive(model: Model) -> np.ndarray:
    return np.array([one.effect in MASSIVE for one in model.parameters])


PASSES = 3
"""Fits with effects in proportion to the links' torques, each with the inertias of the fit before: they converge."""


def with_found_inertias(
    model: Model,
    recordings: Sequence[Labelled],
    resolved: ResolvedPreparation,
    settings: Settings,
    without: Collection[tuple[str, str]] = (),
    drawn: Callable[[Estimate, Equations], Estimate] | None = None,
) -> Model:
    """Return the model with the inertial parameters that its recordings show, if an effect is in proportion to them.

    The first are those of the model without such effects; every fit with them gives better ones. A payload's are found
    with them, for the rows with it; where inertias of the arm are given, it alone. A model without such an effect, or
    with all of them given, is returned as it is.

    Args:
        model: The model.
        recordings: The recordings to fit.
        resolved: Their preparation.
        settings: Robust weights, if any, and threads.
        without: Equations that are left out.
        drawn: Returns an estimate, whose sigmas are those that correlated noise leaves, drawn to what is trusted: free
            links beside many effects are no arm's. Not the first, whose model lacks effects. None: data alone count.

    Raises:
        EstimateError: If the model has such an effect and no inertias, or the payload cannot be told from the arm, or
            moments not from springs.
    """
    dependent, given = model.dependent_effects, model.friction.inertias
    if not dependent or (given and (model.payload != "paired" or not given.keys().isdisjoint(PAYLOAD_NAMES))):
        return model
    if given:
        _check_payload_is_apart(dependent[0], recordings)
    if "inertia" not in model.effects:
        raise EstimateError(
            f"effect '{dependent[0]}' ({EFFECTS[dependent[0]].summary}) is in proportion to torques of the links, "
            "which are not in the model; add inertia to --effects"
        )
    if "tilt" in dependent and not shows_moments(equations_of(model, without=without)):
        raise EstimateError(
            "effect 'tilt' turns first moments, which these torques do not tell from the springs of the arm; leave it "
            "away, and give gravity as it is in the frame of the base with --gravity"
        )
    others = tuple(effect for effect in model.effects if effect not in dependent)
    found = model if given else replace(model, effects=others)
    for _ in range(PASSES):
        equations = equations_of(found, without=without)
        sources, observations, estimate = weighted_fit(equations, recordings, resolved, settings)
        if drawn is not None and found.dependent_effects:
            estimate = drawn(with_correlated_noise(sources, estimate, observations).estimate, equations)
        shown = inertias_of(found, estimate)
        found = model.with_inertias({**given, **payload_part(shown)} if given else shown)
    return found


def payload_part(inertias: Mapping[str, float]) -> dict[str, float]:
    """Return those inertial parameters that are a payload's."""
    return {name: value for name, value in inertias.items() if name in PAYLOAD_NAMES}


def without_payload_part(friction: FrictionConstants) -> FrictionConstants:
    """Return the constants of friction without the inertial parameters of a payload."""
    own = {name: value for name, value in friction.inertias.items() if name not in PAYLOAD_NAMES}
    return replace(friction, inertias=MappingProxyType(own))


def _check_payload_is_apart(effect: str, recordings: Sequence[Labelled]) -> None:
    if all(one.payload for _, one in recordings):
        raise EstimateError(
            f"effect '{effect}' ({EFFECTS[effect].summary}) depends on the payload's torques, and recordings with it "
            "alone do not tell them from the arm's; give recordings without payload too, or find the payload with "
            "steelyard payload"
        )


def check_motion(sources: Sequence[RowSource]) -> None:
    """Refuse recordings in which a joint never moves at all, unless its equations are left out already."""
    judged = {joint for _, joint in sources[0].equations.kinds_joints}
    still = judged.intersection(*(source.still_joints for source in sources))
    if still:
        joint = sorted(still)[0]
        raise EstimateError(
            f"joint '{joint}' never moves in any recording: its friction and inertia are not identifiable; record "
            f"motion of it, or identify the others alone with --lock {joint}=POSITION, where it was held"
        )


def weighted_fit(
    equations: Equations, recordings: Sequence[Labelled], resolved: ResolvedPreparation, settings: Settings
) -> tuple[Sequence[RowSource], Observations, Estimate]:
    """Return the rows of recordings, their factors and weighted least squares of them; robust if settings say so."""
    sources = sources_of(recordings, equations, resolved)
    observations = reduce_rows(sources, threads=settings.threads)
    check_motion(sources)
    plain = weighted(observations, stacked_system(observations, equations.names).columns)
    if settings.robust is None:
        return sources, observations, plain
    robust = robust_fit(sources, plain, settings.robust, threads=settings.threads)
    return robust.sources, robust.observations, robust.estimate


def inertias_of(model: Model, estimate: Estimate) -> dict[str, float]:
    """Return what effects in proportion to torques of the links are computed from: inertial parameters and tilt.

    A payload's are among them. Values are those of base columns, others are 0.
    """
    inertial = inertial_names(model)
    named = zip(estimate.columns, estimate.values, strict=True)
    return {name: float(value) for name, value in named if name in inertial}


def inertial_names(model: Model) -> set[str]:
    """Return the names of inertial parameters of arm, drives and payload, and of the components of a tilt."""
    return {
        one.name
        for one in model.parameters
        if one.effect in ("inertia", "Ia", "payload") or one.symbol == "Iac" or one.name in ("gx", "gy", "gz")
    }
