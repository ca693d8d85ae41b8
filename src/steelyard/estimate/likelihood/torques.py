"""Torques, their rows by the parameters and their slopes by the motion, compiled from the model's own graph.

The exact sign of Coulomb friction has no slope but a step. Its columns are computed at velocities of their own, the
directions, which an iteration can hold while it moves the motion: a reversal then moves by an instant, and the cost
stays smooth. With a smooth sign (a width above zero) there is no such column and directions have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np

from ...errors import EstimateError, nearest_match
from ...kernel import BatchFunction, compile_batch
from ...model import Model
from ...observe import Equations


@dataclass(frozen=True, eq=False)
class TorqueFunctions:
    """Compiled functions of ``(q, qd, qdd, directions, theta)``, E equations, n joints, c parameters.

    Make one with :func:`torque_functions`.

    Attributes:
        columns: Names of the parameters theta.
        steps: Whether any column has a step, so that directions matter.
        torque: To ``W theta`` (E, N).
        linear: To the structural non-zeros of W (E, c) and of ``d(W theta)/d(q, qd, qdd)`` (E, 3 n).
    """

    columns: tuple[str, ...]
    steps: bool
    torque: BatchFunction
    linear: BatchFunction

    def torques(self, motion: np.ndarray, directions: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return torques (E, N) of a motion (3, n, N) with velocities (n, N) that give the directions."""
        return self.torque.dense(*motion, directions, theta)[0][:, 0]

    def rows_and_slopes(
        self, motion: np.ndarray, directions: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return W (E, c, N) and slopes of the torques by q, qd and qdd (E, 3, n, N)."""
        rows, slopes = self.linear.dense(*motion, directions, theta)
        return rows, slopes.reshape(len(slopes), 3, -1, slopes.shape[2])


_Key = tuple[tuple[str, ...], bool, float]
_COMPILED: WeakKeyDictionary[Equations, dict[_Key, TorqueFunctions]] = WeakKeyDictionary()


def torque_functions(
    equations: Equations, columns: Sequence[str], *, loaded: bool = True, sign_width: float | None = None
) -> TorqueFunctions:
    """Return the compiled functions of some columns; compiled once for each choice and kept with the equations.

    Args:
        equations: The equations.
        columns: The unknowns, of ``equations.names``.
        loaded: Whether rows have the payload's columns, if the model has any.
        sign_width: Width of the smooth sign; None: the model's.
    """
    model = equations.model
    width = model.sign_width if sign_width is None else float(sign_width)
    key = (tuple(columns), loaded or model.payload == "none", width)
    kept = _COMPILED.setdefault(equations, {})
    if key not in kept:
        kept[key] = _compiled(replace(model, sign_width=width), key[0], loaded=key[1])
    return kept[key]


def _compiled(model: Model, columns: tuple[str, ...], *, loaded: bool) -> TorqueFunctions:
    for name in columns:
        if name not in model.names:
            raise EstimateError(f"ml: no parameter '{name}' in the model{nearest_match(name, model.names)}")
    motion = model.motion
    symbols = [motion.q, motion.qd, motion.qdd]
    regressor = model.regressor if loaded else model.unloaded_regressor
    matrix = ca.sparsify(regressor(*symbols)[:, [model.names.index(name) for name in columns]])
    directions, theta = ca.SX.sym("directions", *motion.qd.shape), ca.SX.sym("theta", len(columns))
    held = [_held(matrix[:, k], motion.qd, directions, ca.vertcat(*symbols)) for k in range(len(columns))]
    rows = ca.horzcat(*held)
    torque = ca.densify(ca.mtimes(rows, theta))
    slopes = ca.sparsify(ca.jacobian(torque, ca.vertcat(*symbols)))
    inputs, names = [*symbols, directions, theta], ["q", "qd", "qdd", "directions", "theta"]
    return TorqueFunctions(
        columns,
        bool(ca.depends_on(rows, directions)),
        compile_batch(ca.Function("torques", inputs, [ca.cse(torque)], names, ["tau"])),
        compile_batch(ca.Function("rows_and_slopes", inputs, ca.cse([rows, slopes]), names, ["W", "T"])),
    )


def _held(column: ca.SX, velocity: ca.SX, directions: ca.SX, motion: ca.SX) -> ca.SX:
    """Return a column of W, written with directions if it changes with the velocity by steps alone."""
    slope = ca.sparsify(ca.jacobian(ca.densify(column), motion))
    has_steps_alone = slope.nnz() == 0 and ca.depends_on(column, velocity)
    return ca.substitute(column, velocity, directions) if has_steps_alone else column
