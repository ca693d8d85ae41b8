"""A robot file beside a run: its values as base parameters of the run's model, and both models on the run's rows.

Effects that the file has and the run's model lacks (drive inertia, springs) are regrouped with parameters of the model
where they are one of their combinations. The rows of the run do not hold the others: both models are then compared at
random states too, with all effects of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from ..effects import EFFECTS
from ..errors import EstimateError
from ..estimate import Estimate
from ..judge import ComparedRun, ComparedValue
from ..judge.residuals import unit_of
from ..model import Model, Parameter, build_model, random_motion, stacked_regressor
from ..model.base import DEPENDENT
from ..observe import Equations, equations_of, geometry_hash, merged_triangle
from ..robot import Robot
from ..text import short_repr
from .inputs import arm_of
from .payload_body import COLUMNS
from .run_files import SavedRun

STATES = 1000
"""Random states at which torques are compared where the rows of the run do not hold all effects of the file."""


@dataclass(frozen=True, eq=False)
class FileReference:
    """A robot file as base parameters of a run's model.

    Attributes:
        equations: The run's model with the file's robot.
        columns: Values of the base parameters by column; those that the file says nothing of are absent.
        notes: What the file does not give, or why it cannot be compared as a whole, a sentence each.
        same_geometry: Whether it moves as the run's robot does.
        lacking: Values of the file that no parameter of the run's model stands for, by name.
        lacking_torques: Torques that these add (rows, states), with the regressor of the run's model at the same random
            states (rows, states, c); None if there are none.
    """

    __repr__ = short_repr

    equations: Equations
    columns: Mapping[str, float]
    notes: tuple[str, ...]
    same_geometry: bool
    lacking: Mapping[str, float] = field(default_factory=dict)
    lacking_torques: tuple[np.ndarray, np.ndarray] | None = None

    def to_compare(self, name: str) -> ComparedRun:
        """Return the parameters under the file's name, without sigmas."""
        found = {
            base.name: ComparedValue(self.columns[base.column], None, base.unit, base.text)
            for base in self.equations.base.base
            if base.column in self.columns
        }
        return ComparedRun(name, found, robot=self.equations.model.robot.name)


@dataclass(frozen=True)
class TorqueDifference:
    """Torques of one equation on the rows of a run: decimated samples in which the joint moves.

    Attributes:
        kind: Torque kind.
        joint: Name of the joint.
        unit: ``N m`` or ``N``.
        rows: Number of rows.
        torque: Root mean square of the measured torque.
        difference: That of the file's torque less the run's.
        run_error: That of the measured torque less the run's.
        file_error: That of the measured torque less the file's.
        lacking: That of the file's effects that the run's model lacks, at random states; 0 if there are none.
        state_torque: That of the file's torque with all its effects, at these states; None if it lacks nothing.
        state_difference: That of the file's torque with all its effects less the run's, there.
    """

    kind: str
    joint: str
    unit: str
    rows: int
    torque: float
    difference: float
    run_error: float
    file_error: float
    lacking: float = 0.0
    state_torque: float | None = None
    state_difference: float | None = None


