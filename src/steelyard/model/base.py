"""Base parameters: the smallest set that determines the torques, with the others regrouped into it.

``W_2 = W_1 K`` on random motion within the limits gives ``chi_base = chi_1 + K chi_2``. Columns are taken in a fixed
order, and a column is a base column if the base columns before it do not span it. The order puts last what the
published tables eliminate: of a revolute link the second moment across the axis, the first moment along it and the mass
(YY, MZ, M for an axis along z); of a prismatic link its six inertias; link-side friction after motor-side; the payload
last of all.

Base parameters are the identifiable ones under any motion. Which of them given data excite is another question, with
another remedy, a better motion: :func:`data_rank`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import casadi as ca
import numpy as np

from ..robot import AnyRobot, Limits, Robot, load_robot
from ..text import short_repr
from .model import Model
from .terms.term import Parameter

# Where a file gives no limit. Only the structure is judged on these samples, so the values matter little;
# they keep all columns of similar size.
_DEFAULT_RANGE = {"revolute": math.pi, "prismatic": 1.0}
_DEFAULT_VELOCITY = 2.0
_DEFAULT_ACCELERATION = 5.0


def random_motion(robot: AnyRobot, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, qd, qdd (na, count), uniform within the limits of the actuated joints.

    Example:
        >>> q, qd, qdd = steelyard.random_motion("scara_2r", 100, np.random.default_rng(0))
        >>> q.shape
        (2, 100)
    """
    robot = load_robot(robot)
    size = len(robot.actuated)
    lower, upper = np.array([_position_range(body.joint.limits, body.joint.kind) for body in robot.actuated]).T
    velocity = np.array([_finite(body.joint.limits.velocity, _DEFAULT_VELOCITY) for body in robot.actuated])
    acceleration = np.array([_finite(body.joint.limits.acceleration, _DEFAULT_ACCELERATION) for body in robot.actuated])
    shape = (size, count)
    q = lower[:, None] + (upper - lower)[:, None] * rng.random(shape)
    return q, velocity[:, None] * rng.uniform(-1, 1, shape), acceleration[:, None] * rng.uniform(-1, 1, shape)


def _position_range(limits: Limits, kind: str) -> tuple[float, float]:
    span = _DEFAULT_RANGE[kind]
    lower, upper = limits.lower, limits.upper
    if math.isinf(lower) and math.isinf(upper):
        return -span, span
    if math.isinf(lower):
        return upper - 2 * span, upper
    return lower, (lower + 2 * span if math.isinf(upper) else upper)


def _finite(limit: float, default: float) -> float:
    return limit if math.isfinite(limit) else default


def stacked_regressor(function: ca.Function, *motion: np.ndarray) -> np.ndarray:
    """Return W (rows * N, parameters), joint-major, from samples of the function's inputs given as columns (na, N).

    Example:
        >>> from steelyard.model import stacked_regressor
        >>> model = steelyard.build_model("scara_2r")
        >>> motion = steelyard.random_motion("scara_2r", 100, np.random.default_rng(0))
        >>> stacked_regressor(model.regressor, *motion).shape
        (200, 24)
    """
    return np.array(function(*motion)).reshape(-1, function.size2_out(0))


def structural_samples(model: Model, seed: int = 0) -> np.ndarray:
    """Return W (r, p) on random motion; for a paired payload, unloaded rows on top of loaded ones."""
    rng = np.random.default_rng(seed)
    # Four times as many rows as columns: enough for the rank, little enough to stay instant.
    count = max(50, math.ceil(4 * len(model.parameters) / len(model.rows)))
    loaded = stacked_regressor(model.regressor, *_random_inputs(model, count, rng))
    if model.payload != "paired":
        return loaded
    unloaded = stacked_regressor(model.unloaded_regressor, *_random_inputs(model, count, rng))
    return np.vstack([unloaded, loaded])


