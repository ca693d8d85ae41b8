"""Base columns of a serial arm in jax.numpy, for one instant: two ways to walk along the links.

Each link's motion is found in its own frame; ``W[e, link b] = J_b[:, e]^T Y_b`` with the link's Jacobian J_b (its
columns are the joint axes seen from the link) and its wrench per unit of each inertial parameter, Y_b.
"""

from __future__ import annotations

from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import numpy as np

from benchmarks.peers.information import Chain

Array = Any


def _skew(v: Array) -> Array:
    zero = jnp.zeros_like(v[0])
    return jnp.stack([jnp.stack([zero, -v[2], v[1]]), jnp.stack([v[2], zero, -v[0]]), jnp.stack([-v[1], v[0], zero])])


def _of_inertia(v: Array) -> Array:
    """Return L (3, 6) with ``I v = L (XX XY XZ YY YZ ZZ)``."""
    x, y, z = v
    zero = jnp.zeros_like(x)
    return jnp.stack(
        [jnp.stack([x, y, z, zero, zero, zero]), jnp.stack([zero, x, zero, y, z, zero]),
         jnp.stack([zero, zero, x, zero, y, z])]
    )  # fmt: skip


def _link(state: Array, fixed: Array, moving: Array) -> tuple[Array, Array]:
    """Step to the next link and return its columns (n, 10) too; joints beyond it have zero rows in the Jacobian."""
    omega, alpha, linear, turning, sliding = state
    rotation, translation, axis, cross, outer, own = fixed
    q, qd, qdd = moving
    turned = rotation @ (jnp.cos(q) * (jnp.eye(3) - outer) + jnp.sin(q) * cross + outer)
    linear = (linear + jnp.cross(alpha, translation) + jnp.cross(omega, jnp.cross(omega, translation))) @ turned
    before = omega @ turned
    omega = before + axis * qd
    alpha = alpha @ turned + jnp.cross(before, axis) * qd + axis * qdd
    sliding = (sliding + jnp.cross(turning, translation)) @ turned
    turning = turning @ turned + own[:, None] * axis
    spin = _skew(omega)
    on_inertia = turning @ (_of_inertia(alpha) + spin @ _of_inertia(omega))
    on_moment = sliding @ (_skew(alpha) + spin @ spin) - turning @ _skew(linear)
    columns = jnp.concatenate([on_inertia, on_moment, (sliding @ linear)[:, None]], axis=1)
    return (omega, alpha, linear, turning, sliding), columns


def _start(chain: Chain) -> tuple[Array, ...]:
    size = len(chain.axes)
    return (jnp.zeros(3), jnp.zeros(3), jnp.asarray(-chain.gravity), jnp.zeros((size, 3)), jnp.zeros((size, 3)))


def _constants(chain: Chain) -> tuple[np.ndarray, ...]:
    cross = np.array([[[0, -z, y], [z, 0, -x], [-y, x, 0]] for x, y, z in chain.axes])
    outer = np.einsum("bi,bj->bij", chain.axes, chain.axes)
    return chain.rotations, chain.translations, chain.axes, cross, outer, np.eye(len(chain.axes))


def scanned(chain: Chain, q: Array, qd: Array, qdd: Array) -> Array:
    """One ``lax.scan`` over the links."""
    constants = tuple(jnp.asarray(part) for part in _constants(chain))
    _, blocks = jax.lax.scan(lambda state, given: _link(state, *given), _start(chain), (constants, (q, qd, qdd)))
    return jnp.moveaxis(blocks, 0, 1).reshape(len(chain.axes), -1)


def unrolled(chain: Chain, q: Array, qd: Array, qdd: Array) -> Array:
    """A Python loop over the links, 3x3 matrices."""
    state, blocks, constants = _start(chain), [], _constants(chain)
    for b in range(len(chain.axes)):
        state, columns = _link(state, tuple(part[b] for part in constants), (q[b], qd[b], qdd[b]))
        blocks.append(columns)
    return jnp.concatenate(blocks, axis=1)
