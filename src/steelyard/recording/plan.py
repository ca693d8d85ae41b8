"""The reading plan of a recording: which column becomes which row of which channel, and with what factor.

Columns named ``time``, ``q[joint_1]``, ``motor_torque[joint_1]`` and so on need no declaration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ..errors import RecordingError
from ..robot import Robot
from ..tables import Table
from .columns import columns_by_joint, columns_of_some_joints, group_columns, names_text, selected_columns
from .gains import GAIN_KINDS
from .record import POSE_ROWS, TORQUE_KINDS, WRENCH_ROWS
from .setup import ChannelSetup, PartSetup, RecordingSetup, Role
from .units import channel_scale, gear_matrix, joint_values, si_scale, unit_in_name

TIME_NAMES = ("time", "t", "timestamp", "stamp")


def described_channels(table: Table) -> list[ChannelSetup]:
    """Return the channels a table names itself, by group or by a single column."""
    channels = [ChannelSetup(role) for role in get_args(Role) if role != "torque" and _has(table, role)]
    for name, kind in _torque_names(table).items():
        if _has(table, name):
            given = table.described.get("gain", {}).get(name) if kind in GAIN_KINDS else None
            gain = None if given is None else tuple(float(value) for value in given)
            errors = _matrix_of(table.described.get("gain_covariance", {}).get(name))
            channels.append(ChannelSetup("torque", kind=kind, name=name, gain=gain, gain_covariance=errors))
    return channels


def _matrix_of(given: Any) -> tuple[tuple[float, ...], ...] | None:
    return None if given is None else tuple(tuple(float(value) for value in row) for row in given)


def time_column(table: Table) -> int | None:
    """Return the column of the stamps if its name says so."""
    if not table.named:
        return None
    bare = [unit_in_name(name)[0].strip().lower() for name in table.names]
    return next((bare.index(word) for word in TIME_NAMES if word in bare), None)


def _has(table: Table, name: str) -> bool:
    bare = [unit_in_name(column)[0] for column in table.names]
    return table.named and (name in bare or bool(group_columns(name, table.names)))


def _torque_names(table: Table) -> dict[str, Any]:
    """Return kinds by channel name: every kind by its own, and those a file of ours describes."""
    names: dict[str, Any] = {kind: kind for kind in TORQUE_KINDS}
    described = table.described.get("torques", {})
    return names | {
        name: kind for name, kind in described.items() if kind in TORQUE_KINDS and name not in get_args(Role)
    }


LARGEST_FACTOR = 1e30
"""Between a number of a log and its value in SI units; squares of their products stay finite."""


@dataclass(frozen=True)
class PlannedChannel:
    """A channel with its columns and factors: ``to_joint (scale * columns) + shift``.

    Attributes:
        setup: What was declared.
        part: Which file it is in.
        columns: Which of the columns read from that file, in row order; None for a row of zeros.
        scale: Signs and units (rows,).
        to_joint: From motor to joint side: a factor each (rows,), a matrix (rows, rows) if coupled, None if not needed.
        shift: Added last (rows,).
        gain: Joint-side torque per current (n,), for currents.
        gain_covariance: Covariance of their relative errors (n, n), if something is declared.
        turn: What a wrap of the encoder is on the joint side (rows,), for positions; 0 for sliding joints.
    """

    setup: ChannelSetup
    part: int
    columns: tuple[int | None, ...]
    scale: np.ndarray
    to_joint: np.ndarray | None
    shift: np.ndarray
    gain: np.ndarray | None
    gain_covariance: np.ndarray | None
    turn: np.ndarray

    @property
    def required(self) -> bool:
        """Whether a sample without it is of no use."""
        return self.setup.role in ("q", "qd", "reference", "torque", "known_torque")


@dataclass(frozen=True)
class ReadingPlan:
    """All that is needed to read: tables with the columns wanted of each, channels, and where time comes from.

    Attributes:
        robot: The arm.
        setup: What was declared.
        tables: The files side by side.
        wanted: Columns to read of each.
        channels: Channels, positions first.
        time: File, place among its wanted columns, and seconds per unit; None if time comes from the rate.
        notes: What was assumed.
    """

    robot: Robot
    setup: RecordingSetup
    tables: tuple[Table, ...]
    wanted: tuple[tuple[int, ...], ...]
    channels: tuple[PlannedChannel, ...]
    time: tuple[int, int, float] | None
    notes: tuple[str, ...]

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, in the order of the recording's rows."""
        return self.robot.joint_names


