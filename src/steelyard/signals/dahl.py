"""Friction with memory: states of Dahl elements along a recorded motion.

After a reversal dry friction does not jump: it turns over a length s of motion, ``dz/dq = (sign(dq) - z) / s`` (Dahl
1968). Between two samples the direction is one, so that the exact solution is
``z_k+1 = d + (z_k - d) exp(-|q_k+1 - q_k| / s)`` with d the direction. A few elements of different lengths beside each
other are a Maxwell-slip model of presliding.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import casadi as ca
import numpy as np

from ..errors import SignalError
from ..kernel import TimeLoop, compile_loop


class DahlElements:
    """States of Dahl elements of several joints along a recording, block by block.

    They begin at zero: friction before the recording is not known, and is forgotten after a few lengths of motion. Over
    a gap a joint is taken to have moved in one direction.

    Args:
        lengths: Lengths of the elements of every joint [rad or m].
        joints: Number of joints n.
        coordinates: Rows (k, n) of the coordinates that have states, as ``Robot.friction_coordinates`` gives them; None
            for the joints themselves.

    Example:
        >>> from steelyard.signals import DahlElements
        >>> states = DahlElements((0.1,), 1).push(np.array([[0.0, 0.1, 0.2]]))
        >>> states.round(3).tolist()
        [[0.0, 0.632, 0.865]]
    """

    def __init__(self, lengths: Sequence[float], joints: int, coordinates: np.ndarray | None = None) -> None:
        if not all(length > 0 and np.isfinite(length) for length in lengths):
            raise SignalError(f"Dahl lengths: got {list(lengths)}, allowed are finite lengths above 0")
        self._coordinates = np.eye(joints) if coordinates is None else coordinates
        self._lengths = np.repeat(np.asarray(lengths, dtype=float), len(self._coordinates))
        self._repeats = len(lengths)
        self._last: np.ndarray | None = None
        self._state = np.zeros((1, len(self._lengths)))

    def push(self, q: np.ndarray) -> np.ndarray:
        """Take positions (n, m) and return the states (elements * k, m), -1 to 1, the first length's first."""
        if not q.shape[1]:
            return np.zeros((len(self._lengths), 0))
        moved = self._coordinates @ np.diff(q, axis=1, prepend=q[:, :1] if self._last is None else self._last)
        self._last = q[:, -1:].copy()
        step = np.tile(moved, (self._repeats, 1))
        remains = np.exp(-np.abs(step) / self._lengths[:, None])
        inputs = np.stack([remains.T, ((1 - remains) * np.sign(step)).T], axis=1)
        self._state, states = _recursion()(self._state, np.ascontiguousarray(inputs))
        return states[:, 0].T


@lru_cache(maxsize=1)
def _recursion() -> TimeLoop:
    """Return the compiled ``z <- a z + b``; every element is a run of its own."""
    z, given = ca.SX.sym("z"), ca.SX.sym("ab", 2)
    after = given[0] * z + given[1]
    return compile_loop(ca.Function("dahl", [z, given, ca.SX.sym("p", 0)], [after, after]))
