"""Motions as programs for the controllers of Universal Robots."""

from __future__ import annotations

from dataclasses import replace
from typing import IO

import numpy as np

from ..errors import MotionError, one_line
from .export_format import ExportedMotion, ExportFormat, from_rest_to_rest

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
"""From base to tool, as URScript wants them; ROS often tells them sorted by name."""

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
