"""Instrumental variables: rows of the simulated motion, which know nothing of the noise, in place of the weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...progress import Progress, silent
from ..correlated import TRUSTED
from ..evidence import Estimated, Evidence, estimate_of
from .agreement import agreement_notes
from .hausman import hausman_test
from .pairs import PairedRows, plain_pairs, whitened_pairs
from .rounds import Method, Settled, Solved, settled_rounds
from .settings import InstrumentSettings
from .simulated import with_kept_streams
from .solution import InstrumentSolution


def instrumental_variables(
    evidence: Evidence,
    settings: InstrumentSettings,
    prior: Mapping[str, tuple[float, float]],
    progress: Progress = silent,
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
        settings: Controller of the simulated arm, start and end of the rounds.
        prior: Values to start from, by column.
        progress: Told how many rounds are done.

    Raises:
        EstimateError: If the arm cannot be simulated, or the simulated motion does not excite all parameters.
    """
    evidence = with_kept_streams(evidence)
    method = Method(whitened_pairs, _solve, lambda twins: twins.real, any_motion=True)
    found = settled_rounds(evidence, settings, prior, method, progress)
    whitened = InstrumentSolution(whitened_pairs(found.twins, evidence.columns, found.noise))
    chosen, notes = _trusted(evidence, found, whitened)
    test, doubts = hausman_test(evidence, found.twins, found.solved, found.noise, whitened)
    notes = (*notes, whitened.bias_note(), *doubts, *agreement_notes(evidence, found))
    freedom = chosen.paired.rows - len(evidence.columns)
    estimate = estimate_of("iv", "model", evidence, chosen.values, chosen.covariance, freedom)
    return Estimated(estimate, endogeneity=test, notes=notes)


def _solve(paired: PairedRows) -> Solved:
    solution = InstrumentSolution(paired)
    return Solved(solution.values, solution.covariance, solution.change_from)


def _trusted(
    evidence: Evidence, found: Settled, whitened: InstrumentSolution
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
