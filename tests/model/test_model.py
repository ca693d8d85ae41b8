"""Models: terms, rows, names, units and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from arms import arm, motion_of
from steelyard.effects import EFFECTS
from steelyard.errors import ModelError
from steelyard.model import base_parameters, build_model, resolve_name
from steelyard.robot import Robot, load_robot


def columns(robot: Robot, effects: list[str], measured: str = "motor", **options):
    """Return names, rows and the regressor at one random motion."""
    model = build_model(robot, effects, measured, **options)
    q, qd, qdd = (part[:, 0] for part in motion_of(robot, 1, seed=4))
    return model, np.array(model.regressor(q, qd, qdd)), (q, qd, qdd)


def column(model, matrix, name):
    return matrix[:, model.names.index(name)]


def test_drive_and_friction_columns_follow_their_laws():
    robot = load_robot("kuka_lwr4")
    model, matrix, (_, qd, qdd) = columns(robot, ["Ia", "Fvm", "Fcm", "offm", "Fcam"])
    laws = {"Ia": qdd, "Fvm": qd, "Fcm": np.sign(qd), "offm": np.ones(7), "Fcpm": qd > 0, "Fcnm": -1.0 * (qd < 0)}
    for symbol, values in laws.items():
        block = np.column_stack([column(model, matrix, f"{symbol}{j}") for j in range(1, 8)])
        np.testing.assert_allclose(block, np.diag(values))


def test_a_smooth_sign_replaces_the_sharp_one_everywhere():
    robot = load_robot("staubli_tx40")
    model, matrix, (_, qd, _) = columns(robot, ["Fcm", "coupling"], sign_width=0.5)
    np.testing.assert_allclose(column(model, matrix, "Fcm2")[1], np.tanh(qd[1] / 0.5))
    np.testing.assert_allclose(column(model, matrix, "Fcc6")[4:], np.tanh((qd[4] + qd[5]) / 0.5))


def test_each_row_feels_its_side_of_the_gears():
    robot = load_robot("kuka_lwr4")
    effects = ["inertia", "Ia", "Fvm", "Fvl"]
    both, stacked, _ = columns(robot, effects, "both")
    _, motor, _ = columns(robot, effects, "motor")
    _, joint, _ = columns(robot, effects, "joint")
    _, difference, _ = columns(robot, effects, "difference")
    np.testing.assert_array_equal(stacked, np.vstack([motor, joint]))
    np.testing.assert_allclose(motor - joint, difference, rtol=0, atol=1e-12)
    assert both.rows[0] == ("motor", "joint_1")
    assert both.rows[7] == ("joint", "joint_1")
    assert not column(both, stacked, "Ia3")[7:].any()
    assert column(both, stacked, "Fvl3")[2] == column(both, stacked, "Fvl3")[9] != 0


def test_the_tx40_wrist_has_the_three_extra_columns_of_its_authors():
    """Rows 5 and 6: Iac6 (a6 / a5), Fvc6 (v6 / v5), Fcc6 sign(v5 + v6) on both."""
    model, matrix, (_, qd, qdd) = columns(load_robot("staubli_tx40"), ["coupling"])
    np.testing.assert_allclose(column(model, matrix, "Iac6"), [0, 0, 0, 0, qdd[5], qdd[4]])
    np.testing.assert_allclose(column(model, matrix, "Fvc6"), [0, 0, 0, 0, qd[5], qd[4]])
    np.testing.assert_allclose(column(model, matrix, "Fcc6"), [0, 0, 0, 0, *[np.sign(qd[4] + qd[5])] * 2])


def test_coupled_motor_columns_are_those_of_a_rotor_that_turns_with_two_joints():
    """The torque of a rotor's kinetic energy 1/2 Ia (qd6 + c qd5)^2 is spanned by Ia5, Ia6 and Iac6."""
    robot = load_robot("staubli_tx40")
    model, matrix, (_, _, qdd) = columns(robot, ["Ia", "coupling"])
    rotor = np.array([0, 0, 0, 0, qdd[4] + qdd[5], qdd[4] + qdd[5]])
    reported = sum(column(model, matrix, name) for name in ("Ia5", "Ia6", "Iac6"))
    np.testing.assert_allclose(reported, rotor)


