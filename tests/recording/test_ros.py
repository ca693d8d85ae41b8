"""ROS bags: the same recording as from other files, whatever the bag; files are written by the package rosbags."""

from __future__ import annotations

import sqlite3
import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulated_experiments
from recording.logs import Motion, one
from ros_bags import JOINT_STATE, Controller, Joints, Messages, Wrench, stored_file, write_bag
from steelyard.errors import ConfigError, RecordingError, TableError
from steelyard.identification import Settings, identify
from steelyard.recording import read_recording, setup_from_table, stream_recording, write_recording
from steelyard.tables import ReadLog, TextOptions, open_table, read_columns
from steelyard.tables import ros as ros_module
from steelyard.tables.bag_records import Topic

pytest.importorskip("rosbags", reason="bags are written by the package rosbags (extra 'ros')")

ARM = ("shoulder", "elbow")
SETUP = {"q": "q", "qd": "qd", "torque": {"kind": "joint_torque", "columns": "effort"}}
CONTAINERS = [
    ("log.bag", ""), ("log.bag", "bz2"), ("log.bag", "lz4"), ("db3", ""), ("db3", "message"), ("db3", "file"),
    ("mcap", ""), ("mcap", "storage"), ("mcap", "file"), ("mcap", "message"),
]  # fmt: skip


def nanoseconds(motion: Motion) -> list[int]:
    return [int(stamp) for stamp in np.round(1e9 * (motion.time + 1000))]


def states(motion: Motion, **others) -> list[Joints]:
    """Return the motion as joint states from 1000 s on."""
    rows = zip(nanoseconds(motion), motion.q.T, motion.qd.T, motion.tau.T, strict=True)
    return [Joints(stamp, ARM, q, qd, tau, **others) for stamp, q, qd, tau in rows]


def shuffled(state: Joints) -> Joints:
    return state._replace(
        names=state.names[::-1], position=state.position[::-1], velocity=state.velocity[::-1], effort=state.effort[::-1]
    )


def read(robot, path: Path, **declared):
    return read_recording(robot, setup_from_table({**SETUP, **declared}), files=path)


def assert_same(recording, motion):
    np.testing.assert_allclose(recording.time, motion.time + 1000, atol=3e-7)
    np.testing.assert_array_equal(recording.q, motion.q)
    np.testing.assert_array_equal(recording.qd, motion.qd)
    np.testing.assert_array_equal(recording.torque("joint_torque").values, motion.tau)


def remarks(recording) -> str:
    return " | ".join(finding.text for finding in recording.findings if finding.kind == "text")


@pytest.fixture
def motion() -> Motion:
    return Motion(samples=400)


@pytest.mark.parametrize(("name", "packed"), CONTAINERS)
def test_every_bag_gives_the_same_recording(robot, motion, tmp_path, monkeypatch, name, packed):
    monkeypatch.setattr(ros_module, "BLOCK_ROWS", 90)
    path = write_bag(tmp_path / name, states(motion), packed)
    assert_same(read(robot, path), motion)
    if not path.is_file() and packed in ("", "storage"):
        assert_same(read(robot, stored_file(path)), motion)


def test_positions_and_velocities_need_no_setup_but_effort_does(robot, motion, tmp_path):
    path = write_bag(tmp_path / "log.bag", states(motion))
    recording = read_recording(robot, path)
    np.testing.assert_array_equal(recording.qd, motion.qd)
    assert recording.torques == ()
    table = open_table(path, TextOptions())
    assert table.names == ("time", *(f"{quantity}[{joint}]" for quantity in ("q", "qd", "effort") for joint in ARM))


def test_joints_are_matched_by_name_in_every_message(robot, motion, tmp_path):
    mixed = [shuffled(state) if number % 3 == 1 else state for number, state in enumerate(states(motion))]
    assert_same(read(robot, write_bag(tmp_path / "log.bag", mixed)), motion)


