"""Design of a motion: from a model and its limits to a certified motion, its predicted sigmas and its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DesignError
from ..model import Model
from ..motion import ApproachedTrajectory, Trajectory, with_approach
from ..plain_data import frame_of, plain
from ..robot import Robot
from ..text import for_html, html_table, short_repr
from ..workers import Shared, open_workers
from .assembly import LOADED, Assembled, Known, assembled
from .certify.certificate import Certificate, Certifier
from .constraints import TorqueBlock
from .criteria import Weighting
from .figures import plot, to_html
from .generations import SearchCallback, no_progress
from .limits.design_limits import DesignLimits
from .objective import GoalAttainment, Objective
from .predicted_accuracy import Figures, Forecast, PredictedAccuracy, WeakParameter, weak_parameters
from .search import Found, SearchStart, random_baseline, search
from .settings import DesignSettings
from .space.rules import clearances_at

if TYPE_CHECKING:
    import polars

LONGEST_APPROACH = 60.0
"""No way into a motion takes longer than this [s]."""

TOO_SHORT = (
    "the motion is too short for identification's filters: predicted sigmas are those of all its samples; take a "
    "longer duration or a higher rate"
)
"""Note of a motion whose sigmas are not those after identification's preparation."""

LEAST_USE = 2e-3
"""A motion that uses less than this part of every joint's range is no experiment."""


