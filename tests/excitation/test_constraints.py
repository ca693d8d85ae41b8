"""Constraints on a grid: values written out, and the way back by differences."""

from __future__ import annotations

import numpy as np
import pytest

from arms import arm
from oracles import NO_PINOCCHIO, pinocchio_model
from steelyard.excitation import Capsule, CapsulePair, Cylinder, HalfSpace, PointRule, known_of
from steelyard.excitation.constraints import (
    CLEARANCE_SCALE,
    ConstraintBlock,
    Samples,
    joint_block,
    space_block,
    torque_block,
)
from steelyard.excitation.limits.design_limits import design_limits
from steelyard.excitation.space.capsules import NEAR
from steelyard.excitation.space.rules import ArmPlaces, ArmPoint
from steelyard.model import build_model
from steelyard.motion import motion_limits
from steelyard.robot import load_robot

WIDTH = 0.05


def samples_of(count: int, joints: int, seed: int = 1) -> Samples:
    return np.random.default_rng(seed).normal(size=(4, joints, count))


def assert_way_back(block: ConstraintBlock, samples: Samples, tolerance: float = 1e-7, least: float = -np.inf) -> None:
    """Compare the gradient of a weighted sum of values, from the least on, with differences along random ways."""
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(len(block.names), samples[0].shape[1])) * (block.values(samples) > least)
    assert weights.any(axis=1).all()
    back = np.zeros_like(samples)
    block.pull_back(samples, weights, back)
    step = 1e-4
    for order in range(4):
        way = rng.normal(size=samples[order].shape)
        sums = {}
        for k in (-2, -1, 1, 2):
            moved = samples.copy()
            moved[order] += k * step * way
            sums[k] = float((weights * block.values(moved)).sum())
        slope = (8 * (sums[1] - sums[-1]) - (sums[2] - sums[-2])) / (12 * step)
        got = float((back[order] * way).sum())
        assert got == pytest.approx(slope, rel=tolerance, abs=tolerance * np.abs(weights).sum())


def test_limits_of_joints_are_parts_of_what_is_allowed():
    limits = motion_limits(
        ("a", "b"), lower=[-1, -2], upper=[3, 2], velocity=[2.0, 4.0], acceleration=[np.inf, 5.0], jerk=np.inf
    )
    block = joint_block(limits)
    samples = samples_of(5, 2)
    q, qd, qdd, _ = samples
    named = {}
    for name, row, unit in zip(block.names, block.values(samples), block.units, strict=True):
        named.setdefault(name, []).append((row, unit))
    assert set(named) == {
        "lower of a", "lower of b", "upper of a", "upper of b", "velocity of a", "velocity of b", "acceleration of b"
    }  # fmt: skip
    np.testing.assert_allclose(named["upper of a"][0][0], (q[0] - 3) / 2)
    np.testing.assert_allclose(named["lower of b"][0][0], (-2 - q[1]) / 2)
    assert named["upper of a"][0][1] == 2.0
    both = np.maximum(*(row for row, _ in named["velocity of b"]))
    np.testing.assert_allclose(both, np.abs(qd[1]) / 4 - 1)
    both = np.maximum(*(row for row, _ in named["acceleration of b"]))
    np.testing.assert_allclose(both, np.abs(qdd[1]) / 5 - 1)
    assert_way_back(block, samples)


