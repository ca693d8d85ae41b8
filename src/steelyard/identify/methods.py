"""Which estimator serves which method; a new one is a new line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..errors import EstimateError
from ..estimate import Estimated, Evidence
from ..estimate.instruments import direct_and_inverse, instrumental_variables
from ..estimate.kalman.filter import kalman_filter, kalman_filters
from ..estimate.likelihood import maximum_likelihood
from ..estimate.recursive import recursive_least_squares
from ..progress import Progress
from .settings import Settings

Prior = Mapping[str, tuple[float, float]]

ESTIMATORS: dict[str, Callable[[Evidence, Settings, Prior, Progress], Estimated]] = {
    "rls": lambda evidence, settings, prior, tell: recursive_least_squares(evidence, settings.rls, prior, tell),
    "ekf": lambda evidence, settings, prior, tell: kalman_filter(evidence, settings.ekf, prior, tell),
    "ml": lambda evidence, settings, prior, tell: maximum_likelihood(evidence, settings.ml, prior, tell),
    "iv": lambda evidence, settings, prior, tell: instrumental_variables(evidence, settings.iv, prior, tell),
    "didim": lambda evidence, settings, prior, tell: direct_and_inverse(evidence, settings.iv, prior, tell),
}
"""Methods beyond least squares on factors: they see rows in the order of time, or the samples themselves."""

SIDE_BY_SIDE: dict[str, Callable[[Sequence[Evidence], Settings, Prior], list[Estimated | EstimateError]]] = {
    "ekf": lambda evidences, settings, prior: kalman_filters(evidences, settings.ekf, prior),
}
"""Methods that take many experiments of one arm faster together than one after the other, with the same results."""

PRIOR_IS_START = frozenset({"rls", "ekf"})
"""Methods that begin at the prior: it is not to be counted a second time."""
