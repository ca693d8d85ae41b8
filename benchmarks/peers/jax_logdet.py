"""Value and gradient of log det by JAX's reverse mode, compiled by XLA for one thread.

``python -m benchmarks.peers.jax_logdet [ROBOT]`` checks every variant against Steelyard's regressor and times them all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

# Read when the first array is made: one thread, as the others have.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import numpy as np

from benchmarks.peers.information import Question, question, random_coefficients
from benchmarks.peers.jax_regressor import scanned, unrolled
from benchmarks.peers.jax_scalars import by_numbers
from benchmarks.timing import round_robin

Array = Any
jax.config.update("jax_enable_x64", True)

AGREEMENT = 1e-10
FASTEST = "number by number, joint by joint"


def _drive_entry(kind: str, qd: Array, qdd: Array, width: float) -> Array:
    if kind == "Ia":
        return qdd
    if kind == "Fv":
        return qd
    return jnp.tanh(qd / width) if kind == "Fc" else jnp.ones_like(qd)


def _with_drive(requested: Question, inertial: Array, qd: Array, qdd: Array) -> Array:
    """Return all base columns (n, N, c) from the inertial ones (n, N, c1)."""
    own = jnp.eye(len(qd))
    drive = [
        own[joint][:, None] * _drive_entry(kind, qd[joint], qdd[joint], requested.model.sign_width)
        for kind, joint in requested.drive
    ]
    return jnp.concatenate([inertial, jnp.stack(drive, axis=-1)], axis=-1)


def columns_by_matrices(recursion: Callable[..., Array]) -> Callable[..., Array]:
    """Return a maker of all base columns (n, N, c) by ``vmap`` of one instant's matrices."""

    def columns(requested: Question, q: Array, qd: Array, qdd: Array) -> Array:
        chosen = np.array(requested.inertial)

        def one(q: Array, qd: Array, qdd: Array) -> Array:
            return recursion(requested.chain, q, qd, qdd)[:, chosen]

        return _with_drive(requested, jax.vmap(one, in_axes=1, out_axes=1)(q, qd, qdd), qd, qdd)

    return columns


def columns_by_numbers(requested: Question, q: Array, qd: Array, qdd: Array) -> Array:
    """Return all base columns (n, N, c) written number by number, each a vector over the instants."""
    rows = by_numbers(requested.chain, q, qd, qdd)
    blocks = [
        jnp.stack([jnp.broadcast_to(jnp.asarray(row[column]), q.shape[1:]) for column in requested.inertial], axis=-1)
        for row in rows
    ]
    return _with_drive(requested, jnp.stack(blocks), qd, qdd)


def dense_information(requested: Question, columns: Callable[..., Array]) -> Callable[[Array], Array]:
    """Return X to the information matrix: all rows in one product."""

    def information(X: Array) -> Array:
        W = columns(requested, *(X @ jnp.asarray(part) for part in requested.basis))
        rows = (W * requested.weights[:, None, None]).reshape(-1, W.shape[-1])
        return rows.T @ rows

    return information


def information_by_joints(requested: Question) -> Callable[[Array], Array]:
    """Return X to the information matrix, joint by joint: only the columns that the joint feels."""
    width = requested.model.sign_width

    def information(X: Array) -> Array:
        q, qd, qdd = (X @ jnp.asarray(part) for part in requested.basis)
        rows = by_numbers(requested.chain, q, qd, qdd)
        total = jnp.zeros((len(requested.base.base_columns),) * 2)
        for e, row in enumerate(rows):
            nonzero = [(place, row[column]) for place, column in enumerate(requested.inertial)]
            nonzero += [
                (len(requested.inertial) + place, _drive_entry(kind, qd[e], qdd[e], width))
                for place, (kind, joint) in enumerate(requested.drive)
                if joint == e
            ]
            nonzero = [(place, value) for place, value in nonzero if not isinstance(value, float)]
            places = np.array([place for place, _ in nonzero])
            block = requested.weights[e] * jnp.stack([value for _, value in nonzero])
            total = total.at[np.ix_(places, places)].add(block @ block.T)
        return total

    return information


VARIANTS: dict[str, Callable[[Question], Callable[[Array], Array]]] = {
    "scan over links, vmap over instants": lambda requested: dense_information(requested, columns_by_matrices(scanned)),
    "links unrolled, vmap over instants": lambda requested: dense_information(requested, columns_by_matrices(unrolled)),
    "number by number, one product": lambda requested: dense_information(requested, columns_by_numbers),
    "number by number, joint by joint": information_by_joints,
}


class JaxLogDet:
    """log det and its gradient by reverse mode, compiled when first called.

    Args:
        requested: The question.
        variant: One of ``VARIANTS``.
    """

    def __init__(self, requested: Question, variant: str = FASTEST) -> None:
        information = VARIANTS[variant](requested)

        def log_det(X: Array) -> Array:
            return 2 * jnp.sum(jnp.log(jnp.diag(jnp.linalg.cholesky(information(X)))))

        self._information = jax.jit(information)
        self._both = jax.jit(jax.value_and_grad(log_det))

    def value_and_gradient(self, X: np.ndarray) -> tuple[float, np.ndarray]:
        """Return log det and its gradient by X (n, m)."""
        value, gradient = self._both(X)
        return float(value), np.asarray(gradient)

    def information(self, X: np.ndarray) -> np.ndarray:
        """Return the information matrix (c, c)."""
        return np.asarray(self._information(X))


def disagreement(requested: Question, columns: Callable[..., Array], X: np.ndarray) -> float:
    """Return the largest difference of JAX's base columns from Steelyard's."""
    found = columns(requested, *(jnp.asarray(part) for part in requested.motion(X)))
    return float(np.abs(np.asarray(found) - requested.regressor(X)).max())


def check(requested: Question, X: np.ndarray) -> dict[str, float]:
    """Return how far each way to write the columns is from Steelyard's.

    Raises:
        ArithmeticError: If one is further than 1e-10.
    """
    ways = {"scanned": columns_by_matrices(scanned), "unrolled": columns_by_matrices(unrolled)}
    ways["number by number"] = columns_by_numbers
    found = {name: disagreement(requested, columns, X) for name, columns in ways.items()}
    wrong = {name: apart for name, apart in found.items() if not apart < AGREEMENT}
    if wrong:
        raise ArithmeticError(f"JAX's columns differ from Steelyard's: {wrong}")
    return found


def main() -> None:
    """Check and time all variants."""
    requested = question(sys.argv[1] if len(sys.argv) > 1 else "kuka_lwr4")
    X = random_coefficients(requested)
    for name, apart in check(requested, X).items():
        print(f"  columns {name:20s} within {apart:.1e} of Steelyard's")
    contestants: dict[str, Callable[[], object]] = {}
    for name in VARIANTS:
        peer = JaxLogDet(requested, name)
        print(f"  {name:38s} log det {peer.value_and_gradient(X)[0]:.9f}")
        contestants[name] = lambda peer=peer: peer.value_and_gradient(X)
    for name, timing in round_robin(contestants, rounds=25).items():
        least, most = min(timing.seconds), max(timing.seconds)
        print(f"  {name:38s} {1e3 * timing.median:.2f} ms (rounds: {1e3 * least:.2f} to {1e3 * most:.2f})")


if __name__ == "__main__":
    main()
