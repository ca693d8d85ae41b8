"""Resolve a preparation on the data: cut-off, decimation and standstill speed, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ObservationError, SignalError
from ..recording import Recording
from ..signals import (
    CutoffProposal,
    DecimationFilter,
    LowPass,
    decimation_filter,
    difference_response,
    low_pass,
    propose_cutoff,
    resample,
)
from ..signals.checks import frozen
from ..signals.decimation import DEFAULT_CUTOFF
from ..signals.fir import in_short_stages
from ..signals.sampling import GAP_INTERVALS, Method, check_time
from .motion_stream import check_channels, motion_signals
from .preparation import Preparation, ResolvedPreparation
from .reading import AnyRecording, blocks_of, check_joints, is_even, template_of

LOOKED_AT = 200_000
"""Samples at the start of each recording from which the settings are found."""

BRIDGED_PERIOD = 0.1
"""A gap up to this part of the cut-off's period is bridged: what the low-pass leaves hardly changes within it."""
_ROUNDING = 1 + 1e-6

STANDSTILL_NOISE = 3.0
"""Below this many standard deviations of its noise a velocity does not show its sign."""

STANDSTILL_PART = 0.01
"""Below this part of its top speed a joint counts as standing still."""

CUTOFF_OVER_BAND = 10.0
"""Cut-off of the low-pass over the band of the velocities."""

LEAST_ROWS = 400
"""Rows that the longest recording should give: the decimator's ends and the parameters take up some of them."""

RETAINED_OF_CUTOFF = 0.5
"""Part of the low-pass's cut-off that the decimation keeps: up to there the low-pass is flat to 0.2 %."""

HIGHEST_CUTOFF = 0.8
"""Of the Nyquist frequency."""

_BRIDGED = 1.0


@dataclass(frozen=True)
class _Spectrum:
    """What a recording's signals say: proposed cut-offs (n,), 0 without motion; noise floors (rows,); reasons."""

    cutoff: np.ndarray
    floor: np.ndarray
    reasons: tuple[str, ...]


def resolve_preparation(preparation: Preparation, recordings: Sequence[AnyRecording]) -> ResolvedPreparation:
    """Return the preparation with all that was left open found from the data.

    The cut-off is ten times the frequency below which 95 % of a velocity's power lies
    (:func:`steelyard.signals.propose_cutoff`), the largest of all joints and recordings: friction reverses within a
    small part of a period, and what is faster is vibration that a rigid arm does not explain. The
    factor of decimation is the largest whose own cut-off, 0.8 of the new Nyquist frequency, is not below half of it:
    there the low-pass has not yet taken anything from W that y still has. Short recordings are decimated less. The
    velocity error follows from the noise floor S of the positions through low-pass H and difference D,
    ``sigma_v^2 = int S |H|^2 |D|^2 df``; standstill is below three times that, or below one per cent of the joint's top
    speed: there friction is neither Coulomb's nor viscous, and a smoothed velocity has the wrong sign for a moment.

    Args:
        preparation: What was chosen.
        recordings: The recordings; no more than the first 200,000 samples of each are looked at.

    Raises:
        ObservationError: If there is no recording, or nothing moves and no cut-off is given.
    """
    if not recordings:
        raise ObservationError("no recording is given; at least one is needed to resolve the preparation")
    heads = [_head(recording, preparation, f"{k + 1}") for k, recording in enumerate(recordings)]
    joints = heads[0].joints
    for k, head in enumerate(heads):
        check_joints(head, joints, f"{k + 1}")
    rates = [_rate(head.time) for head in heads]
    rate = preparation.rate or float(f"{np.median(rates):.6g}")
    max_gap = preparation.max_gap or GAP_INTERVALS * _ROUNDING / min(rate, *rates)
    spectra = [_spectrum(head, preparation, rate, max_gap) for head in heads]
    cutoff, why_cutoff = _cutoff(preparation, spectra)
    if preparation.max_gap is None and cutoff:
        max_gap = max(max_gap, BRIDGED_PERIOD * _ROUNDING / cutoff)
    filter_ = low_pass(rate, cutoff, preparation.order, preparation.mode, preparation.design)
    small, why_factor = _decimation(preparation, rate, cutoff, max(head.duration for head in heads))
    floor = np.median([spectrum.floor for spectrum in spectra], axis=0)
    noise = _velocity_noise(preparation, filter_, floor, len(joints))
    standstill, why_standstill = _standstill(preparation, noise, _top_speeds(heads, rate, cutoff), joints)
    reasons = [why_cutoff, why_factor, why_standstill]
    if preparation.delay:
        reasons.append(
            f"torques are taken to be late by {1e3 * preparation.delay:.4g} ms, as given, and put back in time"
        )
    if unknown := [joint for joint in preparation.joint_delays if joint not in joints]:
        raise ObservationError(f"delay of '{unknown[0]}': there is no such joint; the joints are {', '.join(joints)}")
    reasons += [
        f"the torque of {joint} is taken to be late by {1e3 * delay:.4g} ms more, as given, and put back in time"
        for joint, delay in preparation.joint_delays.items()
    ]
    trim = filter_.ends() if preparation.trim is None else (preparation.trim, preparation.trim)
    return ResolvedPreparation(
        preparation, joints, rate, max_gap, filter_, trim, small, standstill, noise, frozen(np.sqrt(floor * rate / 2)),
        max(float(spectrum.cutoff.max()) for spectrum in spectra) or None, tuple(reasons),
    )  # fmt: skip


