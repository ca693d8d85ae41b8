"""Many experiments at once: the numbers of each alone, and no trouble of one is another's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulated_experiments import scara
from steelyard.errors import EstimateError, SignalError, SteelyardError
from steelyard.identification import Fitted, Settings, fit_arm, fit_arms
from steelyard.observe import resolve_preparation
from steelyard.recording import Recording
from steelyard.robot import load_robot

SCARA = load_robot("scara_2r")
METHODS = ("wls", "gls", "ekf")


@pytest.fixture(scope="module")
def equations():
    return fit_arm(SCARA, [scara(0)]).equations


def good(one: Fitted | SteelyardError) -> Fitted:
    assert isinstance(one, Fitted)
    return one


def same_fit(one: Fitted | SteelyardError, other: Fitted) -> None:
    first, second = good(one).fit, other.fit
    assert first.estimate.columns == second.estimate.columns
    assert (first.detail is None) == (second.detail is None)
    assert (first.plain is None) == (second.plain is None)
    for name in ("values", "sigma"):
        np.testing.assert_array_equal(getattr(first.estimate, name), getattr(second.estimate, name))


def standing_still(recording: Recording) -> Recording:
    """Return a recording whose second joint does not move."""
    return replace(recording, q=np.vstack([recording.q[0], np.full(recording.samples, 0.5)]))


@pytest.mark.parametrize("method", METHODS)
def test_each_of_many_is_what_it_is_alone(method, equations):
    settings = Settings(method=method)
    fits = fit_arms(SCARA, [[scara(seed)] for seed in range(3)], settings, equations)
    for seed, fitted in enumerate(fits):
        same_fit(fitted, fit_arm(SCARA, [scara(seed)], settings, equations=equations))
    assert np.ptp([good(one).fit.estimate.values[0] for one in fits]) > 0


@pytest.mark.parametrize("method", METHODS)
def test_experiments_with_one_motion_share_its_preparation(method, equations):
    settings, recording = Settings(method=method), scara(0)
    noisier = replace(recording, torques=tuple(replace(one, values=1.01 * one.values) for one in recording.torques))
    resolved = resolve_preparation(settings.preparation, [recording])
    first, second = fit_arms(SCARA, [[recording], [noisier]], settings, equations, resolved)
    same_fit(first, fit_arm(SCARA, [recording], settings, equations=equations))
    same_fit(second, fit_arm(SCARA, [noisier], settings, equations=equations))
    assert good(first).resolved is good(second).resolved is resolved


@pytest.mark.parametrize("method", METHODS)
def test_a_prior_is_counted_as_it_is_alone(method, equations):
    settings = Settings(method=method, prior={"ZZ1R": (3.0, 0.01)})
    (one,) = fit_arms(SCARA, [[scara(1)]], settings, equations)
    same_fit(one, fit_arm(SCARA, [scara(1)], settings, equations=equations))
    (free,) = fit_arms(SCARA, [[scara(1)]], Settings(method=method), equations)
    assert good(one).fit.estimate.values[0] != good(free).fit.estimate.values[0]


@pytest.mark.parametrize("method", METHODS)
def test_an_experiment_that_cannot_be_fitted_leaves_the_others_alone(method, equations):
    settings, still = Settings(method=method), standing_still(scara(1))
    with pytest.raises(EstimateError, match="'joint_2' never moves") as caught:
        fit_arm(SCARA, [still], settings, equations=equations)
    fits = fit_arms(SCARA, [[scara(0)], [still], [scara(2)]], settings, equations)
    assert isinstance(fits[1], EstimateError)
    assert str(fits[1]) == str(caught.value)
    for seed in (0, 2):
        same_fit(fits[seed], fit_arm(SCARA, [scara(seed)], settings, equations=equations))
    (alone,) = fit_arms(SCARA, [[still]], settings, equations)
    assert str(alone) == str(caught.value)
    assert fit_arms(SCARA, [], settings, equations) == []


def test_where_the_filters_cannot_be_run_together_each_tells_about_itself(equations, monkeypatch):
    def refuse(evidences, settings, prior):
        raise SignalError("samples of one of them make no sense")

    monkeypatch.setattr("steelyard.estimate.kalman.filter.kalman_filters", refuse)
    settings = Settings(method="ekf")
    fits = fit_arms(SCARA, [[scara(0)], [scara(1)]], settings, equations)
    for seed, fitted in enumerate(fits):
        same_fit(fitted, fit_arm(SCARA, [scara(seed)], settings, equations=equations))


def test_defects_are_not_taken_for_results(equations, monkeypatch):
    def broken(evidences, settings, prior):
        raise ZeroDivisionError

    monkeypatch.setattr("steelyard.estimate.kalman.filter.kalman_filters", broken)
    with pytest.raises(ZeroDivisionError):
        fit_arms(SCARA, [[scara(0)]], Settings(method="ekf"), equations)