def file_reference(run: SavedRun, robot: Robot, name: str) -> FileReference:
    """Return a robot file as base parameters of a run's model.

    Drive inertia, friction and offsets that the file does not give count as zero where they are regrouped with values
    that it gives; a base parameter of which it gives nothing is absent.

    Args:
        run: The run.
        robot: The robot of the file.
        name: Name of the file, for messages.

    Raises:
        EstimateError: If its joints are not those of the run, or it gives no value at all.
    """
    content, settings = run.content, run.choices
    joints = list(content["preparation"]["standstill"])
    locked = {joint: position for joint, position in settings.lock.items() if joint in robot.joint_names}
    own = [joint for joint in robot.joint_names if joint not in locked]
    if own != joints or len(locked) < len(settings.lock):
        raise EstimateError(
            f"'{name}' is another robot than that of run '{run.folder}': its joints are {', '.join(own)}, those of the "
            f"run {', '.join(joints)}; give the robot file of that arm"
        )
    arm, notes = _as_mounted(run, robot, name)
    model = build_model(
        arm, content["effects"], content["torque"], content["payload_model"], settings.sign_width, settings.friction,
    )  # fmt: skip
    equations = equations_of(model)
    known = {**_payload(robot, content), **robot.with_locked(locked).parameters}
    values = equations.base_values(known)
    lacking = _Lacking(model, equations, known)
    given = {base.column for base in equations.base.base if any(one in known for one in base.regrouping)}
    columns = {
        name: value + lacking.regrouped.get(name, 0.0)
        for name, value in values.items()
        if name in given or name in lacking.regrouped
    }
    if not columns:
        raise EstimateError(f"'{name}' gives no inertia and no friction: there is nothing to compare with the run")
    same = geometry_hash(model.robot) == run.observations.fingerprint.geometry
    if not same:
        notes.append(
            f"the geometry of '{name}' is not that of the run's robot: torques are not compared, and parameters of one "
            "name may be different quantities"
        )
    used = {one for base in equations.base.base for one in base.regrouping}
    missing = [one for one in model.parameters if one.name in used and one.name not in known]
    if missing:
        listed = _listed(missing, model)
        notes.append(f"'{name}' does not give {listed}: they count as zero in its parameters and torques")
    notes += lacking.notes(name)
    notes += [f"'{name}': {note}" for note in robot.notes if note.endswith("not read")]
    return FileReference(equations, columns, tuple(notes), same, lacking.values, lacking.torques)


def _as_mounted(run: SavedRun, robot: Robot, name: str) -> tuple[Robot, list[str]]:
    """Return the robot of a file mounted as in the run, and a note if the file leaves gravity open.

    A URDF says neither how the arm stands nor which link carries payloads: both are those of the run, where the file
    has the link.
    """
    arm, notes = arm_of(robot, run.choices), []
    gravity = tuple(map(float, run.content.get("gravity") or arm.gravity))
    if Path(robot.file).suffix.lower() in (".urdf", ".xacro") and gravity != arm.gravity:
        x, y, z = gravity
        arm = arm.with_gravity((x, y, z))
        notes.append(f"'{name}' says nothing of gravity: that of the run, {x:g} {y:g} {z:g} m/s^2, is taken")
    wanted = run.observations.fingerprint.geometry
    moving = [link for link, frame in arm.frames.items() if frame.body]
    candidates = (arm, *(replace(arm, payload_link=link) for link in moving))
    return next((one for one in candidates if geometry_hash(one) == wanted), arm), notes


class _Lacking:
    """Effects of a robot file that the model of a run lacks and on which its torques depend.

    Attributes:
        regrouped: What those that are combinations of base columns add to them, by column.
        values: Values of the others, by name.
        torques: Torques of the others (rows, states), and the base columns at the same states (rows, states, c).
    """

    def __init__(self, model: Model, equations: Equations, known: Mapping[str, float]) -> None:
        self.regrouped: dict[str, float] = {}
        self.values: dict[str, float] = {}
        self.torques: tuple[np.ndarray, np.ndarray] | None = None
        symbols = {name.rstrip("0123456789") for name, value in known.items() if value}
        effects = [one.name for one in EFFECTS.values() if one.name not in model.effects and symbols & {*one.symbols}]
        self._counted: list[str] = []
        if not effects:
            return
        larger = build_model(
            model.robot, (*model.chosen_effects, *effects), model.measured, model.payload, model.sign_width,
            model.friction,
        )  # fmt: skip
        self._effects = larger.effects
        self._parameters = [one for one in larger.parameters if one.effect in effects and known.get(one.name)]
        motion = random_motion(model.robot, STATES, np.random.default_rng(0))
        regressor = stacked_regressor(larger.regressor, *motion)
        place = {name: column for column, name in enumerate(larger.names)}
        base = regressor[:, [place[name] for name in equations.names]]
        shape = (len(larger.rows), -1)
        torques = np.zeros(len(regressor))
        for parameter in self._parameters:
            column = regressor[:, place[parameter.name]]
            combination = np.linalg.lstsq(base, column)[0]
            rest, value = column - base @ combination, known[parameter.name]
            if np.linalg.norm(rest) > DEPENDENT * np.linalg.norm(column):
                self.values[parameter.name] = value
                torques += value * column
                continue
            shares = zip(equations.names, combination.tolist(), strict=True)
            parts = {name: share for name, share in shares if abs(share) > DEPENDENT}
            for name, share in parts.items():
                self.regrouped[name] = self.regrouped.get(name, 0.0) + share * value
            if parts:
                where = ", ".join(equations.base.name_of[name] for name in parts)
                self._counted.append(f"{parameter.name} {value:.4g} {parameter.unit} in {where}")
        if self.values:
            self.torques = torques.reshape(shape), base.reshape(*shape, base.shape[1])

    def notes(self, name: str) -> list[str]:
        """Return notes on values that count in parameters of another name, and on those that count in none."""
        counted = "; ".join(self._counted)
        notes = [f"'{name}' has effects that the model of the run lacks, counted: {counted}"] if counted else []
        if self.values:
            mine = [one for one in self._parameters if one.name in self.values]
            listed = ", ".join(f"{one.name} {self.values[one.name]:.4g} {one.unit}" for one in mine)
            notes.append(
                f"'{name}' has {listed}, which the model of the run lacks: not in the parameters and the torques on "
                f"the rows of the run, but in the torques at random states; identify with --effects "
                f"{','.join(self._effects)} for a whole comparison"
            )
        return notes