@pytest.mark.parametrize("name", ["scara_2r", "kuka_lwr4"])
def test_torques_are_pinocchio_s_with_smooth_friction(name):
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    robot = load_robot(name)
    limits = design_limits(robot)
    known, _ = known_of(build_model(robot), limits)
    assert known.torques is not None
    limit = np.array(limits.torque)
    limit[1] = np.inf
    block = torque_block(known.torques.function(False, WIDTH), limit, limits.motion.joints, ", so")
    assert block is not None
    joints = len(robot.actuated)
    assert block.names == tuple(f"torque of {limits.motion.joints[k]}, so" for k in range(joints) if k != 1)
    samples = samples_of(10, joints)
    model = pinocchio_model(robot)
    data = model.createData()
    rigid = np.array([pin.rnea(model, data, *one) for one in zip(*(x.T for x in samples[:3]), strict=True)]).T
    value = dict(robot.values)

    def each(symbol: str) -> np.ndarray:
        return np.array([value.get(f"{symbol}{k + 1}", 0.0) for k in range(joints)])[:, None]

    _, qd, qdd, _ = samples
    turning = np.tanh(qd / WIDTH)
    tau = rigid + each("Ia") * qdd + (each("Fvm") + each("Fvl")) * qd + (each("Fcm") + each("Fcl")) * turning
    tau = tau + each("offm") + each("offl")
    wanted = (np.abs(tau) / limit[:, None] - 1)[[k for k in range(joints) if k != 1]]
    np.testing.assert_allclose(block.values(samples), wanted, rtol=0, atol=1e-10)
    assert_way_back(block, samples, 1e-6)


def test_clearances_of_points_are_those_of_pinocchio_s_places():
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    robot = arm("ur10e")
    tool = ArmPoint("wrist_3_link", (0.0, 0.1, 0.05))
    rules = (
        PointRule("floor", tool, HalfSpace((0, 0, 2), 0.1), margin=0.02),
        PointRule("column", tool, Cylinder(0.3), "keep_out"),
    )
    block = space_block(robot, rules)
    assert block is not None
    assert block.names == ("floor", "column")
    samples = samples_of(9, 6, seed=3)
    values = block.values(samples)
    model = pinocchio_model(robot)
    data = model.createData()
    for column, q in enumerate(samples[0].T):
        pin.forwardKinematics(model, data, q)
        place = data.oMi[6].act(np.array(tool.offset))
        assert values[0, column] == pytest.approx(-(place[2] - 0.1 - 0.02) / CLEARANCE_SCALE, abs=1e-10)
        assert values[1, column] == pytest.approx((0.3 - np.hypot(*place[:2])) / CLEARANCE_SCALE, abs=1e-10)
    np.testing.assert_array_equal(block.units, CLEARANCE_SCALE)
    assert_way_back(block, samples, 1e-6)


def test_pairs_are_told_exactly_where_they_are_near_and_by_a_bound_where_not():
    robot = arm("ur10e")
    hand = Capsule("wrist_3_link", (0, 0, 0), (0, 0, 0.1), 0.2)
    rules = (
        CapsulePair("self", hand, Capsule("upper_arm_link", (0, 0, 0), (0, 0, 0.5), 0.4), 0.01),
        CapsulePair("pillar", hand, Capsule(None, (0.5, 0, 0), (0.5, 0, 1), 0.3)),
        PointRule("floor", ArmPoint("wrist_3_link"), HalfSpace((0, 0, 1), -1.0)),
    )
    block = space_block(robot, rules)
    assert block is not None
    samples = samples_of(60, 6, seed=3)
    places = ArmPlaces(robot, (point for rule in rules for point in rule.points))
    there = places.at(samples[0])
    values = block.values(samples)
    for row, rule in enumerate(rules):
        bounded, true = -CLEARANCE_SCALE * values[row], rule.clearance(places.of(rule, there))[0]
        near = bounded < NEAR
        assert 3 < near.sum() < 60 or rule.name == "floor"
        np.testing.assert_allclose(bounded[near], true[near], rtol=0, atol=1e-12)
        assert (bounded <= true + 1e-12).all()
    assert_way_back(block, samples, 1e-6, -0.99 * NEAR / CLEARANCE_SCALE)


def test_nothing_limited_makes_no_block():
    robot = arm("scara_2r")
    assert space_block(robot, ()) is None
    known, _ = known_of(build_model(robot), design_limits(robot))
    assert known.torques is not None
    assert torque_block(known.torques.function(False, WIDTH), np.full(2, np.inf), ("a", "b"), "") is None