def test_arrays_that_are_empty_are_no_columns(robot, motion, tmp_path):
    path = write_bag(tmp_path / "mcap", [state._replace(velocity=(), effort=()) for state in states(motion)])
    assert open_table(path, TextOptions()).names == ("time", "q[shoulder]", "q[elbow]")
    np.testing.assert_array_equal(read_recording(robot, path).q, motion.q)


def test_a_message_without_effort_is_a_row_without_effort(robot, motion, tmp_path):
    messages = states(motion)
    messages[7] = messages[7]._replace(effort=())
    recording = read(robot, write_bag(tmp_path / "mcap", messages))
    assert recording.samples == motion.time.size - 1
    assert one(recording.findings, "not_a_number", "elbow").count == 1


def test_messages_of_a_gripper_are_left_out(robot, motion, tmp_path):
    messages = states(motion)
    for place in range(350, 0, -50):
        messages.insert(place, Joints(messages[place].stamp, ("finger",), [0.01]))
    recording = read(robot, write_bag(tmp_path / "db3", messages))
    assert_same(recording, motion)
    assert "/joint_states: 7 messages of other joints (finger) left out" in remarks(recording)


def test_more_joints_than_the_arm_are_selected_by_name(robot, motion, tmp_path):
    messages = [
        state._replace(names=("finger", *ARM), position=[0.0, *state.position], velocity=(), effort=())
        for state in states(motion)
    ]
    path = write_bag(tmp_path / "mcap", messages)
    setup = setup_from_table({"q": "q[{shoulder,elbow}]"})
    np.testing.assert_array_equal(read_recording(robot, setup, files=path).q, motion.q)


@pytest.mark.parametrize("name", ["log.bag", "db3", "mcap"])
def test_without_stamps_time_is_when_messages_were_logged(robot, motion, tmp_path, name):
    messages = [state._replace(stamp=0, logged=state.stamp) for state in states(motion)]
    recording = read(robot, write_bag(tmp_path / name, messages))
    assert_same(recording, motion)
    assert "stamps are zero; time is that at which messages were logged" in remarks(recording)


def test_stamps_count_and_not_when_messages_were_logged(robot, motion, tmp_path):
    late = [state._replace(logged=state.stamp + 10**8 + number % 7) for number, state in enumerate(states(motion))]
    assert_same(read(robot, write_bag(tmp_path / "log.bag", late)), motion)


def two_topics(motion: Motion, first: str, second: str) -> list[Joints]:
    other = Motion(samples=motion.time.size)
    other.q = other.q + 0.1
    pairs = zip(states(motion, topic=first), states(other, topic=second), strict=True)
    return [message for pair in pairs for message in pair]


def test_of_two_topics_one_has_to_be_chosen(robot, motion, tmp_path):
    path = write_bag(tmp_path / "mcap", two_topics(motion, "/left/joint_states", "/right/joint_states"))
    with pytest.raises(
        TableError, match=r'choose one with topic = "/left/joint_states" in \[recording\] \(init: --topic\): /left'
    ):
        read(robot, path)
    assert_same(read(robot, path, topic="/left/joint_states"), motion)
    np.testing.assert_array_equal(read(robot, path, topic="right/joint_states").q, motion.q + 0.1)
    with pytest.raises(TableError, match=r"no topic '/lift/joint_states'.*did you mean '/left/joint_states'"):
        read(robot, path, topic="/lift/joint_states")
    part = {"part": [{"path": str(path), "topic": "/right/joint_states", **SETUP}]}
    np.testing.assert_array_equal(read_recording(robot, setup_from_table(part)).q, motion.q + 0.1)
    with pytest.raises(ConfigError, match="topic is 5; allowed: a text"):
        setup_from_table({"topic": 5})


def test_the_usual_topic_is_taken_with_a_remark(robot, motion, tmp_path):
    recording = read(robot, write_bag(tmp_path / "log.bag", two_topics(motion, "/joint_states", "/commands")))
    assert_same(recording, motion)
    assert "/joint_states is read, one of /commands (sensor_msgs/JointState, 400 messages)" in remarks(recording)


