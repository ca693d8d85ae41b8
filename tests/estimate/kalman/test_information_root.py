"""The square-root information filter: filterpy's numbers on linear systems, and a covariance that stays positive."""

from __future__ import annotations

import numpy as np
import pytest
from filterpy.kalman import KalmanFilter

from steelyard.estimate.kalman.lapack_engine import InformationRoot
from steelyard.estimate.kalman.state import Shape


class Linear:
    """A linear system x' = F x + F_p p + G w, observed at its last m states."""

    def __init__(self, shape, seed):
        rng = np.random.default_rng(seed)
        states = shape.states
        self.shape, self.rng = shape, rng
        self.F = np.eye(states) + 0.1 * rng.standard_normal((states, states)) - 0.2 * np.eye(states)
        self.F_p = 0.3 * rng.standard_normal((states, shape.free))
        self.G = rng.standard_normal((states, shape.joints))
        self.noise = rng.uniform(0.1, 0.5, shape.noises)
        self.observed = rng.uniform(0.05, 0.2, shape.observed)

    @property
    def derivative(self):
        return np.ascontiguousarray(np.hstack([self.F, self.G, self.F_p]).T)

    @property
    def state_noise(self):
        G = self.G if self.shape.noises == self.shape.joints else np.eye(self.shape.states)
        return (G * self.noise**2) @ G.T


def covariance_of(root):
    states, free = len(root.of_state), len(root.of_parameters)
    R = np.block([[root.of_state, root.cross.T], [np.zeros((free, states)), root.of_parameters]])
    inverse = np.linalg.inv(R)
    return inverse @ inverse.T


@pytest.mark.parametrize(
    "shape", [Shape(2, 3, 3, 2, 2), Shape(2, 3, 3, 4, 4), Shape(3, 12, 12, 3, 3), Shape(2, 1, 1, 4, 2)], ids=str
)
def test_two_hundred_steps_are_those_of_filterpy(shape):
    system = Linear(shape, 3)
    states, free = shape.states, shape.free
    start = np.diag(np.linspace(1.0, 3.0, states + free))
    theirs = KalmanFilter(dim_x=states + free, dim_z=shape.observed)
    theirs.F = np.block([[system.F, system.F_p], [np.zeros((free, states)), np.eye(free)]])
    theirs.H = np.eye(states + free)[states - shape.observed : states]
    theirs.Q = np.zeros((states + free, states + free))
    theirs.Q[:states, :states] = system.state_noise
    theirs.R = np.diag(system.observed**2)
    theirs.P = start.copy()
    root = InformationRoot(shape)
    inverse = np.diag(1 / np.sqrt(np.diag(start)))
    blocks = inverse[:states, :states], np.zeros((free, states)), inverse[states:, states:]
    root.begin(*blocks, system.noise, system.observed)
    x, p, total = np.zeros(states), np.zeros(free), 0.0
    for _ in range(200):
        observed = system.rng.standard_normal(shape.observed)
        theirs.predict()
        theirs.update(observed)
        x = system.F @ x + system.F_p @ p
        dx, dp, squared = root.corrected(system.derivative, observed - x[states - shape.observed :])
        x, p, total = x + dx, p + dp, total + squared
        assert squared == pytest.approx(theirs.mahalanobis**2, rel=1e-8)
    np.testing.assert_allclose(np.concatenate([x, p]), theirs.x.ravel(), atol=1e-8 * np.abs(theirs.x).max())
    np.testing.assert_allclose(covariance_of(root), theirs.P, atol=1e-8 * np.abs(theirs.P).max())


def test_a_step_that_cannot_be_turned_back_is_reported():
    shape = Shape(1, 1, 1, 1, 1)
    root = InformationRoot(shape)
    root.begin(np.eye(2), np.zeros((1, 2)), np.eye(1), np.ones(1), np.ones(1))
    assert np.isnan(root.corrected(np.zeros((4, 2)), np.zeros(1))[2])


def plain_form(F, H, Q, R, P, steps):
    """The textbook's covariance, squared and subtracted."""
    for _ in range(steps):
        P = F @ P @ F.T + Q
        K = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
        P = (np.eye(len(P)) - K @ H) @ P
        if np.linalg.eigvalsh((P + P.T) / 2)[0] <= 0:
            return False
    return True


def test_the_covariance_stays_positive_where_the_plain_form_loses_it():
    # Precise positions, a wide start and two parameters that are nearly one: P's eigenvalues span 25 powers of ten.
    shape = Shape(1, 3, 3, 1, 1)
    dt, deviation, noise = 0.01, 1e-8, 1e-6
    F = np.array([[1.0, -0.5 * dt], [dt, 1.0]])
    F_p = np.array([[dt, dt * (1 + 1e-7), 0.3 * dt], [0.0, 0.0, 0.0]])
    G = np.array([[dt], [0.0]])
    whole = np.block([[F, F_p], [np.zeros((3, 2)), np.eye(3)]])
    Q = np.zeros((5, 5))
    Q[:2, :2] = noise**2 * G @ G.T
    H = np.eye(5)[1:2]
    assert not plain_form(whole, H, Q, np.array([[deviation**2]]), 1e8 * np.eye(5), 10_000)

    root = InformationRoot(shape)
    root.begin(1e-4 * np.eye(2), np.zeros((3, 2)), 1e-4 * np.eye(3), np.array([noise]), np.array([deviation]))
    derivative = np.ascontiguousarray(np.hstack([F, G, F_p]).T)
    for _ in range(10_000):
        root.corrected(derivative, np.zeros(1))
    R = np.block([[root.of_state, root.cross.T], [np.zeros((3, 2)), root.of_parameters]])
    singular = np.linalg.svd(np.linalg.inv(R), compute_uv=False)
    assert np.isfinite(singular).all()
    assert singular[-1] > 0
    # What two parameters have together is known from the data, what they have apart from the start alone.
    apart = np.array([1.0, -1.0, 0.0]) / np.sqrt(2)
    spread = np.linalg.solve(root.of_parameters.T, apart)
    assert np.linalg.norm(spread) == pytest.approx(1e4, rel=0.01)
