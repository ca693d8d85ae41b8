"""The search for consistent parameters of one arm: its unknowns, reference and bounds as a semidefinite programme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy import linalg

from ..errors import EstimateError
from ..estimate import Estimate
from ..model import Model
from ..observe import Equations
from ..robot import INERTIAL_NAMES, Robot, parameters_from_centre
from .constraints import ConsistencySettings, LinearBound, bounds_of, check_prior, declared_massless
from .programme import InfeasibleError, Programme, Solution, Solver, smallest_eigenvalues, solve
from .pseudo_inertia import ReferenceBody, random_bodies, reference_body, svec, usual_links

REFERENCE = 1e-6
"""Weight of a reference: it stands for a relative deviation of 1000, and decides only where the data say nothing."""

MARGIN = 1e-4
"""Least eigenvalue of a pseudo-inertia in units of the reference: a link that stays consistent when it is rounded."""

DRIVE_SYMBOLS = ("Ia", "Iac")
"""Symbols of drive inertias."""

CHANCE_OF_A_LINK = 10.0
"""Increase of the weighted sum of squares that the ten parameters of a link have by chance."""

_UNITS = 100.0
"""Unit of friction and the like: so many sigmas that it would have if all else were known."""

_GUESS, _NO_VALUE = 1e-4, 1e-6
"""Weights, beside the 1 of links with inertias in the file: of links without, and of what has no reference at all."""

_DRAWN = 1e-6
"""Tolerance of the solver for draws: their spread of 50 is known to a tenth, whatever their digits."""

_AT_ZERO, _PRICED = 1e-3, 1e-6
"""A value below the first, in its unit, is held at zero if its bound has a multiplier above the second."""


class StandardProblem:
    """The search for consistent parameters of one arm; data and prior may vary.

    Args:
        equations: Model and base parameters.
        estimate: The estimate of the data alone.
        settings: Bounds and kind of the prior.
        prior: The robot whose inertias are the prior; None for a reference.
        massless: Links that are held without mass; by default those that the robot file declares so, unless the data
            contradict it.

    Raises:
        EstimateError: If a bound names no link, or the prior lacks one.
    """

    def __init__(
        self,
        equations: Equations,
        estimate: Estimate,
        settings: ConsistencySettings,
        prior: Robot | None = None,
        *,
        massless: Sequence[str] | None = None,
    ) -> None:
        self.equations, self.estimate, self.settings, self.prior = equations, estimate, settings, prior
        self.model = equations.model
        self.names = self.model.names
        if prior is not None:
            check_prior(self.model.robot, prior)
        declared = declared_massless(self.model.robot, settings, prior)
        self.massless = _not_contradicted(equations, estimate, settings, declared) if massless is None else massless
        self.released = tuple(link for link in declared if link not in self.massless)
        places = _link_places(self.model)
        self.links = {link: place for link, place in places.items() if link not in self.massless}
        self.free = np.setdiff1d(range(len(self.names)), [k for link in self.massless for k in places[link]])
        known = (prior or self.model.robot).parameters
        self.known = np.array([known.get(name, np.nan) for name in self.names])
        self.bodies = self._references()
        self.regrouping = equations.base.regrouping[[equations.names.index(name) for name in estimate.columns]]
        self.root = estimate.system.triangle[:-1, :-1] / (estimate.unit * estimate.widening)
        self.to_parameters = self._to_parameters()
        own = np.where(np.isfinite(self.known) & (prior is not None), self.known, self.reference)
        for place in self.links.values():
            if not self.known[place[9]] > 0:
                own[list(place)] = np.nan  # a guess of the usual build is nothing to pin a link to
        signs = [LinearBound(self.names[k], -np.eye(len(self.names))[[k]], np.zeros(1)) for k in self.positive]
        given = replace(settings, pinned=tuple(link for link in settings.pinned if link not in self.massless))
        self.bounds = [*signs, *bounds_of(given, self.model.robot, self.links, len(self.names), own)]

    def _references(self) -> list[ReferenceBody]:
        usual = usual_links(self.model.robot)
        found = []
        for link, place in self.links.items():
            own = self.known[list(place)]
            if not _is_body(own):
                own = usual[link] if link in usual else _usual_payload(self.estimate)
            found.append(reference_body(own))
        return found

    def reference_terms(self, programme: Programme) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows, target and pull (n,) of the distance from the reference, where the data decide nothing.

        Links stay near the file's. What has no value of its own to stay near (most drive inertias) takes what is left:
        drawn to zero it would move links, whose torques it shares, away from theirs. Rows hold the sums of friction
        and the like that neither data nor links depend on. If no link has an inertia in the file, all count alike.
        """
        own = np.array([_is_body(self.known[list(place)]) for place in self.links.values()], dtype=bool)
        first = 10 * len(own)
        if not own.any():
            return np.zeros((0, programme.size)), np.zeros(0), np.where(programme.pull > 0, 1.0, 0.0)
        _, sizes, directions = np.linalg.svd(programme.rows[:, first:])
        unseen = directions[np.append(sizes, np.zeros(len(directions) - len(sizes))) < np.sqrt(REFERENCE)]
        rows = np.hstack([np.zeros((len(unseen), first)), unseen])
        # In units of what would cause all torque by itself.
        pull = np.full(programme.size, _NO_VALUE * min(1.0, (_UNITS / np.linalg.norm(programme.target)) ** 2))
        pull[:first] = np.repeat(np.where(own, 1.0, _GUESS), 10)
        for column, k in enumerate(self.others, first):
            if self.model.parameters[k].symbol in DRIVE_SYMBOLS and self.known[k] > 0:
                pull[column] = programme.pull_to[column] ** -2.0
        return rows, rows @ programme.pull_to, pull

    def implausible(self, values: np.ndarray) -> dict[str, tuple[float, float]]:
        """Return mass and largest plausible mass [kg] of links that standard parameters (p,) make far too heavy.

        A mass on which no torque depends is free to grow without end, if that makes a first moment and an inertia
        possible which no arm has together: those of a weight that a spring bears, for one.
        """
        usual = sum(float(ten[9]) for ten in usual_links(self.model.robot).values())
        found = {}
        bodies = {body.link: body for body in self.model.robot.bodies}
        for link, place in self.links.items():
            if (body := bodies.get(link)) is None:
                continue
            # An arm of usual build is a guess from its reach alone; placeholders in a file say less than that.
            most = 100 * usual if body.inertia is None else 10 * max(body.inertia[9], usual)
            if values[place[9]] > most:
                found[link] = float(values[place[9]]), most
        return found

    @cached_property
    def reference(self) -> np.ndarray:
        """Values of the prior or reference for every standard parameter (p,)."""
        values = np.where(np.isfinite(self.known), self.known, 0.0)
        for place, body in zip(self.links.values(), self.bodies, strict=True):
            values[list(place)] = body.parameters
        return values

    def _to_parameters(self) -> np.ndarray:
        """Return the matrix (p, n) from unknowns to standard parameters: links first, then the others."""
        matrix, first = np.zeros((len(self.names), len(self.free))), 10 * len(self.bodies)
        for number, (place, body) in enumerate(zip(self.links.values(), self.bodies, strict=True)):
            matrix[np.ix_(list(place), range(10 * number, 10 * number + 10))] = body.to_parameters
        lengths = np.linalg.norm(self.root @ self.regrouping, axis=0)
        for column, k in enumerate(self.others, first):
            matrix[k, column] = _UNITS / lengths[k] if lengths[k] > 0 else max(abs(self.reference[k]), 1.0)
        return matrix

    def unknowns(self, values: np.ndarray) -> np.ndarray:
        """Return the unknowns (n,) of standard parameters (p,)."""
        return np.linalg.solve(self.to_parameters[self.free], values[self.free])

    @cached_property
    def others(self) -> list[int]:
        """Places of parameters that are none of a link: drive inertias, friction, offsets, springs."""
        inertial = {k for place in self.links.values() for k in place}
        return [k for k in self.free.tolist() if k not in inertial]

    @cached_property
    def fixed(self) -> np.ndarray:
        """What the file fixes to each link, as ``svec X`` (b, 10); exports leave it as it is."""
        found = np.zeros((len(self.bodies), 10))
        moving = {body.link for body in self.model.robot.bodies}
        for k, link in enumerate(self.links):
            if link in moving:  # a payload has nothing fixed to it
                found[k] = svec(self.bodies[k].in_units(self.model.robot.fixed_inertia(link)))
        return found

    def keeps_fixed(self, values: np.ndarray) -> bool:
        """Return whether the links of standard parameters (p,) are possible bodies without what is fixed to them."""
        if not self.fixed.any():
            return True
        smallest = smallest_eigenvalues(self.programme(None, keep_fixed=True), self.unknowns(values))
        return all(size > MARGIN / 4 for size, own in zip(smallest, self.fixed, strict=True) if own.any())

    @cached_property
    def prior_drives(self) -> list[int]:
        """Places of the drive inertias that the prior has; zero says nothing of a relative deviation."""
        known = {} if self.prior is None else self.prior.values
        return [
            k for k in self.others
            if self.model.parameters[k].symbol in DRIVE_SYMBOLS and known.get(self.names[k], 0.0) > 0
        ]  # fmt: skip

    def has_prior(self, number: int) -> bool:
        """Return whether the link of that number, from 0, has a prior; a payload and a massless link have none."""
        bodies = () if self.prior is None else self.prior.bodies
        link = list(self.links)[number]
        return any(body.link == link and any(body.inertia or ()) for body in bodies)

    @cached_property
    def positive(self) -> list[int]:
        """Places of friction and drive inertias, which are not negative."""
        brakes = self.model.nonnegative_friction
        return [k for k, one in enumerate(self.model.parameters) if one.name in brakes or one.symbol in DRIVE_SYMBOLS]

    def programme(
        self,
        deviation: float | None,
        rows: np.ndarray | None = None,
        target: np.ndarray | None = None,
        without: str = "",
        *,
        keep_fixed: bool = False,
    ) -> Programme:
        """Return the programme of some data.

        Args:
            deviation: Relative deviation of the prior; None for a reference.
            rows: Root of the information on the estimate's columns (r, c); that of the estimate if not given.
            target: What these rows give (r,); that of the estimate if not given.
            without: A bound to leave out.
            keep_fixed: Whether links remain possible after what is fixed to them, as the file has it, is taken off.
        """
        rows = self.root if rows is None else rows
        target = self.root @ self.estimate.values if target is None else target
        inside = self.to_parameters
        bounds = [bound for bound in self.bounds if bound.text != without]
        below, equal = ([bound for bound in bounds if bound.equal == kind] for kind in (False, True))
        return Programme(
            rows @ self.regrouping @ inside, target, tuple(range(0, 10 * len(self.bodies), 10)),
            *self._prior_terms(deviation), *_scaled(below, inside), *_scaled(equal, inside), MARGIN,
            self.fixed if keep_fixed else np.zeros_like(self.fixed),
        )  # fmt: skip

    def _prior_terms(
        self,
        deviation: float | None,
        centres: Sequence[np.ndarray] | None = None,
        drives: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return weights and inverse centres of the divergences, weights and centres of the quadratic terms.

        Args:
            deviation: Relative deviation of the prior; None for a reference.
            centres: Matrices X that the links are drawn to; the reference itself if not given.
            drives: Values that the drive inertias of the prior are drawn to, relative to its own; these if not given.
        """
        centres = [np.eye(4)] * len(self.bodies) if centres is None else centres
        first = 10 * len(self.bodies)
        weights = np.full(len(self.bodies), REFERENCE)
        pull, pull_to = np.full(len(self.free), REFERENCE), self.unknowns(self.reference)
        if deviation is not None:
            weights[[self.has_prior(k) for k in range(len(self.bodies))]] = deviation**-2
            columns = [first + self.others.index(k) for k in self.prior_drives]
            pull[columns] = (deviation * pull_to[columns]) ** -2.0
            if drives is not None:
                pull_to[columns] *= drives
        pull[:first] = 0.0
        inverse = np.array([svec(np.linalg.inv(one)) for one in centres]).reshape(-1, 10)
        if deviation is None or self.settings.kind == "euclidean":
            pull[:first] = np.repeat(weights, 10)
            pull_to[:first] = np.concatenate([svec(one) for one in centres]) if centres else []
            weights = np.zeros(len(weights))
        return weights, inverse, pull, pull_to

    def solved(self, programme: Programme, solver: Solver | None = None) -> Solution:
        """Solve a programme, by the solver of another like it if given; where bounds contradict each other, say which.

        Raises:
            EstimateError: If they do.
        """
        try:
            return (solver or Solver(programme)).solve(programme)
        except InfeasibleError:
            given = [bound.text for bound in self.bounds[len(self.positive) :]]
            guilty = [text for text in given if self._feasible_without(text)] or given
            raise EstimateError(
                f"no arm fulfils these bounds together: {'; '.join(guilty)}; widen or leave out one of them"
            ) from None

    def _feasible_without(self, text: str) -> bool:
        try:
            solve(self.programme(None, without=text))
        except InfeasibleError:
            return False
        return True

    def values(self, solution: Solution) -> np.ndarray:
        """Return the standard parameters (p,) of a solution; what a bound holds at zero is zero, without rounding."""
        values = self.to_parameters @ solution.x
        values[self.positive] = np.maximum(values[self.positive], 0.0)
        values[self.held_at_zero(solution)] = 0.0
        for bound in self.bounds:
            if bound.equal:
                values[bound.matrix.argmax(axis=1)] = bound.limit
        return values

    @cached_property
    def pinned(self) -> list[int]:
        """Places of the parameters of pinned links."""
        return [int(k) for bound in self.bounds if bound.equal for k in bound.matrix.argmax(axis=1)]

    def misfit(self, values: np.ndarray) -> float:
        """Return by how much standard parameters (p,) raise the weighted sum of squares above that of the estimate."""
        off = self.root @ (self.regrouping @ values - self.estimate.values)
        return float(off @ off)

    def held_at_zero(self, solution: Solution) -> list[int]:
        """Return the places of friction and drive inertias that would be negative; not those that data leave at 0."""
        prices = solution.bound_prices[: len(self.positive)]  # signs are the first of all bounds
        columns = [10 * len(self.bodies) + self.others.index(k) for k in self.positive]
        return [
            k for k, column, price in zip(self.positive, columns, prices, strict=True)
            if solution.x[column] < _AT_ZERO and price > _PRICED
        ]  # fmt: skip

    def draws(self, centre: np.ndarray, deviation: float | None, count: int, seed: int) -> np.ndarray:
        """Return consistent parameters (count, p) as other data, and another prior, of the same kind would give them.

        Estimates are drawn about ``centre`` by the covariance of the data, priors about the prior by its deviation, and
        each pair is solved again: in the linear case these are draws from the posterior.
        """
        rng = np.random.default_rng(seed)
        root = linalg.solve_triangular(self.root, np.eye(len(self.root)))
        middle, found, keep_fixed = self.regrouping @ centre, [], self.keeps_fixed(centre)
        about = self.programme(deviation, keep_fixed=keep_fixed)
        if deviation is None:  # what the data do not show stays as it is
            about = replace(about, pull_to=self.unknowns(centre))
        solver = Solver(about, _DRAWN, refined=False)
        for _ in range(count):
            target = self.root @ (middle + root @ rng.standard_normal(len(root)))
            drawn = replace(about, target=target)
            if deviation is not None:
                moved = random_bodies(deviation, len(self.bodies), rng)
                centres = [one if self.has_prior(k) else np.eye(4) for k, one in enumerate(moved)]
                off = deviation * rng.standard_normal(len(self.prior_drives))
                terms = self._prior_terms(deviation, centres, 1 + off)
                drawn = replace(drawn, **dict(zip(("weights", "centres", "pull", "pull_to"), terms, strict=True)))
            found.append(self.values(self.solved(drawn, solver)))
        return np.array(found)


def _scaled(bounds: Sequence[LinearBound], inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of bounds in unknowns, each of unit length."""
    if not bounds:
        return np.zeros((0, inside.shape[1])), np.zeros(0)
    rows = np.vstack([bound.matrix for bound in bounds]) @ inside
    limits = np.concatenate([bound.limit for bound in bounds])
    lengths = np.linalg.norm(rows, axis=1)
    return rows / lengths[:, None], limits / lengths


def _link_places(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the places of the ten parameters of each moving link, and of the payload, among the standard ones."""
    bodies = [(body.link, f"{body.number}") for body in model.robot.bodies]
    bodies += [("payload", "L")] if model.payload != "none" else []
    return {link: tuple(model.names.index(f"{symbol}{end}") for symbol in INERTIAL_NAMES) for link, end in bodies}


def _not_contradicted(
    equations: Equations, estimate: Estimate, settings: ConsistencySettings, declared: Sequence[str]
) -> tuple[str, ...]:
    """Return those of the links declared without mass that stay so: pinned ones, and those that fit the data."""
    if not declared:
        return ()

    def misfit(massless: Sequence[str]) -> float:
        problem = StandardProblem(equations, estimate, ConsistencySettings(), massless=massless)
        return problem.misfit(problem.values(problem.solved(problem.programme(None))))

    held, least = misfit(declared), misfit(())
    # Where the data are far from any arm they hold errors of the model, and chance is larger by as much.
    chance = CHANCE_OF_A_LINK * max(1.0, least / len(estimate.columns))
    if held - least <= chance:
        return tuple(declared)
    single = [link for link in declared if held - misfit([one for one in declared if one != link]) > chance]
    return tuple(link for link in declared if link in settings.pinned or (single and link not in single))


def _is_body(ten: np.ndarray) -> bool:
    """Return whether a file's ten parameters have a mass and a size."""
    return bool(np.isfinite(ten).all() and ten[9] > 0 and ten[0] + ten[3] + ten[5] > 0)


def _usual_payload(estimate: Estimate) -> np.ndarray:
    """Return a ball of 10 cm with the mass that the data say, at least 0.1 kg."""
    known = dict(zip(estimate.columns, estimate.values, strict=True))
    mass = max(known.get("ML", 1.0), 0.1)
    return parameters_from_centre(mass, np.zeros(3), 0.4 * mass * 0.01 * np.eye(3))
