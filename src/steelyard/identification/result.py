"""The result of an identification, and its payload as a body: mass, centre and inertia with their sigmas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..estimate import Estimate
from ..judge import LACKS, Bias, Disagreement, Evaluation, JointTests, Plausibility, Reduction, Repeatability
from ..observe import Equations, ResolvedPreparation
from ..plain_data import frame_of
from ..robot import INERTIAL_NAMES
from ..text import short_repr
from ..verdict import Verdict
from .findings import LogFinding
from .fitting import ArmFit
from .settings import Settings

if TYPE_CHECKING:
    import polars

COLUMNS = tuple(f"{name}L" for name in INERTIAL_NAMES)


@dataclass(frozen=True, eq=False)
class PayloadBody:
    """A payload, in the frame of the link that carries it.

    Attributes:
        mass: Mass and its sigma [kg].
        centre: Centre of mass (3,) [m]; None where the mass is not above zero or a moment is not estimated.
        centre_sigma: Its sigmas (3,).
        inertia: XX XY XZ YY YZ ZZ about the frame's origin (6,) [kg m^2]; NaN where not estimated.
        inertia_sigma: Their sigmas (6,).
        inertia_at_centre: The same about the centre of mass (6,).
        inertia_at_centre_sigma: Their sigmas (6,).
        covariance: Covariance of the ten parameters (10, 10), NaN where not estimated.
    """

    __repr__ = short_repr

    mass: tuple[float, float]
    centre: np.ndarray | None
    centre_sigma: np.ndarray | None
    inertia: np.ndarray
    inertia_sigma: np.ndarray
    inertia_at_centre: np.ndarray | None
    inertia_at_centre_sigma: np.ndarray | None
    covariance: np.ndarray


def payload_body(estimate: Estimate) -> PayloadBody | None:
    """Return the payload of an estimate; None if its mass is not among the columns."""
    if "ML" not in estimate.columns:
        return None
    known = [k for k, name in enumerate(COLUMNS) if name in estimate.columns]
    places = [estimate.columns.index(COLUMNS[k]) for k in known]
    values, covariance = np.full(10, np.nan), np.full((10, 10), np.nan)
    values[known] = estimate.values[places]
    covariance[np.ix_(known, known)] = estimate.covariance[np.ix_(places, places)]
    sigma = np.sqrt(np.diag(covariance))
    centre = centre_sigma = inside = inside_sigma = None
    if values[9] > 0:
        centre, slope = _centre(values)
        centre_sigma = _carried(slope, covariance)
        inside, slope = _at_centre(values)
        inside_sigma = _carried(slope, covariance)
    return PayloadBody(
        (float(values[9]), float(sigma[9])), centre, centre_sigma, values[:6], sigma[:6], inside, inside_sigma,
        covariance,
    )  # fmt: skip


def _centre(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``c = m / M`` and its derivative by the ten parameters (3, 10)."""
    centre = values[6:9] / values[9]
    slope = np.zeros((3, 10))
    slope[:, 6:9] = np.eye(3) / values[9]
    slope[:, 9] = -centre / values[9]
    return centre, slope


def _at_centre(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the inertia about the centre of mass, ``I - (m^T m E - m m^T) / M``, and its derivative (6, 10)."""
    moment, mass = values[6:9], values[9]
    pairs = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    inside, slope = np.zeros(6), np.zeros((6, 10))
    for row, (i, j) in enumerate(pairs):
        steiner = (float(moment @ moment) * (i == j) - moment[i] * moment[j]) / mass
        inside[row] = values[row] - steiner
        slope[row, row] = 1.0
        change = 2 * moment * (i == j)
        change[i] -= moment[j]
        change[j] -= moment[i]
        slope[row, 6:9] = -change / mass
        slope[row, 9] = steiner / mass
    return inside, slope


def _carried(slope: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the sigmas of a function of the ten parameters; unknown entries count only where the slope is not zero."""
    used = np.any(slope != 0, axis=0)
    part = slope[:, used] @ covariance[np.ix_(used, used)] @ slope[:, used].T
    return np.sqrt(np.diag(part))


@dataclass(frozen=True)
class ConditionNumbers:
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
        resolved: Filters and decimation, with their reasons.
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
        bias: Bias by position errors and filter; None if it was not requested.
        payload: The payload's body, if one was carried and is identifiable.
        plausibility: Evidence for or against a physically possible arm.
        verdict: Whether the result can be trusted.
        notes: Further notes.
        findings: Findings of the checks of the logs, training and validation, the worst first.
        disagreement: Which recording is not of the same arm as the others, and what explains it; None if they agree.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> run = steelyard.simulate("scara_2r", motion, steelyard.Experiment(record_rate=100))
        >>> settings = steelyard.Settings(method="wls", reduction="none", bias_repeats=0)
        >>> found = steelyard.identify("scara_2r", steelyard.recording_of(run), settings=settings)
        >>> found.to_frame().shape, round(found.values()["ZZ2"], 3)
        ((8, 12), 0.064)
    """

    __repr__ = short_repr

    settings: Settings
    equations: Equations
    resolved: ResolvedPreparation
    fit: ArmFit
    reduction: Reduction
    condition: ConditionNumbers
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

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``result.json``, without what a run folder adds."""
        from .to_json import identification_to_json

        return identification_to_json(self)

    def to_frame(self) -> polars.DataFrame:
        """Return the parameters as a frame: name, value, sigma, unit and more, a row each."""
        return frame_of(self.to_json()["parameters"])

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
        return self._by_name(self.essential.values)

    def sigmas(self) -> dict[str, float]:
        """Return the standard deviation of every essential parameter by its base name."""
        return self._by_name(self.essential.sigma)

    def _by_name(self, numbers: np.ndarray) -> dict[str, float]:
        names = self.equations.base.name_of
        return {names[c]: float(number) for c, number in zip(self.essential.columns, numbers, strict=True)}
