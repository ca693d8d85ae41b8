"""An arm that follows its trajectory exactly: torques by inverse dynamics, nothing integrated (P4's simulation)."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..kernel import compile_batch
from ..model import Model
from .experiment import Experiment
from .noise import noise_of_seed
from .plant import plant_equations


def ideal_outputs(
    model: Model, values: np.ndarray, experiment: Experiment, reference: np.ndarray, seeds: tuple[int, ...]
) -> np.ndarray:
    """Return q, qd, qdd, motor torque, joint torque of every seed at the recording's instants (S, 5 n, N).

    The motor gives ``tau = M(q) qdd + ... - d``: what the motion needs, less what the disturbance d already gives.

    Args:
        model: The plant's equations.
        values: Its parameters in the model's order (p,).
        experiment: Rates and disturbance; controller, delay and effort limits are not used.
        reference: q, qd, qdd at the control instants (3 n, K).
        seeds: The seeds.
    """
    motion = reference[:, :: experiment.record_every]
    size = len(motion) // 3
    needed, motor_side = _torques(model)(*np.split(motion, 3), values)
    joint = needed - motor_side
    outputs = []
    for seed in seeds:
        torque = noise_of_seed(
            experiment.disturbance, "disturbance", seed, size, reference.shape[1], experiment.control_rate
        )[:, :: experiment.record_every]
        outputs.append(np.concatenate([motion, needed - torque, joint]))
    return np.stack(outputs)


def _torques(model: Model):
    equations = plant_equations(model)
    size, count = len(model.robot.actuated), len(model.parameters)
    symbols = [*(ca.SX.sym(word, size) for word in ("q", "qd", "qdd")), ca.SX.sym("values", count)]
    outputs = [equations.motor_torque(*symbols), equations.motor_side(*symbols)]
    return compile_batch(ca.Function("ideal", symbols, [ca.densify(ca.cse(output)) for output in outputs]))
