"""Effects of real gears and set-ups: planted in simulation, found by identification, refused where they cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steelyard.effects import EFFECTS, FrictionConstants
from steelyard.errors import EstimateError, ModelError, ObservationError
from steelyard.excitation import design
from steelyard.export.dynamics import arm_dynamics
from steelyard.export.identified import IdentifiedArm
from steelyard.identification import Settings, fit_arm, identify, load_run, predict, write_run
from steelyard.identification.inputs import with_found_inertias
from steelyard.model import base_parameters, build_model
from steelyard.motion import fourier
from steelyard.observe import Preparation, resolve_preparation
from steelyard.robot import load_robot
from steelyard.robot.drives import joint_values
from steelyard.run import RunFolder
from steelyard.signals import DahlElements
from steelyard.simulation import Experiment, Noise, recording_of, simulate
from steelyard.simulation.experiment import Plant

PREPARATION = Preparation(mode="none", decimation=5, standstill=0.01)
FRICTION = {
    "Fgm1": 0.2, "Fgm2": 0.1, "Fd3m1": 0.5, "Fd3m2": 0.1, "Fs3m1": 0.3, "Fs3m2": 0.2, "Fvvm1": 0.1, "Fvvm2": 0.05,
}  # fmt: skip


def hung_arm():
    """Return P1's arm on a wall: gravity acts in the plane of its motion."""
    return load_robot("scara_2r").with_gravity((0.0, -9.81, 0.0))


def motion():
    rng = np.random.default_rng(3)
    sin, cos = rng.uniform(-1, 1, (2, 2, 6)) / np.arange(1, 7) * 1.5
    return fourier([0.0, 0.5], sin, cos, 10.0, ["joint_1", "joint_2"])


def recorded(robot, plant: Plant = "ideal", noise=0.0, seed=0):
    chosen = Noise("white", (noise, 0.2 * noise)) if noise else None
    width = 0.002 if plant == "compiled" else None
    experiment = Experiment(record_rate=500, plant=plant, saturate=False, motor_noise=chosen, sign_width=width)
    return recording_of(simulate(robot, motion(), experiment, [seed]))


def with_values(robot, values):
    return replace(robot, values={**robot.values, **values})


def fitted(robot, recording, effects, **options):
    settings = Settings(effects=effects, method="wls", preparation=PREPARATION, **options)
    estimate = fit_arm(robot, [recording], settings).fit.estimate
    return dict(zip(estimate.columns, estimate.values.tolist(), strict=True))


def test_states_of_dahl_friction_are_those_of_its_differential_equation():
    length, rate = 0.05, 2000
    t = np.arange(0, 3, 1 / rate)
    q = 0.3 * np.sin(2 * t) + 0.1 * np.sin(7 * t)

    def slope(time, z):
        v = 0.6 * np.cos(2 * time) + 0.7 * np.cos(7 * time)
        return (np.sign(v) - z) * np.abs(v) / length

    expected = solve_ivp(slope, (0, t[-1]), [0.0], t_eval=t, max_step=1e-3, rtol=1e-8).y[0]
    np.testing.assert_allclose(DahlElements((length,), 1).push(q[None])[0], expected, atol=2e-3)


def test_states_do_not_depend_on_the_blocks_that_positions_come_in():
    q = np.cumsum(np.random.default_rng(0).normal(size=(2, 1000)), axis=1) * 1e-3
    whole = DahlElements((0.01, 0.1), 2).push(q)
    parts = DahlElements((0.01, 0.1), 2)
    assert whole.shape == (4, 1000)
    np.testing.assert_array_equal(np.hstack([parts.push(part) for part in np.split(q, [1, 13, 700], axis=1)]), whole)


@pytest.mark.parametrize("plant", ["ideal", "compiled"])
def test_planted_friction_is_found(plant):
    robot = hung_arm()
    planted = with_values(robot, FRICTION)
    found = fitted(robot, recorded(planted, plant), ("+Fgm", "+Fd3m", "+Fs3m", "+Fvvm"))
    np.testing.assert_allclose([found[name] for name in FRICTION], list(FRICTION.values()), atol=0.03)
    truth = planted.parameters
    np.testing.assert_allclose([found["MX2"], found["Fcm1"]], [truth["MX2"], truth["Fcm1"]], rtol=0.05)


@pytest.mark.large
def test_friction_that_the_model_lacks_costs_torque_error():
    robot = hung_arm()
    recording = recorded(with_values(robot, FRICTION), noise=0.05)
    errors = [
        identify(robot, [recording], settings=Settings(effects=effects, bias_repeats=0)).unseen_error.relative_percent
        for effects in (None, ("+Fgm", "+Fd3m", "+Fs3m", "+Fvvm"))
    ]
    assert errors[1] < 0.5 * errors[0]


def test_a_tilted_base_is_found():
    robot = load_robot("scara_2r").with_gravity((0.0, -9.81, 0.0))
    tilted = robot.with_gravity((0.25, -9.81, 0.0))
    found = fitted(robot, recorded(tilted), ("+tilt",))
    assert found["gx"] == pytest.approx(0.25, rel=0.05)


