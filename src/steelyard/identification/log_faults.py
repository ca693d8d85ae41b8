"""Faults of a log's columns, and its rows with each corrected: signs, degrees, exchanged columns, joint order.

Reversed torques need the factors only, exchanged ones those of every equation with every torque (as many passes as
joints), positions a pass for each change. Torques without gravity, as of some drivers, are told before a fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from ..errors import EstimateError, ObservationError, SteelyardError
from ..estimate import LEAST_FREEDOM
from ..observe import (
    Equations,
    Observations,
    ResolvedPreparation,
    RowBlock,
    RowSource,
    busiest_part,
    merge_observations,
    reduce_rows,
)
from ..recording import Recording
from .gravity_fits import WELL, GravityFits, relative_residual
from .inputs import MASSIVE, Labelled, feels_gravity, shows_moments, sources_of

FIRST_LOOK, LEAST_ROWS, WHOLE, SHOWN = 4_000, 200, 0.999, 0.9
"""A first look takes so many samples of each recording, and so many decimated ones at least, of which such a part was
moving: where residuals with gravity are less than this part of those without, it is in the torques."""

_BLOCKS = 1
# Rows of the part on which changes are tried first, in multiples of those that an estimate of the noise needs.
_ROWS_TO_TRY = 2


@dataclass(frozen=True)
class LogFault:
    """A fault of the log that may explain an impossible estimate.

    Attributes:
        joints: Joints it concerns.
        text: What is the case, with figures.
        remedy: What to change in the set-up.
        misfit: Relative residual with that change, root mean square over the equations.
        code: Name of the fault: ``torque_sign``, ``position_sign``, ``exchanged_torques`` ...
        fix: Keys of a configuration that correct it in all recordings; empty if only one has it.
    """

    joints: tuple[str, ...]
    text: str
    remedy: str
    misfit: float = np.nan
    code: str = ""
    fix: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ColumnChange:
    """A change of a log's columns, each as one entry for each joint.

    Attributes:
        factors: Factors of positions and velocities: signs, or of another unit.
        motion: Columns from which positions and velocities are taken.
        torques: Columns from which torques are taken.
        torque_signs: Signs of the torques.
    """

    factors: tuple[float, ...]
    motion: tuple[int, ...]
    torques: tuple[int, ...]
    torque_signs: tuple[float, ...]

    def of(self, recording: Recording) -> Recording:
        """Return the recording changed."""
        factors, signs = np.array(self.factors)[:, None], np.array(self.torque_signs)[:, None]
        order, taken = list(self.motion), list(self.torques)
        torques = tuple(
            channel if channel.kind == "wrench" else replace(channel, values=signs * channel.values[taken])
            for channel in recording.torques
        )
        qd = None if recording.qd is None else factors * recording.qd[order]
        return replace(recording, q=factors * recording.q[order], qd=qd, torques=torques)


def unchanged(equations: Equations) -> ColumnChange:
    """Return the change that leaves every column as it is."""
    places = tuple(range(len(equations.joints)))
    ones = (1.0,) * len(places)
    return ColumnChange(ones, places, places, ones)


class ChangedRows:
    """Factors of recordings with columns changed.

    Args:
        short: The recordings.
        equations: Model, base parameters and rows.
        resolved: Filters and decimation.

    Attributes:
        equations: Model, base parameters and rows.
        plain: Factors of the recordings as they are; None if nothing can be fitted.
    """

    def __init__(self, short: Sequence[Labelled], equations: Equations, resolved: ResolvedPreparation) -> None:
        self.equations = equations
        self._short, self._resolved = dict(short), resolved
        self._parts: dict[str, Recording] = {}
        self.plain = self.of(unchanged(equations)) if short else None

    def of(self, change: ColumnChange, label: str | None = None) -> Observations | None:
        """Return the factors of all recordings changed, or of one and the others as they are; None: nothing to fit."""
        if label is not None:
            changed = self._reduced(change, label, self._short[label])
            return None if changed is None or self.plain is None else _with_recording(self.plain, changed, label)
        parts = [self._reduced(change, name, recording) for name, recording in self._short.items()]
        found = [part for part in parts if part is not None]
        return merge_observations(*found) if len(found) == len(parts) else None

    def of_part(self, change: ColumnChange, label: str) -> Observations | None:
        """Return the factors of a part of a recording changed, with rows enough for a fit; None if it has no more."""
        if label not in self._parts:
            most_columns = max(map(len, self.equations.columns))
            samples = _ROWS_TO_TRY * (most_columns + LEAST_FREEDOM) * self._resolved.decimation
            self._parts[label] = busiest_part(self._short[label], samples)
        part = self._parts[label]
        return None if part is self._short[label] else self._reduced(change, label, part)

    def _reduced(self, change: ColumnChange, label: str, recording: Recording) -> Observations | None:
        speeds = np.abs(change.factors) * self._resolved.standstill  # the same rows, whatever the unit
        try:
            resolved = replace(self._resolved, standstill=speeds)
            sources = sources_of([(label, change.of(recording))], self.equations, resolved)
            return reduce_rows(sources, blocks=_BLOCKS)
        except SteelyardError:
            return None


def _with_recording(observations: Observations, changed: Observations, label: str) -> Observations:
    """Return the factors with those of one recording replaced."""
    factors = [f for f in observations.factors if f.recording != label]
    return replace(observations, factors=(*factors, *changed.factors))


def _in_one(fault: LogFault, label: str | None) -> LogFault:
    """Return a fault as it is described where only one recording has it; None: all have."""
    if label is None:
        return fault
    remedy = fault.remedy.replace("in the set-up", f"in a set-up for '{label}' alone")
    return replace(fault, text=f"{fault.text} in '{label}'", remedy=remedy, fix={})


def torque_signs(
    equations: Equations, observations: Observations, label: str | None = None
) -> Iterator[tuple[LogFault, Observations]]:
    """Yield torques that may be reversed, in all recordings or in one: of all joints, of one joint, of one kind."""
    fault = reversed_torques(equations, equations.joints)
    yield _in_one(fault, label), with_reversed(observations, frozenset(equations.kinds_joints), label)
    kinds = tuple(dict.fromkeys(kind for kind, _ in equations.kinds_joints))
    for joint in equations.joints:
        fault = reversed_torques(equations, (joint,))
        own = {fault.text: [one for one in equations.kinds_joints if one[1] == joint]}
        if len(kinds) > 1 and label is None:
            own |= {f"the {kind} torque of {joint} seems reversed": [(kind, joint)] for kind in kinds}
        for text, which in own.items():
            yield _in_one(replace(fault, text=text), label), with_reversed(observations, frozenset(which), label)


def reversed_torques(equations: Equations, joints: Sequence[str]) -> LogFault:
    """Return the fault that the torques of some joints, or of all, are reversed in all recordings."""
    joints = tuple(joint for joint in equations.joints if joint in joints)
    is_all = joints == equations.joints
    signs = -1 if is_all else [-1 if name in joints else 1 for name in equations.joints]
    named = "all joints" if is_all else " and ".join(joints)
    text = f"the torques of {named} seem reversed" if is_all or joints[1:] else f"the torque of {named} seems reversed"
    # One of two torques of a joint: which of the log's channels it is, a configuration cannot tell here.
    is_one_kind = len({kind for kind, _ in equations.kinds_joints}) == 1
    fix = {"recording.torque.sign": dict.fromkeys(joints, -1)} if is_all or is_one_kind else {}
    remedy = f"reverse {'them' if joints[1:] else 'it'} in the set-up: sign = {signs} for the torque"
    return LogFault(joints, text, remedy, code="torque_sign", fix=fix)


def with_reversed(observations: Observations, which: frozenset[tuple[str, str]], label: str | None) -> Observations:
    """Return the factors with some torques reversed, in all recordings or in one."""
    factors = []
    for factor in observations.factors:
        if (factor.kind, factor.joint) in which and label in (None, factor.recording):
            triangle = factor.triangle.copy()
            triangle[:, -1] *= -1
            factor = replace(factor, triangle=triangle)
        factors.append(factor)
    return replace(observations, factors=tuple(factors))


def exchanged_torques(rows: ChangedRows, equations: Equations) -> Iterator[tuple[LogFault, Observations]]:
    """Yield factors with torques exchanged: of all joints moved by one; of two, in every channel or in one."""
    joints, plain = equations.joints, unchanged(equations)
    # With torques moved on by s joints, equation i has the torque of joint i + s.
    moved = [rows.of(replace(plain, torques=(*plain.torques[s:], *plain.torques[:s]))) for s in plain.torques]
    kinds = tuple(dict.fromkeys(kind for kind, _ in equations.kinds_joints))
    for steps in (1, -1) if len(joints) > 2 else ():
        shifted = moved[-steps]
        if shifted is not None:
            right = np.roll(np.array(joints), -steps).tolist()
            text = f"the torque columns {_moved_by_one(joints, steps)}"
            fix = {"recording.torque.joints": right} if len(kinds) == 1 else {}
            yield LogFault(joints, text, _exchange("torque"), code="exchanged_torques", fix=fix), shifted
    for first, second in combinations(range(len(joints)), 2):
        pair = (joints[first], joints[second])
        apart = [(kind,) for kind in kinds] if len(kinds) > 1 else []
        for which in (kinds, *apart):
            shift = {joints[first]: second - first, joints[second]: first - second + len(joints)}
            if any(moved[s] is None for s in (0, *shift.values())):
                continue
            name = "torque" if which == kinds else f"{' '.join(which)} torque"
            text = f"the {name} columns of {pair[0]} and {pair[1]} seem exchanged"
            fix = {"recording.torque.joints": _exchanged(joints, pair)} if len(kinds) == 1 else {}
            fault = LogFault(pair, text, _exchange("torque"), code="exchanged_torques", fix=fix)
            yield fault, _picked(moved, shift, which)


def _picked(moved: Sequence[Observations | None], shift: dict[str, int], kinds: Sequence[str]) -> Observations:
    """Return the factors of unmoved torques, but of two joints those with each other's."""
    plain = moved[0]
    assert plain is not None
    factors = [f for f in plain.factors if f.joint not in shift or f.kind not in kinds]
    for joint, steps in shift.items():
        other = moved[steps]
        assert other is not None
        factors += [f for f in other.factors if f.joint == joint and f.kind in kinds]
    return replace(plain, factors=tuple(factors))


