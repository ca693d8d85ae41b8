"""An experiment from the settings of a file or a command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..errors import SimulationError, nearest_match
from .experiment import Experiment, Noise

_NOISES = ("motor_noise", "joint_noise", "position_noise", "disturbance")
_NOISE_KEYS = ("kind", "std", "band")


def experiment_from_settings(settings: Mapping[str, Any]) -> Experiment:
    """Return the experiment; lists become tuples, tables of noise become ``Noise``."""
    allowed = [field.name for field in fields(Experiment)]
    for key in settings:
        if key not in allowed:
            raise SimulationError(
                f"unknown setting '{key}'; allowed: {', '.join(allowed)}{nearest_match(key, allowed)}"
            )
    return Experiment(**{key: _value(key, value) for key, value in settings.items()})


def _value(key: str, value: Any) -> Any:
    if key in _NOISES:
        return _noise(key, value)
    if not isinstance(value, list | tuple):
        return value
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in value):
        raise SimulationError(f"{key} is {value!r}; a list of numbers is expected")
    return tuple(float(number) for number in value)


def _noise(key: str, table: Mapping[str, Any]) -> Noise:
    for word in table:
        if word not in _NOISE_KEYS:
            raise SimulationError(
                f"{key}: unknown key '{word}'; allowed: {', '.join(_NOISE_KEYS)}{nearest_match(word, _NOISE_KEYS)}"
            )
    if not {"kind", "std"} <= set(table):
        raise SimulationError(f'{key}: kind and std are needed, such as {{kind = "white", std = [0.1, 0.1]}}')
    try:
        std = tuple(float(number) for number in table["std"])
        return Noise(table["kind"], std, float(table.get("band", 0.0)))
    except (TypeError, ValueError):
        raise SimulationError(f"{key}: std is a list of numbers and band a number, got {dict(table)}") from None
