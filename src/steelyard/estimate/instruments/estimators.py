"""Instrumental variables (IDIM-IV) and direct and inverse dynamic identification (DIDIM).

Both simulate the arm under its controller. The first uses the rows of the simulated motion, which are free of noise, as
instruments; the second fits the measured torques on these rows alone. How far simulated positions are from the recorded
ones is compared with what noise and disturbances explain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import SimulationError
from ...observe import RowSource, prepared_blocks
from ...progress import Progress, silent
from ..evidence import Estimated, Evidence, Prior, estimate_of
from ..gls import TRUSTED, noise_around
from ..system import System
from .iterations import Converged, IterationSolution, Method, converged_iterations
from .pairs import PairedRows, plain_pairs, whitened_pairs
from .simulated import InstrumentSettings, with_cached_streams
from .solution import InstrumentSolution, check_instruments, hausman_test

LARGE = 3.0
"""Positions farther apart than this many times what noise explains are not those of the same controller."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far simulated positions are from the recorded ones.

    Attributes:
        joints: Names of the joints.
        apart: Root mean square of the difference (n,) [rad or m].
        explained: That of what the noise of the positions, and the torques that the model does not explain, would
            bring about (n,).
        units: Unit of each joint's position.
        has_reference: Whether the commanded positions are known.
    """

    joints: tuple[str, ...]
    apart: np.ndarray
    explained: np.ndarray
    units: tuple[str, ...]
    has_reference: bool

    @property
    def ratios(self) -> np.ndarray:
        """How many times what noise explains the positions are apart (n,)."""
        return self.apart / np.maximum(self.explained, 1e-300)

    def note(self) -> str:
        """Return a sentence, which is a warning where the controller cannot be the real one."""
        worst = int(np.argmax(self.ratios))
        ratio = self.ratios[worst]
        text = (
            f"simulated positions differ from the recorded ones by {self.apart[worst]:.2g} {self.units[worst]} rms on "
            f"{self.joints[worst]}, {ratio:.{0 if ratio >= 10 else 1}f} times what noise explains"
        )
        if ratio <= LARGE:
            return text
        if self.has_reference:
            return f"{text}: the simulated controller is not the real one; give control, kp, kd"
        return (
            f"{text}: without a recorded reference the simulated arm should keep to the measured positions, and this "
            "controller does not; declare a reference channel, or simulate control computed_torque"
        )


def agreement_notes(evidence: Evidence, found: Converged) -> tuple[str, ...]:
    """Return what to say of how the simulated arm moves, a sentence."""
    try:
        return (agreement_of(evidence, found).note(),)
    except SimulationError:
        return ("the simulated arm loses the motion if the torques that the model does not explain push it",)


def agreement_of(evidence: Evidence, found: Converged) -> Agreement:
    """Compare the motion that was simulated last with the recorded one.

    What noise explains: the recorded positions' own noise, and the difference that the residual torques
    ``y - W x``, as a disturbance of the motors, make in the same simulation.

    Args:
        evidence: The real recordings.
        found: What the iterations ended with.
    """
    residuals = [residual_torques(source, evidence.columns, found.solved.values) for source in evidence.sources]
    apart, pushed = found.motion.differences(found.simulated, found.twins.simulated, residuals)
    noise = evidence.sources[0].resolved.signal_noise[: len(apart)]
    explained = np.hypot(noise, pushed)
    bodies = evidence.equations.model.robot.actuated
    units = tuple("m" if body.joint.kind == "prismatic" else "rad" for body in bodies)
    return Agreement(evidence.equations.joints, apart, explained, units, found.motion.has_reference)


def residual_torques(
    source: RowSource, columns: Sequence[str], values: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield times (m,) and the torques that would explain what the model does not (n, m), before decimation."""
    known = dict(zip(columns, values.tolist(), strict=True))
    compiled = source.equations.compiled(source.loaded)
    weights = [np.array([known.get(name, 0.0) for name in nonzero]) for nonzero in compiled.columns]
    equations_each = len(weights) / len(source.equations.joints)
    for block in prepared_blocks(source):
        rows = compiled.function(*block.motion)
        left = np.zeros_like(block.q)
        for e, joint in enumerate(source.equations.joint_index):
            left[joint] += (weights[e] @ rows[e] - block.y[e]) / equations_each
        yield block.time, left


