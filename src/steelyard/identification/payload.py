"""The payload of an arm that is known from an earlier run.

The run's weighted triangle stands for all its rows. Rows of the new, loaded recordings are stacked below it, with the
columns of arm and payload, so that the covariance of the payload contains that of the arm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..distributions import norm_ppf
from ..errors import EstimateError
from ..estimate import Estimate, NoiseModel
from ..judge import DEFAULT_CUTOFF
from ..model import build_model
from ..model.terms import payload_link
from ..observe import Observations, RowSource, equations_of, resolve_preparation
from ..recording import DriveGains, Recording, RecordingsLike, load_recordings
from ..robot import AnyRobot, Robot, load_robot, lock_positions
from ..run import read_result
from ..text import for_html, html_table, short_repr, with_remedy
from ..verdict import Reason, deciding_reason
from .earlier_runs import arm_agreement, fit_with_load, reasons_of_load
from .inputs import arm_of, labels_of, refuse_same_data, sources_of, without_locked, without_payload_part
from .payload_body import (
    IMPOSSIBLE,
    PayloadBody,
    body_from_parameters,
    impossible_payload,
    payload_body,
    unlike_file,
)
from .payload_gains import (
    gains_of_run,
    gains_text,
    gains_used,
    payload_with_gains,
    refuse_unknown_gains,
    with_run_gains,
)
from .run_files import RUN_COMMANDS, RunLike, SavedRun, load_run, read_run
from .settings import FACTOR_METHODS, Settings

if TYPE_CHECKING:
    from ..report import Page, PageSection

ENOUGH = 20.0
"""A mass or moment with a larger relative sigma [%] is not known."""

LARGEST_RATIO = 1000
"""Larger ratios are not written out."""


@dataclass(frozen=True, eq=False)
class PayloadFound:
    """A payload with what it rests on.

    Attributes:
        body: Mass, centre, inertia, with the arm's uncertainty in theirs.
        estimate: Arm and payload together.
        noise: Noise of the loaded recordings.
        enough: Whether the motion showed mass and centre to 20 % or a centimetre.
        agreement: How far the arm's own parameters had to move, chi-square over their number; 1 is what chance gives.
        reasons: What a reader must know, with remedies.
        robot: The arm of the run, its held joints locked: the payload is in the frame of its ``payload_link``, or of
            its last moving link.
        sources: Rows of the loaded recordings; figures are drawn from them.
        gains: Gains by which torques were measured, those of the run, with their errors.
        gain_share: Part of the variance of the mass that is due to the errors of gains.

    Example:
        >>> from dataclasses import replace
        >>> plate = (0.002, 0, 0, 0.002, 0, 0.002, 0.04, 0, 0, 0.5)
        >>> robot = replace(steelyard.load_robot("scara_2r"), payloads={"plate": plate})
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> log = steelyard.recording_of(steelyard.simulate("scara_2r", motion, steelyard.Experiment(record_rate=100)))
        >>> settings = steelyard.Settings(method="wls", reduction="none", bias_repeats=0)
        >>> found = steelyard.identify("scara_2r", log, settings=settings)
        >>> run = steelyard.save_run(found, "my_run")
        >>> carrying = steelyard.Experiment(record_rate=100, payload="plate")
        >>> loaded = steelyard.recording_of(steelyard.simulate(robot, motion, carrying))
        >>> found = steelyard.identify_payload(robot, run, loaded)
        >>> found.enough, found.agreement < 2
        (False, True)
    """

    __repr__ = short_repr

    body: PayloadBody
    estimate: Estimate
    noise: NoiseModel
    enough: bool
    agreement: float
    reasons: tuple[Reason, ...]
    robot: Robot
    sources: tuple[RowSource, ...] = ()
    gains: tuple[DriveGains, ...] = ()
    gain_share: float = 0.0

    def to_html(self, provenance: Mapping[str, str] | None = None) -> str:
        """Return the report as one HTML document, as run folders have it.

        Args:
            provenance: Where it comes from, texts by name.
        """
        from ..report import page_html  # loaded when used

        return page_html(_page(self, provenance or {}))

    def _repr_html_(self) -> str:
        """Return the payload and what speaks against it as notebooks show them."""
        reasons = "".join(f"<li>{for_html(with_remedy(one.text, one.remedy))}</li>" for one in self.reasons)
        table = html_table(("quantity", "value", "sigma", "unit"), list(_body_rows(self.body)))
        return table + (f"<ul>{reasons}</ul>" if reasons else "")


def identify_payload(
    robot: AnyRobot, run: RunLike, recordings: RecordingsLike, threads: int = 1, gain_sigma: float | None = None
) -> PayloadFound:
    """Find the payload that the arm carries in recordings.

    Args:
        robot: The arm of the run, its catalogue name or the path of its file.
        run: The run that identified it, or its folder, without payload or with another one.
        recordings: Recordings with the payload, or the paths of their logs.
        threads: Threads that share the reduction.
        gain_sigma: Relative standard deviation of the gains, an error common to all joints; None: that of the run.

    Raises:
        EstimateError: If no recording is given, the run was one of a loaded arm alone, or gains are unknown, so that
            the mass is not identifiable.

    Example:
        >>> from dataclasses import replace
        >>> plate = (0.002, 0, 0, 0.002, 0, 0.002, 0.04, 0, 0, 0.5)  # XX XY XZ YY YZ ZZ MX MY MZ M
        >>> robot = replace(steelyard.load_robot("scara_2r"), payloads={"plate": plate})
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> log = steelyard.recording_of(steelyard.simulate("scara_2r", motion, steelyard.Experiment(record_rate=100)))
        >>> settings = steelyard.Settings(method="wls", reduction="none", bias_repeats=0)
        >>> found = steelyard.identify("scara_2r", log, settings=settings)
        >>> run = steelyard.save_run(found, "my_run")
        >>> carrying = steelyard.Experiment(record_rate=100, payload="plate")
        >>> loaded = steelyard.recording_of(steelyard.simulate(robot, motion, carrying))
        >>> payload = steelyard.identify_payload(robot, run, loaded)
        >>> mass, sigma = payload.body.mass
        >>> round(mass, 1)
        0.5
    """
    robot, run = load_robot(robot), load_run(run)
    if run.content["payload_model"] == "loaded":
        raise EstimateError(
            "the run was identified from loaded recordings alone: its arm already contains a payload; identify the arm "
            "without payload first"
        )
    recordings = load_recordings(robot, recordings)
    refuse_same_data(run.observations.recordings, recordings)
    settings = run.choices
    known = gains_of_run(run.content)
    if gain_sigma is not None:
        known = tuple(one.with_sigma(gain_sigma) for one in known)
    sources = _sources(robot, run, settings, recordings, known)
    gains = known or gains_used(sources)
    refuse_unknown_gains(gains, run.content["effects"])
    # The payload's rows join those of the run: whichever method identified the arm, least squares finds its payload.
    method = settings.method if settings.method in FACTOR_METHODS else "gls"
    settings = replace(settings, method=method, covariance=None, prior={}, threads=threads)
    sources, fit, estimate = fit_with_load(sources, run, settings)
    alone = payload_body(estimate)
    is_exact = all(one.is_exact for one in gains)
    body = alone if is_exact else payload_with_gains(estimate, [_unloaded(run), fit.observations], gains)
    if body is None or alone is None:
        raise EstimateError(
            "the payload's mass has no effect in these recordings: gravity must act on it while it moves; record "
            "motion of the wrist in several postures"
        )
    agreement = arm_agreement(run.estimate, estimate)
    enough = _is_enough(body)
    arm, share = sources[0].equations.model.robot, 1 - (alone.mass[1] / body.mass[1]) ** 2
    reasons = (*_of_the_run(run), *reasons_of_load(run), *_reasons(body, enough, agreement, arm))
    reasons += tuple(unlike_file(body, arm, [one.payload for one in recordings]))
    return PayloadFound(body, estimate, fit.noise, enough, agreement, reasons, arm, tuple(sources), gains, share)


def _unloaded(run: SavedRun) -> Observations:
    """Return the factors of a run's recordings without payload: columns of another payload have the same names."""
    found = run.observations
    empty = {info.label for info in found.recordings if info.payload is None}
    return replace(found, factors=tuple(one for one in found.factors if one.recording in empty))


