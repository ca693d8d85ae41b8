"""Estimates that simulate the arm: instrumental variables, direct and inverse identification, and the test of both."""

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .didim import direct_and_inverse as direct_and_inverse
    from .iv import instrumental_variables as instrumental_variables
    from .settings import InstrumentSettings as InstrumentSettings

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "didim": ["direct_and_inverse"],
        "iv": ["instrumental_variables"],
        "settings": ["InstrumentSettings"],
    },
)