@dataclass(frozen=True, eq=False)
class Design:
    """A designed experiment.

    Attributes:
        model: The model whose parameters are to be identified.
        settings: The settings.
        limits: The limits.
        trajectory: The motion to record, with approach and return if a start posture was given.
        objective: What was minimised: a criterion's name, or ``goals``.
        value: Its value at the recording's samples; gamma for goals.
        goals: Each goal's name, what was wanted and what was reached.
        figures: Predicted accuracy: sigmas are those after identification's default preparation.
        baseline: The same of random motions; None if none could be made, or after an interrupt.
        certificate: The proof that limits are kept at every instant.
        certifier: Its certifier, for the same motion at other speeds.
        weak: Parameters that stay weak, and what would help.
        starts: Outcome of each start.
        is_interrupted: Whether the search was ended before its time.
        notes: Notes for the reader.

    Example:
        >>> settings = steelyard.DesignSettings(motion="quintic", moves=3, duration=4.0, noise=(1.0, 0.2), starts=1)
        >>> motion = steelyard.design("scara_2r", settings, floor="none")
        >>> motion.to_frame().columns
        ['name', 'sigma', 'relative_sigma']
    """

    __repr__ = short_repr

    model: Model
    settings: DesignSettings
    limits: DesignLimits
    trajectory: Trajectory
    objective: str
    value: float
    goals: tuple[tuple[str, float, float], ...]
    figures: Figures
    baseline: Figures | None
    certificate: Certificate
    certifier: Certifier
    weak: tuple[WeakParameter, ...]
    starts: tuple[SearchStart, ...]
    is_interrupted: bool
    notes: tuple[str, ...]

    plot = plot
    to_html = to_html

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``result.json``, without what a run folder adds."""
        return design_to_json(self)

    def to_frame(self) -> polars.DataFrame:
        """Return the predicted accuracy of every parameter: name, sigma, relative sigma, a row each."""
        content = self.to_json()
        relative = content["predicted_relative_sigma"] or {}
        return frame_of(
            [
                {"name": name, "sigma": sigma, "relative_sigma": relative.get(name)}
                for name, sigma in content["predicted_sigma"].items()
            ]
        )

    def _repr_html_(self) -> str:
        """Return what is proven, and the predicted accuracy, as notebooks show them."""
        rows = [
            (one["name"], one["sigma"], None if one["relative_sigma"] is None else 100 * one["relative_sigma"])
            for one in self.to_frame().to_dicts()
        ]
        proven = f"{self.trajectory.duration:.4g} s; proven at every instant: {'; '.join(self.checked)}"
        unproven = f"; not checked: {'; '.join(self.not_checked)}" if self.not_checked else ""
        return f"<p>{for_html(proven + unproven)}</p>" + html_table(("parameter", "predicted sigma", "[%]"), rows)

    @property
    def checked(self) -> tuple[str, ...]:
        """Text of each kind of limit that the certificate proves at every instant."""
        rules = [f"rules on space ({', '.join(rule.name for rule in self.limits.rules)})"] if self.limits.rules else []
        return (*_proven_joints(self.certificate, self.limits), *(self.limits.checked or rules))

    @property
    def not_checked(self) -> tuple[str, ...]:
        """Text of each kind of limit that is not checked."""
        way = () if isinstance(self.trajectory, ApproachedTrajectory) else ("the way to the first posture (--start)",)
        return (*_unproven_torques(self.certificate, self.limits, self.model), *self.limits.not_checked, *way)

    def check(self, trajectory: Trajectory) -> None:
        """Refuse a motion that does not keep the limits of the design at every instant.

        Raises:
            DesignError: If it does not: the limit is named.
        """
        worst = self.certifier(trajectory, decide=True).worst_violation
        if worst is not None:
            raise DesignError(
                f"the motion of {trajectory.duration:.3g} s does not keep '{worst.name}': {worst.worst:.4g}, the limit "
                f"is {worst.limit:.4g}; it was not written"
            )


def _proven_joints(certificate: Certificate, limits: DesignLimits) -> list[str]:
    """Return a text for each kind of joint limit that a certificate covers, with joint names where it is not all."""
    scales = np.unique(np.ones(1) if limits.position_scale is None else limits.position_scale)
    part = " to ".join(f"{100 * scale:g}" for scale in dict.fromkeys((scales.min(), scales.max())))
    texts = ["positions" if scales.min() == 1 else f"positions ({part} % of their ranges)"]
    for kind, plural in (
        ("velocity", "velocities"), ("acceleration", "accelerations"), ("jerk", "jerks"),
        ("torque", f"{limits.torque_side} torques"),
    ):  # fmt: skip
        joints = _found_joints(certificate, limits, kind)
        texts += [plural + _of_some(joints, limits)] if joints else []
    return texts


def _unproven_torques(certificate: Certificate, limits: DesignLimits, model: Model) -> list[str]:
    """Return a text for the torques that a certificate does not cover."""
    found = _found_joints(certificate, limits, "torque")
    if not found:
        return ["torques (their limits or the inertias are unknown)"]
    others = [joint for joint in limits.motion.joints if joint not in found]
    missing = [f"torques{_of_some(others, limits)} (no limit is known)"] if others else []
    if model.payload != "none" and not any(finding.name.endswith(LOADED) for finding in certificate.findings):
        missing.append("torques with the payload (it is unknown)")
    return missing


def _found_joints(certificate: Certificate, limits: DesignLimits, kind: str) -> list[str]:
    names = {finding.name.removesuffix(LOADED) for finding in certificate.findings}
    return [joint for joint in limits.motion.joints if f"{kind} of {joint}" in names]


def _of_some(joints: Sequence[str], limits: DesignLimits) -> str:
    return "" if len(joints) == len(limits.motion.joints) else f" of {', '.join(joints)}"


def design_motion(
    model: Model,
    limits: DesignLimits,
    settings: DesignSettings,
    known: Known,
    *,
    start: Sequence[float] | None = None,
    callback: SearchCallback = no_progress,
    notes: Sequence[str] = (),
) -> Design:
    """Design the motion that makes a model's parameters most certain.

    Args:
        model: The unknown effects and the measured torques.
        limits: Limits that must hold at every instant.
        settings: The settings.
        known: Prior information about the arm.
        start: Posture (n,) from which the arm starts at rest and to which it returns; where the motion begins if
            not given.
        callback: Called with the progress of the search.
        notes: Notes on the prior information.

    Raises:
        DesignError: If the settings contradict each other, or no motion keeps the limits.
    """
    posture = None if start is None else _checked_start(start, limits, model.robot)
    ready, found = _searched(model, limits, settings, known, callback)
    problem, certifier = ready.problem, ready.certifier
    core = found.problem.trajectory(found.best.z)
    _check_use(core, limits, settings)
    forecast = ready.forecast()
    view = RecordedView(forecast, core, problem.torques)
    objective = problem.objective
    trajectory, certificate = core, found.best.certificate
    all_notes = [*limits.notes, *notes, *ready.notes]
    if posture is not None:
        trajectory, certificate = approached(core, posture, certifier, certificate, all_notes)
    accuracy = PredictedAccuracy(forecast)
    figures = accuracy(trajectory)
    if not figures.is_prepared:
        all_notes.append(TOO_SHORT)
    baseline, is_interrupted = None, found.is_interrupted
    try:
        if not is_interrupted:
            baseline = random_baseline(problem, certifier, lambda one: accuracy(alike(one, trajectory)), settings.seed)
    except KeyboardInterrupt:
        is_interrupted = True
    return Design(
        model, settings, limits, trajectory, "goals" if settings.goals else settings.criterion, objective.exact(view),
        _attained(objective, view), figures, baseline, certificate, certifier,
        weak_parameters(trajectory, accuracy, figures, limits.motion), found.starts, is_interrupted, tuple(all_notes),
    )  # fmt: skip


def _searched(
    model: Model, limits: DesignLimits, settings: DesignSettings, known: Known, callback: SearchCallback
) -> tuple[Assembled, Found]:
    """Return the best motion over all numbers of harmonics that are allowed, with its problem."""
    counts = settings.harmonic_counts if settings.motion == "fourier" else (0,)
    tried = []
    with open_workers(settings.scheduler, settings.threads, threads=True) as workers:
        for place, count in enumerate(counts):
            one = replace(settings, harmonics=count) if settings.motion == "fourier" else settings
            shared = Shared(assembled, model, limits, one, known)
            ready, part = shared.here, _part_of(callback, place, len(counts))
            found = search(shared, workers, starts=settings.starts, seed=settings.seed, callback=part)
            tried.append((ready, found))
            if found.is_interrupted:
                break
    return min(tried, key=lambda pair: pair[1].best.value)


def _part_of(callback: SearchCallback, place: int, count: int) -> SearchCallback:
    """Rescale the progress of one search to the total of several."""
    return lambda update: callback(replace(update, done=place * update.total + update.done, total=count * update.total))


class RecordedView:
    """What a motion gives at the recording's own samples: input of an objective's exact value."""

    def __init__(self, forecast: Forecast, trajectory: Trajectory, torques: TorqueBlock | None) -> None:
        self._plain, self._weighted = forecast.matrices(trajectory)
        self._earlier = forecast.unknowns.earlier
        self._trajectory, self._torques = trajectory, torques
        self._rate = forecast.unknowns.rate

    def information(self, weighting: Weighting) -> np.ndarray:
        """Return the information matrix (c, c), with that of earlier recordings."""
        matrix = self._weighted if weighting == "noise" else self._plain
        return matrix if self._earlier is None else matrix + self._earlier

    def torques(self) -> np.ndarray:
        """Return the torques (n, N) of the run with payload, or of the only run."""
        assert self._torques is not None  # goals about torques are refused where none are known
        samples = self._trajectory.sample(self._rate)
        return self._torques.function((samples.q, samples.qd, samples.qdd))[0]


def approached(
    core: Trajectory, posture: np.ndarray, certifier: Certifier, proven: Certificate, notes: list[str]
) -> tuple[Trajectory, Certificate]:
    """Return the motion with a way in from a posture and back, slow enough to keep every limit at every instant.

    If no pace keeps them on the straight way, the motion is returned as it is, with a note that says why.
    """
    duration = 1.0
    certificate = proven
    while duration <= LONGEST_APPROACH:
        whole = with_approach(core, posture, duration, duration)
        certificate = certifier(whole, decide=True)
        if certificate.holds:
            return whole, certifier(whole)
        duration *= 1.4
    worst = certificate.worst_violation
    broken = "a limit" if worst is None else f"'{worst.name}'"
    notes.append(
        f"no straight way from the start posture into the motion keeps {broken}: the motion begins at its own first "
        "posture, bring the arm there first"
    )
    return core, proven


def alike(core: Trajectory, recorded: Trajectory) -> Trajectory:
    """Return a motion with a way in and out like those of a recorded one, if that has them."""
    if not isinstance(recorded, ApproachedTrajectory):
        return core
    ways = recorded.way_in.duration, recorded.way_out.duration
    return with_approach(core, recorded.start_posture, *ways, recorded.end_posture)


def _checked_start(start: Sequence[float], limits: DesignLimits, robot: Robot) -> np.ndarray:
    posture = np.asarray(start, dtype=float)
    joints, motion = limits.motion.joints, limits.motion
    if posture.shape != (len(joints),) or not np.isfinite(posture).all():
        raise DesignError(
            f"start posture has {posture.size} numbers; allowed are {len(joints)} finite ones, joint by joint"
        )
    for row, joint in enumerate(joints):
        if not motion.lower[row] <= posture[row] <= motion.upper[row]:
            raise DesignError(
                f"start posture: {joint} at {posture[row]:.4g} is outside its limits {motion.lower[row]:.4g} to "
                f"{motion.upper[row]:.4g}; start inside them, or widen them by --position-scale or --limits"
            )
    for rule, (clearance,) in zip(limits.rules, clearances_at(robot, limits.rules, posture[:, None]), strict=True):
        if clearance < 0:
            raise DesignError(
                f"start posture: clearance '{rule.name}' is {clearance:.3g} m, with its margin; allowed is 0 or more: "
                "start elsewhere, or change that rule (--floor, --limits)"
            )
    return posture


def _check_use(core: Trajectory, limits: DesignLimits, settings: DesignSettings) -> None:
    """Refuse a motion so short that limits of speed leave hardly any range of motion."""
    extrema = core.extrema()
    used = (extrema.upper.value - extrema.lower.value) / (limits.motion.upper - limits.motion.lower)
    if used.max() < LEAST_USE:
        raise DesignError(
            f"duration {core.duration:g} s is too short: limits of speed and acceleration leave at most "
            f"{100 * used.max():.2g} % of a joint's range; take a longer duration or fewer harmonics"
        )


def _attained(objective: Objective, view: RecordedView) -> tuple[tuple[str, float, float], ...]:
    if not isinstance(objective, GoalAttainment):
        return ()
    return tuple((goal.name, goal.wanted, goal.figure(view)) for goal in objective.goals)


def design_to_json(design: Design) -> dict[str, Any]:
    """Return the content of a design's ``result.json``."""
    return plain(
        {
            "robot": design.model.robot.name,
            "motion": design.settings.motion,
            "duration": design.trajectory.duration,
            "checked": design.checked,
            "not_checked": design.not_checked,
            "capsules": design.limits.capsules or None,
            "criterion": design.objective,
            "criterion_value": design.value,
            "goals": [{"name": name, "wanted": wanted, "reached": reached} for name, wanted, reached in design.goals],
            **_figures(design.figures),
            "constraints": design.certificate.findings,
            "random_baseline": None if design.baseline is None else _figures(design.baseline),
            "weak": [
                {
                    "name": weak.name, "sigma": weak.sigma, "relative_sigma": weak.relative,
                    "longer": weak.longer, "faster": weak.faster, "others_known": weak.others, "remedy": weak.remedy,
                }
                for weak in design.weak
            ],
            "starts": design.starts,
            "interrupted": design.is_interrupted,
            "notes": design.notes,
        }
    )  # fmt: skip


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "condition_number": {
            "raw": figures.raw, "normalised": figures.normalised, "weighted": figures.weighted,
        },
        "log10_det_covariance": figures.log10_det_covariance,
        "predicted_sigma": dict(zip(figures.names, figures.sigma, strict=True)),
        "predicted_relative_sigma": dict(zip(figures.names, figures.relative_sigma, strict=True)),
    }  # fmt: skip
