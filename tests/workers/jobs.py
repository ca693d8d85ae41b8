"""Tasks of the tests: functions of a module that worker processes can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import MappingProxyType

import numpy as np


class Opened:
    """Shared data that know where and how often they were opened."""

    times = 0

    def __init__(self, scale: MappingProxyType[str, float]) -> None:
        Opened.times += 1
        self.scale = scale["scale"]


def scaled(opened: Opened, task: float, stop) -> tuple[float, int, int]:
    return opened.scale * task, os.getpid(), Opened.times


def killing_once(opened: Opened, task: tuple[int, Path], stop) -> int:
    """End the own process by SIGKILL the first time that task 3 runs."""
    number, mark = task
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def killing_always(opened: Opened, task: int, stop) -> int:
    if task == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def failing(opened: Opened, task: int, stop) -> int:
    if task == 3:
        raise ZeroDivisionError("a defect")
    return task


def large(opened: Opened, task: int, stop) -> int:
    return int(np.ones(task).sum())


def until_stopped(opened: Opened, task: Path, stop) -> str:
    """Say that it has begun, and work until it is told to stop."""
    task.touch()
    while not stop():
        time.sleep(0.01)
    return task.name


def behind_gate(opened: Opened, task: tuple[Path, Path, int], stop) -> int:
    """Say which process runs task 0, which waits until a gate file is there."""
    gate, begun, number = task
    if number == 0 and not gate.exists():
        aside = begun / f"{os.getpid()}.aside"
        aside.write_text(str(os.getpid()))
        aside.rename(begun / "0")
        while not gate.exists():
            time.sleep(0.01)
    return number
