"""An estimate tried on recordings, against whole arrays and plain scipy."""

from __future__ import annotations

from dataclasses import asdict, astuple, replace
from functools import cache

import numpy as np
import pytest
from scipy import signal

from steelyard import build_model, load_robot
from steelyard.errors import EstimateError, SignalError
from steelyard.estimate import Estimate, System, generalised, weighted
from steelyard.judge import (
    ErrorSums,
    Evaluation,
    JointError,
    MotionExtent,
    combined,
    durbin_watson,
    evaluate,
    explain_residuals,
    faster_joints,
    hardly_moving,
    residual_runs,
    wider_joints,
)
from steelyard.judge.residuals import RunCollector
from steelyard.model import stacked_regressor
from steelyard.motion import limits_of, random_points, trapezoidal, trapezoidal_profile
from steelyard.observe import (
    Preparation,
    decimator_correlation,
    equations_of,
    reduce_rows,
    resolve_preparation,
    row_source,
)
from steelyard.recording import Recording, TorqueChannel
from steelyard.signals import differentiate, evaluation_filter
from steelyard.simulation import Experiment, Noise, recording_of, simulate


@cache
def simulated(name, points, seed, deviation=0.0, payload=None):
    robot = load_robot(name)
    joints = [body.joint.name for body in robot.actuated]
    places = random_points(limits_of(robot), points, 1.0, trapezoidal_profile(), np.random.default_rng(seed))
    noise = Noise("white", (deviation,) * len(joints)) if deviation else None
    experiment = Experiment(plant="ideal", motor_noise=noise, joint_noise=noise, payload=payload)
    run = simulate(robot, trapezoidal(places, 1.0, joints), experiment, seeds=[seed])
    return recording_of(run), run.truth


@cache
def equations_for(name, measured, payload="none"):
    return equations_of(build_model(load_robot(name), measured=measured, payload=payload))


def estimate_of(values):
    x = np.array(list(values.values()))
    triangle = np.zeros((len(x) + 1, len(x) + 1))
    triangle[:-1, :-1], triangle[:-1, -1] = np.eye(len(x)), x
    system = System(tuple(values), triangle, 10 * len(x))
    return Estimate("wls", system, x, np.eye(len(x)), "classical", np.full(len(x), 100.0), {})


def true_values(equations, truth):
    standard = np.array([truth[name] for name in equations.model.names])
    return dict(zip(equations.names, equations.base.regrouping @ standard, strict=True))


def off_values(equations, truth):
    """Values that are off by some per cent, so that there are errors to measure; the last two columns are unknown."""
    values = true_values(equations, truth)
    rng = np.random.default_rng(5)
    off = {name: value * rng.uniform(0.8, 1.2) + 0.01 for name, value in values.items()}
    return {name: off[name] for name in list(off)[:-2]}


def without_rests(qd, standstill, longest):
    """Return velocities (n, N), zero after a joint has been slower than standstill for so many samples."""
    found = qd.copy()
    for joint, (own, limit) in enumerate(zip(qd, standstill, strict=True)):
        slow = np.concatenate([[False], np.abs(own) < limit, [False]])
        edges = np.flatnonzero(np.diff(slow.astype(int)))
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            found[joint, first + longest : last] = 0.0
    return found


def whole_errors(source, estimate, y, cutoff):
    """Return filtered measured and predicted torques and what moves (E, N), from whole arrays by scipy."""
    equations, resolved = source.equations, source.resolved
    motion = differentiate(source.recording.q, resolved.low_pass, resolved.chosen.second)
    model = equations.model
    qd = without_rests(motion.qd, resolved.standstill, round(0.5 * resolved.rate))
    regressor = model.regressor if source.loaded or model.payload == "none" else model.unloaded_regressor
    W = stacked_regressor(regressor, motion.q, qd, motion.qdd)[:, list(equations.base.base_columns)]
    predicted = (W @ estimate.full_values(equations.names)).reshape(len(equations.kinds_joints), -1)
    measured = y[:, motion.first : motion.first + motion.q.shape[1]]
    sections = signal.butter(4, cutoff, fs=resolved.rate, output="sos")
    start, end = evaluation_filter(resolved.rate, cutoff).ends()
    inner = slice(start, predicted.shape[1] - end)
    moving = (np.abs(motion.qd) >= resolved.standstill[:, None])[equations.joint_index][:, inner]
    tau, tau_hat = (signal.sosfiltfilt(sections, values, axis=1)[:, inner] for values in (measured, predicted))
    return tau, tau_hat, moving