def instrumental_variables(
    evidence: Evidence, settings: InstrumentSettings, prior: Prior, progress: Progress = silent
) -> Estimated:
    """Estimate with instruments from a simulation of the same motion (IDIM-IV).

    ``x_{k+1} = (Z^T W)^-1 Z^T y`` with ``Z = W_s(x_k)``: the rows of the motion that an arm with parameters ``x_k``
    makes under the same controller and reference. Position noise, and disturbances that the feedback brings into
    the motion, are in W but not in Z, so the estimate is not biased by them. Rows are weighted and freed of the
    correlation of their noise; ``C = s^2 (Z^T W)^-1 Z^T Z (W^T Z)^-1``. Where freeing them makes the fit much worse,
    the residuals are what the model lacks rather than noise: then rows stay as they are, and
    ``C = (Z^T W)^-1 Z^T S Z (W^T Z)^-1`` with S the covariance of the noise.

    Args:
        evidence: The recordings and weighted least squares of them.
        settings: Controller of the simulated arm, start and end of the iterations.
        prior: Values to start from, by column.
        progress: Progress callback, counting iterations.

    Raises:
        EstimateError: If the arm cannot be simulated, or the simulated motion does not excite all parameters.
    """
    evidence = with_cached_streams(evidence)
    method = Method(whitened_pairs, _solve_iv, lambda twins: twins.real, any_motion=True)
    found = converged_iterations(evidence, settings, prior, method, progress)
    whitened = InstrumentSolution(whitened_pairs(found.twins, evidence.columns, found.noise))
    chosen, notes = _trusted(evidence, found, whitened)
    test, doubts = hausman_test(evidence, found.twins, found.solved, found.noise, whitened)
    notes = (*notes, whitened.bias_note(), *doubts, *agreement_notes(evidence, found))
    freedom = chosen.paired.rows - len(evidence.columns)
    estimate = estimate_of("iv", "model", evidence, chosen.values, chosen.covariance, freedom)
    return Estimated(estimate, endogeneity=test, notes=notes)


def _solve_iv(paired: PairedRows) -> IterationSolution:
    solution = InstrumentSolution(paired)
    return IterationSolution(solution.values, solution.covariance, solution.change_from)


def _trusted(
    evidence: Evidence, found: Converged, whitened: InstrumentSolution
) -> tuple[InstrumentSolution, tuple[str, ...]]:
    """Return the solution of the whitened rows, or of the rows as they are if whitening makes these fit badly."""
    plain = InstrumentSolution(plain_pairs(found.twins, evidence.columns, found.noise))
    worse = np.sqrt(plain.squares_at(whitened.values) / max(plain.squares_at(plain.values), 1e-300))
    if worse <= TRUSTED:
        return whitened, found.notes
    return plain, (
        *found.notes,
        f"rows are not whitened: that would fit them {worse:.2g} times worse, so the residuals are not noise alone",
    )


def direct_and_inverse(
    evidence: Evidence, settings: InstrumentSettings, prior: Prior, progress: Progress = silent
) -> Estimated:
    """Estimate from torques and the reference, measured positions left out (DIDIM).

    ``x_{k+1} = argmin ||y - W_s(x_k) x||``: measured torques on the rows of the motion that an arm with parameters
    ``x_k`` makes under the same controller and reference. It needs the real controller, and then no differences of
    measured positions at all. Rows are weighted but not freed of correlation: what little the simulated motion
    differs from the real one near reversals would then count for more than the motion itself.
    ``C = (W_s^T W_s)^-1 W_s^T S W_s (W_s^T W_s)^-1`` with S the covariance of the noise.

    Args:
        evidence: The recordings and weighted least squares of them.
        settings: Controller of the simulated arm, start and end of the iterations.
        prior: Values to start from, by column.
        progress: Progress callback, counting iterations.

    Raises:
        EstimateError: If the arm cannot be simulated, or the simulated motion does not excite all parameters.
    """
    evidence = with_cached_streams(evidence)
    method = Method(plain_pairs, _solve_didim, lambda twins: twins.simulated, any_motion=False)
    found = converged_iterations(evidence, settings, prior, method, progress)
    columns, solved = evidence.columns, found.solved
    real = noise_around(found.twins.real, evidence.plain.system, solved.values, solved.covariance)
    paired = whitened_pairs(found.twins, columns, real)
    tested = InstrumentSolution(paired)
    test, doubts = hausman_test(evidence, found.twins, solved, real, tested)
    notes = (*found.notes, tested.bias_note(), *doubts, *agreement_notes(evidence, found))
    estimate = estimate_of("didim", "model", evidence, solved.values, solved.covariance, paired.rows - len(columns))
    return Estimated(estimate, endogeneity=test, notes=notes)


def _solve_didim(paired: PairedRows) -> IterationSolution:
    count = len(paired.columns)
    check_instruments(paired)
    triangle = np.asarray(np.linalg.qr(paired.triangle[:, [*range(count), -1]], mode="r"))[: count + 1]
    system = System(paired.columns, triangle, paired.rows)
    assert paired.spread is not None
    covariance = system.inverse @ paired.spread @ system.inverse
    size = float(np.linalg.norm(system.scale * system.values))

    def change(values: np.ndarray) -> float:
        return float(np.linalg.norm(system.scale * (system.values - values))) / max(size, 1e-300)

    return IterationSolution(system.values, covariance, change)