def _sources(
    robot: Robot, run: SavedRun, settings: Settings, recordings: Sequence[Recording], gains: Sequence[DriveGains]
) -> list[RowSource]:
    if not recordings:
        raise EstimateError("no recording is given; give at least one log made with the payload")
    content, arm = run.content, arm_of(robot, settings)
    friction = settings.friction and without_payload_part(settings.friction)  # the run's payload may be another one
    model = build_model(arm, content["effects"], content["torque"], "paired", settings.sign_width, friction)
    equations = equations_of(model)
    # The recordings carry a payload, whether their logs say so or not.
    loaded = [replace(recording, payload=recording.payload or "payload") for recording in recordings]
    labelled = zip(labels_of(recordings), loaded, strict=True)
    unlocked = [(label, without_locked(one, label, settings.lock)) for label, one in labelled]
    moving = [(label, with_run_gains(one, gains, label)) for label, one in unlocked]
    return sources_of(moving, equations, resolve_preparation(settings.preparation, [one for _, one in moving]))


def _is_enough(body: PayloadBody) -> bool:
    mass, sigma = body.mass
    if not (mass > 0 and 100 * sigma / mass <= ENOUGH and body.centre_sigma is not None):
        return False
    return bool(np.all(body.centre_sigma <= 0.01))


