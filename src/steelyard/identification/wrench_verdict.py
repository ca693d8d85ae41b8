"""The rows of the verdict on a payload from a force/torque sensor: does it explain the wrench, and can it be a payload.

A wrench in other axes, or poses with the numbers of their quaternions in another order, leave large residuals. Units
that are wrong by a thousand leave none, and show only in a mass or a centre that no payload has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..verdict import (
    Grade,
    Reason,
    Verdict,
    VerdictRow,
    graded_row,
    row_below,
    row_not_judged,
    small_is_good,
    verdict_of,
    worst_grade,
)
from .payload_body import MASS_OVER_ARM, PayloadBody, impossible_payload

RESIDUAL = (3.0, 10.0)
"""Residual over the payload's own force or moment [%]: good and fair up to these."""
LIGHT, HEAVY = (0.02, 0.005), (100.0, 500.0)
"""Masses [kg] that are good and fair: from the first on, and, where the arm's own is not known, up to the second."""
NEAR, FAR = 1e-3, (1.0, 2.0)
"""A centre nearer to the origin of the sensor is that of no body [m]; farther, where the arm's reach is not known."""
FAR_BETTER = 1 / 3
"""Part of the residual that another reading of the log must leave to be named as the likely cause."""
MASS_SIGMA, CENTRE_SIGMA = (3.0, 20.0), (2.0, 10.0)
"""Sigma of the mass [%] and of the centre [mm]: good and fair up to these."""
SMALLEST_LEVER = 0.01
"""Moments are judged against those of the weight at this lever at least [m]: a centre may be at the origin."""
_UNITS = "check the units of the wrench's columns (unit = [...] in the set-up): forces in N, moments in N m"
_COLUMNS = (
    "check order, axes and signs of the wrench's columns, and the poses; if the sensor is as noisy as that, average "
    "over each pose, or lower --cutoff"
)


@dataclass(frozen=True, eq=False)
class WrenchEvidence:
    """The numbers on which the verdict rests.

    Attributes:
        body: The payload.
        deviation: Deviation of residual forces and moments, per axis (2,) [N, N m].
        explained: Rms of the payload's own force and moment, as vectors (2,) [N, N m].
        reach: Reach of the arm [m]; None if not known.
        arm_mass: Mass of the arm's moving links [kg]; None if not known.
        others: The log read in other ways.
    """

    body: PayloadBody
    deviation: np.ndarray
    explained: np.ndarray
    reach: float | None = None
    arm_mass: float | None = None
    others: Sequence[OtherReading] = ()

    @property
    def residual_percent(self) -> np.ndarray:
        """Residual force and moment over those of the payload (2,) [%]."""
        force, moment = self.explained
        own = np.maximum([force, max(moment, SMALLEST_LEVER * force)], 1e-12)
        return 100 * np.sqrt(3) * self.deviation / own

    @property
    def explains(self) -> bool:
        """Whether residuals are good, so that no other reading need be tried."""
        return bool(self.residual_percent.max() <= RESIDUAL[0])


@dataclass(frozen=True, eq=False)
class OtherReading:
    """The log read in another way.

    Attributes:
        text: How, in words.
        remedy: What to declare if it is the right one.
        evidence: What it gives.
    """

    text: str
    remedy: str
    evidence: WrenchEvidence


def judge_wrench(evidence: WrenchEvidence) -> Verdict:
    """Return the verdict on a payload from a force/torque sensor."""
    rows = (_mass(evidence), _centre(evidence), *_residuals(evidence), *_known(evidence.body))
    return verdict_of(rows, [*_likely_cause(evidence), *_cautions(evidence.body)])


def _percent(value: float) -> str:
    """Return a part for a reader: beyond a thousand its digits mean nothing."""
    return f"{value:.2g} %" if value < 99.5 else f"{value:.0f} %" if value <= 1000 else "over 1000 %"


def _residuals(evidence: WrenchEvidence) -> list[VerdictRow]:
    rows = []
    names = (("force", "weight", "N"), ("moment", "moment", "N m"))
    for k, (what, own, unit) in enumerate(names):
        part, size = float(evidence.residual_percent[k]), np.sqrt(3) * evidence.deviation[k]
        text = f"the payload leaves a residual {what} of {size:.3g} {unit} rms, {_percent(part)} of its {own}"
        name = f"residual {what} over the payload's {own}"
        rows.append(row_below("predicts", name, part, _percent(part), RESIDUAL, text, _COLUMNS, "%"))
    return rows


