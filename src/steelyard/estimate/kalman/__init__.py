"""The extended Kalman filter: parameters estimated on line with positions and velocities, in square-root form."""

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .filter import kalman_filter as kalman_filter
    from .filter import kalman_filters as kalman_filters
    from .settings import KalmanSettings as KalmanSettings

__getattr__, __dir__ = lazy_names(
    __name__, {"filter": ["kalman_filter", "kalman_filters"], "settings": ["KalmanSettings"]}
)
