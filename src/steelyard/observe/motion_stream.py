"""Signals that rows are made of, block by block: positions become q, qd and qdd; late torques are put back in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ..effects import EFFECTS
from ..errors import ObservationError
from ..model import Model
from ..recording import Recording
from ..signals import ColumnQueue, DahlElements, SegmentFilter, central_difference, joint_positions
from .equations import MeasuredTorques
from .preparation import Preparation, ResolvedPreparation
from .reading import Piece

HALF = 16
"""Samples on either side from which a torque between two samples is interpolated."""

_BETA = 8.0
"""Of the Kaiser window of that interpolation: exact to 1e-4 below 0.8 of the Nyquist frequency."""


class TorqueShift:
    """Moves some signals of one segment in time against the others: ``y(t)`` becomes ``y(t + delay)``.

    Between samples a windowed sinc interpolates. Where its window reaches beyond the segment, samples of all signals
    are dropped, but for those that are trimmed later on: there the signal is continued by its first and last value.

    Args:
        delays: Of each of these signals (E,) [samples], fractions and negative ones too.
        first: Row of the first of them; the others are the rows after it.
        trimmed: Samples at the start and at the end of the segment that will not be used.
    """

    def __init__(self, delays: np.ndarray, first: int, trimmed: tuple[int, int]) -> None:
        self._first = first
        windows = [interpolation_window(float(delay)) for delay in delays]
        self._before = max(0, *(-start for start, _ in windows))
        after = max(0, *(start + len(taps) - 1 for start, taps in windows))
        self._taps = np.zeros((len(windows), self._before + after + 1))
        for row, (start, taps) in zip(self._taps, windows, strict=True):
            row[self._before + start : self._before + start + len(taps)] = taps
        self._lead, self._trail = min(self._before, trimmed[0]), min(after, trimmed[1])
        self._signals = ColumnQueue()

    def push(self, signals: np.ndarray) -> np.ndarray:
        """Take a block (rows, m) and return the columns (rows, k) that are ready."""
        if not self._signals.count:
            self._signals.put(np.repeat(signals[:, :1], self._lead if signals.shape[1] else 0, axis=1))
        self._signals.put(signals)
        joined = self._signals.all()
        count = max(0, joined.shape[1] - self._taps.shape[1] + 1)
        shifted = joined[:, self._before : self._before + count].copy()
        if count:
            for row, taps in enumerate(self._taps, self._first):
                shifted[row] = np.correlate(joined[row], taps, "valid")
        self._signals.drop(count)
        return shifted

    def flush(self) -> np.ndarray:
        """End the segment and return its last columns."""
        return self.push(np.repeat(self._signals.all()[:, -1:], self._trail, axis=1))


def interpolation_window(delay: float) -> tuple[int, np.ndarray]:
    """Return the weights of the samples that give a signal ``delay`` samples later, and the number of the first."""
    whole = int(np.floor(delay))
    fraction = delay - whole
    if min(fraction, 1 - fraction) < 1e-9:
        return round(delay), np.ones(1)
    places = np.arange(1 - HALF, HALF + 1) - fraction
    taps = np.sinc(places) * np.i0(_BETA * np.sqrt(1 - (places / HALF) ** 2))
    return whole + 1 - HALF, taps / taps.sum()


class SegmentMotion:
    """Filters and differentiates the positions of one segment, with other signals beside them, and trims its ends.

    Signals come as rows ``[positions (n); velocities (n) if recorded; others]`` and leave as
    ``[q (n); qd (n); qdd (n); states of friction; jerks (n) if wanted; others]``.

    Args:
        resolved: The preparation.
        elements: The Dahl elements whose states are needed, if any; they go on from segment to segment.
        jerk: Whether derivatives of the accelerations are wanted; those at the ends of a block are one-sided.
    """

    def __init__(
        self, resolved: ResolvedPreparation, elements: DahlElements | None = None, *, jerk: bool = False
    ) -> None:
        self._elements, self._jerk = elements, jerk
        self._resolved = resolved
        self._size = len(resolved.joints)
        self._recorded = resolved.chosen.velocity == "recorded"
        self._filtered = self._size * (2 if self._recorded else 1)
        self._filter = SegmentFilter(resolved.low_pass, resolved.trim)
        self._smooth = ColumnQueue()

    def push(self, signals: np.ndarray) -> np.ndarray | None:
        """Take a block (rows, m) and return the columns (rows, k) that are ready, if any."""
        if not signals.shape[1]:
            return None
        return self._differentiated(self._filter.push(signals[: self._filtered], signals[self._filtered :]))

    def flush(self) -> np.ndarray | None:
        """End the segment and return its last columns, if any."""
        return self._differentiated(self._filter.flush())

    def _differentiated(self, smooth: np.ndarray | None) -> np.ndarray | None:
        margin = self._resolved.margin
        if smooth is None:
            return None
        self._smooth.put(smooth)
        count = self._smooth.count - 2 * margin
        if count <= 0:
            return None
        joined = self._smooth.all()
        self._smooth.drop(count)
        others = joined[self._filtered :, margin:-margin]
        q, qd, qdd = self._derivatives(joined[: self._filtered], margin)
        states = [] if self._elements is None else [self._elements.push(q)]
        if self._jerk:
            states.append(self._resolved.rate * np.gradient(qdd, axis=1) if count > 1 else np.zeros_like(qdd))
        return np.concatenate([q, qd, qdd, *states, others])

    def _derivatives(self, smooth: np.ndarray, margin: int) -> tuple[np.ndarray, ...]:
        rate = self._resolved.rate
        q = smooth[: self._size, margin:-margin]
        if self._recorded:
            velocity = smooth[self._size :]
            return q, velocity[:, margin:-margin], central_difference(velocity, rate)
        qdd = central_difference(smooth, rate, self._resolved.chosen.second)
        inner = margin - 1
        return q, central_difference(smooth, rate)[:, inner : inner + qdd.shape[1]], qdd


def dahl_elements(model: Model, *, changes: bool = False) -> DahlElements | None:
    """Return the Dahl elements of a model's friction at the start of a segment; None if it has none."""
    if not model.has_memory:
        return None
    coordinates = model.robot.friction_coordinates()
    return DahlElements(model.friction.dahl, coordinates.shape[1], coordinates, changes=changes)


