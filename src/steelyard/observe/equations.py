"""Equations of a model: which columns of each are non-zero, its compiled regressor, and its measured side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import casadi as ca
import numpy as np

from ..errors import ObservationError
from ..kernel import BatchFunction, compile_batch
from ..lazy import recent
from ..model import BaseParameters, Model, base_parameters, change_columns, change_inputs
from ..recording import Recording, TorqueChannel
from ..robot import INERTIAL_NAMES, Robot
from ..robot.balancers import check_within_tables
from ..text import short_repr


@dataclass(frozen=True)
class CompiledRows:
    """The regressor of loaded or of unloaded rows, compiled.

    Attributes:
        function: From the inputs of the model to one output (c_e, N) for each equation: its structural non-zeros, in
            model order.
        columns: For each equation, the names of these non-zeros.
        places: For each equation, where they stand among ``Equations.columns`` of that equation.
    """

    function: BatchFunction
    columns: tuple[tuple[str, ...], ...]
    places: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Equations:
    """The rows and columns of a model's equations. Make one with :func:`equations_of`.

    Attributes:
        model: The model.
        base: Its base parameters; only the base columns are used.
        kinds_joints: Torque kind and joint of each equation: ``model.rows``, less those left out.
        columns: For each equation, the standard names of its structurally non-zero base columns, in model order,
            those of the payload included.
        names: All base columns, standard names, model order; then the constants.
        constants: Constants on which torques do not depend linearly and whose columns are derivatives; none by default.
        values: Values of the base columns at which these derivatives are taken, by name.
    """

    __repr__ = short_repr

    model: Model
    base: BaseParameters
    kinds_joints: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    constants: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @cached_property
    def inputs(self) -> dict[str, ca.SX]:
        """The symbols that the columns are functions of, by name: motion, what friction depends on, and derivatives."""
        own = dict(zip(self.model.input_names, self.model.inputs, strict=True))
        last = {name: own.pop(name) for name in ("temperature",) if name in own}
        return own | change_inputs(self.model, self.constants) | last

    def with_constants(self, constants: Collection[str], values: Mapping[str, float]) -> Equations:
        """Return the equations with columns of constants too: how torques change with them.

        Args:
            constants: Names of the constants; see :func:`steelyard.model.constants_of`.
            values: Values of the base columns by name; absent ones are 0.
        """
        names = (*self.base_names, *constants)
        found = replace(self, names=names, constants=tuple(constants), values=MappingProxyType(dict(values)))
        return replace(found, columns=nonzero_columns(found.regressor(loaded=True), names))

    @property
    def base_names(self) -> tuple[str, ...]:
        """The base columns alone."""
        return self.names[: len(self.names) - len(self.constants)]

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the actuated joints."""
        return tuple(body.joint.name for body in self.model.robot.actuated)

    @property
    def joint_index(self) -> np.ndarray:
        """Number of the joint each equation belongs to (E,)."""
        joints = self.joints
        return np.array([joints.index(joint) for _, joint in self.kinds_joints])

    def base_values(self, standard: Mapping[str, float]) -> dict[str, float]:
        """Return base parameters by column, ``chi_1 + K chi_2``, from standard ones by name; absent ones are 0."""
        values = np.array([standard.get(name, 0.0) for name in self.model.names])
        return dict(zip(self.base_names, (self.base.regrouping @ values).tolist(), strict=True))

    def payload_span(self, columns: Sequence[str]) -> np.ndarray:
        """Return what each of the ten parameters of a load on the last link adds to base parameters (c, 10)."""
        model = self.model
        number, index = model.robot.frame(model.payload_link).body, [self.names.index(name) for name in columns]
        span = np.zeros((len(index), len(INERTIAL_NAMES)))
        for k, symbol in enumerate(INERTIAL_NAMES):
            if f"{symbol}{number}" in model.names:
                span[:, k] = self.base.regrouping[index, model.names.index(f"{symbol}{number}")]
        return span

    def is_loaded(self, payload: str | None, label: str) -> bool:
        """Return whether rows of a recording with this payload have payload columns."""
        if self.model.payload == "loaded" and payload is None:
            raise ObservationError(
                f"recording '{label}' was made without payload, the model is one of loaded recordings alone; "
                "use payload 'paired' for recordings without and with"
            )
        return payload is not None and self.model.payload != "none"

    def regressor(self, loaded: bool) -> ca.SX:
        """Return the regressor of loaded or unloaded rows in symbols, its base columns and the constants' (E, c)."""
        model = self.model
        loaded = loaded or model.payload == "none"
        regressor = model.regressor if loaded else model.unloaded_regressor
        matrix = _base_columns(model, self.base, regressor, self.kinds_joints)
        if not self.constants:
            return matrix
        changes = change_columns(model, self.constants, self.values, self.inputs, loaded=loaded)
        rows = [model.rows.index(row) for row in self.kinds_joints]
        return ca.sparsify(ca.horzcat(matrix, changes[rows, :]))

    def net(self, y: np.ndarray, q: np.ndarray, label: str) -> np.ndarray:
        """Return measured torques (E, m) less those of balancers whose scale is known, at positions q (n, m).

        Args:
            y: The measured torques.
            q: The positions.
            label: Name of the recording, for messages.

        Raises:
            RobotError: If a position is beyond the table of a balancer.
        """
        balancers = self.model.robot.balancers
        if balancers:
            check_within_tables(balancers, self.joints, q, label)
        return y - self.known_torque(q) if self.model.known_balancers else y

    def known_torque(self, q: np.ndarray) -> np.ndarray:
        """Return the torques (E, m) of balancers whose scale is known at positions q (n, m)."""
        if not self.model.known_balancers:
            return np.zeros((len(self.kinds_joints), q.shape[1]))
        return self._known_torque(np.ascontiguousarray(q))[0]

    @cached_property
    def _known_torque(self) -> BatchFunction:
        model = self.model
        torque = model.known_torque[[model.rows.index(row) for row in self.kinds_joints]]
        return compile_batch(ca.Function("known_torque", [model.motion.q], [ca.densify(torque)], ["q"], ["torque"]))

    def compiled(self, loaded: bool) -> CompiledRows:
        """Return the compiled regressor of loaded or unloaded rows; compiled when first needed."""
        return self._loaded if loaded or self.model.payload == "none" else self._unloaded

    @cached_property
    def _loaded(self) -> CompiledRows:
        return _compiled(self, loaded=True)

    @cached_property
    def _unloaded(self) -> CompiledRows:
        return _compiled(self, loaded=False)


