"""A prior of the wrong size is noticed; CAD values that are off by 10 to 30 % are not called wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad

from simulated_experiments import short_log
from steelyard.consistency import ConsistencySettings, StandardProblem, reference_body, standard_parameters
from steelyard.consistency.agreement import (
    FactorLikelihood,
    PriorUsed,
    common_factor,
    needed_deviations,
    prior_disagreements,
    with_disagreements,
)
from steelyard.consistency.pseudo_inertia import random_bodies, svec
from steelyard.identification import Settings, fit_arm
from steelyard.robot import INERTIAL_NAMES, Robot, load_robot

ARM = load_robot("kuka_ir361")


@pytest.fixture(scope="module")
def fitted():
    run, recording = short_log("kuka_ir361", 1)
    return fit_arm(ARM, [recording], Settings(effects=run.effects))


def problem_of(fit, prior: Robot, truth: Robot | None = None) -> tuple[StandardProblem, np.ndarray]:
    """Return the problem of data of the arm itself, or of another truth with the same noise, and the data's arm."""
    estimate = fit.fit.estimate
    if truth is not None:
        values = np.array([truth.parameters.get(name, 0.0) for name in fit.equations.model.names])
        shift = fit.equations.base.regrouping @ values
        place = [fit.equations.names.index(name) for name in estimate.columns]
        estimate = replace(estimate, values=shift[place])
    found = standard_parameters(fit.equations, estimate, ConsistencySettings(draws=2))
    return StandardProblem(fit.equations, estimate, ConsistencySettings(), prior), found.values


def with_links(robot: Robot, tens: dict[int, np.ndarray]) -> Robot:
    values = {}
    for number, ten in tens.items():
        values |= {f"{symbol}{number}": float(value) for symbol, value in zip(INERTIAL_NAMES, ten, strict=True)}
    return robot.with_parameters(values)


@pytest.mark.large
def test_priors_off_by_10_to_30_percent_link_by_link_are_not_doubted(fitted):
    alarms, common, wide = 0, 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        tens = {
            body.number: reference_body(np.array(body.inertia)).to_parameters
            @ svec(random_bodies(rng.uniform(0.1, 0.3), 1, rng)[0])
            for body in ARM.bodies
        }
        problem, values = problem_of(fitted, ARM, with_links(ARM, tens))
        alarms += bool(prior_disagreements(problem, values))
        common += common_factor(problem, values) is not None
        wide += bool(needed_deviations(problem, 0.3, values))
    assert alarms <= 2
    assert common == wide == 0


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_factor_of_all_links_alike_is_named_as_such(fitted, factor):
    prior = with_links(ARM, {body.number: factor * np.array(body.inertia) for body in ARM.bodies})
    found = with_disagreements(PriorUsed("", "geometric", 0.03, True, {}), problem_of(fitted, prior)[0])
    assert found.common_factor == pytest.approx(1 / factor, rel=0.2)
    assert found.deviation > 0.5
    one = with_links(ARM, {2: factor * np.array(ARM.bodies[1].inertia)})
    assert common_factor(*problem_of(fitted, one)) is None


@pytest.mark.parametrize("kind", ["geometric", "euclidean"])
def test_a_chosen_deviation_explains_how_far_the_data_draw_each_link(fitted, kind):
    """A mass 2.5 times too large is no disagreement by a factor of three, but no chance at 3 % either."""
    problem, values = problem_of(fitted, with_links(ARM, {2: 2.5 * np.array(ARM.bodies[1].inertia)}))
    problem.settings = ConsistencySettings(kind=kind)
    prior = PriorUsed("", kind, 0.03, True, {})
    found = with_disagreements(prior, problem)
    assert found.disagreements == ()
    assert "link_2" in found.contradicted
    assert found.contradicted["link_2"] > 0.03
    assert 0.1 < found.deviation < 0.5
    assert needed_deviations(problem, found.deviation, values) == {}
    given = with_disagreements(replace(prior, chosen=False), problem)
    assert given.deviation == 0.03
    assert given.contradicted == found.contradicted
    right = with_disagreements(prior, problem_of(fitted, ARM)[0])
    assert (right.deviation, right.contradicted, right.common_factor) == (0.03, {}, None)


@pytest.mark.parametrize("factor", [0.001, 0.1, 10.0, 1000.0])
def test_a_factor_of_all_links_is_found(fitted, factor):
    prior = with_links(ARM, {body.number: factor * np.array(body.inertia) for body in ARM.bodies})
    found = prior_disagreements(*problem_of(fitted, prior))
    assert [one.link for one in found] == [body.link for body in ARM.bodies]
    assert [one.factor for one in found] == pytest.approx([1 / factor] * 3, rel=0.5)
    assert ("too heavy" if factor > 1 else "too light") in found[0].text


def test_the_gradient_of_the_likelihood_is_its_derivative(fitted):
    likelihood = FactorLikelihood(*problem_of(fitted, ARM))
    point = np.array([0.1, -0.2, 0.3])
    off = check_grad(lambda x: likelihood.negative_log(x)[0], lambda x: likelihood.negative_log(x)[1], point)
    assert off < 1e-4 * np.linalg.norm(likelihood.negative_log(point)[1])
