"""The evidence for the verdict on an identification: figures of its rows, and cautions with remedies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..judge import (
    Disagreement,
    Evaluation,
    IdentificationEvidence,
    JointTests,
    Pattern,
    faster_joints,
    hardly_moving,
    judge,
    wider_joints,
)
from ..observe import Equations, ResolvedPreparation, RowSource
from ..text import counted
from ..verdict import Grade, Reason, Verdict, first_named
from .bias_reasons import bias_reasons
from .consistent import CostCause, consistency_reasons, mass_reasons, massless_reasons, prior_reasons
from .findings import Diagnosed, balancer_reasons, finding_reasons, unseen_reasons, validation_reasons
from .fine_faults import loads, tested_set_up
from .fitting import ArmFit
from .mounting import MOUNTING, tilt_reasons
from .payload_body import COLUMNS, impossible_payload, is_missing, mass_text, unlike_file
from .plain_fit import PlainFit
from .result import Identification
from .widened import relative_sigmas, widening_reasons

_FAR, _MANY_FAR = 2.0, 0.2
"""More than this part of the parameters farther than so many sigmas from least squares is worth a sentence."""

ENDOGENOUS = 0.01
"""Least squares is called biased where the test of the instruments has a probability below this."""

MANY_OUTLIERS = 15.0
"""From this part of a joint's rows on [%], those down-weighted are not called outliers."""

WORSE = 1.5
"""A method whose error on unseen motion is this many times that of least squares predicts worse."""


@dataclass(frozen=True)
class UnseenErrors:
    """Relative errors on unseen motion with all parameters [%].

    Attributes:
        method: Of the chosen method.
        plain: Of weighted least squares of the same recordings.
    """

    method: float
    plain: float

    @property
    def is_worse(self) -> bool:
        """Whether the method predicts clearly worse than least squares."""
        return self.method > WORSE * self.plain

    @property
    def text(self) -> str:
        """Both errors, for messages."""
        return f"{self.method:.3g} % on unseen motion, against {self.plain:.3g} % of weighted least squares"


LARGE = {"torque_gain": 0.05, "torque_unit": 0.05, "joint_zero": 0.05, "position_scale": 0.05, "tilt": 1.0}
"""Errors of the set-up beyond which a result is fair at best: relative gain, [rad or m], [deg]."""


def set_up_reasons(fit: PlainFit) -> list[Reason]:
    """Return errors of the set-up and an undeclared load as reasons of a verdict, with the words of a check."""
    errors, turned = tested_set_up(fit)
    told = [*errors, *(one for one in loads(turned) if one.code == "undeclared_payload")]
    return [set_up_reason(one) for one in told if one.severity != "info"]


def set_up_reason(one: Diagnosed) -> Reason:
    """Return an error of the set-up as a reason; a tilt of all recordings is one that the estimate may tell, too."""
    what = "one recording" if one.recording else MOUNTING if one.code == "tilt" else "set-up"
    return Reason(one.text, one.remedy, what, _set_up_grade(one), "plausible")


def _set_up_grade(one: Diagnosed) -> Grade | None:
    """Return the best grade beside an error of the set-up; None if it is small, or none of the result."""
    if one.severity == "bad" and one.code not in LARGE:
        return "poor"
    if one.code not in LARGE or one.value is None:
        return None
    size = abs(one.value - 1) if one.code in ("torque_gain", "torque_unit", "position_scale") else abs(one.value)
    return "fair" if size > LARGE[one.code] else None


def method_reasons(equations: Equations, fit: ArmFit, errors: UnseenErrors | None) -> list[Reason]:
    """Return what the method's own test says, and whether least squares agrees and which of them predicts better.

    Args:
        equations: Model and base parameters.
        fit: The fit.
        errors: Errors of the method and of least squares; None for least squares itself.
    """
    if errors is None or fit.detail is None:
        return []
    found = [*_endogeneity_reasons(equations, fit, errors), *_distance_reasons(equations, fit, errors)]
    if errors.is_worse:
        text = f"method '{fit.estimate.method}' predicts worse than least squares: its error is {errors.text}"
        remedy = "use --method gls (the default); keep this method only for its tests"
        found.insert(0, Reason(text, remedy, "method"))
    return found


