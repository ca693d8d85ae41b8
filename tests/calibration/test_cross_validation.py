"""Cross-validation: the same as fitting every fold in full, and honest about what cannot be predicted."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.small_problems import laid_out, linear_problem, noise_like, planar_problem
from steelyard.calibration.fit.accuracy import accuracy_of, cross_validated, point_distances
from steelyard.calibration.fit.fit import fitted
from steelyard.errors import CalibrationError

COLUMNS = np.array([0, 1, 2, 3, 4, 7])
TRUTH = np.array([0.3, -0.2, 0.4, 0.13, 0.02, 0.0, 0.0, 0.01, 0.0])


@pytest.mark.parametrize(("sigma", "folds"), [(1e-4, None), (0.05, None), (1e-4, 4)])
def test_every_fold_is_that_of_a_fit_without_it(sigma, folds):
    problem = planar_problem(TRUTH, sigma=sigma)
    found = cross_validated(problem, fitted(problem, COLUMNS), folds)
    assert len(np.unique(found.folds)) == (folds or 20)
    for fold in np.unique(found.folds):
        out = found.folds == fold
        alone = fitted(problem.taken(~out), COLUMNS)
        np.testing.assert_allclose(found.residual[out], problem.residual(alone.values)[out], atol=2e-3 * sigma)


def test_markers_and_repeats_of_a_configuration_are_held_out_together():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 12, 3, 2, 0), 12, 3, 2)
    found = cross_validated(problem, fitted(problem, np.arange(4)), 4)
    for pose in range(12):
        assert len(np.unique(found.folds[problem.equations.pose == pose])) == 1


def test_many_configurations_are_divided_into_ten():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 60, 1, 1, 0), 60, 1, 1)
    assert len(np.unique(cross_validated(problem, fitted(problem, np.arange(4))).folds)) == 10


def test_held_out_errors_are_larger_by_what_the_fit_took():
    inside, outside = [], []
    for seed in range(40):
        problem, _ = linear_problem(noise_like("equal", 1e-4, 6, 2, 1, seed), 6, 2, 1)
        fit = fitted(problem, np.arange(4))
        inside.append(accuracy_of(problem.equations, fit.residual).rms_mm)
        held = cross_validated(problem, fit).accuracy
        assert held is not None
        outside.append(held.rms_mm)
    # Independent noise of 0.1 mm in three coordinates is 0.173 mm.
    assert np.mean(inside) < 0.173 < np.mean(outside)


def test_a_marker_seen_in_one_configuration_only_cannot_be_predicted():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 8, 2, 1, 0), 8, 2, 1)
    matrix = np.zeros((48, 5))
    matrix[:, :4] = problem.matrix
    matrix[3:6, 4] = 1.0
    extended = type(problem)([*problem.parameters, problem.parameters[0]], problem.equations, np.zeros(5), matrix)
    found = cross_validated(extended, fitted(extended, np.arange(5)))
    assert found.unpredicted == ("pose_1",)
    assert np.isnan(found.residual[problem.equations.pose == 0]).all()
    assert found.accuracy is not None
    assert found.accuracy.points == 14


def test_folds_that_do_not_fit_are_refused():
    problem = planar_problem(TRUTH, sigma=1e-4)
    fit = fitted(problem, COLUMNS)
    for folds in (1, 21):
        with pytest.raises(CalibrationError, match=f"got {folds} folds of 20 configurations"):
            cross_validated(problem, fit, folds)


def test_accuracy_counts_points_not_coordinates():
    equations = laid_out(np.zeros(12), 2, 2, 1, (0, 1, 2))
    residual = np.array([3e-3, 4e-3, 0, 0, 0, 1e-3, 0, 2e-3, 0, 0, 0, 0])
    found = accuracy_of(equations, residual)
    assert found.mean_mm == pytest.approx(2.0)
    assert found.rms_mm == pytest.approx(np.sqrt(30 / 4))
    assert found.max_mm == pytest.approx(5.0)
    assert found.p95_mm == pytest.approx(np.quantile([5, 1, 2, 0], 0.95))
    assert found.points == 4


def test_rotations_are_no_positions():
    equations = laid_out(np.zeros(8), 4, 1, 1, (2, 3))
    rows, distances = point_distances(equations, np.tile([1e-3, 5.0], 4))
    np.testing.assert_array_equal(rows, [0, 1, 2, 3])
    np.testing.assert_allclose(distances, 1e-3)
    with pytest.raises(CalibrationError, match="none of the equations measures a position"):
        accuracy_of(laid_out(np.zeros(4), 4, 1, 1, (3,)), np.zeros(4))