def _of_the_run(run: SavedRun) -> Iterator[Reason]:
    """Yield what speaks against the arm that the payload is found with."""
    verdict = run.content["verdict"]
    if verdict["grade"] == "poor":
        text = f"the verdict of the arm's own run is poor: {deciding_reason(verdict)}"
        yield Reason(text, "identify the arm again", "payload")


def _reasons(body: PayloadBody, enough: bool, agreement: float, arm: Robot) -> Iterator[Reason]:
    mass, sigma = body.mass
    if abs(mass) < norm_ppf(0.99865) * sigma:
        text = f"the mass comes out as {mass:.3g} +- {sigma:.2g} kg, which is not significant"
        yield Reason(text, "check that the arm really carried a payload in these recordings", "payload")
    if mass < -IMPOSSIBLE * sigma:
        yield Reason(
            f"the mass is negative, {mass:.3g} +- {sigma:.2g} kg: most likely the recordings are exchanged, those of "
            "the arm's run were made with a payload and these without",
            "identify the arm from recordings without payload, and give those with it here",
            "payload",
        )
    if impossible := impossible_payload(body):
        yield Reason(
            f"no body is like this: {', '.join(impossible)}",
            "check the signs, the gains and the zeros of the log, and that the arm is the one of the run",
            "payload",
        )
    if not enough:
        yield Reason(
            "the motion was not enough: mass or centre are known to worse than 20 % or a centimetre",
            "turn the wrist so that gravity pulls on the payload from several sides, and record longer",
            "payload",
        )
    if agreement > 2:
        yield Reason(
            "the arm itself behaves otherwise than in its run (its parameters moved by "
            f"{ratio_text(agreement**0.5, 1)} times what chance explains): friction changes with temperature and "
            "day, and leaks into the payload",
            "identify the arm without payload on the same day, warmed up alike",
            "agreement",
        )
    if (impossible or agreement > 2) and _branches(arm):
        yield Reason(
            f"the arm branches, and the payload is taken to be on link '{payload_link(arm)}'",
            "if it is on another branch, put that branch last in the URDF or MJCF file, or name the link as "
            "payload_link in a robot table, and identify the arm again",
            "payload",
        )


def _branches(robot: Robot) -> bool:
    """Return whether more than one moving link carries no other."""
    return len({body.number for body in robot.bodies} - {body.parent for body in robot.bodies}) > 1


def ratio_text(value: float, digits: int) -> str:
    """Return a ratio to what chance gives, for a reader: beyond a thousand its digits mean nothing."""
    return f"{value:.{digits}f}" if value <= LARGEST_RATIO else f"over {LARGEST_RATIO}"


