"""Starts and steps of the search for nonlinear parameters: a grid scored from factors, damped Gauss-Newton."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations, product

import numpy as np

from ..effects import EFFECTS
from ..estimate import System, group_of, stacked_system
from ..model import Model, build_model, constant_value, constants_of, kind_of_constant, with_constants
from ..observe import Equations, ResolvedPreparation, RowSource, equations_of, reduce_rows
from .fitting import ArmFit, fit_sources
from .inputs import Labelled, sources_of, weighted_fit
from .settings import Settings

GRID = {
    "stribeck": (0.01, 0.03, 0.1, 0.3), "dahl": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
    "sign_width": (0.003, 0.01, 0.03, 0.1, 0.3), "delay": (-0.03, -0.01, 0.0, 0.01, 0.03),
}  # fmt: skip
"""Starts: velocities [rad/s or m/s], lengths [rad or m], widths [rad/s or m/s], delays [s]."""
SHIFTS = (1.0, 3**0.5)
"""Velocities and lengths of the grid are tried at these multiples: four a decade."""
RANGE = {"stribeck": (0.002, 2.0), "dahl": (2e-4, 2.0), "sign_width": (5e-4, 1.0), "delay": (-0.1, 0.1)}
"""A value at one of these ends is no result."""
LARGEST_SIGMA = {"stribeck": 0.5, "dahl": 0.5, "sign_width": 0.5, "delay": 0.02}
"""A constant of a larger sigma, of the logarithm but for the delay [s], is not identifiable."""
CONVERGED = 0.1
"""Steps smaller than this part of sigma end the iteration."""

_LARGEST_STEP = {"stribeck": 0.7, "dahl": 0.7, "sign_width": 0.7, "delay": 0.02}
_MOST_STEPS, _SMALLEST_PART, _MOST_RIVALS = 25, 1e-2, 2
_CLOSE = 0.3
_RIVAL, _COMPARABLE, _MATERIAL, _APART = 50.0, 9.0, 9.0, 0.5

Point = Mapping[str, float]
"""Values of constants by name."""

_SLOTS = ("stribeck", "dahl")
"""Kinds of constants that are those of effects: a model may have all of the grid beside each other."""


@dataclass(frozen=True, eq=False)
class ConstantsFit:
    """Constants, the linear parameters that belong to them, and the mean weighted square of the residuals."""

    point: Point
    linear: Mapping[str, float]
    score: float


@dataclass(frozen=True, eq=False)
class GridPoint:
    """A point of the grid.

    Attributes:
        point: Values of the constants.
        system: Rows with columns of all candidates, after those of all else.
        plain: Columns of all else.
        columns: Columns of the candidates at this point, each with the name of the parameter it stands for.
    """

    point: Point
    system: System
    plain: frozenset[str]
    columns: Mapping[str, str]

    @cached_property
    def score(self) -> float:
        """Mean weighted square of the residuals."""
        before = sum(name in self.plain for name in self.system.columns)
        index = [k for k, name in enumerate(self.system.columns) if name in self.columns]
        # Columns before are eliminated already: they come first in the triangle.
        part = self.system.triangle[before:, [*index, -1]]
        triangle = np.asarray(np.linalg.qr(part, mode="r"))
        return float(triangle[-1, -1] ** 2) / self.system.rows

    def start(self) -> ConstantsFit:
        """Return the point with its linear parameters."""
        names = [name for name in self.system.columns if name in self.plain or name in self.columns]
        values = self.system.restricted(names).values.tolist()
        own = [self.columns.get(name, name) for name in names]
        return ConstantsFit(self.point, dict(zip(own, values, strict=True)), self.score)


class ConstantSearch:
    """The search for constants of one model in some recordings.

    Args:
        model: The model, with the constants to begin with.
        recordings: The recordings to fit.
        resolved: Their preparation.
        settings: Robust weights, if any, and threads.
        without: Equations that are left out.
    """

    def __init__(
        self,
        model: Model,
        recordings: Sequence[Labelled],
        resolved: ResolvedPreparation,
        settings: Settings,
        without: Collection[tuple[str, str]],
    ) -> None:
        self._model, self.recordings, self._resolved = model, recordings, resolved
        self._settings, self._without = settings, tuple(without)
        self._base = equations_of(model, without=without)
        self.take_noise(fit_sources(sources_of(recordings, self._base, resolved), self._base, settings))

    def take_noise(self, fit: ArmFit) -> None:
        """Weight and whiten rows as a fit does from now on; scores of before are not those of after.

        Slow noise looks like friction that bends slowly with speed: rows are whitened where the method does so.
        """
        self._whitening, self._weights = fit.whitening, fit.estimate.weights
        self._rows = fit.estimate.system.rows
        self._widening = float(np.median(fit.estimate.widening))

    def given(self, name: str) -> float:
        """Return the value of a constant to begin with."""
        return self._resolved.chosen.delay if name == "delay" else constant_value(self._model, name)

    def at(self, point: Point) -> tuple[Model, ResolvedPreparation]:
        """Return model and preparation with these constants."""
        chosen = replace(self._resolved.chosen, delay=point.get("delay", self._resolved.chosen.delay))
        return with_constants(self._model, point), replace(self._resolved, chosen=chosen)

    def equations(self, point: Point, names: Sequence[str], linear: Mapping[str, float]) -> Equations:
        """Return the equations with these constants, and columns of some of them at values of the linear parameters."""
        equations = equations_of(self.at(point)[0], self._base.base, self._without)
        return equations.with_constants(names, linear) if names else equations

    def _system(self, equations: Equations, order: Sequence[str], resolved: ResolvedPreparation) -> System:
        """Return the rows of all recordings in one system, weighted and whitened as those of the first fit."""
        sources: Sequence[RowSource] = sources_of(self.recordings, equations, resolved)
        if self._settings.robust is not None:
            sources = weighted_fit(equations, self.recordings, resolved, self._settings)[0]
        observations = reduce_rows(sources, self._whitening, threads=self._settings.threads)
        return stacked_system(observations, order, self._weights, lambda factor: group_of(factor) in self._weights)

    def starts(self, names: Sequence[str]) -> list[ConstantsFit]:
        """Return the best point of the grid, and other minima of it that are not much worse."""
        fixed: dict[str, float] = {}
        if "delay" in names:
            trials = [{"delay": delay} for delay in GRID["delay"]]
            fixed = min(trials, key=lambda trial: self._scored_grid((), trial, 1.0)[0].score)
        widths = GRID["sign_width"] if "sign_width" in names else (None,)
        friction = [name for name in names if kind_of_constant(name) in ("stribeck", "dahl")]
        scored: list[GridPoint] = []
        for width, shift in product(widths, SHIFTS if friction else SHIFTS[:1]):
            point = fixed if width is None else {**fixed, "sign_width": width}
            scored += self._scored_grid(friction, point, shift)
        best = min(scored, key=lambda one: one.score)
        limit = best.score * (1 + _RIVAL * self._widening**2 / self._rows)
        minima = [one for name in names for one in _other_minima(name, scored) if one.score <= limit]
        return [one.start() for one in dict.fromkeys([best, *sorted(minima, key=lambda one: one.score)[:_MOST_RIVALS]])]

    def _scored_grid(self, names: Sequence[str], point: Point, shift: float) -> list[GridPoint]:
        """Return all combinations of the grid's velocities and lengths for the effects that have them.

        Args:
            names: The constants that are combined.
            point: Values of others.
            shift: By what the values of the grid are multiplied.
        """
        model, resolved = self.at(point)
        taken = {kind: [name for name in names if kind_of_constant(name) == kind] for kind in _SLOTS}
        slots = {kind: [shift * value for value in GRID[kind]] for kind in _SLOTS}
        if names:
            model = _with_all_elements(model, {kind: slots[kind] for kind in _SLOTS if taken[kind]})
        equations = equations_of(model, None if names else self._base.base, self._without)
        own = {name: columns_of(self._model, name) for name in names}
        candidates = [_moved_to(column, k) for name in names for column in own[name] for k in _numbers(name)]
        candidates = list(dict.fromkeys(candidates))
        plain = [name for name in equations.names if name not in candidates]
        system = self._system(equations, [*plain, *candidates], resolved)
        orders = [permutations(range(1, len(GRID[kind]) + 1), len(taken[kind])) for kind in _SLOTS]
        found = []
        for numbers in product(*orders):
            place = dict(zip([*taken["stribeck"], *taken["dahl"]], [k for part in numbers for k in part], strict=True))
            if _is_exchanged(place, own):
                continue
            values = {name: slots[kind_of_constant(name)][k - 1] for name, k in place.items()}
            columns = {_moved_to(column, k): column for name, k in place.items() for column in own[name]}
            found.append(GridPoint({**point, **values}, system, frozenset(plain), columns))
        return found

    def refined(self, names: Sequence[str], start: ConstantsFit) -> ConstantsFit:
        """Follow Gauss-Newton steps, halved where they do not reduce the residuals."""
        point, linear, best, step, part = start.point, start.linear, None, {}, 1.0
        for _ in range(_MOST_STEPS):
            equations = self.equations(point, names, linear)
            system = self._system(equations, equations.names, self.at(point)[1])
            score = _mean_square(system, [name for name in system.columns if name not in names])
            if best is not None and score > best.score:
                part /= 2
                if part < _SMALLEST_PART:
                    break
                point, linear = moved(best.point, step, part), best.linear
                continue
            values = dict(zip(system.columns, system.values.tolist(), strict=True))
            sigma = dict(zip(system.columns, np.sqrt(np.diag(system.inverse)).tolist(), strict=True))
            best, part = ConstantsFit(point, values, score), 1.0
            step = identifiable_steps(names, values, sigma)
            linear, after = values, moved(point, step, 1.0)
            if all(abs(step[name]) <= _CLOSE * sigma[name] for name in step) or after == point:
                break
            point = after
        assert best is not None
        return best

    def needless(self, names: Sequence[str], found: ConstantsFit, given: Point) -> tuple[str, str] | None:
        """Return the sign's width and why it is none, if the exact sign fits as well."""
        name = "sign_width"
        if name not in names or given[name] != 0.0:
            return None
        gain = self._worse(self._scored({**found.point, name: 0.0}), found)
        return (name, "the exact sign fits as well") if gain < _MATERIAL else None

    def rival(self, names: Sequence[str], tried: Sequence[ConstantsFit]) -> tuple[str, str] | None:
        """Return a constant that has another value with which residuals are as small, and both values as text."""
        best = tried[0]
        for other in (one for one in tried[1:] if self._worse(one, best) < _COMPARABLE):
            apart = {name: abs(np.log(other.point[name] / best.point[name])) for name in names if name != "delay"}
            worst = max(apart, key=lambda name: apart[name], default="")
            if worst and apart[worst] > _APART:
                return worst, f"{best.point[worst]:.3g} and {other.point[worst]:.3g} fit alike"
        return None

    def _worse(self, one: ConstantsFit, best: ConstantsFit) -> float:
        """Return by how much the squares of residuals are larger, in units of their noise."""
        return (one.score / best.score - 1) * self._rows / self._widening**2

    def flatness(self, names: Sequence[str], best: ConstantsFit, covariance: np.ndarray) -> dict[str, float]:
        """Return by how much the residuals say less of each constant than its derivative does, at least 1.

        Two sigmas to either side, the others where they follow and all else fitted again, squares of residuals are
        larger by 4 where torques are nearly linear in the constant. Where one is less, sigma is too small, by the root
        of the ratio. Where one is smaller than at the best point, the steps did not end where residuals are smallest,
        as derivatives do not know reversals that a delay moves: the distance to the smallest is added to sigma.

        Args:
            names: The constants, k of them.
            best: Where the residuals are smallest.
            covariance: Of the constants (k, k).
        """
        found: dict[str, float] = {}
        for k, name in enumerate(names):
            along = dict(zip(names, covariance[k] / np.sqrt(covariance[k, k]), strict=True))

            def worse(part: float, along: Mapping[str, float] = along) -> float:
                return self._worse(self._scored(moved(best.point, along, part)), best)

            offset, sides = 0.0, (worse(-2.0), worse(2.0))
            if min(sides) < 0:
                offset = _lowest(sides[0], worse(0.0), sides[1])
                least = worse(offset)
                sides = (worse(offset - 2) - least, worse(offset + 2) - least)
            found[name] = float(np.hypot(np.sqrt(4 / np.clip(min(sides), 1e-6, 4.0)), offset))
        return found

    def _scored(self, point: Point) -> ConstantsFit:
        """Return the linear parameters and the residuals of some constants."""
        equations = self.equations(point, (), {})
        system = self._system(equations, equations.names, self.at(point)[1])
        return ConstantsFit(point, dict(zip(system.columns, system.values, strict=True)), system.squares / system.rows)


