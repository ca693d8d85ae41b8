"""Likely mistakes in the set-up or the file: common ones are tried one by one where the nominal arm is far off.

Each hypothesis reads the measurements in another way (a joint with the other sign, rows in another order, another
convention of orientations), and the nominal arm is registered again: base, tool and markers only. The true one brings
the error from the arm's own size down to that of a nominal arm, which no other does.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation

from ...errors import CalibrationError
from ...robot import Robot
from ..measurement.measurements import Measurements
from ..measurement.nominal import nominal_poses, reach
from ..measurement.setup import CalibrationSetup, completed_setup, moving_chain
from ..measurement.validation import marker_sets
from .registration import register

SUSPICIOUS = 0.01
"""Hypotheses are tried where the registered nominal arm is off by more than this part of its reach (rms)."""
CURED, SMALL = 4.0, 0.03
"""A hypothesis is named if it makes the error so many times smaller, to less than this part of the reach."""
LARGE_ZERO = 0.1
"""Zeros that are off by less [rad] are what a calibration is there to find."""
NOT_RIGID = 0.03
"""Markers whose distance varies by more than this part of the reach are not on one link."""
UNPAIRED = 0.8
"""Joint positions that fit the points no better than this part of the fit in random order do not belong to them."""

# Among hypotheses that cure equally well, up to this factor, the one that is tried first is named.
_ALIKE = 1.5
# A cure by so many times, to this part of the reach, needs no further hypotheses.
_SURE, _SURELY = 30.0, 5e-3
# Gears couple neighbours, up to the third joint of a wrist.
_COUPLED = 2
_FEWEST_POSES, _MOST_ROWS, _RANDOM_ORDERS = 6, 2000, 9
# Zeros are tried at these angles [rad], and refined for the joints that come nearest.
_ZERO_STEP, _REFINED = np.radians(30), 2
_ZEROS = _ZERO_STEP * np.arange(-5, 7)
_PAIR = "pair every configuration with the points that were measured there; a column pose keeps them together"


@dataclass(frozen=True)
class SetupFault:
    """A mistake that would explain the errors.

    Attributes:
        text: What seems to be wrong.
        remedy: What to change.
        error: Error of the registered nominal arm [m] if the measurements are read without the mistake, if known.
    """

    text: str
    remedy: str
    error: float = np.inf


def likely_cause(robot: Robot, setup: CalibrationSetup, measurements: Measurements) -> SetupFault | None:
    """Return the mistake that explains a large error of the registered nominal arm; None if there is none.

    Args:
        robot: The arm.
        setup: How it was measured.
        measurements: Rows that are to be explained; only complete positions and poses are used.
    """
    rows = np.flatnonzero(measurements.complete)
    if len(np.unique(measurements.pose[rows])) < _FEWEST_POSES:
        return None
    trial = _Trial(robot, setup, measurements.taken(rows[:: -(-len(rows) // _MOST_ROWS)]))
    if not SUSPICIOUS * trial.reach < trial.error < np.inf:
        return None
    return _cure(trial) or _not_rigid(trial) or _unpaired(trial)


class _Trial:
    """Errors of the nominal arm for measurements as they are read, and as they are read under hypotheses."""

    def __init__(self, robot: Robot, setup: CalibrationSetup, measurements: Measurements) -> None:
        self.robot, self.measurements = robot, measurements
        self.setup = completed_setup(setup, measurements.markers)
        self.reach = reach(robot, setup.link, measurements.q)
        moving = {body.joint.name for body in moving_chain(robot, setup.link)}
        self.names = [body.joint.name for body in robot.actuated]
        self.joints = [k for k, name in enumerate(self.names) if name in moving]
        self.error = self.misfit(measurements)

    def column_terms(self, joint: int) -> dict[str, float]:
        """Return the factors by which columns of the file make a joint, a constant [rad] under an empty name."""
        name = self.names[joint]
        return dict(self.setup.joint_map.get(name, {name: 1.0}))

    def with_q(self, q: np.ndarray) -> float:
        """Return the error [m] with other joint positions (na, R)."""
        return self.misfit(replace(self.measurements, q=q))

    def with_joints(
        self, text: str, positions: Mapping[int, np.ndarray], terms: Mapping[int, Mapping[str, float]]
    ) -> SetupFault:
        """Return the hypothesis that some joints have other positions (R,), by other terms of the file's columns."""
        q = self.measurements.q.copy()
        for joint, position in positions.items():
            q[joint] = position
        return SetupFault(text, _declared(self, terms), self.with_q(q))

    def misfit(self, read: Measurements, link: str | None = None) -> float:
        """Return the rms error [m] of the registered nominal arm; orientations count as turns of the measured points.

        Infinite where the points do not fix the base.
        """
        turn, shift = nominal_poses(self.robot, link or self.setup.link, read.q)
        try:
            found = register(self.setup, read, turn, shift)
        except CalibrationError:
            return np.inf
        base = found.base[:9].reshape(3, 3)
        points = np.vstack([found.markers, found.tool[9:]])[read.marker]
        gap = read.value - found.base[9:] - (shift + np.einsum("nij,nj->ni", turn, points)) @ base.T
        squares = float((gap**2).sum(axis=1).mean())
        observed = np.isfinite(read.rotation).all(axis=(1, 2))
        if observed.any():
            predicted = Rotation.from_matrix(base @ turn[observed] @ found.tool[:9].reshape(3, 3))
            angle = (Rotation.from_matrix(read.rotation[observed]) * predicted.inv()).magnitude()
            squares += float(np.mean(angle**2)) * float(read.value.var(axis=0).sum())
        return float(np.sqrt(squares))