def make_plan(robot: Robot, setup: RecordingSetup, tables: Sequence[Table]) -> ReadingPlan:
    """Return how these tables are to be read for this robot.

    Raises:
        RecordingError: If columns are missing, do not fit the robot or contradict what is declared.
    """
    builder = _Builder(robot, setup, tables)
    declared = any(part.channels for part in setup.parts)
    channels = [
        builder.channel(number, channel)
        for number, (part, table) in enumerate(zip(setup.parts, tables, strict=True))
        for channel in (part.channels if declared else described_channels(table))
    ]
    channels.sort(key=lambda channel: channel.setup.role != "q")
    roles = [channel.setup.role for channel in channels]
    # A sensor that is moved by anything has poses instead of joints.
    if roles.count("q") != 1 and not (not robot.bodies and "pose" in roles):
        raise RecordingError(
            f"{tables[0].path}: no positions are declared; say which columns they are with q = ... in [recording]; "
            f"columns: {names_text(tables[0].names)}{_left_out(tables[0])}"
        )
    time = builder.time()
    for table, columns in zip(tables, builder.wanted, strict=True):
        if not columns:
            raise RecordingError(f"{table.path}: none of its columns is declared; declare some, or leave the part out")
    wanted = tuple(tuple(columns) for columns in builder.wanted)
    return ReadingPlan(robot, setup, tuple(tables), wanted, tuple(channels), time, tuple(builder.notes))


def _left_out(table: Table) -> str:
    return f"; {table.left_out}" if table.left_out else ""


