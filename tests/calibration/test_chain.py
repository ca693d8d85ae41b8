"""The measured chain against Pinocchio, against plain numpy and its complex step, and against P3's linear form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from arms import arm
from calibration.chain_in_numpy import NumpyChain, error_matrix, frame_matrix
from independent import complex_step
from oracles import NO_PINOCCHIO, pinocchio_model
from steelyard.calibration.chain.chain import NO_FRAME, ChainFrames, MeasuredChain, node_weights
from steelyard.calibration.chain.unknowns import unknown_parameters
from steelyard.calibration.measurement.setup import CalibrationSetup, ElasticSetup, FrameSetup, OwnWeight
from steelyard.errors import CalibrationError
from steelyard.robot import Robot, load_robot, transform_from_placement

MEASURED = {
    "ur10e": "", "kuka_lwr4": "", "kuka_kr270": "tool", "skewed_chain": "hand", "sliding_tree": "right_hand",
    "gripper": "finger_b", "staubli_tx40": "",
}  # fmt: skip
FULLY_ELASTIC = ("kuka_kr270", "skewed_chain", "sliding_tree", "gripper")


def measured_link(robot: Robot) -> str:
    return MEASURED[robot.name] or robot.bodies[-1].link


def names_of(robot: Robot, setup: CalibrationSetup) -> tuple[str, ...]:
    return tuple(parameter.name for parameter in unknown_parameters(robot, setup, orientation=True))


def random_values(robot: Robot, setup: CalibrationSetup, rng: np.random.Generator) -> np.ndarray:
    """Errors of some hundredths, compliances that bend by some hundredths, weights of some kilograms."""
    sizes = {"compliance": 1e-4, "weight": 2.0}
    parameters = unknown_parameters(robot, setup, orientation=True)
    return np.array([rng.uniform(0.3, 1.0) * sizes.get(each.group, 0.03) for each in parameters])


def random_frame(rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([Rotation.random(rng=rng).as_matrix().ravel(), rng.normal(size=3)])


def elastic_setup(robot: Robot, own_weight: OwnWeight = "none", **more) -> CalibrationSetup:
    """Return a set-up in which every joint of the chain has an own and two lateral springs."""
    link = measured_link(robot)
    number, joints = robot.frame(link).body, []
    while number:
        joints.append(robot.bodies[number - 1].joint.name)
        number = robot.bodies[number - 1].parent
    elastic = ElasticSetup(joints=tuple(joints), lateral=tuple(joints), own_weight=own_weight)
    return CalibrationSetup(link=link, elastic=replace(elastic, **more))


@pytest.mark.parametrize("name", MEASURED)
def test_poses_with_errors_are_those_of_pinocchio_with_moved_joints(name):
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    robot, rng = arm(name), np.random.default_rng(1)
    setup = CalibrationSetup(link=measured_link(robot))
    names = names_of(robot, setup)
    values = random_values(robot, setup, rng)
    value = dict(zip(names, values.tolist(), strict=True))
    model = pinocchio_model(robot)
    for body in robot.bodies:
        error = np.real(error_matrix(body, value))  # absent off the chain: the identity there
        model.jointPlacements[body.number] = model.jointPlacements[body.number] * pin.SE3(error)
    data, count = model.createData(), 20
    q, points = rng.uniform(-2, 2, (len(robot.actuated), count)), rng.normal(size=(3, count))
    base, tool = random_frame(rng), random_frame(rng)
    chain = MeasuredChain(robot, setup, names)
    samples = chain.samples(q)
    frames = ChainFrames(base, tool)
    rotation, position = chain.poses(values, samples, frames)
    positions = chain.points(values, samples, points, frames)
    matrix, offset = robot.coupling()
    frame = robot.frame(setup.link)
    end = pin.SE3(*transform_from_placement(frame.placement))
    before, after = (pin.SE3(np.real(frame_matrix(*each, value))) for each in (("base", base), ("tool", tool)))
    for k in range(count):
        pin.forwardKinematics(model, data, matrix @ q[:, k] + offset)
        link = before * data.oMi[frame.body] * end
        expected = link * after
        np.testing.assert_allclose(rotation[:, :, k], expected.rotation, atol=1e-12)
        np.testing.assert_allclose(position[:, k], expected.translation, atol=1e-12)
        np.testing.assert_allclose(positions[:, k], link.act(points[:, k]), atol=1e-12)


CASES = [
    ("ur10e", "none", {}),
    ("skewed_chain", "none", {"lateral": ("wrist",)}),
    ("sliding_tree", "unknown", {"lateral": ("lift", "right_slide")}),
    ("gripper", "model", {}),
    pytest.param(
        "kuka_kr270",
        "model",
        {"nodes": {"joint_2": (0.0, -1.0, 1.5), "joint_4": (0.5,)}, "between": "linear", "lateral": ("joint_5",)},
        marks=pytest.mark.large,
    ),
]


@pytest.mark.parametrize(("name", "own_weight", "more"), CASES)
def test_positions_and_derivatives_are_those_of_plain_numpy_and_its_complex_step(name, own_weight, more):
    robot, rng = arm(name), np.random.default_rng(2)
    setup = elastic_setup(robot, own_weight, **more)
    if name not in FULLY_ELASTIC:  # rigid: errors of frames alone
        setup = replace(setup, elastic=ElasticSetup())
    names, values = names_of(robot, setup), random_values(robot, setup, rng)
    chain = MeasuredChain(robot, setup, names)
    q = rng.uniform(-2, 2, len(robot.actuated))
    wrench, load, point = rng.normal(size=6) * 100, rng.normal(size=3), rng.normal(size=3)
    frames = ChainFrames(random_frame(rng), random_frame(rng))
    numpy_chain = NumpyChain(robot, setup, q, wrench, load)

    def pose_and_point(unknowns: np.ndarray) -> np.ndarray:
        value = dict(zip(names, unknowns, strict=True))
        link = frame_matrix("base", frames.base, value) @ numpy_chain.link_pose(value)
        return np.column_stack([link @ frame_matrix("tool", frames.tool, value), link @ np.append(point, 1.0)])

    samples = chain.samples(q[:, None], wrench[:, None], load[:, None])
    position, by_values, by_point = chain.point_derivatives(values, samples, point[:, None], frames)
    rotation, at, turned = chain.pose_derivatives(values, samples, frames)
    expected = np.real(pose_and_point(values))
    stepped = complex_step(pose_and_point, values).reshape(4, 5, -1)
    np.testing.assert_allclose(rotation[:, :, 0], expected[:3, :3], atol=1e-11)
    np.testing.assert_allclose(at[:, 0], expected[:3, 3], atol=1e-11)
    np.testing.assert_allclose(position[:, 0], expected[:3, 4], atol=1e-11)
    spin = np.einsum("ijp,kj->ikp", stepped[:3, :3], expected[:3, :3])  # dR R^T = skew(w)
    small = np.stack([spin[2, 1], spin[0, 2], spin[1, 0]])
    assert_columns_close(by_values[:, :, 0].T, stepped[:3, 4])
    assert_columns_close(turned[:, :, 0].T, np.concatenate([stepped[:3, 3], small]))
    moved = chain.points(values, samples, point[:, None] + np.array([[1.0], [0.0], [0.0]]), frames)
    np.testing.assert_allclose((moved - position)[:, 0], by_point[:, 0, 0], atol=1e-12)


def assert_columns_close(found: np.ndarray, expected: np.ndarray) -> None:
    scale = np.maximum(np.abs(expected).max(axis=0), 1.0)
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-9)


def kr270_under_load():
    robot = load_robot("kuka_kr270")
    joints = tuple(body.joint.name for body in robot.bodies)
    setup = CalibrationSetup(
        link="tool", base=FrameSetup(known=True), tool=FrameSetup(known=True), geometry="none",
        elastic=ElasticSetup(joints=joints),
    )  # fmt: skip
    return robot, setup, MeasuredChain(robot, setup, names_of(robot, setup))


def test_small_deflections_are_p3s_linear_form():
    """P3.1: dp = J_theta diag(J_theta^T F) k, with Pinocchio's Jacobians of marker and load point."""
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    robot, _, chain = kr270_under_load()
    assert chain.names == ("k1", "k2", "k3", "k4", "k5", "k6")
    rng = np.random.default_rng(4)
    q, compliance = rng.uniform(-2, 2, (6, 5)), rng.uniform(0.2, 4.0, 6) * 1e-6
    wrench, load, marker = rng.normal(size=(6, 5)) * 1000, np.array([0.15, 0.0, -0.4]), np.array([0.1, 0.2, -0.2])
    samples = chain.samples(q, wrench, np.repeat(load[:, None], 5, axis=1))
    frames, points = ChainFrames(NO_FRAME, NO_FRAME), np.repeat(marker[:, None], 5, axis=1)
    stiff, linear, _ = chain.point_derivatives(np.zeros(6), samples, points, frames)
    slightly = chain.points(compliance * 1e-4, samples, points, frames)
    model = pinocchio_model(robot)
    data, (_, flange) = model.createData(), transform_from_placement(robot.frame("tool").placement)
    for k in range(5):
        pin.computeJointJacobians(model, data, q[:, k])
        body = pin.getJointJacobian(model, data, 6, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        turn = data.oMi[6].rotation

        def at(point, body=body, turn=turn):
            lever = turn @ (flange + point)
            return body[:3] + np.cross(body[3:].T, lever).T

        torque = at(load).T @ wrench[:3, k] + body[3:].T @ wrench[3:, k]
        form = at(marker) * torque
        np.testing.assert_allclose(linear[:, :, k].T, form, atol=1e-9 * np.abs(form).max())
        moved = (slightly - stiff)[:, k] / 1e-4
        np.testing.assert_allclose(moved, form @ compliance, atol=1e-4 * np.abs(form @ compliance).max())


def test_large_deflections_are_near_the_equilibrium():
    robot, setup, chain = kr270_under_load()
    compliance = np.array([0.3, 0.29, 0.416, 2.786, 3.483, 2.074]) * 1e-6
    q = np.radians([79.2, -0.01, -5.57, 51, -97.52, -91.67])
    wrench, load = np.array([0, 0, -265 * 9.81, 0, 0, 0]), np.array([0.15, 0.0, -0.4])
    samples = chain.samples(q[:, None], wrench[:, None], load[:, None])
    frames, marker = ChainFrames(NO_FRAME, NO_FRAME), np.array([[0.25], [0.0], [-0.35]])
    found = chain.points(compliance, samples, marker, frames)[:, 0]
    value = dict(zip(chain.names, compliance.tolist(), strict=True))
    numpy_chain = NumpyChain(robot, setup, q, wrench, load)
    point = np.append(marker[:, 0], 1.0)
    stiff, once, converged = (np.real(numpy_chain.link_pose(value, passes) @ point)[:3] for passes in (0, 1, 60))
    assert np.linalg.norm(converged - stiff) > 3e-3
    assert np.linalg.norm(found - converged) < 0.05 * np.linalg.norm(once - converged)
    assert np.linalg.norm(found - converged) < 1e-6


def test_the_spring_of_a_vertical_axis_does_not_show_under_a_vertical_load():
    _, _, chain = kr270_under_load()
    rng = np.random.default_rng(5)
    q, wrench = rng.uniform(-2, 2, (6, 30)), np.zeros((6, 30))
    wrench[2] = -2600.0
    samples = chain.samples(q, wrench, rng.normal(size=(3, 30)))
    frames, points = ChainFrames(NO_FRAME, NO_FRAME), rng.normal(size=(3, 30))
    _, derivatives, _ = chain.point_derivatives(np.full(6, 1e-6), samples, points, frames)
    size = np.abs(derivatives).max(axis=(1, 2))
    assert size[0] < 1e-9 * size[1:].min()


def test_coupled_motors_move_the_same_chain():
    robot = arm("staubli_tx40")
    assert robot.gear_couplings
    setup = elastic_setup(robot, "model", lateral=())
    names, rng = names_of(robot, setup), np.random.default_rng(6)
    values, q = random_values(robot, setup, rng), rng.uniform(-2, 2, (6, 8))
    frames = ChainFrames(random_frame(rng), random_frame(rng))
    by_joints, by_motors = (MeasuredChain(each, setup, names) for each in (robot, robot.in_motor_coordinates()))
    for one, other in zip(
        by_joints.poses(values, by_joints.samples(q), frames),
        by_motors.poses(values, by_motors.samples(robot.motor_coupling() @ q), frames),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_links_beside_the_chain_count_by_their_weight_alone():
    robot = arm("sliding_tree")
    setup = CalibrationSetup(link="left_tool", elastic=ElasticSetup(joints=("lift",), own_weight="model"))
    names = names_of(robot, setup)
    assert not any(name.endswith(("3", "4")) for name in names)
    chain, frames = MeasuredChain(robot, setup, names), ChainFrames(NO_FRAME, NO_FRAME)
    values = np.zeros(len(names))
    q = np.array([[0.1], [0.4], [0.7], [0.2]])
    stiff = chain.points(values, chain.samples(q), np.zeros((3, 1)), frames)
    values[names.index("k1")] = 1e-5
    sunk = chain.points(values, chain.samples(q), np.zeros((3, 1)), frames) - stiff
    mass = sum(body.inertia[9] for body in robot.bodies if body.inertia)
    np.testing.assert_allclose(sunk[:, 0], [0, 0, -1e-5 * mass * 9.81], atol=1e-15)


def test_nodes_share_a_compliance_by_nearness_or_linearly():
    robot = load_robot("kuka_kr270")
    elastic = ElasticSetup(joints=("joint_2",), nodes={"joint_2": (0.0, -1.0, -2.0)}, between="linear")
    setup = CalibrationSetup(link="tool", elastic=elastic)
    q = np.zeros((6, 4))
    q[1] = [0.5, -0.25, -1.0, -7.0]
    shares = node_weights(robot, setup, q)
    np.testing.assert_allclose(shares.T, [[1, 0, 0], [0.75, 0.25, 0], [0, 1, 0], [0, 0, 1]], atol=1e-15)
    nearest = node_weights(robot, replace(setup, elastic=replace(elastic, between="nearest")), q)
    np.testing.assert_array_equal(nearest.T, [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


def test_own_weight_by_the_model_needs_masses():
    robot = load_robot("kuka_kr270")
    setup = CalibrationSetup(link="tool", elastic=ElasticSetup(joints=("joint_3",), own_weight="model"))
    chain = MeasuredChain(robot, setup, names_of(robot, setup))
    with pytest.raises(
        CalibrationError, match=r"own_weight 'model' needs the mass of every link .* 'unknown' or 'none'"
    ):
        chain.poses(np.zeros(len(chain.names)), chain.samples(np.zeros((6, 1))), ChainFrames(NO_FRAME, NO_FRAME))
