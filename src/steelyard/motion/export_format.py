"""What is exported and what a format is: a motion at a rate, and the function that writes it for a controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

import numpy as np

from ..errors import MotionError
from .checks import positive_number
from .trajectory import MotionSamples, Trajectory

SLOWEST_RATE, FASTEST_RATE = 1.0, 10_000.0
"""Rates at which controllers are fed [Hz]."""

# The last step is not made shorter than this part of a step: the sample before the end is left out instead.
SHORTEST_STEP = 1e-3

# A velocity below this part of the joint's largest is rest, to rounding.
REST = 1e-6


@dataclass(frozen=True)
class ExportedMotion:
    """A motion on its way into a file.

    Attributes:
        trajectory: The motion.
        units: Unit of each joint's position: ``rad``, ``m``, or ``rad or m`` where the robot is not told.
        rate: Samples a second [Hz].
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
    """A way to hand a motion to a controller.

    Attributes:
        suffix: How its files end.
        rate: Rate if none is asked for [Hz].
        largest_count: More samples than this no controller takes.
        accepted: Returns the motion as the controller wants it, or says why it cannot run there.
        write: Writes the motion.
    """

    suffix: str
    rate: float
    largest_count: int
    accepted: Callable[[ExportedMotion], ExportedMotion]
    write: Callable[[ExportedMotion, IO[bytes]], None]


def checked_motion(motion: ExportedMotion, form: ExportFormat) -> ExportedMotion:
    """Return the motion if it can be written in this format."""
    if not SLOWEST_RATE <= positive_number(motion.rate, "rate [Hz]") <= FASTEST_RATE:
        raise MotionError(
            f"rate [Hz] is {motion.rate:g}; allowed is {SLOWEST_RATE:g} to {FASTEST_RATE:g}, check its unit (Hz)"
        )
    if motion.count > form.largest_count:
        raise MotionError(
            f"rate {motion.rate:g} Hz over {motion.trajectory.duration:g} s makes {motion.count} samples; a "
            f"{form.suffix} file holds at most {form.largest_count}: take a lower rate or a shorter motion"
        )
    return form.accepted(motion)


def any_motion(motion: ExportedMotion) -> ExportedMotion:
    """Return the motion as it is: a table can hold every one."""
    return motion


def from_rest_to_rest(motion: ExportedMotion) -> ExportedMotion:
    """Return the motion if it begins and ends at rest: a controller would jump into another."""
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
