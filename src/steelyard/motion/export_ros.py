"""Motions as ``trajectory_msgs/msg/JointTrajectory`` of ROS 2, in the YAML that its command line reads."""

from __future__ import annotations

import json
from typing import IO

import numpy as np

from .export_format import ExportedMotion, ExportFormat, from_rest_to_rest

NANOSECONDS = 1_000_000_000

HEAD = """\
# trajectory_msgs/msg/JointTrajectory: {duration:.9g} s, {count} points, SI units, from rest to rest.
# The arm must stand at the first point before this is sent: the first point is due at once.
header:
  stamp: {{sec: 0, nanosec: 0}}
  frame_id: ""
joint_names: [{joints}]
points:
"""

POINT = """\
- positions: [{}]
  velocities: [{}]
  accelerations: [{}]
  time_from_start: {{sec: {}, nanosec: {}}}
"""


def write_joint_trajectory(motion: ExportedMotion, file: IO[bytes]) -> None:
    """Write the message; its first point is due at 0 s."""
    samples = motion.samples()
    joints = ", ".join(_quoted(joint) for joint in samples.joints)
    head = HEAD.format(duration=motion.trajectory.duration, count=motion.count, joints=joints)
    file.write(head.encode("utf-8"))
    stamps = np.rint(samples.time * NANOSECONDS).astype(np.int64)
    for stamp, *states in zip(stamps.tolist(), samples.q.T, samples.qd.T, samples.qdd.T, strict=True):
        file.write(POINT.format(*map(_numbers, states), *divmod(stamp, NANOSECONDS)).encode("ascii"))


def _numbers(values: np.ndarray) -> str:
    return ", ".join(_number(value) for value in values.tolist())


def _number(value: float) -> str:
    """Return the shortest digits that read back as the same number.

    With a point before an exponent: YAML 1.1, which ROS reads, takes ``1e-05`` for a text.
    """
    digits = repr(value)
    return digits if "." in digits else digits.replace("e", ".0e")


def _quoted(name: str) -> str:
    """Return a text in double quotes, escaped as YAML wants it."""
    quoted = json.dumps(name, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in quoted)


ROS2 = ExportFormat(".yaml", 50.0, 200_000, from_rest_to_rest, write_joint_trajectory)
