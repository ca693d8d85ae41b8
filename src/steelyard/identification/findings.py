"""Findings of the log checks, graded by how much each of them degrades an identification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..errors import EstimateError
from ..estimate import Estimate
from ..judge import Evaluation, UnseenPattern, combined, hardly_moving
from ..model import Model
from ..observe import Equations, RowSource, channel_of, resolve_preparation
from ..recording import Finding, Recording, check_recording
from ..recording.record import Severity
from ..text import with_remedy
from ..verdict import Grade, Reason, first_named
from .inputs import Inputs
from .settings import FACTOR_METHODS, Settings

LogSeverity = Literal["note", "warning", "severe"]

FEW_ROWS, MANY_ROWS = 0.01, 1 / 3
"""Parts of the rows: fewer than the first left out do no harm; more than the second leave too little to trust."""
MUCH_LOST = 0.1
"""Part of the time that may lie in gaps."""
LATE_VELOCITY = 0.01
"""Delay of recorded velocities from which they spoil friction and inertia, where they are used [s]."""
MUCH_CLIPPED = 0.05
"""Part of a joint's samples at a clipped torque beyond which the fit follows the clipping."""
FAR_OUTSIDE = 0.1
"""Part of a joint's range beyond its limits that is more than a rounded limit."""

FAR_WORSE = 2.0
"""A validation recording whose relative error is so many times that of the others together is named."""

_NAMED = 4
_UNSEEN = 3
_ROWS_LEFT_OUT = (
    "not_a_number", "infinite", "garbage_lines", "truncated_lines", "duplicate_stamp", "backward_stamp",
)  # fmt: skip
_SIDES = {"motor": ("motor",), "joint": ("joint",), "both": ("motor", "joint"), "difference": ("motor", "joint")}


@dataclass(frozen=True)
class Diagnosed:
    """A fault, or something worth knowing, that the model shows.

    Attributes:
        code: Name of it: ``torque_sign``, ``tilt``, ``delay`` ...
        severity: ``info``, ``warning``, or ``bad``: a fit is pointless before it is mended.
        text: What was found, where and how much, one sentence.
        remedy: What to do about it.
        joint: Joint it concerns; empty for all.
        recording: Label of the recording it concerns; empty for all.
        value: The number behind it, None if there is none.
        interval: Its 95 % interval, None if it has none.
        unit: Unit of both.
        fix: Keys of a configuration file that correct it, with tables: ``identify.delay``; empty if none can.
    """

    code: str
    severity: Severity
    text: str
    remedy: str
    joint: str = ""
    recording: str = ""
    value: float | None = None
    interval: tuple[float, float] | None = None
    unit: str = ""
    fix: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LogFinding:
    """What a check found in a log, and how far it spoils the result.

    Attributes:
        recording: Label of the recording.
        severity: ``note``: no harm; ``warning``: the result is fair at best; ``severe``: it cannot be trusted.
        kind: Name of the finding: ``concatenated``, ``dead_column``, ``spikes``, ``gap``, ``not_a_number`` ...
        joint: Name of the joint it concerns, empty for all.
        text: What was found and how much.
        remedy: What to do about it.
        count: How many samples, rows or steps.
    """

    recording: str
    severity: LogSeverity
    kind: str
    joint: str
    text: str
    remedy: str
    count: int = 0


def finding_reasons(findings: Sequence[LogFinding]) -> list[Reason]:
    """Return what the findings mean for the verdict: poor where one is severe, fair at best where one is a warning."""
    reasons = []
    effects: dict[LogSeverity, tuple[Grade, str]] = {
        "severe": ("poor", "the result cannot be trusted"), "warning": ("fair", "the result is fair at best"),
    }  # fmt: skip
    for severity, (grade, effect) in effects.items():
        alike = [one for one in findings if one.severity == severity]
        if not alike:
            continue
        joints = [f" of {one.joint}" if one.joint else "" for one in alike]
        named = [
            f"{f.kind.replace('_', ' ')}{joint} in '{f.recording}'" for f, joint in zip(alike, joints, strict=True)
        ]
        text = (
            f"{effect}, for what the checks found in the logs: {first_named(list(dict.fromkeys(named)), most=_NAMED)}"
        )
        reasons.append(Reason(text, alike[0].remedy, "log findings", grade, "plausible"))
    return reasons


