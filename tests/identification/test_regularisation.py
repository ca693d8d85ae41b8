"""Priors of chosen effects: what they mean, that data overrule them, and that intervals cover."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.consistency import reference_body
from steelyard.identification import Settings, fit_arm, regularisation
from steelyard.identification.regularisation import (
    GUESS,
    link_rows,
    regularisation_note,
    regularised,
    regularised_fit,
    settings_for_chosen,
)
from steelyard.model import build_model
from steelyard.motion import fourier
from steelyard.observe import Preparation, equations_of
from steelyard.robot import INERTIAL_NAMES, load_robot
from steelyard.robot.balancers import Balancer, Formula
from steelyard.simulation import Experiment, Noise, recording_of, simulate

PREPARATION = Preparation(mode="none", decimation=5, standstill=0.01)


def arm(values=None):
    robot = load_robot("scara_2r").with_gravity((0.0, -9.81, 0.0))
    return replace(robot, values={**robot.values, **(values or {})})


def recorded(robot, seed, noise=0.5):
    rng = np.random.default_rng(4)
    sin, cos = rng.uniform(-1, 1, (2, 2, 6)) / np.arange(1, 7) * 1.2
    motion = fourier([0.0, 0.5], sin, cos, 10.0, ["joint_1", "joint_2"])
    chosen = Noise("white", (noise, 0.1 * noise))
    experiment = Experiment(record_rate=200, plant="ideal", motor_noise=chosen, saturate=False)
    return recording_of(simulate(robot, motion, experiment, [seed]))


def fitted(recording, effects):
    settings = settings_for_chosen(Settings(effects=effects, preparation=PREPARATION))
    return fit_arm(arm(), [recording], settings)


@pytest.mark.parametrize("name", ["kuka_lwr4", "ur10e"])
def test_rows_of_links_are_standard_normal_for_links_of_that_deviation(name):
    robot = load_robot(name)
    equations = equations_of(build_model(robot, ["inertia", "Fvl", "offl"], "joint"))
    rows = link_rows(equations, equations.names, robot)
    rng, known, count = np.random.default_rng(0), robot.parameters, 4000
    links = []
    for body in robot.bodies:
        reference = reference_body(np.array([known[f"{symbol}{body.number}"] for symbol in INERTIAL_NAMES]))
        links.append(reference.parameters[:, None] + reference.to_parameters @ rng.standard_normal((10, count)))
    others = rng.standard_normal((len(equations.model.parameters) - 10 * len(links), count))
    base = equations.base.regrouping @ np.concatenate([*links, others])
    draws = (rows @ np.concatenate([base, np.full((1, count), -1.0)])).T
    assert len(rows) == sum(one.effect == "inertia" for one in base_parameters_of(equations))
    np.testing.assert_allclose(np.mean(draws, axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(np.cov(draws.T), np.eye(len(rows)), atol=0.12)
    np.testing.assert_allclose(link_rows(equations, equations.names, None).shape, rows.shape)


def base_parameters_of(equations):
    parameters = {one.name: one for one in equations.model.parameters}
    return [parameters[name] for name in equations.names]


def test_what_drives_share_with_links_stays_open():
    robot = load_robot("ur10e")
    equations = equations_of(build_model(robot, ["inertia", "Ia", "Fvm"]))
    rows = link_rows(equations, equations.names, robot)
    drives = [k for k, one in enumerate(equations.model.parameters) if one.effect == "Ia"]
    np.testing.assert_allclose(rows[:, :-1] @ equations.base.regrouping[:, drives], 0.0, atol=1e-9)
    guess = link_rows(equations, equations.names, None)
    assert np.linalg.norm(guess[:, -1]) <= np.sqrt(10 * len(robot.bodies)) / GUESS * 4


def test_links_are_not_drawn_to_a_file_that_the_data_contradict():
    """Such a file would make the chosen model worse than the plain one."""
    fit = fitted(recorded(arm(), 0), ("+Fgm",))
    right, links = arm(), []
    for link in right.links:
        links.append(link if link.inertia is None else replace(link, inertia=tuple(0.01 * one for one in link.inertia)))
    for prior, drawn in ((right, True), (replace(right, links=tuple(links)), False)):
        found = regularised_fit(fit.fit, fit.equations, right.defaults.effects, prior)
        assert (found.estimate is not found.links_open) == drawn
        assert ("contradict" in regularisation_note(found, fit.equations, prior)) != drawn


def test_what_data_say_against_a_prior_is_in_the_sigmas(monkeypatch):
    """A file that is wrong by a half, and trusted to 2 %, wins against noisy data: the interval holds its bias."""
    monkeypatch.setattr(regularisation, "LINK_DEVIATION", 0.02)
    fit = fitted(recorded(arm(), 0, noise=20.0), ("+Fgm",))
    truth = fit.equations.base_values(arm().parameters)["MX2"]
    wrong = arm().with_parameters({**arm().parameters, "MX2": 1.5 * truth, "ZZ2": 0.15})
    estimate = regularised_fit(fit.fit, fit.equations, arm().defaults.effects, wrong).estimate
    k = estimate.columns.index("MX2")
    assert estimate.values[k] - truth > 3 * np.sqrt(estimate.system.inverse[k, k])
    assert estimate.values[k] - truth < estimate.half_width()[k]
    right = regularised_fit(fit.fit, fit.equations, arm().defaults.effects, arm()).estimate
    np.testing.assert_allclose(right.covariance[k, k], right.system.inverse[k, k])


def test_a_balancer_that_the_data_leave_open_has_the_scale_of_its_file():
    law = Balancer("joint_2", Formula("2 * sin(2 * q)", "q"))
    robot = replace(arm({"Sb2": 0.8}), balancers=(law,))
    settings = settings_for_chosen(Settings(effects=("+balancer",), preparation=PREPARATION))
    fit = fit_arm(robot, [recorded(replace(robot, values={**robot.values, "Sb2": 0.5}), 0)], settings)
    k = fit.fit.estimate.columns.index("Sb2")
    assert fit.fit.estimate.values[k] == pytest.approx(0.5, abs=0.05)
    vague = replace(fit.fit.estimate, covariance=1e8 * fit.fit.estimate.covariance)
    drawn = regularised(vague, fit.equations, robot.defaults.effects, link_rows(fit.equations, vague.columns, None))
    assert drawn.values[k] == pytest.approx(0.8, abs=0.1)


def test_links_without_a_trusted_file_are_drawn_to_usual_ones_where_the_data_leave_them_open():
    """Free links took over what the chosen effects left, and predicted worse than the consistent arm (Panda)."""
    fit = fitted(recorded(arm(), 0), ("+Fgm",))
    clear = regularised_fit(fit.fit, fit.equations, arm().defaults.effects, None)
    assert clear.links_open is not None
    shift = np.abs(clear.estimate.values - clear.links_open.values)
    assert 0 < np.max(shift / clear.links_open.sigma) < 0.5
    assert "links to those of an arm of usual build" in regularisation_note(clear, fit.equations, None)
    vague = replace(fit.fit.estimate, covariance=1e8 * fit.fit.estimate.covariance)
    rows = link_rows(fit.equations, vague.columns, None)
    drawn, free = (
        regularised(vague, fit.equations, arm().defaults.effects, chosen) for chosen in (rows, rows[:0])
    )  # fmt: skip
    distance = [np.linalg.norm(rows @ np.append(one.values, -1.0)) for one in (drawn, free)]
    assert distance[0] < distance[1]
    assert np.min(drawn.sigma / free.sigma) < 0.1


def test_links_far_heavier_than_usual_ones_are_not_drawn_away_from_the_data():
    """A guess of the links' size must not bias what recordings show."""
    heavy = [
        link if link.inertia is None else replace(link, inertia=tuple(30.0 * one for one in link.inertia))
        for link in arm().links
    ]
    fit = fitted(recorded(replace(arm(), links=tuple(heavy)), 0), ("+Fgm",))
    found = regularised_fit(fit.fit, fit.equations, arm().defaults.effects, None)
    assert found.links_open is not None
    shift = np.abs(found.estimate.values - found.links_open.values) / found.links_open.sigma
    assert np.max(shift) < 0.5


