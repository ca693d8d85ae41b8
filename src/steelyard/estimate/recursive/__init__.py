"""Recursive least squares: the weighted estimate as it comes about in time (P1.8)."""

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .estimator import recursive_least_squares as recursive_least_squares
    from .settings import STARTS as STARTS
    from .settings import RecursiveSettings as RecursiveSettings

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "estimator": ["recursive_least_squares"],
        "settings": ["STARTS", "RecursiveSettings"],
    },
)