def test_the_spring_of_axis_two_acts_as_in_p4():
    model, matrix, (q, _, _) = columns(load_robot("kuka_ir361"), ["inertia", "spring", "offm"])
    np.testing.assert_allclose(column(model, matrix, "Ss2"), [0, np.sin(q[1]), 0])
    np.testing.assert_allclose(column(model, matrix, "Sc2"), [0, np.cos(q[1]), 0])


def test_a_payload_weighs_as_much_as_the_same_body_on_the_link_that_carries_it():
    robot = load_robot("kuka_lwr4")
    model, matrix, _ = columns(robot, ["inertia"], "joint", payload="loaded")
    names = ["XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M"]
    for symbol in names:
        np.testing.assert_array_equal(column(model, matrix, f"{symbol}L"), column(model, matrix, f"{symbol}7"))


def test_a_payload_on_a_fixed_flange_is_told_in_the_flange_s_frame():
    robot = replace(load_robot("kuka_lwr4"), payload_link="flange")
    model, matrix, _ = columns(robot, ["inertia"], "joint", payload="loaded")
    # A point mass at the flange's origin, 0.078 m along z7.
    h = 0.078
    expected = (
        column(model, matrix, "M7") + h * column(model, matrix, "MZ7")
        + h * h * (column(model, matrix, "XX7") + column(model, matrix, "YY7"))
    )  # fmt: skip
    np.testing.assert_allclose(column(model, matrix, "ML"), expected, rtol=1e-12, atol=1e-12)


def test_unloaded_rows_have_no_payload():
    robot = load_robot("kuka_lwr4")
    model = build_model(robot, payload="paired")
    q, qd, qdd = (part[:, 0] for part in motion_of(robot, 1))
    unloaded = np.array(model.unloaded_regressor(q, qd, qdd))
    loaded = np.array(model.regressor(q, qd, qdd))
    np.testing.assert_array_equal(unloaded[:, :-10], loaded[:, :-10])
    assert not unloaded[:, -10:].any()


def test_units_fit_revolute_and_prismatic_joints():
    model = build_model(arm("sliding_tree"), ["inertia", "Ia", "Fvm", "Fcm", "offm"])
    unit = {parameter.name: parameter.unit for parameter in model.parameters}
    assert (unit["Ia1"], unit["Fvm1"], unit["Fcm1"], unit["offm1"]) == ("kg", "N s/m", "N", "N")
    assert (unit["Ia2"], unit["Fvm2"], unit["Fcm2"], unit["ZZ2"]) == ("kg m^2", "N m s/rad", "N m", "kg m^2")


def test_a_mimicking_joint_has_a_link_but_no_row_and_no_friction_of_its_own():
    model = build_model(arm("gripper"), ["inertia", "Fvm"])
    assert [joint for _, joint in model.rows] == ["arm_joint", "open"]
    assert "ZZ3" in model.names
    assert "Fvm3" not in model.names


def test_names_are_accepted_by_number_link_or_joint():
    robot = load_robot("ur10e")
    parameters = build_model(robot).parameters
    assert resolve_name(robot, parameters, "ZZ6") == "ZZ6"
    assert resolve_name(robot, parameters, "ZZ[wrist_3_link]") == "ZZ6"
    assert resolve_name(robot, parameters, "Fvm[elbow_joint]") == "Fvm3"
    with pytest.raises(ModelError, match=r"unknown parameter 'ZZ\[wrist_4_link\]'.*did you mean"):
        resolve_name(robot, parameters, "ZZ[wrist_4_link]")


def test_models_are_refused_in_motor_coordinates():
    with pytest.raises(ModelError, match="'staubli_tx40' is described in motor coordinates; models are written"):
        build_model(load_robot("staubli_tx40").in_motor_coordinates())


@pytest.mark.parametrize(("name", "joint"), [("staubli_tx40", "joint_5"), ("kuka_ir361", "joint_2")])
def test_couplings_and_springs_of_a_locked_joint_leave_with_it(name, joint):
    robot = load_robot(name).with_locked({joint: 0.2})
    assert not {"Iac6", "Ss2"} & set(build_model(robot).names)
    with pytest.raises(ModelError, match="leave the effect out"):
        _ = build_model(robot, ["coupling" if name == "staubli_tx40" else "spring"]).parameters