def test_wrenches_are_read_where_there_are_no_joints_or_they_are_chosen(robot, motion, tmp_path):
    values = np.arange(6.0)
    wrenches = [Wrench(state.stamp, values + state.position[0]) for state in states(motion)]
    both = [message for pair in zip(states(motion), wrenches, strict=True) for message in pair]
    path = write_bag(tmp_path / "log.bag", both)
    assert_same(read(robot, path), motion)
    for bag, topic in ((path, "/wrench"), (write_bag(tmp_path / "mcap", wrenches), None)):
        columns = open_table(bag, TextOptions(topic=topic))
        assert columns.names[:2] == ("time", "wrench[fx]")
        (block,) = columns.read(range(7), ReadLog())
        np.testing.assert_array_equal(block.columns[1:], values[:, None] + motion.q[0])


@pytest.mark.parametrize(
    ("name", "version"), [("log.bag", "noetic"), ("mcap", "humble"), ("db3", "jazzy"), ("db3", "noetic")]
)
@pytest.mark.parametrize("defined", [True, False])
def test_states_of_controllers_have_references_and_outputs(robot, motion, tmp_path, name, version, defined):
    actual, desired = ("actual", "desired") if version == "noetic" else ("feedback", "reference")
    messages = [
        Controller(
            state.stamp, ARM,
            {
                actual: {"positions": state.position, "velocities": state.velocity, "effort": state.effort},
                desired: {"positions": state.position + 0.5, "accelerations": state.position},
                "output": {"effort": state.effort + 1.0},
            },
        )
        for state in states(motion)
    ]  # fmt: skip
    path = write_bag(tmp_path / name, messages, version=version)
    if not defined:
        if name != "db3":
            pytest.skip("only databases of old versions have no definitions")
        path = stored_file(path)
        with sqlite3.connect(path) as database:
            database.execute("DROP TABLE message_definitions")
        database.close()
    assert_same(read(robot, path), motion)
    recording = read(robot, path, reference="reference")
    np.testing.assert_array_equal(recording.reference, motion.q + 0.5)
    if version != "noetic":
        torque = {"kind": "joint_torque", "columns": "output"}
        np.testing.assert_array_equal(read(robot, path, torque=torque).torque("joint_torque").values, motion.tau + 1.0)


def test_a_bag_in_several_files_is_read_in_their_order(robot, motion, tmp_path):
    messages = states(motion)
    first = stored_file(write_bag(tmp_path / "a", messages[:150]))
    second = stored_file(write_bag(tmp_path / "b", messages[150:]))
    bag = tmp_path / "bag"
    bag.mkdir()
    first.rename(bag / "x_0.mcap")
    second.rename(bag / "x_1.mcap")
    for text in ("  relative_file_paths:\n    - bag/x_0.mcap\n    - '../x_1.mcap'\n  other: 1\n",
                 "  relative_file_paths: [x_0.mcap, \"x_1.mcap\"]\n"):  # fmt: skip
        (bag / "metadata.yaml").write_text(f"rosbag2_bagfile_information:\n  version: 5\n{text}")
        assert_same(read(robot, bag), motion)
    (bag / "x_1.mcap").unlink()
    with pytest.raises(TableError, match=r"metadata\.yaml lists 'x_1\.mcap': no such file"):
        read(robot, bag)
    (bag / "metadata.yaml").write_text("x: 1\n")
    with pytest.raises(TableError, match="lists no files"):
        read(robot, bag)


