"""The Cramer-Rao bound: against the covariance written out, and against estimators that reach it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from steelyard.study import SimulatedExperiments, StudySettings, cramer_rao_bound, montecarlo
from study.studies import UNFILTERED, WHITE, moves, scara, waves

CORRELATED = {"kind": "correlated", "std": [0.5, 0.02], "band": 3.0}


def bound_of(*settings, **others) -> np.ndarray:
    """Return the Cramer-Rao sigmas of a study that has a bound."""
    sigma = cramer_rao_bound(SimulatedExperiments(scara(*settings, **others))).sigma
    assert sigma is not None
    return sigma


def rows_of(experiments):
    """Return W (2, N, c) of the undisturbed motion, written out with zeros."""
    equations, run = experiments.equations, experiments.undisturbed
    compiled = equations.compiled(False)
    rows = np.zeros((2, run.time.size, len(equations.names)))
    for e, block in enumerate(compiled.function(run.q[0], run.qd[0], run.qdd[0])):
        rows[e][:, [equations.names.index(name) for name in compiled.columns[e]]] = block.T
    return rows


def sigma_of(rows, covariances):
    """Return sigmas of generalised least squares with the covariance of every equation's noise written out."""
    information = sum(w.T @ np.linalg.solve(c, w) for w, c in zip(rows, covariances, strict=True))
    return np.sqrt(np.diag(np.linalg.inv(information)))


def test_white_noise_gives_the_bound_of_weighted_least_squares():
    experiments = SimulatedExperiments(scara())
    identity = np.eye(experiments.undisturbed.time.size)
    expected = sigma_of(rows_of(experiments), [0.25 * identity, 4e-4 * identity])
    np.testing.assert_allclose(bound_of(), expected, rtol=1e-8)
    assert cramer_rao_bound(experiments).reason == ""


@pytest.mark.parametrize("stream", ["motor_noise", "disturbance"])
def test_correlated_noise_gives_the_bound_of_its_whole_covariance(stream):
    experiments = SimulatedExperiments(scara({stream: CORRELATED}))
    lags = np.exp(-2 * np.pi * 3.0 * np.arange(experiments.undisturbed.time.size) / 100.0)
    covariances = [std**2 * linalg.toeplitz(lags) for std in (0.5, 0.02)]
    np.testing.assert_allclose(bound_of({stream: CORRELATED}), sigma_of(rows_of(experiments), covariances), rtol=1e-7)


def test_a_disturbance_of_a_closed_loop_counts_at_the_controller_s_rate():
    settings = {"control_rate": 200.0, "plant_rate": 2000.0, "disturbance": WHITE["motor_noise"]}
    slow, fast = (bound_of({**settings, "plant": plant}) for plant in ("ideal", "compiled"))
    np.testing.assert_allclose(fast / slow, np.sqrt(0.5), rtol=0.1)


def test_two_white_noises_add_up():
    both = {"motor_noise": {"kind": "white", "std": [0.3, 0.0]}, "disturbance": {"kind": "white", "std": [0.4, 0.02]}}
    np.testing.assert_allclose(bound_of(both), bound_of(WHITE), rtol=1e-10)


@pytest.mark.large
def test_least_squares_without_any_filter_reaches_the_bound():
    given = scara({"record_rate": 200.0, **WHITE}, UNFILTERED, waves())
    (verdict,) = montecarlo(given, StudySettings(("wls",), seeds=60)).verdicts
    assert verdict.rms_over_bound == pytest.approx(1.0, abs=0.12)
    assert not any(one.is_biased or one.is_overconfident for one in verdict.parameters)


def test_noise_on_positions_makes_the_bound_larger_and_little_of_it_does_not():
    exact, little, much = (
        bound_of({**WHITE, **noise}, motion=waves())
        for noise in ({}, *({"position_noise": {"kind": "white", "std": [s, s]}} for s in (1e-9, 1e-2)))
    )
    np.testing.assert_allclose(little, exact, rtol=1e-6)
    assert (much > exact).all()
    assert (much / exact).max() > 1.3


@pytest.mark.parametrize(
    ("settings", "motion", "message"),
    [
        ({"disturbance": {"kind": "band_limited", "std": [1, 1], "band": 5.0}}, moves(), "band limited"),
        ({"motor_noise": {"kind": "white", "std": [1, 0]}}, moves(), "'joint_2' has no noise"),
        ({"position_noise": {"kind": "white", "std": [1e-4, 1e-4]}, **WHITE}, moves(), "Fourier motions"),
        ({"position_noise": {"kind": "white", "std": [1e-4, 0]}, **WHITE}, waves(), "on all of them"),
        ({"position_noise": CORRELATED, **WHITE}, waves(), "white noise"),
        (
            {"position_noise": {"kind": "white", "std": [1e-4, 1e-4]}, "motor_noise": CORRELATED},
            waves(),
            "white noise of the torques",
        ),
        ({"motor_noise": CORRELATED, "disturbance": {"kind": "white", "std": [1, 1]}}, moves(), "sum of noises"),
        (
            {"plant": "compiled", "control_rate": 200.0, "disturbance": {"kind": "white", "std": [1, 1]}, **WHITE},
            moves(),
            "at another rate",
        ),
    ],
)
def test_where_there_is_no_bound_the_reason_is_reported(settings, motion, message):
    bound = cramer_rao_bound(SimulatedExperiments(scara(settings, motion=motion)))
    assert bound.sigma is None
    assert message in bound.reason


def test_the_encoder_s_steps_are_said_not_to_count():
    coarse = {"encoder_quantum": 1e-3, **WHITE}
    np.testing.assert_allclose(bound_of(coarse), bound_of(), rtol=1e-12)
    assert "encoder's steps are not counted" in cramer_rao_bound(SimulatedExperiments(scara(coarse))).reason
