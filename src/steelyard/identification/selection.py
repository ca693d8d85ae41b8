"""Which effects a model needs: forward selection by cross-validation over blocks of time of the training recordings.

One pass over the rows of a model with all candidates gives factors by block of time; all that follows needs these
alone. Candidates are an effect of all joints, or of one joint. In every step each is added to the model in turn, the
parameters are estimated from all blocks but one and the torques of that block predicted. The candidate that reduces
the squared error of prediction most, less one standard error of that over the blocks, joins the model if the reduction
is material and more than two standard errors.

Three things keep evidence honest. Blocks are contiguous, so that correlated noise is none. Where a motion repeats, all
repetitions of its parts are left out together: else the model would be asked for what it was fitted to. And links are
held near a reference: free ones, which need not be possible bodies, stand in for effects that the model lacks, and
hide them.

Recordings for validation are no argument of anything here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..effects import EFFECTS
from ..estimate import with_correlated_noise
from ..model import Model, build_model
from ..observe import Equations, Observations, ResolvedPreparation, RowSource, equations_of, reduce_rows
from ..progress import Progress, silent
from ..robot import Robot
from ..signals import repetition
from ..text import short_repr
from .inputs import Labelled, inertias_of, sources_of, weighted_fit
from .payload_gains import gains_used
from .regularisation import link_rows
from .settings import Settings

FOLDS = 16
"""Parts of the training recordings, contiguous in time, each left out once."""
STANDARD_ERRORS = 2.0
"""A reduction must be this many standard errors."""
FIRST_GAIN = 0.05
"""Least reduction of the squared error by the first candidate: less is not worth another model."""
LEAST_GAIN = 0.01
"""Least reduction by the others."""
MOST_STEPS = 30
LINK_DEVIATION = 0.2
"""Relative deviation of links from their reference while effects are chosen."""
SHRINKAGE = 0.01
"""By this part of its own information every candidate is drawn to zero: of two that predict alike, the smaller one."""
WHOLE_RECORDINGS = 4
"""From so many recordings on, whole ones are left out."""

CANDIDATES = ("off", "Fvv", "Fvr", "Fvt", "Fg", "Fs3", "Fs4", *(f"Fd{k}" for k in range(1, 7)))
"""Effects that are tried on the side of the gears that is measured, and of coupled motors; ``tilt`` too. Slower
Stribeck velocities than those are near standstill, which is left out."""

_BLOCKS, _LONGEST = 20, 300_000  # of a long log motions are compared by its beginning: what is read stays in memory
_RIDGE = 1e-10
_DEPENDENT = 1e-6


@dataclass(frozen=True)
class SelectionStep:
    """An effect that joined the model.

    Attributes:
        effect: As ``--effects`` takes it; ``Fgm2`` is that of joint 2 alone.
        gain_percent: By how much it reduced the squared error of torques predicted in left-out blocks [%].
        standard_errors: That, over its standard error.
    """

    effect: str
    gain_percent: float
    standard_errors: float


@dataclass(frozen=True, eq=False)
class Selection:
    """How the effects of a model were chosen.

    Attributes:
        effects: Effects of the chosen model.
        plain: Those that it began with.
        steps: What joined, in order.
        tried: Candidates of the first step.
        folds: Blocks of time, each left out once.
    """

    __repr__ = short_repr

    effects: tuple[str, ...]
    plain: tuple[str, ...]
    steps: tuple[SelectionStep, ...]
    tried: int
    folds: int

    @property
    def text(self) -> str:
        """The path of the choice in one sentence."""
        if not self.steps:
            return f"of {self.tried} effects tried none predicts left-out motion better: the model is the plain one"
        listed = ", ".join(
            f"{one.effect} -{one.gain_percent:.0f} % ({one.standard_errors:.1f} s.e.)" for one in self.steps
        )
        return (
            f"{self.tried} effects tried on {self.folds} left-out blocks of the training data, chosen in this order, "
            f"with the squared error of prediction that each takes away: {listed}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        steps = [
            {"effect": one.effect, "gain_percent": one.gain_percent, "standard_errors": one.standard_errors}
            for one in self.steps
        ]
        return {"plain": list(self.plain), "steps": steps, "tried": self.tried, "folds": self.folds}


def select_effects(
    model: Model,
    recordings: Sequence[Labelled],
    resolved: ResolvedPreparation,
    prior: Robot | None,
    settings: Settings,
    progress: Progress = silent,
    *,
    without: Collection[tuple[str, str]] = (),
) -> tuple[Model, Selection]:
    """Return the model with the effects that its training recordings ask for, and how they were chosen.

    Args:
        model: The plain model.
        recordings: The recordings to fit.
        resolved: Their preparation.
        prior: The robot whose link inertias are trusted; None: links are held near those of usual build.
        settings: Robust weights, if any, and threads.
        progress: Progress callback, called with done and total.
        without: Equations that are left out.
    """
    sources, observations, plain = weighted_fit(equations_of(model, without=without), recordings, resolved, settings)
    widening = np.median(with_correlated_noise(sources, plain, observations).estimate.widening)
    progress(1, 3)
    are_gains_known = all(one.is_known for one in gains_used(sources))
    larger = _with_candidates(model, inertias_of(model, plain), are_gains_known)
    equations, folds = equations_of(larger, without=without), Folds(recordings)
    sources: Sequence[RowSource] = sources_of(recordings, equations, resolved)
    if settings.robust is not None:
        # Outliers are what the model with all candidates does not explain: the plain one would take effects for them.
        sources = weighted_fit(equations, recordings, resolved, settings)[0]
    is_known = "balancer" not in model.effects
    scales = [one.name for one in larger.parameters if one.effect == "balancer" and is_known]
    squares = _Squares(reduce_rows(sources, blocks=folds.blocks, threads=settings.threads), equations, folds, scales)
    progress(2, 3)
    units = _candidates(model, equations)
    rows = link_rows(equations, equations.names, prior) * (widening / LINK_DEVIATION)
    steps, added = _forward(squares, _columns(equations, model.effects), units, rows.T @ rows)
    selection = Selection((*model.chosen_effects, *added), model.chosen_effects, steps, len(units), squares.folds)
    progress(3, 3)
    if not steps:
        return model, selection
    chosen = build_model(
        model.robot, selection.effects, model.measured, model.payload, model.sign_width, model.friction
    )
    return chosen, replace(selection, effects=chosen.chosen_effects)


def _with_candidates(model: Model, inertias: Mapping[str, float], are_gains_known: bool) -> Model:
    sides = ("m",) if model.measured in ("motor", "difference") else ("l",)
    sides += ("c",) if sides == ("m",) and model.robot.gear_couplings else ()
    wanted = [name for side in sides for one in CANDIDATES if (name := f"{one}{side}") in EFFECTS]
    setup = ["tilt"] if model.measured != "difference" and any(model.robot.gravity) else []
    # Stated gains are taken at their word: a payload is found in their units. It has no columns of gains itself.
    is_arm_alone = model.payload == "none" and "inertia" in model.effects
    setup += ["gain"] if not are_gains_known and is_arm_alone else []
    setup += ["balancer"] if model.measured != "difference" and model.robot.balancers else []
    own = {effect for effect in model.effects if effect not in model.joints_of}
    added = [name for name in (*wanted, *setup) if name not in own and name not in model.effects]
    friction = replace(model.friction, inertias=MappingProxyType(dict(inertias)))
    return build_model(
        model.robot, (*model.chosen_effects, *added), model.measured, model.payload, model.sign_width, friction
    )


def _columns(equations: Equations, effects: Sequence[str]) -> list[int]:
    own = {one.name for one in equations.model.parameters if one.effect in effects or one.effect == "payload"}
    return [k for k, name in enumerate(equations.names) if name in own]


def _candidates(model: Model, equations: Equations) -> dict[str, list[int]]:
    """Return the columns of every candidate by its name in ``--effects``: whole effects, then those of one joint."""
    parameters = {one.name: one for one in equations.model.parameters}
    whole: dict[str, list[int]] = {}
    single: dict[str, list[int]] = {}
    for k, name in enumerate(equations.names):
        one = parameters[name]
        if one.effect in model.effects or one.effect == "payload":
            continue
        whole.setdefault(one.effect, []).append(k)
        if one.effect != "tilt":
            single[f"{one.effect}{one.number}"] = [k]
    several = {name: own for name, own in single.items() if len(whole[parameters[equations.names[own[0]]].effect]) > 1}
    return whole | several


class Folds:
    """Blocks of time that are left out together.

    Args:
        recordings: The recordings.
        each: Parts of a motion; by default as many as selection takes.

    Attributes:
        blocks: Into how many blocks of time each recording is to be cut.
    """

    def __init__(self, recordings: Sequence[Labelled], each: int | None = None) -> None:
        self._recordings = tuple(recordings)
        self._after = {label: repetition(one.q[:, :_LONGEST]) for label, one in recordings}
        by_count = 1 if len(recordings) >= WHOLE_RECORDINGS else max(2, round(FOLDS / len(recordings)))
        self._each = each or by_count
        times = [one.samples / after for label, one in recordings if (after := self._after[label])]
        self.blocks = max(_BLOCKS, int(np.ceil(max(times, default=1.0))) * FOLDS)

    def numbered(self, observations: Observations) -> tuple[dict[tuple[str, int], int], int]:
        """Return the fold of every block of time by recording and number, and how many folds there are."""
        blocks: dict[str, set[int]] = {}
        for one in observations.factors:
            blocks.setdefault(one.recording, set()).add(one.block)
        places: dict[tuple[str, int], tuple[int, int]] = {}
        for label, recording in self._recordings:
            own, after = sorted(blocks.get(label, ())), self._after[label]
            times = 1.0 if after is None else recording.samples / after
            each = max(1, min(self._each, int(len(own) / times)))  # not finer than the blocks
            motion = self._same_motion(label)
            for k, number in enumerate(own):
                part = (k + 0.5) / len(own) * times % 1.0
                places[label, number] = motion, int(part * each)
        order = {place: fold for fold, place in enumerate(sorted(set(places.values())))}
        return {block: order[place] for block, place in places.items()}, len(order)

    def _same_motion(self, label: str) -> int:
        """Return the number of the first recording with the motion of another."""
        own = dict(self._recordings)[label]
        return next(k for k, (_, one) in enumerate(self._recordings) if one is own or _is_same(one.q, own.q))


def _is_same(first: np.ndarray, second: np.ndarray) -> bool:
    count = min(first.shape[1], second.shape[1])
    if first.shape[0] != second.shape[0] or 50 * abs(first.shape[1] - second.shape[1]) > count:
        return False
    count = min(count, _LONGEST)
    one, other = (q[:, :count] - q[:, :count].mean(axis=1, keepdims=True) for q in (first, second))
    return bool(np.sum((one - other) ** 2) <= 0.05 * (np.sum(one**2) + np.sum(other**2)))


class _Squares:
    """Sums of squares and products of ``[W y]`` by noise group and fold, y less columns of known values.

    Args:
        observations: The factors.
        equations: Their equations.
        folds: Blocks of time that are left out together.
        known: Columns whose value the robot file gives.
    """

    def __init__(
        self, observations: Observations, equations: Equations, folds: Folds, known: Collection[str] = ()
    ) -> None:
        self.names, self._size = equations.names, len(equations.names)
        place = {name: k for k, name in enumerate(equations.names)}
        fold_of, self.folds = folds.numbered(observations)
        self.groups = sorted({(one.recording, one.kind, one.joint) for one in observations.factors})
        self._squares = np.zeros((len(self.groups), self.folds, self._size + 1, self._size + 1))
        self.rows = np.zeros(len(self.groups))
        for one in observations.factors:
            index = [*(place[name] for name in one.columns), self._size]
            group = self.groups.index((one.recording, one.kind, one.joint))
            fold = fold_of[one.recording, one.block]
            self._squares[group, fold][np.ix_(index, index)] += one.triangle.T @ one.triangle
            self.rows[group] += one.rows
        if known:  # the plain model has balancers by their known scale, a candidate adds the difference to that
            scales, shift = equations.model.robot.values, np.eye(self._size + 1)
            shift[:-1, -1] = [-scales.get(name, 0.0) if name in known else 0.0 for name in equations.names]
            self._squares = shift.T @ self._squares @ shift

    def by_fold(self, weights: np.ndarray) -> np.ndarray:
        """Return the weighted sums over groups (folds, c + 1, c + 1)."""
        return np.tensordot(weights**2, self._squares, axes=1)

    def weights(self, columns: Sequence[int], passes: int = 3) -> np.ndarray:
        """Return one over the standard deviation of each group's residuals, of iterated weighted least squares."""
        weights, totals = np.ones(len(self.groups)), self._squares.sum(axis=1)
        for _ in range(passes):
            with_y = _solution(np.tensordot(weights**2, totals, axes=1), np.array(columns))
            errors = np.einsum("i,gij,j->g", with_y, totals, with_y)
            weights = np.sqrt(self.rows / np.maximum(errors, 1e-300))
        return weights


