"""Compiled functions of the motion on a grid of instants, with adjoints: regressor rows and predicted torques."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import casadi as ca
import numpy as np

from ..kernel import BatchFunction, BoundBatch, compile_batch
from ..kernel.arrays import spread_rows
from ..model import Model, build_model
from ..robot import Robot
from ..simulation.plant import payload_values, plant_model, true_values

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Positions, velocities and accelerations, each (n, N)."""

Tied = tuple[list[np.ndarray], list[np.ndarray], BoundBatch]
"""Buffers of inputs and outputs, and what computes the one from the other."""


FEW = 65_536
"""Numbers in and out of a call up to which copying them costs less than looking at the arrays anew."""


class Repeated:
    """A compiled function that is called repeatedly with as many samples: its buffers are bound once.

    A search evaluates some ten thousand small grids, for which checking arrays and collecting their addresses would
    take longer than the function itself. Every thread has buffers of its own.
    """

    def __init__(self, function: BatchFunction) -> None:
        self._function, self._own = function, threading.local()
        self._rows = sum(function.input_rows) + sum(len(sparsity.rows) for sparsity in function.output_sparsity)

    def __call__(self, *given: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the outputs, each (k, N); they belong to the caller."""
        count = given[0].shape[-1]
        if not 0 < count * self._rows <= FEW:
            return self._function(*given)
        inputs, outputs, run = self._tied(count)
        if [array.shape for array in given] != [buffer.shape for buffer in inputs]:
            return self._function(*given)
        for buffer, array in zip(inputs, given, strict=True):
            np.copyto(buffer, array)
        run()
        return tuple([output.copy() for output in outputs])

    def _tied(self, count: int) -> Tied:
        """Return this thread's buffers for so many samples; those of the last such number are cached."""
        if getattr(self._own, "count", None) != count:
            inputs = [spread_rows((rows, count)) for rows in self._function.input_rows]
            outputs = [spread_rows((len(sparsity.rows), count)) for sparsity in self._function.output_sparsity]
            self._own.count, self._own.tied = count, (inputs, outputs, self._function.bind(inputs, outputs))
        return self._own.tied


class Differentiable:
    """A function of the motion, compiled, with its adjoint. Make one with :func:`differentiable`."""

    def __init__(self, value: ca.Function, adjoint: ca.Function) -> None:
        self._value, self._adjoint = Repeated(compile_batch(value)), adjoint

    def __call__(self, motion: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return the outputs, each (k, N)."""
        return self._value(*motion)

    def pull_back(self, motion: Sequence[np.ndarray], seeds: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return the gradient by each input of the sum of outputs times seeds, each (k, N)."""
        return self._compiled_adjoint(*motion, *seeds)

    @cached_property
    def _compiled_adjoint(self) -> Repeated:
        return Repeated(compile_batch(self._adjoint))


def differentiable(name: str, motion: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> Differentiable:
    """Compile column vectors of expressions of the motion; their reverse derivative when it is first used."""
    seeds = [ca.SX.sym(f"seed{k}", output.shape[0]) for k, output in enumerate(outputs)]
    dense = [ca.densify(output) for output in outputs]
    weighted = sum((ca.dot(seed, output) for seed, output in zip(seeds, dense, strict=True)), ca.SX(0))
    gradients = ca.cse([ca.densify(ca.gradient(weighted, symbol)) for symbol in motion])
    value = ca.Function(name, list(motion), ca.cse(dense))
    return Differentiable(value, ca.Function(f"{name}_adjoint", [*motion, *seeds], gradients))


class RowBlocks:
    """Rows of several equations, one under the other, and products of rows of the same equation, side by side.

    Products lie in one array (p,), ``p = sum c_e^2``, so that summing them into a matrix, and the way back, is one
    step for all equations.

    Attributes:
        count: Number of rows of all equations, r.
        equation: Which equation each product belongs to (p,).
        first: Column of the first row of each product (p,).
        second: Column of its second row (p,).
    """

    def __init__(self, columns: Sequence[np.ndarray], size: int) -> None:
        """Lay out the rows.

        Args:
            columns: For each equation the columns of a matrix that its rows belong to (c_e,).
            size: Number of columns c.
        """
        counts = np.array([len(own) for own in columns])
        self.count = int(counts.sum())
        self.equation = np.repeat(np.arange(len(columns)), counts**2)
        self.first = np.concatenate([np.repeat(own, len(own)) for own in columns])
        self.second = np.concatenate([np.tile(own, len(own)) for own in columns])
        self._size, self._places = size, self.first * size + self.second
        ends, ends_of_products = np.cumsum(counts), np.cumsum(counts**2)
        self._blocks = [
            (slice(end - count, end), slice(last - count**2, last), (count, count))
            for count, end, last in zip(counts.tolist(), ends.tolist(), ends_of_products.tolist(), strict=True)
        ]

    def products(self, rows: np.ndarray) -> np.ndarray:
        """Return the products (p,) of rows (r, N) with rows of the same equation, summed over the samples."""
        products = np.empty(len(self._places))
        for part, place, shape in self._blocks:
            own = rows[part]
            np.matmul(own, own.T, out=products[place].reshape(shape))
        return products

    def summed(self, products: np.ndarray) -> np.ndarray:
        """Return the matrix (c, c) to which products (p,) add up."""
        return np.bincount(self._places, products, self._size**2).reshape(self._size, self._size)

    def spread(self, matrix: np.ndarray) -> np.ndarray:
        """Return the entries (p,) of a matrix (c, c) that belong to the products."""
        return matrix.ravel()[self._places]

    def multiplied(self, factors: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return rows (r, N): those of each equation times its square matrix of factors (p,)."""
        result = np.empty((self.count, rows.shape[1]))
        for part, place, shape in self._blocks:
            np.matmul(factors[place].reshape(shape), rows[part], out=result[part])
        return result


Side = Literal["motor", "joint"]


@dataclass(frozen=True, eq=False)
class KnownTorques:
    """Prior values of the parameters that an arm's torques depend on.

    Attributes:
        model: A model of all known effects, its rows those of one side of the gears.
        values: Values of its standard parameters (p,).
        covariance: Their covariance (p, p), of parameters that come from a run; None if they are taken as they are.
    """

    model: Model
    values: np.ndarray
    covariance: np.ndarray | None = None

    def function(self, loaded: bool, sign_width: float) -> Differentiable:
        """Return the compiled torques ``(q, qd, qdd) -> tau`` (n, N), with a smooth sign of friction."""
        smooth = replace(self.model, sign_width=sign_width)
        motion = smooth.motion
        regressor = smooth.regressor if loaded or smooth.payload == "none" else smooth.unloaded_regressor
        torque = ca.mtimes(regressor(motion.q, motion.qd, motion.qdd), ca.DM(self.values))
        return differentiable("torques", (motion.q, motion.qd, motion.qdd), [torque])


def known_torques(robot: Robot, side: Side, payload: tuple[float, ...] | None = None) -> KnownTorques | None:
    """Return the torques by the robot's own description; None if it has no inertias.

    Args:
        robot: The arm.
        side: Torques of the motors, on the joint side, or those that a joint torque sensor measures.
        payload: Ten inertial parameters of the payload in the frame of the link that carries it, if there is one.
    """
    if "inertias" not in robot.carries:
        return None
    plant = plant_model(robot, 0.0)
    model = build_model(robot, plant.effects, side, "none" if payload is None else "paired")
    values = {**true_values(plant), **payload_values(payload)}
    return KnownTorques(model, np.array([values[name] for name in model.names]))
