"""Standard deviations of torques, positions and the first state, and the measured motion beside raw samples.

What the settings leave open is found from the data. The measured motion is that of local cubics through the positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np

from ...errors import EstimateError
from ...observe import RawBlock, RowSource, raw_samples
from ...signals import find_quantum, propose_cutoff
from ...signals.whitening import innovation_share
from ..evidence import Evidence
from .settings import KalmanSettings, PerJoint

LEAST_DEVIATION = 1e-6
"""Recordings without any noise are trusted to this part of the range of each signal."""

BANDWIDTH = 2.0
"""Bandwidth of the filter, at most, in cut-offs of the rows' low-pass."""

UNSURE = 3.0
"""Factor on the deviation of a first velocity, which is a difference of two positions and lags half a step."""


@dataclass(frozen=True, eq=False)
class Noises:
    """Standard deviations of one recording, per sample.

    Attributes:
        process: Of the unmeasured torques (n,), or of noise on [qd, q] (2n,).
        observed: Of what is observed: positions (n,), or velocities and positions (2n,).
        state: Of the first [qd, q] (2n,).
    """

    process: np.ndarray
    observed: np.ndarray
    state: np.ndarray


def noises_of(evidence: Evidence, source: RowSource, settings: KalmanSettings) -> Noises:
    """Return the deviations for one recording.

    Raises:
        EstimateError: If the settings have another number of them than there are joints.
    """
    joints = len(source.equations.joints)
    head = next(raw_samples(source, velocity=settings.observe == "q_qd"))
    if settings.process == "state":
        process = spread(settings.state_noise, 2 * joints, "state_noise")
    elif settings.torque_noise is not None:
        process = spread(settings.torque_noise, joints, "torque_noise")
    else:
        process = torque_noise(evidence, source)
    if settings.position_noise is not None:
        observed = spread(settings.position_noise, joints, "position_noise")
    else:
        observed = _at_least(source.resolved.signal_noise[:joints], head.q)
    if head.qd is not None:
        observed = np.concatenate([_velocity_noise(source, settings, head.qd), observed])
    return Noises(process, observed, _state_deviation(source, settings, observed))


def band_limited(noises: Noises, settings: KalmanSettings, acceleration: np.ndarray, cutoff: float | None) -> Noises:
    """Return noises that leave out of sight what is faster than twice the cut-off of the rows' low-pass.

    A double integrator with white acceleration of deviation a follows positions of deviation r up to the frequency
    ``w = sqrt(a / r)``, and velocities up to ``a / r``. Beyond the band of the motion there is little to learn of the
    parameters and much that the model lacks (elastic joints, delays, jitter of stamps), so positions are trusted to
    ``a / w^2`` at most and velocities to ``a / w``.

    Args:
        noises: The noises of a recording.
        settings: Deviations that are given there stay.
        acceleration: Deviation of the acceleration that the torque noise makes (n,) [rad/s^2 or m/s^2].
        cutoff: Cut-off of the low-pass [Hz]; None for no limit.
    """
    if cutoff is None or settings.process != "torque":
        return noises
    w, joints = 2 * np.pi * BANDWIDTH * cutoff, len(acceleration)
    observed = noises.observed.copy()
    if settings.position_noise is None:
        observed[-joints:] = np.maximum(observed[-joints:], acceleration / w**2)
    if settings.velocity_noise is None and len(observed) > joints:
        observed[:joints] = np.maximum(observed[:joints], acceleration / w)
    return replace(noises, observed=observed)


