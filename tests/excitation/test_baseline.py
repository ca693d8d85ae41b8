"""Random motions under the same limits."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.excitation import DesignSettings, assembled, design_limits, known_of
from steelyard.excitation.assembly import Assembled
from steelyard.excitation.descent import resting
from steelyard.excitation.generations import random_start
from steelyard.excitation.search import grown, random_baseline
from steelyard.model import build_model
from steelyard.robot import load_robot


@pytest.fixture(scope="module")
def ready() -> Assembled:
    robot = load_robot("scara_2r")
    model, limits = build_model(robot), design_limits(robot)
    return assembled(model, limits, DesignSettings(harmonics=3, duration=8.0), known_of(model, limits)[0])


def test_a_motion_grows_until_it_reaches_a_limit(ready):
    z = random_start(ready.problem, np.random.default_rng(1))
    rest = resting(ready.problem, z)
    large = grown(ready.problem, z)
    worst = max(float(values.max()) for values in ready.problem.constraints(large))
    assert -1e-3 < worst <= 0
    grew = (large - rest) / (z - rest)
    np.testing.assert_allclose(grew, grew[0])
    assert grew[0] > 1


def test_the_baseline_is_told_by_its_seed(ready):
    forecast = ready.forecast()
    first, again, other = (random_baseline(ready.problem, ready.certifier, forecast, seed) for seed in (0, 0, 1))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.raw == again.raw
    np.testing.assert_array_equal(first.sigma, again.sigma)
    assert first.raw != other.raw
    assert np.isfinite(first.log10_det_covariance)
    assert first.names == ready.unknowns.names


def test_where_no_random_motion_keeps_the_limits_there_is_no_baseline(ready, monkeypatch):
    monkeypatch.setattr("steelyard.excitation.search.largest_part", lambda *given: None)
    assert random_baseline(ready.problem, ready.certifier, ready.forecast(), 0) is None
