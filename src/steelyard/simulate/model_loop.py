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
from .following import Following, ModelRun, check_reference
from .outline import Outline, OutlineStream, posture_places
from .tuning import STABILITY_LIMIT, ClosedLoop, friction_decays, inertia_function, settled_loop

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
        size, every = len(self._model.robot.actuated), self._experiment.record_every
        check_reference(reference, size, every)
        passing = OutlineStream(size, reference.shape[1], every)
        passing.push(reference[:size])
        return self.begin(values, passing.outline(), controller).follow(reference, disturbance, threads, progress)

    def begin(self, values: np.ndarray, outline: Outline, controller: np.ndarray | None = None) -> Following:
        """Make ready to follow a motion that comes in parts.

        Args:
            values: Parameters in the model's order (p,), or (p, C) for C runs at once.
            outline: What is known of the whole motion before.
            controller: Parameters that computed torque believes, (p,); those of each run if not given.

        Raises:
            SimulationError: If an inertia matrix is not positive definite.
        """
        columns = np.atleast_2d(np.asarray(values, float).T).T
        self._check_values(columns, outline)
        loops = [self._settled(column, outline) for column in columns.T]
        step = self._compiled(loops, columns)
        believed = columns if controller is None else np.broadcast_to(controller[:, None], columns.shape)
        tuned = [np.concatenate([s.kp, s.kd, s.effort, s.quantum]) for s in (loop.settings for loop in loops)]
        parameters = np.concatenate([columns, believed, np.column_stack(tuned)])
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

    def _settled(self, values: np.ndarray, outline: Outline) -> ClosedLoop:
        truth = dict(zip(self._model.names, values.tolist(), strict=True))
        inertia = np.array(self._inertia(outline.middle, values))
        # Gains and friction are those of the middle of the motion: the arm at rest there stands for all of it.
        at_rest = np.concatenate([outline.middle, np.zeros(2 * len(outline.middle))])[:, None]
        return settled_loop(self._model, truth, self._experiment, at_rest, inertia)

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
