"""P5's four models fitted to simulated recordings, and its tables beside the computed figures.

Table III lists what is regrouped into the LWR4+'s base parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..distributions import norm_cdf
from ..model import BaseParameters
from ..observe import Equations, Preparation, resolve_preparation
from ..recording import Recording
from .claim import Claim, Entry, PaperTable, printed, same, table, within
from .fits import (
    PaperFit,
    coverage,
    coverage_with_noise_model,
    normality,
    paper_fit,
    relative_error,
    watson,
    weighted_residuals,
)
from .lwr4 import STIFFNESS, Prototype

PREPARATION = Preparation(cutoff=10.0, decimation=500, standstill=0)
"""Butterworth at 10 Hz, decimation at 0.8 Hz: 0.8 of the new Nyquist frequency of 1 Hz."""


LINKS = ("XX2", "MY2", "XX4", "ZZ4", "MY4", "MY5", "MY6", "XXL", "XZL", "MXL", "MYL", "MZL", "ML")
"""Link and payload parameters that Table II prints of models A and B and that mean the same in both.

ZZ2R is not among them: in model A it holds the drive's inertia.
"""


@dataclass(frozen=True)
class ModelFigures:
    """Figures of one model and one seed.

    Attributes:
        rows: Number of equations.
        relative_error: ``100 ||y - W x|| / ||y||`` over decimated rows [%].
        essential_f: Essential parameters by the F rule.
        essential_rsd: Essential parameters by relative sigmas of at most 20 %.
        payload_error: Error of the payload's mass [%], all base parameters estimated; NaN without payload.
        durbin_watson: Statistic of all residuals.
        expected_durbin_watson: What white noise gives after this decimator.
        normality: Probability of Kolmogorov and Smirnov's distance for normal residuals.
        coverage: Share of base parameters within two sigmas of the truth.
        coverage_noise_model: The same of generalised least squares, the product's default.
        coverage_selected_f: The same of the essential ones by the F rule.
        coverage_selected_rsd: The same of the essential ones by relative sigmas.
        link_errors: Errors of the parameters ``LINKS``, those that the model has, all base parameters estimated.
    """

    rows: int
    relative_error: float
    essential_f: int
    essential_rsd: int
    payload_error: float
    durbin_watson: float
    expected_durbin_watson: float
    normality: float
    coverage: float
    coverage_noise_model: float
    coverage_selected_f: float
    coverage_selected_rsd: float
    link_errors: Mapping[str, float]


def figures_of(fit: PaperFit, truth: Mapping[str, float]) -> ModelFigures:
    """Return the figures of a fit."""
    true = fit.sources[0].equations.base_values(truth)
    statistic = watson(fit)
    values = dict(zip(fit.estimate.columns, fit.estimate.values, strict=True))
    return ModelFigures(
        rows=fit.rows,
        relative_error=relative_error(fit.observations, fit.estimate),
        essential_f=len(fit.by_f.estimate.columns),
        essential_rsd=len(fit.by_rsd.estimate.columns),
        payload_error=100 * (float(values.get("ML", np.nan)) / truth["ML"] - 1),
        durbin_watson=statistic.statistic,
        expected_durbin_watson=statistic.expected,
        normality=normality(fit),
        coverage=coverage(fit.estimate, true),
        coverage_noise_model=coverage_with_noise_model(fit, true),
        coverage_selected_f=coverage(fit.by_f.estimate, true),
        coverage_selected_rsd=coverage(fit.by_rsd.estimate, true),
        link_errors={name: float(values[name]) - true[name] for name in LINKS if name in values},
    )


def fitted_models(
    recordings: Mapping[str, Recording], equations: Mapping[str, Equations], threads: int
) -> dict[str, PaperFit]:
    """Fit models A to D to one seed's recordings."""
    resolved = resolve_preparation(PREPARATION, list(recordings.values()))
    return {model: paper_fit(recordings, each, resolved, threads=threads) for model, each in equations.items()}


def position_fits(
    arm: Prototype, equations: Equations, seeds: Sequence[int], threads: int
) -> list[tuple[PaperFit, PaperFit]]:
    """Fit model B of an elastic arm with motor positions and with joint positions, for every seed (P5.8)."""
    found = []
    for seed in seeds:
        recordings = arm.recordings(seed, STIFFNESS)
        pair = []
        for stiffness in (None, STIFFNESS):
            preparation = Preparation(cutoff=10.0, decimation=500, standstill=0, stiffness=stiffness)
            resolved = resolve_preparation(preparation, list(recordings.values()))
            pair.append(paper_fit(recordings, equations, resolved, threads=threads))
        found.append((pair[0], pair[1]))
    return found


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


def figure_table(figures: Mapping[str, Sequence[ModelFigures]]) -> PaperTable:
    """Return mean, deviation and range over the seeds of every figure of every model."""
    rows: list[list[Entry]] = []
    for model, each in figures.items():
        for name, heading in _SHOWN.items():
            values = np.array([getattr(one, name) for one in each], dtype=float)
            if np.isfinite(values).all():
                sd = float(values.std(ddof=1)) if len(values) > 1 else None
                rows.append([model, heading, float(values.mean()), sd, float(values.min()), float(values.max())])
    return table("Models A to D over the seeds", ["model", "figure", "mean", "sd", "least", "most"], rows)


def table_ii(fits: Mapping[str, PaperFit]) -> PaperTable:
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


def accuracy_table(figures: Mapping[str, Sequence[ModelFigures]]) -> PaperTable:
    """Return how much less accurate motor currents are than joint torque sensors, by parameter."""
    rows = [[name, *ratios] for name, ratios in accuracy_ratios(figures).items()]
    headings = ["parameter", "printed sigma, A over B", "rms error here, A over B"]
    return table("Currents (A) against joint torque sensors (B): parameters that both identify", headings, rows)


