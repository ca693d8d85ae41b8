"""Estimators that simulate the arm: instrumental variables, direct and inverse identification, and their test."""

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .estimators import direct_and_inverse as direct_and_inverse
    from .estimators import instrumental_variables as instrumental_variables
    from .simulated import InstrumentSettings as InstrumentSettings

__getattr__, __dir__ = lazy_names(
    __name__,
    {"estimators": ["direct_and_inverse", "instrumental_variables"], "simulated": ["InstrumentSettings"]},
)
