"""Base parameters: the smallest set that fixes the torques, and how the others are regrouped into it.

``W_2 = W_1 K`` on random motion gives ``chi_base = chi_1 + K chi_2``. Columns are taken in a fixed order and a
column is kept if the kept ones before it do not span it. The order puts last what the published tables eliminate:
of a revolute link the second moment across the axis, the first moment along it and the mass (YY, MZ, M for an axis
along z); of a prismatic link its six inertias; link-side friction after motor-side; the payload last of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from ..robot import Robot
from ..text import short_repr
from .model import Model
from .parameter import Parameter
from .samples import structural_samples

# A column whose distance to the kept ones, relative to its size, is below this is spanned by them.
# With exact geometry the two kinds are about ten powers of ten apart (see ``BaseParameters.gap``).
DEPENDENT = 1e-9
# Coefficients are roundings of exact numbers; below this they are zero.
NEGLIGIBLE = 1e-9

_ELIMINATED_BY_AXIS = {0: ("ZZ", "MX", "M"), 1: ("XX", "MY", "M"), 2: ("YY", "MZ", "M")}
_INERTIAS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ")


@dataclass(frozen=True)
class BaseParameter:
    """A base parameter: a kept standard parameter with what is regrouped into it.

    Attributes:
        name: Name of the kept parameter, with an ``R`` if it regroups more than one.
        kept: Name of the kept standard parameter.
        unit: SI unit.
        regrouping: Coefficient of every standard parameter in it, the kept one first.
    """

    name: str
    kept: str
    unit: str
    regrouping: Mapping[str, float]

    @property
    def text(self) -> str:
        """The regrouping as an equation: ``ZZ2R = ZZ2 + YY3 + 0.8 MZ3``."""
        return f"{self.name} = {_sum_text(self.regrouping)}"


@dataclass(frozen=True)
class BaseParameters:
    """The structure of a model: what its torques can show at all, whatever the motion.

    Attributes:
        base: Base parameters, in column order of the model.
        without_effect: Names of the standard parameters that no torque feels.
        regrouped: Names of the eliminated standard parameters.
        regrouping: K as one matrix (base, standard): ``chi_base = regrouping @ chi_standard``.
        kept_columns: Column of each base parameter in the model's regressor.
        gap: Largest relative distance of an eliminated column and smallest of a kept one.
    """

    __repr__ = short_repr

    base: tuple[BaseParameter, ...]
    without_effect: tuple[str, ...]
    regrouped: tuple[str, ...]
    regrouping: np.ndarray
    kept_columns: tuple[int, ...]
    gap: tuple[float, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return tuple(parameter.name for parameter in self.base)


@lru_cache(maxsize=32)
def _elimination_rank(symbol: str, axis: tuple[float, float, float], kind: str) -> int:
    """Return 0 for an inertial parameter to keep if possible, 4 or 5 for one to eliminate first."""
    if kind == "prismatic":
        return 5 if symbol in _INERTIAS else 0
    main_axis = int(np.argmax(np.abs(axis)))
    return 4 if symbol in _ELIMINATED_BY_AXIS[main_axis] else 0


def _priority(robot: Robot, parameter: Parameter) -> int:
    """Return the group in which a column is taken; later groups are eliminated first."""
    if parameter.effect == "payload":
        return 6
    if parameter.effect == "inertia":
        joint = robot.bodies[parameter.number - 1].joint
        return _elimination_rank(parameter.symbol, joint.axis, joint.kind)
    if parameter.effect == "Ia":
        return 1
    return 2 if parameter.side == "motor" else 3


def base_parameters(model: Model, seed: int = 0) -> BaseParameters:
    """Return the base parameters of a model, with every regrouping."""
    samples = structural_samples(model, seed)
    norms = np.linalg.norm(samples, axis=0)
    felt = norms > 1e-12 * norms.max()
    priority = [_priority(model.robot, parameter) for parameter in model.parameters]
    order = [column for column in np.argsort(priority, kind="stable") if felt[column]]
    triangle = np.asarray(np.linalg.qr(samples[:, order] / norms[order], mode="r"))
    kept, spanned, gap = _split_columns(triangle)
    coefficients = np.linalg.lstsq(triangle[:, kept], triangle[:, spanned], rcond=None)[0]
    base_columns = [order[k] for k in kept]
    regrouping = np.zeros((len(kept), len(model.parameters)))
    regrouping[np.arange(len(kept)), base_columns] = 1.0
    for column, weights in zip(spanned, coefficients.T, strict=True):
        target = order[column]
        regrouping[:, target] = _rounded(weights * norms[target] / norms[base_columns])
    in_model_order = np.argsort(base_columns)
    return _named(model, regrouping[in_model_order], sorted(int(c) for c in base_columns), felt, gap)


def _split_columns(triangle: np.ndarray) -> tuple[list[int], list[int], tuple[float, float]]:
    """Take columns in order; keep each that the kept ones do not span (Gram-Schmidt, done twice)."""
    basis = np.zeros((triangle.shape[0], 0))
    kept: list[int] = []
    spanned: list[int] = []
    largest_spanned, smallest_kept = 0.0, np.inf
    for column in range(triangle.shape[1]):
        rest = triangle[:, column]
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        distance = float(np.linalg.norm(rest))
        if distance > DEPENDENT:
            kept.append(column)
            basis = np.column_stack([basis, rest / distance])
            smallest_kept = min(smallest_kept, distance)
        else:
            spanned.append(column)
            largest_spanned = max(largest_spanned, distance)
    return kept, spanned, (largest_spanned, smallest_kept)


def _rounded(weights: np.ndarray) -> np.ndarray:
    """Drop the rounding noise of coefficients."""
    return np.where(np.abs(weights) < NEGLIGIBLE, 0.0, np.round(weights, 11))


def _named(
    model: Model, regrouping: np.ndarray, kept: list[int], felt: np.ndarray, gap: tuple[float, float]
) -> BaseParameters:
    regrouping.setflags(write=False)
    base = []
    for row, column in enumerate(kept):
        parameter = model.parameters[column]
        others = [int(k) for k in np.flatnonzero(regrouping[row]) if k != column]
        content = {model.names[k]: float(regrouping[row, k]) for k in [column, *others]}
        name = parameter.name + ("R" if others else "")
        base.append(BaseParameter(name, parameter.name, parameter.unit, MappingProxyType(content)))
    return BaseParameters(
        base=tuple(base),
        without_effect=tuple(name for name, is_felt in zip(model.names, felt, strict=True) if not is_felt),
        regrouped=tuple(name for k, name in enumerate(model.names) if felt[k] and k not in set(kept)),
        regrouping=regrouping,
        kept_columns=tuple(kept),
        gap=gap,
    )


def _sum_text(regrouping: Mapping[str, float]) -> str:
    words = ""
    for name, coefficient in regrouping.items():
        sign = " - " if coefficient < 0 else " + "
        size = "" if abs(abs(coefficient) - 1) < NEGLIGIBLE else f"{abs(coefficient):.6g} "
        words += f"{sign}{size}{name}"
    return words.removeprefix(" + ").removeprefix(" - ") if not words.startswith(" - ") else "-" + words[3:]