BINS = np.arange(-3.0, 3.01, 0.5)
"""Edges of the histogram [standard deviations]; both outermost bins are open."""


def histogram_table(fits: Mapping[str, PaperFit]) -> PaperTable:
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


def table_iv(positions: Sequence[tuple[PaperFit, PaperFit]]) -> PaperTable:
    """Return Table IV beside ours: model B with joint positions, and the change from motor positions."""
    moves = essential_moves(positions)
    motor, joint = positions[0]
    rows = [
        [name, value, PRINTED_CHANGES.get(name), _value(motor, name), _value(joint, name), moves.get(name)]
        for name, (value, _) in printed("p5_lwr4_b_joint_positions").items()
    ]
    columns = ["parameter", "paper", "its change %", "ours, motor positions", "ours, joint positions", "change %"]
    return table("Table IV: model B with joint positions (changes: mean over seeds, essential ones)", columns, rows)


R3, R5 = 0.4, 0.39


def _masses(coefficient: float, first: int) -> dict[str, float]:
    return {f"M{link}": coefficient for link in range(first, 8)}


TABLE_III: dict[str, dict[str, float]] = {
    "ZZ1": {"YY2": 1},
    "XX2": {"YY2": -1, "YY3": 1, "MZ3": 2 * R3, **_masses(R3**2, 3)},
    "ZZ2": {"YY3": 1, "MZ3": 2 * R3, **_masses(R3**2, 3)},
    "MY2": {"MZ3": 1, **_masses(R3, 3)},
    "XX3": {"YY3": -1, "YY4": 1},
    "ZZ3": {"YY4": 1},
    "MY3": {"MZ4": 1},
    "XX4": {"YY4": -1, "YY5": 1, "MZ5": 2 * R5, **_masses(R5**2, 5)},
    "ZZ4": {"YY5": 1, "MZ5": 2 * R5, **_masses(R5**2, 5)},
    "MY4": {"MZ5": -1, **_masses(-R5, 5)},
    "XX5": {"YY5": -1, "YY6": 1},
    "ZZ5": {"YY6": 1},
    "MY5": {"MZ6": -1},
    "XX6": {"YY6": -1, "YY7": 1},
    "ZZ6": {"YY7": 1},
    "MY6": {"MZ7": 1},
    "XX7": {"YY7": -1},
}
"""Printed for models B and C. Model A has Ia1 and Ia2 besides in ZZ1R and ZZ2R, and friction of both sides together."""

_VISCOUS = {f"Fvm{joint}": {f"Fvl{joint}": 1.0} for joint in range(1, 8)}


def printed_regroupings(model: str) -> dict[str, dict[str, float]]:
    """Return what Table III prints for a model: coefficients of the other parameters, by base column.

    Without FcmjR, which is misprinted, and the offsets, which are missing.
    """
    if model != "A":
        return TABLE_III
    with_drives = {"ZZ1": {**TABLE_III["ZZ1"], "Ia1": 1.0}, "ZZ2": {**TABLE_III["ZZ2"], "Ia2": 1.0}}
    return {**TABLE_III, **with_drives, **_VISCOUS}


def difference(base: BaseParameters, kept: str, printed: Mapping[str, float]) -> float:
    """Return the largest difference between a base parameter's coefficients and printed ones; inf if there is none."""
    found = [dict(each.regrouping) for each in base.base if each.column == kept]
    if not found:
        return float("inf")
    ours = {name: value for name, value in found[0].items() if name != kept}
    return max(abs(ours.get(name, 0.0) - printed.get(name, 0.0)) for name in {**ours, **printed})


def regrouping_claims(equations: Mapping[str, Equations]) -> list[Claim]:
    """Return the claims on Table III for models A, B and C."""
    largest = max(
        difference(equations[model].base, kept, printed)
        for model in ("A", "B", "C")
        for kept, printed in printed_regroupings(model).items()
    )
    text = {each.column: each.text for each in equations["A"].base.base}
    return [
        within(
            "Table III: largest difference of a coefficient, rows without misprint, models A, B, C",
            "17 regroupings, and those of model A", largest, 0.0, 1e-8,
            "YY, MZ and M of the outer links must be the columns eliminated first; another order gives another base",
            claimed=(0.0, 1e-8),
            fails_if="a regrouping coefficient is wrong, or other base columns are chosen",
        ),
        same(
            "Table III, Coulomb friction of model A", "FcmjR = Fcmj + Fvlj", text["Fcm1"], "Fcm1R = Fcm1 + Fcl1",
            "misprint: viscous friction cannot be regrouped with Coulomb friction", claimed="Fcm1R = Fcm1 + Fvl1",
            fails_if="Coulomb friction of both sides of a gear is not one parameter of model A",
        ),
        same(
            "Table III, offsets of model A", "missing", text["offm1"], "offm1R = offm1 + offl1",
            "left out: motor and sensor offsets are indistinguishable by motor torques",
            fails_if="offsets of both sides of a gear are not one parameter of model A",
        ),
    ]  # fmt: skip


def regrouping_table(equations: Equations) -> PaperTable:
    """Return Table III of models B and C beside ours."""
    text = {each.column: each.text for each in equations.base.base}
    rows = []
    for kept, as_printed in TABLE_III.items():
        terms = " ".join(f"{'-' if value < 0 else '+'} {abs(value):.4g} {name}" for name, value in as_printed.items())
        rows.append([f"{kept}R", f"{kept} {terms}", text.get(kept), difference(equations.base, kept, as_printed)])
    return table("Table III: regroupings, models B and C", ["parameter", "paper", "ours", "largest difference"], rows)
