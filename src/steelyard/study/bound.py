"""The Cramer-Rao bound of a simulated experiment: no unbiased estimator has smaller sigmas.

Torques are measured as ``y = W chi + e``. With normal noise e and exact positions the information about chi is
``W^T S^-1 W`` at the true motion, S the covariance of the noise over time. White noise has ``S = sigma^2 I``;
first-order autoregressive noise with the pole a is whitened exactly by ``w_k - a w_{k-1}`` over
``sigma sqrt(1 - a^2)``, the first row over sigma. Noise on the positions makes the motion unknown too: then the
bound is that of P4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..estimate import System, independent
from ..excitation import FourierFamily, unknowns
from ..excitation.cramer_rao import cramer_rao_information, fitted_basis
from ..excitation.family import FEWEST_HARMONICS
from ..motion import FourierSeries
from ..observe import dahl_elements
from ..simulation import Noise, SimulatedRun, simulate
from ..text import short_repr
from .configuration import noises_of
from .experiments import SimulatedExperiments

_FOURIER = f"Fourier motions of {FEWEST_HARMONICS} harmonics or more"


@dataclass(frozen=True, eq=False)
class Bound:
    """The Cramer-Rao bound on sigmas, or the reason why there is none.

    Attributes:
        sigma: Of every base parameter at noise level 1 (c,), NaN for those that the motion does not excite; None if
            there is no bound.
        reason: Why there is none, or what it does not count; empty if nothing need be said.
    """

    __repr__ = short_repr

    sigma: np.ndarray | None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class _RowNoise:
    """Noise of every equation (E,): standard deviations and poles, at a rate [Hz]."""

    deviations: np.ndarray
    poles: np.ndarray
    rate: float


def cramer_rao_bound(experiments: SimulatedExperiments) -> Bound:
    """Return the bound of an experiment at noise level 1; at another level it is that many times as large."""
    noises = noises_of(experiments.experiment)
    if "position_noise" in noises:
        return _bound_with_positions(experiments, noises)
    noise = _row_noise(experiments, noises)
    if isinstance(noise, str):
        return Bound(None, noise)
    sigma = _sigma_from_rows(experiments, _run_at(experiments, noise.rate), noise)
    return Bound(sigma, _not_counted(experiments, noises))


def _not_counted(experiments: SimulatedExperiments, noises: dict[str, Noise]) -> str:
    reasons = []
    if np.any(np.asarray(experiments.experiment.encoder_quantum) > 0):
        reasons.append("the encoder's steps are not counted: the bound is that of exact positions")
    if "disturbance" in noises:
        reasons.append("the disturbance counts as noise of the torques, at the motion without it")
    return "; ".join(reasons)


def _row_noise(experiments: SimulatedExperiments, noises: dict[str, Noise]) -> _RowNoise | str:
    """Return the noise of every equation, or why it has no bound."""
    kinds_joints, experiment = experiments.equations.kinds_joints, experiments.experiment
    sources = {kind: _streams(kind, noises) for kind, _ in kinds_joints}
    used = {name for names in sources.values() for name in names}
    for name in sorted(used):
        if noises[name].kind == "band_limited":
            return f"{name} is band limited: above its band there is next to no noise, and no useful bound"
    acting = "disturbance" in used and experiment.plant != "ideal"
    rate = experiment.control_rate if acting else experiment.record_rate
    if acting and len(used) > 1 and rate != experiment.record_rate:
        return "noise of the torques and a disturbance at another rate: their sum has no simple bound"
    deviations, poles = np.zeros(len(kinds_joints)), np.zeros(len(kinds_joints))
    for e, joint in enumerate(experiments.equations.joint_index):
        kind, name = kinds_joints[e]
        own = [noises[stream] for stream in sources[kind]]
        deviations[e] = np.sqrt(sum(noise.std[joint] ** 2 for noise in own))
        if deviations[e] == 0:
            return f"the {kind} torque of '{name}' has no noise: it would be known exactly"
        if any(noise.kind == "correlated" for noise in own):
            if len(own) > 1:
                return "a sum of noises of which one is correlated has no simple bound"
            poles[e] = np.exp(-2 * np.pi * own[0].band / rate)
    return _RowNoise(deviations, poles, rate)


def _streams(kind: str, noises: dict[str, Noise]) -> list[str]:
    """Return which noises enter the equations of a torque kind."""
    entering = {
        "motor": ("motor_noise", "disturbance"),
        "joint": ("joint_noise",),
        "difference": ("motor_noise", "joint_noise", "disturbance"),
    }
    return [name for name in entering[kind] if name in noises]


def _run_at(experiments: SimulatedExperiments, rate: float) -> SimulatedRun:
    """Return the undisturbed motion recorded at a rate."""
    if rate == experiments.experiment.record_rate:
        return experiments.undisturbed
    quiet = replace(experiments.experiment, disturbance=None, record_rate=rate)
    return simulate(experiments.robot, experiments.motion, quiet, [0])


def _sigma_from_rows(experiments: SimulatedExperiments, run: SimulatedRun, noise: _RowNoise) -> np.ndarray:
    equations = experiments.equations
    compiled = equations.compiled(experiments.experiment.payload is not None)
    size = len(equations.names)
    triangle = np.zeros((0, size))
    elements = dahl_elements(equations.model)
    states = [] if elements is None else [elements.push(run.q[0])]
    for e, block in enumerate(compiled.function(run.q[0], run.qd[0], run.qdd[0], *states)):
        rows = np.zeros((block.shape[1], size))
        rows[:, [equations.names.index(name) for name in compiled.columns[e]]] = block.T
        white = _whitened(rows, noise.poles[e]) / noise.deviations[e]
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, white]), mode="r"))
    return _sigmas(equations.names, triangle, len(run.time) * len(noise.deviations))


def _whitened(rows: np.ndarray, pole: float) -> np.ndarray:
    if pole == 0:
        return rows
    return np.vstack([rows[:1], (rows[1:] - pole * rows[:-1]) / np.sqrt(1 - pole**2)])


def _sigmas(names: tuple[str, ...], root: np.ndarray, rows: int) -> np.ndarray:
    """Return sigmas (c,) of the information ``R^T R``; NaN for columns that are not identifiable."""
    square = np.zeros((len(names) + 1, len(names) + 1))
    square[: len(root), :-1] = root
    system = independent(System(names, square, rows))
    known = dict(zip(system.columns, np.sqrt(np.diag(system.inverse)), strict=True))
    return np.array([known.get(name, np.nan) for name in names])


def _bound_with_positions(experiments: SimulatedExperiments, noises: dict[str, Noise]) -> Bound:
    """Return P4.2's bound, where the motion is a Fourier series and all noise is white."""
    motion = experiments.motion
    if not isinstance(motion, FourierSeries) or motion.sin.shape[1] < FEWEST_HARMONICS:
        return Bound(None, f"with noise on positions the bound is known for {_FOURIER} only")
    position = noises["position_noise"]
    if position.kind != "white" or not all(position.std):
        return Bound(None, "with noise on positions the bound is known for white noise on all of them only")
    noise = _row_noise(experiments, noises)
    if isinstance(noise, str):
        return Bound(None, noise)
    if noise.poles.any() or noise.rate != experiments.experiment.record_rate:
        return Bound(None, "with noise on positions the bound is known for white noise of the torques only")
    run, model = experiments.undisturbed, experiments.equations.model
    chosen = unknowns(model, noise.deviations, noise.rate)
    family = FourierFamily(motion.joints, motion.sin.shape[1], motion.period, motion.periods)
    information = cramer_rao_information(
        chosen, run.truth, (run.q[0], run.qd[0], run.qdd[0]), fitted_basis(family, run.time), np.array(position.std)
    )
    scale = np.sqrt(np.diag(information))
    try:
        root = np.linalg.cholesky(information / np.outer(scale, scale)).T * scale
    except np.linalg.LinAlgError:
        return Bound(None, "not all parameters are identifiable from this motion once positions are noisy")
    sigma = dict(zip(chosen.columns, _sigmas(chosen.columns, root, run.time.size), strict=True))
    return Bound(np.array([sigma[name] for name in experiments.equations.names]), _not_counted(experiments, noises))
