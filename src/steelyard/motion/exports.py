"""Export of motions for robot controllers: they are sampled, checked, then written aside and renamed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from ..configuration import checked, choice
from ..errors import MotionError
from ..files import opened_aside
from ..robot import Robot
from .approach import at_speed
from .checks import FRACTION, checked_scalar
from .export_formats import CSV, NPZ, ROS2, URSCRIPT, ExportedMotion, ExportFormat, planned_export
from .trajectory import Trajectory

EXPORT_FORMATS: dict[str, ExportFormat] = {"csv": CSV, "npz": NPZ, "ros2": ROS2, "urscript": URSCRIPT}
"""Every format by its name; a new one is one more entry here."""

Item = TypeVar("Item")

FIRST_SPEEDS = (0.1, 0.5, 1.0)
"""Fractions of the speed at which a new motion is tried, one after the other."""


def export_trajectory(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    format: str | None = None,
    rate: float | None = None,
    *,
    robot: Robot | None = None,
) -> Path:
    """Write a motion for a controller and return the path.

    Args:
        trajectory: The motion. ``ros2`` and ``urscript`` want it from rest to rest.
        path: The file; it is written aside and renamed.
        format: ``csv``, ``npz``, ``ros2`` or ``urscript``; by default what the path's ending says (``.csv``, ``.npz``,
            ``.yaml``, ``.script``).
        rate: Samples a second [Hz]; by default 1000 for tables, 50 for ROS 2, 125 for URScript. The end of the motion
            is always the last sample.
        robot: The arm, if known: rows then come in its order, and units and kinds of its joints are known.

    Raises:
        MotionError: If format, rate or the number of samples is not allowed, or the controller cannot run the motion.
        FileError: If the file cannot be written.

    Example:
        >>> from steelyard.motion import export_trajectory
        >>> export_trajectory(steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"]), "motion.csv", rate=100).name
        'motion.csv'
    """
    target = Path(path)
    form = _format_of(target) if format is None else _format_named(format)
    _write(target, form, planned_export(trajectory, form, rate, robot))
    return target


def export_set(
    trajectory: Trajectory,
    folder: str | os.PathLike[str],
    formats: Iterable[str],
    rate: float | None = None,
    speeds: Iterable[float] = FIRST_SPEEDS,
    check: Callable[[Trajectory], None] | None = None,
    *,
    robot: Robot | None = None,
) -> list[Path]:
    """Write a motion at several speeds and in several formats: ``motion_010.csv``, ``motion_050.csv`` ...

    Everything is checked first; if one speed or one format is refused, no file is written.

    Args:
        trajectory: The motion at full speed.
        folder: Where the files go; it is made if needed.
        formats: Names of formats, see :func:`export_trajectory`.
        rate: Samples a second of every file [Hz], whatever its speed; each format's own by default.
        speeds: Fractions of the speed, in whole percent, for :func:`~steelyard.motion.at_speed`.
        check: Called with the motion at each speed; it raises if a limit is broken.
        robot: As in :func:`export_trajectory`.

    Returns:
        The files, speed by speed in the order given.

    Raises:
        MotionError: As :func:`export_trajectory`, or if a speed is not a whole number of percent.
        FileError: If a file cannot be written.

    Example:
        >>> from steelyard.motion import export_set
        >>> paths = export_set(steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"]), "first_run", ["csv"])
        >>> [path.name for path in paths]
        ['motion_010.csv', 'motion_050.csv', 'motion_100.csv']
    """
    forms = [_format_named(name) for name in _distinct(formats, "formats")]
    paces = {_percent(speed): speed for speed in _distinct(speeds, "speeds")}
    slowed = {percent: at_speed(trajectory, speed) for percent, speed in paces.items()}
    for motion in slowed.values():
        if check is not None:
            check(motion)
    planned = [
        (Path(folder) / f"motion_{percent:03d}{form.suffix}", form, planned_export(motion, form, rate, robot))
        for percent, motion in slowed.items()
        for form in forms
    ]
    for one in planned:
        _write(*one)
    return [path for path, _, _ in planned]


def _write(path: Path, form: ExportFormat, motion: ExportedMotion) -> None:
    with opened_aside(path) as file:
        form.write(motion, file)


def _format_named(name: str) -> ExportFormat:
    return EXPORT_FORMATS[checked(name, choice(*EXPORT_FORMATS), "format", MotionError)]


def _format_of(path: Path) -> ExportFormat:
    endings = {form.suffix: form for form in EXPORT_FORMATS.values()}
    return endings[checked(path.suffix.lower(), choice(*endings), f"{path}: its ending", MotionError)]


def _distinct(items: Iterable[Item], what: str) -> list[Item]:
    """Return the items if there are any and each occurs once."""
    if isinstance(items, str):
        raise MotionError(f"{what} is the text {items!r}; allowed is a list")
    found = list(items)
    if not found:
        raise MotionError(f"{what} is empty; name at least one")
    for item in found:
        if found.count(item) > 1:
            raise MotionError(f"{what} holds {item!r} more than once; name it once")
    return found


def _percent(speed: float) -> int:
    """Return the speed in percent, as it stands in file names."""
    percent = 100 * checked_scalar(speed, "speed", FRACTION)
    if round(percent) < 1 or abs(percent - round(percent)) > 1e-9:
        raise MotionError(f"speed is {speed:g}; allowed are whole percents (file names hold them), 0.01, 0.02 ... 1")
    return round(percent)
