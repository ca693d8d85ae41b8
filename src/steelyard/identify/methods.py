"""Which estimator serves which method; a new one is a new line here. Packages load when a method asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..errors import EstimateError
from ..estimate import Estimated, Evidence, instruments, kalman, likelihood, recursive
from ..progress import Progress
from .settings import Settings

Prior = Mapping[str, tuple[float, float]]

ESTIMATORS: dict[str, Callable[[Evidence, Settings, Prior, Progress], Estimated]] = {
    "rls": lambda seen, settings, prior, tell: recursive.recursive_least_squares(seen, settings.rls, prior, tell),
    "ekf": lambda seen, settings, prior, tell: kalman.kalman_filter(seen, settings.ekf, prior, tell),
    "ml": lambda seen, settings, prior, tell: likelihood.maximum_likelihood(seen, settings.ml, prior, tell),
    "iv": lambda seen, settings, prior, tell: instruments.instrumental_variables(seen, settings.iv, prior, tell),
    "didim": lambda seen, settings, prior, tell: instruments.direct_and_inverse(seen, settings.iv, prior, tell),
}
"""Methods beyond least squares on factors: they see rows in the order of time, or the samples themselves."""

SIDE_BY_SIDE: dict[str, Callable[[Sequence[Evidence], Settings, Prior], list[Estimated | EstimateError]]] = {
    "ekf": lambda evidences, settings, prior: kalman.kalman_filters(evidences, settings.ekf, prior),
}
"""Methods that take many experiments of one arm faster together than one after the other, with the same results."""

PRIOR_IS_START = frozenset({"rls", "ekf"})
"""Methods that begin at the prior: it is not to be counted a second time."""
