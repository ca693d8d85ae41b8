"""A Dask cluster of this machine: a scheduler and worker processes, as a user starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SECONDS = 60.0
"""Longest wait for a process to start."""

_SOURCE = Path(__file__).parents[1]


class DaskCluster:
    """A scheduler and its workers, each a process with a port of its own."""

    def __init__(self, folder: Path, security: Sequence[str]) -> None:
        self._security, self._file = security, folder / "scheduler.json"
        paths = (str(_SOURCE / "src"), str(_SOURCE / "tests"), os.environ.get("PYTHONPATH", ""))
        self._environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        self._log, self._processes = (folder / "dask.log").open("wb"), []
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(self._file)]
        self.scheduler = self._start("scheduler", *options, *security)
        end = time.monotonic() + SECONDS
        while not self._file.exists():
            assert self.scheduler.poll() is None, "the scheduler ended"
            assert time.monotonic() < end, "the scheduler did not start"
            time.sleep(0.05)
        self.address: str = json.loads(self._file.read_text())["address"]
        self.workers: list[subprocess.Popen[bytes]] = []

    def add_worker(self) -> None:
        """Start a worker process without a nanny, so that it is the process that is killed."""
        folder = str(self._file.parent)  # of its own: two tests at once must not share one
        options = ["--nthreads", "1", "--no-nanny", "--death-timeout", "30", "--local-directory", folder]
        self.workers.append(self._start("worker", self.address, *options, *self._security))

    def _start(self, command: str, *options: str) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(
            [sys.executable, "-m", "dask", command, *options],
            env=self._environment, stdout=self._log, stderr=self._log,
        )  # fmt: skip
        self._processes.append(started)
        return started

    def close(self) -> None:
        """End all processes."""
        for process in reversed(self._processes):
            process.kill()
            process.wait(SECONDS)
        self._log.close()


@contextmanager
def dask_cluster(folder: Path, workers: int, security: Sequence[str] = ()) -> Iterator[DaskCluster]:
    """Start a cluster with options of its encryption, and end it with the block."""
    cluster = DaskCluster(folder, security)
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.close()


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, as the system does for lack of memory."""
    process.send_signal(signal.SIGKILL)
    process.wait(SECONDS)