def _endogeneity_reasons(equations: Equations, fit: ArmFit, errors: UnseenErrors) -> Iterator[Reason]:
    """Yield a sentence where the test of the instruments says that least squares is biased."""
    test = fit.detail.endogeneity if fit.detail else None
    if test is not None and test.p < ENDOGENOUS:
        yield Reason(
            f"rows and errors correlate (Durbin-Wu-Hausman: F = {test.statistic:.3g}, p = {test.p:.1g}, most for "
            f"{equations.base.name_of[test.worst]}): least squares on these rows is biased; a note says by how many "
            "sigmas",
            "filter and decimate more and test again: this method predicts worse"
            if errors.is_worse
            else "keep this method, or filter and decimate more and test again",
            "method",
        )


def _distance_reasons(equations: Equations, fit: ArmFit, errors: UnseenErrors) -> Iterator[Reason]:
    """Yield a sentence where a method and weighted least squares of the same recordings exclude each other."""
    if fit.plain is None:
        return
    there, here = fit.plain, fit.estimate
    place = [here.columns.index(name) for name in there.columns]
    z = np.abs(here.values[place] - there.values) / np.hypot(here.sigma[place], there.sigma)
    far, worst = int((z > _FAR).sum()), int(np.argmax(z))
    if far > _MANY_FAR * len(z):
        yield Reason(
            f"{far} of {len(z)} parameters lie more than {_FAR:g} sigmas from weighted least squares of the same "
            f"recordings, {equations.base.name_of[there.columns[worst]]} by {z[worst]:.1f}: one of the two is biased, "
            f"or its sigmas are too small; its error is {errors.text}",
            "use --method gls unless you know why they differ",
            "method",
        )


_MOST_PATTERNS = 3
_FAR_GAIN = 0.5
"""A gain that differs by more between recordings is a wrong sign or unit."""
_WHITE = ("classical", "cramer_rao")
"""Covariances that take residuals as white."""


def judged(found: Identification, cautions: Sequence[Reason]) -> Verdict:
    """Return the verdict; patterns in the residuals follow its reasons."""
    names, essential = found.equations.base.name_of, found.essential
    unseen, repeated, tests = found.unseen_error, found.repeatability, found.tests
    relative = dict(zip(found.sigmas(), relative_sigmas(essential, found.widening).tolist(), strict=True))
    evidence = IdentificationEvidence(
        fit_percent=found.fit_error.relative_percent,
        unseen_percent=unseen.relative_percent,
        condition=found.condition.normalised,
        relative_sigmas=relative,
        correlation=[test.correlation for test in tests],
        spread=None if repeated is None else repeated.spread,
        noise_limited=unseen.noise_limited,
        unseen_joints={f"{error.joint} ({error.kind})": error.relative_percent for error in unseen.joints},
        correlation_in_sigmas=essential.covariance_kind not in _WHITE,
        spread_names=("", "") if repeated is None else (names[repeated.worst_column], repeated.worst_recording),
        plausibility=found.plausibility,
        patterns={f"{test.joint} ({test.kind})": 100 * test.largest_share for test in tests if test.patterns},
        is_robust=found.fit.robust is not None,
    )
    patterns = _strongest_patterns(tests)[:_MOST_PATTERNS]
    strongest = [Reason(pattern.text, pattern.remedy, "residuals") for pattern in patterns]
    return judge(evidence, found.settings.thresholds, [*strongest, *cautions])


def _strongest_patterns(tests: Sequence[JointTests]) -> list[Pattern]:
    """Return the patterns in the residuals of all joints, those that explain most first."""
    return sorted((pattern for test in tests for pattern in test.patterns), key=lambda one: -one.share_explained)


