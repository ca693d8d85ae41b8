"""A recording: motion and torques of an arm on the joint side, in SI units and the robot's joint order; findings.

While a log is read, its samples are stamps and channel arrays, which are cut and joined here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..errors import RecordingError, nearest_match
from ..text import for_html, html_table, short_repr
from .cache import mapping_of
from .figures import plot

TorqueKind = Literal["motor_current", "motor_torque", "joint_torque", "motor_pwm", "wrench"]
TORQUE_KINDS: tuple[TorqueKind, ...] = ("motor_current", "motor_torque", "joint_torque", "motor_pwm", "wrench")
WRENCH_ROWS = ("fx", "fy", "fz", "tx", "ty", "tz")
POSE_ROWS = ("x", "y", "z", "qw", "qx", "qy", "qz")

Severity = Literal["info", "warning", "bad"]
Place = Literal["", "s", "line", "row"]


@dataclass(frozen=True)
class Finding:
    """A finding of a check in a recording.

    Attributes:
        kind: Name of the check's result: ``gap``, ``jitter``, ``wrap`` ...
        severity: ``info`` (good to know), ``warning`` (look at it), ``bad`` (do not trust results before it is mended).
        text: What was found and how much, one sentence.
        channel: The channel it concerns: ``time``, ``q``, ``qd`` or a torque channel's name.
        joint: Name of the joint it concerns, empty for all.
        count: How many samples, lines or steps.
        where: The first or worst few places.
        where_unit: What ``where`` counts: seconds of the recording's clock, lines or data rows (both from 1).
        values: The numbers behind the sentence, by name, SI units.
        remedy: What to do about it; empty if there is nothing to do.
        fix: Keys of a configuration that correct it (``recording.q.unit``), with values by joint; empty if none does.
    """

    kind: str
    severity: Severity
    text: str
    channel: str = ""
    joint: str = ""
    count: int = 0
    where: tuple[float, ...] = ()
    where_unit: Place = ""
    values: Mapping[str, float] = field(default_factory=dict)
    remedy: str = ""
    fix: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether it concerns single samples, not the recording as a whole."""
        return self.kind in ("spikes", "jump")

    @property
    def is_reversed_velocity(self) -> bool:
        """Whether it is a recorded velocity with the opposite sign, of which positions and stamps are right."""
        return self.kind == "velocity" and -1.1 < self.values.get("factor", 0.0) < -0.9


@dataclass(frozen=True)
class Source:
    """Where a recording came from: a file's path and the SHA-256 of its bytes (empty while it is still being read)."""

    path: str
    sha256: str = ""


@dataclass(frozen=True, eq=False)
class TorqueChannel:
    """One measured torque, current, duty cycle or wrench.

    Attributes:
        kind: ``motor_current`` [A], ``motor_torque`` and ``joint_torque`` [N m or N, joint side], ``motor_pwm``
            [fraction of full scale] or ``wrench`` [N, N m].
        values: (n, N), a row for each joint; (6, N) for a wrench: fx fy fz tx ty tz.
        name: Name of the channel; its kind unless two of a kind are recorded.
        gain: For currents, joint-side torque per current (n,) [N m/A or N/A], if known. Rows of a current are
            motors: with coupled motors the joint torques are ``C^T (gain * values)``, ``C = robot.motor_coupling()``.
            For torques, true over recorded torque; None: 1.
        gain_covariance: Covariance of the relative errors of the gains (n, n), infinite on its diagonal where a gain is
            unknown; None if nothing is declared.
        gain_source: Where the gains come from; empty if nothing is declared.

    Example:
        >>> from steelyard.recording import TorqueChannel
        >>> TorqueChannel("motor_torque", np.zeros((2, 100))).kind
        'motor_torque'
    """

    __repr__ = short_repr

    kind: TorqueKind
    values: np.ndarray
    name: str = ""
    gain: np.ndarray | None = None
    gain_covariance: np.ndarray | None = None
    gain_source: str = ""

    def __post_init__(self) -> None:
        if self.kind not in TORQUE_KINDS:
            raise RecordingError(
                f"torque kind '{self.kind}' is not known; allowed: {', '.join(TORQUE_KINDS)}"
                f"{nearest_match(str(self.kind), TORQUE_KINDS)}"
            )
        if self.gain is not None and self.kind in ("motor_pwm", "wrench"):
            raise RecordingError(f"torque channel '{self.kind}' has a gain; only currents and torques take one")
        object.__setattr__(self, "name", self.name or self.kind)
        object.__setattr__(self, "values", frozen_array(self.values, 2, f"torque channel '{self.name}'"))
        if self.gain is not None:
            object.__setattr__(self, "gain", frozen_array(self.gain, 1, f"gain of '{self.name}'"))
        if self.gain_covariance is not None:
            covariance = frozen_array(self.gain_covariance, 2, f"covariance of the gains of '{self.name}'")
            object.__setattr__(self, "gain_covariance", covariance)