def _lowest(before: float, here: float, after: float) -> float:
    """Return where a parabola through values at -2, 0 and 2 is lowest, within 4; 0 if it bends downwards."""
    bend = before + after - 2 * here
    return float(np.clip((before - after) / bend, -4.0, 4.0)) if bend > 0 else 0.0


def _other_minima(name: str, scored: Sequence[GridPoint]) -> list[GridPoint]:
    """Return the minima over the values of one constant, the others free, but for the lowest."""
    lowest: dict[float, GridPoint] = {}
    for one in (one for one in scored if name in one.point):
        if one.point[name] not in lowest or one.score < lowest[one.point[name]].score:
            lowest[one.point[name]] = one
    ranked = [lowest[value] for value in sorted(lowest)]
    scores = [np.inf, *(one.score for one in ranked), np.inf]
    minima = [one for k, one in enumerate(ranked, 1) if scores[k] < min(scores[k - 1], scores[k + 1])]
    return sorted(minima, key=lambda one: one.score)[1:]


def _with_all_elements(model: Model, slots: Mapping[str, Sequence[float]]) -> Model:
    """Return the model with every Stribeck velocity, or every Dahl length, for the joints that have one of them."""
    names = [name for kind in slots for own in constants_of(model, [kind]).values() for name in own]
    effects: list[str] = []
    for chosen in model.chosen_effects:
        effect = chosen if chosen in EFFECTS else chosen.rstrip("0123456789")
        kind = "dahl" if EFFECTS[effect].has_memory else "stribeck"
        effects += [_moved_to(chosen, k) for k in _numbers(kind)] if effect in names else [chosen]
    whole = {name for name in effects if name in EFFECTS}
    effects = [name for name in effects if name in whole or name.rstrip("0123456789") not in whole]
    friction = replace(model.friction, **{kind: tuple(values) for kind, values in slots.items()})
    return build_model(
        model.robot, tuple(dict.fromkeys(effects)), model.measured, model.payload, model.sign_width, friction
    )


