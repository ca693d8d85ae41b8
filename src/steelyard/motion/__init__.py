"""Motions: immutable functions of time with exact derivatives and exact extremes."""

from .approach import ApproachedTrajectory as ApproachedTrajectory
from .approach import with_approach as with_approach
from .files import read_trajectory as read_trajectory
from .files import write_trajectory as write_trajectory
from .fourier import FourierSeries as FourierSeries
from .fourier import fourier as fourier
from .limits import LimitViolation as LimitViolation
from .limits import MotionLimits as MotionLimits
from .limits import limit_violations as limit_violations
from .limits import limits_of as limits_of
from .limits import motion_limits as motion_limits
from .moves import QuinticMoves as QuinticMoves
from .moves import TrapezoidalMoves as TrapezoidalMoves
from .piecewise import PiecewisePolynomial as PiecewisePolynomial
from .points import move_durations as move_durations
from .points import random_points as random_points
from .profile import Profile as Profile
from .profile import quintic_profile as quintic_profile
from .profile import trapezoidal_profile as trapezoidal_profile
from .quintic import quintic as quintic
from .trajectory import MotionExtrema as MotionExtrema
from .trajectory import MotionSamples as MotionSamples
from .trajectory import Peak as Peak
from .trajectory import Trajectory as Trajectory
from .trapezoidal import trapezoidal as trapezoidal
