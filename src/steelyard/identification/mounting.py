"""The direction of gravity in the base frame, tested on the training recordings: is the arm mounted as the model says?

Gravity enters the equations linearly, but multiplied by the first moments: it cannot be estimated beside them by linear
least squares. A wrong direction leaves most of the gravity torques unexplained, so the residuals of six small fits
show it; rows are reduced once for all, with columns of what each component of gravity adds, so that a slope is searched
for from the best axis. Where friction is most of
the torque, residuals of torques without gravity are not that much larger: no gravity at all, a model with fewer
parameters, is also taken where it is likelier in nearly every block of time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import casadi as ca
import numpy as np

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
from ..verdict import Reason
from .inputs import Labelled, sources_of

FAR_BETTER = 2.0
"""Residuals must be this many times smaller: another direction also shows two parameters more."""
LOOKED_AT = 20_000
"""Samples at the start of each recording that are fitted."""
BETTER, CERTAIN, WELL = 1.1, 4.0, 0.1
"""No gravity is taken if residuals are so many times smaller, its log-likelihood is larger by so many standard errors
over blocks of time, and residuals are a smaller part of the torques than this."""
MASSIVE = ("inertia", "payload")
"""Effects with torques of gravity."""

REMOVED = "removed"
"""Stands for torques from which the controller has removed gravity."""

SLOPE = "slope"
"""Stands for a direction between the axes."""
LARGE_TILT = 10.0
"""A direction nearer to the model's is a tilt, no other mounting [deg]."""
FIRST_STEP, LAST_STEP = 22.5, 0.1
"""Steps of the search for a slope, halved where none is better [deg]."""