def equations_of(
    model: Model, base: BaseParameters | None = None, without: Collection[tuple[str, str]] = ()
) -> Equations:
    """Return the equations of a model.

    Args:
        model: The model.
        base: Its base parameters, if they are known.
        without: Equations (torque kind, joint) to leave out: their torque was not measured.
    """
    rows = tuple(row for row in model.rows if row not in without)
    return _own_equations(model, model.robot.file, rows) if base is None else _equations(model, base, rows)


@recent(8)
def _own_equations(model: Model, file: str, rows: tuple[tuple[str, str], ...]) -> Equations:
    """Return the equations with the model's own base parameters; with them, compiled rows are found again."""
    del file  # robots of other files may be equal
    return _equations(model, base_parameters(model), rows)


def _equations(model: Model, base: BaseParameters, rows: tuple[tuple[str, str], ...]) -> Equations:
    names = tuple(model.names[column] for column in base.base_columns)
    return Equations(
        model, base, rows, nonzero_columns(_base_columns(model, base, model.regressor, rows), names), names
    )


def _base_columns(
    model: Model, base: BaseParameters, regressor: ca.Function, rows: tuple[tuple[str, str], ...]
) -> ca.SX:
    matrix = regressor(*model.inputs)
    return ca.sparsify(matrix[[model.rows.index(row) for row in rows], list(base.base_columns)])


