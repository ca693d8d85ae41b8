"""Pseudo-inertias in units of a reference body."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.consistency.pseudo_inertia import (
    divergence,
    divergence_hessian,
    random_bodies,
    reference_body,
    smat,
    svec,
)
from steelyard.robot import is_consistent, moved_parameters, parameters_from_centre, pseudo_inertia

BODY = parameters_from_centre(3.0, np.array([0.1, -0.2, 0.05]), np.diag([0.02, 0.03, 0.04]))
TURN, SHIFT = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.array([0.3, 0.1, -0.4])


def test_a_reference_is_the_identity_in_its_own_units():
    reference = reference_body(BODY)
    np.testing.assert_allclose(reference.in_units(BODY), np.eye(4), atol=1e-12)
    np.testing.assert_allclose(reference.to_parameters @ svec(np.eye(4)), BODY, atol=1e-12)
    assert not reference.raised


def test_any_body_comes_back_from_its_units():
    reference = reference_body(BODY)
    other = parameters_from_centre(1.0, np.array([0.0, 0.3, 0.1]), np.diag([0.05, 0.02, 0.06]))
    np.testing.assert_allclose(reference.to_parameters @ svec(reference.in_units(other)), other, atol=1e-12)


def test_the_divergence_does_not_depend_on_the_frame():
    other = parameters_from_centre(2.0, np.array([0.0, 0.1, 0.1]), np.diag([0.05, 0.04, 0.06]))
    here = divergence(reference_body(BODY).in_units(other))
    moved = divergence(
        reference_body(moved_parameters(BODY, TURN, SHIFT)).in_units(moved_parameters(other, TURN, SHIFT))
    )
    assert moved == pytest.approx(here, rel=1e-9)
    assert here > 0


def test_the_hessian_is_that_of_finite_differences():
    matrix = random_bodies(0.3, 1, np.random.default_rng(0))[0]
    rng, step = np.random.default_rng(1), 1e-4
    hessian = divergence_hessian(matrix)
    for _ in range(5):
        along = rng.standard_normal(10)
        values = [divergence(smat(svec(matrix) + k * step * along)) for k in (-1, 0, 1)]
        assert (values[0] - 2 * values[1] + values[2]) / step**2 == pytest.approx(along @ hessian @ along, rel=1e-4)


def test_a_body_that_cannot_exist_is_replaced_by_a_near_one():
    impossible = BODY.copy()
    impossible[5] = 0.5  # ZZ above XX + YY
    reference = reference_body(impossible)
    assert reference.raised
    assert is_consistent(reference.parameters)
    assert np.linalg.eigvalsh(pseudo_inertia(reference.parameters))[0] > 0
    np.testing.assert_allclose(reference.parameters[9], impossible[9], rtol=0.2)


def test_random_bodies_spread_by_their_deviation():
    drawn = random_bodies(0.1, 2000, np.random.default_rng(0))
    assert np.linalg.eigvalsh(drawn).min() > 0
    assert np.std([svec(one) for one in drawn], axis=0) == pytest.approx(0.1, rel=0.12)


def test_bodies_of_any_deviation_have_an_inverse():
    """Torques in wrong units ask for deviations of twenty and more."""
    drawn = random_bodies(30.0, 200, np.random.default_rng(0))
    assert np.isfinite(np.linalg.inv(drawn)).all()
    assert all(np.linalg.eigvalsh(one)[0] > 0 for one in drawn)
