"""Base parameters determine the torques on every arm."""

from __future__ import annotations

import numpy as np
import pytest

from arms import ALL_ARMS, arm, motion_of
from steelyard.model import (
    base_parameters,
    build_model,
    data_rank,
    identifiability,
    random_motion,
    stacked_regressor,
    summarise_model,
)
from steelyard.model.base import _position_range, _sum_text, structural_samples
from steelyard.robot import Limits, load_robot


@pytest.mark.parametrize("name", ALL_ARMS)
def test_base_parameters_give_the_torques_of_all_standard_parameters(name):
    robot = arm(name)
    model = build_model(robot)
    base = base_parameters(model)
    standard = np.random.default_rng(1).normal(size=len(model.parameters))
    full = stacked_regressor(model.regressor, *motion_of(robot, 30, seed=5))
    reduced = full[:, list(base.base_columns)] @ (base.regrouping @ standard)
    torques = full @ standard
    np.testing.assert_allclose(reduced, torques, rtol=0, atol=1e-10 * np.abs(torques).max())


@pytest.mark.parametrize("name", ALL_ARMS)
def test_the_number_of_base_parameters_is_the_numerical_rank(name):
    robot = arm(name)
    model = build_model(robot)
    rows = stacked_regressor(model.regressor, *motion_of(robot, 300, seed=9))
    norms = np.linalg.norm(rows, axis=0)
    # Rounding leaves columns of 1e-16 that scaling would turn into false parameters: zero in absolute terms first.
    nonzero = norms > 1e-10 * norms.max()
    rank = np.linalg.matrix_rank(rows[:, nonzero] / norms[nonzero], tol=1e-8)
    assert len(base_parameters(model).base) == rank


def test_random_motion_fills_the_limits():
    robot = load_robot("kuka_lwr4")
    limits = [body.joint.limits for body in robot.actuated]
    q, qd, qdd = motion_of(robot, 500)
    for k, one in enumerate(limits):
        assert one.lower <= q[k].min() < q[k].max() <= one.upper
        assert 0.9 * one.velocity < np.abs(qd[k]).max() <= one.velocity
    fastest = np.abs(qdd).max(axis=1)
    assert (fastest > 1).all()
    np.testing.assert_allclose(fastest, np.abs(motion_of(robot, 5000)[2]).max(axis=1), rtol=0.1)


def test_motion_without_limits_has_ranges_of_its_own():
    """The elbow turns without limits: a turn at 2 rad/s; accelerations are up to 5 rad/s^2."""
    q, qd, qdd = random_motion(arm("skewed_chain"), 4000, np.random.default_rng(0))
    ends = np.array([[-2.5, 2.0], [-np.pi, np.pi], [-2.5, 2.0]])
    np.testing.assert_allclose(np.column_stack([q.min(axis=1), q.max(axis=1)]), ends, atol=0.01)
    for values, largest in ((qd, [3, 2, 3]), (qdd, [5, 5, 5])):
        np.testing.assert_allclose(values.max(axis=1), largest, rtol=0.005)
        np.testing.assert_allclose(values.min(axis=1), -np.array(largest), rtol=0.005)


@pytest.mark.parametrize(
    ("limits", "kind", "expected"),
    [
        (Limits(), "prismatic", (-1, 1)),
        (Limits(lower=1.0), "revolute", (1, 1 + 2 * np.pi)),
        (Limits(upper=0.5), "prismatic", (-1.5, 0.5)),
        (Limits(lower=-0.2, upper=0.5), "prismatic", (-0.2, 0.5)),
    ],
)
def test_an_end_that_is_given_is_kept_and_the_other_a_turn_or_two_metres_away(limits, kind, expected):
    assert _position_range(limits, kind) == pytest.approx(expected)


def test_the_same_samples_are_drawn_each_time():
    model = build_model("scara_2r")
    np.testing.assert_array_equal(structural_samples(model), structural_samples(model, seed=0))
    assert structural_samples(model).shape == (100, 24)
    assert base_parameters(model).gap == base_parameters(model, seed=0).gap


def test_what_is_eliminated_of_a_link_follows_from_its_own_axis():
    """The elbow turns about y; the wrist about an axis that is nearest to z."""
    base = base_parameters(build_model(arm("skewed_chain"), effects=["inertia"]))
    assert base.regrouped[6:] == ("XX2", "MY2", "M2", "YY3", "MZ3", "M3")