def _solution(square: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return least squares of some columns as a vector over all, -1 for y: its form is the squared error (c + 1,)."""
    scale = np.sqrt(np.maximum(np.diag(square)[columns], 1e-300))
    inner = square[np.ix_(columns, columns)] / scale[:, None] / scale
    inner[np.diag_indices_from(inner)] += _RIDGE
    found = np.zeros(len(square))
    found[columns] = cho_solve(cho_factor(inner), square[columns, -1] / scale) / scale
    found[-1] = -1.0
    return found


def _forward(
    squares: _Squares, columns: Sequence[int], candidates: Mapping[str, list[int]], links: np.ndarray
) -> tuple[tuple[SelectionStep, ...], list[str]]:
    """Add candidates one after the other; return the steps and the names of those that joined.

    Args:
        squares: Sums of squares of the rows.
        columns: Those of the plain model.
        candidates: Columns of every candidate.
        links: Information of the links' reference on all columns (c + 1, c + 1).
    """
    current, left, steps = list(columns), dict(candidates), list[SelectionStep]()
    further = np.setdiff1d(range(len(links) - 1), columns)
    while left and len(steps) < MOST_STEPS:
        by_fold = squares.by_fold(squares.weights(current))
        prior = links.copy()
        prior[further, further] += SHRINKAGE * by_fold.sum(axis=0)[further, further]
        before, after = _left_out_errors(by_fold, np.array(current), list(left.values()), prior)
        is_known = np.isfinite(after).all(axis=0)  # in every block; else its parameters are not identifiable there
        gains = np.where(is_known, before[:, None] - np.where(is_known, after, 0.0), 0.0)
        gain, error = gains.sum(axis=0), np.sqrt(len(gains)) * gains.std(axis=0, ddof=1)
        least = (LEAST_GAIN if steps else FIRST_GAIN) * before.sum()
        is_enough = is_known & (gain > STANDARD_ERRORS * error) & (gain > least)
        if not is_enough.any():
            break
        best = int(np.argmax(np.where(is_enough, gain - error, -np.inf)))
        name = list(left)[best]
        steps.append(SelectionStep(name, float(100 * gain[best] / before.sum()), float(gain[best] / error[best])))
        current += [k for k in left[name] if k not in current]
        left = {key: rest for key, own in left.items() if (rest := [k for k in own if k not in current])}
    return tuple(steps), _names([one.effect for one in steps])


def _names(joined: Sequence[str]) -> list[str]:
    """Return effects as a model takes them: one of all joints makes those of single joints needless."""
    whole = [name for name in joined if name in EFFECTS]
    return [*whole, *(name for name in joined if name not in EFFECTS and name.rstrip("0123456789") not in whole)]


def _left_out_errors(
    by_fold: np.ndarray, columns: np.ndarray, candidates: Sequence[list[int]], prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared error of each fold, predicted from the others, without and with every candidate.

    The normal equations of the columns are solved once a fold; what a candidate adds follows from its Schur complement.

    Args:
        by_fold: Sums of squares of each fold (folds, c + 1, c + 1).
        columns: Those of the model so far.
        candidates: Columns of every candidate.
        prior: Information that counts beside that of the rows (c + 1, c + 1).

    Returns:
        Errors (folds,), and (folds, candidates): infinite for a candidate that the columns determine.
    """
    total, new = by_fold.sum(axis=0) + prior, np.array(sorted({k for own in candidates for k in own}))
    place = {k: number for number, k in enumerate(new.tolist())}
    places = [[place[k] for k in own] for own in candidates]
    before, after = np.zeros(len(by_fold)), np.zeros((len(by_fold), len(candidates)))
    for fold, left_out in enumerate(by_fold):
        known = total - left_out
        scale = np.sqrt(np.maximum(np.diag(known), 1e-300))
        known = known / scale[:, None] / scale
        inner = known[np.ix_(columns, columns)]
        inner[np.diag_indices_from(inner)] += _RIDGE
        factor = cho_factor(inner)
        projected = cho_solve(factor, known[np.ix_(columns, new)])
        schur = known[np.ix_(new, new)] - known[np.ix_(columns, new)].T @ projected
        found = cho_solve(factor, known[columns, -1])
        rest = known[new, -1] - known[np.ix_(columns, new)].T @ found
        test = left_out / scale[:, None] / scale
        plain = np.zeros(len(test))
        plain[columns], plain[-1] = found, -1.0
        change = np.zeros((len(test), len(new)))
        change[columns], change[new, np.arange(len(new))] = -projected, 1.0
        before[fold] = plain @ test @ plain
        slope, bend = change.T @ (test @ plain), change.T @ test @ change
        for number, own in enumerate(places):
            block = schur[np.ix_(own, own)]
            if np.diag(block).min() < _DEPENDENT:
                after[fold, number] = np.inf
                continue
            step = np.linalg.solve(block + _RIDGE * np.eye(len(own)), rest[own])
            after[fold, number] = before[fold] + 2 * step @ slope[own] + step @ bend[np.ix_(own, own)] @ step
        before[fold] *= scale[-1] ** 2
        after[fold] *= scale[-1] ** 2
    return before, after
