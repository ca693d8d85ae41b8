"""Faults of a log's set-up that show as further columns of the regressor, or as changes from block to block.

A tilted base, zeros and scales of positions and gains of torques are derivatives of the torques at known inertias. They
compete with the friction laws that real arms have, and with friction that changes with time: what one of these predicts
better is no fault of the set-up. Their uncertainty is that over blocks of time, each left out in turn (jackknife): it
holds for correlated noise and for what the model lacks. All of it needs factors of the rows alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ..distributions import t_ppf
from ..estimate import Estimate
from ..model import Model, build_model
from ..observe import Equations, Observations, ResolvedPreparation, equations_of, reduce_rows
from .folds import Folds, FoldSquares, left_out_errors, solution, trend_of
from .inputs import Labelled, inertial_names, inertias_of, shows_moments, sources_of
from .regularisation import link_rows
from .selection import LINK_DEVIATION
from .settings import Settings

CERTAIN = 4.0
"""A fault of the set-up is this many standard deviations from none, over blocks left out."""
LEAST = {"tilt": 0.05, "zero": 0.005, "gain": 0.05, "scale": 0.02}
"""Smaller ones are not worth a sentence: gravity [m/s^2] (0.3 degrees), [rad or m], relative gain and scale."""
LEAST_GAIN = 0.005
"""Least part of the squared error of left-out blocks that a fault of the set-up explains."""
COMPETING = ("off", "Fvv", "Fg", "Fd2", "Fd4")
"""Friction that real arms have beyond the plain model, one law of each kind."""
UNSEEN_ZERO = np.pi / 4
"""Zeros are not confirmed where an error of this size would not be certain [rad]."""
MOST_STEPS = 12
TILT_PASSES = 2
"""Further searches with the inertias and the tilt that the one before found."""
MOST_PASSES, SMALLEST_STEP, LARGEST_STEP = 30, 1e-4, 10.0
"""Of the search for a gain, which multiplies what other columns explain: relative steps."""


@dataclass(frozen=True)
class SetupError:
    """An error of the set-up that the recordings show.

    Attributes:
        effect: ``tilt``, ``zero``, ``scale`` or ``gain``.
        joint: Joint it concerns; empty for the base.
        values: Its values: components of gravity [m/s^2], position [rad or m], relative scale or gain.
        sigma: Their standard deviations.
        half_width: Half widths of their 95 % intervals.
        names: Names of the parameters.
        share: Part of the squared error of left-out blocks that it explains.
    """

    effect: str
    joint: str
    values: tuple[float, ...]
    sigma: tuple[float, ...]
    half_width: tuple[float, ...]
    names: tuple[str, ...]
    share: float


def setup_errors(
    equations: Equations,
    recordings: Sequence[Labelled],
    resolved: ResolvedPreparation,
    estimate: Estimate,
    settings: Settings,
    *,
    gains: bool = True,
) -> tuple[tuple[SetupError, ...], tuple[str, ...]]:
    """Return errors of the set-up that explain what friction laws do not, and joints whose zeros do not show.

    Errors are in the order in which they joined. A zero does not show if the inertias take up any error of it, as those
    of the last link do, or if its sigma is large.

    Zeros and gains are computed with the inertias of the plain fit. A tilted base spoils these: where there is one, all
    is found again with the inertias and the tilt that were found beside it.

    Args:
        equations: Equations of the plain model.
        recordings: The recordings.
        resolved: Their preparation.
        estimate: Weighted least squares of the plain model.
        settings: Threads.
        gains: Whether gains of single joints are tried.
    """
    model = equations.model
    if "inertia" not in model.effects or model.measured == "difference" or model.payload != "none":
        return (), ()
    larger = _with_setup_errors(equations, estimate, gains)
    search, joined = _searched(equations, larger, recordings, resolved, settings)
    for _ in range(TILT_PASSES):
        if ("tilt", 0) in joined:
            larger = larger.with_inertias(search.inertias(joined))
            search, joined = _searched(equations, larger, recordings, resolved, settings)
    return tuple(search.errors(joined)), tuple(search.unseen_zeros(joined))


def _searched(
    plain: Equations,
    larger: Model,
    recordings: Sequence[Labelled],
    resolved: ResolvedPreparation,
    settings: Settings,
) -> tuple[_FaultSearch, dict[tuple[str, int], float]]:
    """Return the search among the faults and laws of a larger model, and what joined."""
    equations = equations_of(larger, without=[row for row in larger.rows if row not in plain.kinds_joints])
    sources, folds = sources_of(recordings, equations, resolved), Folds(recordings)
    factors = reduce_rows(sources, blocks=folds.blocks, threads=settings.threads)
    drifting = [_friction_columns(equations, *one) for one in equations.kinds_joints]
    squares = FoldSquares(factors, equations, folds, trends=[name for own in drifting for name in own])
    search = _FaultSearch(plain.model, equations, squares, drifting)
    return search, search.joined()


def _with_setup_errors(equations: Equations, estimate: Estimate, gains: bool) -> Model:
    model = equations.model
    side = "l" if model.measured == "joint" else "m"
    added = [*(f"{law}{side}" for law in COMPETING), "zero", "scale", *(["gain"] if gains else ())]
    added += ["tilt"] if any(model.robot.gravity) and shows_moments(equations) else []
    friction = replace(model.friction, inertias=MappingProxyType(dict(inertias_of(model, estimate))))
    effects = (*model.chosen_effects, *(name for name in added if name not in model.effects))
    return build_model(model.robot, effects, model.measured, model.payload, model.sign_width, friction)


class _FaultSearch:
    """Forward selection among faults of the set-up and friction laws; faults that join are estimated at the end."""

    def __init__(
        self, model: Model, equations: Equations, squares: FoldSquares, drifting: Sequence[Sequence[str]]
    ) -> None:
        self._squares = squares
        links = link_rows(equations, equations.names, None) / LINK_DEVIATION
        padded = np.insert(links, [links.shape[1] - 1] * (len(squares.names) - len(equations.names)), 0.0, axis=1)
        self._links = padded.T @ padded
        parameters = {one.name: one for one in equations.model.parameters}
        rigid = {one.name for one in equations.model.parameters if one.effect in ("inertia", "Ia")}
        self._rigid = np.array([name in rigid for name in squares.names])
        self._inertial = inertial_names(equations.model) & set(squares.names)
        self._plain, self._units = list[int](), dict[tuple[str, int], list[int]]()
        for k, name in enumerate(equations.names):
            one = parameters[name]
            if one.effect in model.effects:
                self._plain.append(k)
            elif one.effect in LEAST and one.effect != "tilt":
                self._units[one.effect, one.number] = [k]
            else:
                self._units.setdefault((one.effect, 0), []).append(k)
        for number, names in enumerate(drifting):
            if names:  # Coulomb and viscous friction of a joint change together
                self._units["trend", number] = [squares.names.index(trend_of(name)) for name in names]
        self._joints = {body.number: body.joint.name for body in model.robot.actuated}
        self._revolute = [body.number for body in model.robot.actuated if body.joint.kind == "revolute"]

    def joined(self) -> dict[tuple[str, int], float]:
        """Return the faults and laws that join, with the part of the squared error that each explains."""
        current, joined = list(self._plain), dict[tuple[str, int], float]()
        left = dict(self._units)
        while left and len(joined) < MOST_STEPS:
            best, share = self._best(current, left)
            if best is None:
                break
            joined[best] = share
            current += left.pop(best)
        return joined

    def inertias(self, joined: Iterable[tuple[str, int]]) -> dict[str, float]:
        """Return inertial parameters and tilt that all recordings show beside what joined."""
        current = self._columns(joined)
        found = solution(self._squares.by_fold(self._squares.weights(current)).sum(axis=0), np.array(current))
        return {name: float(found[self._squares.names.index(name)]) for name in sorted(self._inertial)}

    def errors(self, joined: Mapping[tuple[str, int], float]) -> Iterator[SetupError]:
        """Yield the faults that joined, with values and sigmas beside all else that joined."""
        current = self._columns(joined)
        for unit, share in joined.items():
            if unit[0] in LEAST and (error := self._estimated(unit, current, share)) is not None:
                yield error

    def unseen_zeros(self, joined: Collection[tuple[str, int]]) -> Iterator[str]:
        """Yield the revolute joints whose zeros may be far off without being found."""
        for number in self._revolute:
            unit = "zero", number
            if unit in self._units:
                own = self._units[unit]
                parts, _ = _left_out_values(self._squares, own, self._columns([*joined, unit]))
                if CERTAIN * _jackknife_sigma(parts)[0] <= UNSEEN_ZERO:
                    continue
            yield self._joints[number]

    def _columns(self, joined: Iterable[tuple[str, int]]) -> list[int]:
        return [*self._plain, *(k for unit in dict.fromkeys(joined) for k in self._units[unit])]

    def _best(self, current: list[int], left: dict[tuple[str, int], list[int]]) -> tuple[tuple[str, int] | None, float]:
        by_fold = self._squares.by_fold(self._squares.weights(current))
        before, after, _ = left_out_errors(by_fold, np.array(current), list(left.values()), self._links)
        known = np.isfinite(after).all(axis=0)
        gains = np.where(known, before[:, None] - np.where(known, after, 0.0), 0.0)
        gain, error = gains.sum(axis=0), np.sqrt(len(gains)) * gains.std(axis=0, ddof=1)
        enough = known & (gain > 2 * error) & (gain > LEAST_GAIN * before.sum())
        if not enough.any():
            return None, 0.0
        best = int(np.argmax(np.where(enough, gain - error, -np.inf)))
        return list(left)[best], float(gain[best] / before.sum())

    def _estimated(self, unit: tuple[str, int], current: Sequence[int], share: float) -> SetupError | None:
        """Return the values of one fault with sigmas by the jackknife; None if they are small or may be none."""
        own, joint = self._units[unit], "" if unit[0] == "tilt" else self._joints[unit[1]]
        squares, ratio = self._squares, 1.0
        if unit[0] == "gain":
            squares, ratio = self._scaled(joint, own[0], current)
        parts, value = _left_out_values(squares, own, current)
        if unit[0] == "tilt":  # what it does to a joint along gravity is beside it, and no size of it
            kept = [k for k, column in enumerate(own) if squares.names[column] in ("gx", "gy", "gz")]
            own, value, parts = [own[k] for k in kept], value[kept], parts[:, kept]
        value, parts = ratio * (1 + value) - 1, ratio * (1 + parts) - 1  # as they are where no gain was divided by
        sigma = _jackknife_sigma(parts)
        size = np.linalg.norm(value)
        if not np.isfinite(size) or size < LEAST[unit[0]] or not np.max(np.abs(value) / sigma) > CERTAIN:
            return None
        half = float(t_ppf(0.975, len(parts) - 1)) * sigma
        named = tuple(squares.names[k] for k in own), share
        return SetupError(unit[0], joint, tuple(value), tuple(sigma), tuple(half), *named)

    def _scaled(self, joint: str, column: int, current: Sequence[int]) -> tuple[FoldSquares, float]:
        """Return the sums with a joint's torques divided by their gain, and that gain.

        A gain multiplies torques of inertias that a wrong gain has spoilt: both are found in turn, until the torques of
        the inertias found with the gain have no further gain.
        """
        ratio, squares = 1.0, self._squares
        others = [k for k in current if k != column]
        for _ in range(MOST_PASSES):
            weights = squares.weights([*others, column])
            found = solution(squares.by_fold(weights).sum(axis=0), np.array([*others, column]))
            step = float(found[column])
            if not np.isfinite(step) or not LARGEST_STEP > abs(step) > SMALLEST_STEP:
                break
            ratio *= 1 + step
            rigid = np.where(self._rigid, found[:-1], 0.0)
            squares = self._squares.with_gain(joint, ratio, column, rigid)
        return squares, ratio


def _left_out_values(squares: FoldSquares, own: Sequence[int], current: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return values of columns beside the current ones with each block left out (folds, k), and of all (k,)."""
    others = np.array([k for k in current if k not in own])
    by_fold = squares.by_fold(squares.weights(current))
    by_fold = np.concatenate([by_fold, np.zeros_like(by_fold[:1])])  # nothing is left out last
    *_, values = left_out_errors(by_fold, others, [list(own)], np.zeros(by_fold.shape[1:]))
    return values[:-1], values[-1]