def test_a_base_parameter_is_found_by_its_column():
    base = base_parameters(build_model("scara_2r", effects=["inertia"]))
    assert base.name_of == {"ZZ1": "ZZ1R", "ZZ2": "ZZ2", "MX2": "MX2", "MY2": "MY2"}


def test_states_and_temperatures_are_random_too_so_that_no_offset_looks_like_them():
    model = build_model("scara_2r", effects=["Fcm", "offm", "Fd1m", "FcTm"])
    assert base_parameters(model).names == ("Fcm1", "Fcm2", "offm1", "offm2", "Fd1m1", "Fd1m2", "FcTm1", "FcTm2")
    samples = structural_samples(model)[:, model.names.index("Fd1m1")]
    state = samples[samples != 0]
    assert -1 <= state.min() < -0.9
    assert 0.9 < state.max() <= 1


@pytest.mark.parametrize("name", ["kuka_lwr4", "scara_2r"])
def test_the_structure_is_seen_in_four_times_as_many_rows_as_columns(name):
    model = build_model(name, measured="motor")
    rows, columns = structural_samples(model).shape
    assert columns == len(model.parameters)
    assert rows >= max(4 * columns, 50 * len(model.rows))


@pytest.mark.parametrize("name", ALL_ARMS)
def test_kept_and_eliminated_columns_are_far_apart(name):
    spanned, chosen = base_parameters(build_model(arm(name))).gap
    assert spanned < 1e-13
    assert chosen > 1e-4


@pytest.mark.parametrize("name", ALL_ARMS)
def test_the_result_does_not_depend_on_the_seed(name):
    model = build_model(arm(name))
    first, second = base_parameters(model, seed=0), base_parameters(model, seed=1)
    assert first.names == second.names
    np.testing.assert_allclose(first.regrouping, second.regrouping, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ALL_ARMS)
def test_every_standard_parameter_is_told_once_and_counts_add_up(name):
    model = build_model(arm(name))
    summary = summarise_model(model)
    counts = summary["counts"]
    assert counts["standard"] == counts["base"] + counts["regrouped"] + counts["without_effect"]
    status = [parameter["status"] for parameter in summary["parameters"]]
    assert len(status) == counts["standard"] == len(set(summary["standard"]))
    assert status.count("without effect") == counts["without_effect"]
    for parameter in summary["parameters"]:
        assert bool(parameter["reason"]) == (parameter["status"] == "without effect")
        assert bool(parameter["base"]) == (parameter["status"] != "without effect")


@pytest.mark.parametrize("name", ALL_ARMS)
def test_no_arm_leaves_a_reason_unsaid(name):
    model = build_model(arm(name), effects=["inertia"])
    for parameter in identifiability(model, base_parameters(model)):
        assert "no torque of this model" not in parameter.reason, parameter.name


def reasons(model) -> dict[str, str]:
    return {entry.name: entry.reason for entry in identifiability(model, base_parameters(model))}


def test_reasons_are_a_roboticist_s():
    reason = reasons(build_model(load_robot("kuka_lwr4"), measured="both"))
    assert reason["XX1"] == "link 1 turns only about its z axis: of its inertia only ZZ has an effect"
    assert reason["M2"] == "the origin of the frame of link 2 never moves, so the base carries its mass"
    assert "first moments act through gravity only" in reason["MZ2"]
    assert reason["ZZ1"] == ""


def test_reasons_name_the_side_of_the_gears():
    robot = load_robot("kuka_lwr4")
    assert "joint torque sensor does not measure" in reasons(build_model(robot, measured="joint"))["Fvm3"]
    assert "cancels in their difference" in reasons(build_model(robot, measured="difference"))["ZZ4"]


def test_a_sliding_link_does_not_feel_how_its_mass_is_spread():
    reason = reasons(build_model(arm("sliding_tree"), effects=["inertia"]))
    assert reason["XX1"] == "link 1 never turns, it only slides: how its mass is distributed has no effect"
    assert reason["MX1"] == "link 1 never turns, it only slides: where its centre of mass is does not matter"
    assert reason["M1"] == ""


