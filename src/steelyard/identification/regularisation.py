"""Estimates of models with chosen effects: links drawn to a trusted reference, effects to zero.

Friction of many laws on all joints, and links that are free to be impossible, can stand for each other: within one
recording that costs nothing, in faster or other motion much. Two weak priors prevent it. Links are near those of a
trusted robot file, within a relative deviation, or near those of usual build, within a deviation that the data
themselves give. So it is with the torques of an effect over all joints, which are of one size (empirical Bayes, by
expectation and maximisation): an effect that they show clearly is hardly drawn, one that they hardly show is drawn to
zero. That holds for viscous and Coulomb friction and offsets too: left open beside all else they would take over what
the others may not. Rows count as what correlated noise leaves of them, and as little as left-out blocks show: a model
that predicts these worse than its sigmas say knows less than they say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import linalg

from ..effects import EFFECTS
from ..estimate import Estimate, System
from ..judge import PartSums, factor_parts
from ..model import Model, Parameter
from ..observe import Equations
from ..robot import INERTIAL_NAMES, Robot
from .fitting import ArmFit
from .settings import FACTOR_METHODS, Settings

LINK_DEVIATION = 1.0
"""Relative deviation of links from their reference, in the final estimate."""

GUESS = 10.0
"""By how much farther links may be from those of usual build than from a trusted file's."""

CONTRADICTED = 3.0
"""A reference that raises squares of residuals by this factor contradicts the data: links stay open. On real arms,
whose residuals are errors of the model, a right one raises them by up to two thirds (LWR4+), and predicts better."""

EXPLAINED = 2.0
"""So many standard deviations of what noise moves a parameter by are no sign that its prior is wrong."""

_WIDENING = 0.9
"""Correlated noise widens each sigma by a factor of its own; with priors by no less than this quantile of them."""

_ITERATIONS, _CALIBRATIONS = 30, 4
_SPANNED, _KEPT = 1e-9, 1e-6


def settings_for_chosen(settings: Settings) -> Settings:
    """Return the settings with which a model of chosen effects is estimated.

    What such a model leaves is error of the model and not noise: rows weighted by its residuals, which ask for small
    errors of torque, predict better than whitened ones, which ask for white residuals. Priors do what leaving
    parameters out is for.
    """
    if settings.method not in FACTOR_METHODS:
        return settings
    method = "iterated" if settings.method == "gls" else settings.method
    return replace(settings, method=method, covariance=settings.covariance or "model", reduction="none")


def regularised_fit(
    fit: ArmFit,
    equations: Equations,
    plain: Sequence[str],
    prior: Robot | None,
    part_of: Mapping[tuple[str, int], int] | None = None,
) -> ArmFit:
    """Return a fit with links drawn to a reference and effects to zero.

    Args:
        fit: The fit.
        equations: Model and base parameters.
        plain: Effects of the plain model, as ``--effects`` takes them: only their friction and offsets are drawn.
        prior: The robot whose link inertias are trusted; None: links of usual build.
        part_of: The part of every block of time, by recording and number of the block, left out in turn to see how far
            sigmas can be believed; None: they are.
    """
    drawn_to_all = partial(drawn_estimate, equations=equations, plain=plain, prior=prior)
    factor = 1.0
    if part_of is not None:
        parts = factor_parts(fit.estimate, fit.used, part_of)["time"][0]
        for _ in range(_CALIBRATIONS):
            wider = with_wider_sigmas(fit.estimate, factor)
            factor = max(factor * disbelief(drawn_to_all(wider), wider, parts), 1.0)
    of_data = with_wider_sigmas(fit.of_data, factor)
    fit = replace(fit, estimate=with_wider_sigmas(fit.estimate, factor), without_prior=of_data)
    drawn = drawn_to_all(fit.estimate)
    links_open = regularised(fit.estimate, equations, plain, np.zeros((0, len(fit.estimate.columns) + 1)))
    system = fit.estimate.system
    open_squares, squares = (
        float(np.sum((system.triangle @ np.append(one.values, -1.0)) ** 2)) for one in (links_open, drawn)
    )
    is_right = squares <= CONTRADICTED * open_squares
    fit = _with_bias(replace(fit, estimate=drawn if is_right else links_open))
    return replace(fit, links_open=links_open if is_right else fit.estimate)


def _with_bias(fit: ArmFit) -> ArmFit:
    """Return the fit with what priors that the data contradict add to the covariance.

    A parameter that they move further from its value by the data alone than noise explains is biased by so much: its
    interval would not hold the truth.
    """
    rest = np.eye(len(fit.estimate.values)) - shrinkage(fit)
    moved = fit.estimate.values - fit.of_data.values
    noise = np.diag(rest @ fit.of_data.covariance @ rest.T)
    explained = EXPLAINED**2 * noise / np.maximum(moved**2, 1e-300)
    bias = moved * np.sqrt(np.maximum(1 - explained, 0.0))
    return replace(fit, estimate=replace(fit.estimate, covariance=fit.estimate.covariance + np.outer(bias, bias)))


