"""Faults of a log and its set-up that a model of the arm shows: what ``steelyard check`` says before any fit is trusted.

Gross faults are looked for first: reversed signs, exchanged columns, wrong units, another mounting, gravity that a
driver has taken out. Where one is found, finer tests would judge the wrong thing and wait until it is mended. Then
come delays, a tilted base, joint zeros and gains, payloads, friction that changes, and what the motion cannot show.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..estimate import stacked_system, weighted, with_correlated_noise
from ..judge import combined, disagreement, estimate_delays, evaluate, plausibility, recordings_agree
from ..model import Model
from ..observe import (
    Equations,
    Observations,
    ResolvedPreparation,
    RowSource,
    busiest_part,
    equations_of,
    reduce_rows,
    resolve_preparation,
)
from ..progress import Stage, no_stages
from ..recording import RecordingsLike, Severity, load_recordings
from ..robot import AnyRobot, load_robot
from ..text import short_repr
from ..verdict import first_named
from .findings import log_findings
from .hypotheses import LogFault, likely_cause
from .inputs import Inputs, Labelled, labels_of, model_of, settings_of, sources_of, without_locked
from .mounting import REMOVED, better_mounting
from .payload_gains import gains_used
from .settings import Settings
from .setup_faults import (
    BLOCKS,
    FileScale,
    SetupError,
    friction_changes,
    payload_beyond_file,
    scales_by_joint,
    setup_errors,
)

LOOKED_AT = 40_000
"""Samples of each recording that are fitted: those in which all joints move most."""
SMALL_RESIDUAL = 0.1
"""Relative residual below which nothing gross is looked for, unless parameters are impossible."""
WRONG_SCALE = 2.5
"""A torque that is by this factor larger or smaller than the robot file's inertias explain is in another unit."""
EXPLAINED = 0.5
"""Least part of a joint's torque that the file and friction explain, for its scale to say something."""
COMPUTED = 5e-4
"""Torques that follow from the motion to this part of their size were computed, not measured."""
LEAST_DELAY = 0.001
"""Shorter delays are not worth a sentence [s]."""
LEAST_PAYLOAD = 0.05
"""Lighter loads than this part of the robot file's arm may be cables."""
WEAK = 100.0
"""Relative sigma from which the motion does not show a parameter [%]."""
NO_NOISE = 1e-8
"""Positions with less noise than this were commanded, or computed [rad or m]."""


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
        fix: What a configuration file has to say to correct it, by table; empty if no configuration can.
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
    fix: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


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
        >>> motion = steelyard.fourier([0, 0], [[0.6, 0.2], [0.9, 0.3]], [[0.1, 0.2], [0.2, 0.3]], 5.0)
        >>> run = steelyard.simulate("scara_2r", motion, steelyard.Experiment(record_rate=100))
        >>> [one.code for one in steelyard.diagnose("scara_2r", steelyard.recording_of(run)).findings]
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
    doctor = _Doctor(model, labelled, settings, dead)
    stage("looking for gross faults")
    found = [*doctor.gross()]
    if not any(one.severity == "bad" for one in found):
        for name, tests in doctor.finer().items():
            stage(name)
            found += tests()
    order = ("bad", "warning", "info")
    return Diagnosis(tuple(sorted(found, key=lambda one: order.index(one.severity))), doctor.residual)


