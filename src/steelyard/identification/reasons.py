"""The evidence of the verdict on an identification: figures of its rows, and cautions as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..judge import (
    Bias,
    Disagreement,
    Evaluation,
    IdentificationEvidence,
    JointError,
    JointTests,
    Plausibility,
    Reduction,
    Repeatability,
    Thresholds,
    faster_joints,
    judge,
)
from ..observe import Equations, ResolvedPreparation, RowSource
from ..verdict import Grade, Reason, Verdict
from .fitting import ArmFit
from .inputs import Inputs
from .result import COLUMNS, ConditionNumbers, PayloadBody

_FAR, _MANY_FAR = 2.0, 0.2
"""More than this part of the parameters farther than so many sigmas from least squares is worth a sentence."""

ENDOGENOUS = 0.01
"""Least squares is called biased where the test of the instruments has a probability below this."""


WORSE = 1.5
"""A method whose error on unseen motion is this many times that of least squares predicts worse."""


@dataclass(frozen=True)
class UnseenErrors:
    """Relative errors on unseen motion with all parameters [%].

    Attributes:
        method: Of the method that was asked for.
        plain: Of weighted least squares of the same recordings.
    """

    method: float
    plain: float

    @classmethod
    def of(cls, method: Evaluation, plain: Evaluation) -> UnseenErrors:
        """Return the errors of two evaluations of the same recordings."""
        return cls(method.relative_percent, plain.relative_percent)

    @property
    def is_worse(self) -> bool:
        """Whether the method predicts clearly worse than least squares."""
        return self.method > WORSE * self.plain

    @property
    def text(self) -> str:
        """Both in words."""
        return f"{self.method:.3g} % on unseen motion, against {self.plain:.3g} % of weighted least squares"


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
        worse = Reason(
            f"method '{fit.estimate.method}' predicts worse than least squares: its error is {errors.text}",
            "use --method gls (the default); keep this method only for its tests",
            "method",
        )
        return [worse, *found]
    return found


def _endogeneity_reasons(equations: Equations, fit: ArmFit, errors: UnseenErrors) -> list[Reason]:
    """Return a sentence where the test of the instruments says that least squares is biased."""
    test = fit.detail.endogeneity if fit.detail else None
    if test is None or test.p >= ENDOGENOUS:
        return []
    name = next(base.name for base in equations.base.base if base.kept == test.worst)
    return [
        Reason(
            f"rows and errors correlate (Durbin-Wu-Hausman: F = {test.statistic:.3g}, p = {test.p:.1g}, most for "
            f"{name}): least squares on these rows is biased; a note says by how many sigmas",
            "filter and decimate more and test again: this method predicts worse"
            if errors.is_worse
            else "keep this method, or filter and decimate more and test again",
            "method",
        )
    ]


def _distance_reasons(equations: Equations, fit: ArmFit, errors: UnseenErrors) -> list[Reason]:
    """Return a sentence where a method and weighted least squares of the same recordings exclude each other."""
    if fit.plain is None:
        return []
    there, here = fit.plain, fit.estimate
    place = [here.columns.index(name) for name in there.columns]
    z = np.abs(here.values[place] - there.values) / np.hypot(here.sigma[place], there.sigma)
    far, worst = int((z > _FAR).sum()), int(np.argmax(z))
    if far <= _MANY_FAR * len(z):
        return []
    name = next(base.name for base in equations.base.base if base.kept == there.columns[worst])
    return [
        Reason(
            f"{far} of {len(z)} parameters lie more than {_FAR:g} sigmas from weighted least squares of the same "
            f"recordings, {name} by {z[worst]:.1f}: one of the two is biased, or tells sigmas that are too small; its "
            f"error is {errors.text}",
            "use --method gls unless you know why they differ",
            "method",
        )
    ]


_MOST_PATTERNS = 3
_FAR_GAIN = 0.5
"""A gain that differs by more between recordings is a wrong sign or unit."""
_WHITE = ("classical", "cramer_rao")
"""Covariances that take residuals as white."""


def judged(
    thresholds: Thresholds,
    equations: Equations,
    fitted: Evaluation,
    unseen: Evaluation,
    condition: ConditionNumbers,
    reduction: Reduction,
    tests: Sequence[JointTests],
    repeated: Repeatability | None,
    plausible: Plausibility,
    cautions: Sequence[Reason],
) -> Verdict:
    """Return the verdict; patterns in the residuals follow its reasons."""
    names = {base.kept: base.name for base in equations.base.base}
    essential = reduction.estimate
    relative = {names[c]: float(r) for c, r in zip(essential.columns, essential.relative_sigma, strict=True)}
    evidence = IdentificationEvidence(
        fit_percent=fitted.relative_percent,
        unseen_percent=unseen.relative_percent,
        condition=condition.normalised,
        relative_sigmas=relative,
        correlation=[test.correlation for test in tests],
        spread=None if repeated is None else repeated.spread,
        noise_limited=unseen.noise_limited,
        unseen_joints={_called(error): error.relative_percent for error in unseen.joints},
        correlation_in_sigmas=essential.covariance_kind not in _WHITE,
        spread_names=("", "") if repeated is None else (names[repeated.worst_column], repeated.worst_recording),
        plausibility=plausible,
        patterns={f"{test.joint} ({test.kind})": 100 * test.largest_share for test in tests if test.patterns},
    )
    return judge(evidence, thresholds, [*_pattern_reasons(tests), *cautions])


def _called(error: JointError) -> str:
    return f"{error.joint} ({error.kind})"


def _pattern_reasons(tests: Sequence[JointTests]) -> list[Reason]:
    patterns = [pattern for test in tests for pattern in test.patterns]
    strongest = sorted(patterns, key=lambda pattern: -pattern.share_explained)[:_MOST_PATTERNS]
    return [Reason(pattern.text, pattern.remedy, "residuals") for pattern in strongest]


def cautions_of(
    inputs: Inputs,
    equations: Equations,
    fit: ArmFit,
    reduction: Reduction,
    fitted: Evaluation,
    unseen: Evaluation,
    bias: Bias | None,
    body: PayloadBody | None,
    errors: UnseenErrors | None,
    thresholds: Thresholds,
) -> list[Reason]:
    """Return what a reader must know that no row of the verdict says."""
    found = [
        *_held_out(inputs),
        *_distrusted(fit),
        *method_reasons(equations, fit, errors),
        *_dropped(fit),
        *_payload(equations, fit, body),
        *_biased(equations, bias, thresholds),
    ]
    faster = faster_joints(fitted, unseen)
    if faster:
        found.append(
            Reason(
                f"the unseen motion is faster than the training on {', '.join(faster)}: friction is extrapolated there",
                "train on motion as fast as the motion you want to predict",
                "validation",
            )
        )
    if reduction.steps:
        found.append(
            Reason(
                f"{len(reduction.steps)} parameters were left out because these data do not need them: intervals of "
                "the reduced model ignore the selection step and are slightly too narrow",
                "identify with --reduction none where coverage matters",
                "selection",
            )
        )
    return found


def disagreement_reasons(found: Disagreement | None) -> list[Reason]:
    """Return which recording is not of the same arm; with a payload that nobody declared the result is of no arm."""
    if found is None:
        return []
    grade: Grade = "poor" if found.cause == "payload" or abs(found.gain - 1) > _FAR_GAIN else "fair"
    return [Reason(found.text, found.remedy, "recordings", grade, "plausible")]


def _held_out(inputs: Inputs) -> list[Reason]:
    if not inputs.held_out:
        return []
    return [
        Reason(
            f"no validation recording was given: the last {100 * inputs.held_out:.0f} % of each recording were held "
            "out, "
            "of the same day and the same kind of motion",
            "record another motion and give it with --validate",
            "validation",
        )
    ]


def _distrusted(fit: ArmFit) -> list[Reason]:
    if not fit.distrust:
        return []
    used = (
        f"generalised least squares fits {fit.distrust:.2g} times worse than weighted, which was used instead, with "
        "the covariance of correlated noise"
    )
    if fit.slow_noise:
        return [
            Reason(
                f"the noise is slow, or the model lacks something slow: {used}",
                "record longer: with noise correlated over a second, 95 % intervals cover 85 to 90 %",
                "method",
            )
        ]
    return [
        Reason(
            f"the residuals are not noise alone: {used}",
            "add the effects that the residuals ask for; sigmas hold for noise, not for what a model lacks",
            "method",
        )
    ]


def _dropped(fit: ArmFit) -> list[Reason]:
    names = fit.raw.dropped
    if not names:
        return []
    return [
        Reason(
            f"these recordings cannot tell {', '.join(names)} from other parameters: their columns depend on the "
            "others; "
            "they were left out",
            "move all joints, together and at several speeds and postures",
            "condition",
        )
    ]


def _payload(equations: Equations, fit: ArmFit, body: PayloadBody | None) -> list[Reason]:
    if equations.model.payload == "loaded":
        return [
            Reason(
                "all recordings carry the payload: its mass and moments cannot be told from those of the last "
                "links, and "
                "are contained in them",
                "record the same arm without the payload too; two data sets separate it",
                "payload",
            )
        ]
    if equations.model.payload != "paired":
        return []
    missing = [name for name in COLUMNS if name in equations.names and name not in fit.estimate.columns]
    if body is None or missing:
        return [
            Reason(
                f"the payload cannot be told in full: {', '.join(missing)} have no effect of their own in these "
                "recordings",
                "move the payload's joints about all axes in the loaded recording",
                "payload",
            )
        ]
    mass, sigma = body.mass
    if abs(mass) < 3 * sigma:
        return [
            Reason(
                f"a payload is declared, but its mass comes out as {mass:.3g} +- {sigma:.2g} kg: none is seen",
                "check that the right recordings are declared as loaded",
                "payload",
            )
        ]
    return []


def _biased(equations: Equations, bias: Bias | None, thresholds: Thresholds) -> list[Reason]:
    if bias is None:
        return []
    names = {base.kept: base.name for base in equations.base.base}
    found = [*_late(bias, thresholds), *_exposed(bias, names)]
    if bias.named:
        ratio = dict(zip(bias.columns, bias.over_sigma, strict=True))
        named = ", ".join(f"{names[name]} ({ratio[name]:+.1f} sigma)" for name in bias.named[:6])
        more = f" and {len(bias.named) - 6} more" if len(bias.named) > 6 else ""
        found.append(
            Reason(
                f"bias by position errors, wrong signs near reversals, filter or delay is estimated for {named}{more}",
                "read positions more finely, move faster, change the low-pass cut-off, or correct the delay (--delay)",
                "bias",
            )
        )
    return found


def _late(bias: Bias, thresholds: Thresholds) -> list[Reason]:
    delays = bias.delays
    remedy = "check how that torque is stamped; --delay moves all torques alike"
    if delays.has_common:
        (delay, sigma), where = delays.common, "all joints together"
        remedy = f"identify with {delays.remedy}, which puts the torques back in time; or mend the log's stamps"
    elif delays.significant:
        worst = max(delays.significant, key=lambda e: abs(delays.delay[e]))
        delay, sigma = float(delays.delay[worst]), float(delays.sigma[worst])
        where = "{1} ({0})".format(*delays.equations[worst])
    else:
        return []
    late = "late" if delay > 0 else "early"
    return [
        Reason(
            f"torques seem {late} against positions, by {1e3 * abs(delay):.2g} +- {1e3 * sigma:.1g} ms on {where}: "
            "inertia then looks like viscous friction",
            remedy,
            "delay",
            "fair" if delays.has_common and abs(delay) >= thresholds.delay else None,
        )
    ]


def _exposed(bias: Bias, names: Mapping[str, str]) -> list[Reason]:
    """Return what a delay that was not found could still do."""
    if bias.delays.has_common or not bias.exposed:
        return []
    exposure = dict(zip(bias.columns, bias.delays.exposure, strict=True))
    named = ", ".join(f"{names[name]} ({exposure[name]:.1f} sigma)" for name in bias.exposed[:6])
    return [
        Reason(
            f"these recordings cannot see a common delay of {1e3 * bias.delays.common[1]:.2g} ms between torques and "
            f"positions, which would bias {named}",
            "trust them only if you know that torques and positions are in time; more varied accelerations help",
            "delay",
        )
    ]


def notes_of(resolved: ResolvedPreparation, sources: Sequence[RowSource], fit: ArmFit) -> tuple[str, ...]:
    """Return how the rows came about, settings found, samples left out, and what the method says of itself."""
    notes = [*resolved.reasons, *(fit.detail.notes if fit.detail else ())]
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
