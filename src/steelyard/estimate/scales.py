"""Scales of measured torques beside the parameters: ``y_j = s_j W_j x + e_j``, by maximum likelihood.

Row j of joint j is measured in a unit of unknown size, as a current is. The noise is on what is measured: regressing
parameters and ``y_j / s_j`` together, with ``y_j`` among the regressors, draws the scales to zero. Known parameters
(the mass of a payload) fix the size of all. For given scales the problem is linear: the parameters are projected out,
and Gauss-Newton steps on the logarithms of the scales remain, with every noise group's variance at its maximum of the
likelihood,

    L(s) = - sum_g N_g / 2 log(min_x ||y_g - s_j W_g x||^2 / N_g).

Rows are those of factors. The covariance is that of a jackknife over blocks of time, which contains the correlation of
the noise, whatever it is within a block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import EstimateError
from ..observe import Observations, merged_triangle
from ..text import short_repr
from .least_squares import group_factors, joint_deviations
from .system import NoiseGroup, stacked_system

PRIOR = 1.0
"""Standard deviation of the logarithm of a scale before there are data: keeps those finite that nothing shows."""
_STEPS = 100
_CLOSE = 1e-9
_LARGEST_STEP = 0.5
_WELL_KNOWN = 0.2
"""A scale that its own rows show to this part is a start."""

BlockKey = tuple[str, int]
"""Recording and number of a block of time."""


@dataclass(frozen=True, eq=False)
class ScaleFit:
    """Scales and parameters.

    Attributes:
        joints: Names of the joints (n,).
        scales: The scales (n,).
        columns: Names of the parameters (c,).
        values: Their values (c,), those that are known among them.
        covariance: Covariance of the logarithms of the scales (n, n), from blocks of time.
        blocks: Blocks of time behind it.
        likelihood: Logarithm of the likelihood at its maximum.
        cross_validation: Squared error of left-out blocks, predicted from the others, in units of the noise.
        relative_error: Root of that over the squares of all that is measured.
        value_sigma: Sigmas of the parameters (c,), from the same blocks; 0 for those that are known.
        known_factor: By what the known parameters are multiplied in all rows, and its sigma, scales alike: negative
            where they act against what is measured.
        changes: Logarithms of the scales where the known parameters act, over those elsewhere (n,); by these the
            scales are one.
        change_sigma: Their sigmas (n,), from the same blocks; infinite where nothing shows them.
    """

    __repr__ = short_repr

    joints: tuple[str, ...]
    scales: np.ndarray
    columns: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    blocks: int
    likelihood: float
    cross_validation: float
    relative_error: float
    value_sigma: np.ndarray
    known_factor: tuple[float, float]
    changes: np.ndarray
    change_sigma: np.ndarray

    def sure_changes(self, sigmas: float) -> np.ndarray:
        """Return the changes that differ from none by some sigmas (n,); 0 for the others."""
        return np.where(np.abs(self.changes) > sigmas * self.change_sigma, self.changes, 0.0)


def fit_scales(
    observations: Observations,
    columns: Sequence[str],
    joints: Sequence[str],
    known: Mapping[str, float],
    weights: Mapping[NoiseGroup, float] | None = None,
) -> ScaleFit:
    """Return the scales of every joint's measured torques, and the parameters.

    Args:
        observations: Factors of recordings; those of one joint share its scale.
        columns: Names of all parameters.
        joints: Names of the joints.
        known: Parameters that are known; without one the size of the scales is arbitrary.
        weights: One over the noise of every group, in which the errors of left-out blocks are counted, so that models
            can be compared; None: from the rows.

    Raises:
        EstimateError: If the known parameters have no effect on the recordings.
    """
    rows = _Rows(observations, columns, joints, known)
    weights = weights or {group: 1 / sigma for group, sigma in joint_deviations(observations).items()}
    starts = rows.starts(weights)
    found = max((rows.maximum(start, weights) for start in starts), key=lambda one: one.likelihood)
    blocks = list(rows.by_block)
    each = [[block] for block in blocks]
    spread = rows.jackknife(found, each)
    recordings = {recording for recording, _ in blocks}
    loaded = {factor.recording for factor in observations.factors if set(known) & set(factor.columns)}
    if min(len(loaded), len(recordings - loaded)) >= 2:
        # Whole recordings, as of several days, may disagree by more than blocks of one of them do.
        between = rows.jackknife(found, [[key for key in blocks if key[0] == one] for one in sorted(recordings)])
        wider = np.sqrt(np.maximum(np.diag(between) / np.diag(spread), 1.0))
        spread = spread * np.outer(wider, wider)
    value_sigma = np.zeros(len(columns))
    value_sigma[rows.free] = np.sqrt(np.diag(spread)[: -len(joints)])
    error, size = rows.left_out_error(found, weights), rows.size_of_measured(weights)
    changes, change_sigma = rows.changes(found, each, loaded) if recordings - loaded else rows.no_changes()
    return ScaleFit(
        tuple(joints), found.scales, tuple(columns), found.values, spread[-len(joints) :, -len(joints) :],
        len(blocks), found.likelihood, error,
        float(np.sqrt(error / size)) if size > 0 else 0.0, value_sigma, rows.known_factor(weights, None),
        changes, change_sigma,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Maximum:
    scales: np.ndarray
    values: np.ndarray
    weights: dict[NoiseGroup, float]
    likelihood: float


class _Rows:
    """Rows of all noise groups, and of their blocks of time, in the same columns."""

    def __init__(
        self, observations: Observations, columns: Sequence[str], joints: Sequence[str], known: Mapping[str, float]
    ) -> None:
        unknown = [name for name in columns if name not in known]
        system = stacked_system(observations, unknown)
        self.free = np.array([columns.index(name) for name in system.columns])
        self.fixed = np.zeros(len(columns))
        for name, value in known.items():
            self.fixed[columns.index(name)] = value
        self.count = len(joints)
        self.joint = {group: joints.index(group[2]) for group in group_factors(observations)}
        self.triangles: dict[NoiseGroup, np.ndarray] = {}
        self.size: dict[NoiseGroup, int] = {}
        self.by_block: dict[BlockKey, list[tuple[NoiseGroup, np.ndarray]]] = {}
        for group, factors in group_factors(observations).items():
            self.triangles[group], self.size[group] = merged_triangle(factors, columns)
            for factor in factors:
                own = self.by_block.setdefault((factor.recording, factor.block), [])
                own.append((group, merged_triangle([factor], columns)[0]))
        if not any((R[:, :-1] @ self.fixed).any() for R in self.triangles.values()):
            raise EstimateError(
                f"{', '.join(known) or 'no parameter'} is known, which has no effect in these recordings: gains and "
                "masses cannot be told apart; give recordings with a payload of known mass"
            )

    def starts(self, weights: Mapping[NoiseGroup, float]) -> list[np.ndarray]:
        """Return where to begin: equal scales, and those that the rows of each joint show alone.

        With parameters of its own for every joint, ``y_j = W_j x_j``, the problem is linear, and ``x_j = s_j x``: what
        the known parameters would have to be in the rows of j, over what they are, is its scale.
        """
        combined, _ = self.known_factor(weights, None)
        common = combined if combined > 0 else 1.0
        own = np.full(self.count, common)
        for j in range(self.count):
            value, sigma = self.known_factor(weights, j)
            if value > 0 and sigma < _WELL_KNOWN * value:
                own[j] = value
        return [np.full(self.count, common), own]

    def known_factor(self, weights: Mapping[NoiseGroup, float], joint: int | None) -> tuple[float, float]:
        """Return by what the known parameters are multiplied in the rows of a joint, or of all, and its sigma."""
        parts = [
            weights[group] * np.column_stack([R[:, self.free], R[:, :-1] @ self.fixed, R[:, -1]])
            for group, R in self.triangles.items() if joint is None or self.joint[group] == joint
        ]  # fmt: skip
        if not parts:
            return 0.0, np.inf
        stacked = np.vstack(parts)
        lengths = np.linalg.norm(stacked, axis=0)
        if lengths[-2] == 0:
            return 0.0, np.inf
        scaled = stacked[:, :-1] / np.where(lengths[:-1] > 0, lengths[:-1], 1.0)
        found, _, rank, _ = np.linalg.lstsq(scaled, stacked[:, -1], rcond=1e-10)
        others = scaled[:, :-1]
        rest = scaled[:, -1] - others @ np.linalg.lstsq(others, scaled[:, -1], rcond=1e-10)[0]
        distance = float(np.linalg.norm(rest))
        return float(found[-1] / lengths[-2]), float(1 / (distance * lengths[-2])) if rank and distance > 0 else np.inf

    def maximum(self, start: np.ndarray, weights: Mapping[NoiseGroup, float]) -> _Maximum:
        """Return the maximum of the likelihood from a start, by Gauss-Newton steps that are shortened as needed."""
        now = self._at(start, start, weights)
        now = self._at(start, start, now.weights)
        for _ in range(_STEPS):
            jacobian, residual = self._linearised(now, self.triangles.items())
            prior = np.zeros((self.count, jacobian.shape[1]))
            prior[:, -self.count :] = np.eye(self.count) / PRIOR
            jacobian = np.vstack([jacobian, prior])
            residual = np.concatenate([residual, np.log(start / now.scales) / PRIOR])
            lengths = np.linalg.norm(jacobian, axis=0)
            step = np.linalg.lstsq(jacobian / lengths, residual, rcond=1e-12)[0] / lengths
            step = step[-self.count :]
            step *= min(1.0, _LARGEST_STEP / max(np.abs(step).max(), 1e-300))
            better = next((new for new in self._shortened(now, step, start) if new.likelihood > now.likelihood), None)
            if better is None:
                break
            gained, now = better.likelihood - now.likelihood, better
            if np.abs(step).max() < _CLOSE or gained < _CLOSE:
                break
        return now

    def _shortened(self, now: _Maximum, step: np.ndarray, start: np.ndarray) -> Iterable[_Maximum]:
        for halving in range(8):
            yield self._at(now.scales * np.exp(step / 2**halving), start, now.weights)

    def _at(self, scales: np.ndarray, start: np.ndarray, weights: Mapping[NoiseGroup, float]) -> _Maximum:
        """Return the best parameters for given scales, the weights of their residuals, and the likelihood."""
        parts = [
            weights[group] * np.column_stack([s * R[:, self.free], R[:, -1] - s * (R[:, :-1] @ self.fixed)])
            for group, R in self.triangles.items() for s in [scales[self.joint[group]]]
        ]  # fmt: skip
        values = self.fixed.copy()
        values[self.free] = _solved(np.vstack(parts))
        squares = {
            group: float(np.sum((R[:, -1] - scales[self.joint[group]] * (R[:, :-1] @ values)) ** 2))
            for group, R in self.triangles.items()
        }
        least = 1e-24 * max(float(np.sum(R[:, -1] ** 2)) for R in self.triangles.values())
        found = {group: float(np.sqrt(self.size[group] / max(one, least))) for group, one in squares.items()}
        likelihood = sum(self.size[group] * np.log(weight) for group, weight in found.items())
        prior = float(np.sum((np.log(scales / start) / PRIOR) ** 2)) / 2
        return _Maximum(scales, values, found, float(likelihood) - prior)

    def _linearised(
        self, at: _Maximum, rows: Iterable[tuple[NoiseGroup, np.ndarray]], apart: Collection[str] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted derivatives by free parameters and logarithms of scales, and the residuals.

        Between the two stand the logarithms by which scales of the recordings ``apart`` differ, if there are any.
        """
        first = len(self.free)
        last = first + self.count if apart else first
        jacobians, residuals = [], []
        for group, R in rows:
            j, weight = self.joint[group], at.weights[group]
            predicted = at.scales[j] * (R[:, :-1] @ at.values)
            jacobian = np.zeros((len(R), last + self.count))
            jacobian[:, :first] = weight * at.scales[j] * R[:, self.free]
            jacobian[:, last + j] = weight * predicted
            if group[0] in apart:
                jacobian[:, first + j] = weight * predicted
            jacobians.append(jacobian)
            residuals.append(weight * (R[:, -1] - predicted))
        return np.vstack(jacobians), np.concatenate(residuals)

    def changes(
        self, at: _Maximum, parts: Sequence[Sequence[BlockKey]], apart: Collection[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return by what logarithms of scales of some recordings differ from those of the others, and their sigmas.

        One step from the maximum with equal scales, all joints together.
        """
        jacobian, residual = self._linearised(at, self.triangles.items(), apart)
        lengths = np.where(np.linalg.norm(jacobian, axis=0) > 0, np.linalg.norm(jacobian, axis=0), 1.0)
        step = np.linalg.lstsq(jacobian / lengths, residual, rcond=1e-10)[0] / lengths
        own = slice(len(self.free), len(self.free) + self.count)
        sigma = np.sqrt(np.diag(self.jackknife(at, parts, apart, step))[own])
        return step[own], np.where((jacobian[:, own] != 0).any(axis=0), sigma, np.inf)

    def no_changes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return changes of which nothing is known."""
        return np.zeros(self.count), np.full(self.count, np.inf)

    def jackknife(
        self,
        at: _Maximum,
        parts: Sequence[Sequence[BlockKey]],
        apart: Collection[str] = (),
        step: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the covariance of free parameters and logarithms of scales from leaving out each part once.

        ``delta_b = (A - A_b)^-1 g_b`` with ``A_b = J_b^T J_b`` and the score ``g_b = J_b^T r_b`` of a part, one step
        each; the covariance is ``(G - 1) / G sum_b delta_b delta_b^T``. With ``apart`` scales of these recordings are
        their own, and ``step`` leads from where the scales are equal to the maximum.
        """
        whole, _ = self._linearised(at, self.triangles.items(), apart)
        lengths = np.where(np.linalg.norm(whole, axis=0) > 0, np.linalg.norm(whole, axis=0), 1.0)
        information = (whole / lengths).T @ (whole / lengths)
        prior = np.zeros(len(lengths))
        prior[-self.count :] = 1 / (PRIOR * lengths[-self.count :]) ** 2
        moves = []
        for part in parts:
            jacobian, residual = self._linearised(at, [one for key in part for one in self.by_block[key]], apart)
            if step is not None:
                residual = residual - jacobian @ step
            jacobian = jacobian / lengths
            rest = information - jacobian.T @ jacobian + np.diag(prior + 1e-10)
            moves.append(np.linalg.solve(rest, jacobian.T @ residual) / lengths)
        count, changes = len(parts), np.array(moves)
        spread = (count - 1) / count * changes.T @ changes
        # Blocks cannot move what nothing shows: it is as uncertain as before, and nothing is less so than white noise.
        formal = np.diag(np.linalg.inv(information + np.diag(prior + 1e-10))) / lengths**2
        wider = np.sqrt(np.maximum(formal / np.maximum(np.diag(spread), 1e-300), 1.0))
        return spread * np.outer(wider, wider)

    def size_of_measured(self, weights: Mapping[NoiseGroup, float]) -> float:
        """Return the weighted squares of all that is measured."""
        return sum(float(np.sum((weights[group] * R[:, -1]) ** 2)) for group, R in self.triangles.items())

    def left_out_error(self, at: _Maximum, weights: Mapping[NoiseGroup, float]) -> float:
        """Return the squared error of every block predicted from the others, the scales as they are."""
        blocks = [
            np.vstack([
                weights[group] * np.column_stack([s * R[:, self.free], R[:, -1] - s * (R[:, :-1] @ self.fixed)])
                for group, R in own for s in [at.scales[self.joint[group]]]
            ])
            for own in self.by_block.values()
        ]  # fmt: skip
        lengths = np.sqrt(sum(np.sum(block**2, axis=0) for block in blocks))
        lengths = np.where(lengths > 0, lengths, 1.0)
        squares = [(block / lengths).T @ (block / lengths) for block in blocks]
        total, error = np.sum(squares, axis=0), 0.0
        for square in squares:
            rest = total - square
            found = np.linalg.solve(rest[:-1, :-1] + 1e-10 * np.eye(len(rest) - 1), rest[:-1, -1])
            with_y = np.append(-found, 1.0)
            error += float(with_y @ square @ with_y) * lengths[-1] ** 2
        return error


def _solved(rows: np.ndarray) -> np.ndarray:
    """Return least squares of rows ``[W y]``, columns scaled."""
    lengths = np.linalg.norm(rows[:, :-1], axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return np.linalg.lstsq(rows[:, :-1] / lengths, rows[:, -1], rcond=1e-12)[0] / lengths
