"""Drive gains that were found, joint by joint, as plain data and as a report, and the rows of their verdict.

Gains are found by the weight of the payload alone, so that a mass in grams makes all of them a thousand times too large
without a worse fit. What says otherwise is known from elsewhere: gains given before, effort limits, masses of the arm.
A wrong centre or inertia is not a common factor: with the mass alone known the data have a centre of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..distributions import t_ppf
from ..estimate import ScaleFit
from ..judge import Thresholds
from ..plain_data import plain
from ..recording import DriveGains
from ..recording.gains import ASSUMED_SIGMA
from ..robot import Robot
from ..text import html_table, short_repr
from ..verdict import (
    Grade,
    Reason,
    Verdict,
    VerdictRow,
    graded_row,
    limits_below,
    row_below,
    row_not_judged,
    verdict_of,
    verdict_to_json,
)
from .payload_body import mass_row

KNOWN, WEAK = 0.03, ASSUMED_SIGMA
"""Relative sigmas up to which a gain is known, or weakly known; beyond, a published one is better."""


@dataclass(frozen=True, eq=False)
class FrictionModel:
    """Gains that one law of friction gives.

    Attributes:
        name: The law, in words.
        effects: Effects of the model.
        gains: The gains (n,).
        relative_sigma: Their relative sigmas from blocks of time (n,).
        cross_validation: Squared error of blocks predicted from the others, over that of the plain model.
    """

    __repr__ = short_repr

    name: str
    effects: tuple[str, ...]
    gains: np.ndarray
    relative_sigma: np.ndarray
    cross_validation: float


@dataclass(frozen=True, eq=False)
class GainsFound:
    """Gains with what they rest on.

    Attributes:
        gains: The gains with the covariance of their relative errors: of blocks of time and of friction models.
        nominal: The gains as given before; None for currents of which none were.
        models: What every law of friction gives; the chosen one has the smallest error of left-out blocks.
        chosen: Number of the chosen one.
        by_blocks: Relative sigmas from blocks of time (n,).
        by_models: Relative sigmas from the spread over laws of friction (n,).
        change: Relative difference of gains with payload from those without, and its sigma (2, n).
        blocks: Blocks of time, recordings together.
        weight: Rms of the torque by which the payload's weight loads each joint (n,) [N m or N].
        mass: The known mass [kg].
        known: Names of the payload's parameters that were known.
        payload_link: The link that carries it.
        recordings: Labels of the recordings, and whether they carry the payload.
        verdict: Whether mass and centre can be what was given, and how many gains are known.
        robot: The arm.
    """

    __repr__ = short_repr

    gains: DriveGains
    nominal: DriveGains | None
    models: tuple[FrictionModel, ...]
    chosen: int
    by_blocks: np.ndarray
    by_models: np.ndarray
    change: np.ndarray
    blocks: int
    weight: np.ndarray
    mass: float
    known: tuple[str, ...]
    payload_link: str
    recordings: tuple[tuple[str, bool], ...]
    verdict: Verdict
    robot: Robot

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """What a reader must know, with remedies: those of the verdict."""
        return self.verdict.reasons

    @property
    def grades(self) -> tuple[str, ...]:
        """``known``, ``weak`` or ``unknown``, joint by joint; an unknown one is the nominal gain.

        ``doubtful`` in place of known and weak where the verdict is poor: a sigma says how well gains agree with the
        given mass and centre, not whether these are right.
        """
        sigma, doubtful = np.hypot(self.by_blocks, self.by_models), self.verdict.grade == "poor"
        known, weak = ("doubtful", "doubtful") if doubtful else ("known", "weak")
        return tuple(known if one <= KNOWN else weak if one <= WEAK else "unknown" for one in sigma)

    @property
    def interval(self) -> np.ndarray:
        """Lower and upper ends of the 95 % intervals (n, 2)."""
        half = float(t_ppf(0.975, self.blocks - 1)) * self.gains.relative_sigma
        return self.gains.values[:, None] * np.exp(np.column_stack([-half, half]))

    def to_json(self) -> dict[str, Any]:
        """Return the gains as plain data."""
        gains, variance = self.gains, np.maximum(self.by_blocks**2 + self.by_models**2, 1e-300)
        rows = [
            {
                "joint": joint, "gain": gains.values[j], "sigma": gains.sigma[j],
                "relative_sigma_percent": 100 * gains.relative_sigma[j], "interval_95": self.interval[j],
                "share_of_friction_models": self.by_models[j] ** 2 / variance[j],
                "share_of_blocks": self.by_blocks[j] ** 2 / variance[j],
                "nominal": None if self.nominal is None else self.nominal.values[j],
                "payload_weight_rms": self.weight[j], "grade": self.grades[j],
                "change_percent": 100 * self.change[0, j], "change_sigma_percent": 100 * self.change[1, j],
            }
            for j, joint in enumerate(gains.joints)
        ]  # fmt: skip
        models = [
            {
                "name": one.name, "effects": list(one.effects), "gains": one.gains,
                "relative_sigma_percent": 100 * one.relative_sigma, "cross_validation": one.cross_validation,
                "chosen": number == self.chosen,
            }
            for number, one in enumerate(self.models)
        ]  # fmt: skip
        return plain(
            {
                "robot": self.robot.name, "kind": gains.kind, "unit": gains.unit, "joints": rows, "models": models,
                "relative_covariance": gains.covariance, "blocks": self.blocks, "mass": self.mass,
                "known": list(self.known), "payload_link": self.payload_link,
                "recordings": [{"label": label, "loaded": loaded} for label, loaded in self.recordings],
                "reasons": [{"text": one.text, "remedy": one.remedy} for one in self.reasons],
                "verdict": verdict_to_json(self.verdict),
            }
        )  # fmt: skip

    def to_html(self, provenance: Mapping[str, str] | None = None) -> str:
        """Return the report as one HTML document."""
        from ..report import DataTable, Page, PageSection, page_html

        columns = ["joint", f"gain [{self.gains.unit}]", "sigma", "from", "to", "grade"]
        rows = [[*row[:3], *row[3], row[4]] for row in self._rows()]
        caption = (
            "Joint side, 95 % intervals. Sigmas are those of a jackknife over blocks of time and of the spread over "
            "laws of friction."
        )
        others = [[one.name, *map(float, one.gains), one.cross_validation] for one in self.models]
        compared = DataTable(
            "models", ["friction", *self.gains.joints, "left-out error"], others,
            "Gains by law of friction, and the squared error of left-out blocks over that of the plain model.",
        )  # fmt: skip
        text = f"From {len(self.recordings)} recordings, with a payload of {self.mass:.4g} kg."
        sections = [
            PageSection("The gains", [DataTable("gains", columns, rows, caption)], text),
            PageSection("Laws of friction", [compared], f"Chosen: {self.models[self.chosen].name}."),
        ]
        page = Page(f"Drive gains of {self.robot.name}", text, sections, self.verdict, provenance=provenance or {})
        return page_html(page)

    def _repr_html_(self) -> str:
        """Return the gains as notebooks show them."""
        rows = [[*row[:3], f"{row[3][0]:.4g} to {row[3][1]:.4g}", row[4]] for row in self._rows()]
        return html_table(("joint", f"gain [{self.gains.unit}]", "sigma", "95 %", "grade"), rows)

    def _rows(self) -> Iterator[tuple[str, float, float, list[float], str]]:
        gains, ends = self.gains, self.interval.tolist()
        for j, joint in enumerate(gains.joints):
            yield joint, float(gains.values[j]), float(gains.sigma[j]), ends[j], self.grades[j]


FACTOR_OF_TORQUES, FACTOR_OF_CURRENTS, FACTOR_OF_UNKNOWN = (1.25, 1.5), (1.5, 2.0), (3.0, 10.0)
"""Factor common to all gains against those given before: good and fair up to these, for torques that a drive reports,
for currents with a published gain (two sets of one arm differ by 1.24), and where the gain is declared unknown."""
HELD = (0.7, 1.0)
"""Torque by which the payload's weight loads a joint over the joint's effort limit: good and fair up to these."""
EFFORT = (1.05, 1.5)
"""Recorded torque over the effort limit, as in the verdict of identify."""
LOAD = (4.0, 6.0)
"""Sigmas between a given parameter of the payload and that of the data: good and fair up to these."""
CHANGED = 3.0
"""Sigmas by which a gain with the payload differs from that without, to be said."""
CHANGE = (100 * KNOWN, 10.0)
"""Difference of a gain with the payload from that without [%]: good and fair up to these."""
NOTE = "a wrong mass cannot be seen in these data: all gains would come out wrong by its factor"
_UNITS = "check the unit of the mass (kg) and of the centre (m)"
_CAUSE = f"{_UNITS}, and the mass itself: an error of either multiplies all gains by the same factor"
_WEIGHT = ("payload's weight over effort limit", "the payload's weight loads {} with", _UNITS)
_TORQUE = (
    "torque over effort limit",
    "with these gains the recorded torque of {} is",
    f"{_UNITS}, and the effort limits of the robot file",
)


@dataclass(frozen=True, eq=False)
class KnownLoad:
    """What was given of a payload beside its mass, and what the data say where the mass alone is known.

    Attributes:
        names: Names of the parameters that were given (k,).
        given: Their values (k,), of columns ``XXL`` to ``MZL``.
        found: What the data say (k,).
        sigma: Its sigmas, of blocks of time and of laws of friction (k,).
        mass: The mass [kg].
        error_ratio: Error of left-out blocks with the given values over that with those of the data.
    """

    names: tuple[str, ...]
    given: np.ndarray
    found: np.ndarray
    sigma: np.ndarray
    mass: float
    error_ratio: float

    @property
    def deviations(self) -> np.ndarray:
        """How far given values are from those of the data, in sigmas (k,)."""
        return np.abs(self.given - self.found) / self.sigma


@dataclass(frozen=True, eq=False)
class GainsEvidence:
    """The numbers on which the verdict on gains rests.

    Attributes:
        kind: Kind of the torques.
        joints: Names of the joints.
        values: Gains that the data show (n,).
        sigma: Their relative sigmas (n,).
        nominal: The gains given before; None for currents of which none were.
        weight: Rms of the torque by which the payload's weight loads each joint (n,) [N m or N].
        torque: Largest recorded torque with these gains (n,) [N m or N].
        mass: Mass of the payload as given [kg].
        robot: The arm.
        fit: The fit behind the gains.
        load: What else was given of the payload; None if the mass alone.
    """

    kind: str
    joints: tuple[str, ...]
    values: np.ndarray
    sigma: np.ndarray
    nominal: DriveGains | None
    weight: np.ndarray
    torque: np.ndarray
    mass: float
    robot: Robot
    fit: ScaleFit
    load: KnownLoad | None


def judge_gains(evidence: GainsEvidence, cautions: Sequence[Reason] = ()) -> Verdict:
    """Return the verdict on gains; cautions say which of them are not known, and why."""
    rows = (
        _factor(evidence),
        _over_effort(_WEIGHT, evidence, evidence.weight, HELD),
        _over_effort(_TORQUE, evidence, evidence.torque, EFFORT),
        mass_row(evidence.mass, evidence.robot, "check the unit of the mass (kg)"),
        _given_load(evidence.load),
        _change(evidence.fit),
        _left_out_error(evidence.fit.relative_error),
        _known(evidence),
    )
    return verdict_of(rows, cautions)


def _factor(evidence: GainsEvidence) -> VerdictRow:
    """Judge the factor that all joints have in common; a single joint may well differ."""
    name, nominal, shown = "gains over those given before", evidence.nominal, evidence.sigma <= WEAK
    if nominal is None:
        return row_not_judged("plausible", name, limits_below(FACTOR_OF_UNKNOWN), "no gain was given before")
    limits = FACTOR_OF_CURRENTS if evidence.kind == "motor_current" else FACTOR_OF_TORQUES
    limits = limits if nominal.is_known else FACTOR_OF_UNKNOWN
    texts = (f"{1 / limits[0]:.2g} to {limits[0]:g}", f"{1 / limits[1]:.2g} to {limits[1]:g}")
    if not shown.any():
        return row_not_judged("plausible", name, texts, "the data do not show a gain")
    factor = float(np.exp(np.median(np.log(evidence.values[shown] / nominal.values[shown]))))
    size = max(factor, 1 / factor)
    grade: Grade = "good" if size <= limits[0] else "fair" if size <= limits[1] else "poor"
    text = (
        f"with a payload of {evidence.mass:.4g} kg gains come out {factor:.3g} times those given before "
        f"({nominal.source}), as the median of {int(shown.sum())} joint(s)"
    )
    return graded_row("plausible", name, factor, f"{factor:.3g}", texts, grade, text, _CAUSE)


def _over_effort(
    words: tuple[str, str, str], evidence: GainsEvidence, torque: np.ndarray, limits: tuple[float, float]
) -> VerdictRow:
    """Judge torques against the effort limits of the robot file, at the joint where they are largest."""
    name, text, remedy = words
    effort = np.array([evidence.robot.joint(joint).limits.effort for joint in evidence.joints])
    limited = (effort > 0) & np.isfinite(effort)
    if not limited.any():
        return row_not_judged("plausible", name, limits_below(limits), "the robot file has no effort limits")
    ratios = np.where(limited, torque / np.where(limited, effort, 1.0), 0.0)
    worst = int(np.argmax(ratios))
    joint, ratio, limit = evidence.joints[worst], float(ratios[worst]), effort[worst]
    unit = "N" if evidence.robot.joint(joint).kind == "prismatic" else "N m"
    said = f"{text.format(joint)} {torque[worst]:.4g} {unit}, {ratio:.3g} times its effort limit of {limit:.4g} {unit}"
    return row_below("plausible", name, ratio, f"{ratio:.2g}", limits, said, remedy)


def _given_load(load: KnownLoad | None) -> VerdictRow:
    """Judge the given centre and inertia by those that the data have if the mass alone is known."""
    name = "given centre against the data"
    if load is None:
        return row_not_judged("plausible", name, limits_below(LOAD, "sigma"), "no centre is given")
    away = load.deviations
    worst, text = int(np.argmax(away)), _load_text(load)
    said = f"{text}, {away[worst]:.3g} sigmas apart"
    if load.error_ratio > 1.01:
        said += f"; with the given one the error of left-out blocks is {load.error_ratio:.3g} times as large"
    remedy = (
        "measure the centre again, in metres and in the frame of the link that carries the payload, or leave --centre "
        "out: the data find it beside the gains"
    )
    value = float(away[worst])
    shown = f"{value:.2g}" if value < 99 else f"{value:.0f}"
    return row_below("plausible", name, value, f"{shown} sigma", LOAD, said, remedy, "sigma")


def _load_text(load: KnownLoad) -> str:
    """Return the data's own centre beside the given one, or the parameter that is farthest off if it is no moment."""
    worst = int(np.argmax(load.deviations))
    if not load.names[worst].startswith("M"):
        value, sigma, given = load.found[worst], load.sigma[worst], load.given[worst]
        own = f"{load.names[worst]} = {value:.3g} +- {sigma:.2g} kg m^2"
        return f"with the mass alone the data have {own}; given is {given:.3g}"
    places = [k for k, name in enumerate(load.names) if name.startswith("M")]
    found, sigmas, given = (1000 / load.mass * one[places] for one in (load.found, load.sigma, load.given))
    axes = [load.names[k][1].lower() for k in places]
    own = ", ".join(f"{a} {c:.1f} +- {s:.1f}" for a, c, s in zip(axes, found, sigmas, strict=True))
    told = ", ".join(f"{one:.1f}" for one in given)
    return f"with the mass alone the data have the payload's centre at {own} mm; given is {told} mm"


