"""Dahl and load-dependent friction of motors that turn with two joints: planted, found again, exported, refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from steelyard.consistency import ConsistencySettings
from steelyard.errors import ModelError, SimulationError
from steelyard.excitation import design
from steelyard.export import IdentifiedArm
from steelyard.export.dynamics import arm_dynamics
from steelyard.export.numpy_module import numpy_file
from steelyard.identification import Settings, fit_arm, identify
from steelyard.model import build_model
from steelyard.motion import fourier
from steelyard.observe import Preparation
from steelyard.robot import GearCoupling, Robot, load_robot
from steelyard.signals import DahlElements
from steelyard.simulation import Experiment, Noise, Simulator, recording_of, simulate
from steelyard.simulation.experiment import Plant
from steelyard.simulation.tuning import friction_decays

RATIO = 0.7
PLANTED = {"Fd3c2": 0.4, "Fgc2": 0.15}
LAWS = ("Fvvc", "Fvrc", "Fvtc", "Fs3c", "Fgc", "Fd2c", "Fd5c")


def coupled_arm(values: dict[str, float] | None = None) -> Robot:
    """Return P1's arm on a wall, its second motor on the base: it turns with both joints."""
    robot = load_robot("scara_2r").with_gravity((0.0, -9.81, 0.0))
    coupled = {"Iac2": 0.05, "Fvc2": 0.05, "Fcc2": 0.3}
    defaults = replace(robot.defaults, effects=(*robot.defaults.effects, "coupling"))
    return replace(
        robot, gear_couplings=(GearCoupling("joint_2", "joint_1", RATIO),), defaults=defaults,
        values={**robot.values, **coupled, **(values or {})},
    )  # fmt: skip


def motion(joints=("joint_1", "joint_2"), seed: int = 3, duration: float = 10.0):
    sin, cos = np.random.default_rng(seed).uniform(-1, 1, (2, len(joints), 6)) / np.arange(1, 7) * 1.5
    return fourier([0.0] * len(joints), sin, cos, duration, list(joints))


def recorded(robot: Robot, plant: Plant = "ideal", noise: float = 0.0, seed: int = 0):
    chosen = Noise("white", (noise, 0.2 * noise)) if noise else None
    width = 0.002 if plant == "compiled" else None
    experiment = Experiment(record_rate=500, plant=plant, saturate=False, motor_noise=chosen, sign_width=width)
    path = motion(robot.joint_names, seed + 3, 5.0 if plant == "compiled" else 10.0)
    return recording_of(simulate(robot, path, experiment, [seed]))


def states_written_out(q: np.ndarray, length: float) -> np.ndarray:
    """Return the states of one Dahl element along a coordinate (N,), step by step."""
    z, found = 0.0, [0.0]
    for step in np.diff(q):
        z = np.sign(step) + (z - np.sign(step)) * np.exp(-abs(step) / length)
        found.append(z)
    return np.array(found)


def wrist(values: dict[str, float]) -> Robot:
    """Return a TX40 whose motors 6 and 5 turn with the joint before, with drives, without friction but for values."""
    robot = load_robot("staubli_tx40")
    couplings = (GearCoupling("joint_6", "joint_5", -0.6), GearCoupling("joint_5", "joint_4", 0.4))
    drives = {name: value for name, value in robot.values.items() if name.startswith("Ia")}
    return replace(robot, gear_couplings=couplings, values={**drives, "Iac6": 0.01, "Iac5": 0.02, **values})


def test_friction_of_motors_is_that_of_their_own_torques_and_coordinates():
    experiment = Experiment(control_rate=500, record_rate=500, plant="ideal", saturate=False)
    added = {"Fgc6": 0.3, "Fgc5": 0.2, "Fd4c6": 0.5, "Fd4c5": 0.7}
    path = motion(load_robot("staubli_tx40").joint_names, duration=2.0)
    plain, run = (simulate(wrist(values), path, experiment) for values in ({}, added))
    C = np.eye(6)
    C[5, 4], C[4, 3] = -0.6, 0.4
    motor_torques, turned, turning = np.linalg.solve(C.T, plain.motor_torque[0]), C @ run.q[0], C @ run.qd[0]
    expected = np.zeros_like(turned)
    for row, load, dahl in ((5, 0.3, 0.5), (4, 0.2, 0.7)):
        expected[row] = load * np.abs(motor_torques[row]) * np.sign(turning[row])
        expected[row] += dahl * states_written_out(turned[row], 0.03)
    np.testing.assert_allclose(run.motor_torque[0] - plain.motor_torque[0], C.T @ expected, atol=1e-9)
    assert np.abs(expected).max() > 1.0


