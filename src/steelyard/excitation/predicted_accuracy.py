"""Predicted accuracy of a motion: condition numbers, sigmas after identification's preparation, and weak parameters.

:class:`Forecast` gives the figures at all samples of the recording, :class:`PredictedAccuracy` the sigmas of the
prepared recording.

Identification low-passes positions and decimates rows. Both need samples on either side, so the ends of a recording
give no rows, and near standstill a joint's own equations are bridged. What is lost at the ends is slow motion, which
distinguishes Coulomb from viscous friction: sigmas of friction are up to a third above those of all samples. So the
planned motion becomes a recording and goes through the preparation itself. Noise that was white before the decimator
gives its rows the covariance S, and ``M = W^T S^-1 W`` is the information of generalised least squares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ObservationError
from ..motion import ApproachedTrajectory, MotionLimits, Trajectory, at_speed
from ..observe import (
    Preparation,
    ResolvedPreparation,
    Whitening,
    decimator_correlation,
    equations_of,
    merged_triangle,
    reduce_rows,
    resolve_preparation,
    row_source,
)
from ..recording import Recording, TorqueChannel
from ..text import short_repr
from .cramer_rao import cramer_rao_information, fitted_basis
from .criteria import condition_of, inverse_and_log_det, unit_diagonal
from .family import MotionFamily
from .information import Information, Unknowns

BLOCK = 4000
"""Samples evaluated at once: memory does not grow with the motion."""


@dataclass(frozen=True, eq=False)
class Figures:
    """Predicted figures of an experiment.

    Attributes:
        names: Names of the base parameters.
        raw: Condition number of W as it is.
        normalised: With columns at unit length.
        weighted: With rows over their noise.
        log10_det_covariance: Of the parameters' covariance.
        sigma: Standard deviations of the parameters (c,).
        relative_sigma: Over the parameters' sizes (c,); NaN where these are unknown or zero.
        is_prepared: Whether sigmas are those after identification's preparation; else those of all samples.
    """

    __repr__ = short_repr

    names: tuple[str, ...]
    raw: float
    normalised: float
    weighted: float
    log10_det_covariance: float
    sigma: np.ndarray
    relative_sigma: np.ndarray
    is_prepared: bool = False


@dataclass(frozen=True, eq=False)
class PositionNoise:
    """Noise of the positions, for the Cramer-Rao bound.

    Attributes:
        family: The motions whose coefficients are unknown too.
        values: Present values of the model's standard parameters, by name.
        deviations: Standard deviation of a sample of each position (n,) [rad or m].
    """

    family: MotionFamily
    values: Mapping[str, float]
    deviations: np.ndarray


def exact(chosen: Unknowns) -> Unknowns:
    """Return the unknowns with the exact sign of friction."""
    return replace(chosen, model=replace(chosen.model, sign_width=0.0))


class Forecast:
    """Predicts the figures of one motion after another. Compiled once."""

    def __init__(self, chosen: Unknowns, positions: PositionNoise | None = None) -> None:
        """Take the unknowns, whose smooth sign is replaced by the exact one, and the noise of positions if any."""
        self.unknowns = exact(chosen)
        self._information = Information(self.unknowns)
        self._positions = positions

    def __call__(self, trajectory: Trajectory) -> Figures:
        """Return the figures of a motion recorded at the unknowns' rate."""
        return self.of_matrices(*self.matrices(trajectory))

    def matrices(self, trajectory: Trajectory) -> tuple[np.ndarray, np.ndarray]:
        """Return ``W^T W`` (c, c) of all samples, rows as they are and over their noise, that of positions included."""
        plain, weighted = self._of_rows(trajectory)
        return plain, weighted if self._positions is None else self._noisy(trajectory)

    def cost_of_positions(self, trajectory: Trajectory) -> np.ndarray | None:
        """Return the covariance (c, c) that noise of the positions adds to that of exact ones; None if there is none.

        None, too, where not all unknowns are identifiable.
        """
        if self._positions is None:
            return None
        noisy = self._noisy(trajectory)
        if not np.isfinite(condition_of(unit_diagonal(noisy)[0])):
            return None
        return inverse_and_log_det(noisy)[0] - inverse_and_log_det(self._of_rows(trajectory)[1])[0]

    def _times(self, trajectory: Trajectory) -> np.ndarray:
        """Return the instants (N,) of the samples: each in the middle of its interval."""
        count = max(int(self.unknowns.rate * trajectory.duration), 1)
        return (np.arange(count) + 0.5) * (trajectory.duration / count)

    def _of_rows(self, trajectory: Trajectory) -> tuple[np.ndarray, np.ndarray]:
        """Return ``W^T W`` (c, c), rows as they are and over their noise, positions taken as exact."""
        times = self._times(trajectory)
        plain = weighted = np.zeros((len(self.unknowns.columns),) * 2)
        for first in range(0, len(times), BLOCK):
            q, qd, qdd, _ = trajectory.derivatives(times[first : first + BLOCK])
            sampled = self._information.sampled((q, qd, qdd))
            plain = plain + self._information.matrix(sampled, "none", sampled.count)
            weighted = weighted + self._information.matrix(sampled, "noise", sampled.count)
        return plain, weighted

    def _noisy(self, trajectory: Trajectory) -> np.ndarray:
        """Return the information about the unknowns if positions are noisy too (P4.2)."""
        positions, times = self._positions, self._times(trajectory)
        assert positions is not None
        # The longest motion of a family repeats its basis, at any pace.
        basis = fitted_basis(positions.family, times * (positions.family.duration / trajectory.duration))
        pace = (positions.family.duration / trajectory.duration) ** np.arange(3)
        motion = trajectory.derivatives(times)[:3]
        return cramer_rao_information(
            self.unknowns, positions.values, motion, basis * pace[:, None, None], positions.deviations
        )

    def of_matrices(self, plain: np.ndarray, weighted: np.ndarray) -> Figures:
        """Return the figures of information matrices (c, c), earlier information added to the weighted one."""
        known = self._with_earlier(weighted)
        log_det = inverse_and_log_det(known)[1]
        sigma = self.sigma(weighted)
        return Figures(
            self.unknowns.names, condition_of(plain), condition_of(unit_diagonal(plain)[0]), condition_of(known),
            -log_det / np.log(10.0), sigma, self.relative(sigma),
        )  # fmt: skip

    def sigma(self, weighted: np.ndarray) -> np.ndarray:
        """Return the standard deviations (c,) that a weighted information matrix (c, c) leaves, earlier one added."""
        return np.sqrt(np.diag(inverse_and_log_det(self._with_earlier(weighted))[0]))

    def relative(self, sigma: np.ndarray) -> np.ndarray:
        """Return standard deviations (c,) over the parameters' sizes; NaN where these are unknown or zero."""
        values = self.unknowns.values
        return sigma / np.where(values == 0, np.nan, np.abs(values))

    def _with_earlier(self, weighted: np.ndarray) -> np.ndarray:
        return weighted if self.unknowns.earlier is None else weighted + self.unknowns.earlier