def reversed_positions(
    equations: Equations, suspects: Sequence[str], label: str | None = None
) -> Iterator[tuple[LogFault, ColumnChange]]:
    """Yield the position of a joint reversed, alone or with its torque, in all recordings or in one."""
    for joint in suspects:
        signs = tuple(-1.0 if name == joint else 1.0 for name in equations.joints)
        remedy = f"in the set-up: sign = {[int(s) for s in signs]} for q (and qd)"
        fix = {"recording.q.sign": {joint: -1}, "recording.qd.sign": {joint: -1}}
        fault = LogFault(
            (joint,), f"the position of {joint} seems reversed", f"reverse it {remedy}", code="position_sign", fix=fix
        )
        change = replace(unchanged(equations), factors=signs)
        yield _in_one(fault, label), change
        fix = {**fix, "recording.torque.sign": {joint: -1}}
        fault = LogFault(
            (joint,), f"position and torque of {joint} seem reversed, as if its axis pointed the other way",
            f"reverse both {remedy} and for the torque", code="joint_sign", fix=fix,
        )  # fmt: skip
        yield _in_one(fault, label), replace(change, torque_signs=signs)


def positions_in_degrees(equations: Equations, suspects: Sequence[str]) -> Iterator[tuple[LogFault, ColumnChange]]:
    """Yield the position of a turning joint in degrees: if they are few, they are possible as radians."""
    robot, joints = equations.model.robot, equations.joints
    turning = [joint for joint in joints if robot.joint(joint).kind == "revolute"]
    for joint in (one for one in suspects if one in turning):
        units = ["deg" if one == joint else "rad" if one in turning else "m" for one in joints]
        factors = tuple(float(np.radians(1.0)) if unit == "deg" else 1.0 for unit in units)
        fault = LogFault(
            (joint,), f"the position of {joint} seems to be in degrees",
            f"declare its unit in the set-up: unit = {units} for q", code="position_unit",
            fix={"recording.q.unit": {joint: "deg"}, "recording.qd.unit": {joint: "deg/s"}},
        )  # fmt: skip
        yield fault, replace(unchanged(equations), factors=factors)


