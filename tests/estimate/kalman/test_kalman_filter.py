"""The filter on recordings: P1's three cases, gaps, payloads, locked parameters, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from arms import arm
from estimate.kalman.filter_cases import (
    equations_of_scara,
    evidence_of,
    paper_prior,
    run_of_scara,
    scara_evidence,
)
from steelyard.errors import EstimateError
from steelyard.estimate import NoiseModel, kalman
from steelyard.estimate.evidence import Estimated
from steelyard.estimate.kalman import KalmanSettings, engines
from steelyard.estimate.kalman.noises import noises_of, torque_noise
from steelyard.model import build_model
from steelyard.motion import quintic
from steelyard.observe import Preparation, equations_of, part_of, row_source
from steelyard.papers.p1_motion import CASES, NAMES, TRUE, paper_values, scara_equations
from steelyard.signals import decimate
from steelyard.simulation import Experiment, Noise, recording_of, simulate
from steelyard.study import default_motion

ROUGH = paper_prior([1, 1e-3, 0.1, 0.1, 0.1, 1e-3, 1e-3, 0.1], [10, 1, 1, 1, 1, 1, 1, 1])
PRINTED: dict[str, Any] = {"process": "state", "state_deviation": float(np.sqrt(10)), "torque": "held"}
CASE_2: dict[str, Any] = {**PRINTED, "state_noise": 0.1, "position_noise": (float(np.sqrt(1e-3)), 0.1)}
CASE_3: dict[str, Any] = {**PRINTED, "state_noise": 0.01, "position_noise": (0.01, 0.1)}


def kalman_filter(*given) -> Any:
    return kalman.kalman_filter(*given)


def kalman_filters(*given) -> list[Any]:
    return list(kalman.kalman_filters(*given))


def good_prior(evidence):
    """P1's case 3: the least-squares result, Fv1 and LMY2 small and free, the others nearly locked."""
    values = dict(zip(NAMES, paper_values(evidence.plain), strict=True)) | {"Fv1": 1e-3, "LMY2": 1e-3}
    return paper_prior(values.values(), [1.0 if name in ("Fv1", "LMY2") else 1e-3 for name in NAMES])


def velocity_errors(result, seed):
    run = run_of_scara(4)
    at = np.round(result.history.time * 100).astype(int)
    return np.sqrt(((result.history.qd - run.qd[seed][:, at]) ** 2).mean(axis=1))


def test_case_1_stops_at_the_first_prediction_and_says_why():
    nothing = paper_prior([0.0] * 8, [1e5] * 8)
    settings = KalmanSettings(integrator="euler", sign_width=1e-3, start="zero", **CASE_2)
    with pytest.raises(
        EstimateError, match=r"first prediction.*singular because all parameters are zero.*give a prior"
    ):
        kalman_filter(scara_evidence(0), settings, nothing)


def test_case_2_leaves_the_first_inertia_a_fifth_too_small():
    settings = KalmanSettings(integrator="euler", sign_width=1e-3, **CASE_2)
    results = kalman_filters([scara_evidence(seed) for seed in range(4)], settings, ROUGH)
    found = np.array([paper_values(result.estimate) for result in results])
    assert found[:, 0].mean() == pytest.approx(2.81, abs=0.15)
    assert all(result.history.converged_after("ZZ1", TRUE["ZZR1"]) is None for result in results)
    assert results[0].estimate.relative_sigma[results[0].estimate.columns.index("ZZ1")] == pytest.approx(18, abs=2)
    assert any("far more noise" in note for note in results[0].notes)


@pytest.mark.parametrize(("integrator", "friction"), [("euler", 0.35), ("rk4", 0.235)])
def test_case_3_keeps_what_is_known_and_overrates_viscous_friction(integrator, friction):
    settings = KalmanSettings(integrator=integrator, sign_width=1e-4, **CASE_3)
    results = [kalman_filter(scara_evidence(seed), settings, good_prior(scara_evidence(seed))) for seed in range(4)]
    found = np.array([paper_values(result.estimate) for result in results])
    assert found[:, 0].mean() == pytest.approx(3.41, abs=0.04)
    assert found[:, 1].mean() == pytest.approx(friction, abs=0.12)
    np.testing.assert_allclose(velocity_errors(results[0], 0), [0.057, 0.18], rtol=0.2)


