"""File formats for robot controllers: CSV and NPZ tables, ROS 2 joint trajectories and URScript programs.

A format is an :class:`ExportFormat`. ROS 2 files hold a ``trajectory_msgs/msg/JointTrajectory`` in the YAML that its
command line reads; URScript programs run on the controllers of Universal Robots.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import IO

import numpy as np

from ..configuration import number
from ..errors import MotionError, one_line
from ..robot import Robot
from .checks import checked_scalar
from .trajectory import MotionSamples, Trajectory

RATE = number(least=1.0, most=10_000.0)
"""Rates at which controllers take samples [Hz]."""

# The last step is not made shorter than this part of a step: the sample before the end is left out instead.
SHORTEST_STEP = 1e-3

# A velocity below this part of the joint's largest is rest, to rounding.
REST = 1e-6


@dataclass(frozen=True)
class ExportedMotion:
    """A motion to be exported.

    Attributes:
        trajectory: The motion.
        units: Unit of each joint's position: ``rad``, ``m``, or ``rad or m`` where the robot is unknown.
        rate: Samples a second [Hz].

    Example:
        >>> from steelyard.motion import ExportedMotion
        >>> ExportedMotion(steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"]), ("rad",), 100.0).rate
        100.0
    """

    trajectory: Trajectory
    units: tuple[str, ...]
    rate: float

    @property
    def count(self) -> int:
        """Number of samples, both ends included."""
        return max(1, int(np.ceil(self.trajectory.duration * self.rate - SHORTEST_STEP))) + 1

    def samples(self) -> MotionSamples:
        """Return the motion at 0, 1/rate, 2/rate ... and at its end; the last step may be shorter than the others."""
        before_the_end = np.arange(self.count - 1) / self.rate
        return self.trajectory.at(np.append(before_the_end, self.trajectory.duration))


@dataclass(frozen=True)
class ExportFormat:
    """A file format for a controller.

    Attributes:
        suffix: How its files end.
        rate: Default rate [Hz].
        largest_count: Largest number of samples that controllers take.
        accepted: Returns the motion as the controller needs it, or raises an error that says why it cannot run.
        write: Writes the motion.

    Example:
        >>> from steelyard.motion import EXPORT_FORMATS
        >>> EXPORT_FORMATS["ros2"].suffix
        '.yaml'
    """

    suffix: str
    rate: float
    largest_count: int
    accepted: Callable[[ExportedMotion], ExportedMotion]
    write: Callable[[ExportedMotion, IO[bytes]], None]


def planned_export(
    trajectory: Trajectory, form: ExportFormat, rate: float | None, robot: Robot | None
) -> ExportedMotion:
    """Return the motion as it is written in a format; rows and units are those of the robot if it is known.

    Raises:
        MotionError: If the rate or the number of samples is not allowed, or the controller cannot run the motion.
    """
    units: tuple[str, ...] = ("rad or m",) * len(trajectory.joints)
    if robot is not None:
        joints = [body.joint for body in robot.actuated]
        trajectory = trajectory.in_order([joint.name for joint in joints])
        units = tuple("m" if joint.kind == "prismatic" else "rad" for joint in joints)
    rate = checked_scalar(form.rate if rate is None else rate, "rate [Hz]", RATE)
    motion = ExportedMotion(trajectory, units, rate)
    if motion.count > form.largest_count:
        raise MotionError(
            f"rate {motion.rate:g} Hz over {motion.trajectory.duration:g} s makes {motion.count} samples; a "
            f"{form.suffix} file holds at most {form.largest_count}: take a lower rate or a shorter motion"
        )
    return form.accepted(motion)


def any_motion(motion: ExportedMotion) -> ExportedMotion:
    """Return the motion unchanged: a table can hold any motion."""
    return motion


def from_rest_to_rest(motion: ExportedMotion) -> ExportedMotion:
    """Return the motion if it begins and ends at rest; a controller cannot start another one smoothly."""
    trajectory = motion.trajectory
    velocities = trajectory.at([0.0, trajectory.duration]).qd
    moving = np.argwhere(np.abs(velocities) > REST * trajectory.extrema().velocity.value[:, None])
    if len(moving):
        joint, end = moving[0]
        raise MotionError(
            f"the motion does not {('begin', 'end')[end]} at rest: joint '{trajectory.joints[joint]}' moves with "
            f"{velocities[joint, end]:.3g} there; add a way in and a way out (with_approach)"
        )
    return motion


LARGEST_COUNT = 2_000_000
"""Over half an hour at 1 kHz; more does not fit a controller's memory either."""


def write_csv(motion: ExportedMotion, file: IO[bytes]) -> None:
    """Write columns ``time``, ``q_<joint>`` ..., ``qd_<joint>`` ..., ``qdd_<joint>`` ...; numbers read back exactly."""
    import polars as pl  # imported when used: most commands write no table

    samples = motion.samples()
    columns = {"time": samples.time}
    for name in ("q", "qd", "qdd"):
        rows = zip(samples.joints, getattr(samples, name), strict=True)
        columns.update({f"{name}_{joint}": values for joint, values in rows})
    pl.DataFrame(columns).write_csv(file)


def write_npz(motion: ExportedMotion, file: IO[bytes]) -> None:
    """Write arrays ``time`` (N,), ``q``, ``qd``, ``qdd`` (n, N), ``joints`` (n,) and ``units`` of positions (n,)."""
    samples = motion.samples()
    joints, units = np.array(samples.joints), np.array(motion.units)
    np.savez(file, time=samples.time, q=samples.q, qd=samples.qd, qdd=samples.qdd, joints=joints, units=units)


CSV = ExportFormat(".csv", 1000.0, LARGEST_COUNT, any_motion, write_csv)
NPZ = ExportFormat(".npz", 1000.0, LARGEST_COUNT, any_motion, write_npz)

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

JOINT_COUNT = 6

CONTROL_RATE = 500.0
"""Rate of the controller [Hz]; it rounds the time of a servoj to whole steps of its own."""

UR_JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)
"""From base to tool, as URScript wants them; ROS often lists them sorted by name."""