@dataclass(frozen=True, eq=False)
class Recording:
    """A log made usable: joint side, SI units, rows in the robot's joint order, checked.

    Attributes:
        joints: Names of the actuated joints, the rows of every (n, N) array.
        time: Stamps (N,) [s], strictly increasing, not necessarily even.
        q: Joint positions (n, N) [rad or m].
        qd: Joint velocities (n, N) [rad/s or m/s] as recorded, if they were.
        torques: Torque channels, in the order declared.
        temperature: Temperatures (n, N) [deg C], NaN where not recorded.
        pose: Measured pose (3, N) [m] or (7, N) with a quaternion w x y z, NaN where not recorded.
        payload: Name of the payload the arm carried, None if none.
        sources: The files it was read from.
        notes: What was assumed in reading it.
        findings: Findings of the checks.
        reference: Commanded joint positions (n, N) [rad or m], if they were recorded.
        known_torque: Part of the torques that is known and is to be subtracted from them (n, N) [N m or N, joint
            side], such as that of a balance cylinder, if it was recorded.

    Example:
        >>> time = np.arange(100) / 100
        >>> log = steelyard.Recording(("joint_1", "joint_2"), time, np.array([np.sin(time), np.cos(time)]))
        >>> log.q.shape, log.torques
        ((2, 100), ())
    """

    __repr__ = short_repr

    joints: tuple[str, ...]
    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None = None
    torques: tuple[TorqueChannel, ...] = ()
    temperature: np.ndarray | None = None
    pose: np.ndarray | None = None
    payload: str | None = None
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    reference: np.ndarray | None = None
    known_torque: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", frozen_array(self.time, 1, "time"))
        for name in ("q", "qd", "reference", "temperature", "known_torque", "pose"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, frozen_array(values, 2, name))
        _check_shapes(self)

    plot = plot

    def _repr_html_(self) -> str:
        """Return length, channels, ranges of every joint and findings as notebooks show them."""
        payload = f", payload {self.payload}" if self.payload else ""
        length = f"{self.samples} samples in {self.duration:.4g} s{payload}"
        channels = [("q", self.q)] + ([] if self.qd is None else [("qd", self.qd)])
        channels += [(one.name, one.values) for one in self.torques if len(one.values) == len(self.joints)]
        spans = [[_span(values[row]) for _, values in channels] for row in range(len(self.joints))]
        table = html_table(
            ("joint", *(name for name, _ in channels)),
            [(joint, *row) for joint, row in zip(self.joints, spans, strict=True)],
        )
        findings = "".join(f"<li>{for_html(f'{one.severity}: {one.text}')}</li>" for one in self.findings)
        return f"<p>{for_html(length)}</p>{table}" + (f"<ul>{findings}</ul>" if findings else "")

    @property
    def spoiled_by(self) -> tuple[Finding, ...]:
        """Bad findings of the recording as a whole; those of single samples may be of a channel that is not used."""
        return tuple(one for one in self.findings if one.severity == "bad" and not one.is_local)

    @property
    def samples(self) -> int:
        """Number of samples N."""
        return self.time.size

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        return float(self.time[-1] - self.time[0]) if self.time.size else 0.0

    def torque(self, name: str | None = None) -> TorqueChannel:
        """Return the torque channel of that name or kind; the only one if no name is given."""
        names = [channel.name for channel in self.torques]
        if name is None and len(names) == 1:
            return self.torques[0]
        for channel in self.torques:
            if name is not None and name in (channel.name, channel.kind):
                return channel
        wanted = "more than one torque channel" if name is None else f"no torque channel '{name}'"
        if not names:
            raise RecordingError("the recording has no torque channel; declare one with [[recording.torque]]")
        raise RecordingError(
            f"the recording has {wanted}; name one of: {', '.join(names)}{nearest_match(name or '', names)}"
        )


