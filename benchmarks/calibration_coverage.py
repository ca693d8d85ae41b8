"""How often 95 % intervals of calibrated unknowns hold the truth: simulated calibrations of four arms.

Geometry, base and markers of all, and springs of two of them; noise is unequal by direction. Runs only when named:
``python -m benchmarks calibration_coverage``, or ``python -m benchmarks.calibration_coverage --seeds 40``. Any seed
gives the same numbers alone.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.calibration_arms import CASES, CalibratedCase, SimulatedCalibration
from steelyard.calibration import CalibrationSettings
from steelyard.calibration.fit.covariances import covariance_of, intervals
from steelyard.calibration.fit.stages import weighted_fit

SEEDS = 500
WANTED = (0.93, 0.97)
LEVEL = 0.95
SETTINGS = CalibrationSettings()


@dataclass(frozen=True, eq=False)
class Coverage:
    """Outcomes of many calibrations of one arm.

    Attributes:
        fitted: Names of the fitted unknowns (k).
        error: Found minus true values (seeds, k).
        sigma: Their claimed standard deviations (seeds, k).
        covered: Whether the 95 % intervals hold the truth (seeds, k).
        converged: Whether each fit ended by itself (seeds,).
        seconds: CPU time of each (seeds,).
    """

    fitted: tuple[str, ...]
    error: np.ndarray
    sigma: np.ndarray
    covered: np.ndarray
    converged: np.ndarray
    seconds: np.ndarray


def coverage_of(case: CalibratedCase, seeds: Sequence[int]) -> Coverage:
    """Calibrate an arm for each seed, weights estimated as ``calibrate`` does by itself, and count."""
    simulated = SimulatedCalibration(case)
    error, sigma, covered, converged, seconds = [], [], [], [], []
    for seed in seeds:
        problem, truth = simulated.drawn(seed)
        started = time.process_time()
        found = weighted_fit(problem, simulated.columns, SETTINGS)
        covariance = covariance_of(found.fit, problem.equations, found.sigmas, SETTINGS.covariance)
        seconds.append(time.process_time() - started)
        values, true = found.fit.values[simulated.columns], truth[simulated.columns]
        low, high = intervals(values, covariance, LEVEL).T
        error.append(values - true)
        sigma.append(covariance.sigma)
        covered.append((low <= true) & (true <= high))
        converged.append(found.fit.converged)
    return Coverage(simulated.fitted, *(np.array(part) for part in (error, sigma, covered, converged, seconds)))


def print_coverage(case: CalibratedCase, found: Coverage) -> None:
    """Print coverage by arm: mean over unknowns, the smallest and whose it is; and claimed over true spread."""
    by_unknown = found.covered.mean(axis=0)
    ratio = np.sqrt((found.sigma**2).mean(axis=0) / (found.error**2).mean(axis=0))
    mean, worst = by_unknown.mean(), int(np.argmin(by_unknown))
    holds = WANTED[0] <= mean <= WANTED[1] and found.converged.all()
    print(f"  {case.name}, {len(found.fitted)} unknowns, {len(found.error)} runs: {'holds' if holds else 'MISSES'}")
    print(
        f"    mean {100 * mean:.2f} % (wanted: 93 to 97), smallest {100 * by_unknown[worst]:.1f} % "
        f"({found.fitted[worst]}); sigma over true spread {ratio.mean():.3f} ({ratio.min():.3f} to {ratio.max():.3f})"
    )
    print(f"    {1e3 * np.median(found.seconds):.0f} ms a fit; {np.count_nonzero(~found.converged)} did not converge")


def run(seeds: int = SEEDS) -> None:
    """Count and print all arms."""
    for case in CASES:
        print_coverage(case, coverage_of(case, range(seeds)))


def main() -> None:
    """Run with the number of seeds that is asked for."""
    parser = argparse.ArgumentParser(description="coverage of 95 % intervals of calibrated unknowns")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    run(parser.parse_args().seeds)


if __name__ == "__main__":
    main()