def exchanged_motions(equations: Equations, groups: Sequence[Sequence[str]]) -> Iterator[tuple[LogFault, ColumnChange]]:
    """Yield positions of joints in reverse order, alone or with their torques: of pairs, or of all."""
    joints = equations.joints
    for group in groups:
        order, places = np.arange(len(joints)), [joints.index(joint) for joint in group]
        order[places] = places[::-1]
        named = f"of {group[0]} and {group[1]} seem exchanged" if len(group) == 2 else "seem in reverse order"
        yield from _reordered(equations, group, order.tolist(), named)


def shifted_motions(equations: Equations) -> Iterator[tuple[LogFault, ColumnChange]]:
    """Yield positions of all joints moved by one column either way, alone or with their torques."""
    joints = equations.joints
    for steps in (1, -1) if len(joints) > 2 else ():
        order = np.roll(np.arange(len(joints)), steps).tolist()
        yield from _reordered(equations, joints, order, _moved_by_one(joints, steps))


def _reordered(
    equations: Equations, group: Sequence[str], order: Sequence[int], named: str
) -> Iterator[tuple[LogFault, ColumnChange]]:
    """Yield columns in another order: positions, and positions with their torques."""
    changed = replace(unchanged(equations), motion=tuple(order))
    right = [equations.joints[k] for k in np.argsort(order)]
    of_motion = {"recording.q.joints": right, "recording.qd.joints": right}
    text = f"the position columns {named}"
    yield LogFault(tuple(group), text, _exchange("q"), code="exchanged_positions", fix=of_motion), changed
    text = f"the columns {named}, positions and torques"
    fix = {**of_motion, "recording.torque.joints": right}
    fault = LogFault(tuple(group), text, _exchange("every channel"), code="exchanged_joints", fix=fix)
    yield fault, replace(changed, torques=changed.motion)


