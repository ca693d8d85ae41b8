"""What an identification has found, all of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..estimate import Estimate
from ..judge import (
    LACKS,
    Bias,
    Disagreement,
    Evaluation,
    JointTests,
    Plausibility,
    Reduction,
    Repeatability,
    Verdict,
)
from ..model import BaseParameter
from ..observe import Equations, SettledPreparation
from ..text import short_repr
from .findings import LogFinding
from .fitting import Fit
from .payload_body import PayloadBody
from .settings import Settings


@dataclass(frozen=True)
class Condition:
    """Condition numbers of W: as it is, with columns at unit length, with rows weighted by their noise (P1.4)."""

    raw: float
    normalised: float
    weighted: float


@dataclass(frozen=True)
class Trained:
    """A recording that was fitted.

    Attributes:
        label: Its label.
        files: Its files and their SHA-256.
        payload: Name of the payload it carries, None if none.
        samples: Samples used.
        masked: Part of the samples left out near standstill, of the joint where most were.
        notes: What was done to it.
    """

    label: str
    files: tuple[tuple[str, str], ...]
    payload: str | None
    samples: int
    masked: float
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Identification:
    """An identified arm.

    Attributes:
        settings: What was chosen.
        equations: Model, base parameters and rows.
        settled: Filters and decimation, with their reasons.
        fit: Estimate of all base parameters, its factors and noise model.
        reduction: Essential parameters.
        condition: Condition numbers.
        training: The recordings that were fitted.
        held_out: Part of each recording that was held out, 0 if unseen recordings were given.
        fit_error: Errors on the recordings fitted, with the essential parameters.
        unseen_error: Errors on unseen recordings, with the essential parameters.
        unseen_error_of_all: The same with all base parameters.
        tests: Residual tests of every equation.
        repeatability: Recordings fitted alone against all of them; None for a single one.
        bias: Bias by position errors and filter; None if it was not asked for.
        payload: The payload's body, if one was carried and can be told.
        plausibility: What speaks for or against an arm that can exist.
        verdict: May you believe it.
        notes: What a reader should know besides.
        findings: What the checks saw in the logs, training and validation, the worst first.
        disagreement: Which recording is not of the same arm as the others, and what explains it; None if they agree.
    """

    __repr__ = short_repr

    settings: Settings
    equations: Equations
    settled: SettledPreparation
    fit: Fit
    reduction: Reduction
    condition: Condition
    training: tuple[Trained, ...]
    held_out: float
    fit_error: Evaluation
    unseen_error: Evaluation
    unseen_error_of_all: Evaluation
    tests: tuple[JointTests, ...]
    repeatability: Repeatability | None
    bias: Bias | None
    payload: PayloadBody | None
    plausibility: Plausibility
    verdict: Verdict
    notes: tuple[str, ...]
    findings: tuple[LogFinding, ...] = ()
    disagreement: Disagreement | None = None

    @property
    def estimate(self) -> Estimate:
        """All base parameters that the data excite."""
        return self.fit.estimate

    @property
    def essential(self) -> Estimate:
        """The essential parameters, refitted; their intervals are after selection."""
        return self.reduction.estimate

    def base_parameter(self, column: str) -> BaseParameter:
        """Return the base parameter of a column."""
        return next(base for base in self.equations.base.base if base.kept == column)

    def marks(self) -> dict[str, str]:
        """Return a caution beside each parameter that needs one, by column: biased, lacking an effect, in time."""
        found: dict[str, str] = {}
        if self.bias is not None:
            exposed = () if self.bias.delays.has_common else self.bias.exposed
            found |= {**dict.fromkeys(exposed, "if in time"), **dict.fromkeys(self.bias.named, "biased")}
        limit = self.settings.thresholds.pattern / 100
        strong = {test.joint for test in self.tests if test.largest_share > limit}
        owners = {parameter.name: parameter.joint for parameter in self.equations.model.parameters}
        return found | {name: LACKS for name in self.estimate.columns if owners[name] in strong}

    def values(self) -> dict[str, float]:
        """Return the value of every essential parameter by its base name: those of the model that was judged."""
        return {
            self.base_parameter(name).name: float(value)
            for name, value in zip(self.essential.columns, self.essential.values, strict=True)
        }

    def sigmas(self) -> dict[str, float]:
        """Return the standard deviation of every essential parameter by its base name."""
        return {
            self.base_parameter(name).name: float(value)
            for name, value in zip(self.essential.columns, np.asarray(self.essential.sigma), strict=True)
        }
