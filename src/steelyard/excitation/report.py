"""The report of a designed motion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..motion.figures import drawn_times, motion_chart
from ..plots import arm_plot
from ..report import DataTable, Figure, Page, PageSection, arm_motion, sentence
from ..verdict import first_named
from .criteria import CRITERIA
from .figures import NEAR_ZERO, LimitUse, clearance_chart, limit_uses, sigma_chart, torque_chart, use_chart

if TYPE_CHECKING:
    from .motion_design import Design
    from .predicted_accuracy import Figures


def design_page(design: Design, provenance: Mapping[str, str]) -> Page:
    """Return the report of a designed motion.

    Args:
        design: The design.
        provenance: Where it comes from, texts by name.
    """
    model, uses = design.model, limit_uses(design)
    sections = [
        _motion(design, uses),
        _accuracy(design),
        _limits(design, uses),
        _arm(design),
        _weak(design),
        _search(design),
    ]
    described = "gamma of the goals" if design.goals else CRITERIA[design.objective].description
    facts = {
        described: f"{design.value:.4g}",
        "duration": f"{design.trajectory.duration:.4g} s",
        "parameters": f"{len(design.figures.names)}",
        "condition number, unit columns": f"{design.figures.normalised:.3g}",
    }
    if design.baseline is not None:
        facts["sigmas of random motions"] = f"{_ratio(design):.2g} times these (median)"
    kind = "Fourier series" if design.settings.motion == "fourier" else f"{design.settings.motion} moves"
    return Page(
        title=f"Motion to record on {model.robot.name}",
        subtitle=f"{kind}, torque {model.measured}, effects {', '.join(model.effects)}",
        sections=[section for section in sections if section is not None],
        facts=facts,
        provenance=provenance,
    )


def _ratio(design: Design) -> float:
    assert design.baseline is not None
    return float(np.median(design.baseline.sigma / design.figures.sigma))


def _motion(design: Design, uses: list[LimitUse]) -> PageSection:
    joints = [one for one in uses if one.used is not None and one.kind != "torque"]
    said = ""
    if joints:
        used = f"{100 * (joints[0].used or 0.0):.1f} %"
        said = f" Used most is the {joints[0].text}: {used} of its limit at {joints[0].instant:.2f} s."
    begin, end = design.trajectory.core_interval
    way = f" Before {begin:.3g} s and after {end:.3g} s the arm comes and goes." if begin > 0 else ""
    text = f"Proven at every instant: {'; '.join(design.checked)}. Not checked: {'; '.join(design.not_checked)}." + (
        " The search was interrupted: this is the best proven motion so far." if design.is_interrupted else ""
    )
    return PageSection(
        "The motion",
        [
            Figure(
                "motion", motion_chart(design.trajectory, design.model.robot, design.limits.motion),
                "Position, velocity and acceleration of every joint, with the limits of the design dashed where the "
                f"motion comes near them.{said}{way} Zoom is linked.",
            )
        ],
        text,
    )  # fmt: skip


def _accuracy(design: Design) -> PageSection:
    figures, baseline = design.figures, design.baseline
    rows = [
        [name, sigma, None if np.isnan(relative) else 100 * relative, None if baseline is None else other, better]
        for name, sigma, relative, other, better in zip(
            figures.names, figures.sigma.tolist(), figures.relative_sigma.tolist(),
            [None] * len(figures.names) if baseline is None else baseline.sigma.tolist(),
            [None] * len(figures.names) if baseline is None else (baseline.sigma / figures.sigma).tolist(), strict=True,
        )
    ]  # fmt: skip
    said = "No random motion within the limits could be made to compare with."
    if baseline is not None:
        said = f"Random motions within the same limits give sigmas {_ratio(design):.2g} times as large (median)."
    relative = figures.relative_sigma[figures.relative_sigma <= NEAR_ZERO]
    known = "Sizes of the parameters are not known: sigmas are in units of their own."
    if len(relative):
        known = f"{int((relative < 0.1).sum())} of {len(relative)} parameters are expected within 10 % of their values."
        unknown = len(figures.names) - len(relative)
        known += f" {unknown} whose sizes are unknown or near zero are in the table only." if unknown else ""
    return PageSection(
        "Predicted accuracy",
        [
            Figure("sigmas", sigma_chart(design), f"Predicted sigmas after identification. {said} {known}"),
            _criteria(figures, baseline),
            *_goals(design),
            DataTable(
                "parameters", ["parameter", "sigma", "sigma [%]", "random motions", "random / this"], rows,
                "Predicted standard deviations, in SI units of the parameters.", digits=3,
            ),
        ],
    )  # fmt: skip


def _criteria(figures: Figures, baseline: Figures | None) -> DataTable:
    named = {
        "log10 det of the covariance": "log10_det_covariance", "condition number, as it is": "raw",
        "condition number, columns at unit length": "normalised", "condition number, rows over their noise": "weighted",
    }  # fmt: skip
    rows: list[list[str | float | None]] = [
        [text, *(None if one is None else _number(getattr(one, name)) for one in (figures, baseline))]
        for text, name in named.items()
    ]
    return DataTable("criteria", ["criterion", "this motion", "random motions"], rows, "Criteria; small is good.")


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _goals(design: Design) -> list[DataTable]:
    if not design.goals:
        return []
    rows = [[name, wanted, reached] for name, wanted, reached in design.goals]
    return [DataTable("goals", ["goal", "wanted", "reached"], rows, "Goals that were attained together.")]


def _limits(design: Design, uses: list[LimitUse]) -> PageSection:
    tight = [one.text for one in uses if one.used is not None and one.used > 0.99]
    said = f"{len(tight)} are used to more than 99 %: {first_named(tight)}." if tight else "None is used to 99 %."
    parts: list[Figure | DataTable] = [
        Figure(
            "limits-used",
            use_chart(uses),
            f"Part of every limit that the motion uses, proven over continuous time. {said}",
        )
    ]
    torques, clearances = torque_chart(design), clearance_chart(design)
    if torques is not None:
        most = max((one for one in uses if one.kind == "torque"), key=lambda one: one.used or 0.0)
        parts.append(
            Figure(
                "torque-limits", torques,
                f"Magnitude of the limited {design.limits.torque_side} torques by prior values, with the bound that is "
                f"proven for all instants. Used most is the {most.text}: at most {most.reached:.4g} of "
                f"{most.limit:.4g} {most.unit}, at {most.instant:.2f} s.",
            )
        )  # fmt: skip
    if clearances is not None:
        least = min((one for one in uses if one.kind == "clearance"), key=lambda one: one.reached)
        parts.append(
            Figure(
                "clearances", clearances,
                f"Smallest clearances of the arm to itself, the floor and obstacles, margins taken off; the least is "
                f"{least.name.removeprefix('clearance ')} with {1e3 * least.reached:.3g} mm at {least.instant:.2f} s.",
            )
        )  # fmt: skip
    rows = [
        [one.text, one.reached, f"{one.sign} {one.limit:.4g}", one.unit, None if one.used is None else 100 * one.used,
         one.instant]
        for one in uses
    ]  # fmt: skip
    parts.append(
        DataTable(
            "limits", ["limit", "reached", "allowed", "unit", "used [%]", "at [s]"], rows,
            "Worst values over continuous time, proven by bounds and not by samples.",
        )
    )  # fmt: skip
    return PageSection("Limits", parts)


def _arm(design: Design) -> PageSection:
    robot, trajectory = design.model.robot, design.trajectory
    samples = trajectory.in_order([body.joint.name for body in robot.actuated]).at(drawn_times(trajectory))
    drawn = arm_motion(robot, samples.time, samples.q, np.zeros(0), {})
    return PageSection(
        "The arm", [Figure("arm", arm_plot(drawn), f"The arm along its motion of {trajectory.duration:.4g} s.")]
    )


def _weak(design: Design) -> PageSection | None:
    if not np.isfinite(design.figures.relative_sigma).any():
        return None
    if not design.weak:
        return PageSection(
            "Weak parameters", text="No parameter stays weak: every predicted sigma is below 20 % of its parameter."
        )
    tiny = [one.name for one in design.weak if one.relative > NEAR_ZERO]
    rows = [
        [one.name, one.sigma, 100 * one.relative, one.longer, one.faster, one.others, one.remedy]
        for one in design.weak
        if one.relative <= NEAR_ZERO
    ]
    columns = ["parameter", "sigma", "sigma [%]", "if repeated", "if faster", "if others known", "what would help"]
    return PageSection(
        "Weak parameters",
        [
            DataTable(
                "weak", columns, rows,
                "Parameters whose predicted sigma is above 20 % of their value, with factors on it: if the motion is "
                "repeated once, runs 1.25 times as fast, or all other parameters are known.",
                digits=3,
            )
        ]
        if rows
        else [],
        f"{len(tiny)} near zero beside their sigmas, not worth finding: {', '.join(tiny)}." if tiny else "",
    )  # fmt: skip


def _search(design: Design) -> PageSection:
    rows = [
        [one.number, "random" if one.origin is None else f"start {one.origin}, disturbed", one.value,
         100 * one.violation, one.final]
        for one in design.starts
    ]  # fmt: skip
    columns = ["start", "from", "value", "largest violation [%]", "proven value"]
    proven = [one.final for one in design.starts if one.final is not None]
    caption = (
        f"Motions that the search began with; {len(proven)} of {len(rows)} were proven. Values here are on the grid of "
        "the search, with a smooth sign of friction; at the samples of the recording and with the exact sign the best, "
        f"{min(proven):.4g}, is {design.value:.4g}."
    )
    return PageSection(
        "Search",
        [DataTable("starts", columns, rows, caption)],
        " ".join(sentence(note) for note in design.notes),
        closed=True,
    )