CASES = {
    "scara_2r": ("motor", "none", None),
    "kuka_lwr4": ("both", "paired", "P5"),
}


@pytest.mark.parametrize("name", ["scara_2r", pytest.param("kuka_lwr4", marks=pytest.mark.large)])
def test_errors_are_those_of_whole_arrays_through_scipys_filter(name):
    measured, payload, carried = CASES[name]
    recording, truth = simulated(name, 3, 1, 0.5, carried)
    equations = equations_for(name, measured, payload)
    resolved = resolve_preparation(Preparation(cutoff=15.0, decimation=50, standstill=0.05), [recording])
    source = row_source(recording, equations, resolved, "log")
    estimate = estimate_of(off_values(equations, truth))
    result = evaluate(source, estimate, cutoff=8.0)
    kinds = {"motor": ["motor_torque"], "both": ["motor_torque", "joint_torque"]}[measured]
    y = np.concatenate([recording.torque(kind).values for kind in kinds])
    tau, tau_hat, moving = whole_errors(source, estimate, y, 8.0)
    error = tau - tau_hat
    for joint, e, t, m in zip(result.joints, error, tau, moving, strict=True):
        np.testing.assert_allclose(joint.relative_percent, 100 * np.linalg.norm(e[m]) / np.linalg.norm(t[m]), rtol=1e-9)
        np.testing.assert_allclose(joint.rms, np.sqrt(np.mean(e[m] ** 2)), rtol=1e-9)
        np.testing.assert_allclose(joint.torque_rms, np.sqrt(np.mean(t[m] ** 2)), rtol=1e-9)
        np.testing.assert_allclose(joint.maximum, np.abs(e[m]).max(), rtol=1e-9)
        np.testing.assert_allclose(joint.torque_max, np.abs(t).max(), rtol=1e-9)
        np.testing.assert_allclose(joint.torque_deviation, t[m].std(), rtol=1e-9)
        np.testing.assert_allclose(joint.varying_percent, 100 * e[m].std() / t[m].std(), rtol=1e-9)
        np.testing.assert_allclose(joint.standstill_rms, np.sqrt(np.mean(e[~m] ** 2)), rtol=1e-9)
        assert (joint.samples, joint.sums.still_samples) == (m.sum(), (~m).sum())
        assert joint.sums.still_samples > 0
    whole = 100 * np.linalg.norm(error[moving]) / np.linalg.norm(tau[moving])
    np.testing.assert_allclose(result.relative_percent, whole, rtol=1e-9)
    assert result.cutoff == 8.0
    assert result.relative_by_unit == {"N m": result.relative_percent}


def exact_recording(samples=8000, noise=0.0, still=slice(0, 0)):
    """Return a SCARA in slow sines whose torques are exact, with its equations and true values."""
    robot = load_robot("scara_2r")
    equations = equations_for("scara_2r", "motor")
    _, truth = simulated("scara_2r", 3, 1, 0.5, None)
    time, rng = np.arange(samples) / 1000, np.random.default_rng(2)
    phases = np.array([[0.7, 1.3], [1.1, 0.4]])
    q = np.array([np.sin(2 * np.pi * a * time) + 0.5 * np.cos(2 * np.pi * b * time) for a, b in phases])
    qd = np.gradient(q, time, axis=1)
    qdd = np.gradient(qd, time, axis=1)
    W = stacked_regressor(equations.model.regressor, q, qd, qdd)
    torque = (W @ np.array([truth[name] for name in equations.model.names])).reshape(2, -1)
    torque += noise * rng.standard_normal(torque.shape)
    torque[:, still] += 3.0
    joints = tuple(body.joint.name for body in robot.actuated)
    return Recording(joints, time, q, torques=(TorqueChannel("motor_torque", torque),)), equations, truth


