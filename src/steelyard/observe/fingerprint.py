"""What rows are rows of: factors of another arm, other unknowns, another filter or other units do not mix."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

import numpy as np

from ..errors import ObservationError
from ..model.terms import payload_link
from ..robot import Robot, transform_from_placement
from .equations import Equations
from .preparation import SettledPreparation


@dataclass(frozen=True)
class Fingerprint:
    """What must be equal for factors to be merged.

    Attributes:
        robot: Name of the robot; for reading only, two names of one geometry do mix.
        geometry: SHA-256 of the kinematic tree: parents, placements, axes, kinds, mimics, gravity, couplings.
        unknowns: Effects and regrouping behind the column names, as text and SHA-256.
        filter: What samples went through, as text.
        units: Torque kinds and the units of their rows.
    """

    robot: str
    geometry: str
    unknowns: str
    filter: str
    units: str


def fingerprint_of(equations: Equations, settled: SettledPreparation) -> Fingerprint:
    """Return the fingerprint of rows."""
    robot = equations.model.robot
    return Fingerprint(robot.name, geometry_hash(robot), _unknowns(equations), settled.filter_text, _units(equations))


def check_same(first: Fingerprint, other: Fingerprint) -> None:
    """Raise an ObservationError that says what differs, with both values."""
    for field in fields(Fingerprint):
        ours, theirs = getattr(first, field.name), getattr(other, field.name)
        if field.name != "robot" and ours != theirs:
            raise ObservationError(
                f"observations of different {field.name} cannot be merged: '{_short(ours)}' ({first.robot}) and "
                f"'{_short(theirs)}' ({other.robot}); reduce the recordings again with one robot, model and preparation"
            )


def _short(text: str) -> str:
    return text[:12] if len(text) == 64 and " " not in text else text


def geometry_hash(robot: Robot) -> str:
    """Return the SHA-256 of what moves how: not of inertias, limits or known values."""
    lines = [f"gravity {_numbers(np.array(robot.gravity))}", f"payload on {payload_link(robot)}"]
    for body in robot.bodies:
        rotation, translation = transform_from_placement(body.placement)
        lines.append(
            f"{body.number} {body.parent} {body.joint.name} {body.joint.kind} {_numbers(np.array(body.joint.axis))} "
            f"{_numbers(rotation)} {_numbers(translation)}"
        )
    follow, shift = robot.coupling()
    lines += [_numbers(follow), _numbers(shift), _numbers(robot.motor_coupling())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _numbers(values: np.ndarray) -> str:
    """Return numbers as text, rounded where two ways to compute the same arm may differ."""
    return " ".join(f"{value:.9g}" for value in (np.round(values, 10) + 0.0).ravel())


def _unknowns(equations: Equations) -> str:
    """Return what the columns mean: those of the arm alone, so that rows without and with payload mix."""
    model, base = equations.model, equations.base
    is_arm = np.array([parameter.effect != "payload" for parameter in model.parameters])
    kept = [k for k, column in enumerate(base.kept_columns) if is_arm[column]]
    regrouping = base.regrouping[kept][:, is_arm]
    # In rows of a loaded arm alone, the last links' parameters hold the payload.
    payload = "regrouped" if model.payload == "loaded" else "apart"
    words = f"{' '.join(model.effects)}; payload {payload}; sign width {model.sign_width:g}"
    digest = hashlib.sha256(_numbers(np.round(regrouping, 6)).encode()).hexdigest()
    return f"{words}; regrouping {digest[:12]}"


def _units(equations: Equations) -> str:
    units = {"revolute": "N m", "prismatic": "N"}
    robot = equations.model.robot
    return ", ".join(f"{kind} {joint} [{units[robot.joint(joint).kind]}]" for kind, joint in equations.kinds_joints)
