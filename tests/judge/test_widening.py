"""Widened intervals: nothing is widened by noise, a missing effect or recordings that differ are; unseen patterns."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest

from from_benchmarks import benchmark_module
from steelyard.estimate import Estimate, weighted
from steelyard.identification import Identification, Settings, identify
from steelyard.judge import factor_parts, moderated, widened
from steelyard.motion import quintic
from steelyard.observe import Factor, Fingerprint, Observations, RecordingInfo
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, recording_of, simulate

COLUMNS, TRUTH = tuple("abcdefgh"), np.linspace(-1, 2, 8)
BLOCKS, ROWS = 24, 30


def simulated_factors(seed: int, shifts: tuple[float, ...] = (0.0,)) -> Observations:
    """Return blocks of random rows of unit noise; in recording r the truth of the first two is moved by a shift."""
    rng, factors = np.random.default_rng(seed), []
    for r, shift in enumerate(shifts):
        truth = TRUTH + shift * np.isin(np.arange(8), (0, 1))
        for block in range(BLOCKS):
            W = rng.standard_normal((ROWS, 8))
            rows = np.column_stack([W, W @ truth + rng.standard_normal(ROWS)])
            triangle = np.asarray(np.linalg.qr(rows, mode="r"))
            factors.append(Factor(f"r{r}", "motor", "j1", block, COLUMNS, triangle, ROWS))
    infos = tuple(RecordingInfo(f"r{r}", (f"r{r}",), None, ROWS * BLOCKS) for r in range(len(shifts)))
    return Observations(Fingerprint(*("alike" for _ in fields(Fingerprint))), tuple(factors), infos)


def fitted(data: Observations) -> Estimate:
    return weighted(data, COLUMNS, {(info.label, "motor", "j1"): 1.0 for info in data.recordings})


def stretches(data: Observations) -> dict[tuple[str, int], int]:
    return {(one.recording, one.block): 100 * int(one.recording[1:]) + one.block // 3 for one in data.factors}


def test_noise_alone_widens_hardly_anything():
    factors = []
    for seed in range(60):
        data = simulated_factors(seed, (0.0, 0.0, 0.0))
        estimate = fitted(data)
        factors.append(widened(estimate, factor_parts(estimate, data, stretches(data))).factor)
    assert 1.0 <= np.mean(factors) < 1.06
    assert np.min(factors) >= 1.0


def test_the_variance_that_parts_show_is_unbiased():
    from steelyard.judge.widening import _spread

    ratios = []
    for seed in range(80):
        data = simulated_factors(seed)
        estimate = fitted(data)
        parts = factor_parts(estimate, data, stretches(data))["time"]
        variance, freedom = _spread(parts, estimate.system.inverse, estimate.system.inverse)
        ratios.append(variance / estimate.sigma**2)
        assert np.all((freedom > 5) & (freedom < 8))  # eight parts, nearly of one size
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.05)


def test_recordings_that_differ_widen_the_parameters_they_differ_in():
    data = simulated_factors(1, (0.0, 0.3, -0.3, 0.2))
    estimate = fitted(data)
    found = widened(estimate, factor_parts(estimate, data, stretches(data)))
    assert found.factor[:2].min() > 2
    assert found.factor[:2].min() > 2 * found.factor[2:].max()
    assert set(found.cause[:2]) <= {"recordings", "time"}
    assert found.parts == {"time": 32, "recordings": 4}
    assert np.all(found.half_width() >= estimate.half_width())


def test_moderated_ratios_follow_a_common_excess_and_single_large_ones():
    rng = np.random.default_rng(0)
    freedom = np.full(40, 6.0)
    chance = rng.chisquare(6, 40) / 6
    assert moderated(chance, freedom, 40.0)[0].max() < 1.3
    assert moderated(9 * chance, freedom, 40.0)[0].mean() == pytest.approx(9, rel=0.25)
    chance[3] = 40.0
    ratio, known = moderated(chance, freedom, 40.0)
    assert ratio[3] > 8 * np.median(ratio)
    assert np.all(known > freedom)


def test_few_parts_are_not_trusted_with_a_lucky_ratio():
    ratio, _ = moderated(np.array([3.0, 0.4, 2.0]), np.ones(3), 3.0)
    assert ratio.max() < 1.5


@pytest.mark.parametrize("motion", ["moves", "fourier"])
def test_a_missing_effect_widens_intervals_until_they_hold_the_truth(motion):
    missing = benchmark_module("coverage_missing")
    case = missing.MissingCase("scara_2r", "dahl", motion, 2)
    outcomes = [missing.missing_outcome(case, seed) for seed in range(3)]
    formal, wide = (np.mean([getattr(one, name) for one in outcomes]) for name in ("formal", "widened"))
    assert wide >= 0.85 > formal
    assert np.mean([one.factor for one in outcomes]) > 1.4


def test_a_complete_model_is_hardly_widened():
    missing = benchmark_module("coverage_missing")
    case = missing.MissingCase("scara_2r", "none", "moves", 1)
    factors = [missing.missing_outcome(case, seed).factor for seed in range(5)]
    assert np.mean(factors) < 1.15


def scara(seed: int, friction: float = 1.0) -> Recording:
    """Return 20 s of P1's arm; the Coulomb friction of joint 2 is that of the catalogue times a factor."""
    robot = load_robot("scara_2r")
    robot = replace(robot, values={**robot.values, "Fcm2": friction * robot.values["Fcm2"]})
    points = np.zeros((2, 21))
    points[:, 1:-1] = np.random.default_rng(seed).uniform(-1, 1, (2, 19)) * [[0.45], [2.6]]
    experiment = Experiment(record_rate=100, plant="ideal", motor_noise=Noise("white", (0.5, 0.02)))
    return recording_of(simulate(robot, quintic(points, 1.0, ["joint_1", "joint_2"]), experiment, [seed]))


@cache
def identified(friction: float, method: str = "gls") -> Identification:
    settings = Settings(method=method, select=False, bias_repeats=0)
    return identify("scara_2r", [scara(1), scara(2)], [scara(3), scara(4, friction)], settings)


def test_a_pattern_of_unseen_motion_alone_is_named_with_joint_recording_and_remedy():
    found = identified(1.3)
    assert [(one.joint, one.recordings) for one in found.unseen_patterns[:1]] == [("joint_2", ("recording 4",))]
    assert found.unseen_patterns[0].pattern.signal == "velocity"
    assert found.unseen_patterns[0].share_of_fit == 0
    reason = next(one for one in found.verdict.reasons if one.criterion == "validation residuals")
    assert reason.text.startswith("in unseen motion ('recording 4')")
    assert "friction on joint_2" in reason.text
    assert "not in the fit" in reason.text
    assert "warm-up" in reason.remedy


def test_unseen_motion_of_the_same_arm_has_no_pattern_of_its_own():
    assert identified(1.0).unseen_patterns == ()


def test_json_has_formal_and_widened_intervals_beside_each_other():
    content = identified(1.0).to_json()
    for row in content["parameters"]:
        if row["essential"]:
            (low, high), (lowest, highest) = row["interval_95"], row["interval_95_widened"]
            assert lowest <= low < high <= highest
            assert row["sigma_widened"] >= row["sigma"]
        else:
            assert row["sigma_widened"] is None
    assert set(content["widening"]["parts"]) == {"time", "recordings", "speed", "position", "base"}


def test_methods_beyond_least_squares_have_no_widened_intervals():
    content = identified(1.0, "iv").to_json()
    assert content["widening"] is None
    assert all(row["sigma_widened"] is None for row in content["parameters"])