def _random_inputs(model: Model, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return random samples of all inputs of the regressor; states of friction between -1 and 1."""
    motion = random_motion(model.robot, count, rng)
    return [*motion, *(rng.uniform(-1, 1, (one.shape[0], count)) for one in model.inputs[3:])]


# A column whose distance to the base columns, relative to its size, is below this is spanned by them.
# With exact geometry the two kinds are about ten powers of ten apart (see ``BaseParameters.gap``).
DEPENDENT = 1e-9
# Coefficients are roundings of exact numbers; below this they are zero.
NEGLIGIBLE = 1e-9

_ELIMINATED_BY_AXIS = {0: ("ZZ", "MX", "M"), 1: ("XX", "MY", "M"), 2: ("YY", "MZ", "M")}
_INERTIAS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ")


@dataclass(frozen=True)
class BaseParameter:
    """A base parameter: the standard parameter of a base column with what is regrouped into it.

    Attributes:
        name: Name of that standard parameter, with an ``R`` if it regroups more than one.
        column: Name of that standard parameter.
        unit: SI unit.
        regrouping: Coefficient of every standard parameter in it, that of the base column first.

    Example:
        >>> base = steelyard.base_parameters(steelyard.build_model("scara_2r"))
        >>> base.base[0].name, dict(base.base[0].regrouping)
        ('ZZ1R', {'ZZ1': 1.0, 'M2': 0.25})
    """

    name: str
    column: str
    unit: str
    regrouping: Mapping[str, float]

    @property
    def text(self) -> str:
        """The regrouping as an equation: ``ZZ2R = ZZ2 + YY3 + 0.8 MZ3``."""
        return f"{self.name} = {_sum_text(self.regrouping)}"


@dataclass(frozen=True)
class BaseParameters:
    """The structure of a model: the parameters that its torques determine, whatever the motion.

    Attributes:
        base: Base parameters, in column order of the model.
        without_effect: Names of the standard parameters on which no torque depends.
        regrouped: Names of the eliminated standard parameters.
        regrouping: K as one matrix (base, standard): ``chi_base = regrouping @ chi_standard``.
        base_columns: Column of each base parameter in the model's regressor.
        gap: Largest relative distance of an eliminated column and smallest of a base column.

    Example:
        >>> base = steelyard.base_parameters(steelyard.build_model("scara_2r"))
        >>> len(base.base), len(base.without_effect), base.regrouped
        (8, 15, ('M2',))
    """

    __repr__ = short_repr

    base: tuple[BaseParameter, ...]
    without_effect: tuple[str, ...]
    regrouped: tuple[str, ...]
    regrouping: np.ndarray
    base_columns: tuple[int, ...]
    gap: tuple[float, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return tuple(parameter.name for parameter in self.base)

    @property
    def name_of(self) -> dict[str, str]:
        """Name of the base parameter of each base column."""
        return {parameter.column: parameter.name for parameter in self.base}


_GROUPS = ("inertia", "motor", "link", "eliminated inertia", "payload")
"""In the order in which their columns are taken: later ones are eliminated first."""


def _group(robot: Robot, parameter: Parameter) -> str:
    if parameter.effect == "payload":
        return "payload"
    if parameter.effect != "inertia":
        return parameter.side
    joint = robot.bodies[parameter.number - 1].joint
    return "eliminated inertia" if parameter.symbol in _eliminated(joint.axis, joint.kind) else "inertia"


@lru_cache(maxsize=32)
def _eliminated(axis: tuple[float, float, float], kind: str) -> tuple[str, ...]:
    """Return the inertial parameters of a link to eliminate if possible."""
    return _INERTIAS if kind == "prismatic" else _ELIMINATED_BY_AXIS[int(np.argmax(np.abs(axis)))]


def base_parameters(model: Model, seed: int = 0) -> BaseParameters:
    """Return the base parameters of a model, with every regrouping.

    Example:
        >>> base = steelyard.base_parameters(steelyard.build_model("scara_2r"))
        >>> [parameter.name for parameter in base.base]
        ['ZZ1R', 'ZZ2', 'MX2', 'MY2', 'Fvm1', 'Fvm2', 'Fcm1', 'Fcm2']
    """
    samples = structural_samples(model, seed)
    norms = np.linalg.norm(samples, axis=0)
    nonzero = norms > 1e-12 * norms.max()
    groups = [_GROUPS.index(_group(model.robot, parameter)) for parameter in model.parameters]
    order = [column for column in np.argsort(groups, kind="stable") if nonzero[column]]
    triangle = np.asarray(np.linalg.qr(samples[:, order] / norms[order], mode="r"))
    chosen, spanned, gap = _split_columns(triangle)
    coefficients = np.linalg.lstsq(triangle[:, chosen], triangle[:, spanned], rcond=None)[0]
    base_columns = [order[k] for k in chosen]
    regrouping = np.zeros((len(chosen), len(model.parameters)))
    regrouping[np.arange(len(chosen)), base_columns] = 1.0
    for column, weights in zip(spanned, coefficients.T, strict=True):
        target = order[column]
        scaled = weights * norms[target] / norms[base_columns]
        regrouping[:, target] = np.where(
            np.abs(scaled) < NEGLIGIBLE, 0.0, np.round(scaled, 11)
        )  # without rounding noise
    in_model_order = np.argsort(base_columns)
    return _named(model, regrouping[in_model_order], sorted(int(c) for c in base_columns), nonzero, gap)


def _split_columns(triangle: np.ndarray) -> tuple[list[int], list[int], tuple[float, float]]:
    """Split columns, taken in order, into base columns and those that they span (Gram-Schmidt, done twice)."""
    basis = triangle[:, :0]  # orthonormal, of the columns chosen so far
    chosen: list[int] = []
    spanned: list[int] = []
    largest_spanned, smallest_chosen = 0.0, np.inf
    for column in range(triangle.shape[1]):
        rest = triangle[:, column]
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        distance = float(np.linalg.norm(rest))
        if distance > DEPENDENT:
            chosen.append(column)
            basis = np.column_stack([basis, rest / distance])
            smallest_chosen = min(smallest_chosen, distance)
        else:
            spanned.append(column)
            largest_spanned = max(largest_spanned, distance)
    return chosen, spanned, (largest_spanned, smallest_chosen)


def _named(
    model: Model, regrouping: np.ndarray, chosen: list[int], nonzero: np.ndarray, gap: tuple[float, float]
) -> BaseParameters:
    regrouping.setflags(write=False)
    base = []
    for row, column in enumerate(chosen):
        parameter = model.parameters[column]
        others = [int(k) for k in np.flatnonzero(regrouping[row]) if k != column]
        content = {model.names[k]: float(regrouping[row, k]) for k in [column, *others]}
        name = parameter.name + ("R" if others else "")
        base.append(BaseParameter(name, parameter.name, parameter.unit, MappingProxyType(content)))
    return BaseParameters(
        base=tuple(base),
        without_effect=tuple(name for name, is_nonzero in zip(model.names, nonzero, strict=True) if not is_nonzero),
        regrouped=tuple(name for k, name in enumerate(model.names) if nonzero[k] and k not in set(chosen)),
        regrouping=regrouping,
        base_columns=tuple(chosen),
        gap=gap,
    )


def _sum_text(regrouping: Mapping[str, float]) -> str:
    text = ""
    for name, coefficient in regrouping.items():
        sign = " - " if coefficient < 0 else " + "
        size = "" if abs(abs(coefficient) - 1) < NEGLIGIBLE else f"{abs(coefficient):.6g} "
        text += f"{sign}{size}{name}"
    return text.removeprefix(" + ").removeprefix(" - ") if not text.startswith(" - ") else "-" + text[3:]


@dataclass(frozen=True)
class DataRank:
    """What a motion excites of a model's base parameters.

    Attributes:
        rank: Numerical rank of the base columns on the data.
        structural: Number of base parameters: the rank of rich motion.
        condition: Condition number of the base columns, each scaled to unit length; infinite if rank is missing.
        unexcited: Base parameters whose columns the other ones span on these data.

    Example:
        >>> from steelyard.model import stacked_regressor
        >>> model = steelyard.build_model("scara_2r")
        >>> still = np.zeros((2, 50))
        >>> rows = stacked_regressor(model.regressor, still, still, still + 1)
        >>> found = steelyard.data_rank(steelyard.base_parameters(model), rows)
        >>> found.rank, found.structural
        (2, 8)
    """

    rank: int
    structural: int
    condition: float
    unexcited: tuple[str, ...]


def data_rank(base: BaseParameters, regressor: np.ndarray, tolerance: float = 1e-8) -> DataRank:
    """Return the rank of recorded data.

    Args:
        base: Base parameters of the model.
        regressor: Standard regressor on the data (r, p), rows of all recordings stacked.
        tolerance: Singular values below this, relative to the largest, count as zero (columns at unit length).

    Example:
        >>> from steelyard.model import stacked_regressor
        >>> model = steelyard.build_model("scara_2r")
        >>> motion = steelyard.random_motion("scara_2r", 100, np.random.default_rng(0))
        >>> steelyard.data_rank(steelyard.base_parameters(model), stacked_regressor(model.regressor, *motion)).rank
        8
    """
    columns = regressor[:, list(base.base_columns)]
    norms = np.linalg.norm(columns, axis=0)
    triangle = np.linalg.qr(columns / np.where(norms > 0, norms, 1.0), mode="r")
    _, singular, right = np.linalg.svd(triangle, full_matrices=True)
    singular = np.concatenate([singular, np.zeros(len(base.base) - len(singular))])
    missing = right[singular <= tolerance * singular[0]]
    unexcited = np.flatnonzero(np.abs(missing).max(axis=0, initial=0.0) > np.sqrt(tolerance))
    return DataRank(
        rank=len(base.base) - len(missing),
        structural=len(base.base),
        condition=float("inf") if len(missing) else float(singular[0] / singular[-1]),
        unexcited=tuple(base.names[k] for k in unexcited),
    )
