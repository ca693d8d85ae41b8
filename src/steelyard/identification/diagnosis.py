"""Faults of a log and its set-up that a model of the arm shows: what ``steelyard check`` says before any fit.

Gross faults are looked for first: reversed signs, exchanged columns, wrong units, another mounting, gravity that a
driver has taken out. Where one is found, finer tests would judge the wrong thing and wait until it is mended
(:mod:`steelyard.identification.fine_faults`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..judge import Plausibility, plausible_rows
from ..model import Model
from ..progress import Stage, no_stages
from ..recording import RecordingsLike, load_recordings
from ..robot import AnyRobot, load_robot
from ..text import short_repr
from .findings import log_findings
from .fine_faults import (
    FINE_TESTS,
    WRONG_SCALE,
    Diagnosed,
    other_mounting_found,
    tested_set_up,
)
from .hypotheses import likely_cause, log_fault_found, wrong_stamps
from .inputs import Inputs, labels_of, model_of, settings_of, without_locked
from .log_faults import LogFault
from .payload_body import FileScale, scales_by_joint
from .plain_fit import PlainFit
from .settings import Settings

SMALL_RESIDUAL = 0.1
"""Relative residual below which nothing gross is looked for, unless parameters are impossible."""
ALIKE = 1.6
"""Factors that differ by less than this are one and the same."""
EXPLAINED = 0.3
"""Least part of a joint's torque that the file's inertias explain beyond friction, for its scale to say something."""
FAR_GAIN = 1.5
"""A torque that is this much larger or smaller than those of other joints imply may be that of another column."""
NOTICED = 0.01
"""The same, where the scales of all joints are wrong in the same direction."""
OF_ONE_RECORDING = ("tilt", "joint_zero", "torque_gain", "torque_unit", "position_scale")
"""Errors of the set-up that, of one recording alone, are why recordings disagree."""
CERTAIN = 5.0
"""Standard deviations of a delay from none beside another fault, which leaves residuals that are not noise."""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the model shows of recordings.

    Attributes:
        findings: The worst first.
        residual: Relative residual of the plain fit, root mean square over joints; NaN if nothing could be fitted.
    """

    __repr__ = short_repr

    findings: tuple[Diagnosed, ...]
    residual: float

    @property
    def is_pointless(self) -> bool:
        """Whether a fit is pointless before a finding is mended."""
        return any(one.severity == "bad" for one in self.findings)


def diagnose(
    robot: AnyRobot, recordings: RecordingsLike, settings: Settings | None = None, *, stage: Stage = no_stages
) -> Diagnosis:
    """Return what a model of the arm shows of recordings: faults of the set-up, of the log and of the motion.

    Args:
        robot: The arm, its catalogue name or the path of its file.
        recordings: Recordings, or the paths of their logs.
        settings: Choices of the model and the preparation; the defaults if not given.
        stage: Called with the stage name; returns a progress callback.

    Raises:
        SteelyardError: If the recordings cannot be fitted at all; the message says why.

    Example:
        >>> sin, cos = [[0.6, 0.2], [0.9, 0.3]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> exact = steelyard.simulate("scara_2r", motion, steelyard.Experiment(record_rate=100))
        >>> [one.code for one in steelyard.diagnose("scara_2r", steelyard.recording_of(exact)).findings][:2]
        ['computed_torque', 'commanded_position']
    """
    robot, settings = load_robot(robot), settings_of(settings)
    stage("reading")
    given = load_recordings(robot, recordings)
    labels = labels_of(given)
    moving = [without_locked(one, label, settings.lock) for label, one in zip(labels, given, strict=True)]
    labelled = tuple(zip(labels, moving, strict=True))
    stage("preparing")
    model = model_of(robot, labelled, (), settings)
    dead = log_findings(model, Inputs(labelled, ()), settings)[1]
    fit = PlainFit(model, labelled, settings, dead)
    stage("looking for gross faults")
    found = [*_gross(fit)]
    # A tilted base may look like another gain of a joint that gravity does not pull at else.
    if not any(one.severity == "bad" and one.code != "gain_changed" for one in found):
        stage("testing base, zeros, scales and gains")
        errors, turned = tested_set_up(fit)
        found += errors
        for name, test in FINE_TESTS.items():
            stage(name)
            found += test(turned)
        found = _without_feigned(found)
        if any(one.code in ("torque_gain", "torque_unit") and _is_far(one.value) for one in found):
            # Exchanged or reversed columns may bend one joint's torques into a multiple of what the others imply.
            stage("looking for exchanged columns")
            cause = _log_cause(fit)
            found = found if cause is None else [log_fault_found(cause)]
        if all(one.severity == "info" for one in found):
            found += _implausible(fit)
    order = ("bad", "warning", "info")
    return Diagnosis(tuple(sorted(found, key=lambda one: order.index(one.severity))), fit.residual)


