"""Torques that a model predicts: its equations with the parameters as an input, compiled once for each model."""

from __future__ import annotations

from functools import lru_cache

import casadi as ca

from ..kernel import BatchFunction, compile_batch
from ..observe import Equations


@lru_cache(maxsize=8)
def predictor(equations: Equations, loaded: bool) -> BatchFunction:
    """Return ``(q, qd, qdd, x)`` to the torques of all equations, ``tau_hat = W(q, qd, qdd) x`` (E, N).

    Args:
        equations: The equations; x has a value for each of their kept columns, ``equations.names``.
        loaded: Whether the payload's columns count.
    """
    model = equations.model
    regressor = model.regressor if loaded or model.payload == "none" else model.unloaded_regressor
    motion = model.motion
    kept = list(equations.base.kept_columns)
    rows = [model.rows.index(row) for row in equations.kinds_joints]
    matrix = ca.sparsify(regressor(motion.q, motion.qd, motion.qdd)[rows, kept])
    values = ca.SX.sym("x", len(kept))
    torque = ca.cse(ca.densify(ca.mtimes(matrix, values)))
    inputs = [motion.q, motion.qd, motion.qdd, values]
    return compile_batch(ca.Function("prediction", inputs, [torque], ["q", "qd", "qdd", "x"], ["torque"]))