def nonzero_columns(matrix: ca.SX, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return for each row of the matrix the names of its structural non-zeros."""
    rows, columns = matrix.sparsity().get_triplet()
    nonzero: list[list[str]] = [[] for _ in range(matrix.shape[0])]
    for row, column in zip(rows, columns, strict=True):
        nonzero[row].append(names[column])
    return tuple(tuple(row) for row in nonzero)


def _compiled(equations: Equations, *, loaded: bool) -> CompiledRows:
    matrix, inputs = ca.cse(equations.regressor(loaded)), equations.inputs
    columns = nonzero_columns(matrix, equations.names)
    outputs = [
        ca.vertcat(*(matrix[row, equations.names.index(name)] for name in nonzero)) if nonzero else ca.SX(0, 1)
        for row, nonzero in enumerate(columns)
    ]
    names = [f"row{k}" for k in range(len(outputs))]
    function = ca.Function("base_rows", list(inputs.values()), outputs, list(inputs), names)
    places = tuple(
        np.array([whole.index(name) for name in nonzero], dtype=np.intp)
        for whole, nonzero in zip(equations.columns, columns, strict=True)
    )
    return CompiledRows(compile_batch(function), columns, places)


_CHANNEL_KINDS = {"motor": ("motor_torque", "motor_current"), "joint": ("joint_torque",)}


@dataclass(frozen=True, eq=False)
class MeasuredTorques:
    """How y follows from the channels: ``y = sum_c M_c values_c``. Make one with :func:`measured_torques`.

    Attributes:
        channels: Names of the channels used.
        matrices: For each of them, M (E, n).
        equations: Number of equations E.
        known: What of the recorded known torques each equation has, (E, n); None if none are recorded.
    """

    channels: tuple[str, ...]
    matrices: tuple[np.ndarray, ...]
    equations: int
    known: np.ndarray | None = None

    def of(self, block: Recording) -> np.ndarray:
        """Return y (E, m) of a block of the recording, less known torques; zero in equations without a torque."""
        parts = [m @ block.torque(name).values for name, m in zip(self.channels, self.matrices, strict=True)]
        if self.known is not None and block.known_torque is not None:
            parts.append(-self.known @ block.known_torque)
        return sum(parts[1:], parts[0]) if parts else np.zeros((self.equations, block.samples))


_SIDES = {"motor": {"motor": 1.0}, "joint": {"joint": 1.0}, "difference": {"motor": 1.0, "joint": -1.0}}
"""Sides of the gears that rows of each kind are measured on, with signs."""


def is_recorded(recording: Recording, kind: str) -> bool:
    """Return whether a recording has the channels that rows of kind ``motor``, ``joint`` or ``difference`` need."""
    there = {channel.kind for channel in recording.torques}
    return all(there.intersection(_CHANNEL_KINDS[side]) for side in _SIDES[kind])


def measured_torques(
    equations: Equations, recording: Recording, label: str, *, partial: bool = False
) -> MeasuredTorques:
    """Return how the measured side of all equations follows from the channels of a recording.

    A motor current becomes a torque by its gain (the channel's, else the robot's ``drive_gain``) and comes to the
    joint side through the coupling of the motors, ``C^T (gain * current)``; motor torques are there already. Known
    torques of the log act on the links: they are in the torques of motors and joints, not in their difference.

    Args:
        equations: The equations.
        recording: The recording, or its template.
        label: Its label, for messages.
        partial: Whether channels may be missing: y is then zero in the equations that need them.

    Raises:
        ObservationError: If a channel or a gain is missing.
    """
    maps: dict[str, np.ndarray] = {}
    size = len(equations.joints)
    for row, ((kind, _), joint) in enumerate(zip(equations.kinds_joints, equations.joint_index, strict=True)):
        if partial and not is_recorded(recording, kind):
            continue
        for side, sign in _SIDES[kind].items():
            channel = channel_of(recording, side, label)
            to_joint = maps.setdefault(channel.name, np.zeros((len(equations.kinds_joints), size)))
            to_joint[row] += sign * _to_joint_side(equations.model.robot, channel, label)[joint]
    known = None
    if recording.known_torque is not None:
        on_links = [float(len(_SIDES[kind]) == 1) for kind, _ in equations.kinds_joints]
        known = np.eye(size)[equations.joint_index] * np.array(on_links)[:, None]
    return MeasuredTorques(tuple(maps), tuple(maps.values()), len(equations.kinds_joints), known)


def channel_of(recording: Recording, side: str, label: str) -> TorqueChannel:
    """Return the channel that rows of kind ``motor`` or ``joint`` are measured by."""
    wanted = _CHANNEL_KINDS[side]
    for kind in wanted:
        for channel in recording.torques:
            if channel.kind == kind:
                return channel
    there = ", ".join(channel.kind for channel in recording.torques) or "none"
    raise ObservationError(
        f"recording '{label}' has no {' or '.join(wanted)} channel, which rows of kind '{side}' need; "
        f"channels there: {there}; declare the channel, or choose another measured torque"
    )


def _to_joint_side(robot: Robot, channel: TorqueChannel, label: str) -> np.ndarray:
    if channel.kind != "motor_current":
        return np.eye(len(robot.actuated)) if channel.gain is None else np.diag(channel.gain)
    return robot.motor_coupling().T * _gains(robot, channel, label)


def _gains(robot: Robot, channel: TorqueChannel, label: str) -> np.ndarray:
    if channel.gain is not None:
        gains = channel.gain
    else:
        gains = np.array([robot.values.get(f"drive_gain{body.number}", np.nan) for body in robot.actuated])
    for body, gain in zip(robot.actuated, gains, strict=True):
        if not np.isfinite(gain):
            raise ObservationError(
                f"recording '{label}': no gain [N m/A] is known for the motor current of joint '{body.joint.name}'; "
                f"give the channel a gain, or the robot a drive_gain{body.number}"
            )
    return gains