class _Builder:
    """Collects the columns wanted of each table while channels are planned."""

    def __init__(self, robot: Robot, setup: RecordingSetup, tables: Sequence[Table]) -> None:
        self.robot = robot
        self.setup = setup
        self.tables = tables
        self.wanted: list[list[int]] = [[] for _ in tables]
        self.notes: list[str] = list(setup.notes)

    def want(self, part: int, column: int) -> int:
        if column not in self.wanted[part]:
            self.wanted[part].append(column)
        return self.wanted[part].index(column)

    def channel(self, part: int, channel: ChannelSetup) -> PlannedChannel:
        table = self.tables[part]
        where = f"{table.path}: {channel.label}"
        try:
            columns = selected_columns(channel.columns or channel.label, table.names, where)
        except RecordingError as error:
            raise RecordingError(f"{error}{_left_out(table)}") from error
        columns = self._in_row_order(channel, table, columns, where)
        names = ["" if column is None else table.names[column] for column in columns] if table.named else None
        scale, shift = channel_scale(self.robot, channel, names, len(columns), where)
        to_joint, gain, turn = self._to_joint_side(channel, where)
        if channel.role in ("q", "reference"):
            shift = shift + joint_values(channel.offset, self.robot, f"{where} offset", default=0.0)
        for factors in (scale, shift, to_joint):
            if factors is not None and not (np.abs(factors) <= LARGEST_FACTOR).all():
                raise RecordingError(
                    f"{where}: units, gears and offsets make a factor of {np.abs(factors).max():.3g}; allowed is up to "
                    f"{LARGEST_FACTOR:g}, check rating, counts_per_turn, gear_ratio, coupling and offset"
                )
        if channel.role == "known_torque":
            self.notes.append(f"{Path(table.path).name}: known_torque is subtracted from the recorded torques")
        places = tuple(None if column is None else self.want(part, column) for column in columns)
        errors = self._gain_covariance(channel, where)
        return PlannedChannel(channel, part, places, scale, to_joint, shift, gain, errors, turn)

    def _gain_covariance(self, channel: ChannelSetup, where: str) -> np.ndarray | None:
        """Return the covariance of the relative errors of the gains: sigmas alone are those of a common error."""
        if channel.gain_covariance is not None:
            return np.array(channel.gain_covariance)
        if channel.gain_sigma is None:
            return None
        sigma = joint_values(channel.gain_sigma, self.robot, f"{where} gain_sigma", default=0.0)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(np.outer(sigma, sigma), nan=0.0, posinf=np.inf)

    def _in_row_order(
        self, channel: ChannelSetup, table: Table, columns: list[int], where: str
    ) -> list[int] | list[int | None]:
        if channel.kind == "wrench" or channel.role == "pose":
            allowed = (6,) if channel.kind == "wrench" else (3, 7)
            if len(columns) not in allowed:
                rows = WRENCH_ROWS if channel.kind == "wrench" else POSE_ROWS
                raise RecordingError(
                    f"{where}: {len(columns)} columns; {' or '.join(map(str, allowed))} are expected, {' '.join(rows)}"
                )
            return columns
        names = [self._without_unit(table.names[column]) for column in columns] if table.named else None
        if channel.role == "known_torque" and len(columns) < len(self.robot.joint_names):
            own = columns_of_some_joints(self.robot, names, channel.joints, len(columns), where)
            return [None if place is None else columns[place] for place in own]
        declared = channel.joints or self.setup.joints
        order, note = columns_by_joint(self.robot, names, declared, len(columns), where)
        if note:
            self.notes.append(f"{Path(table.path).name}: {channel.label}: {note}")
        return [columns[place] for place in order]

    def _without_unit(self, name: str) -> str:
        """Return the name of a column without its unit; what looks like a unit may be a joint."""
        is_joint = any(name.endswith(f"[{joint}]") for joint in self.robot.joint_names)
        return name if is_joint else unit_in_name(name)[0]

    def _to_joint_side(
        self, channel: ChannelSetup, where: str
    ) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray]:
        kinds = [body.joint.kind for body in self.robot.actuated]
        turn = np.array([2 * np.pi if kind == "revolute" else 0.0 for kind in kinds])
        gain = None if channel.gain is None else joint_values(channel.gain, self.robot, f"{where} gain")
        if channel.side == "joint":
            return None, gain, turn
        gears = gear_matrix(self.robot, self.setup.gear_ratio, self.setup.coupling)
        if channel.kind == "motor_current":
            # Currents stay currents: the gears act on the torque they make.
            own = np.diag(gears) if gain is not None else np.ones(len(kinds))
            return None, None if gain is None else gain * own, turn
        matrix = gears.T if channel.role in ("torque", "known_torque") else np.linalg.inv(gears)
        turn = turn / np.abs(np.diag(gears))
        diagonal = np.count_nonzero(matrix - np.diag(np.diag(matrix))) == 0
        return (np.diag(matrix).copy() if diagonal else matrix), gain, turn

    def time(self) -> tuple[int, int, float] | None:
        """Return where the stamps are: declared, or a column that says so; None if the rate is declared."""
        declared = [(k, part) for k, part in enumerate(self.setup.parts) if part.time is not None]
        if declared:
            number, part = declared[0]
            column = selected_columns(part.time or "", self.tables[number].names, f"{self.tables[number].path}: time")
            if len(column) != 1:
                raise RecordingError(f"{self.tables[number].path}: time means {len(column)} columns; one is expected")
            return self._stamps(number, column[0], part)
        if self.setup.rate is not None:
            self.notes.append(f"time: no stamps, samples taken as even at {self.setup.rate:g} Hz")
            return None
        for number, table in enumerate(self.tables):
            column = time_column(table)
            if column is not None:
                return self._stamps(number, column, self.setup.parts[number])
        raise RecordingError(
            f"{self.tables[0].path}: no time column and no rate; say which with time = ... or rate = ... in "
            f"[recording]; columns: {names_text(self.tables[0].names)}"
        )

    def _stamps(self, number: int, column: int, part: PartSetup) -> tuple[int, int, float]:
        table = self.tables[number]
        named = unit_in_name(table.names[column])[1] if table.named else None
        unit = part.time_unit or named or "s"
        where = f"{table.path}: time"
        scale = si_scale(unit, "time", where)
        if named and si_scale(named, "time", where) != scale:
            raise RecordingError(f"{where}: mixed units, declared in '{unit}' but its header says '{named}'; mend one")
        return number, self.want(number, column), scale
