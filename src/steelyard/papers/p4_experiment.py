"""P4's experiment, simulated: 16 periods averaged, an anti-alias filter undone, validation on 20 points (P4.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..motion import Trajectory, quintic
from ..signals import Prewhitener, analogue_butterworth, average_periods, fit_fourier, prewhitener
from .claim import Claim, PaperTable, table, within
from .figures import AxisTorques
from .p4_bench import (
    C1,
    C2,
    DURATION,
    HARMONICS,
    POSITION_VARIANCE,
    RATE,
    SAMPLES,
    STANDSTILL,
    Bench,
    identified,
    instants,
    measured,
    moved,
    simulated,
    solved,
)

PERIODS = 16
FILTER = analogue_butterworth(8, 40.0)
"""The anti-alias filter in front of the torques."""

_OVERSAMPLED = 11
"""An odd number: the middle one of so many fine instants is the coarse one."""

_SAMPLED = slice(_OVERSAMPLED // 2, None, _OVERSAMPLED)
POINTS = 20
TOP_ACCELERATION = 5.0
RUNS, SEEDS = 50, 10
"""Experiments behind the averaging and behind the validation."""

VALIDATION = (1.05, 50.0)
"""Expected mean squared residual of c1's model over that of c2's."""


@dataclass(frozen=True)
class Averaging:
    """Errors of one period against the mean of sixteen, over many experiments.

    Attributes:
        gain: rms error with one period over that with sixteen, all parameters together.
        variance_ratio: Noise variance from the spread between periods over the true one, mean of torques.
        error: rms error with sixteen periods over the predicted sigma.
    """

    gain: float
    variance_ratio: float
    error: float


def averaging(arm: Bench, trajectory: Trajectory, runs: int = RUNS, seed: int = 0) -> Averaging:
    """Identify from one period and from the mean of sixteen, with P4's noise on torques and positions."""
    rng = np.random.default_rng(seed)
    motion, time = moved(trajectory, instants(periods=PERIODS)), instants()
    torque = arm.torques(motion)
    errors, ratios, predicted = [], [], None
    for _ in range(runs):
        q = motion[0] + rng.normal(size=motion[0].shape) * np.sqrt(POSITION_VARIANCE)[:, None]
        y = torque + rng.normal(size=torque.shape) * arm.deviations[:, None]
        folded = average_periods(np.vstack([q, y]), RATE, DURATION)
        ratios.append(folded.pooled_variance[3:] / arm.deviations**2)
        one, _ = identified(arm, q[:, :SAMPLES], y[:, :SAMPLES], time)
        many, covariance = identified(arm, folded.mean[:3], folded.mean[3:], time)
        predicted = np.sqrt(np.diag(covariance) / PERIODS)
        errors.append([(one - arm.values) / predicted, (many - arm.values) / predicted])
    single, mean = np.sqrt(np.mean(np.square(errors), axis=(0, 2)))
    return Averaging(float(single / mean), float(np.mean(ratios)), float(mean))


@dataclass(frozen=True)
class Filtered:
    """What the anti-alias filter does to the estimate, in sigmas of the mean of sixteen periods.

    Attributes:
        plain: Largest bias if it is left alone, and whose.
        undone: Largest bias after prewhitening, and whose.
        alike: Largest bias after prewhitening if rows and torques pass the same low-pass then, and whose.
        delay: Delay of the filter at low frequencies [s].
        band: Up to where prewhitening restores [Hz].
    """

    plain: tuple[float, str]
    undone: tuple[float, str]
    alike: tuple[float, str]
    delay: float
    band: float


def filtered(arm: Bench, trajectory: Trajectory) -> Filtered:
    """Pass noise-free torques through the filter, identify as they are, prewhitened, and with a parallel low-pass.

    The filter acts on the analogue torque: a period at eleven times the rate, by its frequency response.
    """
    fine = moved(trajectory, instants(SAMPLES * _OVERSAMPLED))
    observed = _through(FILTER.response, arm.torques(fine))[:, _SAMPLED]
    motion = moved(trajectory, instants())
    undo = prewhitener(FILTER, RATE)
    weighted = arm.weighted(motion)
    sigma = np.sqrt(np.diag(solved(weighted, weighted @ arm.values)[1]) / PERIODS)

    def worst(rows: np.ndarray, y: np.ndarray) -> tuple[float, str]:
        off = (solved(rows, (y / arm.deviations[:, None]).ravel())[0] - arm.values) / sigma
        return float(np.abs(off).max()), arm.equations.names[int(np.abs(off).argmax())]

    restored, low = _restored(undo, observed), _low_pass(SAMPLES)
    # The fitted motion is known between samples too: its rows are low-passed before they are sampled, as torques are.
    before = _low_pass(SAMPLES * _OVERSAMPLED, RATE * _OVERSAMPLED)
    alike = np.concatenate(
        [before(rows.T).T[_SAMPLED] / size for rows, size in zip(arm.rows(fine), arm.deviations, strict=True)]
    )
    slope = FILTER.response(np.array([0.01]))
    delay = float(-np.angle(slope)[0] / (2 * np.pi * 0.01))
    return Filtered(worst(weighted, observed), worst(weighted, restored), worst(alike, low(restored)), delay, undo.band)


