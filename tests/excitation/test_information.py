"""The information matrix: against Pinocchio's regressor, against models built one by one, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from arms import arm, motion_of
from oracles import NO_PINOCCHIO, pinocchio_model
from steelyard.errors import DesignError
from steelyard.excitation.criteria import Weighting
from steelyard.excitation.information import Information, Unknowns, unknowns
from steelyard.model import base_parameters, build_model
from steelyard.robot import Robot
from written_out import information

COUNT, RATE, WIDTH = 30, 50.0, 0.2


def stacked(robot: Robot, effects: tuple[str, ...], motion: tuple[np.ndarray, ...], measured: str = "motor"):
    """Return W (N E, p) of a model with smooth sign, instant by instant."""
    model = build_model(robot, effects, measured, sign_width=WIDTH)
    return model, np.stack([model.regressor(*one).full() for one in zip(*(x.T for x in motion), strict=True)])


def chosen_of(robot: Robot, effects: tuple[str, ...], measured: str = "motor", payload: str = "none") -> Unknowns:
    model = build_model(robot, effects, measured, payload, sign_width=WIDTH)
    return unknowns(model, np.linspace(0.5, 2.0, len(model.rows)), RATE)


@pytest.mark.parametrize("name", ["scara_2r", "kuka_ir361", "ur10e", "kuka_lwr4", "franka_panda"])
def test_an_inertial_arm_s_information_is_that_of_pinocchio_s_regressor(name):
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    robot = arm(name)
    chosen = chosen_of(robot, ("inertia",))
    motion = motion_of(robot, COUNT, seed=4)
    theirs, order = pinocchio_model(robot), [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]
    data = theirs.createData()
    columns = [chosen.model.names.index(column) for column in chosen.columns]
    plain = weighted = 0.0
    for one in zip(*(x.T for x in motion), strict=True):
        full = pin.computeJointTorqueRegressor(theirs, data, *one)
        W = np.hstack([full[:, 10 * k : 10 * k + 10][:, order] for k in range(len(robot.bodies))])[:, columns]
        plain = plain + W.T @ W
        weighted = weighted + (W.T / chosen.deviations**2) @ W
    mapping = Information(chosen)
    sampled = mapping.sampled(motion)
    both: dict[Weighting, Any] = {"none": plain, "noise": weighted}
    for weighting, wanted in both.items():
        got = mapping.matrix(sampled, weighting, COUNT)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())
        np.testing.assert_allclose(mapping.matrix(sampled, weighting, 7 * COUNT), 7 * got)


@pytest.mark.parametrize("measured", ["motor", "joint", "both", "difference"])
def test_friction_and_both_sides_are_those_of_the_independent_code(measured):
    robot = arm("kuka_ir361")
    effects = ("inertia", "Ia", "Fvm", "Fcm", "offm", "Fvl", "Fcl")
    chosen = chosen_of(robot, effects, measured)
    motion = motion_of(robot, 12, seed=5)
    mapping = Information(chosen)
    got = mapping.matrix(mapping.sampled(motion), "noise", 12)
    wanted = np.real(information(chosen.model, chosen.columns, motion, 1 / chosen.deviations**2))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


def test_a_coupled_wrist_is_that_of_the_independent_code():
    robot = arm("staubli_tx40")
    chosen = chosen_of(robot, ("inertia", "Ia", "Fvm", "Fcm", "coupling"))
    motion = motion_of(robot, 8, seed=6)
    mapping = Information(chosen)
    got = mapping.matrix(mapping.sampled(motion), "none", 8)
    wanted = np.real(information(chosen.model, chosen.columns, motion, np.ones(6)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.parametrize("payload", ["loaded", "paired"])
def test_runs_with_and_without_payload_add_up(payload):
    """Paired information is that of two models built one by one, their columns put side by side."""
    robot = arm("kuka_lwr4")
    chosen = chosen_of(robot, ("inertia", "Fcm"), payload=payload)
    motion = motion_of(robot, COUNT, seed=7)
    columns = [chosen.model.names.index(column) for column in chosen.columns]
    rows = []
    for loaded in (False, True) if payload == "paired" else (True,):
        function = chosen.model.regressor if loaded else chosen.model.unloaded_regressor
        rows += [function(*one).full()[:, columns] for one in zip(*(x.T for x in motion), strict=True)]
    if payload == "paired":
        _, plain = stacked(robot, ("inertia", "Fcm"), motion)
        np.testing.assert_allclose(np.stack(rows[:COUNT])[:, :, :-10], plain[:, :, columns[:-10]], atol=1e-12)
        assert not np.any(np.stack(rows[:COUNT])[:, :, -10:])
    W = np.vstack([row / chosen.deviations[:, None] for row in rows])
    mapping = Information(chosen)
    got = mapping.matrix(mapping.sampled(motion), "noise", COUNT)
    np.testing.assert_allclose(got, W.T @ W, rtol=0, atol=1e-10 * np.abs(W.T @ W).max())


def test_a_choice_of_parameters_takes_rows_and_columns_of_the_whole():
    robot = arm("ur10e")
    whole = chosen_of(robot, ("inertia", "Fvm"))
    wanted = ("Fvm3", whole.names[2], whole.columns[9])
    part = unknowns(whole.model, whole.deviations, RATE, columns=wanted)
    places = sorted(whole.columns.index(c) for c in (whole.columns[2], whole.columns[9], "Fvm3"))
    assert part.columns == tuple(whole.columns[k] for k in places)
    assert part.names == tuple(whole.names[k] for k in places)
    assert part.units == tuple(whole.units[k] for k in places)
    motion = motion_of(robot, COUNT)
    full, less = (Information(one) for one in (whole, part))
    M = full.matrix(full.sampled(motion), "noise", COUNT)
    np.testing.assert_allclose(less.matrix(less.sampled(motion), "noise", COUNT), M[np.ix_(places, places)])


@pytest.mark.parametrize("payload", ["none", "paired"])
def test_gradients_by_the_motion_are_those_of_differences(payload):
    robot = arm("kuka_ir361")
    chosen = chosen_of(robot, ("inertia", "Fvm", "Fcm"), payload=payload)
    mapping = Information(chosen)
    motion = motion_of(robot, 6, seed=8)
    rng = np.random.default_rng(9)
    seeds = {w: s + s.T for w in ("none", "noise") for s in [rng.normal(size=(len(chosen.columns),) * 2)]}

    def value(moved: tuple[np.ndarray, ...]) -> float:
        sampled = mapping.sampled(moved)  # type: ignore[arg-type]
        return sum(float((seed * mapping.matrix(sampled, w, 11.0)).sum()) for w, seed in seeds.items())  # type: ignore[arg-type]

    back = mapping.pull_back(motion, mapping.sampled(motion), seeds, 11.0)  # type: ignore[arg-type]
    for order in range(3):
        way = rng.normal(size=motion[order].shape)
        step, slopes = 1e-3, {}
        for k in (-2, -1, 1, 2):
            moved = list(motion)
            moved[order] = motion[order] + k * step * way
            slopes[k] = value(tuple(moved))
        slope = (8 * (slopes[1] - slopes[-1]) - (slopes[2] - slopes[-2])) / (12 * step)
        assert (back[order] * way).sum() == pytest.approx(slope, rel=1e-6)


def test_sizes_of_parameters_are_regrouped():
    robot = arm("kuka_ir361")
    model = build_model(robot, ("inertia", "Fvm"), "motor")
    base = base_parameters(model)
    rng = np.random.default_rng(2)
    values = {name: float(rng.normal()) for name in model.names}
    found = unknowns(model, np.ones(3), RATE, values=values)
    np.testing.assert_allclose(found.values, base.regrouping @ np.array(list(values.values())))
    assert np.isnan(unknowns(model, np.ones(3), RATE).values).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"deviations": np.ones(2)}, "one positive standard deviation for each of the 3 equations"),
        ({"deviations": np.array([1.0, 0.0, 1.0])}, r"noise: got \[1.0, 0.0, 1.0\]"),
        ({"deviations": np.array([1.0, np.nan, 1.0])}, "noise: got"),
        ({"rate": 0.0}, "rate 0.0: give the samples a second"),
        ({"rate": np.inf}, "rate inf"),
        ({"columns": ("ZZ9",)}, "'ZZ9' is no base parameter of this model; it has"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    model = build_model(arm("kuka_ir361"), ("inertia",), "motor")
    with pytest.raises(DesignError, match=message) as error:
        unknowns(model, **({"deviations": np.ones(3), "rate": RATE} | given))
    assert "\n" not in str(error.value)
