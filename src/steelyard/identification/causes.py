"""Why a verdict is poor: another mounting, faults of the log, or what recordings of the fit and validation differ in.

These are the faults that ``steelyard check`` looks for; a verdict names the one that explains its residuals.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..judge import EFFORT, RATIO, SCALE, disagreement, recordings_agree
from ..observe import Observations, RowSource, reduce_rows
from ..progress import Stage
from ..verdict import Reason, Verdict, verdict_of
from .findings import LogFinding
from .fine_faults import other_mounting_found
from .gravity_fits import GravityFits, better_mounting
from .hypotheses import likely_cause, wrong_stamps
from .inputs import Inputs, sources_of
from .mounting import LARGE_TILT, MOUNTING, angle_between
from .plain_fit import PlainFit
from .reasons import set_up_reason
from .result import Identification

LEAST_SPREAD, LEAST_SCORE = 1.2, 4.0
"""Spread of recordings fitted alone over their sigmas, and score of one parameter, from which they may differ."""

_WELL_EXPLAINED = 0.05
"""A mounting that leaves smaller residuals than this, relative to the torques, needs no other cause."""
_SLOW = 0.8
"""Correlation of neighbouring residuals below which a mounting could not make them half as large."""


def with_causes(found: Identification, inputs: Inputs, stage: Stage) -> Verdict:
    """Return the verdict of an identification with what may be its cause, first of its reasons.

    Args:
        found: The identification, its verdict without a cause.
        inputs: Its recordings.
        stage: Called with the stage name.
    """
    verdict = found.verdict
    if verdict.grade == "poor" and _has_open_cause(verdict, found.findings):
        stage("looking for the cause")
        return _explained(found, inputs)
    if verdict.grade == "poor":
        return verdict
    causes: list[Reason] = []
    if not inputs.held_out and any(row.name == RATIO and row.grade != "good" for row in verdict.criteria):
        stage("comparing recordings")
        causes = _unlike_training(found, inputs, *_all_rows(found, inputs))
    if not found.settings.chooses_effects and _may_differ(found):
        stage("comparing the mounting of recordings")
        causes += _other_mounting(found, inputs)
    if _may_be_mounted_otherwise(found):
        # Many parameters may bend round gravity torques that are not as assumed: prediction alone does not show it.
        stage("checking the mounting")
        mounting = better_mounting(found.equations, inputs.training, found.resolved, found.settings.threads)
        causes += [] if mounting is None else [mounting.reason]
    return verdict_of(verdict.criteria, [*causes, *_cautions(verdict, causes)]) if causes else verdict


def _explained(found: Identification, inputs: Inputs) -> Verdict:
    """Return a poor verdict with the mounting or the fault of the log that explains it, first of its reasons."""
    equations, resolved = found.equations, found.resolved
    recordings, observations, causes = inputs.training, found.fit.observations, list[Reason]()
    if not inputs.held_out:
        recordings = (*inputs.training, *inputs.unseen)
        sources, observations = _all_rows(found, inputs)
        causes = _unlike_training(found, inputs, sources, observations)
    causes = causes or _other_mounting(found, inputs)
    if not causes:
        dead = [row for row in equations.model.rows if row not in equations.kinds_joints]
        plain = PlainFit(equations.model, inputs.training, found.settings, dead)
        causes = [set_up_reason(one) for one in wrong_stamps(plain)]
    if not causes:
        mounting = better_mounting(equations, inputs.training, resolved, found.settings.threads)
        cause = None
        if mounting is None or mounting.residual > _WELL_EXPLAINED:
            extent, hidden = found.fit_error.extent, found.plausibility.hidden
            cause = likely_cause(recordings, equations, resolved, observations, extent, hidden)
        if cause is not None and (mounting is None or cause.misfit < mounting.residual):
            causes = [Reason(cause.text, cause.remedy, "likely cause", "poor", "plausible")]
        elif mounting is not None:
            causes = [mounting.reason]
    return verdict_of(found.verdict.criteria, [*causes, *_cautions(found.verdict, causes)])


def _cautions(verdict: Verdict, causes: Sequence[Reason]) -> list[Reason]:
    """Return the reasons of a verdict that are not those of its criteria, nor a tilt beside another mounting."""
    others = {row.name for row in verdict.criteria}
    others |= {MOUNTING} & {cause.criterion for cause in causes}
    return [reason for reason in verdict.reasons if reason.criterion not in others]


def _other_mounting(found: Identification, inputs: Inputs) -> list[Reason]:
    """Return a training recording of an arm that was mounted otherwise than in the others, if there is one."""
    if len(inputs.training) < 2:
        return []
    fits = GravityFits(found.equations, inputs.training, found.resolved, found.settings.threads)
    return [] if fits.other_mounting is None else [set_up_reason(other_mounting_found(fits.other_mounting))]


def _may_differ(found: Identification) -> bool:
    """Return whether recordings differ by more than their sigmas do by chance."""
    agreed = found.repeatability
    return agreed is not None and (agreed.spread > LEAST_SPREAD or abs(agreed.worst_z) > LEAST_SCORE)


def _may_be_mounted_otherwise(found: Identification) -> bool:
    """Return whether gravity may not be as assumed: a large tilt, or residuals slow or dependent on a position."""
    estimate, robot = found.fit.estimate, found.equations.model.robot
    turned = robot.tilted(dict(zip(estimate.columns, estimate.values.tolist(), strict=True)))
    if angle_between(robot.gravity, turned.gravity) > LARGE_TILT:
        return True
    least = found.settings.thresholds.pattern / 100
    return any(
        joint.lag_one > _SLOW
        or any(p.signal == "position" and p.kind == "mean" and p.share_explained > least for p in joint.patterns)
        for joint in found.tests
    )


def _all_rows(found: Identification, inputs: Inputs) -> tuple[list[RowSource], Observations]:
    """Return rows and factors of the recordings of fit and validation."""
    sources = sources_of((*inputs.training, *inputs.unseen), found.equations, found.resolved)
    return sources, reduce_rows(sources)


def _unlike_training(
    found: Identification, inputs: Inputs, sources: Sequence[RowSource], observations: Observations
) -> list[Reason]:
    """Return what validation recordings have that those of the fit have not, or the reverse: a payload, a gain."""
    unseen = {label for label, _ in inputs.unseen}
    repeated = recordings_agree(observations, sources, found.fit.raw.columns)
    differs = disagreement(observations, found.equations, repeated, unseen)
    if differs is None or not differs.cause:
        return []
    remedy, who = differs.remedy, set(differs.carrying or [differs.recording])
    if not (who <= unseen or (differs.carrying and unseen.isdisjoint(who))):
        return []
    if differs.carrying and (unseen.isdisjoint(who) or who == unseen):
        other = "carry it" if unseen.isdisjoint(who) else "do not carry it"
        remedy = (
            f"validate with recordings that {other}; or declare it in the set-up of those with it (payload = "
            '"name"), and fit recordings with and without it'
        )
    return [Reason(differs.text, remedy, "likely cause", found.verdict.grade, "predicts")]


def _has_open_cause(verdict: Verdict, findings: Sequence[LogFinding]) -> bool:
    """Return whether the mounting or an exchanged column may be why a verdict is poor.

    Faults that the checks or the tests of the set-up found are causes themselves; but an odd ratio of motor and joint
    torques may be a symptom of another fault. Exchanging columns does not explain torques of a wrong size.
    """
    severe = {one.kind for one in findings if one.severity == "severe"}
    if any(one.grade == "poor" and one.criterion in ("set-up", "one recording") for one in verdict.reasons):
        return False
    poor = [row.name for row in verdict.criteria if row.grade == "poor" and row.question != "known"]
    return severe <= {"torque_ratio"} and (bool(severe) or any(name not in (EFFORT, SCALE) for name in poor))