# Digits beyond 1e-10 rad move no arm; without an exponent, which not every controller reads.
DIGITS = 10

PROGRAM = """\
# A motion of {duration:.9g} s for an arm of six joints that turn, positions in radians, from rest to rest.
# Joints from base to tool: {joints}
#
# To run it: set payload and mounting, free the space around the arm, keep a hand on the emergency stop.
# Send this file to port 30002 of the robot (remote control), or load it in a Script node (File) and call
# steelyard_motion() in a Script node after it. With the speed slider below 100 % the motion is slower than planned.
# The way to the first posture (movej) is not part of the motion and has not been checked: see that it is free.
def steelyard_motion():
  # Time of one step of the motion [s]; a controller of the CB series needs a multiple of 0.008.
  step = {step:g}
  # How far servoj looks ahead to smooth the motion [s], 0.03 to 0.2, and how hard it follows, 100 to 2000.
  lookahead = 0.1
  gain = 300
  # The way to the first posture: acceleration [rad/s^2] and velocity [rad/s].
  first_acceleration = 0.2
  first_velocity = 0.1
  # How long to stand still before and after [s], and the deceleration to stop with [rad/s^2].
  settle = 0.5
  deceleration = 1.0

  movej([{first}], first_acceleration, first_velocity)
  sleep(settle)
"""

STEP = "  servoj([{}], 0, 0, step, lookahead, gain)\n"

END = """\
  servoj([{last}], 0, 0, settle, lookahead, gain)
  stopj(deceleration)
end
"""


def six_turning_joints(motion: ExportedMotion) -> ExportedMotion:
    """Return the motion with its rows from base to tool if such an arm can run it."""
    joints = motion.trajectory.joints
    if len(joints) != JOINT_COUNT or "m" in motion.units:
        sliding = sum(unit == "m" for unit in motion.units)
        raise MotionError(
            f"URScript moves arms of {JOINT_COUNT} joints that turn; the motion has {len(joints)} joints, "
            f"{sliding} of them sliding: choose another format"
        )
    steps = CONTROL_RATE / motion.rate
    if steps < 1 or abs(steps - round(steps)) > 1e-9 * steps:
        raise MotionError(
            f"rate [Hz] is {motion.rate:g}; allowed for URScript is {CONTROL_RATE:g} divided by a whole number: "
            "500, 250, 125, 100 ..."
        )
    known = {name: joint for joint in joints for name in UR_JOINTS if joint.endswith(name)}
    if len(known) == JOINT_COUNT:
        motion = replace(motion, trajectory=motion.trajectory.in_order([known[name] for name in UR_JOINTS]))
    return from_rest_to_rest(motion)


def write_program(motion: ExportedMotion, file: IO[bytes]) -> None:
    """Write a program that goes slowly to the first posture and then follows the motion, one servoj for each step."""
    # Adding zero takes the sign from a zero that rounding leaves.
    postures = [_posture(row) for row in (np.round(motion.samples().q.T, DIGITS) + 0.0).tolist()]
    head = PROGRAM.format(
        duration=motion.trajectory.duration,
        joints=one_line(", ".join(motion.trajectory.joints)),
        step=round(CONTROL_RATE / motion.rate) / CONTROL_RATE,
        first=postures[0],
    )
    file.write(head.encode("ascii", "replace"))
    file.writelines(STEP.format(posture).encode("ascii") for posture in postures[1:])
    file.write(END.format(last=postures[-1]).encode("ascii"))


def _posture(row: list[float]) -> str:
    return ", ".join(f"{value:.{DIGITS}f}" for value in row)


URSCRIPT = ExportFormat(".script", 125.0, 200_000, six_turning_joints, write_program)