def drawn_estimate(estimate: Estimate, equations: Equations, plain: Sequence[str], prior: Robot | None) -> Estimate:
    """Return an estimate with links drawn to a reference and effects to zero.

    Args:
        estimate: Weighted least squares, with the covariance that correlated noise gives it.
        equations: Model and base parameters.
        plain: Effects of the plain model.
        prior: The robot whose link inertias are trusted; None: links of usual build.
    """
    rows = link_rows(equations, estimate.columns, prior) / LINK_DEVIATION
    return regularised(estimate, equations, plain, rows, guessed=prior is None)


def with_wider_sigmas(estimate: Estimate, factor: float) -> Estimate:
    """Return an estimate whose sigmas are larger by a factor."""
    return estimate if factor == 1.0 else replace(estimate, covariance=factor**2 * estimate.covariance)


def disbelief(drawn: Estimate, estimate: Estimate, parts: PartSums) -> float:
    """Return by which factor the errors of left-out parts say that sigmas should be larger.

    A part that is left out is predicted worse than it is fitted, by ``sum_g tr A_g (C_-g + C)`` in the mean: ``A_g`` is
    the information in its rows, C the covariance of the parameters and ``C_-g`` that without the part. Priors are held.

    Args:
        drawn: The estimate with priors.
        estimate: That of the data alone, whose sigmas are looked at.
        parts: Sums over the parts at ``estimate``.
    """
    deviation = _deviation(estimate)
    units = np.outer(deviation, deviation)
    total = drawn.system.triangle[:, :-1].T @ drawn.system.triangle[:, :-1]
    shift = drawn.values - estimate.values
    pull = total @ shift  # of the priors, at the estimate of the data
    excess = expected = 0.0
    lengths = np.sqrt(np.outer(np.diag(total), np.diag(total)))
    for scores, information in zip(parts.scores, parts.information, strict=True):
        inverse = np.linalg.inv((total - (1 - _KEPT) * information / units) / lengths) / lengths
        other = inverse @ (pull - scores / deviation**2)
        excess += sum(sign * (one @ information @ one - 2 * scores @ one) for sign, one in ((1, other), (-1, shift)))
        expected += float(np.sum(information * (inverse + drawn.system.inverse)))
    return float(np.sqrt(max(excess, 0.0) / expected)) if expected > 0 else 1.0


def regularisation_note(fit: ArmFit, equations: Equations, prior: Robot | None) -> str:
    """Return what was held near what, in one sentence."""
    reference = "an arm of usual build" if prior is None else "the prior"
    how_far = "" if prior is None else f" (relative deviation {LINK_DEVIATION:g})"
    links = f", links to those of {reference}{how_far}"
    if fit.estimate is fit.links_open:
        links = f", links not to those of {reference}, which these data contradict"
    if "inertia" not in equations.model.effects:
        links = ""
    return (
        f"chosen effects, friction and offsets are drawn to zero as far as the data leave them open{links}; residuals "
        "are taken for errors of the model: rows count by their size (iterated) and are not whitened"
    )


def link_rows(equations: Equations, columns: Sequence[str], prior: Robot | None) -> np.ndarray:
    """Return rows (k, c + 1) that draw base parameters to those of reference links, of unit relative deviation.

    What other effects share with the links, such as the inertia of a drive, is left open.

    Args:
        equations: Model and base parameters.
        columns: The unknowns, c of them; others are open.
        prior: The robot whose link inertias are trusted; None: links of usual build.
    """
    model = equations.model
    if "inertia" not in model.effects:
        return np.zeros((0, len(columns) + 1))
    is_inertial = np.array([one.effect == "inertia" for one in model.parameters])
    regrouping = equations.base.regrouping[[equations.names.index(name) for name in columns]]
    own = np.flatnonzero(np.abs(regrouping[:, is_inertial]).max(axis=1) > _SPANNED)
    spread, mean = _reference_links(model, prior)
    roots, centre = regrouping[np.ix_(own, is_inertial)] @ spread, regrouping[np.ix_(own, is_inertial)] @ mean
    scale = np.linalg.norm(roots, axis=1)
    open_directions = regrouping[np.ix_(own, ~is_inertial)] / scale[:, None]
    closed = linalg.null_space(open_directions.T) if open_directions.any() else np.eye(len(own))
    # Information on closed^T x: the inverse of the covariance of those sums.
    _, sizes, directions = np.linalg.svd((closed.T @ (roots / scale[:, None])).T, full_matrices=False)
    inside = sizes > _SPANNED * sizes.max(initial=0.0)
    part = (directions[inside] / sizes[inside, None]) @ closed.T / scale
    rows = np.zeros((len(part), len(columns) + 1))
    rows[:, own], rows[:, -1] = part, part @ centre
    return rows / (GUESS if prior is None else 1.0)


