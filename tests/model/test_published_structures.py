"""Base parameters come out as published: counts and regroupings of the papers' arms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from arms import motion_of
from steelyard.model import base_parameters, build_model, stacked_regressor
from steelyard.papers.p5_tables import TABLE_III
from steelyard.robot import load_robot

TILTED = (9.81 * math.sin(math.radians(30)), 0.0, -9.81 * math.cos(math.radians(30)))

# Gravity, payload -> base parameters of P5's models A, B, C, D (P5 section V, acceptance figures).
LWR4_COUNTS = {
    ("upright", "paired"): (79, 74, 102, 28),
    ("upright", "loaded"): (69, 64, 92, 28),
    ("tilted", "paired"): (81, 76, 104, 28),
}


@pytest.mark.parametrize(("gravity", "payload"), LWR4_COUNTS)
def test_the_lwr4_has_the_published_number_of_base_parameters(gravity, payload):
    robot = load_robot("kuka_lwr4")
    robot = robot.with_gravity(TILTED) if gravity == "tilted" else robot
    counts = tuple(
        len(base_parameters(build_model(robot, measured=measured, payload=payload)).base)
        for measured in ("motor", "joint", "both", "difference")
    )
    assert counts == LWR4_COUNTS[gravity, payload]


def test_the_lwr4_with_both_torques_and_paired_payload_counts_as_in_p2():
    model = build_model(load_robot("kuka_lwr4"), measured="both", payload="paired")
    base = base_parameters(model)
    assert (len(model.parameters), len(base.without_effect), len(base.regrouped)) == (129, 11, 16)


@pytest.mark.parametrize(
    ("name", "count"),
    [("scara_2r", 8), ("kuka_ir361", 24), ("franka_panda", 64), ("staubli_tx40", 61), ("ur10e", 58)],
)
def test_catalogue_arms_have_the_published_number_of_base_parameters(name, count):
    assert len(base_parameters(build_model(load_robot(name))).base) == count


def test_the_panda_has_43_inertial_base_parameters():
    assert len(base_parameters(build_model(load_robot("franka_panda"), effects=["inertia"])).base) == 43


# Table III prints FcmjR = Fcmj + Fvlj and leaves the offsets out; the corrected rows:
FRICTION = {f"{symbol}m{j}": {f"{symbol}l{j}": 1} for symbol in ("Fv", "Fc", "off") for j in range(1, 8)}
MODEL_A = {**TABLE_III, **FRICTION}
MODEL_A["ZZ1"] = {**TABLE_III["ZZ1"], "Ia1": 1}
MODEL_A["ZZ2"] = {**TABLE_III["ZZ2"], "Ia2": 1}


@pytest.mark.parametrize(("measured", "table"), [("motor", MODEL_A), ("joint", TABLE_III), ("both", TABLE_III)])
def test_regroupings_are_those_of_p5_table_iii_to_1e_8(measured, table):
    base = base_parameters(build_model(load_robot("kuka_lwr4"), measured=measured, payload="paired"))
    regrouped = {parameter.column: parameter for parameter in base.base if len(parameter.regrouping) > 1}
    assert set(regrouped) == set(table)
    for column, published in table.items():
        ours = dict(regrouped[column].regrouping)
        assert ours.pop(column) == 1.0
        assert set(ours) == set(published)
        for name, coefficient in published.items():
            assert ours[name] == pytest.approx(coefficient, abs=1e-8)
        assert regrouped[column].name == f"{column}R"


def test_regroupings_of_the_panda_are_those_of_its_published_table():
    """Gaz et al. 2019, Table III, printed to four decimals."""
    base = base_parameters(build_model(load_robot("franka_panda"), effects=["inertia"]))
    ours = {parameter.column: dict(parameter.regrouping) for parameter in base.base}
    published = {
        "XX2": {"YY2": -1, "YY3": 1, "M3": 0.0998, "MZ3": 0.632, "M4": 0.1067, "M7": 0.1067},
        "ZZ3": {"YY4": 1, "M4": 0.0068, "M5": 0.0136, "M6": 0.0136, "M7": 0.0136},
        "XY4": {"M5": 0.0317, "M6": 0.0317, "M7": 0.0317, "MZ5": 0.0825},
        "ZZ4": {"YY5": 1, "M5": 0.1543, "M6": 0.1543, "M7": 0.1543, "MZ5": 0.768},
        "XX6": {"YY6": -1, "YY7": 1, "M7": -0.0077},
        "MX4": {"M5": -0.0825, "M6": -0.0825, "M7": -0.0825},
        "MY6": {"MZ7": -1},
    }
    for column, row in published.items():
        for name, coefficient in row.items():
            assert ours[column][name] == pytest.approx(coefficient, abs=1e-4)


def test_the_scara_regressor_is_p1_s_closed_form_to_1e_12():
    """P1 eqs. of section 9, L MX2 and L MY2 as parameters, with ZZR1 = ZZ1 + M2 L^2."""
    robot = load_robot("scara_2r")
    model = build_model(robot)
    base = base_parameters(model)
    q, qd, qdd = motion_of(robot, 50)
    ours = stacked_regressor(model.regressor, q, qd, qdd)[:, list(base.base_columns)]
    assert base.names == ("ZZ1R", "ZZ2", "MX2", "MY2", "Fvm1", "Fvm2", "Fcm1", "Fcm2")
    length = 0.5
    (v1, v2), (a1, a2) = qd, qdd
    c2, s2, zero = np.cos(q[1]), np.sin(q[1]), np.zeros(50)
    mx1 = (2 * a1 + a2) * c2 - v2 * (2 * v1 + v2) * s2
    my1 = -((2 * a1 + a2) * s2 + v2 * (2 * v1 + v2) * c2)
    row1 = np.column_stack([a1, a1 + a2, length * mx1, length * my1, v1, zero, np.sign(v1), zero])
    mx2, my2 = a1 * c2 + v1**2 * s2, v1**2 * c2 - a1 * s2
    row2 = np.column_stack([zero, a1 + a2, length * mx2, length * my2, zero, v2, zero, np.sign(v2)])
    np.testing.assert_allclose(ours, np.vstack([row1, row2]), rtol=0, atol=1e-12 * np.abs(ours).max())


def test_one_loaded_data_set_cannot_separate_the_payload_from_the_last_link():
    """With the loaded run alone the payload regroups into the links (acceptance of P2)."""
    base = base_parameters(build_model(load_robot("kuka_lwr4"), payload="loaded"))
    assert "ML" in base.regrouped
    weight = {parameter.column: parameter.regrouping.get("ML", 0.0) for parameter in base.base}
    nonzero = {name: value for name, value in weight.items() if value}
    expected = {"XX2": 0.16, "ZZ2": 0.16, "MY2": 0.4, "XX4": 0.1521, "ZZ4": 0.1521, "MY4": -0.39}
    assert nonzero == pytest.approx(expected, abs=1e-8)
