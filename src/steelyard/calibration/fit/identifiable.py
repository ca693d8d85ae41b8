"""Identifiability: which unknowns can be fitted to given measurements, which cannot, and why.

A column that is zero in absolute terms is set aside first: scaled to unit length, its rounding errors would pass for an
unknown. The others are taken in a fixed order (base, tool and markers, own-axis offsets, lengths, twists, compliances,
lateral compliances, weights), and one is selected if those selected before do not span it. So of ``base_rz`` and
``offset1`` the base is selected, and the selected unknowns are those that an engineer would choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from scipy.linalg import solve_triangular

from ...errors import CalibrationError
from ..records import CalibrationProblem, Unknown

DEPENDENT = 1e-6
"""A column is spanned by others if its distance to them, relative to its own length, is below this."""
WEAK = 0.01
"""An unknown is weak if its column is nearer to the others than this: its sigma is 100 times that of one alone."""
NO_EFFECT = 1e-9
"""A column is zero if a plausible value of its unknown moves no measured number by this [m or rad]."""
PLAUSIBLE = {"m": 1e-3, "rad": 1e-3, "rad/(N m)": 1e-6, "m/N": 1e-6, "kg m": 1.0, "kg": 1.0}
"""What size a deviation, a compliance or a first moment may have, by unit."""

# Coefficients of a combination whose part of the column is below this are those of rounding.
_NEGLIGIBLE = 1e-6
_NAMED = 6
_LARGEST_SHARE = 0.1


@dataclass(frozen=True)
class Invisible:
    """An unknown that is not identifiable from these measurements; it stays at its start.

    Attributes:
        name: Its name.
        why: The reason.
        combination: What it acts as: coefficients of selected unknowns by name; empty if it has no effect.
    """

    name: str
    why: str
    combination: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class WeakUnknown:
    """An unknown that is selected, but nearly indistinguishable from others.

    Attributes:
        name: Its name.
        inflation: Its sigma over the one it had if all others were known.
        resembles: The selected unknowns that act most alike, closest first.
    """

    name: str
    inflation: float
    resembles: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class IdentifiableUnknowns:
    """The unknowns that are identifiable, and the others.

    Attributes:
        columns: Numbers of the selected unknowns (k,), ascending.
        names: Their names.
        invisible: The others, in order, with reasons.
        weak: Selected ones that are nearly a combination of others.
        condition: Condition number of the selected columns, each of unit length.
        tolerance: Relative distance below which a column counted as spanned.
        gap: Largest relative distance of a dropped column, smallest of a selected one.
        regrouping: (k, p): the values that the selected unknowns take if dropped ones deviate, to first order.
    """

    columns: np.ndarray
    names: tuple[str, ...]
    invisible: tuple[Invisible, ...]
    weak: tuple[WeakUnknown, ...]
    condition: float
    tolerance: float
    gap: tuple[float, float]
    regrouping: np.ndarray


def preference(parameter: Unknown) -> int:
    """Return the class in which an unknown is taken: 0 first (base), 7 last (weights)."""
    first, last = parameter.name[0], parameter.name[-1]
    if parameter.group == "joint":
        return 2 if parameter.name.startswith("offset") else 4 if first == "r" else 3
    if parameter.group == "compliance":
        return 5 if last.isdigit() else 6
    return {"base": 0, "tool": 1, "marker": 1, "weight": 7}[parameter.group]


def nonzero_columns(parameters: Sequence[Unknown], jacobian: np.ndarray) -> np.ndarray:
    """Return which columns are not zero in absolute terms (p,), before any scaling; known values have none."""
    sizes = np.array([0.0 if each.known else PLAUSIBLE[each.unit] for each in parameters])
    return np.abs(jacobian).max(axis=0, initial=0.0) * sizes > NO_EFFECT


def identifiability(
    parameters: Sequence[Unknown],
    jacobian: np.ndarray,
    tolerance: float = DEPENDENT,
    decided: np.ndarray | None = None,
) -> IdentifiableUnknowns:
    """Return which unknowns are identifiable from measurements with this Jacobian (E, p).

    Take the Jacobian at the start, where the geometry is that of the robot's file: there what depends on what is exact
    (parallel axes); at a solution such unknowns are nearly, not quite, the same, and both would be selected and weak.

    Args:
        parameters: The unknowns (p).
        jacobian: (E, p).
        tolerance: Relative distance below which a column counts as spanned by those selected before.
        decided: Which unknowns are known to be independent (p,), from the start: they come first. The others, judged at
            a solution, count as spanned where they would be weak.

    Raises:
        CalibrationError: If the Jacobian does not fit the unknowns, is not finite, or shows no unknown at all.
    """
    _check(parameters, jacobian)
    nonzero = nonzero_columns(parameters, jacobian)
    if not nonzero.any():
        raise CalibrationError("none of the unknowns has an effect on a measured number; check the measured link")
    ranks = np.array([preference(parameter) for parameter in parameters])
    later = np.zeros(len(ranks), dtype=bool) if decided is None else ~decided
    order = np.array([column for column in np.lexsort((ranks, later)) if nonzero[column]])
    norms = np.linalg.norm(jacobian, axis=0)
    triangle = np.asarray(np.linalg.qr(jacobian[:, order] / norms[order], mode="r"))
    selected, spanned, gap = _split(triangle, np.where(later[order], max(tolerance, WEAK), tolerance))
    alike = np.linalg.lstsq(triangle[:, selected], triangle[:, spanned], rcond=None)[0]
    columns = np.sort(order[selected])
    place = np.argsort(order[selected])
    regrouping = np.zeros((len(selected), len(parameters)))
    regrouping[np.arange(len(selected)), columns] = 1.0
    alike = np.where(np.abs(alike) < _NEGLIGIBLE, 0.0, alike)[place]
    regrouping[:, order[spanned]] = alike * norms[order[spanned]] / norms[columns][:, None]
    scaled = triangle[:, np.array(selected)[place]]
    regrouping.setflags(write=False)
    columns.setflags(write=False)
    names = tuple(parameters[column].name for column in columns)
    return IdentifiableUnknowns(
        columns, names, _invisible(parameters, nonzero, names, regrouping, columns), _weak(scaled, names),
        float(np.linalg.cond(scaled)), tolerance, gap, regrouping,
    )  # fmt: skip


def _check(parameters: Sequence[Unknown], jacobian: np.ndarray) -> None:
    if jacobian.ndim != 2 or jacobian.shape[1] != len(parameters) or not jacobian.size:
        raise CalibrationError(
            f"Jacobian: got shape {jacobian.shape}, needed is at least one equation by {len(parameters)} unknowns"
        )
    if not np.isfinite(jacobian).all():
        column = int(np.flatnonzero(~np.isfinite(jacobian).all(axis=0))[0])
        raise CalibrationError(f"derivatives by {parameters[column].name}: got a value that is not finite")


def _split(triangle: np.ndarray, tolerance: np.ndarray) -> tuple[list[int], list[int], tuple[float, float]]:
    """Take unit columns in order; select each that those before do not span (Gram-Schmidt, done twice)."""
    basis = np.zeros((triangle.shape[0], 0))
    selected: list[int] = []
    spanned: list[int] = []
    distances = np.zeros(triangle.shape[1])
    for column in range(triangle.shape[1]):
        rest = triangle[:, column]
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        distances[column] = np.linalg.norm(rest)
        if distances[column] > tolerance[column]:
            selected.append(column)
            basis = np.column_stack([basis, rest / distances[column]])
        else:
            spanned.append(column)
    return selected, spanned, (float(distances[spanned].max(initial=0.0)), float(distances[selected].min(initial=1.0)))


def _invisible(
    parameters: Sequence[Unknown], nonzero: np.ndarray, selected: tuple[str, ...], regrouping: np.ndarray,
    columns: np.ndarray,
) -> tuple[Invisible, ...]:  # fmt: skip
    found = []
    for number in np.setdiff1d(np.arange(len(parameters)), columns):
        name = parameters[number].name
        if parameters[number].known:
            found.append(Invisible(name, "is known from the robot's file and not fitted"))
            continue
        if not nonzero[number]:
            found.append(Invisible(name, "has no effect on any measured number"))
            continue
        share = np.abs(regrouping[:, number]) * np.array([PLAUSIBLE[parameters[c].unit] for c in columns])
        rows = [row for row in np.argsort(-share, kind="stable") if regrouping[row, number]]
        content = {selected[row]: float(regrouping[row, number]) for row in rows}
        found.append(Invisible(name, _identified_from(name, content), MappingProxyType(content)))
    return tuple(found)


def _identified_from(name: str, content: Mapping[str, float]) -> str:
    named = list(content)[:_NAMED]
    more = f" and {len(content) - _NAMED} more" if len(content) > _NAMED else ""
    terms = "".join(f" {'-' if content[n] < 0 else '+'} {abs(content[n]):.4g} {n}" for n in named)
    terms = f"-{terms[3:]}" if terms.startswith(" - ") else terms[3:]
    further = " + ..." if more else ""
    return f"is indistinguishable from {', '.join(named)}{more}: {name} acts as {terms}{further}"


def _weak(scaled: np.ndarray, names: tuple[str, ...]) -> tuple[WeakUnknown, ...]:
    """Name the columns that lie near the space of the others: distance ``1 / sqrt((B^T B)^-1_ii)``."""
    triangle = np.asarray(np.linalg.qr(scaled, mode="r"))
    inverse = solve_triangular(triangle, np.eye(len(triangle)))
    gram = inverse @ inverse.T
    inflation = np.sqrt(np.diag(gram))
    found = []
    for column in np.flatnonzero(inflation > 1 / WEAK):
        alike = np.abs(gram[:, column]) / (inflation * inflation[column])
        alike[column] = 0.0
        closest = [row for row in np.argsort(-alike, kind="stable") if alike[row] > _LARGEST_SHARE][:_NAMED]
        found.append(WeakUnknown(names[column], float(inflation[column]), tuple(names[row] for row in closest)))
    return tuple(found)


def newly_identifiable(
    problem: CalibrationProblem, identified: IdentifiableUnknowns, values: np.ndarray, tolerance: float
) -> IdentifiableUnknowns | None:
    """Return what is identifiable at some values if unknowns without effect at the start have one there, else None.

    Those that are identifiable at the start stay so. Of a compliance and the weights behind it, for example, only the
    products are identifiable without a load: the compliance then has an effect, and stays at its value.
    """
    parameters = problem.parameters
    names = [parameter.name for parameter in parameters]
    without_effect = [names.index(item.name) for item in identified.invisible if not item.combination]
    jacobian = problem.at(values).jacobian
    nonzero = nonzero_columns(parameters, jacobian)
    added = np.array([column for column in without_effect if nonzero[column]], dtype=int)
    if not len(added):
        return None
    among = np.sort(np.concatenate([identified.columns, added]))
    decided = np.isin(among, identified.columns)
    wider = identifiability([parameters[column] for column in among], jacobian[:, among], tolerance, decided)
    columns = among[wider.columns]
    regrouping = np.zeros((len(columns), len(parameters)))
    regrouping[:, among] = wider.regrouping
    spanned = np.array([names.index(item.name) for item in identified.invisible if item.combination], dtype=int)
    # Those spanned before are combinations of what was fitted then, of which some may be spanned now.
    regrouping[:, spanned] = regrouping[:, identified.columns] @ identified.regrouping[:, spanned]
    regrouping.setflags(write=False)
    left = [item for item in identified.invisible if names.index(item.name) not in added]
    invisible = sorted([*left, *wider.invisible], key=lambda item: names.index(item.name))
    return replace(wider, columns=columns, invisible=tuple(invisible), regrouping=regrouping)
