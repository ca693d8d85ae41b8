"""Measurements of an arm as a calibration problem: equations, exact derivatives, and the arm behind them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from arms import arm
from calibration.chain_in_numpy import NumpyChain, frame_matrix
from steelyard.calibration.chain.problem import MeasuredProblem, measured_problem
from steelyard.calibration.measurement.measurements import Measurements
from steelyard.calibration.measurement.setup import (
    CalibrationSetup,
    ElasticSetup,
    FrameSetup,
    Load,
    MarkerSetup,
)
from steelyard.errors import CalibrationError
from steelyard.robot import Robot, load_robot

KNOWN = FrameSetup(xyz=(0.0, 0.0, 0.0), rpy=(0.0, 0.0, 0.0), known=True)
WEIGHT = Load("weight", (0.0, 0.0, -265 * 9.81), (0.0, 0.0, 0.0), (0.15, 0.0, -0.40))
PUSH = Load("push", (300.0, -200.0, 100.0), (20.0, 10.0, -30.0), (0.0, 0.1, 0.0))
POINTS = {"a": (0.10, 0.20, -0.20), "b": (0.10, -0.20, -0.20), "c": (0.25, 0.0, -0.35)}


def rows(robot: Robot, table: list[tuple], poses: int, seed: int = 0) -> Measurements:
    """Return measurements of rows (kind, pose, marker, other, load) at random postures, nothing measured yet."""
    kind, pose, marker, other, load = zip(*table, strict=True)
    q = np.random.default_rng(seed).uniform(-1.8, 1.8, (len(robot.actuated), poses))
    count = len(table)
    return Measurements(
        joints=tuple(body.joint.name for body in robot.actuated), q=q[:, list(pose)], kind=kind, pose=np.array(pose),
        marker=np.array(marker), other=np.array(other), load=np.array(load), value=np.ones((count, 3)),
        rotation=np.repeat(np.eye(3)[None], count, 0), repeat=np.zeros(count, dtype=int),
        poses=tuple(f"P{k}" for k in range(poses)), markers=tuple(POINTS),
    )  # fmt: skip


def positions_of(poses: int, load: int = -1) -> list[tuple]:
    return [("position", pose, marker, -1, load) for pose in range(poses) for marker in range(3)]


def measured_by(problem: MeasuredProblem, values: np.ndarray, base: np.ndarray, tool: np.ndarray) -> Measurements:
    """Return the problem's measurements as an arm with these values would give them, computed in plain numpy."""
    robot, setup, given = problem.robot, problem.setup, problem.measurements
    value = dict(zip(problem.chain.names, values.tolist(), strict=True))
    numbers, turns = np.full((given.rows, 3), np.nan), np.full((given.rows, 3, 3), np.nan)

    def position_of(row: int, load: int, marker: int) -> np.ndarray:
        pull = setup.loads[load] if load >= 0 else Load("", (0, 0, 0), (0, 0, 0), (0, 0, 0))
        wrench = np.array([*pull.force, *pull.moment])
        link = NumpyChain(robot, setup, given.q[:, row], wrench, np.array(pull.point)).link_pose(value)
        link = frame_matrix("base", base, value) @ link
        if marker < 0:
            return np.real(link @ frame_matrix("tool", tool, value))
        name = given.markers[marker]
        position = [value.get(f"{c}[{name}]", POINTS[name][k]) for k, c in enumerate("xyz")]
        return np.real(link @ np.array([*position, 1.0]))[:3]

    for row, kind in enumerate(given.kind):
        found = position_of(row, given.load[row], -1 if kind == "pose" else given.marker[row])
        if kind == "pose":
            numbers[row], turns[row] = found[:3, 3], found[:3, :3]
        elif kind == "distance":
            numbers[row, 0] = np.linalg.norm(found - position_of(row, given.load[row], given.other[row]))
        else:
            numbers[row] = found - (position_of(row, -1, given.marker[row]) if kind == "difference" else 0)
    return replace(given, value=numbers, rotation=turns)


def kr270_setup(**more) -> CalibrationSetup:
    markers = tuple(MarkerSetup(name, at) for name, at in POINTS.items())
    start = FrameSetup(xyz=(0.0, 0.0, 0.0), rpy=(0.0, 0.0, 0.0))
    setup = CalibrationSetup(link="tool", base=start, tool=start, markers=markers, loads=(WEIGHT, PUSH))
    return replace(setup, **more)


