"""A design as JSON."""

from __future__ import annotations

from typing import Any

from ..plain_data import plain
from .figures import Figures
from .motion_design import Design


def design_to_json(design: Design) -> dict[str, Any]:
    """Return the content of a design's ``result.json``."""
    return plain(
        {
            "robot": design.model.robot.name,
            "motion": design.settings.motion,
            "duration": design.trajectory.duration,
            "checked": list(design.checked),
            "not_checked": list(design.not_checked),
            "capsules": design.limits.capsules or None,
            "criterion": design.objective,
            "criterion_value": design.value,
            "goals": [{"name": name, "wanted": wanted, "reached": reached} for name, wanted, reached in design.goals],
            **_figures(design.figures),
            "constraints": [
                {
                    "name": finding.name, "worst": finding.worst, "limit": finding.limit,
                    "instant": finding.instant, "violation": finding.violation,
                }
                for finding in design.certificate.findings
            ],
            "random_baseline": None if design.baseline is None else _figures(design.baseline),
            "weak": [
                {
                    "name": weak.name, "sigma": weak.sigma, "relative_sigma": weak.relative,
                    "longer": weak.longer, "faster": weak.faster, "others_known": weak.others, "remedy": weak.remedy,
                }
                for weak in design.weak
            ],
            "starts": [
                {
                    "number": start.number, "origin": start.origin, "value": start.value,
                    "violation": start.violation, "final": start.final,
                }
                for start in design.starts
            ],
            "interrupted": design.is_interrupted,
            "notes": list(design.notes),
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
