"""Sharing work between threads."""

from __future__ import annotations

import threading

import pytest

from steelyard.kernel.threads import ScratchPool, for_each


@pytest.mark.parametrize("threads", [1, 2, 5, 50])
def test_each_item_is_done_once(threads: int) -> None:
    done: list[int] = []
    for_each(lambda _, item: done.append(item), range(20), ScratchPool(8), threads)
    assert sorted(done) == list(range(20))


@pytest.mark.parametrize("threads", [1, 3])
def test_an_exception_ends_the_work_and_reaches_the_caller(threads: int) -> None:
    def fail(_: int, item: int) -> None:
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item"):
        for_each(fail, range(1000), ScratchPool(8), threads)


def test_an_interrupt_stops_the_other_threads_too() -> None:
    done: list[int] = []

    def interrupted(_: int, item: int) -> None:
        done.append(item)
        if len(done) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        for_each(interrupted, range(100_000), ScratchPool(8), 1)
    assert len(done) == 5


def test_a_failure_on_one_thread_ends_the_work_of_all() -> None:
    begun = threading.Barrier(2, timeout=10)
    done: list[int] = []

    def task(_: int, item: int) -> None:
        if item < 2:
            begun.wait()
        if item == 0:
            raise ValueError("first")
        done.append(item)

    with pytest.raises(ValueError, match="first"):
        for_each(task, range(1_000_000), ScratchPool(8), 2)
    assert len(done) < 999_999


def test_a_lent_buffer_is_aligned_and_used_again() -> None:
    pool = ScratchPool(16)
    with pool.lend() as first:
        assert first % 64 == 0
        with pool.lend() as second:
            assert second != first
    with pool.lend() as again:
        assert again in (first, second)
