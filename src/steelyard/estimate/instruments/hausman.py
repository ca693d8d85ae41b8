"""Was least squares biased? Durbin, Wu and Hausman's test, on rows whose noise is known."""

from __future__ import annotations

from ...errors import EstimateError, SignalError
from ..evidence import Endogeneity, Evidence
from ..noise import NoiseModel
from ..whitening import RowWhitener
from .moving import Twins
from .pairs import whitened_pairs
from .rounds import Solved, noise_around
from .solution import InstrumentSolution

WHOLE = 0.995
"""Part of the decimation window that moves in rows that are tested."""

FINE_ORDER = 12
"""Highest order of the noise model of rows that are not decimated."""

# With fewer degrees of freedom left, rows near standstill are tested too.
_LEAST_FREEDOM = 20

_NEAR_STANDSTILL = (
    "the Durbin-Wu-Hausman test has too few rows away from standstill and takes those near it, whose noise is not that "
    "of the others: it may reject two or three times as often as its p says; decimate less"
)


def hausman_test(
    evidence: Evidence, twins: Twins, solved: Solved, noise: NoiseModel, whitened: InstrumentSolution
) -> tuple[Endogeneity, tuple[str, ...]]:
    """Return the test, and what to say of it.

    The F test needs rows whose noise is white and of one size, much more than the estimate does: it looks at the small
    part of the rows that the instruments do not explain. Two kinds of rows do not have such noise. Near standstill the
    decimation window is bridged by the mean of the samples before, noise and all: these rows are left out. And at the
    full rate noise may have sharper colours than an autoregression of low order: there a higher one is tried.

    Args:
        evidence: The recordings.
        twins: Their rows and those of the simulated motion.
        solved: The parameters around which the noise is found.
        noise: The noise model of the recordings' rows.
        whitened: All rows, whitened with it: tested where too few are left.
    """
    everything, finer = whitened.endogeneity(), _finer(evidence, twins, solved, noise)
    try:
        test = InstrumentSolution(whitened_pairs(twins, evidence.columns, finer, WHOLE)).endogeneity()
    except EstimateError:
        return everything, (_NEAR_STANDSTILL,)
    if test.freedom[1] < min(_LEAST_FREEDOM, everything.freedom[1]):
        return everything, (_NEAR_STANDSTILL,)
    return test, ()


def _finer(evidence: Evidence, twins: Twins, solved: Solved, noise: NoiseModel) -> NoiseModel:
    """Return a noise model of higher order of rows at the full rate; the one at hand where there is none."""
    if evidence.sources[0].settled.decimates:
        return noise
    try:
        finer = noise_around(evidence, twins.real, solved, FINE_ORDER)
        for coefficients in finer.coefficients.values():
            RowWhitener(finer.correlation, coefficients)  # refuses what is all but known from the rows before
    except (EstimateError, SignalError):
        return noise
    # Runs of rows shorter than the order tell nothing of their noise.
    return finer if finer.deviations.keys() == noise.deviations.keys() else noise
