"""Simulated calibrations of four arms: identifiable unknowns are recovered, within the intervals that are claimed.

A few seeds with wide bounds; ``python -m benchmarks calibration_coverage`` counts hundreds.
"""

from __future__ import annotations

import numpy as np
import pytest

from from_benchmarks import benchmark_module

ARMS = benchmark_module("calibration_arms")
SEEDS = range(12)


@pytest.fixture(scope="module")
def counted():
    coverage = benchmark_module("calibration_coverage")
    return {case.name: coverage.coverage_of(case, SEEDS) for case in ARMS.CASES}


@pytest.mark.parametrize("case", ARMS.CASES, ids=lambda case: case.name)
def test_identifiable_unknowns_are_recovered(counted, case):
    found = counted[case.name]
    assert found.converged.all()
    scaled = found.error / found.sigma
    assert np.abs(scaled).max() < 5
    # Twelve draws of thirty and more unknowns that are not independent: the bounds are those of a few dozen numbers.
    assert np.sqrt((scaled**2).mean()) == pytest.approx(1.0, abs=0.25)
    assert 0.88 <= found.covered.mean() <= 0.995


@pytest.mark.parametrize("case", ARMS.CASES, ids=lambda case: case.name)
def test_what_is_found_is_worth_finding(counted, case):
    """The fit knows the arm far better than the errors it was given: else intervals that hold would say nothing."""
    found, simulated = counted[case.name], ARMS.SimulatedCalibration(case)
    units = {parameter.name: parameter.unit for parameter in simulated.problem.parameters}
    sizes = np.array([ARMS.SIZES[units[name]] for name in found.fitted])
    assert np.median(found.sigma.mean(axis=0) / sizes) < 0.2


def test_95_percent_intervals_of_all_arms_together_hold_the_truth_95_times_in_a_hundred(counted):
    together = np.concatenate([found.covered.mean(axis=1) for found in counted.values()])
    assert together.mean() == pytest.approx(0.95, abs=4 * together.std() / np.sqrt(len(together)))
    assert 0.92 <= together.mean() <= 0.98


def test_the_arms_are_of_four_kinds_and_two_bend():
    kinds = ["".join(body.joint.kind[0] for body in case.robot().actuated) for case in ARMS.CASES]
    assert [kind.replace("c", "r") for kind in kinds] == ["rrrrrr", "rrrrrrr", "rrpr", "prrrrr"]
    assert [bool(case.elastic.joints) for case in ARMS.CASES] == [True, False, True, False]
