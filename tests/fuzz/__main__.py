"""``python -m fuzz``: damaged inputs of every kind, read in worker processes; every fault is printed and kept.

Cases are known by kind and number: ``log_npz:123`` is the same file on every machine with the same packages.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from .cases import Outcome, prepare_process, run_case, write_case
from .kinds import KINDS

CHUNK = 2500
REGRESSIONS = Path(__file__).with_name("regressions.txt")
"""Cases that once had a fault, a line each: kind:number, and what it was."""


@dataclass
class Tally:
    """What is known of the cases of one kind."""

    cases: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    memory: float = 0.0
    faults: list[tuple[int, str]] = field(default_factory=list)

    def add(self, number: int, outcome: Outcome) -> None:
        """Count one case."""
        self.cases += 1
        self.seconds += outcome.seconds
        self.slowest = max(self.slowest, outcome.seconds)
        self.memory = max(self.memory, outcome.memory)
        if outcome.fault:
            self.faults.append((number, outcome.fault))


def main() -> int:
    """Run the cases asked for; return 1 if one has a fault."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Read damaged inputs of every kind.")
    parser.add_argument("--cases", type=int, default=100_000, help="cases in all, spread over the kinds")
    parser.add_argument("--first", type=int, default=0, help="number of the first case of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds, separated by commas")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-faults"), help="folder for inputs with a fault")
    parser.add_argument("--regressions", action="store_true", help="also run the cases that once had a fault")
    parser.add_argument("--case", help="run one case, such as log_npz:123, and keep its files")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return _work([_case(word) for word in sys.stdin.read().split()])
    if given.case:
        cases = [_case(given.case)]
    else:
        kinds = given.kinds.split(",")
        each = given.cases / sum(KINDS[kind].share for kind in kinds)
        cases = [(kind, given.first + k) for kind in kinds for k in range(math.ceil(each * KINDS[kind].share))]
        cases += regressions() if given.regressions else []
    return _report(_all_cases(cases, given.workers), given.keep)


def _case(text: str) -> tuple[str, int]:
    kind, _, number = text.partition(":")
    return kind, int(number)


def regressions() -> list[tuple[str, int]]:
    """Return the cases that once had a fault."""
    lines = REGRESSIONS.read_text(encoding="utf-8").splitlines()
    return [_case(line.split()[0]) for line in lines if line.strip() and not line.startswith("#")]


def _work(cases: Sequence[tuple[str, int]]) -> int:
    """Run cases in this process and print each outcome."""
    prepare_process()
    with tempfile.TemporaryDirectory() as folder:
        for kind, number in cases:
            outcome = run_case(kind, number, Path(folder) / kind)
            print(json.dumps([outcome.seconds, outcome.memory, outcome.fault]), flush=True)
    return 0


def _all_cases(cases: Sequence[tuple[str, int]], workers: int) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    size = min(CHUNK, -(-len(cases) // workers))
    chunks = [cases[first : first + size] for first in range(0, len(cases), size)]
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        for done, outcomes in enumerate(pool.map(lambda chunk: list(_chunk(chunk)), chunks), 1):
            for kind, number, outcome in outcomes:
                tallies.setdefault(kind, Tally()).add(number, outcome)
            print(f"{done} of {len(chunks)} parts, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return tallies


def _chunk(cases: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int, Outcome]]:
    """Yield the outcomes of some cases; a worker that dies is a fault of the case it was at, and has a successor."""
    rest = list(cases)
    while rest:
        outcomes, code = _worker(rest)
        for (kind, number), outcome in zip(rest, outcomes, strict=False):
            yield kind, number, outcome
        rest = rest[len(outcomes) :]
        if rest:
            yield *rest[0], Outcome(0.0, 0.0, f"ends the process with code {code}")
            rest = rest[1:]


def _worker(cases: Sequence[tuple[str, int]]) -> tuple[list[Outcome], int]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FUZZ_STDERR": str(Path(folder) / "stderr"), "POLARS_MAX_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "fuzz", "--worker", "1"],
            input=" ".join(f"{kind}:{number}" for kind, number in cases),
            stdout=subprocess.PIPE, text=True, env=environment, check=False,
        )  # fmt: skip
    return [Outcome(*json.loads(line)) for line in done.stdout.splitlines()], done.returncode


def _report(tallies: dict[str, Tally], keep: Path) -> int:
    print(f"{'kind':18} {'cases':>7} {'faults':>7} {'mean':>9} {'slowest':>9} {'memory':>9}")
    for kind, tally in tallies.items():
        print(
            f"{kind:18} {tally.cases:7d} {len(tally.faults):7d} {1e3 * tally.seconds / tally.cases:6.1f} ms "
            f"{tally.slowest:7.2f} s {tally.memory / 1e6:6.0f} MB"
        )
    faults = [(kind, number, fault) for kind, tally in tallies.items() for number, fault in tally.faults]
    for kind, number, fault in faults:
        folder = keep / f"{kind}-{number}"
        write_case(kind, number, folder)
        print(f"{kind}:{number}  {fault}")
    print(f"{sum(tally.cases for tally in tallies.values())} cases, {len(faults)} faults")
    if faults:
        print(f"files in '{keep}'; run one again: python -m fuzz --case KIND:NUMBER")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
