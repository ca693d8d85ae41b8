"""Faults of a log that show in a plain fit which is not grossly wrong: what is computed, late, tilted, loaded, drifts.

Each test yields findings with a value, its 95 % interval, a remedy, and the keys of a configuration that correct it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from ..judge import estimate_delays
from ..observe import reduce_rows
from ..verdict import first_named
from .bias_reasons import common_remedy
from .findings import Diagnosed
from .gravity_fits import relative_residual
from .hypotheses import wrong_positions, wrong_stamps
from .inputs import shows_moments, sources_of
from .mounting import OtherMounting, Tilt, tilt_of
from .payload_body import is_missing
from .payload_gains import gains_used
from .plain_fit import PlainFit, noise_of
from .setup_faults import SetupError, friction_changes

LEAST_DELAY = 0.001
"""Shorter delays are not worth a sentence [s]."""
WEAK = 100.0
"""Relative sigma from which the motion does not show a parameter [%]."""
PAYLOAD_MASS = "ML"
WRONG_SCALE = 2.5
"""A torque that is by this factor larger or smaller than expected is in another unit."""
SURE_SCALE = 2.0
"""A scale of positions differs from one by so many half widths of its interval."""
EXPLAINS = 0.9
"""An error of one recording leaves at most such a part of the residuals: logs of real arms show some by chance."""
_OF_JOINTS = ("joint_zero", "torque_gain", "torque_unit", "position_scale")
NOTHING_EXPLAINED = 95.0
"""Residual over the deviation of a torque from which it is said not to follow the motion [%]."""
NO_NOISE = 1e-8
"""Positions with less noise than this were commanded, or computed [rad or m]."""


def computed_signals(fit: PlainFit) -> Iterator[Diagnosed]:
    """Yield torques and positions that were computed or commanded, not measured."""
    if fit.computed_to is not None:
        yield Diagnosed(
            "computed_torque", "warning",
            f"all torques follow from the motion to {100 * fit.computed_to:.2g} % of their size: they seem to be "
            "computed or commanded by a model, not measured",
            "record measured torques or currents; from computed ones only the controller's own model is found",
            value=100 * fit.computed_to, unit="%",
        )  # fmt: skip
    noise = np.max([noise_of(one.q) for _, one in fit.short], axis=0)
    if np.all(noise < NO_NOISE):
        yield Diagnosed(
            "commanded_position", "warning",
            f"positions have no measurement noise (below {NO_NOISE:g} rad or m on every joint): they seem to be "
            "commanded or computed ones, or filtered before they were saved",
            "record measured positions; with commanded ones the tracking error goes into the parameters",
            value=float(noise.max()), unit="rad or m",
        )  # fmt: skip
    for label, recording in fit.whole:
        same = recording.reference is not None and np.array_equal(recording.reference, recording.q)
        if same:
            yield Diagnosed(
                "commanded_position", "bad", f"positions of '{label}' are the reference, number by number",
                "declare the measured positions as q", recording=label,
            )  # fmt: skip


def late_torques(fit: PlainFit) -> Iterator[Diagnosed]:
    """Yield the delay of all torques, or of single ones."""
    delays = estimate_delays(fit.sources, fit.plain, None)
    if delays.has_common and abs(delays.common[0]) >= LEAST_DELAY:
        value, sigma = delays.common
        total = delays.corrected + value
        yield Diagnosed(
            "delay", "warning",
            f"torques are {_late(value)} against positions by {_ms(value, sigma)} on all joints"
            f"{'' if value > 0 else ', or positions late'}", common_remedy(delays), value=value,
            interval=(value - 1.96 * sigma, value + 1.96 * sigma), unit="s",
            fix={"identify.delay": float(f"{total:.5f}")},
        )  # fmt: skip
        return
    for joint, value in delays.late_positions.items():
        yield Diagnosed(
            "late_position", "warning",
            f"the position of {joint} is {_late(value)} against all torques by {1e3 * abs(value):.3g} ms",
            "mend its stamps, or the filter of its column; --joint-delay moves its torque and does not correct this",
            joint, value=value, unit="s",
        )  # fmt: skip
    for e in () if delays.late_positions else delays.certain:
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
            fix={"identify.joint_delays": {joint: float(f"{value:.5f}")}},
        )  # fmt: skip


def set_up_errors(fit: PlainFit) -> Iterator[Diagnosed]:
    """Yield a tilted base, zeros and scales of positions, and gains of torques, of measured torques alone."""
    if fit.computed_to is not None:
        return  # they show the set-up of the controller's model, and what its torques leave out
    found = fit.set_up_errors
    for one in found[0]:
        yield from {"tilt": _tilt_error, "zero": _zero, "gain": _gain, "scale": _position_scale}[one.effect](fit, one)
    if found[1]:
        yield Diagnosed(
            "unseen_zeros", "info", f"these torques cannot confirm the zeros of {first_named(found[1])}: errors of 45 "
            "degrees would not show", "compare a posture with the arm, or run steelyard calibrate", ", ".join(found[1]),
        )  # fmt: skip


def tested_set_up(fit: PlainFit) -> tuple[list[Diagnosed], PlainFit]:
    """Return errors of the set-up, and the fit under the gravity of the tilt among them: delays and loads show there.

    Beside positions or stamps that are wrong nothing else is looked for. A recording that has errors of its own is left
    out of that fit. Where torques do not tell first moments from springs, the tilt is the gravity that fits best, found
    before the rest.
    """
    wrong = wrong_positions(fit) or wrong_stamps(fit)
    if fit.computed_to is not None or wrong:
        return wrong, fit
    label, of_one = _of_one_recording(fit)
    if of_one:
        found, rest = tested_set_up(fit.of([other for other, _ in fit.whole if other != label]))
        return [*of_one, *found], rest
    found = []
    if not shows_moments(fit.equations):
        tilt = fit.gravity_fits.tilt()
        if tilt is not None:
            found, fit = [_tilt(tilt)], fit.under(tilt.gravity)
    found += set_up_errors(fit)
    turned = [one.fix["identify.gravity"] for one in found if one.code == "tilt"]
    return found, fit.under(turned[-1]) if turned else fit


def _of_one_recording(fit: PlainFit) -> tuple[str, list[Diagnosed]]:
    """Return a recording with errors that the others do not have, and these: another mounting, a zero, scale or gain.

    They are looked for in every recording alone if recordings disagree without a cause, seem to be under different
    gravities, as those look in which a joint has another zero, or if all together show such an error.
    """
    labels = [label for label, _ in fit.whole]
    if len(labels) < 2:
        return "", []
    other, differs = fit.gravity_fits.other_mounting, fit.disagreement
    unexplained = other is not None or (differs is not None and not differs.cause)
    if not unexplained and not any(one.code in _OF_JOINTS for one in set_up_errors(fit)):
        return "", []
    if other is not None:
        labels.sort(key=lambda label: label != other.label)
    most = EXPLAINS * relative_residual(fit.observations, fit.equations.names)
    for label in labels:
        own = [one for one in set_up_errors(fit.of([label])) if one.code in _OF_JOINTS]
        own = [one for one in own if _corrected(fit, one, [label]) < min(most, _corrected(fit, one, labels))]
        if own:
            return label, [_in_recording(one, label) for one in own]
    return ("", []) if other is None else (other.label, [other_mounting_found(other)])


def _corrected(fit: PlainFit, error: Diagnosed, labels: Sequence[str]) -> float:
    """Return the relative residual where a zero, scale or gain is corrected in some recordings."""
    assert error.value is not None
    here = np.array([name == error.joint for name in fit.equations.joints])[:, None]
    changed = []
    for label, one in fit.short:
        if label in labels and error.code == "joint_zero":
            one = replace(one, q=one.q - error.value * here)
        elif label in labels and error.code == "position_scale":
            factors = np.where(here, 1 / error.value, 1.0)
            one = replace(one, q=factors * one.q, qd=None if one.qd is None else factors * one.qd)
        elif label in labels:
            divisors = np.where(here, error.value, 1.0)
            own = [channel for channel in one.torques if channel.kind != "wrench"]
            one = replace(one, torques=tuple(replace(channel, values=channel.values / divisors) for channel in own))
        changed.append((label, one))
    rows = reduce_rows(sources_of(changed, fit.equations, fit.resolved), threads=fit.settings.threads)
    return relative_residual(rows, fit.equations.names)


def _in_recording(one: Diagnosed, label: str) -> Diagnosed:
    """Return an error of the set-up as one of a single recording: a configuration of all does not correct it."""
    remedy = one.remedy.replace("[recording]", f"[[recording.file]] of '{label}'")
    return replace(one, text=f"in '{label}' alone, {one.text}", remedy=remedy, recording=label, fix={})


def other_mounting_found(other: OtherMounting) -> Diagnosed:
    """Return a recording of an arm that was mounted otherwise."""
    code, severity = ("mounting", "bad") if other.is_far else ("tilt", "warning")
    return Diagnosed(code, severity, other.text, other.remedy, recording=other.label, value=other.angle, unit="deg")


def _tilt_error(fit: PlainFit, one: SetupError) -> Iterator[Diagnosed]:
    yield _tilt(tilt_of(fit.model.robot, one.names, one.values, one.half_width))


def _tilt(found: Tilt) -> Diagnosed:
    angle, half = found.angle, found.half_width
    return Diagnosed(
        "tilt", "warning", found.text, found.remedy, value=angle,
        interval=(angle - half, angle + half), unit="deg",
        fix={"identify.gravity": [float(f"{part:.4g}") for part in found.gravity]},
    )  # fmt: skip


def _zero(fit: PlainFit, one: SetupError) -> Iterator[Diagnosed]:
    (value,), (half,) = one.values, one.half_width
    revolute = fit.model.robot.joint(one.joint).kind == "revolute"
    factor, unit = (np.degrees(1.0), "degrees") if revolute else (1e3, "mm")
    yield Diagnosed(
        "joint_zero", "warning",
        f"the zero of {one.joint} is off by {-factor * value:.3g} +- {factor * half:.2g} {unit}: its position "
        f"reads {'more' if value < 0 else 'less'} than it is",
        f"calibrate the arm (steelyard calibrate), or add {value:.4g} to its position: offset of q in [recording]",
        one.joint, value=-value, interval=(-value - half, -value + half), unit="rad" if revolute else "m",
        fix={"recording.q.offset": {one.joint: float(f"{value:.5g}")}},
    )  # fmt: skip


def _position_scale(_: PlainFit, one: SetupError) -> Iterator[Diagnosed]:
    (value,), (half,) = one.values, one.half_width
    ratio = 1 / (1 + value)
    width = half / (1 + value) ** 2 + value**2  # columns are derivatives: what they leave out is of second order
    if abs(ratio - 1) < SURE_SCALE * width:
        return  # real arms have friction that looks so
    yield Diagnosed(
        "position_scale", "warning",
        f"the position of {one.joint} reads {ratio:.3g} +- {width:.2g} times what it moves, as the torques show: its "
        "gear ratio or unit may be wrong",
        f"check gear_ratio and unit of the position of {one.joint} in the set-up", one.joint, value=ratio,
        interval=(ratio - width, ratio + width), unit="1",
    )  # fmt: skip


def _gain(fit: PlainFit, one: SetupError) -> Iterator[Diagnosed]:
    (value,), (half,) = one.values, one.half_width
    ratio = 1 + value
    is_unit = not 1 / WRONG_SCALE < ratio < WRONG_SCALE
    yield Diagnosed(
        "torque_unit" if is_unit else "torque_gain", "bad" if is_unit else "warning",
        f"the torque of {one.joint} is {ratio:.3g} +- {half:.2g} times what the torques of the other joints imply: "
        "its gear ratio, gain or unit may be wrong, or the model lacks something there",
        f"check gear_ratio, gain and unit of {one.joint} in the set-up", one.joint, value=ratio,
        interval=(ratio - half, ratio + half), unit="1",
    )  # fmt: skip


def loads(fit: PlainFit) -> Iterator[Diagnosed]:
    """Yield a load that nobody declared, or one that was declared and is not there."""
    if fit.model.payload == "none":
        load = fit.undeclared_load
        if load is not None:
            mass, sigma = load.mass, load.sigma
            yield Diagnosed(
                "undeclared_payload", "warning",
                f"the arm carries {mass:.2g} +- {1.96 * sigma:.1g} kg more at its end than the robot file has: a "
                "tool or payload that is not declared",
                'declare it (payload = "name" in [recording]) and record without it too, or add it to the robot '
                "file; if there is none, the file is of another arm", value=mass,
                interval=(mass - 1.96 * sigma, mass + 1.96 * sigma), unit="kg",
            )  # fmt: skip
        if not all(one.is_known for one in gains_used(fit.sources)):
            yield Diagnosed(
                "no_payload_run",
                "info",
                "the drives' gains are not known and no recording carries a payload: masses are known up to them",
                "record the same motion without and with a weighed payload and run steelyard gains",
            )
        return
    if PAYLOAD_MASS not in fit.estimate.columns:
        return
    k = fit.estimate.columns.index(PAYLOAD_MASS)
    mass, sigma = float(fit.estimate.values[k]), float(fit.estimate.sigma[k])
    if is_missing(mass, sigma, fit.model.robot):
        yield Diagnosed(
            "payload_missing", "bad",
            f"a payload is declared, but the recordings that declare it show {mass:.2g} +- {1.96 * sigma:.1g} kg",
            "check which recordings were made with the payload, and declare it for these alone", value=mass,
            interval=(mass - 1.96 * sigma, mass + 1.96 * sigma), unit="kg",
        )  # fmt: skip


def changing_friction(fit: PlainFit) -> Iterator[Diagnosed]:
    """Yield joints whose friction changes with time, or differs between recordings."""
    for one in friction_changes(fit.observations, fit.equations, fit.estimate):
        change, half = 100 * one.change, 100 * one.half_width
        if one.over_time:
            text = f"friction of {one.joint} changes by {change:+.2g} +- {half:.1g} % during '{one.recording}'"
            remedy = "warm the arm up before recording, and record its temperature"
        else:
            text = f"friction of {one.joint} is {change:+.2g} +- {half:.1g} % in '{one.recording}' against the others"
            remedy = "record at one temperature, and identify recordings of different days apart"
        yield Diagnosed(
            "friction_drift", "info" if one.is_small else "warning", text, remedy, one.joint, one.recording, one.change,
            (one.change - one.half_width, one.change + one.half_width), "1",
        )  # fmt: skip


def weak_parameters(fit: PlainFit) -> Iterator[Diagnosed]:
    """Yield which parameters the motion does not show."""
    names, estimate = fit.equations.base.name_of, fit.estimate
    missing = [name for name in fit.equations.names if name not in estimate.columns]
    with np.errstate(divide="ignore"):
        relative = estimate.relative_sigma
    weak = [estimate.columns[k] for k in np.argsort(-relative) if relative[k] > WEAK]
    listed = [*missing, *weak]
    if listed:
        yield Diagnosed(
            "weak_parameters", "info",
            f"this motion does not show {len(listed)} of {len(fit.equations.names)} base parameters (sigma above "
            f"their value): {first_named([names[name] for name in listed])}",
            "record a motion designed for them: steelyard design ROBOT", value=float(len(listed)),
        )  # fmt: skip


def torques_without_motion(fit: PlainFit) -> Iterator[Diagnosed]:
    """Yield joints of whose torque neither motion nor load explains anything: noise, or another column."""
    for one in fit.fitted.joints:
        if one.varying_percent > NOTHING_EXPLAINED and one.torque_deviation > 0:
            unit = "N" if fit.model.robot.joint(one.joint).kind == "prismatic" else "N m"
            yield Diagnosed(
                "noise_torque", "warning",
                f"the {one.kind} torque of {one.joint} does not follow the motion: {one.varying_percent:.3g} % of its "
                f"deviation of {one.torque_deviation:.3g} {unit} is not explained",
                "check its column; if it is right, the joint is loaded too little to show, and its friction is unknown",
                one.joint, value=one.varying_percent, unit="%",
            )  # fmt: skip


FINE_TESTS: dict[str, Callable[[PlainFit], Iterator[Diagnosed]]] = {
    "looking for computed signals": computed_signals,
    "looking for delays": late_torques,
    "testing payloads": loads,
    "testing friction": changing_friction,
    "looking for what the motion shows": lambda fit: chain(torques_without_motion(fit), weak_parameters(fit)),
}
"""Tests under the gravity that ``tested_set_up`` found, by the name of their stage."""


def _late(delay: float) -> str:
    return "late" if delay > 0 else "early"


def _ms(delay: float, sigma: float) -> str:
    return f"{1e3 * abs(delay):.3g} +- {1.96e3 * sigma:.2g} ms"
