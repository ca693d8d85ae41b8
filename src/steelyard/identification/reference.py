"""A robot file beside a run: its values as base parameters of the run's model, and both models on the run's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ..errors import EstimateError
from ..estimate import Estimate
from ..judge import ComparedRun, ComparedValue
from ..judge.residuals import unit_of
from ..model import Model, Parameter, build_model
from ..observe import Equations, equations_of, geometry_hash, merged_triangle
from ..robot import Robot
from ..text import short_repr
from .inputs import arm_of
from .payload_body import COLUMNS
from .run_files import SavedRun


@dataclass(frozen=True, eq=False)
class FileReference:
    """A robot file as base parameters of a run's model.

    Attributes:
        equations: The run's model with the file's robot.
        columns: Values of the base parameters by column; those that the file says nothing of are absent.
        notes: What the file does not give, or why it cannot be compared as a whole, a sentence each.
        same_geometry: Whether it moves as the run's robot does.
    """

    __repr__ = short_repr

    equations: Equations
    columns: Mapping[str, float]
    notes: tuple[str, ...]
    same_geometry: bool

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
    """

    kind: str
    joint: str
    unit: str
    rows: int
    torque: float
    difference: float
    run_error: float
    file_error: float


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
    model = build_model(
        arm_of(robot, settings), content["effects"], content["torque"], content["payload_model"], settings.sign_width
    )
    equations = equations_of(model)
    known = {**_payload(robot, content), **robot.with_locked(locked).parameters}
    values = equations.base_values(known)
    columns = {
        base.column: values[base.column] for base in equations.base.base if any(one in known for one in base.regrouping)
    }
    if not columns:
        raise EstimateError(f"'{name}' gives no inertia and no friction: there is nothing to compare with the run")
    same = geometry_hash(model.robot) == run.observations.fingerprint.geometry
    notes = []
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
    return FileReference(equations, columns, tuple(notes), same)


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
        found.append(TorqueDifference(kind, joint, unit_of(reference.equations, joint), rows, *sizes))
    return found
