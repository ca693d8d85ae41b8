"""Figures of signals, parameters, motions and arms, from plain arrays; results and reports draw with them."""

from .arm import ArmMotion as ArmMotion
from .arm import Ellipsoid as Ellipsoid
from .arm import add_arrows as add_arrows
from .arm import arm_plot as arm_plot
from .arm import cloud_plot as cloud_plot
from .base import COLOURS as COLOURS
from .base import Chart as Chart
from .base import EvenSample as EvenSample
from .base import Thinned as Thinned
from .base import numbers as numbers
from .base import plot_text as plot_text
from .base import thin as thin
from .residuals import HISTOGRAM_RANGE as HISTOGRAM_RANGE
from .residuals import FrictionCurve as FrictionCurve
from .residuals import friction_plot as friction_plot
from .residuals import histogram_plot as histogram_plot
from .residuals import signal_plot as signal_plot
from .residuals import spectrum_plot as spectrum_plot
from .residuals import whiteness_plot as whiteness_plot
from .signals import JointSeries as JointSeries
from .signals import Line as Line
from .signals import grid_plot as grid_plot
from .signals import series_plot as series_plot
from .values import bar_plot as bar_plot
from .values import interval_plot as interval_plot
from .values import matrix_plot as matrix_plot
