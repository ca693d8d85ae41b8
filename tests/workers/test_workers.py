"""Workers: every task once, whatever becomes of the processes; failures that name their task."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import MappingProxyType

import pytest

from steelyard.errors import WorkerError
from steelyard.workers import Shared, Workers, open_workers
from workers import jobs

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and limits of memory")


def shared() -> Shared[jobs.Opened]:
    return Shared(jobs.Opened, MappingProxyType({"scale": 2.0}))


def when_there(*paths: Path, seconds: float = 60.0) -> None:
    """Wait until files are there."""
    end = time.monotonic() + seconds
    while not all(path.exists() for path in paths):
        assert time.monotonic() < end, f"{paths} did not come"
        time.sleep(0.01)


def interrupted(workers: Workers, tasks: list[Path]) -> list[int]:
    """Return the tasks that are yielded after an interrupt that comes once the first is under way."""

    def interrupt() -> None:
        when_there(tasks[0])
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    found, thread = [], threading.Thread(target=interrupt)
    # Ignored where tests run in the background of a shell.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            found.extend(workers.finished(jobs.until_stopped, shared(), tasks))
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    return [number for number, _ in found]


class _Interrupting:
    """Has an interrupt come where Python raises nothing: in a destructor."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_in_a_destructor_is_not_lost(tmp_path, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    found = []
    try:
        with open_workers(threads=True) as workers:
            submit = workers._engine.submit

            def submitted(*arguments):
                future = submit(*arguments)
                _Interrupting()
                return future

            monkeypatch.setattr(workers._engine, "submit", submitted)
            with pytest.raises(KeyboardInterrupt):
                found.extend(workers.finished(jobs.until_stopped, shared(), [tmp_path / f"{k}" for k in range(20)]))
    finally:
        signal.signal(signal.SIGINT, before)
    assert {int(path.name) for path in tmp_path.iterdir()} <= {number for number, _ in found}
    assert len(found) < 20


def test_processes_open_shared_data_once_and_give_every_result():
    data = shared()
    with open_workers(workers=2) as workers:
        found = workers.results(jobs.scaled, data, [1.0, 2.0, 3.0, 4.0])
        found += workers.results(jobs.scaled, data, [5.0])
    assert [value for value, _, _ in found] == [2.0, 4.0, 6.0, 8.0, 10.0]
    processes = {process for _, process, _ in found}
    assert os.getpid() not in processes
    assert len(processes) <= 2
    assert {times for _, _, times in found} == {1}
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("count", [1, 3])
def test_threads_share_what_is_opened_here(count):
    data = shared()
    before = jobs.Opened.times
    with open_workers(workers=count, threads=True) as workers:
        found = workers.results(jobs.scaled, data, [1.0, 2.0, 3.0])
    assert [value for value, _, _ in found] == [2.0, 4.0, 6.0]
    assert {process for _, process, _ in found} == {os.getpid()}
    assert jobs.Opened.times == before + 1


@POSIX
def test_a_worker_that_is_killed_loses_nothing(tmp_path):
    with open_workers(workers=2) as workers:
        found = workers.results(jobs.killing_once, shared(), [(k, tmp_path / "killed") for k in range(8)])
    assert (tmp_path / "killed").exists()
    assert found == list(range(8))


@POSIX
def test_a_task_that_ends_its_workers_is_named_and_the_others_are_done():
    with open_workers(workers=2) as workers:
        found = dict(workers.finished(jobs.killing_always, shared(), range(5)))
        with pytest.raises(WorkerError, match="task 3 of 5 ended its worker process each time"):
            workers.results(jobs.killing_always, shared(), range(5))
    assert isinstance(found[2], WorkerError)
    assert [found[k] for k in (0, 1, 3, 4)] == [0, 1, 3, 4]


@pytest.mark.parametrize("count", [1, 2])
def test_a_task_that_raises_ends_the_run_with_its_own_error(count):
    with open_workers(workers=count) as workers, pytest.raises(ZeroDivisionError, match="a defect"):
        list(workers.finished(jobs.failing, shared(), range(8)))
    assert multiprocessing.active_children() == []


@POSIX
def test_a_task_that_needs_too_much_memory_fails_alone():
    with open_workers(workers=1, memory=600_000_000) as workers:
        found = dict(workers.finished(jobs.large, shared(), [10, 200_000_000, 20]))
    assert (found[0], found[2]) == (10, 20)
    assert "task 2 of 3 needs more memory than its worker may use" in str(found[1])


@POSIX
@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupt_yields_what_tasks_under_way_have(tmp_path, count):
    tasks = [tmp_path / f"{k}" for k in range(20)]
    with open_workers(workers=count) as workers:
        found = interrupted(workers, tasks)
    begun = {int(path.name) for path in tmp_path.iterdir()}
    assert 0 in found
    assert set(found) == begun
    assert len(begun) < 20


def test_workers_told_to_stop_still_answer_for_every_task(tmp_path):
    with open_workers(workers=2, threads=True) as workers:
        workers.stopping.set()
        assert workers.results(jobs.until_stopped, shared(), [tmp_path / "a", tmp_path / "b"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "workers: got 0, needed is at least 1"),
        pytest.param({"memory": 0}, "memory: got 0 bytes, needed is at least 1", marks=POSIX),
    ],
)
def test_workers_that_cannot_be_are_refused(settings, message):
    with pytest.raises(WorkerError, match=message), open_workers(**settings):
        pass
