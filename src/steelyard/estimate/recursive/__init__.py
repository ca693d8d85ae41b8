"""Recursive least squares: the weighted estimate as it comes about in time (P1.8)."""

from .estimator import recursive_least_squares as recursive_least_squares
from .settings import STARTS as STARTS
from .settings import RecursiveSettings as RecursiveSettings
