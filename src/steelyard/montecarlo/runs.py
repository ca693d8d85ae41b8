"""What the runs of one case gave, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..text import short_repr
from .study import Case

NOT_SIMULATED = "simulation: "
"""How the message of a run begins whose simulation diverged, so that there was nothing to estimate from."""


@dataclass(frozen=True, eq=False)
class CaseRuns:
    """Runs of one case, R of them; c parameters. NaN where a run failed or a parameter was not excited.

    Attributes:
        case: Method, noise level and start.
        names: Columns of the base parameters, c of them.
        seeds: Seed of each run (R,).
        values: Estimates (c, R).
        sigma: Standard deviations told (c, R).
        half_width: Half the width of the 95 % intervals told (c, R).
        seconds: CPU time of each estimation (R,) [s]; NaN where the simulation failed before it.
        failures: Message of each run that failed, empty for those that did not.
    """

    __repr__ = short_repr

    case: Case
    names: tuple[str, ...]
    seeds: np.ndarray
    values: np.ndarray
    sigma: np.ndarray
    half_width: np.ndarray
    seconds: np.ndarray
    failures: tuple[str, ...]

    def __post_init__(self) -> None:
        for array in (self.seeds, self.values, self.sigma, self.half_width, self.seconds):
            array.setflags(write=False)

    @property
    def times(self) -> np.ndarray:
        """CPU times of the estimations that were made [s]; one of zero if none was."""
        made = self.seconds[np.isfinite(self.seconds)]
        return made if made.size else np.zeros(1)

    def chosen(self, seeds: Sequence[int]) -> CaseRuns:
        """Return the runs of these seeds, in this order; each must be there."""
        place = {int(seed): k for k, seed in enumerate(self.seeds)}
        order = [place[seed] for seed in seeds]
        return CaseRuns(
            self.case,
            self.names,
            self.seeds[order],
            self.values[:, order],
            self.sigma[:, order],
            self.half_width[:, order],
            self.seconds[order],
            tuple(self.failures[k] for k in order),
        )


def joined(parts: Sequence[CaseRuns]) -> CaseRuns:
    """Return the runs of several parts of one case, one behind the other."""
    first = parts[0]
    return CaseRuns(
        first.case,
        first.names,
        np.concatenate([part.seeds for part in parts]),
        np.concatenate([part.values for part in parts], axis=1),
        np.concatenate([part.sigma for part in parts], axis=1),
        np.concatenate([part.half_width for part in parts], axis=1),
        np.concatenate([part.seconds for part in parts]),
        tuple(text for part in parts for text in part.failures),
    )
