"""Maximum likelihood from recordings: period and noise found, periods averaged, motions that do not repeat refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from estimate.likelihood.periodic_arms import p4
from steelyard.errors import EstimateError
from steelyard.estimate import Evidence, NoiseModel, weighted
from steelyard.estimate.likelihood import (
    LikelihoodProblem,
    LikelihoodRun,
    LikelihoodSettings,
    likelihood_fit,
    maximum_likelihood,
    motion_basis,
    torque_functions,
)
from steelyard.observe import Preparation, reduce_rows, resolve_preparation, row_source
from steelyard.recording import Recording, TorqueChannel

RATE, PERIOD = 150.0, 10.0
POSITION = 1e-3
NO_NOISE = NoiseModel(np.ones(1), {}, {}, {})  # maximum likelihood does not look at it


def recording(seed, periods=1.0, position=POSITION, torque=1.0, payload=None):
    arm4, rng = p4(), np.random.default_rng(seed)
    count = round(periods * 1500)
    index = np.arange(count) % 1500
    q = arm4.motion[0][:, index] + position * rng.standard_normal((3, count))
    y = arm4.torques[:, index] + torque * arm4.deviation[:, None] * rng.standard_normal((3, count))
    channel = TorqueChannel("motor_torque", y)
    return Recording(arm4.equations.joints, 5.0 + np.arange(count) / RATE, q, torques=(channel,), payload=payload)


def evidence_of(*recordings, equations=None, columns=None):
    equations = p4().equations if equations is None else equations
    resolved = resolve_preparation(Preparation(cutoff=5.0, decimation=10), recordings)
    sources = tuple(row_source(each, equations, resolved, f"run {k + 1}") for k, each in enumerate(recordings))
    return Evidence(sources, equations, weighted(reduce_rows(sources), columns or equations.names), NO_NOISE)


def bound(periods=1.0, position=POSITION):
    """Return the sigmas of averaged periods with the noise known."""
    arm4 = p4()
    deviations = np.full(3, position) / np.sqrt(periods), arm4.deviation / np.sqrt(periods)
    run = LikelihoodRun(arm4.motion[0], arm4.torques, arm4.basis, *deviations)
    return likelihood_fit(LikelihoodProblem(arm4.equations, arm4.equations.names, (run,))).sigma


def test_sixteen_periods_are_found_averaged_and_worth_four_times_smaller_sigmas():
    found = maximum_likelihood(evidence_of(recording(0, 16)), LikelihoodSettings(), {})
    estimate = found.estimate
    assert (estimate.method, estimate.covariance_kind) == ("ml", "cramer_rao")
    assert estimate.columns == p4().equations.names
    note = found.notes[0]
    assert "period 10 s (found), harmonics 1 to 5 (found); 16 periods averaged" in note
    np.testing.assert_allclose(estimate.sigma, bound(16), rtol=0.03)
    np.testing.assert_allclose(estimate.sigma, bound(1) / 4, rtol=0.04)
    assert np.sqrt(np.mean(((estimate.values - p4().theta) / estimate.sigma) ** 2)) < 1.6
    assert len(found.notes) == 1


def test_a_single_period_finds_its_harmonics_and_its_noise():
    found = maximum_likelihood(evidence_of(recording(1)), LikelihoodSettings(period=PERIOD), {})
    assert "period 10 s (given), harmonics 1 to 5 (found); 10 s of samples as they are" in found.notes[0]
    np.testing.assert_allclose(found.estimate.sigma, bound(), rtol=0.06)
    assert np.sqrt(np.mean(((found.estimate.values - p4().theta) / found.estimate.sigma) ** 2)) < 1.6


def test_a_part_of_a_period_is_enough_if_period_and_harmonics_are_given():
    settings = LikelihoodSettings(period=PERIOD, harmonics=5)
    found = maximum_likelihood(evidence_of(recording(2, 0.75)), settings, {})
    assert np.sqrt(np.mean(((found.estimate.values - p4().theta) / found.estimate.sigma) ** 2)) < 1.6
    assert (found.estimate.sigma > bound()).all()


def test_gaps_are_no_harm_where_samples_are_used_as_they_are():
    whole = recording(11)
    selected = np.r_[0:700, 740:1500]
    torques = (TorqueChannel("motor_torque", whole.torques[0].values[:, selected]),)
    log = replace(whole, time=whole.time[selected], q=whole.q[:, selected], torques=torques)
    settings = LikelihoodSettings(period=PERIOD)
    found = maximum_likelihood(evidence_of(log), settings, {})
    assert "harmonics 1 to 5 (found); 9.73333 s of samples as they are" in found.notes[0]
    reference = maximum_likelihood(evidence_of(whole), settings, {}).estimate
    np.testing.assert_allclose((found.estimate.values - reference.values) / reference.sigma, 0, atol=1.0)
    assert np.abs(found.estimate.sigma / reference.sigma - 1).max() < 0.15


def test_given_noise_counts_a_sample_and_exact_positions_give_least_squares_of_the_mean_period():
    settings = LikelihoodSettings(
        period=PERIOD, harmonics=5, position_noise=(0.0,), torque_noise=tuple(p4().deviation.tolist())
    )
    log = recording(3, 4)
    estimate = maximum_likelihood(evidence_of(log), settings, {}).estimate
    arm4 = p4()
    q = log.q.reshape(3, 4, 1500).mean(axis=1)
    y = log.torques[0].values.reshape(3, 4, 1500).mean(axis=1)
    run = LikelihoodRun(q, y, arm4.basis, np.zeros(3), arm4.deviation / 2)
    expected = likelihood_fit(LikelihoodProblem(arm4.equations, arm4.equations.names, (run,)))
    np.testing.assert_allclose(estimate.values, expected.values, rtol=1e-8)
    np.testing.assert_allclose(estimate.covariance, expected.covariance, rtol=1e-8, atol=1e-12)


@pytest.mark.large
def test_intervals_cover_when_noise_is_found_from_the_periods():
    inside = []
    settings = LikelihoodSettings(period=PERIOD, harmonics=5)
    for seed in range(12):
        estimate = maximum_likelihood(evidence_of(recording(50 + seed, 3, 5e-3)), settings, {}).estimate
        inside.append(np.abs(estimate.values - p4().theta) <= estimate.half_width())
    assert 0.90 < np.mean(inside) < 0.99  # 252 intervals: 0.95 +- 0.014


def test_several_recordings_share_the_parameters():
    logs = [recording(4, 2), recording(5, 2)]
    settings = LikelihoodSettings(period=PERIOD, harmonics=5)
    reported = []
    both = maximum_likelihood(evidence_of(*logs), settings, {}, lambda done, total: reported.append((done, total)))
    single = [maximum_likelihood(evidence_of(log), settings, {}).estimate for log in logs]
    assert len(both.notes) == 2
    mean = np.mean([each.values for each in single], axis=0)
    np.testing.assert_allclose((both.estimate.values - mean) / single[0].sigma, 0, atol=0.1)
    np.testing.assert_allclose(both.estimate.sigma, single[0].sigma / np.sqrt(2), rtol=0.05)
    assert reported[-1] == (1, 1)


def test_columns_that_are_not_estimated_are_zero():
    names = p4().equations.names
    selected = tuple(name for name in names if name not in ("YZ3", "XZ3"))
    settings = LikelihoodSettings(period=PERIOD, harmonics=5)
    estimate = maximum_likelihood(evidence_of(recording(6, 2), columns=selected), settings, {}).estimate
    assert estimate.columns == selected
    whole = maximum_likelihood(evidence_of(recording(6, 2)), settings, {}).estimate
    assert (estimate.sigma <= whole.sigma[[names.index(name) for name in selected]] * 1.02).all()


def test_periods_of_no_whole_number_of_samples_are_used_as_they_are():
    arm4, rng = p4(), np.random.default_rng(7)
    time = np.arange(4490) / 149.6789
    motion = arm4.coefficients @ motion_basis(time, PERIOD, range(1, 6))
    torques = torque_functions(arm4.equations, arm4.equations.names).torques(motion, motion[1], arm4.theta)
    q = motion[0] + POSITION * rng.standard_normal((3, len(time)))
    y = torques + arm4.deviation[:, None] * rng.standard_normal((3, len(time)))
    log = Recording(arm4.equations.joints, time, q, torques=(TorqueChannel("motor_torque", y),))
    found = maximum_likelihood(evidence_of(log), LikelihoodSettings(), {})
    assert "harmonics 1 to 5 (found); 29.99" in found.notes[0]
    assert np.sqrt(np.mean(((found.estimate.values - arm4.theta) / found.estimate.sigma) ** 2)) < 1.6
    np.testing.assert_allclose(found.estimate.sigma, bound(3), rtol=0.05)


def test_a_model_that_lacks_something_is_said():
    log = recording(8, 4)
    values = log.torques[0].values + 20.0 * np.sin(3 * log.q[1])
    found = maximum_likelihood(
        evidence_of(replace(log, torques=(TorqueChannel("motor_torque", values),))), LikelihoodSettings(), {}
    )
    assert "times the noise: the model lacks something there" in found.notes[-1]
    assert "motor torque of 'joint_3'" in found.notes[-1]


def test_noise_free_recordings_give_the_truth():
    found = maximum_likelihood(evidence_of(recording(9, 2, 0.0, 0.0)), LikelihoodSettings(), {})
    np.testing.assert_allclose(found.estimate.values, p4().theta, rtol=1e-6)


def test_a_motion_that_does_not_repeat_is_refused_with_what_to_use_instead():
    log = recording(10, 1)
    with pytest.raises(EstimateError, match=r"'run 1' is not periodic .*give the period and the harmonics.*gls or iv"):
        maximum_likelihood(evidence_of(log), LikelihoodSettings(), {})
    with pytest.raises(EstimateError, match=r"% of the motion of joint 'joint_\d' is no Fourier series of 7 s"):
        maximum_likelihood(evidence_of(log), LikelihoodSettings(period=7.0, harmonics=5), {})
    with pytest.raises(EstimateError, match=r"does not repeat after 7 s .*gls or iv"):
        maximum_likelihood(evidence_of(recording(10, 3)), LikelihoodSettings(period=7.0), {})
    with pytest.raises(EstimateError, match="too short to find its harmonics; give"):
        maximum_likelihood(evidence_of(log), LikelihoodSettings(period=20.0), {})
    with pytest.raises(EstimateError, match="harmonic 800 of 10 s is not below half of 150 Hz"):
        maximum_likelihood(evidence_of(log), LikelihoodSettings(period=10.0, harmonics=(1, 800)), {})
    with pytest.raises(EstimateError, match="position_noise: got 2 deviations"):
        maximum_likelihood(evidence_of(log), LikelihoodSettings(PERIOD, 5, position_noise=(0.1, 0.1)), {})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"period": 0.0}, "a finite number above 0"),
        ({"period": float("nan")}, "a finite number above 0"),
        ({"harmonics": 0}, "at least one line"),
        ({"harmonics": ()}, "at least one line"),
        ({"harmonics": (1, 0)}, "a whole number from 1"),
        ({"position_noise": (-1.0,)}, "of 0 or more"),
        ({"torque_noise": (0.0,)}, "a finite number above 0"),
        ({"algorithm": "gauss"}, "did you mean 'gauss_newton'"),
        ({"tolerance": 0.0}, "a finite number above 0"),
        ({"most_iterations": 0}, "a whole number from 1"),
        ({"sign_width": -0.1}, "of 0 or more"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(EstimateError, match=message):
        LikelihoodSettings(**wrong)
