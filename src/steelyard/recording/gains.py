"""Gains of drives and torque sensors with their uncertainty: where they come from, and the file that holds them.

A current becomes a torque by its gain; a torque that a drive reports is a current times a constant of its firmware. The
errors of both multiply all that is identified from them, so that they are kept as relative errors, with their
covariance.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..configuration import Kind, PerJoint, Section, choice, list_of, number, numbers, text, texts, toml_file
from ..errors import ConfigError, RecordingError
from ..files import write_aside
from ..robot import Robot
from ..text import short_repr
from .record import Recording, TorqueChannel

ASSUMED_SIGMA = 0.15
"""Relative standard deviation of gains of currents of which nothing is declared, taken as common to all joints. Two
published sets of one arm, the UR10e, differ by 24 % rms, all in one direction: 17 % each; data sheets allow 10 %."""

GAIN_KINDS = ("motor_current", "motor_torque", "joint_torque")
FILE = "gains.toml"
_MOST = 1e6


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Gains of all joints.

    Attributes:
        kind: ``motor_current``: torque per current [N m/A or N/A], joint side. ``motor_torque``, ``joint_torque``: true
            over recorded torque.
        joints: Names of the joints.
        values: The gains (n,).
        covariance: Covariance of their relative errors (n, n), infinite on the diagonal where a gain is unknown.
        source: Where they come from, a few words.

    Example:
        >>> from steelyard.recording import DriveGains
        >>> DriveGains("motor_current", ("joint_1",), np.array([11.2]), np.array([[0.02**2]]), "weighed").sigma.round(3)
        array([0.224])
    """

    __repr__ = short_repr

    kind: str
    joints: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    source: str

    @property
    def relative_sigma(self) -> np.ndarray:
        """Relative standard deviations (n,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations (n,), in the unit of the gains."""
        return self.values * self.relative_sigma

    @property
    def unit(self) -> str:
        """Unit of the gains of revolute joints."""
        return "N m/A" if self.kind == "motor_current" else "1"

    @property
    def is_exact(self) -> bool:
        """Whether no error is declared."""
        return not self.covariance.any()

    @property
    def is_known(self) -> bool:
        """Whether every gain has a finite error."""
        return bool(np.isfinite(self.covariance).all())

    def with_sigma(self, sigma: float) -> DriveGains:
        """Return the gains with a relative error common to all joints, infinite for unknown gains."""
        return replace(self, covariance=np.full(self.covariance.shape, float(sigma) ** 2))

    def to_json(self) -> dict[str, Any]:
        """Return the gains as plain data; null for the error of an unknown gain."""
        sigmas = [float(sigma) if math.isfinite(sigma) else None for sigma in self.relative_sigma]
        return {
            "kind": self.kind, "unit": self.unit, "joints": list(self.joints), "values": self.values.tolist(),
            "relative_sigma": sigmas, "source": self.source,
            "relative_covariance": self.covariance.tolist() if self.is_known else None,
        }  # fmt: skip


def gains_of(robot: Robot, channel: TorqueChannel) -> DriveGains | None:
    """Return the gains by which a channel becomes torques; None if it is a current whose gain is nowhere given.

    Args:
        robot: The arm.
        channel: The channel.
    """
    joints, covariance = robot.joint_names, channel.gain_covariance
    values = np.ones(len(joints)) if channel.gain is None else channel.gain
    source = channel.gain_source or "torques as recorded"
    assumed = np.zeros((len(joints), len(joints)))
    if channel.kind == "motor_current":
        assumed += ASSUMED_SIGMA**2
        given = [robot.values.get(f"drive_gain{body.number}", math.nan) for body in robot.actuated]
        values = np.array(given) if channel.gain is None else channel.gain
        source = "the robot file" if channel.gain is None else channel.gain_source or "the log itself"
        if not np.isfinite(values).all():
            return None
    return DriveGains(channel.kind, joints, values, assumed if covariance is None else covariance, source)


def with_gains(recording: Recording, gains: DriveGains) -> Recording:
    """Return a recording whose currents or torques have these gains.

    Args:
        recording: The recording.
        gains: Gains of its joints; others may be among them.

    Raises:
        RecordingError: If a joint is missing, or the recording has no channel of their kind.

    Example:
        >>> from steelyard.recording import DriveGains, Recording, TorqueChannel, with_gains
        >>> torque = TorqueChannel("motor_torque", np.ones((1, 3)))
        >>> log = Recording(("joint_1",), np.arange(3.0), np.zeros((1, 3)), torques=(torque,))
        >>> gains = DriveGains("motor_torque", ("joint_1",), np.array([1.8]), np.array([[0.0]]), "a scale")
        >>> with_gains(log, gains).torque().gain
        array([1.8])
    """
    missing = [joint for joint in recording.joints if joint not in gains.joints]
    if missing:
        raise RecordingError(
            f"no gain for joint '{missing[0]}' among those of {', '.join(gains.joints)}; are they of another arm?"
        )
    if not any(channel.kind == gains.kind for channel in recording.torques):
        there = ", ".join(channel.kind for channel in recording.torques) or "none"
        raise RecordingError(f"the gains are of a {gains.kind}, the recording has {there}; give gains of its own kind")
    places = [gains.joints.index(joint) for joint in recording.joints]
    values, errors = gains.values[places], gains.covariance[np.ix_(places, places)]

    given = {"gain": values, "gain_covariance": errors, "gain_source": gains.source}
    torques = [replace(one, **given) if one.kind == gains.kind else one for one in recording.torques]
    return replace(recording, torques=tuple(torques))