def every_kind() -> tuple[CalibrationSetup, Measurements]:
    table = [
        *positions_of(3, 1),
        *(("difference", pose, marker, -1, 0) for pose in range(4) for marker in (0, 2)),
        *(("distance", pose, 0, 1, -1) for pose in range(2)),
        ("distance", 0, 0, 2, 0),
        *(("pose", pose, -1, -1, load) for pose in range(3) for load in (-1, 0)),
        *positions_of(2),
    ]
    elastic = ElasticSetup(joints=("joint_2", "joint_3", "joint_5"), lateral=("joint_4",))
    return kr270_setup(elastic=elastic, geometry=("joint_2", "joint_4")), rows(load_robot("kuka_kr270"), table, 4)


def random_values(problem: MeasuredProblem, rng: np.random.Generator) -> np.ndarray:
    size = {"compliance": 1e-6, "marker": 0.2, "weight": 1.0}
    return np.array([rng.uniform(0.2, 1.0) * size.get(each.group, 0.02) for each in problem.parameters])


@pytest.fixture(scope="module")
def mixed() -> tuple[MeasuredProblem, np.ndarray]:
    """Every kind of measurement of an elastic arm, exact for the values beside it."""
    setup, table = every_kind()
    problem = measured_problem(load_robot("kuka_kr270"), setup, table)
    truth = random_values(problem, np.random.default_rng(1))
    base, tool = problem.registration.base, problem.registration.tool
    return problem.with_measurements(measured_by(problem, truth, base, tool)), truth


def test_an_exact_arm_leaves_no_residual_whatever_is_measured(mixed):
    problem, truth = mixed
    assert problem.equations.size == 15 * 3 + 8 * 3 + 3 + 6 * 6
    np.testing.assert_allclose(problem.residual(truth), 0, atol=1e-12)
    assert np.abs(problem.residual(problem.start)).max() > 0.01


def test_derivatives_are_those_of_the_residual_far_from_the_solution(mixed):
    """Central differences of fourth order; orientations are a third of a turn apart."""
    problem, truth = mixed
    rng = np.random.default_rng(2)
    values = truth + rng.normal(size=len(truth)) * np.where(np.abs(truth) < 1e-4, 1e-7, 0.02)
    values[[parameter.name == "tool_rx" for parameter in problem.parameters]] += 2.0
    found = problem.at(values)
    np.testing.assert_allclose(found.residual, problem.residual(values), atol=1e-13)
    for k, parameter in enumerate(problem.parameters):
        step = np.zeros(len(values))
        step[k] = 1e-8 if parameter.group == "compliance" else 1e-3
        far, near = ([problem.residual(values + sign * n * step) for sign in (1, -1)] for n in (2, 1))
        slope = (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * step[k])
        np.testing.assert_allclose(found.jacobian[:, k], -slope, atol=2e-8 * max(1.0, np.abs(slope).max()))


def test_equations_say_where_they_come_from(mixed):
    problem, _ = mixed
    equations, given = problem.equations, problem.measurements
    assert equations.markers == (*POINTS, "tool")
    assert equations.poses == given.poses
    np.testing.assert_array_equal(equations.pose, given.pose[equations.row])
    for k in range(equations.size):
        row, coordinate = equations.row[k], equations.coordinate[k]
        kind = given.kind[row]
        if kind == "distance":
            assert coordinate == 6
            assert equations.measured[k] == given.value[row, 0]
        elif coordinate < 3:
            assert equations.measured[k] == given.value[row, coordinate]
        else:
            assert kind == "pose"
            vector = Rotation.from_matrix(given.rotation[row]).as_rotvec()
            assert equations.measured[k] == pytest.approx(vector[coordinate - 3], abs=1e-14)
        assert equations.marker[k] == (3 if kind == "pose" else given.marker[row])