@pytest.mark.parametrize("name", ["log.bag", "mcap"])
def test_a_bag_without_its_end_is_read_up_to_there(robot, tmp_path, name):
    motion = Motion(samples=9000)  # over one chunk
    path = write_bag(tmp_path / name, states(motion))
    path = path if path.is_file() else stored_file(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 5 // 6])
    recording = read(robot, path)
    assert 4000 < recording.samples < 8000
    np.testing.assert_array_equal(recording.q, motion.q[:, : recording.samples])
    assert "the file ends within a record" in remarks(recording)
    path.write_bytes(content[:2000])  # within the first chunk
    with pytest.raises(TableError, match="has no messages; it is empty, or cut off"):
        read(robot, path)
    if name == "mcap":  # the index knows how many there should be
        path.write_bytes(with_a_wrong_length(content))
        recording = read(robot, path)
        lost = motion.time.size - recording.samples
        assert one(recording.findings, "truncated_lines").count == lost > 0
        assert f"/joint_states: {lost} of 9000 messages are missing" in remarks(recording)


def with_a_wrong_length(mcap: bytes) -> bytes:
    """Return an MCAP file whose second chunk claims to be longer than the file."""
    place, chunks = 8, 0
    while True:
        chunks += mcap[place] == 6
        if chunks == 2:
            return mcap[: place + 1] + b"\xff" * 7 + b"\0" + mcap[place + 9 :]
        place += 9 + int.from_bytes(mcap[place + 1 : place + 9], "little")


def test_messages_that_cannot_be_decoded_are_counted(robot, motion, tmp_path):
    path = stored_file(write_bag(tmp_path / "db3", states(motion)))
    with sqlite3.connect(path) as database:
        database.execute("UPDATE messages SET data = x'0001000000' WHERE id IN (3, 9)")
        database.execute("UPDATE messages SET data = CAST(data || x'0000000000' AS BLOB) WHERE id = 5")
    database.close()
    path.with_name(f"{path.name}-wal").write_bytes(b"what was not saved")
    recording = read(robot, path)
    assert "messages in db3.db3-wal are not read" in remarks(recording)
    finding = one(recording.findings, "garbage_lines")
    assert finding.count == 3
    assert finding.where == (3.0, 5.0, 9.0)
    np.testing.assert_array_equal(recording.q, np.delete(motion.q, [2, 4, 8], axis=1))


def test_a_stream_tells_how_far_it_is(robot, motion, tmp_path, monkeypatch):
    monkeypatch.setattr(ros_module, "BLOCK_ROWS", 90)
    for name in ("log.bag", "db3", "mcap"):
        stream = stream_recording(robot, write_bag(tmp_path / name, states(motion)))
        reported = [stream.bytes_done for _ in stream]
        assert reported == sorted(reported)
        assert reported[0] > 0
        assert stream.bytes_done == stream.bytes_total


def test_measurements_are_read_from_bags_too(motion, tmp_path):
    path = write_bag(tmp_path / "log.bag", states(motion))
    columns = read_columns(path)
    np.testing.assert_array_equal(columns.numbers("q[elbow]"), motion.q[1])


def test_files_that_are_no_bags_are_refused_in_a_line(robot, motion, tmp_path):
    for name in ("a.bag", "a.mcap", "a.db3"):
        (tmp_path / name).write_bytes(b"SQLite format 3\0 but not really" * 50)
        with pytest.raises(RecordingError, match="is damaged or no ROS bag") as refused:
            read(robot, tmp_path / name)
        assert len(str(refused.value)) <= 500
        assert str(refused.value).isprintable()
    (tmp_path / "old.bag").write_bytes(b"#ROSBAG V1.2\n" + bytes(100))
    with pytest.raises(TableError, match="rosbag migrate"):
        read(robot, tmp_path / "old.bag")
    with sqlite3.connect(tmp_path / "view.db3") as database:
        database.execute("CREATE TABLE topics(id, name, type, serialization_format)")
        database.execute("CREATE VIEW messages AS SELECT 1 AS topic_id, zeroblob(1000000000) AS data, 0 AS timestamp")
    database.close()
    with pytest.raises(TableError, match="no tables 'topics' and 'messages'"):
        read(robot, tmp_path / "view.db3")


def test_a_chunk_that_unpacks_to_too_much_is_refused_before_memory_is_taken(robot, tmp_path):
    from backports import zstd

    packed = zstd.compress(bytes(100_000_000))
    body = struct.pack("<QQQI", 0, 0, 100_000_000, 0) + struct.pack("<I", 4) + b"zstd"
    body += struct.pack("<Q", len(packed)) + packed
    record = b"\x06" + struct.pack("<Q", len(body)) + body
    (tmp_path / "bomb.mcap").write_bytes(b"\x89MCAP0\r\n" + record)
    with pytest.raises(TableError, match="claim to hold 100000000"):
        read(robot, tmp_path / "bomb.mcap")


@pytest.mark.parametrize(("name", "packed", "module"), [("log.bag", "lz4", "lz4.frame"), ("mcap", "file", "backports")])
def test_a_missing_package_is_named(robot, motion, tmp_path, monkeypatch, name, packed, module):
    path = write_bag(tmp_path / name, states(motion), packed)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    with pytest.raises(TableError, match=r"run: pip install 'steelyard\[ros\]'"):
        read(robot, path)


names = st.lists(st.text(max_size=9).filter(lambda text: "\0" not in text), max_size=5, unique=True)
numbers = st.lists(st.floats(width=64), max_size=6)


@given(st.booleans(), names, numbers, numbers, numbers, st.integers(0, 2**31 - 1), st.integers(0, 10**9 - 1))
@settings(max_examples=200, deadline=None)
def test_joint_states_are_decoded_as_rosbags_decodes_them(ros1, joints, q, qd, effort, seconds, nanoseconds):
    maker = _MAKERS.setdefault(ros1, Messages(ros1))
    stamp = 10**9 * seconds + nanoseconds
    _, data = maker.bytes_of(Joints(stamp, joints, q, qd, effort))
    topic = Topic("/joint_states", "sensor_msgs/JointState", not ros1)
    layout = ros_module.LAYOUTS[topic.type](data, topic)
    theirs: Any = (maker.store.deserialize_ros1 if ros1 else maker.store.deserialize_cdr)(data, JOINT_STATE)
    assert list(layout.names) == theirs.name
    assert struct.unpack_from("<II", data, layout.stamp) == (theirs.header.stamp.sec, theirs.header.stamp.nanosec)
    for quantity, values in (("q", theirs.position), ("qd", theirs.velocity), ("effort", theirs.effort)):
        assert (quantity in layout.numbers) == (len(values) == len(joints) > 0)
        if quantity in layout.numbers:
            found = np.frombuffer(data, np.float64, len(values), layout.numbers[quantity])
            np.testing.assert_array_equal(found, values)


_MAKERS: dict[bool, Messages] = {}


def test_an_arm_is_identified_from_a_bag_as_from_an_archive(tmp_path):
    found = {}
    for seed in (1, 2):
        log = simulated_experiments.scara(seed)
        stamps = np.round(1e9 * (log.time - log.time[0])).astype(np.int64)
        log = replace(log, time=1e-9 * stamps, sources=())
        write_recording(log, tmp_path / f"{seed}.npz")
        torque = log.torque("motor_torque").values
        qd = np.gradient(log.q, axis=1) if log.qd is None else log.qd
        rows = zip(stamps + 10**9, log.q.T, qd.T, torque.T, strict=True)
        write_bag(tmp_path / f"{seed}.bag", [Joints(int(time), log.joints, *arrays) for time, *arrays in rows])
    setup = setup_from_table({"q": "q", "torque": {"kind": "motor_torque", "columns": "effort"}})
    for ending in ("npz", "bag"):
        logs = [
            read_recording("scara_2r", setup, files=tmp_path / f"{seed}.bag")
            if ending == "bag"
            else read_recording("scara_2r", tmp_path / f"{seed}.npz")
            for seed in (1, 2)
        ]
        chosen = Settings(bias_repeats=0, select=False)
        found[ending] = identify("scara_2r", logs[0], logs[1], chosen).estimate
    np.testing.assert_allclose(found["bag"].values, found["npz"].values, rtol=1e-5)
