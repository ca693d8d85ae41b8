"""Which equations a model has, and which columns each of them feels: made once for each model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from ..errors import ObservationError
from ..kernel import BatchFunction, compile_batch
from ..model import BaseParameters, Model, base_parameters
from ..text import short_repr


@dataclass(frozen=True)
class CompiledRows:
    """The regressor of loaded or of unloaded rows, compiled.

    Attributes:
        function: ``(q, qd, qdd)`` to one output (c_e, N) for each equation: its structural non-zeros, in model order.
        columns: For each equation, the names of these non-zeros.
        places: For each equation, where they stand among ``Equations.columns`` of that equation.
    """

    function: BatchFunction
    columns: tuple[tuple[str, ...], ...]
    places: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Equations:
    """The rows and columns of a model's equations. Make one with :func:`equations_of`.

    Attributes:
        model: The model.
        base: Its base parameters; only the kept columns are used.
        kinds_joints: Torque kind and joint of each equation: ``model.rows``, less those left out.
        columns: For each equation, the standard names of its structurally non-zero kept columns, in model order,
            those of the payload included.
        names: All kept columns, standard names, model order.
    """

    __repr__ = short_repr

    model: Model
    base: BaseParameters
    kinds_joints: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the actuated joints."""
        return tuple(body.joint.name for body in self.model.robot.actuated)

    @property
    def joint_index(self) -> np.ndarray:
        """Number of the joint each equation belongs to (E,)."""
        joints = self.joints
        return np.array([joints.index(joint) for _, joint in self.kinds_joints])

    def base_values(self, standard: Mapping[str, float]) -> dict[str, float]:
        """Return base parameters by column, ``chi_1 + K chi_2``, from standard ones by name; absent ones are 0."""
        values = np.array([standard.get(name, 0.0) for name in self.model.names])
        return dict(zip(self.names, (self.base.regrouping @ values).tolist(), strict=True))

    def is_loaded(self, payload: str | None, label: str) -> bool:
        """Return whether rows of a recording with this payload have payload columns."""
        if self.model.payload == "loaded" and payload is None:
            raise ObservationError(
                f"recording '{label}' was made without payload, the model is one of loaded recordings alone; "
                "use payload 'paired' for recordings without and with"
            )
        return payload is not None and self.model.payload != "none"

    def compiled(self, loaded: bool) -> CompiledRows:
        """Return the compiled regressor of loaded or unloaded rows; compiled when first asked for."""
        return self._loaded if loaded or self.model.payload == "none" else self._unloaded

    @cached_property
    def _loaded(self) -> CompiledRows:
        return _compiled(self, self.model.regressor)

    @cached_property
    def _unloaded(self) -> CompiledRows:
        return _compiled(self, self.model.unloaded_regressor)


def equations_of(
    model: Model, base: BaseParameters | None = None, without: Collection[tuple[str, str]] = ()
) -> Equations:
    """Return the equations of a model.

    Args:
        model: The model.
        base: Its base parameters, if they are at hand.
        without: Equations (torque kind, joint) to leave out: their torque was not measured.
    """
    base = base_parameters(model) if base is None else base
    names = tuple(model.names[column] for column in base.kept_columns)
    rows = tuple(row for row in model.rows if row not in without)
    matrix = _kept_columns(model, base, model.regressor, rows)
    return Equations(model, base, rows, _felt(matrix, names), names)


def _kept_columns(
    model: Model, base: BaseParameters, regressor: ca.Function, rows: tuple[tuple[str, str], ...]
) -> ca.SX:
    motion = model.motion
    matrix = regressor(motion.q, motion.qd, motion.qdd)
    return ca.sparsify(matrix[[model.rows.index(row) for row in rows], list(base.kept_columns)])


def _felt(matrix: ca.SX, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return for each row of the matrix the names of its structural non-zeros."""
    rows, columns = matrix.sparsity().get_triplet()
    felt: list[list[str]] = [[] for _ in range(matrix.shape[0])]
    for row, column in zip(rows, columns, strict=True):
        felt[row].append(names[column])
    return tuple(tuple(row) for row in felt)


def _compiled(equations: Equations, regressor: ca.Function) -> CompiledRows:
    model, names = equations.model, equations.names
    matrix = ca.cse(_kept_columns(model, equations.base, regressor, equations.kinds_joints))
    columns = _felt(matrix, names)
    outputs = [
        ca.vertcat(*(matrix[row, names.index(name)] for name in felt)) if felt else ca.SX(0, 1)
        for row, felt in enumerate(columns)
    ]
    motion = model.motion
    function = ca.Function("kept_rows", [motion.q, motion.qd, motion.qdd], outputs, ["q", "qd", "qdd"], _names(outputs))
    places = tuple(
        np.array([whole.index(name) for name in felt], dtype=np.intp)
        for whole, felt in zip(equations.columns, columns, strict=True)
    )
    return CompiledRows(compile_batch(function), columns, places)


def _names(outputs: list[ca.SX]) -> list[str]:
    return [f"row{k}" for k in range(len(outputs))]