def _mass(evidence: WrenchEvidence) -> VerdictRow:
    mass, arm = evidence.body.mass[0], evidence.arm_mass
    heavy = HEAVY if arm is None else (MASS_OVER_ARM[0] * arm, MASS_OVER_ARM[1] * arm)
    light: Grade = "good" if mass >= LIGHT[0] else "fair" if mass >= LIGHT[1] else "poor"
    grade = worst_grade(light, small_is_good(mass, *heavy))
    limits = tuple(f"{low:g} to {high:.3g} kg" for low, high in zip(LIGHT, heavy, strict=True))
    against = "" if arm is None else f"; the moving links of the arm are {arm:.4g} kg"
    text = f"a mass of {mass:.4g} kg is not that of a payload on a wrist{against}"
    return graded_row(
        "plausible", "payload's mass", mass, f"{mass:.3g} kg", (limits[0], limits[1]), grade, text, _UNITS
    )


def _centre(evidence: WrenchEvidence) -> VerdictRow:
    """Judge the distance of the centre from the origin of the sensor, by what it is beyond doubt."""
    body, reach = evidence.body, evidence.reach
    far = FAR if reach is None else (reach, reach)
    limits = (f"{1000 * NEAR:g} mm to {far[0]:.3g} m", f"{1000 * NEAR:g} mm to {far[1]:.3g} m")
    name = "centre from the sensor's origin"
    if body.centre is None or body.centre_sigma is None or not np.isfinite([body.centre, body.centre_sigma]).all():
        return row_not_judged("plausible", name, limits, "the centre is not identifiable")
    distance, margin = float(np.linalg.norm(body.centre)), 3 * float(np.linalg.norm(body.centre_sigma))
    if margin > far[0]:
        return row_not_judged("plausible", name, limits, "the centre is not known")
    near = distance + margin < NEAR
    grade: Grade = "poor" if near else small_is_good(max(distance - margin, 0.0), *far)
    why = "nearer than that of a body in front of it can be" if near else "farther than a payload on a wrist has it"
    text = f"the centre is {1000 * distance:.3g} mm from the origin of the sensor, {why}"
    return graded_row("plausible", name, distance, f"{1000 * distance:.3g} mm", limits, grade, text, _UNITS)


def _known(body: PayloadBody) -> list[VerdictRow]:
    mass, sigma = body.mass
    part, remedy = 100 * sigma / max(abs(mass), 1e-12), "record more poses, with other orientations to gravity"
    text = f"the mass is known to {_percent(part)}"
    rows = [row_below("known", "sigma of the mass", part, _percent(part), MASS_SIGMA, text, remedy, "%")]
    if body.centre_sigma is not None and np.isfinite(body.centre_sigma).all():
        worst = 1000 * float(np.max(body.centre_sigma))
        text = f"the centre is known to {worst:.2g} mm"
        rows.append(
            row_below("known", "sigma of the centre", worst, f"{worst:.2g} mm", CENTRE_SIGMA, text, remedy, "mm")
        )
    return rows


def _likely_cause(evidence: WrenchEvidence) -> list[Reason]:
    """Return the other reading that explains the wrench best, if it does so far better."""
    if evidence.explains or not evidence.others:
        return []

    best = min(evidence.others, key=lambda one: one.evidence.residual_percent.max())
    now, then = (float(one.residual_percent.max()) for one in (evidence, best.evidence))
    if then > FAR_BETTER * now:
        return []
    mass = best.evidence.body.mass[0]
    text = f"with {best.text} the residual is {_percent(then)}, not {_percent(now)}, and the mass {mass:.4g} kg"
    return [Reason(text, best.remedy, "likely cause", small_is_good(now, *RESIDUAL), "predicts")]


def _cautions(body: PayloadBody) -> list[Reason]:
    mass, sigma = body.mass
    reasons = []
    if mass < 3 * sigma:
        text = f"the mass comes out as {mass:.3g} +- {sigma:.2g} kg, which is not significant"
        reasons.append(Reason(text, "check that the sensor carried a payload", "payload", "poor"))
    if impossible := impossible_payload(body):
        text = f"no body is like this: {', '.join(impossible)}"
        reasons.append(Reason(text, "check axes and units of the wrench and the poses", "payload", "poor"))
    return reasons