def _page(found: PayloadFound, provenance: Mapping[str, str]) -> Page:
    """Return the report of an identified payload."""
    from ..plots import series_plot
    from ..report import Figure, Page, PageSection, sentence
    from .figures import motion_of

    body, sources = found.body, found.sources
    robot, cutoff = found.robot, sources[0].resolved.cutoff or DEFAULT_CUTOFF
    motion = motion_of(sources, found.estimate, cutoff)
    enough = "was enough" if found.enough else "was not enough"
    reasons = [f"{sentence(one.text)} {sentence(one.remedy)}" for one in found.reasons]
    against = "".join(f" {sentence(gains_text(one).capitalize())}" for one in found.gains)
    against += " This speaks against it:" if reasons else ""
    return Page(
        f"Payload of {robot.name}",
        f"{len(sources)} recording(s), arm known from its run",
        [
            payload_section(body, payload_link(robot), f"The motion {enough} to show it.{against}", reasons),
            PageSection(
                "Torques of the loaded arm",
                [
                    Figure(
                        "torques", series_plot(motion.joints),
                        "Measured torque, that of the arm with this payload, and the error, through an evaluation "
                        f"filter of {cutoff:.3g} Hz. The arm's own parameters moved by "
                        f"{ratio_text(found.agreement, 2)} (chi-square over their number; 1 is what chance gives).",
                    )
                ],
            ),
        ],
        facts={"mass": f"{body.mass[0]:.4g} kg, sigma {body.mass[1]:.2g} kg", "speaks against it": str(len(reasons))},
        provenance=provenance,
    )  # fmt: skip


def payload_section(body: PayloadBody, link: str, text: str = "", points: Sequence[str] = ()) -> PageSection:
    """Return a payload as part of a report."""
    from ..report import DataTable, PageSection

    about = f"Mass, centre and inertia about the centre, in the frame of link '{link}'."
    table = DataTable("payload", ["quantity", "value", "sigma", "unit"], list(_body_rows(body)), about)
    return PageSection("The payload", [table], text, points=points)


def _body_rows(body: PayloadBody) -> Iterator[list[str | float]]:
    """Yield quantity, value, sigma and unit of a payload."""
    yield ["mass", body.mass[0], body.mass[1], "kg"]
    if body.centre is not None and body.centre_sigma is not None:
        for axis, value, sigma in zip("xyz", body.centre, body.centre_sigma, strict=True):
            shown = [1000 * float(value), 1000 * float(sigma)] if np.isfinite(value) else ["not identifiable", ""]
            yield [f"centre {axis}", *shown, "mm"]
    if body.inertia_at_centre is not None and body.inertia_at_centre_sigma is not None:
        names = ("XX", "XY", "XZ", "YY", "YZ", "ZZ")
        for name, value, sigma in zip(names, body.inertia_at_centre, body.inertia_at_centre_sigma, strict=True):
            if np.isfinite(value):
                yield [f"inertia {name}", float(value), float(sigma), "kg m^2"]


@dataclass(frozen=True, eq=False)
class SavedPayload:
    """A payload that a run found.

    Attributes:
        content: The ``result.json`` of the run: of ``payload``, or of ``identify`` with loaded recordings.
        body: The payload, in the frame of the link that carries it.
        lock: Joints that were held, with their positions [rad or m]: the link that carries the payload depends on them.
    """

    __repr__ = short_repr

    content: Mapping[str, Any]
    body: PayloadBody
    lock: Mapping[str, float]


def read_payload(folder: Path) -> SavedPayload:
    """Return the payload of a run of ``payload``, or of an ``identify`` with loaded recordings.

    Raises:
        EstimateError: If it is another run, was changed since, or found no payload.
    """
    content = read_result(folder, ("payload", *RUN_COMMANDS), EstimateError, {"robot": str})
    if content["command"] != "payload":
        run = read_run(folder)
        body = payload_body(run.estimate)
        if body is None:
            raise EstimateError(
                f"the run '{folder}' has no payload; give a run of 'steelyard payload', or identify with a loaded log"
            )
        return SavedPayload(content, body, run.choices.lock)
    try:
        known, covariance = content["payload"], np.array(content["covariance"], dtype=float)
        centre = known["centre"] or [None] * 3
        moment = float(known["mass"]) * np.array(centre, dtype=float)
        values = np.array([*known["inertia"], *moment, known["mass"]], dtype=float)
        if values.shape != (10,) or covariance.shape != (10, 10):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise EstimateError(f"'{folder}' has no payload that can be read; run steelyard payload again") from None
    return SavedPayload(content, body_from_parameters(values, covariance), _locked_joints(content, folder))


def _locked_joints(content: Mapping[str, Any], folder: Path) -> dict[str, float]:
    """Return the joints that were held in a run of ``payload``."""
    held = content.get("locked_joints")
    if not isinstance(held, dict):
        raise EstimateError(
            f"'{folder}' does not say which joints were locked, so that the frame of its payload is not known; run "
            "steelyard payload again"
        )
    return lock_positions(held)