def shrinkage(fit: ArmFit) -> np.ndarray:
    """Return how the drawn estimate changes with that of the data alone, sizes of effects held (c, c)."""
    root = _root(fit.of_data)
    return fit.estimate.system.inverse @ root.T @ root


def _root(estimate: Estimate) -> np.ndarray:
    """Return the root (c, c) of the information that correlated noise leaves the data."""
    return estimate.system.triangle[:-1, :-1] / _deviation(estimate)


def _deviation(estimate: Estimate) -> np.ndarray:
    """Return the deviation of a row, with that by which correlated noise widens each sigma (c,)."""
    return estimate.unit * np.maximum(estimate.widening, np.quantile(estimate.widening, _WIDENING))


def _reference_links(model: Model, prior: Robot | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the root (10 n, 10 n) of the covariance of all links' parameters for unit deviation, and their mean."""
    from ..consistency import reference_body, usual_links

    usual, known = usual_links(model.robot), {} if prior is None else prior.parameters
    size = 10 * len(model.robot.bodies)
    spread, mean = np.zeros((size, size)), np.zeros(size)
    for k, body in enumerate(model.robot.bodies):
        given = np.array([known.get(f"{symbol}{body.number}", 0.0) for symbol in INERTIAL_NAMES])
        has_size = given[-1] > 0 and given[0] + given[3] + given[5] > 0
        reference = reference_body(given if has_size else usual[body.link])
        block = slice(10 * k, 10 * k + 10)
        spread[block, block], mean[block] = reference.to_parameters, reference.parameters
    return spread, mean


def _is_drawn(parameter: Parameter, plain: Sequence[str]) -> bool:
    """Return whether a parameter is drawn to zero: one of friction, an offset, or of another effect that was chosen."""
    effect = parameter.effect
    if effect in EFFECTS and EFFECTS[effect].is_of_joints:
        return True
    return not {effect, f"{effect}{parameter.number}"} & {*plain, "payload"}


def regularised(
    estimate: Estimate, equations: Equations, plain: Sequence[str], drawn: np.ndarray, *, guessed: bool = False
) -> Estimate:
    """Return the estimate with links drawn to a reference and effects to zero.

    Args:
        estimate: Weighted least squares, with the covariance that correlated noise gives it.
        equations: Model and base parameters.
        plain: Effects that are not drawn: those of the plain model.
        drawn: Rows (k, c + 1) that draw the links.
        guessed: Whether how far links are from the reference is to be found: an arm of usual build may be ten times as
            light as this one.
    """
    columns = estimate.columns
    root = _root(estimate)
    triangle = np.column_stack([root, root @ estimate.values])
    parameters = {one.name: one for one in equations.model.parameters}
    groups: dict[str, list[int]] = {}
    for k, name in enumerate(columns):
        if _is_drawn(parameters[name], plain):
            groups.setdefault(parameters[name].effect, []).append(k)
    # A balancer has the scale that its file says, all else is none.
    known = equations.model.robot.values
    centre = np.array([known[name] if parameters[name].effect == "balancer" else 0.0 for name in columns])
    lengths, pull = np.linalg.norm(triangle[:, :-1], axis=0), np.zeros(len(columns))
    system = free = System(columns, triangle, estimate.system.rows)
    deviation = 1.0  # of the links, in units of the rows
    for _ in range(_ITERATIONS):
        effects = np.column_stack([np.diag(pull), pull * centre])[pull > 0]
        system = free.with_rows(np.vstack([drawn / deviation, effects]))
        if guessed and len(drawn):
            off = drawn @ np.append(system.values, -1.0)
            spread = np.einsum("ij,jk,ik->i", drawn[:, :-1], system.inverse, drawn[:, :-1])
            deviation = float(np.sqrt(np.mean(off**2 + spread)))
        squares = ((system.values - centre) ** 2 + np.diag(system.inverse)) * lengths**2
        for own in groups.values():
            pull[own] = lengths[own] / np.sqrt(np.mean(squares[own]))
    freedom = np.full(len(columns), float(np.median(estimate.freedom)))
    return Estimate(
        "ridge", system, system.values, system.inverse, "model", freedom, estimate.deviations, after_selection=True
    )