def test_states_of_further_coordinates_follow_those_of_the_joints():
    q = np.cumsum(np.random.default_rng(0).normal(size=(2, 300)), axis=1) * 1e-3
    robot = coupled_arm()
    found = DahlElements((0.01, 0.1), 2, robot.friction_coordinates()).push(q)
    np.testing.assert_array_equal(found[[0, 1, 3, 4]], DahlElements((0.01, 0.1), 2).push(q))
    for row, length in ((2, 0.01), (5, 0.1)):
        np.testing.assert_allclose(found[row], states_written_out(q[1] + RATIO * q[0], length), atol=1e-12)


@pytest.mark.parametrize("plant", ["ideal", "compiled"])
def test_planted_friction_is_found(plant):
    recording = recorded(coupled_arm(PLANTED), plant)
    preparation = Preparation(mode="none", decimation=5, standstill=0.01)
    settings = Settings(effects=("+Fgc", "+Fd3c"), method="wls", preparation=preparation)
    estimate = fit_arm(coupled_arm(), [recording], settings).fit.estimate
    found = dict(zip(estimate.columns, estimate.values.tolist(), strict=True))
    np.testing.assert_allclose([found[name] for name in PLANTED], list(PLANTED.values()), rtol=0.05)
    assert found["Fcc2"] == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("values", [{"Fd3c2": 0.8}, pytest.param({"Fgc2": 0.3}, marks=pytest.mark.large)])
def test_it_is_chosen_where_it_is_planted(values):
    settings = Settings(select=True, bias_repeats=0, consistency=ConsistencySettings(draws=2))
    found = identify(coupled_arm(), [recorded(coupled_arm(values), noise=0.1)], settings=settings)
    assert found.selection is not None
    assert found.selection.steps[0].effect.rstrip("2") == next(iter(values)).rstrip("2")
    assert found.plausibility.impossible == ()


def test_candidates_of_coupled_motors_are_tried_where_there_are_such_motors():
    robot = replace(coupled_arm(), gear_couplings=())
    values = {name: value for name, value in robot.values.items() if name not in ("Iac2", "Fvc2", "Fcc2")}
    robot = replace(robot, values=values, defaults=load_robot("scara_2r").defaults)
    settings = Settings(select=True, bias_repeats=0, consistency=ConsistencySettings(draws=2))
    found = identify(robot, [recorded(robot, noise=0.1)], settings=settings)
    assert found.selection is not None
    with_motors = identify(coupled_arm(), [recorded(coupled_arm(), noise=0.1)], settings=settings).selection
    assert with_motors is not None
    assert with_motors.tried - found.selection.tried == 12  # three curved, load, two Stribeck, six Dahl


def test_beside_it_viscous_and_coulomb_friction_of_both_joints_may_be_negative():
    assert build_model(coupled_arm()).nonnegative_friction >= {"Fvm1", "Fcm1", "Fvm2", "Fcm2"}
    assert not build_model(coupled_arm(), ["+Fd3c"]).nonnegative_friction


@pytest.mark.parametrize(("size", "impossible"), [(0.8, []), (-0.8, ["friction of joint_2 (motor)"])])
def test_friction_of_a_motor_may_drive_one_joint_but_not_both_together(size, impossible):
    # Joint 2 moves against joint 1, and its motor mostly with joint 1: what brakes the motor drives joint 2.
    sin, cos = np.random.default_rng(5).uniform(-1, 1, (2, 2, 6)) / np.arange(1, 7)
    sin[1], cos[1] = 0.1 * sin[1] - 0.35 * sin[0], 0.1 * cos[1] - 0.35 * cos[0]
    path = fourier([0.0, 0.5], sin, cos, 10.0, ["joint_1", "joint_2"])
    none = dict.fromkeys(("Fvm1", "Fcm1", "Fvm2", "Fcm2", "Fvc2", "Fcc2"), 0.0)
    experiment = Experiment(record_rate=500, plant="ideal", saturate=False, motor_noise=Noise("white", (5e-3, 5e-3)))
    run = simulate(coupled_arm({**none, "Fvrc2": size}), path, experiment)
    assert np.mean(run.qd[0, 1] * np.sign(run.qd[0, 1] + RATIO * run.qd[0, 0])) < 0
    settings = Settings(effects=("+Fvrc",), bias_repeats=0)
    found = identify(coupled_arm(), [recording_of(run)], settings=settings)
    assert [one.what for one in found.plausibility.impossible] == impossible


