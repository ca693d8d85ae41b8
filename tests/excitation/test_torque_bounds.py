"""Torques over continuous time, against Pinocchio's Newton-Euler and friction written out."""

from __future__ import annotations

import numpy as np
import pytest

from arms import arm, inertias_of
from oracles import NO_PINOCCHIO, pinocchio_model
from random_motions import KINDS, instants_near, random_trajectory
from steelyard.errors import DesignError
from steelyard.excitation.certify.certificate import certify
from steelyard.excitation.certify.torque_bounds import TorqueBounder, breaks
from steelyard.excitation.certify.torque_graph import directions_of, torque_graph
from steelyard.model import Model, base_parameters, build_model
from steelyard.motion import MotionSamples, Trajectory, quintic
from steelyard.robot import Robot, moved_parameters, transform_from_placement

EFFECTS = {
    "scara_2r": ("inertia", "Ia", "Fvm", "Fcm", "offm"),
    "ur10e": ("inertia", "Ia", "Fvm", "Fcam", "offm"),
    "kuka_lwr4": ("inertia", "Ia", "Fvm", "Fcm", "offm", "Fvl", "Fcl", "offl"),
    "staubli_tx40": ("inertia", "Ia", "Fvm", "Fcm", "offm", "coupling"),
}


def names_of(robot: Robot) -> tuple[str, ...]:
    return tuple(body.joint.name for body in robot.actuated)


def parameters_of(model: Model, seed: int = 3) -> np.ndarray:
    """Return the robot's own inertias and random friction, some of it of the wrong sign."""
    chi = np.random.default_rng(seed).normal(1.0, 1.0, len(model.names))
    chi[: 10 * len(model.robot.bodies)] = inertias_of(model.robot)
    return chi


def rigid_torques(robot: Robot, there: MotionSamples) -> np.ndarray:
    """Return Newton-Euler's torques (n, N) by Pinocchio."""
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    model = pinocchio_model(robot)
    data = model.createData()
    columns = zip(there.q.T, there.qd.T, there.qdd.T, strict=True)
    return np.array([pin.rnea(model, data, q, qd, qdd).copy() for q, qd, qdd in columns]).T


def friction(model: Model, chi: np.ndarray, there: MotionSamples, side: str, rest: tuple[int, int]) -> np.ndarray:
    """Return all but the rigid torques, written out (n, N); at rest, joints and coupled motors push as given."""
    value = dict(zip(model.names, chi, strict=True))
    row_of = {name: row for row, name in enumerate(there.joints)}

    def each(symbol: str) -> np.ndarray:
        return np.array([value.get(f"{symbol}{body.number}", 0.0) for body in model.robot.actuated])[:, None]

    def sign(velocity: np.ndarray, otherwise: int) -> np.ndarray:
        return np.where(np.abs(velocity) < 1e-12, otherwise, np.sign(velocity))

    qd, qdd, turns = there.qd, there.qdd, sign(there.qd, rest[0])
    tau = each("Fvl") * qd + each("Fcl") * turns + each("offl")
    if side == "joint":
        return tau
    tau = tau + each("Ia") * qdd + each("Fvm") * qd + each("Fcm") * turns + each("offm")
    tau = tau + each("Fcpm") * (turns > 0) - each("Fcnm") * (turns < 0)
    for coupling in model.robot.gear_couplings if "coupling" in model.effects else ():
        own, other, ratio = row_of[coupling.motor], row_of[coupling.also_turns_with], coupling.ratio
        turning = value[f"Fcc{own + 1}"] * sign(qd[own] + ratio * qd[other], rest[1])
        inertia, viscous = value[f"Iac{own + 1}"], value[f"Fvc{own + 1}"]
        tau[own] += ratio * (inertia * qdd[other] + viscous * qd[other]) + turning
        tau[other] += ratio * (inertia * qdd[own] + viscous * qd[own] + turning)
    return tau


def magnitudes(
    model: Model, chi: np.ndarray, trajectory: Trajectory, time: np.ndarray, side: str = "motor"
) -> np.ndarray:
    """Return the largest that each torque can be at given times (n, N): friction at rest may be anything."""
    there = trajectory.in_order(names_of(model.robot)).at(time)
    rigid = rigid_torques(model.robot, there)
    choices = [(joints, motors) for joints in (1, -1) for motors in (1, -1)]
    return np.max([np.abs(rigid + friction(model, chi, there, side, rest)) for rest in choices], axis=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EFFECTS)