class _Doctor:
    """A plain fit of the busiest parts of recordings, and the tests that use it."""

    def __init__(
        self, model: Model, labelled: Sequence[Labelled], settings: Settings, dead: Collection[tuple[str, str]]
    ) -> None:
        self._model, self._settings, self._dead, self._whole = model, settings, dead, labelled
        self._short = tuple((label, busiest_part(one, LOOKED_AT)) for label, one in labelled)
        self._resolved: ResolvedPreparation = resolve_preparation(settings.preparation, [one for _, one in self._short])
        self._equations: Equations = equations_of(model, without=dead)
        self._sources: list[RowSource] = sources_of(self._short, self._equations, self._resolved)
        self._observations: Observations = reduce_rows(self._sources, blocks=BLOCKS, threads=settings.threads)
        columns = stacked_system(self._observations, self._equations.names).columns
        plain = weighted(self._observations, columns)
        noise = with_correlated_noise(self._sources, plain, self._observations)
        self._plain, self._estimate, self._noise = plain, noise.estimate, noise.noise
        cutoff = settings.evaluation_cutoff
        self._fitted = combined([evaluate(one, self._estimate, self._noise, cutoff) for one in self._sources])
        self.residual = self._fitted.relative_percent / 100

    # Gross faults: a fit is pointless with them.

    def gross(self) -> Iterator[Diagnosed]:
        """Yield faults with which a fit is pointless."""
        equations, observations = self._equations, self._observations
        scales = scales_by_joint(equations, observations)
        wrong = list(_scale_findings(scales, self._model))
        if wrong and len(wrong) == len([one for one in scales if one.explained >= EXPLAINED]):
            yield from wrong
            return
        plausible = plausibility(equations, self._estimate, observations, self._fitted, self._fitted)
        suspicious = bool(plausible.material) or any(
            joint.relative_percent > 100 * SMALL_RESIDUAL
            for joint in self._fitted.joints
            if joint.joint not in plausible.hidden
        )
        mounting = better_mounting(equations, self._short, self._resolved, self._settings.threads)
        cause = None
        if suspicious and (mounting is None or mounting.residual > SMALL_RESIDUAL):
            cause = likely_cause(
                self._short, equations, self._resolved, observations, self._fitted.extent, plausible.hidden
            )
        if cause is not None and (mounting is None or cause.misfit < mounting.residual):
            yield _log_fault(cause, self._model)
        elif mounting is not None:
            removed = mounting.direction == REMOVED
            text, remedy = mounting.text, mounting.remedy
            gravity = {} if removed else {"identify": {"gravity": list(mounting.gravity)}}
            yield Diagnosed(
                "gravity_removed" if removed else "mounting", "bad", text, remedy, value=mounting.ratio, fix=gravity
            )
        else:
            yield from wrong
        yield from self._recordings()

    def _recordings(self) -> Iterator[Diagnosed]:
        """Yield a recording that is of another arm than the others: another payload or gain."""
        repeated = recordings_agree(self._observations, self._sources, self._plain.columns)
        found = disagreement(self._observations, self._equations, repeated)
        if found is None:
            return
        what = found.cause.partition(" ")[0]
        code = {"payload": "undeclared_payload", "gain": "gain_changed", "sign": "torque_sign"}.get(what, "disagree")
        joint = found.cause.partition("'")[2].rstrip("'")
        is_bad = what in ("payload", "sign") or abs(found.gain - 1) > 0.5
        value = found.gain if what in ("gain", "sign") else None
        yield Diagnosed(
            code, "bad" if is_bad else "warning", found.text, found.remedy, joint, found.recording, value, unit="1"
        )

    # Finer tests, on an estimate that is not grossly wrong.

    def finer(self) -> dict[str, Any]:
        """Return the tests by the name of their stage."""
        return {
            "looking for computed signals": lambda: [*self._computed()],
            "looking for delays": lambda: [*self._delays()],
            "testing base, zeros and gains": lambda: [*self._setup()],
            "testing payloads": lambda: [*self._payload()],
            "testing friction": lambda: [*self._friction()],
            "looking for what the motion shows": lambda: [*self._weak()],
        }

    def _computed(self) -> Iterator[Diagnosed]:
        """Yield torques and positions that were computed or commanded, not measured."""
        exact = [one for one in self._fitted.joints if one.relative_percent < 100 * COMPUTED]
        if exact and len(exact) == len(self._fitted.joints):
            worst = max(one.relative_percent for one in exact)
            yield Diagnosed(
                "computed_torque", "warning",
                f"all torques follow from the motion to {worst:.2g} % of their size: they seem to be computed or "
                "commanded by a model, not measured",
                "record measured torques or currents; from computed ones only the controller's own model is found",
                value=worst, unit="%",
            )  # fmt: skip
        noise = self._resolved.signal_noise[: len(self._resolved.joints)]
        if np.all(noise < NO_NOISE):
            yield Diagnosed(
                "commanded_position", "warning",
                f"positions have no measurement noise (below {NO_NOISE:g} rad or m on every joint): they seem to be "
                "commanded or computed ones",
                "record measured positions; with commanded ones the tracking error goes into the parameters",
                value=float(noise.max()), unit="rad or m",
            )  # fmt: skip
        for label, recording in self._whole:
            same = recording.reference is not None and np.array_equal(recording.reference, recording.q)
            if same:
                yield Diagnosed(
                    "commanded_position", "bad", f"positions of '{label}' are the reference, number by number",
                    "declare the measured positions as q", recording=label,
                )  # fmt: skip

    def _delays(self) -> Iterator[Diagnosed]:
        delays = estimate_delays(self._sources, self._plain, None)
        if delays.has_common and abs(delays.common[0]) >= LEAST_DELAY:
            value, sigma = delays.common
            total = delays.corrected + value
            yield Diagnosed(
                "delay", "warning", f"torques are {_late(value)} against positions by {_ms(value, sigma)} on all joints",
                f"identify with {delays.remedy}, or mend the stamps", value=value,
                interval=(value - 1.96 * sigma, value + 1.96 * sigma), unit="s",
                fix={"identify": {"delay": float(f"{total:.5f}")}},
            )  # fmt: skip
            return
        for e in delays.certain:
            value, sigma = float(delays.delay[e]), float(delays.sigma[e])
            kind, joint = delays.equations[e]
            if abs(value) < LEAST_DELAY:
                continue
            yield Diagnosed(
                "delay", "warning",
                f"the {kind} torque of {joint} is {_late(value)} against its position by {_ms(value, sigma)}, those of "
                "other joints are not",
                f"check how it is stamped and filtered; identify with {delays.joint_remedy(e)}", joint, value=value,
                interval=(value - 1.96 * sigma, value + 1.96 * sigma), unit="s",
                fix={"identify": {"joint_delays": {joint: float(f"{value:.5f}")}}},
            )  # fmt: skip

    def _setup(self) -> Iterator[Diagnosed]:
        # Gains of currents that nobody knows differ by design: steelyard gains finds them.
        known = all(one.is_known for one in gains_used(self._sources))
        found = setup_errors(
            self._model, self._short, self._resolved, self._plain, self._settings, without=self._dead, gains=known
        )
        for one in found:
            yield {"tilt": self._tilt, "zero": self._zero, "gain": self._gain}[one.effect](one)

    def _tilt(self, one: SetupError) -> Diagnosed:
        gravity = np.array(self._model.robot.gravity)
        size = float(np.linalg.norm(gravity))
        turned = gravity.copy()
        for name, value in zip(one.names, one.values, strict=True):
            turned["xyz".index(name[1])] += value
        turned *= size / np.linalg.norm(turned)
        across = np.linalg.norm(one.values)
        angle = float(np.degrees(np.arctan2(across, size)))
        half = float(np.degrees(np.linalg.norm(np.array(one.values) * one.half_width) / across / size))
        vector = [float(f"{value:.4g}") for value in turned]
        flag = ",".join(f"{value:g}" for value in vector)
        return Diagnosed(
            "tilt", "warning", f"the base is tilted by {angle:.2g} +- {half:.1g} degrees against what the model says",
            f"measure the mounting; or identify with --gravity {flag} (or the effect tilt)", value=angle,
            interval=(angle - half, angle + half), unit="deg", fix={"identify": {"gravity": vector}},
        )  # fmt: skip

    def _zero(self, one: SetupError) -> Diagnosed:
        (value,), (half,) = one.values, one.half_width
        revolute = self._model.robot.joint(one.joint).kind == "revolute"
        factor, unit = (np.degrees(1.0), "degrees") if revolute else (1e3, "mm")
        return Diagnosed(
            "joint_zero", "warning",
            f"the zero of {one.joint} is off by {-factor * value:.3g} +- {factor * half:.2g} {unit}: its position reads "
            f"{'more' if value < 0 else 'less'} than it is",
            f"calibrate the arm (steelyard calibrate), or add {value:.4g} to its position: offset of q in [recording]",
            one.joint, value=-value, interval=(-value - half, -value + half), unit="rad" if revolute else "m",
            fix={"recording": {"q.offset": {one.joint: float(f"{value:.5g}")}}},
        )  # fmt: skip

    def _gain(self, one: SetupError) -> Diagnosed:
        (value,), (half,) = one.values, one.half_width
        ratio = 1 + value
        return Diagnosed(
            "torque_gain", "warning",
            f"the torque of {one.joint} is {ratio:.3g} +- {half:.2g} times what the torques of the other joints imply: "
            "its gear ratio, gain or unit is wrong, or it is of another kind",
            f"check gear_ratio, gain and unit of {one.joint} in the set-up", one.joint, value=ratio,
            interval=(ratio - half, ratio + half), unit="1",
        )  # fmt: skip

    def _payload(self) -> Iterator[Diagnosed]:
        """Yield a load that nobody declared, or one that was declared and is not there."""
        if self._model.payload == "none":
            body = payload_beyond_file(self._equations, self._estimate, self._model.robot)
            total = sum(body.mass for body in self._model.robot.bodies if body.inertia is not None)
            if body is not None and body[0] > max(4 * body[1], LEAST_PAYLOAD * total):
                mass, sigma = body
                yield Diagnosed(
                    "undeclared_payload", "warning",
                    f"the arm carries {mass:.2g} +- {1.96 * sigma:.1g} kg more at its end than the robot file has: a "
                    "tool or payload that is not declared",
                    'declare it (payload = "name" in [recording]) and record without it too, or add it to the robot '
                    "file; if there is none, the file is of another arm", value=mass,
                    interval=(mass - 1.96 * sigma, mass + 1.96 * sigma), unit="kg",
                )  # fmt: skip
            if not all(one.is_known for one in gains_used(self._sources)):
                yield Diagnosed(
                    "no_payload_run",
                    "info",
                    "the drives' gains are not known and no recording carries a payload: masses are known up to them",
                    "record the same motion without and with a weighed payload and run steelyard gains",
                )
            return
        if "mP" not in self._estimate.columns:
            return
        k = self._estimate.columns.index("mP")
        mass, sigma = float(self._estimate.values[k]), float(self._estimate.sigma[k])
        total = sum(body.mass for body in self._model.robot.bodies if body.inertia is not None)
        if mass < 3 * sigma or mass < 0.002 * total:
            yield Diagnosed(
                "payload_missing", "bad",
                f"a payload is declared, but the recordings that declare it show {mass:.2g} +- {1.96 * sigma:.1g} kg",
                "check which recordings were made with the payload, and declare it for these alone", value=mass,
                interval=(mass - 1.96 * sigma, mass + 1.96 * sigma), unit="kg",
            )  # fmt: skip

    def _friction(self) -> Iterator[Diagnosed]:
        for one in friction_changes(self._observations, self._equations, self._estimate):
            change, half = 100 * one.change, 100 * one.half_width
            if one.over_time:
                text = f"friction of {one.joint} changes by {change:+.2g} +- {half:.1g} % during '{one.recording}'"
                remedy = "warm the arm up before recording, and record its temperature"
            else:
                text = (
                    f"friction of {one.joint} is {change:+.2g} +- {half:.1g} % in '{one.recording}' against the others"
                )
                remedy = "record at one temperature, and identify recordings of different days apart"
            yield Diagnosed(
                "friction_drift", "warning", text, remedy, one.joint, one.recording, one.change,
                (one.change - one.half_width, one.change + one.half_width), "1",
            )  # fmt: skip

    def _weak(self) -> Iterator[Diagnosed]:
        """Yield which parameters the motion does not show."""
        names, estimate = self._equations.base.name_of, self._estimate
        missing = [name for name in self._equations.names if name not in estimate.columns]
        with np.errstate(divide="ignore"):
            relative = estimate.relative_sigma
        weak = [estimate.columns[k] for k in np.argsort(-relative) if relative[k] > WEAK]
        listed = [*missing, *weak]
        if listed:
            yield Diagnosed(
                "weak_parameters", "info",
                f"this motion does not show {len(listed)} of {len(self._equations.names)} base parameters (sigma above "
                f"their value): {first_named([names[name] for name in listed])}",
                "record a motion designed for them: steelyard design ROBOT", value=float(len(listed)),
            )  # fmt: skip


