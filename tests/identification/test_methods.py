"""Every method through the same front door: the same result, verdict and JSON, and the truth within its intervals."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from simulated_experiments import scara
from steelyard.errors import EstimateError, ObservationError
from steelyard.identification import (
    METHODS,
    Settings,
    fit_arm,
    identify,
    read_run,
    settings_from_table,
    with_options,
    write_run,
)
from steelyard.identification.reasons import UnseenErrors, method_reasons
from steelyard.motion import fourier
from steelyard.observe import Preparation
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.run import RunFolder
from steelyard.simulation import Experiment, Noise, recording_of, simulate

SCARA = load_robot("scara_2r")
BEYOND_ROWS = ("rls", "ekf", "ml", "iv", "didim")


def periodic(seed: int) -> Recording:
    """Return four periods of a Fourier motion, 100 Hz, noise on the torques."""
    rng = np.random.default_rng(seed)
    sin, cos = rng.normal(size=(2, 2, 3)) * [[0.12], [0.7]]
    motion = fourier([0.0, 0.0], sin, cos, 5.0, ["joint_1", "joint_2"], periods=4)
    experiment = Experiment(record_rate=100, encoder_quantum=1e-5, motor_noise=Noise("white", (0.5, 0.02)))
    return recording_of(simulate(SCARA, motion, experiment, [seed]))


@pytest.fixture(scope="module")
def recordings():
    return [periodic(seed) for seed in (1, 2)]


@pytest.fixture(scope="module")
def found(recordings):
    settings = Settings(bias_repeats=0)
    return {
        method: identify(SCARA, recordings[:1], recordings[1:], replace(settings, method=method)) for method in METHODS
    }


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_same_shape_of_result(found, method):
    content, usual = found[method].to_json(), found["gls"].to_json()
    assert list(content) == list(usual)
    assert content["method"] == method
    json.dumps(content, allow_nan=False)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_truth_and_predicts_unseen_motion(found, method):
    estimate, equations = found[method].estimate, found[method].equations
    standard = {f"{s}{b.number}": x for b in SCARA.bodies for s, x in zip(_SYMBOLS, b.inertia or (), strict=True)}
    standard |= dict(SCARA.values)
    true = equations.base.regrouping @ np.array([standard.get(name, 0.0) for name in equations.model.names])
    z = (estimate.values - true) / estimate.sigma
    assert np.abs(z).max() < 5
    assert found[method].unseen_error.relative_percent < 1.1 * found["gls"].unseen_error.relative_percent + 0.1


_SYMBOLS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")


def test_methods_through_time_keep_their_history_in_the_run_folder(found, tmp_path):
    for method in METHODS:
        with RunFolder(tmp_path / method, "identify") as run:
            content = write_run(run, {"method": method}, {}, found[method])
        saved = read_run(tmp_path / method)
        np.testing.assert_array_equal(saved.estimate.values, found[method].estimate.values)
        if method not in ("rls", "ekf"):
            assert content["history"] is None
            assert "history" not in content["files"]
            continue
        with np.load(tmp_path / method / content["files"]["history"]) as arrays:
            assert tuple(arrays["columns"]) == found[method].estimate.columns
            assert arrays["values"].shape == arrays["sigma"].shape == (8, len(arrays["time"]))
            np.testing.assert_allclose(arrays["values"][:, -1], found[method].estimate.values, rtol=1e-6, atol=1e-9)
        assert set(content["history"]["settled_after"]) == {row["name"] for row in content["parameters"]}


def test_methods_with_instruments_test_least_squares_for_bias(found):
    for method in METHODS:
        test = found[method].to_json()["endogeneity"]
        assert (test is None) == (method not in ("iv", "didim"))
    assert found["iv"].to_json()["endogeneity"]["p"] > 0.001


def test_recursive_least_squares_ends_where_weighted_least_squares_is(found):
    np.testing.assert_allclose(found["rls"].estimate.values, found["wls"].estimate.values, rtol=1e-8)


def test_sigmas_of_recursive_least_squares_know_that_the_noise_is_correlated(found, recordings):
    settings = Settings(bias_repeats=0, method="wls", covariance="model")
    model = identify(SCARA, recordings[:1], recordings[1:], settings).estimate
    np.testing.assert_allclose(found["rls"].estimate.sigma, model.sigma, rtol=1e-8)
    assert found["rls"].estimate.covariance_kind == "model"


def test_a_prior_is_counted_once(recordings):
    table = {"method": "rls", "prior": {"ZZ1R": [3.0, 0.001]}}
    drawn = fit_arm(SCARA, recordings[:1], settings_from_table(table)).fit.estimate
    ridge = fit_arm(SCARA, recordings[:1], settings_from_table({**table, "method": "wls"})).fit.estimate
    place = drawn.columns.index("ZZ1")
    assert drawn.values[place] == pytest.approx(ridge.values[place], rel=1e-3)
    assert drawn.sigma[place] == pytest.approx(ridge.sigma[place], rel=1e-2)


def test_locked_parameters_are_known_by_their_base_names(recordings):
    table = {"method": "ekf", "ekf": {"locked": ["ZZ1R"], "start": "robot"}}
    found = fit_arm(SCARA, recordings[:1], settings_from_table(table)).fit
    assert found.detail is not None
    assert found.detail.history is not None
    assert np.ptp(found.detail.history.values[found.estimate.columns.index("ZZ1")]) == 0.0


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"method": "ekv"}, "did you mean 'ekf'"),
        ({"method": "ekf", "covariance": "hac"}, "brings its own"),
        ({"method": "ekf", "ekf": {"integratr": "euler"}}, "did you mean 'integrator'"),
        ({"method": "ekf", "ekf": {"integrator": 4}}, r"\[ekf\]: integrator is 4; allowed: euler, rk4"),
        (
            {"method": "ekf", "ekf": {"position_noise": ["a", "b"]}},
            "position_noise is .*; allowed: a number or a list; entry 1 must be a number",
        ),
        ({"method": "rls", "rls": {"forgetting": 2.0}}, "at most 1"),
        ({"method": "ml", "ml": {"harmonics": 0}}, "harmonics"),
        ({"method": "iv", "iv": {"most_rounds": True}}, "whole number"),
    ],
)
def test_settings_of_methods_are_refused_in_one_line(table, expected):
    with pytest.raises(EstimateError, match=expected) as caught:
        settings_from_table(table)
    assert "\n" not in str(caught.value)


def test_options_of_the_command_line_become_settings_of_the_method():
    table = with_options({"method": "didim", "iv": {"bandwidth": 3.0}}, ["control=pd", "kp=[400, 12]", "kd=[70, 1.6]"])
    chosen = settings_from_table(table).of_method
    assert (chosen.control, chosen.kp, chosen.bandwidth) == ("pd", (400, 12), 3.0)
    with pytest.raises(EstimateError, match="no options of its own"):
        with_options({"method": "wls"}, ["start=robot"])
    with pytest.raises(EstimateError, match="name=value"):
        with_options({"method": "ekf"}, ["euler"])


def test_earlier_runs_are_refused_where_an_estimate_is_not_made_of_rows(recordings, found, tmp_path):
    with RunFolder(tmp_path, "identify") as run:
        write_run(run, {"method": "gls"}, {}, found["gls"])
    with pytest.raises(EstimateError, match=r"not made of rows alone; .* leave --add out, or choose --method gls, wls"):
        identify(
            SCARA, recordings[:1], recordings[1:], Settings(method="ekf", bias_repeats=0), earlier=[read_run(tmp_path)]
        )


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"preparation": Preparation(cutoff=5.0)}, r"other filter .*; identify with --cutoff [0-9.]+ --decimation \d+"),
        ({"effects": ("inertia", "Fvm")}, r"other unknowns .*; identify with --effects inertia,Fvm,Fcm --sign-width 0"),
        (
            {"gravity": (0.0, -9.81, 0.0)},
            r"other geometry; give .*--lock of that run, and identify with --gravity \S+, or set gravity = \[",
        ),
    ],
)
def test_a_run_that_cannot_be_added_says_with_which_options_it_could(recordings, found, tmp_path, changes, remedy):
    with RunFolder(tmp_path, "identify") as run:
        write_run(run, {"method": "gls"}, {}, found["gls"])
    settings = replace(Settings(method="wls", bias_repeats=0), **changes)
    with pytest.raises(ObservationError, match=remedy):
        identify(SCARA, recordings[:1], recordings[1:], settings, earlier=[read_run(tmp_path)])


def test_a_method_that_excludes_least_squares_is_told_so(found):
    def sentences(method: str) -> list[str]:
        return [one.text for one in found[method].verdict.reasons if "weighted least squares of the same" in one.text]

    assert all(sentences(method) == [] for method in METHODS)
    fit = found["ekf"].fit
    apart = replace(fit.estimate, values=fit.estimate.values + 5 * fit.estimate.sigma)
    moved = method_reasons(found["ekf"].equations, replace(fit, estimate=apart), UnseenErrors(3.0, 2.9))
    assert "8 of 8 parameters" in moved[0].text
    assert "3 % on unseen motion, against 2.9 % of weighted least squares" in moved[0].text


def test_a_method_that_predicts_worse_than_least_squares_is_not_to_be_kept(found):
    fit = found["iv"].fit
    assert fit.detail is not None
    assert fit.detail.endogeneity is not None
    biased = replace(fit, detail=replace(fit.detail, endogeneity=replace(fit.detail.endogeneity, p=1e-6)))
    equations = found["iv"].equations
    worse = method_reasons(equations, biased, UnseenErrors(12.0, 4.0))
    assert "predicts worse than least squares: its error is 12 % on unseen motion, against 4 %" in worse[0].text
    assert "--method gls" in worse[0].remedy
    assert not any(reason.remedy.startswith("keep this method") for reason in worse)
    alike = method_reasons(equations, biased, UnseenErrors(4.0, 4.0))
    assert [reason.remedy.startswith("keep this method") for reason in alike] == [True]


def test_a_filter_that_lost_the_arm_begins_again_with_more_trust_in_its_start():
    table = {"method": "ekf", "ekf": {"widen": 1e8, "derivatives": "predicted"}}
    found = fit_arm(SCARA, [scara(2)], settings_from_table(table)).fit
    assert found.detail is not None
    assert "lost the arm; it was run again with 2 times" in found.detail.notes[0]
    usual = fit_arm(SCARA, [scara(2)], settings_from_table({**table, "ekf": {**table["ekf"], "widen": 2.0}})).fit
    np.testing.assert_array_equal(found.estimate.values, usual.estimate.values)
