"""A closed loop around any parameters of a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import SimulationError
from steelyard.model import base_parameters, build_model
from steelyard.motion import quintic
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, ModelLoop, OutlineStream, model_loop, simulate, simulate_model
from steelyard.simulation.compiled_plant import CompiledStep

EXPERIMENT = Experiment(control="pd", kp=(400, 12), kd=(70, 1.6), record_rate=100, sign_width=0.01)
PATH = quintic([[0, 0.4, -0.3], [0, 2.0, -1.5]], 0.5, ["joint_1", "joint_2"])


def reference(trajectory, rate: float = 1000.0) -> np.ndarray:
    samples = trajectory.sample(rate)
    whole = samples.time.size // 10 * 10
    return np.vstack([samples.q, samples.qd, samples.qdd])[:, :whole]


def true_values(run, model) -> np.ndarray:
    return np.array([run.truth[name] for name in model.names])


@pytest.mark.parametrize("control", ["pd", "computed_torque"])
def test_the_true_parameters_give_the_arm_s_own_run(control):
    gains = {} if control == "computed_torque" else {"kp": (400, 12), "kd": (70, 1.6)}
    experiment = Experiment(control=control, record_rate=100, sign_width=0.01, saturate=False, **gains)
    run = simulate(load_robot("scara_2r"), PATH, experiment)
    model = build_model(run.robot, run.effects)
    again = simulate_model(model, true_values(run, model), reference(PATH), experiment)
    np.testing.assert_allclose(again.q[0], run.q[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(again.motor_torque[0], run.motor_torque[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["scara_2r", pytest.param("kuka_lwr4", marks=pytest.mark.large)])
def test_base_parameters_move_the_arm_as_standard_ones_do(name):
    robot = load_robot(name)
    middle = np.array([(b.joint.limits.lower + b.joint.limits.upper) / 2 for b in robot.actuated])
    away = 0.3 * np.random.default_rng(0).uniform(-1, 1, len(middle))
    path = quintic(np.column_stack([middle, middle + away]), 0.5, [b.joint.name for b in robot.actuated])
    experiment = Experiment(record_rate=100, saturate=False, sign_width=0.05)
    run = simulate(robot, path, experiment)
    model = build_model(robot, run.effects, measured="both")
    base = base_parameters(model)
    values = np.zeros(len(model.names))
    values[list(base.base_columns)] = base.regrouping @ true_values(run, model)
    again = simulate_model(model, values, reference(path), experiment)
    np.testing.assert_allclose(again.q[0], run.q[0], rtol=0, atol=1e-8)


def test_columns_may_have_different_parameters_and_each_runs_as_if_alone():
    model = build_model(load_robot("scara_2r"))
    run = simulate(load_robot("scara_2r"), PATH, EXPERIMENT)
    truth = true_values(run, model)
    heavy = truth * np.where([name == "ZZ2" for name in model.names], 1.5, 1.0)
    loop = ModelLoop(model, EXPERIMENT)
    both = loop.run(np.column_stack([truth, heavy]), reference(PATH))
    assert np.abs(both.q[0] - both.q[1]).max() > 1e-3
    for column, values in enumerate((truth, heavy)):
        np.testing.assert_array_equal(loop.run(values, reference(PATH)).q[0], both.q[column])


def test_a_controller_keeps_what_it_believes_whatever_the_plant_is():
    """Computed torque with the plant's own parameters follows nearly exactly; with others it lags."""
    experiment = Experiment(record_rate=100, sign_width=0.01)
    model = build_model(load_robot("scara_2r"))
    truth = true_values(simulate(load_robot("scara_2r"), PATH, experiment), model)
    loop, report = ModelLoop(model, experiment), reference(PATH)
    errors = [
        np.abs(loop.run(truth, report, believed).q[0] - report[:2, ::10]).max()
        for believed in (None, truth, 0.5 * truth)
    ]
    assert errors[0] == errors[1] < 2e-3
    assert errors[2] > 10 * errors[0]


def test_a_compiled_step_is_used_again_until_friction_outgrows_it():
    experiment = replace(EXPERIMENT, sign_width=None)
    model = build_model(load_robot("scara_2r"))
    truth = true_values(simulate(load_robot("scara_2r"), PATH, experiment), model)
    rubbing = truth * np.where([name.startswith("Fc") for name in model.names], 50.0, 1.0)
    loop = ModelLoop(model, experiment)
    loop.run(truth, reference(PATH))
    late = loop.run(rubbing, reference(PATH)).q
    np.testing.assert_array_equal(late, ModelLoop(model, experiment).run(rubbing, reference(PATH)).q)


