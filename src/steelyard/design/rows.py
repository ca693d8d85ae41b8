"""The regressor's rows on a grid of instants, and the way back: from a gradient by rows to one by the motion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import casadi as ca
import numpy as np

from ..kernel import BatchFunction, compile_batch

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Positions, velocities and accelerations, each (n, N)."""


class Differentiable:
    """A function of the motion, compiled, with its adjoint. Make one with :func:`differentiable`."""

    def __init__(self, value: ca.Function, adjoint: ca.Function) -> None:
        self._value, self._adjoint = compile_batch(value), adjoint

    def __call__(self, motion: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return the outputs, each (k, N)."""
        return self._value(*motion)

    def pull_back(self, motion: Sequence[np.ndarray], seeds: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return the gradient by each input of the sum of outputs times seeds, each (k, N)."""
        return self._compiled_adjoint(*motion, *seeds)

    @cached_property
    def _compiled_adjoint(self) -> BatchFunction:
        return compile_batch(self._adjoint)


def differentiable(name: str, motion: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> Differentiable:
    """Compile column vectors of expressions of the motion; their reverse derivative when it is first asked for."""
    seeds = [ca.SX.sym(f"seed{k}", output.shape[0]) for k, output in enumerate(outputs)]
    dense = [ca.densify(output) for output in outputs]
    weighted = sum((ca.dot(seed, output) for seed, output in zip(seeds, dense, strict=True)), ca.SX(0))
    gradients = ca.cse([ca.densify(ca.gradient(weighted, symbol)) for symbol in motion])
    value = ca.Function(name, list(motion), ca.cse(dense))
    return Differentiable(value, ca.Function(f"{name}_adjoint", [*motion, *seeds], gradients))
