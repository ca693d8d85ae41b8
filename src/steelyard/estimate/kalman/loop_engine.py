"""Filters of small arms: the whole step compiled, one column for each run."""

from __future__ import annotations

import numpy as np

from ...kernel import compile_loop
from .arm_graph import ArmGraph
from .discrete import Integrator
from .loop_step import loop_step
from .state import Shape


class LoopEngine:
    """Advances any number of filters at once.

    Args:
        graph: The arm.
        shape: Sizes of the filter.
        integrator: How a step in time is taken.
        free: Which parameters are estimated.
        measured: Whether derivatives are taken along the measured motion, see :func:`.loop_step`.
    """

    def __init__(
        self, graph: ArmGraph, shape: Shape, integrator: Integrator, free: tuple[int, ...], *, measured: bool
    ) -> None:
        self._loop = compile_loop(loop_step(graph, shape, integrator, list(free), measured=measured))

    def advance(
        self, vectors: np.ndarray, given: np.ndarray, fixed: np.ndarray, before: int, stride: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take T steps of C filters.

        Args:
            vectors: State vectors (size, C).
            given: Torque over the step, what is observed after it, and the measured motion if derivatives are taken
                along it, see :func:`.loop_step` (T, n + m + 4n, C).
            fixed: What is the same at every step, :attr:`.Shape.given` (k, C).
            before: Steps taken since instants were first kept.
            stride: Every how many steps the state before the step is kept.

        Returns:
            The state vectors after, and what was kept (K, 2n + 2f, C).
        """
        lead = min(-before % stride, len(given))
        main = (len(given) - lead) // stride * stride
        kept = []
        for first, last, every in (
            (0, lead, lead + 1), (lead, lead + main, stride), (lead + main, lead + main + 1, 1),
            (lead + main + 1, len(given), stride),
        ):  # fmt: skip
            part = given[first:last]
            if len(part):
                vectors, told = self._loop(vectors, part, fixed, record_every=every)
                kept.append(told)
        return vectors, np.concatenate(kept) if kept else np.zeros((0, self._loop.n_outputs, vectors.shape[1]))
