"""Closed-loop simulation of a model with any parameter values, of a whole motion or block by block.

Simulating block by block needs an :class:`Outline` of the whole motion beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import casadi as ca
import numpy as np

from ..errors import SimulationError
from ..lazy import recent
from ..model import Model
from ..progress import Progress, silent
from ..text import short_repr
from .compiled_plant import FAR, CompiledStep, LoopState, departures
from .experiment import Experiment
from .tuning import STABILITY_LIMIT, ClosedLoop, friction_decays, inertia_function, resolved_loop

# Postures of a motion at which the inertia matrix is looked at.
_POSTURES = 50


@dataclass(frozen=True, eq=False)
class Outline:
    """Summary of a motion of any length; n joints.

    Attributes:
        postures: Positions at some instants, from the first to the last (n, P).
        middle: Mean position (n,).
        span: Range of the positions (n,).
    """

    postures: np.ndarray
    middle: np.ndarray
    span: np.ndarray


def posture_places(samples: int) -> np.ndarray:
    """Return which of so many samples stand for all postures of a motion (P,)."""
    return np.unique(np.linspace(0, samples - 1, _POSTURES).astype(int))


class OutlineStream:
    """Finds the outline of a motion that comes in blocks.

    Args:
        joints: Number of joints n.
        samples: Number of columns that will come.
        every: The range is that of every so-many-th column, those at which the motion is recorded.
    """

    def __init__(self, joints: int, samples: int, every: int = 1) -> None:
        self._places, self._samples, self._every = posture_places(samples), samples, every
        self._postures: list[np.ndarray] = []
        self._sum = np.zeros(joints)
        self._least, self._most = np.full(joints, np.inf), np.full(joints, -np.inf)
        self._taken = 0

    def push(self, q: np.ndarray) -> None:
        """Take the next positions (n, m)."""
        first, last = self._taken, self._taken + q.shape[1]
        self._postures.append(q[:, self._places[(self._places >= first) & (self._places < last)] - first])
        self._sum += q.sum(axis=1)
        recorded = q[:, -first % self._every :: self._every]
        self._least = np.minimum(self._least, recorded.min(axis=1, initial=np.inf))
        self._most = np.maximum(self._most, recorded.max(axis=1, initial=-np.inf))
        self._taken = last

    def outline(self) -> Outline:
        """Return the outline of all columns.

        Raises:
            SimulationError: If other than the announced number of columns came.
        """
        if self._taken != self._samples or not self._taken:
            raise SimulationError(f"motion: got {self._taken} columns, announced were {self._samples}, at least 1")
        found = Outline(np.concatenate(self._postures, axis=1), self._sum / self._taken, self._most - self._least)
        for array in (found.postures, found.middle, found.span):
            array.setflags(write=False)
        return found


@dataclass(frozen=True, eq=False)
class ModelRun:
    """Closed-loop response of a model at the recording's instants, one column for every vector of values.

    Attributes:
        q: Positions (C, n, N).
        qd: Velocities (C, n, N).
        qdd: Accelerations (C, n, N).
        motor_torque: Commanded torques (C, n, N).
        joint_torque: Torques on the link side (C, n, N).
    """

    __repr__ = short_repr

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    motor_torque: np.ndarray
    joint_torque: np.ndarray


class Following:
    """A motion followed part by part, from rest relative to its first instant. Make one with :meth:`ModelLoop.begin`.

    Args:
        step: The compiled step.
        parameters: As the step has them (np, C).
        outline: Outline of the whole motion.
        every: Control periods between two samples of the recording.
    """

    def __init__(self, step: CompiledStep, parameters: np.ndarray, outline: Outline, every: int) -> None:
        self._step, self._parameters, self._outline, self._every = step, parameters, outline, every
        count = parameters.shape[1]
        self._names = [f"with parameters {c + 1}" if count > 1 else "of the model" for c in range(count)]
        self._state: LoopState | None = None

    def follow(
        self,
        reference: np.ndarray,
        disturbance: np.ndarray | None = None,
        threads: int = 1,
        progress: Progress = silent,
    ) -> ModelRun:
        """Return the response in the next part of the motion; arm, controller and delayed commands are carried over.

        Args:
            reference: q, qd, qdd at the next control instants (3 n, K); K is a multiple of the recording's period.
            disturbance: Torques that act on the motors and that the controller does not know (n, K); None for none.
            threads: Threads that share the runs.
            progress: Progress callback of this part.

        Raises:
            SimulationError: If the loop diverges.
        """
        names, size = self._names, len(self._outline.middle)
        check_reference(reference, size, self._every)
        pushed = None if disturbance is None else np.broadcast_to(disturbance, (len(names), *disturbance.shape))
        before = self._state or self._step.start(reference, len(names))
        self._state, outputs = self._step.run(
            before, reference, self._parameters, pushed, self._refuse, threads, progress
        )
        worst = departures(outputs[:, :size], reference[:size, :: self._every], self._outline.span)
        lost = int(np.argmax(worst))
        if not worst[lost] <= FAR:
            self._refuse(
                lost,
                f"diverged: it left its reference by {worst[lost]:.3g} times the motion's width; give the gains of the "
                "real controller, or other start values",
            )
        outputs.setflags(write=False)
        return ModelRun(*(outputs[:, k * size : (k + 1) * size] for k in range(5)))

    def _refuse(self, column: int, why: str) -> None:
        raise SimulationError(f"the simulation {self._names[column]} {why}")


def check_reference(reference: np.ndarray, joints: int, every: int) -> None:
    """Raise a SimulationError unless a reference has rows q, qd, qdd of all joints and whole samples."""
    shape = reference.shape
    if reference.ndim != 2 or shape[0] != 3 * joints or not shape[1] or shape[1] % every:
        raise SimulationError(
            f"reference: got shape {shape}, needed are {3 * joints} rows (q, qd, qdd), a multiple of {every} columns"
        )
    if not np.isfinite(reference).all():
        raise SimulationError("reference: got values that are no finite numbers; cut these samples out")


# How near to singular an inertia matrix may be.
_SINGULAR = 1e-9
# Widths of a smooth sign are taken up to powers of this, so that near friction values share a compiled step.
_WIDTH_STEP = math.sqrt(2.0)


_StepKey = tuple[Experiment, float, float]


@dataclass(eq=False)
class _Compiled:
    """A model with a smooth sign and what was compiled of it: a step for every experiment, rate and sign's width."""

    model: Model
    inertia: ca.Function
    steps: dict[_StepKey, CompiledStep] = field(default_factory=dict)