def _moved_by_one(joints: Sequence[str], steps: int) -> str:
    return f"seem moved by one joint (that of {joints[0]} is declared as that of {joints[-steps]})"


def _exchanged(joints: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """Return the joints with two of them exchanged."""
    other = {pair[0]: pair[1], pair[1]: pair[0]}
    return [other.get(joint, joint) for joint in joints]


def _exchange(what: str) -> str:
    return f"exchange these columns of {what} in the set-up (columns = ..., or joints = ... in the order of the log)"


def refuse_removed_gravity(
    equations: Equations, training: Sequence[Labelled], resolved: ResolvedPreparation, threads: int = 1
) -> None:
    """Refuse torques from which gravity was taken out, unless the model has none.

    Args:
        equations: Equations of the plain model.
        training: The recordings.
        resolved: Their preparation.
        threads: Threads that share the reduction.

    Raises:
        EstimateError: With the words of ``steelyard check``.
    """
    model = equations.model
    if "inertia" not in model.effects or model.measured == "difference" or not any(model.robot.gravity):
        return
    if not feels_gravity(model) or (shows_moments(equations) and _gravity_shows(equations, training, resolved)):
        return
    fits = GravityFits(equations, training, resolved, threads)
    # The other directions are tried only where none at all fits better than the model's.
    found = fits.best() if fits.removed() else None
    if found is not None and found.is_removed and found.residual <= WELL:
        raise EstimateError(f"{found.text}; {found.remedy}")


def _gravity_shows(equations: Equations, training: Sequence[Labelled], resolved: ResolvedPreparation) -> bool:
    """Return whether a short part of each recording has gravity in it beyond doubt; no second model is compiled.

    What the regressor has at rest is gravity's: without it the rows are those of a weightless arm.
    """
    samples = max(FIRST_LOOK, LEAST_ROWS * resolved.decimation)
    sources = sources_of([(label, busiest_part(one, samples)) for label, one in training], equations, resolved)
    try:
        for source in sources:
            list(source)  # read once: both share the rows
        with_it, without = (
            relative_residual(reduce_rows(rows, blocks=1), equations.names)
            for rows in (
                [one.adjusted(_AtDecimatedMotion(one, gravity=gravity)) for one in sources] for gravity in (True, False)
            )
        )
        return with_it < SHOWN * without
    except (EstimateError, ObservationError):
        return False  # too few rows in this part


class _AtDecimatedMotion:
    """Evaluates the columns of masses at the decimated motion, with gravity or without: an adjustment of rows.

    Decimated gravity less gravity at decimated positions would be no zero. Rows of which a part was near standstill are
    left out: they are not of the decimated positions.
    """

    def __init__(self, source: RowSource, *, gravity: bool) -> None:
        self._compiled, self._gravity = source.equations.compiled(source.loaded), gravity
        self._inputs = [one.shape[0] for one in source.equations.inputs.values()]
        effects = {one.name: one.effect for one in source.equations.model.parameters}
        columns = self._compiled.columns
        self._massive = [np.array([effects[name] in MASSIVE for name in of_one]) for of_one in columns]

    def __call__(self, block: RowBlock) -> RowBlock:
        """Return the rows at the decimated motion."""
        massive, rows = self._massive, [values.copy() for values in block.rows]
        moving, at_rest = self._values(block.q, block.qd, block.qdd), self._values(block.q)
        for e, places in enumerate(self._compiled.places):
            values = moving[e] if self._gravity else moving[e] - at_rest[e]
            rows[e][:, places[massive[e]]] = values[massive[e]].T
        return replace(block, rows=tuple(rows), share=np.where(block.share > WHOLE, block.share, 0.0))

    def _values(self, *motion: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the columns at a motion; what else they depend on, which masses do not, is zero."""
        given = [np.ascontiguousarray(values) for values in motion]
        samples = given[0].shape[1]
        return self._compiled.function(*given, *(np.zeros((rows, samples)) for rows in self._inputs[len(given) :]))