def test_the_truth_predicts_a_motion_without_noise():
    recording, equations, truth = exact_recording()
    resolved = resolve_preparation(Preparation(cutoff=40.0, decimation=20, standstill=0.05), [recording])
    source = row_source(recording, equations, resolved, "exact")
    result = evaluate(source, estimate_of(true_values(equations, truth)))
    assert result.relative_percent < 0.2
    assert result.cutoff == 40.0
    np.testing.assert_allclose(result.speed_max, [joint.speed_max for joint in result.joints])


def test_what_happens_near_standstill_does_not_count_in_the_other_figures():
    recording, equations, truth = exact_recording()
    resolved = resolve_preparation(Preparation(cutoff=40.0, decimation=20, standstill=1.5), [recording])
    motion = differentiate(recording.q, resolved.low_pass, "second")
    slow = np.zeros(recording.q.shape, dtype=bool)
    slow[:, motion.first : motion.first + motion.q.shape[1]] = np.abs(motion.qd) < 0.5
    torque = recording.torques[0].values + 5.0 * slow
    stuck = Recording(recording.joints, recording.time, recording.q, torques=(TorqueChannel("motor_torque", torque),))
    estimate = estimate_of(true_values(equations, truth))
    free, held = (
        evaluate(row_source(r, equations, resolved, "log"), estimate, cutoff=200.0) for r in (recording, stuck)
    )
    for before, after in zip(free.joints, held.joints, strict=True):
        assert after.rms < before.rms + 0.01
        assert after.standstill_rms > 1.0


def test_durbin_watson_and_noise_are_those_of_the_decimated_residuals():
    recording, equations, truth = exact_recording(samples=60_000, noise=2.0)
    resolved = resolve_preparation(Preparation(cutoff=40.0, decimation=20, standstill=0.05), [recording])
    source = row_source(recording, equations, resolved, "log")
    plain = weighted(reduce_rows([source]), equations.names)
    gls = generalised([source], plain)
    result = evaluate(source, gls.estimate, gls.noise)
    for joint, runs in zip(result.joints, residual_runs(source, gls.estimate), strict=True):
        oracle = durbin_watson(runs.residual, decimator_correlation(source))
        np.testing.assert_allclose(joint.durbin_watson, oracle.statistic, rtol=1e-9)
        np.testing.assert_allclose(joint.expected_durbin_watson, oracle.expected, rtol=1e-9)
        assert joint.noise_ratio == pytest.approx(1, abs=0.05)
        # White noise: as much of it within the evaluation band as what is above says.
        assert joint.noise_rms == pytest.approx(joint.rms, rel=0.1)
    assert result.noise_limited
    wrong = {name: 1.5 * value for name, value in true_values(equations, truth).items()}
    unseen = row_source(recording, equations, resolved, "other label")
    worse = evaluate(unseen, estimate_of(wrong), gls.noise)
    assert not worse.noise_limited
    assert all(joint.noise_ratio > 3 for joint in worse.joints)
    assert all(np.isnan(joint.noise_ratio) for joint in evaluate(unseen, estimate_of(wrong)).joints)


