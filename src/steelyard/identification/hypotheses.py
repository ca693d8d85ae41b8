"""Faults of a log that may explain an impossible estimate, tried one by one: signs, degrees, exchanged columns.

Each change is made to the recordings, weighted least squares is fitted again, and the result is judged as the first one
was: by the residual of every joint and by physically impossible values. Positions are tried first on a part of the
worst recording: in degrees of every joint, exchanged and reversed of those that look worst, of the others if that cures
nothing. Signs are tried in all recordings alike and in each that looks worst; torques of several joints may be reversed
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain, combinations
from typing import Any, cast

import numpy as np

from ..errors import EstimateError, SteelyardError
from ..estimate import Estimate, NoiseGroup, group_of, joint_deviations, stacked_system, weighted
from ..judge import Impossible, MotionExtent, impossible_values, inertia_at_postures, squares_by_equation
from ..observe import (
    Equations,
    Observations,
    ResolvedPreparation,
    busiest_part,
    reduce_rows,
    resolve_preparation,
)
from .findings import Diagnosed
from .gravity_fits import relative_residual
from .inputs import Labelled, feels_gravity, sources_of
from .log_faults import (
    ChangedRows,
    ColumnChange,
    LogFault,
    exchanged_motions,
    exchanged_torques,
    positions_in_degrees,
    reversed_positions,
    reversed_torques,
    shifted_motions,
    torque_signs,
    unchanged,
    with_reversed,
)
from .plain_fit import PlainFit

MOST_SAMPLES = 20_000
"""Samples of each recording that a change is tried on."""

SUSPECTS = 4
"""Joints whose positions are tried: those with impossible values, then those with the largest residuals."""

WORST_RECORDINGS = 3
"""Recordings in which a sign is tried alone: those with the largest residuals."""

_CURED_TEXT = "so changed, the joints' residuals are {:.2g} instead of {:.2g} %"
FAR_BETTER, SMALL_RESIDUAL, FEW_SAMPLES, ROWS_TO_TRY = 1.3, 0.05, 4_000, 4
"""Positions and stamps are wrong if residuals are so many times smaller with them changed, and small (threefold for
stamps), on so many samples of each recording, or so many decimated rows for each parameter."""
STEP, FARTHEST, FINE = np.log(1.25), np.log(10.0), 0.003
"""Logarithms of factors of the stamps: steps in which they are tried, the largest, and how close the best is found."""

Deviations = Mapping[NoiseGroup, float]

# Few rows are fitted better than many; still a cure of the whole may be a little worse on a part.
_SLACK = 1.2
_MATERIAL = 0.05
# A change is a cure if it halves the residuals, or if fewer values are impossible and small residuals stay so; where
# nothing is impossible any more, or what is explains a far smaller part of the torque, residuals may be those of a
# joint whose torque is little above its noise. Exchanged columns of a healthy log fit about as badly as before and may
# leave fewer impossible values by chance, and so may a joint in degrees, which hardly moves, or an axis that points the
# other way: what is right fits better, too.
_MAY_FIT_BY_CHANCE = ("exchanged", "position_unit", "joint_sign")
_CURED, _SMALL, _MODERATE, _NO_WORSE, _FAR_LESS, _BETTER = 0.5, 0.1, 0.3, 1.1, 0.25, 0.8


@dataclass(frozen=True, eq=False)
class _Fit:
    """How possible and how good a fit is; what costs more than its residuals is found when it is asked for.

    Attributes:
        misfit: Relative residual, root mean square over the equations.
        worst: Joints, those with the largest residuals first.
        find_impossible: Returns the impossible values that matter.
        find_recordings: Returns the recordings, those with the largest residuals first.
    """

    misfit: float
    worst: tuple[str, ...]
    find_impossible: Callable[[], Sequence[Impossible]]
    find_recordings: Callable[[], tuple[str, ...]]

    @cached_property
    def _counted(self) -> Sequence[Impossible]:
        return self.find_impossible()

    @cached_property
    def recordings(self) -> tuple[str, ...]:
        """Recordings, those with the largest residuals first."""
        return self.find_recordings()

    @property
    def impossible(self) -> int:
        """Count of impossible values that matter."""
        return len(self._counted)

    @property
    def part(self) -> float:
        """Part of its torque that the largest impossible value explains."""
        return max((one.share for one in self._counted), default=0.0)

    @property
    def suspects(self) -> tuple[str, ...]:
        """Joints, those that look worst first."""
        return tuple(dict.fromkeys([*(one.joint for one in self._counted), *self.worst]))

    def cures(self, before: _Fit, *, must_fit_better: bool = False) -> bool:
        """Return whether this fit explains what is wrong with another; some changes must fit better, too."""
        no_worse = _BETTER if must_fit_better else _NO_WORSE
        is_better = self.misfit <= _CURED * before.misfit
        # Most changes fail by their residuals: only of the others impossible values are counted.
        if self.misfit > before.most_to_cure or self.impossible > before.impossible:
            return False
        largest = _MODERATE if self.part <= _FAR_LESS * before.part else _SMALL
        fewer = self.impossible < before.impossible and self.misfit <= min(largest, no_worse * before.misfit)
        return fewer or is_better

    @property
    def most_to_cure(self) -> float:
        """The largest residual with which another fit can cure this one."""
        return max(_CURED * self.misfit, min(_MODERATE, _NO_WORSE * self.misfit))

    @property
    def is_clear(self) -> bool:
        """Whether nothing is impossible and residuals are small."""
        return self.misfit <= _SMALL and self.impossible == 0

    @property
    def rank(self) -> tuple[int, int]:
        """Order of cures: residuals in steps of 6 %, then impossible values.

        A reversed position and a reversed torque of one joint may differ by as little as a tenth.
        """
        return round(40 * float(np.log10(max(self.misfit, 1e-6)))), self.impossible


@dataclass(frozen=True)
class _Trials:
    """Faults that were assumed and corrected, and those whose correction cures the estimate.

    Attributes:
        judged: Fits and judges rows; also given the deviations of their noise where these are known.
        before: Fit of the rows as they are.
        deviations: Deviations of these rows' noise. They are estimated from every joint's own equations, so that the
            signs of torques do not change them.
        cures: Faults whose correction cures the estimate, with the fit.
    """

    judged: Callable[[Observations, Deviations | None], _Fit]
    before: _Fit
    deviations: Deviations
    cures: list[tuple[_Fit, LogFault]] = field(default_factory=list)

    def try_all(self, changes: Iterable[tuple[LogFault, Observations | None]], *, signs: bool = False) -> None:
        """Try corrections of faults, perhaps of signs of torques alone; None is one that leaves nothing to fit."""
        for fault, changed in changes:
            fit = None if changed is None else self._fit(changed, self.deviations if signs else None)
            if fit is not None and fit.cures(self.before, must_fit_better=fault.code.startswith(_MAY_FIT_BY_CHANCE)):
                self.cures.append((fit, fault))

    def try_columns(
        self, changes: Iterable[tuple[LogFault, ColumnChange]], rows: ChangedRows, label: str | None = None
    ) -> None:
        """Try changes of columns in all recordings, or in one; those that do not fit a part of one are left out."""
        which = label or self.before.recordings[0]
        part = self._judged_part(rows, unchanged(rows.equations), which)
        for fault, change in changes:
            fit = None if part is None else self._judged_part(rows, change, which)
            if part is None or fit is None or fit.misfit <= _SLACK * max(part.most_to_cure, self.before.most_to_cure):
                self.try_all([(fault, rows.of(change, label))])

    def try_positions(self, rows: ChangedRows, suspects: Sequence[str]) -> None:
        """Try positions of the joints that look worst; if nothing cures, those of the others.

        Degrees of one joint look like reversed or exchanged positions of others, so that they are tried of all.
        """
        equations, joints = rows.equations, rows.equations.joints
        pairs = list(combinations(sorted(suspects, key=joints.index), 2))
        others = [joint for joint in self.before.suspects if joint not in suspects]
        self.try_columns(positions_in_degrees(equations, [*suspects, *others]), rows)
        self.try_columns(chain(reversed_positions(equations, suspects), exchanged_motions(equations, pairs)), rows)
        if not self.cures:
            rest = [*(pair for pair in combinations(joints, 2) if pair not in pairs), joints]
            self.try_columns(chain(reversed_positions(equations, others), exchanged_motions(equations, rest)), rows)
        if not self.is_clear():
            self.try_columns(shifted_motions(equations), rows)

    def _judged_part(self, rows: ChangedRows, change: ColumnChange, label: str) -> _Fit | None:
        """Return the fit of a changed part of a recording; None if that is too short for it."""
        changed = rows.of_part(change, label)
        return None if changed is None else self._fit(changed, None)

    def _fit(self, changed: Observations, deviations: Deviations | None) -> _Fit | None:
        """Return the fit of changed rows; None if they are too few for it."""
        try:
            return self.judged(changed, deviations)
        except EstimateError:
            return None

    def try_several_signs(self, equations: Equations, observations: Observations) -> None:
        """Try reversed torques of two joints and more, as long as one or two more cure what those before leave."""
        chosen, left = tuple[str, ...](), self.before
        while not left.is_clear:
            fits: dict[tuple[str, ...], _Fit] = {}
            rest = [joint for joint in equations.joints if joint not in chosen]
            for more in chain(combinations(rest, 1), combinations(rest, 2)):
                which = frozenset(one for one in equations.kinds_joints if one[1] in (*chosen, *more))
                fits[more] = self.judged(with_reversed(observations, which, None), self.deviations)
            # Two must cure what either alone leaves: else a joint that hardly shows could join one that is reversed.
            fewer = {more: [left, *(fits[one,] for one in more if len(more) > 1)] for more in fits}
            cures = [more for more, fit in fits.items() if all(fit.cures(one) for one in fewer[more])]
            if not cures:
                return
            best = min(cures, key=lambda more: fits[more].rank)
            chosen, left = (*chosen, *best), fits[best]
            if len(chosen) > 1:
                self.cures.append((left, reversed_torques(equations, chosen)))

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

    def judged(changed: Observations, deviations: Deviations | None) -> _Fit:
        estimate = weighted(changed, stacked_system(changed, equations.names).columns, deviations)

        def impossible() -> list[Impossible]:
            found = impossible_values(equations, estimate, changed, extent, inertia)
            return [one for one in found if one.joint not in hidden and one.share > _MATERIAL]

        return _judged(equations, changed, estimate, impossible)

    # Of every recording the part in which all joints move most: few and large factors, since every change is a fit.
    short = [(label, busiest_part(recording, MOST_SAMPLES)) for label, recording in training]
    rows = ChangedRows(short, equations, resolved)
    observations = rows.plain or observations
    deviations = joint_deviations(observations)
    before = judged(observations, deviations)
    trials = _Trials(judged, before, deviations)
    suspects = before.suspects[:SUSPECTS]
    trials.try_all(torque_signs(equations, observations), signs=True)
    if not trials.is_clear():
        trials.try_several_signs(equations, observations)
    if short and not trials.is_clear(equations.joints):
        trials.try_all(exchanged_torques(rows, equations))
        trials.try_positions(rows, suspects)
    if len(before.recordings) > 1 and not trials.is_clear():
        for label in before.recordings[:WORST_RECORDINGS]:
            trials.try_all(torque_signs(equations, observations, label), signs=True)
            if short:
                trials.try_columns(reversed_positions(equations, suspects, label), rows, label)
    if not trials.cures:
        return None
    fit, fault = min(trials.cures, key=lambda one: one[0].rank)
    fewer = f"impossible values are {fit.impossible} instead of {before.impossible}, and " if before.impossible else ""
    now, then = f"{100 * fit.misfit:.2g}", f"{100 * before.misfit:.2g}"
    residuals = f"stay {now}" if now == then else f"are {now} instead of {then}"
    text = f"{fault.text}: so changed, {fewer}the joints' residuals {residuals} % of their torques"
    return replace(fault, text=text, misfit=fit.misfit)


def _judged(
    equations: Equations,
    observations: Observations,
    estimate: Estimate,
    find_impossible: Callable[[], Sequence[Impossible]],
) -> _Fit:
    shares: dict[str, list[float]] = {}
    squares = squares_by_equation(equations, observations)
    for (_, joint), columns, square in zip(equations.kinds_joints, equations.columns, squares, strict=True):
        if square is not None and square[-1, -1] > 0:
            error = np.append(-estimate.full_values(columns), 1.0)
            shares.setdefault(joint, []).append(min(1.0, float(error @ square @ error / square[-1, -1])))
    worst = tuple(sorted(shares, key=lambda joint: -max(shares[joint])))
    misfit = float(np.sqrt(np.mean([x for own in shares.values() for x in own])))
    return _Fit(misfit, worst, find_impossible, lambda: _worst_recordings(observations, estimate))


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


def log_fault_found(fault: LogFault) -> Diagnosed:
    """Return a fault that was tried and cures the estimate."""
    return Diagnosed(
        fault.code, "bad", fault.text, fault.remedy, ", ".join(fault.joints) if len(fault.joints) < 3 else "",
        value=fault.misfit, fix=fault.fix,
    )  # fmt: skip


def wrong_positions(fit: PlainFit) -> list[Diagnosed]:
    """Return the position of a joint that is reversed or in degrees, if the fit with it corrected is far better.

    What these do to a joint that little depends on, such as the last one, leaves no residual that is gross.
    """
    rows = ChangedRows(_few_samples(fit), fit.equations, fit.resolved)
    joints, names = fit.equations.joints, fit.equations.names
    if rows.plain is None or fit.computed_to is not None:
        return []
    faults = {}
    for fault, change in chain(positions_in_degrees(fit.equations, joints), reversed_positions(fit.equations, joints)):
        changed = rows.of(change)
        if changed is not None:
            faults[fault.code, fault.joints] = relative_residual(changed, names), fault
    then = relative_residual(rows.plain, names)
    now, fault = min(faults.values(), key=lambda one: one[0], default=(then, None))
    if fault is None or FAR_BETTER * now > then or now > SMALL_RESIDUAL:
        return []  # beside large residuals of another cause a joint that hardly moves may fit better by chance
    return [
        log_fault_found(replace(fault, text=f"{fault.text}: {_CURED_TEXT.format(100 * now, 100 * then)}", misfit=now))
    ]


def wrong_stamps(fit: PlainFit) -> list[Diagnosed]:
    """Return stamps whose steps are all too long or too short by a factor, if the fit with it corrected is far better.

    Inertias take up any factor of accelerations; first moments do not, as they have weight too.
    """
    few, names = _few_samples(fit), fit.equations.names
    if fit.computed_to is not None or not feels_gravity(fit.model):
        return []

    @cache
    def residual(exponent: float) -> float:
        factor = float(np.exp(exponent))
        changed = [
            (label, replace(one, time=one.time * factor, qd=None if one.qd is None else one.qd / factor))
            for label, one in few
        ]
        try:
            resolved = resolve_preparation(fit.resolved.at_rate(1 / factor), [one for _, one in changed])
            return relative_residual(reduce_rows(sources_of(changed, fit.equations, resolved)), names)
        except SteelyardError:
            return np.inf

    then, first = residual(0.0), min((-STEP, STEP), key=residual)
    if residual(first) >= then:
        return []
    while abs(first) < FARTHEST and residual(first + np.copysign(STEP, first)) < residual(first):
        first += float(np.copysign(STEP, first))
    if FAR_BETTER * residual(first) > then or residual(first) > 3 * SMALL_RESIDUAL:
        return []
    from scipy.optimize import minimize_scalar  # takes a while to load, and only wrong stamps need it

    near = first - STEP, first + STEP
    best = cast(Any, minimize_scalar(residual, bounds=near, options={"xatol": FINE})).x
    now, factor = residual(float(best)), float(np.exp(best))
    which = f"{factor:.3g} times too short" if factor > 1 else f"{1 / factor:.3g} times too long"
    text = f"the steps of the stamps seem {which}: {_CURED_TEXT.format(100 * now, 100 * then)}"
    remedy = "check rate or time_unit in [recording], and how often the recorder wrote a row"
    return [Diagnosed("stamps", "bad", text, remedy, value=factor)]


def _few_samples(fit: PlainFit) -> list[Labelled]:
    """Return parts of all recordings, as short as a fit allows."""
    samples = max(FEW_SAMPLES, ROWS_TO_TRY * max(map(len, fit.equations.columns)) * fit.resolved.decimation)
    return [(label, busiest_part(one, samples)) for label, one in fit.short]
