"""Parameters are moved to those of a possible arm, by as little as can be in their own measure."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from estimate.kalman.filter_cases import friction_model, scara_evidence
from steelyard.estimate import kalman
from steelyard.estimate.kalman import KalmanSettings
from steelyard.estimate.kalman.dynamics import TARGET, arm_graph, possible_move
from steelyard.estimate.kalman.start import RecordedPostures, plan_of

NAMES = ("ZZ1", "ZZ2", "MX2", "MY2", "Fvm1", "Fvm2", "Fcm1", "Fcm2")
LEAST = np.array([0.3, 0.02])


def graph_of_scara():
    return arm_graph(friction_model("scara_2r")[0], NAMES, range(8), loaded=False, held=True)


def pivots_of(graph, q, values):
    return np.asarray(graph.inertia(q, values)[1]).ravel()


@pytest.mark.parametrize("wrong", [{"ZZ1": -1.0}, {"ZZ2": -0.01}, {"ZZ1": -1.0, "ZZ2": -0.2}, {"MX2": 1.5}])
def test_every_pivot_is_raised_where_it_was_too_small(wrong):
    graph, q = graph_of_scara(), np.array([0.3, -0.8])
    values = np.array([3.42, 0.064, 0.262, 0.0, 0.07, 0.015, 0.58, 0.156])
    for name, value in wrong.items():
        values[NAMES.index(name)] = value
    assert not (pivots_of(graph, q, values) >= LEAST).all()
    move = possible_move(graph, list(range(8)), q, values, LEAST, np.diag(np.full(8, 0.1)))
    assert move is not None
    assert (pivots_of(graph, q, values + move) >= LEAST).all()
    assert not move[4:].any()  # friction has no part in it


def test_the_move_is_the_smallest_that_reaches_the_target():
    graph, q = graph_of_scara(), np.array([0.3, -0.8])
    values = np.array([3.42, -0.01, 0.262, 0.0, 0.07, 0.015, 0.58, 0.156])
    root = np.tril(np.random.default_rng(0).uniform(0.01, 0.1, (8, 8)))
    move = possible_move(graph, list(range(8)), q, values, np.array([0.0, 0.02]), root)
    assert move is not None
    size = np.linalg.norm(np.linalg.solve(root, move))
    found = minimize(
        lambda s: s @ s, np.zeros(8), method="SLSQP", options={"ftol": 1e-14},
        constraints={"type": "ineq", "fun": lambda s: pivots_of(graph, q, values + root @ s)[1] - TARGET * 0.02},
    )  # fmt: skip
    # The pivot bends a little with the parameters, the inequality that is projected on does not.
    assert size == pytest.approx(np.linalg.norm(found.x), rel=0.1)


def test_a_move_that_no_free_parameter_can_make_is_none():
    graph, q = graph_of_scara(), np.array([0.3, -0.8])
    friction = arm_graph(friction_model("scara_2r")[0], NAMES, [4, 5], loaded=False, held=True)
    assert possible_move(graph, list(range(8)), q, np.zeros(8), LEAST, np.diag(np.zeros(8))) is None
    assert possible_move(friction, [4, 5], q, np.zeros(8), LEAST, np.eye(2)) is None


def test_a_start_is_moved_until_it_is_possible_at_every_posture():
    evidence = scara_evidence(0)
    postures = RecordedPostures(evidence, tuple(range(8)), held=True)
    values = evidence.plain.values.copy()
    values[evidence.columns.index("ZZ2")] = -0.05
    assert postures.pivots(values).min() < 0
    least = np.array([0.5, 0.01])
    moved = postures.moved(values, least, np.diag(0.1 * np.abs(values) + 0.01))
    assert moved is not None
    assert (postures.pivots(moved) >= least[:, None]).all()


def test_postures_are_spread_over_the_recording():
    pivots = RecordedPostures(scara_evidence(0), tuple(range(8)), held=True).pivots(scara_evidence(0).plain.values)
    assert 200 <= pivots.shape[1] <= 400
    assert pivots.min() > 0


def test_a_filter_that_passes_through_an_impossible_arm_is_led_around_it():
    evidence = scara_evidence(0)
    prior = {"ZZ1": (12.0, 30.0), "ZZ2": (0.9, 3.0), "MX2": (0.0, 3.0)}
    settings = KalmanSettings(first=0.02)
    plan = plan_of(evidence, settings, prior)
    assert plan.least.all()
    result = kalman.kalman_filter(evidence, settings, prior)
    assert any("to keep the inertia matrix positive definite" in note for note in result.notes)
    values = dict(zip(result.estimate.columns, result.estimate.values, strict=True))
    assert values["ZZ2"] == pytest.approx(0.064, rel=0.3)
