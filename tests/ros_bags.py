"""Small ROS bags, written by the package ``rosbags``: someone else's code, as an oracle for our readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

JOINT_STATE = "sensor_msgs/msg/JointState"
CONTROLLER_STATE = "control_msgs/msg/JointTrajectoryControllerState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
_POINT = "trajectory_msgs/JointTrajectoryPoint"
CONTROLLER_VERSIONS = {
    "noetic": ("desired", "actual", "error"),
    "humble": ("reference", "feedback", "error", "output", "desired", "actual"),
    "jazzy": ("reference", "feedback", "error", "output"),
}


class Joints(NamedTuple):
    """A JointState: logged at a time [ns], by default that of its stamp."""

    stamp: int
    names: Sequence[str]
    position: Any = ()
    velocity: Any = ()
    effort: Any = ()
    topic: str = "/joint_states"
    logged: int | None = None


class Controller(NamedTuple):
    """A state of a trajectory controller: points by name, each with its arrays by name."""

    stamp: int
    names: Sequence[str]
    points: Mapping[str, Mapping[str, Sequence[float]]]
    topic: str = "/arm_controller/state"
    logged: int | None = None


class Wrench(NamedTuple):
    """A WrenchStamped: forces and torques."""

    stamp: int
    values: Sequence[float] | np.ndarray
    topic: str = "/wrench"
    logged: int | None = None


Logged = Joints | Controller | Wrench


class Messages:
    """Makes messages of one version of ROS, and serialises them."""

    def __init__(self, ros1: bool, version: str = "noetic") -> None:
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore

        self.ros1, self.version = ros1, version
        self.store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
        lines = ["std_msgs/Header header", "string[] joint_names"]
        lines += [f"{_POINT} {name}" for name in CONTROLLER_VERSIONS[version]]
        if version != "noetic":
            lines += [
                "string[] multi_dof_joint_names",
                "trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_reference",
            ]
        self.store.register(get_types_from_msg("\n".join(lines), CONTROLLER_STATE))

    def bytes_of(self, logged: Logged) -> tuple[str, bytes]:
        """Return the type of a message, and the message serialised."""
        kind, message = self._message(logged)
        serialise = self.store.serialize_ros1 if self.ros1 else self.store.serialize_cdr
        return kind, bytes(serialise(message, kind))

    def _message(self, logged: Logged) -> tuple[str, Any]:
        types = self.store.types
        stamp = types["builtin_interfaces/msg/Time"](sec=logged.stamp // 10**9, nanosec=logged.stamp % 10**9)
        number = {"seq": 7} if self.ros1 else {}
        header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="base", **number)
        if isinstance(logged, Joints):
            arrays = [np.array(values, dtype=float, order="C") for values in logged[2:5]]
            return JOINT_STATE, types[JOINT_STATE](header, list(logged.names), *arrays)
        if isinstance(logged, Wrench):
            vectors = [types["geometry_msgs/msg/Vector3"](*logged.values[k : k + 3]) for k in (0, 3)]
            return WRENCH, types[WRENCH](header, types["geometry_msgs/msg/Wrench"](*vectors))
        points = [self._point(logged.points.get(name, {})) for name in CONTROLLER_VERSIONS[self.version]]
        if self.version != "noetic":
            nothing = types["builtin_interfaces/msg/Duration"](sec=0, nanosec=0)
            points += [[], types["trajectory_msgs/msg/MultiDOFJointTrajectoryPoint"]([], [], [], nothing)]
        return CONTROLLER_STATE, types[CONTROLLER_STATE](header, list(logged.names), *points)

    def _point(self, arrays: Mapping[str, Sequence[float]]) -> Any:
        duration = self.store.types["builtin_interfaces/msg/Duration"](sec=1, nanosec=2)
        values = [np.array(arrays.get(name, ())) for name in ("positions", "velocities", "accelerations", "effort")]
        return self.store.types["trajectory_msgs/msg/JointTrajectoryPoint"](*values, duration)


def write_bag(path: Path, messages: Iterable[Logged], packed: str = "", version: str = "noetic") -> Path:
    """Write a bag, and return its path.

    Args:
        path: Ending ``.bag``: a file of ROS 1; else a folder, of databases if its name ends in ``db3``, else of MCAP.
        messages: What is in it.
        packed: ``bz2`` or ``lz4`` for ROS 1; ``storage``, ``file`` or ``message`` for ROS 2.
        version: Version of the messages of controllers.
    """
    from rosbags.rosbag1 import Writer as Rosbag1Writer
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
    from rosbags.rosbag2 import Writer as Rosbag2Writer

    ros1 = path.suffix == ".bag"
    maker = Messages(ros1, version)
    writer: Any
    if ros1:
        writer = Rosbag1Writer(path)
        if packed:
            writer.set_compression(Rosbag1Writer.CompressionFormat[packed.upper()])
    else:
        plugin = StoragePlugin.SQLITE3 if path.name.endswith("db3") else StoragePlugin.MCAP
        writer = Rosbag2Writer(path, version=9, storage_plugin=plugin)
        if packed:
            writer.set_compression(CompressionMode[packed.upper()], CompressionFormat.ZSTD)
    connections: dict[tuple[str, str], Any] = {}
    with writer:
        for one in messages:
            kind, data = maker.bytes_of(one)
            if (one.topic, kind) not in connections:
                connections[one.topic, kind] = writer.add_connection(one.topic, kind, typestore=maker.store)
            writer.write(connections[one.topic, kind], one.stamp if one.logged is None else one.logged, data)
    return path


def stored_file(folder: Path) -> Path:
    """Return the only file of messages in a folder."""
    return next(file for file in folder.iterdir() if file.name != "metadata.yaml")
