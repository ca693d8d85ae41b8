"""Factors to parameters: least squares, its weights, and the noise that gives its sigmas."""

from .correlated import TRUSTED as TRUSTED
from .correlated import CorrelatedFit as CorrelatedFit
from .correlated import misfit as misfit
from .correlated import with_correlated_noise as with_correlated_noise
from .deviations import cell_factors as cell_factors
from .deviations import fitted_deviations as fitted_deviations
from .deviations import joint_deviations as joint_deviations
from .gls import GlsFit as GlsFit
from .gls import decimator_correlation as decimator_correlation
from .gls import generalised as generalised
from .least_squares import iterated as iterated
from .least_squares import ordinary as ordinary
from .least_squares import towards_prior as towards_prior
from .least_squares import weighted as weighted
from .noise import NoiseModel as NoiseModel
from .record import Estimate as Estimate
from .system import Cell as Cell
from .system import System as System
from .system import cell_of as cell_of
from .system import condition_number as condition_number
from .system import independent as independent
from .system import stacked_system as stacked_system
from .whitening import decimator_whitener as decimator_whitener