def with_findings(error: EstimateError, findings: Sequence[LogFinding]) -> EstimateError:
    """Return the error of a fit that failed, with the first severe finding in the logs, which may be why."""
    first = next((one for one in findings if one.severity == "severe"), None)
    if first is None:
        return error
    found = f"the checks found in '{first.recording}' that {with_remedy(first.text, first.remedy)}"
    return EstimateError(f"{error}. Mend first what may be the cause: {found}")


def log_findings(
    model: Model, inputs: Inputs, settings: Settings
) -> tuple[tuple[LogFinding, ...], tuple[tuple[str, str], ...]]:
    """Return what the checks found in training and validation recordings, graded for this model, the worst first.

    The second result are the equations (torque kind, joint) that dead columns leave without a measurement.

    Raises:
        EstimateError: If no equation is left, or the method needs one that a dead column leaves out.
    """
    given = [*inputs.training, *(() if inputs.held_out else inputs.unseen)]
    found = [(label, recording, _findings(model, recording)) for label, recording in given]
    training = [findings for (_, _, findings), _ in zip(found, inputs.training, strict=False)]
    training_labels = {label for label, _ in inputs.training}
    still = _never_moving(training)
    graded: list[LogFinding] = []
    dead: set[tuple[str, str]] = {row for row in model.rows if row[1] in still}
    for label, template, findings in found:
        used = {side: channel_of(template, side, label).name for side in _SIDES[model.measured]}
        is_training = label in training_labels
        is_robust = settings.robust is not None and is_training
        for finding in findings:
            own = _graded(finding, label, template, used, still, model, settings)
            own = own if is_training else _of_unused(own, finding)
            graded += _lessened(own, finding, template, settings) if is_robust else own
            dead |= _dead_equations(finding, used, model)
    _check_enough(model, settings, dead, graded)
    order = {"severe": 0, "warning": 1, "note": 2}
    return tuple(sorted(graded, key=lambda one: order[one.severity])), tuple(sorted(dead))


def _of_unused(graded: Iterable[LogFinding], finding: Finding) -> Iterator[LogFinding]:
    """Yield findings of a validation recording: one that stands still is not used, so that it does no harm."""
    for one in graded:
        if one.kind != "stands_still":
            yield one
        elif finding.severity != "bad":  # else `moving_sources` says that it is not used
            yield replace(one, severity="note")


def _lessened(
    graded: Iterable[LogFinding], finding: Finding, template: Recording, settings: Settings
) -> Iterator[LogFinding]:
    """Yield findings, spikes of a torque by one step less severe where robust weights take care of them.

    They weight decimated rows: where most of these have a spike in them, none stands out.
    """
    lesser: dict[LogSeverity, LogSeverity] = {"severe": "warning", "warning": "note", "note": "note"}
    for one in graded:
        if one.kind == "spikes" and finding.channel not in ("q", "qd"):
            factor = resolve_preparation(settings.preparation, [template]).decimation
            spoilt = 1 - (1 - min(1.0, finding.count / max(1, template.samples))) ** factor
            if spoilt > MANY_ROWS:
                remedy = f"{one.remedy}; or identify with --decimation 1: decimation by {factor} leaves a spike in "
                one = replace(one, remedy=f"{remedy}{100 * spoilt:.0f} % of the rows, too many for --robust")
            else:
                one = replace(one, severity=lesser[one.severity])
        yield one


def _findings(model: Model, recording: Recording) -> Sequence[Finding]:
    """Return the findings of a recording's own checks; one that was made in memory is checked now."""
    joints = model.robot.joint_names
    if recording.findings or recording.joints != joints:
        findings = recording.findings  # a recording of another robot is refused where rows are made of it
    else:
        findings = check_recording(model.robot, recording)
    return [finding for finding in findings if not finding.joint or finding.joint in joints]


def _never_moving(training: Sequence[Sequence[Finding]]) -> dict[str, float]:
    """Return joints whose position is one and the same number in all training recordings, with that number."""
    found = []
    for findings in training:
        constant = [finding for finding in findings if finding.kind == "constant" and finding.channel == "q"]
        found.append({finding.joint: finding.values["value"] for finding in constant})
    joints = set.intersection(*(set(one) for one in found)) if found else set()
    return {joint: found[0][joint] for joint in joints}


