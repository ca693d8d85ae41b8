"""P2's tables beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..estimate import Estimate
from ..judge import ComparedRun, ComparedValue, Evaluation
from .fits import PaperFit
from .printed_tables import printed
from .result import Entry, Table, table


def table_2(estimates: Sequence[Estimate], true: Mapping[str, float]) -> Table:
    """Return Table 2 beside the 49 parameters refitted: means over the seeds."""
    columns = estimates[0].columns
    values = np.array([each.values for each in estimates])
    sigmas = np.median([each.relative_sigma for each in estimates], axis=0)
    rows = []
    for name, (value, percent) in printed("p2_lwr4").items():
        place = columns.index(name)
        rows.append([name, value, percent, true[name], float(values[:, place].mean()), float(sigmas[place])])
    headings = ["parameter", "paper", "its RSD %", "true here", "ours, mean", "RSD %, median"]
    return table("Table 2: 49 essential parameters of model 2", headings, rows)


def model_table(fits: Mapping[str, PaperFit]) -> Table:
    """Return the essential parameters of models 1, 2 and 3 side by side, of one experiment."""
    names = dict.fromkeys(name for number in ("2", "1", "3") for name in fits[number].by_rsd.estimate.columns)
    headings = ["parameter"]
    for number in fits:
        headings += [f"model {number}", "RSD %"]
    rows = []
    for name in names:
        row: list[Entry] = [name]
        for fit in fits.values():
            estimate = fit.by_rsd.estimate
            place = estimate.columns.index(name) if name in estimate.columns else None
            row += [None, None] if place is None else [
                float(estimate.values[place]), float(estimate.relative_sigma[place])
            ]  # fmt: skip
        rows.append(row)
    return table("Essential parameters of models 1, 2 and 3, first experiment", headings, rows)


def torque_table(fitted: Evaluation, unseen: Evaluation) -> Table:
    """Return the computed-torque test by joint and torque."""
    rows = [
        [a.kind, a.joint, a.torque_rms, a.relative_percent, b.relative_percent, b.rms, b.maximum]
        for a, b in zip(fitted.joints, unseen.joints, strict=True)
    ]
    headings = [
        "torque",
        "joint",
        "rms N m",
        "relative error of the fit %",
        "unseen %",
        "unseen rms N m",
        "largest N m",
    ]
    return table(f"Computed-torque test below {unseen.cutoff:g} Hz, first experiment", headings, rows)


def compared_estimate(name: str, estimate: Estimate) -> ComparedRun:
    """Return an estimate's columns as a run to compare; they mean the same in models 1, 2 and 3."""
    pairs = zip(estimate.columns, estimate.values, estimate.sigma, strict=True)
    return ComparedRun(name, {column: ComparedValue(float(value), float(sigma), "") for column, value, sigma in pairs})
