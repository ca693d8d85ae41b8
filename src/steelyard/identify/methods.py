"""Which estimator serves which method; a new one is a new line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..estimate import Estimated, Evidence
from ..progress import Progress
from .settings import Settings

Prior = Mapping[str, tuple[float, float]]

ESTIMATORS: dict[str, Callable[[Evidence, Settings, Prior, Progress], Estimated]] = {}
"""Methods beyond least squares on factors: they see rows in the order of time, or the samples themselves."""