def _jackknife_sigma(parts: np.ndarray) -> np.ndarray:
    """Return standard deviations (k,) from values with each block left out (folds, k)."""
    return np.sqrt((len(parts) - 1) / len(parts) * np.sum((parts - parts.mean(axis=0)) ** 2, axis=0))


FRICTION_CHANGED, FRICTION_DIFFERS = 0.1, 0.03
"""Least change of a joint's friction that is a fault, as a part of it; and least difference of recordings to tell."""
BLOCKS = 20
"""Blocks of time of a recording whose friction is compared."""


@dataclass(frozen=True)
class FrictionChange:
    """Friction of a joint that is not the same all the time.

    Attributes:
        joint: The joint.
        kind: Its torque kind.
        recording: In which recording it changes with time, or which differs from the others.
        change: Change as a part of its friction: from the beginning to the end, or against the others.
        half_width: Half width of its 95 % interval.
        over_time: Whether it changes within the recording.
    """

    joint: str
    kind: str
    recording: str
    change: float
    half_width: float
    over_time: bool

    @property
    def is_small(self) -> bool:
        """Whether it is worth knowing, but no fault."""
        return abs(self.change) < FRICTION_CHANGED


def friction_changes(observations: Observations, equations: Equations, estimate: Estimate) -> Iterator[FrictionChange]:
    """Yield joints whose friction changes with time within a recording, or differs between recordings.

    The mean residual in the direction of motion is taken of every block; its spread over blocks says how sure a trend
    or a difference is.

    Args:
        observations: Factors by block of time.
        equations: Model and base parameters.
        estimate: Estimate of them all.
    """
    own = dict(zip(estimate.columns, estimate.values, strict=True))
    for kind, joint in equations.kinds_joints:
        columns = _friction_columns(equations, kind, joint)
        if not columns:
            continue
        coulomb, *viscous = columns
        by_recording, levels = dict[str, list[tuple[float, float, float]]](), list[tuple[float, float]]()
        for factor in observations.factors:
            if (factor.kind, factor.joint) != (kind, joint) or coulomb not in factor.columns:
                continue
            values = np.array([own.get(name, 0.0) for name in factor.columns])
            direction = factor.triangle[:, factor.columns.index(coulomb)]
            size = float(direction @ direction)
            if size <= 0:
                continue
            residual = factor.triangle[:, -1] - factor.triangle[:, :-1] @ values
            by_recording.setdefault(factor.recording, []).append(
                (float(factor.block), float(direction @ residual) / size, size)
            )
            friction = own.get(coulomb, 0.0) * direction
            for name in set(viscous) & set(factor.columns):
                friction = friction + own.get(name, 0.0) * factor.triangle[:, factor.columns.index(name)]
            levels.append((float(direction @ friction), size))
        level = sum(one for one, _ in levels) / max(sum(size for _, size in levels), 1e-300)
        if level > 0:
            yield from _changes(joint, kind, by_recording, level)


