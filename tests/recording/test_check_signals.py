"""Clipped, coarse, filtered and vibrating signals are found with their numbers; what only resembles them is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from recording.logs import Motion, kinds, one
from steelyard.recording import recording_from_arrays
from steelyard.robot import load_robot

NEW = {"saturated", "filtered", "filtered_differently", "resonance", "mains"}
RATE = 200.0


def noisy(samples: int = 8000, seed: int = 0, noise: float = 0.05) -> dict[str, np.ndarray]:
    """Return a log with noise on positions and torques; friction makes the torque jump."""
    motion, rng = Motion(samples), np.random.default_rng(seed)
    tau = 5 * np.sin(motion.q) + 2 * np.sign(motion.qd) + rng.normal(0, noise, motion.q.shape)
    return {"time": motion.time, "q": motion.q + rng.normal(0, 1e-5, motion.q.shape), "motor_torque": tau}


def findings_of(robot, arrays):
    return recording_from_arrays(robot, arrays).findings


@pytest.mark.parametrize("seed", range(5))
def test_clean_logs_raise_nothing(robot, seed):
    findings = findings_of(robot, noisy(seed=seed))
    assert not NEW & kinds(findings)
    assert kinds(findings, "warning", "bad") == set()


def test_a_log_without_any_noise_raises_nothing(robot, motion):
    assert not NEW & kinds(findings_of(robot, motion.arrays()))
    assert not NEW & kinds(findings_of(robot, noisy(noise=0.0)))


@pytest.mark.parametrize(("low", "high"), [(-4.0, 4.0), (-np.inf, 4.0), (-4.0, np.inf)])
def test_a_clipped_torque_is_named_with_level_and_share(robot, low, high):
    arrays = noisy()
    clipped = np.clip(arrays["motor_torque"][1], low, high)
    arrays["motor_torque"][1] = clipped
    found = one(findings_of(robot, arrays), "saturated")
    assert (found.joint, found.channel, found.severity) == ("elbow", "motor_torque", "warning")
    assert found.values["share"] == pytest.approx(np.mean((clipped == low) | (clipped == high)), rel=0.15)
    assert found.values.get("upper", 4.0) == 4.0
    assert ("upper" in found.values, "lower" in found.values) == (np.isfinite(high), np.isfinite(low))
    assert found.where[0] == pytest.approx(
        arrays["time"][np.flatnonzero((clipped == low) | (clipped == high))[0]], abs=1
    )


def test_spikes_beyond_the_level_do_not_hide_clipping(robot):
    arrays = noisy()
    arrays["motor_torque"][1] = np.clip(arrays["motor_torque"][1], -4, 4)
    arrays["motor_torque"][1, [1000, 3000]] = 30.0
    assert one(findings_of(robot, arrays), "saturated").joint == "elbow"


def test_a_torque_at_rest_is_not_clipped(robot):
    arrays = noisy()
    for name in ("q", "motor_torque"):
        arrays[name][:, 4000:] = arrays[name][:, 4000:4001]
    arrays["motor_torque"][:, 4000:] = 9.0
    assert "saturated" not in kinds(findings_of(robot, arrays))


@pytest.mark.parametrize("step", [0.02, 0.2, 0.5])
def test_a_quantised_or_held_torque_is_not_clipped(robot, step):
    arrays = noisy()
    arrays["motor_torque"] = np.round(arrays["motor_torque"] / step) * step
    assert "saturated" not in kinds(findings_of(robot, arrays))
    arrays["motor_torque"] = np.repeat(noisy()["motor_torque"][:, ::10], 10, axis=1)
    assert "saturated" not in kinds(findings_of(robot, arrays))


def test_a_noisy_torque_at_the_effort_limit_is_found(robot):
    arrays, rng = noisy(), np.random.default_rng(1)
    arrays["motor_torque"][0] = np.clip(14 * arrays["motor_torque"][0], -50, 50) + rng.normal(0, 0.3, 8000)
    found = one(findings_of(robot, arrays), "saturated")
    assert (found.joint, found.values["limit"]) == ("shoulder", 50.0)


@pytest.mark.parametrize(("speed", "found"), [(3.0, True), (2.8, False)])
def test_cruising_is_mentioned_only_at_the_speed_limit(robot, speed, found):
    time = np.arange(8000) / RATE
    velocity = np.clip(4.5 * np.sin(2 * np.pi * time), -speed, speed)
    q = np.cumsum(velocity) / RATE
    findings = findings_of(robot, {"time": time, "q": np.array([q, np.sin(1.7 * time)])})
    assert ("saturated" in kinds(findings)) == found
    if found:
        finding = one(findings, "saturated")
        assert (finding.joint, finding.channel, finding.severity) == ("shoulder", "qd", "info")


@pytest.mark.parametrize(("part", "coarse"), [(0.01, False), (0.05, True)])
def test_torque_steps_count_against_the_torque(robot, part, coarse):
    arrays = noisy()
    step = part * arrays["motor_torque"][0].std()
    arrays["motor_torque"][0] = np.round(arrays["motor_torque"][0] / step) * step
    found = [one for one in findings_of(robot, arrays) if one.kind == "quantisation" and one.severity == "warning"]
    assert [(one.channel, one.joint) for one in found] == ([("motor_torque", "shoulder")] if coarse else [])
    if coarse:
        assert found[0].values["part"] == pytest.approx(part, rel=0.02)


@pytest.mark.parametrize(("step", "severity"), [(1e-3, "info"), (0.05, "warning")])
def test_encoder_steps_count_against_the_speed(robot, step, severity):
    arrays = noisy()
    arrays["q"][1] = np.round(arrays["q"][1] / step) * step
    finding = one(findings_of(robot, arrays), "quantisation", "elbow")
    assert finding.severity == severity
    # White noise of h^2 / 12 through an ideal low-pass at 10 Hz, differentiated.
    expected = 2 * np.pi * step * np.sqrt(1000 / (18 * RATE)) / np.sqrt(np.mean(Motion(8000).qd[1] ** 2))
    assert finding.values["part"] == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("corner", [5.0, 10.0, 20.0])
def test_filtered_signals_are_found_with_their_corner(robot, corner):
    arrays = noisy()
    low_pass = signal.butter(4, corner, fs=RATE, output="sos")
    for name in ("q", "motor_torque"):
        arrays[name] = signal.sosfiltfilt(low_pass, arrays[name], axis=1)
    findings = findings_of(robot, arrays)
    found = {one.channel: one for one in findings if one.kind == "filtered"}
    assert set(found) == {"q", "motor_torque"}
    for finding in found.values():
        assert finding.severity == "info"
        assert finding.values["corner"] == pytest.approx(corner, rel=0.4)
    assert "filtered_differently" not in kinds(findings)


def test_a_filter_on_torques_alone_is_a_warning(robot):
    arrays = noisy()
    low_pass = signal.butter(4, 8.0, fs=RATE, output="sos")
    arrays["motor_torque"] = np.asarray(signal.sosfilt(low_pass, arrays["motor_torque"], axis=1))
    finding = one(findings_of(robot, arrays), "filtered_differently")
    assert finding.severity == "warning"
    assert finding.values["torque"] == pytest.approx(8.0, rel=0.4)
    assert "q" not in finding.values


def test_a_vibration_is_named_with_its_frequency_and_size(robot):
    arrays, rng = noisy(), np.random.default_rng(2)
    pole = np.exp((-0.01 + 1j) * 2 * np.pi * 23.0 / RATE)
    response = np.asarray(signal.lfilter([1.0], np.real(np.poly([pole, pole.conjugate()])), rng.normal(size=8000)))
    tau = arrays["motor_torque"][0]
    tau += 0.1 * tau.std() * response / response.std()
    finding = one(findings_of(robot, arrays), "resonance")
    assert (finding.joint, finding.severity) == ("shoulder", "warning")
    assert finding.values["frequency"] == pytest.approx(23.0, rel=0.02)
    assert finding.values["part"] == pytest.approx(0.1, rel=0.25)


def test_mains_are_named_as_such(robot):
    arrays = noisy()
    arrays["motor_torque"][1] += 0.3 * np.sin(2 * np.pi * 50 * arrays["time"])
    findings = findings_of(robot, arrays)
    assert one(findings, "mains").joint == "elbow"
    assert "resonance" not in kinds(findings)


def test_harmonics_of_a_fast_periodic_motion_are_no_resonance(robot):
    """Coulomb friction of a sine at 2 Hz has lines at 6, 10, 14 Hz, far above the noise."""
    time, rng = np.arange(8000) / RATE, np.random.default_rng(3)
    phase = 2 * np.pi * np.array([[2.0], [1.5]]) * time
    q, tau = 0.15 * np.sin(phase), 2 * np.sign(np.cos(phase)) + rng.normal(0, 0.02, phase.shape)
    findings = findings_of(robot, {"time": time, "q": q + rng.normal(0, 1e-5, q.shape), "motor_torque": tau})
    assert not {"resonance", "mains"} & kinds(findings)


def moving_log(rate: float, repeated: np.ndarray) -> dict[str, np.ndarray]:
    """Return ten seconds of a UR10e with encoder steps and torque noise; ``repeated`` samples are those before."""
    count, rng = repeated.size, np.random.default_rng(3)
    time, joints = np.arange(count) / rate, np.arange(1, 7)[:, None]
    q = np.sin(0.7 * joints * time + joints) / joints
    q = 2e-5 * np.round(q / 2e-5)
    torque = 20 * np.cos(0.7 * joints * time) + rng.normal(0, 0.3, q.shape)
    new = np.maximum.accumulate(np.where(repeated, 0, np.arange(count)))
    return {"time": time, "q": q[:, new], "motor_torque": torque[:, new]}


@pytest.mark.parametrize(
    ("rate", "part", "severity"),
    [(100, 0.0, None), (100, 0.02, "warning"), (100, 0.25, "bad"), (1000, 0.06, "info"), (5000, 0.0, None)],
)
def test_samples_that_are_those_before_are_counted_and_judged_by_what_they_do_to_velocities(rate, part, severity):
    repeated = np.random.default_rng(1).random(10 * rate) < part
    log = recording_from_arrays(load_robot("ur10e"), moving_log(rate, repeated))
    found = {one.channel: one for one in log.findings if one.kind == "held"}
    assert found.get("q") is None if severity is None else found["q"].severity == severity
    if severity is not None:
        assert found["q"].values["part"] == pytest.approx(repeated.mean(), rel=0.25)


def test_the_noise_that_old_positions_add_to_velocities_is_what_was_foretold():
    """Against the derivative of the low-passed error itself, by the discrete Fourier transform."""
    rate, part, cutoff = 200, 0.1, 10.0
    repeated = np.random.default_rng(1).random(60 * rate) < part
    log = recording_from_arrays(load_robot("ur10e"), moving_log(rate, repeated))
    (finding,) = [one for one in log.findings if one.kind == "held" and one.channel == "q"]
    clean = moving_log(rate, np.zeros(60 * rate, bool))["q"]
    spectrum, frequency = np.fft.rfft(log.q - clean), np.fft.rfftfreq(60 * rate, 1 / rate)
    error = np.fft.irfft(np.where(frequency < cutoff, 2j * np.pi * frequency * spectrum, 0), n=60 * rate)
    speed = np.gradient(clean, 1 / rate, axis=1)
    ratio = np.sqrt((error**2).mean(axis=1) / (speed**2).mean(axis=1))
    assert finding.values["noise"] == pytest.approx(np.median(ratio), rel=0.25)


def test_every_third_position_new_is_a_rate_of_a_third():
    log = recording_from_arrays(load_robot("ur10e"), moving_log(300, np.arange(3000) % 3 > 0))
    (finding,) = [one for one in log.findings if one.kind == "held" and one.channel == "q"]
    assert finding.severity == "warning"
    assert finding.values["rate"] == pytest.approx(100, rel=0.02)
    assert "the log has 300 rows a second" in finding.text


@pytest.mark.parametrize("seed", range(4))
def test_joints_that_turn_round_or_rest_are_not_held(seed):
    """Encoder steps that are far smaller than those of the motion, and rests between moves."""
    time, rng = np.arange(4000) / 100, np.random.default_rng(seed)
    q = np.sin(2 * np.pi * rng.uniform(0.1, 2, (6, 1)) * time) * rng.uniform(0.1, 2, (6, 1))
    q = np.where((time > 10) & (time < 15), q[:, 1000:1001], q)
    arrays = {"time": time, "q": np.round(q, 5), "motor_torque": np.round(rng.normal(0, 5, q.shape), 2)}
    found = recording_from_arrays(load_robot("ur10e"), arrays).findings
    assert not [one for one in found if one.kind == "held"]