def _dead_equations(finding: Finding, used: dict[str, str], model: Model) -> set[tuple[str, str]]:
    if finding.kind != "constant" or finding.channel not in used.values():
        return set()
    sides = {side for side, name in used.items() if name == finding.channel}
    return {row for row in model.rows if row[1] == finding.joint and (row[0] in sides or row[0] == "difference")}


def _check_enough(model: Model, settings: Settings, dead: set[tuple[str, str]], graded: Sequence[LogFinding]) -> None:
    if not dead:
        return
    first = next(one for one in graded if one.kind == "dead_column")
    if len(dead) == len(model.rows):
        raise EstimateError(f"no torque is left to identify from: {first.text}; {first.remedy}")
    if settings.method not in FACTOR_METHODS:
        raise EstimateError(
            f"{first.text}, and method '{settings.method}' needs all joints; {first.remedy}, or use one of "
            f"{', '.join(FACTOR_METHODS)}"
        )


def _graded(
    finding: Finding,
    label: str,
    template: Recording,
    used: dict[str, str],
    still: dict[str, float],
    model: Model,
    settings: Settings,
) -> Iterator[LogFinding]:
    """Yield the finding as one of the identification; what is merely good to know is left out."""
    kind, text, remedy = finding.kind, finding.text, finding.remedy
    is_position = finding.channel == "q"
    if kind == "constant" and (not is_position or finding.joint in still):
        kind = "dead_column" if is_position or finding.channel in used.values() else kind
        if kind == "dead_column":
            text += f"; the equations of {finding.joint} are left out"
        if is_position:
            remedy += f"; if the joint was held, say so with --lock {finding.joint}={still[finding.joint]:.6g}"
    elif finding.severity == "info" and kind != "spikes":
        return
    in_use = is_position or finding.channel in ("time", "", *used.values())
    if finding.channel == "qd":
        in_use = settings.preparation.velocity == "recorded"
    if in_use:
        severity = _severity(finding, kind, template.samples, model)
    elif kind == "constant":
        return
    else:
        severity = "warning" if kind == "velocity" else "note"
    yield LogFinding(label, severity, kind, finding.joint, text, remedy, finding.count)


_NOTED = (
    "jitter", "quantisation", "filtered_differently", "resonance", "mains", "hardly_moving", "alike",
)  # fmt: skip
"""Warnings of `check` whose harm the identification measures itself: in sigmas, delays and residuals."""


def _severity(finding: Finding, kind: str, samples: int, model: Model) -> LogSeverity:
    if kind == "stands_still":
        return "warning" if finding.severity == "bad" else "note"  # samples at rest are left out
    if kind == "dead_column" or finding.severity == "bad":
        return "severe"
    if kind in _ROWS_LEFT_OUT:
        part = finding.count / max(1, finding.count + samples)
        return "note" if part < FEW_ROWS else "warning" if part <= MANY_ROWS else "severe"
    if kind == "spikes":
        return "note" if finding.severity == "info" else "warning"
    if kind == "velocity_delay":
        return "warning" if abs(finding.values["delay"]) >= LATE_VELOCITY else "note"
    if kind == "gap":
        lost = finding.count / max(1, finding.count + samples)
        return "warning" if lost > MUCH_LOST else "note"
    if kind == "outside_limits":
        return "warning" if _far_outside(finding, model) else "note"
    if kind == "saturated":
        return "severe" if finding.values["share"] > MUCH_CLIPPED else "warning"
    if kind == "torque_ratio":
        return "severe" if model.measured in ("both", "difference") else "warning"
    return "note" if kind in _NOTED else "warning"


def _far_outside(finding: Finding, model: Model) -> bool:
    limits = model.robot.joint(finding.joint).limits
    beyond = max(limits.lower - finding.values["min"], finding.values["max"] - limits.upper)
    return beyond > FAR_OUTSIDE * (limits.upper - limits.lower)


