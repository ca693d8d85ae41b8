"""A calibration from measured numbers to a verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import NoneType

import numpy as np

from ...errors import CalibrationError, require_type
from ...text import short_repr
from ...verdict import Verdict
from ..records import CalibrationProblem
from .accuracy import Accuracy
from .covariances import Covariance, intervals
from .evidence import cautions_of, evidence_of
from .fit import Iteration
from .identifiable import IdentifiableUnknowns, Invisible
from .joint_ranges import JointRange
from .outliers import Outlier
from .settings import CalibrationSettings, Method
from .stages import Stages, run_stages
from .validation import Validation
from .verdict import judge_calibration
from .weights import Sigmas


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibrated arm: what was found, how far it can be trusted, and how accurate the arm is with it.

    Attributes:
        problem: What was measured, gross errors included.
        settings: How it was done.
        values: All unknowns (p,); invisible ones at their start.
        kept: Names of the fitted unknowns.
        invisible: The others, with reasons.
        identifiability: Rank, condition, weak unknowns, combinations.
        covariance: (p, p), zero for what is not kept.
        sigma: Standard deviations (p,), 0 for what is not kept.
        freedom: Degrees of freedom of each (p,), ``inf`` for what is not kept.
        weights: Sigmas by group, of the equations that remain.
        used: Which equations remain (E,).
        residual: Measured minus predicted, of all equations (E,).
        before: Accuracy of the nominal arm with base, tool and markers fitted, gross errors left out.
        after: Accuracy of the fit.
        held_out: Cross-validated accuracy; None if no configuration could be held out.
        before_held_out: As ``before``, at the points of ``held_out``.
        validation: Accuracy on measurements of their own, before and after; None if there are none.
        outliers: Gross errors, named.
        iterations: Steps of the fit, all rounds.
        rounds: Values after each estimation of the weights (rounds, p).
        verdict: May you believe it.
        ranges: Ranges of joints in which the model lacks something.
        unmodelled: Error elsewhere that the model lacks, rms [m]; 0 where the noise of the instrument prevails.
    """

    __repr__ = short_repr

    problem: CalibrationProblem
    settings: CalibrationSettings
    values: np.ndarray
    kept: tuple[str, ...]
    invisible: tuple[Invisible, ...]
    identifiability: IdentifiableUnknowns
    covariance: np.ndarray
    sigma: np.ndarray
    freedom: np.ndarray
    weights: Sigmas
    used: np.ndarray
    residual: np.ndarray
    before: Accuracy
    after: Accuracy
    held_out: Accuracy | None
    before_held_out: Accuracy | None
    validation: Validation | None
    outliers: tuple[Outlier, ...]
    iterations: tuple[Iteration, ...]
    rounds: np.ndarray
    verdict: Verdict
    ranges: tuple[JointRange, ...] = ()
    unmodelled: float = 0.0

    def interval(self, level: float | None = None) -> np.ndarray:
        """Return two-sided intervals (p, 2) of all unknowns at a level, the settings' own if none is given."""
        covariance = Covariance(self.settings.covariance, self.covariance, self.freedom)
        return intervals(self.values, covariance, self.settings.level if level is None else level)


def calibrated(
    problem: CalibrationProblem, method: Method | None = None, settings: CalibrationSettings | None = None,
    validation: CalibrationProblem | None = None,
) -> Calibration:  # fmt: skip
    """Calibrate an arm; the same problem and settings give the same numbers.

    Args:
        problem: Unknowns and measured numbers.
        method: ``wls``, ``ols``, ``eq14``, ``declared`` or ``robust``; that of the settings if not given.
        settings: Everything else that may be chosen.
        validation: Measurements that are not fitted and decide on the verdict's prediction, all their points counted:
            ``problem.for_validation(measurements)``.

    Raises:
        CalibrationError: If the measurements cannot give what is asked for.
    """
    if not callable(getattr(problem, "residual", None)):
        raise CalibrationError(
            f"problem: got a {type(problem).__name__}; allowed: what measured_problem(robot, setup, measurements) "
            "returns"
        )
    allowed = (CalibrationSettings, NoneType)
    require_type(settings, allowed, "settings", "CalibrationSettings(...) or None", CalibrationError)
    chosen = settings or CalibrationSettings()
    stages = run_stages(problem, chosen if method is None else replace(chosen, method=method), validation)
    verdict = judge_calibration(evidence_of(stages), stages.settings.thresholds, cautions_of(stages, validation))
    return _record(stages, verdict)


def _record(stages: Stages, verdict: Verdict) -> Calibration:
    fit, size = stages.weighted.fit, len(stages.problem.parameters)
    covariance, freedom = np.zeros((size, size)), np.full(size, np.inf)
    covariance[np.ix_(fit.columns, fit.columns)] = stages.covariance.matrix
    freedom[fit.columns] = stages.covariance.freedom
    sigma = np.sqrt(np.diag(covariance))
    residual = stages.problem.residual(fit.values)
    for array in (covariance, freedom, sigma, residual):
        array.setflags(write=False)
    return Calibration(
        problem=stages.problem,
        settings=stages.settings,
        values=fit.values,
        kept=stages.identifiability.kept,
        invisible=stages.identifiability.invisible,
        identifiability=stages.identifiability,
        covariance=covariance,
        sigma=sigma,
        freedom=freedom,
        weights=stages.weighted.sigmas,
        used=stages.screening.good,
        residual=residual,
        before=stages.before,
        after=stages.after,
        held_out=stages.held_out.accuracy,
        before_held_out=stages.before_held_out,
        validation=stages.validation,
        outliers=stages.screening.outliers,
        iterations=stages.weighted.iterations,
        rounds=stages.weighted.rounds,
        verdict=verdict,
        ranges=stages.ranges,
        unmodelled=stages.unmodelled,
    )
