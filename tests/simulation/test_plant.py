"""The simulated arm obeys the physics it was written from, and keeps its books of energy."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from steelyard.errors import SimulationError
from steelyard.model import build_model, stacked_regressor
from steelyard.motion import quintic
from steelyard.physics import energy_function
from steelyard.robot import INERTIAL_NAMES, Robot, catalogue_names, load_robot
from steelyard.simulation import Experiment, Noise, SimulatedRun, Simulator, simulate, simulate_together
from steelyard.simulation.compiled_plant import CompiledStep

SIMULABLE = [name for name in catalogue_names() if "inertias" in load_robot(name).carries]
IN_EVERY_RUN = ("scara_2r", "kuka_ir361", "staubli_tx40", "franka_panda")
"""Arms with a spring, coupled gears, friction of motors and friction of links; the others are for ``make test-all``."""


def motion_for(robot: Robot, moves: int = 3, seconds: float = 1.0, seed: int = 0):
    """Return a few quintic moves in the middle of the joint ranges."""
    rng = np.random.default_rng(seed)
    limits = [body.joint.limits for body in robot.actuated]
    middle = np.array([(limit.lower + limit.upper) / 2 for limit in limits])
    reach = np.array([min(limit.upper - limit.lower, 2.0) / 4 for limit in limits])
    points = middle[:, None] + reach[:, None] * rng.uniform(-1, 1, (len(limits), moves + 1))
    return quintic(points, seconds, [body.joint.name for body in robot.actuated])


def held_torques(run: SimulatedRun) -> np.ndarray:
    """Return the torques held from each control instant on (n, K), of which means of neighbours are recorded."""
    held = run.motor_torque[0].copy()
    for k in range(1, held.shape[1]):
        held[:, k] = 2 * held[:, k] - held[:, k - 1]
    return held


def frictionless(name: str) -> Robot:
    robot = load_robot(name)
    return replace(robot, values=MappingProxyType({}), gear_couplings=(), springs=())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in IN_EVERY_RUN else pytest.mark.large) for name in SIMULABLE]
)
def test_recorded_torques_are_the_model_s_at_the_true_parameters(name):
    """Forward dynamics, friction, springs, couplings and the integrator agree with the regressor, row by row."""
    robot = load_robot(name)
    run = simulate(robot, motion_for(robot, moves=2), Experiment(record_rate=100, saturate=False))
    effects = [effect for effect in run.effects if effect != "payload"]
    model = build_model(robot, effects, measured="both", sign_width=run.experiment.sign_width or 0.0)
    rows = stacked_regressor(model.regressor, run.q[0], run.qd[0], run.qdd[0])
    predicted = (rows @ [run.truth[parameter] for parameter in model.names]).reshape(2, len(robot.actuated), -1)
    scale = np.abs(run.motor_torque).max()
    np.testing.assert_allclose(predicted[0], run.motor_torque[0], rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(predicted[1], run.joint_torque[0], rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("plant", ["compiled", "mujoco"])
def test_recorded_torques_are_in_time_with_the_positions(plant):
    """A held torque jumps where it is recorded: the mean of before and after moves the arm around that instant."""
    robot = frictionless("scara_2r")
    experiment = Experiment(control="pd", control_rate=100, record_rate=100, saturate=False, plant=plant)
    run = simulate(robot, motion_for(robot), experiment)
    model = build_model(robot, ["inertia"], measured="motor")
    truth = [run.truth[parameter] for parameter in model.names]

    def predicted(shift: int) -> np.ndarray:
        around = [run.q[0, :, 1 + k + shift : run.q.shape[2] - 2 + k + shift] for k in (-1, 0, 1)]
        qd, qdd = (around[2] - around[0]) * 50, (around[2] - 2 * around[1] + around[0]) * 1e4
        return (stacked_regressor(model.regressor, around[1], qd, qdd) @ truth).reshape(2, -1)

    recorded = run.motor_torque[0, :, 1:-2]
    now, next_ = (np.linalg.norm(predicted(shift) - recorded) for shift in (0, 1))
    # Half a period early, as the command alone would be, both were as far away.
    assert now < 0.02 * np.linalg.norm(recorded)
    assert next_ > 5 * now


@pytest.mark.parametrize("name", ["scara_2r", "kuka_lwr4", pytest.param("franka_panda", marks=pytest.mark.large)])
def test_without_friction_the_work_of_the_motors_is_the_change_of_energy(name):
    """Torques are constant between samples, so their work is exactly tau . (q[k+1] - q[k])."""
    robot = frictionless(name)
    run = simulate(robot, motion_for(robot), Experiment(control="pd", saturate=False))
    energy = energy_function(robot)
    inertias = [run.truth[f"{symbol}{body.number}"] for body in robot.bodies for symbol in INERTIAL_NAMES]
    total = np.array(energy(run.q[0], run.qd[0], inertias)).sum(axis=0)
    work = (held_torques(run)[:, :-1] * np.diff(run.q[0], axis=1)).sum(axis=0)
    scale = np.abs(np.diff(total)).max()
    np.testing.assert_allclose(np.diff(total), work, rtol=0, atol=1e-8 * scale)


def test_with_friction_the_energy_that_is_lost_is_friction_s_work():
    robot = load_robot("scara_2r")
    run = simulate(robot, motion_for(robot), Experiment(control="pd"))
    inertias = [run.truth[f"{symbol}{body.number}"] for body in robot.bodies for symbol in INERTIAL_NAMES]
    total = np.array(energy_function(robot)(run.q[0], run.qd[0], inertias)).sum(axis=0)
    work = (held_torques(run)[:, :-1] * np.diff(run.q[0], axis=1)).sum()
    viscous, dry = (np.array([[run.truth[f"{symbol}{k}"]] for k in (1, 2)]) for symbol in ("Fvm", "Fcm"))
    power = (viscous * run.qd[0] ** 2 + dry * run.qd[0] * np.tanh(run.qd[0] / run.experiment.sign_width)).sum(axis=0)
    lost = np.trapezoid(power, run.time)
    assert lost > 0.1
    assert work - (total[-1] - total[0]) == pytest.approx(lost, rel=1e-4)


def test_the_integrator_is_of_order_four():
    robot = frictionless("scara_2r")
    path = motion_for(robot, moves=2, seconds=0.5)

    def last(rate: float) -> np.ndarray:
        experiment = Experiment(control="pd", control_rate=50, record_rate=50, plant_rate=rate, bandwidth=3)
        return simulate(robot, path, experiment).q[0, :, -1]

    exact = last(50 * 256)
    errors = [np.abs(last(50 * steps) - exact).max() for steps in (2, 4, 8)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 4, atol=0.35)


def test_a_seed_gives_the_same_run_alone_together_and_on_any_number_of_threads():
    robot = load_robot("scara_2r")
    experiment = Experiment(control="pd", record_rate=100, disturbance=Noise("band_limited", (2.0, 0.1), 20.0))
    path = motion_for(robot, moves=1)
    together = simulate(robot, path, experiment, seeds=range(150), threads=2)
    for seed in (0, 7, 149):
        alone = simulate(robot, path, experiment, seeds=(seed,))
        np.testing.assert_array_equal(alone.q[0], together.q[seed])
        np.testing.assert_array_equal(alone.motor_torque[0], together.motor_torque[seed])
    assert not np.array_equal(together.q[0], together.q[1])


def test_a_command_waits_for_the_stated_delay():
    robot = frictionless("scara_2r")
    path = motion_for(robot, moves=1)
    prompt = simulate(robot, path, Experiment(control="pd", bandwidth=2))
    late = simulate(robot, path, Experiment(control="pd", bandwidth=2, delay=0.003))
    assert not late.motor_torque[0, :, :3].any()
    np.testing.assert_allclose(late.motor_torque[0, :, 3], prompt.motor_torque[0, :, 0], atol=1e-12)


def test_the_controller_sees_the_encoder_s_steps():
    robot = frictionless("scara_2r")
    quantum = 0.01
    experiment = Experiment(control="pd", kp=(100, 10), kd=(0, 0), encoder_quantum=quantum, saturate=False)
    run = simulate(robot, motion_for(robot, moves=1), experiment)
    encoder = quantum * np.floor(run.q[0] / quantum + 0.5)
    np.testing.assert_allclose(held_torques(run), np.array([[100], [10]]) * (run.reference - encoder), atol=1e-9)


def test_torques_stop_at_the_effort_limits():
    robot = load_robot("scara_2r")
    path = motion_for(robot, moves=1, seconds=0.12)
    free = simulate(robot, path, Experiment(control="pd", bandwidth=20, saturate=False))
    held = simulate(robot, path, Experiment(control="pd", bandwidth=20))
    limit = np.array([[100.0], [20.0]])
    assert (np.abs(free.motor_torque[0]) > limit).any()
    assert (np.abs(held.motor_torque[0]) <= limit).all()


def test_a_payload_adds_its_weight():
    robot = load_robot("kuka_ir361")
    robot = replace(robot, payloads={"box": (0.02, 0, 0.003, 0.03, 0, 0.01, 0.1, 0.02, 0.05, 4.0)})
    q = np.array([0.2, 0.6, 0.3])
    still = quintic(np.column_stack([q, q]), 0.5, [body.joint.name for body in robot.actuated])
    held = [simulate(robot, still, Experiment(payload=payload)).joint_torque[0, :, -1] for payload in (None, "box")]
    model = build_model(robot, ["inertia"], "joint", payload="loaded")
    columns = np.array(model.regressor(q, np.zeros(3), np.zeros(3)))[:, -10:]
    assert np.abs(held[1] - held[0]).max() > 1
    np.testing.assert_allclose(held[1] - held[0], columns @ robot.payloads["box"], atol=1e-6)


def test_the_truth_of_a_loaded_run_keeps_arm_and_payload_apart():
    """The same truth explains rows without and with payload through a paired model."""
    robot = load_robot("kuka_lwr4")
    run = simulate(robot, motion_for(robot, moves=1), Experiment(record_rate=100, payload="P5"))
    assert run.truth["ML"] == 4.6136
    assert run.truth["M7"] == 0.285154574
    model = build_model(robot, run.effects, "both", payload="paired", sign_width=run.experiment.sign_width or 0.0)
    rows = stacked_regressor(model.regressor, run.q[0], run.qd[0], run.qdd[0])
    predicted = (rows @ [run.truth[name] for name in model.names]).reshape(2, 7, -1)
    np.testing.assert_allclose(predicted[0], run.motor_torque[0], rtol=0, atol=1e-8)


def test_computed_torque_follows_the_reference_on_a_known_plant():
    robot = load_robot("kuka_lwr4")
    run = simulate(robot, motion_for(robot, moves=2), Experiment(record_rate=100))
    assert np.abs(run.q[0] - run.reference).max() < 1e-4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"control": "pid"}, r"control is 'pid'; allowed: pd, computed_torque.*did you mean 'pd'"),
        ({"record_rate": 300}, "control_rate 1000 Hz must be a whole multiple of record_rate 300 Hz"),
        ({"delay": 0.0015}, r"delay 0.0015 s: whole control periods of 0.001 s"),
        ({"kp": (1.0, 1.0)}, "kp and kd belong together"),
        ({"bandwidth": float("nan")}, "bandwidth is nan; allowed: a finite number above 0"),
        ({"plant_rate": -5.0}, "plant_rate is -5.0; allowed: a finite number above 0"),
    ],
)
def test_a_senseless_experiment_is_refused(settings, message):
    with pytest.raises(SimulationError, match=message):
        Experiment(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kp": (1.0,), "kd": (1.0,)}, r"kp \[1.0\]: 2 finite numbers are needed"),
        ({"payload": "brick"}, "knows no payload 'brick'; it knows: none"),
        ({"encoder_quantum": (0.1, 0.1, 0.1)}, "encoder_quantum"),
        (
            {"plant_rate": 1000.0, "sign_width": 1e-4},
            "friction of joint_2 with sign_width 0.0001 needs",
        ),
        ({"disturbance": Noise("white", (1.0,))}, "disturbance std .* 2 numbers are needed"),
        ({"kp": (1e7, 1e7), "kd": (-1e4, -1e4), "saturate": False}, "diverged before .* lower the gains"),
    ],
)
def test_an_experiment_that_does_not_fit_the_arm_is_refused(settings, message):
    robot = load_robot("scara_2r")
    with pytest.raises(SimulationError, match=message):
        simulate(robot, motion_for(robot, moves=1), Experiment(**{"control": "pd", **settings}))


def test_an_arm_without_inertias_cannot_be_simulated():
    robot = load_robot("kuka_kr270")
    path = quintic(np.tile([0.0, 0.1], (6, 1)), 1.0, [body.joint.name for body in robot.actuated])
    with pytest.raises(SimulationError, match="'kuka_kr270' cannot be simulated: no inertia of link"):
        simulate(robot, path)


def test_a_trajectory_of_other_joints_is_refused():
    path = quintic(np.tile([0.0, 0.1], (2, 1)), 1.0, ["a", "b"])
    with pytest.raises(SimulationError, match="the trajectory moves a, b; robot 'scara_2r' has joint_1, joint_2"):
        simulate(load_robot("scara_2r"), path)


def test_runs_of_different_motions_gains_and_payloads_are_columns_of_one_loop_and_the_same_to_the_bit(monkeypatch):
    robot = load_robot("scara_2r")
    loaded = replace(robot, payloads={"box": (0.01, 0, 0, 0.01, 0, 0.01, 0.1, 0, 0.05, 2.0)})
    quiet = Experiment(record_rate=100, plant_rate=10_000, sign_width=0.02)
    noisy = replace(
        quiet, bandwidth=8.0, disturbance=Noise("white", (0.5,) * 2), motor_noise=Noise("white", (0.1,) * 2)
    )
    cases = [
        (loaded, motion_for(robot, seed=1), quiet),
        (loaded, motion_for(robot, seed=2), replace(noisy, payload="box")),
        (loaded, motion_for(robot, seed=3, moves=2), noisy),  # shorter: not in step with the others
        (loaded, motion_for(robot, seed=4), replace(noisy, plant="ideal")),
        (loaded, motion_for(robot, seed=5), replace(noisy, encoder_quantum=1e-4)),
    ]
    simulators = [Simulator(*case) for case in cases]
    columns = []
    run = CompiledStep.run
    monkeypatch.setattr(CompiledStep, "run", lambda *args: columns.append(args[3].shape[1]) or run(*args))
    together = simulate_together(simulators, range(5))
    assert columns == [3, 1]
    monkeypatch.undo()
    for seed, (case, found) in enumerate(zip(cases, together, strict=True)):
        alone = simulate(*case, [seed])
        assert found.seeds == (seed,)
        assert found.experiment.payload == case[2].payload
        for name in ("q", "qd", "qdd", "motor_torque", "joint_torque"):
            np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
