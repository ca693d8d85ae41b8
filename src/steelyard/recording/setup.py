"""How a log is to be read: files, columns, units, sides. What ``[recording]`` in a ``steelyard.toml`` says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from ..configuration import PerJoint
from ..tables import TextOptions
from .record import TorqueKind

Side = Literal["motor", "joint"]
Columns = str | int | tuple[str | int, ...]
Role = Literal["q", "qd", "reference", "torque", "temperature", "pose"]


@dataclass(frozen=True)
class ChannelSetup:
    """One channel: its columns and what their numbers mean.

    A number x in column j becomes ``sign_j scale_j x``; with ``side = "motor"`` positions then become ``R^-1 x``
    and torques ``R^T x``, ``R = diag(gear ratios) C``, C the robot's ``motor_coupling()``; the offset is added last.

    Attributes:
        role: What it is: ``q``, ``qd``, ``reference``, ``torque``, ``temperature`` or ``pose``.
        columns: Name, pattern, index range (from 1, last included), or several of these; None for columns that say
            what they are (``q[joint_1]``).
        unit: Unit of all joints or one for each; None for SI or what the header says.
        side: ``motor`` if before the gears; torques, positions and velocities only.
        kind: Torque kind, for ``torque``.
        name: Name of a torque channel; its kind by default.
        joints: Joint names in the order of the columns, where this channel differs from the recording's.
        sign: +1 or -1.
        offset: Added to positions, joint side [rad or m].
        gain: Torque per current [N m/A], on the side declared.
        rating: What 100 percent is [A, N m or N].
        counts_per_turn: Encoder counts a turn.
        unwrap: Whether jumps by a turn (as the encoder wraps) are undone.
    """

    role: Role
    columns: Columns | None = None
    unit: str | tuple[str, ...] | None = None
    side: Side = "joint"
    kind: TorqueKind | None = None
    name: str = ""
    joints: tuple[str, ...] | None = None
    sign: PerJoint = 1.0
    offset: PerJoint = 0.0
    gain: PerJoint | None = None
    rating: PerJoint | None = None
    counts_per_turn: PerJoint | None = None
    unwrap: bool = False

    @property
    def label(self) -> str:
        """What messages call the channel."""
        return self.name or self.kind or self.role


@dataclass(frozen=True)
class PartSetup:
    """A file, or one of several files side by side, and the channels in it.

    Attributes:
        path: Its path; empty if named when it is read.
        time: Column of the stamps, None if there is none or if it says so itself (``time``).
        time_unit: Unit of the stamps.
        channels: The channels in it; empty for columns that say what they are.
        text: Layout, for text files.
    """

    path: str = ""
    time: str | int | None = None
    time_unit: str | None = None
    channels: tuple[ChannelSetup, ...] = ()
    text: TextOptions = field(default_factory=TextOptions)


@dataclass(frozen=True)
class RecordingSetup:
    """How recordings are to be read. Make one with :func:`read_setup`.

    Attributes:
        files: Files that are a recording each; none if ``parts`` name the files.
        parts: One part, or several files side by side that make one recording.
        joints: Joint names in the order of the columns.
        rate: Samples a second [Hz], where there are no stamps.
        gear_ratio: Motor turns per joint turn; the robot's by default.
        coupling: C with ``q_motor = C q`` on the joint side (n, n); the robot's by default.
        payload: Name of the payload carried.
        notes: Notes to keep with the recording.
        rows: First and last data row to use, from 1, both included; 0 as last for the end.
        seconds: First and last second to use, counted from the first stamp.
        folder: Where relative paths start.
        overrides: Setups of single files, by path or pattern.
    """

    files: tuple[str, ...] = ()
    parts: tuple[PartSetup, ...] = (PartSetup(),)
    joints: tuple[str, ...] | None = None
    rate: float | None = None
    gear_ratio: PerJoint | None = None
    coupling: tuple[tuple[float, ...], ...] | None = None
    payload: str | None = None
    notes: tuple[str, ...] = ()
    rows: tuple[int, int] | None = None
    seconds: tuple[float, float] | None = None
    folder: Path = Path()
    overrides: tuple[tuple[str, RecordingSetup], ...] = field(default=(), repr=False)

    def for_file(self, path: str) -> RecordingSetup:
        """Return the setup of one file: its own ``[[recording.file]]`` where there is one."""
        name = Path(path).as_posix()
        for pattern, setup in self.overrides:
            wanted = Path(pattern).as_posix()
            if name == wanted or name.endswith("/" + wanted) or fnmatch(name, wanted) or fnmatch(name, "*/" + wanted):
                return setup
        return replace(self, overrides=())
