"""Estimates that simulate the arm: instrumental variables, direct and inverse identification, and the test of both."""

from .didim import direct_and_inverse as direct_and_inverse
from .iv import instrumental_variables as instrumental_variables
from .settings import InstrumentSettings as InstrumentSettings