def _log_fault(fault: LogFault, model: Model) -> Diagnosed:
    """Return a fault that was tried and cures the estimate."""
    return Diagnosed(
        fault.code, "bad", fault.text, fault.remedy, ", ".join(fault.joints) if len(fault.joints) < 3 else "",
        value=fault.misfit, fix=fault.fix,
    )  # fmt: skip


def _scale_findings(scales: Sequence[FileScale], model: Model) -> Iterator[Diagnosed]:
    """Yield torques that are far from what the robot file's inertias explain."""
    for one in scales:
        size = abs(one.ratio)
        if one.explained < EXPLAINED or 1 / WRONG_SCALE < size < WRONG_SCALE or size == 0:
            continue
        gear = abs(model.robot.joint(one.joint).gear_ratio or 0.0)
        known = [(1e3, "thousandths"), (1e2, "hundredths"), (1e-3, "thousands"), (9.81, "kgf"), (1 / 9.81, "kgf")]
        names = [name for factor, name in known if abs(np.log(size / factor)) < 0.3]
        if gear > 1.5 and abs(np.log(size * gear)) < 0.5:
            names.insert(0, f"torque before the gears (ratio {gear:g})")
        hint = f" ({' or '.join(dict.fromkeys(names))}?)" if names else ""
        yield Diagnosed(
            "torque_unit", "bad",
            f"the {one.kind} torque of {one.joint} is {one.ratio:.3g} times what the robot file's inertias explain"
            f"{hint}",
            "check unit, side, gain and gear_ratio of this torque in [recording]; or the file is of another robot",
            one.joint, value=one.ratio, unit="1",
        )  # fmt: skip


def _late(delay: float) -> str:
    return "late" if delay > 0 else "early"


def _ms(delay: float, sigma: float) -> str:
    return f"{1e3 * abs(delay):.3g} +- {1.96e3 * sigma:.2g} ms"
