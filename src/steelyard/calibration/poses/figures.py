"""The report of configurations that were chosen to be measured."""

from __future__ import annotations

from collections.abc import Mapping
from math import degrees
from typing import TYPE_CHECKING

import numpy as np

from ...plots import COLOURS, Chart, bar_plot, numbers, plot_text
from ...report import DataTable, Figure, Page, PageSection, page_html
from ..application.calibrated_arm import joint_range
from ..figures import SHOWN_UNITS, configurations_chart

if TYPE_CHECKING:
    from .pose_design import ChosenPoses

_LARGE_IS_GOOD = ("O1", "O2", "O3", "O4")


def to_html(self: ChosenPoses, provenance: Mapping[str, str] | None = None) -> str:
    """Return the report as one HTML document, as run folders have it.

    Args:
        self: The configurations.
        provenance: Where they come from, texts by name.

    Example:
        >>> from steelyard.calibration import choose_poses
        >>> choose_poses("scara_2r", 8, candidates=40, keep=True).to_html()[:15]
        '<!doctype html>'
    """
    return page_html(poses_page(self, provenance or {}))


def poses_page(found: ChosenPoses, provenance: Mapping[str, str]) -> Page:
    """Return the report of chosen configurations."""
    design = found.design
    count = design.q.shape[1]
    names = [f"pose {k + 1}" for k in range(count)]
    random = f"{design.value_of_random:.4g}" if np.isfinite(design.value_of_random) else "not all are identifiable"
    return Page(
        title=f"Configurations to measure on {found.robot.name}",
        subtitle=f"criterion {design.criterion}, {count} configurations for {len(found.names)} unknowns",
        sections=[
            _sigmas(found),
            PageSection(
                "Configurations",
                [
                    Figure("ranges", _range_chart(found), _range_text(found)),
                    _table(found),
                    Figure("arm", configurations_chart(found.robot, design.q, names),
                           f"The arm in the {count} configurations; the slider goes through them in their order."),
                ],
            ),
        ],
        facts={
            f"criterion {design.criterion}": f"{design.value:.4g}",
            "before they were moved": f"{design.value_of_candidates:.4g}",
            "a random choice": random,
        },
        provenance=provenance,
    )  # fmt: skip


def _sigmas(found: ChosenPoses) -> PageSection:
    design, parts = found.design, []
    sigma = np.sqrt(np.diag(design.covariance))
    for unit in dict.fromkeys(found.units):
        shown, scale = SHOWN_UNITS.get(unit, (unit, 1.0))
        own = [k for k, one in enumerate(found.units) if one == unit]
        worst = max(own, key=lambda k: sigma[k])
        chart = bar_plot([found.names[k] for k in own], {"predicted": scale * sigma[own]}, f"predicted sigma [{shown}]")
        chart.x_axis(title="unknown")
        parts.append(
            Figure(
                f"sigmas-{len(parts) + 1}", chart,
                f"Standard deviations that a calibration with these configurations will have; largest is that of "
                f"{found.names[worst]} with {scale * sigma[worst]:.3g} {shown}.",
            )
        )  # fmt: skip
    return PageSection("Predicted accuracy", parts, _compared(found))


def _compared(found: ChosenPoses) -> str:
    design = found.design
    better = "large" if design.criterion in _LARGE_IS_GOOD else "small"
    if not np.isfinite(design.value_of_random) or not design.value_of_random:
        return (
            f"Criterion {design.criterion} is {design.value:.4g} here; most random choices of as many configurations "
            "leave some unknown unidentifiable."
        )
    return (
        f"Criterion {design.criterion} is {design.value:.4g} here and {design.value_of_random:.4g} for a random choice "
        f"of as many candidates (median); {better} is good."
    )


def _range_chart(found: ChosenPoses) -> Chart:
    """Return where in its range each joint is measured."""
    chart = Chart(40 + 34 * len(found.joints))
    lower, width = _range(found)
    part = 100 * (found.design.q - lower[:, None]) / width[:, None]
    text = [f"pose {k + 1}" for k in range(part.shape[1])]
    for row, _ in enumerate(found.joints):
        chart.add(
            x=numbers(part[row]), y=numbers(np.full(part.shape[1], float(row))), mode="markers", showlegend=False,
            text=text, hovertemplate="%{text}: %{x:.0f} %<extra></extra>",
            marker={"size": 9, "symbol": "line-ns-open", "color": COLOURS["predicted"], "line": {"width": 2}},
        )  # fmt: skip
    shown = [plot_text(name, 24) for name in found.joints]
    chart.y_axis(tickvals=list(range(len(shown))), ticktext=shown, autorange="reversed", zeroline=False, title="joint")
    chart.x_axis(title="position [% of the joint's range]", range=[-3, 103], zeroline=False)
    return chart


def _range(found: ChosenPoses) -> tuple[np.ndarray, np.ndarray]:
    """Return where the range of each joint begins and how wide it is (n,), (n,); a joint without play has no width.

    Without a limit the range is a turn, or that of the configurations if they go beyond it.
    """
    lower, upper = joint_range(found.robot)
    turn = np.array([0.0 if body.joint.kind == "prismatic" else np.pi for body in found.robot.actuated])
    lower = np.where(np.isfinite(lower), lower, np.minimum(found.design.q.min(axis=1), -turn))
    upper = np.where(np.isfinite(upper), upper, np.maximum(found.design.q.max(axis=1), turn))
    return lower, np.where(upper > lower, upper - lower, np.inf)


def _range_text(found: ChosenPoses) -> str:
    _, width = _range(found)
    used = np.ptp(found.design.q, axis=1) / width
    least = int(np.argmin(np.where(np.isfinite(width), used, np.inf)))
    return (
        "Where in its range each joint is measured, a mark for each configuration; the range of a joint without limits "
        f"is a turn. {found.joints[least]} uses least of its range, {100 * used[least]:.0f} %."
    )


def _table(found: ChosenPoses) -> DataTable:
    turns = [body.joint.kind != "prismatic" for body in found.robot.actuated]
    columns = [f"{name} [{'deg' if turn else 'm'}]" for name, turn in zip(found.joints, turns, strict=True)]
    rows = [
        [k + 1, *(degrees(x) if turn else float(x) for x, turn in zip(q, turns, strict=True))]
        for k, q in enumerate(found.design.q.T)
    ]
    return DataTable("configurations", ["pose", *columns], rows, "Configurations to measure, as in poses.csv.")