_COLUMNS: dict[str, Kind[Any]] = {
    "kind": choice(*GAIN_KINDS),
    "joints": texts,
    "values": numbers(None, number(least=1 / _MOST, most=_MOST)),
    "relative_sigma": numbers(None, number(least=0.0, most=_MOST)),
    "correlation": list_of(numbers(None, number(least=-1.0, most=1.0)), None, "a list of rows"),
    "source": text,
}


def read_gains(path: str | os.PathLike[str]) -> DriveGains:
    """Return the gains of a file, or of the folder of a run of ``steelyard gains``.

    Raises:
        ConfigError: If the file cannot be read or makes no sense.
    """
    file = Path(path) / FILE if Path(path).is_dir() else Path(path)
    with toml_file(file, "the gains", ConfigError) as document:
        section = document.section("gains")
        found = section.values(_COLUMNS)
        missing = [key for key in ("kind", "joints", "values", "relative_sigma") if key not in found]
        if missing:
            raise section.failure(
                f"'{missing[0]}' is missing; a file of gains has kind, joints, values, relative_sigma"
            )
        return _gains(found, section, file)


def _gains(found: Mapping[str, Any], section: Section, file: Path) -> DriveGains:
    count = len(found["joints"])
    correlation = np.array(found.get("correlation", np.ones((count, count)).tolist()))
    sizes = {len(found["values"]), len(found["relative_sigma"]), *correlation.shape}
    if sizes != {count} or len(set(found["joints"])) != count:
        raise section.failure(f"values, relative_sigma and correlation must be of the {count} joints, each named once")
    if not np.allclose(correlation, correlation.T) or np.linalg.eigvalsh(correlation)[0] < -1e-6:
        raise section.failure("correlation is none: it must be symmetric, without a negative eigenvalue")
    sigma = np.array(found["relative_sigma"])
    values = np.array(found["values"])
    source = found.get("source") or str(file)
    return DriveGains(found["kind"], found["joints"], values, correlation * np.outer(sigma, sigma), source)


def write_gains(path: Path, gains: DriveGains) -> None:
    """Write gains to a file that :func:`read_gains` reads."""
    sigma = gains.relative_sigma
    scale = np.where(sigma > 0, sigma, 1.0)
    correlation = gains.covariance / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    rows = ",\n".join(f"  {_listed(row)}" for row in np.clip(correlation, -1, 1))
    lines = [
        "# Gains of drives: --gains of steelyard identify takes this file. Errors are relative, one sigma.",
        "[gains]",
        f"kind = {_quoted(gains.kind)}            # {gains.unit}, joint side",
        f"joints = [{', '.join(map(_quoted, gains.joints))}]",
        f"values = {_listed(gains.values)}",
        f"relative_sigma = {_listed(sigma)}",
        f"correlation = [\n{rows},\n]",
        f"source = {_quoted(gains.source)}",
    ]
    write_aside(path, "\n".join(lines) + "\n")


def _listed(values: Sequence[float] | np.ndarray) -> str:
    return "[" + ", ".join(f"{value:.9g}" for value in values) + "]"


def _quoted(value: str) -> str:
    """Return a text as a basic string of TOML."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter.isprintable() else f"\\U{ord(letter):08X}" for letter in escaped) + '"'


def every_joint(values: PerJoint, is_allowed: Callable[[float], bool], allowed: str) -> PerJoint:
    """Return numbers for each joint as they are; raise a ValueError that says what is allowed if one is not."""
    entries = values.values() if isinstance(values, Mapping) else values
    if not all(map(is_allowed, [entries] if isinstance(entries, int | float) else entries)):
        raise ValueError(allowed)
    return values


def relative_sigmas(value: Any, by_joint: Kind[PerJoint]) -> PerJoint:
    """Return relative standard deviations as a set-up declares them, infinite for ``"unknown"``."""
    allowed = 'parts of the gain such as 0.1, for each joint or for all, or "unknown"'
    return math.inf if value == "unknown" else every_joint(by_joint(value), lambda sigma: sigma >= 0, allowed)