def _head(recording: AnyRecording, preparation: Preparation, label: str) -> Recording:
    """Return the first samples of a recording: the signals that move, and the stamps."""
    template = template_of(recording)
    check_channels(template, preparation, label)
    time, signals, count = [], [], 0
    for block in blocks_of(recording):
        time.append(block.time)
        signals.append(np.concatenate(motion_signals(block, preparation, label)))
        count += block.samples
        if count >= LOOKED_AT:
            break
    if count < 2:
        raise ObservationError(f"recording '{label}' has {count} samples; two at least have a rate")
    values = np.concatenate(signals, axis=1)[:, :LOOKED_AT]
    size = len(template.joints)
    qd = values[size:] if len(values) > size else None
    return Recording(template.joints, np.concatenate(time)[:LOOKED_AT], values[:size], qd)


def _rate(time: np.ndarray) -> float:
    """Return the mean rate of stamps, gaps and lost samples left out."""
    steps = np.diff(check_time(time))
    return float(1 / steps[steps < 1.5 * np.median(steps)].mean())


def _spectrum(head: Recording, preparation: Preparation, rate: float, max_gap: float) -> _Spectrum:
    # Short gaps are bridged here: a spectrum needs a long segment, and a few samples do not change it.
    max_gap = max(max_gap, _BRIDGED)
    bounds = [0, *(np.flatnonzero(np.diff(head.time) > max_gap) + 1).tolist(), head.samples]
    longest = int(np.argmax(np.diff(bounds)))
    segment = slice(bounds[longest], bounds[longest + 1])
    signals = [*head.q[:, segment], *([] if head.qd is None else head.qd[:, segment])]
    size = len(head.joints)
    cutoff, floor, reasons = np.zeros(size), np.zeros(len(signals)), [""] * size
    for row, signal in enumerate(signals):
        values = _even(head.time[segment], signal, rate, preparation.resampling, max_gap)
        proposal = _proposal(values, rate, preparation.order)
        if proposal is None:  # all there is is noise
            floor[row] = values.var() * 2 / rate
            continue
        floor[row] = proposal.noise_floor[0]
        if row < size:
            band = float(proposal.velocity_band[0])
            cutoff[row] = min(CUTOFF_OVER_BAND * band, HIGHEST_CUTOFF * rate / 2)
            reasons[row] = (
                f"{CUTOFF_OVER_BAND:g} times {band:.3g} Hz, below which 95 % of {head.joints[row]}'s velocity lies"
            )
    return _Spectrum(cutoff, floor, tuple(reasons))


def _even(time: np.ndarray, signal: np.ndarray, rate: float, method: Method, max_gap: float) -> np.ndarray:
    """Return a signal at even stamps: as it is if they are, else resampled."""
    if len(time) < 2 or is_even(time, rate, max_gap):
        return signal
    return resample(time, signal[None], rate, method, max_gap).values[0]


def _proposal(values: np.ndarray, rate: float, order: int) -> CutoffProposal | None:
    """Return a proposal for one signal, or None if it does not stand above its noise or is too short for a spectrum."""
    try:
        return propose_cutoff(values[None], rate, order)
    except SignalError:
        return None


