"""Rows: equal to the route of whole arrays, exact as equations, the same in every pass."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from observe.cases import (
    RATE,
    collected,
    equations_for,
    model_of,
    recording_for,
    smooth_positions,
    whole_regressor,
    whole_rows,
)
from steelyard.errors import ObservationError, RecordingError, SignalError
from steelyard.observe import (
    MIN_SHARE,
    Preparation,
    equations_of,
    reading,
    reduce_rows,
    resolve_preparation,
    row_source,
)
from steelyard.observe.rows import RowPass
from steelyard.observe.runs import RunFinder
from steelyard.recording import TorqueChannel, stream_recording, write_recording
from steelyard.recording.cache import CachedColumns
from steelyard.recording.checks.time_steps import bridging_gap
from steelyard.signals import decimate, differentiate, resample

GIVEN = Preparation(cutoff=20.0, decimation=10, standstill=0.0)


def source_of(recording, model, preparation=GIVEN, label="log", **options):
    equations = equations_for(model)
    return row_source(recording, equations, resolve_preparation(preparation, [recording]), label, **options)


def assert_rows(found, wanted, relative=1e-9):
    for ours, theirs in zip(found, wanted, strict=True):
        scale = np.abs(theirs).max(axis=0)
        np.testing.assert_array_less(np.abs(ours - theirs).max(axis=0), relative * scale + 1e-12)


@pytest.mark.parametrize(
    ("name", "choices", "payload"),
    [
        ("scara_2r", {}, None),
        ("kuka_lwr4", {"measured": "both", "payload": "paired"}, "box"),
        ("kuka_lwr4", {"measured": "both", "payload": "paired"}, None),
        ("kuka_lwr4", {"measured": "difference"}, None),
        ("staubli_tx40", {}, None),
        ("ur10e", {}, None),
        ("gripper", {}, None),
    ],
)
def test_rows_are_those_of_whole_arrays(name, choices, payload):
    model = model_of(name, **choices)
    recording = recording_for(model, 2500, payload=payload)
    source = source_of(recording, model)
    y = y_of(model, recording)
    wanted = whole_rows(source.equations, source.resolved, recording.q, y, loaded=payload is not None)
    assert_rows(collected(source), wanted)


def y_of(model, recording):
    """Return the measured side of every equation, by hand."""
    joint = recording.torque("joint_torque").values
    motor = recording.torques[1].values
    if recording.torques[1].kind == "motor_current":
        gains = np.array([model.robot.values[f"drive_gain{body.number}"] for body in model.robot.actuated])
        motor = model.robot.motor_coupling().T @ (gains[:, None] * motor)
    sides = {"motor": motor, "joint": joint, "difference": motor - joint, "both": np.vstack([motor, joint])}
    return sides[model.measured]


@pytest.mark.parametrize("block", [400, 1777])
@pytest.mark.parametrize(
    "preparation",
    [
        GIVEN,
        replace(GIVEN, second="twice_first", ends="mirror"),
        replace(GIVEN, mode="forward", decimation=7),
        replace(GIVEN, mode="none", cutoff=None, decimation=60),
        replace(GIVEN, decimation=1),
    ],
)
def test_rows_do_not_depend_on_the_blocks(monkeypatch, block, preparation):
    model = model_of("scara_2r")
    recording = recording_for(model)
    whole = source_of(recording, model, preparation)
    y = y_of(model, recording)
    wanted = (
        whole_rows(whole.equations, whole.resolved, recording.q, y) if whole.resolved.decimates else collected(whole)
    )
    assert_rows(collected(whole), wanted, 1e-8)
    monkeypatch.setattr(reading, "BLOCK", block)
    assert_rows(collected(source_of(recording, model, preparation)), wanted, 1e-8)


def test_without_decimation_rows_are_the_samples_themselves():
    model = model_of("scara_2r")
    recording = recording_for(model)
    source = source_of(recording, model, replace(GIVEN, decimation=1))
    motion = differentiate(recording.q, source.resolved.low_pass)
    W = whole_regressor(source.equations, motion, loaded=False)
    blocks = list(source)
    np.testing.assert_allclose(np.concatenate([b.qdd for b in blocks], axis=1), motion.qdd, atol=1e-8)
    nonzero = [source.equations.names.index(name) for name in source.equations.columns[1]]
    np.testing.assert_allclose(collected(source)[1][:, :-1], W[1][:, nonzero], atol=1e-8)
    assert source.resolved.decimation_filter.noise_correlation(2).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("standstill", [0.0, 0.5])
def test_torques_of_the_true_parameters_leave_no_residual(standstill):
    model = model_of("staubli_tx40")
    recording = recording_for(model, 2500)
    preparation = replace(GIVEN, standstill=standstill)
    source = source_of(recording, model, preparation)
    motion = differentiate(recording.q, source.resolved.low_pass)
    chi = np.random.default_rng(1).standard_normal(len(source.equations.names))
    torque = np.zeros((6, recording.samples))
    torque[:, motion.first : motion.first + motion.q.shape[1]] = whole_regressor(source.equations, motion, False) @ chi
    clean = source_of(replace(recording, torques=(TorqueChannel("motor_torque", torque),)), model, preparation)
    for rows, columns in zip(collected(clean), clean.equations.columns, strict=True):
        true = chi[[clean.equations.names.index(name) for name in columns]]
        assert np.abs(rows[:, -1] - rows[:, :-1] @ true).max() < 1e-9 * np.abs(rows[:, -1]).max()


def test_two_passes_give_the_same_bits_cached_or_not():
    model = model_of("scara_2r")
    recording = recording_for(model)
    cached, computed = source_of(recording, model), source_of(recording, model, cache_bytes=0)
    first = collected(cached)
    for other in (collected(cached), collected(computed), collected(computed)):
        assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert next(iter(cached)) is next(iter(cached))
    assert next(iter(computed)) is not next(iter(computed))
    assert not next(iter(cached)).rows[0].flags.writeable


def test_rows_beyond_the_memory_of_a_cache_are_read_from_a_file_not_computed_again(monkeypatch):
    model = model_of("staubli_tx40")
    recording = recording_for(model, 15_000)
    in_memory, in_file = source_of(recording, model), source_of(recording, model, cache_bytes=100_000)
    first = collected(in_memory)
    assert sum(rows.nbytes for rows in first) > 300_000
    for _ in range(3):
        assert all(np.array_equal(a, b) for a, b in zip(first, collected(in_file), strict=True))
        monkeypatch.setattr(RowPass, "parts", None)
    for one, other in zip(in_memory, in_file, strict=True):
        assert (one.segment, one.first) == (other.segment, other.first)
        assert [rows.strides for rows in one.rows] == [rows.strides for rows in other.rows]
        for name in ("time", "share", "q", "qd", "qdd"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_rows_without_room_for_their_file_are_computed_again(monkeypatch):
    def full(*_):
        raise RecordingError("no room")

    monkeypatch.setattr(CachedColumns, "put", full)
    model = model_of("scara_2r")
    recording = recording_for(model)
    source = source_of(recording, model, cache_bytes=1000)
    first = collected(source)
    for other in (collected(source), collected(source_of(recording, model))):
        assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_a_stream_from_a_file_gives_the_bits_of_the_recording_in_memory(tmp_path, ending):
    model = model_of("scara_2r")
    recording = recording_for(model, 20_000, temperature=np.full((2, 20_000), 30.0))
    path = write_recording(recording, tmp_path / f"log.{ending}")
    stream = stream_recording(model.robot, path, block_rows=3000)
    streamed, in_memory = source_of(stream, model), source_of(recording, model)
    assert all(np.array_equal(a, b) for a, b in zip(collected(streamed), collected(in_memory), strict=True))
    assert streamed.samples == in_memory.samples
    assert stream.result is not None
    assert streamed.sha256 == (stream.result.sources[0].sha256,)
    assert len(in_memory.sha256[0]) == 64


def test_gaps_split_the_rows_into_segments():
    model = model_of("scara_2r")
    recording = recording_for(model, 9000)
    keep = np.ones(9000, dtype=bool)
    keep[3000:3500] = False  # half a second is missing
    keep[3600:3700] = False  # what is left between the two gaps is too short
    source = source_of(_cut(recording, keep), model)
    blocks = list(source)
    assert [block.segment for block in blocks] == [0, 2]
    y = y_of(model, recording)
    for block, part in zip(blocks, (slice(0, 3000), slice(3700, 9000)), strict=True):
        wanted = whole_rows(source.equations, source.resolved, recording.q[:, part], y[:, part])
        assert_rows(block.rows, wanted)
    assert any("3 segments" in note for note in source.notes)
    assert any("too short for filter and decimation: 1" in note for note in source.notes)


def _cut(recording, keep):
    torques = tuple(replace(channel, values=channel.values[:, keep]) for channel in recording.torques)
    return replace(recording, time=recording.time[keep], q=recording.q[:, keep], torques=torques)


def test_uneven_stamps_are_resampled():
    model = model_of("scara_2r")
    recording = recording_for(model)
    jitter = np.random.default_rng(3).uniform(-2e-4, 2e-4, 6000)
    uneven = replace(recording, time=recording.time + jitter)
    source = source_of(uneven, model, replace(GIVEN, rate=RATE))
    signals = np.vstack([uneven.q, y_of(model, uneven)])
    even = resample(uneven.time, signals, RATE, "cubic").values
    assert_rows(collected(source), whole_rows(source.equations, source.resolved, even[:2], even[2:]))
    assert "uneven" in source.notes[0]


def test_stamps_that_drift_are_resampled_though_every_interval_is_nearly_right():
    model = model_of("scara_2r")
    recording = recording_for(model)
    slow = replace(recording, time=recording.time * 1.003)
    source = source_of(slow, model, replace(GIVEN, rate=RATE))
    list(source)
    assert "uneven" in source.notes[0]


def test_near_standstill_the_own_equations_of_a_joint_are_left_out():
    model = model_of("scara_2r")
    recording = recording_for(model)
    source = source_of(recording, model, replace(GIVEN, standstill=(0.8, 0.0)))
    wanted = whole_rows(source.equations, source.resolved, recording.q, y_of(model, recording))
    assert_rows(collected(source), wanted)
    motion = differentiate(recording.q, source.resolved.low_pass)
    moving = np.abs(motion.qd[0]) >= 0.8
    np.testing.assert_allclose(source.masked, [1 - moving.mean(), 0.0])
    filter_ = source.resolved.decimation_filter
    weights = filter_.impulse_response() ** 2
    index = filter_.outputs(len(moving))
    share = [weights @ moving[k - filter_.half : k + filter_.half + 1] / weights.sum() for k in index]
    blocks = list(source)
    np.testing.assert_allclose(np.concatenate([b.share[0] for b in blocks]), share, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([b.share[1] for b in blocks]), 1.0)
    usable = sum(len(run.rows) for run in source.runs([0]))
    assert usable == (np.array(share) >= MIN_SHARE).sum()
    assert 0 < usable < len(share)


def test_noise_that_persists_passes_standstill_as_it_is():
    model = model_of("scara_2r")
    recording = recording_for(model)
    held = tuple(replace(channel, values=np.full_like(channel.values, 3.0)) for channel in recording.torques)
    source = source_of(replace(recording, torques=held), model, replace(GIVEN, standstill=(0.8, 0.0)))
    torque = np.concatenate([run.rows[:, -1] for run in source.runs([0])])
    shares = np.concatenate([block.share[0] for block in source])
    assert (shares[shares >= MIN_SHARE] < 0.9).any()
    # A standstill at the very start has nothing before it.
    np.testing.assert_allclose(torque[20:], 3.0, atol=1e-9)


def test_runs_are_the_unbroken_segments_of_usable_rows():
    model = model_of("scara_2r")
    block = next(iter(source_of(recording_for(model), model)))
    share = np.ones_like(block.share)
    share[0, [3, 4, 9]] = 0.2
    few = replace(block, share=share)
    finder = RunFinder(equations_for(model), 0, "log")
    runs = list(finder.runs(few))
    assert [(run.places.start, len(run.rows)) for run in runs] == [(0, 3), (5, 4), (10, len(block.time) - 10)]
    assert [run.starts for run in runs] == [True, True, True]
    assert np.shares_memory(runs[1].rows, block.rows[0])
    np.testing.assert_array_equal(runs[1].rows, block.rows[0][5:9])
    after = replace(few, first=few.first + len(few.time))
    assert [run.starts for run in finder.runs(after)] == [False, True, True]
    assert next(finder.runs(replace(after, segment=few.segment + 1))).starts


def test_times_and_motion_belong_to_the_rows():
    model = model_of("scara_2r")
    recording = recording_for(model, time=np.arange(6000) / RATE + 1e4)
    source = source_of(recording, model)
    (block,) = source
    motion = differentiate(recording.q, source.resolved.low_pass)
    small = decimate(motion.qd, RATE, 10)
    np.testing.assert_allclose(block.time, 1e4 + (motion.first + small.index) / RATE, rtol=0, atol=1e-8)
    np.testing.assert_allclose(block.qd, small.values, atol=1e-9)
    assert block.first == 0
    assert source.samples == motion.q.shape[1]


def test_temperatures_go_along_and_are_held_where_the_log_has_none():
    model = model_of("scara_2r")
    temperature = np.vstack([np.linspace(20, 40, 6000), np.full(6000, np.nan)])
    temperature[0, 3000:] = np.nan
    block = next(iter(source_of(recording_for(model, temperature=temperature), model)))
    assert block.temperature is not None
    wanted = np.interp(np.minimum(block.time, 2.999), np.arange(6000) / RATE, np.linspace(20, 40, 6000))
    np.testing.assert_allclose(block.temperature[0], wanted, atol=1e-9)
    assert np.isnan(block.temperature[1]).all()
    assert next(iter(source_of(recording_for(model), model))).temperature is None


def test_recorded_velocities_are_used_if_wished():
    model = model_of("scara_2r")
    velocity = np.gradient(smooth_positions(2, 6000), 1 / RATE, axis=1) + 0.3
    recording = recording_for(model, qd=velocity)
    source = source_of(recording, model, replace(GIVEN, velocity="recorded"))
    motion = differentiate(velocity, source.resolved.low_pass)
    block = next(iter(source))
    np.testing.assert_allclose(block.qd, decimate(motion.q, RATE, 10).values, atol=1e-9)
    np.testing.assert_allclose(block.qdd, decimate(motion.qd, RATE, 10).values, atol=1e-8)
    with pytest.raises(ObservationError, match="no recorded velocity"):
        source_of(recording_for(model), model, replace(GIVEN, velocity="recorded"))


def test_positions_behind_elastic_joints_follow_from_the_joint_torques():
    model = model_of("kuka_lwr4", measured="joint")
    recording = recording_for(model, 2500)
    stiffness = tuple(1e4 * (k + 1) for k in range(7))
    source = source_of(recording, model, replace(GIVEN, stiffness=stiffness))
    behind = recording.q - recording.torque("joint_torque").values / np.array(stiffness)[:, None]
    wanted = whole_rows(source.equations, source.resolved, behind, y_of(model, recording))
    assert_rows(collected(source), wanted)
    only_motor = replace(recording, torques=recording.torques[1:])
    with pytest.raises(ObservationError, match="joint_torque"):
        resolve_preparation(replace(GIVEN, stiffness=stiffness), [only_motor])


def test_a_joint_that_never_moves_is_named():
    model = model_of("scara_2r")
    q = smooth_positions(2, 6000)
    q[1] = 0.4 + 1e-5 * np.random.default_rng(5).standard_normal(6000)
    source = source_of(recording_for(model, q=q), model, replace(GIVEN, standstill=None))
    list(source)
    assert source.still_joints == ("joint_2",)
    assert any("joint_2" in note for note in source.notes)
    assert source.masked[1] > 0.9


@pytest.mark.parametrize("channel", ["q", "torque"])
def test_a_value_that_is_no_number_is_named(channel):
    model = model_of("scara_2r")
    recording = recording_for(model)
    values = np.array(recording.q if channel == "q" else recording.torques[1].values)
    values[1, 4321] = np.nan
    if channel == "q":
        broken = replace(recording, q=values)
    else:
        broken = replace(recording, torques=(TorqueChannel("motor_torque", values),))
    resolved = resolve_preparation(GIVEN, [recording])
    with pytest.raises(ObservationError, match=r"'log'.*'joint_2' is nan at 4\.321 s"):
        list(row_source(broken, equations_of(model), resolved, "log"))


def test_what_does_not_fit_is_refused():
    model = model_of("ur10e")
    recording = recording_for(model)
    equations, resolved = equations_of(model), resolve_preparation(GIVEN, [recording])
    without_motor = replace(recording, torques=recording.torques[:1])
    with pytest.raises(ObservationError, match=r"no motor_torque or motor_current channel.*there: joint_torque"):
        row_source(without_motor, equations, resolved, "log")
    robot = replace(model.robot, values={k: v for k, v in model.robot.values.items() if k != "drive_gain3"})
    nameless = equations_of(replace(model, robot=robot))
    with pytest.raises(ObservationError, match=r"no gain.*joint 'elbow_joint'.*drive_gain3"):
        row_source(recording, nameless, resolved, "log")
    other = model_of("scara_2r")
    with pytest.raises(ObservationError, match="another robot"):
        row_source(recording, equations_of(other), resolved, "log")
    with pytest.raises(ObservationError, match="preparation of joints"):
        row_source(recording_for(other), equations_of(other), resolved, "log")
    loaded = model_of("ur10e", payload="loaded")
    with pytest.raises(ObservationError, match="paired"):
        row_source(recording, equations_of(loaded), resolved, "log")


def test_a_recording_too_short_for_a_row_says_so():
    model = model_of("scara_2r")
    resolved = resolve_preparation(GIVEN, [recording_for(model)])
    with pytest.raises(ObservationError, match="'short' gives no row"):
        list(row_source(recording_for(model, 300), equations_of(model), resolved, "short"))


def test_a_recording_split_by_short_gaps_names_the_option_that_bridges_them():
    """A gap of twelve steps after each 100 samples: no part is long enough for a row."""
    model = model_of("scara_2r")
    whole = recording_for(model)
    keep = np.flatnonzero(np.arange(whole.samples) % 100 >= 11)
    split = part_by_index(whole, keep)
    steps = np.diff(split.time)
    advice = f"bridge gaps of up to {steps.max():.3g} s with max_gap = {bridging_gap(steps.max()):g} under [identify], "
    with pytest.raises(ObservationError, match=re.escape(f"{advice}record longer")):
        list(source_of(split, model))
    bridged = source_of(split, model, replace(GIVEN, max_gap=bridging_gap(float(steps.max()))))
    assert any(True for _ in bridged)


def part_by_index(recording, keep):
    torques = tuple(replace(one, values=one.values[:, keep]) for one in recording.torques)
    parts = {
        name: values[..., keep]
        for name in ("time", "q", "qd", "reference", "temperature", "known_torque")
        if (values := getattr(recording, name)) is not None
    }
    return replace(recording, torques=torques, **parts)


def test_stamps_that_go_back_are_refused():
    model = model_of("scara_2r")
    recording = recording_for(model)
    time = np.array(recording.time)
    time[4000] = time[3990]
    resolved = resolve_preparation(GIVEN, [recording])
    with pytest.raises(SignalError, match="strictly increasing"):
        list(row_source(replace(recording, time=time), equations_of(model), resolved, "log"))


def test_memory_does_not_grow_with_the_recording():
    model = model_of("scara_2r")
    peaks = []
    for samples in (60_000, 60_000, 240_000):  # the first one compiles
        source = source_of(recording_for(model, samples), model, cache_bytes=0)
        tracemalloc.start()
        reduce_rows([source])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 500_000
    assert peaks[2] < 240_000 * 8 * 2 * 8  # the recording alone, with its velocities and accelerations, is larger