def test_recordings_combine_by_their_sums_of_squares():
    recording, equations, truth = exact_recording(noise=1.0)
    resolved = resolve_preparation(Preparation(cutoff=40.0, decimation=20, standstill=0.05), [recording])
    estimate = estimate_of(true_values(equations, truth))
    first = evaluate(row_source(recording, equations, resolved, "a"), estimate)
    other, _, _ = exact_recording(samples=5000, noise=3.0)
    second = evaluate(row_source(other, equations, resolved, "b"), estimate)
    both = combined([first, second])
    assert both.label == "a, b"
    for one, two, joint in zip(first.joints, second.joints, both.joints, strict=True):
        squares = one.samples * one.rms**2 + two.samples * two.rms**2
        assert joint.samples == one.samples + two.samples
        np.testing.assert_allclose(joint.rms, np.sqrt(squares / joint.samples), rtol=1e-12)
        assert joint.maximum == max(one.maximum, two.maximum)
    twice = combined([first, first])
    np.testing.assert_allclose(twice.relative_percent, first.relative_percent, rtol=1e-12)
    with pytest.raises(EstimateError, match="cut-off"):
        combined([first, evaluate(row_source(recording, equations, resolved, "c"), estimate, cutoff=5.0)])
    with pytest.raises(EstimateError, match="at least one"):
        combined([])


def test_short_segments_are_skipped_and_nothing_left_is_an_error():
    recording, equations, truth = exact_recording()
    estimate = estimate_of(true_values(equations, truth))
    time = recording.time + 0.0
    time[7000:] += 1.0
    gap = Recording(recording.joints, time, recording.q, torques=recording.torques)
    resolved = resolve_preparation(Preparation(cutoff=40.0, decimation=20, standstill=0.05), [gap])
    source = row_source(gap, equations, resolved, "gap")
    assert evaluate(source, estimate).skipped_segments == 0
    result = evaluate(source, estimate, cutoff=2.0)
    assert result.skipped_segments == 1
    assert all(joint.samples + joint.sums.still_samples < 7000 for joint in result.joints)
    with pytest.raises(SignalError, match="cut-off"):
        evaluate(source, estimate, cutoff=0.0)
    with pytest.raises(EstimateError, match=r"'gap'.*long enough for an evaluation filter of 0\.1 Hz"):
        evaluate(source, estimate, cutoff=0.1)


def part(unit, error, torque):
    return JointError("motor", "j", unit, 1.0, ErrorSums(samples=10, error=error, torque=torque))


def with_top_speeds(*speeds):
    return replace(MotionExtent.of(*np.zeros((3, len(speeds), 1))), speed_max=np.array(speeds))


def test_forces_and_torques_are_never_summed():
    joints = (part("N m", 1.0, 100.0), part("N m", 3.0, 300.0), part("N", 4.0, 100.0))
    result = Evaluation("x", 10.0, joints, ("a", "b", "c"), with_top_speeds(1.0, 1.0, 1.0))
    assert result.relative_by_unit == pytest.approx({"N m": 10.0, "N": 20.0})
    assert result.relative_percent == pytest.approx(20.0)


def test_an_equation_without_a_sample_has_no_figures():
    assert set(astuple(ErrorSums())) == {0}
    empty = JointError("motor", "j", "N m", 0.0, ErrorSums())
    figures = (
        empty.rms, empty.relative_percent, empty.maximum, empty.durbin_watson, empty.expected_durbin_watson,
        empty.noise_ratio, empty.standstill_rms, empty.varying_percent,
    )  # fmt: skip
    assert all(np.isnan(value) for value in figures)
    nothing = Evaluation("x", 10.0, (empty,), ("j",), with_top_speeds(0.0))
    figures = (nothing.relative_percent, nothing.relative_percent_all_rows, nothing.standstill_percent)
    assert all(np.isnan(value) for value in figures)