def test_a_still_joint_costs_data_rank_but_not_structural_rank():
    robot = load_robot("kuka_lwr4")
    model = build_model(robot, measured="joint")
    base = base_parameters(model)
    q, qd, qdd = motion_of(robot, 60)
    rich = data_rank(base, stacked_regressor(model.regressor, q, qd, qdd))
    assert (rich.rank, rich.structural, rich.unexcited) == (64, 64, ())
    assert rich.condition < 1e4
    q[2], qd[2], qdd[2] = 0.3, 0.0, 0.0
    poor = data_rank(base, stacked_regressor(model.regressor, q, qd, qdd))
    assert poor.rank < poor.structural == 64
    assert {"Fvl3", "Fcl3"} <= set(poor.unexcited)
    assert poor.condition == np.inf


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_condition_of_data_is_that_of_columns_of_unit_length(size):
    """Columns at an angle of 60 degrees, whatever their lengths: ``sqrt((1 + cos) / (1 - cos)) = sqrt(3)``."""
    base = base_parameters(build_model(load_robot("scara_2r"), effects=["Fvm"]))
    columns = np.array([[1.0, 0.5], [0.0, np.sqrt(0.75)], [0.0, 0.0]]) * [size, 0.2]
    regressor = np.zeros((3, base.regrouping.shape[1]))
    regressor[:, list(base.base_columns)] = columns
    found = data_rank(base, regressor)
    assert (found.rank, found.unexcited) == (2, ())
    assert found.condition == pytest.approx(np.sqrt(3))


def data_of(*columns):
    """Return base parameters of viscous friction of as many joints as columns, and data with these columns."""
    base = base_parameters(build_model(load_robot("scara_2r" if len(columns) == 2 else "kuka_lwr4"), effects=["Fvm"]))
    regressor = np.zeros((len(columns[0]), base.regrouping.shape[1]))
    used = list(base.base_columns)
    regressor[:, used[: len(columns)]] = np.column_stack(columns)
    return base, regressor


@pytest.mark.parametrize(("angle", "rank", "unexcited"), [(4e-8, 2, ()), (1e-8, 1, ("Fvm1", "Fvm2"))])
def test_columns_are_told_apart_down_to_an_angle_of_2e_8(angle, rank, unexcited):
    """Two columns of unit length at an angle a have singular values of ``sqrt(2)`` and ``a / sqrt(2)``."""
    found = data_rank(*data_of([1.0, 0.0, 0.0], [np.cos(angle), np.sin(angle), 0.0]))
    assert (found.rank, found.unexcited) == (rank, unexcited)
    assert found.condition == (pytest.approx(2 / angle, rel=1e-3) if rank == 2 else np.inf)


@pytest.mark.parametrize(("part", "named"), [(1e-5, False), (1e-3, True)])
def test_a_parameter_with_a_negligible_part_in_what_is_missing_is_excited(part, named):
    first, second = np.eye(9, 2).T
    rest = list(np.eye(9)[3:7])
    found = data_rank(*data_of(first, first + part * second, second, *rest))
    assert found.rank == 6
    assert found.unexcited == ("Fvm1", "Fvm2", *(["Fvm3"] if named else []))


def test_fewer_rows_than_parameters_leave_some_unexcited():
    base, regressor = data_of(*np.eye(3, 7).T)
    found = data_rank(base, regressor)
    assert (found.rank, found.structural, found.condition) == (3, 7, np.inf)
    assert found.unexcited == base.names[3:]


def test_a_payload_needs_both_data_sets_in_the_data_too():
    robot = load_robot("kuka_lwr4")
    model = build_model(robot, measured="both", payload="paired")
    base = base_parameters(model)
    loaded = stacked_regressor(model.regressor, *motion_of(robot, 60, seed=1))
    unloaded = stacked_regressor(model.unloaded_regressor, *motion_of(robot, 60, seed=2))
    assert data_rank(base, np.vstack([unloaded, loaded])).rank == 102
    alone = data_rank(base, loaded)
    assert alone.rank == 92
    assert "ML" in alone.unexcited


def test_a_regrouping_is_written_with_its_coefficients():
    text = {one.name: one.text for one in base_parameters(build_model(load_robot("scara_2r"))).base}
    assert text["ZZ1R"] == "ZZ1R = ZZ1 + 0.25 M2"
    signs = {"ZZ1": 1.0, "M2": -1.0, "MX3": -0.1234567891}
    assert _sum_text(signs) == "ZZ1 - M2 - 0.123457 MX3"
    assert _sum_text({"YY2": -1.0, "ZZ2": 1.0}) == "-YY2 + ZZ2"