def middle_figures(figures: Sequence[Figures]) -> Figures:
    """Return the medians of several motions' figures."""
    numbers = ("raw", "normalised", "weighted", "log10_det_covariance", "sigma", "relative_sigma")
    medians = {what: np.median([getattr(one, what) for one in figures], axis=0) for what in numbers}
    return replace(figures[0], **medians, is_prepared=all(one.is_prepared for one in figures))


_CARRIED = "payload"


class PreparedInformation:
    """Information of a motion's recording about the unknowns after identification's default preparation.

    Compiled once, with the exact sign of friction.
    """

    def __init__(self, chosen: Unknowns) -> None:
        """Take unknowns whose model has the exact sign."""
        self._unknowns = chosen
        self._equations = equations_of(chosen.model, chosen.base)

    def __call__(self, trajectory: Trajectory) -> np.ndarray:
        """Return the information M (c, c) of all runs of a motion recorded at the unknowns' rate.

        Raises:
            ObservationError: If the motion is too short for the preparation.
        """
        samples = trajectory.in_order(self._equations.joints).sample(self._unknowns.rate)
        # No equation is solved here: any torque will do.
        torque = np.zeros_like(samples.q)
        channels = (TorqueChannel("motor_torque", torque), TorqueChannel("joint_torque", torque))
        unloaded = Recording(samples.joints, samples.time, samples.q, torques=channels)
        resolved = resolve_preparation(Preparation(), [unloaded])
        runs = [replace(unloaded, payload=_CARRIED) if loaded else unloaded for loaded in self._unknowns.loads]
        return np.sum([self._of_run(run, resolved) for run in runs], axis=0)

    def _of_run(self, run: Recording, resolved: ResolvedPreparation) -> np.ndarray:
        chosen = self._unknowns
        source = row_source(run, self._equations, resolved, "planned", cache_bytes=0)
        whitened = reduce_rows([source], Whitening(decimator_correlation(source)), blocks=1)
        noise = chosen.deviations * np.sqrt(resolved.decimation_filter.noise_gain())
        weights = dict(zip(self._equations.kinds_joints, 1 / noise, strict=True))
        triangle, _ = merged_triangle(
            whitened.factors, chosen.columns, lambda factor: weights[factor.kind, factor.joint]
        )
        root = triangle[:, :-1]
        return root.T @ root


