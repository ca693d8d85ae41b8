"""What residuals depend on: the right sentence comes first, and silence where there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import EstimateError
from steelyard.judge import Pattern, explain_residuals
from steelyard.signals import autoregressive_noise, decimation_filter

NOISE = 0.7


def motion(samples: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return a joint on a random Fourier motion at 20 Hz that warms up on the way."""
    t = np.arange(samples) / 20.0
    order = 2 * np.pi / 15 * np.arange(1, 6)
    phase = np.outer(t, order) + rng.uniform(0, 2 * np.pi, 5)
    size = rng.standard_normal(5) / np.arange(1, 6)
    q, v, a = np.sin(phase) @ size, np.cos(phase) @ (size * order), -np.sin(phase) @ (size * order**2)
    return {
        "velocity": v,
        "acceleration": a,
        "position": q,
        "load": 20 * np.cos(q) + 3 * a,
        "temperature": 40 - 10 * np.exp(-2 * t / t[-1]) + 0.1 * rng.standard_normal(samples),
        "time": t,
    }


def noise(samples: int, correlation: float, rng: np.random.Generator) -> np.ndarray:
    return autoregressive_noise(samples, np.array([correlation]), NOISE, rng)[0]


def explain(e: np.ndarray, signals: dict[str, np.ndarray], **options) -> tuple[Pattern, ...]:
    cut = len(e) // 3
    parts = {name: [values[:cut], values[cut:]] for name, values in signals.items()}
    return explain_residuals([e[:cut], e[cut:]], parts, "joint 3", NOISE, **options)


def refitted(effect: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """Return what least squares leaves of an effect when it has these columns to use."""
    matrix = np.column_stack(columns)
    return effect - matrix @ np.linalg.lstsq(matrix, effect, rcond=None)[0]


def stribeck(s):
    v = s["velocity"]
    return refitted(1.5 * np.exp(-np.abs(v) / 0.1) * np.sign(v), np.ones_like(v), v, np.sign(v))


def curved_friction(s):
    v = s["velocity"]
    return refitted(6 * v * np.abs(v) / np.abs(v).max(), v, np.sign(v))


def missing_coulomb(s):
    return 0.4 * np.sign(s["velocity"])


def missing_viscous(s):
    return 0.8 * s["velocity"]


def load_friction(s):
    direction = np.sign(s["velocity"])
    return refitted(0.12 * np.abs(s["load"]) * direction, direction)


def wrong_gain(s):
    return 0.08 * (s["load"] - s["load"].mean())


def warm(s):
    return (s["temperature"] - s["temperature"].mean()) / 8


def warm_offset(s):
    return warm(s)


def warm_friction(s):
    return -warm(s) * np.sign(s["velocity"])


def gear(s):
    return 0.5 * np.sin(4 * s["position"])


def delay(s):
    return 0.6 * s["acceleration"]


SENTENCES = {
    stribeck: "friction at low speed on joint 3: residuals average +",
    curved_friction: "friction that is not a straight line in speed on joint 3",
    missing_coulomb: "Coulomb friction on joint 3",
    missing_viscous: "viscous friction on joint 3",
    load_friction: "load-dependent friction on joint 3",
    wrong_gain: "an error that depends on the load on joint 3",
    warm_offset: "temperature drift on joint 3",
    warm_friction: "friction that changes with temperature on joint 3",
    gear: "position-dependent (gear or gravity) error on joint 3",
    delay: "a delay or wrong inertia",
}
# What follows the motion's own position in any case: load is a function of it here.
ALIKE = {wrong_gain: ("an error that depends on the load", "position-dependent")}


@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize("effect", list(SENTENCES), ids=lambda effect: effect.__name__)
def test_the_right_words_come_first(effect, correlation):
    right = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        signals = motion(1500, rng)
        found = explain(effect(signals) + noise(1500, correlation, rng), signals)
        right += bool(found) and found[0].text.startswith(ALIKE.get(effect, (SENTENCES[effect],)))
    assert right >= 3


def test_drift_without_a_thermometer_is_drift_in_time():
    rng = np.random.default_rng(1)
    signals = motion(1500, rng)
    drift = np.linspace(-0.6, 0.6, 1500)
    del signals["temperature"]
    found = explain(drift + noise(1500, 0.5, rng), signals)
    assert [pattern.signal for pattern in found] == ["time"]
    assert found[0].text.startswith("drift in time on joint 3: residuals average ")
    found = explain(drift * np.sign(signals["velocity"]) + noise(1500, 0.5, rng), signals)
    assert found[0].text.startswith("friction that changes in time on joint 3")


def test_a_constant_is_an_offset_and_nothing_else():
    rng = np.random.default_rng(2)
    signals = motion(1500, rng)
    (found,) = explain(0.4 + noise(1500, 0.3, rng), signals)
    assert found.signal == "constant"
    assert found.text.startswith("constant offset on joint 3: residuals average +0.4")
    assert found.mean_there == pytest.approx(0.4, abs=0.1)
    assert "add offm" in found.remedy
    assert "sensor" not in found.remedy


def test_a_torque_sensor_is_told_of_only_where_there_is_one():
    rng = np.random.default_rng(2)
    signals = motion(1500, rng)
    e = 0.4 + noise(1500, 0.3, rng)
    (found,) = explain(e, signals, kind="joint")
    assert found.remedy == (
        "add offl with --effects; if it is there, it has changed since the fit: re-zero the torque sensor"
    )
    with pytest.raises(EstimateError, match=r"kind is 'drive'.*motor, joint, difference"):
        explain(e, signals, kind="drive")


def test_a_wider_spread_near_reversals_is_the_sign_of_the_velocity():
    rng = np.random.default_rng(3)
    signals = motion(1500, rng)
    wide = 1.5 * rng.standard_normal(1500) * (np.abs(signals["velocity"]) < 0.1)
    (found,) = explain(wide + noise(1500, 0.0, rng), signals)
    assert (found.signal, found.kind) == ("velocity", "spread")
    assert found.text.startswith("sign of velocity uncertain near reversals on joint 3: residuals spread ")
    assert found.worst_bin[0] == np.abs(signals["velocity"]).min()
    assert 0.03 < found.worst_bin[1] < 0.25
    assert found.std_ratio_there > 1.5
    assert "out with --standstill 0." in found.remedy


def test_figures_of_a_pattern_are_those_of_the_truth():
    rng = np.random.default_rng(4)
    signals = motion(4000, rng)
    effect = 0.5 * np.where(signals["position"] > np.quantile(signals["position"], 0.8), 1.0, 0.0)
    effect -= effect.mean()
    (found,) = explain(effect + noise(4000, 0.0, rng), signals)
    assert found.share_explained == pytest.approx(effect.var() / (effect.var() + NOISE**2), abs=0.025)
    assert found.mean_there == pytest.approx(effect.max(), abs=0.08)
    assert found.worst_bin[0] == pytest.approx(np.quantile(signals["position"], 0.8), abs=0.02)
    assert found.std_ratio_there == pytest.approx(1.0, abs=0.1)
    assert found.p < 1e-6


def test_two_faults_give_two_sentences_and_the_larger_comes_first():
    rng = np.random.default_rng(5)
    signals = motion(3000, rng)
    found = explain(1.5 * warm_offset(signals) + stribeck(signals) + noise(3000, 0.0, rng), signals)
    assert [pattern.signal for pattern in found] == ["temperature", "velocity"]
    assert found[0].share_explained > found[1].share_explained


@pytest.mark.parametrize("correlation", [0.0, 0.8])
@pytest.mark.large
def test_residuals_that_depend_on_nothing_are_left_in_peace(correlation):
    rng = np.random.default_rng(6)
    alarms = 0
    for _ in range(150):
        signals = motion(600, rng)
        alarms += bool(explain(noise(600, correlation, rng), signals))
    # Nominal 5 %; the upper limit is two and a half standard deviations of a count of 150 away.
    assert alarms / 150 <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 150)