_NONE = (0.0, 0.0, 0.0)
_ASKEW = (5.0, 6.0, 6.0)
_UNITS: tuple[Vector3, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_BLOCKS = 16
_AXES = {"+x": (1, 0, 0), "-x": (-1, 0, 0), "+y": (0, 1, 0), "-y": (0, -1, 0), "+z": (0, 0, 1), "-z": (0, 0, -1)}


@dataclass(frozen=True)
class Mounting:
    """A direction of gravity that fits the training recordings far better than the model's.

    Attributes:
        direction: Axis of the base frame along which gravity pulls: ``+x``, ``-x`` ... ``-z``; ``slope`` for one
            between; or ``removed``.
        gravity: Acceleration of gravity in the base frame [m/s^2].
        residual: Rms of the residuals over that of the torques with it, all joints alike.
        assumed_residual: The same with the model's own gravity.
        angle: Angle between both directions [deg].
    """

    direction: str
    gravity: tuple[float, float, float]
    residual: float
    assumed_residual: float
    angle: float = 0.0

    @property
    def ratio(self) -> float:
        """How many times smaller its residuals are."""
        return self.assumed_residual / self.residual if self.residual > 0 else np.inf

    @property
    def text(self) -> str:
        """What was found, in a sentence."""
        if self.direction == REMOVED:
            return (
                f"without gravity the fit is {self.ratio:.2g} times better: gravity seems to be taken out of these "
                "torques already, as some drivers do"
            )
        if self.direction == SLOPE:
            return (
                f"gravity {self.angle:.3g} degrees away from where the model has it fits {self.ratio:.2g} times "
                "better, as on a slope"
            )
        return (
            f"gravity along {self.direction} of the base fits {self.ratio:.2g} times better than as the model has it, "
            "as on a wall, a ceiling or a slope"
        )

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.direction == REMOVED:
            return f"record torques that contain gravity; {self.flag} fits these, but masses are not identifiable then"
        return f"if the arm is mounted so, give {self.flag}; if not, look for joints whose zero or sign is wrong"

    @property
    def flag(self) -> str:
        """What to give to ``steelyard identify``."""
        return f"--gravity {','.join(f'{part:.4g}' for part in self.gravity)}"


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
        self._known: dict[Vector3, _GravityFit] = {}

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
        askew = _under_gravity(self._whole, self._equations.model.names, _ASKEW)
        return stacked_system(askew, self._equations.model.names).columns

    def of(self, gravity: Vector3) -> _GravityFit:
        """Return the fit with a gravity."""
        if gravity not in self._known:
            whole = _under_gravity(self._whole, self._names, gravity)
            blocks = partial(_under_gravity, self._blocks, self._names, gravity)
            self._known[gravity] = _GravityFit(relative_residual(whole, self._names), blocks, self._names)
        return self._known[gravity]

    def best(self) -> Mounting | None:
        """Return the gravity that fits far better than the model's, None if there is none."""
        assumed = self._equations.model.robot.gravity
        size = float(np.linalg.norm(assumed)) or 9.81
        turned = {direction: (size * x, size * y, size * z) for direction, (x, y, z) in _AXES.items()}
        tried = {key: gravity for key, gravity in turned.items() if not np.allclose(gravity, assumed, atol=0.1 * size)}
        if any(assumed):
            tried[REMOVED] = _NONE
        best = min(tried, key=lambda direction: self.of(tried[direction]).residual)
        if any(assumed):
            slope = self._nearest_best([*turned.values(), assumed])
            is_better = self.of(tried[best]).residual > BETTER * self.of(slope).residual
            if is_better and _angle(slope, assumed) > LARGE_TILT:
                best, tried[SLOPE] = SLOPE, slope
        if best == REMOVED:
            return self.removed()
        angle = _angle(tried[best], assumed)
        found = Mounting(best, tried[best], self.of(tried[best]).residual, self.of(assumed).residual, angle)
        return found if found.ratio >= FAR_BETTER else None

    def _nearest_best(self, starts: Sequence[Vector3]) -> Vector3:
        """Return a gravity of the same size that fits better than all near it, downhill from the best of some."""
        here, step = min(starts, key=lambda gravity: self.of(gravity).residual), np.radians(FIRST_STEP)
        while step > np.radians(LAST_STEP):
            across = np.linalg.svd(np.array([here]))[2][1:]
            ways = (turn for axis in across for turn in (axis, -axis))
            tried = [_turned(here, way, step) for way in ways]
            best = min(tried, key=lambda gravity: self.of(gravity).residual)
            if self.of(best).residual < self.of(here).residual:
                here = best
            else:
                step /= 2
        return here

    def removed(self) -> Mounting | None:
        """Return that there is no gravity in the torques, None if it is not certain."""
        assumed = self._equations.model.robot.gravity
        if not any(assumed):
            return None
        without, with_it = self.of(_NONE), self.of(assumed)
        found = Mounting(REMOVED, _NONE, without.residual, with_it.residual)
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
        own, their = self._by_block(), other._by_block()
        gains = np.array([own[block] - their[block] for block in own if block in their])
        spread = float(gains.std(ddof=1)) if len(gains) > 1 else 0.0
        return float(gains.sum() / (np.sqrt(len(gains)) * spread)) if spread > 0 else 0.0

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


def _turned(gravity: Vector3, across: np.ndarray, angle: float) -> Vector3:
    """Return gravity turned by an angle towards a unit vector across it."""
    x, y, z = np.cos(angle) * np.array(gravity) + np.sin(angle) * np.linalg.norm(gravity) * across
    return float(x), float(y), float(z)


def _angle(one: Vector3, other: Vector3) -> float:
    """Return the angle between two vectors [deg]."""
    return float(np.degrees(np.arctan2(np.linalg.norm(np.cross(one, other)), np.dot(one, other))))


def _under_gravity(apart: Observations, names: Sequence[str], gravity: Vector3) -> Observations:
    """Return factors with the parts of gravity added to the columns of the parameters that they belong to."""
    sizes, onto = {"": 1.0, **dict(zip("xyz", gravity, strict=True))}, dict[tuple[str, ...], tuple]()
    found = []
    for factor in apart.factors:
        if factor.columns not in onto:
            parts = [column.partition(" ")[::2] for column in factor.columns]
            present = {name for name, _ in parts}
            own = tuple(name for name in names if name in present)
            matrix = np.zeros((len(parts) + 1, len(own) + 1))
            matrix[-1, -1] = 1.0
            for row, (name, component) in enumerate(parts):
                if name in own:
                    matrix[row, own.index(name)] = sizes[component]
            onto[factor.columns] = own, matrix
        own, matrix = onto[factor.columns]
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


def mounting_reason(found: Mounting) -> Reason:
    """Return the reason that names a direction of gravity that fits better."""
    return Reason(found.text, found.remedy, "mounting", "poor", "plausible")


def turned_gravity(gravity: Vector3, across: Mapping[str, float]) -> tuple[float, Vector3]:
    """Return by how much a tilted base turns gravity [deg], and gravity in its frame, of the same size.

    Args:
        gravity: What the model says.
        across: Parameters of the effect ``tilt`` by name; others are ignored.

    Example:
        >>> from steelyard.identification.mounting import turned_gravity
        >>> angle, turned = turned_gravity((0.0, 0.0, -9.81), {"gx": 0.0, "gy": 4.905})
        >>> round(angle, 9), [round(part, 3) for part in turned]
        (30.0, [0.0, 4.905, -8.496])
    """
    if not any(gravity):
        return 0.0, gravity
    size, main = float(np.linalg.norm(gravity)), int(np.argmax(np.abs(gravity)))
    turned = np.array([part + across.get(f"g{axis}", 0.0) for part, axis in zip(gravity, "xyz", strict=True)])
    turned[main] = 0.0
    turned[main] = np.copysign(np.sqrt(max(size**2 - turned @ turned, 0.0)), gravity[main])
    turned *= size / float(np.linalg.norm(turned))
    x, y, z = turned.tolist()
    return _angle(gravity, (x, y, z)), (x, y, z)
