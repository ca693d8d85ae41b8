"""Direct and inverse dynamic identification: least squares on the rows of the simulated motion alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...progress import Progress, silent
from ..evidence import Estimated, Evidence, estimate_of
from ..system import System
from .agreement import agreement_notes
from .hausman import hausman_test
from .pairs import PairedRows, plain_pairs, whitened_pairs
from .rounds import Method, Solved, noise_around, settled_rounds
from .settings import InstrumentSettings
from .simulated import with_kept_streams
from .solution import InstrumentSolution, check_instruments


def direct_and_inverse(
    evidence: Evidence,
    settings: InstrumentSettings,
    prior: Mapping[str, tuple[float, float]],
    progress: Progress = silent,
) -> Estimated:
    """Estimate from torques and the reference, measured positions left out (DIDIM).

    ``x_{k+1} = argmin ||y - W_s(x_k) x||``: measured torques on the rows of the motion that an arm with parameters
    ``x_k`` makes under the same controller and reference. It needs the real controller, and then no differences of
    measured positions at all. Rows are weighted but not freed of correlation: what little the simulated motion
    differs from the real one near reversals would then count for more than the motion itself.
    ``C = (W_s^T W_s)^-1 W_s^T S W_s (W_s^T W_s)^-1`` with S the covariance of the noise.

    Args:
        evidence: The recordings and weighted least squares of them.
        settings: Controller of the simulated arm, start and end of the rounds.
        prior: Values to start from, by column.
        progress: Told how many rounds are done.

    Raises:
        EstimateError: If the arm cannot be simulated, or the simulated motion does not excite all parameters.
    """
    evidence = with_kept_streams(evidence)
    method = Method(plain_pairs, _solve, lambda twins: twins.simulated, any_motion=False)
    found = settled_rounds(evidence, settings, prior, method, progress)
    columns, solved = evidence.columns, found.solved
    real = noise_around(evidence, found.twins.real, solved)
    paired = whitened_pairs(found.twins, columns, real)
    tested = InstrumentSolution(paired)
    test, doubts = hausman_test(evidence, found.twins, solved, real, tested)
    notes = (*found.notes, tested.bias_note(), *doubts, *agreement_notes(evidence, found))
    estimate = estimate_of("didim", "model", evidence, solved.values, solved.covariance, paired.rows - len(columns))
    return Estimated(estimate, endogeneity=test, notes=notes)


def _solve(paired: PairedRows) -> Solved:
    count = len(paired.columns)
    check_instruments(paired)
    triangle = np.asarray(np.linalg.qr(paired.triangle[:, [*range(count), -1]], mode="r"))[: count + 1]
    system = System(paired.columns, triangle, paired.rows)
    assert paired.spread is not None
    covariance = system.inverse @ paired.spread @ system.inverse
    size = float(np.linalg.norm(system.scale * system.values))

    def change(values: np.ndarray) -> float:
        return float(np.linalg.norm(system.scale * (system.values - values))) / max(size, 1e-300)

    return Solved(system.values, covariance, change)
