"""Plan of a filter, resolved before the first sample: start of the parameters, which are free, and the noise.

At recorded postures the parameters must be those of a possible arm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import EstimateError, nearest_match
from ...observe import RowSource, raw_samples, weighted_runs
from ..evidence import Estimate, Evidence, Prior, checked_prior
from .dynamics import possible_move
from .engines import Arms
from .noises import Noises, band_limited, noises_of
from .settings import KalmanSettings
from .state import impossible_joint

POSTURES = 200
"""Postures that are looked at, about."""

LEAST_PIVOT = 0.2
"""Least pivot of a possible arm, as a part of the smallest of the start or of least squares at any posture."""

_SWEEPS = 20

SIGN_PART = 1 / 3
"""Width of the sign of a direction that is held, as a part of the slowest joint's speed of standstill."""

LEAST_WIDTH = 1e-4
"""Where no speed counts as standstill [rad/s or m/s]."""


class RecordedPostures:
    """Postures of the recordings, evenly spread in time, with the inertia matrices of any parameters there.

    Args:
        evidence: The recordings.
        free: Which parameters are estimated.
        held: Whether the direction of friction is held over a step.
    """

    def __init__(self, evidence: Evidence, free: tuple[int, ...], *, held: bool) -> None:
        self._free, self._parts = list(free), []
        for source in evidence.sources:
            q = _spread(source, max(POSTURES // len(evidence.sources), 1))
            arms = Arms(evidence.equations, evidence.columns, free, loaded=source.loaded, held=held)
            self._parts.append((arms, np.ascontiguousarray(q)))

    def pivots(self, values: np.ndarray) -> np.ndarray:
        """Return the pivots of the inertia matrix at all postures (n, P)."""
        with np.errstate(all="ignore"):
            return np.concatenate([arms.inertia().dense(q, values)[1][:, 0] for arms, q in self._parts], axis=1)

    def least_pivots(self, values: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Return the least pivots that count as a possible arm (n,).

        Args:
            values: Values at the start (c,); if they are no possible arm themselves, all are zero.
            batch: Values of least squares of all rows (c,): they count too where their pivots are positive.
        """
        lowest, others = self.pivots(values).min(axis=1), self.pivots(batch).min(axis=1)
        if not (lowest > 0).all():
            return np.zeros(len(lowest))
        return LEAST_PIVOT * np.where(others > 0, np.minimum(lowest, others), lowest)

    def accelerations(self, values: np.ndarray, torques: np.ndarray) -> np.ndarray:
        """Return the deviations of accelerations (n,) that torques of some deviations (n,) make, the median.

        The inertia matrix of the values must be positive definite at all postures.
        """
        matrices = [np.moveaxis(arms.inertia().dense(q, values)[0], 2, 0) for arms, q in self._parts]
        made = np.linalg.inv(np.concatenate(matrices)) * torques
        return np.sqrt(np.median((made**2).sum(axis=2), axis=0))

    def moved(self, values: np.ndarray, least: np.ndarray, root: np.ndarray) -> np.ndarray | None:
        """Return values that are a possible arm at every posture, by moves as small as can be; None if none are found.

        Args:
            values: All parameters (c,).
            least: Least pivots (n,).
            root: Root of the covariance of the free parameters (f, f).
        """
        values = values.copy()
        for _ in range(_SWEEPS):
            is_bad = ~(self.pivots(values) >= least[:, None]).all(axis=0)
            if not is_bad.any():
                return values
            bad = iter(np.split(is_bad, np.cumsum([q.shape[1] for _, q in self._parts])[:-1]))
            for arms, q in self._parts:
                for k in np.flatnonzero(next(bad)):
                    move = possible_move(arms.graph(), self._free, q[:, k], values, least, root)
                    if move is None:
                        return None
                    values[self._free] += move
        return None


def _spread(source: RowSource, wanted: int) -> np.ndarray:
    """Return about so many postures of a recording (n, P), or all if it has fewer; memory does not grow with it."""
    postures, every, read = np.zeros((len(source.equations.joints), 0)), 1, 0
    for block in raw_samples(source):
        postures = np.concatenate([postures, block.q[:, -read % every :: every]], axis=1)
        read += block.q.shape[1]
        while postures.shape[1] > 2 * wanted:
            postures, every = postures[:, ::2], 2 * every
    return postures


SHARES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.05)
"""Shares of the way from the robot's values to those of the first rows that are tried."""

RETAINED_PIVOT = 0.3
"""Part of the pivots of the inertia matrix that the start must retain."""


@dataclass(frozen=True, eq=False)
class FilterStart:
    """Parameters before the first sample.

    Attributes:
        values: (c,).
        covariance: (c, c).
    """

    values: np.ndarray
    covariance: np.ndarray


def start_of(evidence: Evidence, settings: KalmanSettings, prior: Prior, postures: RecordedPostures) -> FilterStart:
    """Return the start that the settings ask for, with the prior's values and deviations where it has them.

    Raises:
        EstimateError: If the prior names a parameter that is not estimated, or has a deviation that is not above 0, or
            the robot's own values are requested and are no possible arm.
    """
    plain = evidence.plain
    if settings.start == "auto":
        values, covariance = _possible(evidence, settings, postures)
    elif settings.start == "first":
        values, covariance = _first_rows(evidence, settings, np.zeros(len(plain.columns)), _sizes(plain))
    elif settings.start == "wls":
        values, covariance = plain.values.copy(), settings.widen**2 * plain.covariance
    elif settings.start == "robot":
        values = robot_values(evidence)
        covariance = np.diag(_weak(values, plain, settings) ** 2)
    else:
        values, covariance = np.zeros(len(plain.columns)), np.diag(_sizes(plain) ** 2)
    for k, value, deviation in checked_prior(prior, plain.columns):
        values[k] = value
        covariance[k, :] = covariance[:, k] = 0.0
        covariance[k, k] = deviation**2
    joint = impossible_joint(evidence, postures.pivots(values).min(axis=1)) if settings.start == "robot" else None
    if joint is not None:
        raise EstimateError(
            "ekf start 'robot': with the values of the robot's file the inertia matrix is not positive definite at "
            f"joint '{joint}': its links have no usable inertias there; start from the recordings (--option "
            "start=auto), give a prior, or complete the file"
        )
    return FilterStart(values, covariance)


def _weak(known: np.ndarray, plain: Estimate, settings: KalmanSettings) -> np.ndarray:
    """Return how little the values of a robot's file are trusted (c,); what it does not know may be of any size."""
    return np.where(known == 0, _sizes(plain), np.maximum(np.abs(known), settings.widen * plain.sigma))


def free_columns(columns: tuple[str, ...], locked: tuple[str, ...]) -> list[int]:
    """Return which columns are estimated.

    Raises:
        EstimateError: If a locked name is not a column, or none is left.
    """
    for name in locked:
        if name not in columns:
            raise EstimateError(
                f"ekf locked: '{name}' is not among the estimated parameters {', '.join(columns[:8])} ..."
                f"{nearest_match(name, columns)}"
            )
    free = [k for k, name in enumerate(columns) if name not in locked]
    if not free:
        raise EstimateError("ekf locked: every parameter is locked, nothing is left to estimate; leave one free")
    return free


def robot_values(evidence: Evidence) -> np.ndarray:
    """Return the values of the robot's file as base parameters (c,); 0 for what it does not know."""
    base = evidence.equations.base_values(evidence.equations.model.robot.parameters)
    return np.array([base[name] for name in evidence.columns])


def _sizes(plain: Estimate) -> np.ndarray:
    """Return for each parameter the value with which its column alone would be as large as the torques (c,)."""
    return np.linalg.norm(plain.system.triangle[:, -1]) / plain.system.scale


def _first_rows(
    evidence: Evidence, settings: KalmanSettings, centre: np.ndarray, deviations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted least squares of the first rows with a weak prior: values and covariance."""
    count = len(centre)
    system = _first_triangle(evidence, settings.first) / settings.widen
    weak = np.column_stack([np.diag(1 / deviations), centre / deviations])
    triangle = np.asarray(np.linalg.qr(np.vstack([system, weak]), mode="r"))
    root = np.linalg.inv(triangle[:count, :count])
    return root @ triangle[:count, count], root @ root.T


def _possible(
    evidence: Evidence, settings: KalmanSettings, postures: RecordedPostures
) -> tuple[np.ndarray, np.ndarray]:
    """Return a start that is a possible arm at the recorded postures: values and covariance.

    Where the robot's file has inertias, the first rows with the file's values as a weak prior, and from the file's
    values only as far towards them as the pivots of the inertia matrix keep a part of those of the file. Where it has
    none, least squares of all rows, moved as little as can be. What the start was moved by is added to its covariance.
    """
    plain, known = evidence.plain, robot_values(evidence)
    lowest = postures.pivots(known)
    if (lowest > 0).all():
        wanted, covariance = _first_rows(evidence, settings, known, _weak(known, plain, settings))
        trials = ((share, postures.pivots(known + share * (wanted - known))) for share in SHARES)
        share = next((share for share, pivots in trials if (pivots >= RETAINED_PIVOT * lowest).all()), 0.0)
        values = known + share * (wanted - known)
    else:
        wanted, covariance = plain.values, settings.widen**2 * plain.covariance
        least = RETAINED_PIVOT * np.median(np.abs(postures.pivots(wanted)), axis=1)
        found = postures.moved(wanted, least, np.linalg.cholesky(covariance))
        values = wanted if found is None else found  # if none is found, the filter says where it stops
    move = values - wanted
    return values.copy(), covariance + np.outer(move, move)


def _first_triangle(evidence: Evidence, part: float) -> np.ndarray:
    """Return the triangle of the weighted rows ``[W y]`` of the first part of the recordings (c + 1, c + 1)."""
    wanted = int(np.ceil(part * evidence.plain.system.rows / len(evidence.equations.kinds_joints)))
    triangle = np.zeros((len(evidence.columns) + 1,) * 2)
    for source in evidence.sources:
        for block, runs in source.block_runs():
            weighted = weighted_runs(runs, evidence.columns, evidence.plain.weights)
            parts = [one.spread(len(evidence.columns))[: max(0, wanted - one.run.places.start)] for one in weighted]
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, *parts]), mode="r"))
            wanted -= len(block.time)
            if wanted <= 0:
                return triangle
    return triangle


@dataclass(frozen=True, eq=False)
class FilterPlan:
    """A filter before it runs.

    Attributes:
        evidence: The recordings.
        settings: The settings.
        start: Where the parameters start.
        free: Which of them are estimated.
        noises: Deviations for each recording.
        sign_width: Width of the sign [rad/s or m/s].
        standstill: Speed of each joint below which its friction is not trusted (n,) [rad/s or m/s]; 0 for none.
        least: Least pivots of the inertia matrix that count as a possible arm (n,); 0: positive ones.
        impossible: Share of the postures at which least squares of all rows has no positive pivot, by joint (n,).
    """

    evidence: Evidence
    settings: KalmanSettings
    start: FilterStart
    free: tuple[int, ...]
    noises: tuple[Noises, ...]
    sign_width: float
    standstill: np.ndarray
    least: np.ndarray
    impossible: np.ndarray

    @property
    def joints(self) -> int:
        """Number of joints n."""
        return len(self.evidence.equations.joints)

    @property
    def smoothing_cutoff(self) -> float | None:
        """Where the measured motion is smoothed [Hz]; None if derivatives are not taken along it."""
        settings, resolved = self.settings, self.evidence.sources[0].resolved
        if settings.derivatives == "predicted" or settings.process == "state":
            return None
        return resolved.cutoff or resolved.proposed_cutoff

    @property
    def rate(self) -> float:
        """Rate of the samples [Hz]."""
        return self.evidence.sources[0].resolved.rate


def plan_of(evidence: Evidence, settings: KalmanSettings, prior: Prior) -> FilterPlan:
    """Return the plan of a filter: everything that was left open found from the data.

    Raises:
        EstimateError: If settings, prior and evidence do not fit each other.
    """
    for source in evidence.sources:
        if settings.observe == "q_qd" and source.template.qd is None:
            raise EstimateError(
                f"ekf observe 'q_qd': recording '{source.label}' has no recorded velocity; observe q, or declare the "
                "qd channel"
            )
    free = tuple(free_columns(evidence.columns, settings.locked))
    postures = RecordedPostures(evidence, free, held=settings.sign_width is None)
    start = start_of(evidence, settings, prior, postures)
    least = postures.least_pivots(start.values, evidence.plain.values)
    noises = [noises_of(evidence, source, settings) for source in evidence.sources]
    if settings.process == "torque" and least.any():
        cutoff = evidence.sources[0].resolved.cutoff
        pushed = [postures.accelerations(start.values, each.process) for each in noises]
        noises = [band_limited(each, settings, a, cutoff) for each, a in zip(noises, pushed, strict=True)]
    impossible = (postures.pivots(evidence.plain.values) <= 0).mean(axis=1)
    width, standstill = settings.sign_width, np.zeros(len(evidence.equations.joints))
    if width is None:
        standstill = evidence.sources[0].resolved.standstill
        known = standstill[standstill > 0]
        width = max(SIGN_PART * float(known.min()) if len(known) else 0.0, LEAST_WIDTH)
    return FilterPlan(evidence, settings, start, free, tuple(noises), width, standstill, least, impossible)


def arms_of(plan: FilterPlan, index: int) -> Arms:
    """Return what is made of a plan's arm in one of its recordings."""
    evidence = plan.evidence
    return Arms(
        evidence.equations, evidence.columns, plan.free, loaded=evidence.sources[index].loaded,
        held=plan.settings.sign_width is None,
    )  # fmt: skip
