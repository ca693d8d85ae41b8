"""Simulation of the recorded motion with given parameters, prepared in the same way as the real one; its settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ...configuration import Kind, list_of, number, whole_number
from ...errors import EstimateError, SimulationError
from ...observe import RowSource, check_fields, row_source
from ...observe.reading import BLOCK, AnyRecording, blocks_of
from ...recording import Recording, RecordingStream
from ...recording.cache import CachedColumns, cached_columns
from ...simulation import Experiment, Following, ModelLoop
from ...simulation.plant import plant_model, true_values
from ..evidence import Evidence, Prior
from .references import HeldTorques, References, SegmentReference, Torques, at_stamps, references_of

_KINDS: dict[str, Kind[Any]] = {
    **dict.fromkeys(("tolerance", "control_rate", "plant_rate"), number(above=0)),
    "most_rounds": whole_number(1),
    "delay": number(),
    "standstill": list_of(number(least=0), None, "a list of speeds", alone=True),
}
# Steps of the integrator in a control period: the motion is smooth, and many iterations are simulated.
_STEPS = 4


@dataclass(frozen=True)
class InstrumentSettings:
    """Settings of instrumental variables and of direct and inverse identification.

    The controller is that of :class:`~steelyard.simulation.Experiment`; give the real one where it is known.

    Attributes:
        control: ``computed_torque`` or ``pd``.
        kp: Position gains of every joint; None for gains of ``bandwidth``.
        kd: Velocity gains of every joint.
        bandwidth: Natural frequency of the closed loop where no gains are given [Hz].
        velocity: What the controller knows of velocity, ``tachometer`` or ``encoder``.
        control_rate: Rate of the controller [Hz], taken to the nearest whole multiple of the recording's.
        plant_rate: Rate of the integrator [Hz]; None for four times the controller's, or what ``sign_width`` needs.
        delay: Time from a command to its torque [s], taken to whole control periods.
        controller: Whose parameters computed torque believes: ``estimate``, those of the current iteration, so that the
            simulated arm keeps to its reference; or ``robot``, those of the robot's file.
        start: Parameters of the first simulation: ``robot``, those of the robot's file; ``wls``, weighted least
            squares; ``auto``, the robot's where it has them, else those of weighted least squares. Prior values, where
            there are any, take the place of either.
        tolerance: Iterations end when parameters change by less than this part, each weighed by its column's length.
        most_rounds: Iterations at most.
        sign_width: Width of the smooth sign in the simulated friction [rad/s or m/s]; None for one that the
            integrator can follow.
        standstill: Simulated speed below which a joint's own equations are left out [rad/s or m/s], one a joint or one
            for all; None: three times the rms difference between recorded and simulated velocities, at least the
            preparation's own standstill. That of the preparation is not used otherwise.
    """

    control: str = "computed_torque"
    kp: tuple[float, ...] | None = None
    kd: tuple[float, ...] | None = None
    bandwidth: float = 5.0
    velocity: str = "tachometer"
    control_rate: float = 1000.0
    plant_rate: float | None = None
    delay: float = 0.0
    controller: Literal["estimate", "robot"] = "estimate"
    start: Literal["auto", "robot", "wls"] = "auto"
    tolerance: float = 1e-4
    most_rounds: int = 20
    sign_width: float | None = None
    standstill: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self, _KINDS, "iv", EstimateError)
        self.experiment(self.control_rate)  # the rest is checked there

    def experiment(self, rate: float) -> Experiment:
        """Return the noise-free experiment with this controller, recorded at a rate [Hz]."""
        control_rate = rate * max(1, round(self.control_rate / rate))
        plant_rate = None if self.sign_width is not None else _STEPS * control_rate
        if self.plant_rate is not None:
            plant_rate = control_rate * max(1, round(self.plant_rate / control_rate))
        kp, kd = (None if gains is None else tuple(map(float, gains)) for gains in (self.kp, self.kd))
        given: dict[str, Any] = {"control": self.control, "velocity": self.velocity}  # checked by the experiment
        return Experiment(
            **given, kp=kp, kd=kd, bandwidth=self.bandwidth, control_rate=control_rate, plant_rate=plant_rate,
            record_rate=rate, delay=round(self.delay * control_rate) / control_rate, sign_width=self.sign_width,
            saturate=False,
        )  # fmt: skip


class SimulatedMotion:
    """Gives the rows that the recordings would have if the arm had certain parameters and there were no noise.

    Args:
        evidence: The real recordings.
        settings: Controller of the simulated arm.
    """

    def __init__(self, evidence: Evidence, settings: InstrumentSettings) -> None:
        self._evidence = evidence
        self._model = evidence.equations.model
        resolved = evidence.sources[0].resolved
        experiment = settings.experiment(resolved.rate)
        self._loop = ModelLoop(self._model, experiment)
        self._control_rate = experiment.control_rate
        self._every = experiment.record_every
        self._references = [references_of(s.recording, s.resolved, self._every, s.label) for s in evidence.sources]
        self._controller = self._standard(robot_values(evidence)) if settings.controller == "robot" else None

    @property
    def has_reference(self) -> bool:
        """Whether commanded positions were recorded in every recording."""
        return all(source.template.reference is not None for source in self._evidence.sources)

    def is_arm(self, values: Mapping[str, float]) -> bool:
        """Return whether these base parameters give a positive definite inertia matrix on the recorded motion."""
        return self.margin(values) > 1e-9

    def margin(self, values: Mapping[str, float]) -> float:
        """Return the least eigenvalue of the inertia matrix on the recorded motion over its largest; > 0 is needed."""
        pairs = zip(self._evidence.sources, self._references, strict=True)
        return min(
            self._loop.inertia_margin(self._standard(values, loaded=source.loaded), references.recorded.postures)
            for source, references in pairs
        )

    def sources(self, values: Mapping[str, float]) -> tuple[RowSource, ...]:
        """Return the rows of every recording simulated with base parameters by column; torques are the real ones.

        Raises:
            SimulationError: If no arm has these parameters, or the loop diverges.
        """
        found = []
        for source, references in zip(self._evidence.sources, self._references, strict=True):
            motion = self._moved(source, references, self._standard(values, loaded=source.loaded))
            found.append(row_source(motion, source.equations, source.resolved, source.label))
        return tuple(found)

    def differences(
        self, values: Mapping[str, float], simulated: Sequence[RowSource], pushes: Sequence[Torques]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how far simulated positions are from the recorded ones, and from those of a disturbed simulation.

        Args:
            values: Base parameters by column.
            simulated: The simulated recordings with these parameters.
            pushes: For every recording times [s] and torques on the motors, block by block.

        Returns:
            Root mean squares of both differences (n,) [rad or m].

        Raises:
            SimulationError: If no arm has these parameters, or a loop diverges.
        """
        squares, count = np.zeros((2, len(self._evidence.equations.joints))), 0
        places = zip(self._evidence.sources, simulated, self._references, pushes, strict=True)
        for source, quiet, references, push in places:
            loud, first = self._moved(source, references, self._standard(values, loaded=source.loaded), push), 0
            for real, still, moved in zip(*map(blocks_of, (source.recording, quiet.recording, loud)), strict=True):
                followed = references.followed(first, first + real.samples)
                for row, difference in enumerate((real.q - still.q, moved.q - still.q)):
                    squares[row] += np.sum(difference[:, followed] ** 2, axis=1)
                first, count = first + real.samples, count + int(followed.sum())
        apart, pushed = np.sqrt(squares / max(count, 1))
        return apart, pushed

    def _standard(self, values: Mapping[str, float], *, loaded: bool = True) -> np.ndarray:
        """Return parameters in the model's order (p,): columns without a value are zero."""
        return np.array([
            values.get(parameter.name, 0.0) if loaded or parameter.effect != "payload" else 0.0
            for parameter in self._model.parameters
        ])  # fmt: skip

    def _moved(
        self, source: RowSource, references: References, standard: np.ndarray, push: Torques | None = None
    ) -> AnyRecording:
        """Return a recording with the motion of an arm that has these parameters."""
        template = source.template
        rows = len(template.joints) * (1 if template.qd is None else 2)
        torques = None if push is None else HeldTorques(push)
        motion = (
            both[:rows] for part in references.every for both in self._followed(part, references, standard, torques)
        )
        stiffness = source.resolved.chosen.stiffness
        if stiffness is not None:
            motion = _wound_up(source.recording, cached_columns(rows, motion), np.array(stiffness, dtype=float))
        return _with_motion(source.recording, cached_columns(rows, motion))

    def _followed(
        self, part: SegmentReference, references: References, standard: np.ndarray, torques: HeldTorques | None
    ) -> Iterator[np.ndarray]:
        """Yield simulated positions and velocities (2 n, m) at the samples of a segment."""
        columns, together = part.columns, max(1, BLOCK // self._every) * self._every
        if part.outline is None:
            for reference in references.reference.blocks(columns.start, columns.stop):
                yield reference[: 2 * len(reference) // 3]
            return
        following = self._loop.begin(standard, part.outline, self._controller)
        blocks = references.reference.blocks(columns.start, columns.stop, together)
        yield from at_stamps(part, references.stamps, self._on_grid(following, blocks, part.segment.start, torques))

    def _on_grid(
        self, following: Following, blocks: Iterable[np.ndarray], start: float, torques: HeldTorques | None
    ) -> Iterator[np.ndarray]:
        done, push = 0, None
        for reference in blocks:
            if torques is not None:
                push = torques.at(start + np.arange(done, done + reference.shape[1]) / self._control_rate)
            run = following.follow(reference, push)
            done += reference.shape[1]
            yield np.concatenate([run.q[0], run.qd[0]])


def with_cached_streams(evidence: Evidence) -> Evidence:
    """Return the evidence with every stream read once: text would be parsed in every pass of every iteration."""
    sources = tuple(
        row_source(source.recording.whole(), source.equations, source.resolved, source.label)
        if isinstance(source.recording, RecordingStream)
        else source
        for source in evidence.sources
    )
    return replace(evidence, sources=sources)


def _with_motion(recording: AnyRecording, motion: CachedColumns) -> Recording:
    """Return a recording with another motion (n or 2 n rows, N) and no pose or reference."""
    assert isinstance(recording, Recording)
    joints, values = len(recording.joints), motion.whole()
    qd = None if recording.qd is None else values[joints:]
    return replace(recording, q=values[:joints], qd=qd, reference=None, pose=None, sources=(), findings=())


def _wound_up(recording: AnyRecording, motion: CachedColumns, stiffness: np.ndarray) -> Iterator[np.ndarray]:
    """Yield a motion with the wind-up of elastic joints, which the preparation takes off again."""
    first = 0
    for block in blocks_of(recording):
        part = motion.read(first, first + block.samples).copy()
        part[: len(stiffness)] += block.torque("joint_torque").values / stiffness[:, None]
        first += block.samples
        yield part


def robot_values(evidence: Evidence) -> dict[str, float]:
    """Return the base parameters of the robot's file by column.

    Raises:
        SimulationError: If the robot has no inertias.
    """
    return evidence.equations.base_values(true_values(plant_model(evidence.equations.model.robot, 0.0)))


def start_values(evidence: Evidence, motion: SimulatedMotion, start: str, prior: Prior) -> tuple[dict[str, float], str]:
    """Return the parameters of the first simulation by column, and whose they are: ``robot`` or ``wls``.

    Args:
        evidence: What is known.
        motion: Decides whether parameters are those of an arm.
        start: ``auto``, ``robot`` or ``wls``.
        prior: Values, with deviations, that take the place of either.
    """
    plain = dict(zip(evidence.columns, evidence.plain.values.tolist(), strict=True))
    known = {name: value for name, (value, _) in prior.items()}
    if start != "wls":
        try:
            own = {**robot_values(evidence), **known}
        except SimulationError:
            if start == "robot":
                raise
        else:
            if start == "robot" or motion.is_arm(own):
                return own, "robot"
    return {**plain, **known}, "wls"