def test_first_moments_that_a_level_base_hides_do_not_bias_a_tilt():
    """Link 1 of a level SCARA turns about gravity: its centre shows on a tilted base alone."""
    robot = load_robot("scara_2r")
    found = fitted(robot, recorded(robot.with_gravity((0.3, 0.2, -9.81))), ("+tilt",))
    truth = robot.parameters
    x = truth["MX1"] + 0.5 * truth["M2"]  # link 2 begins 0.5 m from the axis
    assert [found["gx"], found["gy"]] == pytest.approx([0.3, 0.2], rel=0.01)
    assert [found["gc1"], found["gs1"]] == pytest.approx([-0.2 * x, 0.3 * x], rel=0.01)


def test_inertias_that_loads_are_computed_with_are_drawn_once_the_model_is_whole():
    robot = hung_arm()
    recordings = [("log", recorded(with_values(robot, FRICTION)))]
    model, settings = build_model(robot, ["+Fgm"]), Settings(preparation=PREPARATION)
    resolved = resolve_preparation(PREPARATION, [recordings[0][1]])
    seen = []

    def drawn(estimate, equations):
        seen.append(equations.model.effects)
        return replace(estimate, values=np.full(len(estimate.values), float(len(seen))))

    found = with_found_inertias(model, recordings, resolved, settings, drawn=drawn)
    assert seen == [model.effects] * 2  # of three fits: the first lacks friction by load
    assert set(found.friction.inertias.values()) == {2.0}


def test_a_joint_zero_is_found():
    robot = hung_arm()
    recording = recorded(robot)
    moved = replace(recording, q=recording.q + np.array([[0.02], [0.0]]))
    found = fitted(robot, moved, ("+zero",))
    # What is measured is 0.02 more than the joint. That of joint 2 turns its link's first moments, and no more.
    assert found["dq1"] == pytest.approx(-0.02, rel=0.1)
    assert "dq2" not in found


def test_a_gain_of_one_joint_is_found_against_the_other():
    robot = hung_arm()
    recording = recorded(robot)
    channel = recording.torques[0]
    scaled = replace(recording, torques=(replace(channel, values=channel.values * np.array([[1.05], [1.0]])),))
    found = fitted(robot, scaled, ("+gain1",))
    assert found["kt1"] == pytest.approx(0.05, rel=0.05)
    assert found["MX2"] == pytest.approx(robot.parameters["MX2"], rel=0.02)


def test_gains_of_all_joints_are_relative_to_one_of_them():
    base = base_parameters(build_model(hung_arm(), ["inertia", "gain"]))
    assert [name for name in base.names if name.startswith("kt")] == ["kt1R"]


def test_effects_are_of_some_joints_or_added_to_the_usual_ones():
    robot = load_robot("scara_2r")
    usual = build_model(robot)
    added = build_model(robot, ["+Fvvm2"])
    assert set(added.names) - set(usual.names) == {"Fvvm2"}
    assert build_model(robot, added.chosen_effects).names == added.names
    assert added.chosen_effects == (*usual.effects, "Fvvm2")


@pytest.mark.parametrize(
    ("effects", "message"),
    [
        (["+Fgm", "+Fgm"], "effect 'Fgm' is given twice"),
        (["Fcm1", "Fcm"], "effect 'Fcm' is given twice"),
        (["Fcm1", "Fcm1"], "effect 'Fcm1' is given twice"),
        (["Fcm9"], "Fcm of joint 9 alone is not possible; .*joints 1, 2"),
        (["inertia2"], "inertia of joint 2 alone is not possible"),
        (["+Fgq"], r"unknown effect 'Fgq'; .*did you mean"),
        (["inertia", "+Fgm"], r"unknown effect '\+Fgm'; .*to add to the defaults"),
    ],
)
def test_wrong_effects_are_refused(effects, message):
    with pytest.raises(ModelError, match=message):
        build_model("scara_2r", effects)


@pytest.mark.parametrize("method", ["ekf", "ml"])
def test_methods_that_cannot_have_a_state_of_friction_say_so(method):
    recording = recorded(hung_arm())
    with pytest.raises(ModelError, match=r"effect 'Fd3m' .*has a state"):
        fit_arm(hung_arm(), [recording], Settings(effects=("+Fd3m",), method=method))


@pytest.mark.parametrize("effect", ["Fgm", "tilt"])
def test_the_kalman_filter_refuses_effects_that_need_inertias(effect):
    message = rf"effect '{effect}' .*the Kalman filter estimates them.*leave the effect out"
    with pytest.raises(EstimateError, match=message):
        fit_arm(hung_arm(), [recorded(hung_arm())], Settings(effects=(f"+{effect}",), method="ekf"))


