"""Figures of a designed motion: limits over continuous time, and predicted sigmas beside those of random motions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..motion.figures import motion_chart
from ..plots import COLOURS, Chart, JointSeries, numbers, plot_text, series_plot
from .certify.certificate import Bounder, LimitFinding
from .certify.space_bounds import SpaceBounder
from .certify.torque_bounds import TorqueBounder, breaks

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .motion_design import Design

RATES = {"velocity": "/s", "acceleration": "/s^2", "jerk": "/s^3"}

INTERVALS = 600
"""Intervals of time in whose middles torques and clearances are drawn, about."""

_NARROW = 1e-9
_SAME = 9

MOST_RULES = 4
"""Rules on space that are drawn: those with the smallest clearances, of equal ones the first."""

NEAR_ZERO = 10.0
"""Beside a sigma so many times as large, a parameter counts as zero: no motion is worth while for it."""


@dataclass(frozen=True)
class LimitUse:
    """A limit and how much of it a motion uses.

    Attributes:
        kind: ``position``, ``velocity``, ``acceleration``, ``jerk``, ``torque`` or ``clearance``.
        name: What is limited.
        reached: A bound on the worst value over continuous time; the smallest clearance.
        limit: What is allowed.
        sign: ``<=`` or ``>=``.
        unit: Of both.
        used: Part of the limit that is used, of a range of positions from its middle; None for clearances.
        instant: When [s].
    """

    kind: str
    name: str
    reached: float
    limit: float
    sign: str
    unit: str
    used: float | None
    instant: float

    @property
    def text(self) -> str:
        """The name with what it is a limit of: ``lower position of joint_1``."""
        return self.name.replace(" of ", " position of ", 1) if self.kind == "position" else self.name

    @property
    def tightness(self) -> float:
        """The larger, the nearer to the limit; clearances compare by their size [m]."""
        return 1 - self.reached if self.used is None else self.used


def limit_uses(design: Design) -> list[LimitUse]:
    """Return every limit that was checked with the part of it that is used, the tightest first."""
    return sorted((_use(design, finding) for finding in design.certificate.findings), key=lambda one: -one.tightness)


def _use(design: Design, finding: LimitFinding) -> LimitUse:
    name = finding.name
    if name in {rule.name for rule in design.limits.rules}:
        return LimitUse("clearance", f"clearance {name}", -finding.worst, 0.0, ">=", "m", None, finding.instant)
    what, _, joint = name.partition(" of ")
    kind, sign = ("position" if what in ("lower", "upper") else what), (">=" if what == "lower" else "<=")
    used, unit = _used(design, finding, what, joint), _unit(design, what, joint)
    return LimitUse(kind, name, finding.worst, finding.limit, sign, unit, used, finding.instant)


def _used(design: Design, finding: LimitFinding, kind: str, joint: str) -> float:
    if kind not in ("lower", "upper"):
        return finding.worst / finding.limit
    motion = design.limits.motion
    row = motion.joints.index(joint)
    middle, half = (motion.upper[row] + motion.lower[row]) / 2, (motion.upper[row] - motion.lower[row]) / 2
    return float((finding.worst - middle) / half * (-1 if kind == "lower" else 1))


def _unit(design: Design, kind: str, joint: str) -> str:
    names = {body.joint.name for body in design.model.robot.actuated if body.joint.kind == "prismatic"}
    slides = joint.split(", ")[0] in names
    if kind == "torque":
        return "N" if slides else "N m"
    return ("m" if slides else "rad") + RATES.get(kind, "")


def torque_chart(design: Design) -> Chart | None:
    """Return the torques that are limited over time, with their proven worst values; None if there are none."""
    certifier, rows = design.certifier, []
    worst = {finding.name: finding for finding in design.certificate.findings}
    for graph, ending in certifier.torques:
        bounder = TorqueBounder(graph, design.trajectory, certifier.torque_limits, ending)
        time, values = _values(design, bounder)
        for name, limit, value in zip(bounder.names, bounder.limits.tolist(), values, strict=True):
            joint = name.removeprefix("torque of ")
            unit = _unit(design, "torque", joint)
            points = {"proven worst": (np.array([worst[name].instant]), np.array([worst[name].worst]))}
            levels = {f"limit {limit:.4g} {unit}": limit}
            rows.append(JointSeries(joint, unit, {"predicted": (time, value)}, points, levels))
    if not rows:
        return None
    chart = series_plot(rows)
    for k, row in enumerate(rows):  # lines that are no trace do not widen an axis
        chart.y_axis(k, range=[-0.06 * max(row.levels.values()), 1.3 * max(row.levels.values())], nticks=5)
    return chart


def clearance_chart(design: Design) -> Chart | None:
    """Return the smallest clearances over time, their margins taken off; None without rules on space."""
    graph = design.certifier.space
    if graph is None:
        return None
    bounder = SpaceBounder(graph, design.trajectory)
    time, values = _values(design, bounder)
    chart = Chart(320)
    different = np.unique(values.round(_SAME), axis=0, return_index=True)[1]  # capsules of neighbours share their ends
    tightest = different[np.argsort(-values[different].max(axis=1))][:MOST_RULES]
    for k in tightest.tolist():
        line = {"width": 1.4}
        chart.add(x=numbers(time), y=numbers(-values[k]), mode="lines", name=plot_text(bounder.names[k], 24), line=line)
    chart.layout["showlegend"] = True
    chart.level(0.0, "allowed above")
    chart.x_axis(title="time [s]")
    chart.y_axis(title="clearance [m]", rangemode="tozero")
    return chart


def _values(design: Design, bounder: Bounder) -> tuple[np.ndarray, np.ndarray]:
    """Return times (K,) [s] and the values there of what is bounded (g, K)."""
    even = np.linspace(0, design.trajectory.duration, INTERVALS + 1)
    edges = np.unique(np.concatenate([even, breaks(design.trajectory)]))
    edges = edges[np.concatenate([[True], np.diff(edges) > _NARROW * edges[-1]])]
    return (edges[:-1] + edges[1:]) / 2, bounder.bounds(edges[:-1], edges[1:])[0]


def sigma_chart(design: Design) -> Chart:
    """Return the predicted sigmas of this motion and of random motions, relative to the parameters where known."""
    figures, baseline = design.figures, design.baseline
    known = figures.relative_sigma <= NEAR_ZERO
    relative = bool(known.any())
    chosen = np.flatnonzero(known) if relative else np.arange(len(figures.names))
    both = {"this motion": figures, "random motions": baseline}
    order = chosen[np.argsort(-(figures.relative_sigma if relative else figures.sigma)[chosen])]
    chart = Chart(40 + 16 * len(order))
    for (name, one), colour, symbol in zip(
        both.items(), ("predicted", "error"), ("circle", "diamond-open"), strict=True
    ):
        if one is not None:
            values = 100 * one.relative_sigma if relative else one.sigma
            chart.add(
                x=numbers(values[order]), y=numbers(np.arange(len(order))), mode="markers", name=name,
                marker={"size": 7, "symbol": symbol, "color": COLOURS[colour]},
                text=[plot_text(figures.names[k]) for k in order], hovertemplate="%{text}: %{x:.3g}",
            )  # fmt: skip
    unit = "% of the parameter" if relative else "unit of the parameter"
    chart.x_axis(title=f"predicted sigma [{unit}]", type="log", tickformat="~g", nticks=8)
    chart.y_axis(tickvals=list(range(len(order))), ticktext=[plot_text(figures.names[k], 24) for k in order],
                 range=[len(order) - 0.4, -0.6], zeroline=False, title="parameter")  # fmt: skip
    return chart


def use_chart(uses: Sequence[LimitUse]) -> Chart:
    """Return the part of every limit of joints and torques that is used."""
    drawn = [one for one in uses if one.used is not None]
    chart = Chart(40 + 16 * len(drawn))
    for kind in dict.fromkeys(one.kind for one in drawn):
        own = [k for k, one in enumerate(drawn) if one.kind == kind]
        chart.add(
            type="bar", orientation="h", x=numbers(np.array([100 * (drawn[k].used or 0.0) for k in own])),
            y=numbers(np.array(own, dtype=float)), name=kind, width=0.8,
        )  # fmt: skip
    chart.x_axis(title="used of the limit [%]", range=[0, 108])
    chart.y_axis(tickvals=list(range(len(drawn))), ticktext=[plot_text(one.text, 32) for one in drawn],
                 range=[len(drawn) - 0.4, -0.6], zeroline=False, title="limit")  # fmt: skip
    chart.level(100.0, vertical=True)
    return chart


def plot(self: Design) -> go.Figure:
    """Return position, velocity and acceleration of every joint along the motion, with the limits of the design.

    Example:
        >>> settings = steelyard.DesignSettings(motion="quintic", moves=3, duration=4.0, noise=(1.0, 0.2), starts=1)
        >>> figure = steelyard.design("scara_2r", settings, floor="none").plot()
        >>> figure.layout.yaxis.title.text
        'joint_1<br>[rad]'
    """
    return motion_chart(self.trajectory, self.model.robot, self.limits.motion).figure()


def to_html(self: Design, provenance: Mapping[str, str] | None = None) -> str:
    """Return the report as one HTML document, as run folders have it.

    Args:
        self: The design.
        provenance: Where it comes from, texts by name.

    Example:
        >>> settings = steelyard.DesignSettings(motion="quintic", moves=3, duration=4.0, noise=(1.0, 0.2), starts=1)
        >>> steelyard.design("scara_2r", settings, floor="none").to_html()[:15]
        '<!doctype html>'
    """
    from ..report import page_html
    from .report import design_page  # loaded when used: most designs are not printed

    return page_html(design_page(self, provenance or {}))