def _cutoff(preparation: Preparation, spectra: Sequence[_Spectrum]) -> tuple[float | None, str]:
    if preparation.cutoff is not None:
        return preparation.cutoff, f"cut-off {preparation.cutoff:g} Hz as given"
    if preparation.mode == "none" and (preparation.decimation is not None or preparation.decimation_cutoff is not None):
        return None, "positions are not filtered, as chosen"
    best = max(spectra, key=lambda spectrum: spectrum.cutoff.max())
    joint = int(np.argmax(best.cutoff))
    if not best.cutoff[joint] > 0:
        raise ObservationError(
            "no joint stands 10 dB above its noise in any recording; give recordings with motion, or a cut-off"
        )
    return float(best.cutoff[joint]), f"cut-off {best.cutoff[joint]:.3g} Hz: {best.reasons[joint]}"


def _decimation(
    preparation: Preparation, rate: float, cutoff: float | None, duration: float
) -> tuple[DecimationFilter, str]:
    wanted = preparation.decimation_cutoff
    if preparation.decimation is not None:
        factor, reason = preparation.decimation, f"decimation by {preparation.decimation} as given"
    else:
        assert wanted is not None or cutoff is not None
        lowest = wanted or RETAINED_OF_CUTOFF * (cutoff or 0.0)
        # Not one less for a rounding in the last digit.
        factor = in_short_stages(max(1, int(DEFAULT_CUTOFF * rate / 2 / lowest * (1 + 1e-9))))
        reason = f"decimation by {factor}: the largest that keeps {lowest:.3g} Hz within 0.8 of the new Nyquist"
        most = max(1, int(duration * rate / LEAST_ROWS))
        if wanted is None and factor > most:
            factor = in_short_stages(most)
            reason = f"decimation by {factor}: more would leave fewer than {LEAST_ROWS} rows"
    if factor == 1 and wanted is None:
        return DecimationFilter(rate, 1, rate / 2, rate / 2, preparation.attenuation, ()), f"{reason} (none)"
    return decimation_filter(rate, factor, wanted, preparation.attenuation), reason


def _velocity_noise(preparation: Preparation, filter_: LowPass, floor: np.ndarray, size: int) -> np.ndarray:
    """Return the standard deviation of each joint's velocity error (n,)."""
    top = filter_.rate / 2 if filter_.cutoff is None else min(filter_.rate / 2, 10 * filter_.cutoff)
    frequency = np.linspace(0, top, 8193)
    gain, own = np.abs(filter_.response(frequency)) ** 2, floor[size:]
    if preparation.velocity != "recorded":
        gain, own = gain * np.abs(difference_response(frequency, filter_.rate)) ** 2, floor[:size]
    return frozen(np.sqrt(own * np.trapezoid(gain, frequency)))


def _top_speeds(heads: Sequence[Recording], rate: float, cutoff: float | None) -> np.ndarray:
    """Return the highest speed of each joint (n,), over steps too long for the noise to matter."""
    step = max(1, round(rate / (10 * cutoff))) if cutoff else 1
    speeds = []
    for head in heads:
        if head.samples > 2 * step:
            moved = np.abs(head.q[:, 2 * step :] - head.q[:, : -2 * step])
            speeds.append((moved / (head.time[2 * step :] - head.time[: -2 * step])).max(axis=1))
    return np.max(speeds, axis=0) if speeds else np.zeros(len(heads[0].joints))


def _standstill(
    preparation: Preparation, noise: np.ndarray, top: np.ndarray, joints: tuple[str, ...]
) -> tuple[np.ndarray, str]:
    if preparation.standstill is None:
        speeds = np.maximum(STANDSTILL_NOISE * noise, STANDSTILL_PART * top)
        fastest = int(np.argmax(speeds))
        reason = (
            f"standstill below {STANDSTILL_NOISE:g} standard deviations of the velocity error and "
            f"{100 * STANDSTILL_PART:.0f} % of the top speed, at most {speeds[fastest]:.3g} ({joints[fastest]})"
        )
    else:
        speeds = np.atleast_1d(np.asarray(preparation.standstill, dtype=float))
        if speeds.shape not in ((1,), (len(joints),)):
            raise ObservationError(f"standstill: got {speeds.size} speeds, allowed are one or {len(joints)}")
        speeds = np.broadcast_to(speeds, (len(joints),)).copy()
        reason = "standstill as given" if speeds.any() else "no sample counts as standstill, as chosen"
    return frozen(speeds), reason
