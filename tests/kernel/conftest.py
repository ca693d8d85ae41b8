"""Functions that several kernel tests compile."""

from __future__ import annotations

import casadi
import pytest


@pytest.fixture(scope="session")
def mixed() -> casadi.Function:
    """A function with long chains, shared terms, many operations, and sparse and trivial outputs."""
    x, y, p = casadi.SX.sym("x", 3), casadi.SX.sym("y", 2), casadi.SX.sym("p", 2)
    terms = [x[0] * y[0] + p[0], casadi.sin(x[1]) - p[1] * x[2], casadi.cos(x[1]) * y[1]]
    for k in range(40):
        a, b, c = terms[-1], terms[-2], terms[-3]
        terms.append([a * b - c, casadi.tanh(a) + b * c, casadi.sqrt(casadi.fabs(a)) / (1 + b**2)][k % 3])
    matrix = casadi.SX(3, 4)
    for k, (row, column) in enumerate([(0, 0), (2, 0), (1, 1), (0, 3), (2, 3)]):
        matrix[row, column] = terms[-1 - k] + terms[k]
    trivial = casadi.vertcat(x[2], 4.5, terms[5], x[2])
    return casadi.Function("mixed", [x, y, p], [matrix, trivial], ["x", "y", "p"], ["matrix", "trivial"])
