"""A block of a recording as the signals that rows are made of, checked for values that are no numbers."""

from __future__ import annotations

import numpy as np

from ..errors import ObservationError
from ..recording import Recording
from ..signals import joint_positions
from .preparation import Preparation
from .torques import MeasuredTorques


class RawSignals:
    """Turns blocks of a recording into signals ``[positions; velocities if recorded; y; temperature]``.

    Args:
        template: The recording, or what is known of it before it is read.
        chosen: The preparation.
        torques: How y follows from the channels.
        label: Name of the recording, for messages.

    Attributes:
        known_temperature: Joints of which a temperature has been seen (n,).
    """

    def __init__(self, template: Recording, chosen: Preparation, torques: MeasuredTorques, label: str) -> None:
        check_channels(template, chosen, label)
        self._chosen, self._torques, self._label = chosen, torques, label
        self._last_temperature = np.zeros(len(template.joints))
        self.known_temperature = np.zeros(len(template.joints), dtype=bool)

    def of(self, block: Recording) -> np.ndarray:
        """Return the signals (rows, m) of a block."""
        for name in self._torques.channels:
            _check_numbers(block, block.torque(name).values, f"torque channel '{name}'", self._label)
        parts = [*motion_signals(block, self._chosen, self._label), self._torques.of(block)]
        if block.temperature is not None:
            parts.append(self._filled(block.temperature))
        return np.concatenate(parts)

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
        torque = block.torque("joint_torque").values
        _check_numbers(block, torque, "torque channel 'joint_torque'", label)
        signals = [joint_positions(block.q, torque, np.array(chosen.stiffness, dtype=float))]
    if chosen.velocity == "recorded" and block.qd is not None:
        _check_numbers(block, block.qd, "qd", label)
        signals.append(block.qd)
    return signals


def _check_numbers(block: Recording, values: np.ndarray, channel: str, label: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        column = int(np.flatnonzero(bad.any(axis=0))[0])
        row = int(np.flatnonzero(bad[:, column])[0])
        raise ObservationError(
            f"recording '{label}': {channel} of joint '{block.joints[row]}' is {values[row, column]} at "
            f"{block.time[column]:.6g} s; cut these samples out, a gap is no harm"
        )