def test_a_payload_on_a_link_that_never_moves_is_refused():
    robot = replace(load_robot("kuka_lwr4"), payload_link="base")
    with pytest.raises(ModelError, match=r"payload on link 'base', which never moves.*name a moving link"):
        _ = build_model(robot, payload="loaded").parameters


def test_a_locked_joint_leaves_the_model():
    robot = load_robot("kuka_lwr4").with_locked({"joint_3": 0.3})
    model = build_model(robot)
    assert len(model.rows) == 12
    assert len(base_parameters(model).base) < 92


def test_the_order_of_effects_does_not_matter():
    robot = load_robot("scara_2r")
    assert build_model(robot, ["Fcm", "inertia"]).names == build_model(robot, ["inertia", "Fcm"]).names


@pytest.mark.parametrize("effect", EFFECTS)
def test_every_effect_builds_or_says_what_the_robot_lacks(effect):
    robot = load_robot("kuka_kr270")
    module = EFFECTS[effect].builder.split(".")[0]
    if module in ("spring", "gear_coupling", "ripple"):
        with pytest.raises(ModelError, match=f"effect '{effect}': robot 'kuka_kr270'.*leave the effect out"):
            _ = build_model(robot, [effect]).parameters
    elif EFFECTS[effect].needs_inertias:
        with pytest.raises(ModelError, match=f"effect '{effect}' is in proportion to the torques of the links"):
            _ = build_model(robot, [effect]).parameters
        assert build_model("kuka_lwr4", [effect]).parameters
    else:
        assert build_model(robot, [effect]).parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effects": ["inertai"]}, "unknown effect 'inertai'; allowed: inertia, .*did you mean 'inertia'"),
        ({"effects": []}, "no effects given; choose from inertia"),
        ({"effects": ["Ia", "Ia"]}, "effect 'Ia' is given twice"),
        ({"measured": "motors"}, "unknown torque 'motors'; allowed: motor, joint.*did you mean 'motor'"),
        ({"payload": "heavy"}, "unknown payload 'heavy'; allowed: none, loaded, paired"),
        ({"sign_width": -1.0}, "sign width -1.0: give 0"),
        ({"sign_width": float("nan")}, "sign width nan: give 0"),
        ({"effects": ["Ia"], "payload": "loaded"}, "add 'inertia' to the effects"),
    ],
)
def test_a_wrong_choice_is_refused_with_what_is_allowed(options, message):
    with pytest.raises(ModelError, match=message):
        build_model(load_robot("kuka_lwr4"), **options)


@pytest.mark.parametrize(
    ("own", "measured", "effects"),
    [
        (("inertia", "Ia", "Fvm", "Fcm", "offm"), "joint", ("inertia", "Fvl", "Fcl", "offl")),
        (("inertia", "Fvm", "Fcm"), "joint", ("inertia", "Fvl", "Fcl", "offl")),
        (("inertia", "Ia", "Fvm", "Fcam"), "joint", ("inertia", "Fvl", "Fcal", "offl")),
        (("inertia", "Ia", "Fvm", "Fcm"), "both", ("inertia", "Ia", "Fvm", "Fcm", "Fvl", "Fcl", "offl")),
        (("inertia", "Fvl", "Fcl", "offl"), "motor", ("inertia", "Ia", "Fvm", "Fcm", "offm")),
        (("inertia", "Ia", "Fvm", "Fcm", "offl"), "joint", ("inertia", "Ia", "Fvm", "Fcm", "offl")),
        (("inertia",), "joint", ("inertia",)),
    ],
)
def test_default_friction_is_on_the_side_that_the_torques_feel(own, measured, effects):
    robot = load_robot("ur10e")
    robot = replace(robot, defaults=replace(robot.defaults, effects=own))
    assert build_model(robot, measured=measured).effects == effects
    assert build_model(robot, own, measured).effects == tuple(effect for effect in EFFECTS if effect in own)


def test_an_equal_model_is_found_again_but_not_that_of_another_file():
    robot = load_robot("scara_2r")
    assert build_model(replace(robot)) is build_model(robot)
    assert build_model(robot, sign_width=0.123) is not build_model(robot)
    assert build_model(robot.with_gravity((0.0, -9.81, 0.0))) is not build_model(robot)
    copied = build_model(replace(robot, file="copy.toml"))
    assert copied == build_model(robot)
    assert copied.robot.file == "copy.toml"