@pytest.mark.parametrize("method", ["iv", pytest.param("didim", marks=pytest.mark.large)])
def test_instruments_find_friction_with_a_state(method):
    recording = recorded(with_values(hung_arm(), FRICTION), noise=0.05)
    effects = ("+Fd3m", "+Fs3m", "+Fvvm", "+Fgm")
    found = fit_arm(hung_arm(), [recording], Settings(effects=effects, method=method, preparation=PREPARATION))
    for name in ("Fd3m1", "Fd3m2"):
        k = found.fit.estimate.columns.index(name)
        sigma = np.sqrt(found.fit.estimate.covariance[k, k])
        assert sigma < 0.2 * FRICTION[name]
        assert found.fit.estimate.values[k] == pytest.approx(FRICTION[name], abs=3 * sigma)


@pytest.mark.large
def test_runs_of_other_constants_of_friction_do_not_count_together(tmp_path):
    robot = hung_arm()
    truth = with_values(robot, FRICTION)
    first, second = (recorded(truth, noise=0.05, seed=seed) for seed in (0, 1))
    chosen = Settings(effects=("+Fgm", "+Fd3m"), bias_repeats=0, preparation=PREPARATION, select=False)
    found = identify(robot, [first], settings=chosen)
    with RunFolder(tmp_path / "run", "identify") as folder:
        write_run(folder, {"robot": ""}, {}, found, {}, {})
    run = load_run(tmp_path / "run")
    other = replace(chosen, friction=FrictionConstants(dahl=(0.002, 0.003, 0.02)))
    with pytest.raises(ObservationError, match=r"other unknowns .*dahl 0\.01.*dahl 0\.02"):
        identify(robot, [second], settings=other, earlier=[run])
    both = identify(robot, [second], settings=replace(chosen, effects=None, select=True), earlier=[run])
    assert both.equations.model.chosen_effects == found.equations.model.chosen_effects
    assert np.diag(both.fit.estimate.covariance).sum() < 0.7 * np.diag(found.fit.estimate.covariance).sum()


def test_a_design_refuses_friction_with_a_state():
    with pytest.raises(ModelError, match=r"effect 'Fd1m' .*which the design of a motion cannot have"):
        design("scara_2r", effects=["inertia", "Fd1m"])


def test_a_saved_run_predicts_with_the_effects_that_it_found(tmp_path):
    robot = hung_arm()
    recording = recorded(with_values(robot, FRICTION), noise=0.05)
    found = identify(robot, [recording], settings=Settings(effects=("+Fgm", "+Fd3m"), bias_repeats=0))
    with RunFolder(tmp_path / "run", "identify") as folder:
        write_run(folder, {"robot": ""}, {}, found, {}, {})
    run = load_run(tmp_path / "run")
    saved, stated = run.choices.friction, found.settings.friction
    assert saved is not None
    assert stated is not None
    assert saved.inertias.keys() == stated.inertias.keys()
    again = predict(run, [recording], robot)
    assert again.error is not None
    assert again.error.relative_percent == pytest.approx(found.fit_error.relative_percent, rel=0.2)


def test_effects_that_bend_friction_free_the_sign_of_the_others():
    model = build_model("scara_2r", ["+Fvrm1"])
    assert model.nonnegative_friction == {"Fvm2", "Fcm2"}
    assert all(EFFECTS[effect].summary for effect in model.effects)


def test_an_exported_arm_has_steady_friction_and_says_what_it_lacks():
    robot = with_values(hung_arm(), FRICTION)
    model = build_model(robot, ["+Fgm", "+Fd3m", "+Fs3m", "+Fvvm", "+tilt"])
    arm = IdentifiedArm(model.identified_robot({"gx": 0.2}), model)
    assert arm.robot.gravity == pytest.approx((0.2, -np.sqrt(9.81**2 - 0.2**2), 0.0), abs=1e-12)  # turned
    assert "gx" not in arm.robot.values
    assert joint_values(robot)["joint_1"].friction == pytest.approx(robot.values["Fcm1"] + FRICTION["Fd3m1"])
    dynamics = arm_dynamics(arm)
    assert any("Dahl friction is that after long motion in one direction" in note for note in dynamics.notes)
    level = build_model("scara_2r", ["+tilt"])
    notes = arm_dynamics(IdentifiedArm(level.identified_robot({"gx": 0.2, "gc1": 1.0}), level)).notes
    assert any("not by gc1, gs1" in note for note in notes)
    friction = dynamics.functions["friction"]
    q, qd = np.array([0.3, 0.4]), np.array([0.5, 0.2])
    static = build_model(arm.robot, ["inertia"]).regressor(q, qd, np.zeros(2)) @ list(robot.parameters.values())[:20]
    known = robot.parameters
    expected = [
        known[f"Fvm{k}"] * v + known[f"Fcm{k}"] + known[f"Fd3m{k}"] + known[f"Fvvm{k}"] * v**2
        + known[f"Fs3m{k}"] * np.exp(-((v / 0.1) ** 2)) + known[f"Fgm{k}"] * abs(float(torque))
        for k, v, torque in zip((1, 2), qd, np.array(static).ravel(), strict=True)
    ]  # fmt: skip
    np.testing.assert_allclose(np.array(friction(q, qd, dynamics.values)).ravel(), expected, rtol=1e-9)