def _cure(trial: _Trial) -> SetupFault | None:
    """Return the hypothesis that brings the error down to that of a nominal arm, if there is one."""
    found: list[SetupFault] = []
    for tried in (_signs, _conventions, _swapped_joints, _couplings, _sides, _markers, _row_orders):
        found += tried(trial)
        if min((each.error for each in found), default=np.inf) < min(trial.error / _SURE, _SURELY * trial.reach):
            break
    named = _best(trial, found) or _best(trial, list(_zeros(trial)))
    if named is None:
        return None
    errors = f"{1e3 * named.error:.3g} mm (rms) instead of {1e3 * trial.error:.3g} mm"
    return replace(named, text=f"likely cause: {named.text}; so read, the nominal arm is off by {errors}")


def _best(trial: _Trial, found: list[SetupFault]) -> SetupFault | None:
    best = min((each.error for each in found), default=np.inf)
    if CURED * best >= trial.error or best >= SMALL * trial.reach:
        return None
    return next(each for each in found if each.error <= _ALIKE * best)


def _declared(trial: _Trial, joints: Mapping[int, Mapping[str, float]]) -> str:
    """Return the remedy to declare joints as functions of columns, as lines of a set-up file."""
    lines = []
    for joint, terms in joints.items():
        entries = [f"{_key(column)} = {factor:g}" for column, factor in terms.items() if column and factor]
        if terms.get(""):
            entries.append(f"constant_deg = {np.degrees(terms['']):.1f}")
        lines.append(f"{_key(trial.names[joint])} = {{{', '.join(entries)}}}")
    return f"write under [joints] in the set-up: {'; '.join(lines)}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'


def _signs(trial: _Trial) -> Iterator[SetupFault]:
    for joints in (*((joint,) for joint in trial.joints), tuple(trial.joints)):
        what = f"joint '{trial.names[joints[0]]}'" if len(joints) == 1 else "all joints"
        terms = {k: {column: -factor for column, factor in trial.column_terms(k).items()} for k in joints}
        positions = {k: -trial.measurements.q[k] for k in joints}
        yield trial.with_joints(f"the sign of {what} is reversed", positions, terms)


def _swapped_joints(trial: _Trial) -> Iterator[SetupFault]:
    q = trial.measurements.q
    for one, other in itertools.combinations(trial.joints, 2):
        text = f"the columns of joints '{trial.names[one]}' and '{trial.names[other]}' are swapped"
        terms = {one: trial.column_terms(other), other: trial.column_terms(one)}
        yield trial.with_joints(text, {one: q[other], other: q[one]}, terms)


