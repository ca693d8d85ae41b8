"""Sharing of work among threads, each with scratch memory of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from ..errors import KernelError
from .arrays import aligned_empty

Item = TypeVar("Item")


class ScratchPool:
    """Scratch buffers of one size, lent to one user at a time and reused."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._idle: deque[np.ndarray] = deque()

    @contextmanager
    def lend(self) -> Iterator[int]:
        """Lend a buffer; yields its address."""
        try:
            buffer = self._idle.pop()
        except IndexError:
            buffer = aligned_empty((self._size,))
        try:
            yield buffer.ctypes.data
        finally:
            self._idle.append(buffer)


def for_each(task: Callable[[int, Item], None], items: Iterable[Item], scratch: ScratchPool, threads: int) -> None:
    """Run ``task(scratch_address, item)`` for all items, on this thread and ``threads - 1`` others.

    An exception, Ctrl-C among them, ends all threads after the item they are at.
    """
    waiting = deque(items)

    def take() -> Item | None:
        try:
            return waiting.popleft()
        except IndexError:
            return None

    def work() -> None:
        try:
            with scratch.lend() as address:
                while (item := take()) is not None:
                    task(address, item)
        except BaseException:
            waiting.clear()
            raise

    helpers = min(threads, len(waiting)) - 1
    if helpers < 1:
        work()
        return
    with ThreadPoolExecutor(helpers, thread_name_prefix="steelyard-kernel") as pool:
        futures = [pool.submit(work) for _ in range(helpers)]
        work()
        for future in futures:
            future.result()


def check_threads(threads: int, what: str) -> None:
    """Raise a KernelError unless ``threads`` is a positive integer."""
    check_positive(threads, f"{what}: threads")


def check_positive(value: int, what: str) -> None:
    """Raise a KernelError unless ``value`` is a positive integer."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise KernelError(f"{what}: got {value!r}, allowed is a positive integer")