def _without_feigned(found: Sequence[Diagnosed]) -> list[Diagnosed]:
    """Return the findings without those that another one feigns.

    Recordings disagree for what one of them has alone. A gain that explains more than friction does changes friction
    too. Wrong torques leave residuals in which a delay may be seen: of the same joint it is none, of others it must be
    certain.
    """
    severe = [one for one in found if one.severity != "info"]
    others = [one for one in severe if one.code != "delay"]

    def is_feigned(one: Diagnosed) -> bool:
        if one.code == "disagree":
            return any(other.recording and other.code in OF_ONE_RECORDING for other in severe)
        if one.code == "friction_drift":
            return any(other.code == "gain_changed" and other.joint == one.joint for other in severe)
        if one.code != "delay" or not others:
            return False
        return any(one.joint and other.joint == one.joint for other in others) or _sigmas(one) <= CERTAIN

    return [one for one in found if not is_feigned(one)]


def _sigmas(delay: Diagnosed) -> float:
    """Return by how many standard deviations a delay differs from none."""
    assert delay.value is not None
    assert delay.interval is not None
    return abs(delay.value) / max((delay.interval[1] - delay.interval[0]) / (2 * 1.96), 1e-300)


def _gross(fit: PlainFit) -> Iterator[Diagnosed]:
    """Yield faults with which a fit is pointless."""
    equations, observations = fit.equations, fit.observations
    other = fit.gravity_fits.other_mounting
    if other is not None and other.is_far:
        yield other_mounting_found(other)
        return
    scales = scales_by_joint(equations, observations, fit.undeclared_load)
    mounting = fit.gravity_fits.best()
    # Gravity that pulls otherwise makes all torques unlike those of the file too; a unit makes no mounting better.
    common = None if mounting else _common_scale([one for one in scales if one.explained >= NOTICED])
    if common is not None:
        yield _wrong_unit("", "", common, fit.model)
        return
    plausible = fit.plausible
    suspicious = bool(plausible.material) or any(
        joint.relative_percent > 100 * SMALL_RESIDUAL
        for joint in fit.fitted.joints
        if joint.joint not in plausible.hidden
    )
    cause = None
    if suspicious and (mounting is None or mounting.residual > SMALL_RESIDUAL):
        cause = _log_cause(fit)
    # A load makes the torques of the last joints larger too, but the fit stays good with it.
    too_strong = [one.joint for one in _beyond_effort(plausible, fit.settings)]
    wrong = [one for one in scales if one.explained >= (NOTICED if one.joint in too_strong else EXPLAINED)]
    scaled = [one for one in wrong if suspicious and not 1 / WRONG_SCALE < abs(one.ratio) < WRONG_SCALE]
    if scaled and (stamps := wrong_stamps(fit)):
        # Accelerations of stamps that are too short make torques too small where little gravity pulls.
        yield from stamps
        return
    if cause is not None and scaled and cause.misfit > SMALL_RESIDUAL:
        cause = None
    if cause is not None and (mounting is None or cause.misfit < mounting.residual):
        yield log_fault_found(cause)
    elif mounting is not None:
        gravity = {} if mounting.is_removed else {"identify.gravity": list(mounting.gravity)}
        yield Diagnosed(
            "gravity_removed" if mounting.is_removed else "mounting", "bad", mounting.text, mounting.remedy,
            value=mounting.ratio, unit="1", fix=gravity,
        )  # fmt: skip
    else:
        yield from (_wrong_unit(one.joint, one.kind, one.ratio, fit.model) for one in scaled)
    if cause is None:
        explained = [one.joint for one in scaled] if mounting is None else []
        yield from (one for one in _beyond_effort(plausible, fit.settings) if one.joint not in explained)
    # Beside a gross fault only a payload of some recordings is no consequence of it.
    is_gross = cause is not None or mounting is not None or bool(scaled)
    yield from (one for one in _recordings(fit) if not is_gross or one.code == "undeclared_payload")