def test_figures_follow_from_the_sums_by_hand():
    sums = ErrorSums(
        samples=4, error=9.0, torque=36.0, maximum=2.5, still_samples=16, still_error=1.0, still_torque=4.0, rows=5,
        residual=8.0, differences=12.0, expected=8.5, white_rows=3, white=27.0, torque_variation=16.0,
        error_variation=4.0, torque_max=7.0, noise=4.5,
    )  # fmt: skip
    one = JointError("motor", "a", "N m", 1.0, sums)
    assert (one.rms, one.torque_rms, one.torque_deviation, one.noise_rms) == (1.5, 3.0, 2.0, np.sqrt(4.5 / 4))
    assert (one.relative_percent, one.varying_percent, one.standstill_rms) == (50.0, 50.0, 0.25)
    assert (one.maximum, one.torque_max, one.samples) == (2.5, 7.0, 4)
    assert (one.durbin_watson, one.expected_durbin_watson, one.noise_ratio) == (1.5, 1.7, 3.0)
    both = sums + replace(sums, maximum=3.0, torque_max=6.0)
    twice = {name: 2 * value for name, value in asdict(sums).items()}
    assert asdict(both) == {**twice, "maximum": 3.0, "torque_max": 7.0}
    whole = Evaluation("x", 10.0, (one, one), ("a", "b"), with_top_speeds(1.0, 1.0))
    assert whole.relative_percent == 50.0
    assert whole.relative_percent_all_rows == 50.0
    assert whole.standstill_percent == 80.0
    assert whole.noise_limited
    less = replace(one, sums=replace(sums, noise=4.4, still_error=16.0, still_torque=28.0))
    quieter = replace(whole, joints=(less, less))
    assert not quieter.noise_limited
    assert quieter.relative_percent_all_rows == 62.5


def test_figures_of_small_torques_follow_from_their_sums_too():
    sums = ErrorSums(
        samples=1, error=0.01, torque=0.04, still_samples=1, still_error=0.25, still_torque=0.25, rows=1, residual=0.2,
        differences=0.3, expected=1.7, white_rows=1, white=0.25, torque_variation=0.16, error_variation=0.01,
    )  # fmt: skip
    one = JointError("motor", "a", "N", 1.0, sums)
    assert (one.rms, one.torque_rms, one.standstill_rms) == pytest.approx((0.1, 0.2, 0.5))
    assert (one.relative_percent, one.varying_percent) == pytest.approx((50.0, 25.0))
    assert (one.durbin_watson, one.expected_durbin_watson, one.noise_ratio) == pytest.approx((1.5, 1.7, 0.5))
    whole = Evaluation("x", 10.0, (one,), ("a",), with_top_speeds(1.0))
    assert (whole.standstill_percent, whole.skipped_segments, whole.parts) == (50.0, 0, ())
    assert not whole.noise_limited
    alone = MotionExtent.of(np.zeros((1, 1)), np.zeros((1, 1)), np.array([[-3.0]]))
    assert alone.acceleration_rms == 3


def test_how_far_and_how_hard_joints_move_adds_up_over_recordings():
    first = MotionExtent.of(np.array([[-1.0, 0.5]]), np.array([[-3.0, 2.0]]), np.array([[3.0, 4.0]]))
    other = MotionExtent.of(np.array([[-0.5, 2.0]]), np.array([[1.0, -1.0]]), np.array([[5.0, 0.0]]))
    assert (first.speed_max, first.lower, first.upper, first.acceleration_rms) == (3, -1, 0.5, np.sqrt(12.5))
    both = first + other
    assert (both.speed_max, both.lower, both.upper, both.acceleration_rms) == (3, -1, 2, np.sqrt(12.5))
    assert both.samples == 4
    nothing = MotionExtent(*np.zeros((4, 1)), samples=0)
    assert nothing.acceleration_rms == 0
    evaluation = Evaluation("x", 10.0, (), ("a",), first, 2)
    assert combined([evaluation, replace(evaluation, skipped_segments=3)]).skipped_segments == 5


def test_joints_that_move_faster_than_in_the_fit_are_named():
    def with_speeds(*speeds):
        return Evaluation("x", 10.0, (), ("a", "b", "c"), with_top_speeds(*speeds))

    assert faster_joints(with_speeds(1.0, 1.0, 1.0), with_speeds(1.19, 1.21, 0.5)) == ("b",)
    assert faster_joints(with_speeds(1.0, 1.0, 1.0), with_speeds(1.19, 1.21, 0.5), factor=1.1) == ("a", "b")
    other = replace(with_speeds(9.0, 9.0, 9.0), joint_names=("a", "d", "e"))
    assert faster_joints(with_speeds(1.0, 1.0, 1.0), other) == ("a",)  # joints that were not fitted have no speed


