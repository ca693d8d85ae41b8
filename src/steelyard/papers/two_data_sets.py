"""Why a payload needs a run without it: on the loaded run alone its mass is a sum of other columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..estimate import stacked_system
from ..observe import Equations, Observations, merged_triangle
from .claim import Claim, near, same
from .printed_tables import printed

COMBINATION = {"XX2": 0.16, "ZZ2": 0.16, "MY2": 0.4, "XX4": 0.1521, "ZZ4": 0.1521, "MY4": -0.39}
"""Of the column of ML on loaded rows, from r3^2, r3, r5^2 and -r5."""


def essential_49(equations: Equations) -> list[str]:
    """Return the columns of P2's 49 essential parameters, the payload's mass last."""
    columns = set(equations.names)
    return [name for name in printed("p2_lwr4") if name in columns]


def loaded_part(observations: Observations, label: str) -> Observations:
    """Return the observations of one recording."""
    return replace(
        observations,
        factors=tuple(factor for factor in observations.factors if factor.recording == label),
        recordings=tuple(info for info in observations.recordings if info.label == label),
    )


def mass_column(observations: Observations, columns: Sequence[str]) -> dict[str, float]:
    """Return the coefficients that give the column ML from the others, by least squares; zeros left out."""
    triangle, _ = merged_triangle(observations.factors, list(columns))
    others = [k for k, name in enumerate(columns) if name != "ML"]
    target = triangle[:, list(columns).index("ML")]
    weights = np.linalg.lstsq(triangle[:, others], target, rcond=None)[0]
    found = {columns[k]: float(weight) for k, weight in zip(others, weights, strict=True)}
    return {name: weight for name, weight in found.items() if abs(weight) > 1e-7}


def two_data_set_claims(observations: Observations, equations: Equations, label: str) -> list[Claim]:
    """Return the claims that the loaded run alone cannot tell the payload, from model C's observations.

    Args:
        observations: Factors of both runs.
        equations: Model C with payload columns.
        label: Label of the loaded run.
    """
    columns = essential_49(equations)
    both = stacked_system(observations, columns)
    loaded = loaded_part(observations, label)
    alone = stacked_system(loaded, columns)
    found = mass_column(loaded, columns)
    off = max(abs(found.get(name, 0.0) - COMBINATION.get(name, 0.0)) for name in {**found, **COMBINATION})
    text = " + ".join(f"{weight:.4g} {name}" for name, weight in found.items()).replace("+ -", "- ")
    return [
        same(
            "columns of the 49 essential parameters that depend on others: both runs, loaded run alone",
            "not said", f"{', '.join(both.dropped) or 'none'}; {', '.join(alone.dropped) or 'none'}", "none; MZL, ML",
            "two data sets are needed, without and with the payload; 'related to experiments with the payload "
            "attached' (P2) is not enough. On loaded rows the column of MZL is that of MY6",
            fails_if="the loaded run alone has full rank, or both runs together do not",
        ),
        near(
            "largest error of the combination that gives the column ML on loaded rows", "not said", off, 0.0, 1e-6,
            f"ML = {text}", why="0.16 (XX2 + ZZ2) + 0.4 MY2 + 0.1521 (XX4 + ZZ4) - 0.39 MY4",
            fails_if="the payload's column is built with a wrong lever or sign",
        ),
    ]  # fmt: skip
