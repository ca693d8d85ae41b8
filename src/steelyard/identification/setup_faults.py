"""Faults of a log's set-up that show as further columns of the regressor.

A tilted base, joint zeros that are elsewhere and torques of a wrong gain are derivatives of the torques at known
inertias. They compete with the friction laws that real arms have, and with friction that changes with time: what one of
these predicts better is no fault of the set-up. Their uncertainty is that over blocks of time, each left out in turn
(jackknife): it holds for correlated noise and for what the model lacks. All of it needs factors of the rows alone.
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
from ..robot.placement import Vector3
from ..verdict import Reason
from .folds import Folds, FoldSquares, coulomb_columns, left_out_errors, solution, trend_of
from .inputs import Labelled, inertias_of, sources_of
from .regularisation import link_rows
from .selection import LINK_DEVIATION
from .settings import Settings

CERTAIN = 4.0
"""A fault of the set-up is this many standard deviations from none, over blocks left out."""
LEAST = {"tilt": 0.05, "zero": 0.005, "gain": 0.05}
"""Smaller ones are not worth a sentence: component of gravity [m/s^2] (0.3 degrees), [rad or m], relative gain."""
LEAST_GAIN = 0.005
"""Least part of the squared error of left-out blocks that a fault of the set-up explains."""
LARGE_TILT = 10.0
"""A base that is tilted further is mounted otherwise than the model says: its masses would be 1.5 % off [deg]."""
COMPETING = ("off", "Fvv", "Fg", "Fd2", "Fd4")
"""Friction that real arms have beyond the plain model, one law of each kind."""
UNSEEN_ZERO = np.pi / 4
"""Zeros are not confirmed where an error of this size would not be certain [rad]."""
MOST_STEPS = 12
MOST_PASSES, SMALLEST_STEP, LARGEST_STEP = 30, 1e-4, 10.0
"""Of the search for a gain, which multiplies what other columns explain: relative steps."""


@dataclass(frozen=True)
class SetupError:
    """An error of the set-up that the recordings show.

    Attributes:
        effect: ``tilt``, ``zero`` or ``gain``.
        joint: Joint it concerns; empty for the base.
        values: Its values: components of gravity [m/s^2], position [rad or m], or relative gain.
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
    model: Model,
    recordings: Sequence[Labelled],
    resolved: ResolvedPreparation,
    estimate: Estimate,
    settings: Settings,
    *,
    without: Collection[tuple[str, str]] = (),
    gains: bool = True,
) -> tuple[tuple[SetupError, ...], tuple[str, ...]]:
    """Return errors of the set-up that explain what friction laws do not, and joints whose zeros do not show.

    Errors are in the order in which they joined. A zero does not show if the inertias take up any error of it, as those
    of the last link do, or if its sigma is large.

    Args:
        model: The plain model.
        recordings: The recordings.
        resolved: Their preparation.
        estimate: Weighted least squares of the plain model.
        settings: Threads.
        without: Equations that are left out.
        gains: Whether gains of single joints are tried.
    """
    if "inertia" not in model.effects or model.measured == "difference" or model.payload != "none":
        return (), ()
    larger = _with_setup_errors(model, estimate, gains)
    equations, folds = equations_of(larger, without=without), Folds(recordings)
    factors = reduce_rows(sources_of(recordings, equations, resolved), blocks=folds.blocks, threads=settings.threads)
    drifting = [coulomb_columns(equations, *one) for one in equations.kinds_joints]
    squares = FoldSquares(factors, equations, folds, trends=[name for own in drifting for name in own])
    search = _FaultSearch(model, equations, squares, drifting)
    joined = search.joined()
    return tuple(search.errors(joined)), tuple(search.unseen_zeros(joined))


def _with_setup_errors(model: Model, estimate: Estimate, gains: bool) -> Model:
    side = "l" if model.measured == "joint" else "m"
    added = [*(f"{law}{side}" for law in COMPETING), "zero", *(["gain"] if gains else ())]
    added += ["tilt"] if any(model.robot.gravity) else []
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
        self._plain: list[int] = []
        rigid = {one.name for one in equations.model.parameters if one.effect in ("inertia", "Ia")}
        self._rigid = np.array([name in rigid for name in squares.names])
        self._units: dict[tuple[str, int], list[int]] = {}
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
        names = tuple(self._squares.names[k] for k in own)
        return SetupError(unit[0], joint, tuple(value), tuple(sigma), tuple(half), names, share)

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


def turned_gravity(gravity: Vector3, across: Mapping[str, float]) -> tuple[float, Vector3]:
    """Return by how much a tilted base turns gravity [deg], and gravity in its frame, of the same size.

    Args:
        gravity: What the model says.
        across: Parameters of the effect ``tilt`` by name; others are ignored.

    Example:
        >>> from steelyard.identification.setup_faults import turned_gravity
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
    cosine = float(turned @ gravity) / size**2
    x, y, z = turned.tolist()
    return float(np.degrees(np.arccos(min(cosine, 1.0)))), (x, y, z)


def tilt_reason(angle: float, gravity: Vector3) -> Reason:
    """Return the reason that names a large tilt that was found."""
    flag = ",".join(f"{part:.3g}" for part in gravity)
    return Reason(
        f"gravity is found {angle:.2g} degrees from where the model has it, as on a slope",
        f"measure the mounting; if it is so, give --gravity {flag}, which the masses need; if not, look for joints "
        "whose zero or sign is wrong", "mounting", "fair", "plausible",
    )  # fmt: skip


@dataclass(frozen=True)
class FileScale:
    """Measured torque of a joint over what the robot file's inertias give along the motion, its friction apart.

    Attributes:
        joint: The joint.
        kind: Its torque kind.
        ratio: That factor.
        explained: Part of the torque's squares that these inertias explain beyond friction and offsets.
    """

    joint: str
    kind: str
    ratio: float
    explained: float


def scales_by_joint(equations: Equations, observations: Observations) -> tuple[FileScale, ...]:
    """Return the factor of every joint's torque against the robot file; empty if the file has no inertias."""
    robot, model = equations.model.robot, equations.model
    if "inertias" not in robot.carries or "inertia" not in model.effects:
        return ()
    inertial = {one.name for one in model.parameters if one.effect in ("inertia", "Ia")}
    file = equations.base_values({name: value for name, value in robot.parameters.items() if name in inertial})
    found = []
    for kind, joint in equations.kinds_joints:
        rows = []
        for factor in observations.factors:
            if (factor.kind, factor.joint) == (kind, joint):
                rigid = [k for k, name in enumerate(factor.columns) if name in inertial]
                other = [k for k, name in enumerate(factor.columns) if name not in inertial]
                known = factor.triangle[:, rigid] @ [file[factor.columns[k]] for k in rigid]
                rows.append(np.column_stack([known, factor.triangle[:, other], factor.triangle[:, -1]]))
        if not rows:
            continue
        width = max(part.shape[1] for part in rows)
        stacked = np.vstack([part for part in rows if part.shape[1] == width])
        total = float(stacked[:, -1] @ stacked[:, -1])
        if total > 0:
            values, squares = _least_squares(stacked)
            explained = (_least_squares(stacked[:, 1:])[1] - squares) / total
            found.append(FileScale(joint, kind, float(values[0]), explained))
    return tuple(found)


def _least_squares(rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the values of all columns but the last, which they explain, and the squares that are left."""
    values = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=1e-10)[0]
    rest = rows[:, -1] - rows[:, :-1] @ values
    return values, float(rest @ rest)