def test_no_torque_exceeds_its_bound_and_the_bound_is_reached(name: str, kind: str) -> None:
    robot = arm(name)
    model = build_model(robot, EFFECTS[name], "motor")
    chi = parameters_of(model)
    trajectory = random_trajectory(kind, names_of(robot), seed=KINDS.index(kind))
    limits = np.full(len(robot.actuated), 50.0)
    bounder = TorqueBounder(torque_graph(model, chi, "motor"), trajectory, limits)
    edges = breaks(trajectory)
    certificate = certify([bounder], edges)
    time = np.random.default_rng(1).uniform(0, trajectory.duration, 2000)
    largest = magnitudes(model, chi, trajectory, time).max(axis=1)
    for row, finding in enumerate(certificate.findings):
        assert finding.name == f"torque of {robot.actuated[row].joint.name}"
        assert largest[row] <= finding.worst + 1e-9
        near = magnitudes(model, chi, trajectory, instants_near(trajectory, finding.instant, edges))[row].max()
        assert finding.worst - near <= 3e-6 * 50.0


@pytest.mark.parametrize("name", EFFECTS)
def test_every_interval_is_bounded(name: str) -> None:
    robot = arm(name)
    model = build_model(robot, EFFECTS[name], "motor")
    chi = parameters_of(model, seed=8)
    trajectory = random_trajectory("approached", names_of(robot), seed=2)
    bounder = TorqueBounder(torque_graph(model, chi, "motor"), trajectory, np.full(len(robot.actuated), 50.0))
    rng = np.random.default_rng(2)
    edges = breaks(trajectory)
    section = rng.integers(0, len(edges) - 1, 300)
    low, high = edges[section], edges[section + 1]
    begin = low + (high - low) * rng.random(300)
    end = np.minimum(begin + 10 ** rng.uniform(-6, 0, 300), high)
    values, upper = bounder.bounds(begin, end)
    for part in (0.0, 1e-6, 0.2, 0.5, 0.77, 1.0):
        tau = magnitudes(model, chi, trajectory, begin + part * (end - begin))
        assert (tau <= upper + 1e-10).all()
        if part == 0.5:
            np.testing.assert_allclose(values, tau, atol=1e-9)


def test_a_reversal_counts_the_whole_of_coulomb_friction() -> None:
    robot = arm("scara_2r")
    model = build_model(robot, ("Fcm",), "motor")
    chi = np.array([3.0, 5.0])
    trajectory = quintic([[0.0, 1.0], [0.2, 0.2]], 1.0, names_of(robot))  # the second joint never moves
    certificate = certify([TorqueBounder(torque_graph(model, chi, "motor"), trajectory, np.array([9.0, 9.0]))],
                          breaks(trajectory))  # fmt: skip
    np.testing.assert_allclose([finding.worst for finding in certificate.findings], [3.0, 5.0], rtol=1e-9)


def test_friction_that_depends_on_the_direction_has_two_ends() -> None:
    model = build_model(arm("scara_2r"), ("Fcam",), "motor")
    found = directions_of(model.regressor)
    np.testing.assert_array_equal(np.abs(found.arguments), np.eye(2)[np.argmax(np.abs(found.arguments), axis=1)])
    for signs in ([1, 1], [1, -1], [-1, -1]):
        matrix = found.constant + np.tensordot(found.arguments @ np.array(signs), found.factors, axes=1)
        np.testing.assert_allclose(matrix, np.array(model.regressor(np.zeros(2), np.array(signs), np.zeros(2))))


def test_joint_torques_leave_the_motors_friction_out() -> None:
    robot = arm("kuka_lwr4")
    model = build_model(robot, EFFECTS["kuka_lwr4"], "both")
    chi = parameters_of(model)
    trajectory = random_trajectory("fourier", names_of(robot), seed=9)
    time = np.random.default_rng(3).uniform(0, trajectory.duration, 2000)
    worst = {}
    for side in ("motor", "joint"):
        bounder = TorqueBounder(torque_graph(model, chi, side), trajectory, np.full(7, 50.0), " (test)")
        worst[side] = np.array([finding.worst for finding in certify([bounder], breaks(trajectory)).findings])
        largest = magnitudes(model, chi, trajectory, time, side).max(axis=1)
        assert (largest <= worst[side]).all()
        np.testing.assert_allclose(worst[side], largest, rtol=0.05, atol=0.05)
        assert bounder.names[0].endswith("(test)")
    assert (np.abs(worst["motor"] - worst["joint"]) > 0.1).any()