def test_clear_effects_stay_and_absent_ones_are_drawn_to_zero():
    planted = {"Fgm1": 0.2, "Fgm2": 0.1}
    fit = fitted(recorded(arm(planted), 0), ("+Fgm", "+Fs3m"))
    free, columns = fit.fit.estimate, fit.fit.estimate.columns
    drawn = regularised_fit(fit.fit, fit.equations, arm().defaults.effects, None).estimate
    for name, value in planted.items():
        k = columns.index(name)
        assert drawn.values[k] == pytest.approx(value, abs=3 * drawn.sigma[k])
        assert drawn.values[k] == pytest.approx(free.values[k], abs=0.5 * free.sigma[k])
    absent = [columns.index(f"Fs3m{joint}") for joint in (1, 2)]
    assert np.all(np.abs(drawn.values[absent]) < 0.9 * np.abs(free.values[absent]))
    assert np.all(drawn.sigma[absent] < free.sigma[absent])


@pytest.mark.large
def test_intervals_cover_planted_effects():
    planted = {"Fgm1": 0.1, "Fgm2": 0.1, "Fd3m1": 2.0, "Fd3m2": 0.3}
    effects, inside = ("+Fgm", "+Fd3m", "+Fvvm"), []
    truth = {**arm(planted).parameters, **planted}
    for seed in range(40):
        fit = fitted(recorded(arm(planted), seed), effects)
        drawn = regularised_fit(fit.fit, fit.equations, arm().defaults.effects, None).estimate
        base = fit.equations.base.regrouping @ [truth.get(name, 0.0) for name in fit.equations.model.names]
        true = dict(zip(fit.equations.names, base, strict=True))
        width = drawn.half_width()
        inside += [abs(drawn.values[k] - true[name]) < width[k] for k, name in enumerate(drawn.columns)]
    assert 0.90 <= np.mean(inside) <= 0.99