def moving_sources(sources: Sequence[RowSource], held_out: bool) -> tuple[list[RowSource], list[LogFinding]]:
    """Return the validation recordings in which a joint moves, and a finding for each other one.

    Raises:
        EstimateError: If none of them moves.
    """
    moving, still = [], []
    for source in sources:
        for _ in source:  # the speeds are known after a pass
            pass
        (moving if set(source.still_joints) < set(source.equations.joints) else still).append(source)
    if not moving:
        what = f"'{still[0].label}' stands" if len(still) == 1 else f"{', '.join(one.label for one in still)} stand"
        raise EstimateError(
            f"validation recording{'s' if len(still) > 1 else ''} {what} still: nothing can be judged on "
            f"{'them' if len(still) > 1 else 'it'}; give one that moves with --validate"
            + (", or hold out a larger part with --hold-out" if held_out else "")
        )
    found = [
        (one.label, "", f"validation recording '{one.label}' stands still: it is not used, nothing can be judged")
        for one in still
    ]
    for joint in sorted(set.intersection(*(set(one.still_joints) for one in moving))):
        text = f"{joint} stands still in every validation recording: its torque is not judged"
        found.append((moving[0].label, joint, text))
    remedy = "give a recording that moves it with --validate"
    return moving, [LogFinding(label, "note", "stands_still", joint, text, remedy) for label, joint, text in found]


def validation_reasons(train: Evaluation, unseen: Evaluation, good: float) -> list[Reason]:
    """Return which of several validation recordings hardly move, or are predicted far worse than the others.

    Args:
        train: Errors of the fit.
        unseen: Errors on all validation recordings.
        good: Relative error that is good, however small the others' are [%].
    """
    if len(unseen.parts) < 2:
        return []
    still = {one.label: hardly_moving(train, one) for one in unseen.parts}
    moving = [one for one in unseen.parts if 2 * len(still[one.label]) <= len(one.joint_names)]
    said = [
        f"'{one.label}' hardly moves {first_named(still[one.label])}, its error is of holding torque"
        for one in unseen.parts
        if one not in moving and moving
    ]
    for one in moving if len(moving) > 1 else ():
        others = combined([other for other in moving if other is not one]).relative_percent
        if one.relative_percent > max(good, FAR_WORSE * others):
            said.append(
                f"'{one.label}' has a relative error of {one.relative_percent:.3g} %, the others {others:.3g} %"
            )
    if not said:
        return []
    text = f"validation recordings differ: {'; '.join(said[:_NAMED])}"
    remedy = "look at each by itself (the table of errors by recording); what is peculiar to it the fit does not know"
    return [Reason(text, remedy, "validation")]


def unseen_reasons(patterns: Sequence[UnseenPattern]) -> list[Reason]:
    """Return the strongest patterns of unseen motion that the fit does not show, in the words of those of the fit."""
    return [Reason(one.text, one.pattern.remedy, "validation residuals") for one in patterns[:_UNSEEN]]


_SCALE_SIGMAS, _SCALE_OFF, _NO_LAW = 4.0, 0.02, 0.5
"""A balancer's scale that is farther from the file's than this many sigmas and this part of it is worth a sentence; one
that differs by more than the last part is not that of the file's law."""


def balancer_reasons(equations: Equations, estimate: Estimate) -> Iterator[Reason]:
    """Yield which balancers have another scale than the robot file says."""
    robot, joints = equations.model.robot, {one.name: one.joint for one in equations.model.parameters}
    for name, value, sigma in zip(estimate.columns, estimate.values.tolist(), estimate.sigma.tolist(), strict=True):
        if not name.startswith("Sb") or not any(one.joint == joints[name] for one in robot.balancers):
            continue
        stated = robot.values[name]
        off = abs(value - stated)
        if off <= max(_SCALE_SIGMAS * sigma, _SCALE_OFF * abs(stated)):
            continue
        yield Reason(
            f"the data contradict the balancer of '{joints[name]}': its scale is {value:.3g} +- {sigma:.1g}, the robot "
            f"file says {stated:.3g}",
            "correct sign, unit and size of its law in the robot file ([[balancer]]); take it out if the arm has none",
            "balancer",
            "fair" if off > _NO_LAW * abs(stated) else None,
            "plausible",
        )
