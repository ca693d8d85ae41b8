"""Jobs of a study shared by processes, each of which builds the simulated experiments once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.synchronize import Event

from ..errors import SimulationError
from .configuration import StudyConfiguration
from .experiments import Job, SimulatedExperiments
from .statistics import CaseRuns

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

_here: tuple[SimulatedExperiments, Event] | None = None
"""Simulated experiments of a worker process, and the event that stops it."""


def finished_jobs(given: StudyConfiguration, jobs: Sequence[Job], processes: int) -> Iterator[list[CaseRuns]]:
    """Yield the runs of every job as it is done, in any order.

    On an interrupt the processes finish the run at hand; what they have until then is yielded before it is raised.
    """
    # Compiled code cannot be sent to another process, so nothing is inherited: a fork would copy locks of threads.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with (
        _one_thread_each(),
        ProcessPoolExecutor(min(processes, len(jobs)), context, _open_experiments, (given, stop)) as pool,
    ):
        waiting = {pool.submit(_run_here, job) for job in jobs}
        interrupt: KeyboardInterrupt | None = None
        while waiting:
            try:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt as error:
                interrupt = error
                stop.set()
                waiting = {future for future in waiting if not future.cancel()}
                continue
            for future in done:
                try:
                    yield _result(future)
                except BaseException:
                    # The consumer was interrupted, or a worker gave up: nothing more is begun.
                    stop.set()
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        if interrupt is not None:
            raise interrupt


def _result(future: Future[list[CaseRuns]]) -> list[CaseRuns]:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise SimulationError(
            "a process that made runs was ended from outside, perhaps for lack of memory; runs that were finished are "
            "saved: try again with fewer processes"
        ) from error


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


def _open_experiments(given: StudyConfiguration, stop: Event) -> None:
    global _here
    # Ctrl-C reaches the whole group of processes; the one that the user started decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _here = SimulatedExperiments(given), stop


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: killed, it cannot stop its workers."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run_here(job: Job) -> list[CaseRuns]:
    assert _here is not None
    experiments, stop = _here
    return experiments.run(job, stop.is_set)
