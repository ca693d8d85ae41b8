"""The recorded motion simulated with any parameters, and put through the same preparation as the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...errors import SimulationError
from ...observe import RowSource, row_source
from ...recording import Recording
from ...simulate import ModelLoop
from ...simulate.truth import plant_model, true_values
from ..evidence import Evidence
from .courses import Course, courses_of, whole_recording
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
        settled = evidence.sources[0].settled
        experiment = settings.experiment(settled.rate)
        self._loop = ModelLoop(self._model, experiment)
        self._control_rate = experiment.control_rate
        self._recordings = [whole_recording(source) for source in evidence.sources]
        self._courses = [
            courses_of(recording, source.settled, experiment.record_every, source.label)
            for recording, source in zip(self._recordings, evidence.sources, strict=True)
        ]
        self._controller = self._standard(robot_values(evidence)) if settings.controller == "robot" else None

    @property
    def has_reference(self) -> bool:
        """Whether every recording knows what the arm was told to do."""
        return all(recording.reference is not None for recording in self._recordings)

    def is_arm(self, values: Mapping[str, float]) -> bool:
        """Return whether these base parameters give a positive definite inertia matrix on the recorded motion."""
        return self.margin(values) > 1e-9

    def margin(self, values: Mapping[str, float]) -> float:
        """Return the least eigenvalue of the inertia matrix on the recorded motion over its largest; > 0 is needed."""
        pairs = zip(self._evidence.sources, self._recordings, strict=True)
        return min(self._loop.inertia_margin(self._standard(values, loaded=s.loaded), r.q) for s, r in pairs)

    def sources(self, values: Mapping[str, float]) -> tuple[RowSource, ...]:
        """Return the rows of every recording simulated with base parameters by column; torques are the real ones.

        Raises:
            SimulationError: If no arm has these parameters, or the loop diverges.
        """
        found = []
        for source, recording, courses in zip(self._evidence.sources, self._recordings, self._courses, strict=True):
            standard = self._standard(values, loaded=source.loaded)
            motion = self._followed(recording, courses, standard)
            found.append(row_source(motion, source.equations, source.settled, source.label))
        return tuple(found)

    def differences(
        self,
        values: Mapping[str, float],
        simulated: Sequence[RowSource],
        pushes: Sequence[tuple[np.ndarray, np.ndarray]],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how far simulated positions are from the recorded ones, and from those of a disturbed simulation.

        Args:
            values: Base parameters by column.
            simulated: The simulated recordings with these parameters.
            pushes: For every recording times (N,) [s] and torques on the motors (n, N).

        Returns:
            Root mean squares of both differences (n,) [rad or m].

        Raises:
            SimulationError: If no arm has these parameters, or a loop diverges.
        """
        apart, pushed = [], []
        places = zip(simulated, self._recordings, self._courses, pushes, strict=True)
        for source, recording, courses, push in places:
            quiet = whole_recording(source).q
            loud = self._followed(recording, courses, self._standard(values, loaded=source.loaded), push).q
            for course in courses:
                if course.followed:
                    apart.append((recording.q - quiet)[:, course.samples])
                    pushed.append((loud - quiet)[:, course.samples])
        both = (np.concatenate(parts, axis=1) for parts in (apart, pushed))
        first, second = (np.sqrt(np.mean(part**2, axis=1)) for part in both)
        return first, second

    def _standard(self, values: Mapping[str, float], *, loaded: bool = True) -> np.ndarray:
        """Return parameters in the model's order (p,): columns that are not kept are zero."""
        felt = [parameter for parameter in self._model.parameters if loaded or parameter.effect != "payload"]
        known = {parameter.name: values.get(parameter.name, 0.0) for parameter in felt}
        return np.array([known.get(name, 0.0) for name in self._model.names])

    def _followed(
        self,
        recording: Recording,
        courses: tuple[Course, ...],
        standard: np.ndarray,
        push: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Recording:
        q = np.array(recording.q if recording.reference is None else recording.reference)
        qd = None if recording.qd is None else np.zeros_like(q)
        for course in courses:
            if not course.followed:
                continue
            torques = None if push is None else self._held(push, float(recording.time[course.samples.start]), course)
            run = self._loop.run(standard, course.reference, self._controller, disturbance=torques)
            q[:, course.samples] = course.at_stamps(run.q[0])
            if qd is not None:
                qd[:, course.samples] = course.at_stamps(run.qd[0])
        stiffness = self._evidence.sources[0].settled.chosen.stiffness
        if stiffness is not None:  # the preparation takes this wind-up off again
            q = q + recording.torque("joint_torque").values / np.array(stiffness, dtype=float)[:, None]
        return replace(recording, q=q, qd=qd, reference=None, pose=None, sources=(), findings=())

    def _held(self, push: tuple[np.ndarray, np.ndarray], start: float, course: Course) -> np.ndarray:
        """Return torques (n, K) at the control instants of a course; none before the first and after the last."""
        instants = start + np.arange(course.reference.shape[1]) / self._control_rate
        times, torques = push
        return np.array([np.interp(instants, times, torque, left=0.0, right=0.0) for torque in torques])


def robot_values(evidence: Evidence) -> dict[str, float]:
    """Return the base parameters of the robot's file by column.

    Raises:
        SimulationError: If the robot has no inertias.
    """
    return evidence.equations.base_values(true_values(plant_model(evidence.equations.model.robot, 0.0)))


def start_values(
    evidence: Evidence, motion: SimulatedMotion, start: str, prior: Mapping[str, tuple[float, float]]
) -> tuple[dict[str, float], str]:
    """Return the parameters of the first simulation by column, and whose they are: ``robot`` or ``wls``.

    Args:
        evidence: What is known.
        motion: Tells whether parameters are those of an arm.
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