@recent(4)
def _compiled_of(model: Model) -> _Compiled:
    """Return the compiled functions of a model: compiling takes as long as a simulation or two, and many fits share it.

    Equal models share them too.
    """
    smooth = replace(model, sign_width=1.0)
    return _Compiled(smooth, inertia_function(smooth))


class ModelLoop:
    """Simulates a model in closed loop for any parameter values, compiled once for all loops around that model.

    Base parameters are enough: eliminated columns are zero, and the equations stay the same.

    Args:
        model: The plant; friction gets a smooth sign. Its payload's parameters are among the values.
        experiment: Controller and rates; noise, disturbance and payload are not used.

    Raises:
        SimulationError: If the model has no link inertias, or is one of the drive chains alone.
    """

    def __init__(self, model: Model, experiment: Experiment) -> None:
        if "inertia" not in model.effects or model.measured == "difference":
            raise SimulationError(
                "a model without link inertias cannot be simulated; it needs the effect 'inertia' and torques 'motor', "
                "'joint' or 'both'"
            )
        if model.needs_temperature:
            raise SimulationError(
                "friction that depends on temperature cannot be simulated beside recordings; leave effects FcT and FvT "
                "out, or choose a method of least squares"
            )
        self._experiment = replace(experiment, disturbance=None, payload=None, plant="compiled")
        self._cache = _compiled_of(model)
        self._model, self._inertia = self._cache.model, self._cache.inertia
        self._step: tuple[CompiledStep, float, float] | None = None

    def run(
        self,
        values: np.ndarray,
        reference: np.ndarray,
        controller: np.ndarray | None = None,
        threads: int = 1,
        progress: Progress = silent,
        disturbance: np.ndarray | None = None,
    ) -> ModelRun:
        """Follow a motion.

        Args:
            values: Parameters in the model's order (p,), or (p, C) for C runs at once.
            reference: q, qd, qdd at the control instants (3 n, K); K is a multiple of the recording's period.
            controller: Parameters that computed torque believes, (p,); those of each run if not given.
            threads: Threads that share the runs.
            progress: Progress callback of the run.
            disturbance: Torques that act on the motors and that the controller does not know (n, K); None for none.

        Raises:
            SimulationError: If an inertia matrix is not positive definite, or the loop diverges.
        """
        size, every = len(self._model.robot.actuated), self._experiment.record_every
        check_reference(reference, size, every)
        passing = OutlineStream(size, reference.shape[1], every)
        passing.push(reference[:size])
        return self.begin(values, passing.outline(), controller).follow(reference, disturbance, threads, progress)

    def begin(self, values: np.ndarray, outline: Outline, controller: np.ndarray | None = None) -> Following:
        """Prepare the simulation of a motion that comes in blocks.

        Args:
            values: Parameters in the model's order (p,), or (p, C) for C runs at once.
            outline: What is known of the whole motion before.
            controller: Parameters that computed torque believes, (p,); those of each run if not given.

        Raises:
            SimulationError: If an inertia matrix is not positive definite.
        """
        columns = np.atleast_2d(np.asarray(values, float).T).T
        self._check_values(columns, outline)
        loops = [self._resolved(column, outline) for column in columns.T]
        step = self._compiled(loops, columns)
        believed = columns if controller is None else np.broadcast_to(controller[:, None], columns.shape)
        parameters = np.concatenate([columns, believed, np.column_stack([loop.tuning for loop in loops])])
        return Following(step, np.ascontiguousarray(parameters), outline, self._experiment.record_every)

    def inertia_margin(self, values: np.ndarray, q: np.ndarray) -> float:
        """Return the least eigenvalue of the inertia matrix over postures q (n, K), over its largest: > 0 is needed."""
        places = posture_places(q.shape[1])
        spectra = np.array([np.linalg.eigvalsh(np.array(self._inertia(q[:, k], values))) for k in places])
        return float(spectra.min() / max(np.abs(spectra).max(), 1e-300))

    def _check_values(self, columns: np.ndarray, outline: Outline) -> None:
        count = len(self._model.parameters)
        if columns.shape[0] != count or not np.isfinite(columns).all():
            raise SimulationError(f"values: got {columns.shape[0]}, needed are {count} finite numbers, one a parameter")
        for column in columns.T:
            margin = self.inertia_margin(column, outline.postures)
            if margin <= _SINGULAR:
                raise SimulationError(
                    f"the inertia matrix of these parameters is not positive definite (least over largest eigenvalue "
                    f"{margin:.2g}): no arm has these parameters; give others"
                )

    def _resolved(self, values: np.ndarray, outline: Outline) -> ClosedLoop:
        truth = dict(zip(self._model.names, values.tolist(), strict=True))
        inertia = np.array(self._inertia(outline.middle, values))
        # Gains and friction are those of the middle of the motion: the arm at rest there stands for all of it.
        at_rest = np.concatenate([outline.middle, np.zeros(2 * len(outline.middle))])[:, None]
        return resolved_loop(self._model, truth, self._experiment, at_rest, inertia)

    def _compiled(self, loops: Sequence[ClosedLoop], columns: np.ndarray) -> CompiledStep:
        """Return the compiled step, the previous one if its integrator is fast enough for this friction."""
        if self._step is not None and self._experiment.sign_width is None:
            step, rate, width = self._step
            middle = loops[0].reference[: len(self._model.robot.actuated)].mean(axis=1)
            if all(self._decay(values, middle, width) <= STABILITY_LIMIT * rate for values in columns.T):
                return step
        chosen = max(loops, key=lambda loop: (loop.plant_rate, loop.model.sign_width))
        rate, width = chosen.plant_rate, chosen.model.sign_width
        if self._experiment.sign_width is None:
            width = _WIDTH_STEP ** math.ceil(math.log(width, _WIDTH_STEP) - 1e-9)
        key = (self._experiment, rate, width)
        if key not in self._cache.steps:
            self._cache.steps[key] = CompiledStep(replace(chosen, model=replace(chosen.model, sign_width=width)))
        self._step = (self._cache.steps[key], rate, width)
        return self._step[0]

    def _decay(self, values: np.ndarray, posture: np.ndarray, width: float) -> float:
        viscous, dry = friction_decays(self._model, values, np.array(self._inertia(posture, values)))
        return float((viscous + dry / width).max())


def simulate_model(
    model: Model,
    values: np.ndarray,
    reference: np.ndarray,
    experiment: Experiment,
    controller: np.ndarray | None = None,
) -> ModelRun:
    """Simulate a closed loop with given parameter values of a given model; arguments as for :class:`ModelLoop`."""
    return ModelLoop(model, experiment).run(values, reference, controller)
