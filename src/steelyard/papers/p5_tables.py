"""P5's tables beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ..distributions import norm_cdf
from .fits import PaperFit, weighted_residuals
from .p5_figures import LINKS, ModelFigures
from .printed_tables import printed
from .result import Entry, Table, table

_SHOWN = {
    "relative_error": "relative error %",
    "essential_f": "essential, F",
    "essential_rsd": "essential, RSD <= 20 %",
    "payload_error": "payload error %",
    "durbin_watson": "Durbin-Watson",
    "expected_durbin_watson": "white noise",
    "normality": "p of normality",
    "coverage": "2 sigma coverage",
    "coverage_noise_model": "2 sigma coverage, generalised",
    "coverage_selected_f": "2 sigma coverage, selected by F",
    "coverage_selected_rsd": "2 sigma coverage, selected by RSD",
}
PRINTED_CHANGES = {
    "Fcl1": 0.5, "Fcl2": 0.4, "Fcl3": 0.2, "Fcl4": 1.6, "Fcl5": 0.0, "Fcl7": 0.1, "XX2": 2.3, "ZZ2": 2.3, "MY2": 0.3,
    "XX4": 2.0, "ZZ4": 0.2, "MY4": 0.0, "MY5": 1.7, "MY6": 0.8, "XXL": 13.0, "XZL": 3.8, "YYL": 14.0, "YZL": 2.8,
    "ZZL": 2.7, "MXL": 0.4, "MYL": 0.0, "MZL": 0.0, "ML": 0.7,
}  # fmt: skip
"""Table IV as printed: change from motor to joint positions [%]."""


def figure_table(figures: Mapping[str, Sequence[ModelFigures]]) -> Table:
    """Return mean, deviation and range over the seeds of every figure of every model."""
    rows: list[list[Entry]] = []
    for model, each in figures.items():
        for name, words in _SHOWN.items():
            values = np.array([getattr(one, name) for one in each], dtype=float)
            if np.isfinite(values).all():
                sd = float(values.std(ddof=1)) if len(values) > 1 else None
                rows.append([model, words, float(values.mean()), sd, float(values.min()), float(values.max())])
    return table("Models A to D over the seeds", ["model", "figure", "mean", "sd", "least", "most"], rows)


def table_ii(fits: Mapping[str, PaperFit]) -> Table:
    """Return Table II beside one experiment's parameters with relative sigmas of at most 20 %."""
    tables = {model: printed(f"p5_lwr4_{model.lower()}") for model in fits}
    names = dict.fromkeys(name for model in ("C", "A", "B", "D") for name in tables[model])
    columns = ["parameter"]
    for model in fits:
        columns += [f"{model}: paper", "its RSD %", f"{model}: ours", "RSD %"]
    rows = []
    for name in names:
        row: list[Entry] = [name]
        for model, fit in fits.items():
            row += [*tables[model].get(name, (None, None)), *_ours(fit, name)]
        rows.append(row)
    return table("Table II: estimates and relative sigmas, first experiment", columns, rows)


def _ours(fit: PaperFit, name: str) -> tuple[Entry, Entry]:
    """Return value and relative sigma of an essential parameter; None for one that is not."""
    estimate = fit.by_rsd.estimate
    if name not in estimate.columns:
        return None, None
    place = estimate.columns.index(name)
    return float(estimate.values[place]), float(estimate.relative_sigma[place])


def accuracy_ratios(figures: Mapping[str, Sequence[ModelFigures]]) -> dict[str, tuple[float, float]]:
    """Return for each of ``LINKS`` printed sigmas, model A over B, and rms errors over the seeds, A over B."""
    tables = [printed(f"p5_lwr4_{model}") for model in "ab"]
    found = {}
    for name in LINKS:
        sigmas = [abs(value) * percent for value, percent in (each[name] for each in tables)]
        errors = [float(np.sqrt(np.mean([one.link_errors[name] ** 2 for one in figures[model]]))) for model in "AB"]
        found[name] = (sigmas[0] / sigmas[1], errors[0] / errors[1])
    return found


def accuracy_table(figures: Mapping[str, Sequence[ModelFigures]]) -> Table:
    """Return how much less accurate motor currents are than joint torque sensors, by parameter."""
    rows = [[name, *ratios] for name, ratios in accuracy_ratios(figures).items()]
    headings = ["parameter", "printed sigma, A over B", "rms error here, A over B"]
    return table("Currents (A) against joint torque sensors (B): parameters that both identify", headings, rows)


BINS = np.arange(-3.0, 3.01, 0.5)
"""Edges of the histogram [standard deviations]; both outermost bins are open."""


def histogram_table(fits: Mapping[str, PaperFit]) -> Table:
    """Return the histogram of weighted residuals of one experiment beside the Gaussian, in per cent (figure 3)."""
    edges = np.concatenate([[-np.inf], BINS, [np.inf]])
    columns = [100 * np.diff(norm_cdf(edges))]
    for fit in fits.values():
        residuals = np.concatenate(weighted_residuals(fit))
        standard = (residuals - residuals.mean()) / residuals.std(ddof=1)
        columns.append(100 * np.histogram(standard, edges)[0] / len(standard))
    rows = [
        [f"{low:g} to {high:g}", *(float(column[k]) for column in columns)]
        for k, (low, high) in enumerate(pairwise(edges))
    ]
    headings = ["residual, standard deviations", "Gaussian %", *(f"{model} %" for model in fits)]
    return table("Figure 3: histogram of the residuals of one experiment beside the Gaussian", headings, rows)


def essential_moves(positions: Sequence[tuple[PaperFit, PaperFit]]) -> dict[str, float]:
    """Return by how much [%] joint positions move each parameter of Table IV; mean over the seeds.

    Only parameters that are essential with motor positions (relative sigma of at most 20 %) in every seed.
    """
    changes: dict[str, list[float]] = {}
    for motor, joint in positions:
        for name in PRINTED_CHANGES:
            ours = _ours(motor, name)[0]
            if ours is not None:
                changes.setdefault(name, []).append(100 * abs(_value(joint, name) / _value(motor, name) - 1))
    return {name: float(np.mean(each)) for name, each in changes.items() if len(each) == len(positions)}


def _value(fit: PaperFit, name: str) -> float:
    """Return the value of a base parameter, all of them estimated."""
    return float(fit.estimate.values[fit.estimate.columns.index(name)])


def table_iv(positions: Sequence[tuple[PaperFit, PaperFit]]) -> Table:
    """Return Table IV beside ours: model B with joint positions, and the change from motor positions."""
    moves = essential_moves(positions)
    motor, joint = positions[0]
    rows = [
        [name, value, PRINTED_CHANGES.get(name), _value(motor, name), _value(joint, name), moves.get(name)]
        for name, (value, _) in printed("p5_lwr4_b_joint_positions").items()
    ]
    columns = ["parameter", "paper", "its change %", "ours, motor positions", "ours, joint positions", "change %"]
    return table("Table IV: model B with joint positions (changes: mean over seeds, essential ones)", columns, rows)
