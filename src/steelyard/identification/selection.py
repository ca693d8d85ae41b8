"""Which effects a model needs: forward selection by cross-validation over blocks of time of the training recordings.

One pass over the rows of a model with all candidates gives factors by block of time; all that follows needs these
alone. Candidates are an effect of all joints, or of one joint. In every step each is added to the model in turn, the
parameters are estimated from all blocks but one and the torques of that block predicted. The candidate that reduces
the squared error of prediction most, less one standard error of that over the blocks, joins the model if the reduction
is material and more than two standard errors; the scale of a balancer, one parameter of a known law, needs less.

Three things keep evidence honest. Blocks are contiguous, so that correlated noise is none. Where a motion repeats, all
repetitions of its parts are left out together: else the model would be asked for what it was fitted to. And links are
held near a reference: free ones, which need not be possible bodies, stand in for effects that the model lacks, and
hide them.

No base is exactly level and no balancer exactly as its table says, and free links take over what that does. So neither
is left to chance: tilt and scale are part of every model with chosen effects, where they are drawn to none and to the
known scale as far as the data leave them open.

Recordings for validation are no argument of anything here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ..effects import EFFECTS
from ..estimate import with_correlated_noise
from ..estimators import ESTIMATORS
from ..model import Model, build_model
from ..observe import Equations, ResolvedPreparation, RowSource, equations_of, reduce_rows
from ..progress import Progress, silent
from ..robot import Robot
from ..text import short_repr
from .folds import Folds, FoldSquares, left_out_errors
from .inputs import Labelled, inertias_of, shows_moments, sources_of, weighted_fit
from .payload_gains import gains_used
from .regularisation import link_rows
from .settings import Settings

STANDARD_ERRORS = 2.0
"""A reduction must be this many standard errors."""
FIRST_GAIN = 0.05
"""Least reduction of the squared error by the first candidate: less is not worth another model."""
LEAST_GAIN = 0.01
"""Least reduction by the others."""
LEAST_OF_SCALE, ERRORS_OF_SCALE = 0.002, 1.5
"""Both for the scale of a balancer: one parameter of a known law, tried once, is hardly overfitted."""
KNOWN_CAUSES = ("tilt", "balancer")
"""Effects that are estimated wherever others are chosen."""
MOST_STEPS = 30
LINK_DEVIATION = 0.2
"""Relative deviation of links from their reference while effects are chosen."""
SHRINKAGE = 0.01
"""By this part of its own information every candidate is drawn to zero: of two that predict alike, the smaller one."""

CANDIDATES = ("off", "Fvv", "Fvr", "Fvt", "Fg", "Fs3", "Fs4", *(f"Fd{k}" for k in range(1, 7)))
"""Effects that are tried on the side of the gears that is measured, and of coupled motors; ``tilt`` too. Slower
Stribeck velocities than those are near standstill, which is left out."""


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
        joined = {*self.plain, *(one.effect for one in self.steps)}
        added = [name for name in KNOWN_CAUSES if name in self.effects and name not in joined]
        beside = f"; beside them {' and '.join(added)}, estimated wherever effects are chosen" if added else ""
        return (
            f"{self.tried} effects tried on {self.folds} left-out blocks of the training data, chosen in this order, "
            f"with the squared error of prediction that each takes away: {listed}{beside}"
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
    larger = _with_candidates(sources[0].equations, inertias_of(model, plain), are_gains_known, settings.method)
    equations, folds = equations_of(larger, without=without), Folds(recordings)
    sources: Sequence[RowSource] = sources_of(recordings, equations, resolved)
    if settings.robust is not None:
        # Outliers are what the model with all candidates does not explain: the plain one would take effects for them.
        sources = weighted_fit(equations, recordings, resolved, settings)[0]
    is_known = "balancer" not in model.effects
    scales = [one.name for one in larger.parameters if one.effect == "balancer" and is_known]
    squares = FoldSquares(reduce_rows(sources, blocks=folds.blocks, threads=settings.threads), equations, folds, scales)
    progress(2, 3)
    units = _candidates(model, equations)
    rows = link_rows(equations, equations.names, prior) * (widening / LINK_DEVIATION)
    steps = _forward(squares, _columns(equations, model.effects), units, rows.T @ rows)
    beside = [name for name in KNOWN_CAUSES if name in units] if steps else []
    added = _names(dict.fromkeys([*(one.effect for one in steps), *beside]))
    selection = Selection((*model.chosen_effects, *added), model.chosen_effects, steps, len(units), squares.folds)
    progress(3, 3)
    if not steps:
        return model, selection
    chosen = build_model(
        model.robot, selection.effects, model.measured, model.payload, model.sign_width, model.friction
    )
    return chosen, replace(selection, effects=chosen.chosen_effects)


def _with_candidates(equations: Equations, inertias: Mapping[str, float], are_gains_known: bool, method: str) -> Model:
    """Return the model of equations with all candidates that the method can hold."""
    model = equations.model
    sides = ("m",) if model.measured in ("motor", "difference") else ("l",)
    sides += ("c",) if sides == ("m",) and model.robot.gear_couplings else ()
    wanted = [name for side in sides for one in CANDIDATES if (name := f"{one}{side}") in EFFECTS]
    has_gravity = model.measured != "difference" and any(model.robot.gravity)
    setup = ["tilt"] if has_gravity and shows_moments(equations) else []
    # Stated gains are taken at their word: a payload is found in their units. It has no columns of gains itself.
    is_arm_alone = model.payload == "none" and "inertia" in model.effects
    setup += ["gain"] if not are_gains_known and is_arm_alone else []
    setup += ["balancer"] if model.measured != "difference" and model.robot.balancers else []
    own = {effect for effect in model.effects if effect not in model.joints_of}
    lacks = ESTIMATORS[method].lacks
    able = [name for name in (*wanted, *setup) if not any(getattr(EFFECTS[name], one) for one in lacks)]
    added = [name for name in able if name not in own and name not in model.effects]
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


def _forward(
    squares: FoldSquares, columns: Sequence[int], candidates: Mapping[str, list[int]], links: np.ndarray
) -> tuple[SelectionStep, ...]:
    """Add candidates one after the other; return the steps.

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
        before, after, _ = left_out_errors(by_fold, np.array(current), list(left.values()), prior)
        is_known = np.isfinite(after).all(axis=0)  # in every block; else its parameters are not identifiable there
        gains = np.where(is_known, before[:, None] - np.where(is_known, after, 0.0), 0.0)
        gain, error = gains.sum(axis=0), np.sqrt(len(gains)) * gains.std(axis=0, ddof=1)
        is_scale = np.array([name.startswith("balancer") for name in left])
        least = np.where(is_scale, LEAST_OF_SCALE, LEAST_GAIN if steps else FIRST_GAIN) * before.sum()
        errors = np.where(is_scale, ERRORS_OF_SCALE, STANDARD_ERRORS)
        is_enough = is_known & (gain > errors * error) & (gain > least)
        if not is_enough.any():
            break
        best = int(np.argmax(np.where(is_enough, gain - error, -np.inf)))
        name = list(left)[best]
        steps.append(SelectionStep(name, float(100 * gain[best] / before.sum()), float(gain[best] / error[best])))
        current += [k for k in left[name] if k not in current]
        left = {key: rest for key, own in left.items() if (rest := [k for k in own if k not in current])}
    return tuple(steps)


def _names(joined: Iterable[str]) -> list[str]:
    """Return effects as a model takes them: one of all joints makes those of single joints needless."""
    names = list(joined)
    whole = [name for name in names if name in EFFECTS]
    return [*whole, *(name for name in names if name not in EFFECTS and name.rstrip("0123456789") not in whole)]