def _is_far(gain: float | None) -> bool:
    return gain is not None and not 1 / FAR_GAIN < gain < FAR_GAIN


def _log_cause(fit: PlainFit) -> LogFault | None:
    hidden = fit.plausible.hidden
    return likely_cause(fit.short, fit.equations, fit.resolved, fit.observations, fit.fitted.extent, hidden)


def _implausible(fit: PlainFit) -> Iterator[Diagnosed]:
    """Yield what makes the verdict on the plain fit poor, where no fault explains it."""
    for row in plausible_rows(fit.plausible, fit.settings.thresholds):
        if row.grade == "poor":
            text = f"a plain fit is not plausible, and no fault that is tested for explains it: {row.sentence}"
            yield Diagnosed("implausible", "warning", text, row.remedy, value=row.value)


def _beyond_effort(plausible: Plausibility, settings: Settings) -> Iterator[Diagnosed]:
    """Yield a joint whose torque is far beyond its effort limit."""
    if plausible.effort is not None and plausible.effort[1] > settings.thresholds.effort_fair:
        joint, ratio = plausible.effort
        yield Diagnosed(
            "effort_limit", "bad", f"the torque of {joint} is up to {ratio:.3g} times its effort limit",
            "check the unit and the gain of the torque columns (mA or A, N mm or N m, before or after the gears)",
            joint, value=ratio, unit="1",
        )  # fmt: skip


def _common_scale(scales: Sequence[FileScale]) -> float | None:
    """Return the factor of all torques against the robot file where they are all far too large, or far too small."""
    ratios = np.array([abs(one.ratio) for one in scales])
    if len(ratios) == 0 or not ratios.all():
        return None
    sides = np.log(ratios) / np.log(WRONG_SCALE)
    return float(np.exp(np.median(np.log(ratios)))) if (sides > 1).all() or (sides < -1).all() else None


def _recordings(fit: PlainFit) -> Iterator[Diagnosed]:
    """Yield a recording that is of another arm than the others: another payload or gain."""
    found = fit.disagreement
    if found is None or found.cause.startswith("friction"):
        return  # the test of friction tells how much, of which joints
    what = found.cause.partition(" ")[0]
    codes = {
        "payload": "undeclared_payload",
        "gain": "gain_changed",
        "sign": "torque_sign",
        "friction": "friction_drift",
    }
    code = codes.get(what, "disagree")
    joint = found.cause.partition("'")[2].rstrip("'")
    is_bad = what in ("payload", "sign") or abs(found.gain - 1) > 0.5
    value = found.gain if what in ("gain", "sign") else None
    yield Diagnosed(
        code, "bad" if is_bad else "warning", found.text, found.remedy, joint, found.recording, value, unit="1"
    )


def _wrong_unit(joint: str, kind: str, ratio: float, model: Model) -> Diagnosed:
    """Return a torque, or all of them, that is far from what the robot file's inertias explain."""
    size, gear = abs(ratio), abs((model.robot.joint(joint).gear_ratio if joint else None) or 0.0)
    known = [(1e3, "in thousandths"), (1e2, "in hundredths"), (1e-3, "in thousands"), (1 / 9.81, "in kgf m")]
    known += [] if joint else [(np.pi / 180, "right, and positions in degrees")]
    names = [name for factor, name in known if abs(np.log(size / factor)) < np.log(ALIKE)]
    if gear > WRONG_SCALE and abs(np.log(size * gear)) < np.log(ALIKE):
        names.insert(0, f"before the gears (ratio {gear:g})")
    whose = f"the {kind} torque of {joint} is" if joint else "the torques of all joints are"
    hint = f": {' or '.join(names)}?" if names else ""
    return Diagnosed(
        "torque_unit", "bad", f"{whose} {ratio:.3g} times what the robot file's inertias explain{hint}",
        "check unit, side, gain and gear_ratio of the torques in [recording], and the unit of the positions; or the "
        "file is of another robot", joint, value=ratio, unit="1",
    )  # fmt: skip
