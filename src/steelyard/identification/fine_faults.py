"""Faults of a log that show in a plain fit which is not grossly wrong: what is computed, late, tilted, loaded, drifts.

Each test yields findings with a value, its 95 % interval, a remedy, and the keys of a configuration that correct it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import comb

import numpy as np

from ..estimate import stacked_system, weighted, with_correlated_noise
from ..judge import combined, estimate_delays, evaluate
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
from ..verdict import first_named
from .bias_reasons import common_remedy
from .gravity_fits import GravityFits
from .inputs import Labelled, check_motion, shows_moments, sources_of
from .log_faults import Diagnosed
from .mounting import Tilt, tilt_of
from .payload_body import LoadBeyondFile, load_beyond_file, mass_of
from .payload_gains import gains_used
from .settings import Settings
from .setup_faults import BLOCKS, SetupError, friction_changes, setup_errors

LOOKED_AT = 40_000
"""Samples of each recording that are fitted: those in which all joints move most."""
COMPUTED, TYPICALLY_COMPUTED, SURELY_COMPUTED = 2e-3, 4e-3, 1e-3
"""Torques that follow from the motion to this part of their size (rms, median) and have no noise were computed, not
measured; with noise, only if they follow from it to the last part: long slow logs average the noise of good sensors."""
NO_TORQUE_NOISE = 1e-3
"""Torques with less noise than this part of their size, from sample to sample, have none."""
LEAST_DELAY = 0.001
"""Shorter delays are not worth a sentence [s]."""
WEAK = 100.0
"""Relative sigma from which the motion does not show a parameter [%]."""
PAYLOAD_MASS = "ML"
WRONG_SCALE = 2.5
"""A torque that is by this factor larger or smaller than expected is in another unit."""
SURE_SCALE = 2.0
"""A scale of positions differs from one by so many half widths of its interval."""
NO_NOISE = 1e-8
"""Positions with less noise than this were commanded, or computed [rad or m]."""


class PlainFit:
    """A plain fit of the busiest parts of recordings, as the tests need it.

    Args:
        model: The plain model.
        labelled: The recordings.
        settings: Preparation and threads.
        dead: Equations that are left out.
    """

    def __init__(
        self, model: Model, labelled: Sequence[Labelled], settings: Settings, dead: Collection[tuple[str, str]]
    ) -> None:
        self.model, self.settings, self.dead, self.whole = model, settings, dead, labelled
        self.short = tuple((label, busiest_part(one, LOOKED_AT)) for label, one in labelled)
        self.resolved: ResolvedPreparation = resolve_preparation(settings.preparation, [one for _, one in self.short])
        self.equations: Equations = equations_of(model, without=dead)
        self.sources: list[RowSource] = sources_of(self.short, self.equations, self.resolved)
        self.observations: Observations = reduce_rows(self.sources, blocks=BLOCKS, threads=settings.threads)
        check_motion(self.sources)
        columns = stacked_system(self.observations, self.equations.names).columns
        plain = weighted(self.observations, columns)
        noise = with_correlated_noise(self.sources, plain, self.observations)
        self.plain, self.estimate, self.noise = plain, noise.estimate, noise.noise
        cutoff = settings.evaluation_cutoff
        self.fitted = combined([evaluate(one, self.estimate, self.noise, cutoff) for one in self.sources])
        self.residual = self.fitted.relative_percent / 100

    def under(self, gravity: Sequence[float]) -> PlainFit:
        """Return the fit of the same recordings under another gravity."""
        x, y, z = gravity
        turned = replace(self.model, robot=self.model.robot.with_gravity((x, y, z)))
        return PlainFit(turned, self.whole, self.settings, self.dead)

    @cached_property
    def gravity_fits(self) -> GravityFits:
        """Fits with gravity as it may be."""
        return GravityFits(self.equations, self.short, self.resolved, self.settings.threads)

    @cached_property
    def undeclared_load(self) -> LoadBeyondFile | None:
        """A load that the robot file does not have, if it is certain and one that an arm can carry."""
        return load_beyond_file(self.equations, self.estimate, self.model.robot)

    @property
    def typical_residual(self) -> float:
        """Median residual of a row over its torque's rms, as a standard deviation, of the median equation.

        What filters leave where a joint with much friction turns round is in few rows, and is no noise.
        """
        left: dict[int, list[np.ndarray]] = {}
        for run in (one for source in self.sources for one in source.runs()):
            rest = run.rows[:, -1] - run.rows[:, :-1] @ self.estimate.full_values(run.columns)
            left.setdefault(run.equation, []).append(np.column_stack([rest, run.rows[:, -1]]))
        sizes = []
        for parts in left.values():
            rest, torque = np.vstack(parts).T
            sizes.append(float(np.median(np.abs(rest)) / 0.6745 / max(np.sqrt(np.mean(torque**2)), 1e-300)))
        return float(np.median(sizes)) if sizes else np.inf

    @cached_property
    def computed_to(self) -> float | None:
        """Part of their size to which computed torques follow from the motion; None if they were measured."""
        typical = self.residual
        if COMPUTED <= self.residual < 10 * COMPUTED:
            typical = min(typical, self.typical_residual)
        follows = self.residual < COMPUTED or typical < TYPICALLY_COMPUTED
        is_computed = self.residual < SURELY_COMPUTED or (follows and _torque_noise(self) < NO_TORQUE_NOISE)
        return typical if is_computed else None


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
    noise = np.max([_noise_of(one.q) for _, one in fit.short], axis=0)
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
    # Gains of currents that nobody knows differ by design: steelyard gains finds them.
    known = all(one.is_known for one in gains_used(fit.sources))
    found = setup_errors(fit.equations, fit.short, fit.resolved, fit.plain, fit.settings, gains=known)
    for one in found[0]:
        yield from {"tilt": _tilt_error, "zero": _zero, "gain": _gain, "scale": _position_scale}[one.effect](fit, one)
    if found[1]:
        yield Diagnosed(
            "unseen_zeros", "info", f"these torques cannot confirm the zeros of {first_named(found[1])}: errors of 45 "
            "degrees would not show", "compare a posture with the arm, or run steelyard calibrate", ", ".join(found[1]),
        )  # fmt: skip


def tested_set_up(fit: PlainFit) -> tuple[list[Diagnosed], PlainFit]:
    """Return errors of the set-up, and the fit under the gravity of the tilt among them: delays and loads show there.

    Where torques do not tell first moments from springs, the tilt is the gravity that fits best, found before the rest.
    """
    found = []
    if not shows_moments(fit.equations) and fit.computed_to is None:
        tilt = fit.gravity_fits.tilt()
        if tilt is not None:
            found, fit = [_tilt(tilt)], fit.under(tilt.gravity)
    found += set_up_errors(fit)
    turned = [one.fix["identify.gravity"] for one in found if one.code == "tilt"]
    return found, fit.under(turned[-1]) if turned else fit


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
    total = mass_of(fit.model.robot) or 0.0
    if mass < 3 * sigma or mass < 0.002 * total:
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


FINE_TESTS: dict[str, Callable[[PlainFit], Iterator[Diagnosed]]] = {
    "looking for computed signals": computed_signals,
    "looking for delays": late_torques,
    "testing payloads": loads,
    "testing friction": changing_friction,
    "looking for what the motion shows": weak_parameters,
}
"""Tests under the gravity that ``tested_set_up`` found, by the name of their stage."""


def _torque_noise(fit: PlainFit) -> float:
    """Return the noise of the torques from sample to sample over their rms, of the median joint."""
    sizes = [
        _noise_of(channel.values) / np.maximum(channel.values.std(axis=1), 1e-300)
        for _, one in fit.short
        for channel in one.torques
        if channel.kind != "wrench"
    ]
    return float(np.median(np.concatenate(sizes)))


def _noise_of(q: np.ndarray) -> np.ndarray:
    """Return the standard deviation of what is left of signals (n, samples) in differences of high order (n,)."""
    order = 8
    if q.shape[1] <= 4 * order:
        return np.full(len(q), np.inf)
    differences = np.abs(np.diff(q, n=order, axis=1))
    return np.median(differences, axis=1) / (0.6745 * np.sqrt(comb(2 * order, order)))


def _late(delay: float) -> str:
    return "late" if delay > 0 else "early"


def _ms(delay: float, sigma: float) -> str:
    return f"{1e3 * abs(delay):.3g} +- {1.96e3 * sigma:.2g} ms"
