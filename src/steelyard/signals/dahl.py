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
        changes: Whether the derivatives of the states by the logarithms of their lengths are wanted too; they are
            carried beside the states, ``g <- a g + a |dq| / s (z - d)``.

    Example:
        >>> from steelyard.signals import DahlElements
        >>> states = DahlElements((0.1,), 1).push(np.array([[0.0, 0.1, 0.2]]))
        >>> states.round(3).tolist()
        [[0.0, 0.632, 0.865]]
    """

    def __init__(
        self, lengths: Sequence[float], joints: int, coordinates: np.ndarray | None = None, *, changes: bool = False
    ) -> None:
        if not all(length > 0 and np.isfinite(length) for length in lengths):
            raise SignalError(f"Dahl lengths: got {list(lengths)}, allowed are finite lengths above 0")
        self._coordinates = np.eye(joints) if coordinates is None else coordinates
        self._lengths = np.repeat(np.asarray(lengths, dtype=float), len(self._coordinates))
        self._repeats = len(lengths)
        self._last: np.ndarray | None = None
        self._changes = changes
        self._state = np.zeros((2 if changes else 1, len(self._lengths)))

    def push(self, q: np.ndarray) -> np.ndarray:
        """Take positions (n, m) and return the states (elements * k, m), -1 to 1, the first length's first.

        With ``changes`` as many rows follow, the derivatives by the logarithms of the lengths.
        """
        if not q.shape[1]:
            return np.zeros((self._state.size, 0))
        moved = self._coordinates @ np.diff(q, axis=1, prepend=q[:, :1] if self._last is None else self._last)
        self._last = q[:, -1:].copy()
        step = np.tile(moved, (self._repeats, 1))
        part = np.abs(step) / self._lengths[:, None]
        remains = np.exp(-part)
        signals = [remains.T, ((1 - remains) * np.sign(step)).T]
        if self._changes:
            signals += [(remains * part).T, (remains * part * np.sign(step)).T]
        self._state, states = _recursion(self._changes)(self._state, np.ascontiguousarray(np.stack(signals, axis=1)))
        return np.concatenate(list(states.transpose(1, 2, 0)))


@lru_cache(maxsize=2)
def _recursion(changes: bool) -> TimeLoop:
    """Return the compiled ``z <- a z + b``, and ``g <- a g + c z - e`` beside it; every element is a run of its own."""
    state, given = ca.SX.sym("z", 2 if changes else 1), ca.SX.sym("abce", 4 if changes else 2)
    after = given[0] * state[0] + given[1]
    if changes:
        after = ca.vertcat(after, given[0] * state[1] + given[2] * state[0] - given[3])
    return compile_loop(ca.Function("dahl", [state, given, ca.SX.sym("p", 0)], [after, after]))