def torque_noise(evidence: Evidence, source: RowSource) -> np.ndarray:
    """Return deviations (n,) of white noise at the full rate with the power that residuals have at frequency zero.

    Rows are decimated by a factor D and their noise has the autocorrelations a of an autoregression and d of the
    decimator; the sum of its autocovariances is ``s^2 sum(a) sum(d)``, and that of decimated white noise of deviation
    u is ``u^2 / D``.
    """
    noise = evidence.noise
    decimator = 2 * noise.correlation.sum() / noise.correlation[0] - 1
    deviations = []
    for kind, joint in source.equations.kinds_joints:
        known = [value for group, value in noise.deviations.items() if group[1:] == (kind, joint)]
        if not known:
            raise EstimateError(f"no noise is known of joint '{joint}': no row of it moves; give torque_noise")
        deviation = noise.deviations.get((source.label, kind, joint), max(known))
        coefficients = noise.coefficients[kind, joint]
        persistence = innovation_share(coefficients) / (1 - np.sum(coefficients)) ** 2
        deviations.append(deviation * np.sqrt(source.resolved.decimation * persistence * decimator))
    return np.array(deviations)


def spread(value: PerJoint, count: int, name: str) -> np.ndarray:
    """Return one number for each of ``count`` quantities.

    Raises:
        EstimateError: If there are neither one nor ``count``.
    """
    numbers = np.atleast_1d(np.asarray(value, dtype=float))
    if len(numbers) not in (1, count):
        raise EstimateError(f"ekf {name}: got {len(numbers)} numbers, allowed are 1 or {count}")
    return np.broadcast_to(numbers, (count,)).copy()


def _velocity_noise(source: RowSource, settings: KalmanSettings, velocity: np.ndarray) -> np.ndarray:
    if settings.velocity_noise is not None:
        return spread(settings.velocity_noise, len(velocity), "velocity_noise")
    rate = source.resolved.rate
    return _at_least(np.sqrt(propose_cutoff(velocity, rate).noise_floor * rate / 2), velocity)


def _at_least(deviation: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """Return deviations that are not below those of the signal's own steps, nor nothing at all."""
    steps = find_quantum(signal) / np.sqrt(12)
    least = LEAST_DEVIATION * np.maximum(np.ptp(signal, axis=1), LEAST_DEVIATION)
    return np.maximum(np.maximum(deviation, steps), least)


def _state_deviation(source: RowSource, settings: KalmanSettings, observed: np.ndarray) -> np.ndarray:
    joints = len(source.equations.joints)
    if settings.state_deviation is not None:
        return spread(settings.state_deviation, 2 * joints, "state_deviation")
    position = observed[-joints:]
    velocity = observed[:joints] if len(observed) > joints else UNSURE * np.sqrt(2) * position * source.resolved.rate
    return np.concatenate([velocity, position])


PERIODS = 2.0
"""Length of the cubics, in periods of the cut-off."""

SHORTEST = 5
"""Samples of a cubic, at least."""


MovingBlock = tuple[RawBlock, np.ndarray]
"""A block of k samples, and positions, velocities and accelerations (3n, k), one below the other; none (0, k)."""


def with_motion(blocks: Iterable[RawBlock], rate: float, cutoff: float) -> Iterator[MovingBlock]:
    """Yield samples with their measured motion, block by block; cubics reach across the seams of blocks.

    A segment that is shorter than a cubic is left out: its accelerations would be noise.

    Args:
        blocks: Blocks of a recording.
        rate: Rate of the samples [Hz].
        cutoff: Cut-off [Hz].
    """
    from scipy.signal import savgol_filter  # imported when used: its import takes longer than a command's start

    window = max(2 * int(PERIODS * rate / cutoff / 2) + 1, SHORTEST)
    past, is_left_out = np.zeros((0, 0)), False
    for block, following in pairwise(chain(blocks, [None])):
        if block is None:
            return
        starts = block.starts or is_left_out
        past = np.zeros((len(block.q), 0)) if starts else past
        ahead = block.q[:, :0] if following is None or following.starts else following.q[:, :window]
        q = np.concatenate([past, block.q, ahead], axis=1)
        own = slice(past.shape[1], past.shape[1] + block.q.shape[1])
        past, is_left_out = q[:, : own.stop][:, -window:], q.shape[1] < window
        if not is_left_out:
            orders = [savgol_filter(q, window, 3, deriv=order, delta=1 / rate, axis=1) for order in range(3)]
            motion = np.concatenate([np.asarray(signals)[:, own] for signals in orders])
            yield replace(block, starts=starts), motion