def test_exported_friction_is_steady_and_says_so():
    robot = coupled_arm({f"{law}2": 0.1 * k for k, law in enumerate(LAWS, 1)})
    model = build_model(robot, [f"+{law}" for law in LAWS])
    dynamics = arm_dynamics(IdentifiedArm(robot, model))
    assert any("Dahl friction is that after long motion in one direction" in note for note in dynamics.notes)
    assert any("with the load without accelerations" in note for note in dynamics.notes)
    without = arm_dynamics(IdentifiedArm(coupled_arm(), build_model(coupled_arm())))
    q, qd = np.array([0.3, 0.4]), np.array([0.5, -0.2])
    got, plain = (np.array(one.functions["friction"](q, qd, one.values)).ravel() for one in (dynamics, without))
    rigid = build_model(robot, ["inertia"])
    static = np.array(rigid.regressor(q, qd, np.zeros(2))) @ [robot.parameters[name] for name in rigid.names]
    v, sizes = qd[1] + RATIO * qd[0], [abs(qd[1] + RATIO * qd[0]) ** power for power in (2, 1 / 2, 1 / 3)]
    torques = [*sizes, np.exp(-((v / 0.1) ** 2)), abs(static[1]), 1.0, 1.0]
    expected = np.sign(v) * sum(0.1 * k * torque for k, torque in enumerate(torques, 1))
    np.testing.assert_allclose(got - plain, [RATIO * expected, expected], rtol=1e-9)


def test_the_numpy_module_has_all_friction_of_coupled_motors():
    robot = coupled_arm({f"{law}2": 0.1 * k for k, law in enumerate(LAWS, 1)})
    arm = IdentifiedArm(robot, build_model(robot, [f"+{law}" for law in LAWS]))
    (file,) = numpy_file(arm)
    module: dict[str, Any] = {}
    exec(compile(file.content, "arm_dynamics", "exec"), module)
    q, qd = np.random.default_rng(1).normal(size=(2, 5, 2))
    dynamics = arm_dynamics(arm)
    expected = [
        np.array(dynamics.functions["friction"](*one, dynamics.values)).ravel() for one in zip(q, qd, strict=True)
    ]
    np.testing.assert_allclose(module["friction"](q, qd), expected, rtol=1e-12)


def test_the_integrator_follows_friction_along_the_coordinate_of_the_motor():
    model = build_model(coupled_arm(), ["inertia", "Fvvc", "Fs3c", "Fd3c"])
    values = np.array([{"Fvvc2": 0.2, "Fs3c2": 0.3, "Fd3c2": 0.4}.get(name, 0.0) for name in model.names])
    viscous, dry = friction_decays(model, values, np.diag([2.0, 0.5]))
    free = RATIO**2 / 2.0 + 1 / 0.5  # of both joints along the motor's coordinate
    speed = model.robot.bodies[1].joint.limits.velocity
    top = speed if np.isfinite(speed) else 5.0
    np.testing.assert_allclose(dry, [0, 0.3 * free])
    np.testing.assert_allclose(viscous, [0, 2 * 0.2 * top * free + np.sqrt(0.4 / 0.01 * free)])


def test_mujoco_refuses_it():
    pytest.importorskip("mujoco")
    robot = coupled_arm(PLANTED)
    without = {name: value for name, value in robot.values.items() if name not in ("Iac2", "Fvc2", "Fcc2", "Fgc2")}
    experiment = Experiment(record_rate=100, plant="mujoco", velocity="tachometer")
    with pytest.raises(SimulationError, match=r"plant 'mujoco': Fd3c2 = 0\.4 has no counterpart there"):
        Simulator(replace(robot, values=without), motion(), experiment)


@pytest.mark.parametrize("method", ["ekf", "ml"])
def test_methods_that_cannot_have_its_state_say_so(method):
    with pytest.raises(ModelError, match=r"effect 'Fd3c' .*has a state"):
        fit_arm(coupled_arm(), [recorded(coupled_arm())], Settings(effects=("+Fd3c",), method=method))


def test_a_design_refuses_its_state():
    with pytest.raises(ModelError, match=r"effect 'Fd1c' .*which the design of a motion cannot have"):
        design(coupled_arm(), effects=["inertia", "Fd1c"])
