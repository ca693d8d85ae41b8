"""Sigmas after identification's preparation, against dense matrices of the filters and of the noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg

from random_motions import random_trajectory
from steelyard.excitation import DesignSettings, Known, assembled, design, design_limits, known_of
from steelyard.excitation.information import Unknowns, unknowns
from steelyard.excitation.motion_design import TOO_SHORT, alike
from steelyard.excitation.predicted_accuracy import Forecast, PredictedAccuracy, PreparedInformation, core_of, exact
from steelyard.model import build_model
from steelyard.motion import Trajectory, at_speed, fourier, with_approach
from steelyard.observe import MIN_SHARE, Preparation, equations_of, resolve_preparation, row_source
from steelyard.recording import Recording, TorqueChannel
from steelyard.robot import load_robot

RATE = 50.0
SCARA = load_robot("scara_2r")
JOINTS = ("joint_1", "joint_2")
NOISE = np.array([0.5, 2.0])
MOTION = fourier([0.1, 0.3], [[0.8, 0.2], [0.5, -0.3]], [[0.3, 0.4], [0.2, 0.1]], 6.0, JOINTS, periods=3)
SHORT = fourier([0.1, 0.3], [[0.01], [0.02]], [[0.0], [0.01]], 0.2, JOINTS)


def scara(payload: str = "none", **given) -> Unknowns:
    model = build_model(SCARA, payload=payload, sign_width=0.3)
    return unknowns(model, NOISE, RATE, values=dict.fromkeys(model.names, 2.0), **given)


def recording_at_rate(trajectory: Trajectory) -> Recording:
    samples = trajectory.sample(RATE)
    channel = TorqueChannel("motor_torque", np.zeros_like(samples.q))
    return Recording(JOINTS, samples.time, samples.q, torques=(channel,))


def dense_information(chosen: Unknowns, trajectory: Trajectory) -> np.ndarray:
    """Return ``W^T S^-1 W`` with S of white noise that went through the decimator, written out.

    Rows mostly near standstill are left out, and noise is not followed across such a gap.
    """
    recording = recording_at_rate(trajectory)
    resolved = resolve_preparation(Preparation(), [recording])
    assert resolved.decimation > 1
    equations = equations_of(exact(chosen).model)
    blocks = list(row_source(recording, equations, resolved, "recording"))
    taps = resolved.decimation_filter.impulse_response()
    count = sum(len(block.time) for block in blocks)
    weights = np.zeros((count, len(taps) + (count - 1) * resolved.decimation))
    for row in range(count):
        weights[row, row * resolved.decimation :][: len(taps)] = taps
    total = np.zeros((len(chosen.columns),) * 2)
    for e, deviation in enumerate(NOISE):
        W = np.zeros((count, len(chosen.columns)))
        names = equations.columns[e]
        places = [k for k, name in enumerate(names) if name in chosen.columns]
        rows = np.concatenate([block.rows[e] for block in blocks])
        W[:, [chosen.columns.index(names[k]) for k in places]] = rows[:, places]
        usable = np.concatenate([block.share[e] for block in blocks]) >= MIN_SHARE
        run = np.cumsum(~usable)[usable]
        S = np.where(run[:, None] == run, (weights @ weights.T)[usable][:, usable], 0.0)
        total += W[usable].T @ linalg.solve(deviation**2 * S, W[usable], assume_a="pos")
    return total


def prepared(chosen: Unknowns, trajectory: Trajectory) -> np.ndarray:
    return PreparedInformation(exact(chosen))(trajectory)


def sigma(information: np.ndarray) -> np.ndarray:
    return np.sqrt(np.diag(np.linalg.inv(information)))


def test_the_information_is_that_of_decimated_rows_with_decimated_noise():
    for chosen in (scara(), scara(columns=["ZZ2", "Fcm1", "Fcm2", "Fvm1"])):
        found, dense = sigma(prepared(chosen, MOTION)), sigma(dense_information(chosen, MOTION))
        np.testing.assert_allclose(found, dense, rtol=0.01)


def test_ends_are_lost_and_friction_pays_for_it():
    """The motion begins and ends at rest: what the filters cut off is slow."""
    time = np.linspace(0, 1, 3)
    way = with_approach(MOTION, MOTION.at(time).q[:, 0], 2.0, 2.0)
    forecast = Forecast(scara())
    costs = PredictedAccuracy(forecast)(way).sigma / forecast(way).sigma
    friction = np.array([name.startswith("F") for name in forecast.unknowns.names])
    assert costs.min() > 1
    assert costs[friction].mean() > costs[~friction].mean()
    assert costs.max() < 1.5


def test_figures_are_of_the_motion_proper_and_sigmas_of_the_whole_recording():
    forecast = Forecast(scara())
    accuracy = PredictedAccuracy(forecast)
    way = with_approach(MOTION, [0.0, 0.0], 2.0, 2.0)
    own, whole, bare = forecast(MOTION), accuracy(way), accuracy(MOTION)
    for what in ("names", "raw", "normalised", "weighted", "log10_det_covariance"):
        assert getattr(whole, what) == getattr(bare, what) == getattr(own, what)
    assert whole.is_prepared
    assert bare.is_prepared
    assert not own.is_prepared
    np.testing.assert_allclose(whole.sigma, sigma(prepared(scara(), way)), rtol=1e-8)
    np.testing.assert_allclose(whole.relative_sigma, whole.sigma / np.abs(forecast.unknowns.values), rtol=1e-12)
    assert (whole.sigma < bare.sigma).all()
    assert core_of(way) is MOTION
    assert core_of(MOTION) is MOTION


def test_earlier_information_is_added():
    earlier = 3 * prepared(scara(), random_trajectory("fourier", JOINTS, seed=2))
    figures = PredictedAccuracy(Forecast(replace(scara(), earlier=earlier)))(MOTION)
    np.testing.assert_allclose(figures.sigma, sigma(prepared(scara(), MOTION) + earlier), rtol=1e-8)


def test_runs_without_and_with_payload_both_count():
    single, loaded, paired = (scara(payload) for payload in ("none", "loaded", "paired"))
    both = prepared(paired, MOTION)
    arm = [paired.columns.index(name) for name in single.columns]
    carried = [k for k, name in enumerate(paired.columns) if name not in single.columns]
    assert carried
    alone, twice = prepared(single, MOTION), both[np.ix_(arm, arm)]
    np.testing.assert_allclose(twice, 2 * alone, rtol=1e-9, atol=1e-9 * np.abs(alone).max())
    common = [name for name in paired.columns if name in loaded.columns]
    ours, theirs = ([one.columns.index(name) for name in common] for one in (paired, loaded))
    payload = [k for k, name in enumerate(common) if paired.columns.index(name) in carried]
    with_load = prepared(loaded, MOTION)[np.ix_(theirs, theirs)]
    np.testing.assert_allclose(both[np.ix_(ours, ours)][payload], with_load[payload], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("measured", ["motor", "joint", "both", "difference"])
def test_every_kind_of_torque_has_its_rows(measured):
    robot = load_robot("kuka_lwr4")
    model = build_model(robot, measured=measured)
    chosen = unknowns(model, np.linspace(1.0, 2.0, len(model.rows)), RATE)
    joints = tuple(body.joint.name for body in robot.actuated)
    motion = random_trajectory("fourier", joints, seed=3, size=1.0)
    whole = Forecast(chosen).matrices(motion)[1]
    retained = np.diag(prepared(chosen, motion)) / np.diag(whole)
    assert retained.min() > 0.3
    assert retained.max() < 1.2


def test_noise_of_positions_adds_what_it_costs_at_all_samples():
    limits = design_limits(SCARA)
    model = build_model(SCARA)
    known: Known = known_of(model, limits)[0]

    def ready(position_noise: float) -> Forecast:
        settings = DesignSettings(rate=RATE, noise=(0.5, 0.05), duration=18.0, harmonics=2, periods=3)
        return assembled(model, limits, replace(settings, position_noise=position_noise), known).forecast()

    without, small, large = (ready(noise) for noise in (0.0, 1e-6, 0.1))
    assert without.cost_of_positions(MOTION) is None
    np.testing.assert_allclose(
        PredictedAccuracy(small)(MOTION).sigma, PredictedAccuracy(without)(MOTION).sigma, rtol=1e-6
    )
    added = PredictedAccuracy(large)(MOTION).sigma ** 2 - PredictedAccuracy(without)(MOTION).sigma ** 2
    bound = large(MOTION).sigma ** 2 - without(MOTION).sigma ** 2
    assert bound.max() > 0
    np.testing.assert_allclose(added, bound, rtol=1e-4, atol=1e-6 * bound.max())


def test_a_motion_too_short_for_the_filters_has_the_sigmas_of_its_samples():
    forecast = Forecast(scara())
    accuracy = PredictedAccuracy(forecast)
    figures = accuracy(SHORT)
    assert not figures.is_prepared
    np.testing.assert_array_equal(figures.sigma, forecast(SHORT).sigma)
    np.testing.assert_array_equal(accuracy.information(SHORT), forecast.matrices(SHORT)[1])


def test_a_design_too_short_for_the_filters_says_so():
    quick = DesignSettings(starts=1, harmonics=2, rate=20.0)
    short, longer = (design(SCARA, replace(quick, duration=duration)) for duration in (1.0, 8.0))
    assert TOO_SHORT in short.notes
    assert not short.figures.is_prepared
    assert TOO_SHORT not in longer.notes
    assert longer.figures.is_prepared
    assert longer.baseline is not None
    assert longer.baseline.is_prepared


def test_random_motions_get_ways_in_and_out_alike():
    way = with_approach(MOTION, [0.2, 0.1], 1.5, 2.5, [0.0, 0.3])
    other = at_speed(MOTION, 0.5)
    dressed = alike(other, way)
    assert dressed.core_interval == (1.5, 1.5 + other.duration)
    assert dressed.duration == 4.0 + other.duration
    ends = dressed.at([0.0, dressed.duration])
    np.testing.assert_allclose(ends.q.T, [[0.2, 0.1], [0.0, 0.3]], atol=1e-12)
    assert alike(other, MOTION) is other