def test_joints_that_go_farther_or_hardly_move_are_named():
    def moved(lower, upper, speed, names=("a", "b", "c")):
        extent = replace(with_top_speeds(*speed), lower=np.array(lower), upper=np.array(upper))
        return Evaluation("x", 10.0, (), names, extent)

    train = moved([-1.0, -1.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    unseen = moved([-1.49, -1.51, 0.5], [1.49, 1.0, 0.59], [1.0, 1.0, 0.09])
    assert wider_joints(train, unseen) == ("b",)
    assert hardly_moving(train, unseen) == ("c",)
    assert wider_joints(train, unseen, part=0.2) == ("a", "b")
    narrow = moved([0.0, 0.0, 0.0], [0.19, 0.21, 0.099], [0.099, 0.05, 0.101])
    assert hardly_moving(train, narrow) == ("a",)
    assert hardly_moving(train, narrow, part=0.11) == ("a", "b", "c")
    assert wider_joints(moved([-1.0], [3.0], [1.0], ("a",)), moved([-1.9], [3.9], [1.0], ("a",))) == ()
    assert wider_joints(moved([-1.0], [3.0], [1.0], ("a",)), moved([-1.0], [4.1], [1.0], ("a",))) == ("a",)
    slow_but_wide = moved([-1.0, -1.0, 0.0], [1.0, 1.0, 1.0], [0.01, 0.01, 0.01])
    assert hardly_moving(train, slow_but_wide) == ()
    other = moved([-9.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 0.0, 0.0], names=("a", "d", "e"))
    assert (wider_joints(train, other), hardly_moving(train, other)) == (("a",), ())


def test_the_top_speed_of_several_recordings_is_that_of_the_fastest():
    slow, fast = (
        Evaluation("x", 10.0, (replace(part("N m", 1.0, 4.0), speed_max=speed),), ("a",), with_top_speeds(speed))
        for speed in (1.0, 3.0)
    )
    for pair in ((slow, fast), (fast, slow)):
        assert combined(pair).joints[0].speed_max == 3.0


def test_residual_runs_carry_what_the_search_for_patterns_needs():
    recording, equations, truth = exact_recording(samples=30_000, noise=0.5)
    resolved = resolve_preparation(Preparation(cutoff=40.0, decimation=20, standstill=0.05), [recording])
    source = row_source(recording, equations, resolved, "log")
    values = true_values(equations, truth)
    values["Fvm1"] += 1.0
    runs = residual_runs(source, estimate_of(values))
    first = runs[0]
    assert set(first.signals) == {"position", "velocity", "acceleration", "load", "time"}
    for name, parts in first.signals.items():
        assert [len(x) for x in parts] == [len(x) for x in first.residual], name
    measured = np.concatenate(first.residual) + np.concatenate(first.signals["load"])
    rows = np.concatenate([run.rows for run in source.runs([0])])
    np.testing.assert_allclose(measured, rows[:, -1], atol=1e-12)
    slope = np.polyfit(np.concatenate(first.signals["velocity"]), np.concatenate(first.residual), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.02)
    correlation = decimator_correlation(source)
    patterns = explain_residuals(first.residual, first.signals, "joint 1", 0.1, correlation)
    assert "viscous friction" in patterns[0].text


def test_runs_are_stored_whole_while_there_is_room_and_thinned_evenly_when_not():
    runs = [np.arange(3000.0), np.arange(10.0), np.arange(5000.0)]
    whole = RunCollector(10_000)
    thinned = RunCollector(4000)
    for collector in (whole, thinned):
        for run in runs:
            for first in range(0, len(run), 700):
                collector.add(run[None, first : first + 700], starts=first == 0)
    for stored, run in zip(whole.runs(), runs, strict=True):
        np.testing.assert_array_equal(stored[0], run)
    stored = thinned.runs()
    assert 1000 < sum(run.shape[1] for run in stored) <= 4000
    assert all((np.diff(run[0]) == 1).all() for run in stored)
