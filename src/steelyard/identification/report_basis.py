"""What an identified arm rests on, as sections of its report: consistency, excitation, filters, recordings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..plots import bar_plot, matrix_plot, spectrum_plot
from ..report import DataTable, Figure, PageSection, sentence
from ..verdict import first_named
from .figures import torque_spectra

if TYPE_CHECKING:
    from .result import Identification

WORTH_KNOWING = 0.9
"""Correlation above which two parameters are named: the data know their sum or difference better than either."""


def consistency_section(found: Identification) -> PageSection | None:
    """Return the standard parameters of an arm that can exist; None if the model has no link inertias."""
    standard = found.standard
    if standard is None:
        return None
    content = found.to_json()
    rows = [
        [row["name"], row["value"], row["sigma"], row["unit"], row["source"], 100 * row["data_share"],
         row["file_value"], row["difference_in_sigmas"], row["link"] or row["joint"] or ""]
        for row in content["standard_parameters"]
    ]  # fmt: skip
    said = [
        f"Prior: {standard.prior.origin}, relative deviation {standard.prior.deviation:.2g}."
        if standard.prior is not None
        else "No prior: what the data do not determine is put nearest to a reference.",
    ]
    if standard.edges:
        said.append(f"At the edge of what a body can be: {first_named(standard.edges)}.")
    if standard.zeros:
        said.append(f"Held at zero: {first_named(standard.zeros)}.")
    if standard.active:
        said.append(f"Active bounds: {first_named(standard.active)}.")
    if found.standard_error is not None:
        free, bound = found.unseen_error_of_all.relative_percent, found.standard_error.relative_percent
        said.append(f"Consistency changes the error on unseen motion from {free:.3g} % to {bound:.3g} %.")
    return PageSection(
        "Physical consistency",
        [
            DataTable(
                "standard",
                ["name", "value", "sigma", "unit", "from", "data [%]", "robot file", "difference [sigma]", "of"], rows,
                "Standard parameters of an arm that can exist, and where each comes from: the data, a prior, or both. "
                "'reference': neither decides it; it completes the arm without changing a torque, as near as that "
                "allows to the robot file's inertias, or to an arm of usual build where there are none.",
                intervals={1: 2, 6: 2},
            )
        ],
        " ".join(said),
        closed=True,
    )  # fmt: skip


def excitation_section(found: Identification) -> PageSection:
    """Return what the motion showed: singular values and correlations."""
    estimate, names = found.estimate, found.equations.base.name_of
    system = found.fit.raw
    scaled = system.triangle[:-1, :-1] / system.scale
    _, singular, directions = np.linalg.svd(scaled)
    shown = [names[column] for column in estimate.columns]
    regressed = [names[column] for column in system.columns]
    main = [regressed[int(np.argmax(np.abs(row)))] for row in directions]
    correlation = estimate.covariance / np.outer(estimate.sigma, estimate.sigma)
    pairs = sorted(_pairs(shown, correlation), key=lambda pair: -abs(pair[2]))
    text = (
        f"Pairs of parameters with a correlation beyond {WORTH_KNOWING:g}, which the motion shows mostly together: "
        f"{len(pairs)}, first {first_named([f'{a} and {b}' for a, b, _ in pairs])}."
        if pairs
        else f"No two parameters have a correlation beyond {WORTH_KNOWING:g}."
    )
    labels = [f"{k + 1} {name}" for k, name in enumerate(main)]
    weakest = first_named(list(dict.fromkeys(main[:-4:-1])))
    return PageSection(
        "Excitation",
        [
            Figure(
                "singular-values", bar_plot(labels, {"predicted": singular / singular[0]}, "singular value / largest",
                                            logarithmic=True),
                "What the motion showed: singular values of the regressor with columns of unit length, named "
                f"by the parameter that dominates each. Condition number {found.condition.normalised:.3g}; the "
                f"weakest directions are those of {weakest}.",
            ),
            Figure("correlations", matrix_plot(shown, shown, correlation, "correlation"), text),
        ],
        closed=True,
    )  # fmt: skip


def _pairs(names: Sequence[str], correlation: np.ndarray) -> Iterator[tuple[str, str, float]]:
    for i, j in np.argwhere(np.triu(np.abs(correlation) > WORTH_KNOWING, 1)).tolist():
        yield names[i], names[j], float(correlation[i, j])


def preparation_section(found: Identification) -> PageSection:
    """Return filters and spectra."""
    resolved = found.resolved
    frequency, spectra = torque_spectra(found)
    decimated = resolved.rate / resolved.decimation
    cutoffs = {"decimated Nyquist": decimated / 2} if resolved.decimation > 1 else {}
    if resolved.cutoff is not None:
        cutoffs["cut-off"] = resolved.cutoff
    reasons = " ".join(sentence(reason) for reason in resolved.reasons)
    return PageSection(
        "Filters and spectra",
        [
            Figure(
                "spectra", spectrum_plot(frequency, spectra, cutoffs, "N m"),
                f"Measured torques of the first recording at {resolved.rate:.4g} Hz. What is above the cut-off is left "
                f"out of the fit, which uses rows at {decimated:.3g} Hz. {reasons}",
            )
        ],
        closed=True,
    )  # fmt: skip


def robust_section(found: Identification) -> PageSection | None:
    """Return which rows were down-weighted; None without robust weights."""
    robust = found.fit.robust
    if robust is None:
        return None
    rows = [
        [one.joint, one.kind, one.rows, one.percent, one.largest, one.recording, one.time]
        for one in robust.down_weighted
    ]  # fmt: skip
    return PageSection(
        "Down-weighted rows",
        [
            DataTable(
                "down-weighted",
                ["joint", "torque", "rows", "weight below 0.5 [%]", "largest residual [scales]", "in", "at [s]"], rows,
                f"Rows by how far they are from the model ({robust.norm}). In normal noise "
                f"{robust.normal_percent:.2g} % would have a weight below 0.5; most have {robust.most.joint} "
                f"({robust.most.percent:.2g} %). Errors of the fit count all rows in full.", digits=4,
            )
        ],
        closed=True,
    )  # fmt: skip


def selection_section(found: Identification) -> PageSection | None:
    """Return the path of the selection; None if nothing was left out."""
    reduction, names = found.reduction, found.equations.base.name_of
    if not reduction.steps:
        return None
    rows = [
        [k, names[step.name], step.relative_sigma, step.f, step.total_f, step.bic]
        for k, step in enumerate(reduction.steps, 1)
    ]
    return PageSection(
        "Selection of essential parameters",
        [
            DataTable(
                "selection", ["step", "left out", "sigma [%]", "F", "F of all", "BIC"], rows,
                f"Parameters left out by rule '{reduction.rule}', in order. {sentence(reduction.stopped)}".strip(),
            )
        ],
        closed=True,
    )  # fmt: skip


def recordings_section(found: Identification, notes: Sequence[str]) -> PageSection:
    """Return the recordings, how far they agree, and findings of their checks."""
    rows = [
        [one.label, one.samples, 100 * one.masked, one.payload or "", "; ".join(one.notes)] for one in found.training
    ]
    parts: list[Figure | DataTable] = [
        DataTable("recordings", ["recording", "samples", "near standstill [%]", "payload", "notes"], rows,
                  "Recordings that were fitted.", digits=6)
    ]  # fmt: skip
    agreed = found.repeatability
    text = "A single recording: repeatability is not judged."
    if agreed is not None:
        parts.append(
            Figure(
                "repeatability",
                bar_plot(list(agreed.recordings), {"spread": np.array(list(agreed.recordings.values()))},
                         "spread / predicted by sigma", levels={"as the sigmas predict": 1.0}),
                f"Each recording fitted alone against all: the spread is {agreed.spread:.3g} times what the sigmas "
                "predict (1 is expected).",
            )
        )  # fmt: skip
        text = ""
    if found.findings:
        listed = [[one.severity, one.recording, one.text] for one in found.findings]
        parts.append(DataTable("findings", ["severity", "recording", "finding"], listed, "Findings of the log checks."))
    everything = [*found.notes, *notes]
    said = " ".join([text, *(sentence(note) for note in everything)]).strip()
    return PageSection("Recordings", parts, said, closed=True)
