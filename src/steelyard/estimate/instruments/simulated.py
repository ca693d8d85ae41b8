"""Simulation of the recorded motion with given parameters, prepared in the same way as the real one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...errors import SimulationError
from ...observe import RowSource, row_source
from ...observe.reading import BLOCK, AnyRecording, blocks_of
from ...recording import Recording, RecordingStream
from ...recording.cache import CachedColumns, cached_columns
from ...simulation import Following, ModelLoop
from ...simulation.truth import plant_model, true_values
from ..evidence import Evidence, Prior
from .references import HeldTorques, References, SegmentReference, Torques, at_stamps, references_of
from .settings import InstrumentSettings


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
