"""Stribeck velocities, Dahl lengths, sign width and delay, estimated together with the linear parameters.

With these few constants fixed the torques are linear in all else (variable projection, Golub and Pereyra 1973). Starts
are those of a fixed grid over decades, all combinations of its lengths and velocities: columns of every candidate stand
beside each other in one pass, and its factors score each. From the best, and from other minima of the grid, damped
Gauss-Newton steps follow. Each is a least-squares solution with one more column for each constant, the exact derivative
of the torques by it, at the present linear parameters. The last steps are those of the chosen method itself, whose
covariance is then that of constants and linear parameters together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..distributions import chi2_sf
from ..errors import EstimateError
from ..estimate import Estimate, System
from ..model import Model, constants_of, kind_of_constant
from ..observe import ResolvedPreparation
from ..progress import Progress, silent
from .fitting import ArmFit, fit_sources
from .inputs import Labelled, sources_of
from .nonlinear_search import (
    CONVERGED,
    LARGEST_SIGMA,
    RANGE,
    ConstantSearch,
    ConstantsFit,
    Point,
    columns_of,
    identifiable_steps,
    moved,
)
from .settings import Settings

_MOST_STEPS = 4
"""Steps of the chosen method, after the search has converged."""

FLATTEST = 3.0
"""Where a sigma would have to be so many times wider than the derivative says, the constant is not identifiable."""

SIGNIFICANT = 1e-3
"""Probability by chance below which strengths of an effect are significant; small, as its constant was searched."""

_WORDS = {
    "stribeck": "Stribeck velocity", "dahl": "Dahl length", "sign_width": "width of the smooth sign",
    "delay": "delay of the torques",
}  # fmt: skip
_REMEDIES = {
    "stribeck": "move slower and reverse more often, or leave it at a known value",
    "dahl": "reverse more often, over short and over long ways, or leave it at a known value",
    "sign_width": "move slower through reversals, or leave it at a known value",
    "delay": "record faster changes of acceleration, or leave it at a known value",
}


@dataclass(frozen=True)
class NonlinearParameter:
    """A constant on which torques do not depend linearly, as it was estimated.

    Attributes:
        name: ``stribeck3``, ``dahl2``, ``sign_width`` or ``delay``.
        effects: Effects that have it.
        given: Its value before.
        value: The value found; None if it is not identifiable, and ``given`` was used.
        sigma: Its standard deviation; None as well.
        interval_95: Its 95 % interval, of the logarithm but for the delay; None as well.
        unit: Unit of all these.
        remark: Why there is no value; empty if there is one.

    Example:
        >>> from steelyard.identification import NonlinearParameter
        >>> NonlinearParameter("dahl2", ("Fd2m",), 0.003, 0.006, 2e-4, (0.0056, 0.0064), "rad").text
        'Dahl length of Fd2m: 0.006 +- 0.0002 rad'
    """

    name: str
    effects: tuple[str, ...]
    given: float
    value: float | None
    sigma: float | None
    interval_95: tuple[float, float] | None
    unit: str
    remark: str = ""

    @property
    def title(self) -> str:
        """What it is, with the effects that have it."""
        kind = kind_of_constant(self.name)
        return f"{_WORDS[kind]} of {', '.join(self.effects)}" if kind in ("stribeck", "dahl") else _WORDS[kind]

    @property
    def text(self) -> str:
        """What was found, in one sentence."""
        if self.value is None or self.sigma is None:
            return f"{self.title} {self.remark}"
        return f"{self.title}: {self.value:.4g} +- {self.sigma:.2g} {self.unit}"


@dataclass(frozen=True, eq=False)
class NonlinearFit:
    """A model with constants as they were found, and the fit that they belong to.

    Attributes:
        model: The model.
        resolved: The preparation, with the delay.
        parameters: What was estimated and what could not be.
        joint: The fit with columns of the constants; None if none is identifiable.
    """

    model: Model
    resolved: ResolvedPreparation
    parameters: tuple[NonlinearParameter, ...]
    joint: ArmFit | None

    @property
    def remarks(self) -> list[str]:
        """What a reader should know of single parameters, a sentence each."""
        return [one.text for one in self.parameters if one.remark]

    def completed(self, fit: ArmFit) -> ArmFit:
        """Return a fit with these constants held, its estimate replaced by that which includes their uncertainty."""
        if self.joint is None:
            return fit
        prior = self.joint.without_prior
        held = [one.name for one in self.parameters if one.value is not None]
        return replace(
            fit, estimate=without_columns(self.joint.estimate, held), constants_held=fit.estimate,
            without_prior=None if prior is None else without_columns(prior, held),
        )  # fmt: skip


def without_columns(estimate: Estimate, names: Collection[str]) -> Estimate:
    """Return the estimate of the other parameters; what is not known of these ones stays in their covariance."""
    columns = estimate.columns
    gone = [k for k, name in enumerate(columns) if name in names]
    left = [k for k, name in enumerate(columns) if name not in names]
    triangle = np.asarray(np.linalg.qr(estimate.system.triangle[:, [*gone, *left, -1]], mode="r"))
    part = triangle[len(gone) :, len(gone) :]
    dropped = tuple(name for name in estimate.system.dropped if name not in names)
    system = System(tuple(columns[k] for k in left), part, estimate.system.rows - len(gone), dropped)
    return replace(
        estimate, system=system, values=estimate.values[left], covariance=estimate.covariance[np.ix_(left, left)],
        freedom=estimate.freedom[left],
    )  # fmt: skip


def estimate_nonlinear(
    model: Model,
    recordings: Sequence[Labelled],
    resolved: ResolvedPreparation,
    settings: Settings,
    without: Collection[tuple[str, str]] = (),
    progress: Progress = silent,
    *,
    selected: bool = False,
) -> NonlinearFit:
    """Estimate the constants that settings ask for, together with the linear parameters.

    Args:
        model: The model, with the constants to begin with.
        recordings: The recordings to fit.
        resolved: Their preparation.
        settings: ``nonlinear`` says which constants; method, robust weights and threads are those of the fit.
        without: Equations that are left out.
        progress: Progress callback, called with done and total.
        selected: Whether effects were chosen from data: one that was not chosen has no constant to estimate.

    Raises:
        EstimateError: If the model has no effect with such a constant, and effects were not chosen from data.
    """
    effects = constants_of(model, settings.nonlinear)
    missing = [kind for kind in settings.nonlinear if not any(kind_of_constant(name) == kind for name in effects)]
    if missing and not selected:
        raise EstimateError(
            f"--nonlinear {missing[0].replace('_', '-')}: the model has no effect with a {_WORDS[missing[0]]}; allowed "
            f"with effects {' '.join(model.chosen_effects)}: "
            f"{', '.join(_possible(model))}; add one such as {_EXAMPLES[missing[0]]} to --effects"
        )
    search = ConstantSearch(model, recordings, resolved, settings, without)
    given = {name: search.given(name) for name in effects}
    remarks: dict[str, str] = {}
    starts = search.starts(list(effects)) if effects else []
    progress(1, 3)
    while names := [name for name in effects if name not in remarks]:
        held = {name: given[name] for name in remarks}
        tried = [search.refined(names, replace(one, point={**given, **one.point, **held})) for one in starts]
        tried.sort(key=lambda one: one.score)
        progress(2, 3)
        point, fit = _last_steps(search, names, tried[0], settings)
        lost, flatness = _lost(names, point, fit.estimate), dict[str, float]()
        lost = lost or _without_strength(model, names, fit.estimate)
        if lost is None:
            search.take_noise(fit)
            tried = sorted((search.refined(names, one) for one in tried), key=lambda one: one.score)
            flatness = search.flatness(names, tried[0], _covariance(names, fit.estimate))
            lost = search.needless(names, tried[0], given) or search.rival(names, tried) or _flat(flatness)
        if lost is None:
            fit = replace(fit, estimate=_widened(fit.estimate, flatness))
            known = [_known(model, name, effects[name], given[name], point[name], fit.estimate) for name in names]
            left = [_open(model, name, effects[name], given[name], text) for name, text in remarks.items()]
            return NonlinearFit(*search.at(point), (*known, *left), fit)
        remarks[lost[0]], starts = lost[1], tried[:1]
    left = [_open(model, name, effects[name], given[name], text) for name, text in remarks.items()]
    return NonlinearFit(model, resolved, tuple(left), None)


_EXAMPLES = {"stribeck": "+Fs3m", "dahl": "+Fd2m", "sign_width": "+Fcm"}


def _possible(model: Model) -> list[str]:
    kinds = {kind_of_constant(name) for name in constants_of(model, tuple(_WORDS))}
    return [kind.replace("_", "-") for kind in _WORDS if kind in kinds]


def _last_steps(
    search: ConstantSearch, names: Sequence[str], start: ConstantsFit, settings: Settings
) -> tuple[Point, ArmFit]:
    """Follow the steps that the chosen method gives, from where weighted least squares has converged."""
    point, linear = start.point, start.linear
    for count in range(1, _MOST_STEPS + 1):
        equations = search.equations(point, names, linear)
        sources = sources_of(search.recordings, equations, search.at(point)[1])
        fit = fit_sources(sources, equations, settings)
        linear = dict(zip(fit.estimate.columns, fit.estimate.values.tolist(), strict=True))
        sigma = dict(zip(fit.estimate.columns, fit.estimate.sigma.tolist(), strict=True))
        steps = identifiable_steps(names, linear, sigma)
        point = moved(point, steps, 1.0)
        if count == _MOST_STEPS or all(abs(steps[name]) <= CONVERGED * sigma[name] for name in steps):
            return point, fit
    raise AssertionError("the last step returns")


def _covariance(names: Sequence[str], estimate: Estimate) -> np.ndarray:
    place = [estimate.columns.index(name) for name in names]
    return estimate.covariance[np.ix_(place, place)]


def _flat(flatness: Mapping[str, float]) -> tuple[str, str] | None:
    """Return the constant of which the residuals say far less than its derivative does, if there is one."""
    worst = max(flatness, key=lambda name: flatness[name], default="")
    return (worst, "values far apart fit alike") if worst and flatness[worst] > FLATTEST else None


def _widened(estimate: Estimate, factors: Mapping[str, float]) -> Estimate:
    """Return the estimate with sigmas of constants times factors, and what follows for all other parameters."""
    place = [estimate.columns.index(name) for name in factors]
    own, scale = estimate.covariance[np.ix_(place, place)], np.array(list(factors.values()))
    sizes, directions = np.linalg.eigh(own * scale[:, None] * scale - own)
    further = (directions * np.maximum(sizes, 0.0)) @ directions.T
    follows = np.linalg.solve(own, estimate.covariance[place]).T
    return replace(estimate, covariance=estimate.covariance + follows @ further @ follows.T)


def _known(
    model: Model, name: str, effects: tuple[str, ...], given: float, value: float, estimate: Estimate
) -> NonlinearParameter:
    """Return a constant that was found."""
    unit = _unit(model, name)
    place = estimate.columns.index(name)
    sigma, half = float(estimate.sigma[place]), float(estimate.half_width()[place])
    interval = (value - half, value + half)
    if name != "delay":
        sigma, interval = sigma * value, (value * float(np.exp(-half)), value * float(np.exp(half)))
    return NonlinearParameter(name, effects, given, value, sigma, interval, unit)


def _open(model: Model, name: str, effects: tuple[str, ...], given: float, text: str) -> NonlinearParameter:
    """Return a constant that is not identifiable."""
    unit = _unit(model, name)
    remark = (
        f"is not identifiable from these recordings ({text}): it stays at {given:.3g} {unit}, and sigmas do not "
        f"include it; {_REMEDIES[kind_of_constant(name)]}"
    )
    return NonlinearParameter(name, effects, given, None, None, None, unit, remark)


def _lost(names: Sequence[str], point: Point, estimate: Estimate) -> tuple[str, str] | None:
    """Return the constant that is least identifiable and why it is not, or None if all are."""
    found: dict[str, tuple[float, str]] = {}
    for name in names:
        kind = kind_of_constant(name)
        low, high = RANGE[kind]
        if name not in estimate.columns:
            found[name] = np.inf, "its column depends on those of other parameters"
            continue
        sigma = float(estimate.sigma[estimate.columns.index(name)])
        if not low < point[name] < high:
            found[name] = 1e6 * sigma, f"the best value is beyond {low:g} to {high:g}"
        elif sigma > LARGEST_SIGMA[kind]:
            size = f"{1e3 * sigma:.2g} ms" if kind == "delay" else f"{100 * sigma:.2g} %"
            found[name] = sigma / LARGEST_SIGMA[kind], f"standard deviation {size}"
        elif abs(estimate.values[estimate.columns.index(name)]) > sigma:
            found[name] = 1.0, "its steps do not converge"
    worst = max(found, key=lambda name: found[name][0], default=None)
    return None if worst is None else (worst, found[worst][1])


def _without_strength(model: Model, names: Sequence[str], estimate: Estimate) -> tuple[str, str] | None:
    """Return the constant whose effects are least significant, if they are not: without them it is nothing.

    Their strengths together against zero, by chi-square at ``SIGNIFICANT``.
    """
    found: dict[str, tuple[float, str]] = {}
    for name in (one for one in names if kind_of_constant(one) in ("stribeck", "dahl")):
        own = [column for column in columns_of(model, name) if column in estimate.columns]
        place = [estimate.columns.index(column) for column in own]
        values, covariance = estimate.values[place], estimate.covariance[np.ix_(place, place)]
        squares = float(values @ np.linalg.lstsq(covariance, values, rcond=1e-12)[0]) if own else 0.0
        if chi2_sf(squares, max(len(own), 1)) > SIGNIFICANT:
            found[name] = squares / max(len(own), 1), f"no strength of it is significant: {', '.join(own)}"
    weakest = min(found, key=lambda name: found[name][0], default=None)
    return None if weakest is None else (weakest, found[weakest][1])


def _unit(model: Model, name: str) -> str:
    if name == "delay":
        return "s"
    kinds = {body.joint.kind == "prismatic" for body in model.robot.actuated}
    lengths = [unit for unit, there in (("rad", False), ("m", True)) if there in kinds]
    return " or ".join(unit if kind_of_constant(name) == "dahl" else f"{unit}/s" for unit in lengths)
