"""A block of a recording as the signals that rows are made of, checked for values that are no numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ..errors import ObservationError
from ..recording import Recording
from ..signals import joint_positions
from .motion_stream import TorqueShift
from .preparation import Preparation
from .regular import Piece
from .torques import MeasuredTorques


class RawSignals:
    """Turns blocks of a recording into signals ``[positions; velocities if recorded; y; temperature]``.

    Made even, they go through :meth:`in_time`, which puts late torques back in time.

    Args:
        template: The recording, or what is known of it before it is read.
        chosen: The preparation.
        torques: How y follows from the channels.
        label: Name of the recording, for messages.
        delays: By how much the torque of each equation is late (E,) [s].

    Attributes:
        known_temperature: Joints of which a temperature has been seen (n,).
    """

    def __init__(
        self, template: Recording, chosen: Preparation, torques: MeasuredTorques, label: str, delays: np.ndarray
    ) -> None:
        check_channels(template, chosen, label)
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
        parts = [*motion_signals(block, self._chosen, self._label), self._torques.of(block)]
        if self._winds:
            parts.append(_joint_torque(block, self._label))
        if block.temperature is not None:
            parts.append(self._filled(block.temperature))
        return np.concatenate(parts)

    def in_time(self, pieces: Iterable[Piece], rate: float, trimmed: tuple[int, int] = (0, 0)) -> Iterator[Piece]:
        """Yield even signals with the torques put back in time.

        Args:
            pieces: Signals at the settled rate, all of the recording.
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
        """Return temperatures with the last one known where none was recorded: they change slowly."""
        is_known = np.isfinite(temperature)
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
