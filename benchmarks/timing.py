"""Round-robin timing: contestants take turns, so that what else the machine does falls on all of them."""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Timing:
    """CPU seconds of one contestant, one entry a round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median over the rounds [s]."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Ratio:
    """How many times faster one contestant was than another: median, least and most over the rounds."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.median:.1f} (rounds: {self.least:.1f} to {self.most:.1f})"


def round_robin(
    contestants: Mapping[str, Callable[[], object]], rounds: int = 7, clock: Callable[[], float] = time.process_time
) -> dict[str, Timing]:
    """Run every contestant once to warm up, then in turns; return CPU time of each round."""
    for run in contestants.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def ratio(slow: Timing, fast: Timing, work: float = 1.0) -> Ratio:
    """Return slow / fast round by round; ``work`` is how much more work the fast one did in a round."""
    rounds = [work * a / b for a, b in zip(slow.seconds, fast.seconds, strict=True)]
    return Ratio(statistics.median(rounds), min(rounds), max(rounds))


def most_resident_megabytes() -> float:
    """Return the most memory this process has had [MB].

    Where there is ``/proc`` it is asked: ``ru_maxrss`` of a child begins with what its parent had.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found:
            return 1.024e-3 * int(found[1])
    import resource  # not on Windows, where only this figure is missing

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1e-6 if sys.platform == "darwin" else 1.024e-3)
