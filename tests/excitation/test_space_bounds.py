"""Clearances over continuous time, against places by Pinocchio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from arms import arm
from oracles import NO_PINOCCHIO, pinocchio_model
from random_motions import KINDS, instants_near, random_trajectory
from steelyard.excitation.certify.certificate import certify
from steelyard.excitation.certify.space_bounds import SpaceBounder, space_graph
from steelyard.excitation.certify.torque_bounds import breaks
from steelyard.excitation.space.capsules import Capsule, CapsulePair
from steelyard.excitation.space.regions import Box, Cylinder, HalfSpace, Sphere
from steelyard.excitation.space.rules import ArmPoint, PointRule, SpaceRule
from steelyard.motion import Trajectory, fourier
from steelyard.robot import Robot, transform_from_placement


@dataclass(frozen=True)
class Apart(SpaceRule):
    """Two points keep a distance."""

    name: str
    pair: tuple[ArmPoint, ArmPoint]
    distance: float

    @property
    def points(self) -> tuple[ArmPoint, ...]:
        return self.pair

    def clearance(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        between = places[0] - places[1]
        distance = np.linalg.norm(between, axis=0)
        way = between / np.maximum(distance, 1e-12)
        return distance - self.distance, np.array([way, -way])

    def slack(self, radii: np.ndarray) -> np.ndarray:
        return radii.sum(axis=0)


def names_of(robot: Robot) -> tuple[str, ...]:
    return tuple(body.joint.name for body in robot.actuated)


def rules_for(robot: Robot) -> tuple[SpaceRule, ...]:
    middle, last = robot.bodies[(len(robot.bodies) - 1) // 2].link, robot.bodies[-1].link
    tip, knuckle = ArmPoint(last, (0.05, -0.1, 0.2)), ArmPoint(middle, (0.0, 0.1, 0.0))
    hand, elbow = (
        Capsule(link, (0.0, 0.0, -0.1), (0.05, 0.1, 0.1), radius) for link, radius in ((last, 0.05), (middle, 0.08))
    )
    post = Capsule(None, (0.9, -0.2, 0.3), (1.1, 0.2, 0.8), 0.1)
    return (
        PointRule("floor", tip, HalfSpace((0.0, 0.0, 1.0), -0.3)),
        PointRule("cell", tip, Box((-0.7, -0.8, -0.2), (0.9, np.inf, 1.4)), margin=0.05),
        PointRule("reach", tip, Cylinder(1.0, axis=(0.1, 0.0, 1.0), upper=1.2)),
        PointRule("column", knuckle, Cylinder(0.2, upper=1.0), "keep_out"),
        PointRule("ball", tip, Sphere(0.3, (0.5, 0.4, 0.5)), "keep_out"),
        PointRule("table", tip, Box((0.3, -0.5, -1.0), (1.0, 0.5, 0.1)), "keep_out"),
        CapsulePair("hand and elbow", hand, elbow, 0.01),
        CapsulePair("hand and post", hand, post),
    )


def places_of(robot: Robot, points: tuple[ArmPoint, ...], trajectory: Trajectory, time: np.ndarray) -> np.ndarray:
    """Return places (k, 3, N) of points by Pinocchio."""
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    model = pinocchio_model(robot)
    data = model.createData()
    fixed = []
    for point in points:
        frame = robot.frame(point.link)
        rotation, translation = transform_from_placement(frame.placement)
        fixed.append((frame.body, rotation @ np.array(point.offset) + translation))
    places = np.empty((len(points), 3, len(time)))
    for column, q in enumerate(trajectory.in_order(names_of(robot)).at(time).q.T):
        pin.forwardKinematics(model, data, q)
        places[:, :, column] = [data.oMi[body].act(offset) if body else offset for body, offset in fixed]
    return places


def missing(robot: Robot, rule: SpaceRule, trajectory: Trajectory, time: np.ndarray) -> np.ndarray:
    return -rule.clearance(places_of(robot, rule.points, trajectory, time))[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["scara_2r", "ur10e", "kuka_lwr4", "staubli_tx40", "sliding_tree"])
def test_no_clearance_is_smaller_than_told_and_the_smallest_is_reached(name: str, kind: str) -> None:
    robot = arm(name)
    rules = rules_for(robot)
    trajectory = random_trajectory(kind, names_of(robot), seed=10 + KINDS.index(kind))
    certificate = certify([SpaceBounder(space_graph(robot, rules), trajectory)], breaks(trajectory))
    time = np.random.default_rng(1).uniform(0, trajectory.duration, 600)
    for rule, finding in zip(rules, certificate.findings, strict=True):
        assert (finding.name, finding.limit) == (rule.name, 0.0)
        assert missing(robot, rule, trajectory, time).max() <= finding.worst + 1e-11
        near = instants_near(trajectory, finding.instant, breaks(trajectory), count=11)
        assert finding.worst - missing(robot, rule, trajectory, near).max() <= 2e-6 + 1e-3 * abs(finding.worst)
        assert finding.violation == max(0.0, finding.worst)


def test_a_rule_of_unknown_form_is_bounded_by_its_slack_alone() -> None:
    robot = arm("ur10e")
    first, *_, last = (body.link for body in robot.bodies)
    rule = Apart("apart", (ArmPoint(last, (0.1, 0.0, 0.0)), ArmPoint(first, (0.5, 0.3, 0.2))), 0.2)
    trajectory = random_trajectory("quintic", names_of(robot), seed=3)
    bounder = SpaceBounder(space_graph(robot, [rule]), trajectory)
    (finding,) = certify([bounder], breaks(trajectory)).findings
    largest = missing(robot, rule, trajectory, np.random.default_rng(1).uniform(0, trajectory.duration, 3000)).max()
    assert largest <= finding.worst <= largest + 2e-3 * abs(largest)


def test_what_moves_two_capsules_together_does_not_blur_their_distance() -> None:
    robot = arm("kuka_lwr4")
    hand, wrist = (Capsule(body.link, (0.0, 0.0, -0.1), (0.05, 0.1, 0.1), 0.05) for body in robot.bodies[4:6])
    sin, cos = 0.5 * np.random.default_rng(3).normal(size=(2, 7, 3))
    sin[5], cos[5] = 0.0, 0.0  # all joints move but the one between the two
    trajectory = fourier(np.full(7, 0.2), sin, cos, 8.0, names_of(robot))
    bounder = SpaceBounder(space_graph(robot, [CapsulePair("pair", hand, wrist)]), trajectory)
    values, upper = bounder.bounds(np.array([0.0]), np.array([8.0]))
    np.testing.assert_allclose(upper, values, atol=1e-9)


def test_every_interval_is_bounded() -> None:
    robot = arm("kuka_lwr4")
    rules = (*rules_for(robot), Apart("apart", (ArmPoint("link_7"), ArmPoint("link_3")), 0.1))
    trajectory = random_trajectory("fourier", names_of(robot), seed=7)
    rng = np.random.default_rng(2)
    begin = rng.uniform(0, trajectory.duration, 300)
    end = np.minimum(begin + 10 ** rng.uniform(-6, 0, 300), trajectory.duration)
    values, upper = SpaceBounder(space_graph(robot, rules), trajectory).bounds(begin, end)
    for index, rule in enumerate(rules):
        for part in (0.0, 0.1, 0.5, 0.9, 1.0):
            found = missing(robot, rule, trajectory, begin + part * (end - begin))
            assert (found <= upper[index] + 1e-12).all()
            if part == 0.5:
                np.testing.assert_allclose(values[index], found, atol=1e-11)


def test_a_point_at_rest_is_bounded_by_where_it_is() -> None:
    robot = arm("ur10e")
    rule = PointRule("base", ArmPoint("base_link", (0.0, 0.0, 0.25)), HalfSpace((0.0, 0.0, 1.0), 0.2))
    trajectory = random_trajectory("quintic", names_of(robot), seed=1)
    (finding,) = certify([SpaceBounder(space_graph(robot, [rule]), trajectory)], breaks(trajectory)).findings
    assert finding.worst == pytest.approx(-0.05, abs=1e-9)


def test_without_rules_nothing_is_found() -> None:
    robot = arm("scara_2r")
    trajectory = random_trajectory("fourier", names_of(robot), seed=1)
    assert certify([SpaceBounder(space_graph(robot, []), trajectory)], breaks(trajectory)).findings == ()
