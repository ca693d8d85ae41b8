"""What is made small: one criterion with its columns scaled, or the largest relative miss of several goals."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import DesignError
from steelyard.excitation.criteria import criterion
from steelyard.excitation.information import Unknowns, unknowns
from steelyard.excitation.objective import ByCriterion, Goal, GoalAttainment, Objective, by_criterion
from steelyard.model import build_model
from steelyard.robot import load_robot


class FixedView:
    """A motion whose information and torques are given."""

    def __init__(self, matrix: np.ndarray, torques: np.ndarray) -> None:
        self.matrix, self.tau = matrix, torques

    def information(self, weighting: str) -> np.ndarray:
        return self.matrix if weighting == "noise" else 2 * self.matrix

    def torques(self) -> np.ndarray:
        return self.tau


def fixed_view(seed: int = 0) -> FixedView:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(30, 4))
    return FixedView(W.T @ W, rng.normal(size=(2, 15)))


def chosen(**given) -> Unknowns:
    return unknowns(build_model(load_robot("scara_2r")), np.ones(2), 100.0, **given)


def goals() -> GoalAttainment:
    return GoalAttainment(
        (
            Goal("condition", 1.5, ByCriterion(criterion("condition"), np.ones(4))),
            Goal("a", 0.1, ByCriterion(criterion("a"), np.ones(4))),
            Goal("mean_torque of joint_2", 1.0, None, 1, 2.0),
        )
    )


def test_gamma_is_the_largest_relative_miss():
    view = fixed_view()
    reached = (
        np.sqrt(np.linalg.cond(view.matrix)), np.trace(np.linalg.inv(view.matrix)), 2.0 - np.abs(view.tau[1]).mean()
    )  # fmt: skip
    misses = [figure / wanted - 1 for figure, wanted in zip(reached, (1.5, 0.1, 1.0), strict=True)]
    assert goals().exact(view) == pytest.approx(max(misses))
    assert [goal.figure(view) for goal in goals().goals] == pytest.approx(list(reached))
    assert goals().smooth(view, 1e4).value == pytest.approx(max(misses), abs=1e-4)


def assert_gradient(objective: Objective, sharpness: float) -> None:
    """Compare with differences along random ways of information and torques."""
    view, rng, step = fixed_view(), np.random.default_rng(1), 1e-5
    outcome = objective.smooth(view, sharpness)
    way = rng.normal(size=(4, 4))
    way, push = way + way.T, rng.normal(size=view.tau.shape)
    values = {
        k: objective.smooth(FixedView(view.matrix + k * step * way, view.tau + k * step * push), sharpness).value
        for k in (-2, -1, 1, 2)
    }
    slope = (8 * (values[1] - values[-1]) - (values[2] - values[-2])) / (12 * step)
    # The plain matrix of this view is twice the weighted one.
    got = sum((2.0 if w == "none" else 1.0) * (gradient * way).sum() for w, gradient in outcome.by_information.items())
    got += 0.0 if outcome.by_torque is None else (outcome.by_torque * push).sum()
    assert got == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("sharpness", [0.5, 2.0])
def test_the_gradient_of_goals_is_that_of_differences(sharpness):
    assert_gradient(goals(), sharpness)


@pytest.mark.parametrize("name", ["d", "mean_sigma", "condition_prior"])
def test_the_gradient_with_scaled_columns_is_that_of_differences(name):
    assert_gradient(ByCriterion(criterion(name), np.array([2.0, 0.0, 0.3, 1.0])), 4.0)


def test_relative_sigmas_are_those_of_columns_times_the_parameters():
    view, sizes = fixed_view(), np.array([2.0, 0.5, 0.3, 1.0])
    sigma = np.sqrt(np.diag(np.linalg.inv(view.matrix))) / sizes
    assert ByCriterion(criterion("worst_sigma"), sizes).exact(view) == pytest.approx(sigma.max())
    assert ByCriterion(criterion("mean_sigma"), sizes).exact(view) == pytest.approx(sigma.mean())
    assert ByCriterion(criterion("worst_sigma"), sizes).smooth(view, 1e4).value == pytest.approx(
        np.log(sigma.max()), abs=1e-3
    )


def test_only_criteria_about_sizes_scale_their_columns():
    values = dict.fromkeys(chosen().model.names, 3.0)
    np.testing.assert_array_equal(by_criterion(criterion("d"), chosen(values=values)).scale, 1.0)
    np.testing.assert_allclose(
        by_criterion(criterion("worst_sigma"), chosen(values=values)).scale, np.abs(chosen(values=values).values)
    )


@pytest.mark.parametrize("name", ["condition_prior", "worst_sigma", "mean_sigma"])
def test_sizes_that_are_not_known_are_required(name):
    with pytest.raises(DesignError, match=f"criterion '{name}' compares sigmas with the parameters' sizes, and none"):
        by_criterion(criterion(name), chosen())


def test_unweighted_rows_do_not_go_with_earlier_recordings():
    with pytest.raises(DesignError, match=r"criterion 'condition' needs unweighted rows.*condition_weighted or d"):
        by_criterion(criterion("condition"), chosen(earlier=np.eye(8)))
