"""The extended Kalman filter: parameters on line, beside positions and velocities, in square-root form."""

from .filter import kalman_filter as kalman_filter
from .filter import kalman_filters as kalman_filters
from .settings import KalmanSettings as KalmanSettings
