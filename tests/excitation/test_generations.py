"""Generations: which motions are finished, where later ones come from, and that they make the search better."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from steelyard.excitation import DesignSettings, assembled, design_limits, known_of
from steelyard.excitation.assembly import Assembled
from steelyard.excitation.descent import EARLY, LATE, DescentState, descended
from steelyard.excitation.generations import (
    FEASIBLE,
    PARENTS,
    Candidate,
    SearchProgress,
    SearchRun,
    by_merit,
    disturbed,
    generations,
    random_start,
    stages_of,
)
from steelyard.excitation.problem import Problem
from steelyard.model import build_model
from steelyard.robot import load_robot
from steelyard.workers import Shared, open_workers

STARTS = 8


@cache
def ready() -> Assembled:
    robot = load_robot("kuka_ir361")
    model, limits = build_model(robot), design_limits(robot)
    settings = DesignSettings(harmonics=3, duration=8.0, criterion="d")
    return assembled(model, limits, settings, known_of(model, limits)[0])


def problem() -> Problem:
    return ready().problem


def born(starts: int, seed: int, most: float = np.inf) -> tuple[list[Candidate], int]:
    """Return the motions of all generations and the number of stages; the search is stopped after so many stages."""
    updates: list[SearchProgress] = []

    def callback(update: SearchProgress) -> None:
        updates.append(update)
        if update.done >= most:
            raise KeyboardInterrupt

    with open_workers() as workers:
        run = SearchRun(Shared(ready), workers, 10**6, callback)
        return generations(run, starts, seed), updates[-1].done


@cache
def family() -> tuple[list[Candidate], int]:
    return born(STARTS, 0)


@cache
def ended_early() -> tuple[list[Candidate], int]:
    return born(4, 0, most=6)


@pytest.mark.large
def test_one_in_four_is_finished_and_the_stages_are_those_that_were_announced():
    made, stages = family()
    assert [one.number for one in made] == list(range(STARTS + 4 + 4))
    assert sum(one.is_finished for one in made) == 2 + 1 + 1
    assert stages == stages_of(STARTS) == STARTS + 16 * len(EARLY) + 4 * len(LATE)


@pytest.mark.large
def test_the_promising_ones_of_the_first_generation_are_finished():
    """Those with the smallest augmented Lagrangian after the early stages, repeated here from where each began."""
    begun = [one for one in family()[0] if one.origin is None]
    augmented = {one.number: descended(problem(), one.ready, EARLY, lambda: False).augmented for one in begun}
    best = sorted(augmented, key=lambda number: augmented[number])[:2]
    assert {one.number for one in begun if one.is_finished} == set(best)


@pytest.mark.large
def test_later_generations_come_from_the_best():
    made, _ = family()
    first = [one for one in made if one.origin is None]
    parents = {one.number for one in by_merit(first)[:PARENTS]}
    second = [one for one in made if one.origin is not None][:4]
    assert {one.origin for one in second} == parents


@pytest.mark.large
def test_they_find_a_better_motion_more_often_than_not():
    better = 0
    for seed in range(1, 6):
        made, _ = born(STARTS, seed)
        drawn = by_merit([one for one in made if one.origin is None])[0].state.value
        better += by_merit(made)[0].state.value < drawn - 0.01
    assert better >= 3


def test_those_that_break_constraints_come_last():
    one = ended_early()[0][0]
    states = ((0.0, 1.0), (FEASIBLE, 2.0), (0.5, -1e9))
    best, second, broken = (
        Candidate(number, None, one.ready, DescentState(one.state.z, one.state.multipliers, *state), is_finished=True)
        for number, state in enumerate(states)
    )
    assert [each.number for each in by_merit([broken, second, best])] == [0, 1, 2]


def test_an_end_in_the_middle_leaves_candidates_that_can_be_finished():
    made, _ = ended_early()
    assert any(one.is_finished for one in made)
    assert all(np.isfinite(one.state.value) for one in made)


@pytest.mark.parametrize("size", [0.0, 0.1])
def test_a_disturbance_is_as_large_as_it_says(size):
    z = random_start(problem(), np.random.default_rng(1))
    moved = disturbed(problem(), z, size, np.random.default_rng(2))
    relative = np.sqrt(np.mean((moved.z - z) ** 2) / np.mean(z**2))
    assert relative == pytest.approx(size, rel=0.25)
    assert not any(values.any() for values in moved.multipliers.values)