def test_the_default_filter_is_near_the_truth_and_tells_of_its_innovations():
    results = kalman_filters([scara_evidence(seed) for seed in range(4)], KalmanSettings(), {})
    for result in results:
        estimate, history = result.estimate, result.history
        assert (estimate.method, estimate.covariance_kind) == ("ekf", "filter")
        values = dict(zip(NAMES, paper_values(estimate), strict=True))
        assert values["ZZR1"] == pytest.approx(3.42, rel=0.05)
        assert values["ZZ2"] == pytest.approx(0.064, rel=0.03)
        assert values["Fs2"] == pytest.approx(0.156, rel=0.1)
        assert len(history.time) <= 2001
        np.testing.assert_array_equal(history.values[:, -1], estimate.values)
        np.testing.assert_allclose(history.sigma[:, -1], estimate.sigma, rtol=1e-9)
        assert (np.diff(history.time) > 0).all()
        assert "lie inside their 95 % bound" in result.notes[1]
    np.testing.assert_allclose(velocity_errors(results[1], 1), [0.005, 0.015], rtol=1.0)


@pytest.mark.parametrize("settings", [KalmanSettings(), KalmanSettings(sign_width=0.05)])
def test_filters_side_by_side_are_those_alone(settings):
    evidences = [scara_evidence(seed) for seed in range(3)]
    together = kalman_filters(evidences, settings, {})
    for evidence, result in zip(evidences, together, strict=True):
        alone = kalman_filter(evidence, settings, {})
        np.testing.assert_allclose(result.estimate.values, alone.estimate.values, rtol=1e-10)
        np.testing.assert_allclose(result.history.sigma, alone.history.sigma, rtol=1e-10)


