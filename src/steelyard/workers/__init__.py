"""Many independent tasks on threads, on local worker processes, or on a Dask cluster, by one loop.

A task sees its own data and the shared data alone, so results do not depend on the number of workers or on their order.
"""

from __future__ import annotations

import signal
import threading
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Generic

from ..errors import WorkerError
from .cluster import Cluster
from .engines import NotBegunError, Opened, Processes, Result, Task, TaskEngine, Threads, WorkerLostError
from .engines import Run as Run
from .engines import Shared as Shared
from .engines import Stop as Stop

_POLL = 0.2
"""Seconds after which the loop looks for a request to stop."""


class Workers:
    """Workers that run tasks; made by :func:`open_workers`.

    Attributes:
        count: Tasks that are worked on at the same time, as far as is known when the workers are opened.
        stopping: Set it to have all tasks, under way or later, end soon with what they have; a signal handler may.
    """

    def __init__(self, engine: TaskEngine) -> None:
        self._engine = engine
        self.count, self.stopping = engine.count, engine.stopping

    def finished(
        self, run: Run[Opened, Task, Result], shared: Shared[Opened], tasks: Sequence[Task]
    ) -> Generator[tuple[int, Result | WorkerError], None, None]:
        """Yield the number and the result of every task as it is finished, in any order.

        A task that needs too much memory, or that ended its worker process each time it was tried, yields its
        ``WorkerError``; any other exception of a task is raised. After an interrupt tasks under way end soon, and are
        yielded before the interrupt is raised.

        Args:
            run: A function of a module, called with the opened shared data, a task, and a function that returns
                whether to end soon.
            shared: Data of all tasks.
            tasks: Plain data of each task.

        Raises:
            WorkerError: If the cluster is lost, or has another version of Steelyard.
        """
        batch = _Batch(self._engine, run, shared, tasks)
        interrupt: KeyboardInterrupt | None = None
        try:
            while batch.is_left:
                found = None
                try:
                    with _interrupts_noted() as noted:
                        batch.submit()
                        found = batch.next_finished()
                    if noted.is_set():
                        raise KeyboardInterrupt
                except KeyboardInterrupt as error:  # raised by another handler, or noted
                    interrupt = error
                    self.stopping.set()
                    batch.drop()
                if found is not None:
                    yield found
        finally:
            if batch.is_left:  # the consumer was interrupted, or a task raised: nothing more is begun
                self.stopping.set()
                batch.drop()
        if interrupt is not None:
            raise interrupt

    def results(self, run: Run[Opened, Task, Result], shared: Shared[Opened], tasks: Sequence[Task]) -> list[Result]:
        """Return the results of all tasks in their order.

        Raises:
            WorkerError: If a task failed, or the cluster is lost.
        """
        found: dict[int, Result] = {}
        for number, result in self.finished(run, shared, tasks):
            if isinstance(result, WorkerError):
                raise result
            found[number] = result
        return [found[number] for number in range(len(tasks))]


@contextmanager
def _interrupts_noted() -> Iterator[threading.Event]:
    """Set the event by an interrupt, which is not raised.

    Raised wherever it comes it could be lost in a destructor or a callback of Dask, and with it the task that is
    submitted at that moment. Interrupts that are handled otherwise, or ignored, stay so.
    """
    noted = threading.Event()
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield noted
        return
    signal.signal(signal.SIGINT, lambda *_: noted.set())
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def open_workers(
    scheduler: str | None = None, workers: int = 1, memory: int | None = None, *, threads: bool = False
) -> Iterator[Workers]:
    """Open workers, and end them with the block.

    Args:
        scheduler: Address of a Dask scheduler, ``tcp://127.0.0.1:8786`` on this machine or ``tls://HOST:PORT``
            elsewhere; None for workers of this machine.
        workers: Local workers; a single one works in this process.
        memory: Most memory of each local worker process [bytes]; None for no limit.
        threads: Whether local workers are threads of this process rather than processes.

    Raises:
        WorkerError: If the settings make no sense, or the scheduler cannot be used.
    """
    if workers < 1:
        raise WorkerError(f"workers: got {workers}, needed is at least 1")
    if scheduler is not None:
        engine = Cluster(scheduler)
    elif threads or (workers == 1 and memory is None):
        engine = Threads(workers)
    else:
        engine = Processes(workers, memory)
    try:
        yield Workers(engine)
    finally:
        engine.close()


class _Batch(Generic[Opened, Task, Result]):
    """The tasks of one call: those that wait, those under way, and how often each has ended a worker."""

    def __init__(
        self, engine: TaskEngine, run: Run[Opened, Task, Result], shared: Shared[Opened], tasks: Sequence[Task]
    ) -> None:
        self._engine, self._run, self._shared, self._tasks = engine, run, shared, tasks
        self._waiting = deque(range(len(tasks)))
        self._suspects: deque[int] = deque()
        self._under_way: dict[int, Any] = {}
        self._finished: SimpleQueue[int] = SimpleQueue()
        self._deaths: Counter[int] = Counter()

    @property
    def is_left(self) -> bool:
        """Whether a task waits or is under way."""
        return bool(self._waiting or self._suspects or self._under_way)

    def submit(self) -> None:
        """Submit tasks up to what the workers take at the same time.

        A task that was under way when a worker ended runs alone: if a worker ends again, it is this task that did it.
        """
        self._engine.watch()
        if self._suspects:
            if not self._under_way:
                self._begin(self._suspects.popleft())
            return
        while self._waiting and len(self._under_way) < self._engine.capacity:
            self._begin(self._waiting.popleft())

    def _begin(self, number: int) -> None:
        future = self._engine.submit(self._run, self._shared, self._tasks[number])
        self._under_way[number] = future
        future.add_done_callback(lambda _: self._finished.put(number))

    def next_finished(self) -> tuple[int, Result | WorkerError] | None:
        """Return the next finished task; None if there is none yet, or if it has to be run again."""
        try:
            number = self._finished.get(timeout=_POLL)
        except Empty:
            return None
        future = self._under_way.pop(number)
        name = f"task {number + 1} of {len(self._tasks)}"
        try:
            return number, self._engine.result(future)
        except NotBegunError:
            return None
        except MemoryError:
            return number, WorkerError(f"{name} needs more memory than its worker may use; give each worker more")
        except WorkerLostError:
            self._deaths[number] += 1
            if self._deaths[number] < self._engine.attempts:
                self._suspects.append(number)
                return None
            return number, WorkerError(
                f"{name} ended its worker process each time it was tried, perhaps for lack of memory; try fewer "
                "workers, or a machine with more memory"
            )

    def drop(self) -> None:
        """Begin nothing more; those under way are told to stop by the engine."""
        self._waiting.clear()
        self._suspects.clear()
        self._engine.drop(list(self._under_way.values()))
