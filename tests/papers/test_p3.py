"""P3: theory to the reference's digits, and in few runs what many confirm."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from steelyard.calibration.application.calibrated_arm import calibrated_arm
from steelyard.papers.p3 import p3, p3_geometry, p3_theory
from steelyard.papers.p3_poses import FEW, NOISE, SPREAD, compensated_error, p3_poses
from steelyard.papers.p3_runs import (
    CONFIGURATIONS_DEG,
    OWN_ITERATIONS,
    POINT,
    Experiment3,
    Runs3,
    linear_problem,
    monte_carlo,
    one_run,
    own_residuals,
    p3_experiment,
)
from steelyard.progress import silent

COMPLIANCES = ("k21", "k22", "k23", "k24", "k25", "k3", "k4", "k5", "k6")


@cache
def experiment() -> Experiment3:
    return p3_experiment()


@cache
def few_runs() -> Runs3:
    return monte_carlo(experiment(), np.arange(1, 10), 30, silent)


def test_the_experiment_is_that_of_the_paper():
    assert experiment().problem.equations.size == 810
    deflection = np.linalg.norm(experiment().problem.measurements.value, axis=1).max()
    assert deflection == pytest.approx(10.6e-3, abs=0.1e-3)


def test_theory_has_the_reference_s_sigmas_and_k1_cannot_be_seen():
    theory = p3_theory(experiment())
    assert theory.names == COMPLIANCES
    assert set(theory.hidden) == {"k1"}
    assert theory.condition == pytest.approx(5.1, abs=0.05)
    np.testing.assert_allclose(3e6 * theory.ols[-3:], [0.0276, 0.0446, 0.0943], rtol=5e-3)
    np.testing.assert_allclose(3e6 * theory.wls[-3:], [0.0197, 0.0263, 0.0645], rtol=6e-3)


def test_deflections_are_linear_enough_for_one_step():
    """P3's linear form differs from the whole chain by far less than the noise."""
    found = experiment()
    linear = linear_problem(found, 0)
    away = found.problem.start * 1.2
    exact = found.problem.residual(away) + linear.noise
    assert np.abs(exact - linear.residual(away)).max() < 0.1 * found.sigma.min()


@pytest.mark.large
def test_weights_by_group_cover_and_weights_by_own_residuals_do_not():
    runs = few_runs()
    assert runs.coverage("wls").mean() > 0.97
    assert runs.coverage("eta 1").mean() > 0.97
    assert runs.coverage(own_residuals(1)).mean() < 0.4
    assert np.median(runs.spread("ols") / runs.spread("wls")) > 1.1
    assert runs.moved_by_eta().max() < 0.25


def test_intervals_overlap_and_weights_converge_in_few_rounds():
    one = one_run(experiment(), np.arange(1, 10))
    assert one.overlapping == 9
    assert len(one.iterations) >= 3
    assert one.steps[-1] < 0.01 < one.steps[0]


@pytest.mark.large
def test_gains_claimed_by_own_residuals_grow_from_round_to_round():
    runs = few_runs()
    claimed = [np.median(runs.claimed(own_residuals(number))) for number in range(1, OWN_ITERATIONS + 1)]
    assert all(later < 0.9 * earlier for earlier, later in pairwise(claimed))


def test_the_error_at_unseen_poses_is_that_of_the_covariance():
    """Monte Carlo of whole calibrations against the trace of the compliances' covariance, to first order."""
    columns, q = np.arange(1, 10), np.radians(CONFIGURATIONS_DEG.T)
    unseen = np.random.default_rng(0).uniform(q.min(axis=1)[:, None], q.max(axis=1)[:, None], (6, 20))
    B = experiment().there.jacobian[:, columns]
    covariance = NOISE**2 * np.linalg.inv(B.T @ B)
    problem = experiment().problem
    size = len(problem.parameters)
    arm = calibrated_arm(problem, problem.start, np.zeros((size, size)))
    A = arm.point_derivatives(unseen, np.array(POINT), experiment().setup.loads[0])[:, :, columns]
    expected = np.sqrt(np.einsum("nip,pq,niq->n", A, covariance, A).mean())
    assert compensated_error(experiment(), columns, q, unseen, runs=60) == pytest.approx(expected, rel=0.15)


@pytest.mark.large
def test_configurations_designed_for_many_test_poses_are_better_at_unseen_ones_and_for_few_worse():
    poses = p3_poses(experiment(), np.arange(1, 10), silent)
    assert all(value < 1 for value in poses.predicted.values())
    assert poses.unseen[SPREAD] < poses.unseen["Table 2"] < poses.unseen[FEW]


def test_the_geometry_is_found_too():
    geometry = p3_geometry(silent)
    assert geometry.unseen < 0.05 < geometry.before
    assert geometry.coverage > 0.85


@pytest.mark.large
def test_all_claims_hold():
    result = p3()
    assert [claim.name for claim in result.claims if not claim.holds] == []
