"""Pose design: chosen configurations against exhaustive search, closed forms, random choices and P3's own fifteen."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from calibrated_stand_in import stand_in, turned
from independent import central_difference
from steelyard.calibration.application.calibrated_arm import joint_range, random_configurations
from steelyard.calibration.poses.pose_design import design_poses, marker_rows, pose_value
from steelyard.calibration.poses.pose_search import POSE_CRITERIA, pose_criterion
from steelyard.calibration.records import Unknown
from steelyard.errors import CalibrationError
from steelyard.robot import load_robot

# P3's KR-270: chain, markers and load point as in the catalogue; Table 2, read row by row [deg].
TABLE_2 = np.radians(
    [
        [79.2, -0.01, -5.57, 51, -97.52, -91.67], [63, -0.01, -12.22, -56.49, 41.42, 150.55],
        [63, -0.01, -47.98, -70.04, -61.55, 177.16], [95, -25.24, 33, 129.69, -98.1, 90.57],
        [95, -25.24, -107.01, 109.95, -61.19, 174.21], [105, -25.24, 14.3, 55.21, 41.26, -152.97],
        [56.6, -56.9, 44.54, -55.11, 41.9, 152.06], [56.6, -56.9, 64.73, -129.65, -98.26, -90.55],
        [144.8, -56.9, 104.49, -69.41, 61.67, -6.33], [-41, -99.85, -91.68, 55.12, 41.53, -152.48],
        [-143, -99.85, -32.64, 110.31, -61.47, -6.29], [-143, -99.85, -72.01, 129.65, -98.09, 90.82],
        [133, -140, 147.68, 129.64, -97.9, 90.99], [-60, -140, 7.59, -110.09, -61.36, -174.09],
        [-60, -140, -52, -124.89, -41.62, 27.78],
    ]
).T  # fmt: skip
NODES = np.radians([-0.01, -25.24, -56.9, -99.85, -140])
MARKERS = ((0.10, 0.20, -0.20), (0.10, -0.20, -0.20), (0.25, 0.0, -0.35))
LOAD_POINT = (0.15, 0.0, -0.40)
WEIGHT = np.array([0.0, 0.0, -265 * 9.81])
STEPS = (
    ((0, 0, 0.75), (0, 0, 1)), ((0.35, 0, 0), (0, 1, 0)), ((1.25, 0, 0), (0, 1, 0)),
    ((1.10, 0, 0.055), (1, 0, 0)), ((0, 0, 0), (0, 1, 0)), ((0, 0, 0), (1, 0, 0)),
)  # fmt: skip


def elastostatic(q: np.ndarray, points) -> np.ndarray:
    """Return A = J diag(J^T F) (N, 3 M, 9) of points, for k21 to k25, k3, k4, k5 and k6 (P3.1)."""
    pose = np.tile(np.eye(4), (q.shape[1], 1, 1))
    joints = []
    for (step, axis), angle in zip(STEPS, q, strict=True):
        shift = np.eye(4)
        shift[:3, 3] = step
        pose = pose @ shift @ turned(axis, angle)
        joints.append((pose[:, :3, 3], pose[:, :3, :3] @ np.array(axis)))
    placed = [(pose @ np.array([0.23 + p[0], p[1], p[2], 1.0]))[:, :3] for p in (*points, LOAD_POINT)]
    columns = []
    for origin, axis in joints[1:]:
        torque = (axis * np.cross(placed[-1] - origin, WEIGHT)).sum(axis=1, keepdims=True)
        columns.append(np.hstack([np.cross(axis, place - origin) * torque for place in placed[:-1]]))
    nearest = np.abs(q[1] - NODES[:, None]).argmin(axis=0)
    second = [np.where((nearest == node)[:, None], columns[0], 0.0) for node in range(5)]
    return np.stack([*second, *columns[1:]], axis=2)


def weighted(q: np.ndarray) -> np.ndarray:
    return elastostatic(q, MARKERS) / 50e-6


def kr270_candidates(count: int) -> np.ndarray:
    """Return candidates within the ranges of Table 2, at its five positions of joint 2."""
    rng = np.random.default_rng(8)
    q = rng.uniform(TABLE_2.min(axis=1, keepdims=True), TABLE_2.max(axis=1, keepdims=True), (6, count))
    q[1] = NODES[np.arange(count) % 5]
    return q


def test_pose(q_deg) -> np.ndarray:
    return elastostatic(np.radians(q_deg)[:, None], (LOAD_POINT,))


test_pose.__test__ = False  # pyright: ignore[reportFunctionMemberAccess]
ONE_TEST = test_pose([0.0, -56.9, 90.0, 30.0, 45.0, 60.0])
FIVE_TESTS = np.concatenate([test_pose([0.0, np.degrees(node), 90.0, 30.0, 45.0, 60.0]) for node in NODES])


@pytest.mark.large
@pytest.mark.parametrize("tests", [ONE_TEST, FIVE_TESTS], ids=["one test pose", "five test poses"])
def test_fifteen_designed_configurations_are_better_than_those_of_table_2(tests):
    limits = {"lower": TABLE_2.min(axis=1), "upper": TABLE_2.max(axis=1)}
    held = np.array([True, False, True, True, True, True])  # joint 2 stays at its five positions
    found = design_poses(
        weighted, kr270_candidates(600), 15, criterion="industrial", tests=tests, repeats=6, movable=held, **limits
    )
    published = pose_value(weighted, TABLE_2, criterion="industrial", tests=tests, repeats=6)
    assert found.value <= 0.8 * published
    assert found.value <= found.value_of_candidates < found.value_of_random
    assert (found.q >= limits["lower"][:, None]).all()
    assert (found.q <= limits["upper"][:, None]).all()
    assert set(np.round(found.q[1], 12)) == set(np.round(NODES, 12))
    # The figure, from nothing but the rows: accuracy after compensation is the root of the largest trace.
    rows = weighted(found.q).reshape(-1, 9) * np.sqrt(6)
    covariance = np.linalg.inv(rows.T @ rows)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-6)
    assert found.value == pytest.approx(max(np.trace(a @ covariance @ a.T) for a in tests), rel=1e-6)


def small_rows(q: np.ndarray) -> np.ndarray:
    """Return rows (N, 2, 3) of a smooth toy with three unknowns."""
    a, b = q
    first = np.stack([np.cos(a), np.sin(a), np.sin(a + b)], axis=1)
    return np.stack([first, np.stack([np.sin(b), np.cos(a - b), 0.5 + 0 * a], axis=1)], axis=1)


@pytest.mark.parametrize("criterion", POSE_CRITERIA)
def test_the_choice_is_that_of_an_exhaustive_search(criterion):
    q = np.random.default_rng(1).uniform(-1.5, 1.5, (2, 14))
    tests = np.random.default_rng(2).normal(size=(3, 2, 3)) if criterion == "industrial" else None
    found = design_poses(small_rows, q, 4, criterion=criterion, tests=tests, movable=np.zeros(2, dtype=bool))
    size = np.sqrt((small_rows(q) ** 2).sum(axis=1).mean(axis=0))
    best = sorted(combinations(range(14), 4), key=lambda chosen: _badness(criterion, q[:, chosen], tests, size))
    # Exchanges one by one end in a local optimum, which for such a few candidates is among the best of 1001.
    assert tuple(sorted(found.chosen)) in best[:10]
    np.testing.assert_array_equal(found.q, q[:, found.chosen])


def _badness(criterion, q, tests, size) -> float:
    rows = small_rows(q).reshape(-1, 3) / size
    s = np.linalg.svd(rows, compute_uv=False)
    covariance = np.linalg.inv(rows.T @ rows)
    if criterion == "industrial":
        return max(np.trace(a / size @ covariance @ (a / size).T) for a in tests)
    return {
        "D": np.linalg.det(covariance), "A": np.trace(covariance), "O1": -np.prod(s) ** (1 / 3) / 2,
        "O2": -s[-1] / s[0], "O3": -s[-1], "O4": -(s[-1] ** 2) / s[0],
    }[criterion]  # fmt: skip


@pytest.mark.parametrize("criterion", POSE_CRITERIA)
def test_figures_are_those_of_the_books(criterion):
    q = np.random.default_rng(3).uniform(-1.5, 1.5, (2, 5))
    tests = np.random.default_rng(2).normal(size=(3, 2, 3)) if criterion == "industrial" else None
    size = np.sqrt((small_rows(q) ** 2).sum(axis=1).mean(axis=0))
    s = np.linalg.svd(small_rows(q).reshape(-1, 3) / size, compute_uv=False)
    expected = {
        "D": np.prod(s) ** (-1 / 3), "A": (1 / s**2).sum(), "O1": np.prod(s) ** (1 / 3) / np.sqrt(5),
        "O2": s[-1] / s[0], "O3": s[-1], "O4": s[-1] ** 2 / s[0],
    }  # fmt: skip
    if tests is not None:
        expected["industrial"] = _badness("industrial", q, tests, size)
    assert pose_value(small_rows, q, criterion=criterion, tests=tests) == pytest.approx(expected[criterion])


@pytest.mark.parametrize("criterion", POSE_CRITERIA)
def test_costs_of_added_rows_and_gradients_are_exact(criterion):
    rng = np.random.default_rng(5)
    tests = rng.normal(size=(2, 3, 4)) if criterion == "industrial" else None
    judge = pose_criterion(criterion, 4, tests)
    factor = rng.normal(size=(9, 4))
    matrix, more = factor.T @ factor, rng.normal(size=(6, 2, 4))
    added = [judge.cost(matrix + block.T @ block) for block in more]
    np.testing.assert_allclose(judge.costs_with(matrix, more), added, rtol=1e-10)
    value, gradient = judge.smooth(matrix)
    numeric = central_difference(lambda flat: np.array([judge.smooth(_symmetric(flat))[0]]), matrix.ravel())
    np.testing.assert_allclose(gradient.ravel(), numeric[0], atol=1e-7)
    assert value == pytest.approx(judge.cost(matrix), abs=0.2)


def _symmetric(flat):
    square = flat.reshape(4, 4)
    return (square + square.T) / 2


@pytest.mark.parametrize("criterion", ["D", "A", "O3"])
def test_free_configurations_are_better_than_candidates_and_keep_limits(criterion):
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (2, 12))
    found = design_poses(small_rows, q, 4, criterion=criterion, lower=np.full(2, -1.0), upper=np.full(2, 1.0))
    assert np.abs(found.q).max() <= 1.0
    better = found.value_of_candidates - found.value
    assert (better if criterion != "O3" else -better) > 1e-3 * abs(found.value)


def test_repeats_count_like_as_many_measurements():
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (2, 12))
    once, four = (design_poses(small_rows, q, 4, criterion="A", repeats=n) for n in (1, 4))
    assert four.value == pytest.approx(once.value / 4, rel=1e-3)
    np.testing.assert_allclose(four.covariance, once.covariance / 4, rtol=1e-2)


def test_rows_of_markers_are_the_derivatives_of_what_a_tracker_sees():
    arm = stand_in(load_robot("ur10e"), "ee_link", springs=False)
    more = (
        *(Unknown(name, "base", "m", 0.0, name) for name in ("base_x", "base_rz")),
        *(Unknown(name, "marker", "m", 0.0, name) for name in ("x[a]", "z[b]")),
    )
    size = len(arm.names)
    wider = replace(
        arm, parameters=(*arm.parameters, *more), values=np.array([*arm.values, 0.0, 0.0, 0.1, 0.2]),
        covariance=np.zeros((size + 4, size + 4)),
        frame_pose=lambda values, q, wrench, point: arm.frame_pose(values[:size], q, wrench, point),
        frame_derivatives=lambda values, q, wrench, point: np.concatenate(
            [arm.frame_derivatives(values[:size], q, wrench, point), np.zeros((6, 4, q.shape[1]))], axis=1
        ),
    )  # fmt: skip
    markers, sigma = {"a": (0.1, 0.0, 0.05), "b": (-0.1, 0.1, 0.2)}, (1e-5, 2e-5, 3e-5)
    unknowns = ("offset2", "x3", "base_x", "base_rz", "x[a]", "z[b]")
    q = random_configurations(arm.robot, 3, np.random.default_rng(2))

    def measured_point(values):
        rotation, position = arm.pose(q, None, values[:size])
        places = {"a": (values[-2], 0.0, 0.05), "b": (-0.1, 0.1, values[-1])}
        turn = turned((0, 0, 1), np.array([values[size + 1]]))[0, :3, :3]
        return np.stack([(position + rotation @ np.array(p)) @ turn.T + [values[size], 0, 0] for p in places.values()])

    found = marker_rows(wider, markers, sigma, unknowns)(q)
    for column, name in enumerate(unknowns):
        unit = np.eye(size + 4)[wider.names.index(name)] * 1e-6
        expected = (measured_point(wider.values + unit) - measured_point(wider.values - unit)) / 2e-6 / np.array(sigma)
        np.testing.assert_allclose(found[:, :, column], expected.transpose(1, 0, 2).reshape(3, 6), rtol=1e-5, atol=1e-3)


def test_a_real_arm_gets_a_design_within_its_limits_that_beats_chance():
    arm = stand_in(load_robot("ur10e"), "ee_link", springs=False)
    unknowns = tuple(name for name in arm.names if name.startswith(("offset", "x", "y")))[3:]
    rows = marker_rows(
        arm, {"a": (0.1, 0.0, 0.05), "b": (-0.1, 0.1, 0.2), "c": (0, 0, 0)}, (1e-5, 1e-5, 1e-5), unknowns
    )
    candidates = random_configurations(arm.robot, 60, np.random.default_rng(4))
    lower, upper = joint_range(arm.robot)
    stacked = rows(candidates).reshape(-1, len(unknowns))
    independent = _independent(stacked)
    found = design_poses(
        lambda q: rows(q)[:, :, independent], candidates, 8, criterion="O1", lower=lower, upper=upper,
        movable=np.zeros(6, dtype=bool),
    )  # fmt: skip
    blocks = rows(candidates)[:, :, independent]
    blocks = blocks / np.sqrt((blocks**2).sum(axis=1).mean(axis=0))
    rng, by_chance = np.random.default_rng(9), []
    for _ in range(300):
        picked = blocks[rng.choice(60, 8, replace=False)].reshape(-1, len(independent))
        by_chance.append(np.exp(np.log(np.linalg.svd(picked, compute_uv=False)).mean()) / np.sqrt(8))
    assert found.value > max(by_chance)
    assert found.value_of_random == pytest.approx(np.median(by_chance), rel=0.02)


def _independent(stacked: np.ndarray) -> list[int]:
    chosen: list[int] = []
    for column in range(stacked.shape[1]):
        trial = stacked[:, [*chosen, column]]
        trial = trial / np.maximum(np.linalg.norm(trial, axis=0), 1e-12)
        if np.linalg.svd(trial, compute_uv=False)[-1] > 1e-3:
            chosen.append(column)
    return chosen


def test_what_cannot_be_designed_is_refused():
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (2, 12))
    with pytest.raises(CalibrationError, match="got 'E', allowed are D, A, O1"):
        design_poses(small_rows, q, 4, criterion="E")  # pyright: ignore[reportArgumentType]
    with pytest.raises(CalibrationError, match="test poses are missing"):
        design_poses(small_rows, q, 4, criterion="industrial")
    with pytest.raises(CalibrationError, match="test poses are given"):
        design_poses(small_rows, q, 4, tests=np.ones((1, 2, 3)))
    with pytest.raises(CalibrationError, match=r"allowed are finite numbers \(T, r, 3\)"):
        design_poses(small_rows, q, 4, criterion="industrial", tests=np.ones((1, 2, 4)))
    with pytest.raises(CalibrationError, match="got 13 configurations out of candidates"):
        design_poses(small_rows, q, 13)
    with pytest.raises(CalibrationError, match="1 configurations give 2 equations for 3 unknowns; at least 2"):
        design_poses(small_rows, q, 1)
    with pytest.raises(CalibrationError, match="no candidate shows unknown 'k1'"):
        design_poses(lambda q: small_rows(q) * [0, 1, 1], q, 4, names=("k1", "k2", "k3"))
    with pytest.raises(CalibrationError, match="finite numbers"):
        design_poses(lambda q: small_rows(q) * np.nan, q, 4)