def _listed(missing: Sequence[Parameter], model: Model) -> str:
    """Return the names of parameters; one symbol for all joints where all of them are missing."""
    symbols = dict.fromkeys(one.symbol for one in missing)
    words = []
    for symbol in symbols:
        mine = [one.name for one in missing if one.symbol == symbol]
        every = [one.name for one in model.parameters if one.symbol == symbol]
        words += [symbol] if mine == every and len(mine) > 1 else mine
    return ", ".join(words)


def _payload(robot: Robot, content: Mapping[str, Any]) -> dict[str, float]:
    """Return the parameters of the payload that the run's recordings carried, if the file knows it."""
    carried = {one["payload"] for one in content["recordings"]} - {None}
    known = [robot.payloads[name] for name in carried if name in robot.payloads]
    return dict(zip(COLUMNS, known[0], strict=True)) if known else {}


def torque_differences(run: SavedRun, estimate: Estimate, reference: FileReference) -> list[TorqueDifference]:
    """Return the torques of a run and of a robot file on the run's own rows, equation by equation.

    ``||W x||`` of all rows is ``||R x||`` of their triangle: no recording is read.

    Args:
        run: The run.
        estimate: Its parameters: all, or the essential ones.
        reference: The robot file.

    Returns:
        One for each equation; none if the file's geometry is not the run's.
    """
    if not reference.same_geometry:
        return []
    names = reference.equations.names
    ours = estimate.full_values(names)
    theirs = np.array([reference.columns.get(name, 0.0) for name in names])
    factors = run.observations.factors
    at_states = _at_states(reference, ours, theirs)
    found = []
    for kind, joint in dict.fromkeys((factor.kind, factor.joint) for factor in factors):
        mine = [factor for factor in factors if (factor.kind, factor.joint) == (kind, joint)]
        triangle, rows = merged_triangle(mine, names)
        regressor, measured = triangle[:, :-1], triangle[:, -1]
        sizes = [
            float(np.linalg.norm(vector)) / sqrt(rows)
            for vector in (
                measured, regressor @ (theirs - ours), measured - regressor @ ours, measured - regressor @ theirs
            )
        ]  # fmt: skip
        unit = unit_of(reference.equations, joint)
        found.append(TorqueDifference(kind, joint, unit, rows, *sizes, *at_states.get((kind, joint), ())))
    return found


def _at_states(
    reference: FileReference, ours: np.ndarray, theirs: np.ndarray
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return rms torques of every equation at random states: of effects that the run lacks, of the file, difference."""
    if reference.lacking_torques is None:
        return {}
    lacking, regressor = reference.lacking_torques
    whole = regressor @ theirs + lacking
    sizes = [np.sqrt(np.mean(one**2, axis=1)).tolist() for one in (lacking, whole, whole - regressor @ ours)]
    return dict(zip(reference.equations.model.rows, zip(*sizes, strict=True), strict=True))