class PredictedAccuracy:
    """Predicts the figures of one recording after another: those of the motion, and the sigmas of identification.

    Condition numbers and the determinant are the motion's own, at all its samples, as the search has them. Sigmas are
    those of the prepared recording, approach and return included; noise of positions adds its covariance by the
    Cramer-Rao bound at all samples. A motion too short to be prepared has the sigmas of all samples.

    Attributes:
        unknowns: The parameters to be identified.
        sigma: Returns the standard deviations (c,) that an information matrix (c, c) leaves, earlier one added.
    """

    def __init__(self, forecast: Forecast) -> None:
        """Take the predictor of the motion's own figures."""
        self.unknowns, self.sigma = forecast.unknowns, forecast.sigma
        self._forecast, self._prepared = forecast, PreparedInformation(forecast.unknowns)

    def __call__(self, recorded: Trajectory) -> Figures:
        """Return the figures of a motion recorded at the unknowns' rate, with its way in and out if it has one."""
        figures = self._forecast(core_of(recorded))
        known = self._known(recorded)
        if known is None:
            return figures
        sigma = self.sigma(known)
        return replace(figures, sigma=sigma, relative_sigma=self._forecast.relative(sigma), is_prepared=True)

    def information(self, recorded: Trajectory) -> np.ndarray:
        """Return the information (c, c) behind the sigmas, that of earlier recordings not included."""
        known = self._known(recorded)
        return self._forecast.matrices(core_of(recorded))[1] if known is None else known

    def _known(self, recorded: Trajectory) -> np.ndarray | None:
        """Return the information of the prepared recording; None if it cannot be prepared."""
        try:
            known = self._prepared(recorded)
        except ObservationError:
            return None
        cost = self._forecast.cost_of_positions(core_of(recorded))
        return known if cost is None else inverse_and_log_det(inverse_and_log_det(known)[0] + cost)[0]


def core_of(recorded: Trajectory) -> Trajectory:
    """Return a motion without its way in and out."""
    return recorded.core if isinstance(recorded, ApproachedTrajectory) else recorded


WEAK = 0.2
"""Relative sigma from which a parameter counts as weak: the threshold of identification's verdict."""

MOST_REPEATS = 25
"""A recording that would have to be more than so many times as long is not recommended."""

FASTER_BY = 1.05
"""Limits that let a motion run by less than this faster count as reached."""

SLOWER = 0.8
"""The same motion at this pace stands for the slower one, and the ratio of sigmas for what speed is worth."""


@dataclass(frozen=True)
class WeakParameter:
    """A parameter that stays weak.

    Attributes:
        name: Its name.
        sigma: Predicted standard deviation.
        relative: Over its size.
        longer: Factor on sigma if the motion is repeated once more.
        faster: Factor on sigma if the motion ran 1.25 times as fast, estimated from the same motion slowed down.
        others: Factor on sigma if all other parameters were known: near 1 it is hardly excited, far below it is
            correlated with others.
        pace_left: How many times faster limits of speed and acceleration would let the motion run.
        payload: How the payload is recorded: ``none``, ``loaded`` or ``paired``.
    """

    name: str
    sigma: float
    relative: float
    longer: float
    faster: float
    others: float
    pace_left: float
    payload: str

    @property
    def remedy(self) -> str:
        """The most effective remedy."""
        if self.others < 0.3 and self.payload == "loaded":
            return "it is mistaken for other parameters: record without the payload too (payload paired)"
        if self.others < 0.3:
            return "it is mistaken for other parameters: more harmonics, or other postures"
        if self.faster < self.longer and self.pace_left > FASTER_BY:
            return f"move faster: 1.25 times the speed makes its sigma {self.faster:.2g} times as large"
        if self.faster < self.longer:
            return (
                f"faster motion would help most (1.25 times the speed: {self.faster:.2g} times its sigma), but limits "
                "of speed are reached: raise them if the arm allows"
            )
        repeats = (self.relative / WEAK) ** 2
        if repeats > MOST_REPEATS:
            return "it is too small beside the noise to be worth finding; finer torques would help, no motion does"
        return f"record longer: about {np.ceil(repeats):.0f} times as long would do"


def weak_parameters(
    recorded: Trajectory, accuracy: PredictedAccuracy, figures: Figures, limits: MotionLimits
) -> tuple[WeakParameter, ...]:
    """Return the parameters whose predicted relative sigma exceeds 20 %, the weakest first.

    Args:
        recorded: The motion, with its way in and out if it has one.
        accuracy: Information of its recordings.
        figures: Its predicted figures.
        limits: Limits of speed and acceleration.
    """
    pace_left, payload = _pace_left(core_of(recorded), limits), accuracy.unknowns.model.payload
    weighted, slower = accuracy.information(recorded), accuracy.information(at_speed(recorded, SLOWER))
    earlier = accuracy.unknowns.earlier
    twice = accuracy.sigma(2 * weighted) / figures.sigma
    slowed = accuracy.sigma(SLOWER * slower)
    alone = 1 / np.sqrt(np.diag(weighted if earlier is None else weighted + earlier))
    order = np.argsort(-np.nan_to_num(figures.relative_sigma))
    return tuple(
        WeakParameter(
            figures.names[k], float(figures.sigma[k]), float(figures.relative_sigma[k]), float(twice[k]),
            float(figures.sigma[k] / slowed[k]), float(alone[k] / figures.sigma[k]),
            pace_left, payload,
        )
        for k in order if figures.relative_sigma[k] > WEAK
    )  # fmt: skip


def _pace_left(trajectory: Trajectory, limits: MotionLimits) -> float:
    """Return how many times faster the motion could run before a joint's speed or acceleration is at its limit."""
    extrema = trajectory.in_order(limits.joints).extrema()
    velocity = limits.velocity / np.maximum(extrema.velocity.value, 1e-12)
    acceleration = np.sqrt(limits.acceleration / np.maximum(extrema.acceleration.value, 1e-12))
    return float(min(velocity.min(), acceleration.min()))