def _change(fit: ScaleFit) -> VerdictRow:
    """Judge whether gains are the same with the payload as without, at the joint where they differ most."""
    name = "gains with payload against without"
    if not np.isfinite(fit.change_sigma).any():
        return row_not_judged("plausible", name, limits_below(CHANGE, "%"), "the data do not show it")
    changes = fit.sure_changes(CHANGED)
    worst = int(np.argmax(np.abs(changes)))
    ratio, sigma = float(np.exp(-changes[worst])), fit.change_sigma[worst]
    text = (
        f"the gain of {fit.joints[worst]} is {ratio:.3f} +- {sigma:.1g} times as large in the recordings with payload "
        "as in those without"
    )
    remedy = "check the factor and the gain of its torque column in both; record both on one day with warm drives"
    percent = 100 * abs(ratio - 1)
    return row_below("plausible", name, percent, f"{percent:.2g} %", CHANGE, text, remedy, "%")


def _left_out_error(error: float) -> VerdictRow:
    """Judge the error of blocks of time that gains and parameters of the others predict."""
    limits, percent = (Thresholds.error_good, Thresholds.error_fair), 100 * error
    text = f"blocks of time are predicted from the others to {percent:.3g} % of the torques"
    remedy = "look at the residuals of steelyard identify, and add the effects that are missing with --effects"
    return row_below("predicts", "error of left-out blocks", percent, f"{percent:.3g} %", limits, text, remedy, "%")


def _known(evidence: GainsEvidence) -> VerdictRow:
    name, total = f"gains with sigma <= {100 * KNOWN:g} %", len(evidence.joints)
    known = int(np.sum(evidence.sigma <= KNOWN))
    grade: Grade = "good" if known == total else "fair" if known else "poor"
    text = f"{known} of {total} gains are known to {100 * KNOWN:g} %"
    remedy = "record longer, faster, or with a heavier payload far from the joints' axes"
    return graded_row("known", name, known, f"{known} of {total}", ("all", "one or more"), grade, text, remedy)