@pytest.mark.large
@pytest.mark.parametrize("settings", [KalmanSettings(), KalmanSettings(sign_width=0.05)])
def test_the_engine_for_large_arms_gives_the_same(settings, monkeypatch):
    small = kalman_filter(scara_evidence(0), settings, {})
    monkeypatch.setattr(engines, "LARGEST_LOOP", 0)
    large = kalman_filter(scara_evidence(0), settings, {})
    np.testing.assert_allclose(large.estimate.values, small.estimate.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(large.history.qd, small.history.qd, atol=1e-9)
    with pytest.raises(EstimateError, match="first prediction"):
        kalman_filter(scara_evidence(0), KalmanSettings(start="zero"), {})


def test_a_run_that_fails_does_not_take_the_others_with_it():
    good, bad = scara_evidence(0), scara_evidence(1)
    columns = bad.columns
    plain = replace(bad.plain, values=np.where(np.array(columns) == "ZZ1", -3.0, bad.plain.values))
    results = kalman_filters([good, replace(bad, plain=plain)], KalmanSettings(start="wls", sign_width=0.05), {})
    alone = kalman_filter(good, KalmanSettings(start="wls", sign_width=0.05), {})
    np.testing.assert_allclose(results[0].estimate.values, alone.estimate.values, rtol=1e-10)
    assert isinstance(results[1], EstimateError)
    assert "not positive definite" in str(results[1])


def cut(recording, first, last, shift):
    whole = part_of(recording, 0, recording.samples)
    time = whole.time.copy()
    time[last:] += shift
    keep = np.r_[0:first, last : recording.samples]
    torques = tuple(replace(channel, values=channel.values[:, keep]) for channel in whole.torques)
    return replace(whole, time=time[keep], q=whole.q[:, keep], torques=torques, reference=None)


def test_a_gap_starts_the_state_anew_and_carries_the_parameters_on():
    recording = recording_of(run_of_scara(4), 0)
    gappy = evidence_of({"run": cut(recording, 1500, 1700, 5.0)}, equations_of_scara(), CASES["full"])
    result = kalman_filter(gappy, KalmanSettings(), {})
    history = result.history
    assert np.diff(history.time).max() > 6.9
    after = int(np.argmax(np.diff(history.time))) + 1
    assert (history.sigma[:, after] <= history.sigma[:, after - 2] * (1 + 1e-9)).all()
    np.testing.assert_allclose(history.values[:, after], history.values[:, after - 1], rtol=0.2, atol=0.02)
    assert paper_values(result.estimate)[0] == pytest.approx(3.42, rel=0.06)


def test_recordings_follow_one_another_on_one_clock():
    run = run_of_scara(4)
    both = evidence_of(
        {"a": recording_of(run, 0), "b": recording_of(run, 1)}, equations_of_scara(), CASES["full"]
    )  # fmt: skip
    result = kalman_filter(both, KalmanSettings(), {})
    alone = kalman_filter(scara_evidence(0), KalmanSettings(), {})
    assert result.history.time[-1] == pytest.approx(2 * run.time[-1] + 0.01)
    assert (np.diff(result.history.time) > 0).all()
    assert result.estimate.sigma[0] < 0.8 * alone.estimate.sigma[0]


def test_locked_parameters_stay_at_their_start():
    prior = {"ZZ1": (3.3, 0.1), "Fcm2": (0.2, 0.05)}
    result = kalman_filter(scara_evidence(0), KalmanSettings(locked=("ZZ1", "Fcm2")), prior)
    known = dict(
        zip(result.estimate.columns, zip(result.estimate.values, result.estimate.sigma, strict=True), strict=True)
    )
    assert known["ZZ1"] == pytest.approx((3.3, 0.1))
    assert known["Fcm2"] == pytest.approx((0.2, 0.05))
    assert known["ZZ2"][0] == pytest.approx(0.064, rel=0.05)
    assert result.history.values.shape[0] == 8
    assert any("locked at their start" in note and "Fcm2" in note for note in result.notes)


@pytest.mark.parametrize("start", ["robot", "wls", "first", "auto"])
def test_every_start_ends_at_the_same_values(start):
    near = kalman_filter(scara_evidence(0), KalmanSettings(sign_width=0.05, start="wls"), {}).estimate
    found = kalman_filter(scara_evidence(0), KalmanSettings(sign_width=0.05, start=start), {}).estimate
    assert (np.abs(found.values - near.values) < 0.5 * near.sigma).all()


def test_recorded_velocities_are_used_when_asked_for():
    run = run_of_scara(4)
    recording = recording_of(run, 0)
    rng = np.random.default_rng(0)
    with_speed = replace(recording, qd=run.qd[0] + 0.01 * rng.standard_normal(run.qd[0].shape))
    evidence = evidence_of({"run": with_speed}, equations_of_scara(), CASES["full"])
    settings = KalmanSettings(observe="q_qd")
    found = noises_of(evidence, evidence.sources[0], settings)
    np.testing.assert_allclose(found.observed[:2], 0.01, rtol=0.3)
    result = kalman_filter(evidence, settings, {})
    assert paper_values(result.estimate)[3] == pytest.approx(0.064, rel=0.05)
    with pytest.raises(EstimateError, match="no recorded velocity"):
        kalman_filter(scara_evidence(0), settings, {})


def test_a_payload_is_felt_in_loaded_recordings_alone():
    robot = replace(arm("scara_2r"), payloads={"brick": (0.01, 0, 0, 0.01, 0, 0.03, 0.1, 0.02, 0.0, 1.0)})
    points = np.random.default_rng(2).uniform(-1, 1, (2, 13)) * [[0.6], [2.0]]
    motion = quintic(points, 0.8, ["joint_1", "joint_2"])
    experiment = Experiment(record_rate=200, disturbance=Noise("white", (0.5, 0.05)))
    runs = [simulate(robot, motion, replace(experiment, payload=payload), (0,)) for payload in (None, "brick")]
    equations = equations_of(build_model(robot, payload="paired"))
    recordings = {"empty": recording_of(runs[0]), "loaded": recording_of(runs[1])}
    evidence = evidence_of(recordings, equations, Preparation(cutoff=15.0, decimation=10))
    result = kalman_filter(evidence, KalmanSettings(), {})
    k = evidence.columns.index("ML")
    values, time = result.history.values[k], result.history.time
    before = time <= runs[0].time[-1]
    np.testing.assert_array_equal(values[before], values[0])
    assert values[-1] == pytest.approx(1.0, abs=5 * result.estimate.sigma[k])
    assert result.estimate.sigma[k] < 0.2


def test_torque_noise_has_the_power_of_the_residuals_at_low_frequency():
    evidence = scara_evidence(0)
    source = evidence.sources[0]
    white = NoiseModel(
        source.resolved.decimation_filter.noise_correlation(160),
        {equation: np.zeros(0) for equation in source.equations.kinds_joints},
        dict(evidence.noise.innovations),
        {(source.label, *equation): 0.3 for equation in source.equations.kinds_joints},
    )
    found = torque_noise(replace(evidence, noise=white), source)
    decimated = decimate(np.random.default_rng(0).standard_normal((40, 20_000)), 100.0, 10).values
    np.testing.assert_allclose(found, 0.3 / decimated.std(), rtol=0.03)
    # A persistent noise with 1 / (1 - 0.6)^2 times the power of its innovations at frequency zero.
    persistent = replace(white, coefficients=dict.fromkeys(white.coefficients, np.array([0.6])))
    more = torque_noise(replace(evidence, noise=persistent), source)
    np.testing.assert_allclose(more / found, np.sqrt((1 - 0.6**2) / (1 - 0.6) ** 2), rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "prior", "message"),
    [
        ({}, {"ZZ9": (1.0, 1.0)}, "prior for 'ZZ9', which is not estimated"),
        ({}, {"ZZ1": (1.0, 0.0)}, "needed is a deviation above 0"),
        ({"locked": ("Fvm3",)}, {}, "'Fvm3' is not among"),
        ({"locked": tuple(column for column, _ in NAMES.values())}, {}, "every parameter is locked"),
        ({"torque_noise": (1.0, 2.0, 3.0)}, {}, "torque_noise: got 3 numbers, allowed are 1 or 2"),
        ({"position_noise": (1.0,) * 4}, {}, "position_noise: got 4 numbers"),
        ({"state_deviation": (1.0, 1.0)}, {}, "state_deviation: got 2 numbers, allowed are 1 or 4"),
        ({"process": "state", "state_noise": (1.0, 1.0)}, {}, "state_noise: got 2 numbers"),
    ],
)
def test_what_does_not_fit_is_refused(settings, prior, message):
    with pytest.raises(EstimateError, match=message):
        kalman_filter(scara_evidence(0), KalmanSettings(**settings), prior)


