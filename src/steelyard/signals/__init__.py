"""Filters, derivatives, resampling, decimation and whitening of sampled signals: arrays only, no files, no robots."""

from typing import TYPE_CHECKING

from ..lazy import lazy_names
from .checks import ColumnQueue as ColumnQueue
from .dahl import DahlElements as DahlElements
from .decimation import Decimated as Decimated
from .decimation import DecimationFilter as DecimationFilter
from .decimation import Decimator as Decimator
from .decimation import decimate as decimate
from .decimation import decimation_filter as decimation_filter
from .differences import MARGIN as MARGIN
from .differences import Derivatives as Derivatives
from .differences import central_difference as central_difference
from .differences import difference_response as difference_response
from .differences import differentiate as differentiate
from .differences import joint_positions as joint_positions
from .fir import FirStage as FirStage
from .lowpass import DESIGNS as DESIGNS
from .lowpass import MODES as MODES
from .lowpass import LowPass as LowPass
from .lowpass import LowPassStream as LowPassStream
from .lowpass import SegmentFilter as SegmentFilter
from .lowpass import apply_low_pass as apply_low_pass
from .lowpass import evaluation_filter as evaluation_filter
from .lowpass import low_pass as low_pass
from .lowpass import trim_ends as trim_ends
from .propose import CutoffProposal as CutoffProposal
from .propose import propose_cutoff as propose_cutoff
from .sampling import METHODS as METHODS
from .sampling import ResampleStream as ResampleStream
from .sampling import Segment as Segment
from .sampling import describe_sampling as describe_sampling
from .sampling import find_quantum as find_quantum
from .sampling import resample as resample
from .sampling import uniform_rate as uniform_rate
from .whitening import LevinsonWhitener as LevinsonWhitener
from .whitening import RowWhitener as RowWhitener
from .whitening import half_kernel as half_kernel
from .whitening import whitened_series as whitened_series

if TYPE_CHECKING:
    from .fourier import OUT_OF_STEP as OUT_OF_STEP
    from .fourier import FourierFit as FourierFit
    from .fourier import average_periods as average_periods
    from .fourier import fit_fourier as fit_fourier
    from .fourier import fold as fold
    from .noise import autoregressive_noise as autoregressive_noise
    from .noise import band_limited_noise as band_limited_noise
    from .noise import white_noise as white_noise
    from .period import check_periodicity as check_periodicity
    from .period import find_period as find_period
    from .period import repetition as repetition
    from .period import significant_lines as significant_lines
    from .prewhiten import AnalogueFilter as AnalogueFilter
    from .prewhiten import Prewhitener as Prewhitener
    from .prewhiten import analogue_butterworth as analogue_butterworth
    from .prewhiten import prewhitener as prewhitener

# Not every command needs these.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "prewhiten": ["AnalogueFilter", "analogue_butterworth", "Prewhitener", "prewhitener"],
        "fourier": ["FourierFit", "fit_fourier", "OUT_OF_STEP", "average_periods", "fold"],
        "noise": ["autoregressive_noise", "band_limited_noise", "white_noise"],
        "period": ["find_period", "check_periodicity", "repetition", "significant_lines"],
    },
)
