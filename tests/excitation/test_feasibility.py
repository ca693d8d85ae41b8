"""Motions that keep limits on a grid are made to keep them at every instant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.excitation import DesignSettings, assembled, design_limits, known_of
from steelyard.excitation.assembly import Assembled
from steelyard.excitation.descent import made_feasible, resting, shrunk, state_of
from steelyard.excitation.generations import random_start
from steelyard.model import build_model
from steelyard.robot import load_robot


@pytest.fixture(scope="module")
def ready() -> Assembled:
    robot = load_robot("scara_2r")
    model, limits = build_model(robot), design_limits(robot)
    made = assembled(model, limits, DesignSettings(harmonics=4, duration=6.0), known_of(model, limits)[0])
    # So few instants that peaks lie between them.
    return replace(made, problem=replace(made.problem, grid=12))


def on_the_grid(ready: Assembled) -> np.ndarray:
    """Return a motion that is just within every limit at the instants, but not between them."""
    problem = ready.problem
    z = random_start(problem, np.random.default_rng(3))
    rest = resting(problem, z)
    low, high = 0.0, 30.0
    for _ in range(50):
        part = (low + high) / 2
        worst = max(values.max() for values in problem.constraints(rest + part * (z - rest)))
        low, high = (part, high) if worst <= 0 else (low, part)
    return rest + low * (z - rest)


def test_peaks_between_the_instants_are_brought_within_the_limits(ready):
    z = on_the_grid(ready)
    assert not ready.certifier(ready.problem.trajectory(z)).holds
    found = made_feasible(ready.problem, ready.certifier, state_of(ready.problem, z), lambda: False)
    assert found is not None
    assert found.certificate.holds
    assert all(finding.violation == 0 for finding in found.certificate.findings)
    assert found.value < state_of(ready.problem, z).value + 2.0
    again = ready.certifier(ready.problem.trajectory(found.z))
    assert again.findings == found.certificate.findings


def test_after_a_stop_the_motion_is_shrunk_at_once(ready):
    z = on_the_grid(ready)
    found = made_feasible(ready.problem, ready.certifier, state_of(ready.problem, z), lambda: True)
    assert found is not None
    assert found.certificate.holds
    rest = resting(ready.problem, z)
    parts = (found.z - rest)[np.abs(z - rest) > 1e-6] / (z - rest)[np.abs(z - rest) > 1e-6]
    np.testing.assert_allclose(parts, parts[0], rtol=1e-6)
    assert 0.3 < parts[0] < 1.0


def test_what_keeps_every_limit_is_not_shrunk(ready):
    z = on_the_grid(ready)
    small = resting(ready.problem, z) + 0.3 * (z - resting(ready.problem, z))
    found = shrunk(ready.problem, ready.certifier, small)
    assert found is not None
    np.testing.assert_array_equal(found.z, small)


def test_rest_is_taken_in_a_posture_of_the_motion_far_from_the_limits(ready):
    z = random_start(ready.problem, np.random.default_rng(8))
    rest = ready.problem.samples(resting(ready.problem, z))[0]
    np.testing.assert_allclose(rest, np.repeat(rest[:, :1], 12, axis=1), atol=1e-12)
    postures = ready.problem.samples(z)[0]
    assert np.abs(postures - rest[:, :1]).max(axis=0).min() < 1e-9
    limits = ready.problem.limits
    assert ((rest[:, 0] > limits.lower) & (rest[:, 0] < limits.upper)).all()


def test_where_no_part_of_a_motion_can_be_proven_there_is_none(ready):
    limits = replace(ready.certifier.limits, upper=ready.certifier.limits.lower + 1e-9)
    impossible = replace(ready.certifier, limits=limits)
    assert shrunk(ready.problem, impossible, on_the_grid(ready)) is None
