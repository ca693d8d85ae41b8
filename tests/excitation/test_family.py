"""Families of motions: their basis is that of the motions they make, at every derivative."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import DesignError
from steelyard.excitation.family import FourierFamily, MotionFamily, ViaPointFamily
from steelyard.motion import quintic_profile, trapezoidal_profile

JOINTS = ("one", "two")
FAMILIES = {
    "fourier": FourierFamily(JOINTS, 4, 7.0),
    "fourier, repeated": FourierFamily(JOINTS, 2, 5.0, 3),
    "quintic": ViaPointFamily(JOINTS, 5, 1.3, quintic_profile(), "quintic"),
    "trapezoidal": ViaPointFamily(JOINTS, 3, 2.1, trapezoidal_profile(), "trapezoidal"),
}


@pytest.fixture(params=FAMILIES)
def family(request) -> MotionFamily:
    return FAMILIES[request.param]


def coefficients_of(family: MotionFamily) -> np.ndarray:
    return family.random(np.array([0.4, -1.0]), np.array([0.7, 1.5]), np.random.default_rng(3))


@pytest.mark.parametrize("time_scale", [1.0, 1.7])
def test_the_basis_gives_the_motion_and_its_derivatives(family, time_scale):
    coefficients = coefficients_of(family)
    trajectory = family.trajectory(coefficients, time_scale)
    assert trajectory.duration == pytest.approx(time_scale * family.duration)
    time = np.random.default_rng(4).uniform(0, family.grid_interval, 300)
    there = trajectory.at(time_scale * time)
    basis = family.basis(time)
    assert basis.shape == (4, family.size, 300)
    for order, wanted in enumerate((there.q, there.qd, there.qdd, there.qddd)):
        got = coefficients @ basis[order] / time_scale**order
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


def test_each_row_of_the_basis_is_the_derivative_of_the_one_before(family):
    """By central differences of positions, away from where the moves meet."""
    step = 1e-4
    time = family.grid(57)
    moved = {k: family.basis(time + k * step) for k in (-2, -1, 1, 2)}
    now = family.basis(time)
    for order in range(3):
        slope = (8 * (moved[1] - moved[-1]) - (moved[2] - moved[-2]))[order] / (12 * step)
        smooth = np.abs(moved[2] - moved[-2])[3].max(axis=0) < 1.0
        assert smooth.mean() > 0.8
        np.testing.assert_allclose(slope[:, smooth], now[order + 1][:, smooth], rtol=0, atol=1e-7 * np.abs(now).max())


def test_every_motion_begins_and_ends_at_rest(family):
    trajectory = family.trajectory(coefficients_of(family))
    ends = trajectory.at([0.0, trajectory.duration])
    np.testing.assert_allclose(ends.qd, 0.0, atol=1e-12)
    np.testing.assert_allclose(ends.qdd, 0.0, atol=1e-11)
    assert np.ptp(trajectory.at(np.linspace(0, trajectory.duration, 50)).q, axis=1).min() > 0.1


def test_standing_still_is_one_of_the_motions(family):
    posture = np.array([0.3, -2.0])
    trajectory = family.trajectory(family.still(posture))
    there = trajectory.at(np.linspace(0, trajectory.duration, 40))
    np.testing.assert_allclose(there.q, np.repeat(posture[:, None], 40, axis=1), atol=1e-15)
    np.testing.assert_allclose(there.qd, 0.0, atol=1e-15)


def test_random_motions_stay_about_their_span_and_differ(family):
    rng = np.random.default_rng(5)
    centre, span = np.array([0.5, -0.5]), np.array([1.0, 0.1])
    drawn = [family.random(centre, span, rng) for _ in range(30)]
    places = np.stack([each @ family.basis(family.grid(80))[0] for each in drawn])
    away = np.abs(places - centre[:, None]).max(axis=2)
    assert (away.mean(axis=0) < 2 * span).all()
    assert (away.mean(axis=0) > 0.2 * span).all()
    assert np.std([each[0, -1] for each in drawn]) > 0


def test_the_grid_covers_one_period_with_the_middles_of_its_parts():
    np.testing.assert_allclose(FAMILIES["fourier, repeated"].grid(4), [0.625, 1.875, 3.125, 4.375])
    np.testing.assert_allclose(FAMILIES["trapezoidal"].grid(2), [6.3 / 4, 3 * 6.3 / 4])


@pytest.mark.parametrize("harmonics", [-1, 0, 1])
def test_a_series_that_could_not_start_at_rest_is_refused(harmonics):
    with pytest.raises(DesignError, match=f"{harmonics} harmonics; at least 2 are needed"):
        FourierFamily(JOINTS, harmonics, 5.0)


def test_a_single_move_is_refused():
    with pytest.raises(DesignError, match="1 moves; at least 2 are needed to go somewhere and back"):
        ViaPointFamily(JOINTS, 1, 1.0, quintic_profile(), "quintic")