def test_loops_around_equal_models_share_what_is_compiled(monkeypatch):
    made = []
    monkeypatch.setattr(model_loop, "CompiledStep", lambda loop: made.append(loop) or CompiledStep(loop))
    experiment = replace(EXPERIMENT, sign_width=None, bandwidth=4.75)  # of no other test
    robot = load_robot("scara_2r")
    model, equal = build_model(robot), replace(build_model(robot))
    assert equal is not model
    truth = true_values(simulate(robot, PATH, experiment), model)
    first = ModelLoop(model, experiment).run(truth, reference(PATH)).q
    np.testing.assert_array_equal(ModelLoop(equal, experiment).run(truth, reference(PATH)).q, first)
    ModelLoop(model, experiment).run(1.01 * truth, reference(PATH))
    assert len(made) == 1
    ModelLoop(model, replace(experiment, kp=(200, 6))).run(truth, reference(PATH))
    assert len(made) == 2


def test_a_disturbance_pushes_the_arm_and_the_controller_holds_against_it():
    model = build_model(load_robot("scara_2r"))
    experiment = replace(EXPERIMENT, sign_width=0.5)
    truth = true_values(simulate(load_robot("scara_2r"), PATH, experiment), model)
    truth = np.where([name.startswith("F") for name in model.names], 0.0, truth)
    report = np.zeros_like(reference(PATH))
    push = np.array([[2.0], [0.1]]) * np.ones(report.shape[1])
    q = ModelLoop(model, experiment).run(truth, report, disturbance=push).q[0]
    # At rest a PD loop gives way by torque over gain.
    np.testing.assert_allclose(q[:, -1], [2.0 / 400, 0.1 / 12], rtol=0.02)


@pytest.mark.parametrize("control", ["pd", "computed_torque"])
def test_a_motion_followed_in_parts_gives_the_bits_of_the_whole(control):
    """Delay and encoder velocities live in the controller: both are carried on, and so are waiting commands."""
    gains = {} if control == "computed_torque" else {"kp": (400, 12), "kd": (70, 1.6)}
    experiment = Experiment(control=control, record_rate=100, sign_width=0.01, delay=0.003, velocity="encoder", **gains)
    model = build_model(load_robot("scara_2r"))
    truth = true_values(simulate(load_robot("scara_2r"), PATH, experiment), model)
    values = np.column_stack([truth, 1.1 * truth])
    loop, report = ModelLoop(model, experiment), reference(PATH)
    push = np.random.default_rng(0).normal(size=(2, report.shape[1]))
    whole = loop.run(values, report, disturbance=push)
    outline = OutlineStream(2, report.shape[1], 10)
    for part in np.split(report, [10, 500, 510], axis=1):
        outline.push(part[:2])
    np.testing.assert_array_equal(outline.outline().span, np.ptp(report[:2, ::10], axis=1))
    following = loop.begin(values, outline.outline())
    cut = zip(*(np.split(each, [10, 500, 510], axis=1) for each in (report, push)), strict=True)
    parts = [following.follow(*part) for part in cut]
    for name in ("q", "qd", "qdd", "motor_torque", "joint_torque"):
        joined = np.concatenate([getattr(part, name) for part in parts], axis=2)
        np.testing.assert_array_equal(joined, getattr(whole, name))


def test_an_outline_needs_the_columns_that_were_announced():
    outline = OutlineStream(2, 5)
    outline.push(np.zeros((2, 4)))
    with pytest.raises(SimulationError, match="got 4 columns, announced were 5"):
        outline.outline()


def test_parameters_of_no_arm_and_loops_that_diverge_are_said_and_never_become_nan():
    model = build_model(load_robot("scara_2r"))
    truth = true_values(simulate(load_robot("scara_2r"), PATH, EXPERIMENT), model)
    flipped = truth * np.where([name == "ZZ2" for name in model.names], -1.0, 1.0)
    with pytest.raises(SimulationError, match="inertia matrix of these parameters is not positive definite"):
        simulate_model(model, flipped, reference(PATH), EXPERIMENT)
    wild = replace(EXPERIMENT, kp=(-4000, -120))
    with pytest.raises(SimulationError, match="the simulation of the model diverged"):
        simulate_model(model, truth, reference(PATH), wild)
    pushed = truth * np.where([name == "Fvm1" for name in model.names], -5000.0, 1.0)
    with pytest.raises(SimulationError, match="with parameters 2 diverged"):
        ModelLoop(model, EXPERIMENT).run(np.column_stack([truth, pushed]), reference(PATH))


def test_what_does_not_fit_is_refused_at_the_door():
    model = build_model(load_robot("scara_2r"))
    report, values = reference(PATH), np.ones(len(model.names))
    with pytest.raises(SimulationError, match="values: got 3, needed are"):
        simulate_model(model, np.ones(3), report, EXPERIMENT)
    with pytest.raises(SimulationError, match=r"values: .*finite"):
        simulate_model(model, values * np.nan, report, EXPERIMENT)
    with pytest.raises(SimulationError, match="a multiple of 10 columns"):
        simulate_model(model, values, report[:, :-1], EXPERIMENT)
    with pytest.raises(SimulationError, match="reference: got values that are no finite numbers"):
        simulate_model(model, values, np.full_like(report, np.inf), EXPERIMENT)
    with pytest.raises(SimulationError, match="without link inertias"):
        ModelLoop(build_model(load_robot("scara_2r"), ["Fvm"]), EXPERIMENT)