def _is_exchanged(place: Mapping[str, int], own: Mapping[str, Sequence[str]]) -> bool:
    """Return whether two elements of the same joints have their values in falling order: exchanged, they are the same.

    Args:
        place: Number of the value of each constant.
        own: Parameters of each constant.
    """
    last: dict[tuple[str, ...], int] = {}
    for name, number in place.items():
        joints = tuple(_moved_to(column, 0) for column in own[name])
        if number < last.get(joints, 0):
            return True
        last[joints] = number
    return False


def _numbers(name: str) -> range:
    return range(1, len(GRID[kind_of_constant(name)]) + 1)


def _moved_to(name: str, number: int) -> str:
    """Return the name of an effect or a parameter of another element, ``Fs4m2`` for ``Fs3m2``."""
    return f"{name[:2]}{number}{name[3:]}"


def columns_of(model: Model, constant: str) -> list[str]:
    """Return the parameters of the effects that have a Stribeck velocity or Dahl length."""
    effects = constants_of(model, [kind_of_constant(constant)])[constant]
    return [one.name for one in model.parameters if one.effect in effects]


def _mean_square(system: System, names: Sequence[str]) -> float:
    return system.restricted(names).squares / system.rows


def identifiable_steps(
    names: Sequence[str], values: Mapping[str, float], sigma: Mapping[str, float]
) -> dict[str, float]:
    """Return the steps of constants; without those of which the recordings say nothing, which would go anywhere."""
    return {name: values[name] for name in names if sigma.get(name, np.inf) < 4 * LARGEST_SIGMA[kind_of_constant(name)]}


def moved(point: Point, step: Mapping[str, float], part: float) -> dict[str, float]:
    """Return the point after a part of a step, within what constants may be."""
    found = dict(point)
    for name, whole in step.items():
        kind = kind_of_constant(name)
        change = part * float(np.clip(whole, -_LARGEST_STEP[kind], _LARGEST_STEP[kind]))
        value = point[name] + change if name == "delay" else point[name] * float(np.exp(change))
        found[name] = float(np.clip(value, *RANGE[kind]))
    return found