def test_a_filter_that_loses_the_arm_says_when():
    recording = recording_of(run_of_scara(4), 0)
    broken = np.array(recording.q)
    broken[0, 2000:] += 40.0
    evidence = scara_evidence(0)
    source = evidence.sources[0]
    other = type(source)(replace(recording, q=broken), source.equations, source.resolved, "jump", 0)
    with pytest.raises(EstimateError, match=r"stopped at 19\.99 s of recording 'jump'.*off the measured position"):
        kalman_filter(replace(evidence, sources=(other,)), KalmanSettings(start="wls", torque_noise=1.0), {})


def test_machine_code_is_made_once_for_an_arm_and_not_cached_beyond_it(monkeypatch):
    equations = scara_equations()
    evidence = evidence_of({"run": recording_of(run_of_scara(4), 0)}, equations, CASES["full"])
    first = kalman_filter(evidence, KalmanSettings(), {})

    def forbidden(*_, **__):
        raise AssertionError("compiled again")

    monkeypatch.setattr(engines, "LoopEngine", forbidden)
    monkeypatch.setattr(engines, "arm_graph", forbidden)
    again = kalman_filter(evidence, KalmanSettings(), {})
    np.testing.assert_array_equal(again.estimate.values, first.estimate.values)
    other = kalman_filter(evidence, KalmanSettings(torque="held", start="wls"), {})
    assert not np.array_equal(other.estimate.values, first.estimate.values)
    with pytest.raises(AssertionError, match="compiled again"):
        kalman_filter(evidence, KalmanSettings(integrator="euler"), {})


def test_derivatives_along_the_measured_motion_take_the_bias_of_noisy_torques_away():
    robot = arm("scara_2r")
    motion = default_motion(robot)
    experiment = Experiment(plant="ideal", record_rate=200, motor_noise=Noise("white", (4.0, 0.2)))
    run = simulate(robot, motion, experiment, range(6))
    equations = equations_of_scara()
    evidences = [
        evidence_of({"run": recording_of(run, seed)}, equations, Preparation(cutoff=8.0, decimation=10))
        for seed in range(6)
    ]
    k = evidences[0].columns.index("ZZ2")
    away = {
        derivatives: np.mean([
            (result.estimate.values[k] - 0.064) / result.estimate.sigma[k]
            for result in kalman_filters(evidences, KalmanSettings(derivatives=derivatives, position_noise=1e-6), {})
            if isinstance(result, Estimated)
        ])
        for derivatives in ("measured", "predicted")
    }  # fmt: skip
    assert abs(away["measured"]) < 1.5
    assert away["predicted"] > 5.0


def test_recordings_shorter_than_the_smoothing_are_refused_with_what_helps():
    recording = recording_of(run_of_scara(4), 0)
    evidence = evidence_of({"run": recording}, equations_of_scara(), CASES["full"])
    slow = replace(evidence.sources[0].resolved.low_pass, cutoff=1.9 / recording.duration)
    resolved = replace(evidence.sources[0].resolved, low_pass=slow)
    short = replace(evidence, sources=(row_source(recording, evidence.equations, resolved, "run"),))
    with pytest.raises(EstimateError, match="no segment without a gap is as long as 2 periods of the cut-off"):
        kalman_filter(short, KalmanSettings(start="wls"), {})
