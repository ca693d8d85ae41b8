"""Bags of a million JointState messages: messages a second against rosbags, and memory that does not grow.

    python -m benchmarks bags

Makes bags of ROS 1 and ROS 2 in a temporary folder (600 MB each); STEELYARD_MESSAGES in the environment sets another
number. The peer reads a part of each bag: the same arrays, one message at a time.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import most_resident_megabytes, ratio, round_robin
from steelyard.recording import read_recording, stream_recording
from steelyard.robot import load_robot

ROBOT = "franka_panda"
JOINT_STATE = "sensor_msgs/msg/JointState"
RATE = 1000
PART = 20_000
KINDS = {"ROS 1 bag": "ros1.bag", "SQLite": "ros2_db3", "MCAP": "ros2_mcap"}


def run() -> None:
    """Print reading speed and memory of whole bags and of parts of them, and the speed of rosbags."""
    messages = int(os.environ.get("STEELYARD_MESSAGES", "1000000"))
    robot = load_robot(ROBOT)
    for kind, name in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            part = write_bag(Path(folder) / name, PART)
            contestants = {"rosbags": lambda part=part: _read_by_rosbags(part),
                           "steelyard": lambda part=part: read_recording(robot, part)}  # fmt: skip
            times = round_robin(contestants, clock=time.process_time)
            print(f"{kind}, {PART} messages of {len(robot.joint_names)} joints: CPU time of rosbags is "
                  f"{ratio(times['rosbags'], times['steelyard'])} that of read_recording")  # fmt: skip
        for count in (messages // 10, messages):
            with tempfile.TemporaryDirectory() as folder:
                whole = write_bag(Path(folder) / name, count)
                child = [sys.executable, "-m", "benchmarks.bags", str(whole)]
                found = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True).stdout)
            rate = found["messages"] / found["seconds"]
            print(f"  {found['messages']:8d} messages streamed: {found['seconds']:.1f} s of CPU, {rate:.3g} a second, "
                  f"{found['megabytes']:.0f} MB above what imports take")  # fmt: skip


def write_bag(path: Path, count: int) -> Path:
    """Write a bag of one topic: one message serialised by rosbags, of which stamps and positions change."""
    from rosbags.rosbag1 import Writer as Rosbag1Writer
    from rosbags.rosbag2 import StoragePlugin
    from rosbags.rosbag2 import Writer as Rosbag2Writer
    from rosbags.typesys import Stores, get_typestore

    ros1 = path.suffix == ".bag"
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    data, place = _message(store, ros1)
    writer: Any
    if ros1:
        writer = Rosbag1Writer(path)
    else:
        plugin = StoragePlugin.SQLITE3 if path.name.endswith("db3") else StoragePlugin.MCAP
        writer = Rosbag2Writer(path, version=9, storage_plugin=plugin)
    with writer:
        topic = writer.add_connection("/joint_states", JOINT_STATE, typestore=store)
        for number in range(count):
            stamp = 1_700_000_000 * 10**9 + number * (10**9 // RATE)
            struct.pack_into("<II", data, 4, *divmod(stamp, 10**9))
            struct.pack_into("<d", data, place, 0.5 * np.sin(number / RATE))
            writer.write(topic, stamp, bytes(data))
    return path


def _message(store: Any, ros1: bool) -> tuple[bytearray, int]:
    """Return a serialised message, and where its first position is."""
    types, mark = store.types, 0.123456789
    stamp = types["builtin_interfaces/msg/Time"](sec=0, nanosec=0)
    header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="base", **({"seq": 7} if ros1 else {}))
    names = list(load_robot(ROBOT).joint_names)
    middle = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
    middle[0] = mark
    message = types[JOINT_STATE](header, names, middle, np.zeros(7), np.ones(7))
    data = bytearray((store.serialize_ros1 if ros1 else store.serialize_cdr)(message, JOINT_STATE))
    return data, data.index(struct.pack("<d", mark))


def _read_by_rosbags(path: Path) -> np.ndarray:
    from rosbags.highlevel import AnyReader

    rows = []
    with AnyReader([path]) as reader:
        for connection, _, data in reader.messages():
            message: Any = reader.deserialize(data, connection.msgtype)
            rows.append(np.concatenate([message.position, message.velocity, message.effort]))
    return np.array(rows)


def stream_one(path: Path) -> None:
    """Stream a bag; print messages, seconds of CPU and the most resident memory beyond what imports take."""
    robot = load_robot(ROBOT)
    before, start = most_resident_megabytes(), time.process_time()
    messages = sum(block.samples for block in stream_recording(robot, path, block_rows=50_000))
    found = {
        "messages": messages,
        "seconds": time.process_time() - start,
        "megabytes": most_resident_megabytes() - before,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    stream_one(Path(sys.argv[1]))