def cautions_of(found: Identification, plain_error: Evaluation | None, cause: CostCause | None = None) -> list[Reason]:
    """Return what a reader must know that no row of the verdict says.

    Args:
        found: The identification.
        plain_error: Error of weighted least squares on unseen motion, for methods beyond least squares.
        cause: The user's bounds or prior, if they make the consistent arm predict worse.
    """
    errors = None
    if plain_error is not None:
        errors = UnseenErrors(found.unseen_error_of_all.relative_percent, plain_error.relative_percent)
    return [
        *finding_reasons(found.findings),
        *tilt_reasons(found.equations, found.fit.estimate),
        *_disagreement(found.disagreement),
        *_held_out(found.held_out),
        *_distrusted(found.fit),
        *_down_weighted(found.fit),
        *method_reasons(found.equations, found.fit, errors),
        *_dropped(found.fit),
        *balancer_reasons(found.equations, found.estimate),
        *_payload(found),
        *prior_reasons(found.standard),
        *massless_reasons(found.standard),
        *mass_reasons(found.standard, _strongest_patterns(found.tests)),
        *consistency_reasons(
            found.standard, found.unseen_error_of_all, found.standard_error, found.settings.thresholds.error_good, cause
        ),
        *bias_reasons(found),
        *_extrapolated(found),
        *validation_reasons(found.fit_error, found.unseen_error, found.settings.thresholds.error_good),
        *unseen_reasons(found.unseen_patterns),
        *widening_reasons(found.widening, found.equations.base.name_of),
        *_selected(found),
    ]


def _disagreement(found: Disagreement | None) -> Iterator[Reason]:
    """Yield which recording is not of the same arm; with an undeclared payload the result is of no arm."""
    if found is not None:
        grade: Grade = "poor" if found.cause == "payload" or abs(found.gain - 1) > _FAR_GAIN else "fair"
        yield Reason(found.text, found.remedy, "recordings", grade, "plausible")


def _held_out(part: float) -> Iterator[Reason]:
    if part:
        yield Reason(
            f"no validation recording was given: the last {100 * part:.0f} % of each recording were held out, of the "
            "same day and the same kind of motion",
            "record another motion and give it with --validate",
            "validation",
        )


def _distrusted(fit: ArmFit) -> Iterator[Reason]:
    if not fit.distrust:
        return
    cause, remedy = (
        "the residuals are not noise alone",
        "add the effects that the residuals point to; sigmas hold for noise, not for what a model lacks",
    )
    if fit.slow_noise:
        cause = "the noise is slow, or the model lacks something slow"
        remedy = "record longer: with noise correlated over a second, 95 % intervals cover 85 to 90 %"
    yield Reason(
        f"{cause}: generalised least squares fits {fit.distrust:.2g} times worse than weighted, which was used "
        "instead, with the covariance of correlated noise",
        remedy,
        "method",
    )


def _down_weighted(fit: ArmFit) -> Iterator[Reason]:
    """Yield where so many rows are down-weighted that they are no outliers."""
    robust = fit.robust
    if robust is not None and robust.most.percent > MANY_OUTLIERS:
        yield Reason(
            f"{robust.most.percent:.0f} % of the rows of {robust.most.joint} ({robust.most.kind}) are down-weighted as "
            "outliers: so many are what the model lacks, or a fault of the log",
            "identify without --robust too and compare; look at the residuals, or try --select",
            "method",
        )


def _dropped(fit: ArmFit) -> Iterator[Reason]:
    if fit.raw.dropped:
        yield Reason(
            f"not identifiable from these recordings: {', '.join(fit.raw.dropped)}; their columns depend on those of "
            "other parameters, they were left out",
            "move all joints, together and at several speeds and postures",
            "condition",
        )


