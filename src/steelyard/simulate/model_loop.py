"""A closed loop around a model with any parameter values: what would this arm do if these were its parameters?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from weakref import finalize

import casadi as ca
import numpy as np

from ..errors import SimulationError
from ..model import Model
from ..progress import Progress, silent
from .compiled_plant import CompiledStep
from .experiment import Experiment
from .tuning import STABILITY_LIMIT, ClosedLoop, friction_decays, inertia_function, settled_loop

# Postures of a motion at which the inertia matrix is looked at, and how near to singular it may be.
_POSTURES = 50
_SINGULAR = 1e-9
# Widths of a smooth sign are taken up to powers of this, so that near friction values share a compiled step.
_WIDTH_STEP = math.sqrt(2.0)
# A loop that is farther from its reference than this many times the motion's own width has lost it.
_LOST = 3.0


@dataclass(frozen=True, eq=False)
class ModelRun:
    """What a model does in closed loop, one column for every vector of values, at the recording's instants.

    Attributes:
        q: Positions (C, n, N).
        qd: Velocities (C, n, N).
        qdd: Accelerations (C, n, N).
        motor_torque: Commanded torques (C, n, N).
        joint_torque: Torques on the link side (C, n, N).
    """

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    motor_torque: np.ndarray
    joint_torque: np.ndarray


_StepKey = tuple[Experiment, float, float]


@dataclass(eq=False)
class _Compiled:
    """A model with a smooth sign and what was compiled of it: a step for every experiment, rate and sign's width."""

    model: Model
    inertia: ca.Function
    steps: dict[_StepKey, CompiledStep] = field(default_factory=dict)


# Compiling takes as long as a simulation or two: many fits of one model share it, as long as the model lives.
_COMPILED: dict[int, _Compiled] = {}


def _compiled_of(model: Model) -> _Compiled:
    """Return what is compiled of a model, known by its identity: models are too large to compare."""
    if id(model) not in _COMPILED:
        smooth = replace(model, sign_width=1.0)
        _COMPILED[id(model)] = _Compiled(smooth, inertia_function(smooth))
        finalize(model, _COMPILED.pop, id(model), None)
    return _COMPILED[id(model)]


class ModelLoop:
    """Simulates a model in closed loop for any parameter values, compiled once for all loops around that model.

    Base parameters do: columns that are not kept are zero, and the equations stay the same.

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
        self._experiment = replace(experiment, disturbance=None, payload=None, plant="compiled")
        self._kept = _compiled_of(model)
        self._model, self._inertia = self._kept.model, self._kept.inertia
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
            progress: Told how far the run is.
            disturbance: Torques that act on the motors and that the controller does not know (n, K); None for none.

        Raises:
            SimulationError: If an inertia matrix is not positive definite, or the loop diverges.
        """
        columns = np.atleast_2d(np.asarray(values, float).T).T
        self._check(columns, reference)
        names = [
            f"with parameters {c + 1}" if columns.shape[1] > 1 else "of the model" for c in range(columns.shape[1])
        ]
        loops = [self._settled(column, reference) for column in columns.T]
        step = self._compiled(loops, columns)
        believed = columns if controller is None else np.broadcast_to(controller[:, None], columns.shape)
        tuned = [np.concatenate([s.kp, s.kd, s.effort, s.quantum]) for s in (loop.settings for loop in loops)]
        parameters = np.concatenate([columns, believed, np.column_stack(tuned)])
        pushed = None if disturbance is None else np.broadcast_to(disturbance, (len(names), *disturbance.shape))
        outputs = step.run(reference, np.ascontiguousarray(parameters), pushed, names, threads, progress)
        size = len(reference) // 3
        _check_follows(outputs[:, :size], reference[:size, :: self._experiment.record_every], names)
        outputs.setflags(write=False)
        return ModelRun(*(outputs[:, k * size : (k + 1) * size] for k in range(5)))

    def inertia_margin(self, values: np.ndarray, q: np.ndarray) -> float:
        """Return the least eigenvalue of the inertia matrix over postures q (n, K), over its largest: > 0 is needed."""
        places = np.unique(np.linspace(0, q.shape[1] - 1, _POSTURES).astype(int))
        spectra = np.array([np.linalg.eigvalsh(np.array(self._inertia(q[:, k], values))) for k in places])
        return float(spectra.min() / max(np.abs(spectra).max(), 1e-300))

    def _check(self, columns: np.ndarray, reference: np.ndarray) -> None:
        size, count = len(self._model.robot.actuated), len(self._model.parameters)
        if columns.shape[0] != count or not np.isfinite(columns).all():
            raise SimulationError(f"values: got {columns.shape[0]}, needed are {count} finite numbers, one a parameter")
        every = self._experiment.record_every
        shape = reference.shape
        if reference.ndim != 2 or shape[0] != 3 * size or not shape[1] or shape[1] % every:
            raise SimulationError(
                f"reference: got shape {shape}, needed are {3 * size} rows (q, qd, qdd), a multiple of {every} columns"
            )
        if not np.isfinite(reference).all():
            raise SimulationError("reference: got values that are no finite numbers; cut these samples out")
        for column in columns.T:
            margin = self.inertia_margin(column, reference[:size])
            if margin <= _SINGULAR:
                raise SimulationError(
                    f"the inertia matrix of these parameters is not positive definite (least over largest eigenvalue "
                    f"{margin:.2g}): no arm has these parameters; give others"
                )

    def _settled(self, values: np.ndarray, reference: np.ndarray) -> ClosedLoop:
        truth = dict(zip(self._model.names, values.tolist(), strict=True))
        middle = reference[: len(self._model.robot.actuated)].mean(axis=1)
        inertia = np.array(self._inertia(middle, values))
        return settled_loop(self._model, truth, self._experiment, reference, inertia)

    def _compiled(self, loops: Sequence[ClosedLoop], columns: np.ndarray) -> CompiledStep:
        """Return the compiled step; that of before if its integrator can follow these parameters' friction."""
        if self._step is not None and self._experiment.sign_width is None:
            step, rate, width = self._step
            middle = loops[0].reference[: len(self._model.robot.actuated)].mean(axis=1)
            if all(self._decay(values, middle, width) <= STABILITY_LIMIT * rate for values in columns.T):
                return step
        chosen = max(loops, key=lambda loop: (loop.settings.plant_rate, loop.model.sign_width))
        rate, width = chosen.settings.plant_rate, chosen.model.sign_width
        if self._experiment.sign_width is None:
            width = _WIDTH_STEP ** math.ceil(math.log(width, _WIDTH_STEP) - 1e-9)
        key = (self._experiment, rate, width)
        if key not in self._kept.steps:
            self._kept.steps[key] = CompiledStep(replace(chosen, model=replace(chosen.model, sign_width=width)))
        self._step = (self._kept.steps[key], rate, width)
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


def _check_follows(q: np.ndarray, reference: np.ndarray, names: Sequence[str]) -> None:
    width = _LOST * (1.0 + np.ptp(reference, axis=1))
    worst = (np.abs(q - reference).max(axis=2) / width).max(axis=1)
    lost = int(np.argmax(worst))
    if not worst[lost] <= 1:
        raise SimulationError(
            f"the simulation {names[lost]} diverged: it left its reference by {_LOST * worst[lost]:.3g} times the "
            "motion's width; give the gains of the real controller, or other start values"
        )
