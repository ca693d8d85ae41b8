"""Faults of a log that may explain an impossible estimate, tried one by one: signs, exchanged columns, joint order.

Each change is made to the recordings, weighted least squares is fitted again, and the result is judged as the first one
was: by physically impossible values and by the residual of every joint. Reversed torques need the factors only,
exchanged ones the factors of every equation with every torque (as many passes as joints); positions need a pass for
each change, and are tried for the joints that look worst, for the others if that cures nothing. Signs are tried in all
recordings alike and in each that looks worst; torques of several joints may be reversed together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import Any

import numpy as np

from ..errors import SteelyardError
from ..estimate import Estimate, group_of, stacked_system, weighted
from ..judge import Impossible, MotionExtent, impossible_values, inertia_at_postures, squares_by_equation
from ..observe import Equations, Observations, ResolvedPreparation, busiest_part, reduce_rows
from ..recording import Recording
from .inputs import Labelled, sources_of

MOST_SAMPLES = 20_000
"""Samples of each recording that a change is tried on."""

SUSPECTS = 4
"""Joints whose positions are tried: those with impossible values, then those with the largest residuals."""

WORST_RECORDINGS = 3
"""Recordings in which a sign is tried alone: those with the largest residuals."""

_BLOCKS = 1
_MATERIAL = 0.05
# A change is a cure if it halves the residuals, or if fewer values are impossible and small residuals stay so; where
# nothing is impossible any more, or what is explains a far smaller part of the torque, residuals may be those of a
# joint whose torque is little above its noise. Exchanged columns of a healthy log fit about as badly as before and may
# leave fewer impossible values by chance: a right exchange fits better, too.
_CURED, _SMALL, _MODERATE, _NO_WORSE, _FAR_LESS, _BETTER = 0.5, 0.1, 0.3, 1.1, 0.25, 0.8


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
class _Fit:
    """How possible and how good a fit is.

    Attributes:
        impossible: Count of impossible values that matter.
        part: Part of its torque that the largest of them explains.
        misfit: Relative residual, root mean square over the equations.
        suspects: Joints, those that look worst first.
        recordings: Recordings, those with the largest residuals first.
    """

    impossible: int
    part: float
    misfit: float
    suspects: tuple[str, ...]
    recordings: tuple[str, ...]

    def cures(self, before: _Fit, *, exchanged: bool = False) -> bool:
        """Return whether this fit, of columns that may be exchanged, explains what is wrong with another."""
        if self.impossible > before.impossible:
            return False
        largest = _MODERATE if self.part <= _FAR_LESS * before.part else _SMALL
        no_worse = _BETTER if exchanged else _NO_WORSE
        fewer = self.impossible < before.impossible and self.misfit <= min(largest, no_worse * before.misfit)
        return fewer or self.misfit <= _CURED * before.misfit

    @property
    def is_clear(self) -> bool:
        """Whether nothing is impossible and residuals are small."""
        return self.impossible == 0 and self.misfit <= _SMALL

    @property
    def rank(self) -> tuple[int, int]:
        """Order of cures: residuals in steps of 6 %, then impossible values.

        A reversed position and a reversed torque of one joint may differ by as little as a tenth.
        """
        return round(40 * float(np.log10(max(self.misfit, 1e-6)))), self.impossible


@dataclass(frozen=True)
class _Trials:
    """Faults that were assumed and corrected, and those whose correction cures the estimate."""

    judged: Callable[[Observations], _Fit]
    before: _Fit
    cures: list[tuple[_Fit, LogFault]]

    def try_all(self, changes: Iterable[tuple[LogFault, Observations | None]]) -> None:
        """Try corrections of faults; None is one that leaves nothing to fit."""
        for fault, changed in changes:
            fit = None if changed is None else self.judged(changed)
            if fit is not None and fit.cures(self.before, exchanged=fault.code.startswith("exchanged")):
                self.cures.append((fit, fault))

    def try_several_signs(self, equations: Equations, observations: Observations) -> None:
        """Try reversed torques of two joints and more, as long as one or two more cure what those before leave."""
        chosen, left = tuple[str, ...](), self.before
        while not left.is_clear:
            fits: dict[tuple[str, ...], _Fit] = {}
            rest = [joint for joint in equations.joints if joint not in chosen]
            for more in chain(combinations(rest, 1), combinations(rest, 2)):
                which = frozenset(one for one in equations.kinds_joints if one[1] in (*chosen, *more))
                fits[more] = self.judged(_with_reversed(observations, which, None))
            # Two must cure what either alone leaves: else a joint that hardly shows could join one that is reversed.
            fewer = {more: [left, *(fits[one,] for one in more if len(more) > 1)] for more in fits}
            cures = [more for more, fit in fits.items() if all(fit.cures(one) for one in fewer[more])]
            if not cures:
                return
            best = min(cures, key=lambda more: fits[more].rank)
            chosen, left = (*chosen, *best), fits[best]
            if len(chosen) > 1:
                self.cures.append((left, _reversed_torques(equations, chosen)))

    def is_clear(self, joints: Sequence[str] | None = None) -> bool:
        """Return whether a cure leaves nothing to be explained: any, or one that concerns these joints."""
        return any(fit.is_clear and joints in (None, fault.joints) for fit, fault in self.cures)


def likely_cause(
    training: Sequence[Labelled],
    equations: Equations,
    resolved: ResolvedPreparation,
    observations: Observations,
    extent: MotionExtent,
    hidden: Sequence[str],
) -> LogFault | None:
    """Return the change to the log that makes the estimate possible, or its residuals half as large.

    Args:
        training: The recordings, of training and validation; of streams only the signs of torques are tried.
        equations: Model, base parameters and rows.
        resolved: Filters and decimation.
        observations: Factors of the rows as they are.
        extent: How far and how hard the joints moved.
        hidden: Joints whose torque does not stand out: their values count for nothing.
    """
    inertia = inertia_at_postures(equations, extent)

    def judged(changed: Observations) -> _Fit:
        estimate = weighted(changed, stacked_system(changed, equations.names).columns)
        impossible = impossible_values(equations, estimate, changed, extent, inertia)
        return _judged(equations, changed, estimate, [one for one in impossible if one.joint not in hidden])

    # Of every recording the part in which all joints move most: few and large factors, since every change is a fit.
    short = [(label, busiest_part(recording, MOST_SAMPLES)) for label, recording in training]
    if short:
        observations = _rows(short, equations, resolved) or observations
    before = judged(observations)
    trials = _Trials(judged, before, [])
    suspects = before.suspects[:SUSPECTS]
    trials.try_all(_torque_signs(equations, observations))
    if not trials.is_clear():
        trials.try_several_signs(equations, observations)
    if not trials.is_clear(equations.joints):
        trials.try_all(_exchanged_torques(short, equations, resolved))
        joints = equations.joints
        pairs = list(combinations(sorted(suspects, key=joints.index), 2))
        changed = chain(_reversed_positions(short, equations, suspects), _exchanged_motions(short, equations, pairs))
        trials.try_all((fault, _rows(recordings, equations, resolved)) for fault, recordings in changed)
        if not trials.cures:  # the joints that look worst may be others than those with the fault
            rest = [pair for pair in combinations(joints, 2) if pair not in pairs]
            changed = chain(
                _reversed_positions(short, equations, before.suspects[SUSPECTS:]),
                _exchanged_motions(short, equations, [*rest, joints]),
            )
            trials.try_all((fault, _rows(recordings, equations, resolved)) for fault, recordings in changed)
    if len(before.recordings) > 1 and not trials.is_clear():
        for label in before.recordings[:WORST_RECORDINGS]:
            trials.try_all(_torque_signs(equations, observations, label))
            for fault, recordings in _reversed_positions(short, equations, suspects, label):
                trials.try_all([(fault, _rows(recordings, equations, resolved))])
    if not trials.cures:
        return None
    fit, fault = min(trials.cures, key=lambda one: one[0].rank)
    fewer = f"impossible values are {fit.impossible} instead of {before.impossible}, and " if before.impossible else ""
    text = (
        f"{fault.text}: so changed, {fewer}the joints' residuals are {100 * fit.misfit:.2g} instead of "
        f"{100 * before.misfit:.2g} % of their torques"
    )
    return replace(fault, text=text, misfit=fit.misfit)


def _rows(recordings: Sequence[Labelled], equations: Equations, resolved: ResolvedPreparation) -> Observations | None:
    """Return the factors of changed recordings; None where the change leaves nothing that can be fitted."""
    try:
        return reduce_rows(sources_of(recordings, equations, resolved), blocks=_BLOCKS)
    except SteelyardError:
        return None


def _judged(
    equations: Equations, observations: Observations, estimate: Estimate, impossible: Sequence[Impossible]
) -> _Fit:
    shares: dict[str, list[float]] = {}
    squares = squares_by_equation(equations, observations)
    for (_, joint), columns, square in zip(equations.kinds_joints, equations.columns, squares, strict=True):
        if square is not None and square[-1, -1] > 0:
            error = np.append(-estimate.full_values(columns), 1.0)
            shares.setdefault(joint, []).append(min(1.0, float(error @ square @ error / square[-1, -1])))
    counted = [one for one in impossible if one.share > _MATERIAL]
    worst = sorted(shares, key=lambda joint: -max(shares[joint]))
    suspects = tuple(dict.fromkeys([*(one.joint for one in counted), *worst]))
    misfit = float(np.sqrt(np.mean([x for own in shares.values() for x in own])))
    part = max((one.share for one in counted), default=0.0)
    return _Fit(len(counted), part, misfit, suspects, _worst_recordings(observations, estimate))


def _worst_recordings(observations: Observations, estimate: Estimate) -> tuple[str, ...]:
    """Return the recordings, those with the largest weighted residuals over their torques first."""
    place, weights = {name: k for k, name in enumerate(estimate.columns)}, estimate.weights
    sums: dict[str, list[float]] = {}
    for factor in observations.factors:
        weight = weights.get(group_of(factor), 0.0)
        values = np.array([estimate.values[place[name]] if name in place else 0.0 for name in factor.columns])
        torque = weight * factor.triangle[:, -1]
        total = sums.setdefault(factor.recording, [0.0, 0.0])
        total[0] += float(np.sum((torque - weight * factor.triangle[:, :-1] @ values) ** 2))
        total[1] += float(np.sum(torque**2))
    return tuple(sorted(sums, key=lambda label: -sums[label][0] / max(sums[label][1], 1e-300)))


def _in_one(fault: LogFault, label: str | None) -> LogFault:
    """Return a fault as it is described where only one recording has it; None: all have."""
    if label is None:
        return fault
    remedy = fault.remedy.replace("in the set-up", f"in a set-up for '{label}' alone")
    return replace(fault, text=f"{fault.text} in '{label}'", remedy=remedy, fix={})


def _torque_signs(
    equations: Equations, observations: Observations, label: str | None = None
) -> Iterator[tuple[LogFault, Observations]]:
    """Yield torques that may be reversed, in all recordings or in one: of all joints, of one joint, of one kind."""
    fault = _reversed_torques(equations, equations.joints)
    yield _in_one(fault, label), _with_reversed(observations, frozenset(equations.kinds_joints), label)
    kinds = tuple(dict.fromkeys(kind for kind, _ in equations.kinds_joints))
    for joint in equations.joints:
        fault = _reversed_torques(equations, (joint,))
        own = {fault.text: [one for one in equations.kinds_joints if one[1] == joint]}
        if len(kinds) > 1 and label is None:
            own |= {f"the {kind} torque of {joint} seems reversed": [(kind, joint)] for kind in kinds}
        for text, which in own.items():
            yield _in_one(replace(fault, text=text), label), _with_reversed(observations, frozenset(which), label)


def _reversed_torques(equations: Equations, joints: Sequence[str]) -> LogFault:
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


def _with_reversed(observations: Observations, which: frozenset[tuple[str, str]], label: str | None) -> Observations:
    """Return the factors with some torques reversed, in all recordings or in one."""
    factors = []
    for factor in observations.factors:
        if (factor.kind, factor.joint) in which and label in (None, factor.recording):
            triangle = factor.triangle.copy()
            triangle[:, -1] *= -1
            factor = replace(factor, triangle=triangle)
        factors.append(factor)
    return replace(observations, factors=tuple(factors))


def _exchanged_torques(
    short: Sequence[Labelled], equations: Equations, resolved: ResolvedPreparation
) -> Iterator[tuple[LogFault, Observations]]:
    """Yield factors with the torques of two joints exchanged, in every channel or in one."""
    joints = equations.joints
    channels = tuple(dict.fromkeys(c.name for _, one in short for c in one.torques if c.kind != "wrench"))
    places = np.arange(len(joints))
    # With torques moved on by s joints, equation i has the torque of joint i + s.
    moved = [
        _rows([(label, _reordered(one, np.roll(places, -s), channels)) for label, one in short], equations, resolved)
        for s in range(len(joints) if short else 0)
    ]
    kinds = tuple(dict.fromkeys(kind for kind, _ in equations.kinds_joints))
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


def _reversed_positions(
    short: Sequence[Labelled], equations: Equations, suspects: Sequence[str], label: str | None = None
) -> Iterator[tuple[LogFault, list[Labelled]]]:
    """Yield recordings with the position of a joint reversed, in all of them or in one."""
    joints = equations.joints
    for joint in suspects if short else ():
        signs = np.where(np.array(joints) == joint, -1.0, 1.0)[:, None]
        remedy = f"reverse it in the set-up: sign = {[int(s) for s in signs[:, 0]]} for q (and qd)"
        recordings = [
            (name, _with_motion(one, lambda rows, signs=signs: signs * rows) if label in (None, name) else one)
            for name, one in short
        ]
        fault = LogFault(
            (joint,), f"the position of {joint} seems reversed", remedy, code="position_sign",
            fix={"recording.q.sign": {joint: -1}, "recording.qd.sign": {joint: -1}},
        )  # fmt: skip
        yield _in_one(fault, label), recordings


def _exchanged_motions(
    short: Sequence[Labelled], equations: Equations, groups: Sequence[Sequence[str]]
) -> Iterator[tuple[LogFault, list[Labelled]]]:
    """Yield recordings with positions of joints in reverse order, alone or with their torques: of pairs, or of all."""
    joints = equations.joints
    channels = tuple(dict.fromkeys(c.name for _, one in short for c in one.torques if c.kind != "wrench"))
    for group in groups if short else ():
        order, places = np.arange(len(joints)), [joints.index(joint) for joint in group]
        order[places] = places[::-1]
        named = f"of {group[0]} and {group[1]} seem exchanged" if len(group) == 2 else "seem in reverse order"
        swapped = [(label, _with_motion(one, lambda rows, order=order: rows[order])) for label, one in short]
        right = [joints[k] for k in order]
        of_motion = {"recording.q.joints": right, "recording.qd.joints": right}
        text = f"the position columns {named}"
        yield LogFault(tuple(group), text, _exchange("q"), code="exchanged_positions", fix=of_motion), swapped
        text = f"the columns {named}, positions and torques"
        fix = {**of_motion, "recording.torque.joints": right}
        fault = LogFault(tuple(group), text, _exchange("every channel"), code="exchanged_joints", fix=fix)
        yield fault, [(label, _reordered(one, order, channels)) for label, one in swapped]


def _exchanged(joints: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """Return the joints with two of them exchanged."""
    other = {pair[0]: pair[1], pair[1]: pair[0]}
    return [other.get(joint, joint) for joint in joints]


def _exchange(what: str) -> str:
    return f"exchange these columns of {what} in the set-up (columns = ..., or joints = ... in the order of the log)"


def _reordered(recording: Recording, order: np.ndarray, channels: Sequence[str]) -> Recording:
    """Return the recording with the rows of torque channels in another order."""
    torques = tuple(
        replace(channel, values=channel.values[order]) if channel.name in channels else channel
        for channel in recording.torques
    )
    return replace(recording, torques=torques)


def _with_motion(recording: Recording, changed: Callable[[np.ndarray], np.ndarray]) -> Recording:
    """Return the recording with positions and velocities changed alike."""
    qd = None if recording.qd is None else changed(recording.qd)
    return replace(recording, q=changed(recording.q), qd=qd)