def test_missing_coordinates_give_no_equations(mixed):
    problem, truth = mixed
    value, rotation = problem.measurements.value.copy(), problem.measurements.rotation.copy()
    value[0, 1] = value[4] = np.nan
    posed = np.flatnonzero(problem.measurements.of_kind("pose"))
    rotation[posed[:2]] = np.nan
    value[posed[2], 0] = np.nan
    fewer = problem.with_measurements(replace(problem.measurements, value=value, rotation=rotation))
    assert fewer.equations.size == problem.equations.size - 4 - 6 - 1
    np.testing.assert_allclose(fewer.at(truth).residual, 0, atol=1e-12)
    pairs = list(zip(problem.equations.row.tolist(), problem.equations.coordinate.tolist(), strict=True))
    left = [
        pairs.index(pair)
        for pair in zip(fewer.equations.row.tolist(), fewer.equations.coordinate.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(fewer.at(truth).jacobian, problem.at(truth).jacobian[left])


@pytest.mark.parametrize("chosen", ["mask", "numbers", "one kind", "none"])
def test_some_equations_are_those_of_the_whole(mixed, chosen):
    problem, truth = mixed
    rng = np.random.default_rng(3)
    size = problem.equations.size
    pick = {
        "mask": rng.random(size) < 0.4,
        "numbers": rng.permutation(size)[:30],
        "one kind": problem.equations.coordinate >= 3,
        "none": np.zeros(size, dtype=bool),
    }[chosen]
    values = truth + 1e-3 * (np.abs(truth) > 1e-4)
    part, whole = problem.taken(pick), problem.at(values)
    np.testing.assert_array_equal(part.at(values).residual, whole.residual[pick])
    np.testing.assert_array_equal(part.at(values).jacobian, whole.jacobian[pick])
    np.testing.assert_array_equal(part.residual(values), problem.residual(values)[pick])
    np.testing.assert_array_equal(part.start, problem.start)


def test_repeats_share_their_prediction_and_records_are_not_writeable():
    robot = load_robot("kuka_kr270")
    once, again = (rows(robot, positions_of(4, 0) * times, 4) for times in (1, 3))
    one, three = (measured_problem(robot, kr270_setup(), table) for table in (once, again))
    single, repeated = one.at(one.start), three.at(one.start)
    order = (np.arange(3)[:, None] * 12 + np.tile(np.arange(12), 3)).ravel()
    np.testing.assert_array_equal(repeated.jacobian, single.jacobian[order])
    for array in (single.residual, single.jacobian, one.residual(one.start), one.start, one.equations.measured):
        assert not array.flags.writeable


def test_the_link_in_the_base_frame_is_that_of_plain_numpy(mixed):
    problem, truth = mixed
    rng = np.random.default_rng(4)
    q, wrench, point = rng.uniform(-2, 2, (6, 3)), rng.normal(size=(6, 3)) * 500, np.array([0.1, 0.2, 0.3])
    value = dict(zip(problem.chain.names, truth.tolist(), strict=True))
    for pull, at in ((None, None), (wrench, None), (wrench, point)):
        rotation, position = problem.frame_pose(truth, q, pull, at)
        for k in range(3):
            load = np.zeros(6) if pull is None else pull[:, k]
            link = NumpyChain(problem.robot, problem.setup, q[:, k], load, np.zeros(3) if at is None else at)
            expected = np.real(link.link_pose(value))
            np.testing.assert_allclose(rotation[k], expected[:3, :3], atol=1e-12)
            np.testing.assert_allclose(position[k], expected[:3, 3], atol=1e-12)


def test_derivatives_of_the_link_are_those_of_its_pose(mixed):
    problem, truth = mixed
    rng = np.random.default_rng(5)
    q, wrench = rng.uniform(-2, 2, (6, 2)), rng.normal(size=(6, 2)) * 500
    found = problem.frame_derivatives(truth, q, wrench)
    assert found.shape == (6, len(truth), 2)
    for k, parameter in enumerate(problem.parameters):
        if parameter.group in ("base", "tool", "marker"):
            assert not found[:, k].any()
            continue
        step = np.zeros(len(truth))
        step[k] = 1e-9 if parameter.group == "compliance" else 1e-5
        (r1, p1), (r0, p0) = problem.frame_pose(truth + step, q, wrench), problem.frame_pose(truth - step, q, wrench)
        turns = Rotation.from_matrix(r1 @ r0.transpose(0, 2, 1)).as_rotvec()
        slope = np.concatenate([(p1 - p0).T, turns.T]) / (2 * step[k])
        np.testing.assert_allclose(found[:, k], slope, atol=1e-6 * max(1.0, np.abs(slope).max()))


def test_the_compliance_of_a_vertical_axis_does_not_show_under_a_weight():
    robot = load_robot("kuka_kr270")
    joints = tuple(body.joint.name for body in robot.bodies)
    table = [("difference", pose, marker, -1, 0) for pose in range(5) for marker in range(3)]
    markers = tuple(MarkerSetup(name, at, True) for name, at in POINTS.items())
    setup = kr270_setup(base=KNOWN, geometry="none", markers=markers, elastic=ElasticSetup(joints=joints))
    problem = measured_problem(robot, setup, rows(robot, table, 5))
    assert [each.name for each in problem.parameters] == ["k1", "k2", "k3", "k4", "k5", "k6"]
    np.testing.assert_array_equal(problem.start[[2, 3]], [0.416e-6, 2.786e-6])
    size = np.linalg.norm(problem.at(problem.start).jacobian, axis=0)
    assert size[0] < 1e-9 * size[1:].min()


@pytest.mark.parametrize("seed", range(3))
def test_base_and_markers_of_which_nothing_is_known_are_found_and_a_fit_ends_at_the_truth(seed):
    """An arm on a slide with errors, somewhere in a hall: registration, then Gauss-Newton steps by plain lstsq."""
    rng = np.random.default_rng(seed)
    robot = arm("sliding_tree")
    setup = CalibrationSetup(link="right_hand", markers=tuple(MarkerSetup(name) for name in POINTS))
    free = replace(setup, base=KNOWN, markers=tuple(MarkerSetup(name, at) for name, at in POINTS.items()))
    template = measured_problem(robot, free, rows(robot, positions_of(25), 25, seed))
    truth = np.array([0.003 * rng.normal() if each.group == "joint" else each.nominal for each in template.parameters])
    base = np.concatenate([Rotation.random(rng=rng).as_matrix().ravel(), rng.normal(size=3) * 4])
    measured = measured_by(template, truth, base, base)
    problem = measured_problem(robot, setup, measured)
    assert np.abs(problem.residual(problem.start)).max() < 0.05
    values = problem.start
    for _ in range(8):
        step = problem.at(values)
        scale = np.linalg.norm(step.jacobian, axis=0)
        values = values + np.linalg.lstsq(step.jacobian / scale, step.residual, rcond=1e-9)[0] / scale
    np.testing.assert_allclose(problem.residual(values), 0, atol=1e-11)
    markers = problem.marker_positions(values)
    apart = [np.linalg.norm(markers[0] - markers[k]) for k in (1, 2)]
    exact = np.array(list(POINTS.values()))
    np.testing.assert_allclose(apart, [np.linalg.norm(exact[0] - exact[k]) for k in (1, 2)], atol=1e-9)


def test_base_and_tool_are_given_with_their_unknown_parts(mixed):
    problem, truth = mixed
    value = dict(zip(problem.chain.names, truth.tolist(), strict=True))
    for frame, numbers, given in (
        ("base", problem.registration.base, problem.base_pose(truth)),
        ("tool", problem.registration.tool, problem.tool_pose(truth)),
    ):
        expected = np.real(frame_matrix(frame, numbers, value))
        np.testing.assert_allclose(given[0], expected[:3, :3], atol=1e-14)
        np.testing.assert_allclose(given[1], expected[:3, 3], atol=1e-14)
    names = [f"{letter}[b]" for letter in "xyz"]
    np.testing.assert_array_equal(problem.marker_positions(truth)[1], [value[name] for name in names])


def test_a_spring_begins_soft_where_weights_are_unknown():
    robot = load_robot("ur10e")
    elastic = ElasticSetup(joints=("elbow_joint",), own_weight="unknown")
    setup = CalibrationSetup(
        link="wrist_3_link", base=KNOWN, markers=tuple(MarkerSetup(n, p) for n, p in POINTS.items())
    )
    problem = measured_problem(robot, replace(setup, elastic=elastic), rows(robot, positions_of(4), 4))
    start = dict(zip(problem.chain.names, problem.start.tolist(), strict=True))
    assert start["k3"] > 0
    weights = [name for name in problem.chain.names if name.startswith("M")]
    columns = np.linalg.norm(problem.at(problem.start).jacobian, axis=0)
    assert max(columns[problem.chain.names.index(name)] for name in weights) > 0


@pytest.mark.parametrize("values", [np.zeros(3), np.full(200, np.nan)])
def test_values_that_do_not_fit_are_refused(mixed, values):
    problem, _ = mixed
    wrong = values[: len(problem.start)]
    with pytest.raises(CalibrationError, match=rf"allowed are finite numbers of shape \({len(problem.start)}\)"):
        problem.at(wrong)


@pytest.mark.parametrize(
    ("q", "wrench", "message"),
    [
        (np.zeros(6), None, r"joint positions: got shape \(6,\), allowed are finite numbers of shape \(6, N\)"),
        (np.zeros((5, 2)), None, r"joint positions: got shape \(5, 2\), allowed are finite numbers of shape \(6, N\)"),
        (
            np.zeros((6, 2)),
            np.zeros((6, 3)),
            r"wrench: got shape \(6, 3\), allowed are finite numbers of shape \(6, 2\)",
        ),
        (np.full((6, 2), np.inf), None, r"joint positions: got inf at \(0, 0\), allowed are finite"),
    ],
)
def test_postures_that_do_not_fit_are_refused(mixed, q, wrench, message):
    problem, truth = mixed
    with pytest.raises(CalibrationError, match=message):
        problem.frame_pose(truth, q, wrench)


def test_nothing_measured_is_refused():
    robot = load_robot("kuka_kr270")
    table = rows(robot, positions_of(2), 2)
    empty = replace(table, value=np.full((6, 3), np.nan))
    with pytest.raises(CalibrationError, match="got 6 rows without a finite number"):
        measured_problem(robot, kr270_setup(), empty)


def test_measurements_of_other_markers_need_a_problem_of_their_own(mixed):
    problem, _ = mixed
    with pytest.raises(CalibrationError, match="allowed are those of the problem, a, b, c"):
        problem.with_measurements(replace(problem.measurements, markers=("a", "b", "d")))