def test_friction_of_the_plain_model_is_drawn_too_where_data_hardly_show_it():
    """Left open beside effects that are not, it took over what these may not, with the wrong sign (LWR4+)."""
    without = {"Fvm1": 0.0, "Fvm2": 0.0}
    fit = fitted(recorded(arm(without), 0, noise=5.0), ("+Fgm",))
    free, columns = fit.fit.estimate, fit.fit.estimate.columns
    drawn = regularised_fit(fit.fit, fit.equations, arm().defaults.effects, None).estimate
    absent, clear = ([columns.index(f"{name}{joint}") for joint in (1, 2)] for name in ("Fvm", "Fcm"))
    assert np.all(np.abs(drawn.values[absent]) < 0.9 * np.abs(free.values[absent]))
    np.testing.assert_allclose(drawn.values[clear], free.values[clear], atol=0.5 * free.sigma[clear].max())


@pytest.mark.parametrize("times", [1, 9])
def test_sigmas_are_wider_where_left_out_parts_are_predicted_worse_than_they_say(times):
    """Rows that are counted nine times say three times more than they know."""
    whole = fitted(recorded(arm(), 0), ("+Fgm",))
    fit, equations = whole.fit, whole.equations
    system = replace(fit.estimate.system, triangle=np.sqrt(times) * fit.estimate.system.triangle)
    counted = replace(fit.estimate, system=system, covariance=fit.estimate.covariance / times)
    factors = tuple(replace(one, triangle=np.sqrt(times) * one.triangle) for one in fit.used.factors)
    fit = replace(fit, estimate=counted, observations=replace(fit.used, factors=factors))
    fit = replace(fit, used=fit.observations)
    part_of = {(one.recording, one.block): one.block // 3 for one in factors}
    found = regularised_fit(fit, equations, arm().defaults.effects, None, part_of)
    widened = np.median(found.of_data.sigma / counted.sigma)
    assert widened == pytest.approx(np.sqrt(times), rel=0.4)
    assert widened >= 1
    assert np.all(regularised_fit(fit, equations, arm().defaults.effects, None).of_data.sigma == counted.sigma)
