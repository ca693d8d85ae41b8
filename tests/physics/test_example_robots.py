"""Arms, humanoids and prismatic torsos of the package example-robot-data, read by us and by Pinocchio itself.

Angles are read literally here, so that both readers mean the same numbers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arms import inertias_of, motion_of, with_possible_inertia
from oracles import NO_MUJOCO, NO_PINOCCHIO, mujoco_model
from steelyard.model import base_parameters, build_model
from steelyard.physics import (
    forward_dynamics_function,
    gravity_function,
    inertia_matrix_function,
    inertial_regressor_function,
    inverse_dynamics_function,
)
from steelyard.robot import Robot, read_urdf

pytestmark = pytest.mark.large
pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)

# Arms; grippers and hands with mimicking fingers; prismatic torsos; humanoids.
ROBOTS = (
    "panda.urdf", "ur5_robot.urdf", "ur10_robot.urdf", "kinova.urdf", "xarm7.urdf", "z1.urdf", "so101.urdf",
    "talos_left_arm.urdf", "tiago_no_hand.urdf", "tiago.urdf", "baxter.urdf", "pr2.urdf", "talos_full_v2.urdf",
    "icub.urdf", "simple_humanoid.urdf", "g1_29dof_rev_1_0.urdf", "allegro_right_hand.urdf",
)  # fmt: skip


def example(name: str) -> Path:
    """Return the path of an example robot, wherever the package put it."""
    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data"
    found = sorted(folder.rglob(name))
    if not found:
        pytest.skip("the package example-robot-data is not installed: run 'make test-all'")
    return found[0]


class Theirs:
    """Pinocchio's own reading of a file, in our order of joints and with our coupling."""

    def __init__(self, path: Path, robot: Robot) -> None:
        self.model: Any = pin.buildModelFromUrdf(str(path))
        self.model.gravity.linear = np.array(robot.gravity)
        self.data = self.model.createData()
        self.coupling, self.offset = robot.coupling()
        self.joints = [self.model.joints[self.model.getJointId(body.joint.name)] for body in robot.bodies]
        self.rows = [joint.idx_v for joint in self.joints]
        self.identifiers = [self.model.getJointId(body.joint.name) for body in robot.bodies]

    def position(self, q: np.ndarray) -> np.ndarray:
        full = pin.neutral(self.model)
        for joint, value in zip(self.joints, self.coupling @ q + self.offset, strict=True):
            if joint.nq == 2:
                full[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
            else:
                full[joint.idx_q] = value
        return full

    def rate(self, qd: np.ndarray) -> np.ndarray:
        full = np.zeros(self.model.nv)
        full[self.rows] = self.coupling @ qd
        return full

    def torques(self, full: np.ndarray) -> np.ndarray:
        return self.coupling.T @ full[self.rows]

    def regressor(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        full = pin.computeJointTorqueRegressor(self.model, self.data, self.position(q), self.rate(qd), self.rate(qdd))
        ours_from_theirs = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]
        blocks = [full[:, 10 * (k - 1) : 10 * k][:, ours_from_theirs] for k in self.identifiers]
        return self.torques(np.hstack(blocks))


@pytest.fixture(params=ROBOTS, scope="module")
def case(request):
    path = example(request.param)
    robot = read_urdf(path, right_angle_tolerance=0)
    return robot, Theirs(path, robot)


def zeros_where_unknown(robot: Robot) -> np.ndarray:
    return np.concatenate([body.inertia or np.zeros(10) for body in robot.bodies])


def samples(robot: Robot, count: int = 3):
    return zip(*(part.T for part in motion_of(robot, count)), strict=True)


def assert_equal(got, wanted) -> None:
    got, wanted = np.asarray(got, float), np.asarray(wanted, float)
    np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


def test_torques_regressor_inertia_and_gravity_equal_pinocchio_s(case):
    robot, theirs = case
    chi = zeros_where_unknown(robot)
    model, data = theirs.model, theirs.data
    inverse, regressor = inverse_dynamics_function(robot), inertial_regressor_function(robot)
    matrix, gravity = inertia_matrix_function(robot), gravity_function(robot)
    for q, qd, qdd in samples(robot):
        position = theirs.position(q)
        tau = pin.rnea(model, data, position, theirs.rate(qd), theirs.rate(qdd))
        assert_equal(inverse(q, qd, qdd, chi), theirs.torques(tau))
        assert_equal(regressor(q, qd, qdd), theirs.regressor(q, qd, qdd))
        upper = np.triu(pin.crba(model, data, position))
        full = (upper + np.triu(upper, 1).T)[np.ix_(theirs.rows, theirs.rows)]
        assert_equal(matrix(q, chi), theirs.coupling.T @ full @ theirs.coupling)
        assert_equal(gravity(q, chi), theirs.torques(pin.computeGeneralizedGravity(model, data, position)))


def test_inverse_and_forward_dynamics_equal_mujoco_s(case):
    mujoco = pytest.importorskip("mujoco", reason=NO_MUJOCO)
    robot, _ = case
    rng = np.random.default_rng(3)
    robot = replace(robot, links=tuple(with_possible_inertia(link, rng) for link in robot.links))
    model = mujoco_model(robot)
    data, chi = mujoco.MjData(model), inertias_of(robot)
    coupling, offset = robot.coupling()
    inverse, forward = inverse_dynamics_function(robot), forward_dynamics_function(robot)
    for q, qd, qdd in samples(robot):
        data.qpos[:], data.qvel[:], data.qacc[:] = coupling @ q + offset, coupling @ qd, coupling @ qdd
        mujoco.mj_inverse(model, data)
        tau = data.qfrc_inverse.copy()
        assert_equal(inverse(q, qd, qdd, chi), coupling.T @ tau)
        data.qfrc_applied[:] = tau
        mujoco.mj_forward(model, data)
        ours = np.array(forward(q, qd, coupling.T @ tau, chi, np.zeros(len(q)))).ravel()
        # As torques: links differ by six powers of ten in inertia, and MuJoCo keeps principal axes, whose rounding
        # (7e-12 N m on Baxter's head) a light link turns into accelerations of 1e-10.
        inertia = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, inertia)
        assert_equal(tau + inertia @ (coupling @ ours - data.qacc), tau)


@pytest.mark.parametrize("name", ["panda.urdf", "ur5_robot.urdf", "xarm7.urdf", "tiago_no_hand.urdf", "kinova.urdf"])
def test_base_parameters_number_the_rank_of_pinocchio_s_regressor(name):
    path = example(name)
    robot = read_urdf(path)
    theirs = Theirs(path, robot)
    rows = np.vstack([theirs.regressor(*sample) for sample in samples(robot, 60)])
    norms = np.linalg.norm(rows, axis=0)
    # Their reading keeps the file's 1.5708, so what is exactly zero for us is up to 1e-5 there.
    nonzero = norms > 1e-4 * norms.max()
    rank = np.linalg.matrix_rank(rows[:, nonzero] / norms[nonzero], tol=1e-4)
    assert len(base_parameters(build_model(robot, effects=["inertia"])).base) == rank