def warm_joints(model: Model, template: Recording, label: str) -> tuple[str, ...]:
    """Return the joints whose temperature a model needs.

    Raises:
        ObservationError: If it needs any, and the recording has no temperatures.
    """
    effects = [effect for effect in model.effects if EFFECTS[effect].needs_temperature]
    if effects and template.temperature is None:
        raise ObservationError(
            f"recording '{label}' has no temperature, on which effect '{effects[0]}' depends; declare the columns of "
            "temperature, or leave the effect out"
        )
    return tuple(dict.fromkeys(one.joint for one in model.parameters if one.effect in effects))


class RawSignals:
    """Turns blocks of a recording into signals ``[positions; velocities if recorded; y; temperature]``.

    Made even, they go through :meth:`in_time`, which puts late torques back in time.

    Args:
        template: The recording, or what is known of it before it is read.
        chosen: The preparation.
        torques: How y follows from the channels.
        label: Name of the recording, for messages.
        delays: By how much the torque of each equation is late (E,) [s].
        warm: Joints whose temperature has to be known from the start.

    Attributes:
        known_temperature: Joints of which a temperature has been read (n,).
    """

    def __init__(
        self,
        template: Recording,
        chosen: Preparation,
        torques: MeasuredTorques,
        label: str,
        delays: np.ndarray,
        warm: tuple[str, ...] = (),
    ) -> None:
        check_channels(template, chosen, label)
        self._warm = [template.joints.index(joint) for joint in warm]
        self._torques, self._label, self._delays = torques, label, delays
        self._joints = len(template.joints)
        self._first_torque = self._joints * (2 if chosen.velocity == "recorded" else 1)
        # Late joint torques wind the joints up late: that part of the positions is put back in time too.
        self._winds = chosen.stiffness is not None and chosen.delay != 0.0
        self._stiffness, self._common = chosen.stiffness, chosen.delay
        self._chosen = replace(chosen, stiffness=None) if self._winds else chosen
        self._last_temperature = np.zeros(self._joints)
        self.known_temperature = np.zeros(self._joints, dtype=bool)

    def of(self, block: Recording) -> np.ndarray:
        """Return the signals (rows, m) of a block, as they were recorded."""
        for name in self._torques.channels:
            _check_numbers(block, block.torque(name).values, f"torque channel '{name}'", self._label)
        if block.known_torque is not None:
            _check_numbers(block, block.known_torque, "known_torque", self._label)
        parts = [*motion_signals(block, self._chosen, self._label), self._torques.of(block)]
        if self._winds:
            parts.append(_joint_torque(block, self._label))
        if block.temperature is not None:
            parts.append(self._filled(block.temperature))
            self._check_warm(block)
        return np.concatenate(parts)

    def _check_warm(self, block: Recording) -> None:
        for row in self._warm:
            if not self.known_temperature[row]:
                raise ObservationError(
                    f"recording '{self._label}': no temperature of joint '{block.joints[row]}' in its first samples, "
                    "which its friction depends on; leave the effect out for this joint, or these samples"
                )

    def in_time(self, pieces: Iterable[Piece], rate: float, trimmed: tuple[int, int] = (0, 0)) -> Iterator[Piece]:
        """Yield even signals with the torques put back in time.

        Args:
            pieces: Signals at the rate of the preparation, all of the recording.
            rate: That rate [Hz].
            trimmed: Samples at the start and at the end of every segment that will not be used.
        """
        if not self._delays.any() and not self._winds:
            yield from pieces
            return
        delays = rate * np.array([*self._delays, *([self._common] * self._joints if self._winds else ())])
        shift: TorqueShift | None = None
        for piece in pieces:
            if shift is None or piece.starts:
                if shift is not None:
                    yield self._piece(False, shift.flush())
                shift = TorqueShift(delays, self._first_torque, trimmed)
            yield self._piece(piece.starts, shift.push(np.concatenate([piece.values, piece.time[None]])))
        if shift is not None:
            yield self._piece(False, shift.flush())

    def _piece(self, starts: bool, shifted: np.ndarray) -> Piece:
        """Return a piece of shifted signals with their times in the last row."""
        values = shifted[:-1]
        if self._winds:
            first = self._first_torque + len(self._delays)
            wound = slice(first, first + self._joints)
            stiffness = np.array(self._stiffness, dtype=float)
            values[: self._joints] = joint_positions(values[: self._joints], values[wound], stiffness)
            values = np.delete(values, wound, axis=0)
        return Piece(starts, shifted[-1], values)

    def _filled(self, temperature: np.ndarray) -> np.ndarray:
        """Return temperatures with the last one known, or the first, where none was recorded: they change slowly."""
        is_known = np.isfinite(temperature)
        first = np.take_along_axis(temperature, is_known.argmax(axis=1)[:, None], axis=1)[:, 0]
        begins = ~self.known_temperature & is_known.any(axis=1)
        self._last_temperature = np.where(begins, first, self._last_temperature)
        place = np.maximum.accumulate(np.where(is_known, np.arange(temperature.shape[1]), -1), axis=1)
        held = np.take_along_axis(temperature, np.maximum(place, 0), axis=1)
        filled = np.where(place >= 0, held, self._last_temperature[:, None])
        self._last_temperature = filled[:, -1].copy()
        self.known_temperature |= is_known.any(axis=1)
        return filled


