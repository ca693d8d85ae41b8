"""Engines that run filters: graphs and machine code are made once for each arm and choice, and cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from ...kernel import BatchFunction, compile_batch
from ...observe import Equations
from .discrete import Integrator
from .dynamics import ArmGraph, arm_graph
from .lapack_engine import CompiledArm, LapackEngine
from .loop_engine import LoopEngine
from .state import Shape

LARGEST_LOOP = 30
"""Filters with at most this many states and parameters are compiled whole."""

_CACHE: WeakKeyDictionary[Equations, dict[tuple[Any, ...], Any]] = WeakKeyDictionary()


def is_compiled_whole(shape: Shape) -> bool:
    """Return whether a filter is small enough to be compiled whole, any number of them side by side."""
    return shape.states + shape.free <= LARGEST_LOOP


class Engine(Protocol):
    """What takes filters through time."""

    def advance(
        self, vectors: np.ndarray, given: np.ndarray, fixed: np.ndarray, before: int, stride: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take T steps; see :meth:`LoopEngine.advance`."""
        ...


class Arms:
    """An arm with some of its parameters free: its graph and machine code, made when first needed.

    Args:
        equations: Model and base parameters.
        columns: The parameters.
        free: Which of them are estimated.
        loaded: Whether the payload is carried.
        held: Whether the direction of friction is held over a step.
    """

    def __init__(
        self, equations: Equations, columns: tuple[str, ...], free: tuple[int, ...], *, loaded: bool, held: bool
    ) -> None:
        self._equations, self._columns, self._free = equations, columns, free
        self._loaded, self._held = loaded or equations.model.payload == "none", held

    def graph(self) -> ArmGraph:
        """Return the graph."""
        model = self._equations.model
        return self._cached(
            ("graph",), lambda: arm_graph(model, self._columns, self._free, loaded=self._loaded, held=self._held)
        )

    def inertia(self) -> BatchFunction:
        """Return :attr:`.ArmGraph.inertia`, compiled."""
        return self._cached(("inertia",), lambda: compile_batch(self.graph().inertia))

    def engine(self, shape: Shape, integrator: Integrator, *, measured: bool, careful: bool) -> Engine:
        """Return what takes filters through time.

        Args:
            shape: Their sizes.
            integrator: How a step in time is taken.
            measured: Whether derivatives are taken along the measured motion.
            careful: Whether parameters that make no possible arm are to be moved, whatever the size of the filter.
        """
        if is_compiled_whole(shape) and not careful:
            return self._cached(
                ("loop", shape, integrator, measured),
                lambda: LoopEngine(self.graph(), shape, integrator, self._free, measured=measured),
            )
        arm: CompiledArm = self._cached(("arm", integrator), lambda: CompiledArm(self.graph(), integrator))
        return LapackEngine(arm, shape, self._free, measured=measured)

    def _cached(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        cache = _CACHE.setdefault(self._equations, {})
        whole = (*key, self._columns, self._free, self._loaded, self._held)
        if whole not in cache:
            cache[whole] = make()
        return cache[whole]
