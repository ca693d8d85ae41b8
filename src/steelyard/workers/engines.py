"""Where tasks run: threads of this process, or local worker processes; and what every such place can do.

Shared data are sent to a worker process once as plain data and opened there: compiled code cannot be sent.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib.util import find_spec
from io import BytesIO
from multiprocessing.synchronize import Event
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from ..errors import WorkerError

ATTEMPTS = 3
"""Local worker processes that may end while a task is under way before that task has failed."""

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

Opened = TypeVar("Opened")
Task = TypeVar("Task")
Result = TypeVar("Result")

Stop = Callable[[], bool]
"""Returns whether a task shall end soon with what it has."""


class _Pickler(pickle.Pickler):
    """Pickles records by their fields: what they cache, such as CasADi expressions, is computed again elsewhere."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, MappingProxyType):
            return _read_only, (dict(value),)
        if is_dataclass(value) and not isinstance(value, type):
            return _record, (type(value), {field.name: getattr(value, field.name) for field in fields(value)})
        return NotImplemented


def _read_only(content: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(content)


def _record(kind: type, content: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    for name, value in content.items():
        object.__setattr__(made, name, value)  # records are frozen
    return made


class Shared(Generic[Opened]):
    """Data of all tasks: what opens them in a process, and the plain data from which it does."""

    def __init__(self, opening: Callable[..., Opened], *given: Any) -> None:
        """Take what is sent.

        Args:
            opening: A function or class of a module, called with the given data once per worker process.
            given: Plain data that can be pickled.
        """
        self._opening, self._given = opening, given

    @cached_property
    def here(self) -> Opened:
        """The data opened in this process."""
        return self._opening(*self._given)

    @cached_property
    def data(self) -> bytes:
        """The data as they are sent."""
        written = BytesIO()
        _Pickler(written, pickle.HIGHEST_PROTOCOL).dump((self._opening, self._given))
        return written.getvalue()

    @cached_property
    def key(self) -> str:
        """A digest of the data as they are sent."""
        return hashlib.sha256(self.data).hexdigest()


Run = Callable[[Opened, Task, Stop], Result]
"""A function of a module: called with the opened shared data, a task, and whether to stop."""


class WorkerLostError(Exception):
    """A worker process ended while a task was under way, perhaps by another task."""


class NotBegunError(Exception):
    """A task was dropped before it began."""


class TaskEngine(ABC):
    """Where tasks run.

    Attributes:
        count: Workers.
        capacity: Tasks that are submitted at the same time: some more than workers, so that none waits for this loop.
        attempts: Workers that may end while a task is under way before that task has failed.
        stopping: Set to ask tasks to end soon.
    """

    def __init__(self, count: int, capacity: int, attempts: int) -> None:
        self.count, self.capacity, self.attempts = count, capacity, attempts
        self.stopping = threading.Event()

    @abstractmethod
    def submit(self, run: Run[Any, Any, Any], shared: Shared[Any], task: Any) -> Any:
        """Submit a task; return its future."""

    def watch(self) -> None:
        """Pass on a request to stop; called now and then while tasks are under way."""
        return

    def result(self, future: Any) -> Any:
        """Return the result of a finished task, or raise its error.

        Raises:
            NotBegunError: If it was dropped.
            WorkerLostError: If its worker ended.
            WorkerError: If all workers are out of reach.
        """
        try:
            return future.result()
        except CancelledError as error:
            raise NotBegunError from error

    def drop(self, futures: Sequence[Any]) -> None:
        """Have tasks that have not begun never begin."""
        for future in futures:
            future.cancel()

    @abstractmethod
    def close(self) -> None:
        """End the workers."""


class Threads(TaskEngine):
    """Threads of this process, which share what is opened."""

    def __init__(self, count: int) -> None:
        super().__init__(count, count, ATTEMPTS)
        self._pool = ThreadPoolExecutor(count, "steelyard-worker")

    def submit(self, run: Run[Any, Any, Any], shared: Shared[Any], task: Any) -> Future[Any]:
        """Submit a task."""
        return self._pool.submit(run, shared.here, task, self.stopping.is_set)

    def close(self) -> None:
        """Wait for the tasks under way."""
        self._pool.shutdown(cancel_futures=True)


class Processes(TaskEngine):
    """Local processes; a pool whose worker was killed is replaced by a new one."""

    def __init__(self, count: int, memory: int | None) -> None:
        super().__init__(count, 2 * count, ATTEMPTS)
        if memory is not None:
            _check_memory(memory)
        # Nothing is inherited: a fork would copy locks of threads.
        self._context = multiprocessing.get_context("spawn")
        self._stop, self._memory = self._context.Event(), memory
        self._pool: ProcessPoolExecutor | None = None
        self._shared: Shared[Any] | None = None

    def submit(self, run: Run[Any, Any, Any], shared: Shared[Any], task: Any) -> Future[Any]:
        """Submit a task, to new processes if the shared data are new or a process has ended."""
        with _one_thread_each():  # the pool starts its processes here
            if self._pool is not None and self._shared is shared:
                with suppress(BrokenProcessPool):
                    return self._pool.submit(_run_in_process, run, task)
            self.close()
            self._shared = shared
            given = shared.data, self._stop, self._memory
            self._pool = ProcessPoolExecutor(self.count, self._context, _start_process, given)
            return self._pool.submit(_run_in_process, run, task)

    def watch(self) -> None:
        """Pass on a request to stop."""
        if self.stopping.is_set():
            self._stop.set()

    def result(self, future: Future[Any]) -> Any:
        """Return the result of a finished task, or raise its error."""
        try:
            return super().result(future)
        except BrokenProcessPool as error:
            raise WorkerLostError from error

    def drop(self, futures: Sequence[Future[Any]]) -> None:
        """Have tasks that have not begun never begin."""
        self.watch()
        super().drop(futures)

    def close(self) -> None:
        """Wait for the tasks under way, and end the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _check_memory(memory: int) -> None:
    if memory < 1:
        raise WorkerError(f"memory: got {memory} bytes, needed is at least 1")
    if find_spec("resource") is None:
        raise WorkerError("memory: this system cannot limit the memory of a process; leave it out")


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Have processes that are started inside begin with linear algebra on one thread."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


_process: tuple[bytes, Event] | None = None
"""In a local worker process: the shared data as sent, and the event that stops its tasks."""

_opened: tuple[str, Any] | None = None
"""In a worker process: the shared data opened last, after their key."""


def _start_process(data: bytes, stop: Event, memory: int | None) -> None:
    global _process
    # Ctrl-C reaches the whole group of processes; the one that the user started decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if memory is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    _process = data, stop


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: killed, it cannot stop its workers."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def opened_here(key: str, data: bytes) -> Any:
    """Return the shared data of a worker process, opened when a key comes first."""
    global _opened
    if _opened is None or _opened[0] != key:
        _opened = None  # frees the memory of the others first
        opening, given = pickle.loads(data)
        _opened = key, opening(*given)
    return _opened[1]


def _run_in_process(run: Run[Any, Any, Any], task: Any) -> Any:
    assert _process is not None
    data, stop = _process
    return run(opened_here("", data), task, stop.is_set)
