"""Which cut-off the low-pass of the positions needs: the one with which torques are predicted best.

Accelerations are differences: noise of positions and velocities grows with frequency in them while the motion fades.
Where predicted torques are noise for the larger part, leaving that band out brings them nearer to the measured ones,
although these keep it; where motion goes on beyond the cut-off that the spectrum of the positions proposes, a higher
one does. Positions alone do not tell which; torques do.

Residuals of rows say nothing of it, because torques are decimated with the regressor, more so with a lower cut-off.
Compared are torques at the full rate through the evaluation filter, at the same samples: the measured ones with those
of the plain model fitted to the rows of each cut-off. Recordings for validation are no argument of anything here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import SteelyardError
from ..estimate import Estimate
from ..judge import filtered_torques
from ..observe import Equations, ResolvedPreparation, RowSource, busiest_part, resolve_preparation
from ..progress import Progress, silent
from ..signals import LowPass, evaluation_filter
from .inputs import Labelled, weighted_fit
from .selection import LEAST_GAIN, STANDARD_ERRORS
from .settings import Settings

STEP = 2**0.5
"""Ratio of neighbouring cut-offs."""
MOST_STEPS = 4
"""Steps away from the proposed cut-off: two octaves."""
HIGHEST = 0.8
"""Highest cut-off over the Nyquist frequency."""
LOOKED_AT = 20_000
"""Samples of each recording that are compared, those in which all joints move most."""
_BLOCKS = 16


def with_cutoff(
    equations: Equations,
    recordings: Sequence[Labelled],
    resolved: ResolvedPreparation,
    settings: Settings,
    progress: Progress = silent,
) -> tuple[ResolvedPreparation, Settings]:
    """Return the preparation with the cut-off by which training recordings are predicted best, and settings with it.

    Another cut-off than the proposed one has to reduce the squared error as a further effect would have to. A cut-off
    that was given stays. Torques are judged as with the proposed one: a lower one must not look better by its filter.

    Args:
        equations: The plain model.
        recordings: The recordings to fit.
        resolved: Their preparation, with the cut-off that their motion proposes.
        settings: Evaluation filter, robust weights and threads.
        progress: Progress callback, called with done and total.
    """
    if resolved.chosen.cutoff is not None or resolved.cutoff is None:
        return resolved, settings
    trials, best = _CutoffTrials(equations, recordings, resolved, settings, progress), 0
    for way in (-1, 1):
        while best * way >= 0 and trials.is_better(best + way, best):
            best += way
    if best == 0:
        return resolved, settings
    found = trials.prepared(best)
    evaluation = settings.evaluation_cutoff or resolved.cutoff
    return found, replace(settings, preparation=found.chosen, evaluation_cutoff=evaluation)


@dataclass(frozen=True, eq=False)
class _TrialErrors:
    """Errors of the predicted torques of a recording.

    Attributes:
        time: Times (k,) [s].
        errors: Errors of every equation (E, k) [N m or N].
        moving: Where joints move (E, k).
    """

    time: np.ndarray
    errors: np.ndarray
    moving: np.ndarray

    def squares_beside(self, other: _TrialErrors) -> np.ndarray:
        """Return the squares of these and of other errors in blocks of time (2, blocks), at the samples of both.

        Each equation counts by its errors here.
        """
        _, own, others = np.intersect1d(self.time, other.time, return_indices=True)
        moves = self.moving[:, own] & other.moving[:, others]
        squares = np.stack([self.errors[:, own], other.errors[:, others]]) ** 2 * moves
        sizes = squares[0].sum(axis=1) / np.maximum(moves.sum(axis=1), 1)
        sums = np.sum(squares / np.maximum(sizes, 1e-300)[:, None], axis=1)
        return np.array([[part.sum() for part in np.array_split(one, _BLOCKS)] for one in sums])


class _CutoffTrials:
    """Cut-offs by their number of steps from the proposed one, and the errors with each.

    Args: those of :func:`with_cutoff`.
    """

    def __init__(
        self,
        equations: Equations,
        recordings: Sequence[Labelled],
        resolved: ResolvedPreparation,
        settings: Settings,
        progress: Progress,
    ) -> None:
        assert resolved.cutoff is not None
        self._equations, self._resolved, self._settings = equations, resolved, settings
        self._whole = [recording for _, recording in recordings]
        self._parts = [(label, busiest_part(recording, LOOKED_AT)) for label, recording in recordings]
        self._cutoff, self._highest = resolved.cutoff, HIGHEST * resolved.rate / 2
        self._band = evaluation_filter(resolved.rate, settings.evaluation_cutoff or resolved.cutoff)
        self._found, self._progress = dict[int, list[_TrialErrors]](), progress

    def is_better(self, steps: int, than: int) -> bool:
        """Return whether torques are predicted better with one cut-off than with another."""
        if abs(steps) > MOST_STEPS or self._cutoff * STEP**steps > self._highest:
            return False
        try:
            pairs = zip(self._errors(than), self._errors(steps), strict=True)
            squares = np.concatenate([one.squares_beside(other) for one, other in pairs], axis=1)
        except SteelyardError:  # the recordings are too short for this filter
            return False
        gains = squares[0] - squares[1]
        gain, error = gains.sum(), np.sqrt(len(gains)) * gains.std(ddof=1)
        return bool(gain > LEAST_GAIN * squares[0].sum() and gain > STANDARD_ERRORS * error)

    def prepared(self, steps: int, **held: Any) -> ResolvedPreparation:
        """Return the preparation with another cut-off.

        Args:
            steps: Its number.
            held: What else of the preparation is given.
        """
        cutoff = self._cutoff * STEP**steps
        found = resolve_preparation(replace(self._resolved.chosen, cutoff=cutoff, **held), self._whole)
        reason = (
            f"cut-off {cutoff:.3g} Hz: with it the plain model predicts torques of the training recordings better than "
            f"with the {self._cutoff:.3g} Hz that their motion proposes"
        )
        return replace(found, reasons=(reason, *found.reasons[1:]))

    def _errors(self, steps: int) -> list[_TrialErrors]:
        """Return the errors of every recording, at the samples that count with the proposed cut-off."""
        if steps not in self._found:
            speeds = tuple(self._resolved.standstill.tolist())
            resolved = self.prepared(steps, standstill=speeds, max_gap=self._resolved.max_gap)
            sources, _, fit = weighted_fit(self._equations, self._parts, resolved, self._settings)
            self._found[steps] = [_errors_of(source, fit, self._band) for source in sources]
            self._progress(len(self._found), 2 * MOST_STEPS)
        return self._found[steps]


def _errors_of(source: RowSource, fit: Estimate, band: LowPass) -> _TrialErrors:
    blocks = list(filtered_torques(source, fit, band))
    if not blocks:
        return _TrialErrors(np.zeros(0), *np.zeros((2, len(source.equations.kinds_joints), 0)))
    return _TrialErrors(
        np.concatenate([one.time for one in blocks]),
        np.concatenate([one.measured - one.predicted for one in blocks], axis=1),
        np.concatenate([one.moving for one in blocks], axis=1),
    )