def _through(response: Callable[[np.ndarray], np.ndarray], signals: np.ndarray) -> np.ndarray:
    """Return a period (rows, N) of signals in the steady state after a filter."""
    frequency = np.fft.rfftfreq(signals.shape[1], DURATION / signals.shape[1])
    return np.fft.irfft(np.fft.rfft(signals) * response(frequency), signals.shape[1])


def _restored(undo: Prewhitener, period: np.ndarray) -> np.ndarray:
    """Return a period (rows, N) prewhitened: its ends are those of the periods beside it."""
    wrapped = np.concatenate([period[:, -undo.half :], period, period[:, : undo.half]], axis=1)
    return undo.apply(wrapped)


@dataclass(frozen=True)
class TrackingValidation:
    """Mean squared residuals of each axis on an unseen motion (n,) [N^2 m^2], by the criterion of the model's motion.

    Attributes:
        model_error: Part that the errors of the identified parameters make, mean over simulated experiments.
        residual: Measured torques of the unseen motion less those computed, both after a 10 Hz low-pass.
        worst: Largest error of an identified parameter in its sigmas, over all experiments.
        torques: Torques of c2's first experiment, mean of its periods, and those of the unseen motion below 10 Hz.
    """

    model_error: Mapping[str, np.ndarray]
    residual: Mapping[str, np.ndarray]
    worst: float
    torques: tuple[AxisTorques, ...] = ()

    def ratio(self) -> float:
        """Return the mean squared residual of c1's model over that of c2's, all axes together."""
        return _total(self.residual[C1]) / _total(self.residual[C2])

    def error_ratio(self) -> float:
        """Return the same of the part that the parameters' errors make."""
        return _total(self.model_error[C1]) / _total(self.model_error[C2])


def validation_motion(lower: np.ndarray, upper: np.ndarray, seed: int = 0) -> Trajectory:
    """Return moves through 20 random points, each as fast as the acceleration limit allows."""
    points = np.random.default_rng(seed).uniform(lower[:, None], upper[:, None], (len(lower), POINTS))
    step = np.abs(np.diff(points)).max(axis=0)
    # A quintic move over d in T has a peak acceleration of 10 / sqrt(3) d / T^2.
    durations = np.sqrt(10 / np.sqrt(3) * step / TOP_ACCELERATION)
    return quintic(points, durations, ["joint_1", "joint_2", "joint_3"])


def validated(
    arm: Bench, motions: Mapping[str, Trajectory], unseen: Trajectory, seeds: int = SEEDS, periods: int = PERIODS
) -> TrackingValidation:
    """Simulate some periods of each motion, identify, and predict the measured torques of a simulated unseen one."""
    there = simulated(arm, unseen)
    rows = arm.rows((there.q[0], there.qd[0], there.qdd[0]))
    low, time = _low_pass(rows.shape[1]), np.arange(SAMPLES) / RATE
    error, residual, worst, drawn = {}, {}, 0.0, ()
    for criterion, trajectory in motions.items():
        run, errors, squares = simulated(arm, trajectory, periods), [], []
        for seed in range(seeds):
            folded = average_periods(np.vstack(measured(run, seed)), RATE, DURATION)
            values, covariance = identified(arm, folded.mean[:3], folded.mean[3:], time, STANDSTILL)
            torque = measured(there, seeds + seed)[1]
            off = values - arm.values
            worst = max(worst, float(np.abs(off / np.sqrt(np.diag(covariance) / periods)).max()))
            errors.append(np.mean((rows @ off) ** 2, axis=1))
            squares.append(np.mean((low(torque) - low(rows @ values)) ** 2, axis=1))
            if criterion == C2 and seed == 0:
                fitted = fit_fourier(folded.mean[:3], time, DURATION, HARMONICS).evaluate(time)
                drawn = (
                    AxisTorques(time, fitted[0], folded.mean[3:], arm.rows(fitted) @ values),
                    AxisTorques(there.time, there.q[0], low(torque), low(rows @ values)),
                )
        error[criterion], residual[criterion] = np.mean(errors, axis=0), np.mean(squares, axis=0)
    return TrackingValidation(error, residual, worst, drawn)