def _span(values: np.ndarray) -> str:
    if not np.isfinite(values).any():
        return "not recorded"
    return f"{np.nanmin(values):.4g} to {np.nanmax(values):.4g}"


def frozen_array(values: np.ndarray, dimensions: int, what: str) -> np.ndarray:
    """Return the values as float64, not writeable and, unless they lie in a mapped file, contiguous.

    Raises:
        RecordingError: If they have another number of dimensions.
    """
    array = np.asarray(values, dtype=np.float64)
    if mapping_of(array) is None:
        array = np.ascontiguousarray(array)
    if array.ndim != dimensions:
        raise RecordingError(f"{what} has shape {array.shape}; {dimensions} dimension(s) expected")
    if array.flags.writeable:
        array = array.view()
        array.setflags(write=False)
    return array


def _check_shapes(recording: Recording) -> None:
    count, samples = len(recording.joints), recording.time.size
    wanted: list[tuple[str, np.ndarray | None, tuple[int, ...]]] = [
        ("q", recording.q, (count,)),
        ("qd", recording.qd, (count,)),
        ("reference", recording.reference, (count,)),
        ("temperature", recording.temperature, (count,)),
        ("known_torque", recording.known_torque, (count,)),
        ("pose", recording.pose, (3, 7)),
    ]
    wanted += [(c.name, c.values, (6,) if c.kind == "wrench" else (count,)) for c in recording.torques]
    for name, values, rows in wanted:
        if values is not None and (values.shape[0] not in rows or values.shape[1] != samples):
            expected = " or ".join(str((row, samples)) for row in rows)
            raise RecordingError(f"{name} has shape {values.shape}; expected {expected} for {count} joints")
    names = [channel.name for channel in recording.torques]
    if len(set(names)) != len(names):
        raise RecordingError(f"two torque channels share a name ({', '.join(names)}); give each its own with name = ")


@dataclass(frozen=True)
class Samples:
    """Stamps (N,) and the arrays (rows, N) of every channel of a plan."""

    time: np.ndarray
    channels: tuple[np.ndarray, ...]

    @property
    def count(self) -> int:
        """Number of samples."""
        return self.time.size

    def part(self, first: int, last: int) -> Samples:
        """Return samples ``first`` to ``last`` (not included), without copying."""
        return Samples(self.time[first:last], tuple(values[:, first:last] for values in self.channels))

    def chosen(self, keep: np.ndarray) -> Samples:
        """Return the samples where ``keep`` is true."""
        return Samples(self.time[keep], tuple(values[:, keep] for values in self.channels))


def joined(parts: Sequence[Samples]) -> Samples:
    """Return samples one after the other."""
    if len(parts) == 1:
        return parts[0]
    channels = zip(*(part.channels for part in parts), strict=True)
    return Samples(np.concatenate([part.time for part in parts]), tuple(np.concatenate(c, axis=1) for c in channels))


class Reblocker:
    """Turns blocks of any size into blocks of one size, each with the last ``overlap`` samples of the one before.

    Checks that get the same blocks, whatever those of the reader, give the same result to the last bit.
    """

    def __init__(self, size: int, overlap: int = 0) -> None:
        self._size = size
        self._overlap = overlap
        self._pending: list[Samples] = []
        self._count = 0

    def take(self, samples: Samples) -> Iterator[Samples]:
        """Add samples; yield the blocks that are now full."""
        first = 0
        if self._pending:
            missing = self._size - self._count
            if samples.count < missing:
                self._keep(samples)
                return
            yield joined([*self._pending, samples.part(0, missing)])
            first = missing - self._overlap
            self._pending, self._count = [], 0
        while samples.count - first >= self._size:
            yield samples.part(first, first + self._size)
            first += self._size - self._overlap
        if first < samples.count:
            self._keep(samples.part(first, samples.count))

    def _keep(self, samples: Samples) -> None:
        # A copy, so that a small rest does not hold a large block in memory.
        self._pending.append(Samples(samples.time.copy(), tuple(values.copy() for values in samples.channels)))
        self._count += samples.count

    def rest(self) -> Iterator[Samples]:
        """Yield what is left."""
        if self._count:
            yield joined(self._pending)
        self._pending, self._count = [], 0


def reblocked(stream: Iterable[Samples], size: int) -> Iterator[Samples]:
    """Yield the samples of a stream in blocks of one size; the last may be smaller."""
    blocks = Reblocker(size)
    for samples in stream:
        yield from blocks.take(samples)
    yield from blocks.rest()
