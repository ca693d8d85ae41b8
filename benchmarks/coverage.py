"""How often 95 % intervals hold the truth: many simulated experiments on several arms, white and correlated noise.

Part ``exact`` has W from the true motion, part ``pipeline`` a closed loop, encoder steps and filters, part ``missing``
an effect that the model lacks (:mod:`benchmarks.coverage_missing`, which has its own sizes: 100 and 20 seeds). Runs
only when named: ``python -m benchmarks coverage`` counts 1000 seeds of the first two, ``python -m benchmarks.coverage
--seeds 200 --part exact --arm "LWR4+ A"`` a part of them, ``--part missing`` the third. Any seed gives the same numbers
alone.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from typing import Any

# Two processes share two cores: linear algebra stays on one thread in each.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.coverage_arms import EXACT_ARMS, NOISES, Arm
from benchmarks.coverage_exact import ExactExperiment, Outcome
from benchmarks.coverage_missing import CASES, MISSING_SEEDS, missing_outcomes, print_missing
from benchmarks.coverage_pipeline import PIPELINE_ARMS, PipelineExperiment, PipelineOutcome
from benchmarks.coverage_tables import print_exact, print_pipeline

SEEDS = 1000
COMPARED = 200
"""Seeds of which the other covariances are counted too."""

PROCESSES = 2
PARTS = ("exact", "pipeline")
MISSING = "missing"


@lru_cache(maxsize=2)
def _exact(name: str, noise: str) -> ExactExperiment:
    return ExactExperiment(_arm(EXACT_ARMS, name), noise)


@lru_cache(maxsize=1)
def _pipeline(name: str) -> PipelineExperiment:
    return PipelineExperiment(_arm(PIPELINE_ARMS, name))


def _arm(arms: Sequence[Arm], name: str) -> Arm:
    return next(arm for arm in arms if arm.name == name)


def exact_outcomes(name: str, seeds: Sequence[int]) -> list[Outcome]:
    """Return the outcomes of some seeds with exact positions; the rows are made once in each process."""
    return [_exact(name, noise).run(seed, seed < COMPARED) for noise in NOISES for seed in seeds]


def pipeline_outcomes(name: str, seeds: Sequence[int]) -> list[PipelineOutcome]:
    """Return the outcomes of some seeds through the whole pipeline."""
    return _pipeline(name).run(seeds)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def counted(
    pool: ProcessPoolExecutor, work: Callable[..., list[Any]], name: str, seeds: int, chunk: int
) -> tuple[list[Any], bool]:
    """Return the outcomes in the order of seeds, and whether an interrupt came before the last one."""
    ranges = [range(first, min(first + chunk, seeds)) for first in range(0, seeds, chunk)]
    futures = {pool.submit(work, name, part): len(part) for part in ranges}
    found, done = [], 0
    try:
        for future in as_completed(futures):
            found += future.result()
            done += futures[future]
            print(f"\r{name}: {done} of {seeds} seeds ", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        for future in futures:
            future.cancel()
    print(file=sys.stderr)
    return sorted(found, key=lambda outcome: outcome.seed), done < seeds


def run(seeds: int = SEEDS, parts: Sequence[str] = PARTS, arm: str | None = None) -> None:
    """Count and print; Ctrl-C prints what is there and stops."""
    todo = []
    if "exact" in parts:
        todo += [("exact positions", exact_outcomes, print_exact, a.name, 10) for a in EXACT_ARMS]
    if "pipeline" in parts:
        todo += [("whole pipeline", pipeline_outcomes, print_pipeline, a.name, 40) for a in PIPELINE_ARMS]
    with ProcessPoolExecutor(PROCESSES, initializer=_leave_interrupts_to_the_parent) as pool:
        for part, work, show, name, chunk in todo:
            if arm not in (None, name):
                continue
            outcomes, interrupted = counted(pool, work, name, seeds, chunk)
            for noise in NOISES:
                mine = [outcome for outcome in outcomes if outcome.noise == noise]
                if len(mine) > 1:
                    show(f"{part}, {name}, {noise} noise, {len(mine)} seeds", mine)
            sys.stdout.flush()
            if interrupted:
                print("interrupted")
                return


def run_missing(seeds: int | None = None, arm: str | None = None, processes: int = PROCESSES) -> None:
    """Count intervals of models that lack an effect, and print them."""
    with ProcessPoolExecutor(processes, initializer=_leave_interrupts_to_the_parent) as pool:
        for case in CASES:
            if arm not in (None, case.robot):
                continue
            outcomes, interrupted = counted(pool, missing_outcomes, case.name, seeds or MISSING_SEEDS[case.robot], 5)
            if outcomes:
                print_missing(case.name, outcomes)
            sys.stdout.flush()
            if interrupted:
                print("interrupted")
                return


def main() -> None:
    """Run the part that is asked for."""
    parser = argparse.ArgumentParser(description="coverage of 95 % intervals")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--part", choices=(*PARTS, MISSING))
    arms = {arm.name for arm in (*EXACT_ARMS, *PIPELINE_ARMS)} | set(MISSING_SEEDS)
    parser.add_argument("--arm", choices=sorted(arms))
    parser.add_argument("--processes", type=int, default=PROCESSES, help="of part 'missing'")
    chosen = parser.parse_args()
    if chosen.part == MISSING:
        run_missing(chosen.seeds, chosen.arm, chosen.processes)
    else:
        run(chosen.seeds or SEEDS, [chosen.part] if chosen.part else PARTS, chosen.arm)


if __name__ == "__main__":
    main()
