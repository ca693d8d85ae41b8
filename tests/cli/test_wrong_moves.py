"""Faults of a log through the command line: poor or fair as they deserve, exit code 2 for poor, and named."""

from __future__ import annotations

import pytest

from from_benchmarks import benchmark_module

planted = benchmark_module("planted_faults")


@pytest.mark.parametrize("fault", planted.FAULTS)
@pytest.mark.parametrize("arm", ["scara_2r", "ur10e"])
def test_a_planted_fault_is_graded_and_named(arm, fault):
    found = planted.outcome(fault, arm, 0)
    assert found.seen, (found.grade, found.result.get("verdict", found.result))
    assert found.named, found.result["verdict"]["reasons"]
    assert found.code == (2 if planted.FAULTS[fault].best == "poor" or found.grade == "poor" else 0)


@pytest.mark.large
@pytest.mark.parametrize("fault", planted.FAULTS)
@pytest.mark.parametrize("arm", planted.ARMS)
def test_planted_faults_are_seen_in_every_seed_and_named_in_four_of_five(arm, fault):
    outcomes = [planted.outcome(fault, arm, seed) for seed in range(10)]
    assert sum(one.seen for one in outcomes) == 10
    assert sum(one.named for one in outcomes) >= 8
