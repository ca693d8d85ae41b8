"""P5's Table III: what is regrouped into the LWR4+'s base parameters, as printed, beside what the model says."""

from __future__ import annotations

from collections.abc import Mapping

from ..model import BaseParameters
from ..observe import Equations
from .claim import Claim, same, within
from .result import Table, table

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
    """Return what Table III prints for a model: coefficients of the other parameters, by the one kept.

    Without FcmjR, which is misprinted, and the offsets, which are missing.
    """
    if model != "A":
        return TABLE_III
    with_drives = {"ZZ1": {**TABLE_III["ZZ1"], "Ia1": 1.0}, "ZZ2": {**TABLE_III["ZZ2"], "Ia2": 1.0}}
    return {**TABLE_III, **with_drives, **_VISCOUS}


def difference(base: BaseParameters, kept: str, printed: Mapping[str, float]) -> float:
    """Return the largest difference between a base parameter's coefficients and printed ones; inf if there is none."""
    found = [dict(each.regrouping) for each in base.base if each.kept == kept]
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
    text = {each.kept: each.text for each in equations["A"].base.base}
    return [
        within(
            "Table III: largest difference of a coefficient, rows without misprint, models A, B, C",
            "17 regroupings, and those of model A", largest, 0.0, 1e-8,
            "YY, MZ and M of the outer links must be the columns eliminated first; another order gives another base",
            claimed=(0.0, 1e-8),
            fails_if="a coefficient of a regrouping is wrong, or another set of columns is chosen as base",
        ),
        same(
            "Table III, Coulomb friction of model A", "FcmjR = Fcmj + Fvlj", text["Fcm1"], "Fcm1R = Fcm1 + Fcl1",
            "misprint: viscous friction cannot be regrouped with Coulomb friction", claimed="Fcm1R = Fcm1 + Fvl1",
            fails_if="Coulomb friction of both sides of a gear is not one parameter of model A",
        ),
        same(
            "Table III, offsets of model A", "missing", text["offm1"], "offm1R = offm1 + offl1",
            "left out: motor and sensor offsets cannot be told apart by motor torques",
            fails_if="offsets of both sides of a gear are not one parameter of model A",
        ),
    ]  # fmt: skip


def regrouping_table(equations: Equations) -> Table:
    """Return Table III of models B and C beside ours."""
    text = {each.kept: each.text for each in equations.base.base}
    rows = []
    for kept, printed in TABLE_III.items():
        terms = " ".join(f"{'-' if value < 0 else '+'} {abs(value):.4g} {name}" for name, value in printed.items())
        rows.append([f"{kept}R", f"{kept} {terms}", text.get(kept), difference(equations.base, kept, printed)])
    return table("Table III: regroupings, models B and C", ["parameter", "paper", "ours", "largest difference"], rows)