def _couplings(trial: _Trial) -> Iterator[SetupFault]:
    q, names = trial.measurements.q, trial.names
    near = [pair for pair in itertools.permutations(trial.joints, 2) if abs(pair[0] - pair[1]) <= _COUPLED]
    for (one, other), (sign, by) in itertools.product(near, ((1, "plus"), (-1, "minus"))):
        text = f"a coupling is missing: joint '{names[other]}' turns by its own column {by} that of '{names[one]}'"
        terms = trial.column_terms(other)
        for column, factor in trial.column_terms(one).items():
            terms[column] = terms.get(column, 0.0) + sign * factor
        yield trial.with_joints(text, {other: q[other] + sign * q[one]}, {other: terms})


def _zeros(trial: _Trial) -> Iterator[SetupFault]:
    def error(joint: int, angle: float) -> float:
        q = trial.measurements.q.copy()
        q[joint] += angle
        return trial.with_q(q)

    turning = [joint for joint in trial.joints if trial.robot.actuated[joint].joint.kind != "prismatic"]
    coarse = [(min((error(joint, float(angle)), float(angle)) for angle in _ZEROS), joint) for joint in turning]
    for (_, start), joint in sorted(coarse)[:_REFINED]:
        bounds = (start - _ZERO_STEP, start + _ZERO_STEP)
        found = cast(Any, minimize_scalar(partial(error, joint), bounds=bounds, options={"xatol": 1e-3}))
        angle = (float(found.x) + np.pi) % (2 * np.pi) - np.pi
        if abs(angle) > LARGE_ZERO:
            text = f"the zero of joint '{trial.names[joint]}' is off by {np.degrees(-angle):.1f} deg"
            terms = trial.column_terms(joint)
            terms[""] = terms.get("", 0.0) + angle
            yield SetupFault(text, _declared(trial, {joint: terms}), float(found.fun))


def _row_orders(trial: _Trial) -> Iterator[SetupFault]:
    poses, first, number = np.unique(trial.measurements.pose, return_index=True, return_inverse=True)
    q, count = trial.measurements.q[:, first], len(poses)
    for shift in (1, -1, 2, -2):
        there = np.arange(count) + shift
        # Rows at the end have no partner.
        rows = ((there >= 0) & (there < count))[number]
        read = replace(trial.measurements, q=q[:, there % count][:, number]).taken(rows)
        which = f"points belong to the joint positions of {abs(shift)} row{'s' * (abs(shift) > 1)}"
        text = f"rows are shuffled: {which} {'further down' if shift > 0 else 'further up'}"
        yield SetupFault(text, _PAIR, trial.misfit(read))
    text = "rows are shuffled: points and joint positions run in opposite orders"
    yield SetupFault(text, _PAIR, trial.with_q(q[:, ::-1][:, number]))


def _markers(trial: _Trial) -> Iterator[SetupFault]:
    """Exchange markers whose positions the set-up gives, and leave each marker out in turn."""
    read, names = trial.measurements, trial.measurements.markers
    placed = [k for k, marker in enumerate(trial.setup.markers) if marker.position is not None]
    for one, other in itertools.combinations(placed, 2):
        order = np.arange(len(names) + 1)
        order[[one, other]] = other, one
        first, second = sorted((names[one], names[other]))
        text = f"markers '{first}' and '{second}' are swapped"
        remedy = f"exchange the positions of [markers.{first}] and [markers.{second}] in the set-up"
        yield SetupFault(text, remedy, trial.misfit(replace(read, marker=np.append(order[:-1], -1)[read.marker])))
    for number, name in enumerate(names if len(names) > 1 else ()):
        text = f"marker '{name}' does not move with link '{trial.setup.link}' as the other markers do"
        remedy = f"take [markers.{name}] and its columns out of the set-up, or its rows out of the file"
        yield SetupFault(text, remedy, trial.misfit(read.taken(read.marker != number)))


def _sides(trial: _Trial) -> Iterator[SetupFault]:
    """Read the other arm's joints, the other arm's link, or both, where names distinguish left from right."""
    link, mirrored = trial.setup.link, [_other_side(name) for name in trial.names]
    other = _other_side(link)
    order = [trial.names.index(name) if name in trial.names else k for k, name in enumerate(mirrored)]
    exchanged = replace(trial.measurements, q=trial.measurements.q[order])
    remedy = f"set link under [measurement] and the columns under [joints] to the side that was measured, not '{link}'"
    if order != list(range(len(order))):
        yield SetupFault("the sides are swapped: joint columns are those of the other arm", remedy,
                          trial.misfit(exchanged))  # fmt: skip
    if other != link and other in trial.robot.frames:
        text = f"the sides are swapped: what was measured moves with link '{other}'"
        yield SetupFault(text, remedy, trial.misfit(trial.measurements, other))
        yield SetupFault(text, remedy, trial.misfit(exchanged, other))