def _payload(found: Identification) -> Iterator[Reason]:
    carried, body, names = found.equations.model.payload, found.payload, found.equations.names
    missing = [name for name in COLUMNS if name in names and name not in found.estimate.columns]
    if carried == "loaded":
        yield Reason(
            "all recordings carry the payload: its mass and moments are indistinguishable from those of the last "
            "links, and are contained in them",
            "record the same arm without the payload too; two data sets separate it",
            "payload",
        )
    elif carried == "paired" and (body is None or missing):
        yield Reason(
            f"the payload is not fully identifiable: {', '.join(missing)} have no effect of their own in these "
            "recordings",
            "move the payload's joints about all axes in the loaded recording",
            "payload",
        )
    elif carried == "paired" and body is not None and is_missing(*body.mass, found.equations.model.robot):
        yield Reason(
            f"a payload is declared, but its mass comes out as {mass_text(body)}",
            "check which recordings were made with the payload, and declare it for these alone",
            "payload",
            "poor",
            "plausible",
        )
    elif carried == "paired" and body is not None:
        names = [one.payload for one in found.training]
        yield from unlike_file(body, found.equations.model.robot, names, "fair")
    if carried == "paired" and body is not None and (impossible := impossible_payload(body)):
        yield Reason(
            f"no body is like the payload found: {', '.join(impossible)}",
            "check which recordings are loaded, and the signs and units of their torques",
            "payload",
            "poor",
            "plausible",
        )


def _extrapolated(found: Identification) -> Iterator[Reason]:
    """Yield where unseen motion is beyond that of the fit, or too little of it to judge by."""
    train, unseen = found.fit_error, found.unseen_error
    still = hardly_moving(train, unseen)
    if still:
        most = 2 * len(still) > len(unseen.joint_names)
        yield Reason(
            f"the unseen motion hardly moves {first_named(still)}: what is judged there is {'mostly ' * most}"
            "holding torque, not motion",
            "validate with motion as wide and as fast as that you want to predict",
            "validation",
            "fair" if most else None,
            "predicts",
        )
    faster = faster_joints(train, unseen)
    if faster:
        yield Reason(
            f"the unseen motion is faster than the training on {', '.join(faster)}: friction is extrapolated there",
            "train on motion as fast as the motion you want to predict",
            "validation",
        )
    wider = wider_joints(train, unseen)
    if wider:
        yield Reason(
            f"the unseen motion reaches positions outside the training on {', '.join(wider)}: what depends on position "
            "is extrapolated there",
            "train on motion as wide as the motion you want to predict",
            "validation",
        )


def _selected(found: Identification) -> Iterator[Reason]:
    if found.selection is not None and found.selection.steps:
        yield Reason(
            f"{counted(len(found.selection.steps), 'effect')} chosen by these data: intervals ignore the choice and "
            "are slightly too narrow",
            "identify other recordings with the same effects (--effects) where coverage matters",
            "selection",
        )
    if found.reduction.steps:
        yield Reason(
            f"the model is reduced by {counted(len(found.reduction.steps), 'parameter')} not needed for these data: "
            "the intervals of noise hold if these are zero, the widened ones allow for what they may be",
            "take the widened intervals, or identify with --reduction none",
            "selection",
        )


def notes_of(resolved: ResolvedPreparation, sources: Sequence[RowSource], fit: ArmFit) -> tuple[str, ...]:
    """Return how the rows came about, settings found, samples left out, and what the method says of itself."""
    notes = [*resolved.reasons, *(fit.detail.notes if fit.detail else ())]
    notes += [] if fit.robust is None else fit.robust.notes
    masked = np.max([source.masked for source in sources], axis=0)
    if masked.max(initial=0.0) > 0:
        worst = int(np.argmax(masked))
        _, joint = sources[0].equations.kinds_joints[worst]
        notes.append(
            f"samples slower than standstill are left out of a joint's own rows: at most {100 * masked[worst]:.2g} % "
            f"({joint})"
        )
    notes += [f"{source.label}: {note}" for source in sources for note in source.notes]
    return tuple(notes)