def test_decimated_noise_is_left_in_peace_if_the_decimator_is_known():
    decimator = decimation_filter(1000.0, 50)
    taps, rng, alarms = decimator.impulse_response(), np.random.default_rng(7), 0
    for _ in range(50):
        signals = motion(500, rng)
        white = rng.standard_normal(500 * 50 + len(taps))
        e = np.lib.stride_tricks.sliding_window_view(white, len(taps))[: 500 * 50 : 50] @ taps
        alarms += bool(explain(e, signals, correlation=decimator.noise_correlation(60)))
    assert alarms <= 7


def test_signals_that_hardly_vary_or_are_absent_say_nothing():
    rng = np.random.default_rng(8)
    e = noise(300, 0.0, rng)
    assert explain(e, {}) == ()
    assert explain(e, {"temperature": np.full(300, 25.0), "velocity": np.zeros(300)}) == ()
    assert explain(e[:9], {"position": np.arange(9.0)}) == ()


def test_a_prismatic_joint_is_described_in_newtons_and_metres():
    rng = np.random.default_rng(9)
    signals = motion(1500, rng)
    (found, *_) = explain(stribeck(signals) + noise(1500, 0.0, rng), signals, prismatic=True)
    assert " m/s" in found.text
    assert " N in the direction of motion" in found.text


def test_what_does_not_fit_is_refused():
    e = [np.random.default_rng(0).standard_normal(30)]
    with pytest.raises(
        EstimateError, match=r"signal 'velocty' is not known; allowed: velocity, .*did you mean 'velocity'"
    ):
        explain_residuals(e, {"velocty": e}, "joint 1", 1.0)
    with pytest.raises(EstimateError, match=r"signal 'load': got runs of \[30, 30\] samples.*residuals, \[30\]"):
        explain_residuals(e, {"load": e * 2}, "joint 1", 1.0)
    with pytest.raises(EstimateError, match="signal 'temperature': got nan in run 0, sample 0"):
        explain_residuals(e, {"temperature": [e[0] * np.nan]}, "joint 1", 1.0)
    with pytest.raises(EstimateError, match="noise of the residuals: got 0"):
        explain_residuals(e, {}, "joint 1", 0.0)
    with pytest.raises(EstimateError, match="all are zero"):
        explain_residuals([np.zeros(30)], {}, "joint 1", 1.0)