def _friction_columns(equations: Equations, kind: str, joint: str) -> tuple[str, ...]:
    """Return the columns of Coulomb and viscous friction of an equation; none if it has no Coulomb friction."""
    side = "l" if kind == "joint" else "m"
    named = {(one.effect, one.joint): one.name for one in equations.model.parameters if one.name in equations.names}
    if (f"Fc{side}", joint) not in named:
        return ()
    return tuple(named[law, joint] for law in (f"Fc{side}", f"Fv{side}") if (law, joint) in named)


def _changes(
    joint: str, kind: str, by_recording: dict[str, list[tuple[float, float, float]]], level: float
) -> Iterator[FrictionChange]:
    means: dict[str, tuple[float, float]] = {}
    for label, blocks in by_recording.items():
        if len(blocks) < 6:
            continue
        number, mean, size = np.array(sorted(blocks)).T
        time = (number - number.min()) / max(np.ptp(number), 1.0)
        weights = np.sqrt(size / size.sum())
        design = np.column_stack([np.ones_like(time), time]) * weights[:, None]
        found, *_ = np.linalg.lstsq(design, weights * mean, rcond=None)
        rest = weights * mean - design @ found
        freedom = len(time) - 2
        inverse = np.linalg.inv(design.T @ design)
        sigma = np.sqrt(inverse[1, 1] * (rest @ rest) / freedom)
        half = float(t_ppf(0.975, freedom)) * sigma / level
        change = float(found[1]) / level
        if abs(found[1]) > CERTAIN * sigma and abs(change) >= FRICTION_CHANGED:
            yield FrictionChange(joint, kind, label, change, half, True)
        average = float(weights**2 @ mean)
        spread = np.sqrt(np.sum(weights**4 * (mean - average) ** 2) * len(mean) / (len(mean) - 1))
        means[label] = average, float(spread)
    for label, (average, spread) in means.items():
        others = [one for name, one in means.items() if name != label]
        if not others:
            continue
        rest, variance = np.mean([one[0] for one in others]), sum(one[1] ** 2 for one in others) / len(others) ** 2
        sigma = float(np.hypot(spread, np.sqrt(variance)))
        change = (average - rest) / level
        is_most = all(abs(average - rest) >= abs(one[0] - average) / 2 for one in others)
        if abs(average - rest) > CERTAIN * sigma and abs(change) >= FRICTION_DIFFERS and is_most:
            yield FrictionChange(joint, kind, label, float(change), 2 * sigma / level, False)