def check_channels(template: Recording, chosen: Preparation, label: str) -> None:
    """Raise an ObservationError if the preparation needs a channel that is not there."""
    if chosen.velocity == "recorded" and template.qd is None:
        raise ObservationError(
            f"recording '{label}' has no recorded velocity; use velocity 'differentiated', or declare the qd channel"
        )
    if chosen.stiffness is None:
        return
    if len(chosen.stiffness) != len(template.joints):
        raise ObservationError(f"stiffness: got {len(chosen.stiffness)} values for {len(template.joints)} joints")
    if not any(channel.kind == "joint_torque" for channel in template.torques):
        raise ObservationError(
            f"recording '{label}' has no joint_torque channel, which positions behind elastic joints need; "
            "leave the stiffness away, or declare the channel"
        )


def motion_signals(block: Recording, chosen: Preparation, label: str) -> list[np.ndarray]:
    """Return positions (n, m), behind elastic joints if these are given, and recorded velocities if they are used."""
    _check_numbers(block, block.q, "q", label)
    signals = [block.q]
    if chosen.stiffness is not None:
        signals = [joint_positions(block.q, _joint_torque(block, label), np.array(chosen.stiffness, dtype=float))]
    if chosen.velocity == "recorded" and block.qd is not None:
        _check_numbers(block, block.qd, "qd", label)
        signals.append(block.qd)
    return signals


def _joint_torque(block: Recording, label: str) -> np.ndarray:
    torque = block.torque("joint_torque").values
    _check_numbers(block, torque, "torque channel 'joint_torque'", label)
    return torque


def _check_numbers(block: Recording, values: np.ndarray, channel: str, label: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        column = int(np.flatnonzero(bad.any(axis=0))[0])
        row = int(np.flatnonzero(bad[:, column])[0])
        raise ObservationError(
            f"recording '{label}': {channel} of joint '{block.joints[row]}' is {values[row, column]} at "
            f"{block.time[column]:.6g} s; cut these samples out, a gap is no harm"
        )