def _other_side(name: str) -> str:
    """Return a name with left and right, or l and r between underscores, exchanged."""
    other = {"left": "right", "right": "left", "l": "r", "r": "l"}
    return re.sub(r"(?<![a-zA-Z])(left|right|l|r)(?![a-zA-Z])", lambda found: other[found[0]], name)


def _conventions(trial: _Trial) -> Iterator[SetupFault]:
    """Read measured orientations in other conventions."""
    read = trial.measurements
    observed = np.isfinite(read.rotation).all(axis=(1, 2))
    if not observed.any():
        return
    measured = Rotation.from_matrix(read.rotation[observed])
    quaternion, angles = measured.as_quat(scalar_first=True), measured.as_euler("xyz")
    order = "name the columns in the order w, x, y, z: columns of [tool], or columns = {qw = ...} of [measurement]"
    rewrite = "write orientations as quaternions qw, qx, qy, qz, or as roll, pitch, yaw: Rz(yaw) Ry(pitch) Rx(roll)"
    others = (
        ("quaternions are in the order x, y, z, w, not w, x, y, z", order, Rotation.from_quat(quaternion)),
        ("orientations are inverse: those of the measurement frame in the tool", rewrite, measured.inv()),
        ("angles are in the order yaw, pitch, roll", rewrite, Rotation.from_euler("xyz", angles[:, ::-1])),
        ("angles are about moving axes x, y, z", rewrite, Rotation.from_euler("XYZ", angles)),
        ("angles are a rotation vector, not roll, pitch, yaw", rewrite, Rotation.from_rotvec(angles)),
    )
    for what, remedy, rotations in others:
        rotation = read.rotation.copy()
        rotation[observed] = rotations.as_matrix()
        text = f"the convention of orientations: {what}"
        yield SetupFault(text, remedy, trial.misfit(replace(read, rotation=rotation)))


def _not_rigid(trial: _Trial) -> SetupFault | None:
    """Return the two markers whose distance varies most, if that is far more than a rigid link allows."""
    points, names = marker_sets(trial.measurements)[0], trial.measurements.markers
    worst = (0.0, 0.0, 0.0, 0, 0)
    for one, other in itertools.combinations(range(len(names)), 2):
        distance = np.linalg.norm(points[:, one] - points[:, other], axis=1)
        distance = distance[np.isfinite(distance)]
        if len(distance) >= _FEWEST_POSES:
            low, high = np.quantile(distance, [0.1, 0.9]).tolist()
            worst = max(worst, (high - low, low, high, one, other))
    spread, low, high, one, other = worst
    if spread <= NOT_RIGID * trial.reach:
        return None
    return SetupFault(
        f"likely cause: markers '{names[one]}' and '{names[other]}' are not on one link, or their names are exchanged "
        f"in many rows: the distance between them varies from {1e3 * low:.3g} to {1e3 * high:.3g} mm",
        "declare only markers that are fixed to the measured link, each under one name in all rows",
    )


def _unpaired(trial: _Trial) -> SetupFault | None:
    """Return the fault that joint positions and points do not belong together, if random pairs fit about as well."""
    poses, first, number = np.unique(trial.measurements.pose, return_index=True, return_inverse=True)
    random = np.random.default_rng(0)
    orders = [first[random.permutation(len(poses))][number] for _ in range(_RANDOM_ORDERS)]
    usual = float(np.median([trial.with_q(trial.measurements.q[:, order]) for order in orders]))
    if trial.error < UNPAIRED * usual:
        return None
    return SetupFault(
        f"likely cause: rows are shuffled, or the points are those of another arm: with their joint positions they fit "
        f"the nominal arm to {1e3 * trial.error:.3g} mm (rms), in random order to {1e3 * usual:.3g} mm",
        _PAIR,
    )
