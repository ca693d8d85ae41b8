"""A thousand runs of P1's experiment before the court: simulated, filtered and estimated by weighted least squares."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.timing import round_robin
from steelyard.estimate import weighted, with_correlated_noise
from steelyard.identification import fit_arm
from steelyard.observe import reduce_rows, resolve_preparation, row_source
from steelyard.papers.p1_motion import CUTOFF, DECIMATION, EXPERIMENT, ORDER, TRIM, scara_moves
from steelyard.simulation import recording_of, simulate
from steelyard.study import SimulatedExperiments, StudyConfiguration, StudySettings, montecarlo, study_configuration
from steelyard.study.experiments import Job

SEEDS, PROCESSES, TOGETHER = 1000, 2, 50


def p1_arrangement() -> StudyConfiguration:
    """Return P1's arm, motion, experiment and filters."""
    simulated = {key: value for key, value in asdict(EXPERIMENT).items() if value is not None}
    fitted = {"cutoff": CUTOFF, "order": ORDER, "decimation": DECIMATION, "trim": TRIM, "standstill": 0.0}
    return study_configuration("scara_2r", scara_moves(), simulated, fitted)


def run() -> None:
    """Print the wall time of the study and what a run costs."""
    given = p1_arrangement()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        court = montecarlo(given, StudySettings(("wls",), SEEDS), Path(folder), PROCESSES)
        wall = time.perf_counter() - start
    print(f"{SEEDS} runs of the SCARA experiment (30 s, 10 kHz plant, 20 Hz filter), wls, {PROCESSES} processes")
    print(f"  {wall:.1f} s wall (wanted: 60 s); {1000 * court.verdicts[0].seconds:.1f} ms CPU an estimation")
    _print_stages(given)


def _print_stages(given: StudyConfiguration) -> None:
    """Print CPU milliseconds of every stage of a run, median of rounds in turn."""
    shop = SimulatedExperiments(given)
    seeds = tuple(range(TOGETHER))
    done = simulate(shop.robot, shop.motion, shop.experiment, seeds)
    recording = recording_of(done)
    resolved = resolve_preparation(shop.settings.preparation, [recording])
    source = row_source(recording, shop.equations, resolved, "recording")
    observations = reduce_rows([source])
    plain = weighted(observations, shop.equations.names)
    stages = {
        "recording": lambda: recording_of(done),
        "settling": lambda: resolve_preparation(shop.settings.preparation, [recording]),
        "rows and factors": lambda: reduce_rows([row_source(recording, shop.equations, resolved, "recording")]),
        "weighted least squares": lambda: weighted(observations, shop.equations.names),
        "noise model": lambda: with_correlated_noise([source], plain),
        "all of fit_arm": lambda: fit_arm(shop.robot, [recording], shop.settings, equations=shop.equations),
    }
    together = {
        f"simulation, {TOGETHER} seeds together": lambda: simulate(shop.robot, shop.motion, shop.experiment, seeds),
        f"a job of {TOGETHER} seeds, of these": lambda: shop.run(Job(1.0, seeds, StudySettings(("wls",), 2).cases)),
    }
    for stage, timing in round_robin(stages, 21).items():
        print(f"  {stage:32} {1000 * timing.median:7.2f} ms a run")
    for stage, timing in round_robin(together, 3).items():
        print(f"  {stage:32} {1000 * timing.median / TOGETHER:7.2f} ms a run")