def test_a_payload_counts_only_when_it_is_carried() -> None:
    robot = arm("ur10e")
    model = build_model(robot, ("inertia",), "motor", "paired")
    chi = np.concatenate([inertias_of(robot), [0.1, 0.0, 0.01, 0.12, 0.0, 0.09, 0.3, 0.2, 0.5, 6.0]])
    trajectory = random_trajectory("quintic", names_of(robot), seed=2)
    frame = robot.frame(model.payload_link)
    heavier = inertias_of(robot)
    heavier[10 * frame.body - 10 : 10 * frame.body] += moved_parameters(
        chi[-10:], *transform_from_placement(frame.placement)
    )
    plain = build_model(robot, ("inertia",), "motor")
    expected = {True: heavier, False: inertias_of(robot)}
    for loaded, inertias in expected.items():
        bounder = TorqueBounder(torque_graph(model, chi, "motor", loaded=loaded), trajectory, np.full(6, 99.0))
        same = TorqueBounder(torque_graph(plain, inertias, "motor"), trajectory, np.full(6, 99.0))
        begin, end = np.array([0.1, 0.3]), np.array([0.11, 0.3001])
        np.testing.assert_allclose(bounder.bounds(begin, end)[0], same.bounds(begin, end)[0], atol=1e-9)
        regressor = model.regressor if loaded else model.unloaded_regressor
        there = trajectory.at(0.5 * (begin + end))
        for column in range(2):
            tau = np.array(regressor(there.q[:, column], there.qd[:, column], there.qdd[:, column])) @ chi
            np.testing.assert_allclose(bounder.bounds(begin, end)[0][:, column], np.abs(tau), atol=1e-9)


def test_base_parameters_give_the_same_bounds_as_the_standard_ones() -> None:
    robot = arm("staubli_tx40")
    model = build_model(robot, EFFECTS["staubli_tx40"], "motor")
    chi = parameters_of(model)
    base = base_parameters(model)
    regrouped = np.zeros(len(chi))
    regrouped[list(base.base_columns)] = base.regrouping @ chi
    trajectory = random_trajectory("fourier", names_of(robot), seed=5)
    worst = []
    for values in (chi, regrouped):
        bounder = TorqueBounder(torque_graph(model, values, "motor"), trajectory, np.full(6, 40.0))
        worst.append([finding.worst for finding in certify([bounder], breaks(trajectory)).findings])
    np.testing.assert_allclose(worst[0], worst[1], atol=1e-4)


@pytest.mark.parametrize("name", ["ur10e", "staubli_tx40"])
def test_uncertain_parameters_add_deviations_to_the_torque(name: str) -> None:
    robot = arm(name)
    model = build_model(robot, EFFECTS[name], "motor")
    chi = parameters_of(model)
    rng = np.random.default_rng(6)
    mixing = rng.normal(size=(len(chi), 12)) * 0.03 * np.abs(chi)[:, None]
    covariance = mixing @ mixing.T
    trajectory = random_trajectory("approached", names_of(robot), seed=3)
    graph = torque_graph(model, chi, "motor", covariance=covariance, sigmas=3.0)
    certificate = certify([TorqueBounder(graph, trajectory, np.full(6, 60.0))], breaks(trajectory))

    def with_deviation(time: np.ndarray) -> np.ndarray:
        there = trajectory.at(time)
        columns = zip(there.q.T, there.qd.T, there.qdd.T, strict=True)
        rows = np.array([np.array(model.regressor(*column)) for column in columns])
        return (np.abs(rows @ chi) + 3.0 * np.linalg.norm(rows @ mixing, axis=2)).T

    largest = with_deviation(rng.uniform(0, trajectory.duration, 2000)).max(axis=1)
    for row, finding in enumerate(certificate.findings):
        assert largest[row] <= finding.worst + 1e-9
        near = with_deviation(instants_near(trajectory, finding.instant, np.zeros(0), count=41))[row].max()
        assert finding.worst - near <= 3e-5 * 60.0


def test_joints_without_a_limit_are_left_out() -> None:
    robot = arm("scara_2r")
    model = build_model(robot, EFFECTS["scara_2r"], "motor")
    trajectory = random_trajectory("fourier", names_of(robot), seed=1)
    bounder = TorqueBounder(torque_graph(model, parameters_of(model), "motor"), trajectory, np.array([np.inf, 7.0]))
    assert bounder.names == (f"torque of {robot.actuated[1].joint.name}",)
    assert bounder.bounds(np.array([0.0]), np.array([0.1]))[0].shape == (1, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"side": "both"}, "torque side is 'both'; allowed: motor, joint"),
        ({"covariance": -np.eye(28), "sigmas": 1.0}, "semi-definite"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(change: dict[str, object], message: str) -> None:
    model = build_model(arm("scara_2r"), EFFECTS["scara_2r"], "motor")
    given: dict[str, object] = {"chi": np.ones(len(model.names)), "side": "motor"} | change
    with pytest.raises(DesignError, match=message):
        torque_graph(model, given.pop("chi"), given.pop("side"), **given)  # type: ignore[arg-type]


def test_limits_that_are_not_above_zero_are_refused() -> None:
    robot = arm("scara_2r")
    model = build_model(robot, ("Fcm",), "motor")
    trajectory = random_trajectory("fourier", names_of(robot), seed=1)
    with pytest.raises(DesignError, match="torque limits"):
        TorqueBounder(torque_graph(model, np.ones(2), "motor"), trajectory, np.array([1.0, 0.0]))
