"""Arms in motion for the tests of rows and factors, and the same rows by the route of whole arrays."""

from __future__ import annotations

from functools import cache

import numpy as np

from arms import arm
from steelyard.model import Model, build_model, stacked_regressor
from steelyard.observe import Equations, ResolvedPreparation, RowSource, equations_of
from steelyard.recording import Recording, TorqueChannel
from steelyard.signals import Derivatives, decimate, differentiate

RATE = 1000.0


def smooth_positions(joints: int, samples: int, seed: int = 0) -> np.ndarray:
    """Return positions (n, N) of a few sines a joint, with a little noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(samples) / RATE
    q = np.zeros((joints, samples))
    for row in q:
        for frequency in rng.uniform(0.3, 2.0, 3):
            row += rng.uniform(0.1, 0.4) * np.sin(2 * np.pi * frequency * time + rng.uniform(0, 6))
    return q + 1e-5 * rng.standard_normal(q.shape)


def recording_for(model: Model, samples: int = 6000, seed: int = 0, **fields) -> Recording:
    """Return a recording of an arm with torques of noise on every channel that any model may ask for."""
    joints = tuple(body.joint.name for body in model.robot.actuated)
    rng = np.random.default_rng(seed + 100)
    kinds = ("joint_torque", "motor_current" if model.robot.defaults.torque == "motor_current" else "motor_torque")
    torques = tuple(TorqueChannel(kind, rng.standard_normal((len(joints), samples))) for kind in kinds)
    content = {"time": np.arange(samples) / RATE, "q": smooth_positions(len(joints), samples, seed), "torques": torques}
    return Recording(joints, **{**content, **fields})


@cache
def model_of(name: str, **choices) -> Model:
    return build_model(arm(name), **choices)


def equations_for(model: Model) -> Equations:
    """Return the equations of a model, compiled once for all tests."""
    key = (model.robot.name, model.effects, model.measured, model.payload, model.sign_width)
    if key not in _EQUATIONS:
        _EQUATIONS[key] = equations_of(model)
    return _EQUATIONS[key]


_EQUATIONS: dict[tuple, Equations] = {}


def collected(source: RowSource) -> list[np.ndarray]:
    """Return the rows of each equation (K, c + 1), all blocks together."""
    blocks = list(source)
    return [np.concatenate([block.rows[e] for block in blocks]) for e in range(len(blocks[0].rows))]


def whole_regressor(equations: Equations, motion: Derivatives, loaded: bool) -> np.ndarray:
    """Return W (E, N, base columns) of a whole motion by CasADi itself."""
    model = equations.model
    function = model.regressor if loaded else model.unloaded_regressor
    stacked = stacked_regressor(function, motion.q, motion.qd, motion.qdd)
    rows = len(equations.kinds_joints)
    return stacked.reshape(rows, -1, len(model.names))[:, :, list(equations.base.base_columns)]


def whole_rows(
    equations: Equations, resolved: ResolvedPreparation, q: np.ndarray, y: np.ndarray, loaded: bool = False
) -> list[np.ndarray]:
    """Return the same rows from whole arrays: differentiate, regressor, decimate."""
    motion = differentiate(q, resolved.low_pass, resolved.chosen.second)
    samples = slice(motion.first, motion.first + motion.q.shape[1])
    W = whole_regressor(equations, motion, loaded)
    moving = np.abs(motion.qd) >= resolved.standstill[:, None]
    result = []
    for e, columns in enumerate(equations.columns):
        nonzero = [equations.names.index(name) for name in columns]
        signals = bridged(
            np.vstack([W[e].T[nonzero], y[e, samples]]), moving[equations.joint_index[e]], resolved.decimation
        )
        small = decimate(
            signals, RATE, resolved.decimation, resolved.chosen.decimation_cutoff, ends=resolved.chosen.ends
        )
        result.append(small.values.T)
    return result


def bridged(signals: np.ndarray, moving: np.ndarray, longest: int) -> np.ndarray:
    """Return signals with the mean of the samples just before in every place that does not move, sample by sample."""
    result, fill = signals.copy(), np.zeros(len(signals))
    for k in range(signals.shape[1]):
        if moving[k]:
            continue
        if k and moving[k - 1]:
            fill = result[:, max(0, k - longest) : k].mean(axis=1)
        result[:, k] = fill
    return result