def _low_pass(count: int, rate: float = RATE) -> Callable[[np.ndarray], np.ndarray]:
    """Return a zero-phase window of 10 Hz for signals (rows, N)."""
    keep = np.fft.rfftfreq(count, 1 / rate) <= 10.0

    def low(signals: np.ndarray) -> np.ndarray:
        return np.fft.irfft(np.fft.rfft(signals) * keep, count)

    return low


def experiment_claims(mean: Averaging, analogue: Filtered, unseen: TrackingValidation) -> Iterator[Claim]:
    """Return the claims on the experiment."""
    yield within(
        "16 periods averaged: rms error of one period over that of the mean", "not said", mean.gain, 3.6, 4.4,
        why=f"the root of 16; errors are {mean.error:.2f} of the predicted sigmas",
        fails_if="averaging keeps a systematic error, or folds periods that do not coincide",
    )  # fmt: skip
    yield within(
        "noise variance from the spread between periods, over the true one", "sample variance over periods",
        mean.variance_ratio, 0.98, 1.02, why="1,500 samples, 15 degrees of freedom each",
        fails_if="the variance between periods has wrong degrees of freedom, or the motion differs between periods",
    )  # fmt: skip
    yield within(
        "anti-alias filter left alone: largest bias in sigmas of the mean", "distortion", analogue.plain[0],
        10.0, np.inf,
        f"the anti-alias filter delays torques by {1e3 * analogue.delay:.1f} ms; worst is {analogue.plain[1]}",
        why="far beyond the noise", claimed=(3.0, np.inf),
        fails_if="the filter's delay does not bias the estimate",
    )  # fmt: skip
    yield within(
        "torques prewhitened: largest bias over that before", "undone", analogue.undone[0] / analogue.plain[0],
        0.0, 0.25,
        f"after prewhitening {analogue.undone[0]:.1f} sigmas of {analogue.undone[1]} are left: Coulomb friction has "
        f"steps beyond the {analogue.band:.0f} Hz that can be restored",
        why="most of it goes", claimed=(0.0, 0.5),
        fails_if="the inverse filter has another phase than the anti-alias filter, or ends at too low a frequency",
    )  # fmt: skip
    yield within(
        "then rows and torques through the same 10 Hz low-pass: largest bias in sigmas", "not done", analogue.alike[0],
        0.0, 0.5, "P1's parallel filtering takes the rest of the filter's bias away, as friction's steps then have the "
        "same shape on both sides",
        why="small against the noise",
        fails_if="rows and torques are filtered differently, or a bias below 10 Hz is left",
    )  # fmt: skip
    yield within(
        "validation: largest error of a parameter identified from 16 simulated periods, sigmas", "not said",
        unseen.worst, 0.0, 5.5,
        why=f"{2 * SEEDS} experiments of 24 parameters, closed-loop motion: 3.5 by noise, and what the controller's "
        "held torque and the smooth sign of friction add",
        fails_if="the identification is biased: the arm does not follow a Fourier series, torques are late, or "
        "samples near standstill count",
    )  # fmt: skip
    yield within(
        "validation on 20 random points: mean squared residual of c1's model over that of c2's, all axes", "about 1.2",
        unseen.ratio(), VALIDATION[0], VALIDATION[1],
        "validation: c2's model is better; by how much hangs on c1's search, which is blind to size and may end in a "
        f"motion that moves one axis little. Of the part that parameter errors make, the ratio is "
        f"{unseen.error_ratio():.3g}; the rest is noise and what the model lacks, the same in both: here friction's "
        "smooth sign and the controller's held torque",
        why="the better model wins; searches from several seeds: 1.2 to 2.2", claimed=(1.0, np.inf),
        fails_if="c1's motion identifies as well as c2's",
    )  # fmt: skip


def _total(squares: np.ndarray) -> float:
    return float(squares.sum())


def validation_table(unseen: TrackingValidation) -> PaperTable:
    """Return mean squared residuals by axis beside the paper's."""
    printed = (45.0, 53.6, 12.0)
    rows = [
        [f"axis {axis + 1}", printed[axis]]
        + [float(found[criterion][axis]) for criterion in (C1, C2) for found in (unseen.model_error, unseen.residual)]
        for axis in range(3)
    ]
    headings = [
        "axis", "paper", "c1: by parameter errors", "c1: with noise, 10 Hz", "c2: by parameter errors",
        "c2: with noise, 10 Hz",
    ]  # fmt: skip
    return table("Validation on 20 random points: mean squared residuals N^2 m^2", headings, rows)
