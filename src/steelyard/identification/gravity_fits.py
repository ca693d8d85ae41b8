"""Fits with gravity as it may be: is the arm mounted as the model says, and is gravity in the torques at all?

Gravity enters the equations linearly, but multiplied by the first moments: it cannot be estimated beside them by linear
least squares. A wrong direction leaves most of the gravity torques unexplained, so the residuals of six small fits show
it; rows are reduced once for all, with columns of what each component of gravity adds, so that a slope is searched for
from the best axis, and a tilt of the base from directions around the model's. Where friction is most of the torque,
residuals of torques without gravity are not that much larger: no gravity at all, a model with fewer parameters, is also
taken where it is likelier in nearly every block of time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import casadi as ca
import numpy as np

from ..distributions import t_ppf
from ..estimate import stacked_system, weighted
from ..lazy import recent
from ..model import Model
from ..model.terms import MotionSymbols
from ..observe import (
    Equations,
    Factor,
    Observations,
    ResolvedPreparation,
    busiest_part,
    equations_of,
    merged_triangle,
    nonzero_columns,
    reduce_rows,
)
from ..robot.placement import Vector3
from .inputs import MASSIVE, Labelled, sources_of
from .mounting import CERTAIN, LARGE_TILT, LEAST_TILT, Mounting, OtherMounting, Tilt, angle_between

FAR_BETTER = 2.0
"""Residuals must be this many times smaller: another direction also shows two parameters more."""
LOOKED_AT = 20_000
"""Samples at the start of each recording that are fitted."""
BETTER, WELL = 1.1, 0.1
"""No gravity is taken if residuals are so many times smaller, its log-likelihood is larger by ``CERTAIN`` standard
errors over blocks of time, and residuals are a smaller part of the torques than this."""
ALIKE = 1.01
"""Directions whose residuals differ by no more than this factor fit alike."""
FIRST_STEP, LAST_STEP = 22.5, 0.1
"""Steps of the search for a slope, halved where none is better [deg]."""
RINGS = (1.5, 4.0, 8.0)
"""Angles from the model's gravity at which the search for a tilt begins [deg]."""
ROUNDS, LEAST_DIFFERENCE, RIGHT = 2, 0.5, 0.05
"""Rounds of the search for the gravities of one recording and of the others, their least difference [deg], and the
largest residual, relative to the torques, with which a difference is another mounting."""
WIDENING, ASIDE = 1.2, (-2.0, -1.0, 0.0, 1.0, 2.0)
"""Each step of the search for an interval goes farther by this factor, and so many times as far aside."""

