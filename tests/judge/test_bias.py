"""Bias by doing it twice: attenuation by position noise and the low-pass's loss are found with sign and size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from arms import arm
from observe.cases import equations_for, model_of
from steelyard.estimate import Estimate, generalised, weighted
from steelyard.judge.bias import WORTH_NAMING, Bias, estimate_bias
from steelyard.motion import quintic
from steelyard.observe import Preparation, reduce_rows, resolve_preparation, row_source
from steelyard.recording import Recording, TorqueChannel

RATE = 100.0
TRUE = {"ZZ1": 3.42, "Fvm1": 0.07, "Fcm1": 0.58, "ZZ2": 0.064, "MX2": 0.262, "MY2": 0.0, "Fvm2": 0.015, "Fcm2": 0.156}


@pytest.fixture(scope="module")
def equations():
    return equations_for(model_of("scara_2r"))


@pytest.fixture(scope="module")
def clean(equations) -> Recording:
    """The SCARA on P1-like moves for 40 s, torques exact."""
    points = np.zeros((2, 41))
    points[:, 1:-1] = np.random.default_rng(0).uniform(-1, 1, (2, 39)) * [[0.45], [2.6]]
    motion = quintic(points, 1.0, [body.joint.name for body in arm("scara_2r").actuated]).sample(RATE)
    outputs = equations.compiled(False).function(motion.q, motion.qd, motion.qdd)
    torque = [
        np.array([TRUE[name] for name in columns]) @ rows
        for columns, rows in zip(equations.compiled(False).columns, outputs, strict=True)
    ]
    return Recording(
        equations.joints, motion.time, motion.q, torques=(TorqueChannel("motor_torque", np.stack(torque)),)
    )


def noisy(clean: Recording, position: float, torque: tuple[float, float], seed: int) -> Recording:
    rng = np.random.default_rng(seed)
    values = clean.torques[0].values + np.array(torque)[:, None] * rng.standard_normal(clean.q.shape)
    q = clean.q + position * rng.standard_normal(clean.q.shape)
    return replace(clean, q=q, torques=(TorqueChannel("motor_torque", values),))


def fitted(recording: Recording, equations, cutoff: float, repeats: int = 4) -> tuple[Estimate, Bias]:
    resolved = resolve_preparation(Preparation(cutoff=cutoff, decimation=5), [recording])
    sources = [row_source(recording, equations, resolved, "a")]
    estimate = weighted(reduce_rows(sources), equations.names)
    return estimate, estimate_bias([recording], sources, estimate, None, repeats)


def fitted_with_noise_model(recording: Recording, equations, cutoff: float) -> tuple[Estimate, Bias]:
    resolved = resolve_preparation(Preparation(cutoff=cutoff, decimation=5), [recording])
    sources = [row_source(recording, equations, resolved, "a")]
    fit = generalised(sources, weighted(reduce_rows(sources), equations.names))
    return fit.estimate, estimate_bias([recording], sources, fit.estimate, fit.noise.whitening, 2)


def errors(estimate: Estimate) -> np.ndarray:
    return estimate.values - np.array([TRUE[name] for name in estimate.columns])


def test_the_truth_of_the_case_is_that_of_its_equations(equations):
    assert set(equations.names) == set(TRUE)


@pytest.mark.parametrize("noise", [3e-4, 1e-3])
def test_attenuation_by_position_noise_is_found_with_sign_and_size(noise, clean, equations):
    """Accelerations from noisy positions shrink the inertias; means over 6 runs, that of the errors and reported."""
    found, reported = [], []
    for seed in range(6):
        estimate, bias = fitted(noisy(clean, noise, (0.5, 0.05), seed), equations, 20.0)
        found.append(errors(estimate))
        reported.append(bias.noise)
        assert {"ZZ1", "MX2"} <= set(bias.named)
    for name in ("ZZ1", "MX2"):
        k = equations.names.index(name)
        error, own = np.mean(found, axis=0)[k], np.mean(reported, axis=0)[k]
        assert error < 0
        assert abs(own - error) < 0.25 * abs(error) + 3 * np.std(found, axis=0)[k] / np.sqrt(6)


@pytest.mark.parametrize("fit", [fitted, fitted_with_noise_model])
@pytest.mark.parametrize("cutoff", [1.8, 2.0])
def test_what_the_low_pass_takes_away_is_found(cutoff, fit, clean, equations):
    """Moves of 1 s have accelerations beyond 2 Hz; without them inertias come out too large."""
    estimate, bias = fit(noisy(clean, 1e-8, (0.02, 0.002), 1), equations, cutoff)
    error = errors(estimate)
    for name in ("ZZ1", "ZZ2"):
        k = estimate.columns.index(name)
        assert error[k] > 3 * estimate.sigma[k]
        assert 0.6 < bias.filter[k] / error[k] < 1.6
        assert name in bias.named


def test_the_worst_comes_first(clean, equations):
    bias = fitted(noisy(clean, 1e-3, (0.5, 0.05), 1), equations, 20.0)[1]
    sizes = [abs(bias.over_sigma[bias.columns.index(name)]) for name in bias.named]
    assert sizes == sorted(sizes, reverse=True)
    assert all(size > WORTH_NAMING for size in sizes)


def test_nothing_is_named_where_there_is_none(clean, equations):
    estimate, bias = fitted(noisy(clean, 1e-7, (1.0, 0.2), 2), equations, 20.0)
    assert bias.named == ()
    assert np.abs(bias.over_sigma).max() < WORTH_NAMING
    assert bias.columns == estimate.columns


@pytest.mark.large
def test_the_same_seed_gives_the_same_bias(clean, equations):
    recording = noisy(clean, 1e-3, (0.05, 0.01), 3)
    first, second = (fitted(recording, equations, 20.0, repeats=2)[1] for _ in range(2))
    np.testing.assert_array_equal(first.noise, second.noise)
    np.testing.assert_array_equal(first.filter, second.filter)


def test_progress_counts_the_refits(clean, equations):
    recording = noisy(clean, 1e-4, (0.05, 0.01), 4)
    resolved = resolve_preparation(Preparation(cutoff=20.0, decimation=5), [recording])
    sources = [row_source(recording, equations, resolved, "a")]
    estimate = weighted(reduce_rows(sources), equations.names)
    steps = []
    bias = estimate_bias([recording], sources, estimate, None, 3, progress=lambda *step: steps.append(step))
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert np.isfinite(bias.noise_sigma).all()


@pytest.mark.parametrize("kept", ["singles", "blocks"])
def test_gaps_in_a_log_are_no_bias_by_the_filter(kept, clean, equations):
    """Filtered as if the samples left were neighbours, positions jump where samples are missing."""
    recording = noisy(clean, 1e-5, (0.5, 0.05), 1)
    there = np.ones(recording.samples, dtype=bool)
    if kept == "singles":
        there[np.random.default_rng(2).choice(np.arange(10, recording.samples - 10), 40, replace=False)] = False
    else:
        there[1000:1150] = there[2500:2620] = False
    channel = recording.torques[0]
    cut = replace(
        recording, time=recording.time[there], q=recording.q[:, there],
        torques=(replace(channel, values=channel.values[:, there]),),
    )  # fmt: skip
    estimate, bias = fitted(cut, equations, 20.0, repeats=1)
    assert np.abs(bias.filter / estimate.sigma).max() < WORTH_NAMING
