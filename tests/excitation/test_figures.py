"""Predicted figures of a design, against plain numpy on rows written out sample by sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from random_motions import random_trajectory
from steelyard.excitation.information import Unknowns, unknowns
from steelyard.excitation.predicted_accuracy import Forecast, middle_figures
from steelyard.model import build_model
from steelyard.robot import load_robot

RATE = 40.0
JOINTS = ("joint_1", "joint_2")


@pytest.fixture(scope="module")
def chosen() -> Unknowns:
    model = build_model(load_robot("scara_2r"), sign_width=0.3)
    values = {name: 2.0 + k for k, name in enumerate(model.names)}
    return unknowns(model, np.array([0.5, 2.0]), RATE, values=values)


def rows(chosen: Unknowns, trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Return W, and W over the noise, with the exact sign of friction."""
    exact = build_model(chosen.model.robot)
    columns = [exact.names.index(column) for column in chosen.columns]
    count = int(RATE * trajectory.duration)
    there = trajectory.at((np.arange(count) + 0.5) * trajectory.duration / count)
    stacked = [exact.regressor(*one).full()[:, columns] for one in zip(there.q.T, there.qd.T, there.qdd.T, strict=True)]
    return np.vstack(stacked), np.vstack([each / chosen.deviations[:, None] for each in stacked])


@pytest.mark.parametrize("kind", ["fourier", "quintic"])
def test_figures_are_those_of_numpy(chosen, kind):
    trajectory = random_trajectory(kind, JOINTS, seed=2, size=1.0)
    W, weighted = rows(chosen, trajectory)
    figures = Forecast(chosen)(trajectory)
    covariance = np.linalg.inv(weighted.T @ weighted)
    assert figures.names == chosen.names
    assert figures.raw == pytest.approx(np.linalg.cond(W), rel=1e-8)
    assert figures.normalised == pytest.approx(np.linalg.cond(W / np.linalg.norm(W, axis=0)), rel=1e-8)
    assert figures.weighted == pytest.approx(np.linalg.cond(weighted), rel=1e-8)
    assert figures.log10_det_covariance == pytest.approx(np.linalg.slogdet(covariance)[1] / np.log(10))
    np.testing.assert_allclose(figures.sigma, np.sqrt(np.diag(covariance)), rtol=1e-8)
    np.testing.assert_allclose(figures.relative_sigma, figures.sigma / np.abs(chosen.values), rtol=1e-12)


def test_information_of_earlier_recordings_adds_to_that_of_the_new_one(chosen):
    first, second = (random_trajectory("fourier", JOINTS, seed=seed, size=1.0) for seed in (2, 5))
    before, now = (rows(chosen, motion)[1] for motion in (first, second))
    figures = Forecast(replace(chosen, earlier=before.T @ before))(second)
    stacked = np.vstack([before, now])
    covariance = np.linalg.inv(stacked.T @ stacked)
    np.testing.assert_allclose(figures.sigma, np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert figures.weighted == pytest.approx(np.linalg.cond(stacked), rel=1e-8)
    assert figures.raw == pytest.approx(np.linalg.cond(rows(chosen, second)[0]), rel=1e-8)


def test_a_long_motion_is_told_in_blocks(chosen, monkeypatch):
    trajectory = random_trajectory("fourier", JOINTS, seed=2)
    whole = Forecast(chosen)(trajectory)
    monkeypatch.setattr("steelyard.excitation.predicted_accuracy.BLOCK", 37)
    np.testing.assert_allclose(Forecast(chosen)(trajectory).sigma, whole.sigma, rtol=1e-10)


def test_parameters_of_no_size_have_no_relative_sigma(chosen):
    sizes = chosen.values.copy()
    sizes[1] = 0.0
    sizes[2] = np.nan
    relative = Forecast(replace(chosen, values=sizes))(random_trajectory("fourier", JOINTS, seed=2)).relative_sigma
    np.testing.assert_array_equal(np.isnan(relative), np.isin(np.arange(len(sizes)), [1, 2]))


def test_the_middle_of_several_figures_is_their_median(chosen):
    forecast = Forecast(chosen)
    each = [forecast(random_trajectory("fourier", JOINTS, seed=seed)) for seed in (2, 3, 4)]
    middle = middle_figures(each)
    assert middle.raw == sorted(one.raw for one in each)[1]
    assert middle.log10_det_covariance == sorted(one.log10_det_covariance for one in each)[1]
    np.testing.assert_array_equal(middle.sigma, np.median([one.sigma for one in each], axis=0))