_NONE = (0.0, 0.0, 0.0)
_ASKEW = (5.0, 6.0, 6.0)
_UNITS: tuple[Vector3, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_BLOCKS = 16


def better_mounting(
    equations: Equations, training: Sequence[Labelled], resolved: ResolvedPreparation, threads: int = 1
) -> Mounting | None:
    """Return the direction of gravity that fits far better than the model's, None if there is none.

    Args:
        equations: The equations with the gravity that was assumed.
        training: The recordings that were fitted.
        resolved: Their preparation.
        threads: Threads that share the reduction.
    """
    return GravityFits(equations, training, resolved, threads).best()


@dataclass(frozen=True, eq=False)
class _GravityApart(Equations):
    """Equations with standard parameters of an arm without gravity, and columns of what each component of it adds."""

    def regressor(self, loaded: bool) -> ca.SX:
        """Return the regressor in symbols: columns of all parameters, then those of masses by component (E, c)."""
        model, motion = self.model, self.model.motion
        loaded = loaded or model.payload == "none"
        rows = [model.rows.index(row) for row in self.kinds_joints]
        at_rest = replace(motion, qd=ca.SX.zeros(*motion.qd.shape), qdd=ca.SX.zeros(*motion.qdd.shape))
        whole, massive = _in_gravity(model, _NONE, motion, loaded), _massive(model)
        if model.dependent_effects:  # friction that grows with the load does so under the gravity of the model
            others = [k for k, one in enumerate(model.parameters) if one.effect not in MASSIVE]
            whole[:, others] = _in_gravity(model, model.robot.gravity, motion, loaded)[:, others]
        parts = [_in_gravity(model, unit, at_rest, loaded)[:, massive] for unit in _UNITS]
        return ca.sparsify(ca.horzcat(whole, *parts)[rows, :])


def _in_gravity(model: Model, gravity: Vector3, motion: MotionSymbols, loaded: bool) -> ca.SX:
    turned = replace(model, robot=model.robot.with_gravity(gravity))
    return turned.regressor_of(turned.terms_in(motion), loaded=loaded)


def _massive(model: Model) -> list[int]:
    """Return the columns of parameters that gravity pulls at: masses and first moments."""
    return [k for k, one in enumerate(model.parameters) if one.effect in MASSIVE and one.symbol[0] == "M"]


@recent(4)
def _gravity_apart(equations: Equations) -> _GravityApart:
    """Return such equations of a model."""
    model = equations.model
    names = model.names + tuple(f"{model.names[c]} {'xyz'[k]}" for k in range(3) for c in _massive(model))
    found = _GravityApart(model, equations.base, equations.kinds_joints, (), names)
    return replace(found, columns=nonzero_columns(found.regressor(loaded=True), names))


class GravityFits:
    """Fits of the busiest parts of recordings with gravity as it may be."""

    def __init__(
        self, equations: Equations, training: Sequence[Labelled], resolved: ResolvedPreparation, threads: int
    ) -> None:
        model = equations.model
        if "tilt" in model.effects:  # it would stand for another direction of gravity
            level = replace(model, effects=tuple(effect for effect in model.effects if effect != "tilt"))
            equations = equations_of(level, without=[row for row in model.rows if row not in equations.kinds_joints])
        self._equations, self._resolved, self._threads = equations, resolved, threads
        self._recordings = [(label, busiest_part(one, LOOKED_AT)) for label, one in training]
        self._known: dict[tuple[Vector3, str, Vector3], _GravityFit] = {}

    @cached_property
    def _blocks(self) -> Observations:
        """Factors of blocks of time, the part of each component of gravity apart."""
        sources = sources_of(self._recordings, _gravity_apart(self._equations), self._resolved)
        return reduce_rows(sources, blocks=_BLOCKS, threads=self._threads)

    @cached_property
    def _whole(self) -> Observations:
        """Factors of whole recordings."""
        groups: dict[tuple[str, str, str], list[Factor]] = {}
        for factor in self._blocks.factors:
            groups.setdefault((factor.recording, factor.kind, factor.joint), []).append(factor)
        found = []
        for factors in groups.values():
            triangle, rows = merged_triangle(factors, factors[0].columns)
            found.append(replace(factors[0], triangle=triangle, rows=rows))
        return replace(self._blocks, factors=tuple(found))

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """Parameters that these motions tell apart, whatever the direction of gravity."""
        askew = _under_gravity(self._whole, self._equations.model.names, lambda _: _ASKEW)
        return stacked_system(askew, self._equations.model.names).columns

    def of(self, gravity: Vector3, label: str = "", other: Vector3 = _NONE) -> _GravityFit:
        """Return the fit with a gravity, perhaps with another one in the recording of a label."""
        if (gravity, label, other) not in self._known:

            def of_recording(name: str) -> Vector3:
                return other if name == label else gravity

            whole = _under_gravity(self._whole, self._names, of_recording)
            blocks = partial(_under_gravity, self._blocks, self._names, of_recording)
            fit = _GravityFit(relative_residual(whole, self._names), blocks, self._names)
            self._known[gravity, label, other] = fit
        return self._known[gravity, label, other]

    def best(self) -> Mounting | None:
        """Return the gravity that fits far better than the model's, None if there is none or it is but a tilt."""
        assumed = self._equations.model.robot.gravity
        size = float(np.linalg.norm(assumed)) or 9.81
        along = [_scaled(unit, sign * size) for unit in _UNITS for sign in (1, -1)]
        others = [gravity for gravity in along if not np.allclose(gravity, assumed, atol=0.1 * size)]
        best: Vector3 = min([*others, *([_NONE] if any(assumed) else [])], key=self._residual)
        if any(assumed):
            slope = self._on_side_of(assumed, _nearest_best(self._residual, [*along, assumed]))
            if self._residual(best) > BETTER * self._residual(slope):
                if angle_between(slope, assumed) <= LARGE_TILT:
                    return None
                best = slope
        if not any(best):
            return self.removed()
        best = self._on_side_of(assumed, best)
        found = Mounting(best, self._residual(best), self._residual(assumed), angle_between(best, assumed))
        return found if found.ratio >= FAR_BETTER else None

    def tilt(self) -> Tilt | None:
        """Return the tilt of the base whose gravity is certainly likelier than the model's; None if there is none."""
        assumed = self._equations.model.robot.gravity
        if not any(assumed):
            return None
        x, y = np.linalg.svd(np.array([assumed]))[2][1:]
        ways = [np.cos(angle) * x + np.sin(angle) * y for angle in np.arange(8) * np.pi / 4]
        # Springs look like weight where the arm is level, and nowhere near it: the search begins off that point.
        around = [_turned(assumed, way, np.radians(angle)) for angle in RINGS for way in ways]
        gravity = self._on_side_of(assumed, _nearest_best(self._residual, around, RINGS[0]))
        angle = angle_between(gravity, assumed)
        is_certain = LEAST_TILT <= angle <= LARGE_TILT and self.of(gravity).likelier(self.of(assumed)) >= CERTAIN
        return Tilt(angle, self._half_width(gravity, assumed), gravity) if is_certain else None

    @cached_property
    def other_mounting(self) -> OtherMounting | None:
        """The recording that is certainly under another gravity than the others, the likeliest of all; None: alike.

        Both gravities are searched for in turn, from the one that fits all recordings best. Of upside down, which arms
        with parallel axes do not feel, nothing is said.
        """
        assumed, labels = self._equations.model.robot.gravity, [label for label, _ in self._recordings]
        if not any(assumed) or len(labels) < 2:
            return None
        common = _nearest_best(self._residual, [assumed], RINGS[0])
        size = float(np.linalg.norm(assumed))
        along = [_scaled(unit, sign * size) for unit in _UNITS for sign in (1, -1)]

        def of_one(label: str, gravity: Vector3, other: Vector3) -> float:
            return self.of(gravity, label, other).residual

        def of_others(label: str, other: Vector3, gravity: Vector3) -> float:
            return self.of(gravity, label, other).residual

        # Of two recordings one gravity each is searched for: which of them is the other one does not matter.
        tried = labels if len(labels) > 2 else labels[1:]
        starts = {one: _nearest_best(partial(of_one, one, common), [common, *along], RINGS[0]) for one in tried}
        label = min(tried, key=lambda one: of_one(one, common, starts[one]))
        gravity, other = common, starts[label]
        for _ in range(ROUNDS):
            gravity = _nearest_best(partial(of_others, label, other), [gravity, assumed], RINGS[0])
            other = _nearest_best(partial(of_one, label, gravity), [other], RINGS[0])
        apart, together = self.of(gravity, label, other), self.of(common)
        if len(labels) == 2 and angle_between(gravity, assumed) > angle_between(other, assumed):
            label, gravity, other = labels[0], other, gravity
        found = OtherMounting(label, other, gravity, angle_between(gravity, other))
        if found.is_far and (apart.residual > RIGHT or together.residual < FAR_BETTER * apart.residual):
            return None  # a sign, a column or a payload of that recording may be wrong
        return found if found.angle >= LEAST_DIFFERENCE and apart.likelier(together) >= CERTAIN else None

    def _half_width(self, best: Vector3, assumed: Vector3) -> float:
        """Return the half width of the 95 % interval of a tilt's angle [deg].

        An angle d from the best is less likely in proportion to d^2, with a spread over blocks in proportion to d: it
        is half as many standard errors less likely as d is long.
        """
        fit, along = self.of(best), np.array(assumed) / np.linalg.norm(assumed)
        across = np.array(best) - along * (along @ best)
        across /= np.linalg.norm(across)
        aside = np.cross(along, across)
        step, least = LAST_STEP, float(t_ppf(0.975, _BLOCKS - 1)) / 2
        while step < LARGE_TILT:
            there = _turned(best, across, np.radians(step))
            turned = [_turned(there, aside, part * np.radians(step)) for part in ASIDE]
            if min(fit.likelier(self.of(gravity)) for gravity in turned) >= least:
                break
            step *= WIDENING
        return step

    def _residual(self, gravity: Vector3) -> float:
        return self.of(gravity).residual

    def _on_side_of(self, assumed: Vector3, gravity: Vector3) -> Vector3:
        """Return the mirror image of a gravity on the side of the assumed one, if that fits alike.

        Axes that are all parallel do not feel gravity along them: upside down would look the same.
        """
        size = float(np.dot(assumed, assumed))
        there = float(np.dot(gravity, assumed))
        if size == 0 or there >= 0:
            return gravity
        x, y, z = np.array(gravity) - 2 * there / size * np.array(assumed)
        mirrored = float(x), float(y), float(z)
        return mirrored if self._residual(mirrored) <= ALIKE * self._residual(gravity) else gravity

    def removed(self) -> Mounting | None:
        """Return that there is no gravity in the torques, None if it is not certain."""
        assumed = self._equations.model.robot.gravity
        if not any(assumed):
            return None
        without, with_it = self.of(_NONE), self.of(assumed)
        found = Mounting(_NONE, without.residual, with_it.residual)
        if found.ratio >= FAR_BETTER:
            return found
        certain = found.ratio >= BETTER and without.residual <= WELL and without.likelier(with_it) >= CERTAIN
        return found if certain else None


@dataclass(frozen=True, eq=False)
class _GravityFit:
    """Weighted least squares with one gravity.

    Attributes:
        residual: Rms of the residuals over that of the torques, all joints alike.
        blocks: Returns the factors of blocks of time.
        names: The parameters.
    """

    residual: float
    blocks: Callable[[], Observations]
    names: Sequence[str]

    def likelier(self, other: _GravityFit) -> float:
        """Return by how many standard errors over blocks this fit is likelier than another (Vuong's test)."""
        own, their = self._by_block, other._by_block
        gains = np.array([own[block] - their[block] for block in own if block in their])
        spread = float(gains.std(ddof=1)) if len(gains) > 1 else 0.0
        return float(gains.sum() / (np.sqrt(len(gains)) * spread)) if spread > 0 else 0.0

    @cached_property
    def _by_block(self) -> dict[tuple[str, int], float]:
        """Return the log-likelihood of every block of time of every recording, each equation with its own noise."""
        observations = self.blocks()
        factors = observations.factors
        estimate = weighted(observations, stacked_system(observations, self.names).columns)
        errors, sums = [], dict[tuple[str, str, str], list[float]]()
        for one in factors:
            rest = one.triangle[:, -1] - one.triangle[:, :-1] @ estimate.full_values(one.columns)
            errors.append(float(rest @ rest))
            total = sums.setdefault((one.recording, one.kind, one.joint), [0.0, 0.0])
            total[0] += errors[-1]
            total[1] += one.rows
        found: dict[tuple[str, int], float] = {}
        for one, error in zip(factors, errors, strict=True):
            squares, rows = sums[one.recording, one.kind, one.joint]
            variance = max(squares / rows, 1e-300)
            place = (one.recording, one.block)
            found[place] = found.get(place, 0.0) - one.rows * np.log(variance) / 2 - error / (2 * variance)
        return found


def _nearest_best(
    residual: Callable[[Vector3], float], starts: Sequence[Vector3], first_step: float = FIRST_STEP
) -> Vector3:
    """Return a gravity of the same size that fits better than all near it, downhill from the best of some."""
    here, step = min(starts, key=residual), np.radians(first_step)
    while step > np.radians(LAST_STEP):
        across = np.linalg.svd(np.array([here]))[2][1:]
        ways = (turn for axis in across for turn in (axis, -axis))
        tried = [_turned(here, way, step) for way in ways]
        best = min(tried, key=residual)
        if residual(best) < residual(here):
            here = best
        else:
            step /= 2
    return here


def _turned(gravity: Vector3, across: np.ndarray, angle: float) -> Vector3:
    """Return gravity turned by an angle towards a unit vector across it."""
    x, y, z = np.cos(angle) * np.array(gravity) + np.sin(angle) * np.linalg.norm(gravity) * across
    return float(x), float(y), float(z)


def _scaled(unit: Vector3, size: float) -> Vector3:
    x, y, z = unit
    return 0.0 + x * size, 0.0 + y * size, 0.0 + z * size  # no negative zero


def _under_gravity(apart: Observations, names: Sequence[str], gravity_of: Callable[[str], Vector3]) -> Observations:
    """Return factors with the parts of each recording's gravity added to the columns of their parameters."""
    onto = dict[tuple[tuple[str, ...], Vector3], tuple]()
    found = []
    for factor in apart.factors:
        gravity = gravity_of(factor.recording)
        if (factor.columns, gravity) not in onto:
            sizes = {"": 1.0, **dict(zip("xyz", gravity, strict=True))}
            parts = [column.partition(" ")[::2] for column in factor.columns]
            present = {name for name, _ in parts}
            own = tuple(name for name in names if name in present)
            matrix = np.zeros((len(parts) + 1, len(own) + 1))
            matrix[-1, -1] = 1.0
            for row, (name, component) in enumerate(parts):
                if name in own:
                    matrix[row, own.index(name)] = sizes[component]
            onto[factor.columns, gravity] = own, matrix
        own, matrix = onto[factor.columns, gravity]
        found.append(replace(factor, columns=own, triangle=factor.triangle @ matrix))
    return replace(apart, factors=tuple(found))


def relative_residual(observations: Observations, names: Sequence[str]) -> float:
    """Return the rms of the residuals of least squares, every joint's torques scaled to an rms of one."""
    squares: dict[tuple[str, str, str], list[float]] = {}
    for factor in observations.factors:
        total = squares.setdefault((factor.recording, factor.kind, factor.joint), [0.0, 0.0])
        total[0] += float(np.sum(factor.triangle[:, -1] ** 2))
        total[1] += factor.rows
    weights = {group: float(np.sqrt(rows / total)) if total > 0 else 0.0 for group, (total, rows) in squares.items()}
    system = stacked_system(observations, names, weights)
    return float(np.sqrt(system.squares / system.rows))
